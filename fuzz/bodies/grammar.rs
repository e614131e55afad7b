//! Makes expressions and ads by a grammar, from the fuzzer's bytes.

use arbitrary::{Result, Unstructured};

const LITERALS: [&str; 40] = [
    "0",
    "1",
    "-1",
    "2",
    "63",
    "64",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
    "0.0",
    "-0.0",
    "1.5",
    "1e308",
    "1e400",
    "real(\"NaN\")",
    "real(\"-INF\")",
    "true",
    "false",
    "undefined",
    "error",
    "\"\"",
    "\"a\"",
    "\"A,b;c\"",
    "\"12abc\"",
    "\"\\303\\251\"",
    "\"é\"",
    "\"(a)(b*)\"",
    "\"\\\\1\\\\0\"",
    "\"%c%j%V\"",
    "\"A=1 B='x'\"",
    "{}",
    "{1,2.5,true}",
    "{\"a\",\"b\"}",
    "[]",
    "absTime(\"2020-02-29T12:30:45+05:30\")",
    "relTime(\"1+02:03:04\")",
    "absTime(1e18)",
    "relTime(-1e300)",
    "\"slot1@host\"",
    "\"0123456789abcdef0123456789abcdef0123456789abcdef\"",
];

const NAMES: [&str; 12] = [
    "a",
    "b",
    "c",
    "d",
    "Requirements",
    "Rank",
    "CurrentTime",
    "'a b'",
    "parent",
    "toplevel",
    "self",
    "missing",
];

const SCOPES: [&str; 8] = ["", "", "", "MY.", "TARGET.", "parent.", ".", "other."];

const OPERATORS: [&str; 25] = [
    "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "=?=", "=!=", " is ", " isnt ", "&&", "||",
    "&", "|", "^", "<<", ">>", ">>>", "?:", ".a ?:",
];

/// The names of all functions, and one that does not exist.
pub const FUNCTIONS: [&str; 93] = [
    "nosuch",
    "isundefined",
    "iserror",
    "isstring",
    "isinteger",
    "isreal",
    "isboolean",
    "islist",
    "isclassad",
    "isabstime",
    "isreltime",
    "ifthenelse",
    "debug",
    "eval",
    "unparse",
    "unresolved",
    "strcat",
    "toupper",
    "tolower",
    "substr",
    "strcmp",
    "stricmp",
    "string",
    "int",
    "real",
    "bool",
    "interval",
    "stringlistsize",
    "stringlistsum",
    "stringlistavg",
    "stringlistmin",
    "stringlistmax",
    "stringlistmember",
    "stringlistimember",
    "stringlistsubsetmatch",
    "stringlistisubsetmatch",
    "stringlistsintersect",
    "stringlist_regexpmember",
    "size",
    "sum",
    "avg",
    "min",
    "max",
    "anycompare",
    "allcompare",
    "member",
    "identicalmember",
    "split",
    "splitusername",
    "splitslotname",
    "join",
    "evalineachcontext",
    "countmatches",
    "floor",
    "ceil",
    "ceiling",
    "round",
    "pow",
    "quantize",
    "random",
    "regexp",
    "regexpmember",
    "regexps",
    "replace",
    "replaceall",
    "time",
    "currenttime",
    "abstime",
    "reltime",
    "timezoneoffset",
    "daytime",
    "getyear",
    "getmonth",
    "getdayofyear",
    "getdayofmonth",
    "getdayofweek",
    "getdays",
    "gethours",
    "getminutes",
    "getseconds",
    "splittime",
    "formattime",
    "versioncmp",
    "versionlt",
    "versionle",
    "versiongt",
    "versionge",
    "versioneq",
    "version_in_range",
    "envv1tov2",
    "mergeenvironment",
    "listtoargs",
    "argstolist",
];

/// Text that is most often a ClassAd expression.
pub fn expression(u: &mut Unstructured<'_>, depth: u8) -> Result<String> {
    if depth == 0 || u.is_empty() {
        return leaf(u);
    }
    let inner = depth - 1;
    Ok(match u.int_in_range(0..=15)? {
        0 | 1 => leaf(u)?,
        2..=5 => {
            let (left, right) = (expression(u, inner)?, expression(u, inner)?);
            let operator = u.choose(&OPERATORS)?;
            if u.ratio(1, 4)? {
                format!("{left}{operator}{right}")
            } else {
                format!("({left}){operator}({right})")
            }
        }
        6 => format!("{}({})", u.choose(&["-", "+", "!", "~"])?, expression(u, inner)?),
        7 => format!("({}) ? {} : {}", expression(u, inner)?, expression(u, inner)?, expression(u, inner)?),
        8 => format!("{{{}}}", some(u, inner, ",")?),
        9 => ad(u, inner)?,
        10 => format!("({})[{}]", expression(u, inner)?, expression(u, inner)?),
        11 => format!("({}).{}", expression(u, inner)?, u.choose(&NAMES)?),
        12 => format!("eval({:?})", expression(u, inner)?),
        _ => format!("{}({})", u.choose(&FUNCTIONS)?, some(u, inner, ",")?),
    })
}

/// The text of an ad in the new syntax. Not every text is a valid ad.
pub fn ad(u: &mut Unstructured<'_>, depth: u8) -> Result<String> {
    let mut text = String::from("[");
    for _ in 0..u.int_in_range(0..=5)? {
        text.push_str(&format!("{} = {};", u.choose(&NAMES)?, expression(u, depth)?));
    }
    text.push(']');
    Ok(text)
}

fn some(u: &mut Unstructured<'_>, depth: u8, separator: &str) -> Result<String> {
    let count = u.int_in_range(0..=4)?;
    let items: Vec<String> = (0..count).map(|_| expression(u, depth)).collect::<Result<_>>()?;
    Ok(items.join(separator))
}

fn leaf(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.int_in_range(0..=9)? {
        0..=3 => format!("{}{}", u.choose(&SCOPES)?, u.choose(&NAMES)?),
        4..=6 => (*u.choose(&LITERALS)?).to_owned(),
        7 => u.arbitrary::<i64>()?.to_string(),
        8 => format!("{:?}", u.arbitrary::<f64>()?),
        _ => {
            let text: String = u.arbitrary::<&str>()?.chars().take(20).collect();
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
    })
}
