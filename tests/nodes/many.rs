//! Many procs under evictions of every kind at once. Each is done exactly when its program has ended by itself.
//! `PROCS=500 make e2e-nodes` makes it large.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::cluster::{Cluster, node_names, phase};
use crate::machine::node;
use crate::program::{OnTerm, Program};
use crate::proof::{self, Run};

/// Unlucky jobs are sent away in some seconds of each minute. After each eviction a proc waits longer for its next try, so
/// that more of this would only make the test longer.
const POLICY: &str = "MachineMaxVacateTime = 5
PREEMPT = (TARGET.Unlucky =?= true) && (time() % 60 < 6) && (time() - EnteredCurrentActivity) > 3";

fn procs() -> u32 {
    std::env::var("PROCS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

fn programs() -> [(&'static str, Program); 5] {
    let exit = |after, code| OnTerm::Exit { after, code };
    [
        ("quick", Program::new(5, 5).on_term(exit(0, 0))),
        ("fails", Program::new(7, 7).exit(7).on_term(exit(1, 0))),
        ("slow", Program::new(8, 8).on_term(exit(3, 7))),
        ("stubborn", Program::new(9, 9).on_term(OnTerm::Ignore)),
        ("unlucky", Program::new(6, 6).on_term(exit(1, 7))),
    ]
}

/// The troubles of the cluster, one after the other.
struct Trouble<'a> {
    cluster: &'a Cluster,
    step: usize,
    /// Which nodes lost their containers, and when.
    cuts: Vec<(String, f64)>,
}

impl Trouble<'_> {
    async fn next(&mut self) {
        let step = self.step;
        self.step += 1;
        let nodes = node_names();
        let (place, number) = (nodes[step % 3].clone(), (step % 3 + 1).to_string());
        match step % 16 {
            3 => self.drain(&place, "Quick", step).await,
            7 => self.drain(&place, "Fast", step).await,
            5 => {
                self.cluster.kill_operator("operator");
                tokio::time::sleep(Duration::from_secs(2)).await;
                self.cluster.start_operator("operator", false);
            }
            9 => spawn_blocking(move || {
                node(&["kill", &number, "kubelet"]);
                node(&["start", &number]);
            })
            .await
            .unwrap(),
            11 => spawn_blocking(move || {
                node(&["kill", &number, "containerd"]);
                node(&["start", &number]);
            })
            .await
            .unwrap(),
            14 => {
                let wipe = if step % 32 < 16 { "" } else { "--wipe" };
                self.cuts.push((place, proof::now()));
                spawn_blocking(move || {
                    node(&["power-cut", &number, wipe]);
                    node(&["start", &number]);
                })
                .await
                .unwrap();
            }
            even if even % 2 == 0 => self.delete(step).await,
            _ => self.evict(step).await,
        }
    }

    async fn some_pods(&self, step: usize) -> Vec<Pod> {
        let pods = self.cluster.pods().list(&kube::api::ListParams::default()).await.unwrap().items;
        let running = |pod: &Pod| phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none();
        let running: Vec<_> = pods.into_iter().filter(running).collect();
        let from = if running.is_empty() { 0 } else { step * 7 % running.len() };
        running.into_iter().skip(from).take(2).collect()
    }

    async fn delete(&self, step: usize) {
        for pod in self.some_pods(step).await {
            // The pod may have ended meanwhile.
            let _ =
                self.cluster.pods().delete(&pod.name_any(), &DeleteParams::default().grace_period(6)).await;
        }
    }

    async fn evict(&self, step: usize) {
        for pod in self.some_pods(step).await {
            let _ = self.cluster.evict(&pod.name_any()).await;
        }
    }

    async fn drain(&self, node: &str, schedule: &str, step: usize) {
        self.cluster
            .apply(json!({
                "apiVersion": "slotwright.dev/v1alpha1", "kind": "DrainRequest", "metadata": {"name": format!("step{step}")},
                "spec": {"node": node, "schedule": schedule, "onCompletion": "Resume"},
            }))
            .await;
    }
}

/// Releases held procs, as a user does: by an edit of the job. If containerd is killed while it starts a container, the kubelet
/// reports a StartError, of which nobody can say for certain that the program is not to blame.
async fn release(cluster: &Cluster) {
    for (name, _) in programs() {
        let status = cluster.jobs().get(name).await.unwrap().status.unwrap_or_default();
        let Some(held) = status.held_procs.first() else { continue };
        eprintln!("{name}: released {held:?}");
        let edit = json!({"spec": {"attributes": {"Released": proof::now().floor().to_string()}}});
        cluster.jobs().patch(name, &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    }
}

/// Whether the run's node lost its containers before the kubelet could tell how the run had ended.
fn was_lost(run: &Run, cuts: &[(String, f64)]) -> bool {
    cuts.iter().any(|(node, at)| run.node == *node && run.started < *at && run.last > at - 10.0)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn each_proc_is_done_when_its_program_ended_by_itself() {
    let cluster = Cluster::start("many", POLICY).await;
    let space = cluster.namespace.clone();
    let count = procs() / 5;
    for (name, program) in programs() {
        cluster
            .apply(program.job(&space, name, count, |job| {
                job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(6);
                if name == "unlucky" {
                    job["spec"]["attributes"] = json!({"Unlucky": "true"});
                }
            }))
            .await;
    }
    let began = proof::now();
    let patience = 180.0 + 3.0 * f64::from(procs());
    let mut trouble = Trouble { cluster: &cluster, step: 0, cuts: Vec::new() };
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let mut done = 0;
        for (name, _) in programs() {
            let record = trouble.cluster.record(name).await;
            done += record.completed.len() + record.failed.len();
        }
        release(trouble.cluster).await;
        // The last tenth is left in peace, so that the end comes.
        if done * 10 >= usize::try_from(count).unwrap() * 5 * 9 {
            break;
        }
        assert!(proof::now() - began < patience, "{done} procs are done after {patience} s");
        trouble.next().await;
    }
    let (steps, cuts) = (trouble.step, trouble.cuts);
    let mut wrong = Vec::new();
    let mut runs = 0;
    cluster
        .until("all jobs are complete", 300, || async {
            release(&cluster).await;
            let mut left = 0;
            for (name, _) in programs() {
                left += usize::from(!cluster.is_complete(name).await);
            }
            left == 0
        })
        .await;
    for (name, _) in programs() {
        wrong.extend(cluster.violations(name, |run| was_lost(run, &cuts)).await);
        runs += cluster.proof(name).all_runs().count();
    }
    eprintln!("{} procs, {runs} runs, {steps} troubles, {:.0} s", count * 5, proof::now() - began);
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
}
