//! The output of cron jobs in the slots' ads; and slots that a cron job has found broken.
//!
//! Source: the manual, "Startd Cron and Schedd Cron". HTCondor lets a cron job replace any attribute but those of [`ADDRESS`]. Here
//! a job cannot replace what the machine itself has: matching relies on that.

use std::sync::Arc;

use super::{FALSE, unclaimed_slot_ad};
use crate::pool::{Machine, MachineSlot, SlotOutput, StartdConfig};
use classad::{Ad, Env, Expr, Value};

/// The attributes by which output says into which slots' ads it goes. They are never attributes of the slots.
const ADDRESS: [&str; 5] = ["Name", "SlotId", "SlotMergeConstraint", "SlotName", "SlotTypeId"];

/// Attributes that slots have, some of them only at times.
const OWN: &[&str] = &[
    "AcceptedWhileDraining",
    "AccountingGroup",
    "Activity",
    "Arch",
    "BlockReadKbytes",
    "BlockReads",
    "BlockWriteKbytes",
    "BlockWrites",
    "ClockDay",
    "ClockMin",
    "CondorLoadAvg",
    "ConsoleIdle",
    "CpuBusyTime",
    "CpuIsBusy",
    "Cpus",
    "CpusUsage",
    "CurrentRank",
    "CurrentTime",
    "Disk",
    "DiskUsage",
    "Draining",
    "DrainingDeadline",
    "DrainingRequestId",
    "DrainReason",
    "DSlotID",
    "DynamicSlot",
    "EnteredCurrentActivity",
    "EnteredCurrentState",
    "FileSystemDomain",
    "GlobalJobId",
    "GPUs",
    "ImageSize",
    "IsOwner",
    "JobId",
    "JobStart",
    "JobUniverse",
    "KeyboardIdle",
    "KFlops",
    "LastBenchmark",
    "LastDrainStartTime",
    "LastDrainStopTime",
    "LoadAvg",
    "Machine",
    "MachineMaxVacateTime",
    "MachineResources",
    "MatchedConcurrencyLimits",
    "MaxJobRetirementTime",
    "Memory",
    "MemoryUsage",
    "Mips",
    "MyCurrentTime",
    "MyType",
    "NiceUser",
    "NodeLabels",
    "NodeResources",
    "NumDynamicSlots",
    "OpSys",
    "ParentSlotId",
    "PartitionableSlot",
    "PslotRollupInformation",
    "Rank",
    "RemoteAutoregroup",
    "RemoteGroup",
    "RemoteNegotiatingGroup",
    "RemoteOwner",
    "RemoteScheddName",
    "RemoteUser",
    "Requirements",
    "ResidentSetSize",
    "RetirementTimeRemaining",
    "SlotType",
    "SlotWeight",
    "Start",
    "State",
    "TargetType",
    "TotalClaimRunTime",
    "TotalClaimSuspendTime",
    "TotalCondorLoadAvg",
    "TotalCpus",
    "TotalDisk",
    "TotalJobRunTime",
    "TotalJobSuspendTime",
    "TotalLoadAvg",
    "TotalMachineDrainingBadput",
    "TotalMachineDrainingUnclaimedTime",
    "TotalMemory",
    "TotalSlots",
    "TotalVirtualMemory",
    "UidDomain",
    "VirtualMemory",
];

/// Whether slots have an attribute of this name by themselves, so that no cron job may set it.
pub fn is_own(name: &str) -> bool {
    // PreemptingOwner and the like are there while another claim waits, ExpectedMachineGracefulDrainingBadput while jobs run.
    let starts =
        |prefix: &str| name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
    is_among(OWN, name) || starts("Preempting") || starts("ExpectedMachine") || starts("TotalSlot")
}

