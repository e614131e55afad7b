//! Divides a machine into slots by the startd's arithmetic.
//!
//! First each slot takes the amounts that its type names, slot by slot in the order of the types. Then the slots whose type says
//! `auto` share what is left. Each resource is a [`Pot`] with its own rules:
//!
//! | resource | a fraction of the total | leaves the pot | an `auto` slot gets |
//! | --- | --- | --- | --- |
//! | CPUs | is exact | rounded up to whole CPUs, though the slot has only the fraction | an equal part, at least 1 |
//! | memory, disk, swap | is rounded down | as it is | an equal part, rounded down, at least 1 |
//! | custom resources | is exact | as it is; the slot has the whole number in it | a whole number; the first slots get the excess |
//!
//! For example, a quarter of 7 CPUs is 1.75, and leaves 5.

use std::collections::BTreeMap;

use super::devices::{Constraint, Free};
use super::fault::Refusal;
use super::share::{Item, MINIMAL, Share, Standard, Unit};
use super::totals::MachineTotals;
use super::{Count, LaidOutSlot, MAX_SLOTS, SlotType, SlotTypes};
use crate::pool::Resources;
use classad::Env;

/// The rounding error that sums of fractions may have.
const ROUNDING: f64 = 1e-6;

/// A resource while it is divided.
struct Pot {
    name: String,
    of: Of,
    total: f64,
    left: f64,
    /// How much has not been given to slots as whole numbers.
    whole: i64,
    /// How many slots share what is left and have not got their part yet.
    sharing: u32,
}

/// Which resource it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Standard(Standard),
    /// The machine's custom resource at this place.
    Custom(usize),
}

/// The part of one resource that a slot of a type gets.
#[derive(Clone, Copy)]
enum Part {
    Auto,
    Of(f64),
}

/// The part of each pot that a slot of a type gets, in the order of the pots.
struct Shares<'a> {
    parts: Vec<Part>,
    constraints: Vec<Option<&'a Constraint>>,
}

/// A slot that is being laid out.
struct Draft<'a> {
    slot_type: &'a SlotType,
    shares: usize,
    amounts: Vec<f64>,
}

impl SlotTypes {
    /// Divides a machine. The resources that the configuration reserves are subtracted first. Resources that the configuration
    /// declares ([`SlotTypes::declared`]) are not added: the caller, who knows what the machine has of them, puts them into
    /// `machine`.
    ///
    /// The slots together never have more of any resource than the machine has; of CPUs, the whole numbers count.
    ///
    /// # Errors
    /// Why the first slot, in the order of slots, cannot have what its type says.
    pub fn lay_out(&self, machine: &MachineTotals) -> Result<Vec<LaidOutSlot>, Refusal> {
        let mut pots = self.pots(machine);
        let shares = self.types.iter().map(|kind| Shares::of(kind, &pots)).collect::<Result<Vec<_>, _>>()?;
        let mut drafts = self.drafts(machine)?;
        let mut nth = BTreeMap::new();
        for draft in &drafts {
            let nth = nth.entry(draft.slot_type.number).and_modify(|nth| *nth += 1).or_insert(1);
            let Some(shares) = shares.get(draft.shares) else { continue };
            take_all(&mut pots, shares, draft.slot_type.number, *nth)?;
        }
        let remaining: Vec<f64> = pots.iter().map(|pot| pot.left).collect();
        let among: Vec<u32> = pots.iter().map(|pot| pot.sharing).collect();
        for (slot, draft) in (1..).zip(&mut drafts) {
            let Some(shares) = shares.get(draft.shares) else { continue };
            for ((pot, part), (left, among)) in
                pots.iter_mut().zip(&shares.parts).zip(remaining.iter().zip(&among))
            {
                let amount = match part {
                    Part::Of(amount) => Some(*amount),
                    Part::Auto => pot.share(*left, *among),
                };
                let nothing = || Refusal::NothingToShare {
                    slot_type: draft.slot_type.number,
                    slot,
                    resource: pot.name.clone(),
                    left: *left,
                    among: *among,
                };
                draft.amounts.push(amount.ok_or_else(nothing)?);
            }
        }
        finish(drafts, &shares, &mut pots, machine)
    }

    fn pots(&self, machine: &MachineTotals) -> Vec<Pot> {
        let disk = self.reserved.disk_mib.saturating_mul(1024);
        let standard = [
            ("Cpus", Standard::Cpus, Some(machine.cpus)),
            ("Memory", Standard::Memory, Some(machine.memory_mib.saturating_sub(self.reserved.memory_mib))),
            // A node that reports no ephemeral storage: disk is not managed there, and there is none to divide.
            ("Disk", Standard::Disk, machine.disk_kib.map(|total| total.saturating_sub(disk))),
            ("Swap", Standard::Swap, machine.swap_kib),
        ];
        let standard = standard
            .into_iter()
            .filter_map(|(name, of, total)| Some(Pot::new(name, Of::Standard(of), total?)));
        let custom = machine.custom.iter().enumerate();
        standard
            .chain(custom.map(|(at, custom)| Pot::new(&custom.name, Of::Custom(at), custom.count)))
            .collect()
    }

