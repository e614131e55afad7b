//! Calls of one namespace that hang or are slow, and the calls of others beside them.

use std::time::Duration;

use futures::FutureExt;
use http::{Method, Request, Response};
use kube::client::Body;
use tokio::time::{Instant, sleep, timeout};

use super::super::{NOTICES, Reply, Writer};
use super::{Arc, Cache, Clock, Effect, Task, Timestamp, Tools, plan, pod, template};
use model::pool::{ClaimPlan, Document, JobKey, Notice, Outcome, PodPlan, PodRef, Subject};
use serde_json::{Value, json};

/// An API server that takes this long to make a pod in a namespace, as the namespace's webhook does, and 10 ms for every
/// other answer.
pub(super) fn server(takes: impl Fn(&str) -> Duration + Send + Sync + 'static) -> kube::Client {
    let takes = Arc::new(takes);
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let namespace = path.split('/').skip_while(|part| *part != "namespaces").nth(1).map(str::to_owned);
        let makes_pod = request.method() == Method::POST && path.ends_with("/pods");
        let pause = namespace.filter(|_| makes_pod).map_or(Duration::ZERO, |namespace| takes(&namespace));
        async move {
            sleep(pause.max(Duration::from_millis(10))).await;
            let object = json!({"metadata": {"name": "sweep-3", "uid": "u1", "resourceVersion": "2"}});
            let body = Body::from(object.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(Response::builder().status(200).body(body).unwrap())
        }
    });
    kube::Client::new(service, "ns")
}

pub(super) fn writer(takes: impl Fn(&str) -> Duration + Send + Sync + 'static) -> Writer {
    Writer::new(Tools::new(server(takes), Clock::set_to(Timestamp::UNIX_EPOCH), "me"))
}

pub(super) fn creation(namespace: &str, number: u32) -> Task {
    let job = JobKey { namespace: namespace.into(), name: "sweep".into(), uid: namespace.into() };
    let mut claim = plan().claim;
    (claim.last.job, claim.last.proc) = (job, number);
    Task::Effect(Effect::CreatePod(Box::new(PodPlan { claim, ..plan() })), Some(template()))
}

fn release(namespace: &str, number: u32) -> Task {
    let pod = PodRef { namespace: namespace.into(), name: format!("done-{number}").into(), ..pod() };
    Task::Effect(Effect::UntrackPod { pod, delete: false }, None)
}

fn status(namespace: &str) -> Task {
    let job = JobKey { namespace: namespace.into(), name: "sweep".into(), uid: namespace.into() };
    let object = crate::kinds::job::key(&job);
    let patch: Value = json!({"running": 1});
    let (document, version) = (Document::Job(job.uid), "1".to_owned());
    Task::Status { document, object, uid: namespace.to_owned(), version, patch }
}

/// All procs of a large job fail at once, and each failure is an event.
#[tokio::test(start_paused = true)]
async fn few_events_of_a_job_wait_and_those_of_others_are_written() {
    let told = |job: &str| {
        let key = JobKey { namespace: "alice".into(), name: job.into(), uid: job.into() };
        let notice = Notice {
            about: Subject::Job(key),
            warning: true,
            reason: "ProcFailed",
            action: "Count",
            note: "proc 1 has failed".to_owned(),
        };
        Task::Effect(Effect::Tell(notice), None)
    };
    let mut writer = writer(|_| Duration::ZERO);
    for _ in 0..100_000 {
        writer.submit(told("wrong"), &Cache::default());
    }
    writer.submit(told("other"), &Cache::default());
    let mut written = 0;
    while let Ok(Some((ended, _))) = timeout(Duration::from_mins(1), writer.finished()).await {
        writer.advance(ended, &Cache::default());
        written += 1;
    }
    assert_eq!(written, 1 + NOTICES + 1, "the first at once, those that wait, and the other job's");
    assert_eq!(writer.dropped(), 100_000 - 1 - NOTICES as u64);
}

/// The pool would wait for the write's outcome for ever.
#[tokio::test]
async fn the_fault_of_a_write_is_the_writers_own() {
    fn faulty() -> Result<Response<Body>, std::convert::Infallible> {
        panic!("a fault")
    }
    let service = tower::service_fn(|_: Request<Body>| async { faulty() });
    let client = kube::Client::new(service, "ns");
    let mut writer = Writer::new(Tools::new(client, Clock::set_to(Timestamp::UNIX_EPOCH), "me"));
    writer.submit(creation("a", 0), &Cache::default());
    let ended = std::panic::AssertUnwindSafe(writer.finished()).catch_unwind().await;
    assert!(ended.is_err(), "the operator ends");
}

