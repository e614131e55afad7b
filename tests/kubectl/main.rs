//! Runs `kubectl-slotwright` as a person does: the binary, a kubeconfig, and an API server with objects in it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::needless_pass_by_value)]

mod condor;
mod files;
mod history;

use std::path::Path;
use std::process::{Command, Output};

use api::{self, HTCJob, Negotiator, NodePolicy, PartitionableSlot, PartitionableSlotSpec, Slot, Submitter};
use hollow::server::{Clock, HollowServer, RunningServer, ServerConfig};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::runtime::wait::{await_condition, conditions::is_crd_established};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};

const NOW: &str = "2030-01-02T03:04:05Z";

/// A server, a client for it, and a directory with a kubeconfig for it.
struct Cluster {
    /// The server, which ends with the test.
    server: RunningServer,
    client: Client,
    directory: tempfile::TempDir,
}

impl Cluster {
    async fn bare() -> Self {
        let now: Timestamp = NOW.parse().unwrap();
        let config =
            ServerConfig { clock: Clock::new(move || now), seed: Some(7), ..ServerConfig::default() };
        let server = HollowServer::start(([127, 0, 0, 1], 0).into(), config).await.unwrap();
        let client = Client::try_from(server.kube_config().unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("config"), server.kubeconfig()).unwrap();
        Self { server, client, directory }
    }

    async fn with_definitions() -> Self {
        let cluster = Self::bare().await;
        let crds: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        for crd in api::definitions() {
            crds.create(&PostParams::default(), &crd).await.unwrap();
            await_condition(crds.clone(), &crd.name_any(), is_crd_established()).await.unwrap();
        }
        cluster
    }

    /// Creates an object, then writes its status as the operator does.
    async fn put<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        name: &str,
        spec: Value,
        status: Value,
    ) -> DynamicObject {
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let object = DynamicObject::new(name, &resource).data(json!({"spec": spec}));
        let created = api.create(&PostParams::default(), &object).await.unwrap();
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
        created
    }

    /// A cluster with a node whose slot runs proc 1 of a job of two procs, a job that asks for too much, and two
    /// submitters.
    async fn with_pool() -> Self {
        let cluster = Self::with_definitions().await;
        cluster.add_jobs_and_slots().await;
        let negotiator = json!({"priorityHalflifeSeconds": 3600});
        cluster.put::<Negotiator>(None, "default", negotiator, json!({})).await;
        for (name, status) in [
            (
                "alice",
                json!({"name": "alice", "realPriority": 4.0, "resourcesUsed": 1,
                "weightedResourcesUsed": 4.0, "weightedAccumulatedUsage": 0.0, "updateTime": NOW}),
            ),
            (
                "bob",
                json!({"name": "bob", "realPriority": 2.0, "weightedAccumulatedUsage": 7200.0,
                "lastUsageTime": NOW, "updateTime": NOW}),
            ),
        ] {
            cluster.put::<Submitter>(None, name, json!({}), status).await;
        }
        cluster
    }

    async fn add_jobs_and_slots(&self) {
        let spec =
            json!({"count": 2, "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}});
        let status = json!({"observedGeneration": 1, "clusterId": 1, "submitter": "alice", "summary": "Running",
            "running": 1, "completed": 1, "completedProcs": "0"});
        let job = self.put::<HTCJob>(Some("default"), "pi", spec.clone(), status).await;
        let status = json!({"observedGeneration": 1, "clusterId": 2, "submitter": "bob", "summary": "Idle",
            "idle": 2, "why": "no node offers 64 CPUs",
            "conditions": [{"type": "Matchable", "status": "False", "reason": "RequestTooLarge",
            "message": "no node offers 64 CPUs", "lastTransitionTime": NOW}]});
        self.put::<HTCJob>(Some("kube-public"), "big", spec, status).await;

        let node: Node = serde_json::from_value(json!({"metadata": {"name": "node1",
            "labels": {"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux"}}}))
        .unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &node).await.unwrap();
        let spec = json!({"name": "slot1@node1", "node": "node1"});
        let status = json!({"state": "Unclaimed", "activity": "Idle",
            "total": {"cpus": 8, "memoryMiB": 16384, "diskKiB": 1_048_576},
            "available": {"cpus": 4, "memoryMiB": 8192, "diskKiB": 1_048_576}});
        self.put::<PartitionableSlot>(None, "slot1.node1", spec, status).await;
        let claim = json!({"id": "slot1_1@node1#1#1", "submitter": "alice", "weight": 4.0, "claimedAt": NOW, "jobId": "1.1",
            "job": {"namespace": "default", "name": "pi", "uid": job.uid().unwrap()}, "proc": 1, "pod": "pi-1"});
        let spec = json!({"name": "slot1_1@node1", "node": "node1", "slotType": "Dynamic", "claim": claim,
            "resources": {"cpus": 4, "memoryMiB": 8192, "diskKiB": 0, "extended": {"nvidia.com/gpu": 1}}});
        let status = json!({"state": "Claimed", "activity": "Busy", "enteredCurrentState": NOW,
            "enteredCurrentActivity": NOW});
        self.put::<Slot>(None, "slot1-1.node1", spec, status).await;
    }

    /// Runs the plugin against this cluster.
    async fn run(&self, args: &[&str]) -> Output {
        plugin(&self.directory.path().join("config"), args).await
    }

    /// The standard output of a run that must succeed without a note.
    async fn shows(&self, args: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(args).await;
        assert_eq!((status.code(), String::from_utf8(stderr).unwrap().as_str()), (Some(0), ""), "{args:?}");
        String::from_utf8(stdout).unwrap()
    }

    async fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.shows(&[args, &["-o", "json"]].concat()).await).unwrap()
    }

    /// The standard output of a run that must succeed, whatever it notes.
    async fn shows_noted(&self, args: &[&str]) -> String {
        let Output { status, stdout, .. } = self.run(args).await;
        assert!(status.success(), "{args:?}");
        String::from_utf8(stdout).unwrap()
    }

    /// The standard error of a run that must fail.
    async fn fails(&self, args: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(args).await;
        assert_eq!((status.code(), stdout.len()), (Some(1), 0), "{args:?}");
        String::from_utf8(stderr).unwrap()
    }
}

