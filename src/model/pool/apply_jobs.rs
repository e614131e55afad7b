//! Events about jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Pool;
use super::by_proc::ByProc;
use super::crontabs::{Course, check_crontab};
use super::event::{JobFacts, LifeFacts};
use super::history::History;
use super::idle::Idle;
use super::ids::{JobUid, SlotName};
use super::job::{Job, JobFinalizer, JobSpec, Matchable, Problem, SentMessages};
use super::job_policy::Acting;
use super::marks::Change;
use super::on_evict::OwnSpecs;
use super::on_hold::OnHold;
use super::owner::{RecordedOwner, Requester, UnknownCreator};
use super::pacing::Pacing;
use super::ranges::Ranges;
use super::slot::Removal;
use super::submit_rules::Transformed;
use super::time::Time;

/// The most problems of one job that become events of their own. The job's condition names all problems.
const TOLD_AT_ONCE: usize = 4;

/// The highest `ClusterId` of a job's status that is believed while nothing else tells which numbers were given: half of the highest one
/// that HTCondor's tools can read.
const HIGHEST: i64 = 1 << 30;

/// By how much the `ClusterId` of a job's status may exceed the highest one that the pool's Lease names. The Lease is written with each
/// renewal, so that an operator that died may have given some more.
const UNTOLD: i64 = 1_000_000;

/// `RemoveReason` of procs whose job is deleted.
const DELETED: &str = "the HTCJob was deleted";

impl Pool {
    pub(super) fn job(&mut self, facts: JobFacts, now: Time) {
        let uid = facts.key.uid.clone();
        if !self.jobs.contains_key(&uid) {
            let job = self.new_job(&facts);
            self.jobs.insert(uid.clone(), job);
            self.changed(Change::NewJob(&uid));
        }
        self.queue_changes(&uid);
        self.update_job(&uid, facts, now);
        self.note_submitter(&uid, now);
        self.queue_changes(&uid);
        self.look_at_waiting(&uid);
        self.plan_evaluation(&uid, now);
        self.charge_orphans_of(&uid, now);
        self.changed(Change::Job(&uid));
    }

    fn new_job(&mut self, facts: &JobFacts) -> Job {
        let number = match facts.cluster_id.filter(|number| self.may_be_given(*number)) {
            Some(number) => number,
            None if self.synced => self.give_cluster_id(),
            // Until the start is complete, a new number could turn out to be another job's.
            None => 0,
        };
        self.last_cluster_id = self.last_cluster_id.max(number);
        // An operator that has seen the job before wrote down whose the job is.
        let owner = match &facts.owner {
            RecordedOwner::New => self.owner_rule().decide(facts.requester.as_ref(), &facts.key.namespace),
            recorded => recorded.owner().cloned(),
        };
        Job {
            submitter: facts.submitter.clone(),
            group: None,
            owner,
            key: facts.key.clone(),
            cluster_id: number,
            number_recorded: false,
            defaults: facts.defaults.clone().unwrap_or_else(|| self.job_defaults()),
            transformed: Arc::default(),
            refused_spec: None,
            policy_recorded: false,
            submitted: facts.submitted,
            generation: 0,
            spec: None,
            own_specs: OwnSpecs::default(),
            problems: Vec::new(),
            warnings: Vec::new(),
            removing: false,
            finalizer: JobFinalizer::Free.seen(facts.finalizer),
            told: SentMessages { accepted: facts.finalizer, ..SentMessages::default() },
            resting: None,
            refused: None,
            idle: Idle::default(),
            on_hold: recorded_holds(facts),
            recorded_holds: Ranges::default(),
            active: BTreeMap::new(),
            waits_for: BTreeMap::new(),
            unrecorded: BTreeMap::new(),
            remains: BTreeSet::new(),
            succeeded: facts.succeeded.clone(),
            failed: facts.failed.clone(),
            removed: facts.life.removed.clone(),
            recorded: Default::default(),
            history: facts.life.history.iter().map(|(proc, history)| (proc, *history)).collect(),
            recorded_completions: ByProc::default(),
            last_act: facts.life.last_act,
            recorded_act: facts.life.last_act,
            acting: Arc::default(),
            pacing: Pacing::default(),
            course: Course::default(),
            times: BTreeMap::new(),
            next_start: None,
            evaluated_to: 0,
            found_acts: Vec::new(),
            earlier_pods: BTreeMap::new(),
            first_start: facts.first_start,
            completed_at: facts.completed_at,
            used: (*facts.used).clone(),
            matchable: Matchable::Unknown,
            explained: Time::default(),
            explained_by: 0,
            explained_own: None,
            explaining: None,
            clauses: Arc::default(),
            waits: None,
        }
    }

