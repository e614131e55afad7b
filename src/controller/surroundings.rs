//! What the operator takes from the process that it runs in: the cluster, the time, a place to think, and chance. Tests give
//! it others, under which a run follows from a seed alone.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::time::Instant;

use model::decide::Negotiation;
use model::negotiator::{self, Outcome, Ready, Stopwatch};
use model::pool::{NegotiatorId, Time};

/// Everything outside the operator that what it does depends on.
#[derive(Clone)]
pub struct Surroundings {
    /// The cluster. It must not retry by itself: retries are the writer's, where they are bounded and seen.
    pub client: Client,
    /// The time.
    pub clock: Clock,
    /// Where negotiation cycles run.
    pub cycles: Cycles,
    /// Where the chance in pauses starts, so that operators do not knock in step.
    pub chance: u64,
}

impl Surroundings {
    /// Those of a process of its own: the machine's clock, other threads, and true chance.
    pub fn of_a_process(client: Client) -> Self {
        let chance = RandomState::new().hash_one(0_u8);
        Self { client, clock: Clock::start(), cycles: Cycles::on_other_threads(), chance }
    }
}

/// The time since the start, on top of the wall clock at the start: it never goes back, whatever is done to the machine's
/// clock while the operator runs.
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

    /// A clock that shows `wall` now, and goes on from there.
    pub fn set_to(wall: Timestamp) -> Self {
        Self { wall, since: Instant::now() }
    }

    /// The time as the pool has it.
    pub fn now(self) -> Time {
        Time::from_millis(self.timestamp().as_millisecond())
    }

    /// The time as Kubernetes has it.
    pub fn timestamp(self) -> Timestamp {
        let passed = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        self.wall.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }
}

/// For how many negotiators what their slots were made ready as is kept: those that are no more are forgotten some time.
const KEPT_FOR: usize = 8;

/// A cycle under way.
pub type Thinking = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Where negotiation cycles run: a cycle may take long, and works on its snapshot beside the loop.
#[derive(Clone)]
pub struct Cycles(Arc<dyn Fn(Arc<Negotiation>) -> Thinking + Send + Sync>);

impl Cycles {
    /// In a way of the caller's own.
    pub fn run_by(think: impl Fn(Arc<Negotiation>) -> Thinking + Send + Sync + 'static) -> Self {
        Self(Arc::new(think))
    }

    /// On the threads that the runtime keeps for work that blocks. A cycle that ends in a fault made no matches.
    pub fn on_other_threads() -> Self {
        let kept = Arc::new(Mutex::new(BTreeMap::<NegotiatorId, Ready>::new()));
        Self::run_by(move |negotiation| {
            let kept = Arc::clone(&kept);
            Box::pin(async move {
                let cycle = tokio::task::spawn_blocking(move || {
                    // One cycle at a time; what one that ended in a fault had taken is made anew.
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
                        error = error as &dyn std::error::Error,
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

/// The pauses between the attempts of one watch: kube's own, from 0.8 s to half a minute with as much again by chance, but
/// of a chance that is handed in.
#[derive(Debug)]
pub struct Pauses {
    next: Duration,
    chance: u64,
}

/// The pause after the first failure.
const SHORTEST: Duration = Duration::from_millis(800);
/// The longest pause, before chance.
const LONGEST: Duration = Duration::from_secs(30);

impl Pauses {
    /// Pauses whose chance starts here.
    pub fn new(chance: u64) -> Self {
        Self { next: SHORTEST, chance }
    }

    /// Pauses for one of several watches, out of step with those of the others.
    #[must_use]
    pub fn of(&self, watch: &str) -> Self {
        let mix = |chance: u64, byte: u8| (chance ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self::new(watch.bytes().fold(self.chance, mix))
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        // SplitMix64: small, and good enough to keep operators out of step.
        self.chance = self.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.chance ^ (self.chance >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let share = u32::try_from((mixed ^ (mixed >> 31)) % 1000).unwrap_or(0);
        Some(pause + pause * share / 1000)
    }
}

impl kube::runtime::utils::Backoff for Pauses {
    fn reset(&mut self) {
        self.next = SHORTEST;
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::utils::Backoff;

    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_with_as_much_again_by_chance() {
        let mut pauses = Pauses::new(7);
        for least in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000].map(Duration::from_millis) {
            let pause = pauses.next().unwrap();
            assert!(least <= pause && pause < least * 2, "{least:?} {pause:?}");
        }
        pauses.reset();
        assert!(pauses.next().unwrap() < Duration::from_millis(1600));
        assert_eq!(Pauses::new(7).take(9).collect::<Vec<_>>(), Pauses::new(7).take(9).collect::<Vec<_>>());
        assert_ne!(Pauses::new(7).next(), Pauses::new(8).next());
    }
}
