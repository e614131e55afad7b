//! Job ads of objects.

use serde_json::{Value, json};

use super::*;
use classad::Env;

fn job(spec: Value, status: Value) -> HTCJob {
    let mut whole = json!({"count": 5, "requests": {"cpus": 2, "memory": "1Gi"}, "attributes": {"JobBatchName": "\"sweep\""},
        "template": {"spec": {"containers": [
            {"name": "main", "image": "registry.example/sim", "command": ["/bin/sim", "--fast"], "args": ["a b"]}]}}});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
        "metadata": {"name": "pi", "namespace": "ada", "uid": "u1", "generation": 3,
            "creationTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["slotwright.dev/release-claims"]},
        "spec": whole, "status": status,
    }))
    .unwrap()
}

fn status() -> Value {
    json!({"observedGeneration": 3, "clusterId": 12, "submitter": "ada", "idle": 1, "running": 2, "suspended": 1, "held": 1,
        "completed": 1, "completedProcs": "1", "why": "every node is busy",
        "heldProcs": [{"procs": "4", "code": 34, "subcode": 102, "reason": "too much memory"}]})
}

fn slot(proc: i64, activity: &str) -> Slot {
    serde_json::from_value(json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "Slot", "metadata": {"name": "s"},
        "status": {"state": "Claimed", "activity": activity},
        "spec": {"name": format!("slot1_{proc}@node1"), "node": "node1", "slotType": "Dynamic", "resources":
            {"cpus": 2, "memoryMiB": 1024, "diskKiB": 0},
            "claim": {"id": "c", "submitter": "ada", "weight": 1, "claimedAt": null, "jobId": format!("12.{proc}"),
                "job": {"namespace": "ada", "name": "pi", "uid": "u1"}, "proc": proc, "pod": format!("pi-{proc}")}},
    }))
    .unwrap()
}

fn pod(proc: i64) -> ObjectMeta {
    serde_json::from_value(json!({"name": format!("pi-{proc}"), "namespace": "ada",
        "creationTimestamp": "2030-01-01T01:00:00Z",
        "labels": {"slotwright.dev/job-uid": "u1", "slotwright.dev/proc": proc.to_string()},
        "annotations": {"slotwright.dev/slot": format!("slot1_{proc}@node1")}}))
    .unwrap()
}

const NOW: Time = Time::from_secs(1_893_463_200);

/// ProcId and JobStatus of each ad.
fn states(ads: &[Ad]) -> Vec<(i64, i64)> {
    let of = |ad: &Ad, name| ad.eval_attr(name, None, &Env::at(0)).as_int().unwrap();
    ads.iter().map(|ad| (of(ad, "ProcId"), of(ad, "JobStatus"))).collect()
}

fn shown(ad: &Ad, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| ad.eval_attr(name, None, &Env::at(0)).to_string()).collect()
}

/// Arguments that spaces alone separate are `Args`, as after condor_submit.
#[test]
fn each_proc_has_its_own_arguments() {
    let spec = json!({"items": {"variables": ["name"], "rows": [["a"], ["b"], ["c"], ["d"], ["e"]]},
        "template": {"spec": {"containers": [{"name": "main", "image": "sim:$(name)", "command": ["/bin/sim", "--name", "$(name)"],
            "args": ["$(Process)"]}]}}});
    let ads = ads(&[job(spec, status())], Some(&Runs::default()), None, NOW);
    let shows: Vec<String> =
        ads.iter().map(|ad| shown(ad, &["Cmd", "Args", "Arguments", "ContainerImage"]).join(" ")).collect();
    assert_eq!(shows[0], "\"/bin/sim\" \"--name a 0\" undefined \"sim:a\"");
    assert_eq!(shows[1], "\"/bin/sim\" \"--name c 2\" undefined \"sim:c\"");
}

