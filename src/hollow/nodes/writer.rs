//! Carries out what kubelets decide: bounded in number, in order for each pod, patient with a server in trouble.

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
/// First and longest pause between attempts.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// An action, good as long as the kubelet that decided it lives.
struct Job {
    action: Action,
    kubelet: CancellationToken,
}

/// What the writers did so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) written: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// A fixed number of lanes; a pod always takes the same one.
pub(super) struct Writers {
    lanes: Vec<mpsc::UnboundedSender<Job>>,
    tasks: JoinSet<()>,
    pub(super) counters: Arc<Counters>,
}

impl Writers {
    pub(super) fn start(client: &Client, lanes: usize) -> Self {
        let counters = Arc::new(Counters::default());
        let mut tasks = JoinSet::new();
        let mut lane = || {
            let (sender, jobs) = mpsc::unbounded_channel();
            tasks.spawn(work(client.clone(), jobs, Arc::clone(&counters)));
            sender
        };
        let lanes = (0..lanes.max(1)).map(|_| lane()).collect();
        Self { lanes, tasks, counters }
    }

    /// Queues `actions` of one kubelet. At most three are ever queued for a pod, so the queue is bounded by the pods.
    pub(super) fn send(&self, actions: Vec<Action>, kubelet: &CancellationToken) {
        for action in actions {
            let hash = usize::try_from(fnv64(&key(&action).uid) >> 32).unwrap_or(0);
            if let Some(lane) = self.lanes.get(hash % self.lanes.len()) {
                // A closed lane means shutdown: nobody waits for this write.
                let _ = lane.send(Job { action, kubelet: kubelet.clone() });
            }
        }
    }

    /// Waits until all that was queued is written, at most `patience`.
    pub(super) async fn drain(mut self, patience: Duration) {
        self.lanes.clear();
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

async fn work(client: Client, mut jobs: mpsc::UnboundedReceiver<Job>, counters: Arc<Counters>) {
    while let Some(job) = jobs.recv().await {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &key(&job.action).namespace);
        let done = job.kubelet.run_until_cancelled(carry_out(&pods, &job.action, &counters)).await;
        let counter = if done == Some(true) { &counters.written } else { &counters.dropped };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Tries until the action is done (true) or has become pointless (false).
async fn carry_out(pods: &Api<Pod>, action: &Action, counters: &Counters) -> bool {
    let (mut pause, longest) = BACKOFF;
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

/// What to make of an attempt; `None` is one that took too long.
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

/// After a conflict: is it still the same pod? If the server does not say, assume so and try again.
async fn still_there(pods: &Api<Pod>, pod: &PodKey) -> bool {
    match tokio::time::timeout(CALL_TIMEOUT, pods.get_metadata_opt(&pod.name)).await {
        Ok(Ok(found)) => found.is_some_and(|found| found.metadata.uid.as_deref() == Some(pod.uid.as_str())),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

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
