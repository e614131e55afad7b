//! Cron jobs on real nodes: what a program says becomes attributes of the slots, and a broken slot takes no jobs.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use api::{NodeReport, PartitionableSlot};
use kube::ResourceExt;
use kube::api::Api;
use tokio::sync::Mutex;

use crate::agents::Desk;
use crate::cluster::{Cluster, only_on};
use crate::program::Program;

/// The program tells what the test has written, and notes each of its runs. The other program is none of the site's.
const POLICY: &str = "
STARTD_CRON_JOBLIST = check, shell
STARTD_CRON_AUTOPUBLISH = If_Changed
STARTD_CRON_check_EXECUTABLE = check
STARTD_CRON_check_PERIOD = 1
STARTD_CRON_check_ARGS = says
STARTD_CRON_shell_EXECUTABLE = /bin/sh
STARTD_CRON_shell_PERIOD = 1
START = Rack =?= \"r7\"
";

/// Writes a program of the site.
pub fn program(directory: &Path, name: &str, script: &str) {
    std::fs::create_dir_all(directory).unwrap();
    let path = directory.join(name);
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// From now on the program says this.
fn says(desk: &Desk, text: &str) {
    let directory = desk.programs();
    std::fs::write(directory.join("new"), text).unwrap();
    std::fs::rename(directory.join("new"), directory.join("says")).unwrap();
}

fn runs(desk: &Desk) -> usize {
    std::fs::read_to_string(desk.programs().join("runs")).unwrap_or_default().lines().count()
}

/// Waits until the slot of node1 is offered, or is not, for this reason. Returns the message.
async fn offered(cluster: &Cluster, reason: &str) -> String {
    let slots: Api<PartitionableSlot> = Api::all(cluster.client.clone());
    let condition = || async {
        let status = slots.get("slot1.node1").await.ok().and_then(|slot| slot.status).unwrap_or_default();
        status.conditions.into_iter().find(|condition| condition.type_ == "Offered")
    };
    let is = |condition: &Option<_>| {
        condition.as_ref().is_some_and(|found: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            found.reason == reason
        })
    };
    cluster.until(&format!("the slot is {reason}"), 30, || async { is(&condition().await) }).await;
    condition().await.map(|condition| condition.message).unwrap_or_default()
}

async fn report(cluster: &Cluster) -> NodeReport {
    Api::<NodeReport>::all(cluster.client.clone()).get("node1").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn what_a_program_says_lets_jobs_in_and_a_broken_slot_takes_none() {
    let cluster = Cluster::start("cron", POLICY).await;
    let desk = Desk::with_programs(&cluster, 1, |directory| {
        program(directory, "check", "#!/bin/sh\necho run >>runs\n[ ! -e \"$1\" ] || cat \"$1\"\n");
    });
    desk.reports(&cluster).await;
    cluster.until("the program runs", 60, || async { runs(&desk) > 1 }).await;
    cluster.apply(Program::new(20, 20).job("cron", "first", 1, only_on("node1"))).await;
    cluster
        .throughout("no slot has the rack", 6, || async { cluster.pods_of("first").await.is_empty() })
        .await;

    says(&desk, "Rack = \"r7\"\nCpus = 99\nKeyboardIdle = 0\n");
    cluster.running("first", 1).await;
    let slots: Api<PartitionableSlot> = Api::all(cluster.client.clone());
    let status = || async { slots.get("slot1.node1").await.unwrap().status.unwrap_or_default() };
    // Statuses of PartitionableSlots are written every 5 s: the job may run before what let it in is told.
    cluster
        .until("what the program may not say is named", 30, || async {
            let conditions = status().await.conditions;
            let ready = conditions.iter().find(|condition| condition.type_ == "AgentReady");
            ready.is_some_and(|ready| {
                ready.message.contains("left out of what it reports: Cpus, KeyboardIdle")
            })
        })
        .await;
    let total = status().await.total;
    assert!(total.cpus < 99, "the machine's own attributes are its own: {total:?}");
    let conditions = report(&cluster).await.status.unwrap().conditions;
    let cron = conditions.iter().find(|condition| condition.type_ == "CronJobs").unwrap();
    let expected =
        format!("shell: /bin/sh is not below {}, the directory of programs", desk.programs().display());
    assert_eq!((cron.reason.as_str(), cron.message.as_str()), ("Failing", expected.as_str()));

    says(&desk, "Rack = \"r7\"\nSlotBrokenReason = \"disk 3 has gone\"\nSlotBrokenCode = 79\n");
    let message = offered(&cluster, "Broken").await;
    assert!(message.contains("disk 3 has gone (SlotBrokenCode 79)"), "{message}");
    cluster.apply(Program::new(3, 3).job("cron", "second", 1, only_on("node1"))).await;
    cluster.completed("first", 60).await;
    assert_eq!(cluster.violations("first", |_| false).await, [] as [String; 0], "what ran went on");
    cluster
        .throughout("the slot takes no jobs", 8, || async { cluster.pods_of("second").await.is_empty() })
        .await;

    // The program runs each second with the same output, for which the agent writes nothing. The load of a busy computer may
    // change.
    let before = runs(&desk);
    let versions = Mutex::new(BTreeSet::new());
    cluster
        .throughout("nobody writes", 15, || async {
            let mut versions = versions.lock().await;
            versions.insert(report(&cluster).await.resource_version());
            versions.len() <= 4
        })
        .await;
    assert!(runs(&desk) > before + 5, "{} runs", runs(&desk) - before);

    says(&desk, "Rack = \"r7\"\n");
    offered(&cluster, "Offered").await;
    cluster.completed("second", 60).await;
}

/// An agent that takes another's place knows what the other's programs have said.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_slot_stays_broken_while_its_agent_is_replaced() {
    let cluster = Cluster::start("cron-again", POLICY).await;
    let mut desk = Desk::with_programs(&cluster, 1, |directory| {
        program(directory, "check", "#!/bin/sh\n[ ! -e slow ] || sleep 15\ncat \"$1\"\n");
        std::fs::write(directory.join("says"), "Rack = \"r7\"\nSlotBrokenReason = \"hot\"\n").unwrap();
    });
    offered(&cluster, "Broken").await;
    cluster.apply(Program::new(3, 3).job("cron-again", "waits", 1, only_on("node1"))).await;
    std::fs::write(desk.programs().join("slow"), "").unwrap();
    desk.kill();
    desk.start(&cluster);
    cluster
        .throughout("the slot takes no jobs", 12, || async { cluster.pods_of("waits").await.is_empty() })
        .await;
    says(&desk, "Rack = \"r7\"\n");
    std::fs::remove_file(desk.programs().join("slow")).unwrap();
    cluster.completed("waits", 60).await;
}
