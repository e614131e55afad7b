//! Explains why a job does not match.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::clauses::{Look, Tally};
use super::nearest::{amount, lacks};
use crate::pool::{
    Explaining, FailedClause, GPUS, JobSpec, Machine, MachineSlot, Matchable, Offer, Pool, Problem, Request,
    Resources, Side, Time, classad_name,
};
use crate::startd::{undrained_slot_ad, whole_slot_ad};
use classad::{Ad, Env};

/// How many slots of machines that offer their resources, some of each kind, are examined before the others; and how many slots of other
/// machines are examined at all.
const LOOKED_AT: usize = 1000;

/// The most things that a message names.
const NAMED: usize = 3;

/// The steps of evaluation that making a slot's ad counts for.
const AD: u64 = 1000;

/// The steps that a look at a slot counts for besides its evaluations.
const LOOK: u64 = 50;

/// The result of explaining a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Explained {
    /// Whether a machine could run the job, and the clauses because of which none could.
    Whole {
        /// Whether a machine could run the job.
        matchable: Matchable,
        /// The clauses because of which none could.
        clauses: Arc<[FailedClause]>,
        /// The value of [`Pool::offers`] when the explanation began.
        by: u64,
    },
    /// The explanation has taken its steps, and must go on later.
    Part(Explaining),
}

/// The slots of machines, with the ads that these slots would have if their machines were idle. Each ad is made at most once, for
/// all jobs that are explained with one `Offers`. Slots of machines that offer nothing now come last, with the ads that they would have
/// without a drain: a node is often cordoned in order to drain it.
pub struct Offers<'a> {
    pool: &'a Pool,
    slots: Vec<(&'a Machine, &'a MachineSlot, OnceCell<Ad>)>,
    /// How many of the slots are offered.
    offered: usize,
    /// A hash of the names of the slots: an explanation goes on only where the slots are the same.
    list: u64,
    /// The sizes of all slots of the pool, each once, with the name of a machine that has such a slot.
    sizes: Vec<(&'a Resources, &'a str)>,
    /// Whether each of these machines manages disk.
    manages_disk: bool,
    /// Machines that offer nothing now.
    withheld: Vec<&'a Machine>,
}

impl<'a> Offers<'a> {
    /// All slots of machines that offer their resources, and at most 1000 of other machines. If there are more than 1000, slots of each kind
    /// come first: of machines that differ in more than their names, and of other types and sizes.
    pub fn of(pool: &'a Pool) -> Self {
        let there = pool.machines().values().filter(|machine| machine.offer != Offer::Gone);
        let (given, withheld): (Vec<&Machine>, Vec<&Machine>) =
            there.partition(|machine| machine.offer == Offer::Offered);
        let slots = |machines: &[&'a Machine]| -> Vec<(&'a Machine, &'a MachineSlot)> {
            machines.iter().flat_map(|machine| machine.slots().map(|slot| (*machine, slot))).collect()
        };
        let (given, mut others) = (some_of_each_first(slots(&given)), some_of_each_first(slots(&withheld)));
        let (mut sizes, mut known) = (Vec::new(), BTreeSet::new());
        for (machine, slot) in given.iter().chain(&others) {
            let size = &slot.total;
            if known.insert((size.cpus, size.memory_mib, size.disk_kib, &size.extended)) {
                sizes.push((size, machine.facts.name.as_str()));
            }
        }
        let manages_disk = given.iter().chain(&others).all(|(machine, _)| machine.manages_disk());
        others.truncate(LOOKED_AT);
        let offered = given.len();
        let mut list = DefaultHasher::new();
        offered.hash(&mut list);
        for (machine, slot) in given.iter().chain(&others) {
            (machine.facts.name.as_str(), slot.id).hash(&mut list);
        }
        let slots = given.into_iter().chain(others);
        let slots = slots.map(|(machine, slot)| (machine, slot, OnceCell::new())).collect();
        Self { pool, slots, offered, list: list.finish(), sizes, manages_disk, withheld }
    }

    /// The ad of a slot, and the steps that making the ad counts for.
    fn ad(&self, place: usize) -> Option<(&Ad, u64)> {
        let (machine, slot, ad) = self.slots.get(place)?;
        let cost = if ad.get().is_some() { 0 } else { AD };
        let make = if place < self.offered { whole_slot_ad } else { undrained_slot_ad };
        Some((ad.get_or_init(|| make(machine, slot, &self.pool.startd(machine))), cost))
    }

