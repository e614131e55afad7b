//! HTCondor's tools by their own names.

use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use api::names::submitter_object_name;
use api::{AbsentMachine, DrainRequest, GroupQuota, HTCJob, NodePolicy, Submitter};
use kube::Resource;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use serde_json::{Value, json};

use super::{Cluster, NOW};

impl Cluster {
    /// Runs a tool through a link of its name to the program. Times are UTC.
    async fn tool(&self, words: &[&str]) -> Output {
        let (tool, words) = words.split_first().unwrap();
        let link = self.directory.path().join(tool);
        if !link.exists() {
            symlink(env!("CARGO_BIN_EXE_kubectl-slotwright"), &link).unwrap();
        }
        let mut command = Command::new(link);
        command
            .args(words)
            .env_clear()
            .env("TZ", "UTC")
            .env("KUBECONFIG", self.directory.path().join("config"));
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// The standard output of a tool that must succeed without a note.
    async fn tool_says(&self, words: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.tool(words).await;
        assert_eq!((status.code(), String::from_utf8(stderr).unwrap().as_str()), (Some(0), ""), "{words:?}");
        String::from_utf8(stdout).unwrap()
    }

    /// The standard error of a tool that must fail.
    async fn tool_fails(&self, words: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.tool(words).await;
        assert_eq!((status.code(), stdout.len()), (Some(1), 0), "{words:?}");
        String::from_utf8(stderr).unwrap()
    }
}

/// The answer without the server's address and the time.
fn steady(text: &str, cluster: &Cluster) -> String {
    let text = text.replace(cluster.server.url.trim_end_matches('/'), "SERVER");
    let lines = text.lines().map(|line| match line.split_once(" @ ") {
        Some((label, _)) if line.starts_with("-- ") => format!("{label} @ TIME\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

#[tokio::test]
async fn jobs() {
    let cluster = Cluster::with_pool().await;
    for (name, words) in [
        ("condor_q", &["condor_q"][..]),
        ("condor_q_everybody", &["condor_q", "-allusers"]),
        ("condor_q_nobatch", &["condor_q", "-nobatch", "-allusers"]),
        ("condor_q_run", &["condor_q", "-run"]),
        ("condor_q_analyze", &["condor_q", "-better-analyze", "2"]),
    ] {
        insta::assert_snapshot!(name, steady(&cluster.tool_says(words).await, &cluster));
    }
    let through_kubectl =
        cluster.shows(&["condor_q", "-af", "ClusterId", "ProcId", "JobStatus", "RemoteHost"]).await;
    assert_eq!(through_kubectl, "1 1 2 slot1_1@node1\n");
    let ads: Value = serde_json::from_str(&cluster.tool_says(&["condor_q", "-json", "2.1"]).await).unwrap();
    for (attribute, value) in [
        ("/0/Owner", json!("kube-public")),
        ("/0/JobStatus", json!(1)),
        ("/0/LastRejMatchReason", json!("no node offers 64 CPUs")),
        ("/0/TotalSubmitProcs", json!(2)),
    ] {
        assert_eq!(ads.pointer(attribute), Some(&value), "{attribute}: {ads}");
    }
    assert_eq!(cluster.tool_says(&["condor_q", "-totals", "99"]).await.lines().count(), 6);
    let error = cluster.tool_fails(&["condor_q", "-name", "x"]).await;
    assert!(error.starts_with("Error: -name is not supported: there is one queue"), "{error}");
}

#[tokio::test]
async fn slots() {
    let cluster = Cluster::with_pool().await;
    let shown = cluster
        .tool_says(&["condor_status", "-af:h", "Name", "State", "Activity", "Cpus", "RemoteUser"])
        .await;
    assert_eq!(
        shown,
        "Name          State     Activity Cpus RemoteUser\n\
         slot1@node1   Unclaimed Idle     0    undefined \n\
         slot1_1@node1 Claimed   Busy     4    alice     \n"
    );
    let table = cluster.tool_says(&["condor_status"]).await;
    assert!(
        table.starts_with("Name                               OpSys      Arch     State     Activity"),
        "{table}"
    );
    assert!(
        table.ends_with(
            "         Total     2     0       1         1       0          0      0        0      0\n"
        ),
        "{table}"
    );
    let claimed = cluster.tool_says(&["condor_status", "-claimed", "-af", "Name"]).await;
    assert_eq!(claimed, "slot1_1@node1\n");
    let submitters =
        cluster.tool_says(&["condor_status", "-submitters", "-af", "Name", "RunningJobs", "IdleJobs"]).await;
    assert_eq!(submitters, "alice 1 0\nbob 0 2\n");
    assert_eq!(
        cluster.tool_says(&["condor_status", "-schedd", "-af", "TotalRunningJobs", "TotalIdleJobs"]).await,
        "1 2\n"
    );
    assert_eq!(
        cluster.tool_fails(&["condor_status", "nosuch"]).await,
        "condor_status: unknown host nosuch\n"
    );
    let error = cluster.tool_fails(&["condor_status", "-direct", "node1"]).await;
    assert!(error.starts_with("Error: -direct is not supported: there is no daemon to ask"), "{error}");
}

#[tokio::test]
async fn what_is_no_command_is_said() {
    let cluster = Cluster::bare().await;
    let error = cluster.fails(&["condor_nonsense"]).await;
    let expected = "kubectl slotwright: condor_nonsense is not supported: the tools are condor_config_val, ";
    assert!(error.starts_with(expected), "{error}");
    let error = cluster.fails(&["prio"]).await;
    let expected = "there is no command prio; HTCondor's tool is: kubectl slotwright condor_prio";
    assert_eq!(error, format!("kubectl slotwright: {expected}\n"));
    let error = cluster.tool_fails(&["condor_submit_dag", "1"]).await;
    assert!(error.starts_with("condor_submit_dag is not supported: DAGs do not exist here"), "{error}");
    assert!(cluster.tool_says(&["condor_version"]).await.contains("$CondorVersion: 25.14.1"));
}

impl Cluster {
    /// A part of an object's spec.
    async fn spec_of<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        name: &str,
        at: &str,
    ) -> Value {
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        api.get(name).await.unwrap().data.pointer(at).cloned().unwrap_or_default()
    }
}

#[tokio::test]
async fn edits_of_queued_jobs() {
    let cluster = Cluster::with_pool().await;
    assert_eq!(cluster.tool_says(&["condor_prio", "-p", "7", "2"]).await, "");
    assert_eq!(cluster.tool_says(&["condor_prio", "+3", "kube-public"]).await, "");
    let of = async |at: &str| cluster.spec_of::<HTCJob>(Some("kube-public"), "big", at).await;
    assert_eq!(of("/spec/priority").await, json!(10));
    let said =
        cluster.tool_says(&["condor_qedit", "2", "ProjectName", "\"dune\"", "RequestMemory=2048"]).await;
    assert_eq!(
        said,
        "Set attribute \"ProjectName\" for 2 matching jobs.\nSet attribute \"RequestMemory\" for 2 matching jobs.\n"
    );
    assert_eq!(of("/spec/attributes/ProjectName").await, json!("\"dune\""));
    assert_eq!(of("/spec/requests/memory").await, json!("2048Mi"));
    for (words, text) in [
        (&["condor_prio", "-p", "7", "2.1"][..], "the procs of job 2 share their priority and attributes"),
        (&["condor_prio", "-p", "7", "99"], "no job in the queue matches"),
        (
            &["condor_qedit", "2", "Owner", "\"eve\""],
            "Update of protected attribute \"Owner\" is not allowed.",
        ),
        (&["condor_qedit", "-constraint", "false", "A", "1"], "no job in the queue matches"),
    ] {
        let error = cluster.tool_fails(words).await;
        assert!(error.contains(text), "{words:?}: {error}");
    }
}

#[tokio::test]
async fn a_machine_is_drained() {
    let cluster = Cluster::with_pool().await;
    let said =
        cluster.tool_says(&["condor_drain", "-verbose", "-fast", "-reason", "kernel", "slot1@node1"]).await;
    let name = said.trim_end().rsplit(' ').next().unwrap();
    assert_eq!(said, format!("Sent request to drain node1.\n\tRequest id: {name}\n"));
    let spec = cluster.spec_of::<DrainRequest>(None, name, "/spec").await;
    assert_eq!(spec.pointer("/schedule"), Some(&json!("Fast")), "{spec}");
    assert_eq!(spec.pointer("/node"), Some(&json!("node1")), "{spec}");
    let again = cluster.tool_fails(&["condor_drain", "node1"]).await;
    assert_eq!(again, format!("ERROR: node1 is draining already, by DrainRequest {name}\n"));
    assert_eq!(cluster.tool_fails(&["condor_drain", "nosuch"]).await, "ERROR: unknown host nosuch\n");
    assert_eq!(
        cluster.tool_says(&["condor_drain", "-cancel", "node1"]).await,
        "Sent request to cancel draining on node1\n"
    );
    assert!(cluster.tool_fails(&["condor_drain", "-cancel", "node1"]).await.contains("is not draining"));
}

#[tokio::test]
async fn waiting_logs_and_configuration() {
    let cluster = Cluster::with_pool().await;
    assert_eq!(cluster.tool_says(&["condor_wait", "1.0"]).await, "All jobs done.\n");
    for (job, why) in
        [("99", "no job 99: the job was deleted or never existed"), ("1.9", "job 1 has no proc 9")]
    {
        let error = cluster.tool_fails(&["condor_wait", job]).await;
        assert!(error.contains(why), "{error}");
    }
    let expired = cluster.tool(&["condor_wait", "-wait", "0", "2"]).await;
    let said = String::from_utf8(expired.stdout).unwrap();
    assert_eq!((expired.status.code(), said.as_str(), expired.stderr.len()), (Some(1), "Time expired.\n", 0));
    let missing = cluster.tool_fails(&["condor_wait", "nosuch.log"]).await;
    assert!(missing.starts_with("Error: job event log nosuch.log: No such file"), "{missing}");
    let error = cluster.tool_fails(&["condor_tail", "1.1"]).await;
    assert!(error.contains("1.1 does not run: the proc is idle; kubectl slotwright output 1.1"), "{error}");
    assert_eq!(
        cluster.tool_fails(&["condor_ssh_to_job", "1"]).await,
        "Error: 1.0 does not run: the proc has ended\n"
    );
    assert!(
        cluster
            .tool_fails(&["condor_ssh_to_job", "1.9"])
            .await
            .contains("job 1 has no proc 9: its procs are 0 to 1")
    );
    let policy = json!({"nodeSelector": {}, "config": "RACK = b\nSTART = $(RACK) == \"b\"\n"});
    cluster.put::<NodePolicy>(None, "all", policy, json!({})).await;
    assert_eq!(cluster.tool_says(&["condor_config_val", "START", "RACK"]).await, "b == \"b\"\nb\n");
    assert_eq!(cluster.tool_fails(&["condor_config_val", "-schedd", "RACK"]).await, "Not defined: RACK\n");
    let policy = json!({"nodeSelector": {"none": "such"}, "start": "TARGET.x", "config": "HALF = $(DETECTED_CPUS) / 2\n"});
    cluster.put::<NodePolicy>(None, "another", policy, json!({})).await;
    let words = ["condor_config_val", "-v", "-name", "slot1@node1", "START", "ARCH"];
    let expected = "START = b == \"b\"\n # at: NodePolicy all\nARCH = aarch64\n # at: HTCondor's default\n";
    assert_eq!(cluster.tool_says(&words).await, expected);
    assert_eq!(cluster.tool_says(&["condor_config_val", "-name", "another", "START"]).await, "TARGET.x\n");
    let unknown = cluster.tool_fails(&["condor_config_val", "-name", "nosuch", "START"]).await;
    assert!(unknown.starts_with("Error: there is no nosuch: name a node"), "{unknown}");
    let depends = cluster.tool_fails(&["condor_config_val", "-name", "another", "HALF"]).await;
    assert_eq!(depends, "HALF: depends on the node: name one with -name\n");
}

/// The operator has never understood the spec of such a job, so that it has no procs.
#[tokio::test]
async fn a_job_whose_spec_was_never_accepted_is_removed_whole() {
    let cluster = Cluster::with_pool().await;
    let spec = json!({"template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}});
    let status = json!({"observedGeneration": 1, "clusterId": 7, "summary": "Held", "conditions": [{"type": "Accepted",
        "status": "False", "reason": "InvalidExpression", "message": "spec.rank: what?", "lastTransitionTime": NOW}]});
    cluster.put::<HTCJob>(Some("default"), "wrong", spec, status).await;
    let error = cluster.tool_fails(&["condor_release", "7"]).await;
    let note = "note: default/wrong does not run until its spec is correct: spec.rank: what?\n";
    assert_eq!(error, format!("{note}\nCouldn't find/release all jobs in cluster 7\n"));
    let output = cluster.tool(&["condor_rm", "7"]).await;
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "All jobs in cluster 7 have been marked for removal\n"
    );
    let note = "note: default/wrong is deleted: its spec was never accepted\n";
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), note));
    assert!(cluster.tool_says(&["condor_q", "7", "-af", "JobStatus"]).await.is_empty());
}

/// Absent machines are shown when they are asked for, and nowhere else.
#[tokio::test]
async fn absent_machines() {
    let cluster = Cluster::with_pool().await;
    let ad = "Name = \"slot1@gone\"\nMachine = \"gone\"\nOpSys = \"LINUX\"\nArch = \"X86_64\"\nState = \"Owner\"\n\
              Absent = true\nClassAdLifetime = 2592000\nLastHeardFrom = 1893456000\n";
    let slots = json!([{"name": "slot1@gone", "ad": ad}, {"name": "slot2@gone", "ad": "Absent = ((\n"}]);
    let status = json!({"since": "2030-01-01T00:00:00Z", "slots": slots});
    cluster.put::<AbsentMachine>(None, "gone", json!({"node": "gone"}), status).await;
    let names = async |words: &[&str]| {
        let words: Vec<&str> = ["condor_status", "-af", "Name"].iter().chain(words).copied().collect();
        cluster.tool_says(&words).await
    };
    assert_eq!(names(&[]).await, "slot1@node1\nslot1_1@node1\n");
    assert_eq!(names(&["-absent"]).await, "slot1@gone\n");
    assert_eq!(names(&["-absent", "gone"]).await, "slot1@gone\n");
    assert_eq!(names(&["-constraint", "Absent =?= true || Cpus > 3"]).await, "slot1@gone\nslot1_1@node1\n");
    assert_eq!(cluster.tool_fails(&["condor_status", "gone"]).await, "condor_status: unknown host gone\n");
    let table = cluster.tool_says(&["condor_status", "-absent"]).await;
    let mut lines = table.lines();
    assert_eq!(
        (lines.next(), lines.nth(1)),
        (
            Some("Name                               OpSys      Arch     Went Absent Will Forget"),
            Some("slot1@gone                         LINUX      X86_64    1/1  00:00  1/31 00:00")
        )
    );
}

#[tokio::test]
async fn priorities() {
    let cluster = Cluster::with_pool().await;
    let words = ["condor_userprio", "-allusers", "-af", "Name", "PriorityFactor", "WeightedResourcesUsed"];
    assert_eq!(cluster.tool_says(&words).await, "bob 1000.0 0.0\nalice 1000.0 4.0\n");
    let said = cluster.tool_says(&["condor_userprio", "-setfactor", "bob", "50"]).await;
    assert_eq!(said, "The priority factor of bob was set to 50\n");
    cluster.tool_says(&["condor_userprio", "-setaccum", "bob", "60"]).await;
    let spec = cluster.spec_of::<Submitter>(None, "bob", "/spec").await;
    assert_eq!(spec.pointer("/priorityFactor"), Some(&json!(50.0)), "{spec}");
    assert_eq!(spec.pointer("/correction/weightedAccumulatedUsage"), Some(&json!(60.0)), "{spec}");
    assert!(
        cluster.tool_fails(&["condor_userprio", "-setprio", "eve", "1"]).await.contains("no Submitter eve")
    );
    // A factor or a ceiling may be set before the user's first job.
    let said = cluster.tool_says(&["condor_userprio", "-setceiling", "eve", "20"]).await;
    assert_eq!(said, "The ceiling of eve was set to 20\n");
    let spec = cluster.spec_of::<Submitter>(None, "eve", "/spec").await;
    assert_eq!(spec, json!({"ceiling": 20.0}));
    // -1 is no ceiling, as in HTCondor.
    let said = cluster.tool_says(&["condor_userprio", "-setceil", "eve", "-1"]).await;
    assert_eq!(said, "The ceiling of eve was set to -1\n");
    assert_eq!(cluster.spec_of::<Submitter>(None, "eve", "/spec").await, json!({}));
    // HTCondor's condor_userprio demands a domain, which no submitter has here.
    let output = cluster.tool(&["condor_userprio", "-setfactor", "bob@example.org", "60"]).await;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "The priority factor of bob was set to 60\n");
    let note = "bob@example.org is bob: submitters have no domain here\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), note);
    let spec = cluster.spec_of::<Submitter>(None, "bob", "/spec").await;
    assert_eq!(spec.pointer("/priorityFactor"), Some(&json!(60.0)), "{spec}");
    cluster.tool(&["condor_userprio", "-setfloor", "fay@example.org", "2"]).await;
    let spec = cluster.spec_of::<Submitter>(None, "fay", "/spec").await;
    assert_eq!(spec, json!({"floor": 2.0}));
    // A group has no account: a Submitter of its name would affect nobody.
    let physics = json!({"group": "group_physics", "quota": 5});
    cluster.put::<GroupQuota>(None, "physics", physics, json!({})).await;
    let error = cluster.tool_fails(&["condor_userprio", "-setfactor", "Group_Physics", "50"]).await;
    assert!(
        error.contains("Group_Physics is a group") && error.contains("spec.priorityFactor of its GroupQuota"),
        "{error}"
    );
    // So may one of a user whose name no object may have.
    for (option, number) in [("-setfactor", "50"), ("-setfloor", "3")] {
        cluster.tool_says(&["condor_userprio", option, "group_physics.Alice", number]).await;
    }
    let name = submitter_object_name("group_physics.Alice");
    let spec = cluster.spec_of::<Submitter>(None, &name, "/spec").await;
    assert_eq!(spec, json!({"name": "group_physics.Alice", "priorityFactor": 50.0, "floor": 3.0}));
    let words = ["condor_userprio", "-allusers", "-af", "Name", "PriorityFactor", "Floor"];
    assert!(cluster.tool_says(&words).await.contains("group_physics.Alice 50.0 3.0\n"));
}
