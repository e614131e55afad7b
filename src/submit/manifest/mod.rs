//! HTCJobs of a cluster.
//!
//! One HTCJob has the procs that differ in nothing but texts of the pod template, such as arguments. Procs that differ in what
//! all procs of an HTCJob share, such as requests, are in HTCJobs of their own, in the order of the submit file.
//!
//! | module | holds |
//! | --- | --- |
//! | `advice` | what has no effect, and what is refused |
//! | `complete` | the count, the items, and the parts of the template that depend on them |
//! | `directory` | what `initialdir` is for |
//! | `expression` | the texts of expressions, in the syntax that the operator reads |
//! | `files` | the program and the inputs that travel with a job |
//! | `image` | the image of the container |
//! | `streams` | whether output and error go into a volume |
//! | `spec` | what all procs of an HTCJob share: requests, requirements, attributes, the template |
//! | `vary` | the texts that differ between procs, and the items that make them |

mod advice;
mod complete;
mod directory;
mod expression;
mod files;
mod image;
mod spec;
mod streams;
mod vary;

pub use expression::in_new_syntax;
pub use files::{Contents, FETCH_IMAGE, FoundFile, MOST, SCRATCH, name_files, no_files};

use std::collections::BTreeSet;

use condor_config::{Diagnostic, Severity};
use serde_json::{Map, Value, json};

use crate::commands;
use crate::file::{Cluster, Proc, WrittenCommand};
use crate::items;
use crate::streams::Streams;
use files::{Cargo, Hold};

/// A command, and what is to be said of it.
type Wrong = (String, String);

/// A proc, and what travels with it.
struct Loaded<'p> {
    proc: &'p Proc,
    cargo: Cargo,
    streams: Streams,
}

/// The number of a cluster whose HTCJobs are to be made: [`World::cluster`](crate::World::cluster) should be this. The operator
/// numbers an HTCJob when it sees the job first; a text that has this number gets `$(Cluster)` instead.
pub const CLUSTER: i64 = 1_073_741_789;

/// The most HTCJobs of a submit file.
const MAX_JOBS: usize = 100;

/// The largest spec of an HTCJob that the operator takes, in bytes of JSON.
const LARGEST: usize = 256 << 10;

/// How HTCJobs are made.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The name of the HTCJobs. `None`: the batch name, or else the executable's.
    pub name: Option<String>,
    /// Whether the API server chooses the end of the names, so that each submission makes new HTCJobs.
    pub generate_names: bool,
    /// The namespace. `None`: the manifest names none.
    pub namespace: Option<String>,
    /// The image of jobs that name none.
    pub image: Option<String>,
    /// A pod template whose first container gets the image, the command, the arguments and the environment.
    pub template: Option<Value>,
    /// The image of the init container that fetches URLs, which must have curl. `None`: [`FETCH_IMAGE`].
    pub fetch_image: Option<String>,
}

/// HTCJobs, and what is to be said of them.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    /// The manifests, in the order of the first proc of each. Empty if there is an error.
    pub jobs: Vec<Value>,
    /// The job event logs of the procs of each manifest, in the same order.
    pub logs: Vec<Vec<JobLog>>,
    /// The ConfigMaps with the files of each manifest, in the same order. If the API server chooses the end of its name, the job
    /// is to be told the name by [`name_files`].
    pub files: Vec<Option<Value>>,
    /// Errors, and warnings of commands that have no effect.
    pub findings: Vec<Diagnostic>,
}

/// The job event log of a proc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLog {
    /// The proc's number within its HTCJob.
    pub proc: u32,
    /// The path of the log, with [`CLUSTER`] in the place of the job's number.
    pub path: String,
    /// `submit_event_notes` and `submit_event_user_notes`.
    pub notes: Vec<String>,
}

/// Makes the HTCJobs of a cluster. `contents` reads the files that travel with the jobs.
///
/// ```
/// use condor_config::Source;
/// use submit::manifest::{self, Settings};
/// use submit::{Options, World, submit};
///
/// let text = "container_image = docker://debian\nexecutable = /bin/echo\ntransfer_executable = false\n\
///             arguments = run $(Process) of $(Cluster)\nqueue 3\n";
/// let world = World { cluster: manifest::CLUSTER, ..World::none() };
/// let cluster = submit(&Source::new("hello.sub", text), &Options::default(), &world).cluster.ok_or("no jobs")?;
/// let manifests = manifest::jobs(&cluster, &Settings::default(), &manifest::no_files);
/// let job = manifests.jobs.first().ok_or("no manifest")?;
/// assert_eq!(job["spec"]["count"], 3);
/// let container = &job["spec"]["template"]["spec"]["containers"][0];
/// assert_eq!(container["args"], serde_json::json!(["run", "$(Process)", "of", "$(Cluster)"]));
/// # Ok::<(), &str>(())
/// ```
pub fn jobs(cluster: &Cluster, settings: &Settings, contents: Contents<'_>) -> Manifests {
    let mut findings = advice::findings(cluster);
    match made(cluster, settings, contents, &mut findings) {
        Ok(manifests) if findings.iter().all(|finding| finding.severity != Severity::Error) => {
            Manifests { findings: in_order(findings), ..manifests }
        }
        Ok(_) => Manifests { findings: in_order(findings), ..Manifests::default() },
        Err((command, message)) => {
            findings.push(said(cluster, Severity::Error, &command, &message));
            Manifests { findings: in_order(findings), ..Manifests::default() }
        }
    }
}

