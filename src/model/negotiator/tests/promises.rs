//! Promises that hold in every pool, cycle after cycle: quotas, ceilings and limits are never exceeded. No submitter
//! stays below its floor if one of its jobs fits a free slot. With a fixed set of jobs the pool settles. Then no slot
//! is free for which a job waits that is entitled to it.
//!
//! Pools are generated: static and partitionable slots, groups, floors, ceilings, a concurrency limit, ranks, preemption.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::kit::{expr, jobs_with, slot_with};
use crate::negotiator::groups::{GroupSpec, Quota, Tree};
use crate::negotiator::limits::{Capacity, LimitBook, Wants};
use crate::negotiator::{Candidate, Config, Cycle, PreemptState, Request, SubmitterInput, negotiate};
use classad::{Env, symmetric_match};

/// A machine: one static slot, or a partitionable slot.
#[derive(Clone, Debug)]
struct Machine {
    partitionable: bool,
    cpus: i64,
    flavor: i64,
    rank: &'static str,
}

/// Jobs of one kind.
#[derive(Clone, Debug)]
struct Kind {
    count: u64,
    cpus: i64,
    flavor: Option<i64>,
    licensed: bool,
}

#[derive(Clone, Debug)]
struct User {
    priority: u32,
    group: Option<usize>,
    floor: Option<u32>,
    ceiling: Option<u32>,
    kinds: Vec<Kind>,
}

/// A pool, its groups (by name, quota, and whether they accept surplus) and its users.
#[derive(Clone, Debug)]
struct Scene {
    machines: Vec<Machine>,
    groups: Vec<(&'static str, u32, bool)>,
    users: Vec<User>,
    licenses: u32,
    preempts: bool,
}

const GROUPS: [&str; 3] = ["g", "g.a", "h"];

prop_compose! {
    fn any_machine()(
        partitionable in any::<bool>(), cpus in 1_i64..6, flavor in 0_i64..2,
        rank in prop::sample::select(vec!["0.0", "0.0", "TARGET.RequestCpus", "0 - TARGET.RequestCpus"]),
    ) -> Machine {
        Machine { partitionable, cpus, flavor, rank }
    }
}

prop_compose! {
    fn any_kind()(
        count in 0_u64..5, cpus in 1_i64..4, flavor in prop::option::of(0_i64..2), licensed in prop::bool::weighted(0.3),
    ) -> Kind {
        Kind { count, cpus, flavor, licensed }
    }
}

prop_compose! {
    fn any_user()(
        priority in 1_u32..5, group in prop::option::of(0_usize..3), floor in prop::option::weighted(0.3, 1_u32..6),
        ceiling in prop::option::weighted(0.3, 0_u32..8), kinds in prop::collection::vec(any_kind(), 1..4),
    ) -> User {
        User { priority, group, floor, ceiling, kinds }
    }
}

prop_compose! {
    fn any_scene()(
        machines in prop::collection::vec(any_machine(), 1..6),
        groups in prop::option::of(prop::array::uniform3((0_u32..10, any::<bool>()))),
        users in prop::collection::vec(any_user(), 1..5),
        licenses in 0_u32..4, preempts in any::<bool>(),
    ) -> Scene {
        let groups = groups.into_iter().flatten().zip(GROUPS).map(|((quota, accepts), name)| (name, quota, accepts));
        Scene { machines, groups: groups.collect(), users, licenses, preempts }
    }
}

/// A running job.
#[derive(Clone, Copy, Debug)]
struct Running {
    machine: usize,
    user: usize,
    kind: usize,
    cpus: i64,
    weight: f64,
}

/// The place of a candidate: a machine, and the job there if it is in use.
type Place = (usize, Option<usize>);

/// A pool as time passes.
struct Pool {
    scene: Scene,
    tree: Tree,
    running: Vec<Running>,
}

fn weight(cpus: i64) -> f64 {
    f64::from(i32::try_from(cpus).unwrap())
}

impl Pool {
    fn new(scene: &Scene) -> Self {
        let specs = scene.groups.iter().map(|(name, quota, accept_surplus)| GroupSpec {
            name: (*name).to_owned(),
            quota: Some(Quota::Static(f64::from(*quota))),
            accept_surplus: *accept_surplus,
            ..GroupSpec::default()
        });
        Self { scene: scene.clone(), tree: Tree::new(&specs.collect::<Vec<_>>()), running: Vec::new() }
    }

