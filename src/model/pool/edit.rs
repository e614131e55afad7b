//! Editing methods, by which the deciders change what the pool holds.
//!
//! Each method hands an object to a closure, compares before and after what others depend on, and names the changes
//! that it finds. The table in `marks` says what follows. So a caller cannot forget a mark.

use std::sync::Arc;

use super::Pool;
use super::drain::{Drain, Draining};
use super::event::Remains;
use super::ids::{JobUid, MachineName, PolicyName, SlotName};
use super::job::{Job, Matchable};
use super::machine::{Machine, Offer};
use super::machine_slot::MachineSlot;
use super::made::LastAds;
use super::marks::Change;
use super::slot::{Activation, Record, Removal, Slot, State, Unclaimed};
use super::waits::Waits;

/// The parts of a claimed slot on which its next step depends, and which an edit may change.
#[derive(PartialEq)]
struct SlotFace {
    activation: Activation,
    record: Record,
    removal: Option<Removal>,
}

impl SlotFace {
    fn of(slot: &Slot) -> Self {
        Self { activation: slot.activation().clone(), record: slot.record(), removal: slot.removal() }
    }
}

/// The parts of a machine that other code depends on.
struct MachineFace {
    offer: Offer,
    policy: Option<PolicyName>,
    tied: Vec<PolicyName>,
    unfit: Option<String>,
    draining: Option<Draining>,
    crossed: Arc<[(String, classad::Expr)]>,
}

impl MachineFace {
    fn of(machine: &Machine) -> Self {
        Self {
            offer: machine.offer.clone(),
            policy: machine.policy.clone(),
            tied: machine.tied.clone(),
            unfit: machine.unfit.clone(),
            draining: machine.draining.clone(),
            crossed: Arc::clone(&machine.crossed),
        }
    }
}

/// Returns whether both are the same drain, and whether the drain goes on at the same pace: the deadline is the same,
/// and so is whether further jobs may fill in.
fn same_drain(before: Option<&Draining>, after: Option<&Draining>) -> (bool, bool) {
    match (before, after) {
        (None, None) => (true, true),
        (Some(before), Some(after)) => (
            before.why == after.why && before.since == after.since && before.schedule == after.schedule,
            before.deadline == after.deadline && before.start.is_some() == after.start.is_some(),
        ),
        _ => (false, false),
    }
}

impl Pool {
    /// Changes a claimed slot. If its activation, record or removal changed, the slot is marked; a changed latched
    /// value is marked as well.
    pub fn edit_slot<T>(&mut self, name: &SlotName, edit: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        let slot = self.slots.get_mut(name)?;
        let (before, latched) = (SlotFace::of(slot), slot.latched().to_vec());
        let result = edit(slot);
        let (step, latched) = (SlotFace::of(slot) != before, slot.latched() != latched);
        if step {
            self.changed(Change::Slot(name));
        }
        if latched {
            self.changed(Change::Latched);
        }
        Some(result)
    }

    /// Changes a claimed slot that the caller drives. Nothing is marked, since the caller looks at the slot until it
    /// rests.
    pub fn step_slot<T>(&mut self, name: &SlotName, edit: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        self.slots.get_mut(name).map(edit)
    }

    /// A claimed slot has taken transitions and rests. Its status is written, unless its next state will come in a
    /// moment: writing that a slot is Idle whose pod is about to be created, or Cleaning with nothing left to clean, would cost
    /// a write for each proc. If the slot's claim has just been activated, its status is written once the proc has lasted.
    pub fn slot_rests(&mut self, name: &SlotName) {
        let begins = self.lasts_yet(name);
        let Some(machine) = self.machines.get(&name.machine) else {
            return;
        };
        let seen = machine.sensed.is_some() || !self.startd(machine).slot_attrs.is_empty();
        let passing = self.slots.get(name).is_some_and(|slot| {
            matches!(slot.state(), State::Matched | State::Owner | State::Backfill(_))
                || (slot.is_assigned() || slot.is_requested())
                || matches!(slot.activation(), Activation::Ended(_, Remains::Nothing))
        });
        if !passing && !begins {
            self.claim_lasts(name);
        }
        self.changed(Change::Rests { slot: name, seen, passing: passing || begins });
    }

