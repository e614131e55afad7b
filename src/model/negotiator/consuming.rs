//! Partitionable slots: a cycle can match them more than once.
//!
//! Each match takes a part of the slot: as much as the slot's consumption policy says, or without such a policy as much as the
//! startd will carve for the job. HTCondor's negotiator matches a slot without a consumption policy whole, and the schedd splits
//! the slot among its jobs.
//!
//! Source: the manual, "condor_negotiator-Side Resource Consumption Policies" and "Defaults for Partitionable Slot Sizes".

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cycle::Candidate;
use crate::pool::slot_types::{
    Amounts, Consumption, Left, RequestPolicy, after, as_consumed, consumed, consumption, cost, given_back,
    weight_of,
};
use classad::{Ad, Env, symmetric_match};

/// A slot of which each match takes a part.
#[derive(Clone, Debug)]
pub(super) struct Consuming {
    /// The slot's ad, less what the matches of this cycle took.
    pub(super) ad: Ad,
    sizing: Sizing,
    /// How much more the slot's dynamic slots hold than there is.
    overdrawn: Consumption,
}

/// Who decides how much of the slot a match takes.
#[derive(Clone, Debug)]
enum Sizing {
    /// The slot's consumption policy.
    Policy {
        /// The resources that the policy consumes.
        resources: Vec<String>,
        /// `NumClaims`: how many more matches the slot takes.
        claims: u64,
    },
    /// The startd, when it carves a dynamic slot for the job.
    Carving {
        policy: Arc<RequestPolicy>,
        /// The slot's resources other than cores, memory and disk, by their names in the ad.
        custom: Vec<String>,
        /// Whether the amount of disk counts. If the ad says none or 0, the amount is not known, and any request fits.
        disk: bool,
        /// The weight of what is left of the slot.
        weight: f64,
    },
}

impl Consuming {
    /// Returns the slot if it is partitionable, so that a match takes a part of it.
    pub(super) fn of(slot: &Candidate, default: &Arc<RequestPolicy>, env: &Env) -> Option<Self> {
        let ad = &slot.ad;
        if ad.eval_attr("PartitionableSlot", None, env).as_bool_equiv() != Some(true) {
            return None;
        }
        let sizing = match consumed(ad, env) {
            Some(resources) => {
                let claims = ad.eval_attr("NumClaims", None, env).as_int();
                Sizing::Policy { resources, claims: u64::try_from(claims.unwrap_or(1)).unwrap_or(0) }
            }
            None => Sizing::Carving {
                policy: slot.carving.clone().unwrap_or_else(|| Arc::clone(default)),
                custom: custom(ad, env),
                disk: ad.eval_attr("Disk", None, env).as_number().is_some_and(|disk| disk > 0.0),
                weight: slot.weight,
            },
        };
        Some(Self { ad: ad.clone(), sizing, overdrawn: slot.overdrawn.clone() })
    }

    /// Whether the slot has a consumption policy. If so, its Requirements see what a job would consume, not what it requests.
    pub(super) fn has_policy(&self) -> bool {
        matches!(self.sizing, Sizing::Policy { .. })
    }

    /// The amounts that a match with a job would take; none if the job and the slot do not match.
    fn taken(&self, request: &Ad, env: &Env) -> Option<Consumption> {
        match &self.sizing {
            Sizing::Policy { resources, claims } => {
                let taken = consumption(&self.ad, resources, request, env).ok().filter(|_| *claims > 0)?;
                symmetric_match(&as_consumed(request, &taken), &self.ad, env).then_some(taken)
            }
            Sizing::Carving { policy, custom, disk, .. } => {
                let mut job = request.clone();
                for resource in ["RequestMemory", "RequestDisk"] {
                    if !job.contains(resource) {
                        job.set(resource, 0);
                    }
                }
                policy
                    .carve(&job, &self.ad, &left(&self.ad, custom, *disk, env), env)
                    .ok()
                    .map(|taken| named(&taken.amounts, *disk))
            }
        }
    }

    /// Whether the slot matches a job.
    pub(super) fn matches(&self, request: &Ad, env: &Env) -> bool {
        self.taken(request, env).is_some()
    }

    /// The cost of a match with a job. With a consumption policy: by how much the match lowers the slot's weight. Otherwise: the weight of
    /// the part that is carved for the job, which is what the claim will be charged. None if they do not match.
    pub(super) fn cost(&self, request: &Ad, env: &Env) -> Option<f64> {
        let taken = self.taken(request, env)?;
        match self.sizing {
            Sizing::Policy { .. } => cost(&self.ad, &taken, env),
            Sizing::Carving { weight, .. } => weight_of(&self.ad, &taken, env).or_else(|| {
                // The ad of a slot without SLOT_WEIGHT: the weight is proportional to the cores.
                let cpus = self.ad.eval_attr("Cpus", None, env).as_number().filter(|cpus| *cpus > 0.0)?;
                Some(weight * taken.get("Cpus").copied().unwrap_or(cpus) / cpus)
            }),
        }
    }

