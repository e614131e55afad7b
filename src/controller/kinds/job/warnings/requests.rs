//! Warns about amounts and concurrency limits.

use api::HTCJob;
use model::pool::Problem;

use super::warning;

/// The least memory in bytes that a job can mean: with less, not even a shell starts.
const LEAST_AMOUNT: i64 = 1 << 20;

/// Amounts without a unit are bytes in Kubernetes. In HTCondor they are MiB of memory, and KiB of disk.
pub(super) fn of_amounts(job: &HTCJob) -> impl Iterator<Item = Problem> {
    let requests = &job.spec.requests;
    let amounts = [("memory", &requests.memory, "Mi"), ("disk", &requests.disk, "Ki")];
    amounts.into_iter().filter_map(|(field, amount, unit)| {
        let bytes: i64 = amount.as_ref()?.0.parse().ok()?;
        let message =
            format!("{bytes} without a unit means {bytes} bytes, as Kubernetes counts; write {bytes}{unit}");
        let field = format!("spec.requests.{field}");
        (1..LEAST_AMOUNT).contains(&bytes).then(|| warning("AmountInBytes", field, message))
    })
}

/// Items of the concurrency limits that are several limits, and amounts that are no numbers above 0: the job takes one unit, as in
/// HTCondor.
pub(super) fn of_limits(job: &HTCJob) -> Vec<Problem> {
    let told = |reason, message| warning(reason, "spec.concurrencyLimits".into(), message);
    let are_several = |limit: &String| {
        let several = limit.split([',', ' ', '\t']).filter(|part| !part.is_empty()).nth(1).is_some();
        several
            .then(|| told("LimitName", format!("'{limit}' is several limits; give each an item of its own")))
    };
    let amount_is_wrong = |limit: &String| {
        let (_, amount) = limit.split_once(':')?;
        let is_right = amount.trim().parse::<f64>().is_ok_and(|amount| amount.is_finite() && amount > 0.0);
        let message = format!("{limit} takes one unit: expected a number above 0 behind the colon");
        (!is_right).then(|| told("LimitAmount", message))
    };
    job.spec
        .concurrency_limits
        .iter()
        .filter_map(|limit| are_several(limit).or_else(|| amount_is_wrong(limit)))
        .collect()
}
