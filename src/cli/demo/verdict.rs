//! Judges, from what the watchdog saw, whether each proc ran exactly once and no node was overcommitted. Pure.

use std::collections::BTreeSet;

use super::scene::Scene;
use hollow::watchdog::{Counts, ProcId, Watchdog};

/// How many procs are named one by one in complaints; of the others only the number is given.
const NAMED: usize = 5;

/// The watchdog's verdict on the jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The procs of all complete jobs.
    pub procs: u64,
    /// The procs of complete jobs that ran exactly once: one pod reached Running, and one reached its end.
    pub once: u64,
    /// The most pods that the watchdog saw running at a time.
    pub peak_running: u64,
    /// Violations of invariants that the watchdog saw.
    pub violations: Vec<String>,
    /// Everything else that does not add up.
    pub doubts: Vec<String>,
}

impl Verdict {
    /// Whether the watchdog has no objection.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.doubts.is_empty()
    }
}

/// Compares what the operator reports about complete jobs with what the watchdog saw of their pods.
pub fn judge(scene: &Scene, watchdog: &Watchdog) -> Verdict {
    let mut verdict = Verdict {
        peak_running: watchdog.totals().peak_running,
        violations: watchdog
            .violations()
            .iter()
            .map(|(time, violation)| format!("{time}: {violation}"))
            .collect(),
        ..Verdict::default()
    };
    let seen: std::collections::BTreeMap<&ProcId, Counts> = watchdog.procs().collect();
    let (mut odd, mut expected) = (Vec::new(), BTreeSet::new());
    for (key, job) in &scene.jobs {
        let (mut succeeded, mut failed) = (0, 0);
        for number in 0..job.procs {
            let id = ProcId { job_uid: job.uid.clone(), proc: number.to_string() };
            let counts = seen.get(&id).copied().unwrap_or_default();
            expected.insert(id);
            succeeded += i64::from(counts.succeeded == 1);
            failed += i64::from(counts.succeeded == 0 && counts.failed > 0);
            if !job.complete {
                continue;
            }
            verdict.procs += 1;
            if counts.started == 1 && counts.succeeded + counts.failed == 1 {
                verdict.once += 1;
            } else {
                odd.push(format!("proc {number} of {key} was started {} times", counts.started));
            }
        }
        if job.complete && (succeeded, failed) != (job.done, job.failed) {
            verdict.doubts.push(format!(
                "{key} reports {} done and {} failed, but pods show {succeeded} and {failed}",
                job.done, job.failed
            ));
        }
    }
    let left = odd.len().saturating_sub(NAMED);
    verdict.doubts.extend(odd.into_iter().take(NAMED));
    if left > 0 {
        verdict.doubts.push(format!("and {left} more procs that did not run exactly once"));
    }
    let strangers = seen.keys().filter(|id| !expected.contains(**id)).count();
    if strangers > 0 {
        verdict.doubts.push(format!("{strangers} procs had pods that belong to no job"));
    }
    let relists = watchdog.totals().relists;
    if relists > 0 {
        verdict
            .doubts
            .push(format!("the watchdog's watch broke {relists} times: it may have missed something"));
    }
    verdict
}
