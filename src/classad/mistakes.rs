//! Parts of an expression that are `error`, or undefined, in every evaluation, whatever the ads say.

use std::fmt;

use crate::expr::{Binary, Call, Expr, Id, Node};
use crate::functions::{self, Pattern};

/// A part of an expression that is `error`, or undefined, in every evaluation. [`Expr::mistakes`] finds them. The text
/// of a mistake continues a sentence that begins with the expression.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mistake {
    /// There is no function of this name.
    Function {
        /// The name, as written.
        name: String,
    },
    /// The function takes another number of arguments.
    Arguments {
        /// The function's name, as written.
        name: String,
        /// How many arguments the call has.
        given: usize,
    },
    /// The text is no regular expression, or needs what regular expressions lack here: look-around or back references.
    Pattern {
        /// The function's name, as written.
        name: String,
        /// The text.
        pattern: String,
    },
    /// The comparison has the literal `undefined` on one side, and so is never true nor false.
    Undefined {
        /// The operator, as written: `==` or `!=`.
        operator: &'static str,
        /// The operator that compares with `undefined`: `=?=` or `=!=`.
        instead: &'static str,
    },
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function { name } => write!(f, "calls {name}(), which is no function: the call is error"),
            Self::Arguments { name, given } => {
                let s = if *given == 1 { "" } else { "s" };
                write!(
                    f,
                    "calls {name}() with {given} argument{s}, which {name}() does not take: the call is error"
                )
            }
            Self::Pattern { name, pattern } => write!(
                f,
                "calls {name}() with the pattern \"{pattern}\", which is no regular expression, or needs look-around or back \
                 references: the call is error"
            ),
            Self::Undefined { operator, .. } => {
                write!(f, "compares with undefined by {operator}, which is never true nor false")
            }
        }
    }
}

/// The functions that take a pattern: the name, and the places of the pattern and of its options among the arguments.
const PATTERNS: [(&str, usize, usize); 6] = [
    ("regexp", 0, 2),
    ("regexpMember", 0, 2),
    ("regexps", 0, 3),
    ("replace", 0, 3),
    ("replaceAll", 0, 3),
    ("stringList_regexpMember", 0, 3),
];

impl Expr {
    /// The parts that are `error`, or undefined, in every evaluation, in the order of the expression's parts, those in nested ads
    /// included.
    ///
    /// ```
    /// let expr = classad::Expr::parse("isStudent(Owner) || regexp(\"(\", Owner)").unwrap();
    /// let mistakes: Vec<String> = expr.mistakes().iter().map(ToString::to_string).collect();
    /// assert_eq!(mistakes.len(), 2);
    /// assert_eq!(mistakes[0], "calls isStudent(), which is no function: the call is error");
    /// ```
    pub fn mistakes(&self) -> Vec<Mistake> {
        let mut found = Vec::new();
        self.collect_mistakes(&mut found);
        found
    }

    fn collect_mistakes(&self, found: &mut Vec<Mistake>) {
        for node in &self.program().nodes {
            match node {
                Node::Call(call) => found.extend(self.mistake(call)),
                Node::Binary(Binary::Equal, a, b) if self.is_undefined(*a) || self.is_undefined(*b) => {
                    found.push(Mistake::Undefined { operator: "==", instead: "=?=" });
                }
                Node::Binary(Binary::NotEqual, a, b) if self.is_undefined(*a) || self.is_undefined(*b) => {
                    found.push(Mistake::Undefined { operator: "!=", instead: "=!=" });
                }
                Node::Ad(ad) => ad.iter().for_each(|(_, inner)| inner.collect_mistakes(found)),
                _ => {}
            }
        }
    }

