//! A slot's consumption policy in its ad: `Consumption<R>`, `NumClaims`, and the limits that go by them.
//!
//! Source: HTCondor 25.14.1's startd, in `tests/oracle/devices.json`.

use super::constant;
use crate::pool::Machine;
use crate::pool::slot_types::ConsumptionPolicy;
use classad::{Ad, Expr};

/// Puts what matches consume into a slot's ad.
pub(super) fn set(ad: &mut Ad, machine: &Machine, policy: &ConsumptionPolicy) {
    let custom = machine.total.by_classad_name();
    policy.publish(ad, ["Cpus", "Memory", "Disk"].into_iter().chain(custom.keys().map(String::as_str)));
    if machine.total.disk_kib == 0 {
        // Disk is not managed where the node reports none.
        ad.insert("ConsumptionDisk", Expr::literal(0_i64));
    }
}

/// Has a partitionable slot's limits go by what matches consume.
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
    ad.insert("WithinResourceLimits", constant(&clauses.join(" && ")));
    ad.set("NumClaims", policy.num_claims(cpus));
}
