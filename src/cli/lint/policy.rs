//! NodePolicies: the typed fields, and the configuration text that one may carry.

use super::object::{Object, decode};
use super::report::{Report, Source};
use crate::api::NodePolicy;
use crate::controller::translate;
use crate::pool::Problem;

/// What the operator would say of a policy.
pub fn check(object: &Object<'_>, report: &mut Report) -> Vec<Problem> {
    decode::<NodePolicy>(object, report, object.value.clone())
        .and_then(|policy| translate::node_policy(&policy).config.err())
        .unwrap_or_default()
}

/// Checks a file of configuration text.
pub fn text(_source: &Source, _report: &mut Report) {}
