//! The templates after `use CATEGORY :` with their arguments, and the arguments in a template's text.

use super::scan::{self, Wanted};
use super::text::{Place, Text, is_space};

/// The deepest parentheses within parentheses.
const MAX_DEPTH: usize = 25;
/// The most arguments that are put into one template.
const MAX_REPLACED: usize = 10_000;
/// The longest text of a template with its arguments, in bytes.
const MAX_LENGTH: usize = 1 << 20;

/// One use of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub name: String,
    pub arguments: String,
    pub place: Place,
}

/// The templates that a list names. Names stand between commas or white space, and may have arguments in parentheses.
pub(super) fn uses(list: &Text) -> Result<Vec<Use>, &'static str> {
    let mut uses = Vec::new();
    let mut at = 0;
    loop {
        while list.byte(at).is_some_and(|byte| is_space(byte) || byte == b',') {
            at += 1;
        }
        let start = at;
        while list.byte(at).is_some_and(|byte| !is_space(byte) && byte != b',' && byte != b'(') {
            at += 1;
        }
        if at == start {
            // A parenthesis without a name ends the list.
            return Ok(uses);
        }
        let name = list.slice(start, at).as_str().into_owned();
        while list.byte(at).is_some_and(is_space) {
            at += 1;
        }
        let mut arguments = String::new();
        if list.byte(at) == Some(b'(') {
            let close = closing(list.bytes(), at).ok_or("the parenthesis is not closed")?;
            arguments = list.slice(at + 1, close).as_str().into_owned();
            at = close + 1;
        }
        uses.push(Use { name, arguments, place: list.place(start).unwrap_or_default() });
    }
}

/// Where the parenthesis that opens at `at` closes. Brackets within it must close, too.
fn closing(bytes: &[u8], at: usize) -> Option<usize> {
    let mut open = Vec::new();
    for (at, byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'(' => open.push(b')'),
            b'[' => open.push(b']'),
            _ if open.last() == Some(byte) => {
                open.pop();
            }
            _ => {}
        }
        if open.is_empty() {
            return Some(at);
        }
        if open.len() > MAX_DEPTH {
            return None;
        }
    }
    None
}

/// The text of a template with its arguments put in.
pub(super) fn replace(template: &str, arguments: &str) -> Result<String, &'static str> {
    let mut text = template.to_owned();
    let mut work = 10_000_000;
    for _ in 0..MAX_REPLACED {
        let Some(found) = scan::find(text.as_bytes(), 0, Wanted::Arguments, &mut work) else {
            return if work == 0 { Err("its arguments are too long") } else { Ok(text) };
        };
        let body = text.get(found.body..found.close).unwrap_or_default();
        let value = Argument::of(body).value(arguments);
        text.replace_range(found.dollar..=found.close, &value);
        if text.len() > MAX_LENGTH {
            return Err("its arguments are too long");
        }
    }
    Err("an argument refers to itself")
}

/// One `$(...)` of a template that stands for an argument.
struct Argument<'a> {
    index: usize,
    /// `?`: the value is 1 if the argument is given, else 0.
    given: bool,
    /// `+` or `#`: the value is this argument and all that follow; for argument 0, the number of arguments.
    rest: bool,
    default: Option<&'a str>,
}

impl<'a> Argument<'a> {
    fn of(body: &'a str) -> Self {
        let digits = body.bytes().take_while(u8::is_ascii_digit).count();
        let (index, rest) = body.split_at(digits);
        let sign = rest.bytes().next();
        let (given, all) = (sign == Some(b'?'), matches!(sign, Some(b'+' | b'#')));
        let rest = if given || all { rest.get(1..).unwrap_or_default() } else { rest };
        let default = rest.strip_prefix(':');
        Self { index: index.parse().unwrap_or(usize::MAX), given, rest: all, default }
    }

    fn value(&self, arguments: &str) -> String {
        let items = || arguments.split(',').map(str::trim_ascii).filter(|item| !item.is_empty());
        let value = match (self.index, self.rest) {
            (0, true) => items().count().to_string(),
            (0, false) => arguments.to_owned(),
            (index, true) => {
                let rest = arguments.splitn(index, ',').nth(index - 1).unwrap_or_default();
                if rest.is_empty() { self.default.unwrap_or_default().to_owned() } else { rest.to_owned() }
            }
            (index, false) => items().nth(index - 1).or(self.default).unwrap_or_default().to_owned(),
        };
        let value = value.trim_ascii();
        if self.given {
            return if value.is_empty() { "0" } else { "1" }.to_owned();
        }
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, expected: &[(&str, &str)]) {
        let found = uses(&Text::at(list, Place::DEFAULT)).unwrap();
        let found: Vec<(&str, &str)> =
            found.iter().map(|one| (one.name.as_str(), one.arguments.as_str())).collect();
        assert_eq!(found, expected, "{list}");
    }

    #[test]
    fn names_and_arguments() {
        check("a, b c", &[("a", ""), ("b", ""), ("c", "")]);
        check(" ,, a (x, (y)), b([)])", &[("a", "x, (y)"), ("b", "[)]")]);
        check("a()b", &[("a", ""), ("b", "")]);
        check("", &[]);
        assert!(uses(&Text::at("a(b", Place::DEFAULT)).is_err());
    }

    #[test]
    fn arguments_in_a_text() {
        for (template, expected) in [
            ("$(0)|$(1)|$(2)|$(3)|$(4)", "a, b c,d|a|b c|d|"),
            ("$(2+)|$(3+)|$(4+:x)", "b c,d|d|x"),
            ("$(1?)$(4?)$(0#)", "103"),
            ("$(4:y z)|$(4:$(1))", "y z|a"),
            ("$(A) $INT(1)", "$(A) $INT(1)"),
        ] {
            assert_eq!(replace(template, "a, b c,d").as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn arguments_that_refer_to_themselves_are_refused() {
        assert!(replace("A = $(1)", "$(1)").is_err());
        assert!(replace("A = $(1)", "$(1)$(1)").is_err());
    }
}
