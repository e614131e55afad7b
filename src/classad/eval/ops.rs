//! Operators on values.

use std::cmp::Ordering;

use super::ctx::Ctx;
use super::val::Val;
use crate::expr::{Binary, Unary};
use crate::functions::to_c_int;
use crate::value::{AbsTime, Value};

/// The truth of a condition: true, false, undefined or error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tri {
    True,
    False,
    Undefined,
    Error,
}

impl Tri {
    /// The truth of a value: booleans, and numbers by whether they are zero. Strings, lists, ads and times are errors.
    pub(crate) fn of(value: &Val<'_>) -> Self {
        match value {
            Val::Bool(truth) => Self::from(*truth),
            Val::Int(number) => Self::from(*number != 0),
            Val::Real(number) => Self::from(*number != 0.0),
            Val::Undefined => Self::Undefined,
            _ => Self::Error,
        }
    }

    pub(crate) fn val<'a>(self) -> Val<'a> {
        match self {
            Self::True => Val::Bool(true),
            Self::False => Val::Bool(false),
            Self::Undefined => Val::Undefined,
            Self::Error => Val::Error,
        }
    }

    /// The same as a [`Value`].
    pub(crate) fn value(self) -> Value {
        match self {
            Self::True => Value::Bool(true),
            Self::False => Value::Bool(false),
            Self::Undefined => Value::Undefined,
            Self::Error => Value::Error,
        }
    }

    /// `self && right`. The order of the operands matters: of an error and an undefined, the left one decides.
    pub(crate) fn and(self, right: Self) -> Self {
        match (self, right) {
            (Self::Undefined, Self::True) => Self::Undefined,
            (Self::True | Self::Undefined, right) => right,
            (left, _) => left,
        }
    }

    /// `self || right`
    pub(crate) fn or(self, right: Self) -> Self {
        match (self, right) {
            (Self::Undefined, Self::False) => Self::Undefined,
            (Self::False | Self::Undefined, right) => right,
            (left, _) => left,
        }
    }

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            other => other,
        }
    }
}

impl From<bool> for Tri {
    fn from(truth: bool) -> Self {
        if truth { Self::True } else { Self::False }
    }
}

/// Applies a prefix operator.
pub(crate) fn unary<'a>(op: Unary, value: &Val<'a>) -> Val<'a> {
    if matches!(value, Val::Undefined) {
        return Val::Undefined;
    }
    match (op, value) {
        (Unary::Not, _) => Tri::of(value).not().val(),
        (Unary::Minus, Val::Int(number)) => Val::Int(number.wrapping_neg()),
        (Unary::Minus, Val::Real(number)) => Val::Real(-number),
        (Unary::Minus, Val::RelTime(secs)) => Val::RelTime(-secs),
        (Unary::Plus, Val::Int(_) | Val::Real(_) | Val::RelTime(_)) => value.clone(),
        (Unary::Complement, Val::Int(number)) => Val::Int(!number),
        _ => Val::Error,
    }
}

impl<'a> Ctx<'a> {
    /// As the function [`binary`], and pays for it: strings are compared byte by byte.
    pub(crate) fn binary(&self, op: Binary, left: &Val<'a>, right: &Val<'a>) -> Val<'a> {
        if self.pay_to_compare(left, right) { binary(op, left, right) } else { Val::Error }
    }

    /// Pays for comparing two values: strings cost as many bytes as the shorter has. `false`: no steps are left.
    pub(crate) fn pay_to_compare(&self, left: &Val<'a>, right: &Val<'a>) -> bool {
        match (left, right) {
            (Val::Str(a), Val::Str(b)) => self.read(a.len().min(b.len())),
            _ => true,
        }
    }
}

/// Applies an infix operator other than `&&` and `||` to two values.
pub(crate) fn binary<'a>(op: Binary, left: &Val<'a>, right: &Val<'a>) -> Val<'a> {
    match op {
        Binary::Is => return identical(left, right),
        Binary::Isnt => {
            return match identical(left, right) {
                Val::Bool(same) => Val::Bool(!same),
                other => other,
            };
        }
        _ => {}
    }
    match (left, right) {
        (Val::Error, _) | (_, Val::Error) => return Val::Error,
        (Val::Undefined, _) | (_, Val::Undefined) => return Val::Undefined,
        _ => {}
    }
    match op {
        Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Modulus => {
            arithmetic(op, left, right)
        }
        Binary::Less
        | Binary::LessOrEqual
        | Binary::Greater
        | Binary::GreaterOrEqual
        | Binary::Equal
        | Binary::NotEqual => comparison(op, left, right),
        _ => bitwise(op, left, right),
    }
}

