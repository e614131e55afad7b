//! Values of names as text, numbers, booleans, lists and expressions.

use super::amount::amount;
use super::error::{ExpandError, ValueError};
use super::expand::Expander;
use super::format::leading_integer_and_rest;
use super::knobs;
use super::table::{Config, Definition, Found};
use super::text::{Place, Text};
use classad::{Ad, Env, Expr, Value};

/// The price of looking at one byte of a value, in bytes of expanding.
const LOOKING: u64 = 10;

impl Config {
    /// The expanded value of a name, as condor_config_val prints it. `None`: the name is not defined, or its value is
    /// empty.
    ///
    /// The name is looked up with the local name before it (and then with both prefixes), with the subsystem before
    /// it, without prefix, and among the compiled-in defaults.
    pub fn value(&self, name: &str) -> Result<Option<String>, ExpandError> {
        Ok(self.text(name)?.map(|text| text.as_str().into_owned()))
    }

    /// As [`Config::value`], with the place that each byte comes from: see [`Config::position_in`].
    pub fn text(&self, name: &str) -> Result<Option<Text>, ExpandError> {
        self.expand_found(name, self.knob(name))
    }

    /// The expanded value of this definition, even if another definition of the name stands above it. The value may be
    /// empty.
    pub fn value_of(&self, definition: &Definition) -> Result<String, ExpandError> {
        let text = self.expand_found(&definition.name, Some(Found::Defined(definition)))?;
        Ok(text.map(|text| text.as_str().into_owned()).unwrap_or_default())
    }

    /// Expands a text as if it were the value of a name, as `condor_config_val -macro` does.
    pub fn expand(&self, text: &str) -> Result<String, ExpandError> {
        let expanded = Expander::new(self).expand(&Text::at(text, Place::DEFAULT))?;
        Ok(expanded.as_str().into_owned())
    }

    pub(super) fn expand_found(&self, name: &str, found: Option<Found>) -> Result<Option<Text>, ExpandError> {
        let text = match found {
            None => return Ok(None),
            Some(Found::Defined(definition)) => definition.text.clone(),
            Some(Found::Default(text)) => Text::at(text, Place::DEFAULT),
        };
        let text = Expander::new(self).expand_named(name, &text)?;
        // This pays in advance for the caller, which looks at the text and perhaps parses it.
        self.allowance.spend(LOOKING * text.len() as u64);
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// The value as a ClassAd expression. The position of a parse error is the place in the configuration text.
    pub fn expr(&self, name: &str) -> Result<Option<Expr>, ValueError> {
        self.text(name)?.map(|text| self.parse_expr(name, &text)).transpose()
    }

    /// The value as an expression that evaluates to an amount of at least `least`. A knob of the kind [`Amount`](knobs::Kind::Amount)
    /// may have a unit: `2 GB`. An expression without attributes must evaluate to such an amount now.
    pub fn amount(&self, name: &str, least: f64) -> Result<Option<Expr>, ValueError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let literal = match knobs::find(name).map(|knob| knob.kind) {
            Some(knobs::Kind::Amount(base)) => amount(&text.as_str(), base, false).map(|found| found.units),
            _ => None,
        };
        let expr = match literal {
            Some(units) => Expr::literal(units),
            None => self.parse_expr(name, &text)?,
        };
        let is_amount = |value: &Value| value.as_number().is_some_and(|number| number.ceil() >= least);
        if expr.references().is_empty() && !is_amount(&expr.eval(None, None, &Env::at(self.host.now))) {
            return self.typed(name, if least > 0.0 { "positive amount" } else { "amount" }, |_, _| None);
        }
        Ok(Some(expr))
    }

    /// An expanded text as a ClassAd expression; `name` is what an error calls the text.
    pub fn parse_expr(&self, name: &str, text: &Text) -> Result<Expr, ValueError> {
        Expr::parse_old(&text.as_str()).map_err(|error| {
            let place = text.place_at(error.line(), error.column()).unwrap_or_default();
            ValueError::Expression { name: name.to_owned(), position: self.position_of(place), error }
        })
    }

