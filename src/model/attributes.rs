//! The attributes that expressions look at most, and what a misspelt name likely means.

/// The attributes of machines and jobs that expressions look at most.
const WELL_KNOWN: [&str; 60] = [
    "AccountingGroup",
    "Activity",
    "Arch",
    "AvailableGPUs",
    "Capability",
    "ClusterId",
    "ConcurrencyLimits",
    "CondorLoadAvg",
    "ConsoleIdle",
    "Cpus",
    "CudaVersion",
    "CurrentRank",
    "CurrentTime",
    "DetectedCpus",
    "DetectedGPUs",
    "DetectedMemory",
    "DeviceName",
    "Disk",
    "DriverVersion",
    "EnteredCurrentActivity",
    "EnteredCurrentState",
    "FileSystemDomain",
    "GlobalMemoryMb",
    "GPUs",
    "HasFileTransfer",
    "ImageSize",
    "IsOwner",
    "JobPrio",
    "JobStatus",
    "JobUniverse",
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
    "Owner",
    "PartitionableSlot",
    "RemoteGroup",
    "RemoteOwner",
    "RemoteUser",
    "RemoteUserPrio",
    "RequestCpus",
    "RequestDisk",
    "RequestGPUs",
    "RequestMemory",
    "SlotType",
    "SlotWeight",
    "SubmitterGroup",
    "SubmitterUserPrio",
    "TotalCpus",
    "TotalDisk",
    "TotalGPUs",
    "TotalLoadAvg",
    "TotalMemory",
    "UidDomain",
];

/// Literals, which a slip turns into the name of an attribute that nobody has.
const LITERALS: [&str; 3] = ["true", "false", "undefined"];

/// Returns the well-known attribute or literal that a name is one slip away from: a letter too many, missing or wrong, or two
/// that are swapped. None for a name that is well known itself, and for names of under three letters.
pub fn meant(name: &str) -> Option<&'static str> {
    let folded = name.to_ascii_lowercase();
    if WELL_KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return None;
    }
    let near = |known: &&&str| strsim::osa_distance(&folded, &known.to_ascii_lowercase()) == 1;
    let literals = LITERALS.iter().filter(|_| name.len() >= 3);
    let attributes = WELL_KNOWN.iter().filter(|_| name.len() >= 4);
    literals.chain(attributes).find(near).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_known_and_another_name_is_none() {
        for (name, expected) in [
            ("Memroy", Some("Memory")),
            ("capabilty", Some("Capability")),
            ("tru", Some("true")),
            ("flase", Some("false")),
            ("Memory", None),
            ("GPUs", None),
            ("TotalGpus", None),
            ("WithinHours", None),
            ("cpu", None),
        ] {
            assert_eq!(meant(name), expected, "{name}");
        }
    }

    #[test]
    fn no_well_known_name_is_taken_for_another() {
        for name in WELL_KNOWN {
            assert_eq!(meant(name), None, "{name}");
        }
    }
}