    fn mistake(&self, call: &Call) -> Option<Mistake> {
        let name = call.name.as_str().to_owned();
        let args = self.program().kids(call.args);
        let Some(function) = call.function else { return Some(Mistake::Function { name }) };
        if !function.takes(args.len()) {
            return Some(Mistake::Arguments { name, given: args.len() });
        }
        let (_, pattern, options) =
            PATTERNS.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(&name))?;
        let text = |place: usize| args.get(place).and_then(|id| self.text_at(*id));
        let (pattern, options) = (text(*pattern)?, text(*options).unwrap_or_default());
        let is_pattern = Pattern::with_options(pattern, options).is_some();
        (!is_pattern).then(|| Mistake::Pattern { name, pattern: pattern.to_owned() })
    }

    /// The names that stand alone on one side of a comparison for equality, each with the name of the attribute on the other side,
    /// which may have `MY.` or `TARGET.` before it.
    ///
    /// ```
    /// let expr = classad::Expr::parse("TARGET.Machine == node7 || Owner =!= \"bob\"").unwrap();
    /// let compared: Vec<(&str, &str)> = expr.compared_names().collect();
    /// assert_eq!(compared, [("Machine", "node7")]);
    /// ```
    pub fn compared_names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.compared().filter_map(|(a, b)| Some((self.attribute_at(a)?, self.name_at(b)?)))
    }

    /// The strings on one side of a comparison for equality, each with the name of the attribute on the other side, which may have `MY.`
    /// or `TARGET.` before it.
    ///
    /// ```
    /// let expr = classad::Expr::parse("TARGET.Machine == node7 || \"bob\" =!= Owner").unwrap();
    /// let compared: Vec<(&str, &str)> = expr.compared_texts().collect();
    /// assert_eq!(compared, [("Owner", "bob")]);
    /// ```
    pub fn compared_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.compared().filter_map(|(a, b)| Some((self.attribute_at(a)?, self.text_at(b)?)))
    }

    /// The sides of comparisons for equality, each with the other side.
    fn compared(&self) -> impl Iterator<Item = (Id, Id)> {
        let is_of_equality = |operator: &Binary| {
            matches!(operator, Binary::Equal | Binary::NotEqual | Binary::Is | Binary::Isnt)
        };
        let comparisons = self.program().nodes.iter().filter_map(move |node| match node {
            Node::Binary(operator, a, b) if is_of_equality(operator) => Some([(*a, *b), (*b, *a)]),
            _ => None,
        });
        comparisons.flatten()
    }

    /// The name that a part of the expression is, if nothing says in which ad it is looked up.
    fn name_at(&self, id: Id) -> Option<&str> {
        match self.program().node(self.program().bare(id))? {
            Node::Attr(name) => Some(name.as_str()),
            _ => None,
        }
    }

    /// The attribute that a part of the expression is: a bare name, or one in the ads of the match.
    fn attribute_at(&self, id: Id) -> Option<&str> {
        match self.program().node(self.program().bare(id))? {
            Node::Attr(name) => Some(name.as_str()),
            Node::Select(select) => select.scope.map(|_| select.name.as_str()),
            _ => None,
        }
    }

    fn is_undefined(&self, id: Id) -> bool {
        let node = self.program().node(self.program().bare(id));
        matches!(node, Some(Node::Literal(value)) if value.is_undefined())
    }

    /// The string that a part of the expression is, if that part is a literal.
    fn text_at(&self, id: Id) -> Option<&str> {
        match self.program().node(self.program().bare(id))? {
            Node::Literal(value) => value.as_str(),
            _ => None,
        }
    }
}

/// The names of all functions, in lower case.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    functions::names()
}

/// The texts in single quotes that stand alone in an expression's text: ClassAds take them for names of attributes, and people for
/// strings. A quoted name behind a point, and one that an ad within the expression defines, can be nothing else than a name.
///
/// ```
/// let text = "Owner == 'alice' && Note != \"isn't\" && NodeLabels.'kubernetes.io/arch' == \"amd64\"";
/// let quoted: Vec<&str> = classad::quoted_names(text).collect();
/// assert_eq!(quoted, ["alice"]);
/// ```
pub fn quoted_names(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (before, after) = rest.split_at_checked(rest.find(['"', '\''])?)?;
            let quote = after.chars().next()?;
            let inner = after.get(1..)?;
            let end = closing(inner, quote)?;
            let (quoted, behind) = inner.split_at_checked(end)?;
            rest = behind.get(1..)?;
            let is_selected = before.trim_end().ends_with('.');
            if quote == '\'' && !is_selected && !is_definition(rest) {
                return Some(quoted);
            }
        }
    })
}