/// A number as the arithmetic operators take it.
enum Number {
    Int(i64),
    Real(f64),
}

impl Number {
    fn of(value: &Val<'_>) -> Option<Self> {
        match value {
            Val::Bool(truth) => Some(Self::Int(i64::from(*truth))),
            Val::Int(number) => Some(Self::Int(*number)),
            Val::Real(number) => Some(Self::Real(*number)),
            _ => None,
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "mixed arithmetic is done in doubles")]
    fn real(&self) -> f64 {
        match self {
            Self::Int(number) => *number as f64,
            Self::Real(number) => *number,
        }
    }
}

fn arithmetic<'a>(op: Binary, left: &Val<'a>, right: &Val<'a>) -> Val<'a> {
    match (Number::of(left), Number::of(right)) {
        (Some(Number::Int(a)), Some(Number::Int(b))) => integers(op, a, b),
        (Some(a), Some(b)) => reals(op, a.real(), b.real()),
        (a, b) => times(op, left, right, a, b),
    }
}

fn integers<'a>(op: Binary, a: i64, b: i64) -> Val<'a> {
    Val::Int(match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Subtract => a.wrapping_sub(b),
        Binary::Multiply => a.wrapping_mul(b),
        // HTCondor returns the largest integer if the quotient does not fit.
        Binary::Divide if b != 0 => a.checked_div(b).unwrap_or(i64::MAX),
        Binary::Modulus if b != 0 => a.checked_rem(b).unwrap_or(0),
        _ => return Val::Error,
    })
}

fn reals<'a>(op: Binary, a: f64, b: f64) -> Val<'a> {
    let result = match op {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        _ => return Val::Error,
    };
    // HTCondor turns positive infinity, and only that, into an error.
    if result == f64::INFINITY { Val::Error } else { Val::Real(result) }
}

fn times<'a>(op: Binary, left: &Val<'a>, right: &Val<'a>, a: Option<Number>, b: Option<Number>) -> Val<'a> {
    let shifted = |time: &AbsTime, secs: i64| {
        Val::AbsTime(AbsTime { secs: time.secs.saturating_add(secs), offset: time.offset })
    };
    match (op, left, right) {
        (Binary::Add, Val::RelTime(a), Val::RelTime(b)) => Val::RelTime(a + b),
        (Binary::Subtract, Val::RelTime(a), Val::RelTime(b)) => Val::RelTime(a - b),
        (Binary::Add, Val::AbsTime(time), Val::RelTime(secs))
        | (Binary::Add, Val::RelTime(secs), Val::AbsTime(time)) => shifted(time, to_c_int(*secs).into()),
        (Binary::Subtract, Val::AbsTime(time), Val::RelTime(secs)) => {
            shifted(time, -i64::from(to_c_int(*secs)))
        }
        (Binary::Subtract, Val::AbsTime(a), Val::AbsTime(b)) => {
            Val::RelTime(seconds(a.secs.saturating_sub(b.secs)))
        }
        (Binary::Multiply, Val::RelTime(secs), Val::Int(_) | Val::Real(_)) => {
            b.map_or(Val::Error, |b| Val::RelTime(secs * b.real()))
        }
        (Binary::Multiply, Val::Int(_) | Val::Real(_), Val::RelTime(secs)) => {
            a.map_or(Val::Error, |a| Val::RelTime(a.real() * secs))
        }
        (Binary::Divide, Val::RelTime(secs), Val::Int(_) | Val::Real(_)) => {
            b.map_or(Val::Error, |b| Val::RelTime(secs / b.real()))
        }
        _ => Val::Error,
    }
}

#[allow(clippy::cast_precision_loss, reason = "spans are doubles")]
fn seconds(secs: i64) -> f64 {
    secs as f64
}