    /// Whether no core of the slot is left: all are in dynamic slots.
    pub(super) fn is_used_up(&self, env: &Env) -> bool {
        self.ad.eval_attr("Cpus", None, env).as_number().is_some_and(|cpus| cpus <= 0.0)
    }

    /// Whether a job matches the slot and fits into what is left of it.
    pub(super) fn has_room(&self, request: &Ad, env: &Env) -> bool {
        (self.has_policy() || symmetric_match(request, &self.ad, env)) && self.matches(request, env)
    }

    /// The resources of one of the slot's dynamic slots: amounts of everything that the partitionable slot has.
    pub(super) fn resources_of(&self, child: &Ad, env: &Env) -> Consumption {
        let names = ["Cpus", "Memory", "Disk"].map(str::to_owned).into_iter().chain(custom(&self.ad, env));
        names
            .filter_map(|name| Some((child.eval_attr(&name, None, env).as_number()?, name)))
            .map(|(n, name)| (name, n))
            .collect()
    }

    /// Adds what dynamic slots of this slot would free: resources, and their weight.
    pub(super) fn add(&mut self, freed: &Consumption, weighing: f64, env: &Env) {
        let freed = self.settle(freed);
        self.ad = given_back(&self.ad, &freed, env);
        if let Sizing::Carving { disk, weight, .. } = &mut self.sizing {
            *disk |= freed.get("Disk").is_some_and(|disk| *disk > 0.0);
            *weight += weighing;
        }
    }

    /// Settles with freed resources what the slot is overdrawn, and returns the rest of these resources.
    fn settle(&mut self, freed: &Consumption) -> Consumption {
        let rest = freed.iter().map(|(name, amount)| {
            let settled = self.overdrawn.get_mut(name).map_or(0.0, |missing| {
                let settled = amount.min(*missing);
                *missing -= settled;
                settled
            });
            (name.clone(), amount - settled)
        });
        rest.collect()
    }

    /// Books a match that preempts dynamic slots of this slot. The match takes the resources that the dynamic slots
    /// free (`freed`) first, and takes only what is still missing from what is left of this slot. Returns false if the
    /// slot cannot be matched again in this cycle.
    pub(super) fn take_with(&mut self, freed: &Consumption, weighing: f64, request: &Ad, env: &Env) -> bool {
        let mut grown = self.clone();
        grown.add(freed, weighing, env);
        let freed = self.settle(freed);
        let Some(taken) = grown.taken(request, env) else { return false };
        let needed = taken.into_iter().map(|(name, amount)| {
            let freed = freed.get(&name).copied().unwrap_or(0.0);
            (name, (amount - freed).max(0.0))
        });
        self.deduct(&needed.collect(), request, env);
        !matches!(self.sizing, Sizing::Policy { claims: 0, .. })
    }

    fn deduct(&mut self, taken: &Consumption, request: &Ad, env: &Env) {
        let cpus = |ad: &Ad| ad.eval_attr("Cpus", None, env).as_number().unwrap_or(0.0);
        let whole = cpus(&self.ad);
        self.ad = after(&self.ad, taken, request, env);
        match &mut self.sizing {
            Sizing::Policy { claims, .. } => *claims = claims.saturating_sub(1),
            Sizing::Carving { weight, .. } => {
                *weight = if whole > 0.0 { *weight * cpus(&self.ad) / whole } else { 0.0 };
            }
        }
    }

    /// Takes what a match with a job takes. Returns false if the slot cannot be matched again in this cycle.
    pub(super) fn take(&mut self, request: &Ad, env: &Env) -> bool {
        let taken = self.taken(request, env);
        let nothing = Consumption::new();
        self.deduct(taken.as_ref().unwrap_or(&nothing), request, env);
        match &self.sizing {
            Sizing::Policy { claims, .. } => *claims > 0,
            // If the startd cannot carve a part for the job, the match takes the whole slot.
            Sizing::Carving { .. } => {
                let rest = self.ad.eval_attr("Cpus", None, env).as_number().unwrap_or(0.0);
                taken.is_some() && rest > 0.0
            }
        }
    }
}

/// The names of a slot's resources other than the standard ones.
fn custom(ad: &Ad, env: &Env) -> Vec<String> {
    let standard = ["Cpus", "Memory", "Disk", "Swap"];
    let said = ad.eval_attr("MachineResources", None, env);
    let names = said.as_str().unwrap_or("GPUs").split([' ', ',', '\t']).filter(|name| !name.is_empty());
    let custom = names.filter(|name| !standard.iter().any(|standard| standard.eq_ignore_ascii_case(name)));
    custom.filter(|name| ad.contains(name)).map(str::to_owned).collect()
}

/// The amounts that a slot has left, as its ad says. A resource that the ad does not mention never runs out.
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
