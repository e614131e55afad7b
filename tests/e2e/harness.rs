//! The cluster of a test: an API server, hollow nodes, an operator that the test can kill, and a watchdog.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use api::{self, HTCJob, PartitionableSlot, Slot};
use hollow::nodes::{HollowNodes, NodeShape, Options};
use hollow::server::{HollowServer, RunningServer, ServerConfig};
use hollow::watchdog::Watchdog;
use hollow::watchdog::watch::Watch;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};

use crate::operator::Operator;

/// How long a test waits for something before it fails. Nothing takes so long on a busy computer, and the test runner
/// waits longer.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// The operator of a test.
pub const IDENTITY: &str = "under-test";

/// The label of the webhooks that tests install.
pub const MADE_BY_TESTS: &str = "made-by-tests";

const ANY_PORT: &str = "127.0.0.1:0";

pub struct Cluster {
    pub client: Client,
    pub watch: Watch,
    pub nodes: Option<HollowNodes>,
    pub server: Option<RunningServer>,
    pub kubeconfig: std::path::PathBuf,
    /// More arguments of operators that are started from now on.
    pub more_arguments: Vec<String>,
    operator: Option<Operator>,
    _dir: tempfile::TempDir,
}

impl Cluster {
    /// A cluster with these nodes and a running operator.
    pub async fn start(shapes: Vec<NodeShape>) -> Self {
        let mut cluster = Self::without_operator(shapes).await;
        cluster.start_operator();
        cluster
    }

    pub async fn without_operator(shapes: Vec<NodeShape>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let kubeconfig = dir.path().join("kubeconfig");
        let (config, server) = if let Some(path) = std::env::var_os("SLOTWRIGHT_TEST_KUBECONFIG") {
            let operator =
                std::env::var_os("SLOTWRIGHT_TEST_OPERATOR_KUBECONFIG").unwrap_or_else(|| path.clone());
            std::fs::copy(operator, &kubeconfig).unwrap();
            let file = Kubeconfig::read_from(path).unwrap();
            (Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap(), None)
        } else {
            let server =
                HollowServer::start(([127, 0, 0, 1], 0).into(), ServerConfig::default()).await.unwrap();
            std::fs::write(&kubeconfig, server.kubeconfig()).unwrap();
            (server.kube_config().unwrap(), Some(server))
        };
        let client = Client::try_from(config).unwrap();
        install(&client).await;
        if server.is_none() {
            Box::pin(sweep(&client)).await;
        }
        let nodes = HollowNodes::start(client.clone(), shapes, Options::default()).await.unwrap();
        let watch = Watch::start(&client);
        Self {
            client,
            watch,
            nodes: Some(nodes),
            server,
            kubeconfig,
            more_arguments: Vec::new(),
            operator: None,
            _dir: dir,
        }
    }

    /// Starts the operator as a process of its own, which is started again if it loses its Lease.
    pub fn start_operator(&mut self) {
        self.operator = Some(Operator::start(self.operator_command(IDENTITY, ANY_PORT)));
    }

    /// Starts the operator with its probes at this address.
    pub fn start_operator_probed_at(&mut self, health: &str) {
        self.operator = Some(Operator::start(self.operator_command(IDENTITY, health)));
    }

    /// Starts the operator with this log filter. Returns the file that it logs to.
    pub fn start_operator_logging(&mut self, filter: &str) -> std::path::PathBuf {
        let path = self.kubeconfig.with_file_name("operator.log");
        let log = std::fs::File::create(&path).unwrap();
        let mut command = self.operator_command(IDENTITY, ANY_PORT);
        command.env("RUST_LOG", filter).stderr(log);
        self.operator = Some(Operator::start(command));
        path
    }

    /// The command of an operator that takes part in no election. If it is killed, the next operator of the same identity runs in the same
    /// pod, and need not wait until the pool's Lease expires.
    pub fn operator_command(&self, identity: &str, health: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
        command
            .args(["operator", "--no-leader-elect", "--identity", identity, "--pod-uid", "pod"])
            .args(["--health-addr", health, "--metrics-addr", ANY_PORT])
            .args(&self.more_arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null());
        command
    }

    /// The most memory that the operator has had at once, in MiB.
    pub fn operator_peak_mib(&self) -> u64 {
        let id = self.operator.as_ref().unwrap().id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }

    /// Kills the operator with SIGKILL.
    pub fn kill_operator(&mut self) {
        self.operator = None;
    }

