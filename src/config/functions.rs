//! `$INT()` and the other functions, evaluated when a text is expanded.
//!
//! Arguments end at the first closing parenthesis. HTCondor prints a complaint about arguments that it cannot use, and
//! goes on; here they are an error.

use super::error::{ExpandError, ExpandFault};
use super::expand::{Call, Expander};
use super::format::{self, Format};
use super::paths;
use super::scan::Macro;
use super::text::Text;
use super::value::{integer_by, real_by};
use classad::Value;

type Answer = Result<Text, ExpandError>;

/// The value of a function call.
pub(super) fn call(expander: &mut Expander, call: &Call) -> Answer {
    match call.kind {
        Macro::Int => int(expander, call),
        Macro::Real => real(expander, call),
        Macro::Str => string(expander, call),
        Macro::Eval => eval(expander, call),
        Macro::Substr => substr(expander, call),
        Macro::Choice => choice(expander, call),
        Macro::RandomChoice => random_choice(expander, call),
        Macro::RandomInteger => random_integer(expander, call),
        Macro::Basename | Macro::Dirname | Macro::Filename => path(expander, call),
        // References are no functions; the caller replaces them.
        Macro::Name | Macro::Env => Ok(Text::default()),
    }
}

fn name_of(kind: Macro) -> &'static str {
    match kind {
        Macro::Int => "INT",
        Macro::Real => "REAL",
        Macro::Str => "STRING",
        Macro::Eval => "EVAL",
        Macro::Substr => "SUBSTR",
        Macro::Choice => "CHOICE",
        Macro::RandomChoice => "RANDOM_CHOICE",
        Macro::RandomInteger => "RANDOM_INTEGER",
        Macro::Basename => "BASENAME",
        Macro::Dirname => "DIRNAME",
        Macro::Filename => "F",
        Macro::Env => "ENV",
        Macro::Name => "",
    }
}

fn fail<T>(expander: &Expander, call: &Call, message: impl Into<String>) -> Result<T, ExpandError> {
    let fault = ExpandFault::Function { function: name_of(call.kind), message: message.into() };
    Err(expander.error(call.place, fault))
}

/// The text up to the first comma, and the text after the comma if there is one.
fn split(text: &Text) -> (Text, Option<Text>) {
    match text.bytes().iter().position(|byte| *byte == b',') {
        Some(comma) => (text.slice(0, comma), Some(text.slice(comma + 1, text.len()))),
        None => (text.clone(), None),
    }
}

/// The items between commas, trimmed.
fn items(text: &Text) -> Vec<Text> {
    let mut items = Vec::new();
    let mut rest = Some(text.clone());
    while let Some(text) = rest {
        let (item, more) = split(&text);
        items.push(item.trimmed());
        rest = more;
    }
    items
}

/// The first argument, expanded, and the format that follows it.
fn formatted(expander: &mut Expander, call: &Call) -> Result<(Text, Option<Format>), ExpandError> {
    let (argument, format) = split(&call.name);
    let format = match format {
        None => None,
        Some(text) => match Format::parse(&text.as_str()) {
            Some(format) if format.fits(call.kind) => Some(format),
            _ => return fail(expander, call, format!("'{}' is no format for it", text.as_str())),
        },
    };
    Ok((expander.argument(&argument, call.place)?, format))
}

fn int(expander: &mut Expander, call: &Call) -> Answer {
    let (argument, format) = formatted(expander, call)?;
    let Some(number) = integer_by(&argument.as_str(), |text| expander.evaluate_alone(text)) else {
        return fail(expander, call, format!("'{}' is no integer", argument.as_str()));
    };
    let text = format.map_or_else(|| number.to_string(), |format| format.integer(number));
    Ok(Text::at(&text, call.place))
}

fn real(expander: &mut Expander, call: &Call) -> Answer {
    let (argument, format) = formatted(expander, call)?;
    let Some(number) = real_by(&argument.as_str(), |text| expander.evaluate_alone(text)) else {
        return fail(expander, call, format!("'{}' is no number", argument.as_str()));
    };
    let Some(format) = format else { return Ok(Text::at(&format::shortest(number), call.place)) };
    let mut text = format.real(number);
    if !text.contains('.') {
        // HTCondor writes a real so that the text does not look like an integer.
        text.push_str(".0");
    }
    Ok(Text::at(&text, call.place))
}

fn string(expander: &mut Expander, call: &Call) -> Answer {
    let (argument, format) = formatted(expander, call)?;
    let text = match expander.evaluate_alone(&argument.as_str()) {
        Some(Value::Str(text)) => Text::at(&text, call.place),
        _ => argument,
    };
    Ok(match format {
        None => text,
        Some(format) => Text::at(&format.string(&text.as_str()), call.place),
    })
}

fn eval(expander: &mut Expander, call: &Call) -> Answer {
    let name = call.name.as_str().to_ascii_uppercase();
    let unexpanded = expander.value_of(&name, call.place).unwrap_or_else(|| call.name.clone());
    let argument = expander.argument(&call.name, call.place)?;
    Ok(match expander.evaluate(&argument.as_str()) {
        Some(Value::Str(text)) => Text::at(&text, call.place),
        Some(value) => Text::at(&value.to_string(), call.place),
        None if unexpanded.bytes().contains(&b'$') => argument,
        None => Text::default(),
    })
}