    fn drafts(&self, machine: &MachineTotals) -> Result<Vec<Draft<'_>>, Refusal> {
        let count = |kind: &SlotType| match kind.count {
            Count::Of(count) => i64::from(count),
            Count::OneForEachCpu => machine.cpus.max(0),
        };
        let total = self.types.iter().map(count).fold(0, i64::saturating_add);
        if total > i64::from(MAX_SLOTS) {
            return Err(Refusal::TooMany { count: total });
        }
        let drafts = self.types.iter().enumerate().flat_map(|(shares, slot_type)| {
            (0..count(slot_type)).map(move |_| Draft { slot_type, shares, amounts: Vec::new() })
        });
        Ok(drafts.collect())
    }
}

impl Pot {
    #[allow(clippy::cast_precision_loss, reason = "no machine has 2^52 of anything")]
    fn new(name: &str, of: Of, total: i64) -> Self {
        let total = total.max(0);
        Self { name: name.to_owned(), of, total: total as f64, left: total as f64, whole: total, sharing: 0 }
    }

    fn is(&self, standard: Standard) -> bool {
        self.of == Of::Standard(standard)
    }

    /// How much of the pot a share is, but at least `floor`.
    fn part(&self, share: Share, floor: f64) -> Part {
        let amount = match share {
            Share::Auto => return Part::Auto,
            Share::Minimal => self.fraction(MINIMAL),
            Share::Fraction(part) => self.fraction(part),
            Share::Amount(amount, unit) => self.scaled(amount, unit),
        };
        Part::Of(amount.max(floor))
    }

    fn fraction(&self, part: f64) -> f64 {
        let amount = part * self.total;
        if self.is_exact() { amount } else { amount.trunc() }
    }

    fn scaled(&self, amount: f64, unit: Unit) -> f64 {
        if self.is_exact() {
            return amount;
        }
        let base = if self.is(Standard::Memory) { Unit::Mebi } else { Unit::Kibi };
        let steps = match unit {
            Unit::None => 0,
            unit => i32::from(unit as u8) - i32::from(base as u8),
        };
        amount.trunc() * 1024f64.powi(steps.max(0))
    }

    /// Whether slots can have fractions of this resource.
    fn is_exact(&self) -> bool {
        self.is(Standard::Cpus) || matches!(self.of, Of::Custom(_))
    }

    /// Takes an amount out of the pot. Returns false and takes nothing if too little is left.
    fn take(&mut self, amount: f64) -> bool {
        let left = match self.of {
            // HTCondor does not count the CPUs of a minimal slot, because they are too few.
            Of::Standard(Standard::Cpus) if amount < 0.5 => self.left,
            // The rest is truncated towards 0. So the last slot may have up to one CPU more than there is, as in HTCondor.
            Of::Standard(Standard::Cpus) => (self.left - amount).trunc(),
            _ => self.left - amount,
        };
        if left < -ROUNDING {
            return false;
        }
        self.left = left;
        true
    }

    /// The part of the next slot that shares what is left; none if there is too little. `left` is what there was to share among
    /// `among` slots.
    fn share(&mut self, left: f64, among: u32) -> Option<f64> {
        let equal = left / f64::from(among);
        let part = match self.of {
            Of::Standard(Standard::Cpus) => equal,
            Of::Standard(_) => equal.trunc(),
            Of::Custom(_) if left < 1.0 => return Some(0.0),
            Of::Custom(_) => {
                let part = (self.left / f64::from(self.sharing)).ceil().max(0.0);
                self.left -= part;
                self.sharing -= 1;
                return Some(part);
            }
        };
        (part >= 1.0).then_some(part)
    }

    /// The whole number in an amount that a slot has, but never more than the slots before it have left.
    #[allow(clippy::cast_possible_truncation, reason = "it is at most the total")]
    fn give_whole(&mut self, amount: f64) -> i64 {
        // HTCondor adds 0.1 to CPUs before it cuts them to a whole number, so that three thirds of a CPU are one.
        let almost = if self.is(Standard::Cpus) { 0.1 } else { 0.0 };
        let whole = ((amount + almost).floor() as i64).min(self.whole);
        self.whole -= whole;
        whole
    }
}

