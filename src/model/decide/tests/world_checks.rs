//! The rules that must hold in the world in memory after each step.

use std::collections::BTreeSet;

use super::invariants;
use super::world::{Pod, World};
use crate::pool::limits::LimitBook;
use crate::pool::{Capacity, MachineName, Ranges, Record, Resources, Slot, State, backfill};

impl World {
    /// Checks that the living pods on a node request no more than the node has.
    pub(super) fn check_pods(&self) {
        for (name, facts) in &self.machines {
            let mut sum = Capacity::default();
            let backfill = self.backfill.values().filter(|pod| pod.phase != backfill::Phase::Over);
            backfill
                .filter(|pod| pod.machine.as_str() == name)
                .filter_map(|pod| pod.requests.as_ref())
                .for_each(|own| sum.add(own));
            let left = |pod: &&Pod| pod.facts.end.is_none() || pod.settles.is_some();
            let pods = self.pods.values().filter(left);
            pods.filter(|pod| pod.plan.slot.machine.as_str() == name)
                .for_each(|pod| sum.add(&Capacity::of(&pod.plan.resources)));
            let most = &facts.allocatable;
            assert!(sum.milli_cpu <= most.milli_cpu && sum.memory <= most.memory, "{name}: {sum:?}");
        }
    }

    /// Checks that the pool counts everything that Slot objects say claims hold of limits: a leader that starts now
    /// would find no more.
    pub(super) fn check_limits(&self) {
        let mut held = LimitBook::default();
        self.slots.values().for_each(|(_, claim)| held.used(&claim.limits));
        for (name, tally, _) in held.in_use() {
            let counted = self.pool.holdings().book().tally(name);
            assert!(tally.amount <= counted.amount + 1e-9, "{name}: {tally:?} are held, {counted:?} counted");
        }
    }

    /// Checks that the history has each end that a job's status records. After a disk has hung, some ends are missing.
    fn check_history(&self) {
        let Some(history) = self.history.as_ref().filter(|_| !self.disk_hangs) else { return };
        for facts in self.jobs.values() {
            let recorded = [&facts.succeeded, &facts.failed, &facts.life.removed];
            for proc in recorded.into_iter().flat_map(Ranges::iter) {
                let id = format!("default#{}.{proc}#{}", facts.cluster_id.unwrap_or(0), facts.key.uid);
                assert!(history.contains_key(&id), "{id} is recorded, and not in the history");
            }
        }
    }

    /// Checks the invariants that hold at any time.
    pub(super) fn check(&self) {
        self.check_pods();
        self.check_limits();
        invariants::always(&self.pool, self.now);
        self.check_history();
        let requested = self.pool.slots().values().filter(|slot| slot.is_requested()).map(Slot::name);
        assert_eq!(self.pool.asked_for_pods(), requested.collect::<Vec<_>>());
        for (name, machine) in self.pool.machines() {
            let mut carved = Resources::default();
            for slot in self.pool.slots().values().filter(|slot| slot.name().machine == *name) {
                carved.add(slot.resources());
            }
            assert_eq!(
                (carved.cpus, carved.memory_mib),
                (machine.carved.cpus, machine.carved.memory_mib),
                "{name}"
            );
            assert!(machine.carved.is_as_much_as(&carved), "{name}: {} and {carved}", machine.carved);
            no_device_twice(name, &carved);
            // The node does not say which devices it has.
            carved.devices.clear();
            let facts = self.machines.get(name.as_str());
            if let Some(facts) = facts {
                // The node does not have the resources that its policy declares.
                carved.extended.retain(|name, _| !machine.declared.contains_key(name));
                assert!(carved.fits_in(&facts.allocatable.whole()), "{name}: {carved} are carved");
            }
        }
        for (uid, job) in self.pool.jobs() {
            let Some(spec) = &job.spec else { continue };
            let sum = job.idle.len()
                + job.running() as u64
                + job.succeeded.len()
                + job.failed.len()
                + job.removed.len()
                + job.on_hold.len() as u64;
            // Procs that ran when the count was lowered are still there, or have ended since.
            let active = job.active.range(spec.count..).map(|(proc, _)| *proc);
            let held = job.on_hold.range(spec.count..).map(|(proc, _)| *proc);
            let ended = [&job.succeeded, &job.failed, &job.removed].into_iter().flat_map(Ranges::iter);
            let ended = ended.filter(|proc| *proc >= spec.count);
            let beyond = active.chain(held).chain(ended).collect::<BTreeSet<u32>>().len() as u64;
            assert!(job.removing || sum == u64::from(spec.count) + beyond, "{uid:?}: {sum} procs");
        }
        for slot in self.pool.slots().values() {
            assert!(
                slot.record() == Record::Deleting
                    || !matches!(slot.state(), State::Owner | State::Unclaimed(_)),
                "{}: {:?}",
                slot.name(),
                slot.state()
            );
        }
    }
}

/// Checks that each device is held by one claim.
fn no_device_twice(machine: &MachineName, carved: &Resources) {
    for (resource, ids) in &carved.devices {
        let mut seen = BTreeSet::new();
        assert!(ids.iter().all(|id| seen.insert(id)), "{machine}: of {resource}, {ids:?} are held");
        assert!(
            i64::try_from(ids.len()).unwrap() <= carved.amount(resource),
            "{machine}: {ids:?} and {carved}"
        );
    }
}
