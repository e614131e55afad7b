//! The cluster of a test: real nodes, and operators that the test starts and kills.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use api::HTCJob;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::machine::{self, NODES};
use crate::program::proof_dir;
use crate::proof::{Proof, Record, Run, ranges};
use crate::report;
use crate::seen::AskedToGo;

/// How many times longer than on a quiet computer something may take. CI runs other tests beside these on two cores.
const PATIENCE: u64 = 3;

/// The directory of the cluster, which `hack/e2e-nodes.sh` names.
pub fn state() -> PathBuf {
    std::env::var_os("SLOTWRIGHT_NODES")
        .map(PathBuf::from)
        .expect("SLOTWRIGHT_NODES is not set: run this with `make e2e-nodes`, which starts real nodes")
}

pub struct Cluster {
    pub client: Client,
    pub namespace: String,
    pub seen: AskedToGo,
    operators: RefCell<Vec<Operator>>,
    /// How many operators have been started, for the names of their logs.
    started: Cell<usize>,
}

/// A running operator.
struct Operator {
    identity: String,
    elect: bool,
    process: Child,
    log: PathBuf,
}

impl Cluster {
    /// The cluster without what earlier tests left, with a namespace for the test, a policy for all nodes in HTCondor's
    /// configuration language, short negotiation intervals, and one operator.
    pub async fn start(namespace: &str, policy: &str) -> Self {
        let cluster = Self::without_operator(namespace, policy).await;
        cluster.start_operator("operator", false);
        cluster
    }

    pub async fn without_operator(namespace: &str, policy: &str) -> Self {
        let file = Kubeconfig::read_from(state().join("admin.kubeconfig")).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        machine::sweep(&client).await;
        let _ = std::fs::remove_dir_all(proof_dir(namespace));
        std::fs::create_dir_all(proof_dir(namespace)).unwrap();
        let seen = AskedToGo::start(&client);
        let (operators, started) = (RefCell::default(), Cell::new(0));
        let cluster = Self { client, namespace: namespace.to_owned(), seen, operators, started };
        cluster.make_namespace().await;
        cluster
            .apply(json!({
                "apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator", "metadata": {"name": "quick"},
                "spec": {"intervalSeconds": 2, "cycleDelaySeconds": 0, "minIntervalSeconds": 1},
            }))
            .await;
        cluster
            .apply(json!({
                "apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "all"},
                "spec": {"config": format!("POLLING_INTERVAL = 1\n{policy}")},
            }))
            .await;
        cluster
    }

