//! The job ads of HTCJobs: an ad for each proc that is in the queue.
//!
//! No object has an ad: this room makes the ads from the same objects and with the same code as the operator. An ad has what the
//! objects tell, and nothing else: there are no CPU times.
//!
//! All procs of a job share one ad, to which the ad of each proc is chained, so that 100,000 procs take little more than their
//! own attributes.

use std::collections::{BTreeMap, HashMap};

use api::labels::{JOB_UID, OUT_OF_QUEUE, PROC, SLOT, SUSPEND};
use api::{HTCJob, Slot, SlotActivity};
use classad::{Ad, Env};
use controller::archive::set_template;
use controller::kinds;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodTemplateSpec};
use kube::api::ObjectMeta;
use model::pool::{Event, Job, JobUid, Pool, Ranges, Time};

use submit::each::Items;

use super::last_runs::LastRuns;
use crate::cluster::{self, Cluster};
use crate::status::served;

/// The values of `JobStatus`.
mod state {
    pub(super) const IDLE: i64 = 1;
    pub(super) const RUNNING: i64 = 2;
    pub(super) const REMOVED: i64 = 3;
    pub(super) const COMPLETED: i64 = 4;
    pub(super) const HELD: i64 = 5;
    pub(super) const SUSPENDED: i64 = 7;
}

/// A proc that has a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Run {
    /// The slot, as HTCondor names it.
    slot: Option<String>,
    /// When the claim was activated, which is when the pod was created, in seconds since 1970.
    started: Option<i64>,
    suspended: bool,
}

impl Run {
    /// Puts the slot and the start of the run into the proc's ad.
    fn set_in(&self, ad: &mut Ad) {
        if let Some(slot) = &self.slot {
            ad.set("RemoteHost", slot.as_str());
        }
        if let Some(started) = self.started {
            ad.set("EnteredCurrentStatus", started);
            ad.set("JobCurrentStartDate", started);
            ad.set("ShadowBday", started);
        }
    }
}

/// The procs that have a claim, by the uid of their job and their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs(HashMap<String, BTreeMap<i64, Run>>);

impl Runs {
    /// The procs that slots serve and that pods run. Either may be missing, if the user may not list it. The pods must be those
    /// that have not ended.
    pub(crate) fn of(slots: &[Slot], pods: &[ObjectMeta]) -> Self {
        let mut runs: HashMap<String, BTreeMap<i64, Run>> = HashMap::new();
        for pod in pods {
            let label = |name: &str| pod.labels.as_ref().and_then(|labels| labels.get(name));
            let note = |name: &str| pod.annotations.as_ref().and_then(|notes| notes.get(name));
            let (Some(uid), Some(Ok(proc))) = (label(JOB_UID), label(PROC).map(|proc| proc.parse())) else {
                continue;
            };
            let run = Run {
                slot: note(SLOT).cloned(),
                started: pod.creation_timestamp.as_ref().map(|time| time.0.as_second()),
                suspended: note(SUSPEND).is_some_and(|suspend| suspend == "true"),
            };
            runs.entry(uid.clone()).or_default().insert(proc, run);
        }
        for slot in slots {
            let (Some(claim), Some(served)) = (&slot.spec.claim, served(slot)) else { continue };
            let activity = slot.status.as_ref().and_then(|status| status.activity);
            let run = runs.entry(claim.job.uid.clone()).or_default().entry(served.proc).or_default();
            run.slot = Some(slot.spec.name.clone());
            run.suspended = activity == Some(SlotActivity::Suspended);
        }
        Self(runs)
    }

    /// Whether a proc runs.
    pub(crate) fn has(&self, uid: &str, proc: u32) -> bool {
        self.0.get(uid).is_some_and(|procs| procs.contains_key(&i64::from(proc)))
    }
}