#[test]
fn each_proc_in_the_queue_has_an_ad() {
    let runs = Runs::of(&[slot(0, "Busy"), slot(3, "Suspended")], &[pod(0), pod(3)]);
    let ads = ads(&[job(json!({}), status())], Some(&runs), None, NOW);
    assert_eq!(states(&ads), [(0, 2), (2, 1), (3, 7), (4, 5)]);
    let [first, waits, _, held] = ads.as_slice() else { panic!("{ads:?}") };
    assert_eq!(
        shown(
            first,
            &[
                "ClusterId",
                "Owner",
                "User",
                "JobBatchName",
                "RequestCpus",
                "RequestMemory",
                "TotalSubmitProcs"
            ]
        ),
        ["12", "\"ada\"", "\"ada\"", "\"sweep\"", "2", "1024", "5"]
    );
    assert_eq!(
        shown(
            first,
            &["RemoteHost", "ShadowBday", "QDate", "ServerTime", "Cmd", "Arguments", "ContainerImage"]
        ),
        [
            "\"slot1_0@node1\"",
            "1893459600",
            "1893456000",
            "1893463200",
            "\"/bin/sim\"",
            "\"--fast a' 'b\"",
            "\"registry.example/sim\""
        ]
    );
    assert_eq!(shown(waits, &["LastRejMatchReason", "RemoteHost"]), ["\"every node is busy\"", "undefined"]);
    assert_eq!(
        shown(held, &["HoldReason", "HoldReasonCode", "HoldReasonSubCode"]),
        ["\"too much memory\"", "34", "102"]
    );
}

/// A proc that went over its memory asks for more than its job, by what retry_request_memory made of the job's ad.
#[test]
fn a_proc_whose_request_was_changed_says_so() {
    let mut status = status();
    status["transformedProcs"] = json!([{"procs": "0,3", "attributes": {"RequestMemory": "2048"}, "removed": ["RetryRequestMemory", "JobBatchName"]}]);
    let spec = json!({"attributes": {"RetryRequestMemory": "2048", "JobBatchName": "\"sweep\""}});
    let ads = ads(&[job(spec, status.clone())], None, None, NOW);
    let own = |ads: &[Ad]| -> Vec<_> {
        let names = ["ProcId", "RequestMemory", "RetryRequestMemory", "JobBatchName"];
        ads.iter().map(|ad| shown(ad, &names).join(" ")).collect()
    };
    // A transform of the job's own cannot change the batch name, whatever the status says.
    assert_eq!(
        own(&ads),
        [
            "0 2048 undefined \"sweep\"",
            "2 1024 2048 \"sweep\"",
            "3 2048 undefined \"sweep\"",
            "4 1024 2048 \"sweep\""
        ]
    );
    status["observedGeneration"] = json!(2);
    let edited = super::ads(&[job(json!({}), status)], None, None, NOW);
    assert!(
        own(&edited).iter().all(|ad| ad.contains(" 1024 ")),
        "the spec was edited since: {:?}",
        own(&edited)
    );
}

/// The record in the job's status of procs that have run or were held before, and of removed procs, goes into the ads.
#[test]
fn the_record_of_runs_and_holds_is_in_the_ad() {
    let mut status = status();
    status["removedProcs"] = json!("2");
    status["runs"] = json!([
        {"procs": "0", "starts": 1, "completions": 1, "exitCode": 85},
        {"procs": "4", "starts": 2, "holds": 1, "since": "2030-01-01T00:30:00Z"},
    ]);
    let runs = Runs::of(&[], &[pod(0), pod(3)]);
    let ads = ads(&[job(json!({}), status)], Some(&runs), None, NOW);
    assert_eq!(states(&ads), [(0, 2), (3, 2), (4, 5)], "a proc that was removed is not in the queue");
    let counts = ["NumJobStarts", "NumJobCompletions", "NumHolds", "ExitCode", "EnteredCurrentStatus"];
    assert_eq!(shown(&ads[0], &counts), ["2", "1", "0", "85", "1893459600"]);
    assert_eq!(shown(&ads[1], &counts), ["1", "0", "0", "undefined", "1893459600"]);
    assert_eq!(shown(&ads[2], &counts), ["2", "0", "1", "undefined", "1893457800"]);
}