    async fn make_namespace(&self) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.apply(object).await;
        // The server refuses pods until the controller manager has created the namespace's service account.
        let probe: Pod = serde_json::from_value(json!({
            "metadata": {"name": "probe"}, "spec": {"containers": [{"name": "probe", "image": "probe"}]},
        }))
        .unwrap();
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        self.until("pods are taken", 30, || async { self.pods().create(&dry, &probe).await.is_ok() }).await;
    }

    /// Starts an operator with the rights of the chart's service account. It ends with the test, however the test ends.
    pub fn start_operator(&self, identity: &str, elect: bool) {
        let operator = self.operator(identity, elect);
        self.operators.borrow_mut().push(operator);
    }

    fn operator(&self, identity: &str, elect: bool) -> Operator {
        let number = self.started.replace(self.started.get() + 1);
        let log = self.log_dir().join(format!("{number:02}-{identity}.log"));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_slotwright"), "operator"]);
        command.args([
            "--health-addr",
            "127.0.0.1:0",
            "--metrics-addr",
            "127.0.0.1:0",
            "--identity",
            identity,
            // An operator that is started again takes its Leases back at once, as in its pod.
            "--pod-uid",
            "pod",
        ]);
        command.args(if elect {
            ["--leader-elect-namespace", "slotwright-system"].as_slice()
        } else {
            &["--no-leader-elect"]
        });
        command.env("RUST_LOG", "info,slotwright_controller::journal=debug");
        let process = spawn(&mut command, "operator", File::create(&log).unwrap());
        Operator { identity: identity.to_owned(), elect, process, log }
    }

    /// Kills an operator with SIGKILL.
    pub fn kill_operator(&self, identity: &str) {
        let mut operators = self.operators.borrow_mut();
        let place = operators.iter().position(|operator| operator.identity == identity).unwrap();
        let mut operator = operators.swap_remove(place);
        operator.process.kill().unwrap();
        operator.process.wait().unwrap();
    }

    /// Starts an operator again that stopped since it could not renew its lease on a busy computer, as a Deployment does. An
    /// operator that ended for another reason fails the test.
    fn revive_operators(&self) {
        for operator in self.operators.borrow_mut().iter_mut() {
            let Some(status) = operator.process.try_wait().unwrap() else { continue };
            let log = std::fs::read_to_string(&operator.log).unwrap();
            assert!(log.contains("leadership was lost"), "{}: {status}", operator.log.display());
            eprintln!("{} lost its lease, and starts again", operator.identity);
            *operator = self.operator(&operator.identity, operator.elect);
        }
    }

    /// Where the logs of the test's operators are.
    pub fn log_dir(&self) -> PathBuf {
        let directory = state().join("log").join(format!("operators-{}", self.namespace));
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    /// The numbers of the transitions that a slot has taken, each with a space after it, by the log of the first operator.
    pub fn transitions(&self, slot: &str) -> String {
        let log = std::fs::read_to_string(self.log_dir().join("00-operator.log")).unwrap();
        let own = log.lines().filter(|line| line.contains(&format!(" a transition slot={slot} number=")));
        own.filter_map(|line| Some(format!("{} ", line.split("number=").nth(1)?.split(' ').next()?)))
            .collect()
    }

    pub fn jobs(&self) -> Api<HTCJob> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// Applies an object as a user does. A namespaced object is in the namespace that it names.
    pub async fn apply(&self, object: Value) {
        let (api, name) = self.dynamic(&object);
        api.patch(&name, &PatchParams::apply("user").force(), &Patch::Apply(object)).await.unwrap();
    }

    pub async fn delete(&self, object: &Value) {
        let (api, name) = self.dynamic(object);
        api.delete(&name, &kube::api::DeleteParams::default()).await.unwrap();
    }

    fn dynamic(&self, object: &Value) -> (Api<DynamicObject>, String) {
        let (kind, version) = (object["kind"].as_str().unwrap(), object["apiVersion"].as_str().unwrap());
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let plural = match kind {
            "NodePolicy" => "nodepolicies".to_owned(),
            other => format!("{}s", other.to_lowercase()),
        };
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = kube::api::ApiResource::from_gvk_with_plural(&kind, &plural);
        let api = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        (api, object["metadata"]["name"].as_str().unwrap().to_owned())
    }

    /// Waits until `met` is true. Fails after [`PATIENCE`] times so many seconds. Asks four times a second.
    pub async fn until<F, Fut>(&self, what: &str, seconds: u64, mut met: F)
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = bool>,
    {
        let seconds = seconds * PATIENCE;
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            self.revive_operators();
            // A call that hangs must not outlast the deadline.
            if matches!(timeout(Duration::from_secs(20), met()).await, Ok(true)) {
                return;
            }
            assert!(Instant::now() < deadline, "not within {seconds} s: {what}");
            sleep(Duration::from_millis(250)).await;
        }
    }

    /// Checks for so many seconds that `holds` stays true.
    pub async fn throughout<F, Fut>(&self, what: &str, seconds: u64, mut holds: F)
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = bool>,
    {
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            self.revive_operators();
            assert!(holds().await, "no longer so: {what}");
            sleep(Duration::from_millis(250)).await;
        }
    }

    pub fn proof(&self, job: &str) -> Proof {
        Proof::read(&proof_dir(&self.namespace).join(job))
    }

    /// Waits until so many procs of a job have started their programs, and their pods are Running for Kubernetes too.
    pub async fn running(&self, job: &str, procs: usize) {
        self.until(&format!("{procs} procs of {job} run"), 60, || async {
            let running = self.pods_of(job).await.iter().filter(|pod| phase(pod) == "Running").count();
            running >= procs && self.proof(job).started() >= procs
        })
        .await;
    }

    pub async fn pods_of(&self, job: &str) -> Vec<Pod> {
        let selector = ListParams::default().labels(&format!("{}={job}", api::labels::JOB_NAME));
        self.pods().list(&selector).await.unwrap().items
    }

    /// Waits until the job's condition Complete is true, and returns what the record says.
    pub async fn completed(&self, job: &str, seconds: u64) -> Record {
        self.until(&format!("{job} is complete"), seconds, || self.is_complete(job)).await;
        self.record(job).await
    }

    pub async fn is_complete(&self, job: &str) -> bool {
        self.jobs().get(job).await.is_ok_and(|job| {
            let status = job.status.unwrap_or_default();
            status.conditions.iter().any(|c| c.type_ == "Complete" && c.status == "True")
        })
    }

    pub async fn record(&self, job: &str) -> Record {
        let job = self.jobs().get(job).await.unwrap();
        let status = job.status.unwrap_or_default();
        Record {
            count: u32::try_from(job.spec.count).unwrap(),
            completed: ranges(&status.completed_procs),
            failed: ranges(&status.failed_procs),
        }
    }

    /// Describes how the runs of a completed job violate the invariants. `lost` tells of a run whether its node lost
    /// it.
    pub async fn violations(&self, job: &str, lost: impl Fn(&Run) -> bool) -> Vec<String> {
        let record = self.record(job).await;
        let wrong = self.proof(job).violations(&record, |run| lost(run) || self.seen.was_asked(&run.pod));
        wrong.into_iter().map(|text| format!("{job}: {text}")).collect()
    }
}

impl Drop for Cluster {
    /// Ends the operators. If the test has failed, prints first what there is.
    fn drop(&mut self) {
        if std::thread::panicking() {
            report::print(&self.namespace, &self.log_dir());
        }
        for operator in self.operators.get_mut() {
            let _ = operator.process.kill();
            let _ = operator.process.wait();
        }
    }
}

/// Starts a program with a kubeconfig of the cluster. The program's output goes into its log.
pub fn spawn(command: &mut Command, kubeconfig: &str, log: File) -> Child {
    command
        .env("KUBECONFIG", state().join(format!("{kubeconfig}.kubeconfig")))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// A `requirements` expression: the job runs on this node only.
pub fn only_on(node: &str) -> impl Fn(&mut Value) + use<> {
    let expression = format!("TARGET.Machine == \"{node}\"");
    move |job| job["spec"]["requirements"] = json!(expression)
}

/// The names of all nodes.
pub fn node_names() -> Vec<String> {
    NODES.iter().map(|number| format!("node{number}")).collect()
}

/// The path of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