    fn size(&self) -> f64 {
        self.scene.machines.iter().map(|machine| weight(machine.cpus)).sum()
    }

    fn name(&self, user: usize) -> String {
        match self.scene.users[user].group.filter(|_| !self.scene.groups.is_empty()) {
            Some(group) => format!("{}.u{user}", GROUPS[group]),
            None => format!("u{user}"),
        }
    }

    fn used(&self, user: usize) -> f64 {
        self.running.iter().filter(|job| job.user == user).map(|job| job.weight).sum()
    }

    fn licenses_used(&self) -> u32 {
        let licensed = |job: &&Running| self.scene.users[job.user].kinds[job.kind].licensed;
        u32::try_from(self.running.iter().filter(licensed).count()).unwrap()
    }

    /// How many jobs of a kind wait.
    fn waiting(&self, user: usize, kind: usize) -> u64 {
        let runs = self.running.iter().filter(|job| (job.user, job.kind) == (user, kind)).count();
        self.scene.users[user].kinds[kind].count - runs as u64
    }

    fn request(&self, user: usize, kind: usize) -> Request {
        let Kind { cpus, flavor, licensed, .. } = self.scene.users[user].kinds[kind];
        let mut requirements = "TARGET.Cpus >= MY.RequestCpus".to_owned();
        if let Some(flavor) = flavor {
            write!(requirements, " && TARGET.Flavor == {flavor}").unwrap();
        }
        let mut said = format!("RequestCpus = {cpus}\nRequestMemory = 1\nRequirements = {requirements}");
        if licensed {
            said += "\nConcurrencyLimits = \"license\"";
        }
        jobs_with(self.waiting(user, kind), &said)
    }

    /// The CPUs that are free on a machine. A static slot is free as a whole or not at all.
    fn left(&self, machine: usize) -> i64 {
        let jobs: i64 = self.running.iter().filter(|job| job.machine == machine).map(|job| job.cpus).sum();
        self.scene.machines[machine].cpus - jobs
    }

    /// The slot of a machine, with this many cores.
    fn slot(&self, machine: usize, cpus: i64, partitionable: bool) -> Candidate {
        let Machine { flavor, rank, .. } = self.scene.machines[machine];
        let mut said = format!("Flavor = {flavor}\nRank = {rank}\nMemory = 100000\nSlotWeight = Cpus");
        if partitionable {
            said += "\nPartitionableSlot = true";
        }
        slot_with(cpus, &said)
    }

    fn candidates(&self) -> (Vec<Candidate>, Vec<Place>) {
        let (mut slots, mut places) = (Vec::new(), Vec::new());
        for (number, machine) in self.scene.machines.iter().enumerate() {
            if self.left(number) > 0 {
                slots.push(self.slot(number, self.left(number), machine.partitionable));
                places.push((number, None));
            }
        }
        for (number, job) in self.running.iter().enumerate() {
            let mut slot = self.slot(job.machine, job.cpus, false);
            let present = self.request(job.user, job.kind).ad;
            slot.ad.set("CurrentRank", slot.ad.eval_attr("Rank", Some(&present), &Env::at(0)));
            slot.ad.set("RemoteUser", self.name(job.user).as_str());
            slot.ad.set("RemoteOwner", self.name(job.user).as_str());
            slots.push(slot);
            places.push((job.machine, Some(number)));
        }
        (slots, places)
    }