    /// Gives numbers to the jobs that were submitted while no operator ran, older jobs first.
    pub(super) fn number_jobs(&mut self) {
        let mut new: Vec<_> = self.jobs.values().filter(|job| job.cluster_id == 0).collect();
        new.sort_by_key(|job| (job.submitted, job.key.clone()));
        let uids: Vec<JobUid> = new.into_iter().map(|job| job.key.uid.clone()).collect();
        for uid in uids {
            let number = self.give_cluster_id();
            if let Some(job) = self.jobs.get_mut(&uid) {
                job.cluster_id = number;
                if let Some(spec) = &mut job.spec {
                    Arc::make_mut(spec).ad.set("ClusterId", number);
                }
                job.own_specs.number(number);
            }
            self.queue_changes(&uid);
        }
    }

    fn update_job(&mut self, uid: &JobUid, facts: JobFacts, now: Time) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let (changed, new) = (job.generation != facts.generation, job.generation == 0);
        let counted = job.spec.as_ref().map_or(0, |spec| spec.count);
        let LifeFacts { removed, history, changes, last_act, acts, bad_acts } = *facts.life;
        job.number_recorded = facts.cluster_id == Some(job.cluster_id);
        job.recorded = [facts.succeeded, facts.failed, removed];
        job.recorded_holds = facts.on_hold.procs();
        let completions = |history: History| (history.completions > 0).then_some(history.completions);
        job.recorded_completions = history.filter_map(completions);
        let acts_were_recorded = job.acts_are_recorded();
        job.recorded_act = job.recorded_act.max(last_act);
        let recorded = (facts.owner, facts.transformed.clone());
        job.generation = facts.generation;
        job.group = facts.group;
        job.finalizer = job.finalizer.seen(facts.finalizer);
        let going = facts.removing && !job.removing;
        if going {
            self.all_leave_queue(uid, DELETED, now);
            if let Some(job) = self.jobs.get_mut(uid) {
                remove(job);
            }
        }
        if changed {
            // An earlier operator accepted the spec: the job keeps what policy made of the spec then.
            let accepted = (new && facts.accepted).then(|| facts.transformed.unwrap_or_default());
            let (spec, told) = self.submitted(uid, facts.spec, accepted);
            let unknown = self.owner_problem(uid, facts.requester.as_ref());
            self.take_warnings(uid, facts.warnings.into_iter().chain(unknown).collect(), new);
            self.warn_at_submission(uid, &told);
            self.take_spec(uid, spec, new, now);
        }
        if let Some(job) = self.jobs.get_mut(uid).filter(|_| new) {
            job.recall_changes(changes);
        }
        if going && new {
            // An earlier operator may have died before the history had the procs.
            self.all_leave_queue(uid, DELETED, now);
        } else if self.jobs.get(uid).is_some_and(|job| job.removing) {
            self.added_leave_queue(uid, counted, DELETED, now);
        }
        self.tell_bad_acts(uid, bad_acts);
        self.carry_out(uid, acts, now);
        if !acts_were_recorded {
            self.look_at_active(uid);
        }
        if going {
            self.remove_active(uid);
        }
        self.note_policy_record(uid, &recorded.0, recorded.1.as_deref());
        self.look_at_unrecorded(uid);
    }

    /// Whether an operator may have given this `ClusterId`, as the status of a job says that is new to this operator. A Role may let
    /// tenants write the statuses of their jobs: no tenant may use up the numbers of the whole pool.
    fn may_be_given(&self, number: i64) -> bool {
        let most = match self.given_cluster_id {
            given if self.synced => given,
            0 => HIGHEST,
            given => given.saturating_add(UNTOLD),
        };
        (1..=most).contains(&number)
    }

    fn give_cluster_id(&mut self) -> i64 {
        self.last_cluster_id += 1;
        self.given_cluster_id = self.given_cluster_id.max(self.last_cluster_id);
        self.last_cluster_id
    }

    /// Takes note of what the job's status records of the job's owner, and of what policy made of the job. Procs start only once
    /// the record is right: a new leader would charge another submitter otherwise, or make other pods.
    fn note_policy_record(&mut self, uid: &JobUid, owner: &RecordedOwner, recorded: Option<&Transformed>) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let transformed = job.transformed.is_empty()
            || recorded.is_some_and(|recorded| job.transformed.is_recorded_as(recorded));
        let right = transformed && job.owner.as_ref() == owner.owner();
        if !std::mem::replace(&mut job.policy_recorded, right) && right {
            self.changed(Change::SpecInForce);
        }
    }

    /// Why the job is charged to its namespace, although the policy asks who created the job.
    fn owner_problem(&self, uid: &JobUid, requester: Result<&Requester, &UnknownCreator>) -> Option<Problem> {
        let owner = self.jobs.get(uid)?.owner.as_deref();
        self.owner_rule().problem(requester, owner)
    }

    /// Marks the slots of procs whose end or hold is recorded now: their pods may lose their finalizer.
    pub(super) fn look_at_unrecorded(&mut self, uid: &JobUid) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let waiting = std::mem::take(&mut job.unrecorded);
        let (over, waiting) = waiting.into_iter().partition(|(proc, _)| job.is_settled(*proc));
        job.unrecorded = waiting;
        let over: BTreeMap<u32, SlotName> = over;
        self.slots_changed(over.values());
    }

    /// Notes the parts of a new spec that have no effect. Warns the author of those that the old spec did not have.
    fn take_warnings(&mut self, uid: &JobUid, warnings: Vec<Problem>, new: bool) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        // The author of a job that was accepted before was warned by an earlier operator.
        let told = new && job.told.accepted;
        let old = std::mem::replace(&mut job.warnings, warnings.clone());
        let key = job.key.clone();
        for warning in warnings.iter().filter(|warning| !told && !old.contains(warning)).take(TOLD_AT_ONCE) {
            self.warn(&key, warning.reason, "Accept", warning.to_string());
        }
    }

    /// A spec as it is submitted: completed by the defaults and changed by the policy's transforms, with warnings of the policy.
    /// For a spec that was accepted before, `accepted` is what the transforms changed then. The error: everything that is wrong
    /// with the spec, or the submit requirement that the job does not meet.
    fn submitted(
        &mut self,
        uid: &JobUid,
        spec: Result<Arc<JobSpec>, Vec<Problem>>,
        accepted: Option<Arc<Transformed>>,
    ) -> (Result<Arc<JobSpec>, Vec<Problem>>, Vec<Problem>) {
        let nice = self.negotiator().cycle.nice_user_group.clone();
        let rules = self.submit_config().map(|config| Arc::clone(&config.rules));
        let mut warnings = Vec::new();
        let Some(job) = self.jobs.get_mut(uid) else { return (spec, warnings) };
        job.refused_spec = None;
        let spec = spec.and_then(|mut spec| {
            let said = Arc::clone(&spec);
            let own = Arc::make_mut(&mut spec);
            if let Some(owner) = &job.owner {
                own.owned_by(owner);
            }
            job.defaults.complete(own, job.submitted)?;
            if let (Some(rules), Some(before), None) = (&rules, &job.spec, &accepted) {
                let forbidden = rules.forbidden_edits(before, &job.transformed, own);
                if !forbidden.is_empty() {
                    return Err(forbidden);
                }
            }
            job.transformed = match (accepted, rules) {
                (Some(accepted), _) => {
                    accepted.put_into(own, job.submitted)?;
                    accepted
                }
                (None, Some(rules)) => {
                    let judged = rules.submit(own, job.submitted);
                    job.refused_spec = judged.is_err().then_some(said);
                    let (transformed, told) = judged?;
                    warnings = told;
                    Arc::new(transformed)
                }
                (None, None) => Arc::default(),
            };
            own.yield_if_nice(&nice);
            // A transform may have made or changed the crontab.
            check_crontab(&own.ad, job.submitted).map_err(|problem| vec![problem])?;
            Ok(spec)
        });
        (spec, warnings)
    }

    /// Judges the jobs again that the policy refused: another policy is in force now.
    pub(super) fn judge_refused_jobs(&mut self, now: Time) {
        let refused =
            self.jobs.iter().filter_map(|(uid, job)| Some((uid.clone(), job.refused_spec.clone()?)));
        for (uid, said) in refused.collect::<Vec<_>>() {
            let (spec, told) = self.submitted(&uid, Ok(said), None);
            self.warn_at_submission(&uid, &told);
            self.queue_changes(&uid);
            self.take_spec(&uid, spec, false, now);
            self.note_submitter(&uid, now);
            self.queue_changes(&uid);
            self.changed(Change::Job(&uid));
        }
    }

    /// Tells the job's author the policy's warnings.
    fn warn_at_submission(&mut self, uid: &JobUid, warnings: &[Problem]) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        job.told.policy = warnings.to_vec();
        let key = job.key.clone();
        for warning in warnings.iter().take(TOLD_AT_ONCE) {
            self.warn(&key, warning.reason, "Accept", warning.to_string());
        }
    }

    /// Puts a new spec in force if it is valid. Otherwise tells the author what is wrong, and the last valid spec holds
    /// for what runs.
    fn take_spec(&mut self, uid: &JobUid, spec: Result<Arc<JobSpec>, Vec<Problem>>, new: bool, now: Time) {
        self.changed(Change::Spec(uid));
        if !new {
            self.write_claims_of(uid);
        }
        let Some(job) = self.jobs.get_mut(uid) else { return };
        match spec {
            Ok(spec) => {
                job.problems.clear();
                set_spec(job, &spec, new);
                // The operator waits no longer for pods of the old spec that cannot start.
                (job.matchable, job.waits) = (Matchable::Unknown, None);
                (job.resting, job.refused) = (None, None);
                if let Some(opens) = job.pacing.opens_at().filter(|opens| *opens > now) {
                    self.wake_at(opens);
                }
                self.follow_crontab(uid, now);
                self.hold_as_spec_says(uid, now);
                self.look_at_active(uid);
                self.changed(Change::SpecInForce);
                if !new {
                    self.tell_of_vain_edit(uid);
                }
            }
            Err(problems) => {
                let key = job.key.clone();
                job.problems.clone_from(&problems);
                for problem in problems.iter().take(TOLD_AT_ONCE) {
                    self.warn(&key, problem.reason, "Accept", problem.to_string());
                }
            }
        }
    }

    /// Warns whoever edited a job whose procs have all ended.
    fn tell_of_vain_edit(&mut self, uid: &JobUid) {
        let Some(key) = self.jobs.get(uid).filter(|job| job.is_complete()).map(|job| job.key.clone()) else {
            return;
        };
        let message = "all procs have ended, and an edit runs none of them again; raise spec.count for more procs, or apply the manifest \
                       under another name";
        self.warn(&key, "NothingToRun", "Accept", message.to_owned());
    }

    /// Lets the claims of a job be written that no object has. A new leader learns such a claim from its pod and from the spec of its
    /// job, and the edited spec may no longer have the proc, or may not be valid.
    fn write_claims_of(&mut self, uid: &JobUid) {
        let active: Vec<SlotName> =
            self.jobs.get(uid).into_iter().flat_map(|job| job.active.values().cloned()).collect();
        for name in active {
            self.claim_lasts(&name);
        }
    }

    /// Warns whoever wrote acts that cannot be read, once.
    fn tell_bad_acts(&mut self, uid: &JobUid, bad: Option<Problem>) {
        let Some(job) = self.jobs.get_mut(uid).filter(|job| job.told.bad_acts != bad) else { return };
        job.told.bad_acts.clone_from(&bad);
        let key = job.key.clone();
        if let Some(problem) = bad {
            self.warn(&key, problem.reason, "Act", problem.to_string());
        }
    }

    /// Marks the slots of a job's procs.
    fn look_at_active(&mut self, uid: &JobUid) {
        let active = self.jobs.get(uid).map(|job| job.active.values().cloned().collect::<Vec<_>>());
        self.slots_changed(active.iter().flatten());
    }

    /// Marks all procs of a job that is being deleted: they must leave their slots, and none starts any more.
    fn remove_active(&mut self, uid: &JobUid) {
        let active: Vec<_> =
            self.jobs.get(uid).into_iter().flat_map(|c| c.active.values().cloned()).collect();
        for name in active {
            if let Some(slot) = self.slots.get_mut(&name) {
                slot.must_go(Removal::ByUser);
                self.changed(Change::Slot(&name));
            }
        }
        self.changed(Change::JobStatus(uid));
    }

    pub(super) fn job_gone(&mut self, uid: &JobUid, now: Time) {
        // The procs of a job that was being deleted have left the queue before.
        if self.jobs.get(uid).is_some_and(|job| !job.removing) {
            self.all_leave_queue(uid, DELETED, now);
        }
        self.queue_changes(uid);
        self.evaluations.set(uid, None);
        self.crontabs.set(uid, None);
        let Some(job) = self.jobs.get_mut(uid) else { return };
        remove(job);
        self.remove_active(uid);
        self.look_at_waiting(uid);
        // A slot whose job is missing from the pool knows that the job is gone.
        if let Some(job) = self.jobs.remove(uid) {
            // Slots waited for the ends of these procs to be recorded, which will not happen any more.
            self.slots_changed(job.unrecorded.values());
        }
        self.charge_orphans_of(uid, now);
        self.changed(Change::JobGone(uid));
    }

    /// Marks the slots for which claims of this job wait: the claims may not be wanted any more.
    pub(super) fn look_at_waiting(&mut self, uid: &JobUid) {
        let awaited: Vec<SlotName> = self.jobs.get(uid).into_iter().flat_map(Job::awaited).cloned().collect();
        self.slots_changed(&awaited);
    }

    /// Marks the statuses that show the job's queue: those of its submitter and of the groups around.
    fn queue_changes(&mut self, uid: &JobUid) {
        if let Some(spec) = self.jobs.get(uid).and_then(|job| job.spec.clone()) {
            self.changed(Change::Queue(&spec.submitter, spec.group.as_ref()));
        }
    }

    /// Adds the job's submitter to the pool, if the job is in the queue and the pool does not know the submitter yet.
    fn note_submitter(&mut self, uid: &JobUid, now: Time) {
        if let Some(spec) =
            self.jobs.get(uid).filter(|job| !job.is_complete()).and_then(|job| job.spec.clone())
        {
            self.edit_submitter(&spec.submitter, now, |_| ());
        }
    }
}

