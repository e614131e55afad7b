//! `kubectl slotwright submit`, and `condor_submit` by its own name: HTCJobs of a submit file.
//!
//! | file | is |
//! | --- | --- |
//! | `mod` | the request, and its outcome as condor_submit prints it |
//! | `ads` | the ads of dry runs and of `-verbose` |
//! | `advice` | what is told of the HTCJobs |
//! | `arguments` | the command line of condor_submit |
//! | `place` | what a submit file may know of this computer |
//! | `files` | the ConfigMaps with the files that travel with a job |
//! | `logs` | the job event logs |

mod ads;
mod advice;
mod arguments;
mod files;
mod logs;
mod place;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::time::Duration;

use ::submit::Options;
use ::submit::manifest::{self, JobLog, Settings};
use clap::Args;
use condor_config::{Diagnostic, Severity, Source};
use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;

pub use arguments::{Asked, USAGE, parse};
pub use place::Place;

use crate::cluster::{self, Cluster, Connection};
use crate::patient::Patient;
use crate::userlog;

/// The pause before a submission looks again for the number that the operator gives a job.
const PAUSE: Duration = Duration::from_millis(200);

/// The options of `submit`.
#[derive(Args, Debug, Default)]
pub struct SubmitArgs {
    /// The namespace [default: the context's]
    #[arg(short, long)]
    namespace: Option<String>,
    /// The image of jobs whose submit file names none
    #[arg(long)]
    image: Option<String>,
    /// A pod template (JSON) whose first container gets the job's image, command, arguments and environment
    #[arg(long, value_name = "FILE")]
    template: Option<String>,
    /// The image, with curl, of the init container that fetches the URLs of transfer_input_files
    #[arg(long, value_name = "IMAGE", env = "SLOTWRIGHT_FETCH_IMAGE")]
    fetch_image: Option<String>,
    /// The name of the HTCJobs [default: the batch name, or else the executable's]
    #[arg(long)]
    name: Option<String>,
    /// A line to read before each queue statement
    #[arg(short, long, value_name = "LINE")]
    append: Vec<String>,
    /// The queue statement of a submit file that has none, such as '3' or 'x in (a b)'
    #[arg(long, value_name = "ARGUMENTS")]
    queue: Option<String>,
    /// The batch name
    #[arg(long, value_name = "NAME")]
    batch_name: Option<String>,
    /// Print what would be submitted, and submit nothing
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "manifests")]
    dry_run: Option<DryRun>,
    /// Print only the first and the last proc of each HTCJob
    #[arg(long)]
    terse: bool,
    /// The submit file, or - for standard input; variables as NAME=VALUE
    #[arg(value_name = "FILE|NAME=VALUE", required = true)]
    words: Vec<String>,
}

/// The output of a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DryRun {
    /// The HTCJobs as JSON, which kubectl apply takes
    Manifests,
    /// The ads of the jobs, as condor_submit -dry-run writes them
    Ads,
}

/// A request to submit a file.
#[derive(Debug, Default)]
pub struct Request {
    pub(crate) file: String,
    pub(crate) options: Options,
    pub(crate) settings: Settings,
    pub(crate) namespace: Option<String>,
    /// The template's file.
    pub(crate) template: Option<String>,
    pub(crate) printed: Printed,
    /// Whether warnings about unused variables are left out.
    pub(crate) silent_about_unused: bool,
    /// The most procs, and HTCJobs.
    pub(crate) most_procs: Option<usize>,
    pub(crate) single: bool,
    pub(crate) dry: Option<Dry>,
    /// Whether the program has the name condor_submit: the number of a job is waited for, and standard output has what HTCondor's has.
    pub(crate) as_condor_submit: bool,
}

/// The output of a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Printed {
    /// How many procs each HTCJob has.
    #[default]
    Counts,
    /// The first and the last proc of each HTCJob.
    Terse,
    /// The ads, and how many procs each HTCJob has.
    Ads,
}

/// The output instead of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dry {
    /// HTCJobs, to standard output.
    Manifests,
    /// Ads, to a file or to standard output (`-`).
    Ads(String),
    /// The ads of procs with all attributes, as -dump writes them.
    Whole(String),
}

