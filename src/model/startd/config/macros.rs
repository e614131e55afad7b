//! The macros that HTCondor predefines from the machine.

use crate::pool::Machine;
use crate::startd::ad::htcondor_arch;
use condor_config::Config;

use super::readers::Live;
use super::remarks::Remark;

/// The facts of a machine that a text can read: the values of the predefined macros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Macros {
    cpus: i64,
    memory_mib: i64,
    arch: String,
    os: String,
    name: String,
}

/// HTCondor's macros about the machine whose values are known from the node.
pub const KNOWN: &[&str] = &[
    "DETECTED_CPUS",
    "DETECTED_CORES",
    "DETECTED_PHYSICAL_CPUS",
    "DETECTED_CPUS_LIMIT",
    "DETECTED_MEMORY",
    "ARCH",
    "OPSYS",
    "UNAME_ARCH",
    "UNAME_OPSYS",
    "HOSTNAME",
    "FULL_HOSTNAME",
];

/// HTCondor's macros whose values are not known here, and what to use instead.
const UNKNOWN: &[(&str, &str)] = &[
    ("OPSYS_VER", "use NodeLabels in the expression"),
    ("OPSYS_AND_VER", "use NodeLabels in the expression"),
    ("OPSYS_LONG_NAME", "use NodeLabels in the expression"),
    ("IP_ADDRESS", "pods have addresses of their own"),
    ("IPV4_ADDRESS", "pods have addresses of their own"),
    ("IPV6_ADDRESS", "pods have addresses of their own"),
    ("TILDE", "there is no condor user here"),
    ("USERNAME", "there is no condor user here"),
    ("REAL_UID", "there is no condor user here"),
    ("REAL_GID", "there is no condor user here"),
    ("PID", "there is no startd process here"),
    ("PPID", "there is no startd process here"),
];

/// The macros of a machine.
pub fn of_machine(machine: &Machine) -> Macros {
    let whole = machine.facts.allocatable.whole();
    Macros {
        cpus: whole.cpus,
        memory_mib: whole.memory_mib,
        arch: machine.facts.arch.to_string(),
        os: machine.facts.os.to_string(),
        name: machine.facts.name.to_string(),
    }
}

impl Macros {
    /// Machines that differ as much as possible. A text that gives the same configuration for all of these is taken to give that
    /// configuration for every machine.
    pub(super) fn samples() -> Vec<Self> {
        let of = |cpus, memory_mib, arch: &str, os: &str, name: &str| Self {
            cpus,
            memory_mib,
            arch: arch.to_owned(),
            os: os.to_owned(),
            name: name.to_owned(),
        };
        vec![
            of(16, 65_536, "amd64", "linux", "node"),
            of(1, 513, "arm64", "windows", "n2"),
            of(1_021, 9_999_991, "riscv64", "plan9", "another-node"),
        ]
    }

    /// The macros with their values.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let cpus = self.cpus.to_string();
        let values = [
            cpus.clone(),
            cpus.clone(),
            cpus.clone(),
            cpus,
            self.memory_mib.to_string(),
            htcondor_arch(&self.arch).to_owned(),
            self.os.to_ascii_uppercase(),
            if self.arch == "amd64" { "x86_64".to_owned() } else { self.arch.clone() },
            self.os.clone(),
            self.name.split('.').next().unwrap_or_default().to_owned(),
            self.name.clone(),
        ];
        KNOWN.iter().map(|name| (*name).to_owned()).zip(values).collect()
    }
}

/// Whether a text refers to a macro whose value depends on the machine.
pub(super) fn mentioned(text: &str) -> bool {
    let folded = text.to_ascii_uppercase();
    KNOWN.iter().any(|name| references(&folded, name).next().is_some())
}

/// A remark for each reference to a macro that is not known here, unless the text defines the macro itself, or nothing acts on the
/// value with the reference.
pub(super) fn unknown(text: &str, config: &Config, live: &Live) -> Vec<Remark> {
    let folded = text.to_ascii_uppercase();
    let mut remarks = Vec::new();
    for (name, instead) in UNKNOWN.iter().filter(|(name, _)| config.definition(name).is_none()) {
        for at in references(&folded, name).filter(|at| live.holds_at(text, *at)) {
            let message = format!("$({name}) is not known of a node; {instead}");
            remarks.push(Remark::at_offset(text, at, "MachineMacro", message));
        }
    }
    remarks
}

/// The byte offsets at which a text, given in capitals, refers to a macro: `$(NAME)`, `$(NAME:default)`, `$INT(NAME)`.
fn references<'a>(folded: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    folded.match_indices(name).map(|(at, _)| at).filter(move |at| {
        let before = folded.get(..*at).unwrap_or_default();
        let after = folded.get(at + name.len()..).unwrap_or_default();
        let function =
            before.strip_suffix('(').map(|before| before.trim_end_matches(|c: char| c.is_ascii_alphabetic()));
        function.is_some_and(|before| before.ends_with('$')) && after.starts_with([')', ':', ','])
    })
}
