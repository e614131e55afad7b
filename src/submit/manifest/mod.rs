//! HTCJobs of a cluster.
//!
//! One HTCJob has the procs that differ in nothing but texts of the pod template, such as arguments. Procs that differ in what
//! all procs of an HTCJob share, such as requests, are in HTCJobs of their own, in the order of the submit file.
//!
//! | module | holds |
//! | --- | --- |
//! | `advice` | what has no effect, and what is refused |
//! | `spec` | what all procs of an HTCJob share: requests, requirements, attributes, the template |
//! | `vary` | the texts that differ between procs, and the items that make them |

mod advice;
mod spec;
mod vary;

use condor_config::{Diagnostic, Position, Severity};
use serde_json::{Map, Value, json};

use crate::file::{Cluster, Proc};

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
}

/// HTCJobs, and what is to be said of them.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    /// The manifests, in the order of the first proc of each. Empty if there is an error.
    pub jobs: Vec<Value>,
    /// The job event logs of the procs of each manifest, in the same order.
    pub logs: Vec<Vec<JobLog>>,
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

/// Makes the HTCJobs of a cluster.
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
/// let manifests = manifest::jobs(&cluster, &Settings::default());
/// let job = manifests.jobs.first().ok_or("no manifest")?;
/// assert_eq!(job["spec"]["count"], 3);
/// let container = &job["spec"]["template"]["spec"]["containers"][0];
/// assert_eq!(container["args"], serde_json::json!(["run", "$(Process)", "of", "$(Cluster)"]));
/// # Ok::<(), &str>(())
/// ```
pub fn jobs(cluster: &Cluster, settings: &Settings) -> Manifests {
    let mut findings = advice::findings(cluster);
    let mut groups: Vec<(Value, Vec<&Proc>)> = Vec::new();
    for proc in &cluster.procs {
        match spec::shared(cluster, proc, settings) {
            Ok(shared) => match groups.iter().position(|(known, _)| *known == shared) {
                Some(at) => groups.iter_mut().skip(at).take(1).for_each(|(_, procs)| procs.push(proc)),
                None if groups.len() >= MAX_JOBS => {
                    let message = format!(
                        "procs differ in requests, requirements, attributes, or the number of arguments: they would \
                         make more than {MAX_JOBS} HTCJobs; let them differ in arguments and environment alone"
                    );
                    findings.push(error(cluster, "queue", message));
                    return Manifests { findings, ..Manifests::default() };
                }
                None => groups.push((shared, vec![proc])),
            },
            Err((command, message)) => {
                findings.push(error(cluster, &command, message));
                return Manifests { findings, ..Manifests::default() };
            }
        }
    }
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Manifests { findings, ..Manifests::default() };
    }
    let several = groups.len() > 1;
    let logs = groups.iter().map(|(_, procs)| logs(cluster, procs)).collect();
    let jobs = groups.into_iter().enumerate().map(|(number, (shared, procs))| {
        let name = name(cluster, settings);
        let name = match (settings.generate_names, several) {
            (true, _) => format!("{name}-"),
            (false, true) => format!("{name}-{}", number + 1),
            (false, false) => name,
        };
        job(settings, name, spec::complete(shared, &procs))
    });
    let jobs: Vec<Value> = jobs.collect();
    let largest = jobs.iter().map(|job| job.get("spec").map_or(0, |spec| spec.to_string().len())).max();
    if let Some(size) = largest.filter(|size| *size > LARGEST) {
        let message = format!(
            "the items make an HTCJob of {size} bytes, and the operator takes {LARGEST}: submit fewer at a time, or put long \
             values into a file of the image, and refer to a line by $(Process)"
        );
        findings.push(error(cluster, "queue", message));
        return Manifests { findings, ..Manifests::default() };
    }
    Manifests { jobs, logs, findings }
}

/// The job event logs of procs.
fn logs(cluster: &Cluster, procs: &[&Proc]) -> Vec<JobLog> {
    let numbered = (0_u32..).zip(procs);
    let log = |(number, proc): (u32, &&Proc)| {
        let text = |name: &str| {
            let expr = proc.ad.get(name).or_else(|| cluster.ad.get(name))?;
            expr.as_literal()?.as_str().map(str::to_owned)
        };
        let notes = ["SubmitEventNotes", "SubmitEventUserNotes"];
        let notes = notes.into_iter().filter_map(text).collect();
        Some(JobLog { proc: number, path: text("UserLog")?, notes })
    };
    numbered.filter_map(log).collect()
}

fn job(settings: &Settings, name: String, spec: Value) -> Value {
    let mut metadata = Map::new();
    let field = if settings.generate_names { "generateName" } else { "name" };
    metadata.insert(field.to_owned(), name.into());
    if let Some(namespace) = &settings.namespace {
        metadata.insert("namespace".to_owned(), namespace.as_str().into());
    }
    json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "metadata": metadata, "spec": spec})
}

/// An error about a command.
fn error(cluster: &Cluster, command: &str, message: String) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        position: position(cluster, command),
        message: format!("{command}: {message}"),
    }
}

/// Where a command's value stands; else the place of the first command.
fn position(cluster: &Cluster, command: &str) -> Position {
    let mut written = cluster.written.iter().filter(|written| written.name.eq_ignore_ascii_case(command));
    let found = written.next().or_else(|| cluster.written.first()).map(|written| written.position.clone());
    found.unwrap_or_else(|| Position { file: "submit file".into(), line: 0, column: 0 })
}

/// The name of the HTCJobs, fit for Kubernetes.
fn name(cluster: &Cluster, settings: &Settings) -> String {
    let text = |name: &str| cluster.ad.get(name)?.as_literal()?.as_str().map(str::to_owned);
    let executable = || {
        let program = &cluster.procs.first()?.program;
        let path = program.executable.as_ref().or(program.image.as_ref())?;
        let file = path.rsplit('/').next()?;
        Some(file.split(['.', ':']).next().unwrap_or(file).to_owned())
    };
    let wanted =
        settings.name.clone().or_else(|| text("JobBatchName")).or_else(executable).unwrap_or_default();
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
