//! When jobs are submitted.

use std::time::Duration;

use rand::Rng;
use rand_distr::{Distribution, Exp1};

use super::number::span;
use super::spread::Spread;
use model::pool::{Request, Time};

/// Seconds of an hour.
pub const HOUR: i64 = 3_600;
/// Seconds of a day.
pub const DAY: i64 = 24 * HOUR;
/// Seconds of a week.
pub const WEEK: i64 = 7 * DAY;

/// Seconds from a Monday to the start of 1970, which was a Thursday.
const THURSDAY: i64 = 3 * DAY;

/// Seconds since Monday 00:00 UTC.
pub fn of_week(time: Time) -> i64 {
    (time.secs() + THURSDAY).rem_euclid(WEEK)
}

/// When the jobs of one source are submitted.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Exactly these jobs, in order of time, as a trace lists them.
    Listed(Vec<Listed>),
    /// At random, at a constant rate.
    Poisson {
        /// The mean number of seconds from one job to the next.
        every: f64,
    },
    /// At random, at a rate that changes with the hour of the week.
    Diurnal {
        /// The mean number of jobs in a day.
        per_day: f64,
        /// How the rate changes through the week.
        profile: Profile,
    },
    /// In bursts of many jobs. The first burst comes at once.
    Bursts {
        /// Seconds from the start of a burst to the start of the next.
        every: Spread,
        /// The number of jobs of a burst.
        jobs: Spread,
        /// Seconds from a job of the burst to the next.
        spacing: Spread,
    },
}

/// A job of a trace. Unset values are drawn from the source's distributions.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// When the job is submitted, from the start of the simulation.
    pub at: Duration,
    /// How many procs the job has.
    pub count: Option<u32>,
    /// How long each proc runs.
    pub runtime: Option<Duration>,
    /// The request of each proc.
    pub request: Option<Request>,
    /// `JobPrio`; if unset, the template's.
    pub priority: Option<i32>,
}

/// How the rate of submissions changes through the week. Only the proportions of the weights matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// A weight for each hour of the day.
    pub hours: [f64; 24],
    /// A weight for each day of the week, Monday first.
    pub days: [f64; 7],
}

impl Default for Profile {
    /// The habits of people at work: few jobs at night, most in the early afternoon, and on each day of the weekend a
    /// fifth of a working day's.
    fn default() -> Self {
        Self {
            hours: [
                2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 10.0, 11.0, 10.0, 8.0, 10.0, 12.0, 12.0, 11.0,
                9.0, 6.0, 4.0, 4.0, 4.0, 3.0, 3.0,
            ],
            days: [1.0, 1.0, 1.0, 1.0, 1.0, 0.2, 0.2],
        }
    }
}

impl Profile {
    /// The weight of an hour of the week, counted from Monday 00:00 UTC.
    fn weight(&self, hour: i64) -> f64 {
        let at = |index: i64| usize::try_from(index).unwrap_or(0);
        let of_day = self.hours.get(at(hour.rem_euclid(24))).copied().unwrap_or(0.0);
        let day = self.days.get(at(hour.div_euclid(24).rem_euclid(7))).copied().unwrap_or(0.0);
        of_day * day
    }

    /// The sum of the weights of all hours of the week.
    fn total(&self) -> f64 {
        self.hours.iter().sum::<f64>() * self.days.iter().sum::<f64>()
    }

    /// Whether jobs can be drawn by this profile: all weights are finite and not negative, and not all are 0.
    pub fn is_sound(&self) -> bool {
        let sound = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        self.hours.iter().chain(&self.days).all(sound) && self.total() > 0.0
    }
}

/// The submissions of one source, in the order of time.
#[derive(Debug)]
pub struct Course {
    arrivals: Arrivals,
    /// For [`Arrivals::Bursts`]: how many jobs of the present burst are still to come.
    left: u64,
    next_listed: usize,
    /// When the last job came; at first, the start of the source's submissions.
    last: Time,
    burst: Option<Time>,
}

impl Course {
    /// The submissions from the time `from` on.
    pub fn new(arrivals: Arrivals, from: Time) -> Self {
        Self { arrivals, left: 0, next_listed: 0, last: from, burst: None }
    }

