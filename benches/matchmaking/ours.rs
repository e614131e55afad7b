//! Matches the ads with this project's own ClassAd library.

use std::hint::black_box;

use classad::{Ad, Env, Expr, Prepared, Ranks, Roster, rank, symmetric_match};
use model::negotiator::{POST_JOB_RANK, PRE_JOB_RANK};

use crate::workload::{Attributes, line};
use crate::{Answer, JOBS, SLOTS, clock};

/// How ads are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The ads as they were parsed.
    Plain,
    /// Ads that a [`Roster`] has prepared, one pair at a time.
    Pair,
    /// Ads that a [`Roster`] has prepared, one job with all slots.
    All,
}

/// The computation for a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Whether the requirements of both ads are true.
    Match,
    /// The same and, if they are, the three ranks.
    Ranks,
}

pub struct Ours {
    slots: Vec<Ad>,
    jobs: Vec<Ad>,
    ranks: [Expr; 2],
    roster: Roster,
    env: Env,
    /// The microseconds that it takes to parse a machine's ad, and to prepare it.
    pub preparing: [f64; 2],
}

fn total(ranks: &Ranks) -> f64 {
    ranks.pre_job.unwrap_or(0.0) + ranks.job + ranks.post_job.unwrap_or(0.0)
}

/// Does some work, and returns the result with the processor time that the work took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = clock::processor_seconds();
    let done = black_box(work());
    (done, clock::processor_seconds() - start)
}

impl Ours {
    pub fn new(slots: &[Attributes], jobs: &[Attributes]) -> Self {
        let texts: Vec<String> = slots.iter().map(line).collect();
        let parse = |texts: &[String]| texts.iter().map(|text| Ad::parse_new(text).unwrap()).collect();
        let (slots, parsing): (Vec<Ad>, f64) = timed(|| parse(&texts));
        let jobs: Vec<Ad> = parse(&jobs.iter().map(line).collect::<Vec<_>>());
        let ranks = [PRE_JOB_RANK, POST_JOB_RANK].map(|text| Expr::parse(text).unwrap());
        let mut roster = Roster::new(Some(ranks[0].clone()), Some(ranks[1].clone()));
        let env = Env::at(1_795_100_000);
        let ((), preparing) = timed(|| {
            for (place, slot) in slots.iter().enumerate() {
                roster.set(place, slot.clone());
            }
            roster.prepare(&jobs[0], &env);
        });
        let each = 1e6 / SLOTS as f64;
        Self { slots, jobs, ranks, roster, env, preparing: [parsing * each, preparing * each] }
    }

    /// Matches a job with all slots. If this takes little time, matches further jobs too, so that the times are precise.
    pub fn ask(&mut self, how: How, what: What, job: usize) -> Vec<Answer> {
        let count = match how {
            How::Plain => 1,
            How::Pair => 10,
            How::All => 50,
        };
        let jobs = usize::try_from(JOBS).unwrap();
        (0..count).map(|further| self.one(how, what, (job + 7 * further) % jobs)).collect()
    }

    fn one(&mut self, how: How, what: What, job: usize) -> Answer {
        let ((matches, sum), seconds) = timed(|| match how {
            How::Plain => self.plain(what, &self.jobs[job]),
            How::Pair => {
                let prepared = self.roster.prepare(&self.jobs[job], &self.env);
                let all = 0..self.slots.len();
                self.add_up(what, &prepared, all.filter(|place| self.roster.matches(&prepared, *place)))
            }
            How::All => {
                let prepared = self.roster.prepare(&self.jobs[job], &self.env);
                match what {
                    What::Match => self.add_up(what, &prepared, self.roster.matching(&prepared).iter()),
                    What::Ranks => {
                        let ranked = self.roster.ranked(&prepared, self.roster.matching(&prepared));
                        ranked.fold((0, 0.0), |(count, sum), (_, ranks)| (count + 1, sum + total(&ranks)))
                    }
                }
            }
        });
        Answer { seconds, matches, sum }
    }

    fn plain(&self, what: What, job: &Ad) -> (u64, f64) {
        let (mut matches, mut sum) = (0, 0.0);
        for slot in &self.slots {
            if !symmetric_match(job, slot, &self.env) {
                continue;
            }
            matches += 1;
            if what == What::Ranks {
                let pool =
                    |expr: &Expr| expr.eval(Some(slot), Some(job), &self.env).as_number().unwrap_or(0.0);
                sum += pool(&self.ranks[0]) + rank(job, slot, &self.env) + pool(&self.ranks[1]);
            }
        }
        (matches, sum)
    }

    /// Counts the slots that match, and adds up their ranks.
    fn add_up(&self, what: What, job: &Prepared, places: impl Iterator<Item = usize>) -> (u64, f64) {
        let (mut matches, mut sum, mut all) = (0, 0.0, 0);
        for place in places {
            matches += 1;
            // Every place is used, so that the compiler cannot leave out the work of finding it.
            all ^= place;
            if what == What::Ranks
                && let Some(ranks) = self.roster.ranks(job, place)
            {
                sum += total(&ranks);
            }
        }
        black_box(all);
        (matches, sum)
    }
}
