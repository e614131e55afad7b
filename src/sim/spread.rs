//! Distributions of amounts and spans.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, LogNormal, Weibull};
use thiserror::Error;

/// A distribution of an amount that is never negative: seconds, procs, MiB. The constructors check their parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    law: Law,
    /// The bound of a draw: a greater draw is lowered to this bound, before the draw is multiplied by `scale`.
    most: f64,
    /// The factor by which a draw is multiplied.
    scale: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Law {
    Constant(f64),
    Uniform { min: f64, max: f64 },
    Exponential { mean: f64 },
    LogNormal(LogNormal<f64>),
    Weibull(Weibull<f64>),
    Empirical(Vec<f64>),
}

/// Why a distribution cannot be made of its parameters.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BadSpread {
    /// An amount is negative or no number.
    #[error("{field} is {value}; give a number of 0 or more")]
    Amount {
        /// The parameter.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A parameter that has to be positive is not.
    #[error("{field} is {value}; give a number above 0")]
    Positive {
        /// The parameter.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// The ends of an interval are in the wrong order.
    #[error("min is {min}, which is more than max, {max}; exchange them")]
    Order {
        /// The lower end.
        min: f64,
        /// The upper end.
        max: f64,
    },
    /// A list of values is empty.
    #[error("there are no values to draw from; list at least one")]
    Empty,
}

impl Spread {
    /// Always `value`.
    ///
    /// # Errors
    /// When `value` is negative or not finite.
    pub fn constant(value: f64) -> Result<Self, BadSpread> {
        Ok(Self::of(Law::Constant(amount("the value", value)?)))
    }

    /// The uniform distribution between `min` and `max`.
    ///
    /// # Errors
    /// When a parameter is negative or not finite, or `min` is more than `max`.
    pub fn uniform(min: f64, max: f64) -> Result<Self, BadSpread> {
        let (min, max) = (amount("min", min)?, amount("max", max)?);
        if min > max {
            return Err(BadSpread::Order { min, max });
        }
        Ok(Self::of(Law::Uniform { min, max }))
    }

    /// The exponential distribution of this mean.
    ///
    /// # Errors
    /// When the mean is not positive.
    pub fn exponential(mean: f64) -> Result<Self, BadSpread> {
        Ok(Self::of(Law::Exponential { mean: positive("mean", mean)? }))
    }

    /// The log-normal distribution of this median; the logarithm of a draw has the standard deviation `sigma`.
    ///
    /// # Errors
    /// When the median is not positive, or `sigma` negative.
    pub fn lognormal(median: f64, sigma: f64) -> Result<Self, BadSpread> {
        let mu = libm::log(positive("median", median)?);
        let bad = |_| BadSpread::Amount { field: "sigma", value: sigma };
        Ok(Self::of(Law::LogNormal(LogNormal::new(mu, amount("sigma", sigma)?).map_err(bad)?)))
    }

    /// The Weibull distribution. With a shape below 1, the longer a span has lasted, the longer it will still last.
    ///
    /// # Errors
    /// When a parameter is not positive.
    pub fn weibull(scale: f64, shape: f64) -> Result<Self, BadSpread> {
        let (scale, shape) = (positive("scale", scale)?, positive("shape", shape)?);
        let bad = |_| BadSpread::Positive { field: "scale", value: scale };
        Ok(Self::of(Law::Weibull(Weibull::new(scale, shape).map_err(bad)?)))
    }

    /// One of `values`, each with the same probability: a value that is listed twice is drawn twice as often.
    ///
    /// # Errors
    /// When `values` is empty, or a value is negative or not finite.
    pub fn empirical(values: Vec<f64>) -> Result<Self, BadSpread> {
        if values.is_empty() {
            return Err(BadSpread::Empty);
        }
        for value in &values {
            amount("a value", *value)?;
        }
        Ok(Self::of(Law::Empirical(values)))
    }

    /// The same distribution with an upper bound: a larger draw becomes `most`.
    ///
    /// # Errors
    /// When the bound is negative or not finite.
    pub fn at_most(self, most: f64) -> Result<Self, BadSpread> {
        Ok(Self { most: amount("max", most)?, ..self })
    }

    /// Always `value`; always 0 if `value` is negative or not finite.
    pub fn always(value: f64) -> Self {
        Self::of(Law::Constant(if value.is_finite() { value.max(0.0) } else { 0.0 }))
    }

    /// The same distribution, with every draw multiplied by `by`.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self { scale: self.scale * by, ..self }
    }

    /// The largest possible draw; `None` if draws are unbounded.
    pub fn largest(&self) -> Option<f64> {
        let of_law = match &self.law {
            Law::Constant(value) => Some(*value),
            Law::Uniform { max, .. } => Some(*max),
            Law::Empirical(values) => values.iter().copied().reduce(f64::max),
            Law::Exponential { .. } | Law::LogNormal(_) | Law::Weibull(_) => None,
        };
        let most = Some(self.most).filter(|most| *most < f64::MAX);
        Some(of_law.into_iter().chain(most).reduce(f64::min)? * self.scale)
    }

    fn of(law: Law) -> Self {
        Self { law, most: f64::MAX, scale: 1.0 }
    }

    /// Draws an amount.
    pub fn draw(&self, rng: &mut impl Rng) -> f64 {
        let drawn = match &self.law {
            Law::Constant(value) => *value,
            Law::Uniform { min, max } => min + (max - min) * rng.random::<f64>(),
            Law::Exponential { mean } => {
                let unit: f64 = Exp1.sample(rng);
                mean * unit
            }
            Law::LogNormal(law) => law.sample(rng),
            Law::Weibull(law) => law.sample(rng),
            Law::Empirical(values) => {
                values.get(rng.random_range(0..values.len())).copied().unwrap_or_default()
            }
        };
        drawn.min(self.most) * self.scale
    }
}

