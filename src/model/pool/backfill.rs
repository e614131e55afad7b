//! Backfill work: pods that run in unclaimed slots, made of a policy's template.
//!
//! A backfill pod holds its resources until its end is seen. Until then nobody else gets them: a claim on the pod's
//! slot waits, and so do all claims and pods on a machine on which everything together would exceed the machine.
//! Nothing about backfill work is recorded except the pods themselves. A new leader finds them by their labels.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::ids::{MachineName, PodRef, PodUid, PolicyName, SlotName};
use super::job::Cooling;
use super::leaving::{Deletion, Granted};
use super::machine::Machine;
use super::machine_slot::MachineSlot;
use super::policy::Toleration;
use super::resources::{Capacity, Resources};
use super::time::Time;

/// The backfill work that a policy prescribes for idle slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The namespace of the pods.
    pub namespace: Arc<str>,
    /// The pod template, as JSON.
    pub template: Arc<str>,
    /// A mark that the pods carry as a label. Templates that differ have different marks.
    pub mark: Arc<str>,
}

/// A backfill pod that is to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The machine slot in which the pod is to run.
    pub slot: SlotName,
    /// The template of the pod.
    pub template: Arc<Template>,
    /// The policy that has the template: its name and uid.
    pub policy: (PolicyName, Arc<str>),
    /// The pod's requests and limits.
    pub resources: Resources,
    /// Taints that the pod tolerates.
    pub tolerations: Vec<Toleration>,
}

impl Plan {
    /// The name of the pod. The name follows from the slot alone, so that the API server itself refuses a second pod
    /// for the slot.
    pub fn pod_name(&self) -> String {
        pod_name(&self.slot)
    }
}

/// The name of the backfill pod of a slot.
pub fn pod_name(slot: &SlotName) -> String {
    format!("backfill-{}", slot.object_name())
}

/// How far a backfill pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The pod's containers have not started.
    Waits,
    /// The pod's containers have started.
    Runs,
    /// The pod has ended.
    Over,
}

/// The facts of a backfill pod, as the shell sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The pod.
    pub pod: PodRef,
    /// The machine on which the pod runs.
    pub machine: MachineName,
    /// The number of the machine slot that the pod was made for; `None` if the pod does not say.
    pub slot: Option<u32>,
    /// The mark of the template that the pod was made of.
    pub mark: Arc<str>,
    /// How far the pod has come.
    pub phase: Phase,
    /// When the pod's main container started; the object says so only while the container runs.
    pub started: Option<Time>,
    /// The pod's deletion, as the object shows it.
    pub deletion: Deletion,
    /// The requests of the pod; `None` if the pod cannot be decoded and was not seen before.
    pub requests: Option<Capacity>,
}

/// A backfill pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The pod as it was seen last.
    pub facts: Facts,
    /// When the operator asked for the pod's deletion.
    pub asked: Option<Time>,
    /// Whether the operator has killed the pod: asked for a deletion with the shortest grace period.
    pub killed: bool,
    /// Whether the operator has asked to delete the pod by force.
    pub forced: bool,
    /// For how long the deletions of the pod let it run.
    pub granted: Option<Granted>,
}

impl Work {
    /// A pod that is seen with these facts. `before` is the pod as it was known until now.
    pub(super) fn seen(facts: Facts, before: Option<&Self>, now: Time) -> Self {
        let granted = Granted::seen(before.and_then(|before| before.granted), facts.deletion, now);
        let Some(before) = before else {
            return Self { facts, asked: None, killed: false, forced: false, granted };
        };
        // Once the pod has ended, its object may no longer say when it started.
        let facts = Facts { started: facts.started.or(before.facts.started), ..facts };
        Self { facts, granted, ..*before }
    }

    /// Notes that the operator asks for the pod's deletion, with a grace period of so many seconds. `None` means the
    /// pod's own grace period, which the pod shows.
    pub(super) fn asked_to_go(&mut self, grace: Option<u32>, now: Time) {
        self.asked.get_or_insert(now);
        match grace {
            None => {}
            Some(0) => self.forced = true,
            Some(seconds) => {
                self.killed = true;
                let grace = Duration::from_secs(seconds.into());
                self.granted = Some(Granted::by_deletion(self.granted, grace, now));
            }
        }
    }

