//! Several Negotiators over one pool: each matches its own slots and keeps accounts of its own, and their statuses say
//! whether their slots overlap.

use api::{Negotiator, Submitter};
use hollow::nodes::shapes;
use kube::Api;
use serde_json::{Value, json};

use crate::harness::{Cluster, eventually, job};

fn negotiator(name: &str, constraint: &str) -> Value {
    json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator", "metadata": {"name": name},
           "spec": {"intervalSeconds": 2, "cycleDelaySeconds": 0, "minIntervalSeconds": 1,
                    "slotConstraint": constraint}})
}

/// Waits until the condition `Overlaps` of a Negotiator has this status.
async fn overlaps(cluster: &Cluster, name: &str, status: &str) {
    let negotiators: Api<Negotiator> = Api::all(cluster.client.clone());
    eventually(&format!("{name}: Overlaps is {status}"), || async {
        let said = negotiators.get(name).await.unwrap().status.unwrap_or_default().conditions;
        said.iter().any(|c| c.type_ == "Overlaps" && c.status == status)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_negotiators_share_a_pool_with_accounts_of_their_own() {
    let shapes = shapes::uniform(2, 4000, 8 << 30);
    let first = shapes[0].name.clone();
    let cluster = Cluster::start(shapes).await;
    cluster.apply(negotiator("one", &format!("Machine == \"{first}\""))).await;
    cluster.apply(negotiator("rest", &format!("Machine != \"{first}\""))).await;
    overlaps(&cluster, "one", "False").await;
    overlaps(&cluster, "rest", "False").await;

    // Each proc fills a node.
    cluster.namespace("both").await;
    let wide = job("both", "wide", 2, "2s", |o| o["spec"]["requests"] = json!({"cpus": 4}));
    cluster.apply(wide).await;
    cluster.completed("both", "wide").await;

    let submitters: Api<Submitter> = Api::all(cluster.client.clone());
    eventually("the owner has an account with either", || async {
        let Some(submitter) = submitters.get_opt("both").await.unwrap() else { return false };
        let status = submitter.status.unwrap_or_default();
        let others = &status.accounts;
        let other = if status.negotiator.as_deref() == Some("one") { "rest" } else { "one" };
        status.accumulated_usage > 0.0
            && others.len() == 1
            && others.get(other).is_some_and(|account| account.accumulated_usage > 0.0)
    })
    .await;
    let negotiators: Api<Negotiator> = Api::all(cluster.client.clone());
    for name in ["one", "rest"] {
        let status = negotiators.get(name).await.unwrap().status.unwrap();
        assert_eq!(status.uncovered_slots, Some(0), "{name}");
        assert!(status.cycles > 0, "{name}");
    }

    cluster.apply(negotiator("rest", "true")).await;
    overlaps(&cluster, "rest", "True").await;
    cluster.stop().await;
}