    fn cycle(&self) -> (Cycle, Vec<Place>) {
        let (slots, places) = self.candidates();
        let mut own_usage = vec![0.0; self.tree.groups().len()];
        let mut cycle = Cycle { now: 1_700_000_000, slots, pool_weight: self.size(), ..Cycle::default() };
        let capacity = Capacity::Named(f64::from(self.scene.licenses));
        cycle.limits = LimitBook::new([("license".to_owned(), capacity)], 1e6);
        for _ in 0..self.licenses_used() {
            cycle.limits.take(&Wants::parse("license"));
        }
        for (number, user) in self.scene.users.iter().enumerate() {
            let (name, used) = (self.name(number), self.used(number));
            let group = self.tree.group_of(&name);
            match group.and_then(|group| own_usage.get_mut(group)) {
                Some(sum) => *sum += used,
                None => cycle.ungrouped_used += used,
            }
            cycle.submitters.push(SubmitterInput {
                name,
                effective_priority: f64::from(user.priority),
                weighted_used: used,
                floor: user.floor.map(f64::from),
                ceiling: user.ceiling.map(f64::from),
                group,
                requests: (0..user.kinds.len()).map(|kind| self.request(number, kind)).collect(),
                ..SubmitterInput::default()
            });
        }
        cycle.groups = self.tree.inputs(self.size(), false, &own_usage);
        let requirements =
            if self.scene.preempts { "RemoteUserPrio > TARGET.SubmitterUserPrio" } else { "False" };
        cycle.config = Config { preemption_requirements: Some(expr(requirements)), ..Config::default() };
        (cycle, places)
    }

    /// Negotiates once. Returns how many matches were made, and how many of them preempt a job.
    fn negotiate(&mut self) -> (usize, usize) {
        let (cycle, places) = self.cycle();
        let outcome = negotiate(&cycle);
        let mut thrown_out = 0;
        for found in &outcome.matches {
            let (machine, present) = places[found.slot];
            let (user, kind) = (found.submitter, found.request);
            assert_eq!(present.is_none(), found.preempt == PreemptState::None);
            let whole = self.scene.machines[machine].cpus;
            let partitionable = self.scene.machines[machine].partitionable;
            let asked = self.scene.users[user].kinds[kind].cpus;
            let cpus = match present {
                Some(present) => self.running[present].cpus,
                None if partitionable => asked,
                None => whole,
            };
            let job = Running { machine, user, kind, cpus, weight: found.cost };
            match present {
                Some(present) => self.running[present] = job,
                None => self.running.push(job),
            }
            thrown_out += usize::from(present.is_some());
        }
        (outcome.matches.len(), thrown_out)
    }

    /// The slot weight that a group's own users hold; without a group, the users of no group.
    fn own_use(&self, group: Option<usize>) -> f64 {
        let of_group = |user: &usize| self.tree.group_of(&self.name(*user)) == group;
        (0..self.scene.users.len()).filter(of_group).map(|user| self.used(user)).sum()
    }

    /// The group and the groups around it, from the inside out.
    fn around(&self, group: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(group), |group| self.tree.groups()[*group].parent)
    }

    /// The slot weight that the users of a group and of all groups inside it hold.
    fn subtree_use(&self, group: usize) -> f64 {
        let inside =
            (0..self.tree.groups().len()).filter(|inner| self.around(*inner).any(|outer| outer == group));
        inside.map(|inner| self.own_use(Some(inner))).sum()
    }

    /// Whether the user may take so much more: the ceiling holds, and so do the quotas. The quotas that count are those
    /// of groups that accept no surplus, and those of all groups if the job takes more than it weighs, since surplus is
    /// given for what jobs weigh.
    fn is_entitled(&self, user: usize, more: f64, weighs: f64) -> bool {
        let ceiling = self.scene.users[user].ceiling.map_or(f64::INFINITY, f64::from);
        let allotments = self.tree.assign(self.size(), false);
        let takes_surplus = more <= weighs;
        let in_quota = match self.tree.group_of(&self.name(user)) {
            None => {
                let quota = if self.scene.groups.is_empty() { f64::INFINITY } else { allotments.root.quota };
                takes_surplus || self.own_use(None) + more <= quota
            }
            Some(group) => self.around(group).all(|outer| {
                let (allotment, accepts) =
                    (&allotments.groups[outer], self.tree.groups()[outer].accept_surplus);
                let own = outer != group || self.own_use(Some(outer)) + more <= allotment.quota;
                let all = self.subtree_use(outer) + more <= allotment.subtree_quota;
                (accepts && takes_surplus) || (own && all)
            }),
        };
        self.used(user) + more <= ceiling && in_quota
    }