#[test]
fn pods_or_slots_alone_tell_which_procs_run() {
    for runs in [Runs::of(&[slot(2, "Busy")], &[]), Runs::of(&[], &[pod(2)])] {
        let ads = ads(&[job(json!({}), status())], Some(&runs), None, NOW);
        assert_eq!(states(&ads), [(0, 1), (2, 2), (3, 1), (4, 5)]);
    }
}

#[test]
fn without_either_the_status_counts() {
    assert_eq!(states(&ads(&[job(json!({}), status())], None, None, NOW)), [(0, 7), (2, 2), (3, 1), (4, 5)]);
}

#[test]
fn a_spec_that_is_not_accepted_holds_its_procs() {
    let status =
        json!({"observedGeneration": 3, "clusterId": 12, "why": "spec.requirements: expected an operand"});
    let ads = ads(&[job(json!({"requirements": "1 +", "count": 2}), status)], None, None, NOW);
    assert_eq!(states(&ads), [(0, 5), (1, 5)]);
    assert_eq!(
        shown(ads.first().unwrap(), &["Owner", "HoldReason", "QDate"]),
        ["\"ada\"", "\"spec.requirements: expected an operand\"", "1893456000"]
    );
}

#[test]
fn a_job_without_a_number_is_not_in_the_queue_yet() {
    assert!(ads(&[job(json!({}), json!({}))], None, None, NOW).is_empty());
}

#[test]
fn a_job_that_is_deleted_is_removed() {
    let mut going = job(json!({"count": 2}), json!({"observedGeneration": 3, "clusterId": 12}));
    going.metadata.deletion_timestamp = going.metadata.creation_timestamp.clone();
    assert_eq!(states(&ads(&[going], None, None, NOW)), [(0, 3), (1, 3)]);
}

/// "leave_in_queue: when the expression is true, the job stays in the queue when it is completed."
#[test]
fn procs_that_are_done_are_in_the_queue_for_as_long_as_leave_in_queue_is_true() {
    let ended = |proc: u32, code: i32| -> controller::kinds::pod::SlimPod {
        let pod = json!({
            "metadata": {"name": format!("pi-{proc}"), "namespace": "ada", "uid": format!("p{proc}"),
                "labels": {"slotwright.dev/job-uid": "u1", "slotwright.dev/proc": proc.to_string()},
                "annotations": {"slotwright.dev/claim": "slot1_1@node1#1#1", "slotwright.dev/slot": "slot1_1@node1",
                    "slotwright.dev/run": "1"}},
            "spec": {"nodeName": "node1", "containers": [{"name": "main"}]},
            "status": {"phase": if code == 0 { "Succeeded" } else { "Failed" }, "containerStatuses": [{"name": "main", "state":
                {"terminated": {"exitCode": code, "startedAt": "2030-01-01T01:00:00Z", "finishedAt": "2030-01-01T01:30:00Z"}}}]},
        });
        serde_json::from_str::<answers::Item<_>>(&pod.to_string()).unwrap().object().unwrap()
    };
    let last_runs = LastRuns::of(&[ended(1, 0), ended(2, 3)]);
    let status = json!({"observedGeneration": 3, "clusterId": 12, "completedProcs": "0-1", "failedProcs": "2", "removedProcs": "3"});
    let shown = |leave: Value, note: Option<&str>| {
        let mut job = job(json!({"attributes": leave}), status.clone());
        let notes = note.map(|text| ("slotwright.dev/out-of-queue".to_owned(), text.to_owned()));
        job.metadata.annotations = Some(notes.into_iter().collect());
        ads(&[job], None, Some(&last_runs), NOW)
    };
    let left = |leave: &str| states(&shown(json!({"LeaveJobInQueue": leave}), None));
    assert_eq!(states(&shown(json!({}), None)), [(4, 1)]);
    assert_eq!(left("false"), [(4, 1)]);
    assert_eq!(left("true"), [(0, 4), (1, 4), (2, 4), (4, 1)]);
    assert_eq!(left("JobStatus == 4 && ExitCode =!= 0"), [(2, 4), (4, 1)]);
    // NOW is half an hour after the end of the pods.
    assert_eq!(left("time() - CompletionDate < 1801"), [(1, 4), (2, 4), (4, 1)]);
    assert_eq!(left("time() - EnteredCurrentStatus < 1800"), [(4, 1)]);
    let all = json!({"LeaveJobInQueue": "true"});
    assert_eq!(states(&shown(all.clone(), Some("0,2"))), [(1, 4), (4, 1)], "condor_rm took them out");
    let ads = shown(all, None);
    let failed = ads.iter().find(|ad| states(std::slice::from_ref(ad))[0].0 == 2).unwrap();
    let names = ["ExitCode", "ExitBySignal", "NumJobStarts", "CompletionDate", "JobCurrentStartDate"];
    assert_eq!(super::tests::shown(failed, &names), ["3", "false", "2", "1893461400", "1893459600"]);
    let names = [
        "RemoteWallClockTime",
        "LastRemoteWallClockTime",
        "NumJobCompletions",
        "JobStartDate",
        "LastRemoteHost",
    ];
    let half_an_hour = "1.800000000000000E+03";
    assert_eq!(
        super::tests::shown(failed, &names),
        [half_an_hour, half_an_hour, "1", "1893459600", "\"slot1_1@node1\""]
    );
}

