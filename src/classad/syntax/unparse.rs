//! Prints expressions, values and ads in HTCondor's own form.

use std::fmt::{Result, Write};

use super::time;
use crate::ad::Ad;
use crate::expr::{Binary, Expr, Id, Kids, Node, Program, Unary};
use crate::name::Name;
use crate::value::Value;

/// How to print, by what the text is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// The form in which functions of the language print: reals with 16 digits, and attributes in the order in which
    /// HTCondor keeps them.
    Condor,
    /// As [`Style::Condor`], but over many lines, indented by this many spaces: the form that `unparse()` returns.
    Pretty(usize),
    /// Text that reads back as the same: reals with 17 digits if 16 lose something, and attributes sorted.
    Exact,
    /// As [`Style::Exact`], but for the long form, in whose strings a backslash stands for itself.
    Long,
}

impl Style {
    fn reads_back(self) -> bool {
        matches!(self, Self::Exact | Self::Long)
    }
}

/// By how many spaces lists and ads are indented. HTCondor indents the bracket, and then again what is in the
/// brackets.
const LIST_INDENT: usize = 3;
const AD_INDENT: usize = 4;

fn new_line<W: Write>(out: &mut W, indent: usize) -> Result {
    write!(out, "\n{:indent$}", "")
}

/// Prints the expression under a node.
pub(crate) fn node<W: Write>(out: &mut W, program: &Program, id: Id, style: Style) -> Result {
    let sub = |out: &mut W, id: Id| node(out, program, id, style);
    match program.node(id) {
        None => Ok(()),
        Some(Node::Literal(literal)) => value(out, literal, style),
        Some(Node::Attr(name)) => identifier(out, name.as_str()),
        Some(Node::RootAttr(name)) => {
            out.write_char('.')?;
            identifier(out, name.as_str())
        }
        Some(Node::Select(select)) => {
            sub(out, select.base)?;
            if style.reads_back() && matches!(program.node(select.base), Some(Node::Literal(Value::Int(_)))) {
                // Without a space, the point would be read as part of the number.
                out.write_char(' ')?;
            }
            out.write_char('.')?;
            selected(out, select.name.as_str(), style)
        }
        Some(Node::Unary(op, inner)) => {
            out.write_str(unary(*op))?;
            if *op == Unary::Minus && style.reads_back() && starts_with_digit(program, *inner) {
                // Without a space, the minus would be read as part of the number.
                out.write_char(' ')?;
            }
            sub(out, *inner)
        }
        Some(Node::Binary(op, left, right)) => {
            sub(out, *left)?;
            write!(out, " {} ", binary(*op, style))?;
            sub(out, *right)
        }
        Some(Node::And(items)) => separated(out, program, *items, " && ", style),
        Some(Node::Or(items)) => separated(out, program, *items, " || ", style),
        Some(Node::Ternary(condition, yes, no)) => {
            sub(out, *condition)?;
            out.write_str(" ? ")?;
            sub(out, *yes)?;
            out.write_str(" : ")?;
            sub(out, *no)
        }
        Some(Node::Elvis(left, right)) => {
            sub(out, *left)?;
            out.write_str(" ?: ")?;
            sub(out, *right)
        }
        Some(Node::Index(base, index)) => {
            sub(out, *base)?;
            out.write_char('[')?;
            sub(out, *index)?;
            out.write_char(']')
        }
        Some(Node::Paren(inner)) => {
            out.write_char('(')?;
            sub(out, *inner)?;
            out.write_char(')')
        }
        Some(Node::List(items)) => list(out, program, *items, style),
        Some(Node::Ad(nested)) => ad(out, nested, style),
        Some(Node::Call(call)) => {
            selected(out, call.name.as_str(), style)?;
            out.write_char('(')?;
            separated(out, program, call.args, ",", style)?;
            out.write_char(')')
        }
    }
}

fn list<W: Write>(out: &mut W, program: &Program, items: Kids, style: Style) -> Result {
    if let Style::Pretty(indent) = style {
        let outer = indent + LIST_INDENT;
        let inner = outer + LIST_INDENT;
        new_line(out, outer)?;
        out.write_char('{')?;
        for (place, id) in program.kids(items).iter().enumerate() {
            out.write_str(if place > 0 { "," } else { "" })?;
            new_line(out, inner)?;
            node(out, program, *id, Style::Pretty(inner))?;
        }
        new_line(out, outer)?;
        return out.write_char('}');
    }
    if items.start == items.end {
        return out.write_str("{  }");
    }
    out.write_str("{ ")?;
    separated(out, program, items, ",", style)?;
    out.write_str(" }")
}

