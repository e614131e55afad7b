//! Explains why a job does not match.

use std::cell::OnceCell;

use std::sync::Arc;

use super::clauses::{Look, Tally, verdict};
use crate::pool::{
    Explaining, FailedClause, Job, Machine, MachineSlot, Matchable, Offer, Pool, Problem, Resources, Time,
    classad_name,
};
use crate::startd::whole_slot_ad;
use classad::{Ad, Env};

/// The most machines, and the most slots, that are examined to explain a job.
const LOOKED_AT: usize = 1000;

/// What making a slot's ad costs, in steps of evaluation.
const AD: u64 = 1000;

/// What explaining a job came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Explained {
    /// Whether a machine could run it, and the clauses because of which none could.
    Whole(Matchable, Arc<[FailedClause]>),
    /// The explanation has to go on.
    Part(Explaining),
}

/// The slots of machines that offer their resources, with the ads that these slots would have if their machines were idle. Each ad
/// is made at most once, for all jobs that are explained with one `Offers`.
pub struct Offers<'a> {
    pool: &'a Pool,
    machines: Vec<&'a Machine>,
    slots: Vec<(&'a Machine, &'a MachineSlot, OnceCell<Ad>)>,
}

impl<'a> Offers<'a> {
    /// The slots of the pool's machines, of at most 1000 machines and at most 1000 slots.
    pub fn of(pool: &'a Pool) -> Self {
        let offered = |machine: &&Machine| machine.offer == Offer::Offered;
        let machines: Vec<&Machine> = pool.machines().values().filter(offered).take(LOOKED_AT).collect();
        let slots = machines
            .iter()
            .flat_map(|machine| machine.standing.values().map(|slot| (*machine, slot, OnceCell::new())));
        Self { pool, slots: slots.take(LOOKED_AT).collect(), machines }
    }

    fn ads(&self) -> impl Iterator<Item = &Ad> {
        self.slots.iter().map(|(machine, slot, ad)| {
            ad.get_or_init(|| whole_slot_ad(machine, slot, &self.pool.startd(machine)))
        })
    }

    /// Says whether some machine could run a proc of the job if that machine were idle, and if none could, why. If clauses of
    /// Requirements are the reason, these clauses are returned too. `steps` is what the explanation may cost, and becomes what is
    /// left of that; an explanation that costs more goes on where [`Job::explaining`] says, until the machines offer something
    /// else.
    pub fn explain(&self, cluster: &Job, now: Time, steps: &mut u64) -> Explained {
        let found = |matchable| Explained::Whole(matchable, Arc::default());
        let Some(spec) = &cluster.spec else { return found(Matchable::Unknown) };
        if self.machines.is_empty() {
            let message = "no node offers its resources; see kubectl get pslots for the reasons".to_owned();
            return found(no("NoMachines", "status", message));
        }
        if let Some(problem) = too_large(&spec.request, &self.slots) {
            return found(Matchable::No(problem));
        }
        let (env, by) = (Env::at(now.secs()), self.pool.offers());
        let begun = cluster.explaining.clone().filter(|begun| begun.by == by);
        let (done, counted) = begun.map_or((0, Vec::new()), |begun| (begun.slots, begun.clauses));
        let mut tally = Tally::of(counted);
        for (slots, ad) in self.ads().enumerate().skip(done) {
            if *steps == 0 {
                return Explained::Part(Explaining { by, slots, clauses: tally.into_counted() });
            }
            match tally.look(&spec.ad, ad, &env) {
                Look::Match => return found(Matchable::Yes),
                Look::Counted(cost) => *steps = steps.saturating_sub(cost + AD),
            }
        }
        let clauses = tally.into_clauses();
        Explained::Whole(verdict(&clauses, self.slots.len()), clauses)
    }
}

pub(super) fn no(reason: &'static str, field: &str, message: String) -> Matchable {
    Matchable::No(Problem { reason, field: field.to_owned(), message })
}

/// The problem that the job requests more of a resource than any slot has, if so.
fn too_large(
    request: &crate::pool::Request,
    slots: &[(&Machine, &MachineSlot, OnceCell<Ad>)],
) -> Option<Problem> {
    let largest = |amount: &dyn Fn(&Resources) -> i64| {
        let amounts = slots.iter().map(|(m, slot, _)| (amount(&slot.total), m.facts.name.as_str()));
        amounts.max_by_key(|(amount, _)| *amount)
    };
    let check = |field: String, unit: &str, asked: i64, amount: &dyn Fn(&Resources) -> i64| {
        let (most, node) = largest(amount)?;
        (asked > most).then(|| Problem {
            reason: "RequestTooLarge",
            field,
            message: format!(
                "{asked}{unit} is more than any node offers (the most is {most}{unit}, on {node}); ask for less, or add a larger node"
            ),
        })
    };
    check("spec.requests.cpus".into(), " CPUs", request.cpus, &|r| r.cpus)
        .or_else(|| check("spec.requests.memory".into(), " MiB", request.memory_mib, &|r| r.memory_mib))
        .or_else(|| {
            let managed = slots.iter().all(|(_, slot, _)| slot.total.disk_kib > 0);
            managed
                .then(|| check("spec.requests.disk".into(), " KiB", request.disk_kib, &|r| r.disk_kib))
                .flatten()
        })
        .or_else(|| {
            let gpus = |r: &Resources| r.by_classad_name().get(crate::pool::GPUS).copied().unwrap_or(0);
            let asked = request.gpus > 0;
            asked.then(|| check("spec.requests.gpus".into(), " GPUs", request.gpus, &gpus)).flatten()
        })
        .or_else(|| {
            request.extended.iter().find_map(|(name, asked)| {
                let unit = format!(" {}", classad_name(name));
                check(format!("spec.requests.resources[{name}]"), &unit, *asked, &|r| {
                    r.named(name).map_or(0, |name| r.amount(name))
                })
            })
        })
}
