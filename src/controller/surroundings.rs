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
    /// The seed of the random part of pauses, so that operators do not call the API server in step.
    pub chance: u64,
    /// The key by which the admission webhook seals into a job who created the job.
    pub seals: Seals,
    /// The admission policies by which the API server stamps into a job who created the job.
    pub stamps: Stamps,
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
            shelf: None,
        }
    }
}

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

/// The pauses between the attempts of one watch: as kube's own, they double from 0.8 s to 30 s, and a random part of up
/// to the same length is added. Unlike kube's, the random part follows from a seed.
#[derive(Clone, Debug)]
pub struct Pauses {
    next: Duration,
    chance: u64,
}

/// The pause after the first failure.
const SHORTEST: Duration = Duration::from_millis(800);
/// The longest pause, before chance.
const LONGEST: Duration = Duration::from_secs(30);
/// The pause, before chance, while the API server does not have the kind: such an answer costs the server little, and a
/// definition that is made again is to be seen soon.
const WHILE_MISSING: Duration = Duration::from_secs(2);

impl Pauses {
    /// Pauses with this seed.
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
        Some(self.with_chance(pause))
    }
}

impl Pauses {
    /// The pause before a kind is asked for again that the API server does not have.
    pub(crate) fn while_missing(&mut self) -> Duration {
        self.with_chance(WHILE_MISSING)
    }

    /// The pause, and up to the same length again.
    fn with_chance(&mut self, pause: Duration) -> Duration {
        // SplitMix64: small, and good enough to keep operators out of step.
        self.chance = self.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.chance ^ (self.chance >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let share = u32::try_from((mixed ^ (mixed >> 31)) % 1000).unwrap_or(0);
        pause + pause * share / 1000
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
