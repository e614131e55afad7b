//! Computes what draining a machine would cost now, and how long it would take. `condor_defrag` chooses machines by
//! these attributes.
//!
//! Source: the machine attributes `ExpectedMachineGracefulDrainingBadput`, `...Completion`, and the same for a quick
//! drain. Badput is in CPU seconds: what jobs have run, and what they would still run until they are gone. Completions
//! are times. All of these change as time passes. So the ad has expressions over the time, which change only when a job
//! begins or ends.

use std::fmt::Write;
use std::sync::LazyLock;

use super::ad::constant;
use super::view::seconds;
use crate::pool::{Expected, Machine, MachineName, Pool, Running, Time};
use classad::Expr;

/// Updates the attributes of a machine that say what a drain would cost.
pub fn expect_costs(pool: &mut Pool, name: &MachineName, now: Time) {
    let Some(machine) = pool.machines().get(name) else { return };
    let jobs: Vec<Job> = machine
        .claimed_slots()
        .filter_map(|slot| pool.slots().get(&slot))
        .filter_map(|slot| Some(Job::of(slot.active()?, slot.resources().cpus, now)))
        .collect();
    let expected = if jobs.is_empty() { nothing(machine, now) } else { of_jobs(&jobs) };
    if *machine.expected != *expected {
        pool.edit_machine(name, |machine| machine.expected = expected);
    }
}

/// A job that runs on the machine.
struct Job {
    cpus: i64,
    /// How long the job has run.
    ran: Ran,
    /// How long the job may run in all, and how long it may vacate, in seconds.
    pledged: (i64, i64),
}

#[derive(Clone, Copy)]
enum Ran {
    Since(i64),
    For(i64),
}

impl Job {
    fn of(job: &Running, cpus: i64, now: Time) -> Self {
        let ran = match (job.started, job.suspended_since) {
            (Some(started), None) => Ran::Since(started.secs().saturating_add(seconds(job.suspended))),
            (_, Some(since)) => Ran::For(seconds(job.run_time(since))),
            (None, None) => Ran::For(seconds(job.run_time(now))),
        };
        Self { cpus, ran, pledged: job.pledged }
    }

    /// An expression for how long the job has run, plus `more` seconds.
    fn ran(&self, more: i64) -> String {
        match self.ran {
            Ran::Since(since) => format!("(time() - {})", since.saturating_sub(more)),
            Ran::For(ran) => ran.saturating_add(more).to_string(),
        }
    }
}

/// A sum of CPU seconds that grows with the time. For most jobs only this sum is needed, however many they are.
#[derive(Clone, Copy, Default)]
struct Sum {
    /// The CPUs whose time passes.
    cpus: i64,
    /// CPU seconds to be added.
    more: i64,
}

impl Sum {
    fn add(&mut self, job: &Job, seconds: i64) {
        let more = match job.ran {
            Ran::Since(since) => {
                self.cpus = self.cpus.saturating_add(job.cpus);
                seconds.saturating_sub(since)
            }
            Ran::For(ran) => ran.saturating_add(seconds),
        };
        self.more = self.more.saturating_add(job.cpus.saturating_mul(more));
    }

    fn text(self) -> String {
        format!("{} * time() + {}", self.cpus, self.more)
    }
}

const GRACEFUL_BADPUT: &str = "ExpectedMachineGracefulDrainingBadput";
const GRACEFUL_COMPLETION: &str = "ExpectedMachineGracefulDrainingCompletion";
const QUICK_BADPUT: &str = "ExpectedMachineQuickDrainingBadput";
const QUICK_COMPLETION: &str = "ExpectedMachineQuickDrainingCompletion";

/// The CPU seconds that jobs have run and will still run while they vacate, as a constant expression over numeric
/// attributes. Jobs begin and end often, and it costs less to change numbers than to parse expressions.
static BADPUT: LazyLock<Expr> =
    LazyLock::new(|| constant("MachineDrainingCpus * time() + MachineDrainingCpuSeconds"));
