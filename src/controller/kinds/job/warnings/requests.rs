//! Warns about amounts and concurrency limits.

use api::HTCJob;
use model::pool::Problem;
use model::pool::units::counted;

use super::warning;
use crate::convert::ceil_units;

/// The least amount in bytes that a job can mean: with less memory, not even a shell starts.
const LEAST_AMOUNT: i64 = 1 << 20;

/// Amounts that are far less than their author means: an amount without a unit is bytes in Kubernetes, and `m` is a thousandth.
/// In HTCondor, an amount without a unit is MiB of memory and KiB of disk, and `m` is MiB.
pub(super) fn of_amounts(job: &HTCJob) -> impl Iterator<Item = Problem> {
    let requests = &job.spec.requests;
    let amounts = [
        ("memory", &requests.memory, "Mi"),
        ("disk", &requests.disk, "Ki"),
        ("gpusMinimumMemory", &requests.gpus_minimum_memory, "Mi"),
    ];
    amounts.into_iter().filter_map(|(field, amount, unit)| {
        let amount = amount.as_ref()?;
        let bytes = ceil_units(amount, 1).ok()?;
        let text = amount.0.trim();
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let suffix = text.get(number.len()..).unwrap_or_default();
        // KiB are what HTCondor counts disk in, so that a job may well ask for some.
        let is_meant = field == "disk" && matches!(suffix, "k" | "Ki");
        if is_meant || !(1..LEAST_AMOUNT).contains(&bytes) {
            return None;
        }
        let means = format!("{text} means {}", counted(bytes.unsigned_abs(), "byte"));
        let message = match suffix {
            "" if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("{text} without a unit means {bytes} bytes, as Kubernetes counts; write {text}{unit}")
            }
            "m" => format!("{means}: m is a thousandth in Kubernetes; write {number}Mi"),
            "k" => format!("{means}: k is a thousand in Kubernetes; write {number}Mi if MiB are meant"),
            _ => format!("{means}, which is less than 1 MiB; write the amount in Mi or Gi"),
        };
        Some(warning("AmountInBytes", format!("spec.requests.{field}"), message))
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
