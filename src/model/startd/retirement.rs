//! Retirement: how long a job that must leave may go on, and how long it may take to shut down.
//!
//! All times are in seconds. Source: the manual's policy chapter, `MAXJOBRETIREMENTTIME` and `MachineMaxVacateTime` in
//! "State/Activity Transition Expression Summary". Retirement counts from the start of the job, not from when it was
//! told to leave. Time in suspension does not count.

/// The terms of the machine and of the job for the job's retirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The present value of `MAXJOBRETIREMENTTIME`; `None` if it is no integer.
    pub machine: Option<i64>,
    /// The job's own `MaxJobRetirementTime`, which can only shorten the machine's.
    pub job: Option<i64>,
}

impl Terms {
    /// How long the job may run in all.
    pub fn allowed(&self) -> i64 {
        let machine = self.machine.unwrap_or(0);
        self.job.map_or(machine, |job| machine.min(job))
    }

    /// How long a job that has run for `ran` may go on: `RetirementTimeRemaining`.
    pub fn remaining(&self, ran: i64) -> i64 {
        self.allowed().saturating_sub(ran).max(0)
    }
}

/// How long vacating may take: what the machine pledged, or what the job asks for in `JobMaxVacateTime`. If the job
/// asks for more than was pledged, the difference comes out of its retirement time.
pub fn max_vacate_time(pledged: i64, job: Option<i64>, remaining: i64) -> i64 {
    match job {
        None => pledged,
        Some(job) if job <= pledged || remaining >= job => job,
        Some(_) => pledged.max(remaining),
    }
}

/// Whether the job must be told to leave now, so that vacating is over when retirement is.
pub fn is_over(remaining: i64, vacate: i64) -> bool {
    remaining <= 0 || vacate >= remaining
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_may_take_less_than_the_machine_grants_and_never_more() {
        for (machine, job, ran, remaining) in [
            (None, None, 0, 0),
            (Some(3600), None, 0, 3600),
            (Some(3600), None, 600, 3000),
            (Some(3600), None, 3600, 0),
            (Some(3600), None, 9999, 0),
            (Some(3600), Some(600), 60, 540),
            (Some(3600), Some(600), 700, 0),
            (Some(3600), Some(7200), 0, 3600),
            (None, Some(7200), 0, 0),
            (Some(-1), None, 0, 0),
            (Some(3600), Some(-1), 0, 0),
            (Some(i64::MIN), None, i64::MAX, 0),
        ] {
            let terms = Terms { machine, job };
            assert_eq!(terms.remaining(ran), remaining, "{terms:?} after {ran} s");
        }
    }

    #[test]
    fn a_job_that_wants_longer_to_vacate_pays_with_retirement() {
        for (pledged, job, remaining, vacate) in [
            (600, None, 0, 600),
            (600, Some(60), 0, 60),
            (600, Some(60), 9000, 60),
            (600, Some(600), 0, 600),
            // The job asks for more than the machine's: it gets everything, if as much retirement is left;
            (600, Some(1200), 1200, 1200),
            (600, Some(1200), 5000, 1200),
            // otherwise as much as is left of retirement, and never less than the machine's own.
            (600, Some(1200), 1199, 1199),
            (600, Some(1200), 700, 700),
            (600, Some(1200), 300, 600),
            (600, Some(1200), 0, 600),
            // A value that cannot be evaluated counts as 0.
            (600, Some(0), 300, 0),
        ] {
            assert_eq!(
                max_vacate_time(pledged, job, remaining),
                vacate,
                "{pledged} {job:?} with {remaining} s of retirement left"
            );
        }
    }

    #[test]
    fn vacating_lies_within_retirement() {
        for (remaining, vacate, over) in [
            (0, 0, true),
            (0, 600, true),
            (601, 600, false),
            (600, 600, true),
            (300, 600, true),
            (1, 0, false),
            (3600, 600, false),
        ] {
            assert_eq!(is_over(remaining, vacate), over, "{remaining} s left, {vacate} s to vacate");
        }
    }
}
