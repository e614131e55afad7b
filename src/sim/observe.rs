//! Measures the pool at every sample, and makes the report at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::books::{Books, Counts, seconds};
use super::number::{amount, real};
use super::owner::cores;
use super::report::{Column, Report, Summary, Table, Tally, Waits};
use super::scenario::Scenario;
use super::transitions::Transitions;
use classad::Env;
use model::decide::{Negotiation, quotas};
use model::negotiator::{Outcome, Stats};
use model::pool::{
    Claimed, Job, JobSpec, Machine, MachineSlot, NegotiatorId, Pool, Request, State, SubmitterName, Time,
};
use model::startd::{has_room, unclaimed_slot_ad};

const HOUR: f64 = 3600.0;

const fn column(name: &'static str, meaning: &'static str) -> Column {
    Column { name, meaning }
}

/// The columns of the table `pool`. Counts and core hours are of the time since the last sample.
const POOL: &[Column] = &[
    column("cores", "cores that machines in the pool have for jobs"),
    column("claimed_cores", "cores of claimed slots"),
    column("free_cores", "cores of machines that offer them, not claimed"),
    column("largest_free", "the most free cores on one machine"),
    column("unusable_cores", "free cores on machines where nothing that waits fits"),
    column("idle", "procs that wait"),
    column("running", "procs with a claim"),
    column("jobs", "jobs in the queues"),
    column("started", "procs that began to run"),
    column("done", "procs that were done"),
    column("evictions", "procs that were thrown out"),
    column("goodput_core_hours", "core hours of runs that ended by themselves"),
    column("badput_core_hours", "core hours of runs that did not"),
    column("cycles", "negotiation cycles"),
    column("matches", "matches made"),
    column("held", "procs that are held"),
    column("removed", "procs that were removed"),
];

/// The columns of the table `slots`: cores by the state and activity of their slot.
const SLOTS: &[Column] = &[
    column("slots", "dynamic slots"),
    column("foreign", "cores that pods outside the pool hold"),
    column("owner", "cores of machines that offer nothing"),
    column("unclaimed", "cores that are offered and not carved"),
    column("matched", "cores of slots whose claim is being made"),
    column("claimed_idle", "cores of claims between two procs"),
    column("claimed_busy", "cores of claims that run a proc"),
    column("claimed_suspended", "cores of claims whose proc is suspended"),
    column("claimed_retiring", "cores of claims whose proc is left to end"),
    column("preempting", "cores of claims that are being ended"),
    column("backfill", "cores that run backfill"),
    column("drained", "cores that are drained"),
];

/// The columns of the table `submitters`. Counts and core hours are of the time since the last sample.
const SUBMITTERS: &[Column] = &[
    column("real_priority", "RUP"),
    column("effective_priority", "EUP"),
    column("deserved", "slot weight of its slice at the last negotiation cycle"),
    column("got", "slot weight in use"),
    column("idle", "procs that wait"),
    column("running", "procs with a claim"),
    column("started", "procs that began to run"),
    column("wait_seconds", "the mean wait of those that ran for the first time"),
    column("done", "procs that were done"),
    column("evictions", "procs that were thrown out"),
    column("goodput_core_hours", "core hours of runs that ended by themselves"),
    column("badput_core_hours", "core hours of runs that did not"),
    column("held", "procs that are held"),
    column("removed", "procs that were removed"),
];

/// The columns of the table `groups`. The values of a group include those of the groups inside it.
const GROUPS: &[Column] =
    &[column("deserved", "the quota in force, in slot weight"), column("got", "slot weight in use")];

/// The tables so far, and what later samples need of earlier ones.
pub struct Measures {
    start: Time,
    pool: Table,
    slots: Table,
    submitters: Table,
    groups: Table,
    /// The input and the statistics of each negotiator's last cycle.
    last: BTreeMap<NegotiatorId, (Box<Negotiation>, Stats)>,
    cycles: u64,
    matches: u64,
    /// `cycles` and `matches` at the last sample.
    counted: (u64, u64),
    /// The claimed cores and the cores of all machines, summed over the samples.
    claimed: f64,
    present: f64,
}

