//! The part of the node's load that the pool's pods cause: HTCondor's TotalCondorLoadAvg.
//!
//! HTCondor averages the CPU use of its jobs over a minute. If the node's load average exceeds the number of CPUs, threads wait
//! for CPUs, and a job's share of the CPUs is taken as its share of the load. The result is at most the load average.
//!
//! HTCondor's minute is a window in which each second weighs the same. Here a second weighs less the longer ago it is, as in
//! the kernel's load average. The owner's load is the node's load average less the pool's part. With a window, a job
//! that ends would therefore seem to leave load of the owner's behind: after a minute, 37 % of the job's load.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

/// The time constant of the kernel's one-minute load average, in seconds.
const MINUTE: f64 = 60.0;

/// An average over a minute of the CPUs that the pool's pods use.
#[derive(Debug, Clone)]
pub struct LoadMeter {
    cpus: f64,
    last: Option<Sample>,
    /// The weighted sum of the CPUs in use over all intervals so far.
    sum: f64,
    /// The sum of the weights: from 0 at the start towards 1.
    weight: f64,
}

/// The CPU time that each pod had used at a time.
#[derive(Debug, Clone)]
struct Sample {
    at: Duration,
    used: BTreeMap<String, Duration>,
}

impl LoadMeter {
    /// A meter for a node with this many CPUs.
    pub fn new(cpus: NonZeroU32) -> Self {
        Self { cpus: f64::from(cpus.get()), last: None, sum: 0.0, weight: 0.0 }
    }

    /// Records the total CPU time of each of the pool's pods, by uid, at `now` of a clock that never goes back.
    ///
    /// A pod that is new, or whose total has shrunk, is taken to have started since the last sample, unless the node cannot
    /// have given it so much time since then. The CPU time that a pod used between the last sample and its end is lost. A
    /// sample that is no later than the last one is ignored.
    pub fn sample(&mut self, now: Duration, used: BTreeMap<String, Duration>) {
        if let Some(last) = &self.last {
            let Some(span) = now.checked_sub(last.at).filter(|span| !span.is_zero()) else { return };
            let span = span.as_secs_f64();
            let most = self.cpus * span;
            let total: f64 = used.iter().map(|(uid, &used)| since(last.used.get(uid), used, most)).sum();
            let old = (-span / MINUTE).exp();
            // `exp_m1` instead of 1 - old, which is 0 for a very short span.
            let fresh = -(-span / MINUTE).exp_m1();
            self.sum = self.sum * old + total.min(most) / span * fresh;
            self.weight = self.weight * old + fresh;
        }
        self.last = Some(Sample { at: now, used });
    }

    /// The CPUs that the pool's pods have used over the last minute: from 0 to the number of CPUs. `None` before the second
    /// sample.
    ///
    /// In the first minute, the average is over the time since the first sample. Otherwise an agent that restarts would
    /// report too little at first, and the pool's own load would seem to be the owner's.
    pub fn cpus_in_use(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| (self.sum / self.weight).clamp(0.0, self.cpus))
    }

    /// The part of the node's load average, `load`, that the pool's pods cause: from 0 to `load`. `None` before the second
    /// sample.
    pub fn load(&self, load: f64) -> Option<f64> {
        let load = if load.is_finite() { load.max(0.0) } else { 0.0 };
        let share = self.cpus_in_use()? / self.cpus;
        Some((share * load.max(self.cpus)).min(load))
    }
}