    /// Says whether some machine could run a proc with this spec if that machine were idle, and if none could, why. If clauses of
    /// Requirements are the reason, these clauses are returned too.
    ///
    /// `steps` is the budget of evaluation steps, from which the explanation deducts its cost. If the budget is used up
    /// before all slots were examined, the result is [`Explained::Part`]. The caller hands this part in as `begun` the
    /// next time, and the explanation goes on from there, unless the pool has other slots by then. The slots' ads may have changed: agents
    /// report all the time, and an explanation that then began again would never end in a large pool.
    pub fn explain(
        &self,
        spec: &JobSpec,
        begun: Option<&Explaining>,
        now: Time,
        steps: &mut u64,
    ) -> Explained {
        let now_by = self.pool.offers();
        let found = |matchable| Explained::Whole { matchable, clauses: Arc::default(), by: now_by };
        if self.offered == 0 {
            return found(no("NoMachines", "", self.none_offered()));
        }
        if let Some(problem) = too_large(&spec.request, &self.sizes, self.manages_disk) {
            return found(Matchable::No(problem));
        }
        let env = Env::at(now.secs());
        let begun = begun.filter(|begun| begun.list == self.list);
        let mut so_far = begun.cloned().unwrap_or_else(|| Explaining {
            by: now_by,
            list: self.list,
            slots: 0,
            clauses: Vec::new(),
            nearest: None,
            withheld: Vec::new(),
        });
        let mut tally = Tally::of(std::mem::take(&mut so_far.clauses));
        for place in so_far.slots..self.slots.len() {
            if *steps == 0 {
                return Explained::Part(Explaining { slots: place, clauses: tally.into_counted(), ..so_far });
            }
            let Some((ad, made)) = self.ad(place) else { break };
            let offered = place < self.offered;
            // Clauses that fail on machines that offer nothing now are not reported.
            let mut other = Tally::default();
            let look = if offered { &mut tally } else { &mut other }.look(&spec.ad, ad, &env);
            match look {
                Look::Match if offered => return found(Matchable::Yes),
                Look::Match => {
                    so_far.withheld.push(place);
                    *steps = steps.saturating_sub(LOOK + made);
                }
                Look::Counted { failed, steps: cost } => {
                    *steps = steps.saturating_sub(cost + LOOK + made);
                    if offered && so_far.nearest.is_none_or(|(_, least)| failed < least) {
                        so_far.nearest = Some((place, failed));
                    }
                }
            }
        }
        let (clauses, by) = (tally.into_clauses(), so_far.by);
        if !so_far.withheld.is_empty() {
            return Explained::Whole { matchable: self.not_offered(&so_far.withheld), clauses, by };
        }
        let nearest = so_far.nearest.and_then(|(place, _)| self.verdict(&spec.ad, place, &env));
        Explained::Whole { matchable: nearest.unwrap_or_default(), clauses, by }
    }

    /// Why no node offers its resources.
    fn none_offered(&self) -> String {
        if self.withheld.is_empty() {
            return "the pool has no nodes".to_owned();
        }
        let named: Vec<String> = self.withheld.iter().take(NAMED).map(|machine| machine.withheld()).collect();
        let more = self.withheld.len() - named.len();
        let more = if more > 0 { format!(", and {more} more nodes offer nothing") } else { String::new() };
        format!("no node offers its resources: {}{more}; see kubectl get pslots -o wide", named.join(", "))
    }

    /// Only machines that offer nothing now could run the job.
    fn not_offered(&self, places: &[usize]) -> Matchable {
        let mut machines: Vec<&Machine> =
            places.iter().filter_map(|place| self.slots.get(*place)).map(|(machine, ..)| *machine).collect();
        machines.dedup_by(|a, b| a.facts.name == b.facts.name);
        let named: Vec<String> = machines.iter().take(NAMED).map(|machine| machine.withheld()).collect();
        let more = machines.len() - named.len();
        let more = if more > 0 { format!(", and {more} more are withheld") } else { String::new() };
        let which = if machines.len() == 1 {
            "the only node that could run a proc offers"
        } else {
            "the nodes that could run a proc offer"
        };
        no("NodesNotOffered", "", format!("{which} nothing now: {}{more}", named.join(", ")))
    }

    /// Why no slot matches: what the nearest one lacks.
    fn verdict(&self, job: &Ad, nearest: usize, env: &Env) -> Option<Matchable> {
        let (machine, slot, _) = self.slots.get(nearest)?;
        let lacks = lacks(job, self.ad(nearest)?.0, Some(machine), env);
        let first = lacks.first()?;
        let texts: Vec<&str> = lacks.iter().take(NAMED).map(|lack| lack.text.as_str()).collect();
        let more = lacks.len() - texts.len();
        let more = if more > 0 { format!(", and {more} more reasons") } else { String::new() };
        let only =
            self.slots.iter().take(self.offered).all(|(other, ..)| other.facts.name == machine.facts.name);
        let node = if machine.machine_slots.len() > 1 {
            slot.name(&machine.facts.name).to_string()
        } else {
            machine.facts.name.to_string()
        };
        let which = if only {
            format!("the only node, {node},")
        } else {
            format!("no node matches: the nearest, {node},")
        };
        let (reason, advice) = match first.side {
            Side::Job => ("RequirementsNotMet", "relax the job, or add a node that meets it"),
            Side::Machine => {
                ("RefusedByMachines", "change the job, or ask an admin to change the policy or add a node")
            }
        };
        Some(no(reason, &first.field, format!("{which} {}{more}; {advice}", texts.join("; it "))))
    }
}

