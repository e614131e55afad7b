//! Events into the pool: machines, and what pods outside the pool hold of them.

use super::ids::{MachineName, PodUid};
use super::machine::{Machine, MachineFacts, Offer};
use super::resources::Capacity;
use super::time::Time;
use super::{Document, Pool};

impl Pool {
    pub(super) fn machine(&mut self, facts: MachineFacts, now: Time) {
        let name = facts.name.clone();
        let foreign = self.foreign_on(&name);
        match self.machines.get_mut(&name) {
            Some(machine) if machine.facts == facts && machine.offer != Offer::Gone => return,
            Some(machine) => {
                machine.facts = facts;
                machine.recount();
                // The node is back: the deciders work out what it offers.
                machine.offer =
                    if machine.offer == Offer::Gone { Offer::NotReady } else { machine.offer.clone() };
            }
            None => {
                self.machines.insert(name.clone(), Machine::new(facts, foreign, now));
                self.look_at_agent(&name, now);
            }
        }
        self.machine_changed(name);
    }

    pub(super) fn heartbeat(&mut self, name: MachineName, now: Time, until: Time) {
        self.heartbeats.beat(&name, now, until);
        if self.machines.get(&name).is_some_and(|machine| machine.offer == Offer::Silent) {
            self.attention.machines.insert(name);
        }
    }

    fn machine_changed(&mut self, name: MachineName) {
        self.offers += 1;
        self.schedule.wanted = true;
        self.touch_standing(&name);
        self.attention.machines.insert(name);
        // Dynamic quotas are shares of the pool.
        self.stale.extend(self.groups.keys().cloned().map(Document::Group));
    }

    pub(super) fn machine_gone(&mut self, name: &MachineName) {
        if let Some(machine) = self.machines.get_mut(name) {
            machine.offer = Offer::Gone;
            self.machine_changed(name.clone());
        }
    }

    /// Counts a pod outside the pool against its machine.
    pub(super) fn hold_foreign(&mut self, pod: PodUid, machine: MachineName, requests: Capacity) {
        if self.foreign.get(&pod).is_some_and(|held| held.0 == machine && held.1 == requests) {
            return;
        }
        self.drop_foreign(&pod);
        if let Some(host) = self.machines.get_mut(&machine) {
            host.foreign.add(&requests);
            host.recount();
            self.machine_changed(machine.clone());
        }
        self.foreign.insert(pod, (machine, requests));
    }

    /// Counts a pod outside the pool no longer.
    pub(super) fn drop_foreign(&mut self, pod: &PodUid) {
        let Some((machine, requests)) = self.foreign.remove(pod) else { return };
        if let Some(host) = self.machines.get_mut(&machine) {
            host.foreign.subtract(&requests);
            host.recount();
            self.machine_changed(machine);
        }
    }

    /// What pods outside the pool request on a machine that was just seen: pods may be seen before their node.
    fn foreign_on(&self, name: &MachineName) -> Capacity {
        let mut sum = Capacity::default();
        if !self.machines.contains_key(name) {
            for (_, requests) in self.foreign.values().filter(|(machine, _)| machine == name) {
                sum.add(requests);
            }
        }
        sum
    }
}