    pub fn jobs(&self, namespace: &str) -> Api<HTCJob> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub fn slots(&self) -> Api<Slot> {
        Api::all(self.client.clone())
    }

    pub fn pslots(&self) -> Api<PartitionableSlot> {
        Api::all(self.client.clone())
    }

    /// Applies an object as a user would.
    pub async fn apply(&self, object: Value) {
        let kind = object["kind"].as_str().unwrap();
        let resource = kube::api::ApiResource::from_gvk_with_plural(
            &kube::core::GroupVersionKind::gvk(api::GROUP, api::VERSION, kind),
            match kind {
                "HTCJob" => "htcjobs",
                "GroupQuota" => "groupquotas",
                "ConcurrencyLimit" => "concurrencylimits",
                "DrainRequest" => "drainrequests",
                "Negotiator" => "negotiators",
                "NodePolicy" => "nodepolicies",
                "SubmitPolicy" => "submitpolicies",
                "Submitter" => "submitters",
                other => panic!("no plural for {other}"),
            },
        );
        let namespace = object["metadata"]["namespace"].as_str();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let api: Api<kube::api::DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        api.patch(&name, &PatchParams::apply("user"), &Patch::Apply(object)).await.unwrap();
    }

    pub async fn namespace(&self, name: &str) {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let namespace = Namespace {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
            ..Default::default()
        };
        match api.create(&PostParams::default(), &namespace).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => panic!("{error}"),
        }
        // A real server refuses pods until the controller manager has created the service account and its token.
        let probe: Pod = serde_json::from_value(json!({
            "metadata": {"name": "probe"}, "spec": {"containers": [{"name": "probe", "image": "busybox"}]},
        }))
        .unwrap();
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        eventually("pods are taken", || async { self.pods(name).create(&dry, &probe).await.is_ok() }).await;
    }

    /// Lets the negotiator run cycles more often than by default, where it waits 20 s between two cycles.
    pub async fn quick_cycles(&self) {
        self.cycles_at_least(1).await;
    }

    /// Lets the negotiator run a cycle every two seconds. If something changed, it runs one as soon as the last cycle
    /// began so many seconds ago.
    pub async fn cycles_at_least(&self, apart: u32) {
        self.apply(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator", "metadata": {"name": "quick"},
            "spec": {"intervalSeconds": 2, "cycleDelaySeconds": 0, "minIntervalSeconds": apart},
        }))
        .await;
    }

    /// Waits until a job is complete, and returns it.
    pub async fn completed(&self, namespace: &str, name: &str) -> HTCJob {
        self.job_when(namespace, name, "is complete", |job| {
            condition(job, "Complete").is_some_and(|c| c.0 == "True")
        })
        .await
    }

    /// Waits until every pod has ended, and returns what the watchdog saw. A proc's end is booked when its main
    /// container has ended, about a second before the kubelet reports the end of the pod.
    pub async fn all_ended(&self) -> Watchdog {
        tokio::time::timeout(PATIENCE, self.watch.until(|seen| seen.live() == 0)).await.expect("the pods end")
    }

    pub async fn job_when(
        &self,
        namespace: &str,
        name: &str,
        what: &str,
        met: impl Fn(&HTCJob) -> bool,
    ) -> HTCJob {
        let wanted = |job: Option<&HTCJob>| job.is_some_and(&met);
        if let Ok(job) =
            tokio::time::timeout(PATIENCE, await_condition(self.jobs(namespace), name, wanted)).await
        {
            job.unwrap().unwrap()
        } else {
            let job = self.jobs(namespace).get_opt(name).await.unwrap();
            panic!("{namespace}/{name} never {what}: {:#?}", job.map(|job| job.status))
        }
    }

    /// Stops the operator, the kubelets and the embedded server. On a real server, which tests share, the next test
    /// deletes the Nodes.
    pub async fn stop(mut self) {
        self.kill_operator();
        if let Some(nodes) = self.nodes.take() {
            // The test has passed. If the hollow nodes do not stop, a message says so, and the test still passes.
            if tokio::time::timeout(Duration::from_secs(30), nodes.shutdown()).await.is_err() {
                eprintln!("the hollow nodes did not end within 30 s");
            }
        }
        if let Some(server) = self.server.take() {
            server.shutdown().await;
        }
    }
}

async fn install(client: &Client) {
    let crds: Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = Api::all(client.clone());
    for crd in api::definitions() {
        let name = crd.name_any();
        crds.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&crd)).await.unwrap();
        tokio::time::timeout(PATIENCE, await_condition(crds.clone(), &name, is_crd_established()))
            .await
            .unwrap()
            .unwrap();
    }
}

