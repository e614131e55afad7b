//! Backfill work: the pods that run in slots that nobody has claimed, as a policy's template has them.
//!
//! Their end is seen before anything else has what they hold: a claim on such a slot waits for it, and so does every pod
//! where all of them together would be more than the machine has. Nothing of it is recorded but the pods themselves, which a
//! new leader finds by their labels.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::ids::{MachineName, PodRef, PodUid, PolicyName, SlotName};
use super::job::Cooling;
use super::machine::Machine;
use super::machine_slot::MachineSlot;
use super::policy::Toleration;
use super::resources::{Capacity, Resources};
use super::time::Time;

/// What a policy has idle slots do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Where the pods run.
    pub namespace: Arc<str>,
    /// The pod template, as JSON.
    pub template: Arc<str>,
    /// By which its pods are told from those of another template.
    pub mark: Arc<str>,
}

/// A backfill pod to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The standing slot.
    pub slot: SlotName,
    /// What to make it of.
    pub template: Arc<Template>,
    /// The policy that says so: its name and uid.
    pub policy: (PolicyName, Arc<str>),
    /// What it may use: its requests and limits.
    pub resources: Resources,
    /// Taints to tolerate.
    pub tolerations: Vec<Toleration>,
}

impl Plan {
    /// The name of the pod. It follows from the slot alone, so that the API server itself refuses a second one for it.
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
    /// Its containers have not started.
    Waits,
    /// They have.
    Runs,
    /// It has ended.
    Over,
}

/// What the shell sees of a backfill pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The pod.
    pub pod: PodRef,
    /// Its machine.
    pub machine: MachineName,
    /// The standing slot of that machine that it was made for; none where it does not say so.
    pub slot: Option<u32>,
    /// The mark of the template that it was made of.
    pub mark: Arc<str>,
    /// How far it has come.
    pub phase: Phase,
    /// When its main container started, while it runs.
    pub started: Option<Time>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// What it requests; none if the pod cannot be decoded and was not seen before.
    pub requests: Option<Capacity>,
}

/// A backfill pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// What was seen of it last.
    pub facts: Facts,
    /// When it was asked to go.
    pub asked: Option<Time>,
    /// It was killed: its grace was cut off.
    pub killed: bool,
}

impl Work {
    /// Whether it holds anything.
    pub fn lives(&self) -> bool {
        self.facts.phase != Phase::Over
    }

    /// What the pod holds of its machine while the pod lives. A pod whose requests are unknown may hold all that its slot is,
    /// or all that the machine has if the pod names no slot of the machine.
    pub fn holds<'a>(&'a self, machine: &Machine) -> Cow<'a, Capacity> {
        let slot = || self.facts.slot.and_then(|id| machine.standing.get(&id));
        match &self.facts.requests {
            Some(requests) => Cow::Borrowed(requests),
            None => Cow::Owned(Capacity::of(slot().map_or(&machine.total, |slot| &slot.total))),
        }
    }

    /// Whether it is the pod that would be made for a slot: the labels alone prove nothing, since anybody may write them.
    pub fn is_of(&self, slot: &SlotName, template: &Template) -> bool {
        let pod = &self.facts.pod;
        self.facts.slot == Some(slot.slot)
            && self.facts.mark == template.mark
            && pod.namespace == template.namespace
            && *pod.name == *pod_name(slot)
    }
}

/// How far the backfill work of a slot has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// There is none.
    #[default]
    None,
    /// Its pod was asked for, or does not run yet.
    Coming,
    /// It runs.
    Runs,
}

/// How a slot's next pod stands.
#[derive(Clone, Debug, Default, PartialEq)]
struct Making {
    /// What was asked for and is not seen yet.
    asked: Option<Asked>,
    /// How often in a row a pod could not be made, or ended soon.
    times: u32,
    /// When the next may be asked for.
    until: Time,
}

#[derive(Clone, Debug, PartialEq)]
struct Asked {
    resources: Resources,
    /// The namespace that it is made in.
    namespace: Arc<str>,
    /// The answer is here, or none will come: when the pod is looked for, unless it is seen before.
    looked_for_at: Option<Time>,
}

/// Whether work that holds something holds more than claims leave of this. Of what there is none nothing is managed.
fn exceeds(held: &Capacity, total: &Resources, claims: &[&Resources]) -> bool {
    let mut left = Capacity::of(total);
    for claimed in claims {
        left.subtract(&Capacity::of(claimed));
    }
    left.subtract(held);
    let over = left.milli_cpu < 0
        || left.memory < 0
        || left.disk < 0 && total.disk_kib > 0
        || left.extended.iter().any(|(name, amount)| *amount < 0 && total.extended.contains_key(name));
    over && *held != Capacity::default()
}

/// How long a watch may take to show a pod that was made, or of which nobody knows, before it is looked for.
const EXPECTED: Duration = Duration::from_mins(1);

/// Work that has run for so long was worth beginning.
const WORTH_IT: Duration = Duration::from_mins(10);

