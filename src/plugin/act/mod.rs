//! `kubectl slotwright hold`, `release`, `rm` and `vacate-job`, and HTCondor's tools by their own names: acts on jobs and procs.
//!
//! | file | is |
//! | --- | --- |
//! | `mod` | a request, its outcome, and what is printed of both |
//! | `arguments` | the command lines of condor_hold, condor_release, condor_rm and condor_vacate_job |
//! | `options` | the options of kubectl slotwright |
//! | `selection` | which jobs a request means, and where they are looked for |
//! | `procs` | the procs of jobs, what is known of each, and which of them are meant |
//! | `write` | acts, as they are written on a job's object |

mod arguments;
mod options;
mod procs;
mod selection;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use model::pool::Ranges;
pub use model::pool::Verb;
use thiserror::Error;

pub use arguments::{Asked, parse, usage};
pub use options::{ActArgs, HoldArgs, VacateArgs};
use procs::{JobProcs, Proc, State};
pub use selection::Selection;
use write::{Task, TaskOutcome, Which};

use crate::cluster::{self, Cluster, Connection};
use crate::condor::harmless;
use crate::condor::jobs::Runs;

/// The verb for which HTCondor has a tool of this name.
pub fn verb_of(tool: &str) -> Option<Verb> {
    // Vacate stands before VacateFast, so that condor_vacate_job without -fast is found.
    Verb::ALL.into_iter().find(|verb| tool_of(*verb) == tool)
}

/// HTCondor's tool for a verb.
pub const fn tool_of(verb: Verb) -> &'static str {
    match verb {
        Verb::Hold => "condor_hold",
        Verb::Release => "condor_release",
        Verb::Remove => "condor_rm",
        Verb::Vacate | Verb::VacateFast => "condor_vacate_job",
    }
}

impl Request {
    /// The verb and its participle, in the words of HTCondor's tools.
    const fn words(&self) -> (&'static str, &'static str) {
        match self.verb {
            Verb::Hold => ("hold", "held"),
            Verb::Release => ("release", "released"),
            Verb::Remove if self.forced => ("remove", "removed locally (remote state unknown)"),
            Verb::Remove => ("remove", "marked for removal"),
            Verb::Vacate => ("vacate", "vacated"),
            Verb::VacateFast => ("fast-vacate", "fast-vacated"),
        }
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The action.
    pub verb: Verb,
    /// The procs that are meant.
    pub selection: Selection,
    /// Why.
    pub reason: Option<String>,
    /// `HoldReasonSubCode`.
    pub subcode: i64,
    /// `-forcex`: only procs that were removed before are confirmed as removed. Nothing is left of such procs, so nothing is
    /// written.
    pub forced: bool,
    /// Whether totals are printed.
    pub totals: bool,
    /// The namespace; if unset, the context's.
    pub namespace: Option<String>,
    /// Whether owners are looked for in all namespaces, as condor_q does.
    pub owners_everywhere: bool,
}

/// Why a request was not carried out, or not as a whole.
#[derive(Debug, Error)]
pub enum Error {
    /// The cluster refuses.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    /// A word means no job.
    #[error(
        "no job {wanted} in namespace {namespace}: neither a name nor a ClusterId; see all with: kubectl slotwright q -A"
    )]
    NoSuchJob {
        /// The word.
        wanted: String,
        /// The namespace that was searched.
        namespace: String,
    },
    /// A word is the name of a job, and the ClusterId of another.
    #[error(
        "{word} is the ClusterId of {numbered} and the name of {named}, whose ClusterId is {number}; name the one by its name, and the \
         other by {number}"
    )]
    TwoJobs {
        /// The word.
        word: i64,
        /// The job with this ClusterId: namespace and name.
        numbered: String,
        /// The job of this name: namespace and name.
        named: String,
        /// The ClusterId of that job.
        number: i64,
    },
}

/// The outcome for a proc: HTCondor's `action_result_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Success,
    NotFound,
    BadStatus,
    AlreadyDone,
    Denied,
    BySpec,
}

