//! Partitionable slots: they can be matched more than once in a cycle.
//!
//! Each match takes a part: as much as the slot's consumption policy says, or without one as much as its startd will carve for
//! the job. HTCondor's negotiator gives a slot without a policy away whole, and leaves it to the schedd to split what it gets.
//!
//! Source: the manual, "condor_negotiator-Side Resource Consumption Policies" and "Defaults for Partitionable Slot Sizes".

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cycle::Candidate;
use crate::pool::slot_types::{
    Amounts, Consumption, Left, RequestPolicy, after, as_consumed, consumed, consumption, cost, given_back,
};
use classad::{Ad, Env, symmetric_match};

/// A slot of which each match takes a part.
#[derive(Clone, Debug)]
pub(super) struct Consuming {
    /// The slot as the matches of this cycle leave it.
    pub(super) ad: Ad,
    how: How,
}

/// What says how much a match takes.
#[derive(Clone, Debug)]
enum How {
    /// The slot itself.
    Policy {
        /// What matches take of.
        resources: Vec<String>,
        /// `NumClaims`: how many matches it has left.
        claims: u64,
    },
    /// Its startd, when it carves.
    Carving {
        policy: Arc<RequestPolicy>,
        /// What the slot has beside cores, memory and disk, by the names in its ad.
        custom: Vec<String>,
        /// Whether it has disk to give: one without says that of nobody knows how much there is.
        disk: bool,
        /// The weight of the whole.
        weight: f64,
    },
}

impl Consuming {
    /// The slot, if a match takes a part of it.
    pub(super) fn of(slot: &Candidate, default: &Arc<RequestPolicy>, env: &Env) -> Option<Self> {
        let ad = &slot.ad;
        if ad.eval_attr("PartitionableSlot", None, env).as_bool_equiv() != Some(true) {
            return None;
        }
        let how = match consumed(ad, env) {
            Some(resources) => {
                let claims = ad.eval_attr("NumClaims", None, env).as_int();
                How::Policy { resources, claims: u64::try_from(claims.unwrap_or(1)).unwrap_or(0) }
            }
            None => How::Carving {
                policy: slot.carving.clone().unwrap_or_else(|| Arc::clone(default)),
                custom: custom(ad, env),
                disk: ad.eval_attr("Disk", None, env).as_number().is_some_and(|disk| disk > 0.0),
                weight: slot.weight,
            },
        };
        Some(Self { ad: ad.clone(), how })
    }

    /// Whether it has a consumption policy: then jobs are held against its Requirements with what they would consume.
    pub(super) fn has_policy(&self) -> bool {
        matches!(self.how, How::Policy { .. })
    }

    /// What a match with a job would take, if the two match.
    fn taken(&self, request: &Ad, env: &Env) -> Option<Consumption> {
        match &self.how {
            How::Policy { resources, claims } => {
                let taken = consumption(&self.ad, resources, request, env).ok().filter(|_| *claims > 0)?;
                symmetric_match(&as_consumed(request, &taken), &self.ad, env).then_some(taken)
            }
            How::Carving { policy, custom, disk, .. } => {
                let mut job = request.clone();
                for resource in ["RequestMemory", "RequestDisk"] {
                    if !job.contains(resource) {
                        job.set(resource, 0);
                    }
                }
                policy
                    .take(&job, &self.ad, &left(&self.ad, custom, *disk, env), env)
                    .ok()
                    .map(|taken| named(&taken.amounts, *disk))
            }
        }
    }

    /// Whether it matches a job.
    pub(super) fn matches(&self, request: &Ad, env: &Env) -> bool {
        self.taken(request, env).is_some()
    }

    /// What a match with a job costs: the slot's weight before it less that after it. None: it does not match.
    pub(super) fn cost(&self, request: &Ad, env: &Env) -> Option<f64> {
        let taken = self.taken(request, env)?;
        cost(&self.ad, &taken, env).or_else(|| match self.how {
            How::Policy { .. } => None,
            // A slot that does not say what it weighs weighs what it has of cores.
            How::Carving { weight, .. } => {
                let cpus = self.ad.eval_attr("Cpus", None, env).as_number().filter(|cpus| *cpus > 0.0)?;
                Some(weight * taken.get("Cpus").copied().unwrap_or(cpus) / cpus)
            }
        })
    }

    /// Whether there is nothing left of it but for what dynamic slots hold.
    pub(super) fn is_used_up(&self, env: &Env) -> bool {
        self.ad.eval_attr("Cpus", None, env).as_number().is_some_and(|cpus| cpus <= 0.0)
    }

    /// Whether a job fits in and the two match.
    pub(super) fn has_room(&self, request: &Ad, env: &Env) -> bool {
        (self.has_policy() || symmetric_match(request, &self.ad, env)) && self.matches(request, env)
    }

