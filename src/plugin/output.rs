//! `kubectl slotwright output`: what procs printed, and how they ended.
//!
//! The output of a proc is the log of its pod, for as long as the pod is there. The plugin reads no volumes: if a stream goes to
//! a file, the plugin says where the file is. If the output is lost, the plugin says so, with what the objects and the history
//! still know of the proc's end.

use std::collections::BTreeMap;
use std::io::{self, Write};

use api::labels::{JOB_UID, PROC};
use api::{HTCJob, HTCJobStatus, PodRetention};
use clap::Args;
use classad::{Ad, Value as Classad};
use controller::kinds::pod::SlimPod;
use controller::render::borrowed;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::pool::{End, Exit, Ranges};
use serde_json::Value;
use submit::streams::{Streams, mounted, unwrapped};

use crate::cluster::{self, Cluster};
use crate::condor::harmless;
use crate::condor::history::last_ad;
use crate::condor::last_runs::{LastRun, LastRuns};
use crate::text::minute;
use crate::{Error, found_jobs, q};

/// The options of `output`.
#[derive(Args, Debug)]
pub(crate) struct OutputArgs {
    /// The namespace [default: the context's]
    #[arg(short, long)]
    namespace: Option<String>,
    /// Print standard error, if it is not where standard output is
    #[arg(long)]
    error: bool,
    /// A job by its name or its ClusterId, or a proc: ClusterId.ProcId
    #[arg(value_name = "JOB[.PROC]")]
    job: String,
}

/// A proc whose output is asked for.
struct Proc<'j> {
    job: &'j HTCJob,
    number: u32,
    /// The pod's name.
    pod: Option<String>,
    run: Option<LastRun>,
}

/// Prints the output of procs. Returns whether all of it was there.
pub(crate) async fn run(
    args: &OutputArgs,
    cluster: &Cluster,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<bool, Error> {
    let found = found_jobs(cluster, args.namespace.as_deref(), &args.job).await;
    let jobs = match found {
        Err(Error::NoSuchJob { wanted, place }) => return gone(cluster, wanted, place, err).await,
        other => other?,
    };
    let (meant, number) = q::select(&jobs, &args.job);
    let mut whole = true;
    for job in meant {
        if let Some(number) = number {
            q::check_proc(job, number)?;
        }
        let procs = procs(cluster, job, number).await?;
        let several = procs.len() > 1;
        let mut lost = Ranges::default();
        for proc in &procs {
            if proc.pod.is_none() && several {
                lost.insert(proc.number);
                continue;
            }
            if several {
                writeln!(out, "==> {} <==", proc.id())?;
            }
            whole &= print(proc, args.error, cluster, out, err).await?;
        }
        // Output in files is not lost with the pods.
        let first = procs.iter().find(|proc| lost.contains(proc.number));
        if let Some(place) = first.and_then(|proc| proc.place(args.error)) {
            writeln!(err, "{}, procs {lost}: such as {}", cluster_of(job), harmless(&place))?;
            continue;
        }
        for line in without_pods(job, &lost) {
            writeln!(err, "{}", harmless(&line))?;
        }
        whole &= lost.is_empty();
    }
    out.flush()?;
    Ok(whole)
}

/// Procs of a job, with their pods.
async fn procs<'j>(
    cluster: &Cluster,
    job: &'j HTCJob,
    number: Option<i64>,
) -> Result<Vec<Proc<'j>>, cluster::Error> {
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    let mut labels = format!("{JOB_UID}={uid}");
    if let Some(number) = number {
        labels = format!("{labels},{PROC}={number}");
    }
    let pods: Vec<SlimPod> = cluster.list_some(job.metadata.namespace.as_deref(), &labels).await?;
    let runs = LastRuns::of(&pods);
    let mut by_proc: BTreeMap<u32, &SlimPod> = BTreeMap::new();
    for pod in &pods {
        let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get(PROC));
        let Some(Ok(number)) = label.map(|number| number.parse()) else { continue };
        let known = by_proc.entry(number).or_insert(pod);
        if known.metadata.creation_timestamp < pod.metadata.creation_timestamp {
            *known = pod;
        }
    }
    let pod_of = |number: u32| by_proc.get(&number)?.metadata.name.clone();
    let count = u32::try_from(job.spec.count).unwrap_or(0);
    let numbers = match number.and_then(|number| u32::try_from(number).ok()) {
        Some(number) => number..number.saturating_add(1),
        None => 0..count,
    };
    Ok(numbers
        .map(|number| Proc { job, number, pod: pod_of(number), run: runs.get(uid, number).cloned() })
        .collect())
}