    /// Changes a machine. If the machine's offer, policy or drain changed, all that depends on the change is marked.
    pub fn edit_machine<T>(&mut self, name: &MachineName, edit: impl FnOnce(&mut Machine) -> T) -> Option<T> {
        let machine = self.machines.get_mut(name)?;
        let before = MachineFace::of(machine);
        let result = edit(machine);
        let after = MachineFace::of(machine);
        if before.offer != after.offer {
            self.changed(Change::Offer(name));
        }
        if before.policy != after.policy {
            self.changed(Change::PolicyOf { before: before.policy.as_ref(), after: after.policy.as_ref() });
        }
        if before.tied != after.tied {
            self.changed(Change::Tied { before: &before.tied, after: &after.tied });
        }
        if before.unfit != after.unfit {
            self.changed(Change::Unfit(name));
        }
        match same_drain(before.draining.as_ref(), after.draining.as_ref()) {
            (false, _) => self.changed(Change::Draining(name)),
            (true, false) => self.changed(Change::DrainPace(name)),
            (true, true) => {}
        }
        if *before.crossed != *after.crossed {
            self.changed(Change::Crossed);
        }
        Some(result)
    }

    /// Gives access to a machine, and to the ads that were made last, in order to store ads that were made of the machine. The ads
    /// are not part of the machine, so that nothing is marked.
    pub fn keep_ads<T>(
        &mut self,
        name: &MachineName,
        keep: impl FnOnce((&mut Machine, &mut LastAds)) -> T,
    ) -> Option<T> {
        self.machines.get_mut(name).map(|machine| keep((machine, &mut self.last_ads)))
    }

    /// Changes an unclaimed machine slot. If its state changed, its object is written.
    pub fn edit_machine_slot<T>(
        &mut self,
        name: &SlotName,
        edit: impl FnOnce(&mut MachineSlot) -> T,
    ) -> Option<T> {
        let slot = self.machines.get_mut(&name.machine)?.machine_slots.get_mut(&name.slot)?;
        let before = (slot.state(), slot.latched.clone());
        let result = edit(slot);
        let (state, latched, document) =
            (slot.state() != before.0, slot.latched != before.1, slot.document(&name.machine));
        let idle = slot.state() == State::Unclaimed(Unclaimed::Idle);
        if state {
            self.changed(Change::MachineSlot { document: &document, idle });
        }
        if latched {
            self.changed(Change::Latched);
        }
        Some(result)
    }

    /// Changes a job. If the answer to whether it can be matched, what it waits for, or whether its pods are refused
    /// changed, its status is written.
    pub fn edit_job<T>(&mut self, uid: &JobUid, edit: impl FnOnce(&mut Job) -> T) -> Option<T> {
        let job = self.jobs.get_mut(uid)?;
        let face = |job: &Job| -> (Matchable, Option<Waits>, Option<Arc<str>>) {
            (job.matchable.clone(), job.waits.clone(), job.refused.clone())
        };
        let before = face(job);
        let result = edit(job);
        if face(job) != before {
            self.changed(Change::JobStatus(uid));
        }
        Some(result)
    }

    /// Changes a submitter as an admin would, without a Submitter object.
    #[cfg(test)]
    pub fn set_submitter(&mut self, name: &str, edit: impl FnOnce(&mut super::Submitter)) {
        let name = name.into();
        self.submitters.edit(&name, edit);
        self.changed(Change::SubmitterSet(&name));
    }

    /// Changes the state of a DrainRequest. If its phase changed, its status is written, and people are told.
    pub fn edit_drain<T>(&mut self, request: &Arc<str>, edit: impl FnOnce(&mut Drain) -> T) -> Option<T> {
        let (news, result) = self.drains.edit(request, |drain| {
            let before = drain.phase.clone();
            let result = edit(drain);
            (drain.phase != before, result)
        })?;
        if news {
            self.changed(Change::DrainStatus(request));
            self.tell_of_drain(request);
        }
        Some(result)
    }
}
