//! Orphans: pods that have the operator's marks but no live claim.
//!
//! While an orphan lives, it holds resources of its machine, and its weight counts against the quotas and ceilings of its
//! job's submitter: what runs counts, whether or not a claim is known. An orphan's slot is not known, so that the CPUs
//! that the pod requests are its weight (HTCondor's default of `SLOT_WEIGHT`), or 1 if slot weights are not used or the
//! requests cannot be decoded.

use std::collections::BTreeMap;

use super::Pool;
use super::charges::Charge;
use super::event::{Forced, PodFacts, Remains};
use super::ids::{ClaimId, JobUid, PodUid, SubmitterName};
use super::indexed::{About, Indexed};
use super::job::Job;
use super::leaving::Granted;
use super::marks::Change;
use super::negotiators::NegotiatorId;
use super::time::Time;

/// The orphans.
#[derive(Clone, Debug, Default)]
pub(super) struct Orphans {
    pods: Indexed<PodUid, PodFacts>,
    /// For how long deletions let each orphan run.
    granted: BTreeMap<PodUid, Granted>,
    /// The submitter who is charged for each orphan that lives, and the orphan's weight.
    charged: BTreeMap<PodUid, (SubmitterName, f64)>,
}

/// A subject by which an orphan is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OrphanOf {
    /// The claim that the pod names.
    Claim(ClaimId),
    /// The job that the pod names.
    Job(JobUid),
    /// There may be something to do about the pod.
    Unsettled,
}

impl About for PodFacts {
    type Subject = OrphanOf;

    fn subjects(&self) -> impl IntoIterator<Item = OrphanOf> {
        let of = [OrphanOf::Claim(self.claim.clone()), OrphanOf::Job(self.job.clone())];
        of.into_iter().chain((!self.rests()).then_some(OrphanOf::Unsettled))
    }
}

impl PodFacts {
    /// Whether nothing can be done about the pod, as an orphan, before the pod changes: its program may run on, and either the pod is
    /// being deleted, or nobody may delete it.
    fn rests(&self) -> bool {
        self.end.is_none()
            && self.forced == Forced::No
            && (self.deleting || !self.tracked || self.remains == Remains::Ending)
    }
}

impl Orphans {
    /// The charges for the orphans that live.
    pub(super) fn charges(&self) -> impl Iterator<Item = Charge<'_>> {
        self.charged.values().map(charge)
    }
}

/// The first negotiator by name answers for an orphan: nobody knows which negotiator made its claim.
const fn charge((submitter, weight): &(SubmitterName, f64)) -> Charge<'_> {
    Charge { submitter, negotiator: &NegotiatorId::Unnamed, weight: *weight }
}

impl Job {
    /// The submitter to charge for an orphan of a proc. While no spec of the job is known, this is the submitter whom an earlier
    /// operator recorded, or else the submitter whom the object's group and the job's owner make.
    pub fn charged_for(&self, proc: u32) -> SubmitterName {
        // A SubmitPolicy may charge a job otherwise, but then no pod starts before the job's status has the submitter.
        let said = || {
            SubmitterName::within(self.group.as_ref(), self.owner.as_deref().unwrap_or(&self.key.namespace))
        };
        let known = self.spec_of(proc).map(|spec| &spec.submitter).or(self.submitter.as_ref());
        known.cloned().unwrap_or_else(said)
    }
}

impl Pool {
    /// The orphans, by uid.
    pub fn orphans(&self) -> &BTreeMap<PodUid, PodFacts> {
        &self.orphans.pods
    }

    /// The orphans about which there may be something to do. The others need to be looked at when they change.
    pub fn unsettled_orphans(&self) -> impl Iterator<Item = &PodFacts> {
        self.orphans_about(&OrphanOf::Unsettled)
    }

    /// The orphans that name a job.
    pub fn orphans_of_job(&self, job: &JobUid) -> impl Iterator<Item = &PodFacts> {
        self.orphans_about(&OrphanOf::Job(job.clone()))
    }

