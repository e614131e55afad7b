//! The node itself: the cgroups of its pods, and what can be sensed of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use super::benchmark;
use super::cgroup::{Cgroups, MAX_PREFIX, PodGroup, State, Usage, is_uid};
use super::deciding::{Act, ProcessState};
use super::pods::{Pod, Pods, Uid};
use super::report::{Figures, Problem, Senses, input};
use super::sense::{self, InputPaths, InputSensor, LoadMeter, Pace, Pressure, Scratch};
use api::PodUsage;

/// How much CPU time a run of the benchmarks may take.
const BENCHMARKS_TAKE: Duration = Duration::from_secs(10);
/// For how long the agent believes that it may not freeze pods.
const BELIEVED_FOR: Duration = Duration::from_mins(10);
/// How long pods may run without a cgroup that the agent finds, before the agent says so.
const UNFOUND_FOR: Duration = Duration::from_mins(1);
/// Pressures are reported in steps of so many percent: a report of each tremor would help nobody.
const PRESSURE_STEP: f64 = 10.0;

/// Where the files of a node are. In a container they are mounted elsewhere than on the node.
#[derive(Clone, Debug)]
pub struct Roots {
    /// The node's `/sys/fs/cgroup`.
    pub cgroup: PathBuf,
    /// The node's `/proc`, or any `/proc` on the node: load, memory and pressure are the same in all containers.
    pub proc: PathBuf,
    /// A directory on the file system of the scratch space.
    pub scratch: PathBuf,
    /// The files that tell when somebody used the node.
    pub inputs: InputPaths,
}

/// The node of an agent.
#[derive(Debug)]
pub(crate) struct Node {
    roots: Roots,
    /// Unknown until they are found; the agent looks again at each pass.
    cgroups: Option<Cgroups>,
    /// The cgroups of the pods that the last [`Node::find`] looked for: `None` for a pod that has no cgroup.
    groups: io::Result<BTreeMap<String, Option<PodGroup>>>,
    /// Why the last [`Node::find`] found no hierarchy of cgroups.
    no_cgroups: Option<Problem>,
    /// Since when pods run and none of them has a cgroup.
    unfound: Option<Instant>,
    inputs: InputSensor,
    scratch: Scratch,
    meter: Option<LoadMeter>,
    began: Instant,
    paces: BTreeMap<Uid, Pace>,
    /// The last failure with a pod, so that each failure is logged once.
    failed: BTreeMap<Uid, String>,
    /// Why the agent may not freeze pods, and when the kernel said so last.
    forbidden: Option<(Instant, String)>,
}

impl Node {
    pub(crate) fn new(roots: Roots) -> Self {
        let inputs = InputSensor::new(roots.inputs.clone());
        let scratch = Scratch::new(&roots.scratch);
        let meter = logged("the CPUs cannot be counted", sense::cpus(&roots.proc)).map(LoadMeter::new);
        Self {
            roots,
            cgroups: None,
            groups: Ok(BTreeMap::new()),
            no_cgroups: None,
            unfound: None,
            inputs,
            scratch,
            meter,
            began: Instant::now(),
            paces: BTreeMap::new(),
            failed: BTreeMap::new(),
            forbidden: None,
        }
    }

