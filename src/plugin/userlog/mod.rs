//! The job event log that `log` of a submit file names.
//!
//! Nothing of the pool runs on the computer where a job was submitted. condor_submit writes the event 000. condor_wait and `kubectl
//! slotwright userlog` bring the log up to date from the objects of the cluster. The log itself says what was written before, so
//! that several programs may do so at the same time.
//!
//! | file | is |
//! | --- | --- |
//! | `mod` | brings logs up to date, once or until all jobs have ended |
//! | `file` | a log, with its lock |
//! | `procs` | what objects tell of procs |

mod file;
mod procs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use answers::Item;
use api::HTCJob;
use clap::Args;
use jiff::Timestamp;
use thiserror::Error;
use tools::events::{Event, Kind, Log};

use file::{LogFile, Turn};
use procs::{Origin, Subject};

use crate::cluster::{self, Cluster, Connection, Patience, decoded};
use crate::condor::last_runs::LastRuns;
use crate::condor::place::zone;

/// The pause between two looks at a log that is followed.
pub(crate) const PAUSE: Duration = Duration::from_secs(2);
/// The most jobs of a namespace that are read one by one. If there are more, all jobs of the namespace are listed.
const ONE_BY_ONE: usize = 4;

/// The options of `userlog`.
#[derive(Args, Debug)]
pub struct UserlogArgs {
    /// Go on until all jobs of the logs have ended. If another process follows a log, leave that log to it
    #[arg(short, long)]
    follow: bool,
    /// The logs
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
}

/// Why a log was not brought up to date.
#[derive(Debug, Error)]
pub enum Error {
    /// The log cannot be read or written.
    #[error("job event log {}: {error}", path.display())]
    File {
        /// The log.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The cluster cannot be reached, or refuses.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
}

impl Error {
    /// Whether the same may succeed a moment later.
    pub(crate) const fn is_transient(&self) -> bool {
        matches!(self, Self::Cluster(error) if error.is_transient())
    }
}

fn wrong(path: &Path) -> impl Fn(io::Error) -> Error {
    |error| Error::File { path: path.to_owned(), error }
}

/// The procs of a log, and how each stands.
type Procs = BTreeMap<(i64, u32), Log>;

/// Jobs of a log that have not ended: each job's origin and number.
type Open = BTreeSet<(Origin, i64)>;

/// A log after it was brought up to date.
#[derive(Debug, Default)]
pub(crate) struct Updated {
    /// The text of the log.
    pub(crate) text: String,
    /// The jobs that were submitted to other API servers, whose events nobody brings here.
    elsewhere: Open,
}

impl Updated {
    /// Whether a job of this API server has not ended.
    fn goes_on(&self) -> bool {
        open(&Log::read(&self.text)) != self.elsewhere
    }
}

/// Logs, and the cluster if it was needed.
pub(crate) struct Userlogs<'c> {
    connection: &'c Connection,
    cluster: Option<Cluster>,
}

impl<'c> Userlogs<'c> {
    pub(crate) const fn new(connection: &'c Connection) -> Self {
        Self { connection, cluster: None }
    }

    async fn cluster(&mut self) -> Result<&Cluster, cluster::Error> {
        let cluster = match self.cluster.take() {
            Some(cluster) => cluster,
            None => Cluster::connect(self.connection).await?,
        };
        Ok(self.cluster.insert(cluster))
    }

    /// Brings a log up to date, and returns what it has then. The cluster is asked only if a job of the log has not ended.
    ///
    /// # Errors
    /// When the log is not there or cannot be written, or the cluster does not answer.
    pub(crate) async fn update(&mut self, path: &Path) -> Result<Updated, Error> {
        let text = fs::read(path).map_err(wrong(path))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        if open(&Log::read(&text)).is_empty() {
            return Ok(Updated { text, ..Updated::default() });
        }
        let cluster = self.cluster().await?;
        // Objects that were read before the lock would be older than what others appended meanwhile.
        let mut log = LogFile::open(path).map_err(wrong(path))?;
        let known = Log::read(&log.text);
        let (here, elsewhere): (Open, Open) =
            open(&known).into_iter().partition(|(origin, _)| origin.is_of(cluster.server()));
        let jobs = jobs(cluster, &here).await?;
        let last_runs = match LastRuns::read(cluster, jobs.values().flatten()).await {
            // Somebody who may not read pods gets the events that follow from the job's object.
            Err(cluster::Error::Forbidden { .. }) => LastRuns::default(),
            other => other?,
        };
        let zone = zone();
        let events = events(&known, &here, &jobs, &last_runs);
        let text: String = events.iter().map(|event| event.text(&zone)).collect();
        log.append(&text).map_err(wrong(path))?;
        Ok(Updated { text: log.text, elsewhere })
    }

    /// Returns what the user should know of jobs of a log that were submitted to other API servers; `None` without such
    /// jobs.
    pub(crate) fn elsewhere(&self, log: &Updated, is_meant: impl Fn(i64) -> bool) -> Option<String> {
        told(&log.elsewhere, self.cluster.as_ref()?.server(), is_meant)
    }

