//! Agents: they sense a machine's owner, suspend pods, and measure the machine. Keeps the last report of each agent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Pool;
use super::cron::{Crontab, SlotOutput};
use super::fence::Renewal;
use super::ids::{MachineName, PodUid, SlotName};
use super::machine::Sensed;
use super::marks::Change;
use super::resources::{DeviceId, ResourceName};
use super::slot::Slot;
use super::time::Time;
use classad::{Ad, Expr};

/// The facts of a `NodeReport`, as the shell sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportFacts {
    /// The machine: the report's name.
    pub machine: MachineName,
    /// False if the agent says that it cannot work.
    pub working: bool,
    /// Signs of the machine's owner; `None` if the agent senses none.
    pub sensed: Option<Sensed>,
    /// The load of the pool's pods, in processes: `TotalCondorLoadAvg`. The owner's load is in `sensed`.
    pub pool_load: f64,
    /// The pods whose processes are suspended.
    pub suspended: BTreeSet<PodUid>,
    /// The present usage of pods of the pool.
    pub usage: BTreeMap<PodUid, Usage>,
    /// The devices that the kubelet has given to pods of the pool, as far as the agent was told.
    pub pod_devices: BTreeMap<PodUid, BTreeMap<ResourceName, Vec<DeviceId>>>,
    /// The averages of the machine's benchmark runs.
    pub benchmarks: Option<Benchmarks>,
    /// Free scratch space, in KiB.
    pub disk_kib: Option<i64>,
    /// Free virtual memory, in KiB.
    pub virtual_memory_kib: Option<i64>,
    /// Devices, by resource and id.
    pub devices: Vec<Device>,
    /// Additional attributes for the machine's ad.
    pub attributes: Vec<(Arc<str>, Expr)>,
    /// Additional attributes for the ads of some slots.
    pub slot_ads: Vec<SlotOutput>,
    /// The attributes that are left out, because they are no expressions.
    pub unread: Vec<Arc<str>>,
    /// The cron jobs that the agent is asked to run; none if it was never asked.
    pub cron: Option<Crontab>,
}

impl ReportFacts {
    /// The report of an agent that works and has seen nothing yet.
    pub fn of(machine: MachineName) -> Self {
        Self {
            machine,
            working: true,
            sensed: None,
            pool_load: 0.0,
            suspended: BTreeSet::new(),
            usage: BTreeMap::new(),
            pod_devices: BTreeMap::new(),
            benchmarks: None,
            disk_kib: None,
            virtual_memory_kib: None,
            devices: Vec::new(),
            attributes: Vec::new(),
            slot_ads: Vec::new(),
            unread: Vec::new(),
            cron: None,
        }
    }

    /// Whether both reports agree about the machine itself: benchmarks, disk, memory, devices and attributes. Load, suspended
    /// pods and what pods use do not count.
    fn same_machine(&self, other: &Self) -> bool {
        self.benchmarks == other.benchmarks
            && self.disk_kib == other.disk_kib
            && self.virtual_memory_kib == other.virtual_memory_kib
            && self.devices == other.devices
            && self.attributes == other.attributes
            && self.slot_ads == other.slot_ads
    }

    /// Whether both reports agree about what the pool's own jobs do: their load, what they use, and their devices.
    fn same_jobs(&self, other: &Self) -> bool {
        self.pool_load.total_cmp(&other.pool_load).is_eq()
            && self.usage == other.usage
            && self.pod_devices == other.pod_devices
    }
}

/// The usage of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// `MemoryUsage`: memory in MiB, rounded up, without file pages that the kernel may drop at once.
    pub memory_mib: Option<i64>,
    /// `ResidentSetSize`: memory in KiB that belongs to no file.
    pub resident_kib: Option<i64>,
    /// `DiskUsage`: disk in KiB.
    pub disk_kib: Option<i64>,
    /// `CpusUsage`: CPUs in use, averaged over the last minute.
    pub cpus: Option<f64>,
    /// `BlockReads`: how many operations read from disks since the pod started.
    pub block_reads: Option<i64>,
    /// `BlockWrites`: how many operations wrote to disks.
    pub block_writes: Option<i64>,
    /// `BlockReadKbytes`: KiB read from disks.
    pub block_read_kib: Option<i64>,
    /// `BlockWriteKbytes`: KiB written to disks.
    pub block_write_kib: Option<i64>,
    /// The measurements of monitors, by the name of the attribute: `GPUsAverageUsage`.
    pub metrics: BTreeMap<Arc<str>, f64>,
}