/// "Late materialization": procs beyond the limits are not in the queue yet.
#[test]
fn procs_that_are_not_materialized_have_no_ad() {
    let runs = Runs::of(&[slot(3, "Busy")], &[]);
    let shown = |attributes: Value| {
        let status = json!({"observedGeneration": 3, "clusterId": 12, "completedProcs": "0"});
        states(&ads(&[job(json!({"attributes": attributes}), status)], Some(&runs), None, NOW))
    };
    assert_eq!(shown(json!({})), [(1, 1), (2, 1), (3, 2), (4, 1)]);
    assert_eq!(shown(json!({"JobMaterializeLimit": "2"})), [(1, 1), (3, 2)]);
    assert_eq!(shown(json!({"JobMaterializeMaxIdle": "2"})), [(1, 1), (2, 1), (3, 2)]);
    assert_eq!(shown(json!({"JobMaterializeLimit": "1"})), [(3, 2)]);
}

/// The schedd computes DeferralTime of idle procs, and leaves that of others alone.
#[test]
fn an_idle_proc_has_the_next_time_of_its_crontab() {
    let runs = Runs::of(&[slot(3, "Busy")], &[]);
    let status = json!({"observedGeneration": 3, "clusterId": 12, "completedProcs": "0"});
    let job = job(json!({"attributes": {"CronMinute": "\"30\""}}), status);
    let ads = ads(&[job], Some(&runs), None, NOW);
    let next = NOW.secs() / 3600 * 3600 + 1800;
    let times: Vec<_> =
        ads.iter().map(|ad| ad.eval_attr("DeferralTime", None, &Env::at(0)).as_int()).collect();
    assert_eq!(times, [Some(next), Some(next), None, Some(next)]);
}

#[test]
fn what_earlier_runs_took_is_in_the_ad() {
    let status = json!({"observedGeneration": 3, "clusterId": 12, "runs": [{"procs": "2", "starts": 3, "wallSeconds": 90,
        "suspendedSeconds": 7, "firstStart": "2030-01-01T00:00:10Z", "lastVacate": "2030-01-01T00:10:00Z"}]});
    let ads = ads(&[job(json!({}), status)], Some(&Runs::default()), None, NOW);
    let names = [
        "NumJobStarts",
        "NumJobMatches",
        "RemoteWallClockTime",
        "CumulativeSuspensionTime",
        "JobStartDate",
        "LastVacateTime",
    ];
    assert_eq!(shown(&ads[2], &names), ["3", "3", "9.000000000000000E+01", "7", "1893456010", "1893456600"]);
    assert_eq!(shown(&ads[0], &names), ["0", "0", "0.0", "0", "undefined", "undefined"]);
}