impl<'a> Shares<'a> {
    /// The parts that a slot of a type gets of each pot. A name that is both a custom resource's name and an abbreviation of a
    /// standard resource means the custom resource.
    fn of(slot_type: &'a SlotType, pots: &[Pot]) -> Result<Self, Refusal> {
        let mut parts: Vec<Option<Part>> = pots.iter().map(|_| None).collect();
        let mut constraints: Vec<Option<&Constraint>> = pots.iter().map(|_| None).collect();
        let (mut blanket, mut least) = (Share::Auto, 1.0);
        for item in &slot_type.items {
            let (name, share, constraint) = match item {
                Item::Blanket(share) => {
                    blanket = *share;
                    if *share == Share::Minimal {
                        least = 0.0;
                    }
                    continue;
                }
                Item::Named { name, share, constraint } => (name, *share, constraint),
            };
            let custom = pots
                .iter()
                .position(|pot| matches!(pot.of, Of::Custom(_)) && pot.name.eq_ignore_ascii_case(name));
            let standard = Standard::by_name(name);
            let at =
                custom.or_else(|| standard.and_then(|standard| pots.iter().position(|pot| pot.is(standard))));
            let Some((at, pot)) = at.and_then(|at| Some((at, pots.get(at)?))) else {
                if standard.is_none() {
                    unknown(slot_type.number, name, share)?;
                }
                continue;
            };
            let floor = match pot.of {
                Of::Standard(Standard::Cpus) => least,
                Of::Standard(Standard::Memory) => 1.0,
                Of::Standard(Standard::Disk) => 1024.0,
                Of::Standard(Standard::Swap) | Of::Custom(_) => 0.0,
            };
            if let Some(part) = parts.get_mut(at) {
                *part = Some(pot.part(share, floor));
            }
            if let (Some(known), Some(constraint)) = (constraints.get_mut(at), constraint) {
                *known = Some(constraint);
            }
        }
        let rest = |pot: &Pot| {
            let floor = if pot.is(Standard::Cpus) || pot.is(Standard::Memory) { least } else { 0.0 };
            pot.part(blanket, floor)
        };
        let parts =
            parts.into_iter().zip(pots).map(|(part, pot)| part.unwrap_or_else(|| rest(pot))).collect();
        Ok(Self { parts, constraints })
    }
}

/// Refuses an amount of a resource that the machine does not have. A fraction, or 0, of such a resource is allowed, so that one
/// configuration can serve machines with and without GPUs.
fn unknown(slot_type: u32, name: &str, share: Share) -> Result<(), Refusal> {
    match share {
        Share::Amount(wanted, _) if wanted > 0.0 => {
            Err(Refusal::Unknown { slot_type, name: name.to_owned(), wanted })
        }
        _ => Ok(()),
    }
}

fn take_all(pots: &mut [Pot], shares: &Shares, slot_type: u32, nth: u32) -> Result<(), Refusal> {
    for (pot, part) in pots.iter_mut().zip(&shares.parts) {
        match *part {
            Part::Auto => pot.sharing += 1,
            Part::Of(wanted) => {
                if !pot.take(wanted) {
                    let (resource, left) = (pot.name.clone(), pot.left);
                    return Err(Refusal::Short { slot_type, nth, resource, wanted, left });
                }
            }
        }
    }
    Ok(())
}

/// Gives the slots their whole numbers and their devices.
fn finish(
    drafts: Vec<Draft>,
    shares: &[Shares],
    pots: &mut [Pot],
    machine: &MachineTotals,
) -> Result<Vec<LaidOutSlot>, Refusal> {
    // Slots are laid out once, so that expressions in a device's properties cannot depend on the time.
    let env = Env::at(0);
    let mut free: Vec<Free> = machine.custom.iter().map(|custom| Free::new(&custom.devices)).collect();
    let mut slots = Vec::with_capacity(drafts.len());
    for (slot, draft) in (1..).zip(drafts) {
        let slot_type = draft.slot_type.number;
        let mut laid = LaidOutSlot::new(slot, draft.slot_type);
        let constraints =
            shares.get(draft.shares).map(|shares| shares.constraints.as_slice()).unwrap_or_default();
        for ((pot, amount), constraint) in pots.iter_mut().zip(&draft.amounts).zip(constraints) {
            let whole = pot.give_whole(*amount);
            match pot.of {
                Of::Standard(Standard::Cpus) => (laid.cpus, laid.resources.cpus) = (*amount, whole),
                Of::Standard(Standard::Memory) => laid.resources.memory_mib = whole,
                Of::Standard(Standard::Disk) => laid.resources.disk_kib = whole,
                Of::Standard(Standard::Swap) => laid.swap_kib = Some(whole),
                Of::Custom(at) => {
                    let (Some(custom), Some(free)) = (machine.custom.get(at), free.get_mut(at)) else {
                        continue;
                    };
                    laid.resources.extended.insert(custom.resource.clone(), whole);
                    if custom.devices.is_empty() || whole == 0 {
                        continue;
                    }
                    let ids = free.take(whole, *constraint, None, &env);
                    let found = i64::try_from(ids.len()).unwrap_or(i64::MAX);
                    if found < whole {
                        return Err(Refusal::NoDevice {
                            slot_type,
                            slot,
                            resource: custom.name.clone(),
                            wanted: whole,
                            found,
                        });
                    }
                    laid.resources.devices.insert(custom.resource.clone(), ids);
                }
            }
        }
        slots.push(laid);
    }
    Ok(slots)
}

impl LaidOutSlot {
    fn new(slot: u32, slot_type: &SlotType) -> Self {
        Self {
            slot,
            slot_type: slot_type.number,
            kind: slot_type.kind,
            cpus: 0.0,
            resources: Resources::default(),
            swap_kib: None,
        }
    }
}
