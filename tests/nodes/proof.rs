//! Reads what the programs wrote about their runs, and checks the runs of a job against the job's record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One run of a proc, as its program told it. Times are seconds since the computer was booted.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub pod: String,
    pub node: String,
    pub started: f64,
    /// When the program last gave a sign of life.
    pub last: f64,
    /// When the program first heard SIGTERM.
    pub term: Option<f64>,
    /// Whether the handler of SIGTERM came to its end.
    pub shut_down: bool,
    /// The code with which the program ended by itself.
    pub ended: Option<i32>,
    /// How often the program has counted: twice a second.
    pub beats: usize,
}

/// The runs of a job's procs, each proc's in the order of their start.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    procs: BTreeMap<u32, Vec<Run>>,
}

/// The operator's record of a job.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub count: u32,
    /// Procs that ended with exit code 0.
    pub completed: BTreeSet<u32>,
    /// Procs that ended with another.
    pub failed: BTreeSet<u32>,
}

impl Proof {
    /// Reads the files of a job: one file for each pod, named `PROC.UID.NODE`.
    pub fn read(directory: &Path) -> Self {
        let mut proof = Self::default();
        let Ok(files) = std::fs::read_dir(directory) else { return proof };
        for file in files {
            let file = file.unwrap();
            let text = std::fs::read_to_string(file.path()).unwrap();
            proof.add(&file.file_name().to_string_lossy(), &text);
        }
        proof
    }

    /// Adds the file of one pod. A kubelet whose disk was wiped may run the pod's container again: each `S` is a run.
    pub fn add(&mut self, name: &str, text: &str) {
        let mut parts = name.splitn(3, '.');
        let (Some(proc), Some(pod), Some(node)) = (parts.next(), parts.next(), parts.next()) else { return };
        let Ok(proc) = proc.parse() else { return };
        let runs = self.procs.entry(proc).or_default();
        let mut run: Option<Run> = None;
        // The last line may be half written.
        let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
        for line in complete.lines() {
            let mut words = line.split_whitespace();
            let (Some(what), Some(Ok(at))) = (words.next(), words.next().map(str::parse::<f64>)) else {
                panic!("{name} has a line that no program writes: {line:?}");
            };
            if what == "S" {
                runs.extend(run.take());
                run = Some(Run {
                    pod: pod.to_owned(),
                    node: node.to_owned(),
                    started: at,
                    last: at,
                    term: None,
                    shut_down: false,
                    ended: None,
                    beats: 0,
                });
            }
            let run = run.as_mut().unwrap_or_else(|| panic!("{name} does not begin with S: {line:?}"));
            run.last = run.last.max(at);
            match what {
                "B" => run.beats += 1,
                "T" => run.term = run.term.or(Some(at)),
                "X" => run.shut_down = true,
                "E" => run.ended = words.next().and_then(|code| code.parse().ok()),
                _ => {}
            }
        }
        runs.extend(run);
        runs.sort_by(|a, b| a.started.total_cmp(&b.started));
    }

    /// Adds the runs of another job, whose procs are then numbered from `offset` on.
    pub fn extend(&mut self, other: Self, offset: u32) {
        self.procs.extend(other.procs.into_iter().map(|(proc, runs)| (proc + offset, runs)));
    }

    pub fn runs(&self, proc: u32) -> &[Run] {
        self.procs.get(&proc).map_or(&[], Vec::as_slice)
    }

    /// The only run of the proc.
    pub fn only(&self, proc: u32) -> &Run {
        let runs = self.runs(proc);
        assert_eq!(runs.len(), 1, "proc {proc} ran {} times: {runs:#?}", runs.len());
        &runs[0]
    }

    /// How many procs have started.
    pub fn started(&self) -> usize {
        self.procs.values().filter(|runs| !runs.is_empty()).count()
    }

    pub fn all_runs(&self) -> impl Iterator<Item = (u32, &Run)> {
        self.procs.iter().flat_map(|(proc, runs)| runs.iter().map(|run| (*proc, run)))
    }

    /// Describes how this proof contradicts the record. `may_repeat` tells of a run whether somebody asked its pod to
    /// go, or its node was lost. Only then may a proc run again although it ended by itself in that pod.
    pub fn violations(&self, record: &Record, may_repeat: impl Fn(&Run) -> bool) -> Vec<String> {
        let mut wrong = self.overlaps();
        for proc in 0..record.count {
            let done = match (record.completed.contains(&proc), record.failed.contains(&proc)) {
                (true, false) => true,
                (false, true) => false,
                (false, false) => {
                    wrong.push(format!(
                        "proc {proc} is lost: the job is over, and the proc is neither completed nor failed"
                    ));
                    continue;
                }
                (true, true) => {
                    wrong.push(format!("proc {proc} is both completed and failed"));
                    continue;
                }
            };
            let booked = if done { "completed" } else { "failed" };
            let Some((last, earlier)) = self.runs(proc).split_last() else {
                wrong.push(format!("proc {proc} is booked as {booked}, and never ran"));
                continue;
            };
            match last.ended {
                None => wrong.push(format!(
                    "proc {proc} is booked as {booked}, and did not end by itself in its last run: {last:?}"
                )),
                Some(code) if (code == 0) != done => {
                    wrong.push(format!("proc {proc} is booked as {booked}, and ended with {code}: {last:?}"));
                }
                Some(_) => {}
            }
            for run in earlier.iter().filter(|run| run.ended.is_some() && !may_repeat(run)) {
                wrong.push(format!(
                    "proc {proc} ended by itself, nobody asked it to go, and it ran again: {run:?}"
                ));
            }
        }
        wrong
    }

    /// Procs with two programs that lived at once.
    pub fn overlaps(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (proc, runs) in &self.procs {
            // An early run may outlive several later ones.
            let mut longest: Option<&Run> = None;
            for run in runs {
                if let Some(before) = longest.filter(|before| before.last > run.started) {
                    let overlap = before.last.min(run.last) - run.started;
                    wrong.push(format!(
                        "proc {proc} ran twice at once for {overlap:.1} s: {before:?} and {run:?}"
                    ));
                }
                if longest.is_none_or(|before| before.last < run.last) {
                    longest = Some(run);
                }
            }
        }
        wrong
    }
}

/// The seconds since the computer was booted: the programs' clock.
pub fn now() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Reads ranges such as `0-4,7`.
pub fn ranges(text: &str) -> BTreeSet<u32> {
    let number = |text: &str| text.parse::<u32>().unwrap();
    text.split(',')
        .filter(|part| !part.is_empty())
        .flat_map(|part| match part.split_once('-') {
            Some((first, last)) => number(first)..=number(last),
            None => number(part)..=number(part),
        })
        .collect()
}
