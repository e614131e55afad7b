//! How many CPUs one pod uses.

use std::time::Duration;

/// The time over which CPUs in use are averaged.
const SPAN: Duration = Duration::from_mins(1);

/// How fast a pod's CPU time grows: `CpusUsage`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// When a span began, and the CPU time then.
    from: Option<(Duration, Duration)>,
    /// The average over the last whole span.
    last: Option<f64>,
}

impl Pace {
    /// Takes the pod's total CPU time at `now` of a clock that never goes back, and returns the CPUs in use, averaged over a
    /// minute and rounded to hundredths. During the pod's first minute the average is over the time known; none at first.
    pub fn cpus(&mut self, now: Duration, total: Duration) -> Option<f64> {
        let Some((began, before)) = self.from.filter(|(_, before)| *before <= total) else {
            // The pod is new, or its counter began anew.
            *self = Self { from: Some((now, total)), last: None };
            return None;
        };
        let span = now.saturating_sub(began);
        if span >= SPAN {
            let cpus = total.saturating_sub(before).as_secs_f64() / span.as_secs_f64();
            *self = Self { from: Some((now, total)), last: Some(cpus) };
        } else if self.last.is_none() && !span.is_zero() {
            return Some(rounded(total.saturating_sub(before).as_secs_f64() / span.as_secs_f64()));
        }
        self.last.map(rounded)
    }
}

fn rounded(cpus: f64) -> f64 {
    (cpus * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_in_use_are_averaged_over_each_minute() {
        let mut pace = Pace::default();
        let seconds = Duration::from_secs;
        for (now, total, expected) in [
            (0, 100, None),
            (0, 100, None),
            (10, 105, Some(0.5)),
            (60, 160, Some(1.0)),
            (61, 161, Some(1.0)),
            (119, 161, Some(1.0)),
            (120, 163, Some(0.05)),
            (130, 2, None),
            (140, 22, Some(2.0)),
        ] {
            assert_eq!(pace.cpus(seconds(now), seconds(total)), expected, "at {now}");
        }
    }
}
