//! Translates PCRE's patterns for the regex engine.
//!
//! Both read most of a pattern alike. The translation rewrites what PCRE reads differently, and refuses what PCRE
//! refuses and what the engine lacks (look-around, back references, possessive repetitions, `\K`, `\G`, properties).

use std::fmt::Write;
use std::str::Chars;

use crate::syntax::lexer::is_space;

/// The translated pattern. `None`: PCRE refuses the pattern, or the engine cannot match it. With `extended`, white
/// space and comments in the pattern mean nothing.
pub(super) fn translate(pattern: &str, extended: bool) -> Option<String> {
    let translator = Translator {
        parentheses: pattern.matches('(').count(),
        rest: pattern.chars(),
        out: String::with_capacity(pattern.len()),
        extended,
        quoting: false,
        repeatable: false,
    };
    translator.run()
}

struct Translator<'p> {
    /// How many opening parentheses the whole pattern has: at least as many as it has groups.
    parentheses: usize,
    rest: Chars<'p>,
    out: String,
    extended: bool,
    /// Whether we are between `\Q` and `\E`, where all characters stand for themselves.
    quoting: bool,
    /// Whether the last item can be repeated. PCRE refuses a repetition of a repetition or of nothing.
    repeatable: bool,
}

const BLANKS: &str = r"\x20\t\xa0";
const LINE_ENDS: &str = r"\n\x0b\f\r\x85";
const NAMES: [&str; 14] = [
    "alpha", "lower", "upper", "alnum", "ascii", "blank", "cntrl", "digit", "graph", "print", "punct",
    "space", "word", "xdigit",
];