/// Deletes the objects that an earlier test has left on a real server: its Nodes too, whether the test passed or not. No
/// test may count on an earlier one to have cleaned up, since a test that fails or a slow server prevents that. Refuses a
/// cluster that has a node which no test plays.
async fn sweep(client: &Client) {
    for node in Api::<Node>::all(client.clone()).list(&ListParams::default()).await.unwrap() {
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let played = info
            .is_none_or(|info| info.kubelet_version.is_empty() || info.kubelet_version.ends_with("-hollow"));
        assert!(
            played,
            "{} is a real node: these tests delete all nodes and pods of their cluster",
            node.name_any()
        );
    }
    // A webhook that a failed test has left would refuse the pods of the next tests.
    let hooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let left = ListParams::default().labels(MADE_BY_TESTS);
    hooks.delete_collection(&DeleteParams::default(), &left).await.unwrap();
    let jobs: Api<HTCJob> = Api::all(client.clone());
    for job in jobs.list(&ListParams::default()).await.unwrap() {
        let api: Api<HTCJob> = Api::namespaced(client.clone(), &job.namespace().unwrap());
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let _ = api.patch(&job.name_any(), &PatchParams::default(), &free).await;
        let _ = api.delete(&job.name_any(), &DeleteParams::background()).await;
    }
    let pods: Api<Pod> = Api::all(client.clone());
    for pod in pods.list(&ListParams::default()).await.unwrap() {
        let ours = |label| pod.labels().contains_key(label);
        let bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        if !bound && !ours(api::labels::JOB_UID) && !ours(api::labels::BACKFILL) {
            continue;
        }
        let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap());
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let _ = api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await;
        let _ = api.patch(&pod.name_any(), &PatchParams::default(), &free).await;
    }
    clear::<Node>(client).await;
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    for lease in leases.list(&ListParams::default()).await.unwrap() {
        // Operators find the pool's Lease as the last operator left it, as in a cluster.
        if lease.name_any() != api::labels::POOL_LEASE {
            let _ = leases.delete(&lease.name_any(), &DeleteParams::default()).await;
        }
    }
    clear::<Slot>(client).await;
    clear::<PartitionableSlot>(client).await;
    clear::<api::Submitter>(client).await;
    clear::<api::GroupQuota>(client).await;
    clear::<api::ConcurrencyLimit>(client).await;
    clear::<api::NodePolicy>(client).await;
    clear::<api::SubmitPolicy>(client).await;
    clear::<api::DrainRequest>(client).await;
    clear::<api::AbsentMachine>(client).await;
    clear::<api::NodeReport>(client).await;
    clear::<api::Negotiator>(client).await;
}

/// Deletes all objects of a kind that has no namespaces.
async fn clear<K>(client: &Client)
where
    K: kube::Resource<Scope = kube::core::ClusterResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let all: Api<K> = Api::all(client.clone());
    all.delete_collection(&DeleteParams::background(), &ListParams::default()).await.unwrap();
}

/// Waits until `met` is true, or fails after [`PATIENCE`]. Asks every 100 ms.
pub async fn eventually<F, Fut>(what: &str, mut met: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !met().await {
        assert!(tokio::time::Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A job of `count` procs. Hollow nodes run each proc for `runtime`.
pub fn job(namespace: &str, name: &str, count: u32, runtime: &str, edit: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "count": count,
            "template": {
                "metadata": {"annotations": {"hollow.slotwright.dev/runtime": runtime}},
                "spec": {"containers": [{"name": "main", "image": "busybox", "command": ["sleep", "1"]}]},
            },
        },
    });
    edit(&mut object);
    object
}

/// A condition's status, reason and message.
pub fn condition(job: &HTCJob, type_: &str) -> Option<(String, String, String)> {
    let conditions = &job.status.as_ref()?.conditions;
    let found = conditions.iter().find(|c| c.type_ == type_)?;
    Some((found.status.clone(), found.reason.clone(), found.message.clone()))
}

/// The reasons of the events about a job, with their notes.
pub async fn story(cluster: &Cluster, namespace: &str, job: &str) -> BTreeMap<String, String> {
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(cluster.client.clone(), namespace);
    let about =
        ListParams::default().fields(&format!("involvedObject.kind=HTCJob,involvedObject.name={job}"));
    let found = events.list(&about).await.unwrap();
    found.into_iter().map(|e| (e.reason.unwrap_or_default(), e.message.unwrap_or_default())).collect()
}