/// The most measurements that a usage has. The statuses of jobs and reports have no room for more.
pub const MOST_METRICS: usize = 64;

impl Usage {
    /// Puts the amounts that are known into an ad. A metric does not replace what the ad has.
    pub(super) fn set_in(&self, ad: &mut Ad) {
        for (name, value) in &self.metrics {
            if !ad.contains(name) {
                ad.set(&**name, *value);
            }
        }
        let amounts = [
            ("MemoryUsage", self.memory_mib),
            ("ResidentSetSize", self.resident_kib),
            ("DiskUsage", self.disk_kib),
            ("BlockReads", self.block_reads),
            ("BlockWrites", self.block_writes),
            ("BlockReadKbytes", self.block_read_kib),
            ("BlockWriteKbytes", self.block_write_kib),
        ];
        for (name, amount) in amounts.into_iter().filter_map(|(name, amount)| Some((name, amount?))) {
            ad.set(name, amount);
        }
        if let Some(cpus) = self.cpus {
            ad.set("CpusUsage", cpus);
        }
    }

    /// Returns, for each amount, the larger of the two values. If only one of the two usages has an amount, the result
    /// has the value of that usage. Measurements of `other` for which there is no room are left out.
    #[must_use]
    pub fn most(self, other: &Self) -> Self {
        let cpus = [self.cpus, other.cpus].into_iter().flatten().max_by(f64::total_cmp);
        let mut metrics = self.metrics;
        for (name, value) in &other.metrics {
            if metrics.len() >= MOST_METRICS && !metrics.contains_key(name) {
                continue;
            }
            let known = metrics.entry(name.clone()).or_insert(*value);
            *known = known.max(*value);
        }
        Self {
            metrics,
            memory_mib: self.memory_mib.max(other.memory_mib),
            resident_kib: self.resident_kib.max(other.resident_kib),
            disk_kib: self.disk_kib.max(other.disk_kib),
            cpus,
            block_reads: self.block_reads.max(other.block_reads),
            block_writes: self.block_writes.max(other.block_writes),
            block_read_kib: self.block_read_kib.max(other.block_read_kib),
            block_write_kib: self.block_write_kib.max(other.block_write_kib),
        }
    }
}

/// The averages of a machine's benchmark runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Benchmarks {
    /// `Mips`: millions of integer instructions a second, by Dhrystone.
    pub mips: i64,
    /// `KFlops`: thousands of floating point operations a second, by Linpack.
    pub kflops: i64,
    /// `LastBenchmark`: when the run ended.
    pub at: Time,
}

impl Benchmarks {
    /// The averages after another run: "the startd keeps a weighted average of these benchmarking results". The old
    /// average counts three quarters. A run that measured nothing leaves the old average, and the first run counts
    /// whole.
    #[must_use]
    pub fn with(self, run: Self) -> Self {
        let weigh = |before: i64, now: i64| match (before, now) {
            (before, now) if now <= 0 => before,
            (before, now) if before <= 0 => now,
            (before, now) => before.saturating_mul(3).saturating_add(now) / 4,
        };
        Self { mips: weigh(self.mips, run.mips), kflops: weigh(self.kflops, run.kflops), at: run.at }
    }

    /// Whether the last run ended at or after `asked`, when a run was asked for. Reports have whole seconds, so that
    /// seconds are compared.
    pub fn answers(&self, asked: Time) -> bool {
        self.at.secs() >= asked.secs()
    }
}

/// One device of an extended resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// The resource, such as `nvidia.com/gpu`.
    pub resource: ResourceName,
    /// The device's id, as the kubelet's device plugin names it.
    pub id: Arc<str>,
    /// The device's properties: attributes and their expressions.
    pub properties: Vec<(Arc<str>, Expr)>,
}

impl Pool {
    pub(super) fn report(&mut self, facts: ReportFacts, now: Time) {
        let name = facts.machine.clone();
        if self.reports.get(&name).is_some_and(|known| **known == facts) {
            return;
        }
        self.cover(&facts, now);
        self.note_usage(&facts);
        self.reports.insert(name.clone(), Arc::new(facts));
        self.look_at_agent(&name, now);
    }

    /// Notes which pods the agent's promise covers: those whose usage the agent reports. The claims on a machine that is not
    /// silent are looked at when it becomes silent.
    fn cover(&mut self, facts: &ReportFacts, now: Time) {
        let name = &facts.machine;
        let there = self.slots_on(name).filter_map(|slot| Some(slot.running()?.pod.uid.clone())).collect();
        let more = self.fences.cover(name, facts.usage.keys().cloned(), &there, now);
        if more && self.heartbeats.is_silent(name, now) {
            self.changed(Change::ClaimsOn(name));
        }
    }