fn separated<W: Write>(out: &mut W, program: &Program, items: Kids, with: &str, style: Style) -> Result {
    for (place, id) in program.kids(items).iter().enumerate() {
        if place > 0 {
            out.write_str(with)?;
        }
        node(out, program, *id, style)?;
    }
    Ok(())
}

/// Prints an expression.
pub(crate) fn expr<W: Write>(out: &mut W, expr: &Expr, style: Style) -> Result {
    node(out, expr.program(), expr.program().root(), style)
}

/// Prints an ad in the new syntax, on one line.
pub(crate) fn ad<W: Write>(out: &mut W, ad: &Ad, style: Style) -> Result {
    let mut entries: Vec<_> = ad.iter().collect();
    if !style.reads_back() {
        entries.sort_by_key(|(name, _)| name.as_str().len());
    }
    if let Style::Pretty(indent) = style {
        return pretty_ad(out, &entries, indent + AD_INDENT);
    }
    out.write_char('[')?;
    for (place, (name, value)) in entries.into_iter().enumerate() {
        out.write_str(if place > 0 { "; " } else { " " })?;
        identifier(out, name.as_str())?;
        out.write_str(" = ")?;
        expr(out, value, style)?;
    }
    out.write_str(if ad.is_empty() { "  ]" } else { " ]" })
}

fn pretty_ad<W: Write>(out: &mut W, entries: &[(&Name, &Expr)], outer: usize) -> Result {
    let inner = outer + AD_INDENT;
    new_line(out, outer)?;
    out.write_char('[')?;
    for (place, (name, value)) in entries.iter().enumerate() {
        out.write_str(if place > 0 { "; " } else { "" })?;
        new_line(out, inner)?;
        identifier(out, name.as_str())?;
        out.write_str(" = ")?;
        expr(out, value, Style::Pretty(inner))?;
    }
    new_line(out, outer)?;
    out.write_char(']')
}

/// Prints an ad in the long form.
pub(crate) fn long(ad: &Ad) -> String {
    let mut text = String::new();
    for (name, value) in ad {
        text.push_str(name.as_str());
        text.push_str(" = ");
        // Writing to a string does not fail.
        let _ = expr(&mut text, value, Style::Long);
        text.push('\n');
    }
    text
}

/// Prints a value as an expression that evaluates to it.
pub(crate) fn value<W: Write>(out: &mut W, value: &Value, style: Style) -> Result {
    match value {
        Value::Undefined => out.write_str("undefined"),
        Value::Error => out.write_str("error"),
        Value::Bool(truth) => write!(out, "{truth}"),
        Value::Int(number) => write!(out, "{number}"),
        Value::Real(number) => real(out, *number, style),
        Value::Str(text) if style == Style::Long => long_string(out, text),
        Value::Str(text) => escaped(out, text, '"'),
        Value::List(items) if items.is_empty() => out.write_str("{  }"),
        Value::List(items) => {
            out.write_str("{ ")?;
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.write_char(',')?;
                }
                self::value(out, item, style)?;
            }
            out.write_str(" }")
        }
        Value::Ad(nested) => ad(out, nested, style),
        Value::AbsTime(moment) if !style.reads_back() => {
            write!(out, "absTime(\"{}\")", time::absolute(*moment))
        }
        Value::AbsTime(moment) => match time::absolute_exact(*moment) {
            Some(text) => write!(out, "absTime(\"{text}\")"),
            None => write!(out, "absTime({},{})", moment.secs, moment.offset),
        },
        Value::RelTime(secs) if !style.reads_back() => {
            write!(out, "relTime(\"{}\")", time::relative_literal(*secs))
        }
        Value::RelTime(secs) => {
            if let Some(text) = time::relative_exact(*secs) {
                return write!(out, "relTime(\"{text}\")");
            }
            out.write_str("relTime(")?;
            real(out, *secs, style)?;
            out.write_char(')')
        }
    }
}

