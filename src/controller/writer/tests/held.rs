//! Tasks that are held until their lane has room.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::super::lanes::MOST_BEGUN;
use super::super::{Line, Reply, Writer};
use super::hanging::{creation, made_in, until, writer};
use super::{Cache, Effect, Task};
use model::pool::{Document, Outcome, PodRef};
use serde_json::json;

fn begun(writer: &Writer) -> usize {
    writer.running.values().filter(|running| running.lane.is_some()).count()
}

/// Tens of thousands of pods wait to be created after a large cycle, or while the API server is away.
#[tokio::test(start_paused = true)]
async fn a_lane_begins_no_more_tasks_than_may_pause_and_others_in_the_order_in_which_they_came() {
    let mut writer = writer(|_| Duration::from_millis(10));
    let all = u32::try_from(3 * MOST_BEGUN).unwrap();
    for number in 0..all {
        writer.submit(creation("a", number), &Cache::default());
    }
    writer.submit(creation("b", 0), &Cache::default());
    assert_eq!((begun(&writer), writer.lines.len()), (MOST_BEGUN + 1, 3 * MOST_BEGUN + 1));
    let mut ended = Vec::new();
    while let Some((finished, _)) = writer.finished().await {
        assert!(begun(&writer) <= MOST_BEGUN + 1);
        if let Line::Pod(namespace, name) = &finished.0
            && &**namespace == "a"
        {
            ended.push(name.rsplit_once('-').unwrap().1.parse::<usize>().unwrap());
        }
        writer.advance(finished, &Cache::default());
    }
    assert!(ended.iter().enumerate().all(|(place, number)| place.abs_diff(*number) < 64), "{ended:?}");
    assert_eq!((ended.len(), writer.is_idle(), writer.lanes.is_empty()), (3 * MOST_BEGUN, true, true));
}

/// As `slow_is_not_never`, with more creations than begin: those that were held have waited, too.
#[tokio::test(start_paused = true)]
async fn held_creations_of_a_slow_namespace_are_turned_away_with_the_others() {
    let mut writer = writer(|_| Duration::from_secs(10));
    let all = 5 * MOST_BEGUN;
    for number in 0..u32::try_from(all).unwrap() {
        writer.submit(creation("slow", number), &Cache::default());
    }
    let began = Instant::now();
    let replies = until(&mut writer, all).await;
    assert_eq!(made_in(&replies, ""), 9);
    let refused = replies.iter().filter(|reply| matches!(reply, Reply::Outcome(Outcome::PodRefused { .. })));
    assert_eq!(refused.count(), all - 9);
    assert!(began.elapsed() <= Duration::from_secs(21), "{:?}", began.elapsed());
}

/// A call of a former leader made the pod while the creation was held.
#[tokio::test(start_paused = true)]
async fn a_held_creation_ends_without_a_call_when_its_pod_is_seen() {
    let mut writer = writer(|_| Duration::from_hours(1));
    let last = u32::try_from(MOST_BEGUN).unwrap();
    for number in 0..=last {
        writer.submit(creation("a", number), &Cache::default());
    }
    let name = format!("sweep-{last}");
    let pod = PodRef { namespace: "a".into(), name: name.as_str().into(), uid: "seen".into() };
    writer.pod_seen(&pod, &"another claim".into());
    assert!(timeout(Duration::from_millis(1), writer.finished()).await.is_err());
    writer.pod_seen(&pod, &super::plan().claim.id);
    let (finished, replies) = writer.finished().await.unwrap();
    assert!(matches!(&finished.0, Line::Pod(_, of) if **of == *name));
    assert!(
        matches!(&replies[..], [Reply::Outcome(Outcome::PodCreated { pod: made, .. })] if *made == pod),
        "{replies:?}"
    );
    writer.advance(finished, &Cache::default());
    assert!(!writer.lines.contains_key(&Line::Pod("a".into(), name.into())));
    // A deletion of the same pod does not wait behind creations.
    writer.submit(Task::Effect(Effect::UntrackPod { pod, delete: true }, None), &Cache::default());
    assert!(timeout(Duration::from_secs(1), writer.finished()).await.is_ok());
}

/// All statuses of a namespace are refused. Each is told after a pause, during which others of the namespace are written.
#[tokio::test(start_paused = true)]
async fn tasks_that_pause_before_their_answers_are_told_keep_no_others_from_beginning() {
    let service = tower::service_fn(|request: http::Request<kube::client::Body>| async move {
        let refused = request.uri().path().contains("wrong");
        let failure =
            json!({"kind": "Status", "status": "Failure", "code": 422, "message": "", "reason": "Invalid"});
        let object = json!({"metadata": {"name": "right", "uid": "u1", "resourceVersion": "2"}});
        let (code, body) = if refused { (422, failure) } else { (200, object) };
        let body = kube::client::Body::from(body.to_string().into_bytes());
        Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
    });
    let tools = super::Tools::new(
        kube::Client::new(service, "ns"),
        super::Clock::set_to(super::Timestamp::UNIX_EPOCH),
        "me",
    );
    let mut writer = Writer::new(tools);
    let status = |name: String| {
        let job =
            super::JobKey { namespace: "a".into(), name: name.as_str().into(), uid: name.as_str().into() };
        let (object, document) = (crate::kinds::job::key(&job), Document::Job(job.uid));
        Task::Status { document, object, uid: name, version: "1".to_owned(), patch: json!({"running": 1}) }
    };
    for number in 0..2 * MOST_BEGUN {
        writer.submit(status(format!("wrong-{number}")), &Cache::default());
    }
    writer.submit(status("right".to_owned()), &Cache::default());
    let began = Instant::now();
    let first = until(&mut writer, 1).await;
    assert!(matches!(&first[..], [Reply::Seen(..)]), "{first:?}");
    assert!(began.elapsed() < Duration::from_secs(1));
    let others = until(&mut writer, 2 * MOST_BEGUN).await;
    assert!(others.iter().all(|reply| matches!(reply, Reply::Failing(_))));
    assert!(began.elapsed() >= Duration::from_secs(10));
}