    /// Notes in the jobs whose procs run on a machine what these procs use. Nothing is marked: no status is written for that alone.
    fn note_usage(&mut self, facts: &ReportFacts) {
        let used = self.slots_on(&facts.machine).filter_map(|slot| {
            let usage = facts.usage.get(&slot.active()?.pod.uid)?;
            Some((slot.assignment()?.job.uid.clone(), usage))
        });
        for (job, usage) in used.collect::<Vec<_>>() {
            if let Some(job) = self.jobs.get_mut(&job) {
                job.used = std::mem::take(&mut job.used).most(usage);
            }
        }
    }

    /// The claimed slots of a machine.
    pub(super) fn slots_on(&self, name: &MachineName) -> impl Iterator<Item = &Slot> {
        let first = SlotName { machine: name.clone(), slot: 0, dynamic: None };
        self.slots.range(first..).take_while(|(slot, _)| slot.machine == *name).map(|(_, slot)| slot)
    }

    pub(super) fn report_gone(&mut self, name: &MachineName, now: Time) {
        self.reports.remove(name);
        self.look_at_agent(name, now);
    }

    pub(super) fn agent_heard(&mut self, name: &MachineName, renewal: Renewal, until: Time, now: Time) {
        let returns = self.agents.is_silent(name, now);
        self.agents.beat(name, now, until);
        self.fences.see(name, renewal, now);
        if returns {
            self.changed(Change::Machine(name));
        }
        self.look_at_agent(name, now);
    }

    pub(super) fn agent_unheard(&mut self, name: &MachineName, now: Time) {
        self.agents.forget(name);
        self.fences.forget(name);
        self.changed(Change::Machine(name));
        self.look_at_agent(name, now);
    }

    /// Marks what depends on machines and agents that have become silent since the last call.
    pub fn note_silence(&mut self, now: Time) {
        for name in self.heartbeats.lapsed(now) {
            self.changed(Change::ClaimsOn(&name));
            self.changed(Change::Machine(&name));
        }
        for name in self.agents.lapsed(now) {
            self.look_at_agent(&name, now);
            self.changed(Change::Machine(&name));
        }
    }

