//! The attributes of slots and jobs, each with the ads that have it.

use Side::{Either, Jobs, Slots};

/// The ads that have an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Every slot may have the attribute, and no job unless its author adds one of the same name.
    Slots,
    /// Jobs have the attribute, and no slot unless an admin publishes one of the same name.
    Jobs,
    /// The name does not tell: slots and jobs may have the attribute, or some of them under conditions, or it is a word for ads.
    Either,
}

/// The attributes of machines and jobs that expressions look at most.
const WELL_KNOWN: [(&str, Side); 62] = [
    ("AccountingGroup", Either),
    ("Activity", Slots),
    ("Arch", Slots),
    ("AvailableGPUs", Slots),
    ("Capability", Either),
    ("ClusterId", Jobs),
    ("ConcurrencyLimits", Either),
    ("CondorLoadAvg", Slots),
    ("ConsoleIdle", Slots),
    ("Cpus", Slots),
    ("CudaVersion", Either),
    ("CurrentRank", Slots),
    ("CurrentTime", Either),
    ("DetectedCpus", Slots),
    ("DetectedGPUs", Slots),
    ("DetectedMemory", Slots),
    ("DeviceName", Either),
    ("Disk", Slots),
    ("DriverVersion", Either),
    ("EnteredCurrentActivity", Slots),
    ("EnteredCurrentState", Slots),
    ("FileSystemDomain", Either),
    ("GlobalMemoryMb", Either),
    ("GPUs", Slots),
    ("GroupQuota", Either),
    ("GroupResourcesAllocated", Either),
    ("GroupResourcesInUse", Either),
    ("ImageSize", Either),
    ("IsOwner", Either),
    ("JobPrio", Jobs),
    ("JobStatus", Jobs),
    ("JobUniverse", Either),
    ("KeyboardIdle", Slots),
    ("KFlops", Slots),
    ("LoadAvg", Slots),
    ("Machine", Slots),
    ("Memory", Slots),
    ("Mips", Slots),
    ("NodeLabels", Slots),
    ("NodeResources", Slots),
    ("OpSys", Slots),
    ("OpSysAndVer", Slots),
    ("Owner", Jobs),
    ("PartitionableSlot", Slots),
    ("RemoteGroup", Either),
    ("RemoteOwner", Either),
    ("RemoteUser", Either),
    ("RemoteUserPrio", Either),
    ("RequestCpus", Jobs),
    ("RequestDisk", Jobs),
    ("RequestGPUs", Jobs),
    ("RequestMemory", Jobs),
    ("SlotType", Slots),
    ("SlotWeight", Slots),
    ("SubmitterGroup", Either),
    ("SubmitterUserPrio", Either),
    ("TotalCpus", Slots),
    ("TotalDisk", Slots),
    ("TotalGPUs", Slots),
    ("TotalLoadAvg", Slots),
    ("TotalMemory", Slots),
    ("UidDomain", Either),
];

