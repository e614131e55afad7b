//! Rows 6, 9 and 10: a webhook that hangs, connections that say nothing, and a second operator.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use api::HTCJob;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{pool, pool_of, row, running, submit};
use crate::harness::{Cluster, IDENTITY, MADE_BY_TESTS, condition, eventually, job};

/// How long a kubelet would wait for a probe's answer, with much to spare for a busy computer.
const PROBE: Duration = Duration::from_secs(10);

/// A webhook that hangs for each new pod of the namespace `tenant`. It is there until [`Hanging::remove`].
struct Hanging {
    hooks: Option<Api<ValidatingWebhookConfiguration>>,
    /// Takes connections, and never answers.
    _silent: TcpListener,
}

impl Hanging {
    const NAME: &str = "hanging";

    /// On a real server an admin installs the webhook. The embedded server lets calls hang.
    async fn install(cluster: &Cluster) -> Self {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        if let Some(server) = &cluster.server {
            server.hang_new_pods_in("tenant");
            return Self { hooks: None, _silent: silent };
        }
        let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
        let label = Patch::Merge(json!({"metadata": {"labels": {"webhook": "hangs"}}}));
        namespaces.patch("tenant", &PatchParams::default(), &label).await.unwrap();
        let hook: ValidatingWebhookConfiguration = serde_json::from_value(json!({
            "metadata": {"name": Self::NAME, "labels": {MADE_BY_TESTS: "true"}},
            "webhooks": [{
                "name": "hanging.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "timeoutSeconds": 30, "failurePolicy": "Fail",
                "clientConfig": {"url": format!("https://{}/", silent.local_addr().unwrap())},
                "namespaceSelector": {"matchLabels": {"webhook": "hangs"}},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            }],
        }))
        .unwrap();
        let hooks: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
        hooks.create(&PostParams::default(), &hook).await.unwrap();
        // The server asks the webhook a moment later. A pod whose creation takes longer than any other answer waits for
        // the webhook.
        let probe: Pod = serde_json::from_value(json!({
            "metadata": {"name": "probe"}, "spec": {"containers": [{"name": "probe", "image": "busybox"}]},
        }))
        .unwrap();
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let pods = cluster.pods("tenant");
        eventually("the webhook is asked", || async {
            tokio::time::timeout(Duration::from_secs(3), pods.create(&dry, &probe)).await.is_err()
        })
        .await;
        Self { hooks: Some(hooks), _silent: silent }
    }

    async fn remove(self) {
        if let Some(hooks) = self.hooks {
            hooks.delete(Self::NAME, &DeleteParams::default()).await.unwrap();
        }
    }
}

/// Pods that a webhook never lets pass keep the pods of others, and what is written about others, no time.
#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_webhook_holds_up_its_own_namespace_alone() {
    let (mut cluster, tenant) = pool_of(20).await;
    let hanging = Hanging::install(&cluster).await;
    for n in 0..8 {
        submit(&tenant, job("tenant", &format!("hangs-{n}"), 50, "1h", |_| {})).await;
    }
    // Before the operator starts: otherwise the tenant may have claimed every machine by the time of this job's first cycle.
    cluster.apply(job("others", "plain", 40, "100ms", |_| {})).await;
    cluster.start_operator();
    cluster.completed("others", "plain").await;
    // Claims that wait for the webhook end after a while. A job of the tenant says so only if it had such claims.
    let jobs: Api<HTCJob> = Api::namespaced(cluster.client.clone(), "tenant");
    eventually("the tenant's claims have waited for the webhook", || async {
        let all = jobs.list(&ListParams::default()).await.unwrap();
        all.iter().any(|job| {
            condition(job, "PodRefused").is_some_and(|(_, _, why)| why.contains("admission webhook"))
        })
    })
    .await;
    assert_eq!(running(&cluster, "tenant", "hangs-0").await, 0, "the webhook does not hang");
    row(
        "6 a hanging webhook",
        "400 procs whose pods a webhook of their namespace never lets pass",
        "another's 40 procs are done meanwhile",
    );
    hanging.remove().await;
    cluster.stop().await;
}

/// Whether a probe is answered in time, with 200.
async fn answers(health: SocketAddr, path: &'static str) -> bool {
    let ask = move || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&health, PROBE)?;
        stream.set_read_timeout(Some(PROBE))?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = tokio::task::spawn_blocking(ask).await.unwrap();
    answer.is_ok_and(|said| said.starts_with("HTTP/1.1 200"))
}

/// Connections that say nothing keep no probe waiting.
#[tokio::test(flavor = "multi_thread")]
async fn half_open_connections_silence_no_probe() {
    const CONNECTIONS: usize = 800;
    let (mut cluster, _tenant) = pool_of(2).await;
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let health = free.local_addr().unwrap();
    drop(free);
    cluster.start_operator_probed_at(&health.to_string());
    eventually("the operator is ready", || answers(health, "/readyz")).await;
    let mut half_open = Vec::new();
    for number in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(health).unwrap();
        if number % 2 == 0 {
            // The operator may have closed the connection before.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost:");
        }
        half_open.push(stream);
        if number % 100 == 99 {
            assert!(answers(health, "/livez").await && answers(health, "/readyz").await, "{number}");
        }
    }
    cluster.apply(job("others", "plain", 8, "100ms", |_| {})).await;
    cluster.completed("others", "plain").await;
    assert!(answers(health, "/livez").await);
    // The operator has few files open: it has closed the oldest connections.
    half_open[0].set_read_timeout(Some(PROBE)).unwrap();
    let closed = match half_open[0].read(&mut [0]) {
        Ok(bytes) => bytes == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    };
    assert!(closed, "the oldest connection is open");
    row(
        "9 the health port",
        format!("{CONNECTIONS} half-open connections"),
        "livez and readyz answer; another's 8 procs are done",
    );
    drop(half_open);
    cluster.stop().await;
}

/// The pool is the first operator's. A second one says so, and ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_operator_refuses_to_start() {
    let (cluster, _tenant) = pool().await;
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-node-lease");
    let owner = format!("{IDENTITY}_pod");
    eventually("the pool has an owner", || async {
        let mark = leases.get_opt(api::labels::POOL_LEASE).await.unwrap();
        mark.and_then(|mark| mark.spec?.holder_identity).as_ref() == Some(&owner)
    })
    .await;
    let second = cluster.operator_command("second", "127.0.0.1:0").stderr(Stdio::piped()).spawn().unwrap();
    let ended = tokio::task::spawn_blocking(|| second.wait_with_output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("the pool of this cluster is {owner}'s")), "{said}");
    cluster.apply(job("others", "plain", 8, "100ms", |_| {})).await;
    cluster.completed("others", "plain").await;
    row(
        "10 a second operator",
        "an operator without this one's Lease",
        "status 2, and a message that names the owner; another's 8 procs are done",
    );
    cluster.stop().await;
}
