//! The order in which groups have their turns: `GROUP_SORT_EXPR`.

use super::allocation::Allocation;
use classad::{Ad, Env, Expr};

/// The value of the expression for a group: the group with the least value comes first. A group for which the value is not a
/// number comes last.
pub(super) fn sort_key(expr: Option<&Expr>, env: &Env, name: &str, given: &Allocation, used: f64) -> f64 {
    let ad = Ad::new()
        .with("AccountingGroup", name)
        .with("GroupQuota", given.quota)
        .with("GroupResourcesInUse", used)
        .with("GroupResourcesAllocated", given.allocated);
    let said = expr.and_then(|expr| expr.eval(Some(&ad), None, env).as_number());
    said.filter(|key| !key.is_nan()).unwrap_or(f64::from(f32::MAX))
}