    /// Updates what the machine knows of its agent. If the agent is silent, the signs of the owner that it sensed count no
    /// longer: idle times grow by themselves, so that a machine whose agent died would seem idle while its owner works.
    pub(super) fn look_at_agent(&mut self, name: &MachineName, now: Time) {
        let Some(machine) = self.machines.get_mut(name) else { return };
        let report = self.reports.get(name).cloned();
        let agent = report.as_ref().is_some_and(|report| report.working) && !self.agents.is_silent(name, now);
        let sensed = report.as_ref().filter(|_| agent).and_then(|report| report.sensed);
        if machine.agent == agent && machine.sensed == sensed && machine.report == report {
            return;
        }
        let same_machine = match (&machine.report, &report) {
            (Some(before), Some(after)) => before.same_machine(after),
            (before, after) => before.is_none() && after.is_none(),
        };
        let same_jobs = match (&machine.report, &report) {
            (Some(before), Some(after)) => before.same_jobs(after),
            (before, after) => before.is_none() && after.is_none(),
        };
        let same_start = machine.agent == agent && machine.sensed == sensed && same_machine;
        (machine.agent, machine.sensed, machine.report) = (agent, sensed, report);
        if !same_machine {
            machine.recount();
        }
        self.changed(Change::Agent { machine: name, start: !same_start, load: !same_jobs });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::kit;
    use crate::pool::{Event, LastInput};

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds)
    }

    fn node() -> Event {
        Event::Machine(kit::machine("n1", 4, 8))
    }

    fn busy() -> ReportFacts {
        let sensed = Sensed { keyboard: LastInput::Ongoing, console: LastInput::Ongoing, owner_load: 0.5 };
        ReportFacts { sensed: Some(sensed), ..ReportFacts::of("n1".into()) }
    }

    fn state(pool: &Pool) -> (bool, bool) {
        let machine = &pool.machines[&"n1".into()];
        (machine.agent, machine.sensed.is_some())
    }

    /// The status of a job has no room for more measurements, and a status that is refused is never written.
    #[test]
    fn measurements_of_many_nodes_do_not_add_up_without_end() {
        let usage = |numbers: std::ops::Range<usize>, value: f64| Usage {
            metrics: numbers.map(|number| (format!("A{number:03}").into(), value)).collect(),
            ..Usage::default()
        };
        let most = usage(0..40, 1.0).most(&usage(20..90, 2.0)).most(&usage(0..1, 3.0));
        assert_eq!(most.metrics.len(), MOST_METRICS);
        let value = |name: &str| most.metrics.get(name).copied();
        assert_eq!(
            ["A000", "A019", "A020", "A063", "A064"].map(value),
            [Some(3.0), Some(1.0), Some(2.0), Some(2.0), None]
        );
    }

    #[test]
    fn a_report_may_be_seen_before_its_node() {
        let mut pool = Pool::default();
        pool.apply(Event::Report(busy()), at(0));
        pool.apply(node(), at(1));
        assert_eq!(state(&pool), (true, true));
        pool.apply(Event::ReportGone("n1".into()), at(2));
        assert_eq!(state(&pool), (false, false));
    }

    #[test]
    fn what_a_silent_agent_sensed_counts_no_longer() {
        let mut pool = Pool::default();
        let renewal = || Renewal { version: "1".into(), fences: false };
        let beat = || Event::AgentHeartbeat {
            machine: "n1".into(),
            ttl: Duration::from_mins(1),
            renewal: renewal(),
        };
        pool.apply(node(), at(0));
        pool.apply(beat(), at(0));
        assert_eq!(state(&pool), (false, false), "a Lease alone is no agent");
        pool.apply(Event::Report(busy()), at(10));
        assert_eq!(state(&pool), (true, true));
        pool.note_silence(at(59));
        assert_eq!((state(&pool), pool.agents.next()), ((true, true), Some(at(60))));
        let offers = pool.offers();
        pool.note_silence(at(60));
        assert_eq!(state(&pool), (false, false));
        assert!(pool.offers() > offers, "KeyboardIdle has become undefined");
        pool.apply(beat(), at(70));
        assert_eq!(state(&pool), (true, true));
        pool.apply(Event::AgentHeartbeatsEnded("n1".into()), at(80));
        pool.note_silence(at(1000));
        assert_eq!(
            state(&pool),
            (true, true),
            "nothing is concluded from the silence of one that has no Lease"
        );
    }

    #[test]
    fn an_agent_that_says_that_it_cannot_work_is_none() {
        let mut pool = Pool::default();
        pool.apply(node(), at(0));
        pool.apply(Event::Report(ReportFacts { working: false, ..busy() }), at(0));
        assert_eq!(state(&pool), (false, false));
    }

    #[test]
    fn benchmarks_are_weighted_averages() {
        let of = |mips, kflops, seconds| Benchmarks { mips, kflops, at: at(seconds) };
        for (before, run, after) in [
            (of(1000, 400, 1), of(2000, 800, 2), of(1250, 500, 2)),
            (of(1250, 500, 2), of(1250, 500, 3), of(1250, 500, 3)),
            (of(1000, 400, 1), of(1001, 401, 2), of(1000, 400, 2)),
            // A run that measured nothing leaves the average.
            (of(1000, 400, 1), of(0, -5, 2), of(1000, 400, 2)),
            (of(0, 0, 1), of(7, 9, 2), of(7, 9, 2)),
        ] {
            assert_eq!(before.with(run), after, "{before:?} {run:?}");
        }
    }

    #[test]
    fn a_suspension_is_seen_and_changes_nothing_of_the_offer() {
        let mut pool = Pool::default();
        pool.apply(node(), at(0));
        pool.apply(Event::Report(busy()), at(0));
        let offers = pool.offers();
        pool.take_cycle_wanted();
        pool.apply(Event::Report(ReportFacts { suspended: ["p1".into()].into(), ..busy() }), at(1));
        let machine = &pool.machines[&"n1".into()];
        assert!(machine.suspends(&"p1".into()) && !machine.suspends(&"p2".into()));
        assert_eq!((pool.offers(), pool.take_cycle_wanted()), (offers, false));
        pool.apply(Event::Report(ReportFacts { pool_load: 2.0, ..busy() }), at(2));
        assert_eq!(
            (pool.offers(), pool.take_cycle_wanted()),
            (offers + 1, false),
            "TotalCondorLoadAvg has moved"
        );
        let benchmarks = Some(Benchmarks { mips: 1, kflops: 1, at: at(3) });
        pool.apply(Event::Report(ReportFacts { pool_load: 2.0, benchmarks, ..busy() }), at(3));
        assert_eq!((pool.offers(), pool.take_cycle_wanted()), (offers + 2, true));
    }
}
