//! Rows 2 and 3: objects that no client in Rust decodes as a whole, and objects that take memory.

use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::{pool, pool_of, post, refused, row};
use crate::harness::{Cluster, eventually, job};

const PODS: &str = "/api/v1/namespaces/tenant/pods";
const JOBS: &str = "/apis/slotwright.dev/v1alpha1/namespaces/tenant/htcjobs";

/// The embedded server's own decoder just takes objects that nest so deep. A list or an event of a watch nests them deeper.
const DEPTH: usize = 122;
/// A real server takes objects that nest so deep. In the server's lists and events, such objects are too deep for
/// decoders in Rust.
const DEPTH_OF_REAL: usize = 200;
/// The most memory that the operator may take, in MiB.
pub(super) const MOST_MIB: u64 = 256;

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inside, _| json!({ "f:a": inside }))
}

/// Managed fields with these parts.
fn managed(api_version: &str, parts: &Value) -> Value {
    let mut entry = json!({"manager": "tenant", "operation": "Update", "apiVersion": api_version,
        "fieldsType": "FieldsV1", "fieldsV1": {}, "time": "2026-11-23T00:00:00Z"});
    entry.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
    json!([entry])
}

fn pod(name: &str, parts: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "managedFields": managed("v1", parts)},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

async fn text(client: &Client, request: http::request::Builder) -> String {
    client.request_text(request.body(Vec::new()).unwrap()).await.unwrap()
}

/// Deletes what no test after this could list.
async fn clear(cluster: &Cluster) {
    for all in [PODS, JOBS] {
        text(&cluster.client, Request::delete(format!("{all}?gracePeriodSeconds=0"))).await;
        let list = async || text(&cluster.client, Request::get(all)).await;
        eventually("all is deleted", || async { list().await.contains(r#""items":[]"#) }).await;
    }
}

/// Objects that cannot be decoded cost nobody the list or the watch that they are in.
#[tokio::test(flavor = "multi_thread")]
async fn objects_that_cannot_be_decoded_stop_nobody() {
    let (mut cluster, tenant) = pool_of(2).await;
    let deep = json!({"fieldsV1": nested(if cluster.server.is_some() { DEPTH } else { DEPTH_OF_REAL })});
    let late = json!({"time": "9999-12-31T23:59:59Z"});
    let both = [("late", &late), ("deep", &deep)];
    for (name, parts) in both {
        post(&tenant, PODS, &pod(name, parts)).await.unwrap();
        let object = job("tenant", name, 1, "100ms", |job| {
            job["metadata"]["managedFields"] = managed("slotwright.dev/v1alpha1", parts);
        });
        post(&tenant, JOBS, &object).await.unwrap();
    }
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::namespaced(tenant.clone(), "tenant");
    assert!(pods.list(&kube::api::ListParams::default()).await.is_err(), "no typed client reads these");

    cluster.start_operator();
    cluster.apply(job("others", "first", 3, "100ms", |_| {})).await;
    cluster.completed("others", "first").await;
    // The operator's watches see more such pods.
    for (name, parts) in both {
        post(&tenant, PODS, &pod(&format!("{name}-again"), parts)).await.unwrap();
    }
    cluster.apply(job("others", "second", 3, "100ms", |_| {})).await;
    cluster.completed("others", "second").await;
    // The hostile jobs are jobs as well.
    for (name, _) in both {
        eventually("the job has run", || async {
            let job = text(&cluster.client, Request::get(format!("{JOBS}/{name}"))).await;
            job.contains(r#""summary":"Completed""#)
        })
        .await;
    }
    row(
        "2 undecodable objects",
        "4 pods and 2 jobs: managedFields nested deep, times of the year 9999",
        "another's 6 procs are done, and so are the tenant's",
    );
    clear(&cluster).await;
    cluster.stop().await;
}

/// A template has what pods have, and a job as a whole is bounded.
#[tokio::test(flavor = "multi_thread")]
async fn templates_take_little_memory() {
    let (cluster, tenant) = pool().await;
    for n in 0..3 {
        let name = format!("junk-{n}");
        let object = job("tenant", &name, 1, "1h", |job| {
            job["spec"]["requirements"] = json!("false");
            job["spec"]["template"]["spec"]["junk"] = vec![json!({"": 0}); 150_000].into();
        });
        post(&tenant, JOBS, &object).await.unwrap();
        let kept = text(&tenant, Request::get(format!("{JOBS}/{name}"))).await;
        assert!(!kept.contains(r#""junk":"#), "{}", kept.len());
    }
    let large = job("tenant", "large", 1, "1h", |job| {
        let env: Vec<Value> =
            (0..20).map(|n| json!({"name": format!("E{n}"), "value": "v".repeat(15_000)})).collect();
        job["spec"]["template"]["spec"]["containers"][0]["env"] = env.into();
    });
    post(&tenant, JOBS, &large).await.unwrap();
    let said = refused(&cluster, "large", "ObjectTooLarge").await;
    assert!(said.contains("and may have 262144"), "{said}");
    cluster.apply(job("others", "plain", 8, "100ms", |_| {})).await;
    cluster.completed("others", "plain").await;
    let peak = cluster.operator_peak_mib();
    assert!(peak < MOST_MIB, "{peak} MiB");
    row(
        "3 templates as memory",
        "3 jobs with 1 MB of junk, one with a spec over 256 KiB",
        format!("junk dropped, large one refused with a message; operator: at most {peak} MiB"),
    );
    cluster.stop().await;
}
