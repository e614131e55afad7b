//! The intermediate form: what is left of an expression once its own ad is known.

use std::cell::Cell;
use std::sync::Arc;

use super::calls::Call;
use super::meter::Meter;
use crate::ad::Ad;
use crate::env::Env;
use crate::eval::{Tri, Val, binary, unary};
use crate::expr::{Binary, Unary};
use crate::value::Value;

/// The number of an attribute's name in [`Symbols`](super::symbols::Symbols).
pub(super) type Symbol = u32;

/// An expression that reads attributes of the other ad and nothing else. Its constants are scalars: undefined, error,
/// booleans, numbers and strings.
#[derive(Clone, Debug)]
pub(super) enum Ir {
    Const(Value),
    /// An attribute of the other ad.
    Other(Symbol),
    /// The time.
    Now,
    Unary(Unary, Box<Ir>),
    Binary(Binary, Box<(Ir, Ir)>),
    And(Box<[Ir]>),
    Or(Box<[Ir]>),
    Ternary(Box<(Ir, Ir, Ir)>),
    Elvis(Box<(Ir, Ir)>),
    IsUndefined(Box<Ir>),
    Call(Arc<Call>),
    /// A list; only arguments of calls may be lists.
    List(Box<[Ir]>),
    /// An expression that may cost so many steps.
    Metered(Box<(u32, Ir)>),
}

/// The compiled form cannot decide, and the plain evaluator must: an attribute of the other ad is no scalar or depends
/// on this ad, or a bound was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unknown;

/// A source of the other ad's attributes.
pub(super) trait View<'a> {
    /// The value of an attribute; `None` if it is no constant scalar.
    fn value(&self, symbol: Symbol) -> Option<&'a Value>;
}

/// The ads and other circumstances with which an [`Ir`] is evaluated.
pub(super) struct Scene<'a, V> {
    /// The cost of the evaluation so far.
    meter: &'a Meter,
    /// The greatest cost that the meter may show before the plain evaluator must decide.
    end: Cell<u64>,
    pub(super) view: V,
    /// The two ads, for calls. `my` is any ad that the expression could have come from.
    pub(super) my: &'a Ad,
    pub(super) target: &'a Ad,
    pub(super) env: &'a Env,
}

impl<'a, V> Scene<'a, V> {
    pub(super) fn new(view: V, my: &'a Ad, target: &'a Ad, env: &'a Env, meter: &'a Meter) -> Self {
        Self { view, my, target, env, meter, end: Cell::new(u64::MAX) }
    }

    /// Pays for work. [`Unknown`]: the work is more than the expression may cost.
    fn pay(&self, steps: u64) -> Result<(), Unknown> {
        self.meter.pay(steps);
        if self.meter.spent() > self.end.get() { Err(Unknown) } else { Ok(()) }
    }

    /// Evaluates an expression that may cost so many steps.
    fn within<T>(
        &self,
        steps: u32,
        evaluate: impl FnOnce(&Self) -> Result<T, Unknown>,
    ) -> Result<T, Unknown> {
        let before = self.end.replace(self.meter.spent().saturating_add(steps.into()));
        let value = evaluate(self);
        self.end.set(before);
        value
    }

    /// The steps that are left.
    fn left(&self) -> u32 {
        u32::try_from(self.end.get().saturating_sub(self.meter.spent())).unwrap_or(u32::MAX)
    }
}

/// The price of comparing two values beyond looking at them, in steps.
fn price(left: &Val<'_>, right: &Val<'_>) -> u64 {
    match (left, right) {
        (Val::Str(a), Val::Str(b)) => a.len().min(b.len()) as u64 / 16,
        _ => 0,
    }
}