    /// Looks for the cgroups of pods, which the other methods use until the next call.
    ///
    /// A pod that has ended has no cgroup, and a pod that is not found makes the places of cgroups be searched. So all pods are
    /// looked for at once, which searches at most once: a node may keep hundreds of pods that have ended.
    pub(crate) fn find<'a>(&mut self, uids: impl IntoIterator<Item = &'a str>) {
        self.no_cgroups = self.find_hierarchy();
        // A uid that cannot be looked for must not keep the agent from the other pods.
        let uids: BTreeSet<&str> = uids.into_iter().filter(|uid| is_uid(uid)).collect();
        let found =
            self.cgroups.as_ref().map_or_else(|| Ok(Vec::new()), |all| all.find_each(uids.iter().copied()));
        self.groups = found.map(|found| {
            let none = uids.into_iter().map(|uid| (uid.to_owned(), None));
            none.chain(found.into_iter().map(|(uid, group)| (uid.to_owned(), Some(group)))).collect()
        });
    }

    /// The state of a pod's processes. A pod that cannot be looked at counts as running.
    pub(crate) fn look(&mut self, pod: &Pod) -> ProcessState {
        let seen = self.try_look(pod);
        self.noted(pod, "the cgroup of a pod cannot be read", seen).unwrap_or(ProcessState::Running)
    }

    /// Does something to the processes of a pod, and returns what they do then.
    pub(crate) fn act(&mut self, pod: &Pod, act: Act) -> ProcessState {
        let done = self.try_act(pod, act);
        self.learn(act, &done);
        if self.noted(pod, "what the operator asks for cannot be done", done).is_none() {
            return ProcessState::Running;
        }
        let seen = self.look(pod);
        tracing::debug!(pod = %pod.name, ?act, ?seen, "done to the processes of a pod");
        seen
    }

    fn group(&self, uid: &str) -> io::Result<Option<&PodGroup>> {
        match &self.groups {
            Ok(groups) => {
                let unknown = || io::Error::other(format!("the cgroup of pod {uid} was not looked for"));
                groups.get(uid).map(Option::as_ref).ok_or_else(unknown)
            }
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    fn try_look(&self, pod: &Pod) -> io::Result<ProcessState> {
        let Some(group) = self.group(&pod.uid)? else { return Ok(ProcessState::Nothing) };
        Ok(match group.state(&pod.containers)? {
            _ if !group.has_processes()? => ProcessState::Nothing,
            State::Idle => ProcessState::Starting,
            State::Thawed => ProcessState::Running,
            State::Freezing => ProcessState::Freezing,
            State::Frozen => ProcessState::Frozen,
        })
    }

    fn try_act(&self, pod: &Pod, act: Act) -> io::Result<()> {
        let Some(group) = self.group(&pod.uid)? else { return Ok(()) };
        match act {
            Act::Freeze => group.freeze(&pod.containers),
            Act::Thaw => group.thaw(),
            Act::Kill => group.kill(),
        }
    }

    /// Logs a failure with a pod, unless the same failure was the pod's last.
    fn noted<T>(&mut self, pod: &Pod, what: &str, outcome: io::Result<T>) -> Option<T> {
        let error = match outcome {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let text = format!("{what}: {error}");
        if self.failed.get(&pod.uid) != Some(&text) {
            tracing::warn!(pod = %pod.name, %error, "{what}");
            self.failed.insert(Arc::clone(&pod.uid), text);
        }
        None
    }

    /// Whether something of a pod may be left on the node. A pod that was not looked for may be there.
    pub(crate) fn remains(&self, uid: &str) -> bool {
        self.cgroups.is_none() || self.group(uid).map_or(true, |group| group.is_some())
    }

    /// Senses the node, on which these are the pods of the pool. The pods that are suspended are not sensed here.
    pub(crate) fn sense(&mut self, pods: &Pods, now: Timestamp) -> Senses {
        self.failed.retain(|uid, _| pods.knows(uid));
        let unfound = self.finds_no_pod(pods);
        let problem = self.no_cgroups.clone().or(unfound).or_else(|| self.may_not_freeze());
        let (inputs, doubts) = self.inputs.sense(now);
        for doubt in doubts {
            tracing::warn!("{doubt}");
        }
        let load = sense::load_average(&self.roots.proc).ok().map(|load| load.minute);
        let usage = self.measure(pods);
        Senses {
            keyboard: inputs.keyboard.map(|last| input(last, now)),
            console: inputs.console.map(|last| input(last, now)),
            load,
            pool_load: load.and_then(|load| self.meter.as_ref()?.load(load)),
            disk_kib: self.scratch.free_kib().and_then(|free| i64::try_from(free).ok()),
            virtual_memory_kib: kib(sense::free_swap_kib(&self.roots.proc)),
            usage,
            attributes: pressures(&self.roots.proc),
            problem,
            ..Senses::default()
        }
    }

    /// Looks for the hierarchy of cgroups, unless the hierarchy is known.
    fn find_hierarchy(&mut self) -> Option<Problem> {
        if self.cgroups.is_some() {
            return None;
        }
        match Cgroups::detect(&self.roots.cgroup) {
            Ok(cgroups) => {
                tracing::info!(version = ?cgroups.version(), "the cgroups of pods can be frozen");
                self.cgroups = Some(cgroups);
                None
            }
            Err(error) => Some(Problem { reason: "NoCgroups", message: error.to_string() }),
        }
    }

    /// The problem that pods run, as their kubelet says, and that none of them has a cgroup where the agent looks.
    fn finds_no_pod(&mut self, pods: &Pods) -> Option<Problem> {
        let found = self.groups.as_ref().map_or(true, |groups| groups.values().any(Option::is_some));
        if found || !pods.iter().any(|pod| pod.containers.any_runs()) {
            self.unfound = None;
            return None;
        }
        let since = *self.unfound.get_or_insert_with(Instant::now);
        (since.elapsed() >= UNFOUND_FOR).then(|| Problem {
            reason: "NoCgroups",
            message: format!(
                "pods run, and none of them has a cgroup that the agent finds: it looks for kubepods and kubepods.slice in {} and at \
                 most {MAX_PREFIX} directories deeper; --cgroup-root names another directory",
                self.roots.cgroup.display()
            ),
        })
    }

    /// Notes whether the agent may freeze and thaw pods. To kill takes more on cgroup v1, where an agent that may only freeze is of use,
    /// too.
    fn learn(&mut self, act: Act, done: &io::Result<()>) {
        match (act, done) {
            (Act::Freeze | Act::Thaw, Ok(())) => self.forbidden = None,
            (Act::Freeze | Act::Thaw, Err(error)) if is_forbidden(error) => {
                self.forbidden = Some((Instant::now(), error.to_string()));
            }
            _ => {}
        }
    }

    /// The problem that the agent may not freeze pods. With this problem in the report, the operator asks
    /// for no suspension, so that nothing would show that the agent may again: after a while the problem is taken back.
    fn may_not_freeze(&mut self) -> Option<Problem> {
        self.forbidden.take_if(|(at, _)| at.elapsed() >= BELIEVED_FOR);
        self.forbidden.as_ref().map(|(_, error)| Problem {
            reason: "CannotFreeze",
            message: format!(
                "the agent may not write the files by which the kernel freezes pods: {error}; do SELinux or a read-only mount \
                 forbid that?"
            ),
        })
    }

    /// Measures what the pool's pods use.
    fn measure(&mut self, pods: &Pods) -> Vec<PodUsage> {
        let now = self.began.elapsed();
        let usage = |pod: &Pod| Some((Arc::clone(&pod.uid), self.group(&pod.uid).ok()??.usage()));
        let all: Vec<(Uid, Usage)> = pods.iter().filter_map(usage).collect();
        if let Some(meter) = &mut self.meter {
            let cpu = all.iter().filter_map(|(uid, usage)| Some((uid.to_string(), usage.cpu?)));
            meter.sample(now, cpu.collect());
        }
        self.paces.retain(|uid, _| pods.knows(uid));
        let report = |(uid, usage): (Uid, Usage)| {
            let cpus =
                usage.cpu.and_then(|cpu| self.paces.entry(Arc::clone(&uid)).or_default().cpus(now, cpu));
            let amount = |value: Option<u64>| i64::try_from(value?).ok();
            let kib = |bytes: Option<u64>| amount(bytes.map(|bytes| bytes / 1024));
            PodUsage {
                uid: uid.to_string(),
                memory_mib: amount(usage.memory_bytes.map(|bytes| bytes.div_ceil(1 << 20))),
                resident_kib: kib(usage.rss_bytes),
                disk_kib: None,
                cpus,
                block_reads: amount(usage.reads),
                block_writes: amount(usage.writes),
                block_read_kib: kib(usage.read_bytes),
                block_write_kib: kib(usage.written_bytes),
                metrics: BTreeMap::new(),
            }
        };
        all.into_iter().map(report).collect()
    }
}

/// Whether the agent lacks the right, whatever the pod.
fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// The pressures on CPU, memory and disks, in percent of the last ten seconds, as attributes of the machine's ad.
fn pressures(proc: &Path) -> BTreeMap<String, String> {
    let Pressure { cpu, memory, io } = sense::pressure(proc);
    let all = [("CpuPressure", cpu), ("MemoryPressure", memory), ("IoPressure", io)];
    let stepped = |percent: f64| (percent / PRESSURE_STEP).round() * PRESSURE_STEP;
    all.into_iter().filter_map(|(name, some)| Some((name.to_owned(), stepped(some?).to_string()))).collect()
}

fn kib(free: io::Result<u64>) -> Option<i64> {
    free.ok().and_then(|free| i64::try_from(free).ok())
}

fn logged<T>(what: &str, outcome: io::Result<T>) -> Option<T> {
    outcome.inspect_err(|error| tracing::warn!(%error, "{what}")).ok()
}

/// Runs the benchmarks at the lowest priority, in the thread that calls.
pub(crate) fn benchmark() -> Figures {
    // On Linux this sets the priority of the calling thread alone, which the run has for itself.
    let _ = rustix::process::nice(19);
    // The clock shows the thread's own CPU time, so that other work of the node counts little.
    let clock = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    benchmark::run(clock, BENCHMARKS_TAKE)
}

#[cfg(test)]
mod tests;