/// An admin's webhook that is asked about all objects is gone, and ignored after 10 s.
#[tokio::test(start_paused = true)]
async fn a_claim_is_written_past_a_webhook_that_hangs() {
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let service = tower::service_fn(move |_: Request<Body>| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move {
            sleep(Duration::from_secs(10)).await;
            let body = Body::from(br#"{"metadata": {"name": "slot1-1.n1", "uid": "u1"}}"#.to_vec());
            Ok::<_, std::convert::Infallible>(Response::builder().status(200).body(body).unwrap())
        }
    });
    let client = kube::Client::new(service, "ns");
    let mut writer = Writer::new(Tools::new(client, Clock::set_to(Timestamp::UNIX_EPOCH), "me"));
    let plan = plan();
    let plan = ClaimPlan { slot: plan.slot, resources: plan.resources, claim: plan.claim, again: false };
    writer.submit(Task::Effect(Effect::WriteSlot(Box::new(plan)), None), &Cache::default());
    let replies =
        timeout(Duration::from_secs(20), until(&mut writer, 1)).await.expect("the claim is written");
    assert!(
        replies.iter().any(|reply| matches!(reply, Reply::Outcome(Outcome::SlotWritten { .. }))),
        "{replies:?}"
    );
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 2);
}

/// Lets the writer work until so many tasks have ended, and returns the answers.
pub(super) async fn until(writer: &mut Writer, ended: usize) -> Vec<Reply> {
    let mut all = Vec::new();
    for _ in 0..ended {
        let (line, replies) = writer.finished().await.unwrap();
        writer.advance(line, &Cache::default());
        all.extend(replies);
    }
    all
}

pub(super) fn made_in(replies: &[Reply], namespace: &str) -> usize {
    let made = |reply: &&Reply| {
        let text = format!("{reply:?}");
        text.contains("PodCreated") && text.contains(namespace)
    };
    replies.iter().filter(made).count()
}

#[tokio::test(start_paused = true)]
async fn a_namespace_whose_pods_hang_keeps_nobody_else_waiting() {
    let hangs = |namespace: &str| {
        if namespace.starts_with("hanging") { Duration::from_hours(1) } else { Duration::ZERO }
    };
    let mut writer = writer(hangs);
    for number in 0..500 {
        for namespace in ["hanging-a", "hanging-b", "hanging-c"] {
            writer.submit(creation(namespace, number), &Cache::default());
        }
    }
    // At once, and again when the calls that hang have been tried for a while.
    for pause in [0, 120] {
        let _ = timeout(Duration::from_secs(pause), until(&mut writer, usize::MAX)).await;
        let began = Instant::now();
        for number in 0..20 {
            writer.submit(creation("quick", number), &Cache::default());
        }
        for number in 0..20 {
            writer.submit(release("hanging-a", number), &Cache::default());
        }
        writer.submit(status("hanging-a"), &Cache::default());
        writer.submit(status("quick"), &Cache::default());
        let replies = until(&mut writer, 42).await;
        assert_eq!(replies.iter().filter(|reply| format!("{reply:?}").contains("PodCreated")).count(), 20);
        assert_eq!(replies.iter().filter(|reply| matches!(reply, Reply::Seen(..))).count(), 2);
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    }
}

/// A webhook that does not answer, and is ignored on failure, lets each pod pass after 10 s. Eight are made at once, and one after
/// them. Then the others have waited for 20 s, and give their claims back.
#[tokio::test(start_paused = true)]
async fn slow_is_not_never() {
    let mut writer = writer(|_| Duration::from_secs(10));
    for number in 0..30 {
        writer.submit(creation("slow", number), &Cache::default());
    }
    let replies = until(&mut writer, 30).await;
    assert_eq!(made_in(&replies, ""), 9, "{replies:?}");
    let refused =
        replies.iter().map(|reply| format!("{reply:?}")).filter(|reply| reply.contains("PodRefused"));
    assert!(refused.clone().all(|reply| reply.contains("is an admission webhook slow?")));
    assert_eq!(refused.count(), 21);
}

/// A call that pauses before its next attempt holds no place.
#[tokio::test(start_paused = true)]
async fn a_pause_holds_no_place() {
    let service = tower::service_fn(|request: Request<Body>| async move {
        let refused = request.uri().path().contains("/refused/");
        sleep(Duration::from_millis(10)).await;
        let failure =
            json!({"kind": "Status", "status": "Failure", "code": 500, "message": "", "reason": ""});
        let object = json!({"metadata": {"name": "sweep-3", "uid": "u1"}});
        let (code, body) = if refused { (500, failure) } else { (200, object) };
        let body = Body::from(body.to_string().into_bytes());
        Ok::<_, std::convert::Infallible>(Response::builder().status(code).body(body).unwrap())
    });
    let client = kube::Client::new(service, "ns");
    let mut writer = Writer::new(Tools::new(client, Clock::set_to(Timestamp::UNIX_EPOCH), "me"));
    // The same namespace: its creations are refused, the releases in another one are not.
    for number in 0..80 {
        writer.submit(creation("refused", number), &Cache::default());
    }
    let _ = timeout(Duration::from_millis(150), writer.finished()).await;
    // All eighty have been tried once in ten rounds of eight, and the first are tried again.
    let began = Instant::now();
    writer.submit(creation("fine", 0), &Cache::default());
    assert_eq!(made_in(&until(&mut writer, 1).await, ""), 1);
    assert!(began.elapsed() <= Duration::from_millis(20), "{:?}", began.elapsed());
}