impl Ir {
    /// The value that the plain evaluator would give.
    pub(super) fn eval<'a, V: View<'a>>(&'a self, scene: &Scene<'a, V>) -> Result<Val<'a>, Unknown> {
        scene.meter.pay(1);
        Ok(match self {
            Self::Const(value) => Val::of(value),
            Self::Other(symbol) => Val::of(scene.view.value(*symbol).ok_or(Unknown)?),
            Self::Now => Val::Int(scene.env.now),
            Self::Unary(op, operand) => unary(*op, &operand.eval(scene)?),
            Self::Binary(op, operands) => {
                let (left, right) = (operands.0.eval(scene)?, operands.1.eval(scene)?);
                scene.pay(price(&left, &right))?;
                binary(*op, &left, &right)
            }
            Self::And(items) => Self::and(items, scene)?.val(),
            Self::Or(items) => Self::or(items, scene)?.val(),
            Self::Ternary(parts) => match parts.0.truth(scene)? {
                Tri::True => parts.1.eval(scene)?,
                Tri::False => parts.2.eval(scene)?,
                other => other.val(),
            },
            Self::Elvis(parts) => match parts.0.eval(scene)? {
                Val::Undefined => parts.1.eval(scene)?,
                value => value,
            },
            Self::IsUndefined(operand) => Val::Bool(matches!(operand.eval(scene)?, Val::Undefined)),
            Self::Call(call) => {
                // The plain evaluator would follow these attributes, perhaps back to this expression; a call cannot
                // notice that here.
                if call.symbols.iter().any(|symbol| scene.view.value(*symbol).is_none()) {
                    return Err(Unknown);
                }
                let (value, steps) = call.eval(scene.my, scene.target, scene.env, scene.left());
                scene.meter.pay(steps.into());
                value?
            }
            Self::Metered(metered) => scene.within(metered.0, |scene| metered.1.eval(scene))?,
            Self::List(_) => return Err(Unknown),
        })
    }

    /// The truth of the value.
    pub(super) fn truth<'a, V: View<'a>>(&'a self, scene: &Scene<'a, V>) -> Result<Tri, Unknown> {
        match self {
            Self::And(items) => Self::and(items, scene),
            Self::Or(items) => Self::or(items, scene),
            Self::Metered(metered) => scene.within(metered.0, |scene| metered.1.truth(scene)),
            Self::Binary(op, operands) => {
                if let (Self::Other(symbol), Self::Const(Value::Int(right))) = &**operands
                    && let Some(Value::Int(left)) = scene.view.value(*symbol)
                    && let Some(truth) = compare_integers(*op, *left, *right)
                {
                    return Ok(Tri::from(truth));
                }
                Ok(Tri::of(&self.eval(scene)?))
            }
            _ => Ok(Tri::of(&self.eval(scene)?)),
        }
    }

    fn and<'a, V: View<'a>>(items: &'a [Ir], scene: &Scene<'a, V>) -> Result<Tri, Unknown> {
        let mut result = Tri::True;
        for item in items {
            result = result.and(item.truth(scene)?);
            if matches!(result, Tri::False | Tri::Error) {
                break;
            }
        }
        Ok(result)
    }

    fn or<'a, V: View<'a>>(items: &'a [Ir], scene: &Scene<'a, V>) -> Result<Tri, Unknown> {
        let mut result = Tri::False;
        for item in items {
            result = result.or(item.truth(scene)?);
            if matches!(result, Tri::True | Tri::Error) {
                break;
            }
        }
        Ok(result)
    }

    /// Calls back with each attribute of the other ad that the expression reads.
    pub(super) fn symbols(&self, found: &mut dyn FnMut(Symbol)) {
        match self {
            Self::Other(symbol) => found(*symbol),
            Self::Call(call) => call.symbols.iter().copied().for_each(found),
            _ => self.operands(&mut |operand| operand.symbols(found)),
        }
    }

    /// Calls back with each operand.
    fn operands(&self, each: &mut dyn FnMut(&Ir)) {
        match self {
            Self::Const(_) | Self::Other(_) | Self::Now | Self::Call(_) => {}
            Self::Unary(_, operand) | Self::IsUndefined(operand) => each(operand),
            Self::Metered(metered) => each(&metered.1),
            Self::Binary(_, operands) | Self::Elvis(operands) => {
                each(&operands.0);
                each(&operands.1);
            }
            Self::And(items) | Self::Or(items) | Self::List(items) => items.iter().for_each(each),
            Self::Ternary(parts) => {
                each(&parts.0);
                each(&parts.1);
                each(&parts.2);
            }
        }
    }

    /// The expression, which may cost `steps` if its cost depends on the other ad.
    pub(super) fn metered(self, steps: usize) -> Self {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        if self.may_cost_more() { Self::Metered(Box::new((steps, self))) } else { self }
    }

    /// Whether the cost depends on texts of the other ad.
    fn may_cost_more(&self) -> bool {
        let short = |ir: &Ir| match ir {
            Self::Const(Value::Str(text)) => text.len() < 64,
            Self::Const(_) => true,
            _ => false,
        };
        let mut more = match self {
            Self::Call(_) => true,
            Self::Binary(_, operands) => !short(&operands.0) && !short(&operands.1),
            _ => false,
        };
        self.operands(&mut |operand| more |= operand.may_cost_more());
        more
    }

    /// Whether the expression reads the time.
    pub(super) fn timely(&self) -> bool {
        let mut timely = match self {
            Self::Now => true,
            Self::Call(call) => call.timely(),
            _ => false,
        };
        self.operands(&mut |operand| timely |= operand.timely());
        timely
    }

    /// Appends the expression's key. Two expressions have the same key exactly if they are the same.
    pub(super) fn key(&self, out: &mut Vec<u8>) {
        match self {
            Self::Const(value) => value_key(value, out),
            Self::Other(symbol) => {
                out.push(b'o');
                out.extend_from_slice(&symbol.to_le_bytes());
            }
            Self::Now => out.push(b'n'),
            Self::Unary(op, _) => out.extend_from_slice(&[b'1', *op as u8]),
            Self::Binary(op, _) => out.extend_from_slice(&[b'2', *op as u8]),
            Self::And(items) => list_key(b'&', items.len(), out),
            Self::Or(items) => list_key(b'|', items.len(), out),
            Self::List(items) => list_key(b'{', items.len(), out),
            Self::Ternary(_) => out.push(b'?'),
            Self::Elvis(_) => out.push(b'e'),
            Self::IsUndefined(_) => out.push(b'u'),
            Self::Call(call) => out.extend_from_slice(&call.key),
            Self::Metered(_) => {}
        }
        self.operands(&mut |operand| operand.key(out));
    }
}