/// Prints the output of a proc, or says what became of it. Returns whether the output was there.
async fn print(
    proc: &Proc<'_>,
    error: bool,
    cluster: &Cluster,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<bool, Error> {
    let id = proc.id();
    let place = proc.place(error);
    if let Some(place) = &place {
        writeln!(err, "{id}: {}", harmless(place))?;
    }
    let Some(pod) = &proc.pod else {
        let retention = proc.job.spec.pod_retention;
        let why = lost(&Standings::of(proc.job).get(proc.number), retention);
        writeln!(err, "{id}: {}", harmless(&why))?;
        if let Some(end) = of_history(cluster, &id).await {
            writeln!(err, "{id}: {}", harmless(&end))?;
        }
        return Ok(place.is_some());
    };
    if error && place.is_none() {
        writeln!(
            err,
            "{id}: this is the log of the pod, which has standard output, too, unless that goes to a file"
        )?;
    }
    let namespace = proc.job.metadata.namespace.as_deref().unwrap_or_default();
    let there = match cluster.log((namespace, pod), first_container(&proc.template()), None).await {
        Ok(log) => {
            out.write_all(&log)?;
            true
        }
        Err(error) => {
            writeln!(err, "{id}: {error}")?;
            false
        }
    };
    if let Some(end) = proc.run.as_ref().and_then(ended) {
        writeln!(err, "{id}: {}", harmless(&end))?;
    }
    Ok(there)
}

impl Proc<'_> {
    /// ClusterId.ProcId.
    fn id(&self) -> String {
        format!("{}.{}", cluster_of(self.job), self.number)
    }

    /// The template of the proc's pod.
    fn template(&self) -> Value {
        let spec = &self.job.spec;
        let mut template = serde_json::from_str(spec.template.0.get()).unwrap_or_default();
        if let (Some(items), Ok(proc)) = (&spec.items, usize::try_from(self.number)) {
            let cluster = self.job.status.as_ref().and_then(|status| status.cluster_id);
            let cluster = cluster.map(|id| id.to_string()).unwrap_or_default();
            borrowed(items).names(&cluster, proc).replace_in(&mut template);
        }
        template
    }

    /// Where a stream is, if it goes to a file. The plugin reads no volumes.
    fn place(&self, error: bool) -> Option<String> {
        let template = self.template();
        let Streams { output, error: of_error, .. } = streams(&template)?;
        let (which, file) = if error { ("error", of_error) } else { ("output", output) };
        let volume = mounted(&template, &file).map(|found| of_volume(found.volume)).unwrap_or_default();
        (!file.is_empty()).then(|| {
            format!(
                "standard {which} is in the file {file}{volume}; read it from a pod that mounts that volume"
            )
        })
    }
}

/// The files of the streams of a template's program, if they go to files.
fn streams(template: &Value) -> Option<Streams> {
    let command = template.pointer("/spec/containers/0/command")?.as_array()?;
    // Kubernetes makes one dollar of two.
    let word = |word: &Value| word.as_str().unwrap_or_default().replace("$$", "$");
    unwrapped(&command.iter().map(word).collect::<Vec<_>>()).map(|(streams, _)| streams)
}

/// The name of a template's first container, which runs the program.
pub(crate) fn first_container(template: &Value) -> Option<String> {
    template.pointer("/spec/containers/0/name").and_then(Value::as_str).map(str::to_owned)
}

/// A volume, as a part of a sentence.
fn of_volume(volume: &Value) -> String {
    let text = |at: &str| volume.pointer(at).and_then(Value::as_str);
    let claim = text("/persistentVolumeClaim/claimName");
    let claim = claim.map(|claim| format!(" (PersistentVolumeClaim {claim})")).unwrap_or_default();
    format!(" of the volume {}{claim}", text("/name").unwrap_or_default())
}

/// How a proc without a pod stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Completed,
    Failed,
    Removed,
    Held(String),
    /// The proc waits, after so many runs.
    Idle(i64),
}

/// How the procs of a job stand, as its status says.
struct Standings {
    completed: Ranges,
    failed: Ranges,
    removed: Ranges,
    held: Vec<(Ranges, String)>,
    starts: Vec<(Ranges, i64)>,
}

impl Standings {
    fn of(job: &HTCJob) -> Self {
        let status: HTCJobStatus = job.status.clone().unwrap_or_default();
        let read = |ranges: &str| Ranges::parse(ranges).unwrap_or_default();
        Self {
            completed: read(&status.completed_procs),
            failed: read(&status.failed_procs),
            removed: read(&status.removed_procs),
            held: status.held_procs.iter().map(|held| (read(&held.procs), held.reason.clone())).collect(),
            starts: status.runs.iter().map(|runs| (read(&runs.procs), runs.starts)).collect(),
        }
    }

    fn get(&self, proc: u32) -> Standing {
        if self.completed.contains(proc) {
            return Standing::Completed;
        }
        if self.failed.contains(proc) {
            return Standing::Failed;
        }
        if self.removed.contains(proc) {
            return Standing::Removed;
        }
        if let Some((_, reason)) = self.held.iter().find(|(procs, _)| procs.contains(proc)) {
            return Standing::Held(reason.clone());
        }
        let starts = self.starts.iter().find(|(procs, _)| procs.contains(proc));
        Standing::Idle(starts.map_or(0, |(_, starts)| *starts))
    }
}