/// How often people are told that pods cannot be made.
const TOLD_EVERY: Duration = Duration::from_mins(10);

/// All backfill work.
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

    /// A pod.
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

    /// Whether there is none at all, as in most pools.
    fn is_none(&self) -> bool {
        self.pods.is_empty() && self.making.is_empty()
    }

    /// Whether nothing of it is on a machine.
    pub fn is_off(&self, machine: &MachineName) -> bool {
        self.is_none() || !self.on(machine).any(Work::lives) && self.asked_on(machine).next().is_none()
    }

    /// How far the work of a standing slot has come.
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

    /// What it holds of a machine, or is about to.
    pub fn held(&self, machine: &Machine) -> Capacity {
        let name = &machine.facts.name;
        let mut held = Capacity::default();
        self.on(name).filter(|work| work.lives()).for_each(|work| held.add(&work.holds(machine)));
        self.asked_on(name).for_each(|asked| held.add(&Capacity::of(&asked.resources)));
        held
    }

    /// Whether a slot's work and the claims on the slot, with one more of this size, hold more than the slot does.
    pub fn over_holds(&self, machine: &Machine, slot: &MachineSlot, more: &Resources) -> bool {
        let name = slot.name(&machine.facts.name);
        let mut held = Capacity::default();
        self.of(&name).filter(|work| work.lives()).for_each(|work| held.add(&work.holds(machine)));
        let asked = self.making.get(&name).and_then(|making| making.asked.as_ref());
        if let Some(asked) = asked {
            held.add(&Capacity::of(&asked.resources));
        }
        exceeds(&held, &slot.total, &[&slot.carved, more])
    }

    /// Whether all work on a machine and all claims, with one more of this size, hold more than the machine has.
    pub fn crowds(&self, machine: &Machine, more: &Resources) -> bool {
        exceeds(&self.held(machine), &machine.total, &[&machine.carved, more])
    }

    /// Whether what a claim on a slot is to have, of this size beside what is carved already, may not be free yet.
    pub fn holds(&self, machine: &Machine, slot: &MachineSlot, more: &Resources) -> bool {
        !self.is_off(&machine.facts.name)
            && (self.over_holds(machine, slot, more) || self.crowds(machine, more))
    }

    /// Whether a pod of a slot may be asked for: none is there or expected, and the last failure is long ago.
    pub fn may_make(&self, slot: &SlotName, now: Time) -> bool {
        let rests = self.making.get(slot).is_some_and(|making| making.until > now || making.asked.is_some());
        // One that has ended has the name still.
        !rests && self.of(slot).next().is_none()
    }

    /// Keeps in mind that a pod was asked for.
    pub fn ask(&mut self, slot: &SlotName, namespace: Arc<str>, resources: Resources) {
        let making = self.making.entry(slot.clone()).or_default();
        making.asked = Some(Asked { resources, namespace, looked_for_at: None });
    }

    /// The slots whose pods should have been seen by now, and the namespaces in which these are to be looked for. They are
    /// looked for again when that is no answer either.
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

    /// When a machine's backfill work has to be looked at though nothing happens, beside the ends of kills.
    pub fn wake(&self, machine: &MachineName, now: Time) -> Option<Time> {
        let of = |making: &Making| {
            let looked_for = making.asked.as_ref().and_then(|asked| asked.looked_for_at);
            let rests = (making.until > now).then_some(making.until);
            [looked_for, rests]
        };
        self.making_on(machine).flat_map(|(_, making)| of(making)).flatten().min()
    }

    /// The answer is here, or none will come: the pod may be seen for a while.
    pub(super) fn expect(&mut self, slot: &SlotName, now: Time) {
        if let Some(asked) = self.making.get_mut(slot).and_then(|making| making.asked.as_mut()) {
            asked.looked_for_at = Some(now + EXPECTED);
        }
    }

    /// Nothing is expected any more.
    pub(super) fn settle(&mut self, slot: &SlotName) {
        if let Some(making) = self.making.get_mut(slot) {
            making.asked = None;
        }
    }

    /// Its pod could not be made, or ended by itself: the next waits, longer each time.
    pub(super) fn failed(&mut self, slot: &SlotName, now: Time) {
        let making = self.making.entry(slot.clone()).or_default();
        making.times = making.times.saturating_add(1);
        making.until = now + Cooling::wait(making.times);
    }

    /// A pod has ended or is gone.
    pub(super) fn ended(&mut self, work: &Work, now: Time) {
        let Some(slot) = work.facts.slot.filter(|_| work.asked.is_none()) else { return };
        let slot = SlotName { machine: work.facts.machine.clone(), slot, dynamic: None };
        if work.facts.started.is_some_and(|started| now.since(started) >= WORTH_IT) {
            self.making.remove(&slot);
        } else {
            self.failed(&slot, now);
        }
    }

    /// Whether people are to be told now that pods of a policy cannot be made.
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