fn no(reason: &'static str, field: &str, message: String) -> Matchable {
    Matchable::No(Problem { reason, field: field.to_owned(), message })
}

/// The slots, with [`LOOKED_AT`] first that are as many of each kind as there is room for, in their order.
fn some_of_each_first<'a>(slots: Vec<(&'a Machine, &'a MachineSlot)>) -> Vec<(&'a Machine, &'a MachineSlot)> {
    if slots.len() <= LOOKED_AT {
        return slots;
    }
    let mut known: HashMap<u64, usize> = HashMap::new();
    let mut last: Option<(&Machine, u64)> = None;
    // Each slot with its number among those of its kind, and its place.
    let mut numbered: Vec<(usize, usize)> = Vec::with_capacity(slots.len());
    for (place, (machine, slot)) in slots.iter().enumerate() {
        let kind = match last {
            Some((of, kind)) if std::ptr::eq(of, *machine) => kind,
            _ => kind_of(machine),
        };
        last = Some((machine, kind));
        let mut hasher = DefaultHasher::new();
        (kind, slot.slot_type, slot.total.cpus, slot.total.memory_mib).hash(&mut hasher);
        let number = known.entry(hasher.finish()).and_modify(|number| *number += 1).or_insert(0);
        numbered.push((*number, place));
    }
    numbered.sort_unstable();
    let looked_at = LOOKED_AT.min(numbered.len());
    let (first, rest) = numbered.split_at_mut(looked_at);
    for part in [first, rest] {
        part.sort_unstable_by_key(|(_, place)| *place);
    }
    numbered.into_iter().filter_map(|(_, place)| slots.get(place).copied()).collect()
}

/// A hash of what machines differ in beside their names.
fn kind_of(machine: &Machine) -> u64 {
    let mut hasher = DefaultHasher::new();
    let facts = &machine.facts;
    (&facts.arch, &facts.os).hash(&mut hasher);
    for label in facts.labels.iter().filter(|(_, value)| value.as_str() != facts.name.as_str()) {
        label.hash(&mut hasher);
    }
    for taint in &facts.taints {
        (&taint.key, &taint.value).hash(&mut hasher);
    }
    for (resource, _) in machine.total.extended.iter() {
        resource.hash(&mut hasher);
    }
    hasher.finish()
}

/// The problem that the job requests more of a resource than any slot of the pool has, if so. Disk counts if all machines manage disk.
fn too_large(request: &Request, sizes: &[(&Resources, &str)], manages_disk: bool) -> Option<Problem> {
    let check = |field: &str, name: &str, asked: i64, of: &dyn Fn(&Resources) -> i64| {
        let amounts = sizes.iter().map(|(size, node)| (of(size), *node));
        let (most, node) = amounts.max_by_key(|(amount, _)| *amount)?;
        (asked > most).then(|| Problem {
            reason: "RequestTooLarge",
            field: field.to_owned(),
            message: if most > 0 {
                let (asked, most) = (amount(name, asked), amount(name, most));
                format!("asks for {asked}, and the most that a node has is {most} ({node}); ask for less, or add a larger node")
            } else {
                format!("asks for {}, and no node has any; leave it out, or add a node that has it", amount(name, asked))
            },
        })
    };
    check("spec.requests.cpus", "Cpus", request.cpus, &|r| r.cpus)
        .or_else(|| check("spec.requests.memory", "Memory", request.memory_mib, &|r| r.memory_mib))
        .or_else(|| {
            let disk = || check("spec.requests.disk", "Disk", request.disk_kib, &|r| r.disk_kib);
            manages_disk.then(disk).flatten()
        })
        .or_else(|| {
            let gpus = |r: &Resources| r.by_classad_name().get(GPUS).copied().unwrap_or(0);
            (request.gpus > 0).then(|| check("spec.requests.gpus", GPUS, request.gpus, &gpus)).flatten()
        })
        .or_else(|| {
            request.extended.iter().find_map(|(name, asked)| {
                let field = format!("spec.requests.resources[{name}]");
                check(&field, &classad_name(name), *asked, &|r| {
                    r.named(name).map_or(0, |name| r.amount(name))
                })
            })
        })
}