    /// A free slot, and a waiting job of one of these users that fits it, is entitled to it, and whose licenses are
    /// available.
    fn missed(&self, users: impl Fn(usize) -> bool) -> Option<(usize, usize, usize)> {
        let (slots, places) = self.candidates();
        let free = slots.iter().zip(&places).filter(|(_, (_, job))| job.is_none());
        for (slot, (machine, _)) in free {
            for user in (0..self.scene.users.len()).filter(|user| users(*user)) {
                for (kind, jobs) in self.scene.users[user].kinds.iter().enumerate() {
                    let cost = if self.scene.machines[*machine].partitionable {
                        weight(jobs.cpus)
                    } else {
                        slot.weight
                    };
                    let licensed = !jobs.licensed || self.licenses_used() < self.scene.licenses;
                    let fits = symmetric_match(&self.request(user, kind).ad, &slot.ad, &Env::at(0));
                    if self.waiting(user, kind) > 0
                        && fits
                        && licensed
                        && self.is_entitled(user, cost, weight(jobs.cpus))
                    {
                        return Some((*machine, user, kind));
                    }
                }
            }
        }
        None
    }

    /// Checks what holds after every cycle.
    fn check(&self) {
        let within = |used: f64, most: f64| used <= most + 1e-9;
        for (machine, shape) in self.scene.machines.iter().enumerate() {
            assert!(self.left(machine) >= 0, "machine {machine} of {shape:?} gives more than it has");
        }
        for (user, said) in self.scene.users.iter().enumerate() {
            let ceiling = said.ceiling.map_or(f64::INFINITY, f64::from);
            assert!(
                within(self.used(user), ceiling),
                "user {user} has {} beyond its ceiling",
                self.used(user)
            );
        }
        assert!(self.licenses_used() <= self.scene.licenses, "{} licenses", self.licenses_used());
        let allotments = self.tree.assign(self.size(), false);
        for (group, said) in self.tree.groups().iter().enumerate() {
            let quota = allotments.groups[group].subtree_quota;
            let used = self.subtree_use(group);
            assert!(said.accept_surplus || within(used, quota), "{} has {used} of {quota}", said.name);
        }
    }
}

/// The most cycles that a pool may take to settle. A machine's rank has at most three values, a user's priority four.
fn patience(scene: &Scene) -> usize {
    let slots: i64 = scene.machines.iter().map(|machine| machine.cpus).sum();
    12 * usize::try_from(slots).unwrap() + 10
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn promises_are_kept_and_the_pool_settles(scene in any_scene()) {
        let mut pool = Pool::new(&scene);
        let below_floor = |pool: &Pool, user: usize| {
            scene.users[user].floor.is_some_and(|floor| pool.used(user) < f64::from(floor))
        };
        let (mut settled, mut before) = (false, None);
        for _ in 0..patience(&scene) {
            let (matches, thrown_out) = pool.negotiate();
            pool.check();
            // The slot of a preempted job comes free in the next cycle. So does surplus, for jobs that took more than
            // they weigh.
            let missed = if thrown_out == 0 { pool.missed(|user| below_floor(&pool, user)) } else { None };
            let again = missed.filter(|_| missed == before);
            prop_assert_eq!(again, None, "somebody stays below their floor: {:?}", pool.running);
            before = missed;
            settled = matches == 0;
            if settled {
                break;
            }
        }
        prop_assert!(settled, "{:?}", pool.running);
        prop_assert_eq!(pool.missed(|_| true), None, "machine, user and kind of job: {:?}", pool.running);
    }
}
