//! Machines: what their owners and agents do, and how they leave the pool and come back.

use super::World;
use crate::owner::pause;
use crate::queue::Happening;
use model::pool::{Benchmarks, Event, MachineName, PodUid, Pool, ReportFacts, Time};

impl World<'_> {
    /// The machine's agent suspends or resumes a pod, and reports that. On a machine without an agent nothing
    /// happens.
    pub(super) fn suspend(&mut self, uid: &PodUid, suspended: bool, pool: &mut Pool, now: Time) {
        let Some(index) = self.living(uid).map(|pod| pod.host) else { return };
        if self.machines.get(index).is_none_or(|host| host.owner.is_none()) {
            return;
        }
        let Some(pod) = self.pods.get_mut(uid) else { return };
        match pod.suspended {
            None if suspended => pod.suspended = Some(now),
            Some(since) if !suspended => {
                pod.suspended = None;
                pod.suspended_before += now.since(since);
            }
            _ => return,
        }
        let ends = pod.ends();
        let Some(host) = self.machines.get_mut(index) else { return };
        if suspended {
            host.suspended.insert(uid.clone());
        } else {
            host.suspended.remove(uid);
        }
        if let Some(ends) = ends {
            self.queue.schedule(ends, Happening::PodEnds(uid.clone()));
        }
        self.report(index, pool, now);
    }

    /// Updates whether a machine's owner is present, and schedules the next update.
    pub(super) fn owner(&mut self, index: usize, pool: &mut Pool, now: Time) {
        let Some(owner) = self.machines.get_mut(index).and_then(|host| host.owner.as_mut()) else { return };
        if let Some(next) = owner.advance(now) {
            self.queue.schedule(next, Happening::Owner(index));
        }
        self.sense(index, pool, now);
    }

    /// Tells the pool what the agent of a machine reports. Only machines with an owner have an agent.
    pub(super) fn report(&self, index: usize, pool: &mut Pool, now: Time) {
        let Some(host) = self.machines.get(index).filter(|host| host.here) else { return };
        let Some(owner) = &host.owner else { return };
        let report = ReportFacts {
            sensed: Some(owner.sensed(now)),
            suspended: host.suspended.clone(),
            benchmarks: host.benchmarks,
            ..ReportFacts::of(host.facts.name.clone())
        };
        pool.apply(Event::Report(report), now);
    }

    /// A machine's agent has run its benchmarks. Scenarios do not say how fast machines are, so the results are 0.
    pub(super) fn benchmarked(&mut self, machine: &MachineName, pool: &mut Pool, now: Time) {
        let Some(index) = self.hosts.get(machine).copied() else { return };
        if let Some(host) = self.machines.get_mut(index) {
            host.benchmarks = Some(Benchmarks { mips: 0, kflops: 0, at: now });
        }
        self.report(index, pool, now);
    }

    /// Tells the pool what the agent of a machine reports, and whether the owner's pods run there.
    fn sense(&self, index: usize, pool: &mut Pool, now: Time) {
        let Some(host) = self.machines.get(index).filter(|host| host.here) else { return };
        let Some(owner) = &host.owner else { return };
        let machine = &host.facts.name;
        self.report(index, pool, now);
        let pod = owners_pod(machine);
        pool.apply(
            match owner.pods(now) {
                Some(pods) => Event::ForeignPod { pod, machine: machine.clone(), requests: pods.clone() },
                None => Event::ForeignPodGone(pod),
            },
            now,
        );
    }

    /// A machine leaves the pool.
    pub(super) fn leaves(&mut self, index: usize, pool: &mut Pool, now: Time) {
        let Some(host) = self.machines.get_mut(index) else { return };
        host.here = false;
        host.left.push(now);
        host.suspended.clear();
        pool.apply(Event::ForeignPodGone(owners_pod(&host.facts.name)), now);
        pool.apply(Event::MachineGone(host.facts.name.clone()), now);
        if let Some(absence) = &host.group.absence {
            self.queue.schedule(now + pause(&absence.away, &mut host.rng), Happening::Returns(index));
        }
    }

    /// A machine joins the pool, for the first time or again.
    pub(super) fn arrives(&mut self, index: usize, pool: &mut Pool, now: Time) {
        let Some(host) = self.machines.get_mut(index) else { return };
        host.here = true;
        pool.apply(Event::Machine(host.facts.clone()), now);
        if let Some(absence) = &host.group.absence {
            self.queue.schedule(now + pause(&absence.after, &mut host.rng), Happening::Leaves(index));
        }
        self.sense(index, pool, now);
    }
}

/// The UID of the one pod that stands for all pods of a machine's owner.
fn owners_pod(machine: &MachineName) -> PodUid {
    format!("owner-{machine}").into()
}