fn bitwise<'a>(op: Binary, left: &Val<'a>, right: &Val<'a>) -> Val<'a> {
    let (Val::Int(a), Val::Int(b)) = (left, right) else { return Val::Error };
    Val::Int(match op {
        Binary::BitAnd => a & b,
        Binary::BitOr => a | b,
        Binary::BitXor => a ^ b,
        Binary::ShiftLeft => a.wrapping_shl(low(*b)),
        Binary::ShiftRight if *a >= 0 => a.wrapping_shr(low(*b)),
        // HTCondor shifts a negative number bit by bit, so a count of 64 or more leaves -1.
        Binary::ShiftRight => a >> (*b).clamp(0, 63),
        Binary::ShiftRightUnsigned => unsigned_shift(*a, *b),
        _ => return Val::Error,
    })
}

/// The shift count as the processor takes it: its lowest 6 bits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "masked to 6 bits")]
fn low(count: i64) -> u32 {
    (count & 63) as u32
}

/// `>>>` on a negative number as HTCondor does it: as `>>`, and then the copies of the sign bit are masked out. For
/// counts beyond 63, the result is what the processor makes of such a mask.
fn unsigned_shift(a: i64, count: i64) -> i64 {
    if a >= 0 {
        return a.wrapping_shr(low(count));
    }
    let shifted = a.wrapping_shr(low(count));
    let mask = 1_i64.wrapping_shl(low(64_i64.wrapping_sub(count))).wrapping_sub(1);
    shifted & mask
}

fn comparison<'a>(op: Binary, left: &Val<'a>, right: &Val<'a>) -> Val<'a> {
    match compare(left, right) {
        Some(order) => Val::Bool(holds(op, order)),
        None => Val::Error,
    }
}

/// How two values compare. `None`: the values cannot be compared. `Some(None)`: one of them is NaN, which has no
/// order.
#[allow(clippy::option_option, reason = "two different reasons for no order")]
pub(crate) fn compare(left: &Val<'_>, right: &Val<'_>) -> Option<Option<Ordering>> {
    match (left, right) {
        (Val::Str(a), Val::Str(b)) => Some(Some(compare_caseless(a, b))),
        (Val::AbsTime(a), Val::AbsTime(b)) => Some(Some(a.secs.cmp(&b.secs))),
        (Val::RelTime(a), Val::RelTime(b)) => Some(a.partial_cmp(b)),
        _ => match (Number::of(left)?, Number::of(right)?) {
            (Number::Int(a), Number::Int(b)) => Some(Some(a.cmp(&b))),
            (a, b) => Some(a.real().partial_cmp(&b.real())),
        },
    }
}

fn holds(op: Binary, order: Option<Ordering>) -> bool {
    match op {
        Binary::Less => order == Some(Ordering::Less),
        Binary::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Binary::Greater => order == Some(Ordering::Greater),
        Binary::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Binary::Equal => order == Some(Ordering::Equal),
        Binary::NotEqual => order != Some(Ordering::Equal),
        _ => false,
    }
}

/// The order of two strings without ASCII case, byte by byte.
pub(crate) fn compare_caseless(a: &str, b: &str) -> Ordering {
    let folded = |byte: u8| byte.to_ascii_lowercase();
    a.bytes().map(folded).cmp(b.bytes().map(folded))
}

/// `=?=`: whether two values have the same type and the same value. Lists and ads give an error.
pub(crate) fn identical<'a>(left: &Val<'a>, right: &Val<'a>) -> Val<'a> {
    Val::Bool(match (left, right) {
        (Val::Undefined, Val::Undefined) | (Val::Error, Val::Error) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Int(a), Val::Int(b)) => a == b,
        #[allow(clippy::float_cmp, reason = "this is the language's exact comparison")]
        (Val::Real(a), Val::Real(b)) | (Val::RelTime(a), Val::RelTime(b)) => a == b,
        (Val::Str(a), Val::Str(b)) => **a == **b,
        (Val::AbsTime(a), Val::AbsTime(b)) => a == b,
        // HTCondor has two types of list, those that were written and those that a function made; they are never
        // identical.
        (Val::List(a), Val::List(b)) if a.is_made() != b.is_made() => false,
        (Val::List(_), Val::List(_)) | (Val::Ad(_), Val::Ad(_)) => return Val::Error,
        _ => false,
    })
}