async fn plugin(kubeconfig: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-slotwright"));
    command.args(args).env_clear().env("KUBECONFIG", kubeconfig);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

#[tokio::test]
async fn jobs() {
    let cluster = Cluster::with_pool().await;
    insta::assert_snapshot!("jobs", cluster.shows(&["q"]).await);
    insta::assert_snapshot!("jobs_of_all", cluster.shows(&["q", "-A"]).await);
    insta::assert_snapshot!("job", cluster.shows(&["q", "pi"]).await);
    assert_eq!(cluster.shows(&["q", "1"]).await, cluster.shows(&["q", "pi"]).await);

    let of_bob = cluster.json(&["q", "-n", "kube-public"]).await;
    assert_eq!(of_bob.pointer("/0/why"), Some(&json!("no node offers 64 CPUs")), "{of_bob}");
    let procs = cluster.json(&["q", "1.1"]).await;
    assert_eq!(procs.pointer("/0/runningProcs/0/slot"), Some(&json!("slot1_1@node1")), "{procs}");
    let none = cluster.json(&["q", "1.0"]).await;
    assert_eq!(none.pointer("/0/runningProcs"), Some(&json!([])), "{none}");
    let error = cluster.fails(&["q", "tau"]).await;
    assert!(error.contains("no job tau in namespace default"), "{error}");
}

#[tokio::test]
async fn a_job_of_another_namespace_is_found_by_its_number_and_named_by_its_name() {
    let cluster = Cluster::with_pool().await;
    // A ClusterId is that of one job in the pool.
    assert_eq!(cluster.shows(&["q", "2"]).await, cluster.shows(&["q", "-A", "2"]).await);
    assert_eq!(cluster.json(&["q", "2.1"]).await.pointer("/0/name"), Some(&json!("big")));
    for (args, text) in [
        (
            &["q", "big"][..],
            "no job big in namespace default, but in namespace kube-public: kubectl slotwright q -n kube-public big",
        ),
        (&["q", "-n", "default", "2"], "no job 2 in namespace default, but in namespace kube-public: "),
        (&["q", "-A", "17"], "no job 17 in any namespace"),
        (&["q", "1.2"], "job 1 (default/pi) has no proc 2: its procs are 0 to 1"),
        (&["q", "1.-1"], "job 1 (default/pi) has no proc -1"),
    ] {
        let error = cluster.fails(args).await;
        assert!(error.contains(text), "{args:?}: {error}");
    }
}

#[tokio::test]
async fn slots_that_are_not_there_are_an_error() {
    let cluster = Cluster::with_pool().await;
    for args in [&["status", "nosuch"][..], &["status", "-l", "nosuch"], &["status", "--node", "nosuch"]] {
        let error = cluster.fails(args).await;
        assert!(error.contains("nosuch; see all with: kubectl slotwright status"), "{args:?}: {error}");
    }
    let some = cluster.run(&["status", "node1", "nosuch"]).await;
    assert!(some.status.success() && !some.stdout.is_empty());
    assert_eq!(String::from_utf8(some.stderr).unwrap(), "No slots named nosuch.\n");
}

#[tokio::test]
async fn whole_ads_can_be_read_by_programs() {
    let cluster = Cluster::with_pool().await;
    let ads = cluster.json(&["status", "-l"]).await;
    for (attribute, value) in [
        ("/0/Name", json!("slot1@node1")),
        ("/0/ChildCpus", json!([4])),
        ("/0/ChildName", json!(["slot1_1@node1"])),
        ("/0/PslotRollupInformation", json!(true)),
        ("/1/Name", json!("slot1_1@node1")),
    ] {
        assert_eq!(ads.pointer(attribute), Some(&value), "{attribute}: {ads}");
    }
    let start = ads.pointer("/0/Start").and_then(Value::as_str).unwrap_or_default();
    assert!(ads.pointer("/0/Start") == Some(&json!(true)) || start.starts_with("/Expr("), "{ads}");
}

/// A proxy that tunnels one connection to `to`, whatever it is asked for. The thread's result is the first line that it got.
fn proxy(to: String) -> (String, std::thread::JoinHandle<String>) {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(client.try_clone().unwrap()).lines().map_while(Result::ok);
        let asked = lines.next().unwrap();
        assert!(lines.any(|line| line.is_empty()));
        let server = std::net::TcpStream::connect(to).unwrap();
        (&client).write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let (mut from, mut into) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut into);
            let _ = into.shutdown(std::net::Shutdown::Both);
        });
        let _ = std::io::copy(&mut &server, &mut &client);
        asked
    });
    (url, serving)
}

