//! How many steps of evaluation a job and a submitter may have of a cycle.
//!
//! Every evaluation is bounded, but a job is evaluated against each slot, and a submitter may have many jobs. A job that needs
//! more steps, and the rest of a submitter's jobs if they need more, are set aside until the next cycle. Steps are counted, not
//! time, so that the same input gives the same outcome.

/// The steps that a job gets for each slot of the cycle, for its own expressions and the slots' expressions together. An ordinary
/// evaluation takes tens of steps, and most results serve many slots.
const PER_SLOT: u64 = 1000;

/// The steps that a job may have in a cycle with few slots: two evaluations at the bound.
const PER_JOB: u64 = 500_000;

/// All jobs of a submitter together may use the shares of this many jobs.
const JOBS: u64 = 8;

/// The shares of a cycle, and what each submitter has had.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    job: u64,
    spent: Vec<u64>,
}

impl Shares {
    pub(super) fn new(slots: usize, submitters: usize) -> Self {
        let slots = u64::try_from(slots).unwrap_or(u64::MAX);
        Self { job: slots.saturating_mul(PER_SLOT).saturating_add(PER_JOB), spent: vec![0; submitters] }
    }

    /// The steps that a submitter's job may still take after the job has taken `job` steps: what is left of the job's
    /// own share, and no more than what is left of the submitter's.
    pub(super) fn left(&self, submitter: usize, job: u64) -> u64 {
        let all = self.job.saturating_mul(JOBS);
        let spent = self.spent.get(submitter).copied().unwrap_or_default();
        self.job.saturating_sub(job).min(all.saturating_sub(spent))
    }

    /// Counts steps of a submitter's job.
    pub(super) fn spend(&mut self, submitter: usize, steps: u64) {
        if let Some(spent) = self.spent.get_mut(submitter) {
            *spent = spent.saturating_add(steps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_its_share_and_a_submitter_that_of_many_jobs() {
        let mut shares = Shares::new(500, 1);
        assert_eq!(shares.left(0, 0), 1_000_000);
        assert_eq!(shares.left(0, 999_999), 1);
        assert_eq!(shares.left(0, 2_000_000), 0);
        shares.spend(0, 7_500_000);
        assert_eq!(shares.left(0, 0), 500_000);
        shares.spend(0, 1_000_000);
        assert_eq!(shares.left(0, 0), 0, "nothing is left for further jobs");
        assert_eq!(shares.left(1, 0), 1_000_000, "nobody else pays");
    }
}