/// Whether the text behind a name gives the name a value: a `=` that begins no operator of comparison.
fn is_definition(behind: &str) -> bool {
    behind.trim_start().strip_prefix('=').is_some_and(|value| !value.starts_with(['=', '?', '!']))
}

/// The place of the quote that ends a text; a backslash goes before a quote that does not.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(place, c)| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_always_error_or_undefined_are_found() {
        for (text, expected) in [
            ("regexp(\"^slot\", Name) && size(Owner) > 2", vec![]),
            ("foo(1)", vec!["calls foo(), which is no function: the call is error"]),
            (
                "[a = Foo(bar())].a",
                vec![
                    "calls Foo(), which is no function: the call is error",
                    "calls bar(), which is no function: the call is error",
                ],
            ),
            (
                "size(1, 2)",
                vec!["calls size() with 2 arguments, which size() does not take: the call is error"],
            ),
            (
                "toUpper()",
                vec!["calls toUpper() with 0 arguments, which toUpper() does not take: the call is error"],
            ),
            (
                "stringList_regexpMember(\"*\", Groups)",
                vec![
                    "calls stringList_regexpMember() with the pattern \"*\", which is no regular expression, or needs look-around or back \
                 references: the call is error",
                ],
            ),
            (
                "regexp(\"(?=a)\", Owner, \"i\")",
                vec![
                    "calls regexp() with the pattern \"(?=a)\", which is no regular expression, or needs look-around or back references: the \
                 call is error",
                ],
            ),
            ("x =?= undefined || undefined =!= (y) || undefined < 3", vec![]),
            ("x == undefined", vec!["compares with undefined by ==, which is never true nor false"]),
            (
                "a || (UNDEFINED) != b && [c = d == undefined].c",
                vec![
                    "compares with undefined by !=, which is never true nor false",
                    "compares with undefined by ==, which is never true nor false",
                ],
            ),
            ("regexp(Pattern, Owner) && replaceAll(\"a+\", Owner, \"b\")", vec![]),
        ] {
            let mut found: Vec<String> =
                Expr::parse(text).unwrap().mistakes().iter().map(ToString::to_string).collect();
            found.sort();
            let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
            expected.sort();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn names_that_are_compared_are_found() {
        for (text, expected) in [
            ("Owner == bob", vec![("Owner", "bob"), ("bob", "Owner")]),
            ("(TARGET.Machine) =!= (node7)", vec![("Machine", "node7")]),
            ("node7 is MY.Machine && Labels.zone == a", vec![("Machine", "node7")]),
            ("Owner == \"bob\" || Cpus >= n", vec![]),
            ("Owner == MY.Friend", vec![("Friend", "Owner")]),
        ] {
            let expr = Expr::parse(text).unwrap();
            assert_eq!(expr.compared_names().collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn each_function_with_a_pattern_is_one() {
        for (name, _, _) in PATTERNS {
            assert!(functions::find(name).is_some(), "{name}");
        }
        assert!(function_names().any(|name| name == "regexp"));
    }

    #[test]
    fn names_in_single_quotes_are_found() {
        for (text, expected) in [
            ("Owner == 'alice'", vec!["alice"]),
            ("'a b' + 'c\\'d'", vec!["a b", "c\\'d"]),
            ("\"it's\" == x", vec![]),
            ("\"a\\\"'b'\" == 'c'", vec!["c"]),
            ("NodeLabels.'a/b' == 'c' && TARGET . 'd'", vec!["c"]),
            ("\"a.\" == 'b' && 'c' =?= 'd' && 'e' =!= x", vec!["b", "c", "d", "e"]),
            ("[ 'a/b' = 'c' ].'a/b'", vec!["c"]),
            ("'open", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(quoted_names(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
