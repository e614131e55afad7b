//! One conversion of a format: C's, and HTCondor's `%v`, `%V`, `%r`, `%T` and `%Y`.

use std::collections::BTreeSet;

use classad::{Ad, Env, Expr, Name, Value};
use condor_config::Format;

use crate::screen::{Screen, span};

/// The kind of value that a conversion prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `%d`, `%x`, `%c` and their like: a number, without its fraction.
    Int,
    /// `%f`, `%g` and their like: a number.
    Real,
    /// `%s`: a string; an attribute that is none prints as its expression.
    Text,
    /// `%v`: any value; `%V`: the same with quotes around strings.
    Value { quoted: bool },
    /// `%r`: the expression itself.
    Raw,
    /// `%T`: a number of seconds as a span.
    Span,
    /// `%Y`: a number of seconds since 1970 as a date.
    Date,
}

/// A format that prints one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conversion {
    kind: Kind,
    format: Format,
}

/// A text with its backslash sequences replaced, as the real tools replace those of a format.
pub(crate) fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\\' {
            plain.push(char);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('a') => plain.push('\u{7}'),
            Some('b') => plain.push('\u{8}'),
            Some('f') => plain.push('\u{c}'),
            Some('v') => plain.push('\u{b}'),
            Some(digit @ '0'..='7') => {
                let mut code = digit.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = chars.peek().and_then(|next| next.to_digit(8)) else { break };
                    chars.next();
                    code = code * 8 + digit;
                }
                plain.push(char::from(u8::try_from(code & 0xff).unwrap_or(b'?')));
            }
            Some(other) => plain.push(other),
            None => plain.push('\\'),
        }
    }
    plain
}

impl Conversion {
    /// Reads a format, whose backslash sequences have been replaced. `None`: the format has no conversion.
    ///
    /// # Errors
    /// When the format has more than one conversion, or one that the tools do not know.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, String> {
        let Some((at, letter)) = first_conversion(text) else { return Ok(None) };
        let kind = match letter {
            'd' | 'i' | 'o' | 'u' | 'x' | 'X' | 'c' => Kind::Int,
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' => Kind::Real,
            's' => Kind::Text,
            'v' => Kind::Value { quoted: false },
            'V' => Kind::Value { quoted: true },
            'r' | 'R' => Kind::Raw,
            'T' => Kind::Span,
            'Y' => Kind::Date,
            _ => return Err(format!("'{text}' has a conversion that is not known: %{letter}")),
        };
        let is_c = matches!(kind, Kind::Int | Kind::Real | Kind::Text);
        let mut text = text.to_owned();
        if !is_c {
            text.replace_range(at..at + letter.len_utf8(), "s");
        }
        let format = Format::parse(&text)
            .ok_or_else(|| format!("'{text}' must have exactly one conversion, such as %s, %d or %v"))?;
        Ok(Some(Self { kind, format }))
    }

    /// The conversion of any value, as `-autoformat` uses it.
    pub(crate) fn value() -> Self {
        Self { kind: Kind::Value { quoted: false }, format: Format::text() }
    }

    /// The width that the format asks for.
    pub(crate) fn width(&self) -> usize {
        self.format.width()
    }

    /// Whether the format puts spaces behind the value, not before it.
    pub(crate) fn is_left(&self) -> bool {
        self.format.is_left()
    }

    /// Whether a text that is shorter than its column is moved to the right, whatever the column does.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Int | Kind::Real | Kind::Span | Kind::Date)
    }

    /// The text of an attribute or an expression in an ad, and how wide the column is made for the text before the first row is
    /// printed. `None`: the value does not fit the conversion.
    pub(crate) fn text(
        &self,
        source: &Source,
        ad: &Ad,
        screen: &Screen,
        env: &Env,
    ) -> Option<(String, usize)> {
        let (expr, is_attribute) = source.find(ad);
        match self.kind {
            Kind::Raw => {
                // A name that the ad lacks has no expression.
                let text = match expr {
                    Some(expr) => expr.to_old(),
                    None => "undefined".to_owned(),
                };
                let len = text.len();
                Some((self.format.string(&text), len))
            }
            Kind::Text => match (expr?.eval(Some(ad), None, env), is_attribute) {
                (Value::Str(text), _) => Some((self.format.string(&text), text.len())),
                (_, true) => {
                    let text = expr?.to_old();
                    let len = text.len();
                    Some((self.format.string(&text), len))
                }
                _ => None,
            },
            kind => {
                let value = expr.map_or(Value::Undefined, |expr| expr.eval(Some(ad), None, env));
                self.value_text(kind, &value, screen)
            }
        }
    }

    fn value_text(&self, kind: Kind, value: &Value, screen: &Screen) -> Option<(String, usize)> {
        let text = match kind {
            Kind::Int => self.format.integer(whole(value)?),
            Kind::Real => self.format.real(value.as_number()?),
            Kind::Span => span(whole(value)?),
            Kind::Date => screen.date(whole(value)?),
            _ => {
                let quoted = kind == Kind::Value { quoted: true };
                let text = match value {
                    Value::Str(text) if !quoted => text.to_string(),
                    other => unparsed(other),
                };
                // Columns are made for numbers and strings. Other values widen a column when their row is printed.
                let known = match value {
                    Value::Str(text) => text.len(),
                    Value::Int(_) | Value::Real(_) => text.len(),
                    _ => 0,
                };
                return Some((self.format.string(&text), known));
            }
        };
        let len = text.len();
        Some((text, len))
    }
}