/// How many procs wait, how many have a claim, and how many are held.
#[derive(Clone, Copy, Debug, Default)]
struct Procs {
    idle: u64,
    running: u64,
    held: u64,
}

impl Procs {
    fn add(&mut self, job: &Job) {
        self.idle += job.idle.len();
        self.running += job.active.len() as u64;
        // A proc whose pod still ends is on hold already.
        self.held += job.on_hold.keys().filter(|proc| !job.active.contains_key(proc)).count() as u64;
    }
}

impl Measures {
    /// Tables without a row.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            start: scenario.start,
            pool: Table::new("pool", None, POOL),
            slots: Table::new("slots", None, SLOTS),
            submitters: Table::new("submitters", Some("submitter"), SUBMITTERS),
            groups: Table::new("groups", Some("group"), GROUPS),
            last: BTreeMap::new(),
            cycles: 0,
            matches: 0,
            counted: (0, 0),
            claimed: 0.0,
            present: 0.0,
        }
    }

    /// Notes a negotiation cycle that has ended.
    pub fn cycle(&mut self, negotiation: Box<Negotiation>, outcome: Outcome) {
        self.cycles += 1;
        self.matches += outcome.matches.len() as u64;
        self.last.insert(negotiation.negotiator.clone(), (negotiation, outcome.stats));
    }

    /// Adds the rows of one sample to each table.
    pub fn sample(&mut self, pool: &Pool, books: &mut Books, now: Time) {
        let at = seconds(self.start, now);
        let mut procs = vec![Procs::default(); books.names.len()];
        let mut waiting: BTreeMap<Shape, &JobSpec> = BTreeMap::new();
        for (index, job) in pool.jobs().values().filter_map(|job| Some((submitter_of(books, job)?, job))) {
            let Some(sum) = procs.get_mut(index) else { continue };
            sum.add(job);
            if let Some(spec) = job.spec.as_ref().filter(|_| !job.idle.is_empty()) {
                waiting.entry(shape(&spec.request)).or_insert(&**spec);
            }
        }
        let counts = books.take();
        self.sample_slots(pool, at);
        self.sample_pool(pool, &waiting, &procs, &counts, now);
        self.sample_submitters(pool, books, &procs, &counts, now);
        let in_force = quotas(pool, now);
        let (quotas, _) = &*in_force;
        for group in pool.groups().values() {
            let name = group.name.as_str();
            let deserved = quotas.of(name).unwrap_or(f64::NAN);
            self.groups.push(at, Some(name.into()), &[deserved, pool.in_use().subtree_with_all(&group.name)]);
        }
    }

    fn sample_slots(&mut self, pool: &Pool, at: f64) {
        let mut sums = [0.0; SLOTS.len()];
        let mut add = |column: usize, cores: f64| {
            if let Some(sum) = sums.get_mut(column) {
                *sum += cores;
            }
        };
        add(0, real(pool.slots().len() as u64));
        for machine in pool.machines().values() {
            let all = cores(&machine.facts.allocatable);
            add(1, all.min(cores(&machine.foreign)));
            for slot in machine.machine_slots.values().filter(|slot| !slot.claimed) {
                add(column_of(slot.state()), amount(machine.available_in(slot).cpus));
            }
        }
        for slot in pool.slots().values() {
            add(column_of(slot.state()), amount(slot.resources().cpus));
        }
        self.slots.push(at, None, &sums);
    }

    fn sample_pool(
        &mut self,
        pool: &Pool,
        waiting: &BTreeMap<Shape, &JobSpec>,
        procs: &[Procs],
        counts: &[Counts],
        now: Time,
    ) {
        let mut all = Counts::default();
        for counts in counts {
            all.add(counts);
        }
        let present: f64 = pool.machines().values().map(|machine| amount(machine.total.cpus)).sum();
        let claimed: f64 = pool.slots().values().map(|slot| amount(slot.resources().cpus)).sum();
        let slots = || {
            let of = |machine| Machine::slots(machine).map(move |slot| (machine, slot));
            pool.machines().values().flat_map(of)
        };
        let offered = || slots().filter(|(_, slot)| slot.state() != State::Owner && !slot.claimed);
        let free = |(machine, slot): (&Machine, &MachineSlot)| amount(machine.available_in(slot).cpus);
        let env = Env::at(now.secs());
        let unusable =
            offered().filter(|(machine, slot)| !usable(pool, machine, slot, waiting, &env)).map(free).sum();
        self.claimed += claimed;
        self.present += present;
        self.pool.push(
            seconds(self.start, now),
            None,
            &[
                present,
                claimed,
                offered().map(free).sum(),
                offered().map(free).fold(0.0, f64::max),
                unusable,
                real(procs.iter().map(|procs| procs.idle).sum()),
                real(procs.iter().map(|procs| procs.running).sum()),
                real(pool.jobs().len() as u64),
                real(all.started),
                real(all.done),
                real(all.evictions),
                all.goodput / HOUR,
                all.badput / HOUR,
                real(self.cycles - self.counted.0),
                real(self.matches - self.counted.1),
                real(procs.iter().map(|procs| procs.held).sum()),
                real(all.removed),
            ],
        );
        self.counted = (self.cycles, self.matches);
    }

    fn sample_submitters(
        &mut self,
        pool: &Pool,
        books: &Books,
        procs: &[Procs],
        counts: &[Counts],
        now: Time,
    ) {
        let (first, config) = (pool.first_negotiator(), pool.negotiator());
        let deserved = self.deserved(books);
        for (name, index) in &books.submitters {
            let (Some(submitter), Some(label)) = (pool.submitters().get(name), books.names.get(*index))
            else {
                continue;
            };
            let account = submitter.account_with(&first).at(now.millis(), config.halflife.as_secs_f64());
            let factor = pool.priority_factor(submitter, config);
            let procs = procs.get(*index).copied().unwrap_or_default();
            let counts = counts.get(*index).copied().unwrap_or_default();
            let waited =
                if counts.first_starts > 0 { counts.waited / real(counts.first_starts) } else { f64::NAN };
            let row = [
                account.real_priority,
                account.effective_priority(factor),
                deserved.get(*index).copied().unwrap_or_default(),
                submitter.accounts.weighted_resources_used(),
                real(procs.idle),
                real(procs.running),
                real(counts.started),
                waited,
                real(counts.done),
                real(counts.evictions),
                counts.goodput / HOUR,
                counts.badput / HOUR,
                real(procs.held),
                real(counts.removed),
            ];
            self.submitters.push(seconds(self.start, now), Some(label.clone()), &row);
        }
    }

    /// The slot weight of each submitter's slice in the first spin of the submitter's group in the last cycle, summed over the
    /// negotiators; 0 for submitters who took no part in that spin. Later spins of a group, and those of a group around it, divide what is
    /// left once more. Spins up to floors divide nothing.
    fn deserved(&self, books: &Books) -> Vec<f64> {
        let mut deserved = vec![0.0; books.names.len()];
        for (negotiation, stats) in self.last.values() {
            let mut known = BTreeSet::new();
            for pie in stats.pies.iter().filter(|pie| pie.spin == 1 && !pie.floors && known.insert(pie.group))
            {
                for slice in &pie.slices {
                    let input = negotiation.cycle.submitters.get(slice.submitter);
                    let input = input.filter(|input| input.group == pie.group);
                    let name = input.map(|input| SubmitterName::from(input.name.as_str()));
                    let index = name.and_then(|name| books.submitters.get(&name));
                    if let Some(sum) = index.and_then(|index| deserved.get_mut(*index)) {
                        *sum += slice.share * pie.weight;
                    }
                }
            }
        }
        deserved
    }

    /// Makes the report at the end of the simulation.
    pub fn report(
        self,
        scenario: &Scenario,
        now: Time,
        events: u64,
        pool: &Pool,
        mut books: Books,
    ) -> Report {
        books.take();
        let unfit = pool
            .machines()
            .values()
            .filter_map(|machine| machine.unfit.as_ref().map(|why| format!("{}: {why}", machine.facts.name)));
        let unfit = unfit.collect();
        let (submitters, all) = tallies(pool, &books, now);
        let length = now.since(scenario.start);
        Report {
            name: scenario.name.clone(),
            start: scenario.start,
            length,
            calendar: scenario.follows_calendar(),
            summary: Summary {
                scenario: scenario.name.clone(),
                seed: scenario.seed,
                simulated_seconds: length.as_secs_f64(),
                all,
                utilization: if self.present > 0.0 { self.claimed / self.present } else { 0.0 },
                cycles: self.cycles,
                matches: self.matches,
                events,
                submitters,
            },
            tables: vec![self.pool, self.slots, self.submitters, self.groups],
            jobs: books.records,
            transitions: Transitions::default(),
            refused: books.refused,
            unfit,
        }
    }
}

