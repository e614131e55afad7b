//! The pauses between the attempts of a call that is repeated until it succeeds.

use std::time::Duration;

use kube::runtime::utils::Backoff;

/// The pauses between the attempts of one watch: as kube's own, they double from 0.8 s to 30 s, and a random part of up
/// to the same length is added. Unlike kube's, the random part follows from a seed.
#[derive(Clone, Debug)]
pub struct Pauses {
    next: Duration,
    shortest: Duration,
    longest: Duration,
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
        Self { next: SHORTEST, shortest: SHORTEST, longest: LONGEST, chance }
    }

    /// Pauses that begin with `shortest`, and of which none is longer than `longest`, before chance.
    #[must_use]
    pub fn between(self, shortest: Duration, longest: Duration) -> Self {
        Self { next: shortest, shortest, longest, ..self }
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
        self.next = (pause * 2).min(self.longest);
        Some(self.with_chance(pause))
    }
}

impl Pauses {
    /// The pause before a kind is asked for again that the API server does not have.
    pub fn while_missing(&mut self) -> Duration {
        self.with_chance(WHILE_MISSING)
    }

    /// A pause that is by chance up to a tenth shorter or longer than this one.
    pub fn about(&mut self, pause: Duration) -> Duration {
        pause * 9 / 10 + self.chance(pause / 5)
    }

    /// The pause, and up to the same length again.
    fn with_chance(&mut self, pause: Duration) -> Duration {
        pause + self.chance(pause)
    }

    /// A random part of this time.
    fn chance(&mut self, most: Duration) -> Duration {
        // SplitMix64: small, and good enough to keep operators out of step.
        self.chance = self.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.chance ^ (self.chance >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let share = u32::try_from((mixed ^ (mixed >> 31)) % 1000).unwrap_or(0);
        most * share / 1000
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.next = self.shortest;
    }
}

#[cfg(test)]
mod tests {
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