/// Why nothing, or not everything, was submitted.
#[derive(Debug, Error)]
pub enum Error {
    /// The submit file has errors, which were told.
    #[error("nothing was submitted")]
    Refused,
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    File(String, io::Error),
    /// The template is not JSON.
    #[error("{0}: not a pod template in JSON: {1}")]
    Template(String, serde_json::Error),
    /// The cluster refuses.
    #[error("{0}")]
    Cluster(#[from] cluster::Error),
    /// A job event log cannot be written.
    #[error("{0}")]
    Log(#[from] userlog::Error),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl SubmitArgs {
    /// The request that the options make.
    pub fn request(self) -> Request {
        let mut request =
            Request { namespace: self.namespace, template: self.template, ..Request::default() };
        if self.terse {
            request.printed = Printed::Terse;
        }
        request.settings.name = self.name;
        request.settings.image = self.image;
        request.settings.fetch_image = self.fetch_image;
        request.options.appended = self.append;
        request.options.queue = self.queue.map(|arguments| arguments::statement(&arguments));
        request.options.appended.extend(self.batch_name.map(|name| arguments::batch_name(&name)));
        for word in self.words {
            match word.split_once('=') {
                Some((name, value)) if word != "-" => request.assign(name, value),
                _ => request.file = word,
            }
        }
        if request.file.is_empty() {
            "-".clone_into(&mut request.file);
        }
        request.dry = self.dry_run.map(|what| match what {
            DryRun::Manifests => Dry::Manifests,
            DryRun::Ads => Dry::Ads("-".to_owned()),
        });
        request
    }
}

impl Request {
    /// The same request for a dry run: that which it asks for, or else one of HTCJobs.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.dry.get_or_insert(Dry::Manifests);
        self
    }

    fn assign(&mut self, name: &str, value: &str) {
        let name = name.trim();
        let name = name.strip_prefix('+').map_or_else(|| name.to_owned(), |name| format!("MY.{name}"));
        self.options.assigned.push((name, value.trim().to_owned()));
    }

    fn text(&self, stdin: &mut dyn Read) -> Result<String, Error> {
        let mut text = String::new();
        let read = if self.file == "-" {
            stdin.read_to_string(&mut text).map(|_| text)
        } else {
            fs::read_to_string(&self.file)
        };
        let text = read.map_err(|error| Error::File(self.file.clone(), place::not_utf8(error)))?;
        // Editors of other systems begin a file with a byte order mark.
        Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
    }

    fn settings(&self) -> Result<Settings, Error> {
        let mut settings = self.settings.clone();
        settings.generate_names = self.dry.is_none();
        settings.namespace.clone_from(&self.namespace);
        if let Some(path) = &self.template {
            let text = fs::read_to_string(path).map_err(|error| Error::File(path.clone(), error))?;
            let template =
                serde_json::from_str(&text).map_err(|error| Error::Template(path.clone(), error))?;
            settings.template = Some(template);
        }
        Ok(settings)
    }
}

/// Carries a request out. The lines about submitted jobs, and the output of a dry run, go to `out`; errors and warnings to `err`.
///
/// # Errors
/// When the submit file has errors, or the cluster refuses.
pub async fn run(
    request: &Request,
    connection: &Connection,
    place: &Place,
    stdin: &mut (dyn Read + Send),
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Error> {
    let prepared = prepare(request, place, stdin, out, err)?;
    if prepared.jobs.is_empty() { Ok(()) } else { create(request, connection, &prepared, out, err).await }
}

/// HTCJobs that are to be created, with the job event logs of their procs, and the ConfigMaps of their files.
#[derive(Debug, Default)]
pub struct Prepared {
    jobs: Vec<Value>,
    logs: Vec<Vec<JobLog>>,
    files: Vec<Option<Value>>,
    /// The ads that `-verbose` prints, with a placeholder for the number of the cluster.
    ads: Vec<String>,
}

/// Reads the submit file, and returns the HTCJobs that are to be created: none if the request is for a dry run, whose output goes
/// to `out`.
///
/// # Errors
/// When the submit file has errors.
pub fn prepare(
    request: &Request,
    place: &Place,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Prepared, Error> {
    let text = request.text(stdin)?;
    let name = if request.file == "-" { "stdin" } else { &request.file };
    let number = if matches!(request.dry, Some(Dry::Ads(_) | Dry::Whole(_))) { 1 } else { manifest::CLUSTER };
    let submission = place.submit(&Source::new(name, text), &request.options, number);
    let kept = submission
        .findings
        .iter()
        .filter(|finding| !request.silent_about_unused || !advice::is_unused(finding));
    tell(kept, err)?;
    if submission.errors().next().is_some() {
        return Err(Error::Refused);
    }
    let Some(jobs) = submission.cluster else {
        writeln!(err, "\nWARNING: \"{name}\" has only empty \"queue\" commands -- no jobs queued")?;
        return Ok(Prepared::default());
    };
    if request.most_procs.is_some_and(|most| jobs.procs.len() > most) {
        writeln!(err, "\nERROR: {} procs are more than -maxjobs allows", jobs.procs.len())?;
        return Err(Error::Refused);
    }
    if matches!(request.dry, Some(Dry::Ads(_) | Dry::Whole(_))) {
        let manifests = manifest::jobs(&jobs, &request.settings()?, &place::found);
        tell(advice::of_dry_run(request, &jobs, &manifests).iter(), err)?;
    }
    match &request.dry {
        Some(Dry::Ads(path)) => {
            return ads::dry_run(request, &jobs, path, out, err).map(|()| Prepared::default());
        }
        Some(Dry::Whole(path)) => {
            return ads::written(path, &ads::whole(&jobs), out).map(|()| Prepared::default());
        }
        _ => {}
    }
    let manifests = manifest::jobs(&jobs, &request.settings()?, &place::found);
    tell(advice::of(request, &jobs, &manifests).iter(), err)?;
    if manifests.jobs.is_empty() {
        return Err(Error::Refused);
    }
    if request.single && manifests.jobs.len() > 1 {
        writeln!(err, "\nERROR: {} HTCJobs are more than -single-cluster allows", manifests.jobs.len())?;
        return Err(Error::Refused);
    }
    if request.dry.is_some() {
        for (job, files) in manifests.jobs.iter().zip(&manifests.files) {
            for object in files.iter().chain([job]) {
                writeln!(out, "{}", serde_json::to_string_pretty(object).map_err(io::Error::other)?)?;
            }
        }
        return Ok(Prepared::default());
    }
    let ads = if request.printed == Printed::Ads { ads::ads(&jobs) } else { Vec::new() };
    Ok(Prepared { jobs: manifests.jobs, logs: manifests.logs, files: manifests.files, ads })
}

/// Tells findings as condor_submit does.
fn tell<'f>(findings: impl Iterator<Item = &'f Diagnostic>, err: &mut dyn Write) -> io::Result<()> {
    for Diagnostic { severity, position, message } in findings {
        let word = if *severity == Severity::Error { "ERROR" } else { "WARNING" };
        writeln!(err, "{word}: {position}: {message}")?;
    }
    Ok(())
}

/// Creates the HTCJobs, and prints what condor_submit prints.
async fn create(
    request: &Request,
    connection: &Connection,
    prepared: &Prepared,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Error> {
    logs::check(prepared.logs.iter().flatten())?;
    let cluster = Cluster::connect(connection).await?;
    let namespace = request.namespace.as_deref().unwrap_or(&cluster.namespace);
    if request.printed != Printed::Terse {
        write!(out, "Submitting job(s)")?;
    }
    let (created, failed) = create_all(&cluster, namespace, request, prepared, out, err).await?;
    let mut lines = Vec::new();
    let mut logged = BTreeSet::new();
    for Created { name, time, count, logs, number } in &created {
        logged.extend(logs::begin(&cluster, (namespace, name, *time), *number, logs, err)?);
        let id =
            number.filter(|_| request.as_condor_submit).map_or_else(|| name.clone(), |id| id.to_string());
        lines.push(match request.printed {
            Printed::Terse => format!("{id}.0 - {id}.{}", count.saturating_sub(1)),
            _ => format!("{count} job(s) submitted to cluster {id}."),
        });
    }
    if request.printed != Printed::Terse {
        writeln!(out)?;
    }
    if failed.is_none() {
        let first = created.iter().find_map(|job| job.number);
        for (proc, ad) in prepared.ads.iter().enumerate() {
            write!(out, "{}", ads::verbose(proc, ad, first))?;
        }
    }
    writeln!(out, "{}", lines.join("\n"))?;
    userlog::leave_behind(connection, &logged, err);
    out.flush()?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// An HTCJob that was created.
struct Created<'a> {
    name: String,
    /// When it was created, by the clock of the API server.
    time: Option<Timestamp>,
    count: u64,
    logs: &'a [JobLog],
    /// The number that the operator gave the job, if that was waited for and came in time.
    number: Option<i64>,
}

/// Creates the HTCJobs one after another. Where numbers are waited for, each job has its number before the next is created, so that
/// the numbers have the order of the submit file. Ends with the first job that the API server does not take: those that were created
/// before stay.
async fn create_all<'p>(
    cluster: &Cluster,
    namespace: &str,
    request: &Request,
    prepared: &'p Prepared,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<(Vec<Created<'p>>, Option<cluster::Error>)> {
    let (mut all, patience) = (Vec::new(), Patient::default());
    for ((job, logs), files) in prepared.jobs.iter().zip(&prepared.logs).zip(&prepared.files) {
        let created = match files::create(cluster, namespace, job, files.as_ref(), err).await {
            Ok(created) => created,
            Err(error) => return Ok((all, Some(error))),
        };
        let count = job.pointer("/spec/count").and_then(Value::as_u64).unwrap_or(1);
        if request.printed != Printed::Terse {
            write!(out, "{}", ".".repeat(usize::try_from(count.min(60)).unwrap_or(1)))?;
            out.flush()?;
        }
        let time = text_at(&created, "/metadata/creationTimestamp").parse().ok();
        let name = text_at(&created, "/metadata/name");
        let number = if request.as_condor_submit || !logs.is_empty() || !prepared.ads.is_empty() {
            number(cluster, namespace, &name, &patience).await
        } else {
            None
        };
        all.push(Created { name, time, count, logs, number });
    }
    Ok((all, None))
}

/// The text at a place of an object.
fn text_at(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The number that the operator gave a job. `None`: there was none in time.
async fn number(cluster: &Cluster, namespace: &str, name: &str, patience: &Patient) -> Option<i64> {
    let found = Cell::new(None);
    let look = || async {
        match cluster.read(namespace, name).await {
            Ok(job) => found.set(job.pointer("/status/clusterId").and_then(Value::as_i64)),
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error),
        }
        Ok(found.get().is_some())
    };
    let _ = patience.wait(PAUSE, look).await;
    found.get()
}
