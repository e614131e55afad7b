//! Makes the writes that kubelets ask for: a bounded number at a time, in order for each pod, and with retries while
//! the API server fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::core::Action;
use super::devices::fnv64;
use super::view::PodKey;

/// How long one call may take before it counts as failed.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The first and the longest pause between attempts. Each pause is twice as long as the previous one.
pub(super) type Backoff = (Duration, Duration);
/// The pauses outside tests.
pub(super) const BACKOFF: Backoff = (Duration::from_millis(100), Duration::from_secs(5));

/// A queued write. It is dropped if the kubelet that asked for it dies first.
struct QueuedWrite {
    action: Action,
    kubelet: CancellationToken,
}

/// The counters behind [`super::PodWrites`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) written: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// A fixed number of queues, each with a task that makes one write at a time. All writes to a pod take the same queue,
/// which keeps their order.
pub(super) struct Writers {
    queues: Vec<mpsc::UnboundedSender<QueuedWrite>>,
    tasks: JoinSet<()>,
    pub(super) counters: Arc<Counters>,
}

impl Writers {
    pub(super) fn start(client: &Client, queues: usize, backoff: Backoff) -> Self {
        let counters = Arc::new(Counters::default());
        let mut tasks = JoinSet::new();
        let mut queue = || {
            let (sender, writes) = mpsc::unbounded_channel();
            tasks.spawn(work(client.clone(), writes, Arc::clone(&counters), backoff));
            sender
        };
        let queues = (0..queues.max(1)).map(|_| queue()).collect();
        Self { queues, tasks, counters }
    }

    /// Queues `actions` of one kubelet. A kubelet asks for at most three actions in the life of a pod, so the number
    /// of pods bounds the length of the queues.
    pub(super) fn send(&self, actions: Vec<Action>, kubelet: &CancellationToken) {
        for action in actions {
            let hash = usize::try_from(fnv64(&key(&action).uid) >> 32).unwrap_or(0);
            if let Some(queue) = self.queues.get(hash % self.queues.len()) {
                // A queue is closed only during a shutdown, when nobody waits for this write.
                let _ = queue.send(QueuedWrite { action, kubelet: kubelet.clone() });
            }
        }
    }

    /// Waits until all queued writes are made, at most for `patience`.
    pub(super) async fn drain(mut self, patience: Duration) {
        self.queues.clear();
        let all_done = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, all_done).await.is_err() {
            warn!("hollow nodes: gave up on writes that the API server did not take in {patience:?}");
        }
    }
}

fn key(action: &Action) -> &PodKey {
    match action {
        Action::Report { pod, .. } | Action::Remove(pod) => pod,
    }
}