/// Compares two integers. `None`: the operator is no comparison.
fn compare_integers(op: Binary, left: i64, right: i64) -> Option<bool> {
    Some(match op {
        Binary::Less => left < right,
        Binary::LessOrEqual => left <= right,
        Binary::Greater => left > right,
        Binary::GreaterOrEqual => left >= right,
        Binary::Equal | Binary::Is => left == right,
        Binary::NotEqual | Binary::Isnt => left != right,
        _ => return None,
    })
}

fn list_key(tag: u8, count: usize, out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&count.to_le_bytes());
}

/// As [`Ir::key`], for a constant.
pub(super) fn value_key(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Undefined => out.push(b'U'),
        Value::Bool(value) => out.push(if *value { b'T' } else { b'F' }),
        Value::Int(value) => {
            out.push(b'I');
            out.extend_from_slice(&value.to_le_bytes());
        }
        Value::Real(value) => {
            out.push(b'R');
            out.extend_from_slice(&value.to_bits().to_le_bytes());
        }
        Value::Str(text) => {
            list_key(b'S', text.len(), out);
            out.extend_from_slice(text.as_bytes());
        }
        // Constants are scalars, so nothing else comes here.
        _ => out.push(b'E'),
    }
}

/// A value as a constant; `None` if it is no scalar.
pub(super) fn scalar(value: &Val<'_>) -> Option<Value> {
    match value {
        Val::Undefined => Some(Value::Undefined),
        Val::Error => Some(Value::Error),
        Val::Bool(value) => Some(Value::Bool(*value)),
        Val::Int(value) => Some(Value::Int(*value)),
        Val::Real(value) => Some(Value::Real(*value)),
        Val::Str(text) => Some(Value::Str(text.shared())),
        Val::List(_) | Val::Ad(_) | Val::AbsTime(_) | Val::RelTime(_) => None,
    }
}

/// The truth of a comparison of two constants.
pub(super) fn compare(op: Binary, left: &Value, right: &Value) -> Tri {
    if let (Value::Int(left), Value::Int(right)) = (left, right)
        && let Some(truth) = compare_integers(op, *left, *right)
    {
        return Tri::from(truth);
    }
    Tri::of(&binary(op, &Val::of(left), &Val::of(right)))
}

/// The value as a number, as [`Value::as_number`] converts it.
#[allow(clippy::cast_precision_loss, reason = "ranks are doubles")]
pub(super) fn number(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Bool(value) => Some(f64::from(u8::from(*value))),
        Val::Int(value) => Some(*value as f64),
        Val::Real(value) => Some(*value),
        _ => None,
    }
}