fn amount(field: &'static str, value: f64) -> Result<f64, BadSpread> {
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(BadSpread::Amount { field, value }) }
}

fn positive(field: &'static str, value: f64) -> Result<f64, BadSpread> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(BadSpread::Positive { field, value }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::stream;

    fn sorted(spread: &Spread) -> Vec<f64> {
        let mut rng = stream(1, "test", "");
        let mut draws: Vec<f64> = (0..10_001).map(|_| spread.draw(&mut rng)).collect();
        draws.sort_by(f64::total_cmp);
        draws
    }

    #[test]
    fn draws_follow_their_law() {
        for (spread, median, mean) in [
            (Spread::constant(5.0), 5.0, 5.0),
            (Spread::uniform(2.0, 4.0), 3.0, 3.0),
            (Spread::exponential(10.0), 6.93, 10.0),
            (Spread::lognormal(100.0, 0.5), 100.0, 113.3),
            // A Weibull distribution of shape 1 is exponential.
            (Spread::weibull(10.0, 1.0), 6.93, 10.0),
            (Spread::empirical(vec![1.0, 1.0, 10.0]), 1.0, 4.0),
        ] {
            let spread = spread.unwrap();
            let draws = sorted(&spread);
            let found = draws.iter().sum::<f64>() / 10_001.0;
            assert!((found / mean - 1.0).abs() < 0.04, "{spread:?}: mean {found}");
            assert!((draws[5_000] / median - 1.0).abs() < 0.05, "{spread:?}: median {}", draws[5_000]);
            assert!(draws[0] >= 0.0);
        }
    }

    #[test]
    fn bounds_hold_and_units_change() {
        let spread = Spread::exponential(10.0).unwrap().at_most(12.0).unwrap().scaled(2.0);
        let draws = sorted(&spread);
        assert!((draws[10_000] - 24.0).abs() < 1e-9);
        assert!((draws[5_000] / 13.86 - 1.0).abs() < 0.05);
    }

    #[test]
    fn the_largest_is_known_where_there_is_one() {
        let bounded = |spread: Spread| spread.at_most(12.0).unwrap().scaled(2.0);
        for (spread, largest) in [
            (Spread::always(5.0), Some(5.0)),
            (Spread::uniform(2.0, 4.0).unwrap(), Some(4.0)),
            (Spread::empirical(vec![1.0, 10.0, 2.0]).unwrap(), Some(10.0)),
            (Spread::exponential(10.0).unwrap(), None),
            (bounded(Spread::lognormal(100.0, 0.5).unwrap()), Some(24.0)),
            (bounded(Spread::weibull(10.0, 1.0).unwrap()), Some(24.0)),
            (bounded(Spread::always(5.0)), Some(10.0)),
        ] {
            assert_eq!(spread.largest(), largest, "{spread:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (spread, says) in [
            (Spread::constant(-1.0), "the value is -1; give a number of 0 or more"),
            (Spread::uniform(2.0, 1.0), "min is 2, which is more than max, 1; exchange them"),
            (Spread::exponential(0.0), "mean is 0; give a number above 0"),
            (Spread::lognormal(1.0, f64::NAN), "sigma is NaN; give a number of 0 or more"),
            (Spread::weibull(1.0, 0.0), "shape is 0; give a number above 0"),
            (Spread::empirical(vec![]), "there are no values to draw from; list at least one"),
            (Spread::empirical(vec![1.0, -2.0]), "a value is -2; give a number of 0 or more"),
        ] {
            assert_eq!(spread.unwrap_err().to_string(), says);
        }
    }
}