/// The value of an argument as a number of at most 32 bits. The argument is a number, or a name that stands for one.
fn index(expander: &mut Expander, call: &Call, argument: &Text, what: &str) -> Result<i64, ExpandError> {
    let text = expander.argument(argument, call.place)?;
    match integer_by(&text.as_str(), |text| expander.evaluate_alone(text)) {
        Some(number) if i32::try_from(number).is_ok() => Ok(number),
        _ => fail(expander, call, format!("'{}' is no {what}", text.as_str())),
    }
}

fn substr(expander: &mut Expander, call: &Call) -> Answer {
    let (name, Some(rest)) = split(&call.name) else {
        return fail(expander, call, "expected a name and a start");
    };
    let (start, length) = split(&rest);
    let start = index(expander, call, &start, "start")?;
    let length = match length {
        Some(length) => index(expander, call, &length, "length")?,
        None => i64::from(i32::MAX),
    };
    if expander.value_of(&name.as_str(), call.place).is_none() {
        return Ok(Text::default());
    }
    let text = expander.argument(&name, call.place)?;
    let clamp = |number: i64, limit: usize| usize::try_from(number).map_or(0, |number| number.min(limit));
    // A negative number counts from the end.
    let from_end = |number: i64, len: usize| match i64::try_from(len) {
        Ok(len) if number < 0 => len + number,
        _ => number,
    };
    let start = clamp(from_end(start, text.len()), text.len());
    let left = text.len() - start;
    Ok(text.slice(start, start + clamp(from_end(length, left), left)))
}

fn choice(expander: &mut Expander, call: &Call) -> Answer {
    let mut items = items(&call.name);
    let which = items.remove(0);
    let which = index(expander, call, &which, "index")?;
    match items.as_slice() {
        [] => return fail(expander, call, "expected an index and a list"),
        [list] => {
            let list = list.clone();
            if list.is_empty() || expander.value_of(&list.as_str(), call.place).is_none() {
                return fail(expander, call, format!("there is no list '{}'", list.as_str()));
            }
            items = self::items(&expander.argument(&list, call.place)?);
        }
        _ => {}
    }
    match usize::try_from(which).ok().and_then(|which| items.get(which)) {
        Some(item) => Ok(item.clone()),
        None => fail(expander, call, format!("{which} is outside the list of {}", items.len())),
    }
}

fn random_choice(expander: &mut Expander, call: &Call) -> Answer {
    let mut items: Vec<Text> = items(&call.name).into_iter().filter(|item| !item.is_empty()).collect();
    if let [only] = items.as_slice() {
        let only = only.clone();
        if expander.value_of(&only.as_str(), call.place).is_some() {
            let list = expander.argument(&only, call.place)?;
            items = self::items(&list).into_iter().filter(|item| !item.is_empty()).collect();
        }
    }
    if items.is_empty() {
        return fail(expander, call, "there is nothing to choose from");
    }
    let which = expander.random(items.len() as u64, "$RANDOM_CHOICE()", call.place)?;
    Ok(usize::try_from(which).ok().and_then(|which| items.get(which)).cloned().unwrap_or_default())
}

fn random_integer(expander: &mut Expander, call: &Call) -> Answer {
    let items: Vec<Text> = items(&call.name).into_iter().filter(|item| !item.is_empty()).collect();
    let number = |at: usize| items.get(at).and_then(|item| format::leading_integer(&item.as_str()));
    let Some(low) = number(0) else { return fail(expander, call, "expected the least number") };
    let Some(high) = number(1) else { return fail(expander, call, "expected the greatest number") };
    let step = if items.len() > 2 { number(2) } else { Some(1) };
    let Some(step) = step.and_then(|step| u64::try_from(step).ok()).filter(|step| *step > 0) else {
        return fail(expander, call, "the step must be at least 1");
    };
    if low > high {
        return fail(expander, call, format!("{low} is more than {high}"));
    }
    let count = high.abs_diff(low) / step + 1;
    let which = expander.random(count, "$RANDOM_INTEGER()", call.place)?;
    let number = low.wrapping_add_unsigned(which.wrapping_mul(step));
    Ok(Text::at(&number.to_string(), call.place))
}

fn path(expander: &mut Expander, call: &Call) -> Answer {
    let (argument, suffix) = match call.kind {
        Macro::Basename => split(&call.name),
        _ => (call.name.clone(), None),
    };
    let parts = paths::Parts::of(call.kind, call.word());
    let path = expander.argument(&argument, call.place)?;
    let mut text = parts.of_path(&path.as_str(), expander.names.directory());
    if let Some(suffix) = suffix {
        let suffix = suffix.trimmed();
        // As in HTCondor, `.GZ` is the suffix of `a.gz`, too.
        let suffix = suffix.as_str();
        let cut = text.len().checked_sub(suffix.len()).and_then(|at| text.split_at_checked(at));
        if let Some((bare, _)) = cut.filter(|(_, end)| end.eq_ignore_ascii_case(&suffix)) {
            text = bare.to_owned();
        }
    }
    Ok(Text::at(&text, call.place))
}
