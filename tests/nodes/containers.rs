//! Pods of several containers: the main one's exit is the end of the proc.

use kube::api::ListParams;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::program::{Program, container};

/// Goes on for ten minutes, unless SIGTERM ends it.
const COMPANION: &str = "trap 'exit 0' TERM; sleep 600 & wait $!";

/// Goes on for ten minutes, whatever it hears.
const STUBBORN: &str = "trap '' TERM; sleep 600";

/// Checks that the job is complete, each proc after one run, and that all slots are free.
async fn ends_with_main(cluster: &Cluster, job: &str, procs: usize) {
    let record = cluster.completed(job, 60).await;
    assert_eq!((record.completed.len(), record.failed.len()), (procs, 0), "{job}: {record:?}");
    assert_eq!(cluster.violations(job, |_| false).await, [] as [String; 0]);
    for proc in 0..u32::try_from(procs).unwrap() {
        assert_eq!(cluster.proof(job).only(proc).ended, Some(0), "{job}.{proc}");
    }
    let slots: kube::Api<api::Slot> = kube::Api::all(cluster.client.clone());
    cluster
        .until("every slot is free", 90, || async {
            slots.list(&ListParams::default()).await.unwrap().items.is_empty()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_companion_does_not_outlive_the_main_container() {
    let cluster = Cluster::start("companion", "MachineMaxVacateTime = 5").await;
    let space = cluster.namespace.clone();
    for (name, script) in [("polite", COMPANION), ("stubborn", STUBBORN)] {
        cluster
            .apply(Program::new(3, 3).job(&space, name, 2, |job| {
                let pod = &mut job["spec"]["template"]["spec"];
                pod["terminationGracePeriodSeconds"] = json!(5);
                pod["containers"].as_array_mut().unwrap().push(small(container("companion", name, script)));
            }))
            .await;
    }
    for name in ["polite", "stubborn"] {
        ends_with_main(&cluster, name, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_native_sidecar_with_requests_is_accepted_and_ends_with_the_main_container() {
    let cluster = Cluster::start("sidecar", "MachineMaxVacateTime = 5").await;
    let space = cluster.namespace.clone();
    if cluster.minor_version().await < 29 {
        eprintln!("left out: servers before 1.29 know no native sidecars");
        return;
    }
    cluster
        .apply(Program::new(3, 3).job(&space, "sidecar", 2, |job| {
            let mut sidecar = small(container("sidecar", "sidecar", COMPANION));
            sidecar["restartPolicy"] = json!("Always");
            job["spec"]["requests"]["cpus"] = json!(2);
            job["spec"]["template"]["spec"]["initContainers"] = json!([sidecar]);
        }))
        .await;
    ends_with_main(&cluster, "sidecar", 2).await;
}

/// The container with a small request.
fn small(mut container: Value) -> Value {
    container["resources"] = json!({"requests": {"cpu": "100m", "memory": "16Mi"}});
    container
}