#[tokio::test]
async fn requests_go_through_the_proxy_of_the_kubeconfig() {
    let cluster = Cluster::with_pool().await;
    let config = cluster.directory.path().join("config");
    let server = cluster.server.url.trim_start_matches("http://").to_owned();
    let (url, serving) = proxy(server.clone());
    let text = std::fs::read_to_string(&config).unwrap();
    let through =
        text.replace(&format!("http://{server}"), &format!("http://k8s.example\n    proxy-url: {url}"));
    assert_ne!(text, through);
    std::fs::write(&config, through).unwrap();
    assert_eq!(cluster.json(&["q"]).await.pointer("/0/name"), Some(&json!("pi")));
    assert_eq!(serving.join().unwrap(), "CONNECT k8s.example:443 HTTP/1.1");
}

#[tokio::test]
async fn slots() {
    let cluster = Cluster::with_pool().await;
    insta::assert_snapshot!("slots", cluster.shows(&["status"]).await);
    let slots = cluster.json(&["status", "--node", "node1"]).await;
    assert_eq!(slots.pointer("/1/job/name"), Some(&json!("pi")), "{slots}");
    let one = cluster.json(&["status", "slot1_1@node1"]).await;
    assert_eq!(one.as_array().map(Vec::len), Some(1), "{one}");
}

#[tokio::test]
async fn whole_ads() {
    let cluster = Cluster::with_pool().await;
    let policy = json!({"nodeSelector": {}, "config": "RANK = 7\nSTARTD_ATTRS = Rack\nRack = \"b\"\nUID_DOMAIN = lab\n"});
    cluster.put::<NodePolicy>(None, "all", policy, json!({})).await;
    let ads = cluster.shows(&["status", "--long"]).await;
    let [whole, dynamic]: [&str; 2] = ads.split("\n\n").collect::<Vec<_>>().try_into().unwrap();
    let has = |ad: &str, line: &str| assert!(ad.lines().any(|found| found == line), "{line}: {ad}");
    for line in [
        "Name = \"slot1@node1\"",
        "State = \"Unclaimed\"",
        "NumDynamicSlots = 1",
        "Rank = 7",
        "Rack = \"b\"",
        "UidDomain = \"lab\"",
        "Arch = \"aarch64\"",
        "TotalSlots = 2",
        "PslotRollupInformation = true",
    ] {
        has(whole, line);
    }
    has(whole, "ChildName = { \"slot1_1@node1\" }");
    has(whole, "ChildCpus = { 4 }");
    for line in [
        "Name = \"slot1_1@node1\"",
        "State = \"Claimed\"",
        "Activity = \"Busy\"",
        "RemoteUser = \"alice\"",
        "RemoteScheddName = \"default\"",
        "JobId = \"1.1\"",
        "ParentSlotId = 1",
    ] {
        has(dynamic, line);
    }
    let since = NOW.parse::<Timestamp>().unwrap().as_second();
    has(dynamic, &format!("EnteredCurrentState = {since}"));
    has(whole, &format!("ChildEnteredCurrentState = {{ {since} }}"));
    // The status of a partitionable slot has no start times, and the age of its object is none.
    assert!(!whole.lines().any(|line| line.starts_with("EnteredCurrent")), "{whole}");
    assert_eq!(cluster.shows(&["status", "-l", "slot1_1@node1"]).await, format!("{dynamic}"));
}