/// The procs that are held by the record, without those that have ended.
fn recorded_holds(facts: &JobFacts) -> OnHold {
    let done = [&facts.succeeded, &facts.failed, &facts.life.removed];
    let held = facts.on_hold.iter().filter(|(proc, _)| !done.iter().any(|done| done.contains(*proc)));
    held.map(|(proc, hold)| (proc, hold.clone())).collect()
}

fn remove(job: &mut Job) {
    job.removing = true;
    job.idle = Idle::default();
    job.on_hold.clear();
    job.history.clear();
    job.times.clear();
    job.own_specs.clear();
}

/// Puts a spec in force. Procs that were held because of another spec are released, new procs become idle, and procs that
/// are no longer wanted and have not started are dropped. If the job was just found, its held procs stay held.
fn set_spec(job: &mut Job, spec: &Arc<JobSpec>, new: bool) {
    let mut spec = Arc::clone(spec);
    Arc::make_mut(&mut spec).ad.set("ClusterId", job.cluster_id);
    job.acting = Arc::new(Acting::of(&spec.ad));
    let before = std::mem::replace(&mut job.pacing, Pacing::of(&spec.ad, job.submitted));
    if job.pacing != before {
        job.times.clear();
    }
    // Whoever edits the spec says anew what each proc requests.
    job.own_specs.clear();
    job.history.retain(|proc, _| *proc < spec.count || job.active.contains_key(proc));
    job.on_hold.retain(|proc, hold| {
        (proc < spec.count || job.active.contains_key(&proc)) && (new || hold.outlasts_edits())
    });
    if !job.removing {
        let mut idle = Ranges::up_to(spec.count);
        for done in [&job.succeeded, &job.failed, &job.removed] {
            idle.remove_all(done);
        }
        for proc in job.active.keys().chain(job.on_hold.keys()) {
            idle.remove(*proc);
        }
        job.idle.set(idle, spec.count);
    }
    job.submitter = Some(spec.submitter.clone());
    job.spec = Some(spec);
    if !job.is_complete() {
        job.completed_at = None;
    }
}
