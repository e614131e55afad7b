//! Everything that the operator takes from the process that it runs in: the cluster, the time, threads for negotiation
//! cycles, and random numbers. Tests hand in their own, under which a run depends on nothing but a seed.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::time::Instant;

use super::archive::Shelf;
use super::creators::Stamps;
use super::seal::Seals;

use model::decide::Negotiation;
use model::negotiator::{self, Outcome, Ready, Stopwatch};
use model::pool::{NegotiatorId, Time};

/// Everything outside the operator that its behavior depends on.
#[derive(Clone)]
pub struct Surroundings {
    /// The cluster. The client must not retry by itself: the writer retries, with a bound and a log.
    pub client: Client,
    /// The cluster, for calls about the Leases of leaders. The operator's process opens separate connections for these calls, so that a
    /// renewal never waits for a connection that other calls hold.
    pub elections: Client,
    /// The time.
    pub clock: Clock,
    /// Where negotiation cycles run.
    pub cycles: Cycles,
    /// A random number, which no other operator has: the seed of the random part of pauses, so that operators do not call the API server in
    /// step, and what tells an operator's Leases from those of other operators with the same identity.
    pub chance: u64,
    /// The key by which the admission webhook seals into a job who created the job.
    pub seals: Seals,
    /// The admission policies by which the API server stamps into a job who created the job.
    pub stamps: Stamps,
    /// How many pods of a namespace the operator asks the API server to create at a time.
    pub pods_at_once: usize,
    /// Where final ads go if the options name no directory for them; nowhere if unset.
    pub shelf: Option<Shelf>,
}

impl Surroundings {
    /// The surroundings of a process that is the operator's own: the machine's clock, other threads for cycles, and a
    /// random seed.
    pub fn of_a_process(client: Client, elections: Client) -> Self {
        let chance = RandomState::new().hash_one(0_u8);
        Self {
            client,
            elections,
            clock: Clock::start(),
            cycles: Cycles::on_other_threads(),
            chance,
            seals: Seals::default(),
            stamps: Stamps::default(),
            pods_at_once: PODS_AT_ONCE,
            shelf: None,
        }
    }
}

/// As many pods as a quick API server creates in a second or two, and a slow one within the time after which a job lacks pods. Each of
/// them takes a kilobyte of the operator's memory while its creation waits for its turn.
const PODS_AT_ONCE: usize = 300;

/// The wall clock at the start, plus the time that has passed since. It never goes back, whatever is done to the
/// machine's clock while the operator runs.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall: Timestamp,
    since: Instant,
}

impl Clock {
    /// A clock set by the wall clock of now.
    pub fn start() -> Self {
        Self::set_to(Timestamp::now())
    }

    /// A clock that shows `wall` now, and runs from there.
    pub fn set_to(wall: Timestamp) -> Self {
        Self { wall, since: Instant::now() }
    }

    /// The present time as the pool writes it.
    pub fn now(self) -> Time {
        Time::from_millis(self.timestamp().as_millisecond())
    }

    /// The present time as Kubernetes writes it.
    pub fn timestamp(self) -> Timestamp {
        let passed = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        self.wall.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Ends once the machine's clock is so far ahead of this clock that the operator has to start again, and returns by how much.
    ///
    /// The machine slept, or its clock was wrong when the operator started and was corrected since. This clock cannot follow: all
    /// nodes and leases would seem to have been silent for the time between. An operator that starts counts silence anew.
    pub async fn falls_behind(self) -> SignedDuration {
        let mut looks = Looks::default();
        loop {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            let ahead = Timestamp::now().duration_since(self.timestamp());
            if looks.are_too_far(ahead) {
                return ahead;
            }
        }
    }
}

/// The pause between two looks at the machine's clock.
const BETWEEN_LOOKS: Duration = Duration::from_secs(10);
/// By how much the machine's clock may be ahead: seals of the webhook are valid for as long.
const MOST_AHEAD: SignedDuration = SignedDuration::from_secs(60);

/// How many looks in a row found the machine's clock too far ahead.
#[derive(Clone, Copy, Debug, Default)]
struct Looks(u8);

impl Looks {
    /// Whether this look is the third in a row that finds the machine's clock too far ahead. A clock that is wrong for a moment, and
    /// then set back, does not count.
    fn are_too_far(&mut self, ahead: SignedDuration) -> bool {
        self.0 = if ahead > MOST_AHEAD { self.0.saturating_add(1) } else { 0 };
        self.0 >= 3
    }
}

/// For how many negotiators the prepared slots are kept. When there are more, all are dropped, and with them those of
/// negotiators that no longer exist.
const KEPT_FOR: usize = 8;

/// A cycle under way.
pub type Thinking = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Runs negotiation cycles beside the loop: a cycle may take long, and works on its own snapshot.
#[derive(Clone)]
pub struct Cycles(Arc<dyn Fn(Arc<Negotiation>) -> Thinking + Send + Sync>);

impl Cycles {
    /// Cycles that the caller runs in its own way.
    pub fn run_by(think: impl Fn(Arc<Negotiation>) -> Thinking + Send + Sync + 'static) -> Self {
        Self(Arc::new(think))
    }

    /// Cycles on the threads that the runtime keeps for work that blocks. A cycle that panics makes no matches.
    pub fn on_other_threads() -> Self {
        let kept = Arc::new(Mutex::new(BTreeMap::<NegotiatorId, Ready>::new()));
        Self::run_by(move |negotiation| {
            let kept = Arc::clone(&kept);
            Box::pin(async move {
                let cycle = tokio::task::spawn_blocking(move || {
                    // There is one cycle at a time. If an earlier cycle panicked, the slots that it had taken are prepared anew.
                    let id = &negotiation.negotiator;
                    let taken = kept.lock().ok().and_then(|mut kept| kept.remove(id));
                    let mut ready = taken.unwrap_or_default();
                    let began = Instant::now();
                    let elapsed = || began.elapsed();
                    let stopwatch = Stopwatch::showing(&elapsed);
                    let outcome = negotiator::negotiate_with(&negotiation.cycle, &mut ready, stopwatch);
                    if let Ok(mut kept) = kept.lock() {
                        if kept.len() >= KEPT_FOR {
                            kept.clear();
                        }
                        kept.insert(id.clone(), ready);
                    }
                    outcome
                });
                let matches = cycle.await.inspect_err(|error| {
                    tracing::error!(
                        error = %answers::chain(error),
                        "a cycle ended in a fault of the operator's own"
                    );
                });
                matches.unwrap_or_default()
            })
        })
    }

    /// Runs a cycle.
    pub fn think(&self, negotiation: Arc<Negotiation>) -> Thinking {
        (self.0)(negotiation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_starts_again_when_the_machines_clock_stays_far_ahead() {
        let after = |seconds: &[i64]| {
            let mut looks = Looks::default();
            let far = seconds.iter().map(|ahead| looks.are_too_far(SignedDuration::from_secs(*ahead)));
            far.collect::<Vec<_>>()
        };
        assert_eq!(after(&[0, 60, -7200, 60]), [false; 4]);
        assert_eq!(after(&[61, 61, 0, 61, 61]), [false; 5]);
        assert_eq!(after(&[3600, 3600, 3600]), [false, false, true]);
    }
}
