//! The attributes that expressions look at most, what a misspelt name likely means, and attributes of HTCondor's that no slot, or no
//! proc, has.

mod acting;
mod known;

pub use acting::{is_acting, is_of_procs, is_of_values, meant_of_proc, not_kept};
pub use known::{is_known, is_of_jobs, is_of_slots};

use known::well_known;

/// The advice for conditions on what HTCondor's starter can do.
const IN_IMAGES: &str = "leave the condition out: each job runs in an image, and there is no starter";

/// Attributes of HTCondor's slots that no slot here has, each with what to do instead.
const ABSENT: [(&str, &str); 34] = [
    ("CondorPlatform", "use TARGET.Arch or TARGET.OpSys"),
    ("CondorVersion", "leave the condition out: no machine runs HTCondor"),
    ("CUDACapability", "use spec.requests.gpusMinimumCapability"),
    ("CUDAClockMhz", "use spec.requests.requireGpus"),
    ("CUDAComputeUnits", "use spec.requests.requireGpus"),
    ("CUDACoresPerCU", "use spec.requests.requireGpus"),
    ("CUDADeviceName", "use spec.requests.requireGpus, such as regexp(\"A100\", DeviceName)"),
    ("CUDADriverVersion", "use spec.requests.gpusMinimumRuntime"),
    ("CUDAECCEnabled", "use spec.requests.requireGpus"),
    ("CUDAGlobalMemoryMb", "use spec.requests.gpusMinimumMemory"),
    ("CUDAMaxSupportedVersion", "use spec.requests.gpusMinimumRuntime"),
    ("CUDARuntimeVersion", "use spec.requests.gpusMinimumRuntime"),
    ("DockerVersion", IN_IMAGES),
    ("HasCheckpointing", IN_IMAGES),
    ("HasDockerURL", IN_IMAGES),
    ("HasEncryptExecuteDirectory", IN_IMAGES),
    ("HasFileTransfer", IN_IMAGES),
    ("HasFileTransferPluginMethods", IN_IMAGES),
    ("HasJava", IN_IMAGES),
    ("HasJICLocalConfig", IN_IMAGES),
    ("HasJICLocalStdin", IN_IMAGES),
    ("HasJobTransferPlugins", IN_IMAGES),
    ("HasMPI", IN_IMAGES),
    ("HasPerFileEncryption", IN_IMAGES),
    ("HasReconnect", IN_IMAGES),
    ("HasRemoteSyscalls", IN_IMAGES),
    ("HasSandboxImage", IN_IMAGES),
    ("HasSelfCheckpointTransfers", IN_IMAGES),
    ("HasSIF", IN_IMAGES),
    ("HasSingularity", IN_IMAGES),
    ("HasTDP", IN_IMAGES),
    ("HasUserNamespaces", IN_IMAGES),
    ("HasVM", IN_IMAGES),
    ("SingularityVersion", IN_IMAGES),
];

/// Returns what to do instead of looking at an attribute that HTCondor's slots have and no slot here has. None for every other name.
pub fn absent(name: &str) -> Option<&'static str> {
    ABSENT.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, instead)| *instead)
}

/// Attributes that the operator sets itself, each with what to do instead.
const SET_BY_OPERATOR: [(&str, &str); 14] = [
    ("AccountingGroup", "use spec.accountingGroup"),
    ("AcctGroup", "use spec.accountingGroup"),
    ("AcctGroupUser", WHOSE),
    ("ConcurrencyLimits", "use spec.concurrencyLimits"),
    ("JobPrio", "use spec.priority"),
    ("Owner", WHOSE),
    ("Rank", "use spec.rank"),
    ("RequestCpus", "use spec.requests.cpus"),
    ("RequestDisk", "use spec.requests.disk"),
    ("RequestGPUs", "use spec.requests.gpus"),
    ("RequestMemory", "use spec.requests.memory"),
    ("Requirements", "use spec.requirements"),
    ("Submitter", WHOSE),
    ("User", WHOSE),
];

