//! The manual's examples of transforms, submit requirements and a submit warning, as people with kubectl meet them: the webhook
//! answers in this process, and the operator works.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use controller::creators::Stamps;
use controller::seal::{KEY_BYTES, Key, Seals};
use hollow::server::{HollowServer, RunningServer, ServerConfig, Webhook, Webhooks};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use webhook::{Objects, OtherObjects};

use crate::program::Kubectl;

/// The manual's policy, by which the user who creates a job is the job's owner.
fn policy() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/submit/10-submitpolicy.yaml");
    let mut policy: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    policy["spec"]["owner"] = json!({"from": "User"});
    policy
}

/// The groups that the policy's map names.
fn groups() -> [Value; 2] {
    ["physics", "chemistry"].map(|name| {
        json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": name},
               "spec": {"quota": 1}})
    })
}

fn typed<K: DeserializeOwned>(object: &Value) -> K {
    serde_json::from_value(object.clone()).unwrap()
}

/// A job with these further fields of the spec.
fn job(name: &str, more: Value) -> Value {
    let mut spec = json!({"template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
           "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

/// The webhooks of the chart, which know the policy and the groups, and seal with a key.
fn webhooks(key: Key) -> Webhooks {
    let known = OtherObjects::all(&Objects {
        groups: &groups().map(|group| typed(&group)),
        policies: &[typed(&policy())],
        ..Objects::default()
    });
    let (sealing, clock) = (known.clone(), controller::Clock::start());
    let seal = move |asked: &_| webhook::seal(asked, &sealing, Some(&key), clock.now());
    let review = move |asked: &_| webhook::review(asked, &known);
    Webhooks {
        mutating: vec![Webhook::new("seal.slotwright.dev", api::GROUP, seal)],
        validating: vec![Webhook::new("validate.slotwright.dev", api::GROUP, review)],
    }
}

/// Writes the manifests that people apply.
fn write_manifests(home: &Path) {
    let crds = api::definitions().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    for (name, objects) in [
        ("definitions.yaml", crds),
        ("policy.yaml", [vec![policy()], groups().into()].concat()),
        ("large.yaml", vec![job("large", json!({"requests": {"memory": "2Gi"}}))]),
        (
            "sl6.yaml",
            vec![job("sl6", json!({"requests": {"memory": "2Gi"}, "attributes": {"WantSL6": "true"}}))],
        ),
        (
            "standard.yaml",
            vec![job("standard", json!({"requests": {"memory": "2Gi"}, "attributes": {"JobUniverse": "1"}}))],
        ),
        ("small.yaml", vec![job("small", json!({"requests": {"memory": "256Mi"}}))]),
        ("middle.yaml", vec![job("middle", json!({"requests": {"memory": "1Gi"}}))]),
        ("by-chris.yaml", vec![job("by-chris", json!({"requests": {"memory": "2Gi"}}))]),
        ("large-edited.yaml", vec![job("large", json!({"requests": {"memory": "2Gi"}, "count": 2}))]),
    ] {
        let documents: Vec<String> = objects.iter().map(ToString::to_string).collect();
        fs::write(home.join(name), documents.join("\n---\n")).unwrap();
    }
}

/// The commands that people type, after the definitions and the policy are there.
const TYPED: &[&str] = &[
    // AssignGroup and SL6ToDocker change jobs.
    "apply --as=alice -f large.yaml",
    "wait htcjob large --for=jsonpath={.status.submitter}=physics.alice --timeout=20s",
    "get htcjob large -o jsonpath={.status.policy}",
    "apply --as=alice -f sl6.yaml",
    "wait htcjob sl6 --for=jsonpath={.status.submitter}=physics.alice --timeout=20s",
    "get htcjob sl6 -o jsonpath={.status.policy}",
    // NotStandardUniverse, MinimalRequestMemory and NotChris refuse; OneGig warns.
    "apply --as=alice -f standard.yaml",
    "apply --as=alice -f small.yaml",
    "apply --as=chris -f by-chris.yaml",
    "apply --as=alice -f middle.yaml",
    "apply --as=alice -f middle.yaml",
    // A dry run is answered alike, and another's job is not edited.
    "apply --as=alice --dry-run=server -f small.yaml",
    "apply --as=mallory -f large-edited.yaml",
    "apply --as=alice -f large-edited.yaml",
    "get htcjobs -o name",
];

async fn start(home: &Path) -> (RunningServer, CancellationToken, tokio::task::JoinHandle<()>) {
    let key = Key::new(&[7; KEY_BYTES]).unwrap();
    let config = ServerConfig { webhooks: webhooks(key.clone()), ..ServerConfig::default() };
    let server = HollowServer::start(([127, 0, 0, 1], 0).into(), config).await.unwrap();
    fs::write(home.join("config"), server.kubeconfig()).unwrap();
    let stop = CancellationToken::new();
    let options = controller::Options {
        health_addr: None,
        metrics_addr: None,
        history: None,
        webhook_serves: None,
        leader_elect_namespace: None,
        identity: "under-test".to_owned(),
        pod_uid: None,
    };
    let seals = Seals::by(watch::channel(Some(key)).1);
    let (config, stopped) = (server.kube_config().unwrap(), stop.clone());
    let operator = tokio::spawn(async move {
        controller::run(config, options, (seals, Stamps::default()), stopped).await.unwrap();
    });
    (server, stop, operator)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_prints_what_the_manuals_policy_says() {
    let directory = tempfile::tempdir().unwrap();
    let home: PathBuf = directory.path().to_owned();
    let Some(kubectl) = Kubectl::find(home.clone()) else {
        println!("SKIPPED: no kubectl on the PATH; set KUBECTL to one");
        return;
    };
    let (server, stop, operator) = start(&home).await;
    write_manifests(&home);
    let told = tokio::task::spawn_blocking(move || {
        for line in ["apply --server-side -f definitions.yaml", "apply -f policy.yaml"] {
            let (succeeded, output) = kubectl.run(line, "");
            assert!(succeeded, "kubectl {line}: {output}");
        }
        let mut told = String::new();
        for line in TYPED {
            let (_, output) = kubectl.run(line, "");
            writeln!(told, "$ kubectl {line}\n{}\n", output.trim_end()).unwrap();
        }
        told
    })
    .await
    .unwrap();
    stop.cancel();
    operator.await.unwrap();
    server.shutdown().await;
    insta::assert_snapshot!(told);
}
