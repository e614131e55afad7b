//! Absent machines: machines whose nodes went, and that stay listed with their last ads ("Absent ClassAds").
//!
//! A machine is absent from the deletion of its node until the node comes back, somebody deletes the AbsentMachine, or
//! `ABSENT_EXPIRE_ADS_AFTER` is over. Nothing is ever matched to an absent machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Pool;
use super::ids::{MachineName, SlotName};
use super::machine::Offer;
use super::marks::Change;
use super::time::Time;
use super::timers::Timers;
use classad::Expr;

/// Which machines stay listed when their nodes go, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Absence {
    /// `ABSENT_REQUIREMENTS`: true of the ads that stay.
    pub requirements: Expr,
    /// `ABSENT_EXPIRE_ADS_AFTER`; `None`: for ever.
    pub expires_after: Option<Duration>,
    /// `EXPIRE_INVALIDATED_ADS`: whether a machine that was in order until its node was deleted stays listed, too.
    pub in_good_order: bool,
}

/// A machine whose node went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentMachine {
    /// The machine.
    pub name: MachineName,
    /// When the node went, in whole seconds.
    pub since: Time,
    /// When the machine is forgotten; `None`: never.
    pub until: Option<Time>,
    /// The last ad of each slot into which the machine was divided, in the long form.
    pub slots: Vec<(SlotName, Arc<str>)>,
}

/// The machines that are absent.
#[derive(Clone, Debug, Default)]
pub(super) struct Absentees {
    machines: BTreeMap<MachineName, AbsentMachine>,
    ends: Timers<MachineName>,
}

impl Absentees {
    /// When the next machine is forgotten.
    pub(super) fn next(&self) -> Option<Time> {
        self.ends.next()
    }
}

impl Pool {
    /// The machine of this name, if the machine is absent.
    pub fn absent(&self, name: &MachineName) -> Option<&AbsentMachine> {
        self.absent.machines.get(name)
    }

    /// Lists a machine as absent.
    pub fn list_absent(&mut self, machine: AbsentMachine) {
        let name = machine.name.clone();
        self.absent.ends.set(&name, machine.until);
        self.absent.machines.insert(name.clone(), machine);
        self.changed(Change::Absent(&name));
    }

    /// An object says that a machine is absent. The pool takes over what it does not know better: whoever leads learns from the
    /// objects which machines are absent.
    pub(super) fn absent_seen(&mut self, machine: AbsentMachine) {
        let there = self.machines.get(&machine.name).is_some_and(|known| known.offer != Offer::Gone);
        if there || self.absent.machines.contains_key(&machine.name) {
            self.changed(Change::Absent(&machine.name));
        } else {
            self.list_absent(machine);
        }
    }

    /// The object of an absent machine is gone. If somebody else deleted the object, the machine is forgotten: `since` is the time
    /// that the object gave.
    pub(super) fn absent_deleted(&mut self, name: &MachineName, since: Time) {
        if self.absent(name).is_some_and(|machine| machine.since == since) {
            self.absent_no_more(name);
        } else {
            self.changed(Change::Absent(name));
        }
    }

    /// Takes a machine off the list: its node is back, or nobody is to remember the machine any more.
    pub(super) fn absent_no_more(&mut self, name: &MachineName) {
        if self.absent.machines.remove(name).is_some() {
            self.absent.ends.set(name, None);
            self.changed(Change::Absent(name));
        }
    }

    /// Forgets the machines that have been absent for long enough.
    pub(super) fn forget_absent(&mut self, now: Time) {
        while let Some(name) = self.absent.ends.pop_due(now) {
            self.absent_no_more(&name);
        }
    }
}
