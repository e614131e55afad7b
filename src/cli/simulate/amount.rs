//! Reads the amounts of a scenario: spans of time, sizes, numbers, and distributions of these.

use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use controller::convert;
use sim::{BadSpread, Spread};

/// A unit of amounts, and how amounts of it are written.
pub trait Unit {
    /// The form that a user should write, for messages.
    const EXPECTED: &'static str;
    /// Reads an amount; `None` if the text is not one.
    fn read(text: &str) -> Option<f64>;
}

/// Seconds, written as `90`, `90s` or `1h30m`.
#[derive(Debug)]
pub struct Seconds;
/// Bytes, written as a Kubernetes quantity.
#[derive(Debug)]
pub struct Bytes;
/// Numbers without a unit.
#[derive(Debug)]
pub struct Count;

impl Unit for Seconds {
    const EXPECTED: &'static str = "a span of time such as 90s, 20m, 1h30m or 2d";

    fn read(text: &str) -> Option<f64> {
        span(text)
    }
}

impl Unit for Bytes {
    const EXPECTED: &'static str = "a quantity such as 512Mi or 4Gi";

    fn read(text: &str) -> Option<f64> {
        let bytes = convert::ceil_units(&Quantity(text.to_owned()), 1).ok()?;
        #[allow(clippy::cast_precision_loss, reason = "sizes are not known to the byte")]
        Some(bytes as f64)
    }
}

impl Unit for Count {
    const EXPECTED: &'static str = "a number";

    fn read(_: &str) -> Option<f64> {
        None
    }
}

/// Reads a span of time: numbers, each followed by one of the units `w d h m s ms`.
fn span(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let letters = tail.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(letters)?;
        let unit = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * unit;
        rest = tail.trim_start();
    }
    Some(sum)
}

/// Reads a span of time, or a number of seconds, from the command line.
///
/// # Errors
/// When the text is neither.
pub fn seconds(text: &str) -> Result<f64, String> {
    span(text)
        .or_else(|| text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0))
        .ok_or_else(|| format!("expected {}", Seconds::EXPECTED))
}

/// An amount of the unit `U`.
#[derive(Debug)]
pub struct Amount<U> {
    /// The amount, in the unit.
    pub value: f64,
    unit: PhantomData<U>,
}

impl<U> Clone for Amount<U> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<U> Copy for Amount<U> {}

impl<U> Amount<U> {
    fn new(value: f64) -> Self {
        Self { value, unit: PhantomData }
    }
}

struct AmountVisitor<U>(PhantomData<U>);

impl<U: Unit> Visitor<'_> for AmountVisitor<U> {
    type Value = Amount<U>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(U::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        scalar::<U, E>(text).map(Amount::new)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Amount::new(value))
    }

    #[allow(clippy::cast_precision_loss, reason = "nobody writes amounts of 2^53")]
    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        self.visit_f64(value as f64)
    }

    #[allow(clippy::cast_precision_loss, reason = "nobody writes amounts of 2^53")]
    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        self.visit_f64(value as f64)
    }
}

fn scalar<U: Unit, E: Error>(text: &str) -> Result<f64, E> {
    U::read(text).ok_or_else(|| E::custom(format!("{text:?} is not {}", U::EXPECTED)))
}

impl<'de, U: Unit> Deserialize<'de> for Amount<U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor(PhantomData))
    }
}

/// A distribution of amounts. It is written as one amount, as a list of equally likely amounts, or as a named
/// distribution with its parameters.
#[derive(Debug)]
pub struct Drawn<U> {
    /// The distribution.
    pub spread: Spread,
    unit: PhantomData<U>,
}

impl<U> Clone for Drawn<U> {
    fn clone(&self) -> Self {
        Self { spread: self.spread.clone(), unit: PhantomData }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound = "U: Unit")]
enum Law<U> {
    Constant(Amount<U>),
    Uniform { min: Amount<U>, max: Amount<U> },
    Exponential { mean: Amount<U>, max: Option<Amount<U>> },
    Lognormal { median: Amount<U>, sigma: f64, max: Option<Amount<U>> },
    Weibull { scale: Amount<U>, shape: f64, max: Option<Amount<U>> },
    Empirical(Vec<Amount<U>>),
}

impl<U> Law<U> {
    fn spread(self) -> Result<Spread, BadSpread> {
        let bounded = |spread: Spread, max: Option<Amount<U>>| match max {
            Some(max) => spread.at_most(max.value),
            None => Ok(spread),
        };
        match self {
            Self::Constant(value) => Spread::constant(value.value),
            Self::Uniform { min, max } => Spread::uniform(min.value, max.value),
            Self::Exponential { mean, max } => bounded(Spread::exponential(mean.value)?, max),
            Self::Lognormal { median, sigma, max } => bounded(Spread::lognormal(median.value, sigma)?, max),
            Self::Weibull { scale, shape, max } => bounded(Spread::weibull(scale.value, shape)?, max),
            Self::Empirical(values) => {
                Spread::empirical(values.into_iter().map(|value| value.value).collect())
            }
        }
    }
}

struct DrawnVisitor<U>(PhantomData<U>);

impl<U> DrawnVisitor<U> {
    fn of<E: Error>(law: Law<U>) -> Result<Drawn<U>, E> {
        law.spread().map(|spread| Drawn { spread, unit: PhantomData }).map_err(E::custom)
    }
}

impl<'de, U: Unit> Visitor<'de> for DrawnVisitor<U> {
    type Value = Drawn<U>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, a list of such, or one of constant, uniform, exponential, lognormal, weibull, empirical",
            U::EXPECTED
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Self::of(Law::Constant(Amount::new(scalar::<U, E>(text)?)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Self::of(Law::Constant(AmountVisitor::<U>(PhantomData).visit_f64(value)?))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Self::of(Law::Constant(AmountVisitor::<U>(PhantomData).visit_i64(value)?))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Self::of(Law::Constant(AmountVisitor::<U>(PhantomData).visit_u64(value)?))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element::<Amount<U>>()? {
            values.push(value);
        }
        Self::of(Law::Empirical(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Self::of(Law::deserialize(MapAccessDeserializer::new(map))?)
    }
}

impl<'de, U: Unit> Deserialize<'de> for Drawn<U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DrawnVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_numbers_with_units() {
        for (text, seconds) in [
            ("90s", Some(90.0)),
            ("1h30m", Some(5400.0)),
            ("1d 12h", Some(129_600.0)),
            ("250ms", Some(0.25)),
            ("1.5h", Some(5400.0)),
            ("2w", Some(1_209_600.0)),
            ("", None),
            ("5", None),
            ("h", None),
            ("5 parsecs", None),
            ("-5m", None),
        ] {
            assert_eq!(span(text), seconds, "{text}");
        }
    }
}
