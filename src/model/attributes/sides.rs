//! Which attributes slots alone have, and which jobs alone.

/// Attributes that every slot may have, and no job unless its author adds one of the same name.
const OF_SLOTS: [&str; 38] = [
    "Activity",
    "Arch",
    "AvailableGPUs",
    "ClockDay",
    "ClockMin",
    "CondorLoadAvg",
    "ConsoleIdle",
    "CpuBusyTime",
    "Cpus",
    "CurrentRank",
    "DetectedCpus",
    "DetectedGPUs",
    "DetectedMemory",
    "Disk",
    "DynamicSlot",
    "EnteredCurrentActivity",
    "EnteredCurrentState",
    "GPUs",
    "KeyboardIdle",
    "KFlops",
    "LoadAvg",
    "Machine",
    "Memory",
    "Mips",
    "NodeLabels",
    "NodeResources",
    "OpSys",
    "OpSysAndVer",
    "PartitionableSlot",
    "SlotID",
    "SlotType",
    "SlotWeight",
    "State",
    "TotalCpus",
    "TotalDisk",
    "TotalGPUs",
    "TotalLoadAvg",
    "TotalMemory",
];

/// Attributes that jobs have, and no slot unless an admin publishes one of the same name.
const OF_JOBS: [&str; 14] = [
    "AcctGroup",
    "ClusterId",
    "EnteredCurrentStatus",
    "JobPrio",
    "JobRunCount",
    "JobStatus",
    "NumJobStarts",
    "Owner",
    "ProcId",
    "QDate",
    "RequestCpus",
    "RequestDisk",
    "RequestGPUs",
    "RequestMemory",
];

/// Whether slots have an attribute, and no job unless its author adds it.
pub fn is_of_slots(name: &str) -> bool {
    OF_SLOTS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether jobs have an attribute, and no slot unless an admin publishes it.
pub fn is_of_jobs(name: &str) -> bool {
    OF_JOBS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::is_known;

    #[test]
    fn an_attribute_is_of_one_side_and_known() {
        for name in OF_SLOTS.iter().chain(&OF_JOBS) {
            assert!(is_known(name), "{name}");
            assert!(is_of_slots(name) != is_of_jobs(name), "{name}");
        }
        for name in ["Rank", "Requirements", "JobUniverse", "ImageSize", "RemoteUser", "Mine"] {
            assert!(!is_of_slots(name) && !is_of_jobs(name), "{name}");
        }
    }
}