async fn work(
    client: Client,
    mut writes: mpsc::UnboundedReceiver<QueuedWrite>,
    counters: Arc<Counters>,
    backoff: Backoff,
) {
    while let Some(QueuedWrite { action, kubelet }) = writes.recv().await {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &key(&action).namespace);
        let done = kubelet.run_until_cancelled(write(&pods, &action, &counters, backoff)).await;
        let counter = if done == Some(true) { &counters.written } else { &counters.dropped };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Tries until the write succeeds (true) or has become pointless (false).
async fn write(pods: &Api<Pod>, action: &Action, counters: &Counters, backoff: Backoff) -> bool {
    let (mut pause, longest) = backoff;
    loop {
        let outcome = tokio::time::timeout(CALL_TIMEOUT, attempt(pods, action)).await;
        match verdict(outcome.ok()) {
            Verdict::Done => return true,
            Verdict::Pointless(why) => {
                debug!(pod = %key(action), "hollow nodes: write dropped: {why}");
                return false;
            }
            Verdict::Conflict if !still_there(pods, key(action)).await => return false,
            Verdict::Conflict | Verdict::Again => {}
        }
        counters.retried.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

async fn attempt(pods: &Api<Pod>, action: &Action) -> kube::Result<()> {
    match action {
        Action::Report { pod, patch, .. } => {
            pods.patch_status(&pod.name, &PatchParams::default(), &Patch::Strategic(patch)).await.map(|_| ())
        }
        Action::Remove(pod) => {
            let same = Preconditions { uid: Some(pod.uid.clone()), resource_version: None };
            let now = DeleteParams::default().grace_period(0).preconditions(same);
            pods.delete(&pod.name, &now).await.map(|_| ())
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Done,
    Pointless(String),
    Conflict,
    Again,
}

/// The next action after an attempt; `None` is an attempt that took longer than [`CALL_TIMEOUT`].
fn verdict(outcome: Option<kube::Result<()>>) -> Verdict {
    match outcome {
        None => Verdict::Again,
        Some(Ok(())) => Verdict::Done,
        Some(Err(kube::Error::Api(status))) => match status.code {
            409 => Verdict::Conflict,
            429 | 500.. => Verdict::Again,
            _ => Verdict::Pointless(status.message.clone()),
        },
        Some(Err(error)) => {
            debug!("hollow nodes: {error}; trying again");
            Verdict::Again
        }
    }
}

/// Whether the pod still exists with the same uid, asked after a conflict. True if the API server does not answer: then
/// the write is tried again.
async fn still_there(pods: &Api<Pod>, pod: &PodKey) -> bool {
    match tokio::time::timeout(CALL_TIMEOUT, pods.get_metadata_opt(&pod.name)).await {
        Ok(Ok(found)) => found.is_some_and(|found| found.metadata.uid.as_deref() == Some(pod.uid.as_str())),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::{Ready, ready};
    use std::sync::Mutex;
    use std::task::{Context, Poll};

    use http::{Request, Response};
    use kube::client::Body;
    use kube::core::Status;
    use serde_json::json;

    use super::super::view::Phase;
    use super::*;

    /// A server that answers each request with the next status code of a script, and records the requests.
    #[derive(Clone)]
    struct Script(Arc<Mutex<(VecDeque<u16>, Vec<String>)>>);

    impl tower::Service<Request<Body>> for Script {
        type Response = Response<Body>;
        type Error = std::convert::Infallible;
        type Future = Ready<Result<Response<Body>, std::convert::Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            let mut script = self.0.lock().unwrap();
            let name = request.uri().path().trim_start_matches("/api/v1/namespaces/ns/pods/");
            script.1.push(format!("{} {name}", request.method()));
            let code = script.0.pop_front().expect("no more requests than scripted");
            let body = match code {
                200 => json!({"metadata": {"name": "a", "uid": "u-a"}}),
                _ => {
                    json!({"kind": "Status", "status": "Failure", "code": code, "message": "", "reason": ""})
                }
            };
            let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
            ready(Ok(response.unwrap()))
        }
    }

    /// Queues `actions`, answers the requests with these status codes, and returns the requests and the counters.
    async fn play(answers: &[u16], actions: Vec<Action>, alive: bool) -> (Vec<String>, [u64; 3]) {
        let script = Script(Arc::new(Mutex::new((answers.iter().copied().collect(), Vec::new()))));
        let writers = Writers::start(&Client::new(script.clone(), "ns"), 4, (Duration::ZERO, Duration::ZERO));
        let counters = Arc::clone(&writers.counters);
        let kubelet = CancellationToken::new();
        if !alive {
            kubelet.cancel();
        }
        writers.send(actions, &kubelet);
        writers.drain(Duration::from_secs(10)).await;
        let Counters { written, retried, dropped } = counters.as_ref();
        let asked = script.0.lock().unwrap().1.clone();
        (asked, [written, retried, dropped].map(|counter| counter.load(Ordering::Relaxed)))
    }

    fn pod(uid: &str) -> PodKey {
        PodKey { namespace: "ns".to_owned(), name: "a".to_owned(), uid: uid.to_owned() }
    }

    fn report(uid: &str) -> Action {
        Action::Report { pod: pod(uid), phase: Phase::Running, patch: json!({}) }
    }

    #[tokio::test]
    async fn a_pods_writes_keep_their_order_through_trouble() {
        let actions = vec![report("u-a"), Action::Remove(pod("u-a"))];
        let (asked, counts) = play(&[503, 429, 200, 500, 200], actions, true).await;
        let patch = "PATCH a/status";
        assert_eq!(asked, [patch, patch, patch, "DELETE a", "DELETE a"]);
        assert_eq!(counts, [2, 3, 0]);
    }

    #[tokio::test]
    async fn a_conflict_is_retried_only_while_the_pod_is_the_same() {
        let (asked, counts) = play(&[409, 200, 200], vec![report("u-a")], true).await;
        assert_eq!((asked.len(), counts), (3, [1, 1, 0]));
        let (asked, counts) = play(&[409, 200], vec![report("u-earlier")], true).await;
        assert_eq!((asked.len(), counts), (2, [0, 0, 1]));
    }

    #[tokio::test]
    async fn what_is_pointless_or_from_a_dead_kubelet_is_dropped() {
        assert_eq!(play(&[404], vec![report("u-a")], true).await.1, [0, 0, 1]);
        let (asked, counts) = play(&[], vec![report("u-a")], false).await;
        assert_eq!((asked.len(), counts), (0, [0, 0, 1]));
    }

    #[test]
    fn errors_are_told_apart() {
        let api = |code: u16| {
            let status = Status { code, message: "because".to_owned(), ..Status::default() };
            verdict(Some(Err(kube::Error::Api(Box::new(status)))))
        };
        assert_eq!(verdict(None), Verdict::Again);
        assert_eq!(verdict(Some(Ok(()))), Verdict::Done);
        assert_eq!([api(409), api(429), api(503)], [Verdict::Conflict, Verdict::Again, Verdict::Again]);
        assert_eq!(api(404), Verdict::Pointless("because".to_owned()));
        assert_eq!(api(422), Verdict::Pointless("because".to_owned()));
    }
}