/// Prints a real: C's `%1.15E`, in the long form `%.16G`, or a call for infinities and NaN.
pub(crate) fn real<W: Write>(out: &mut W, number: f64, style: Style) -> Result {
    if number.is_nan() {
        return out.write_str("real(\"NaN\")");
    }
    if number.is_infinite() {
        return out.write_str(if number > 0.0 { "real(\"INF\")" } else { "real(\"-INF\")" });
    }
    if number == 0.0 {
        return out.write_str(if number.is_sign_negative() { "-0.0" } else { "0.0" });
    }
    let mut text = format!("{number:.15E}");
    if style.reads_back() && text.parse::<f64>() != Ok(number) {
        text = format!("{number:.16E}");
    }
    let (digits, exponent) = text.split_once('E').unwrap_or((&text, "0"));
    if style == Style::Long {
        return short_real(out, number, digits, exponent);
    }
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    write!(out, "{digits}E{sign}{exponent:0>2}")
}

/// Prints a real with these digits as short as they can be: as C's `%G`, but never so that it looks like an integer.
fn short_real<W: Write>(out: &mut W, number: f64, digits: &str, exponent: &str) -> Result {
    let (sign, power) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    let places = digits.bytes().filter(u8::is_ascii_digit).count();
    let power = power.parse::<usize>().unwrap_or(0);
    let plain = if sign == '-' { power <= 4 } else { power < places };
    if !plain {
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return write!(out, "{digits}E{sign}{power:0>2}");
    }
    let decimals = if sign == '-' { places - 1 + power } else { places - 1 - power };
    let text = format!("{number:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    write!(out, "{text}{}", if text.contains('.') { "" } else { ".0" })
}

/// Prints a string literal in the long form, which has no way to write an end of line.
fn long_string<W: Write>(out: &mut W, text: &str) -> Result {
    let text = text.replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r");
    write!(out, "\"{text}\"")
}

/// Whether the text of a node starts with a digit, or with a point and a digit.
fn starts_with_digit(program: &Program, mut id: Id) -> bool {
    loop {
        id = match program.node(id) {
            Some(Node::Literal(Value::Int(number))) => return *number >= 0,
            Some(Node::Literal(Value::Real(number))) => {
                return number.is_finite() && number.is_sign_positive();
            }
            Some(Node::Select(select)) => select.base,
            Some(Node::Index(base, _) | Node::Elvis(base, _)) => *base,
            _ => return false,
        }
    }
}

fn escaped<W: Write>(out: &mut W, text: &str, quote: char) -> Result {
    out.write_char(quote)?;
    for byte in text.bytes() {
        match byte {
            7 => out.write_str("\\a")?,
            8 => out.write_str("\\b")?,
            9 => out.write_str("\\t")?,
            10 => out.write_str("\\n")?,
            11 => out.write_str("\\v")?,
            12 => out.write_str("\\f")?,
            13 => out.write_str("\\r")?,
            b'\\' => out.write_str("\\\\")?,
            _ if char::from(byte) == quote => write!(out, "\\{quote}")?,
            // There is no escape for 0; the byte may stand for itself.
            0 | b' '..=b'~' => out.write_char(char::from(byte))?,
            _ => write!(out, "\\{byte:03o}")?,
        }
    }
    out.write_char(quote)
}

/// Prints a name, in quotes if it would not be read as a name.
pub(crate) fn identifier<W: Write>(out: &mut W, name: &str) -> Result {
    if name.eq_ignore_ascii_case("parent") { escaped(out, name, '\'') } else { member(out, name) }
}

/// Prints the name of a function, or of an attribute after a dot. HTCondor prints no quotes there.
fn selected<W: Write>(out: &mut W, name: &str, style: Style) -> Result {
    if style.reads_back() { member(out, name) } else { out.write_str(name) }
}

/// Prints a name, in quotes if it would not be read as a name. `parent` is an ordinary name here.
fn member<W: Write>(out: &mut W, name: &str) -> Result {
    const RESERVED: [&str; 6] = ["true", "false", "undefined", "error", "is", "isnt"];
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name));
    if plain { out.write_str(name) } else { escaped(out, name, '\'') }
}

fn unary(op: Unary) -> &'static str {
    match op {
        Unary::Minus => " -",
        Unary::Plus => " +",
        Unary::Not => " !",
        Unary::Complement => " ~",
    }
}

fn binary(op: Binary, style: Style) -> &'static str {
    match op {
        Binary::Is if style == Style::Long => "=?=",
        Binary::Isnt if style == Style::Long => "=!=",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Modulus => "%",
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        Binary::ShiftRightUnsigned => ">>>",
        Binary::Less => "<",
        Binary::LessOrEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterOrEqual => ">=",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Is => "is",
        Binary::Isnt => "isnt",
        Binary::BitAnd => "&",
        Binary::BitXor => "^",
        Binary::BitOr => "|",
    }
}
