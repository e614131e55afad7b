//! The life of a job's procs, as the job's object tells it: acts, removed procs, and how often procs ran and were held.

use std::collections::BTreeMap;

use super::submission::{read, recorded};
use crate::convert::{kube_time, time};
use api::{HTCJob, HTCJobStatus, ProcRuns, TransformedProcs};
use model::pool::{ByProc, Exit, History, Job, LifeFacts, Ranges, Time, Transformed};

/// The most entries of `status.runs`.
const MOST: usize = 128;
/// The most bytes of ranges in `status.runs`. Beyond that, procs with equal completions share an entry; if that is still too much, all
/// procs share one.
const LONGEST: usize = 128 << 10;

/// The life of the procs, as the object tells it.
pub(super) fn facts(job: &HTCJob, status: &HTCJobStatus) -> LifeFacts {
    let (acts, bad_acts) = match super::acts::acts(job) {
        Ok(acts) => (acts, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    LifeFacts {
        removed: recorded(&status.removed_procs, job),
        history: histories(&status.runs, |procs| recorded(procs, job)),
        changes: changes(job, status),
        last_act: status.last_act.and_then(|act| u64::try_from(act).ok()).unwrap_or(0),
        acts,
        bad_acts,
    }
}

/// The changes of procs that the status records. Empty if the spec was edited after the status was written.
fn changes(job: &HTCJob, status: &HTCJobStatus) -> Vec<(Ranges, Transformed)> {
    let edited = status.observed_generation != job.metadata.generation;
    let recorded = status.transformed_procs.iter().filter(|_| !edited);
    let read = recorded.filter_map(|of| {
        let changes = Transformed::recall(Vec::new(), &of.attributes, of.removed.clone())?;
        Some((read(&of.procs)?, changes))
    });
    read.collect()
}

/// `status.transformedProcs`.
pub(super) fn transformed(job: &Job) -> Vec<TransformedProcs> {
    let all = job.changes_of_procs().into_iter();
    let shown = all.map(|(procs, changes)| TransformedProcs {
        procs: procs.to_string(),
        attributes: changes.attributes(),
        removed: changes.removed().to_vec(),
    });
    shown.collect()
}

fn histories(all: &[ProcRuns], read: impl Fn(&str) -> Ranges) -> ByProc<History> {
    let mut histories = ByProc::default();
    for runs in all {
        histories.give(&read(&runs.procs), &history(runs));
    }
    histories
}

fn history(runs: &ProcRuns) -> History {
    let some = |count: i64| u32::try_from(count).unwrap_or(if count < 0 { 0 } else { u32::MAX });
    History {
        completions: some(runs.completions),
        starts: some(runs.starts),
        holds: some(runs.holds),
        exit: runs.exit_code.map(Exit::Code).or_else(|| runs.exit_signal.map(Exit::Signal)),
        since: runs.since.as_ref().map_or(Time::default(), time),
        wall: u64::try_from(runs.wall_seconds).unwrap_or(0),
        suspended: u64::try_from(runs.suspended_seconds).unwrap_or(0),
        first_start: runs.first_start.as_ref().map(time),
        last_vacate: runs.last_vacate.as_ref().map(time),
    }
}

/// `status.runs`: procs with the same counts in one entry. If there are too many different ones, entries are joined. A joined
/// entry has the most completions and holds of its procs, so that none is retried more often than its job allows; and the fewest
/// starts, since a new leader takes the end of a pod's run for booked if the run's number is below them.
pub(super) fn runs(history: &BTreeMap<u32, History>) -> Vec<ProcRuns> {
    let told = history.iter().filter(|(_, history)| history.is_told());
    let told: Vec<(u32, History)> = told.map(|(proc, history)| (*proc, *history)).collect();
    // Times and sums differ between procs that are otherwise alike.
    let whole = |history: &History| History {
        completions: history.completions,
        starts: history.starts,
        holds: history.holds,
        exit: history.exit,
        ..History::default()
    };
    let less = |history: &History| History { completions: history.completions, ..History::default() };
    let none = |_: &History| History::default();
    for face in [&whole as &dyn Fn(&History) -> History, &less] {
        let groups = grouped(&told, face);
        let bytes: usize = groups.iter().map(|runs| runs.procs.len()).sum();
        if groups.len() <= MOST && bytes <= LONGEST {
            return groups;
        }
    }
    grouped(&told, &none)
}

/// The procs in groups: those for which `face` is the same.
fn grouped(told: &[(u32, History)], face: &dyn Fn(&History) -> History) -> Vec<ProcRuns> {
    let mut groups: BTreeMap<History, (Ranges, History)> = BTreeMap::new();
    for (proc, history) in told {
        let (procs, most) = groups.entry(face(history)).or_insert_with(|| (Ranges::default(), *history));
        procs.insert(*proc);
        *most = History {
            completions: most.completions.max(history.completions),
            starts: most.starts.min(history.starts),
            holds: most.holds.max(history.holds),
            exit: most.exit.filter(|exit| Some(*exit) == history.exit),
            since: most.since.max(history.since),
            wall: most.wall.max(history.wall),
            suspended: most.suspended.max(history.suspended),
            first_start: most.first_start.into_iter().chain(history.first_start).min(),
            last_vacate: most.last_vacate.max(history.last_vacate),
        };
    }
    groups.into_values().map(|(procs, most)| shown(&procs, &most)).collect()
}

fn shown(procs: &Ranges, history: &History) -> ProcRuns {
    let (exit_code, exit_signal) = match history.exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    ProcRuns {
        procs: procs.to_string(),
        starts: history.starts.into(),
        completions: history.completions.into(),
        holds: history.holds.into(),
        exit_code,
        exit_signal,
        since: (history.since > Time::default()).then(|| kube_time(history.since)),
        wall_seconds: i64::try_from(history.wall).unwrap_or(i64::MAX),
        suspended_seconds: i64::try_from(history.suspended).unwrap_or(i64::MAX),
        first_start: history.first_start.map(kube_time),
        last_vacate: history.last_vacate.map(kube_time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(starts: u32, completions: u32) -> History {
        let exit = (completions > 0).then_some(Exit::Code(1));
        let wall = u64::from(starts) * 10;
        let first_start = (starts > 0).then_some(Time::from_secs(900));
        History {
            starts,
            completions,
            exit,
            since: Time::from_secs(1000),
            wall,
            first_start,
            ..History::default()
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        let history = BTreeMap::from([(0, ran(1, 1)), (1, ran(1, 1)), (7, ran(3, 0)), (9, ran(0, 0))]);
        let shown = runs(&history);
        let texts: Vec<_> =
            shown.iter().map(|runs| (runs.procs.as_str(), runs.starts, runs.completions)).collect();
        assert_eq!(texts, [("7", 3, 0), ("0-1", 1, 1)], "a proc that has not run needs no record");
        let back = histories(&shown, |procs| Ranges::parse(procs).unwrap());
        let ran: BTreeMap<u32, History> = history.into_iter().filter(|(proc, _)| *proc != 9).collect();
        assert!(back.iter().eq(ran.iter().map(|(proc, history)| (*proc, history))));
    }

    /// The schema bounds the number of entries, so that procs with different counts share an entry. No proc may be
    /// retried more often because of that.
    #[test]
    fn however_much_procs_differ_the_record_is_small_and_no_proc_counts_for_less() {
        let many: BTreeMap<u32, History> =
            (0..100_000_u32).map(|proc| (proc, ran(proc % 977, proc % 977 % 300))).collect();
        let shown = runs(&many);
        let size = serde_json::to_string(&shown).unwrap().len();
        assert!(shown.len() <= MOST && size < 700_000, "{} entries, {size} bytes", shown.len());
        let back = histories(&shown, |procs| Ranges::parse(procs).unwrap());
        for (proc, history) in many.iter().filter(|(_, history)| history.starts > 0) {
            assert!(back.of(*proc).unwrap().completions >= history.completions, "proc {proc}");
            assert!(
                back.of(*proc).unwrap().starts <= history.starts,
                "proc {proc}: a run that goes on would count as booked"
            );
        }
    }
}