/// The numbers of each submitter at the end, and of all together.
fn tallies(pool: &Pool, books: &Books, now: Time) -> (Vec<Tally>, Tally) {
    let mut waits: Vec<Vec<f64>> = vec![Vec::new(); books.names.len()];
    let mut submitted = vec![0_u64; books.names.len()];
    for (record, owner) in books.records.iter().zip(&books.owners) {
        if let Some(count) = submitted.get_mut(*owner) {
            *count += 1;
        }
        if let (Some(waits), Some(wait)) = (waits.get_mut(*owner), record.wait()) {
            waits.push(wait);
        }
    }
    let mut left = vec![Procs::default(); books.names.len()];
    for job in pool.jobs().values() {
        if let Some(sum) = submitter_of(books, job).and_then(|index| left.get_mut(index)) {
            sum.add(job);
        }
    }
    let (mut tallies, mut all) = (Vec::new(), Tally::default());
    for (name, index) in &books.submitters {
        let total = books.total.get(*index).copied().unwrap_or_default();
        let left = left.get(*index).copied().unwrap_or_default();
        let charged =
            pool.submitters().get(name).map_or(0.0, |submitter| submitter.accounts.weighted_usage_at(now));
        let tally = Tally {
            name: name.to_string(),
            submitted: submitted.get(*index).copied().unwrap_or_default(),
            done: total.done,
            running: left.running,
            idle: left.idle,
            held: left.held,
            removed: total.removed,
            evictions: total.evictions,
            goodput_core_hours: total.goodput / HOUR,
            badput_core_hours: total.badput / HOUR,
            charged_weight_hours: charged / HOUR,
            wait_seconds: Waits::of(waits.get(*index).cloned().unwrap_or_default()),
        };
        all.add(&tally);
        tallies.push(tally);
    }
    all.wait_seconds = Waits::of(waits.concat());
    (tallies, all)
}

