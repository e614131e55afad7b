//! Events about machines, and about pods outside the pool that hold resources of machines.

use super::Pool;
use super::ids::{MachineName, PodUid};
use super::machine::{Machine, MachineFacts, Offer};
use super::marks::Change;
use super::resources::Capacity;
use super::time::Time;

impl Pool {
    pub(super) fn machine(&mut self, facts: MachineFacts, now: Time) {
        let name = facts.name.clone();
        let (foreign, beyond) = self.outside_on(&name);
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
                let mut machine = Machine::new(facts, foreign, now);
                machine.change_beyond(|sum| sum.add(&beyond));
                self.machines.insert(name.clone(), machine);
                self.look_at_agent(&name, now);
            }
        }
        self.absent_no_more(&name);
        self.changed(Change::Node(&name));
    }

    /// A machine whose node is not known, with what pods outside its slots take from it.
    pub(super) fn machine_of_nothing(&self, name: &MachineName, now: Time) -> Machine {
        let (foreign, beyond) = self.outside_on(name);
        let mut machine = Machine::gone(name.clone(), foreign, now);
        machine.change_beyond(|sum| sum.add(&beyond));
        machine
    }

    pub(super) fn heartbeat(&mut self, name: MachineName, now: Time, until: Time) {
        self.heartbeats.beat(&name, now, until);
        if self.machines.get(&name).is_some_and(|machine| machine.offer == Offer::Silent) {
            self.changed(Change::Machine(&name));
        }
    }

    pub(super) fn machine_gone(&mut self, name: &MachineName) {
        if let Some(machine) = self.machines.get_mut(name) {
            machine.offer = Offer::Gone;
            self.changed(Change::Node(name));
        }
    }

    /// Counts a pod outside the pool against its machine.
    pub(super) fn hold_foreign(&mut self, pod: PodUid, machine: MachineName, requests: Capacity) {
        self.hold_outside(pod, Outside { machine, requests, beyond: false });
    }

    /// Counts what a pod of the pool requests beyond its slot.
    pub(super) fn hold_beyond(&mut self, pod: PodUid, machine: MachineName, requests: Capacity) {
        self.hold_outside(pod, Outside { machine, requests, beyond: true });
    }

    fn hold_outside(&mut self, pod: PodUid, held: Outside) {
        if self.outside.get(&pod) == Some(&held) {
            return;
        }
        self.drop_outside(&pod);
        self.weigh_outside(&held, Capacity::add);
        self.outside.insert(pod, held);
    }

    /// Stops counting what a pod holds outside all slots.
    pub(super) fn drop_outside(&mut self, pod: &PodUid) {
        if let Some(held) = self.outside.remove(pod) {
            self.weigh_outside(&held, Capacity::subtract);
        }
    }

    fn weigh_outside(&mut self, held: &Outside, weigh: fn(&mut Capacity, &Capacity)) {
        let Some(host) = self.machines.get_mut(&held.machine) else { return };
        if held.beyond {
            // The machine itself and the weight that groups share stay the same.
            if host.change_beyond(|beyond| weigh(beyond, &held.requests)) {
                self.changed(Change::ToCarve(&held.machine));
            }
        } else {
            weigh(&mut host.foreign, &held.requests);
            host.recount();
            self.changed(Change::Node(&held.machine));
        }
    }

    /// The sums of what pods outside the pool hold of the machine, and of what pods of the pool request beyond their
    /// slots. Zero for a machine that is known: only for a new machine are the sums needed, since pods may be seen
    /// before their node.
    fn outside_on(&self, name: &MachineName) -> (Capacity, Capacity) {
        let (mut foreign, mut beyond) = (Capacity::default(), Capacity::default());
        if !self.machines.contains_key(name) {
            for held in self.outside.values().filter(|held| held.machine == *name) {
                let sum = if held.beyond { &mut beyond } else { &mut foreign };
                sum.add(&held.requests);
            }
        }
        (foreign, beyond)
    }
}

/// The resources that one pod requests of a machine outside all slots.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outside {
    machine: MachineName,
    requests: Capacity,
    /// The pod belongs to the pool, and `requests` is what it requests beyond its slot.
    beyond: bool,
}
