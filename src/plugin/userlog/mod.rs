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

use api::HTCJob;
use clap::Args;
use jiff::Timestamp;
use thiserror::Error;
use tools::events::{Event, Kind, Log};

use file::{LogFile, Turn};
use procs::{Origin, Subject};

use crate::cluster::{self, Cluster, Connection};
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

fn wrong(path: &Path) -> impl Fn(io::Error) -> Error {
    |error| Error::File { path: path.to_owned(), error }
}

/// The procs of a log, and how each stands.
type Procs = BTreeMap<(i64, u32), Log>;

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
    pub(crate) async fn update(&mut self, path: &Path) -> Result<String, Error> {
        let text = fs::read(path).map_err(wrong(path))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let origins = open(&Log::read(&text));
        if origins.is_empty() {
            return Ok(text);
        }
        let cluster = self.cluster().await?;
        let wanted: BTreeSet<&Origin> = origins
            .iter()
            .map(|(origin, _)| origin)
            .filter(|origin| origin.is_of(cluster.server()))
            .collect();
        let jobs = jobs(cluster, &wanted).await?;
        let last_runs = match LastRuns::read(cluster, jobs.iter()).await {
            // Somebody who may not read pods gets the events that follow from the job's object.
            Err(cluster::Error::Forbidden { .. }) => LastRuns::default(),
            other => other?,
        };
        let mut log = LogFile::open(path).map_err(wrong(path))?;
        let mut events = Vec::new();
        let known = Log::read(&log.text);
        for (origin, cluster) in origins.iter().filter(|(origin, _)| wanted.contains(origin)) {
            let named = |job: &&HTCJob| {
                job.metadata.name.as_ref() == Some(&origin.name)
                    && job.metadata.namespace.as_ref() == Some(&origin.namespace)
            };
            let job = jobs.iter().find(named).and_then(|job| Subject::of(job, origin, *cluster));
            events.extend(missing(&known, (origin, *cluster), job.as_ref(), &last_runs));
        }
        // Events of one proc keep their order.
        events.sort_by_key(|event| event.time);
        let zone = zone();
        let text: String = events.iter().map(|event| event.text(&zone)).collect();
        log.append(&text).map_err(wrong(path))?;
        Ok(log.text)
    }

    /// Keeps a log up to date until all its jobs have ended.
    async fn follow(&mut self, path: &Path) -> Result<(), Error> {
        loop {
            let Some(turn) = Turn::take(path).map_err(wrong(path))? else { return Ok(()) };
            while !open(&Log::read(&self.update(path).await?)).is_empty() {
                tokio::time::sleep(PAUSE).await;
            }
            drop(turn);
            // A submission to this log in the meantime found this process following, and left none of its own behind.
            let text = fs::read(path).map_err(wrong(path))?;
            if open(&Log::read(&String::from_utf8_lossy(&text))).is_empty() {
                return Ok(());
            }
        }
    }
}

/// The jobs of Slotwright's in a log that have not ended: each job's origin and number.
fn open(procs: &Procs) -> BTreeSet<(Origin, i64)> {
    let open = procs.iter().filter(|(_, log)| !log.is_over());
    open.filter_map(|((cluster, _), log)| Some((Origin::parse(log.host.as_deref()?)?, *cluster))).collect()
}

async fn jobs(cluster: &Cluster, wanted: &BTreeSet<&Origin>) -> Result<Vec<HTCJob>, cluster::Error> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for origin in wanted {
        names.entry(&origin.namespace).or_default().push(&origin.name);
    }
    let mut jobs = Vec::new();
    for (namespace, names) in names {
        if names.len() > ONE_BY_ONE {
            jobs.extend(cluster.list(Some(namespace)).await?);
            continue;
        }
        for name in names {
            jobs.extend(cluster.find::<HTCJob>(namespace, name).await?);
        }
    }
    Ok(jobs)
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

/// `kubectl slotwright userlog`.
///
/// # Errors
/// When a log cannot be read or written, or the cluster does not answer.
pub async fn run(args: &UserlogArgs, connection: &Connection) -> Result<(), Error> {
    let mut logs = Userlogs::new(connection);
    for path in &args.logs {
        if args.follow {
            logs.follow(path).await?;
        } else {
            logs.update(path).await?;
        }
    }
    Ok(())
}

/// The log of a proc that was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Submitted {
    pub(crate) proc: u32,
    pub(crate) path: PathBuf,
    pub(crate) notes: Vec<String>,
}

/// Whether logs can be written: a submission whose log cannot be written is refused.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    LogFile::open(path).map(drop).map_err(wrong(path))
}

/// Writes the event 000 of procs of a job that was submitted, with the time at which the API server stored the job.
pub(crate) fn begin(
    cluster: &Cluster,
    (namespace, name, stored): (&str, &str, Option<Timestamp>),
    number: i64,
    procs: &[Submitted],
) -> Result<(), Error> {
    let host = Origin::new(cluster.server(), namespace, name).host();
    let (zone, time) = (zone(), stored.unwrap_or_else(Timestamp::now).as_second());
    let mut texts: BTreeMap<&Path, String> = BTreeMap::new();
    for Submitted { proc, path, notes } in procs {
        let kind = Kind::Submitted { host: host.clone(), notes: notes.clone() };
        let event = Event { id: (number, *proc), time, kind };
        texts.entry(path).or_default().push_str(&event.text(&zone));
    }
    for (path, text) in texts {
        LogFile::open(path).and_then(|mut log| log.append(&text)).map_err(wrong(path))?;
    }
    Ok(())
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
    // A group of its own: Ctrl-C ends the shell's, not this process.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}