/// The amounts of a request, as a key: procs of one shape fit into the same slots.
type Shape = (i64, i64, i64, i64, Vec<(Arc<str>, i64)>);

fn shape(request: &Request) -> Shape {
    let extended = request.extended.iter().map(|(name, amount)| (name.clone(), *amount)).collect();
    (request.cpus, request.memory_mib, request.disk_kib, request.gpus, extended)
}

/// The index in `SLOTS` of the column of a state.
fn column_of(state: State) -> usize {
    match state {
        State::Owner => 2,
        State::Unclaimed(_) => 3,
        State::Matched => 4,
        State::Claimed(Claimed::Idle) => 5,
        // Virtual time does not pass between a proc's end and its record.
        State::Claimed(Claimed::Busy | Claimed::Cleaning) => 6,
        State::Claimed(Claimed::Suspended) => 7,
        State::Claimed(Claimed::Retiring) => 8,
        State::Preempting(_) => 9,
        State::Backfill(_) => 10,
        State::Drained(_) => 11,
    }
}

/// Whether a proc of any waiting shape fits into what a slot has left. One job stands for all jobs of its shape.
fn usable(
    pool: &Pool,
    machine: &Machine,
    slot: &MachineSlot,
    waiting: &BTreeMap<Shape, &JobSpec>,
    env: &Env,
) -> bool {
    if waiting.is_empty() {
        return true;
    }
    let config = pool.startd(machine);
    let own = machine.slot_config(&config, slot.id);
    let ad = unclaimed_slot_ad(machine, slot, &config);
    waiting.values().any(|spec| has_room(machine, slot, own, &ad, &spec.request, &spec.ad, env))
}

fn submitter_of(books: &Books, job: &Job) -> Option<usize> {
    books.submitters.get(&job.spec.as_ref()?.submitter).copied()
}