/// The advice for attributes of who owns a job.
const WHOSE: &str = "leave it out: the namespace, or spec.owner of the SubmitPolicy, says who owns a job";

/// Returns what a job says instead of setting an attribute that the operator sets itself. The submit commands of requests, such as
/// `request_memory`, count as their attributes.
pub fn instead_of_setting(name: &str) -> &'static str {
    let plain = name.replace('_', "");
    let is = |(known, _): &&(&str, &str)| known.eq_ignore_ascii_case(&plain);
    match SET_BY_OPERATOR.iter().find(is) {
        Some((_, instead)) => instead,
        None if plain.to_ascii_lowercase().starts_with("request") => "use spec.requests.resources",
        None => "leave it out",
    }
}

/// Literals, which a slip turns into the name of an attribute that nobody has.
const LITERALS: [&str; 3] = ["true", "false", "undefined"];

/// The least length of a name in which two slips are slips, and not another word.
const LONG: usize = 8;

/// Returns the well-known attribute or literal that a name is one slip away from: a letter too many, missing or wrong, or two
/// that are swapped. A long name may be two slips away. None for a name that is well known itself, and for names of under three letters.
pub fn meant(name: &str) -> Option<&'static str> {
    if well_known().any(|known| known.eq_ignore_ascii_case(name)) {
        return None;
    }
    nearest(name, well_known())
}

/// The name among these, or the literal, that a name is a slip away from.
fn nearest(name: &str, names: impl Iterator<Item = &'static str> + Clone) -> Option<&'static str> {
    let folded = name.to_ascii_lowercase();
    let slips = |known: &str| strsim::osa_distance(&folded, &known.to_ascii_lowercase());
    let literals = LITERALS.into_iter().filter(|_| name.len() >= 3);
    let attributes = names.clone().filter(|_| name.len() >= 4);
    let one = literals.chain(attributes).find(|known| slips(known) == 1);
    let may_be_two = name.len() >= LONG && !is_known(name) && absent(name).is_none();
    let two = || names.clone().find(|known| may_be_two && known.len() >= LONG && slips(known) == 2);
    one.or_else(two)
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
            ("KeybordIdle", Some("KeyboardIdle")),
            ("KeybordIdel", Some("KeyboardIdle")),
            ("EnteredCurentStat", Some("EnteredCurrentState")),
            // These are other attributes, however near.
            ("EnteredCurrentStatus", None),
            ("JobStarts", None),
            ("IsAccountingGroup", None),
            ("RemoteUsers", Some("RemoteUser")),
            ("TotalDisks", Some("TotalDisk")),
            ("MyMemory", None),
            ("OurCpus", None),
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
    fn what_slots_have_is_not_absent() {
        for (name, _) in ABSENT {
            assert!(!is_known(name), "{name}");
            assert_eq!(meant(name), None, "{name}");
        }
        assert_eq!(absent("cudacapability"), Some("use spec.requests.gpusMinimumCapability"));
        assert_eq!(absent("HasDocker"), None);
    }

    #[test]
    fn what_the_operator_sets_has_a_field_or_none() {
        for (name, expected) in [
            ("requestmemory", "use spec.requests.memory"),
            ("request_gpus", "use spec.requests.gpus"),
            ("RequestFpga", "use spec.requests.resources"),
            ("JobPrio", "use spec.priority"),
            ("QDate", "leave it out"),
            ("_cp_orig_RequestCpus", "leave it out"),
        ] {
            assert_eq!(instead_of_setting(name), expected, "{name}");
        }
        assert!(instead_of_setting("owner").contains("spec.owner of the SubmitPolicy"));
        for (name, _) in SET_BY_OPERATOR {
            assert!(crate::schedd::is_protected(name), "{name}");
        }
    }

    #[test]
    fn no_well_known_name_is_taken_for_another() {
        for name in well_known() {
            assert_eq!(meant(name), None, "{name}");
        }
    }
}
