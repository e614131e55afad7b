//! `/livez`, `/readyz` and `/metrics`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::sync::watch;

use super::Clock;
use super::cache::Kind;
use super::metrics::{FailedCalls, History, MEDIA_TYPE, Metrics};
use super::progress::Progress;
use model::pool::{Pool, Time};

/// A leader whose loop has not turned for this long is stuck: the loop turns at least every half minute.
const STUCK_AFTER_MILLIS: i64 = 120_000;

/// The operator's state, as its probes and metrics tell it.
#[derive(Debug, Default)]
pub struct Health {
    leading: AtomicBool,
    ready: AtomicBool,
    last_beat: AtomicI64,
    /// The plurals of the kinds that the API server does not have.
    missing: Mutex<BTreeSet<&'static str>>,
    /// Why the operator may not decide, though it leads or needs no election.
    waits: Mutex<Option<String>>,
    /// Whether the webhook of this process can answer; unset if the process has none.
    webhook_serves: Option<watch::Receiver<bool>>,
    progress: Arc<Progress>,
    metrics: Metrics,
}

impl Health {
    /// The state of an operator beside a webhook that can answer once this says so; `None` if there is no webhook.
    pub fn beside(webhook_serves: Option<watch::Receiver<bool>>) -> Self {
        Self { webhook_serves, ..Self::default() }
    }

    /// Says why the operator may not decide yet; nothing if it may.
    pub fn waits(&self, why: Option<String>) {
        *self.waits.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// How far the watches are.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Notes that the operator leads.
    pub fn leads(&self, now: Time) {
        self.last_beat.store(now.millis(), Ordering::Relaxed);
        self.leading.store(true, Ordering::Relaxed);
        self.metrics.leads();
    }

    /// Notes that everything is known and that deciding has begun.
    pub fn ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Notes whether the API server has a kind. While a kind is missing, a leader sees no objects of the kind, and is
    /// not ready.
    pub fn serves(&self, kind: Kind, there: bool) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if there {
            missing.remove(kind.plural());
        } else {
            missing.insert(kind.plural());
        }
    }

    /// Notes that the loop has turned, and updates the metrics.
    pub fn beat(&self, pool: &Pool, now: Time) {
        let before = self.last_beat.swap(now.millis(), Ordering::Relaxed);
        self.metrics.count(pool);
        // The loop turns hundreds of times a second while pods start, and after half a minute at the latest.
        if before.div_euclid(1000) != now.millis().div_euclid(1000) {
            self.metrics.count_all(pool, now);
        }
        self.progress.each(now, |kind, stale, undecodable| self.metrics.watch(kind, stale, undecodable));
    }

    /// Counts a pod that a kubelet has not ended within `KILLING_TIMEOUT`.
    pub fn overdue_kill(&self) {
        self.metrics.overdue_kill();
    }

    /// Notes how many events the writer has dropped so far.
    pub fn dropped(&self, events: u64) {
        self.metrics.dropped(events);
    }

    /// The counter of calls that failed.
    pub fn failed_calls(&self) -> FailedCalls {
        self.metrics.failed_calls()
    }

    /// The counters and gauges of the history.
    pub fn history(&self) -> History {
        self.metrics.history()
    }

    fn is_alive(&self, now: Time) -> bool {
        !self.leading.load(Ordering::Relaxed)
            || now.millis() - self.last_beat.load(Ordering::Relaxed) < STUCK_AFTER_MILLIS
    }

    /// Why the process is not ready; `None` if the process is ready. A process with a webhook is not ready before the webhook can answer,
    /// since the API server asks every ready process. An operator that waits for the pool's Lease is not ready; any other candidate is. A
    /// leader is ready once every object has been told, while the API server has every kind and no watch has been behind for too long.
    pub(super) fn unready(&self, now: Time) -> Option<String> {
        if self.webhook_serves.as_ref().is_some_and(|serves| !*serves.borrow()) {
            return Some(
                "no: the admission webhook has no certificate, or does not know all quotas and policies yet"
                    .to_owned(),
            );
        }
        if let Some(why) = &*self.waits.lock().unwrap_or_else(PoisonError::into_inner) {
            return Some(format!("no: {why}"));
        }
        if !self.leading.load(Ordering::Relaxed) {
            return None;
        }
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if !missing.is_empty() {
            let kinds: Vec<&str> = missing.iter().copied().collect();
            return Some(format!(
                "no: the API server does not have {}; install the CustomResourceDefinitions",
                kinds.join(", ")
            ));
        }
        if let Some(complaint) = self.progress.complaint(now) {
            return Some(format!("no: {complaint}"));
        }
        (!self.ready.load(Ordering::Relaxed)).then(|| "no: not every object is known yet".to_owned())
    }
}

/// `/livez` and `/readyz`.
pub fn probes(health: Arc<Health>, clock: Clock) -> Router {
    let status = |wrong: Option<String>| match wrong {
        None => (StatusCode::OK, "ok".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
    };
    let stuck = |alive: bool| (!alive).then(|| "no".to_owned());
    let live = move |State(h): State<Arc<Health>>| async move { status(stuck(h.is_alive(clock.now()))) };
    let ready = move |State(h): State<Arc<Health>>| async move { status(h.unready(clock.now())) };
    Router::new().route("/livez", get(live)).route("/readyz", get(ready)).with_state(health)
}

/// `/metrics`.
pub fn metrics(health: Arc<Health>) -> Router {
    let text = |State(h): State<Arc<Health>>| async move { ([(CONTENT_TYPE, MEDIA_TYPE)], h.metrics.text()) };
    Router::new().route("/metrics", get(text)).with_state(health)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_with_a_webhook_is_ready_once_the_webhook_can_answer() {
        let (serves, receiver) = watch::channel(false);
        let health = Health::beside(Some(receiver));
        let unready = || health.unready(Time::from_secs(1000));
        assert!(unready().is_some_and(|why| why.contains("certificate")));
        serves.send_replace(true);
        assert_eq!(unready(), None);
    }

    #[test]
    fn a_leader_is_ready_once_it_knows_and_alive_while_it_turns() {
        let at = Time::from_secs(1000);
        let health = Health::default();
        assert!(
            health.unready(at).is_none() && health.is_alive(Time::from_secs(9999)),
            "a candidate waits in good health"
        );
        health.waits(Some("the pool is another's".to_owned()));
        assert_eq!(health.unready(at).as_deref(), Some("no: the pool is another's"));
        health.waits(None);
        health.leads(at);
        assert!(health.unready(at).is_some() && health.is_alive(at));
        health.ready();
        assert_eq!(health.unready(at), None);
        let kind = Kind::of(&("Slot", "slots"));
        health.serves(kind, false);
        assert!(health.unready(at).is_some_and(|why| why.contains("does not have slots")));
        health.serves(kind, true);
        assert_eq!(health.unready(at), None);
        assert!(!health.is_alive(Time::from_secs(1121)));
        health.beat(&Pool::default(), Time::from_secs(1121));
        assert!(health.is_alive(Time::from_secs(1121)));
    }
}