#[tokio::test]
async fn priorities() {
    let cluster = Cluster::with_pool().await;
    let an_hour_later = (NOW.parse::<Timestamp>().unwrap().as_second() + 3600).to_string();
    insta::assert_snapshot!("priorities", cluster.shows(&["userprio", "--now", &an_hour_later]).await);
    let users = cluster.json(&["userprio", "--now", &an_hour_later]).await;
    assert_eq!(users.pointer("/0/realPriority"), Some(&json!(1.0)), "{users}");
}

#[tokio::test]
async fn all_pages_are_read() {
    let cluster = Cluster::with_definitions().await;
    let pslots: Api<PartitionableSlot> = Api::all(cluster.client.clone());
    let create = async |i: i32| {
        let spec = PartitionableSlotSpec { name: format!("slot1@n{i}"), node: format!("n{i}") };
        let pslot = PartitionableSlot::new(&format!("slot1.n{i}"), spec);
        pslots.create(&PostParams::default(), &pslot).await.unwrap();
    };
    // One more slot than fits on two pages.
    futures::future::join_all((0..1001).map(create)).await;
    let slots = cluster.json(&["status"]).await;
    assert_eq!(slots.as_array().map(Vec::len), Some(1001));
}

#[tokio::test]
async fn without_definitions_it_says_so() {
    let cluster = Cluster::bare().await;
    for command in ["q", "status", "userprio"] {
        let error = cluster.fails(&[command]).await;
        assert!(error.contains("custom resource definitions are not installed"), "{error}");
    }
}

#[tokio::test]
async fn without_jobs_it_says_so() {
    let cluster = Cluster::with_definitions().await;
    let run = cluster.run(&["q"]).await;
    assert!(run.status.success() && run.stdout.is_empty());
    assert_eq!(String::from_utf8(run.stderr).unwrap(), "No jobs in namespace default.\n");
    assert_eq!(cluster.run(&["q", "-o", "json"]).await.stdout, b"[]\n");
}

#[tokio::test]
async fn without_a_cluster_it_says_so() {
    let cluster = Cluster::bare().await;
    let config = cluster.directory.path().join("config");
    let path = config.to_str().unwrap();
    let missing = cluster.directory.path().join("missing");
    for (kubeconfig, args, text) in [
        (&config, vec!["q", "--context", "other"], "no cluster: failed to load current context: other"),
        (&missing, vec!["q"], "name a kubeconfig with --kubeconfig or KUBECONFIG"),
        (&missing, vec!["q", "--kubeconfig", path], "definitions are not installed"),
        (&missing, vec!["q", "--kubeconfig", path, "--context", "hollow"], "definitions are not installed"),
    ] {
        let run = plugin(kubeconfig, &args).await;
        let error = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.code() == Some(1) && error.contains(text), "{args:?}: {error}");
    }
    let url = cluster.server.url.clone();
    cluster.server.shutdown().await;
    let run = plugin(&config, &["q"]).await;
    let error = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.code() == Some(1) && error.contains(&format!("at {url}")), "{error}");
}

const SUBMIT_FILE: &str = "container_image = docker://debian\nexecutable = /bin/echo\ntransfer_executable = false\n\
                           arguments = $(word) $(Process) of $(Cluster)\noutput = echo.out\nqueue word in (a, b, c)\n";

