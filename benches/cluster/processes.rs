//! Processor time and memory of processes, from /proc.

use std::path::PathBuf;

/// Ticks in a second: USER_HZ, which is 100 on every Linux.
const TICKS: f64 = 100.0;

/// The processes of one side, by id.
#[derive(Clone, Debug, Default)]
pub struct Processes(Vec<u32>);

impl Processes {
    /// Processes of the control plane, which hack/kube/up.sh started: their ids are in its directory.
    pub fn of_control_plane(names: &[&str]) -> Self {
        let state = PathBuf::from(std::env::var_os("SLOTWRIGHT_KUBE_STATE").expect("SLOTWRIGHT_KUBE_STATE"));
        let id = |name: &&str| {
            let text = std::fs::read_to_string(state.join("pid").join(name)).expect(name);
            text.split_whitespace().next().unwrap().parse().unwrap()
        };
        Self(names.iter().map(id).collect())
    }

    /// One process.
    pub fn one(id: u32) -> Self {
        Self(vec![id])
    }

    /// The processor time that the processes have used so far, in seconds.
    pub fn cpu(&self) -> f64 {
        self.0.iter().map(|id| cpu(*id)).sum()
    }

    /// The most memory that the processes had at once, each by itself, in MiB.
    pub fn peak_mib(&self) -> u64 {
        self.0.iter().map(|id| peak_kib(*id)).sum::<u64>() / 1024
    }
}

fn cpu(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("the process runs");
    // The name of the program, in parentheses, may hold blanks.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).unwrap().parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS
}

fn peak_kib(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