    /// What a dynamic slot of it holds of what it has.
    pub(super) fn held_by(&self, child: &Ad, env: &Env) -> Consumption {
        let names = ["Cpus", "Memory", "Disk"].map(str::to_owned).into_iter().chain(custom(&self.ad, env));
        names
            .filter_map(|name| Some((child.eval_attr(&name, None, env).as_number()?, name)))
            .map(|(n, name)| (name, n))
            .collect()
    }

    /// Adds what dynamic slots of it hold, which weigh so much.
    pub(super) fn add(&mut self, held: &Consumption, weighing: f64, env: &Env) {
        self.ad = given_back(&self.ad, held, env);
        if let How::Carving { disk, weight, .. } = &mut self.how {
            *disk |= held.get("Disk").is_some_and(|disk| *disk > 0.0);
            *weight += weighing;
        }
    }

    /// Takes what a match with a job takes that preempts dynamic slots which hold so much: as little of the rest as that needs.
    /// False, if no more can be matched with it.
    pub(super) fn take_with(&mut self, held: &Consumption, weighing: f64, request: &Ad, env: &Env) -> bool {
        let mut grown = self.clone();
        grown.add(held, weighing, env);
        let Some(taken) = grown.taken(request, env) else { return false };
        let needed = taken.into_iter().map(|(name, amount)| {
            let held = held.get(&name).copied().unwrap_or(0.0);
            (name, (amount - held).max(0.0))
        });
        self.deduct(&needed.collect(), request, env);
        !matches!(self.how, How::Policy { claims: 0, .. })
    }

    fn deduct(&mut self, taken: &Consumption, request: &Ad, env: &Env) {
        let cpus = |ad: &Ad| ad.eval_attr("Cpus", None, env).as_number().unwrap_or(0.0);
        let whole = cpus(&self.ad);
        self.ad = after(&self.ad, taken, request, env);
        match &mut self.how {
            How::Policy { claims, .. } => *claims = claims.saturating_sub(1),
            How::Carving { weight, .. } => {
                *weight = if whole > 0.0 { *weight * cpus(&self.ad) / whole } else { 0.0 };
            }
        }
    }

    /// Takes what a match with a job takes. False, if no more can be matched with it.
    pub(super) fn take(&mut self, request: &Ad, env: &Env) -> bool {
        let taken = self.taken(request, env);
        let nothing = Consumption::new();
        self.deduct(taken.as_ref().unwrap_or(&nothing), request, env);
        match &self.how {
            How::Policy { claims, .. } => *claims > 0,
            // What the startd could not carve a part of is gone whole.
            How::Carving { .. } => {
                let rest = self.ad.eval_attr("Cpus", None, env).as_number().unwrap_or(0.0);
                taken.is_some() && rest > 0.0
            }
        }
    }
}

/// What a slot has beside the standard resources.
fn custom(ad: &Ad, env: &Env) -> Vec<String> {
    let standard = ["Cpus", "Memory", "Disk", "Swap"];
    let said = ad.eval_attr("MachineResources", None, env);
    let names = said.as_str().unwrap_or("GPUs").split([' ', ',', '\t']).filter(|name| !name.is_empty());
    let custom = names.filter(|name| !standard.iter().any(|standard| standard.eq_ignore_ascii_case(name)));
    custom.filter(|name| ad.contains(name)).map(str::to_owned).collect()
}

/// What a slot has left, as its ad says. Of what it does not say it has enough.
fn left(ad: &Ad, custom: &[String], disk: bool, env: &Env) -> Left {
    let amount = |name: &str| ad.eval_attr(name, None, env).as_number().map_or(i64::MAX, floor);
    let (cpus, memory_mib) = (amount("Cpus"), amount("Memory"));
    let disk_kib = if disk { amount("Disk") } else { i64::MAX };
    let custom = custom.iter().map(|name| (name.clone(), amount(name))).collect();
    Left { amounts: Amounts { cpus, memory_mib, disk_kib, custom }, devices: BTreeMap::new() }
}

#[allow(clippy::cast_possible_truncation, reason = "saturates")]
fn floor(amount: f64) -> i64 {
    amount.floor() as i64
}

#[allow(clippy::cast_precision_loss, reason = "amounts of slots are far below 2^53")]
fn named(amounts: &Amounts, disk: bool) -> Consumption {
    let standard = [("Cpus", amounts.cpus), ("Memory", amounts.memory_mib), ("Disk", amounts.disk_kib)];
    let standard = standard.into_iter().filter(|(name, _)| disk || *name != "Disk");
    let standard = standard.map(|(name, amount)| (name.to_owned(), amount as f64));
    let custom = amounts.custom.iter().map(|(name, amount)| (name.clone(), *amount as f64));
    standard.chain(custom).collect()
}
