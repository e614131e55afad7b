//! The part of the ad that all slots of a machine share: the node's facts, what its agent reports, the clock, a drain.

use std::sync::LazyLock;

use crate::pool::{DrainedFor, Draining, Machine, NODE_RESOURCES, ReportFacts, Resources, UnclaimedTime};
use classad::{Ad, Expr, Value};

use super::{FALSE, REQUIREMENTS, constant, cron, host, set_resources, shared};

static NOW: LazyLock<Expr> = LazyLock::new(|| constant("time()"));
/// The default of `MachineMaxVacateTime`, as HTCondor shows it.
static TEN_MINUTES: LazyLock<Expr> = LazyLock::new(|| constant("10 * 60"));

/// Makes the shared ad.
pub(super) fn make(machine: &Machine) -> Ad {
    let facts = &machine.facts;
    let whole = facts.allocatable.whole();
    let mut ad = Ad::new();
    ad.set("MyType", "Machine");
    ad.set("TargetType", "Job");
    // One literal for four attributes: a pool may have thousands of machines.
    let name = Expr::literal(facts.name.as_str());
    ad.insert("Machine", name.clone());
    ad.set("Arch", htcondor_arch(&facts.arch));
    ad.set("OpSys", &*facts.os.to_ascii_uppercase());
    host::set(&mut ad, &name, &facts.os, &facts.arch, &facts.system);
    ad.insert("UidDomain", name.clone());
    ad.insert("FileSystemDomain", name);
    ad.insert("MyCurrentTime", NOW.clone());
    // These defaults hold until a job runs, a claim waits or a policy sets the attributes.
    ad.set("CurrentRank", 0.0);
    ad.set("RetirementTimeRemaining", 0_i64);
    ad.insert("MachineMaxVacateTime", TEN_MINUTES.clone());
    set_resources(&mut ad, "Detected", &detected(machine, &whole));
    set_resources(&mut ad, "Total", &machine.total);
    set_foreign(&mut ad, &whole, &machine.total);
    ad.set("MachineResources", &*machine_resources(&machine.total));
    ad.insert("NodeLabels", Expr::literal(Value::from(labels(machine))));
    set_node_resources(&mut ad, &machine.total);
    ad.insert("WithinResourceLimits", within_resource_limits(machine));
    ad.insert("Requirements", REQUIREMENTS.clone());
    set_clock(&mut ad, machine.utc_offset);
    // If the agent is silent, its benchmarks still count, but not the load that it last sensed.
    if let Some(report) = &machine.report {
        set_report(&mut ad, report);
    }
    if let (Some(sensed), Some(report)) = (&machine.sensed, &machine.report) {
        ad.set("TotalLoadAvg", sensed.owner_load + report.pool_load);
        ad.set("TotalCondorLoadAvg", report.pool_load);
    }
    if let Some(draining) = &machine.draining {
        set_draining(&mut ad, draining);
    }
    set_drains(&mut ad, machine);
    for (name, expr) in machine.crossed.iter() {
        ad.insert(&**name, expr.clone());
    }
    // Last, so that the agent's cron jobs replace nothing that the machine has.
    if let Some(report) = &machine.report {
        cron::add(&mut ad, &report.attributes);
    }
    ad
}

/// The resources of `Detected<R>`: what the node has, and what its policy declares. The manual says: "this attribute is
/// currently equivalent to `Total<name>`".
fn detected(machine: &Machine, whole: &Resources) -> Resources {
    let mut detected = whole.clone();
    for (name, quantity) in &machine.declared {
        if !detected.extended.contains_key(name) {
            detected.extended.insert(name.clone(), quantity.count());
        }
    }
    detected
}

/// Sets `TotalForeign<R>`: how much pods outside the pool take of the node, in whole units, rounded up. No default expression
/// reads these attributes; a policy's `PREEMPT` may.
fn set_foreign(ad: &mut Ad, whole: &Resources, total: &Resources) {
    let mut foreign = whole.clone();
    foreign.subtract(total);
    set_resources(ad, "TotalForeign", &foreign.floor_at_zero());
}

/// Sets `ClockMin` and `ClockDay` to expressions over `time()`.
fn set_clock(ad: &mut Ad, utc_offset: i32) {
    let local = format!("(time() + {utc_offset})");
    ad.insert("ClockMin", shared(&format!("{local} % 86400 / 60")));
    // The first day of the epoch was a Thursday.
    ad.insert("ClockDay", shared(&format!("({local} / 86400 + 4) % 7")));
}

