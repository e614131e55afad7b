//! A slot's consumption policy in its ad: `Consumption<R>`, `NumClaims`, and a `WithinResourceLimits` that reads them.
//!
//! Source: HTCondor 25.14.1's startd, in `tests/oracle/devices.json`.

use super::shared;
use crate::pool::Machine;
use crate::pool::slot_types::ConsumptionPolicy;
use classad::{Ad, Expr};

/// Puts `Consumption<R>` into a slot's ad.
pub(super) fn set(ad: &mut Ad, machine: &Machine, policy: &ConsumptionPolicy) {
    let custom = machine.total.by_classad_name();
    policy.publish(ad, ["Cpus", "Memory", "Disk"].into_iter().chain(custom.keys().map(String::as_str)));
    if !machine.manages_disk() {
        // If the node reports no disk, disk is not managed.
        ad.insert("ConsumptionDisk", Expr::literal(0_i64));
    }
}

/// Sets a partitionable slot's `WithinResourceLimits` so that it compares what a match would consume, and `NumClaims`.
pub(super) fn set_limits(ad: &mut Ad, machine: &Machine, policy: &ConsumptionPolicy, cpus: i64) {
    let custom = machine.total.by_classad_name();
    let names = ["Cpus", "Memory", "Disk"].into_iter().chain(custom.keys().map(String::as_str));
    let clause = |name: &str| {
        format!(
            "ifThenElse(TARGET._cp_orig_Request{name} isnt UNDEFINED, TARGET.Request{name} <= MY.{name}, \
             MY.Consumption{name} <= MY.{name})"
        )
    };
    let clauses: Vec<String> = names.map(clause).collect();
    ad.insert("WithinResourceLimits", shared(&clauses.join(" && ")));
    ad.set("NumClaims", policy.num_claims(cpus));
}
