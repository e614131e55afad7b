//! Programs that do not leave when they are asked to: they are killed, when the manual says.

use serde_json::json;

use crate::cluster::Cluster;
use crate::program::{OnTerm, Program};

/// How long a kubelet may need beyond the time that the policy gives, in seconds. It grants whole seconds and looks
/// once a second, and the computer may be busy.
const SLACK: f64 = 6.0;

const PREEMPT: &str =
    "PREEMPT = (TARGET.LeavesAfter =!= undefined) && (time() - JobStart) > TARGET.LeavesAfter";

/// Runs a job that ignores SIGTERM under a policy, and checks for how long it went on after the signal.
async fn outlives_term_by(namespace: &str, policy: &str, at_least: f64, at_most: f64) {
    let cluster = Cluster::start(namespace, &format!("{policy}\n{PREEMPT}")).await;
    let stubborn = Program::new(200, 2).on_term(OnTerm::Ignore);
    cluster
        .apply(stubborn.job(namespace, "stubborn", 2, |job| {
            job["spec"]["attributes"] = json!({"LeavesAfter": "4"});
        }))
        .await;
    cluster.completed("stubborn", 180).await;
    let mut wrong = cluster.violations("stubborn", |_| false).await;
    for proc in 0..2 {
        let proof = cluster.proof("stubborn");
        let first = &proof.runs(proc)[0];
        let Some(term) = first.term else { panic!("proc {proc} never heard SIGTERM: {first:?}") };
        let outlived = first.last - term;
        eprintln!("proc {proc} went on for {outlived:.1} s after SIGTERM");
        if outlived < at_least || outlived > at_most {
            wrong.push(format!(
                "proc {proc} went on for {outlived:.1} s, not {at_least} to {at_most} s: {first:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_program_that_ignores_sigterm_is_killed_after_its_vacating_time() {
    outlives_term_by("kill-vacate", "MachineMaxVacateTime = 5", 3.0, 5.0 + SLACK).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_program_is_killed_soon_after_kill_is_true() {
    let policy = "MachineMaxVacateTime = 60\nKILL = (time() - EnteredCurrentActivity) > 8";
    outlives_term_by("kill-expression", policy, 6.0, 8.0 + SLACK).await;
}
