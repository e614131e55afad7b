//! A DrainRequest empties a node as its schedule says: with retirement, with vacating only, or at once.

use serde_json::{Value, json};

use crate::cluster::{Cluster, only_on};
use crate::program::{OnTerm, Program};
use crate::proof::{self, Run};

const VACATING: f64 = 8.0;

/// How long a job may run in a graceful drain: its retirement time less its vacating time.
const RETIREMENT: f64 = 40.0 - VACATING;
const POLICY: &str = "MAXJOBRETIREMENTTIME = 40\nMachineMaxVacateTime = 8";

/// How long the operator and the kubelet may need for a step on a busy computer, in seconds.
const SLACK: f64 = 6.0;

/// How long after the request a program that is to go without retirement may get its SIGTERM, in seconds. On a busy computer the
/// operator and the kubelet may each need [`SLACK`].
const WITHOUT_RETIREMENT: f64 = 2.0 * SLACK;

/// How long after its SIGTERM a program may live that has no time to vacate, in seconds. Kubelets give such a program two.
const WITHOUT_VACATING: f64 = VACATING - 2.0;

const PATIENT: OnTerm = OnTerm::Exit { after: 3, code: 0 };

fn request(node: &str, schedule: &str) -> Value {
    json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "DrainRequest",
        "metadata": {"name": format!("{node}-{}", schedule.to_lowercase())},
        "spec": {"node": node, "schedule": schedule, "onCompletion": "Stay"},
    })
}

/// Whether a program that was asked to go at this time got its SIGTERM without retirement: soon, and before a retirement would have
/// ended.
fn went_without_retirement(asked: f64, run: &Run) -> bool {
    let term = run.term.unwrap_or(run.last);
    term - asked < WITHOUT_RETIREMENT && term - run.started < RETIREMENT - 2.0
}

async fn drained(cluster: &Cluster, request: &Value) {
    let requests: kube::Api<api::DrainRequest> = kube::Api::all(cluster.client.clone());
    let name = request["metadata"]["name"].as_str().unwrap();
    cluster
        .until(&format!("{name} is Drained"), 60, || async {
            let status = requests.get(name).await.unwrap().status.unwrap_or_default();
            status.conditions.iter().any(|c| c.type_ == "Drained" && c.status == "True")
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn drains_give_the_time_that_their_schedule_promises() {
    let cluster = Cluster::start("drain", POLICY).await;
    let space = cluster.namespace.clone();
    let long = Program::new(200, 2).on_term(PATIENT);
    let stubborn = Program::new(200, 2).on_term(OnTerm::Ignore);
    let short = Program::new(11, 2).on_term(PATIENT);
    let jobs = [
        ("graceful-long", long, "node1"),
        ("graceful-short", short, "node1"),
        ("quick-long", long, "node2"),
        ("quick-stubborn", stubborn, "node2"),
        ("fast-long", Program::new(200, 2).on_term(OnTerm::Exit { after: 30, code: 0 }), "node3"),
        ("fast-stubborn", stubborn, "node3"),
    ];
    for (name, program, node) in jobs {
        cluster.apply(program.job(&space, name, 2, only_on(node))).await;
    }
    for (name, _, _) in jobs {
        cluster.running(name, 2).await;
    }
    let requests = [request("node1", "Graceful"), request("node2", "Quick"), request("node3", "Fast")];
    let asked = proof::now();
    for request in &requests {
        cluster.apply(request.clone()).await;
    }
    for request in &requests {
        drained(&cluster, request).await;
    }
    // A drained node runs nothing, and takes nothing, until the request is gone.
    for (name, _, _) in jobs {
        let proof = cluster.proof(name);
        assert!(proof.all_runs().count() == 2, "{name}: nothing starts on a drained node: {proof:#?}");
    }
    for request in &requests {
        cluster.delete(request).await;
    }
    let mut wrong = Vec::new();
    for (name, _, _) in jobs {
        cluster.completed(name, 120).await;
        wrong.extend(cluster.violations(name, |_| false).await);
    }
    let mut check = |right: bool, text: String| {
        if !right {
            wrong.push(text);
        }
    };
    for proc in 0..2 {
        let first = |name: &str| cluster.proof(name).runs(proc)[0].clone();
        let run = first("graceful-long");
        let retired = run.term.map_or(f64::INFINITY, |term| term - run.started);
        // The claim is some seconds older than the program.
        check(
            (RETIREMENT - 5.0..=RETIREMENT + SLACK).contains(&retired) && run.shut_down,
            format!(
                "graceful: SIGTERM after {retired:.1} s of {RETIREMENT}, then time to shut down: {run:?}"
            ),
        );
        let run = first("graceful-short");
        check(
            run.ended == Some(0) && cluster.proof("graceful-short").runs(proc).len() == 1,
            format!("graceful: who ends within the retirement time is done: {run:?}"),
        );
        let run = first("quick-long");
        check(
            went_without_retirement(asked, &run) && run.shut_down,
            format!("quick: SIGTERM soon after {asked:.1}, then time: {run:?}"),
        );
        let run = first("quick-stubborn");
        let outlived = run.term.map_or(f64::INFINITY, |term| run.last - term);
        check(
            (VACATING - 2.0..=VACATING + SLACK).contains(&outlived),
            format!("quick: {outlived:.1} s to vacate of {VACATING}: {run:?}"),
        );
        for name in ["fast-long", "fast-stubborn"] {
            let run = first(name);
            let outlived = run.term.map_or(0.0, |term| run.last - term);
            check(
                went_without_retirement(asked, &run) && outlived < WITHOUT_VACATING && !run.shut_down,
                format!("{name}: gone soon after {asked:.1}, and at once: {run:?}"),
            );
        }
    }
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
}