    /// The value as an integer: a literal, or an expression that evaluates to a number, whose fraction is dropped.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, ValueError> {
        self.typed(name, "integer", parse_integer)
    }

    /// The value as a real: a literal, or an expression that evaluates to a number.
    pub fn real(&self, name: &str) -> Result<Option<f64>, ValueError> {
        self.typed(name, "number", parse_real)
    }

    /// The value as a boolean: `true`, `false`, or an expression that evaluates to a boolean or a number.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>, ValueError> {
        self.typed(name, "boolean", parse_boolean)
    }

    /// The value as a list: items between commas and white space. Empty if the name is not defined.
    pub fn list(&self, name: &str) -> Result<Vec<String>, ExpandError> {
        let value = self.value(name)?.unwrap_or_default();
        let items = value.split(|c: char| c == ',' || c.is_ascii_whitespace());
        Ok(items.filter(|item| !item.is_empty()).map(str::to_owned).collect())
    }

    /// Returns the number, which is the value of `name`, if the knob allows it; else an error at the place of the
    /// value.
    pub fn in_range(&self, name: &str, number: f64) -> Result<f64, ValueError> {
        let Some(message) = knobs::find(name).and_then(|knob| knob.out_of_range(name, number)) else {
            return Ok(number);
        };
        let text = self.text(name)?;
        let place = text.and_then(|text| text.place(0)).unwrap_or_default();
        Err(ValueError::Range { position: self.position_of(place), message })
    }

    /// Where a character of an expanded text comes from. Line and column count from 1.
    pub fn position_in(&self, text: &Text, line: usize, column: usize) -> super::Position {
        self.position_of(text.place_at(line, column).unwrap_or_default())
    }

    /// Where a byte of a text comes from. Past the end of the text, this is where its last byte comes from.
    pub fn position_at(&self, text: &Text, offset: usize) -> super::Position {
        self.position_of(text.place(offset).unwrap_or_default())
    }

    /// The word among `words` that the value is, case aside. `wanted` is what the error says the value should be.
    pub fn one_of<'w>(
        &self,
        name: &str,
        wanted: &'static str,
        words: &[&'w str],
    ) -> Result<Option<&'w str>, ValueError> {
        let find = |text: &str| words.iter().copied().find(|word| word.eq_ignore_ascii_case(text));
        self.typed(name, wanted, |text, _| find(text))
    }

    /// The value as `read` reads it. `wanted` is what the error says the value should be.
    fn typed<T>(
        &self,
        name: &str,
        wanted: &'static str,
        read: impl Fn(&str, &Env) -> Option<T>,
    ) -> Result<Option<T>, ValueError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let shown = text.as_str();
        match read(&shown, &Env::at(self.host.now)) {
            Some(value) => Ok(Some(value)),
            None => Err(ValueError::Type {
                name: name.to_owned(),
                position: self.position_of(text.place(0).unwrap_or_default()),
                text: shown.into_owned(),
                wanted,
            }),
        }
    }
}

/// The value of an expression, evaluated in an ad without attributes as HTCondor evaluates a configuration. `None`:
/// the text does not parse.
pub(super) fn evaluate(text: &str, env: &Env) -> Option<Value> {
    Some(Expr::parse_old(text).ok()?.eval(Some(&Ad::new()), None, env))
}

/// The integer in a text, as HTCondor reads it: `1`, or an expression such as `2 * 3.5`.
pub(super) fn parse_integer(text: &str, env: &Env) -> Option<i64> {
    integer_by(text, |text| evaluate(text, env))
}

/// As [`parse_integer`], with an evaluation of one's own.
#[allow(clippy::cast_possible_truncation, reason = "reals lose their fraction")]
pub(super) fn integer_by(text: &str, evaluate: impl FnOnce(&str) -> Option<Value>) -> Option<i64> {
    if let Some((number, rest)) = leading_integer_and_rest(text)
        && rest.trim_ascii().is_empty()
    {
        return Some(number);
    }
    match evaluate(text)? {
        Value::Int(number) => Some(number),
        Value::Bool(truth) => Some(i64::from(truth)),
        // The processor converts a number that does not fit to the least integer.
        Value::Real(number) if number.abs() < 9_223_372_036_854_775_808.0 => Some(number as i64),
        Value::Real(_) => Some(i64::MIN),
        _ => None,
    }
}

/// The real in a text, as HTCondor reads it: `1.5`, or an expression such as `1 / 3.0`.
pub(super) fn parse_real(text: &str, env: &Env) -> Option<f64> {
    real_by(text, |text| evaluate(text, env))
}

/// As [`parse_real`], with an evaluation of one's own.
pub(super) fn real_by(text: &str, evaluate: impl FnOnce(&str) -> Option<Value>) -> Option<f64> {
    let plain = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{B}');
    c_real(plain).or_else(|| evaluate(text)?.as_number())
}

/// The number that C's strtod reads: decimal, hexadecimal, `inf`, `nan`.
fn c_real(text: &str) -> Option<f64> {
    let (sign, size) = match text.as_bytes().first()? {
        b'-' => (-1.0, text.get(1..)?),
        b'+' => (1.0, text.get(1..)?),
        _ => (1.0, text),
    };
    let lower = size.to_ascii_lowercase();
    if matches!(lower.as_str(), "inf" | "infinity") {
        return Some(sign * f64::INFINITY);
    }
    if lower == "nan" {
        return Some(f64::NAN);
    }
    if let Some(digits) = lower.strip_prefix("0x") {
        return hexadecimal(digits).map(|number| sign * number);
    }
    let decimal = size.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    decimal.then(|| size.parse::<f64>().ok()).flatten().map(|number| sign * number)
}

#[allow(clippy::cast_precision_loss, reason = "beyond 53 bits a real has no more digits")]
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, power) = match text.split_once('p') {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || all.len() > 13 {
        return None;
    }
    let number = u64::from_str_radix(&all, 16).ok()? as f64;
    let shift = i32::try_from(fraction.len()).ok()?;
    Some(number * 2f64.powi(power.saturating_sub(4 * shift)))
}

/// The boolean in a text, as HTCondor reads it: `true`, `false`, or an expression. `T` is an attribute that nothing defines,
/// and so no boolean, though `if T` is decided.
pub(super) fn parse_boolean(text: &str, env: &Env) -> Option<bool> {
    evaluate(text, env)?.as_bool_equiv()
}