/// The CPU seconds that a pod has used since the last sample, in which its total was `before`. `most` is what the node can have
/// given to it.
fn since(before: Option<&Duration>, used: Duration, most: f64) -> f64 {
    match before.and_then(|&before| used.checked_sub(before)) {
        Some(grown) => grown.as_secs_f64(),
        None => Some(used.as_secs_f64()).filter(|&used| used <= most).unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn meter(cpus: u32) -> LoadMeter {
        LoadMeter::new(NonZeroU32::new(cpus).unwrap())
    }

    /// The CPUs in use after each of the samples: the second of the sample, and the seconds that each pod had used.
    fn averages(cpus: u32, samples: &[(u64, &[(&str, u64)])]) -> Vec<Option<f64>> {
        let mut meter = meter(cpus);
        let averages = samples.iter().map(|(now, pods)| {
            let used =
                pods.iter().map(|(uid, used)| ((*uid).to_owned(), Duration::from_secs(*used))).collect();
            meter.sample(Duration::from_secs(*now), used);
            // Nine digits: the rest is rounding.
            meter.cpus_in_use().map(|average| (average * 1e9).round() / 1e9)
        });
        averages.collect()
    }

    #[test]
    fn a_steady_load_is_known_after_the_second_sample() {
        let samples: &[(u64, &[(&str, u64)])] = &[
            (100, &[("a", 5000), ("b", 7)]),
            (110, &[("a", 5010), ("b", 12)]),
            (130, &[("a", 5030), ("b", 22)]),
        ];
        assert_eq!(averages(4, samples), [None, Some(1.5), Some(1.5)]);
    }

    #[test]
    fn the_load_decays_as_the_kernels_load_average_does() {
        // After 60 s of one CPU and 60 s of none: (1 - 1/e) / e over the 1 - 1/e^2 of the two minutes.
        let samples: &[(u64, &[(&str, u64)])] = &[(0, &[("a", 0)]), (60, &[("a", 60)]), (120, &[("a", 60)])];
        assert_eq!(averages(1, samples), [None, Some(1.0), Some(0.268_941_421)]);
        // After an hour, the start no longer shows: 1/e remains of a load one minute after its end.
        let samples: &[(u64, &[(&str, u64)])] =
            &[(0, &[("a", 0)]), (3600, &[("a", 3600)]), (3660, &[("a", 3600)])];
        assert_eq!(averages(1, samples)[2], Some(0.367_879_441));
    }

    #[test]
    fn the_length_of_the_intervals_does_not_matter() {
        let samples = |step: u64| {
            let mut meter = meter(2);
            for now in (0..=120).step_by(usize::try_from(step).unwrap()) {
                meter.sample(
                    Duration::from_secs(now),
                    [("a".to_owned(), Duration::from_secs(now.min(60)))].into(),
                );
            }
            meter.cpus_in_use().unwrap()
        };
        assert!((samples(1) - samples(60)).abs() < 1e-9);
    }

    #[test]
    fn pods_come_and_go() {
        for (what, pods, expected) in [
            ("a pod that started since the last sample", &[("a", 40), ("b", 5)][..], 0.5),
            ("a pod that cannot have used so much since then", &[("a", 40), ("b", 21)], 0.0),
            ("a pod that is gone", &[], 0.0),
            ("a total that shrank: the counter began anew", &[("a", 3)], 0.3),
            ("a total that shrank to more than the node can have given", &[("a", 39)], 0.0),
            ("a total that grew by more than the node can have given", &[("a", 400)], 2.0),
        ] {
            assert_eq!(averages(2, &[(0, &[("a", 40)]), (10, pods)])[1], Some(expected), "{what}");
        }
    }

    #[test]
    fn a_sample_that_is_no_later_changes_nothing() {
        let samples: &[(u64, &[(&str, u64)])] =
            &[(10, &[("a", 0)]), (10, &[("a", 9)]), (5, &[("a", 9)]), (20, &[("a", 10)])];
        assert_eq!(averages(2, samples), [None, None, None, Some(1.0)]);
    }

    #[test]
    fn a_share_of_the_cpus_is_the_same_share_of_a_load_above_them() {
        let mut meter = meter(2);
        assert_eq!(meter.load(1.0), None);
        meter.sample(Duration::ZERO, [("a".to_owned(), Duration::ZERO)].into());
        meter.sample(Duration::from_secs(10), [("a".to_owned(), Duration::from_secs(10))].into());
        for (load, expected) in [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (2.0, 1.0), (6.0, 3.0), (f64::NAN, 0.0)]
        {
            assert_eq!(meter.load(load), Some(expected), "of {load}");
        }
    }

    proptest! {
        #[test]
        fn the_average_is_between_nothing_and_all_cpus(
            cpus in 1..512u32,
            load in proptest::num::f64::ANY,
            samples in proptest::collection::vec(
                (any::<u64>(), proptest::collection::btree_map("[ab]", any::<u64>(), 0..3), any::<bool>()), 0..12,
            ),
        ) {
            let mut meter = meter(cpus);
            for (now, used, coarse) in samples {
                let time = if coarse { Duration::from_secs } else { Duration::from_nanos };
                meter.sample(time(now), used.into_iter().map(|(uid, used)| (uid, time(used))).collect());
                if let Some(average) = meter.cpus_in_use() {
                    prop_assert!((0.0..=f64::from(cpus)).contains(&average), "{average}");
                }
                if let Some(part) = meter.load(load) {
                    prop_assert!(part >= 0.0 && part.is_finite() && (part <= load || part == 0.0), "{part} of {load}");
                }
            }
        }
    }
}