/// A value as the tools print one: in the long form's syntax, with quotes around strings.
pub(crate) fn unparsed(value: &Value) -> String {
    Expr::literal(value.clone()).to_old()
}

/// A number without its fraction.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    #[allow(clippy::cast_possible_truncation, reason = "the nearest there is")]
    match value {
        Value::Int(number) => Some(*number),
        Value::Real(number) => Some(*number as i64),
        Value::Bool(truth) => Some(i64::from(*truth)),
        _ => None,
    }
}

/// Where the letter of the first conversion is, and the letter.
fn first_conversion(text: &str) -> Option<(usize, char)> {
    let mut chars = text.char_indices();
    loop {
        chars.by_ref().find(|(_, char)| *char == '%')?;
        let is_modifier = |char: char| "#0- +'.*hlLqjzt".contains(char) || char.is_ascii_digit();
        match chars.find(|(_, char)| !is_modifier(*char))? {
            (_, '%') => {}
            found => return Some(found),
        }
    }
}

/// The source of a column's values: an attribute, or else an expression.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    text: Name,
    /// The text as an expression; `None` if the text is a name.
    expr: Option<Expr>,
}

impl Source {
    /// The attribute of a name.
    pub(crate) fn attribute(name: &str) -> Self {
        Self { text: Name::from(name), expr: None }
    }

    /// Reads an attribute's name or an expression.
    ///
    /// # Errors
    /// When the text is neither.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let plain = text.trim();
        let is_name = plain.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && plain.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
        let expr = Expr::parse_old(plain).map_err(|error| format!("'{text}' is no expression: {error}"))?;
        Ok(Self { text: Name::from(plain), expr: (!is_name || expr.as_literal().is_some()).then_some(expr) })
    }

    /// The text that the user wrote.
    pub(crate) fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Adds the names of the attributes that are shown or referred to.
    pub(crate) fn reads(&self, names: &mut BTreeSet<Name>) {
        match &self.expr {
            Some(expr) => {
                let found = expr.references();
                names.extend(found.my.into_iter().chain(found.bare));
            }
            None => {
                names.insert(self.text.clone());
            }
        }
    }

    /// The expression to show, and whether that is an attribute's.
    fn find<'s>(&'s self, ad: &'s Ad) -> (Option<&'s Expr>, bool) {
        if let Some(expr) = &self.expr {
            return (Some(expr), false);
        }
        let found = ad.get_name(&self.text);
        (found, found.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Width;
    use jiff::tz::TimeZone;

    fn print(format: &str, source: &str) -> Option<String> {
        let ad =
            Ad::parse_new("[a = 5; s = \"x\\ty\"; r = 2.5; e = a + 1; l = {1, \"b\"}; b = true]").unwrap();
        let screen = Screen { width: Width::Piped, now: 0, zone: TimeZone::UTC };
        let conversion = Conversion::parse(format).unwrap().unwrap();
        let source = Source::parse(source).unwrap();
        conversion.text(&source, &ad, &screen, &screen.env()).map(|(text, _)| text)
    }

    #[test]
    fn values_are_converted() {
        for (format, source, expected) in [
            ("%d", "a", Some("5")),
            ("%d", "r", Some("2")),
            ("%d", "b", Some("1")),
            ("%d", "s", None),
            ("%5.1f|", "a", Some("  5.0|")),
            ("%s", "s", Some("x\ty")),
            ("%s", "e", Some("a + 1")),
            ("%s", "missing", None),
            ("%s", "a + 1", None),
            ("%v", "e", Some("6")),
            ("%v", "l", Some("{ 1,\"b\" }")),
            ("%V", "s", Some("\"x\ty\"")),
            ("%r", "e", Some("a + 1")),
            ("%r", "missing", Some("undefined")),
            ("[%-4v]", "a", Some("[5   ]")),
            ("%T", "61", Some("  0+00:01:01")),
            ("%Y", "61", Some(" 1/1  00:01")),
            ("%x", "a * 2", Some("a")),
            ("100%% of %d", "a", Some("100% of 5")),
        ] {
            assert_eq!(print(format, source).as_deref(), expected, "{format} {source}");
        }
    }

    #[test]
    fn a_format_has_one_conversion_that_is_known() {
        assert_eq!(Conversion::parse("plain 100%%"), Ok(None));
        assert!(Conversion::parse("%n").unwrap_err().contains("%n"));
        for format in ["%d %d", "%*d", "%d%s"] {
            assert!(Conversion::parse(format).is_err(), "{format}");
        }
        assert!(Source::parse("1 +").is_err());
    }

    #[test]
    fn escapes() {
        assert_eq!(unescaped(r"a\n\t\\b\101\0x\"), "a\n\t\\bA\0x\\");
    }
}