    fn orphans_about(&self, subject: &OrphanOf) -> impl Iterator<Item = &PodFacts> + use<'_> {
        self.orphans.pods.about(subject).map(|(_, facts)| facts)
    }

    /// For how long the deletions of an orphan let it run; `None` if no deletion is known.
    pub fn orphan_granted(&self, pod: &PodUid) -> Option<Granted> {
        self.orphans.granted.get(pod).copied()
    }

    /// Whether a pod lives under a claim that serves another proc now, because somebody edited the claim while no
    /// operator led. The claim's resources are that pod's, and the claim is not used for another.
    pub fn has_stray_pod(&self, claim: &ClaimId) -> bool {
        self.orphans_of(claim).any(|pod| !pod.is_over())
    }

    /// The pods under this claim, whose Slot was not known when they were seen.
    pub(super) fn orphans_of(&self, claim: &ClaimId) -> impl Iterator<Item = &PodFacts> {
        self.orphans_about(&OrphanOf::Claim(claim.clone()))
    }

    /// Keeps an orphan, and charges its job's submitter for it. Before the sync, nobody is charged: the accounts are not known.
    pub(super) fn orphan(&mut self, facts: PodFacts, now: Time) {
        self.keep_earlier_pod(&facts);
        let uid = facts.pod.uid.clone();
        if let Some(granted) = Granted::seen(self.orphan_granted(&uid), facts.deletion(), now) {
            self.orphans.granted.insert(uid.clone(), granted);
        }
        match (&facts.machine, facts.is_over()) {
            (Some(machine), false) => self.hold_foreign(uid.clone(), machine.clone(), facts.requests.clone()),
            _ => self.drop_outside(&uid),
        }
        if self.untracking.contains_key(&uid) {
            self.drop_orphan(&uid, now);
        } else {
            let after = self.charge_for(&facts).filter(|_| self.synced);
            self.charge_orphan(&uid, after, now);
            self.orphans.pods.insert(uid, facts);
        }
    }

    /// Forgets an orphan: its claim is known by now, or its tracking finalizer is being taken off.
    pub(super) fn drop_orphan(&mut self, pod: &PodUid, now: Time) {
        if self.orphans.pods.remove(pod).is_some() {
            self.charge_orphan(pod, None, now);
        }
    }

    /// Notes that a pod does not exist any more.
    pub(super) fn orphan_gone(&mut self, pod: &PodUid, now: Time) {
        self.drop_orphan(pod, now);
        self.orphans.granted.remove(pod);
    }

    /// Notes that an orphan is settled: its end is booked, or it does not belong to the pool.
    pub fn orphan_settled(&mut self, pod: &PodUid, job: &JobUid, now: Time) {
        self.orphan_gone(pod, now);
        self.changed(Change::Job(job));
    }

    /// Notes that an orphan is being deleted.
    pub fn orphan_deleted(&mut self, pod: &PodUid) {
        self.orphans.pods.edit(pod, |orphan| orphan.deleting = true);
    }

    /// Notes that the deletion of a pod failed. If the pod is an orphan, it is deleted again.
    pub(super) fn orphan_stays(&mut self, pod: &PodUid) {
        self.orphans.pods.edit(pod, |orphan| orphan.deleting = false);
    }

    /// Works out who is to be charged for each orphan, at the end of the start. The accounts do not have the charges yet.
    pub(super) fn charge_orphans(&mut self) {
        let charges =
            self.orphans().iter().filter_map(|(uid, facts)| Some((uid.clone(), self.charge_for(facts)?)));
        self.orphans.charged = charges.collect();
    }

    /// Charges for a job's orphans by the job's present spec, after the job changed.
    pub(super) fn charge_orphans_of(&mut self, job: &JobUid, now: Time) {
        if !self.synced {
            return;
        }
        let of_job = self.orphans_of_job(job);
        let charges: Vec<_> = of_job.map(|facts| (facts.pod.uid.clone(), self.charge_for(facts))).collect();
        for (uid, after) in charges {
            self.charge_orphan(&uid, after, now);
        }
    }

    /// The submitter to charge for an orphan, and the orphan's weight; `None` if the pod is over, is on no node, or is no pod of a job.
    /// Whoever may create pods can give a pod the operator's labels, but a pod on no node uses nothing.
    fn charge_for(&self, facts: &PodFacts) -> Option<(SubmitterName, f64)> {
        facts.machine.as_ref()?;
        let job = self.jobs.get(&facts.job).filter(|job| job.owns(facts) && !facts.is_over())?;
        let submitter = job.charged_for(facts.proc);
        let by_size = self.uses_slot_weights(&NegotiatorId::Unnamed) && !facts.requests.is_unknown();
        #[expect(clippy::cast_precision_loss, reason = "no node has 2^53 thousandths of a CPU")]
        let weight = if by_size { facts.requests.milli_cpu.max(0) as f64 / 1000.0 } else { 1.0 };
        Some((submitter, weight))
    }

    /// From now on, charges the submitter of an orphan as `after` says, instead of as before.
    fn charge_orphan(&mut self, pod: &PodUid, after: Option<(SubmitterName, f64)>, now: Time) {
        let before = self.orphans.charged.remove(pod);
        if before != after {
            if let Some(before) = &before {
                self.discharge(charge(before), now);
                self.changed(Change::Charge(&before.0));
            }
            if let Some(after) = &after {
                self.charge(charge(after), now);
                self.changed(Change::Charge(&after.0));
            }
        }
        if let Some(after) = after {
            self.orphans.charged.insert(pod.clone(), after);
        }
    }
}
