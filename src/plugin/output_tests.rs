//! The lines about ends and about lost output.

use super::*;

#[test]
fn what_is_lost_says_why() {
    for (standing, retention, expected) in [
        (
            Standing::Completed,
            PodRetention::Delete,
            "the proc is done, with success; podRetention is Delete, and the proc's output went with its pod",
        ),
        (
            Standing::Failed,
            PodRetention::KeepFailed,
            "the proc is done, and has failed; its pod was deleted, or its node has gone, and the proc's output went with its pod",
        ),
        (
            Standing::Removed,
            PodRetention::Keep,
            "the proc was removed, and the proc's output went with its pod",
        ),
        (Standing::Idle(0), PodRetention::Keep, "the proc waits, and has not run yet"),
        (
            Standing::Idle(2),
            PodRetention::Keep,
            "the proc waits to run again; what 2 earlier runs printed went with their pods",
        ),
        (
            Standing::Held("mine".to_owned()),
            PodRetention::Keep,
            "the proc is held (mine) and has no pod; what earlier runs printed went with their pods",
        ),
    ] {
        assert_eq!(lost(&standing, retention), expected);
    }
}

#[test]
fn ends_have_code_place_and_time() {
    let run = LastRun {
        started: Some(1_893_553_445),
        finished: Some(1_893_553_505),
        end: Some(End::Exited { code: 3 }),
        node: Some("node1".to_owned()),
        ..LastRun::default()
    };
    assert_eq!(
        ended(&run).unwrap(),
        "ended with exit code 3 on node1 from 2030-01-02T03:04Z to 2030-01-02T03:05Z"
    );
    assert_eq!(
        ended(&LastRun { end: Some(End::Exited { code: 137 }), ..LastRun::default() }).unwrap(),
        "ended by signal 9"
    );
    let init = End::InitFailed { container: "slotwright-fetch".into(), code: 22 };
    assert_eq!(
        ended(&LastRun { end: Some(init), ..LastRun::default() }).unwrap(),
        "did not run: its init container slotwright-fetch failed with exit code 22, as kubectl logs of the pod with -c \
         slotwright-fetch shows; it ended"
    );
    assert_eq!(ended(&LastRun { end: None, ..run }), None);
    let mut ad = Ad::default();
    ad.set("ExitCode", 7);
    ad.set("LastRemoteHost", "slot1_1@node7");
    ad.set("CompletionDate", 1_893_553_505);
    assert_eq!(
        of_ad(&ad),
        "the history says that the proc ended with exit code 7 on slot1_1@node7 to 2030-01-02T03:05Z"
    );
}

#[test]
fn the_program_s_container_is_the_template_s_first() {
    let two = serde_json::json!({"spec": {"containers": [{"name": "main"}, {"name": "side"}]}});
    assert_eq!(first_container(&two).as_deref(), Some("main"));
    assert_eq!(first_container(&serde_json::json!({"spec": {}})), None);
}