fn is_among(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether a cron job sets this attribute of all slots.
pub(super) fn says(machine: &Machine, name: &str) -> bool {
    let report = machine.report.iter().flat_map(|report| &report.attributes);
    !is_own(name) && report.into_iter().any(|(said, _)| said.eq_ignore_ascii_case(name))
}

/// Adds attributes to the ad that all slots share, except those that the machine itself has.
pub(super) fn add(ad: &mut Ad, attributes: &[(Arc<str>, Expr)]) {
    for (name, expr) in attributes {
        if !is_own(name) && !is_among(&ADDRESS, name) && ad.get(name).is_none() {
            ad.insert(&**name, expr.clone());
        }
    }
}

/// Finishes the ad of a slot: adds what cron jobs say about this slot alone, and refuses jobs if the slot is broken.
pub(super) fn finish(ad: &mut Ad, machine: &Machine, config: &StartdConfig, id: u32) {
    let Some(report) = &machine.report else { return };
    let policy = machine.slot_config(config, id);
    // The names that cron jobs or STARTD_ATTRS have put into the ad; all other names are the machine's.
    let mut added: Vec<&str> = Vec::new();
    for output in &report.slot_ads {
        if !goes_into(output, ad, id) {
            continue;
        }
        for (name, expr) in &output.attributes {
            let replaces = says(machine, name)
                || is_among(&added, name)
                || policy.attributes.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
            let own = is_own(name) || is_among(&ADDRESS, name);
            if !own && (replaces || ad.get(name).is_none()) {
                ad.insert(&**name, expr.clone());
                added.push(name);
            }
        }
    }
    if read_broken(ad).is_some() {
        ad.insert("Requirements", FALSE.clone());
    }
}

/// Whether output goes into the ad of the slot with this number. If the output has several of the attributes of [`ADDRESS`], the
/// first in the manual's order decides: `SlotMergeConstraint`, `SlotName` or `Name`, `SlotTypeId`, `SlotId`. If the output has
/// none of them, it goes into all ads.
pub fn goes_into(output: &SlotOutput, slot: &Ad, id: u32) -> bool {
    if !output.slots.is_empty() && !output.slots.contains(&id) {
        return false;
    }
    let mut own = Ad::new();
    for (name, expr) in &output.attributes {
        own.insert(&**name, expr.clone());
    }
    let env = Env::at(0);
    if own.get("SlotMergeConstraint").is_some() {
        return own.eval_attr("SlotMergeConstraint", Some(slot), &env).as_bool_equiv() == Some(true);
    }
    let text = |ad: &Ad, name: &str| ad.eval_attr(name, None, &env).as_str().map(str::to_owned);
    let named = ["SlotName", "Name"].iter().find_map(|name| text(&own, name)).filter(|name| !name.is_empty());
    if let (Some(start), Some(name)) = (named, text(slot, "Name")) {
        return name.starts_with(&start);
    }
    let number = |ad: &Ad, name: &str| match ad.eval_attr(name, None, &env) {
        Value::Int(number) => Some(number),
        _ => None,
    };
    if let (Some(wanted), Some(slot_type)) = (number(&own, "SlotTypeId"), number(slot, "SlotTypeID")) {
        return wanted == slot_type;
    }
    number(&own, "SlotId").is_none_or(|wanted| wanted == i64::from(id))
}

/// Why a slot is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// `SlotBrokenCode`; 0 if the cron job gives none.
    pub code: i64,
    /// `SlotBrokenReason`.
    pub reason: String,
}

/// Why a machine slot is broken, as a cron job says; none if it is not. A broken slot takes no jobs. Procs that run there go on.
pub fn broken(machine: &Machine, slot: &MachineSlot, config: &StartdConfig) -> Option<Broken> {
    let report = machine.report.as_ref()?;
    let said = report.attributes.iter().chain(report.slot_ads.iter().flat_map(|output| &output.attributes));
    let mut said = said.filter(|(name, _)| name.eq_ignore_ascii_case("SlotBrokenReason"));
    said.next()?;
    read_broken(&unclaimed_slot_ad(machine, slot, config))
}

/// Reads `SlotBrokenReason` and `SlotBrokenCode`. As in `condor_status -broken`, only a reason that is not empty counts.
fn read_broken(ad: &Ad) -> Option<Broken> {
    ad.get("SlotBrokenReason")?;
    let env = Env::at(0);
    let value = ad.eval_attr("SlotBrokenReason", None, &env);
    let reason = value.as_str().filter(|reason| !reason.is_empty())?.to_owned();
    let code = match ad.eval_attr("SlotBrokenCode", None, &env) {
        Value::Int(code) => code,
        _ => 0,
    };
    Some(Broken { code, reason })
}

#[cfg(test)]
mod tests;