/// Carries a request out, and prints what HTCondor's tool prints. Returns the exit status: 1 if something that was asked for was
/// not done.
///
/// # Errors
/// When the cluster cannot be reached or refuses to list jobs, or the output cannot be written.
pub async fn run(
    request: &Request,
    connection: &Connection,
    now: model::pool::Time,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Error> {
    let cluster = Cluster::connect(connection).await?;
    let namespace = request.namespace.clone().unwrap_or_else(|| cluster.namespace.clone());
    let jobs = selection::jobs(&cluster, &namespace, request).await?;
    let needs_pods =
        matches!(request.verb, Verb::Vacate | Verb::VacateFast) || request.selection.constraint.is_some();
    let runs = if needs_pods { procs::runs(&cluster, &jobs).await? } else { Runs::default() };
    let found: Vec<JobProcs> = jobs.iter().filter_map(|job| JobProcs::of(job, &runs, now)).collect();
    let request = &selection::resolved(request, &namespace, &found)?;
    let mut failed = false;
    if !request.selection.procs.is_empty() {
        if request.selection.ignores_constraint() {
            writeln!(err, "Warning, -constraint is ignored for fully qualified job ids")?;
        }
        failed |= by_number(request, &cluster, &found, out, err).await?;
    }
    if request.selection.is_by_constraint() {
        failed |= by_constraint(request, &cluster, (&namespace, &found), out, err).await?;
    }
    out.flush()?;
    Ok(u8::from(failed))
}

/// The outcome of a request for a proc, before the operator is asked.
fn judge(request: &Request, proc: Proc, whole: bool) -> Outcome {
    match (request.verb, proc.state) {
        (Verb::Remove, state) if request.forced => match state {
            State::Removed => Outcome::Success,
            State::Ended => Outcome::NotFound,
            _ => Outcome::BadStatus,
        },
        (Verb::Hold, State::Left) => Outcome::Denied,
        (Verb::Remove, State::Removed) | (Verb::Hold, State::HeldByUser | State::HeldBySpec) => {
            Outcome::AlreadyDone
        }
        (_, State::Removed | State::Ended) => Outcome::NotFound,
        (Verb::Release, State::HeldBySpec) if !whole => Outcome::BySpec,
        (Verb::Release, State::Idle | State::Running | State::Left) => Outcome::BadStatus,
        (Verb::Vacate | Verb::VacateFast, state) if state != State::Running => Outcome::BadStatus,
        _ => Outcome::Success,
    }
}

/// Acts on procs that are given by their numbers, and prints a line for each. Returns whether no proc was acted on.
async fn by_number(
    request: &Request,
    cluster: &Cluster,
    found: &[JobProcs<'_>],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<bool, Error> {
    let mut results: Vec<((i64, u32), Outcome)> = Vec::new();
    let mut acts: BTreeMap<i64, Ranges> = BTreeMap::new();
    for (id, number) in &request.selection.procs {
        let proc = found.iter().find(|job| job.cluster == *id).and_then(|job| job.proc(*number));
        let result = match proc {
            Some(proc) if request.selection.held && !proc.is_held() => Outcome::NotFound,
            Some(proc) => judge(request, proc, false),
            None => Outcome::NotFound,
        };
        if result == Outcome::Success {
            acts.entry(*id).or_default().insert(*number);
        }
        results.push(((*id, *number), result));
    }
    let task = |(id, procs): (i64, Ranges)| {
        let job = found.iter().find(|job| job.cluster == id)?;
        Some(Task { job, which: Which::These(procs) })
    };
    let tasks: Vec<Task> = acts.into_iter().filter_map(task).collect();
    let written = write::act(cluster, request, &tasks, err).await?;
    let denied = tasks.iter().zip(written).filter(|(_, written)| *written == TaskOutcome::Denied);
    let denied: BTreeSet<i64> = denied.map(|(task, _)| task.job.cluster).collect();
    for ((id, _), result) in results.iter_mut().filter(|(_, result)| *result == Outcome::Success) {
        if denied.contains(id) {
            *result = Outcome::Denied;
        }
    }
    let done = results.iter().filter(|(_, result)| *result == Outcome::Success).count();
    if request.totals {
        totals(&results.iter().map(|(_, result)| *result).collect::<Vec<_>>(), out)?;
    }
    for ((id, proc), result) in results {
        let line = said(request, result, id, proc);
        if result == Outcome::Success { writeln!(out, "{line}")? } else { writeln!(err, "{line}")? }
    }
    Ok(done == 0)
}

/// The line about one proc that HTCondor's tools print.
fn said(request: &Request, result: Outcome, cluster: i64, proc: u32) -> String {
    let (verb, (word, past)) = (request.verb, request.words());
    match result {
        Outcome::Success => format!("Job {cluster}.{proc} {past}"),
        Outcome::NotFound => format!("Job {cluster}.{proc} not found"),
        Outcome::Denied if request.forced => {
            format!("Permission denied to force removal of job {cluster}.{proc}")
        }
        Outcome::Denied => format!("Permission denied to {word} job {cluster}.{proc}"),
        Outcome::BadStatus if request.forced => {
            format!("Job {cluster}.{proc} not in `X' state to be forcibly removed")
        }
        Outcome::BadStatus if verb == Verb::Release => {
            format!("Job {cluster}.{proc} not held to be released")
        }
        Outcome::BadStatus => format!("Job {cluster}.{proc} not running to be {past}"),
        Outcome::AlreadyDone => format!("Job {cluster}.{proc} already {past}"),
        Outcome::BySpec => format!(
            "Job {cluster}.{proc} is held by spec.hold of the whole job: release {cluster}, or take spec.hold out of its manifest"
        ),
    }
}

fn totals(results: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
    let count = |wanted: &[Outcome]| results.iter().filter(|result| wanted.contains(result)).count();
    writeln!(
        out,
        "{} Succeeded, 0 Failed, {} Not Found, {} Bad Status, {} Already Done, {} Permission Denied",
        count(&[Outcome::Success]),
        count(&[Outcome::NotFound]),
        count(&[Outcome::BadStatus, Outcome::BySpec]),
        count(&[Outcome::AlreadyDone]),
        count(&[Outcome::Denied])
    )
}

/// Acts on all procs that the selection means, and prints one line. Returns whether none was acted on although there are jobs.
async fn by_constraint(
    request: &Request,
    cluster: &Cluster,
    (namespace, found): (&str, &[JobProcs<'_>]),
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<bool, Error> {
    let (verb, selection) = (request.verb, &request.selection);
    let (mut tasks, mut counts) = (Vec::new(), Vec::new());
    let named = !selection.clusters.is_empty() || !selection.names.is_empty();
    // HTCondor's tools have succeeded if there are no jobs at all. kubectl slotwright has found the job that was named.
    let mut there = named && request.is_kubectls();
    for job in found {
        there |= job.is_queued();
        if !selection.means(job) {
            continue;
        }
        let whole = selection.constraint.is_none() && !selection.held;
        let acted = procs::meant(job, selection.constraint.as_ref(), selection.held, |proc| {
            judge(request, proc, whole) == Outcome::Success
        });
        let count = acted.len();
        if count == 0 {
            if let Some(why) = job.refusal().filter(|_| named) {
                let place = job.place();
                let why = harmless(why);
                writeln!(err, "note: {place} does not run until its spec is correct: {why}")?;
            }
            continue;
        }
        tasks.push(Task { job, which: if whole { Which::All } else { Which::These(acted) } });
        counts.push(count);
    }
    let written = write::act(cluster, request, &tasks, err).await?;
    let result = |written| if written == TaskOutcome::Denied { Outcome::Denied } else { Outcome::Success };
    let results: Vec<Outcome> = written
        .into_iter()
        .zip(counts)
        .flat_map(|(written, count)| (0..count).map(move |_| result(written)))
        .collect();
    if request.totals {
        totals(&results, out)?;
    }
    let (word, past) = request.words();
    let (jobs, told) = (if selection.held { "held jobs" } else { "jobs" }, request.told(namespace, found));
    if results.contains(&Outcome::Success) {
        writeln!(out, "All {jobs}{told} have been {past}")?;
        return Ok(false);
    }
    if there {
        writeln!(err, "\nCouldn't find/{word} all {jobs}{told}")?;
    } else {
        writeln!(err, "{}:0:There are no jobs in the queue", tool_of(verb))?;
    }
    Ok(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proc(state: State) -> Proc {
        Proc { number: 0, state }
    }

    /// `actOnJobs` of the schedd, and `getResultString`.
    #[test]
    fn what_becomes_of_a_proc_is_said_as_htcondor_s_tools_say_it() {
        let request = |verb, forced| Request {
            verb,
            selection: Selection::default(),
            reason: None,
            subcode: 0,
            forced,
            totals: false,
            namespace: None,
            owners_everywhere: false,
        };
        for (verb, state, expected) in [
            (Verb::Hold, State::Idle, "Job 5.0 held"),
            (Verb::Hold, State::HeldByUser, "Job 5.0 already held"),
            (Verb::Hold, State::HeldOtherwise, "Job 5.0 held"),
            (Verb::Hold, State::Ended, "Job 5.0 not found"),
            (Verb::Release, State::HeldByUser, "Job 5.0 released"),
            (Verb::Release, State::HeldOtherwise, "Job 5.0 released"),
            (Verb::Release, State::Running, "Job 5.0 not held to be released"),
            (Verb::Remove, State::HeldByUser, "Job 5.0 marked for removal"),
            (Verb::Remove, State::Left, "Job 5.0 marked for removal"),
            (Verb::Hold, State::Left, "Permission denied to hold job 5.0"),
            (Verb::Vacate, State::Left, "Job 5.0 not running to be vacated"),
            (Verb::Remove, State::Removed, "Job 5.0 already marked for removal"),
            (Verb::Vacate, State::Running, "Job 5.0 vacated"),
            (Verb::Vacate, State::Idle, "Job 5.0 not running to be vacated"),
            (Verb::VacateFast, State::HeldByUser, "Job 5.0 not running to be fast-vacated"),
            (
                Verb::Release,
                State::HeldBySpec,
                "Job 5.0 is held by spec.hold of the whole job: release 5, or take spec.hold out of its manifest",
            ),
        ] {
            let request = request(verb, false);
            let said = said(&request, judge(&request, proc(state), false), 5, 0);
            assert_eq!(said, expected, "{verb:?} {state:?}");
        }
        let (removes, forces) = (request(Verb::Remove, false), request(Verb::Remove, true));
        assert_eq!(said(&removes, Outcome::Denied, 5, 1), "Permission denied to remove job 5.1");
        for (state, expected) in [
            (State::Removed, "Job 5.0 removed locally (remote state unknown)"),
            (State::Running, "Job 5.0 not in `X' state to be forcibly removed"),
            (State::Left, "Job 5.0 not in `X' state to be forcibly removed"),
            (State::Ended, "Job 5.0 not found"),
        ] {
            assert_eq!(said(&forces, judge(&forces, proc(state), false), 5, 0), expected, "{state:?}");
        }
    }
}