    /// The time of the next submission, and the listed job if a trace lists it; `None` when no more come.
    pub fn next(&mut self, start: Time, rng: &mut impl Rng) -> Option<(Time, Option<Listed>)> {
        match &self.arrivals {
            Arrivals::Listed(list) => {
                let listed = list.get(self.next_listed)?.clone();
                self.next_listed += 1;
                return Some((start + listed.at, Some(listed)));
            }
            Arrivals::Poisson { every } => {
                let unit: f64 = Exp1.sample(rng);
                self.last = self.last + span(every * unit);
            }
            Arrivals::Diurnal { per_day, profile } => {
                let unit: f64 = Exp1.sample(rng);
                self.last = after(self.last, unit, *per_day, profile);
            }
            Arrivals::Bursts { every, jobs, spacing } => {
                if self.left == 0 {
                    let pause = span(every.draw(rng)).max(Duration::from_secs(1));
                    let burst = self.burst.map_or(self.last, |burst| burst + pause);
                    self.burst = Some(burst);
                    self.last = burst.max(self.last);
                    self.left = u64::try_from(super::number::whole(jobs.draw(rng), 1)).unwrap_or(1);
                } else {
                    self.last = self.last + span(spacing.draw(rng));
                }
                self.left -= 1;
            }
        }
        Some((self.last, None))
    }
}

/// The time at which the integral of the rate from `from` on reaches `unit`. The rate is constant within an hour.
fn after(from: Time, unit: f64, per_day: f64, profile: &Profile) -> Time {
    let scale = per_day * 7.0 / profile.total();
    let (mut at, mut left) = (from, unit);
    // If a whole year has no arrival, no more will come.
    for _ in 0..366 * 24 {
        let into = (of_week(at) % HOUR) * 1000 + at.millis().rem_euclid(1000);
        let rate = scale * profile.weight(of_week(at) / HOUR) / 3_600.0;
        let rest = HOUR * 1000 - into;
        if rate * seconds(rest) > left {
            return at + span(left / rate);
        }
        left -= rate * seconds(rest);
        at = Time::from_millis(at.millis() + rest);
    }
    Time::from_millis(i64::MAX)
}

fn seconds(millis: i64) -> f64 {
    super::number::amount(millis) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::stream;

    /// A Monday.
    const START: Time = Time::from_secs(1_767_571_200);

    /// The arrivals of the first `days` days, in seconds since the start.
    fn times(arrivals: Arrivals, days: i64) -> Vec<i64> {
        let mut course = Course::new(arrivals, START);
        let mut rng = stream(1, "arrivals", "somebody");
        let next = std::iter::from_fn(|| course.next(START, &mut rng));
        let since = next.map(|(at, _)| at.secs() - START.secs());
        since.take_while(|at| *at < days * DAY).collect()
    }

    #[test]
    fn weeks_begin_on_monday() {
        assert_eq!(of_week(START), 0);
        assert_eq!(of_week(Time::from_secs(0)), 3 * DAY);
    }

    #[test]
    fn poisson_arrivals_keep_their_mean() {
        let count = times(Arrivals::Poisson { every: 600.0 }, 70).len();
        // 10080 are expected, give or take four standard deviations of 100.
        assert!((9_680..10_480).contains(&count), "{count}");
    }

    #[test]
    fn diurnal_arrivals_keep_their_mean_and_their_hours() {
        let mut profile = Profile { hours: [0.0; 24], days: [1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0] };
        (profile.hours[9], profile.hours[10]) = (1.0, 3.0);
        let all = times(Arrivals::Diurnal { per_day: 100.0, profile }, 70);
        assert!((6_660..7_340).contains(&all.len()), "{}", all.len());
        let count = |hit: &dyn Fn(i64, i64) -> bool| {
            all.iter().filter(|at| hit(*at / DAY % 7, *at % DAY / HOUR)).count()
        };
        assert_eq!(count(&|day, hour| day == 6 || !(9..=10).contains(&hour)), 0);
        let (nine, ten) = (count(&|_, hour| hour == 9), count(&|_, hour| hour == 10));
        assert!(
            (2.7..3.3).contains(
                &(f64::from(u32::try_from(ten).unwrap()) / f64::from(u32::try_from(nine).unwrap()))
            )
        );
        let (friday, saturday) = (count(&|day, _| day == 4), count(&|day, _| day == 5));
        assert!(friday > saturday * 3 / 2 && saturday > friday / 3, "{friday} {saturday}");
    }

    #[test]
    fn a_rate_of_nothing_ends() {
        let profile = Profile { hours: [0.0; 24], days: [1.0; 7] };
        assert!(!profile.is_sound());
        assert_eq!(times(Arrivals::Diurnal { per_day: 1.0, profile }, 400), [0; 0]);
    }

    #[test]
    fn bursts_come_together() {
        let arrivals = Arrivals::Bursts {
            every: Spread::constant(3600.0).unwrap(),
            jobs: Spread::constant(3.0).unwrap(),
            spacing: Spread::constant(10.0).unwrap(),
        };
        assert_eq!(times(arrivals, 1)[..6], [0, 10, 20, 3600, 3610, 3620]);
    }
}