impl<'p> Translator<'p> {
    fn run(mut self) -> Option<String> {
        while let Some(c) = self.rest.next() {
            if self.quotes(c) {
                continue;
            }
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.open()?,
                '*' | '+' | '?' => self.repetition(c, "")?,
                '{' if let Some(inside) = bounds(self.rest.as_str()) => self.repetition('{', inside)?,
                '{' | '}' => self.literal(c),
                '|' | '^' | '$' => self.put(c, false),
                '#' if self.extended => self.comment(),
                c if self.extended && is_space(c) => {}
                c => self.put(c, true),
            }
        }
        Some(self.out)
    }

    fn put(&mut self, c: char, repeatable: bool) {
        self.out.push(c);
        self.repeatable = repeatable;
    }

    fn put_all(&mut self, text: &str) {
        self.out.push_str(text);
        self.repeatable = true;
    }

    /// Writes a character that stands for itself.
    fn literal(&mut self, c: char) {
        match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() && !byte.is_ascii_alphanumeric() => self.byte(byte),
            _ => self.put(c, true),
        }
    }

    fn byte(&mut self, byte: u8) {
        let _ = write!(self.out, "\\x{byte:02x}");
        self.repeatable = true;
    }

    /// Whether the character is between `\Q` and `\E`. If so, it has been written.
    fn quotes(&mut self, c: char) -> bool {
        if self.quoting {
            if c == '\\' && self.skip("E") {
                self.quoting = false;
            } else {
                self.literal(c);
            }
            return true;
        }
        false
    }

    /// Passes a text if it comes next.
    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.as_str().strip_prefix(text);
        if let Some(rest) = rest {
            self.rest = rest.chars();
        }
        rest.is_some()
    }

    /// Passes everything up to a text, and the text, and returns what stood before the text.
    fn skip_to(&mut self, end: &str) -> Option<&'p str> {
        let (before, after) = self.rest.as_str().split_once(end)?;
        self.rest = after.chars();
        Some(before)
    }

    fn comment(&mut self) {
        if self.skip_to("\n").is_none() {
            self.rest = "".chars();
        }
    }

    fn repetition(&mut self, sign: char, inside: &str) -> Option<()> {
        if !std::mem::take(&mut self.repeatable) {
            return None;
        }
        self.out.push(sign);
        if sign == '{' {
            self.out.push_str(inside);
            self.out.push('}');
            self.skip_to("}")?;
        }
        if self.skip("+") {
            return None;
        }
        if self.skip("?") {
            self.out.push('?');
        }
        Some(())
    }

    fn open(&mut self) -> Option<()> {
        if self.skip("?#") {
            return self.skip_to(")").map(drop);
        }
        if self.skip("?'") {
            let name = self.skip_to("'")?;
            let _ = write!(self.out, "(?P<{name}>");
        } else {
            self.out.push('(');
            if self.skip("?") {
                self.out.push('?');
            }
        }
        self.repeatable = false;
        Some(())
    }

    fn escape(&mut self) -> Option<()> {
        let c = self.rest.next()?;
        match c {
            'Q' => self.quoting = true,
            'E' => {}
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'a' | 'f' | 'n' | 'r' | 't' => {
                self.out.push('\\');
                self.put(c, true);
            }
            'b' | 'B' | 'A' | 'z' | 'Z' => {
                self.out.push('\\');
                self.put(if c == 'Z' { 'z' } else { c }, false);
            }
            'h' => self.put_all(&format!("[{BLANKS}]")),
            'H' => self.put_all(&format!("[^{BLANKS}]")),
            'v' => self.put_all(&format!("[{LINE_ENDS}]")),
            'V' => self.put_all(&format!("[^{LINE_ENDS}]")),
            'R' => self.put_all(&format!(r"(?:\r\n|[{LINE_ENDS}])")),
            'X' => self.put_all(r"(?:\r\n|(?s:.))"),
            'C' => self.put_all("(?s:.)"),
            // `\N{name}` is a character by its name.
            'N' if self.rest.as_str().strip_prefix('{').is_some_and(|after| bounds(after).is_none()) => {
                return None;
            }
            'N' => self.put_all(r"[^\n]"),
            '1'..='9' if self.refers_back(c) => return None,
            c => self.coded(c)?,
        }
        Some(())
    }

    /// An escape that stands for one character, in a class or outside.
    fn coded(&mut self, c: char) -> Option<()> {
        match c {
            'e' => self.byte(0x1b),
            'c' => {
                let control =
                    u8::try_from(self.rest.next()?).ok().filter(|byte| (b' '..=b'~').contains(byte))?;
                self.byte(control.to_ascii_uppercase() ^ 0x40);
            }
            'x' if self.skip("{") => {
                let code = self.skip_to("}")?;
                self.byte(u8::from_str_radix(code, 16).ok()?);
            }
            'x' => {
                let code = self.digits(16, 2);
                self.byte(u8::from_str_radix(code, 16).unwrap_or(0));
            }
            'o' if self.skip("{") => {
                let code = self.skip_to("}")?;
                self.byte(u8::from_str_radix(code, 8).ok()?);
            }
            '0'..='7' => {
                let first = c.to_digit(8)?;
                let code = self.digits(8, 2);
                let more = u32::from_str_radix(code, 8).unwrap_or(0);
                let shift = 3 * u32::try_from(code.len()).ok()?;
                self.byte(u8::try_from((first << shift) + more).ok()?);
            }
            c if c.is_ascii_alphanumeric() => return None,
            c => self.literal(c),
        }
        Some(())
    }

    /// Passes up to `most` digits.
    fn digits(&mut self, radix: u32, most: usize) -> &'p str {
        let rest = self.rest.as_str();
        let count = rest.chars().take(most).take_while(|c| c.is_digit(radix)).count();
        let (digits, after) = rest.split_at_checked(count).unwrap_or_default();
        self.rest = after.chars();
        digits
    }

    /// Whether a number after a backslash is a group's: it has one digit, or begins with 8 or 9, or the pattern has at
    /// least so many opening parentheses.
    fn refers_back(&self, first: char) -> bool {
        let digits = self.rest.as_str().chars().take_while(char::is_ascii_digit);
        let number: String = std::iter::once(first).chain(digits).collect();
        number.len() == 1
            || first >= '8'
            || number.parse::<usize>().is_ok_and(|number| number <= self.parentheses)
    }

    /// Translates a class, from after its opening bracket to after its closing one.
    fn class(&mut self) -> Option<()> {
        // POSIX classes may stand only within other classes.
        if posix(self.rest.as_str()).is_some() {
            return None;
        }
        self.out.push('[');
        if self.skip("^") {
            self.out.push('^');
        }
        if self.skip("]") {
            self.out.push_str("\\]");
        } else if self.skip("-") {
            self.out.push_str("\\-");
        }
        loop {
            let c = self.rest.next()?;
            if self.quotes(c) {
                continue;
            }
            match c {
                ']' => break,
                '\\' => self.escape_in_class()?,
                '[' => self.bracket_in_class()?,
                // Two minus signs would be an operator of the engine.
                '-' if self.skip("-") => self.out.push_str("-\\-"),
                '&' | '~' | '#' => self.literal(c),
                c if is_space(c) => self.literal(c),
                c => self.out.push(c),
            }
        }
        self.put(']', true);
        Some(())
    }

    fn escape_in_class(&mut self) -> Option<()> {
        let c = self.rest.next()?;
        match c {
            'Q' => self.quoting = true,
            'E' => {}
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'a' | 'f' | 'n' | 'r' | 't' => {
                self.out.push('\\');
                self.out.push(c);
            }
            'b' => self.byte(8),
            'h' => self.out.push_str(BLANKS),
            'v' => self.out.push_str(LINE_ENDS),
            'H' => self.put_all(&format!("[^{BLANKS}]")),
            'V' => self.put_all(&format!("[^{LINE_ENDS}]")),
            '8' | '9' => self.out.push(c),
            c => self.coded(c)?,
        }
        Some(())
    }

    /// Translates `[:name:]`, or a bracket that stands for itself. PCRE refuses the other POSIX forms.
    fn bracket_in_class(&mut self) -> Option<()> {
        let Some((sign, name)) = posix(self.rest.as_str()) else {
            self.literal('[');
            return Some(());
        };
        if sign != ':' || !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return None;
        }
        self.skip_to(":]");
        let _ = write!(self.out, "[:{name}:]");
        Some(())
    }
}

/// The POSIX class that begins after a bracket: the kind, and the text in `:name:]`, `.name.]` or `=name=]`.
fn posix(rest: &str) -> Option<(char, &str)> {
    let sign = rest.chars().next().filter(|sign| ":.=".contains(*sign))?;
    let (name, after) = rest.get(1..)?.split_once(sign)?;
    (after.starts_with(']') && !name.contains([']', '\\'])).then_some((sign, name))
}

/// The text between the braces of a repetition (`n`, `n,` or `n,m`) whose opening brace was passed.
fn bounds(after: &str) -> Option<&str> {
    // A search for the closing brace alone would read the whole rest at each opening brace.
    let end = after.find(|c: char| !c.is_ascii_digit() && c != ',')?;
    let (inside, _) = after.split_at_checked(end).filter(|(_, rest)| rest.starts_with('}'))?;
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!low.is_empty() && digits(low) && digits(high)).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_digits_up_to_the_brace() {
        for (after, inside) in [
            ("2}", Some("2")),
            ("2,}x", Some("2,")),
            ("2,3}x}", Some("2,3")),
            ("", None),
            ("}", None),
            ("2", None),
            ("2,3", None),
            (",3}", None),
            ("2,3,4}", None),
            ("2, 3}", None),
            ("{2}", None),
        ] {
            assert_eq!(bounds(after), inside, "{after}");
        }
    }
}
