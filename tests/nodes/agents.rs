//! The agents of the nodes: programs that stand still and go on, and are killed where a kubelet could not kill them.

use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use api::{NodeReport, Slot, SlotActivity};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

use crate::cluster::{Cluster, only_on, spawn, state};
use crate::machine::node;
use crate::program::{OnTerm, Program, shell};
use crate::proof::Run;

/// The owner of the machine comes first, as in the manual's desktop policy, with shorter times.
pub const DESKTOP: &str = "
START = (KeyboardIdle > 10) =!= False
WANT_SUSPEND = True
WANT_VACATE = True
SUSPEND = KeyboardIdle < 5
CONTINUE = KeyboardIdle > 10
PREEMPT = False
";

/// The agent of a node, and the terminal at which the node's owner sits.
pub struct Desk {
    node: String,
    number: u32,
    directory: PathBuf,
    agent: Option<Child>,
    started: u32,
}

impl Desk {
    /// A desk at which nobody has sat for an hour, with an agent that runs.
    pub fn new(cluster: &Cluster, number: u32) -> Self {
        Self::with_programs(cluster, number, |_| {})
    }

    /// The same, with programs for cron jobs.
    pub fn with_programs(cluster: &Cluster, number: u32, write: impl FnOnce(&Path)) -> Self {
        let node = format!("node{number}");
        let directory = state().join("desk").join(&cluster.namespace).join(&node);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory.join("pts")).unwrap();
        for file in ["stat", "meminfo"] {
            std::fs::copy(Path::new("/proc").join(file), directory.join(file)).unwrap();
        }
        let mut desk = Self { node, number, directory, agent: None, started: 0 };
        desk.last_used(Duration::from_hours(1));
        desk.load(0.0);
        std::fs::create_dir_all(desk.programs()).unwrap();
        write(&desk.programs());
        desk.start(cluster);
        desk
    }

    /// The directory of the programs of cron jobs.
    pub fn programs(&self) -> PathBuf {
        self.directory.join("cron")
    }

    pub fn start(&mut self, cluster: &Cluster) {
        self.started += 1;
        let log = cluster.log_dir().join(format!("agent-{}-{}.log", self.node, self.started));
        let log = File::create(log).unwrap();
        let mut command = agent_command(&self.node, &self.directory);
        // The load of this computer is that of three nodes and of whatever else runs here.
        command.arg("--proc-root").arg(&self.directory).arg("--cron-directory").arg(self.programs());
        command
            .arg("--pod-resources")
            .arg(state().join(&self.node).join("kubelet/pod-resources/kubelet.sock"));
        self.agent = Some(spawn(&mut command, &format!("agent-{}", self.node), log));
    }

    /// Somebody last typed so long ago.
    pub fn last_used(&self, ago: Duration) {
        let terminal = File::create(self.directory.join("pts/0")).unwrap();
        let at = SystemTime::now() - ago;
        terminal.set_times(FileTimes::new().set_accessed(at).set_modified(at)).unwrap();
    }

    /// The node's load average over a minute is so much.
    fn load(&self, load: f64) {
        let text = format!("{load:.2} {load:.2} {load:.2} 1/100 1\n");
        std::fs::write(self.directory.join("loadavg"), text).unwrap();
    }

    /// Kills the agent with SIGKILL.
    pub fn kill(&mut self) {
        let mut agent = self.agent.take().unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// Stops the agent with SIGTERM, as the end of its pod does. The agent waits for no benchmark that runs.
    fn stop(&mut self) {
        let mut agent = self.agent.take().unwrap();
        let (id, asked) = (agent.id().to_string(), Instant::now());
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(agent.wait().unwrap().success(), "the agent ends by itself");
        assert!(asked.elapsed() < Duration::from_secs(10), "the agent took {:?} to end", asked.elapsed());
    }

    async fn report(&self, cluster: &Cluster) -> Option<NodeReport> {
        Api::<NodeReport>::all(cluster.client.clone()).get_opt(&self.node).await.unwrap()
    }

    pub async fn reports(&self, cluster: &Cluster) {
        reports(cluster, &self.node).await;
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

/// Runs an agent as the chart does: root without any capability. The directory takes the place of the node's `/dev`.
pub fn agent_command(node: &str, directory: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--"]);
    command.args([env!("CARGO_BIN_EXE_slotwright"), "agent", "--node", node, "--scratch", "/tmp"]);
    command.arg("--sessions").arg(directory.join("sessions")).arg("--dev-root").arg(directory);
    command
}

/// Waits until the operator counts on the agent of a node.
pub async fn reports(cluster: &Cluster, node: &str) {
    let slots: Api<api::PartitionableSlot> = Api::all(cluster.client.clone());
    let name = format!("slot1.{node}");
    cluster
        .until(&format!("the agent of {node} reports"), 60, || async {
            let status = slots.get(&name).await.ok().and_then(|slot| slot.status).unwrap_or_default();
            status.conditions.iter().any(|c| c.type_ == "AgentReady" && c.status == "True")
        })
        .await;
}

/// How many slots that work for the job have this activity.
async fn slots_in(cluster: &Cluster, activity: SlotActivity) -> usize {
    let slots: Api<Slot> = Api::all(cluster.client.clone());
    let slots = slots.list(&ListParams::default()).await.unwrap();
    slots
        .iter()
        .filter(|slot| slot.status.as_ref().and_then(|status| status.activity) == Some(activity))
        .count()
}

/// Waits until so many slots are Suspended, and the agents say that so many pods stand still.
pub async fn suspended(cluster: &Cluster, procs: usize) {
    let reports: Api<NodeReport> = Api::all(cluster.client.clone());
    cluster
        .until(&format!("{procs} procs are suspended"), 60, || async {
            let reports = reports.list(&ListParams::default()).await.unwrap();
            let still =
                reports.iter().filter_map(|report| Some(report.status.as_ref()?.suspended_pods.len()));
            still.sum::<usize>() == procs && slots_in(cluster, SlotActivity::Suspended).await == procs
        })
        .await;
}

fn beats(cluster: &Cluster, job: &str) -> Vec<usize> {
    cluster.proof(job).all_runs().map(|(_, run)| run.beats).collect()
}

/// Checks for so many seconds that no program of the job moves.
pub async fn stands_still(cluster: &Cluster, job: &str, seconds: u64) {
    let before = beats(cluster, job);
    cluster.throughout("nobody moves", seconds, || async { beats(cluster, job) == before }).await;
}

/// The only run of each proc came to its end by itself, after all of its beats, in a container that started once.
pub fn counted_on(run: &Run, beats: usize) {
    assert_eq!((run.ended, run.beats, run.term), (Some(0), beats, None), "{run:?}");
}

fn restarts(pod: &Pod) -> i32 {
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    containers.map(|container| container.restart_count).sum()
}

/// A cluster in which both procs of the job `count` stand still on one node, since the node's owner has just typed.
async fn standing_still(namespace: &str, policy: &str, program: Program) -> (Cluster, Desk) {
    let cluster = Cluster::start(namespace, policy).await;
    let desk = Desk::new(&cluster, 1);
    desk.reports(&cluster).await;
    cluster.apply(program.job(namespace, "count", 2, only_on("node1"))).await;
    cluster.running("count", 2).await;
    desk.last_used(Duration::ZERO);
    suspended(&cluster, 2).await;
    (cluster, desk)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_suspended_program_counts_on_exactly() {
    let (cluster, desk) = standing_still("suspend", DESKTOP, Program::new(12, 12)).await;
    cluster
        .until("the job says that its procs are suspended", 10, || async {
            let status = cluster.jobs().get("count").await.unwrap().status.unwrap_or_default();
            (status.summary.as_deref(), status.suspended) == (Some("Suspended"), Some(2))
        })
        .await;
    let uids: Vec<String> = cluster.pods_of("count").await.iter().filter_map(ResourceExt::uid).collect();
    let report = desk.report(&cluster).await.unwrap().status.unwrap();
    assert!(uids.iter().all(|uid| report.suspended_pods.contains(uid)), "{uids:?} {report:?}");
    stands_still(&cluster, "count", 20).await;
    for pod in cluster.pods_of("count").await {
        assert_eq!(
            (crate::cluster::phase(&pod), restarts(&pod)),
            ("Running", 0),
            "for Kubernetes, nothing has happened"
        );
    }
    // Nobody types any more: 30 s after the last touch, the keyboard is idle.
    cluster.completed("count", 90).await;
    assert_eq!(cluster.violations("count", |_| false).await, [] as [String; 0]);
    for proc in 0..2 {
        counted_on(cluster.proof("count").only(proc), 24);
    }
}

/// When the operator is killed, the owner has left for longer than SUSPEND asks, and for less than CONTINUE asks.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_suspended_program_stands_still_while_the_operator_is_replaced() {
    let policy = DESKTOP.replace("CONTINUE = KeyboardIdle > 10", "CONTINUE = KeyboardIdle > 45");
    let (cluster, _desk) = standing_still("suspend-leader", &policy, Program::new(12, 12)).await;
    stands_still(&cluster, "count", 8).await;
    cluster.kill_operator("operator");
    cluster.start_operator("operator", false);
    stands_still(&cluster, "count", 15).await;
    assert_eq!(slots_in(&cluster, SlotActivity::Suspended).await, 2, "under the new operator, too");
    cluster.completed("count", 150).await;
    assert_eq!(cluster.violations("count", |_| false).await, [] as [String; 0]);
    for proc in 0..2 {
        counted_on(cluster.proof("count").only(proc), 24);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_program_that_is_sent_away_while_it_is_suspended_hears_sigterm() {
    let preempt = "PREEMPT = (Activity == \"Suspended\") && (time() - EnteredCurrentActivity) > 4";
    let policy = format!("{DESKTOP}\n{preempt}\nMachineMaxVacateTime = 12\nMAXJOBRETIREMENTTIME = 0");
    let cluster = Cluster::start("suspend-term", &policy).await;
    let desk = Desk::new(&cluster, 1);
    desk.reports(&cluster).await;
    let program = Program::new(30, 2).on_term(OnTerm::Exit { after: 3, code: 1 });
    cluster.apply(program.job("suspend-term", "polite", 2, only_on("node1"))).await;
    cluster.running("polite", 2).await;
    desk.last_used(Duration::ZERO);
    suspended(&cluster, 2).await;
    cluster.completed("polite", 150).await;
    assert_eq!(cluster.violations("polite", |_| false).await, [] as [String; 0]);
    for proc in 0..2 {
        let proof = cluster.proof("polite");
        let [first, _] = proof.runs(proc) else { panic!("two runs: {:?}", proof.runs(proc)) };
        assert!(
            first.term.is_some() && first.shut_down,
            "its three seconds after SIGTERM were its own: {first:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn agent_kubelet_and_containerd_die_while_a_program_is_suspended_and_it_runs_once() {
    let (cluster, mut desk) = standing_still("suspend-deaths", DESKTOP, Program::new(12, 12)).await;
    let number = desk.number.to_string();
    for victim in ["agent", "kubelet", "containerd"] {
        if victim == "agent" {
            desk.kill();
            stands_still(&cluster, "count", 3).await;
            desk.start(&cluster);
        } else {
            let number = number.clone();
            tokio::task::spawn_blocking(move || {
                node(&["kill", &number, victim]);
                node(&["start", &number]);
            })
            .await
            .unwrap();
        }
        desk.last_used(Duration::ZERO);
        stands_still(&cluster, "count", 5).await;
    }
    cluster.completed("count", 120).await;
    assert_eq!(cluster.violations("count", |_| false).await, [] as [String; 0]);
    for proc in 0..2 {
        counted_on(cluster.proof("count").only(proc), 24);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn an_agent_that_is_stopped_lets_the_programs_run_again() {
    let (cluster, mut desk) = standing_still("suspend-stop", DESKTOP, Program::new(30, 30)).await;
    stands_still(&cluster, "count", 5).await;
    desk.stop();
    let report = desk.report(&cluster).await.unwrap().status.unwrap();
    assert_eq!(report.suspended_pods, [] as [String; 0]);
    assert!(
        report.conditions.iter().any(|c| c.type_ == "Ready" && c.status == "False" && c.reason == "Stopped")
    );
    cluster
        .until("the slots are Busy again", 30, || async { slots_in(&cluster, SlotActivity::Busy).await == 2 })
        .await;
    cluster.completed("count", 90).await;
    for proc in 0..2 {
        counted_on(cluster.proof("count").only(proc), 60);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_policy_holds_a_program_by_the_memory_that_it_uses() {
    // A shell that waits as the container's first process does not hear SIGTERM.
    const POLICY: &str = "
PREEMPT = MemoryUsage > 60
WANT_HOLD = MemoryUsage > 60
WANT_HOLD_REASON = \"too much memory\"
MachineMaxVacateTime = 5
";
    let cluster = Cluster::start("usage", POLICY).await;
    let desk = Desk::new(&cluster, 1);
    desk.reports(&cluster).await;
    let script = |megabytes: u32| {
        format!("x=$(head -c {megabytes}000000 /dev/zero | tr '\\0' a); sleep 600 & wait $!")
    };
    for (name, megabytes) in [("modest", 1), ("hungry", 80)] {
        let mut job = shell("usage", name, 1, &script(megabytes));
        job["spec"]["requests"]["memory"] = json!("512Mi");
        only_on("node1")(&mut job);
        cluster.apply(job).await;
    }
    cluster
        .until("the hungry one is held", 150, || async {
            let status = cluster.jobs().get("hungry").await.unwrap().status.unwrap_or_default();
            status.held == 1 && status.why.unwrap_or_default().contains("too much memory")
        })
        .await;
    let used = cluster.jobs().get("hungry").await.unwrap().status.and_then(|status| status.usage);
    let memory = used.as_ref().and_then(|used| used.memory_mib);
    assert!(memory.is_some_and(|mib| mib > 60), "the job keeps what its proc used: {used:?}");
    let report = desk.report(&cluster).await.unwrap().status.unwrap();
    let modest = cluster.pods_of("modest").await.first().and_then(ResourceExt::uid).unwrap();
    let used = report.usage.iter().find(|usage| usage.uid == modest).unwrap();
    assert!(used.memory_mib.is_some_and(|mib| (1..40).contains(&mib)), "{used:?}");
    assert_eq!(cluster.jobs().get("modest").await.unwrap().status.unwrap_or_default().running, 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn an_agent_kills_what_the_kubelet_would_let_run_on() {
    // The kubelet begins with a grace period of 90 s, and keeps to it when a fast drain follows.
    let policy = "MachineMaxVacateTime = 90\nPREEMPT = (time() - EnteredCurrentActivity) > 4\nMAXJOBRETIREMENTTIME = 0";
    let cluster = Cluster::start("agent-kill", policy).await;
    let desk = Desk::new(&cluster, 1);
    desk.reports(&cluster).await;
    let stubborn = Program::new(200, 2).on_term(OnTerm::Ignore);
    cluster.apply(stubborn.job("agent-kill", "stubborn", 2, only_on("node1"))).await;
    ends_by_a_fast_drain(&cluster).await;
}

/// The user of a program that ignores SIGTERM holds the program, whose pod asks for an hour to end.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn an_agent_kills_a_held_program_when_its_node_is_drained_fast() {
    let cluster = Cluster::start("agent-hold", "MachineMaxVacateTime = 90").await;
    let desk = Desk::new(&cluster, 1);
    desk.reports(&cluster).await;
    let job = |hold: bool| {
        Program::new(200, 2).on_term(OnTerm::Ignore).job("agent-hold", "stubborn", 2, move |job| {
            only_on("node1")(job);
            job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(3600);
            job["spec"]["hold"] = json!(hold);
        })
    };
    cluster.apply(job(false)).await;
    cluster.running("stubborn", 2).await;
    for pod in cluster.pods_of("stubborn").await {
        assert_eq!(pod.spec.unwrap().termination_grace_period_seconds, Some(90), "what the machine gives");
    }
    cluster.apply(job(true)).await;
    ends_by_a_fast_drain(&cluster).await;
}

/// Drains node 1 fast once the two programs of the job `stubborn` have heard SIGTERM, and checks that they end long before the 90 s that
/// their kubelet grants them.
async fn ends_by_a_fast_drain(cluster: &Cluster) {
    cluster
        .until("both heard SIGTERM", 60, || async {
            cluster.proof("stubborn").all_runs().filter(|(_, run)| run.term.is_some()).count() == 2
        })
        .await;
    let drain = json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "DrainRequest", "metadata": {"name": "fast"},
        "spec": {"node": "node1", "schedule": "Fast"},
    });
    cluster.apply(drain).await;
    cluster.until("their pods are gone", 90, || async { cluster.pods_of("stubborn").await.is_empty() }).await;
    let proof = cluster.proof("stubborn");
    for (proc, run) in proof.all_runs() {
        let outlived = run.last - run.term.unwrap();
        assert!(outlived < 45.0, "proc {proc} went on for {outlived:.1} s after SIGTERM: {run:?}");
    }
}

/// The manual's policy for desktops, with shorter times: for the policy, a minute has 12 s. An agent tells of input for 30 s after
/// the last touch, and a slot that is not claimed looks at its policy each UPDATE_INTERVAL.
const MANUALS_DESKTOP: &str = "
use POLICY : Desktop
MINUTE = 12
StartIdleTime = 31
ContinueIdleTime = 31
MaxSuspendTime = 45
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = False
NUM_SLOTS_TYPE_1 = 1
UPDATE_INTERVAL = 2
";

/// docs/concepts/desktop-day.md has such a day in virtual time.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_desktops_slot_takes_the_manuals_transitions() {
    let cluster = Cluster::start("desktop", MANUALS_DESKTOP).await;
    let desk = Desk::new(&cluster, 1);
    cluster
        .until("the benchmarks have run", 120, || async {
            cluster.transitions("slot1@node1").ends_with("3 4 ")
        })
        .await;
    let before = cluster.transitions("slot1@node1").len();
    let so_far = || cluster.transitions("slot1@node1").split_off(before);
    let takes = async |seconds: u64, expected: &str| {
        cluster
            .until(&format!("the transitions {expected:?}"), seconds, || async {
                let all = so_far();
                assert!(all.starts_with(expected) || expected.starts_with(&all), "{all:?}");
                all.len() >= expected.len()
            })
            .await;
    };
    cluster.apply(Program::new(100, 3).job("desktop", "work", 1, only_on("node1"))).await;
    takes(30, "6 9 11 ").await;
    cluster.running("work", 1).await;

    // The owner looks in, and goes.
    desk.last_used(Duration::ZERO);
    takes(20, "6 9 11 14 ").await;
    suspended(&cluster, 1).await;
    stands_still(&cluster, "work", 5).await;
    takes(60, "6 9 11 14 15 ").await;

    // The owner comes back and stays: after 45 s the job has to go, and it hears SIGTERM.
    let gone = "6 9 11 14 15 14 16 18 22 ";
    cluster
        .until("the job is sent away", 120, || async {
            desk.last_used(Duration::ZERO);
            let all = so_far();
            assert!(gone.starts_with(&all), "{all:?}");
            all.len() == gone.len()
        })
        .await;

    // The owner leaves, and the job runs again. Then a program of the owner's keeps the CPU busy.
    let again = format!("{gone}1 6 9 11 12 12a 10 22 1 ");
    takes(90, &again).await;
    cluster.completed("work", 30).await;
    assert_eq!(cluster.violations("work", |_| false).await, [] as [String; 0]);
    let proof = cluster.proof("work");
    let [first, _] = proof.runs(0) else { panic!("two runs: {:?}", proof.runs(0)) };
    assert!(first.term.is_some() && first.shut_down, "{first:?}");
    desk.load(3.0);
    takes(30, &format!("{again}2 ")).await;
}