/// Makes the HTCJobs, and adds warnings to the findings.
fn made(
    cluster: &Cluster,
    settings: &Settings,
    contents: Contents<'_>,
    findings: &mut Vec<Diagnostic>,
) -> Result<Manifests, Wrong> {
    let mut hold = Hold::new(contents);
    let groups = groups(cluster, settings, &mut hold, findings)?;
    let several = groups.len() > 1;
    if several {
        findings.extend(advice::bounds(cluster, groups.len()));
    }
    let mut manifests = Manifests::default();
    for (number, (shared, procs)) in groups.into_iter().enumerate() {
        let name = name(cluster, settings);
        let name = if several && !settings.generate_names { format!("{name}-{}", number + 1) } else { name };
        manifests.logs.push(logs(cluster, &procs));
        let (job, files) = object_of(settings, &name, shared, &procs, &mut hold)?;
        manifests.jobs.push(job);
        manifests.files.push(files);
    }
    Ok(manifests)
}

/// The procs, grouped by what an HTCJob says of all its procs together. Adds warnings to the findings.
fn groups<'p>(
    cluster: &'p Cluster,
    settings: &Settings,
    hold: &mut Hold<'_>,
    findings: &mut Vec<Diagnostic>,
) -> Result<Vec<(Value, Vec<Loaded<'p>>)>, Wrong> {
    let mut groups: Vec<(Value, Vec<Loaded<'_>>)> = Vec::new();
    let mut warned = BTreeSet::new();
    for proc in &cluster.procs {
        let of_row = |(command, message): Wrong| {
            let row = items::row(proc.row, &proc.program.items, &message);
            (command, message + &row)
        };
        let input = streams::input(cluster, proc, settings.template.as_ref());
        let travelling = input.as_ref().filter(|input| input.travels).map(|input| input.file.as_str());
        let cargo = files::cargo(cluster, proc, travelling, hold).map_err(of_row)?;
        let (streams, mut left) =
            streams::of(cluster, proc, input.as_ref(), settings.template.as_ref()).map_err(of_row)?;
        left.extend(streams::replaced_entry_point(cluster, proc, input.as_ref(), &streams));
        left.extend(files::left(cluster, proc, &cargo, hold));
        left.extend(directory::unread(cluster, proc, input.as_ref(), !cargo.is_empty()));
        left.extend(files::inherited(proc));
        left.extend(image::doubt(cluster, proc, hold).map_err(of_row)?);
        for (command, message) in left {
            // The first proc speaks for the others.
            if warned.insert(command.clone()) {
                findings.push(said(cluster, Severity::Warning, &command, &message));
            }
        }
        let loaded = Loaded { proc, cargo, streams };
        let shared = spec::shared(cluster, &loaded, settings).map_err(of_row)?;
        match groups.iter().position(|(known, _)| *known == shared) {
            Some(at) => groups.get_mut(at).map_or((), |(_, procs)| procs.push(loaded)),
            None if groups.len() >= MAX_JOBS => {
                let message = format!(
                    "procs differ in requests, requirements, attributes, or the number of arguments or files: they would \
                     make more than {MAX_JOBS} HTCJobs; let them differ in arguments, environment and names of files alone"
                );
                return Err(("queue".to_owned(), message));
            }
            None => groups.push((shared, vec![loaded])),
        }
    }
    Ok(groups)
}

/// The HTCJob of a group, and the ConfigMap with the job's files.
fn object_of(
    settings: &Settings,
    name: &str,
    shared: Value,
    procs: &[Loaded<'_>],
    hold: &mut Hold<'_>,
) -> Result<(Value, Option<Value>), Wrong> {
    let (spec, files) = complete::complete(shared, procs, settings, hold)?;
    let size = spec.to_string().len();
    if size > LARGEST {
        let message = format!(
            "the items make an HTCJob of {size} bytes, and the operator takes {LARGEST}: submit fewer at a time, or put long \
             values into a file of the image, and refer to a line by $(Process)"
        );
        return Err(("queue".to_owned(), message));
    }
    let mut job = object(settings, name, &json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob"}));
    job.insert("spec".to_owned(), spec);
    let mut job = Value::from(job);
    let files = files.map(|files| {
        let name = format!("{name}-files");
        name_files(&mut job, &name);
        object(settings, &name, &files).into()
    });
    Ok((job, files))
}

/// Findings in the order of the file.
fn in_order(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    findings.sort_by(|one, other| one.position.cmp(&other.position));
    findings
}

/// The value of an attribute of a proc, if that is true or false.
fn flag(cluster: &Cluster, proc: &Proc, attribute: &str) -> Option<bool> {
    let expr = proc.ad.get(attribute).or_else(|| cluster.ad.get(attribute))?;
    match expr.as_literal()? {
        classad::Value::Bool(value) => Some(*value),
        _ => None,
    }
}

/// Whether the image's entry point runs, and gets the program as its first argument. The docker universe has it so by default.
fn keeps_entry_point(cluster: &Cluster, proc: &Proc) -> bool {
    flag(cluster, proc, "DockerOverrideEntrypoint").map_or(proc.program.is_docker, |overrides| !overrides)
}

/// The text of an attribute of a proc.
fn text(cluster: &Cluster, proc: &Proc, attribute: &str) -> Option<String> {
    let expr = proc.ad.get(attribute).or_else(|| cluster.ad.get(attribute))?;
    expr.as_literal()?.as_str().map(str::to_owned)
}

/// The job event logs of procs.
fn logs(cluster: &Cluster, procs: &[Loaded<'_>]) -> Vec<JobLog> {
    let numbered = (0_u32..).zip(procs);
    let log = |(number, Loaded { proc, .. }): (u32, &Loaded<'_>)| {
        let notes = ["SubmitEventNotes", "SubmitEventUserNotes"];
        let notes = notes.into_iter().filter_map(|name| text(cluster, proc, name)).collect();
        Some(JobLog { proc: number, path: text(cluster, proc, "UserLog")?, notes })
    };
    numbered.filter_map(log).collect()
}

/// An object with the metadata of this name.
fn object(settings: &Settings, name: &str, object: &Value) -> Map<String, Value> {
    let mut metadata = Map::new();
    if settings.generate_names {
        metadata.insert("generateName".to_owned(), format!("{name}-").into());
    } else {
        metadata.insert("name".to_owned(), name.into());
    }
    if let Some(namespace) = &settings.namespace {
        metadata.insert("namespace".to_owned(), namespace.as_str().into());
    }
    let mut object = object.as_object().cloned().unwrap_or_default();
    object.insert("metadata".to_owned(), metadata.into());
    object
}

/// A warning about a command of a cluster, with the command's place.
pub fn warning(cluster: &Cluster, command: &str, message: &str) -> Diagnostic {
    said(cluster, Severity::Warning, command, message)
}

/// A finding about a command, under the name by which the file gives it.
fn said(cluster: &Cluster, severity: Severity, command: &str, message: &str) -> Diagnostic {
    let (name, position) = match written(cluster, command) {
        Some(written) if written.name.eq_ignore_ascii_case(command) => (command, &written.position),
        Some(written) => (written.name.as_str(), &written.position),
        None => (command, &cluster.queued),
    };
    Diagnostic { severity, position: position.clone(), message: format!("{name}: {message}") }
}

/// The line of the file that gives a command, under one of the command's names.
fn written<'c>(cluster: &'c Cluster, command: &str) -> Option<&'c WrittenCommand> {
    let of = |name: &str| cluster.written.iter().find(|written| written.name.eq_ignore_ascii_case(name));
    let attribute =
        || commands::find(command).map(|command| command.attribute).filter(|name| !name.is_empty());
    let mut others = OTHER_NAMES.iter().filter(|(known, _)| known.eq_ignore_ascii_case(command));
    of(command)
        .or_else(|| of(attribute()?))
        .or_else(|| of(&format!("MY.{}", attribute()?)))
        .or_else(|| of(&command.replace('_', "")))
        .or_else(|| others.find_map(|(_, other)| of(other)))
}

/// Commands, and other commands that say the same.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("arguments", "arguments2"),
    ("arguments", "shell"),
    ("environment", "env"),
    ("environment", "environment2"),
    ("error", "stderr"),
    ("executable", "shell"),
    ("getenv", "get_env"),
    ("initialdir", "initial_dir"),
    ("initialdir", "job_iwd"),
    ("input", "stdin"),
    ("output", "stdout"),
    ("rank", "preferences"),
];

/// The name of the HTCJobs, fit for Kubernetes.
fn name(cluster: &Cluster, settings: &Settings) -> String {
    let text = |name: &str| cluster.ad.get(name)?.as_literal()?.as_str().map(str::to_owned);
    let executable = || {
        let program = &cluster.procs.first()?.program;
        let path = program.executable.as_ref().or(program.image.as_ref())?;
        let file = path.rsplit('/').next()?;
        Some(file.split(['.', ':']).next().unwrap_or(file).to_owned())
    };
    // The operator numbers the job, when the job has its name already: a batch name gives the name without the number.
    let batch = || Some(text("JobBatchName")?.replace(&CLUSTER.to_string(), ""));
    let wanted = settings.name.clone().or_else(batch).or_else(executable).unwrap_or_default();
    let mut name = String::new();
    for c in wanted.chars().take(50) {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "job".to_owned() } else { name.to_owned() }
}