#[tokio::test]
async fn a_submit_file_becomes_a_job() {
    let cluster = Cluster::with_definitions().await;
    let path = cluster.directory.path().join("echo.sub");
    std::fs::write(&path, SUBMIT_FILE).unwrap();
    let output = cluster.run(&["submit", path.to_str().unwrap(), "request_cpus=2"]).await;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    let jobs = Api::<HTCJob>::default_namespaced(cluster.client.clone());
    let jobs = jobs.list(&kube::api::ListParams::default()).await.unwrap().items;
    let name = jobs[0].name_any();
    assert!(name.starts_with("echo-"), "{name}");
    assert_eq!(out, format!("Submitting job(s)...\n3 job(s) submitted to cluster {name}.\n"));
    assert!(
        err.contains("echo.sub, line 5, column 10: output: standard output is the log of the pod"),
        "{err}"
    );
    assert_eq!((jobs.len(), jobs[0].spec.count, jobs[0].spec.requests.cpus), (1, 3, Some(2)));
    let dry = cluster.shows_noted(&["submit", "--dry-run", path.to_str().unwrap()]).await;
    assert!(dry.contains("\"name\": \"echo\""), "{dry}");
    let items = jobs[0].spec.items.as_ref().unwrap();
    assert_eq!((items.variables.as_slice(), items.rows.len()), (["word".to_owned()].as_slice(), 3));
    assert!(jobs[0].spec.template.0.get().contains("\"$(word)\",\"$(Process)\",\"of\",\"$(Cluster)\""));
}

#[tokio::test]
async fn by_its_name_condor_submit_prints_the_number_that_the_operator_gives() {
    let cluster = Cluster::with_definitions().await;
    let path = cluster.directory.path().join("echo.sub");
    std::fs::write(&path, SUBMIT_FILE).unwrap();
    let link = cluster.directory.path().join("condor_submit");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubectl-slotwright"), &link).unwrap();
    let run = tokio::process::Command::new(&link)
        .args(["-terse", path.to_str().unwrap(), "-batch-name", "Night run", "log=echo-$(Cluster).log"])
        .current_dir(cluster.directory.path())
        .env("TZ", "UTC")
        .env("KUBECONFIG", cluster.directory.path().join("config"))
        .output();
    let jobs = Api::<HTCJob>::default_namespaced(cluster.client.clone());
    let number = async {
        let watched = kube::runtime::watcher(jobs.clone(), kube::runtime::watcher::Config::default());
        let mut watched = std::pin::pin!(kube::runtime::WatchStreamExt::applied_objects(watched));
        let job = futures::StreamExt::next(&mut watched).await.unwrap().unwrap();
        let status = Patch::Merge(json!({"status": {"clusterId": 42}}));
        jobs.patch_status(&job.name_any(), &PatchParams::default(), &status).await.unwrap();
        job
    };
    let (output, job) = tokio::join!(run, number);
    let output = output.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "42.0 - 42.2\n");
    assert!(job.name_any().starts_with("night-run-"), "{}", job.name_any());
    assert_eq!(job.spec.attributes["JobBatchName"], "\"Night run\"");
    let log = std::fs::read_to_string(cluster.directory.path().join("echo-42.log")).unwrap();
    let server = cluster.server.url.trim_start_matches("http://").trim_end_matches('/');
    let host = format!("Job submitted from host: <{server}?htcjob=default/{}>", job.name_any());
    let events: Vec<&str> = log.split_inclusive("...\n").collect();
    assert_eq!(events.len(), 3, "{log}");
    for (proc, event) in events.iter().enumerate() {
        // The time at which the API server stored the job.
        let begins = format!("000 (042.00{proc}.000) {} ", NOW.replace('T', " ").trim_end_matches('Z'));
        assert!(event.starts_with(&begins) && event.contains(&host), "{begins}: {event}");
    }
}

#[tokio::test]
async fn condor_submit_submits_nothing_where_a_file_has_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("condor_submit");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubectl-slotwright"), &link).unwrap();
    let dry = &["-dry-run", "-"] as &[&str];
    for (text, line, status, out, err) in [
        (&b"executable = /bin/true\nqueue 2\n"[..], dry, 0, "2 job(s) dry-run to cluster 1.", ""),
        (b"executable = /bin/true\nqueue x\n", &[], 1, "", "line 2, column 1: queue: 'x' is no count"),
        (b"executable = /bin/true\nqueue\n", &[], 1, "", "a pod needs an image"),
        (b"", &["-pool", "x"], 1, "", "-pool is not supported"),
        // A byte order mark, and Latin-1.
        (b"\xef\xbb\xbfexecutable = /bin/true\nqueue\n", dry, 0, "1 job(s) dry-run to cluster 1.", ""),
        (
            b"executable = /bin/caf\xe9\nqueue\n",
            dry,
            1,
            "",
            "a.sub: the file is not UTF-8: convert the file, for example with iconv",
        ),
    ] {
        let path = directory.path().join("a.sub");
        std::fs::write(&path, text).unwrap();
        let mut command = Command::new(&link);
        let output = command.args(line).arg(&path).env("KUBECONFIG", "/nonexistent").output().unwrap();
        let said = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{said:?}");
        assert!(said.0.contains(out) && said.1.contains(err), "{said:?}");
    }
}