    /// Notes that the last deletion failed: the pod counts as not asked to go.
    pub(super) fn stays(&mut self) {
        (self.asked, self.killed, self.forced) = (None, false, false);
    }

    /// Whether the pod still holds resources.
    pub fn lives(&self) -> bool {
        self.facts.phase != Phase::Over
    }

    /// The resources that the pod holds of its machine while the pod lives. If the pod's requests are unknown, it may hold as
    /// much as its slot has, or as much as the machine has if the pod names no slot of the machine.
    pub fn holds<'a>(&'a self, machine: &Machine) -> Cow<'a, Capacity> {
        let slot = || self.facts.slot.and_then(|id| machine.machine_slots.get(&id));
        match &self.facts.requests {
            Some(requests) => Cow::Borrowed(requests),
            None => Cow::Owned(Capacity::of(slot().map_or(&machine.total, |slot| &slot.total))),
        }
    }

    /// Whether the pod is the one that would be made for `slot` from `template`. The namespace and the name are
    /// compared, too: labels alone prove nothing, since anybody may write them.
    pub fn is_of(&self, slot: &SlotName, template: &Template) -> bool {
        let pod = &self.facts.pod;
        self.facts.slot == Some(slot.slot)
            && self.facts.mark == template.mark
            && pod.namespace == template.namespace
            && *pod.name == *pod_name(slot)
    }
}

/// How far the backfill work of one slot has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The slot has no backfill work.
    #[default]
    None,
    /// The pod's creation was asked for, or the pod exists and does not run yet.
    Coming,
    /// The pod runs.
    Runs,
}

/// The attempts to create a slot's next pod.
#[derive(Clone, Debug, Default, PartialEq)]
struct Making {
    /// A pod whose creation was asked for, and which no watch has shown yet.
    asked: Option<Asked>,
    /// How many attempts in a row failed, or made a pod that soon ended.
    times: u32,
    /// The earliest time of the next attempt.
    until: Time,
}

#[derive(Clone, Debug, PartialEq)]
struct Asked {
    resources: Resources,
    /// The namespace in which the pod is created.
    namespace: Arc<str>,
    /// When the pod is looked up, unless a watch shows it before. Set once the call was answered, or once it is certain
    /// that no answer will come.
    looked_for_at: Option<Time>,
}

/// Whether `held` and the claims exceed `total`, which the machine or one of its slots has. A resource that the machine does not manage
/// does not count.
fn exceeds(machine: &Machine, held: &Capacity, total: &Resources, claims: &[&Resources]) -> bool {
    let mut left = Capacity::of(total);
    for claimed in claims {
        left.subtract(&Capacity::of(claimed));
    }
    left.subtract(held);
    let over = left.milli_cpu < 0
        || left.memory < 0
        || left.disk < 0 && machine.manages_disk()
        || left.extended.iter().any(|(name, amount)| *amount < 0 && total.extended.contains_key(name));
    over && *held != Capacity::default()
}

/// How long a watch may take to show a pod that was created, or that may have been created, before the pod is looked
/// up.
const EXPECTED: Duration = Duration::from_mins(1);

/// A pod that ran this long counts as a success: the next pod need not wait.
const WORTH_IT: Duration = Duration::from_mins(10);

/// The shortest time between two events that tell people about one policy that pods cannot be created.
const TOLD_EVERY: Duration = Duration::from_mins(10);

/// The backfill work of all machines.
#[derive(Clone, Debug, Default)]
pub struct Backfill {
    /// The pods, by machine.
    pub(super) pods: BTreeMap<(MachineName, PodUid), Work>,
    making: BTreeMap<SlotName, Making>,
    told: BTreeMap<PolicyName, Time>,
}

