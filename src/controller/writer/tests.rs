//! The calls to the API server for pods, and how the writer takes the answers.

mod hanging;
mod held;
mod slots;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::lanes::Work;
use super::{Context, Reply, Task, Tools, calls};
use crate::Clock;
use crate::cache::Cache;
use crate::kinds::Custom;
use crate::render::KeptTemplate;
use api::labels;
use model::pool::limits::Wants;
use model::pool::{
    Autopublish, Benchmarks, Claim, CronJob, Crontab, Document, Effect, JobKey, MachineName, NegotiatorId,
    PodPlan, PodRef, Resources, SlotName, Time, Vacate, VacateReason,
};

/// Answers each request with the next status of a script, and writes down what was asked.
#[derive(Clone)]
struct Script(Arc<Mutex<(VecDeque<u16>, Vec<Asked>)>>, Value);

/// Method and path, and the body.
type Asked = (String, Value);

impl tower::Service<Request<Body>> for Script {
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (script, found) = (Arc::clone(&self.0), self.1.clone());
        Box::pin(async move {
            let line = format!("{} {}", request.method(), request.uri().path());
            let body = request.into_body().collect_bytes().await.unwrap();
            let mut script = script.lock().unwrap();
            script.1.push((line, serde_json::from_slice(&body).unwrap_or_default()));
            let code = script.0.pop_front().expect("no more requests than scripted");
            let reason = if code == 404 { "NotFound" } else { "" };
            let failure =
                json!({"kind": "Status", "status": "Failure", "code": code, "message": "", "reason": reason});
            let answer = if code == 200 { found } else { failure };
            Ok(Response::builder().status(code).body(Body::from(answer.to_string().into_bytes())).unwrap())
        })
    }
}

/// Makes the calls of a task about an object that the operator has not seen.
async fn answers_to(tools: Tools, task: Task) -> Vec<Reply> {
    calls::perform(&Context::of(&Arc::new(tools), task.lane(), None), task).await
}

/// The calls for an effect, and the pool's news of the answers.
async fn perform(effect: Effect, answers: &[u16]) -> (Vec<Asked>, Vec<String>) {
    perform_as(effect, answers, &json!({"metadata": {"name": "sweep-3", "uid": "u1"}})).await
}

/// The same, where a call that succeeds is answered with this object.
async fn perform_as(effect: Effect, answers: &[u16], found: &Value) -> (Vec<Asked>, Vec<String>) {
    let script = Script(Arc::new(Mutex::new((answers.iter().copied().collect(), Vec::new()))), found.clone());
    let clock = Clock::set_to(Timestamp::UNIX_EPOCH);
    let tools = Tools::new(Client::new(script.clone(), "ns"), clock, "me");
    let replies = answers_to(tools, Task::Effect(effect, None)).await;
    let heard = |reply| match reply {
        Reply::Outcome(outcome) => Some(format!("{outcome:?}")),
        _ => None,
    };
    let heard = replies.into_iter().filter_map(heard).collect();
    let asked = script.0.lock().unwrap().1.clone();
    (asked, heard)
}

fn pod() -> PodRef {
    PodRef { namespace: "alice".into(), name: "sweep-3".into(), uid: "u1".into() }
}

/// A job's template with one container.
fn template() -> Arc<KeptTemplate> {
    let template = json!({"spec": {"containers": [{"name": "main"}]}});
    let job = json!({"metadata": {"name": "sweep", "namespace": "alice"}, "spec": {"count": 4, "template": template}});
    let (job, template) = (serde_json::from_value(job).unwrap(), serde_json::from_value(template).unwrap());
    Arc::new(KeptTemplate::of(&job, &template).unwrap())
}

fn slot() -> SlotName {
    SlotName::parse("slot1_1@n1").unwrap()
}

fn lines(asked: &[Asked]) -> Vec<&str> {
    asked.iter().map(|(line, _)| line.as_str()).collect()
}

const POD: &str = "/api/v1/namespaces/alice/pods/sweep-3";