/// Further attributes of machines and jobs, and the words for ads. No misspelt name is taken for any of these.
const FURTHER: [(&str, Side); 109] = [
    ("Absent", Either),
    ("AcctGroup", Jobs),
    ("AcctGroupUser", Either),
    ("BlockReadKbytes", Either),
    ("BlockReads", Either),
    ("BlockWriteKbytes", Either),
    ("BlockWrites", Either),
    ("ClockDay", Slots),
    ("ClockMin", Slots),
    ("CompletionDate", Either),
    ("ContainerImage", Either),
    ("CpuBusyTime", Slots),
    ("CpuIsBusy", Either),
    ("CpuPressure", Either),
    ("CpusUsage", Either),
    ("CumulativeSuspensionTime", Either),
    ("DiskUsage", Either),
    ("DockerImage", Either),
    ("Draining", Either),
    ("DSlotID", Either),
    ("DynamicSlot", Slots),
    ("EnteredCurrentStatus", Jobs),
    ("ExitBySignal", Either),
    ("ExitCode", Either),
    ("ExitSignal", Either),
    ("GlobalJobId", Either),
    ("GPUsAverageUsage", Either),
    ("GPUsMemoryUsage", Either),
    ("HasContainer", Either),
    ("HasDocker", Either),
    ("HoldReason", Either),
    ("HoldReasonCode", Either),
    ("HoldReasonSubCode", Either),
    ("Id", Either),
    ("IoPressure", Either),
    ("IsAccountingGroup", Either),
    ("JobCurrentStartDate", Either),
    ("JobCurrentStartExecutingDate", Either),
    ("JobId", Either),
    ("JobName", Either),
    ("JobNamespace", Either),
    ("JobRunCount", Jobs),
    ("JobStart", Either),
    ("JobStartDate", Either),
    ("JobStarts", Either),
    ("JobState", Either),
    ("KillSigTimeout", Either),
    ("LastBenchmark", Either),
    ("LastMatchTime", Either),
    ("LastRemoteHost", Either),
    ("LastRemoteWallClockTime", Either),
    ("LastVacateTime", Either),
    ("MachineMaxVacateTime", Either),
    ("MachineResources", Either),
    ("MatchedConcurrencyLimits", Either),
    ("MaxJobRetirementTime", Either),
    ("MemoryPressure", Either),
    ("MemoryUsage", Either),
    ("My", Either),
    ("MyCurrentTime", Either),
    ("MyType", Either),
    ("Name", Either),
    ("NiceUser", Either),
    ("NumClaims", Either),
    ("NumDynamicSlots", Either),
    ("NumHolds", Either),
    ("NumJobCompletions", Either),
    ("NumJobMatches", Either),
    ("NumJobStarts", Jobs),
    ("NumShadowStarts", Either),
    ("OpSysLegacy", Either),
    ("OpSysLongName", Either),
    ("OpSysMajorVer", Either),
    ("OpSysName", Either),
    ("OpSysShortName", Either),
    ("OpSysVer", Either),
    ("Other", Either),
    ("Parent", Either),
    ("PreemptingRank", Either),
    ("ProcId", Jobs),
    ("QDate", Jobs),
    ("Rank", Either),
    ("RemoteScheddName", Either),
    ("RemoteWallClockTime", Either),
    ("RemoveReason", Either),
    ("Requirements", Either),
    ("ResidentSetSize", Either),
    ("RetirementTimeRemaining", Either),
    ("Self", Either),
    ("ShadowBday", Either),
    ("SlotID", Slots),
    ("SlotTypeID", Either),
    ("Start", Either),
    ("State", Slots),
    ("Submitter", Either),
    ("Target", Either),
    ("TargetType", Either),
    ("TransferInputSizeMB", Either),
    ("User", Either),
    ("UtsnameMachine", Either),
    ("UtsnameNodename", Either),
    ("UtsnameRelease", Either),
    ("UtsnameSysname", Either),
    ("VacateReason", Either),
    ("VacateReasonCode", Either),
    ("VacateReasonSubCode", Either),
    ("VirtualMachineID", Either),
    ("VirtualMemory", Either),
    ("WithinResourceLimits", Either),
];

/// The beginnings of names of attributes that are made of a resource's name.
const OF_RESOURCES: [&str; 8] =
    ["Assigned", "Available", "Consumption", "Detected", "GPUs_", "Request", "Require", "Total"];

/// Whether a machine's ad or a job's may have an attribute of this name, though nobody adds any. The words for ads, such as MY and
/// TARGET, count too.
pub fn is_known(name: &str) -> bool {
    let begins = |with: &&str| name.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    side_of(name).is_some() || OF_RESOURCES.iter().any(begins)
}

/// Whether slots have an attribute, and no job unless its author adds it.
pub fn is_of_slots(name: &str) -> bool {
    side_of(name) == Some(Slots)
}

/// Whether jobs have an attribute, and no slot unless an admin publishes it.
pub fn is_of_jobs(name: &str) -> bool {
    side_of(name) == Some(Jobs)
}

/// The attributes that expressions look at most.
pub(super) fn well_known() -> impl Iterator<Item = &'static str> + Clone {
    WELL_KNOWN.iter().map(|(known, _)| *known)
}

fn side_of(name: &str) -> Option<Side> {
    let mut all = WELL_KNOWN.iter().chain(&FURTHER);
    all.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, side)| *side)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_stands_once() {
        let mut seen = BTreeSet::new();
        for (name, _) in WELL_KNOWN.iter().chain(&FURTHER) {
            assert!(seen.insert(name.to_ascii_lowercase()), "{name}");
        }
    }

    #[test]
    fn an_attribute_is_of_slots_or_of_jobs_or_its_name_does_not_tell() {
        for (name, slots, jobs) in [
            ("memory", true, false),
            ("ClockMin", true, false),
            ("JobPrio", false, true),
            ("qdate", false, true),
            ("Rank", false, false),
            ("JobUniverse", false, false),
            ("Mine", false, false),
        ] {
            assert_eq!((is_of_slots(name), is_of_jobs(name)), (slots, jobs), "{name}");
        }
    }

    #[test]
    fn attributes_of_machines_and_jobs_are_known() {
        for name in ["memory", "ExitBySignal", "TotalSlotCpus", "RequestFpga", "TARGET", "GPUs_Capability"] {
            assert!(is_known(name), "{name}");
        }
        for name in ["DUNE", "done", "é"] {
            assert!(!is_known(name), "{name}");
        }
    }
}