/// The metadata of the pool's pods that have not ended, which carry the uid of their job: those of a namespace, or all.
///
/// # Errors
/// When the API server does not answer, or refuses.
pub(crate) async fn pods(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<Vec<ObjectMeta>, cluster::Error> {
    const RUNNING: &str = "status.phase!=Succeeded,status.phase!=Failed";
    cluster.list_some_metadata::<Pod>(namespace, JOB_UID, RUNNING).await
}

/// Whether procs of a job that are done may be in the queue: `LeaveJobInQueue` is there, and is not just false.
pub(crate) fn may_leave_in_queue(job: &HTCJob) -> bool {
    let leave = job.spec.attributes.iter().find(|(name, _)| name.eq_ignore_ascii_case(LEAVE_IN_QUEUE));
    leave.is_some_and(|(_, text)| !text.trim().eq_ignore_ascii_case("false"))
}

/// The attribute that keeps procs in the queue that are done.
const LEAVE_IN_QUEUE: &str = "LeaveJobInQueue";

/// The procs that somebody took out of the queue although `LeaveJobInQueue` would keep them there.
pub(crate) fn out_of_queue(job: &HTCJob) -> Ranges {
    let notes = job.metadata.annotations.as_ref();
    notes.and_then(|notes| Ranges::parse(notes.get(OUT_OF_QUEUE)?).ok()).unwrap_or_default()
}

/// The ads of all procs that are in the queue; with `last_runs`, also of procs that are done and that `LeaveJobInQueue` keeps in
/// the queue. A job to which the operator has given no number yet has no ads. Without `runs`, the counts in the jobs' statuses say
/// how many procs run, and the procs with the lowest numbers are taken for these: the ads are then good for counting only.
pub(crate) fn ads(jobs: &[HTCJob], runs: Option<&Runs>, last_runs: Option<&LastRuns>, now: Time) -> Vec<Ad> {
    let mut pool = Pool::default();
    for facts in jobs.iter().filter_map(kinds::job::facts) {
        pool.apply(Event::Job(facts), now);
    }
    let mut ads = Vec::new();
    for job in jobs {
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        if let Some(known) = pool.jobs().get(&JobUid::from(uid)).filter(|known| known.cluster_id > 0) {
            let runs = runs.map(|runs| runs.0.get(uid).cloned().unwrap_or_default());
            let runs = runs.unwrap_or_else(|| counted(job, known));
            let mut own = Vec::new();
            procs(job, known, &runs, now, &mut own);
            if let Some(last_runs) = last_runs.filter(|_| may_leave_in_queue(job)) {
                left(job, known, last_runs, now, &mut own);
            }
            ads.append(&mut own);
        }
    }
    ads
}

/// As many procs as the job's status counts as running. The status does not say which procs run: the lowest numbers are taken.
fn counted(job: &HTCJob, known: &Job) -> BTreeMap<i64, Run> {
    let status = job.status.clone().unwrap_or_default();
    let running = usize::try_from(status.running).unwrap_or(0);
    let suspended = usize::try_from(status.suspended.unwrap_or(0)).unwrap_or(0);
    let procs = queued(job, known).filter(|proc| !known.on_hold.contains_key(proc)).take(running);
    procs
        .enumerate()
        .map(|(at, proc)| (i64::from(proc), Run { suspended: at < suspended, ..Run::default() }))
        .collect()
}

/// The procs that have not ended and were not removed.
fn queued<'a>(job: &'a HTCJob, known: &'a Job) -> impl Iterator<Item = u32> + 'a {
    let count = u32::try_from(job.spec.count).unwrap_or(0);
    (0..count).filter(|proc| !known.is_done(*proc))
}

/// Adds the ads of a job's procs.
fn procs(job: &HTCJob, known: &Job, runs: &BTreeMap<i64, Run>, now: Time, ads: &mut Vec<Ad>) {
    let each = Each::of(job, known);
    let shared = shared(job, known, &each, now);
    let status = job.status.clone().unwrap_or_default();
    let why = status.why.as_deref();
    // A spec that is not accepted holds the procs that wait.
    let refused = known.spec.is_none() || !known.problems.is_empty();
    let is_seen = job.metadata.generation.is_some() && job.metadata.generation == status.observed_generation;
    let busy = |proc: &u32| runs.contains_key(&i64::from(*proc)) || known.on_hold.contains_key(proc);
    let in_queue = u64::try_from(queued(job, known).filter(busy).count()).unwrap_or(u64::MAX);
    // Idle procs beyond JobMaterializeLimit and JobMaterializeMaxIdle are not in the queue yet.
    let mut idle = known.pacing.materialized(in_queue);
    for proc in queued(job, known) {
        if !busy(&proc) {
            let Some(left) = idle.checked_sub(1) else { continue };
            idle = left;
        }
        let number = i64::from(proc);
        let mut ad = Ad::new().with("ProcId", number);
        ad.chain(Some(shared.clone()));
        each.set_in(&mut ad, proc);
        let run = runs.get(&number);
        if let Some(own) = known.own_spec(proc) {
            own.set_in(&mut ad);
        }
        known.history_of(proc).set_in(&mut ad, run.is_some());
        if let Some(run) = run {
            run.set_in(&mut ad);
        }
        let state = match (known.on_hold.get(&proc), run) {
            _ if known.removing => state::REMOVED,
            (_, Some(run)) if run.suspended => state::SUSPENDED,
            (_, Some(_)) => state::RUNNING,
            (Some(hold), None) => {
                ad.set("HoldReason", &*hold.reason);
                ad.set("HoldReasonCode", hold.code);
                ad.set("HoldReasonSubCode", hold.subcode);
                state::HELD
            }
            (None, None) if refused && is_seen => {
                if let Some(why) = why {
                    ad.set("HoldReason", why);
                }
                state::HELD
            }
            (None, None) => {
                if let Some(why) = why {
                    ad.set("LastRejMatchReason", why);
                }
                if let Some(time) = known.time_of(proc, Time::from_secs(now.secs())) {
                    ad.set("DeferralTime", time.secs());
                }
                state::IDLE
            }
        };
        ad.set("JobStatus", state);
        ads.push(ad);
    }
}

/// Adds the ads of the procs that are done and left in the queue, each at its place.
fn left(job: &HTCJob, known: &Job, last_runs: &LastRuns, now: Time, ads: &mut Vec<Ad>) {
    let each = Each::of(job, known);
    let shared = shared(job, known, &each, now);
    let env = Env::at(now.secs());
    let gone = out_of_queue(job);
    let status = job.status.clone().unwrap_or_default();
    let completed = status.completion_time.as_ref().map(|time| time.0.as_second());
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    let ended = known.succeeded.iter().chain(known.failed.iter());
    for proc in ended.filter(|proc| !known.removed.contains(*proc) && !gone.contains(*proc)) {
        let mut ad = Ad::new().with("ProcId", i64::from(proc));
        ad.chain(Some(shared.clone()));
        each.set_in(&mut ad, proc);
        let history = known.history_of(proc);
        history.set_in(&mut ad, true);
        ad.set("JobStatus", state::COMPLETED);
        // The history counts the runs before the last, which is the one that the program ended by itself.
        ad.set("NumJobCompletions", i64::from(history.completions).saturating_add(1));
        if let Some(completed) = completed {
            ad.set("CompletionDate", completed);
            ad.set("EnteredCurrentStatus", completed);
        }
        match last_runs.get(uid, proc) {
            Some(run) => run.set_in(&history, &mut ad),
            None if known.succeeded.contains(proc) => {
                ad.set("ExitBySignal", false);
                ad.set("ExitCode", success(&ad, &env));
            }
            None => {}
        }
        if ad.eval_attr(LEAVE_IN_QUEUE, None, &env).as_bool_equiv() == Some(true) {
            ads.push(ad);
        }
    }
    ads.sort_by_key(|ad| ad.eval_attr("ProcId", None, &env).as_int());
}

/// The exit code that counts as success.
fn success(ad: &Ad, env: &Env) -> i64 {
    ad.eval_attr("JobSuccessExitCode", None, env).as_int().unwrap_or(0)
}

/// The attributes that the ads of all procs of a job have in common.
fn shared(job: &HTCJob, known: &Job, each: &Each<'_>, now: Time) -> Ad {
    let mut ad = match &known.spec {
        Some(spec) => spec.ad.clone(),
        None => unaccepted(job, known),
    };
    // Each proc's own ad has its ProcId.
    ad.remove("ProcId");
    ad.set("ClusterId", known.cluster_id);
    ad.set("TotalSubmitProcs", job.spec.count);
    ad.set("ServerTime", now.secs());
    if let Some(template) = &each.template {
        set_template(&mut ad, template);
    }
    ad
}

/// The facts that the template of a job's pods tells, where each proc has values of its own.
#[derive(Default)]
struct Each<'j> {
    /// The template, if it tells the same of all procs.
    template: Option<PodTemplateSpec>,
    /// The template's first container and the job's items, if the container has references to the items.
    own: Option<(Container, Items<'j>)>,
    cluster: String,
}

impl<'j> Each<'j> {
    fn of(job: &'j HTCJob, known: &Job) -> Self {
        let cluster = known.cluster_id.to_string();
        let Ok(template) = kinds::job::template_of(job) else { return Self { cluster, ..Self::default() } };
        let first = template.spec.as_ref().and_then(|spec| spec.containers.first());
        let texts = |container: &Container| {
            let words = container.command.iter().chain(&container.args).flatten();
            words.chain(&container.image).any(|text| text.contains("$("))
        };
        let items = job.spec.items.as_ref().map(controller::render::borrowed);
        match first.filter(|container| texts(container)).cloned().zip(items) {
            Some(own) => Self { own: Some(own), cluster, ..Self::default() },
            None => Self { template: Some(template), cluster, ..Self::default() },
        }
    }

    /// Sets what the template tells of one proc alone.
    fn set_in(&self, ad: &mut Ad, proc: u32) {
        let Some((container, items)) = &self.own else { return };
        let names = items.names(&self.cluster, usize::try_from(proc).unwrap_or(usize::MAX));
        let words = |words: &Option<Vec<String>>| {
            words.as_ref().map(|words| words.iter().map(|word| names.replace(word, false)).collect())
        };
        let container = Container {
            image: container.image.as_ref().map(|image| names.replace(image, false)),
            command: words(&container.command),
            args: words(&container.args),
            ..Container::default()
        };
        let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
        set_template(ad, &PodTemplateSpec { spec: Some(spec), ..PodTemplateSpec::default() });
    }
}

/// The ad of a job whose spec the operator has not accepted.
fn unaccepted(job: &HTCJob, known: &Job) -> Ad {
    let owner = known.owner.as_deref().map_or_else(|| kinds::job::owner(job), str::to_owned);
    Ad::new()
        .with("MyType", "Job")
        .with("JobUniverse", 5)
        .with("Owner", owner.as_str())
        .with("User", owner.as_str())
        .with("JobName", &*known.key.name)
        .with("JobNamespace", &*known.key.namespace)
        .with("QDate", known.submitted.secs())
        .with("JobPrio", i64::from(job.spec.priority))
}

#[cfg(test)]
#[path = "jobs_tests.rs"]
mod tests;