    /// Keeps a log up to date until all its jobs have ended but those of other API servers, and returns the log.
    /// `None`: another process follows the log.
    async fn follow(&mut self, path: &Path, err: &mut (dyn Write + Send)) -> Result<Option<Updated>, Error> {
        let mut patience = Patience::default();
        loop {
            let Some(turn) = Turn::take(path).map_err(wrong(path))? else { return Ok(None) };
            let log = loop {
                match self.update(path).await {
                    Ok(log) if !log.goes_on() => break log,
                    Ok(_) => {}
                    Err(error) if error.is_transient() => patience.bear(&error, err),
                    Err(error) => return Err(error),
                }
                tokio::time::sleep(PAUSE).await;
            };
            drop(turn);
            // A submission to this log in the meantime found this process following, and left none of its own behind.
            let text = fs::read(path).map_err(wrong(path))?;
            if open(&Log::read(&String::from_utf8_lossy(&text))) == log.elsewhere {
                return Ok(Some(log));
            }
        }
    }
}

/// The jobs of Slotwright's in a log that have not ended.
fn open(procs: &Procs) -> Open {
    let open = procs.iter().filter(|(_, log)| !log.is_over());
    open.filter_map(|((cluster, _), log)| Some((Origin::parse(log.host.as_deref()?)?, *cluster))).collect()
}

/// HTCJobs by namespace and name; `None`: the object cannot be decoded.
type Jobs = BTreeMap<(String, String), Option<HTCJob>>;

