//! The attacks on the pool by a tenant who may edit one namespace, and their cost for others. Each test adds a row to the table
//! of hack/attack.sh. On a real server with the chart installed the tenant has the rights of the role `edit` in the namespace
//! `tenant`, and no others.
//!
//! | file | rows |
//! | --- | --- |
//! | `jobs` | 1, 4, 5, 7, 8: jobs and pods that are well formed |
//! | `objects` | 2, 3: objects that cannot be decoded, or are large |
//! | `neighbors` | 6, 9, 10: webhooks, connections and operators beside the pool |
//! | `load` | the time and memory that 500 hostile jobs cost, by `hack/attack.sh load` alone |

mod jobs;
mod load;
mod neighbors;
mod objects;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

use api::HTCJob;
use hollow::nodes::shapes;
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::harness::{Cluster, condition, eventually};

/// Adds the row of an attack to the file that `SLOTWRIGHT_TEST_ATTACKS` names (hack/attack-table.sh).
fn row(attack: &str, tried: impl Display, came_of_it: impl Display) {
    let Some(table) = std::env::var_os("SLOTWRIGHT_TEST_ATTACKS") else { return };
    let mut table = OpenOptions::new().append(true).create(true).open(table).unwrap();
    writeln!(table, "{attack}|{tried}|{came_of_it}").unwrap();
}

const TENANT: &str = "mallory@example.com";

/// A pool of 8 CPUs on two nodes, and the client of a tenant.
async fn pool() -> (Cluster, Client) {
    let (mut cluster, tenant) = pool_of(2).await;
    cluster.start_operator();
    (cluster, tenant)
}

/// A pool of nodes with 4 CPUs, and the client of a tenant. No operator runs yet.
async fn pool_of(nodes: usize) -> (Cluster, Client) {
    let cluster = Cluster::without_operator(shapes::uniform(nodes, 4000, 16 << 30)).await;
    cluster.quick_cycles().await;
    for namespace in ["tenant", "others"] {
        cluster.namespace(namespace).await;
    }
    let tenant = tenant(&cluster).await;
    (cluster, tenant)
}

/// A client of the tenant. The embedded server, and a server without the chart, know no rights.
async fn tenant(cluster: &Cluster) -> Client {
    let Some(path) = std::env::var_os("SLOTWRIGHT_TEST_KUBECONFIG")
        .filter(|_| std::env::var_os("SLOTWRIGHT_TEST_OPERATOR_KUBECONFIG").is_some())
    else {
        return cluster.client.clone();
    };
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": TENANT}],
    }))
    .unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(cluster.client.clone(), "tenant");
    bindings.patch("tenant", &PatchParams::apply("test").force(), &Patch::Apply(&binding)).await.unwrap();
    let file = Kubeconfig::read_from(path).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    config.auth_info.impersonate = Some(TENANT.to_owned());
    let client = Client::try_from(config).unwrap();
    // The controller manager adds the chart's rules to the role a moment later.
    let jobs: Api<HTCJob> = Api::namespaced(client.clone(), "tenant");
    eventually("the tenant may submit", || async { jobs.list(&ListParams::default()).await.is_ok() }).await;
    client
}

/// Submits a job as the tenant.
async fn submit(tenant: &Client, object: Value) {
    let jobs: Api<HTCJob> = Api::namespaced(tenant.clone(), "tenant");
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    jobs.patch(&name, &PatchParams::apply("tenant"), &Patch::Apply(object)).await.unwrap();
}

/// How many pods of a job run.
async fn running(cluster: &Cluster, namespace: &str, name: &str) -> usize {
    let of = ListParams::default().labels(&format!("{}={name}", api::labels::JOB_NAME));
    let pods = cluster.pods(namespace).list(&of).await.unwrap();
    let runs = |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    pods.items.iter().filter(runs).count()
}

/// Waits until a job of the tenant is refused for this reason, and returns the message.
async fn refused(cluster: &Cluster, name: &str, reason: &str) -> String {
    let told = |job: &HTCJob| condition(job, "Accepted").is_some_and(|(_, said, _)| said == reason);
    let refused = cluster.job_when("tenant", name, "is refused", told).await;
    condition(&refused, "Accepted").unwrap().2
}

/// Sends an object as it is. The answer is not decoded.
async fn post(tenant: &Client, path: &str, object: &Value) -> Result<String, kube::Error> {
    let request = Request::post(path).header("content-type", "application/json");
    tenant.request_text(request.body(object.to_string().into_bytes()).unwrap()).await
}