/// When the last job has vacated.
static COMPLETION: LazyLock<Expr> = LazyLock::new(|| constant("time() + MachineDrainingVacateTime"));

fn nothing(machine: &Machine, now: Time) -> Expected {
    // "Once the slot is drained", the completion stays at the time at which the machine was drained.
    let was = machine.expected.last().and_then(|(_, was)| was.as_literal()?.as_int());
    let at = || Expr::literal(was.unwrap_or(now.secs()));
    let none = || Expr::literal(0_i64);
    [(GRACEFUL_BADPUT, none()), (GRACEFUL_COMPLETION, at()), (QUICK_BADPUT, none()), (QUICK_COMPLETION, at())]
        .into()
}

fn of_jobs(jobs: &[Job]) -> Expected {
    let (mut quick, mut graceful) = (Sum::default(), Sum::default());
    let longest = jobs.iter().map(|job| job.pledged.1).max().unwrap_or(0);
    let (mut retire, mut ends) = (String::new(), format!("time() + {longest}"));
    for job in jobs {
        let (pledged, vacate) = job.pledged;
        quick.add(job, vacate);
        if pledged <= vacate {
            graceful.add(job, vacate);
            continue;
        }
        // The job ends at the end of its retirement, or of its vacating time if the retirement is over.
        // Writing to a text does not fail.
        let _ = write!(retire, " + {} * max({{{}, {pledged}}})", job.cpus, job.ran(vacate));
        let _ = write!(ends, ", time() + {pledged} - {}", job.ran(0));
    }
    let (graceful_badput, graceful_completion) = if retire.is_empty() {
        (BADPUT.clone(), COMPLETION.clone())
    } else {
        (constant(&format!("{}{retire}", graceful.text())), constant(&format!("max({{{ends}}})")))
    };
    [
        ("MachineDrainingCpus", Expr::literal(quick.cpus)),
        ("MachineDrainingCpuSeconds", Expr::literal(quick.more)),
        ("MachineDrainingVacateTime", Expr::literal(longest)),
        (GRACEFUL_BADPUT, graceful_badput),
        (GRACEFUL_COMPLETION, graceful_completion),
        (QUICK_BADPUT, BADPUT.clone()),
        (QUICK_COMPLETION, COMPLETION.clone()),
    ]
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use classad::{Ad, Env};

    /// Graceful badput and completion, then quick badput and completion, evaluated at 1000 s.
    fn at_1000(jobs: &[Job]) -> Vec<i64> {
        let mut ad = Ad::new();
        of_jobs(jobs).iter().for_each(|(name, expr)| ad.insert(*name, expr.clone()));
        [GRACEFUL_BADPUT, GRACEFUL_COMPLETION, QUICK_BADPUT, QUICK_COMPLETION]
            .map(|name| ad.eval_attr(name, None, &Env::at(1000)).as_int().unwrap())
            .into()
    }

    #[test]
    fn what_is_lost_is_what_ran_and_what_will_run_until_it_is_gone() {
        let job = |cpus, ran, pledged| Job { cpus, ran, pledged };
        for (jobs, expected) in [
            // One CPU for 100 s, and 600 s to vacate.
            (vec![job(1, Ran::Since(900), (0, 600))], [700, 1600, 700, 1600]),
            // Retirement is longer: it ends at 3600 s of run time.
            (vec![job(2, Ran::Since(900), (3600, 600))], [7200, 4500, 1400, 1600]),
            // Retirement is over in less time than vacating takes.
            (vec![job(1, Ran::Since(900), (650, 600))], [700, 1600, 700, 1600]),
            // A suspended job's run time does not grow.
            (vec![job(3, Ran::For(50), (0, 10))], [180, 1010, 180, 1010]),
            (
                vec![
                    job(1, Ran::Since(900), (0, 600)),
                    job(2, Ran::Since(900), (3600, 60)),
                    job(1, Ran::For(50), (100, 10)),
                ],
                [700 + 7200 + 100, 4500, 700 + 320 + 60, 1600],
            ),
        ] {
            assert_eq!(at_1000(&jobs), expected);
        }
    }
}