fn set_report(ad: &mut Ad, report: &ReportFacts) {
    if let Some(benchmarks) = &report.benchmarks {
        ad.set("Mips", benchmarks.mips);
        ad.set("KFlops", benchmarks.kflops);
    }
    // RUNBENCHMARKS reads LastBenchmark, and 0 means that the benchmarks have never run.
    ad.set("LastBenchmark", report.benchmarks.map_or(0, |benchmarks| benchmarks.at.secs()));
    if let Some(swap) = report.virtual_memory_kib {
        ad.set("VirtualMemory", swap);
        ad.set("TotalVirtualMemory", swap);
    }
}

/// Sets what drains of the machine have cost, and when they started and stopped.
fn set_drains(ad: &mut Ad, machine: &Machine) {
    let mut cost = machine.drains.cost;
    if let Some(draining) = &machine.draining {
        cost.add(draining.cost());
    }
    let grows = machine.draining.as_ref().map(|draining| draining.unclaimed).filter(|idle| idle.cpus > 0);
    if cost.badput > 0 {
        ad.set("TotalMachineDrainingBadput", cost.badput);
    }
    match grows {
        // The cost grows as long as drained CPUs are unclaimed.
        Some(UnclaimedTime { cpus, since, .. }) => {
            let text = format!("{} + {cpus} * (time() - {})", cost.unclaimed, since.secs());
            ad.insert("TotalMachineDrainingUnclaimedTime", constant(&text));
        }
        None if cost.unclaimed > 0 => ad.set("TotalMachineDrainingUnclaimedTime", cost.unclaimed),
        None => {}
    }
    if let Some(started) = machine.drains.started {
        ad.set("LastDrainStartTime", started.secs());
    }
    if let Some(stopped) = machine.drains.stopped {
        ad.set("LastDrainStopTime", stopped.secs());
    }
}

fn set_draining(ad: &mut Ad, draining: &Draining) {
    ad.set("Draining", true);
    ad.set("DrainReason", &*draining.reason);
    if let Some(deadline) = draining.deadline {
        ad.set("DrainingDeadline", deadline.secs());
    }
    match &draining.why {
        DrainedFor::Request(request) => ad.set("DrainingRequestId", &**request),
        DrainedFor::Cordon => ad.set("DrainingRequestId", "cordon"),
    }
    if draining.start.is_none() {
        ad.insert("Requirements", FALSE.clone());
    }
}

fn machine_resources(total: &Resources) -> String {
    let mut names = vec!["Cpus".to_owned(), "Memory".to_owned(), "Disk".to_owned()];
    names.extend(total.by_classad_name().into_keys());
    names.join(" ")
}

/// Says which Kubernetes resource each `ClassAd` name counts.
fn set_node_resources(ad: &mut Ad, total: &Resources) {
    let mut names = Ad::new();
    for name in total.by_classad_name().into_keys() {
        if let Some(resource) = total.called(&name) {
            names.set(&*name, &**resource);
        }
    }
    if names.iter().next().is_some() {
        ad.insert(NODE_RESOURCES, Expr::literal(Value::from(names)));
    }
}

/// The node's labels as a nested ad, for expressions such as `TARGET.NodeLabels.'topology.kubernetes.io/zone'`.
fn labels(machine: &Machine) -> Ad {
    let mut ad = Ad::new();
    for (key, value) in machine.facts.labels.iter() {
        ad.set(key.as_str(), value.as_str());
    }
    ad
}

/// `HTCondor`'s name of an architecture.
pub(in crate::startd) fn htcondor_arch(arch: &str) -> &str {
    match arch {
        "amd64" => "X86_64",
        "386" => "INTEL",
        "arm64" => "aarch64",
        other => other,
    }
}

/// `WithinResourceLimits`: the clause by which a slot refuses jobs that request more than the slot has. Disk is left out if the
/// node reports no ephemeral storage, because disk is not managed there.
fn within_resource_limits(machine: &Machine) -> Expr {
    let mut clauses = vec![
        "MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus".to_owned(),
        "MY.Memory > 0 && TARGET.RequestMemory <= MY.Memory".to_owned(),
    ];
    if machine.manages_disk() {
        clauses.push("MY.Disk > 0 && TARGET.RequestDisk <= MY.Disk".to_owned());
    }
    for name in machine.total.by_classad_name().into_keys() {
        clauses.push(format!("(TARGET.Request{name} is UNDEFINED || MY.{name} >= TARGET.Request{name})"));
    }
    shared(&clauses.join(" && "))
}
