//! The order of slots.

use std::cmp::Ordering;

use classad::{Ad, Env, Expr, Value};

/// Compares texts in which numbers count by their value: slot1_9 comes before slot1_10.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (a.split_first(), b.split_first()) {
            (None, None) => return Ordering::Equal,
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some((x, _)), Some((y, _))) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let ((left, rest_a), (right, rest_b)) = (number(a), number(b));
                let order = left.len().cmp(&right.len()).then_with(|| left.cmp(right));
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (rest_a, rest_b);
            }
            (Some((x, rest_a)), Some((y, rest_b))) => {
                if x != y {
                    return x.cmp(y);
                }
                (a, b) = (rest_a, rest_b);
            }
        }
    }
}

/// The digits at the beginning, without zeros before them, and the rest.
fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(len).unwrap_or((text, &[]));
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    (digits.get(zeros..).unwrap_or_default(), rest)
}

/// How the ads of a list are sorted.
#[derive(Clone, Debug, Default)]
pub(super) enum Order {
    /// By machine, then by name.
    #[default]
    Machine,
    /// As they come.
    AsGiven,
    /// By the values of these expressions.
    By(Vec<Expr>),
}

impl Order {
    /// Adds an expression to sort by; `no`, `none`, `false` or `0` keeps the order in which the ads come.
    pub(super) fn add(&mut self, text: &str) -> Result<(), String> {
        if ["no", "none", "false", "0"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
            *self = Self::AsGiven;
            return Ok(());
        }
        let expr = Expr::parse_old(text).map_err(|error| error.to_string())?;
        match self {
            Self::By(exprs) => exprs.push(expr),
            _ => *self = Self::By(vec![expr]),
        }
        Ok(())
    }

    pub(super) fn sort(&self, ads: &mut [&Ad], env: &Env) {
        let text =
            |ad: &Ad, name: &str| ad.eval_attr(name, None, env).as_str().unwrap_or_default().to_owned();
        match self {
            Self::AsGiven => {}
            Self::Machine => {
                let mut keyed: Vec<_> =
                    ads.iter().map(|ad| ((text(ad, "Machine"), text(ad, "Name")), *ad)).collect();
                keyed.sort_by(|((machine, name), _), ((other, other_name), _)| {
                    natural(machine, other).then_with(|| natural(name, other_name))
                });
                put_back(ads, keyed);
            }
            Self::By(exprs) => {
                let values = |ad: &Ad| -> Vec<Value> {
                    exprs.iter().map(|expr| expr.eval(Some(ad), None, env)).collect()
                };
                let mut keyed: Vec<_> = ads.iter().map(|ad| (values(ad), *ad)).collect();
                keyed.sort_by(|(a, _), (b, _)| {
                    let orders = a.iter().zip(b).map(|(a, b)| compared(a, b));
                    orders.fold(Ordering::Equal, Ordering::then)
                });
                put_back(ads, keyed);
            }
        }
    }
}

fn put_back<'a, K>(ads: &mut [&'a Ad], keyed: Vec<(K, &'a Ad)>) {
    for (place, (_, ad)) in ads.iter_mut().zip(keyed) {
        *place = ad;
    }
}

/// The order of two values: other values come first, then numbers by value, then texts naturally.
fn compared(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => natural(a, b),
        (Value::Str(_), _) => Ordering::Greater,
        (_, Value::Str(_)) => Ordering::Less,
        _ => match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_by_value() {
        for (less, more) in [
            ("slot1_9@a", "slot1_10@a"),
            ("slot1@a", "slot1_1@a"),
            ("a", "b"),
            ("a2", "a10"),
            ("a9", "a010"),
            ("", "a"),
            ("backfill1", "slot1"),
        ] {
            assert_eq!(natural(less, more), Ordering::Less, "{less} {more}");
            assert_eq!(natural(more, less), Ordering::Greater, "{less} {more}");
        }
        assert_eq!(natural("a01", "a1"), Ordering::Equal);
    }
}