/// Why there is no output of a proc that has no pod.
fn lost(standing: &Standing, retention: PodRetention) -> String {
    let deleted = match (standing, retention) {
        (Standing::Completed, PodRetention::KeepFailed | PodRetention::Delete)
        | (Standing::Failed, PodRetention::Delete) => {
            format!("podRetention is {retention:?}, and the proc's output went with its pod")
        }
        _ => "its pod was deleted, or its node has gone, and the proc's output went with its pod".to_owned(),
    };
    match standing {
        Standing::Completed => format!("the proc is done, with success; {deleted}"),
        Standing::Failed => format!("the proc is done, and has failed; {deleted}"),
        Standing::Removed => "the proc was removed, and the proc's output went with its pod".to_owned(),
        Standing::Held(reason) => format!(
            "the proc is held ({reason}) and has no pod; what earlier runs printed went with their pods"
        ),
        Standing::Idle(0) => "the proc waits, and has not run yet".to_owned(),
        Standing::Idle(1) => {
            "the proc waits to run again; what its earlier run printed went with its pod".to_owned()
        }
        Standing::Idle(runs) => {
            format!("the proc waits to run again; what {runs} earlier runs printed went with their pods")
        }
    }
}

/// Lines for procs of a job of several that have no pod.
fn without_pods(job: &HTCJob, procs: &Ranges) -> Vec<String> {
    let standings = Standings::of(job);
    let mut kinds: Vec<(String, Ranges)> = Vec::new();
    for proc in procs.iter() {
        let why = lost(&standings.get(proc), job.spec.pod_retention);
        if let Some((_, procs)) = kinds.iter_mut().find(|(known, _)| *known == why) {
            procs.insert(proc);
        } else {
            let mut procs = Ranges::default();
            procs.insert(proc);
            kinds.push((why, procs));
        }
    }
    let cluster = cluster_of(job);
    kinds.into_iter().map(|(why, procs)| format!("{cluster}, procs {procs}: {why}")).collect()
}

/// The job's ClusterId; its name stands for a number that the operator has not given yet.
fn cluster_of(job: &HTCJob) -> String {
    let number = job.status.as_ref().and_then(|status| status.cluster_id);
    number.map_or_else(|| job.metadata.name.clone().unwrap_or_default(), |number| number.to_string())
}

/// How a run ended, and where. `None`: it goes on.
fn ended(run: &LastRun) -> Option<String> {
    let end = run.end.as_ref()?;
    let how = match (end, run.exit()) {
        (End::InitFailed { container, code }, _) => format!(
            "did not run: its init container {container} failed with exit code {code}, as kubectl logs of the pod with \
             -c {container} shows; it ended"
        ),
        (_, Some(Exit::Code(code))) => format!("ended with exit code {code}"),
        (_, Some(Exit::Signal(signal))) => format!("ended by signal {signal}"),
        (End::Evicted { why }, None) => format!("did not end by itself ({why}); it ended"),
        (End::Exited { .. }, None) => "ended".to_owned(),
    };
    let node = run.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
    Some(format!("{how}{node}{}", times(run.started, run.finished)))
}

/// From when to when, as a part of a sentence.
fn times(started: Option<i64>, finished: Option<i64>) -> String {
    let said = |seconds: Option<i64>, word: &str| {
        let at = jiff::Timestamp::from_second(seconds.filter(|seconds| *seconds > 0)?).ok()?;
        Some(format!(" {word} {}", minute(&Time(at))))
    };
    [said(started, "from"), said(finished, "to")].into_iter().flatten().collect()
}

/// The end of a proc as the operator's history tells it. `None`: nothing, or there is no history.
async fn of_history(cluster: &Cluster, id: &str) -> Option<String> {
    last_ad(cluster, id).await.ok().flatten().map(|ad| of_ad(&ad))
}

/// The end of a proc as a final ad tells it.
fn of_ad(ad: &Ad) -> String {
    let value = |name: &str| ad.get(name).and_then(classad::Expr::as_literal).cloned();
    let number = |name: &str| match value(name) {
        Some(Classad::Int(number)) => Some(number),
        _ => None,
    };
    let how = match (number("ExitCode"), number("ExitSignal")) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    };
    let host = value("LastRemoteHost").and_then(|host| host.as_str().map(|host| format!(" on {host}")));
    let times = times(number("JobCurrentStartDate"), number("CompletionDate"));
    format!("the history says that the proc ended with {how}{}{times}", host.unwrap_or_default())
}

/// Prints how a proc of a deleted job ended, as the history tells. Returns false: what the proc printed went with its
/// pod. If the history does not know the proc, the error is that of a job that never existed.
async fn gone(cluster: &Cluster, wanted: String, place: String, err: &mut dyn Write) -> Result<bool, Error> {
    let Some((id, proc)) = tools::job_id(&wanted) else { return Err(Error::NoSuchJob { wanted, place }) };
    let id = format!("{id}.{}", proc.unwrap_or(0));
    let Some(end) = of_history(cluster, &id).await else { return Err(Error::NoSuchJob { wanted, place }) };
    let write = |err: &mut dyn Write| -> io::Result<()> {
        writeln!(err, "{id}: the job was deleted, and the proc's output went with its pod")?;
        writeln!(err, "{id}: {end}")
    };
    write(err)?;
    Ok(false)
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
