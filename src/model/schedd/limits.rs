//! The concurrency limits that a submitted job takes.

use super::submit::{Submission, expression};
use crate::pool::Problem;
use crate::pool::limits::{CONCURRENCY_LIMITS, Wants};
use classad::Ad;

/// Puts `ConcurrencyLimits` into the job's ad. Invalid names are refused, as by `condor_submit`, since the negotiator
/// would ignore them.
pub(super) fn put_into(ad: &mut Ad, submission: &Submission, problems: &mut Vec<Problem>) {
    let list = submission.limits.join(",");
    if let Err(error) = Wants::parse_strictly(&list) {
        problems.push(Problem {
            reason: "InvalidConcurrencyLimit",
            field: "spec.concurrencyLimits".to_owned(),
            message: error.to_string(),
        });
    } else if !list.is_empty() {
        ad.set(CONCURRENCY_LIMITS, list);
    }
    let field = "spec.concurrencyLimitsExpr";
    let Some(expr) = expression(field, submission.limits_expr.as_deref(), problems) else { return };
    if !submission.limits.is_empty() {
        problems.push(Problem {
            reason: "InvalidConcurrencyLimit",
            field: field.to_owned(),
            message: "spec.concurrencyLimits is given too; give one of the two".to_owned(),
        });
    }
    ad.insert(CONCURRENCY_LIMITS, expr);
}