async fn jobs(cluster: &Cluster, wanted: &Open) -> Result<Jobs, cluster::Error> {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (origin, _) in wanted {
        names.entry(&origin.namespace).or_default().insert(&origin.name);
    }
    let mut found = Vec::new();
    for (namespace, names) in names {
        if names.len() > ONE_BY_ONE {
            found.extend(cluster.items(namespace, None).await?);
            continue;
        }
        for name in names {
            found.extend(cluster.items(namespace, Some(name)).await?);
        }
    }
    let key = |item: &Item<HTCJob>| {
        let metadata = item.metadata();
        (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
    };
    Ok(found.into_iter().map(|item| (key(&item), decoded(item))).collect())
}

/// Returns what the user should know of jobs of other API servers than this; `None` without such jobs.
fn told(jobs: &Open, own: &str, is_meant: impl Fn(i64) -> bool) -> Option<String> {
    let mut by_server: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    let own = Origin::new(own, "", "");
    for (origin, cluster) in jobs.iter().filter(|(_, cluster)| is_meant(*cluster)) {
        by_server.entry(origin.server()).or_default().insert(*cluster);
    }
    let said = by_server.into_iter().map(|(server, numbers)| {
        let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
        let (jobs, were) = if numbers.len() == 1 { ("job", "was") } else { ("jobs", "were") };
        format!(
            "{jobs} {} {were} submitted to {server}, and the kubeconfig is that of {}: nobody brings the events; name \
             the other cluster by --context or KUBECONFIG",
            numbers.join(", "),
            own.server()
        )
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("\n"))
}

/// Returns the events that a log lacks of these jobs, by their time.
fn events(known: &Procs, open: &Open, jobs: &Jobs, last_runs: &LastRuns) -> Vec<Event> {
    let mut events = Vec::new();
    for (origin, cluster) in open {
        let job = match jobs.get(&(origin.namespace.clone(), origin.name.clone())) {
            // Nothing is known of a job that cannot be read.
            Some(None) => continue,
            Some(Some(job)) => Subject::of(job, origin, *cluster),
            None => None,
        };
        events.extend(missing(known, (origin, *cluster), job.as_ref(), last_runs));
    }
    // Events of one proc keep their order.
    events.sort_by_key(|event| event.time);
    events
}

/// The events of a job's procs that a log lacks. `job` is `None` if the job's object is gone.
fn missing(
    known: &Procs,
    (origin, cluster): (&Origin, i64),
    job: Option<&Subject<'_>>,
    last_runs: &LastRuns,
) -> Vec<Event> {
    let now = Timestamp::now().as_second();
    let host = origin.host();
    let of_job = known
        .range((cluster, 0)..=(cluster, u32::MAX))
        .filter(|(_, log)| !log.is_over() && log.host.as_deref() == Some(&host));
    let events = of_job.flat_map(|(id, log)| {
        if let Some(job) = job {
            return job.proc(id.1, last_runs).missing(log, now);
        }
        let reason = "the HTCJob was deleted".to_owned();
        vec![Event { id: *id, time: now, kind: Kind::Aborted(Some(reason)) }]
    });
    events.collect()
}

/// `kubectl slotwright userlog`. Returns whether the logs are up to date: of jobs of other API servers nothing is
/// known.
///
/// # Errors
/// When a log cannot be read or written, or the cluster does not answer.
pub async fn run(
    args: &UserlogArgs,
    connection: &Connection,
    err: &mut (dyn Write + Send),
) -> Result<bool, Error> {
    let (mut logs, mut whole) = (Userlogs::new(connection), true);
    for path in &args.logs {
        let log = if args.follow { logs.follow(path, err).await? } else { Some(logs.update(path).await?) };
        if let Some(why) = log.and_then(|log| logs.elsewhere(&log, |_| true)) {
            whole = false;
            // Nobody may be there to read it.
            let _ = writeln!(err, "{}: {why}", path.display());
        }
    }
    Ok(whole)
}

/// The log of a proc that was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Submitted {
    pub(crate) proc: u32,
    pub(crate) path: PathBuf,
    pub(crate) notes: Vec<String>,
}

/// Writes the event 000 of procs of a job that was submitted, with the time at which the API server stored the job.
/// `server` is the API server's address. Returns the logs that cannot be written, and why.
pub(crate) fn begin(
    server: &str,
    (namespace, name, stored): (&str, &str, Option<Timestamp>),
    number: i64,
    procs: &[Submitted],
) -> Vec<(PathBuf, Error)> {
    let host = Origin::new(server, namespace, name).host();
    let (zone, time) = (zone(), stored.unwrap_or_else(Timestamp::now).as_second());
    let mut texts: BTreeMap<&Path, String> = BTreeMap::new();
    for Submitted { proc, path, notes } in procs {
        let kind = Kind::Submitted { host: host.clone(), notes: notes.clone() };
        let event = Event { id: (number, *proc), time, kind };
        texts.entry(path).or_default().push_str(&event.text(&zone));
    }
    let write = |(path, text): (&Path, String)| {
        let written = LogFile::open(path).and_then(|mut log| log.append(&text));
        Some((path.to_owned(), wrong(path)(written.err()?)))
    };
    texts.into_iter().filter_map(write).collect()
}

/// Leaves processes behind that follow logs, one for each, if `SLOTWRIGHT_USERLOG` is `follow`.
pub(crate) fn leave_behind(connection: &Connection, logs: &BTreeSet<PathBuf>, err: &mut dyn Write) {
    let wanted = std::env::var("SLOTWRIGHT_USERLOG").is_ok_and(|value| value.eq_ignore_ascii_case("follow"));
    for log in logs.iter().filter(|_| wanted) {
        if let Err(error) = spawn(connection, log) {
            // Standard error may be closed.
            let _ = writeln!(err, "WARNING: nobody follows {}: {error}", log.display());
        }
    }
}

fn spawn(connection: &Connection, log: &Path) -> io::Result<()> {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(connection.words()).args(["userlog", "--follow", "--"]).arg(log);
    // The process gets a process group of its own, so that Ctrl-C in the shell does not end the process.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, host: &str) -> String {
        format!("000 ({id}.000.000) 2026-11-26 09:05:00 Job submitted from host: {host}\n...\n")
    }

    #[test]
    fn a_job_that_cannot_be_read_is_not_deleted() {
        let known = Log::read(&event("012", "<10.0.0.1:6443?htcjob=ada/sim>"));
        let events = |jobs: &Jobs| events(&known, &open(&known), jobs, &LastRuns::default());
        let gone = events(&Jobs::new());
        assert!(
            matches!(gone.as_slice(), [Event { id: (12, 0), kind: Kind::Aborted(Some(_)), .. }]),
            "{gone:?}"
        );
        let unreadable = events(&Jobs::from([(("ada".to_owned(), "sim".to_owned()), None)]));
        assert!(unreadable.is_empty(), "{unreadable:?}");
    }

    #[test]
    fn a_log_that_cannot_be_written_hinders_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str, proc| Submitted { proc, path: directory.path().join(name), notes: Vec::new() };
        let procs = [at("none/a.log", 0), at("b.log", 1), at("b.log", 2)];
        let failed = begin("https://10.0.0.1:6443", ("ada", "sim", None), 12, &procs);
        assert!(matches!(failed.as_slice(), [(path, Error::File { .. })] if *path == procs[0].path));
        let text = fs::read_to_string(directory.path().join("b.log")).unwrap();
        assert_eq!(Log::read(&text).into_keys().collect::<Vec<_>>(), [(12, 1), (12, 2)]);
    }

    #[test]
    fn jobs_of_other_api_servers_are_told_and_end_no_log() {
        let (here, there) = ("<10.0.0.1:6443?htcjob=ada/sim>", "<10.9.9.9:6443?htcjob=ada/fit>");
        let text = event("012", there) + &event("015", there) + &event("013", "<10.0.0.1:9618?alias=ap>");
        let elsewhere = open(&Log::read(&text));
        let said = |jobs: &Open, is_meant: fn(i64) -> bool| told(jobs, "https://10.0.0.1:6443", is_meant);
        let rest = "submitted to 10.9.9.9:6443, and the kubeconfig is that of 10.0.0.1:6443: nobody brings the events; name \
                    the other cluster by --context or KUBECONFIG";
        assert_eq!(said(&elsewhere, |_| true), Some(format!("jobs 12, 15 were {rest}")));
        assert_eq!(said(&elsewhere, |job| job == 12), Some(format!("job 12 was {rest}")));
        assert_eq!(said(&elsewhere, |job| job == 13), None, "a job of HTCondor's is waited for in silence");
        let mut log = Updated { text, elsewhere };
        assert!(!log.goes_on());
        log.text += &event("014", here);
        assert!(log.goes_on());
    }
}
