//! Values: what an expression evaluates to.

use std::fmt;
use std::sync::Arc;

use super::ad::Ad;
use super::syntax::{time, unparse};

/// The result of evaluating an expression. Cloning is cheap: anything large is shared.
#[derive(Clone, Debug)]
pub enum Value {
    /// The value of a name that stands for nothing, and of most operations on such a value.
    Undefined,
    /// The value of an operation that has no answer: wrong types, division by zero, a bound that was hit.
    Error,
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit integer; arithmetic wraps.
    Int(i64),
    /// A 64-bit floating-point number.
    Real(f64),
    /// A string. `==` ignores ASCII case, `=?=` does not.
    Str(Arc<str>),
    /// A list of evaluated elements.
    List(Arc<[Value]>),
    /// A nested ad. Its attributes are not evaluated yet.
    Ad(Ad),
    /// A moment, which the language calls absolute time.
    AbsTime(AbsTime),
    /// A span of seconds, which the language calls relative time.
    RelTime(f64),
}

/// A moment, and the time zone in which it prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsTime {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub secs: i64,
    /// Seconds east of Greenwich.
    pub offset: i32,
}

/// ISO 8601 with the offset of the time zone, as HTCondor prints a moment.
impl fmt::Display for AbsTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&time::absolute(*self))
    }
}

impl Value {
    /// The truth of the value where HTCondor asks for a condition: a boolean, or whether a number is not zero. `None`
    /// for everything else: no string, list, ad or time is true or false.
    pub fn as_bool_equiv(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Int(value) => Some(*value != 0),
            Self::Real(value) => Some(*value != 0.0),
            _ => None,
        }
    }

    /// The integer, if the value is one. Reals and booleans are not converted: see [`Value::as_number`].
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The real, if the value is one. Integers are not converted: see [`Value::as_number`].
    pub fn as_real(&self) -> Option<f64> {
        match self {
            Self::Real(value) => Some(*value),
            _ => None,
        }
    }

    /// The value as a number: a real, an integer, or 1 or 0 for a boolean. HTCondor reads ranks so.
    #[allow(clippy::cast_precision_loss, reason = "the language compares integers with reals as doubles")]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            Self::Int(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if the value is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the value is [`Value::Undefined`].
    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined)
    }

    /// Whether the value is [`Value::Error`].
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error)
    }

    /// The name of the value's type, such as `integer`, `string` or `undefined`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Error => "error",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "integer",
            Self::Real(_) => "real",
            Self::Str(_) => "string",
            Self::List(_) => "list",
            Self::Ad(_) => "classad",
            Self::AbsTime(_) => "abstime",
            Self::RelTime(_) => "reltime",
        }
    }

    /// Whether the other value cannot be told from this one: as `==`, but numbers are equal to the bit, so that zero is not
    /// minus zero.
    pub(crate) fn is_identical(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Real(a), Self::Real(b)) | (Self::RelTime(a), Self::RelTime(b)) => {
                a.to_bits() == b.to_bits()
            }
            // Lists and ads always count as different: what they contain is not compared.
            (Self::List(_), Self::List(_)) | (Self::Ad(_), Self::Ad(_)) => false,
            _ => self == other,
        }
    }
}

/// Equality for tests and for noticing changes, not the language's `==`: two NaNs are equal, strings compare with
/// their case, `1` and `1.0` differ.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Undefined, Self::Undefined) | (Self::Error, Self::Error) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Real(a), Self::Real(b)) | (Self::RelTime(a), Self::RelTime(b)) => {
                a == b || (a.is_nan() && b.is_nan())
            }
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Ad(a), Self::Ad(b)) => a == b,
            (Self::AbsTime(a), Self::AbsTime(b)) => a == b,
            _ => false,
        }
    }
}

/// The value as an expression that evaluates to the value. Strings are quoted.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        unparse::value(f, self, unparse::Style::Exact)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Str(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Str(value.into())
    }
}

impl From<Arc<str>> for Value {
    fn from(value: Arc<str>) -> Self {
        Self::Str(value)
    }
}

impl From<Vec<Value>> for Value {
    fn from(value: Vec<Value>) -> Self {
        Self::List(value.into())
    }
}

impl From<Ad> for Value {
    fn from(value: Ad) -> Self {
        Self::Ad(value)
    }
}
