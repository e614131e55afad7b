//! Measures how fast ads match on one core, in comparison with HTCondor's own library.
//!
//! Run by `cargo bench --bench matchmaking -- [--write FILE] [--rounds N] [--only PART]`. `--write` replaces the table in
//! FILE (`docs/reference/benchmarks.md`), if both sides took part. `--only` measures only the lines that have PART in their
//! names, for profiling.
//!
//! All times are processor time, so that other work on the computer has little influence. The two sides take turns, so that
//! this influence is the same for both.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::panic,
    reason = "a benchmark"
)]

mod clock;
mod condor;
mod ours;
mod report;
mod workload;

use condor::Condor;
use ours::{How, Ours, What};
use report::{Line, Report, Share};

pub const SLOTS: u64 = 10_000;
pub const JOBS: u64 = 1000;
const KINDS: u64 = 1000;
const SUBMITTERS: u64 = 10;

/// The result of matching one job with all slots.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub seconds: f64,
    pub matches: u64,
    /// The sum of all ranks.
    pub sum: f64,
}

impl Answer {
    /// Whether both answers have the same matches and, but for rounding, the same sum of ranks.
    fn agrees(&self, other: &Self) -> bool {
        let tolerance = 1e-9 * self.sum.abs().max(1.0);
        self.matches == other.matches && (self.sum - other.sum).abs() <= tolerance
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after =
        |flag: &str| arguments.iter().position(|word| word == flag).map(|at| arguments[at + 1].clone());
    let rounds = after("--rounds").map_or(21, |count| count.parse().unwrap());
    let slots: Vec<_> = (0..SLOTS).map(workload::slot).collect();
    let jobs: Vec<_> = (0..JOBS).map(|job| workload::job(job, JOBS, KINDS, SUBMITTERS)).collect();
    let mut condor = Condor::start(&slots, &jobs);
    let mut ours = Ours::new(&slots, &jobs);
    let only = after("--only").unwrap_or_default();
    let lines = lines(condor.is_some())
        .into_iter()
        .filter(|line| format!("{} {:?}", line.name(), line.what).contains(&only))
        .collect();
    let lines = measure(&mut ours, condor.as_mut(), rounds, lines);
    let report =
        Report { rounds, lines, preparing: ours.preparing, condor: condor.as_ref().map(|side| side.costs) };
    print!("{report}");
    match after("--write") {
        Some(path) if condor.is_some() => report.write(&path),
        Some(path) => eprintln!("{path} stays as it is: a table needs both sides"),
        None => {}
    }
}

/// All lines of the table.
fn lines(with_condor: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    for what in [What::Match, What::Ranks] {
        if with_condor {
            lines.extend(["parsed", "optimized"].map(|how| Line::new(Share::Condor(how), what)));
        }
        lines.extend([How::Plain, How::Pair, How::All].map(|how| Line::new(Share::Ours(how), what)));
    }
    lines
}

/// Measures the lines. Each round matches another job, by every line in turn.
fn measure(
    ours: &mut Ours,
    mut condor: Option<&mut Condor>,
    rounds: usize,
    mut lines: Vec<Line>,
) -> Vec<Line> {
    for round in 0..rounds {
        // The jobs of two rounds are far apart, so that the rounds have jobs of all kinds.
        let job = round * 379 % usize::try_from(JOBS).unwrap();
        let mut answered: Vec<(What, Answer)> = Vec::new();
        for line in &mut lines {
            let answers = match (&line.share, condor.as_mut()) {
                (Share::Condor(how), Some(condor)) => vec![condor.ask(how, line.what, job)],
                (Share::Condor(_), None) => continue,
                (Share::Ours(how), _) => ours.ask(*how, line.what, job),
            };
            let first = answers[0];
            // All lines must give the answer of the first.
            let expected =
                answered.iter().find(|(what, _)| *what == line.what).map_or(first, |(_, answer)| *answer);
            answered.push((line.what, expected));
            assert!(first.agrees(&expected), "{line:?} job {job}: {first:?}, but {expected:?}");
            line.seconds.extend(answers.iter().map(|answer| answer.seconds));
            line.matches += answers.iter().map(|answer| answer.matches).sum::<u64>();
        }
    }
    lines
}