impl Backfill {
    /// The pods on a machine.
    pub fn on<'a>(&'a self, machine: &MachineName) -> impl Iterator<Item = &'a Work> {
        let (from, machine) = ((machine.clone(), PodUid::from("")), machine.clone());
        self.pods.range(from..).take_while(move |((on, _), _)| *on == machine).map(|(_, work)| work)
    }

    /// The pod with this uid on a machine.
    pub fn get_mut(&mut self, machine: &MachineName, pod: &PodUid) -> Option<&mut Work> {
        self.pods.get_mut(&(machine.clone(), pod.clone()))
    }

    fn of<'a>(&'a self, slot: &SlotName) -> impl Iterator<Item = &'a Work> {
        let id = slot.slot;
        self.on(&slot.machine).filter(move |work| work.facts.slot == Some(id))
    }

    fn asked_on<'a>(&'a self, machine: &MachineName) -> impl Iterator<Item = &'a Asked> {
        self.making_on(machine).filter_map(|(_, making)| making.asked.as_ref())
    }

    fn making_on<'a>(&'a self, machine: &MachineName) -> impl Iterator<Item = (&'a SlotName, &'a Making)> {
        let from = SlotName { machine: machine.clone(), slot: 0, dynamic: None };
        let machine = machine.clone();
        self.making.range(from..).take_while(move |(slot, _)| slot.machine == machine)
    }

    /// Whether the pool has no backfill work at all, as most pools do.
    fn is_none(&self) -> bool {
        self.pods.is_empty() && self.making.is_empty()
    }

    /// Whether a machine has no backfill pod that lives, and none that was asked for.
    pub fn is_off(&self, machine: &MachineName) -> bool {
        self.is_none() || !self.on(machine).any(Work::lives) && self.asked_on(machine).next().is_none()
    }

    /// How far the backfill work of a machine slot has come.
    pub fn stage(&self, slot: &SlotName) -> Stage {
        if self.is_none() {
            return Stage::None;
        }
        let lives = || self.of(slot).filter(|work| work.lives());
        let asked = self.making.get(slot).is_some_and(|making| making.asked.is_some());
        if lives().any(|work| work.facts.phase == Phase::Runs) {
            Stage::Runs
        } else if asked || lives().next().is_some() {
            Stage::Coming
        } else {
            Stage::None
        }
    }

    /// The resources that backfill pods on a machine hold, with those of backfill pods that were asked for.
    pub fn held(&self, machine: &Machine) -> Capacity {
        let name = &machine.facts.name;
        let mut held = Capacity::default();
        self.on(name).filter(|work| work.lives()).for_each(|work| held.add(&work.holds(machine)));
        self.asked_on(name).for_each(|asked| held.add(&Capacity::of(&asked.resources)));
        held
    }

    /// Whether the slot's backfill work, the claims on the slot, and one more claim of size `more` together exceed the
    /// slot.
    pub fn over_holds(&self, machine: &Machine, slot: &MachineSlot, more: &Resources) -> bool {
        let name = slot.name(&machine.facts.name);
        let mut held = Capacity::default();
        self.of(&name).filter(|work| work.lives()).for_each(|work| held.add(&work.holds(machine)));
        let asked = self.making.get(&name).and_then(|making| making.asked.as_ref());
        if let Some(asked) = asked {
            held.add(&Capacity::of(&asked.resources));
        }
        exceeds(machine, &held, &slot.total, &[&slot.carved, more])
    }

    /// Whether all backfill work on a machine, all claims, and one more claim of size `more` together exceed the
    /// machine.
    pub fn crowds(&self, machine: &Machine, more: &Resources) -> bool {
        exceeds(machine, &self.held(machine), &machine.total, &[&machine.carved, more])
    }

    /// Whether backfill work may still hold what a claim on the slot needs; `more` is the size of the claim.
    pub fn holds(&self, machine: &Machine, slot: &MachineSlot, more: &Resources) -> bool {
        !self.is_off(&machine.facts.name)
            && (self.over_holds(machine, slot, more) || self.crowds(machine, more))
    }

    /// Whether the creation of a slot's pod may be asked for: no pod of the slot exists or is expected, and the pause
    /// after the last failure is over.
    pub fn may_make(&self, slot: &SlotName, now: Time) -> bool {
        let rests = self.making.get(slot).is_some_and(|making| making.until > now || making.asked.is_some());
        // A pod that has ended still has the name.
        !rests && self.of(slot).next().is_none()
    }

    /// Notes that the creation of the slot's pod was asked for.
    pub fn ask(&mut self, slot: &SlotName, namespace: Arc<str>, resources: Resources) {
        let making = self.making.entry(slot.clone()).or_default();
        making.asked = Some(Asked { resources, namespace, looked_for_at: None });
    }

    /// The slots whose pods should have been seen by now, and the namespace of each pod. The caller looks the pods up.
    /// If a lookup brings no answer, the pod is overdue again after [`EXPECTED`].
    pub fn overdue(&mut self, machine: &MachineName, now: Time) -> Vec<(SlotName, Arc<str>)> {
        let late = |(slot, making): (&SlotName, &Making)| {
            let asked = making.asked.as_ref()?;
            (asked.looked_for_at? <= now).then(|| (slot.clone(), asked.namespace.clone()))
        };
        let overdue: Vec<_> = self.making_on(machine).filter_map(late).collect();
        for (slot, _) in &overdue {
            self.expect(slot, now);
        }
        overdue
    }

    /// When the next lookup is due, or the next pause after a failure is over: the machine must then be looked at, even
    /// if nothing happens. Kills that have to be repeated are not included.
    pub fn wake(&self, machine: &MachineName, now: Time) -> Option<Time> {
        let of = |making: &Making| {
            let looked_for = making.asked.as_ref().and_then(|asked| asked.looked_for_at);
            let rests = (making.until > now).then_some(making.until);
            [looked_for, rests]
        };
        self.making_on(machine).flat_map(|(_, making)| of(making)).flatten().min()
    }

    /// The call was answered, or will never be answered: from now on a watch has [`EXPECTED`] time to show the pod.
    pub(super) fn expect(&mut self, slot: &SlotName, now: Time) {
        if let Some(asked) = self.making.get_mut(slot).and_then(|making| making.asked.as_mut()) {
            asked.looked_for_at = Some(now + EXPECTED);
        }
    }

    /// No pod is expected any more: it was seen, or it is certain that it does not exist.
    pub(super) fn settle(&mut self, slot: &SlotName) {
        if let Some(making) = self.making.get_mut(slot) {
            making.asked = None;
        }
    }

    /// The slot's pod could not be created, or ended by itself: the next attempt waits, longer after each failure.
    pub(super) fn failed(&mut self, slot: &SlotName, now: Time) {
        let making = self.making.entry(slot.clone()).or_default();
        making.times = making.times.saturating_add(1);
        making.until = now + Cooling::wait(making.times);
    }

    /// A pod has ended or is gone. If nobody asked it to go, and it ran less than [`WORTH_IT`], that counts as a
    /// failure.
    pub(super) fn ended(&mut self, work: &Work, now: Time) {
        let Some(slot) = work.facts.slot.filter(|_| work.asked.is_none()) else { return };
        let slot = SlotName { machine: work.facts.machine.clone(), slot, dynamic: None };
        if work.facts.started.is_some_and(|started| now.since(started) >= WORTH_IT) {
            self.making.remove(&slot);
        } else {
            self.failed(&slot, now);
        }
    }

    /// Whether people are to be told now that the policy's pods cannot be created. If so, notes that they were told.
    pub(super) fn tells(&mut self, policy: &PolicyName, now: Time) -> bool {
        let due = self.told.get(policy).is_none_or(|told| now.since(*told) >= TOLD_EVERY);
        if due {
            self.told.insert(policy.clone(), now);
        }
        due
    }

    pub(super) fn forget_policy(&mut self, policy: &PolicyName) {
        self.told.remove(policy);
    }

    pub(super) fn forget_machine(&mut self, machine: &MachineName) {
        self.making.retain(|slot, _| slot.machine != *machine);
    }
}