#[tokio::test(start_paused = true)]
async fn a_pod_is_untracked_by_a_patch_of_the_pod_that_is_meant() {
    let patch = json!({"metadata": {
        "uid": "u1",
        "$deleteFromPrimitiveList/finalizers": ["slotwright.dev/tracking"],
        "managedFields": [{}],
    }});
    let (asked, heard) = perform(Effect::UntrackPod { pod: pod(), delete: false }, &[200]).await;
    assert_eq!((asked, heard), (vec![(format!("PATCH {POD}"), patch)], vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_asked_by_a_patch_of_the_pod_that_is_meant() {
    let patch = |annotations: Value| json!({"metadata": {"uid": "u1", "annotations": annotations}});
    let suspend = |suspended| Effect::Suspend { pod: pod(), slot: slot(), suspended };
    for (effect, annotations) in [
        (suspend(true), json!({"slotwright.dev/suspend": "true"})),
        (suspend(false), json!({"slotwright.dev/suspend": null})),
        (Effect::KillByAgent { pod: pod(), slot: slot() }, json!({"slotwright.dev/kill": "true"})),
    ] {
        let (asked, heard) = perform(effect, &[200]).await;
        assert_eq!((asked, heard), (vec![(format!("PATCH {POD}"), patch(annotations))], vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_could_not_be_asked_is_decided_again_unless_the_pod_is_gone() {
    let suspend = || Effect::Suspend { pod: pod(), slot: slot(), suspended: true };
    assert_eq!(perform(suspend(), &[404]).await.1, [""; 0]);
    let failed = r#"Failed(Pod("u1", Some(slot1_1@n1)))"#;
    for answers in [&[409][..], &[403], &[500; 8]] {
        let (asked, heard) = perform(suspend(), answers).await;
        assert_eq!(asked.len(), answers.len());
        assert_eq!(heard, [failed]);
    }
}

/// The pod of proc 3 of alice's sweep.
fn plan() -> PodPlan {
    let job = JobKey { uid: "j1".into(), namespace: "alice".into(), name: "sweep".into() };
    let claim = Claim {
        id: "slot1_1@n1#0#1".into(),
        submitter: "alice".into(),
        group: None,
        negotiator: NegotiatorId::Unnamed,
        regrouped: false,
        weight: 1.0,
        limits: Wants::default(),
        since: Time::from_secs(0),
        last: model::pool::Assignment { job, cluster_id: 12, proc: 3 },
    };
    PodPlan {
        lease: Duration::from_mins(40),
        longest_vacating: Duration::from_mins(10),
        run: 0,
        slot: slot(),
        resources: Resources { cpus: 1, memory_mib: 128, ..Resources::default() },
        claim,
        image: None,
        tolerations: Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_creation_is_given_up_is_looked_for() {
    let made = json!({"metadata": {
        "name": "sweep-3", "namespace": "alice", "uid": "u1", "finalizers": [labels::TRACKING_FINALIZER],
        "labels": {labels::JOB_UID: "j1", labels::PROC: "3"}, "annotations": {labels::CLAIM: "slot1_1@n1#0#1"}}});
    for (answers, heard) in [
        (vec![500, 500, 500, 500, 500, 500, 500, 500, 200], "PodCreated"),
        (vec![500, 500, 500, 500, 500, 500, 500, 500, 404], "given up after 8 attempts"),
        // An API server that asks for fewer requests is asked again each second, for half a minute.
        ([[429; 20].as_slice(), &[200]].concat(), "PodCreated"),
        ([[429; 30].as_slice(), &[404]].concat(), "given up after 30 attempts"),
        // The quota of its namespace was just charged with another.
        (vec![409, 409, 200], "PodCreated"),
        (vec![403], "PodRefused"),
    ] {
        let script = Script(Arc::new(Mutex::new((answers.into(), Vec::new()))), made.clone());
        let clock = Clock::set_to(Timestamp::UNIX_EPOCH);
        let tools = Tools::new(Client::new(script.clone(), "ns"), clock, "me");
        let task = Task::Effect(Effect::CreatePod(Box::new(plan())), Some(template()));
        let replies = answers_to(tools, task).await;
        let [Reply::Outcome(outcome)] = replies.as_slice() else { panic!("one reply") };
        assert!(format!("{outcome:?}").contains(heard), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_backfill_pod_that_no_watch_shows_is_missing_only_where_that_is_certain() {
    let pod = |slot: &str, phase: &str| {
        json!({"metadata": {"name": "backfill-slot1.n1", "labels": {labels::BACKFILL: "true"},
                            "annotations": {labels::SLOT: slot}}, "status": {"phase": phase}})
    };
    for (answers, found, missing) in [
        (&[200][..], pod("slot1@n1", "Pending"), false),
        (&[200], pod("slot1@n1", "Succeeded"), true),
        (&[200], pod("slot2@n1", "Running"), true),
        (&[404], Value::Null, true),
        (&[500; 8], Value::Null, false),
    ] {
        let slot = SlotName::parse("slot1@n1").unwrap();
        let look = Effect::LookForBackfill { slot, namespace: "fill".into() };
        let (asked, heard) = perform_as(look, answers, &found).await;
        assert_eq!(asked[0].0, "GET /api/v1/namespaces/fill/pods/backfill-slot1.n1");
        let expected = if missing { vec!["BackfillMissing(slot1@n1)"] } else { vec![] };
        assert_eq!(heard, expected, "{found}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_could_not_be_deleted_is_looked_at_again() {
    for (answers, failing) in [(&[200][..], false), (&[404], false), (&[403], true), (&[500; 8], true)] {
        let script = Script(Arc::new(Mutex::new((answers.iter().copied().collect(), Vec::new()))), json!({}));
        let clock = Clock::set_to(Timestamp::UNIX_EPOCH);
        let heard = Arc::clone(&script.0);
        let tools = Tools::new(Client::new(script, "ns"), clock, "me");
        let document = Document::Slot(SlotName::parse("slot2@n1").unwrap());
        let object = api::Slot::KIND.object("slot2.n1");
        let task = Task::Delete {
            document: document.clone(),
            object,
            uid: "u1".to_owned(),
            version: "7".to_owned(),
        };
        let replies = answers_to(tools, task).await;
        let again = matches!(replies.as_slice(), [Reply::Failing(failing)] if *failing == document);
        assert_eq!(again, failing, "{answers:?}");
        let asked = heard.lock().unwrap().1[0].1["preconditions"].clone();
        assert_eq!(asked, json!({"uid": "u1", "resourceVersion": "7"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_says_why_before_it_is_deleted_and_goes_even_if_it_cannot() {
    let why = || {
        let message = "the machine prefers another job".into();
        Some(Vacate { reason: VacateReason::StartdPreemptingClaimRank, message })
    };
    let delete = |grace, why| deletion(grace, None, None, why);
    let (status, gone) = (format!("PATCH {POD}/status"), format!("DELETE {POD}"));

    let (asked, _) = perform(delete(Some(20), why()), &[200, 200]).await;
    assert_eq!(lines(&asked), [&status, &gone]);
    let condition = &asked[0].1["status"]["conditions"][0];
    assert_eq!(condition["type"], "DisruptionTarget");
    assert_eq!(condition["reason"], "StartdPreemptingClaimRank");
    assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:00:00Z");
    assert_eq!(asked[1].1["gracePeriodSeconds"], 20);
    assert_eq!(asked[1].1["preconditions"]["uid"], "u1");

    let (asked, heard) = perform(delete(None, why()), &[403, 200]).await;
    assert_eq!((lines(&asked), heard.len()), (vec![status.as_str(), &gone], 0), "one that may not say why");
    let (asked, _) = perform(delete(Some(1), None), &[200]).await;
    assert_eq!(lines(&asked), [&gone], "one that was asked to go before is hurried by one call");
}

fn deletion(
    grace: Option<u32>,
    granted: Option<Duration>,
    off: Option<MachineName>,
    why: Option<Vacate>,
) -> Effect {
    Effect::DeletePod { pod: pod(), slot: Some(slot()), grace, granted, off, why }
}

/// The API server forgets how long a pod had once somebody shortens that, and a kubelet that has begun to end the pod does
/// not.
#[tokio::test(start_paused = true)]
async fn a_grace_period_is_kept_on_the_pod_before_it_is_shortened() {
    let killed = || deletion(Some(1), Some(Duration::from_mins(10)), None, None);
    let (kept, gone) = (format!("PATCH {POD}"), format!("DELETE {POD}"));
    let (asked, heard) = perform(killed(), &[200, 200]).await;
    assert_eq!((lines(&asked), heard.len()), (vec![kept.as_str(), &gone], 0));
    let granted = json!({"slotwright.dev/granted-seconds": "600"});
    assert_eq!(asked[0].1["metadata"], json!({"uid": "u1", "annotations": granted}));
    let (asked, heard) = perform(killed(), &[403]).await;
    let again = vec![r#"Failed(Pod("u1", Some(slot1_1@n1)))"#.to_owned()];
    assert_eq!((lines(&asked), heard), (vec![kept.as_str()], again), "what cannot be kept is not shortened");
    let (asked, _) = perform(killed(), &[404, 404]).await;
    assert_eq!(lines(&asked), [&kept, &gone], "the pod is gone");
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_for_a_node_that_is_off_stays_if_the_node_is_back() {
    let (node, gone) = ("GET /api/v1/nodes/n1", format!("DELETE {POD}"));
    let off = Some("n1".into());
    let of_job = deletion(Some(0), None, off, None);
    let of_backfill = Effect::DeleteBackfill { pod: pod(), machine: "n1".into(), grace: Some(0), off: true };
    for (effect, again) in
        [(of_job, r#"Failed(Pod("u1", Some(slot1_1@n1)))"#), (of_backfill, r#"Failed(Backfill("n1", "u1"))"#)]
    {
        let (asked, heard) = perform(effect.clone(), &[404, 200]).await;
        assert_eq!((lines(&asked), heard.len()), (vec![node, &gone], 0), "the node is gone");
        let (asked, heard) = perform(effect.clone(), &[200]).await;
        assert_eq!((lines(&asked), heard), (vec![node], vec![again.to_owned()]), "it is back");
        let (asked, heard) = perform(effect.clone(), &[404, 500, 200]).await;
        assert_eq!(
            (lines(&asked), heard),
            (vec![node, &gone, node], vec![again.to_owned()]),
            "back since the last try"
        );
        let (asked, heard) = perform(effect, &[403]).await;
        assert_eq!((lines(&asked), heard), (vec![node], vec![again.to_owned()]), "nobody knows");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_there_and_out_of_service_is_off() {
    let taints = |key: &str| json!({"metadata": {"name": "n1"}, "spec": {"taints": [{"key": key, "effect": "NoExecute"}]}});
    for (key, asks) in [("node.kubernetes.io/out-of-service", 2), ("maintenance", 1)] {
        let effect = deletion(Some(0), None, Some("n1".into()), None);
        let (asked, _) = perform_as(effect, &[200, 200], &taints(key)).await;
        assert_eq!(asked.len(), asks, "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn benchmarks_are_asked_for_in_the_report() {
    let asked_with = |so_far| Effect::Benchmark { machine: "n1".into(), asked: Time::from_secs(90), so_far };
    let line = "PATCH /apis/slotwright.dev/v1alpha1/nodereports/n1".to_owned();
    let at = "1970-01-01T00:01:30Z";
    let (asked, heard) = perform(asked_with(None), &[200]).await;
    let first = json!({"spec": {"benchmark": at, "mipsSoFar": null, "kflopsSoFar": null}});
    assert_eq!(asked, [(line.clone(), first)]);
    let so_far = Benchmarks { mips: 7, kflops: 9, at: Time::from_secs(1) };
    let (asked, _) = perform(asked_with(Some(so_far)), &[200]).await;
    let next = json!({"spec": {"benchmark": at, "mipsSoFar": 7, "kflopsSoFar": 9}});
    assert_eq!(asked, [(line, next)], "what was known so far goes with it");
    let unheard = perform(asked_with(None), &[404]).await.1.len();
    assert_eq!((heard.len(), unheard), (0, 0), "nobody waits for the answer");
}

/// A field that the patch does not name would stay as it was in the report, and the agent would be asked again and again.
#[tokio::test(start_paused = true)]
async fn a_request_for_cron_jobs_names_all_that_an_earlier_one_may_have_set() {
    let asked_with = |tab| Effect::Cron { machine: "n1".into(), tab: Arc::new(tab) };
    let spec = async |tab| {
        let (asked, _) = perform(asked_with(tab), &[200]).await;
        asked.into_iter().map(|(_, body)| body["spec"]["cron"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(spec(Crontab::default()).await, [Value::Null], "no jobs any more");
    let job = CronJob { name: "a".to_owned(), executable: "/opt/a".to_owned(), ..CronJob::default() };
    let loud = Crontab { jobs: vec![job], log_failures: true, publish: Autopublish::Always, max_load: 0.5 };
    let quiet = Crontab { jobs: loud.jobs.clone(), ..Crontab::default() };
    let fields = |spec: &Value| spec.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let (before, after) = (spec(loud).await.remove(0), spec(quiet).await.remove(0));
    assert_eq!(fields(&before), fields(&after));
    assert_eq!((&after["logNonZeroExit"], &after["autopublish"]), (&json!(false), &json!("Never")));
}

/// If a claim takes over a static slot and comes to nothing before it is written, the object still carries the claim
/// before it. Either claim is taken off the object, and a third claim stays.
#[tokio::test(start_paused = true)]
async fn what_is_taken_off_a_static_slot_is_over() {
    let claim = |id: &str| {
        json!({"id": id, "submitter": "alice", "weight": 1.0, "claimedAt": null, "jobId": "1.0",
            "matchedConcurrencyLimits": [], "proc": 0, "pod": "sweep-0",
            "job": {"namespace": "alice", "name": "sweep", "uid": "u"}})
    };
    for (on_it, methods) in [("b", &["GET", "PATCH"][..]), ("a", &["GET", "PATCH"]), ("c", &["GET"])] {
        let found = json!({"metadata": {"name": "slot1.n1", "uid": "s1", "resourceVersion": "1"},
            "spec": {"name": "slot1@n1", "node": "n1", "slotType": "Static", "claim": claim(on_it),
                "resources": {"cpus": 1, "memoryMiB": 1, "diskKiB": 1}}});
        let slot = SlotName::parse("slot1@n1").unwrap();
        let effect = Effect::DeleteSlot { slot, claim: Some("b".into()), before: vec!["a".into()] };
        let (asked, _) = perform_as(effect, &[200; 2][..methods.len()], &found).await;
        let asked: Vec<&str> = asked.iter().filter_map(|(line, _)| line.split(' ').next()).collect();
        assert_eq!(asked, methods, "{on_it}");
    }
}

/// The API server that has too many requests says for how long it wants to be left alone.
#[tokio::test(start_paused = true)]
async fn a_call_that_the_server_throttles_is_repeated_after_the_pause_that_the_server_asks_for() {
    let began = tokio::time::Instant::now();
    let suspend = || Effect::Suspend { pod: pod(), slot: slot(), suspended: true };
    assert_eq!(perform(suspend(), &[429, 429, 200]).await.1, [""; 0]);
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    let began = tokio::time::Instant::now();
    assert_eq!(perform(suspend(), &[500, 500, 200]).await.1, [""; 0]);
    assert_eq!(began.elapsed(), Duration::from_millis(600), "an error asks for nothing");
}

#[tokio::test(start_paused = true)]
async fn each_attempt_that_fails_is_counted_by_its_code() {
    let metrics = crate::metrics::Metrics::default();
    let answers = VecDeque::from([429, 500, 500, 200]);
    let script =
        Script(Arc::new(Mutex::new((answers, Vec::new()))), json!({"metadata": {"name": "sweep-3"}}));
    let tools = Tools::new(Client::new(script, "ns"), Clock::set_to(Timestamp::UNIX_EPOCH), "me");
    let suspend = Effect::Suspend { pod: pod(), slot: slot(), suspended: true };
    answers_to(tools.counted(metrics.failed_calls()), Task::Effect(suspend, None)).await;
    let text = metrics.text();
    for (code, calls) in [(429, 1), (500, 2)] {
        let line = format!("\nslotwright_failed_calls_total{{code=\"{code}\"}} {calls}\n");
        assert!(text.contains(&line), "{text}");
    }
    assert!(!text.contains("code=\"200\""), "{text}");
}

#[tokio::test]
async fn a_task_that_waits_for_its_place_is_small() {
    let script = Script(Arc::new(Mutex::new((VecDeque::new(), Vec::new()))), json!({}));
    let tools = Arc::new(Tools::new(Client::new(script, "ns"), Clock::set_to(Timestamp::UNIX_EPOCH), "me"));
    let task = || Task::Effect(Effect::CreatePod(Box::new(plan())), None);
    let context = || Context::of(&tools, task().lane(), None);
    let calls = size_of_val(&calls::perform(&context(), task()));
    let waits = size_of_val(&super::run(context(), Work::new(task(), None), super::Sighted(None)));
    let held = size_of::<Work>() + size_of::<PodPlan>();
    assert!(
        waits <= 512 && held <= 640,
        "a task: {waits} bytes, one that is held: {held} bytes, its calls: {calls} bytes"
    );
}
