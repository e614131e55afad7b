//! Faults of slot types that do not depend on what a machine has.

use std::collections::BTreeSet;

use super::share::{Item, MINIMAL, Share, Standard};
use super::{Count, SlotType, SlotTypes};

/// By how much fractions may exceed the whole, since a machine's amounts are rounded down: three times 33.4 % fit a small machine.
const SLACK: f64 = 0.01;

/// The resources of which a slot needs at least one unit.
const NEEDED: [&str; 3] = ["Cpus", "Memory", "Disk"];

/// Something that no machine can have.
pub(super) struct Misfit {
    /// The type's number.
    pub slot_type: u32,
    /// The fault, and its cure.
    pub message: String,
}

impl SlotTypes {
    /// The types that fit no machine, because fractions of a resource come to more than all of it, or leave nothing for slots that share
    /// the rest; and resources whose names are probably misspelt.
    pub(super) fn misfits(&self) -> Vec<Misfit> {
        let mut found: Vec<Misfit> = self.types.iter().flat_map(|kind| self.misspelt(kind)).collect();
        let items = self.types.iter().flat_map(|kind| &kind.items);
        let custom: BTreeSet<String> = items
            .filter_map(|item| match item {
                Item::Named { name, .. } if Standard::by_name(name).is_none() => Some(name.clone()),
                Item::Named { .. } | Item::Blanket(_) => None,
            })
            .collect();
        // One message is enough: 60% of everything, twice, is too much of each resource.
        let mut names = NEEDED.into_iter().map(str::to_owned).chain(custom);
        found.extend(names.find_map(|name| self.misfit_of(&name)));
        found
    }

    fn misfit_of(&self, name: &str) -> Option<Misfit> {
        let (mut taken, mut last, mut sharing) = (0.0, None, Vec::new());
        for kind in &self.types {
            let Count::Of(count) = kind.count else { continue };
            match kind.share_of(name) {
                Share::Auto => sharing.push(kind),
                Share::Minimal if Standard::by_name(name) == Some(Standard::Cpus) => {}
                Share::Minimal => taken += f64::from(count) * MINIMAL,
                Share::Fraction(part) if part > 0.0 => {
                    taken += f64::from(count) * part;
                    last = Some(kind);
                }
                Share::Fraction(_) | Share::Amount(..) => {}
            }
        }
        let last = last?.number;
        if taken > 1.0 + SLACK {
            let message = format!(
                "the slots of all types together are to have {:.0} % of {name}, which no machine has: give them less, or make fewer of \
                 them",
                taken * 100.0
            );
            return Some(Misfit { slot_type: last, message });
        }
        let left_out = sharing.first().filter(|_| taken > 1.0 - SLACK / 100.0 && NEEDED.contains(&name))?;
        let message = format!(
            "the slots with a part of {name} take all of it, and leave nothing for those of SLOT_TYPE_{}, whose part is auto: give the \
             others less",
            left_out.number
        );
        Some(Misfit { slot_type: left_out.number, message })
    }

    /// Names that are almost those of a resource, and that the configuration does not declare.
    fn misspelt<'a>(&'a self, kind: &'a SlotType) -> impl Iterator<Item = Misfit> + 'a {
        let known = ["Cpus", "Memory", "Disk", "Swap", "VirtualMemory", "GPUs"];
        let names = kind.items.iter().filter_map(move |item| match item {
            Item::Named { name, .. } if Standard::by_name(name).is_none() => Some(name),
            Item::Named { .. } | Item::Blanket(_) => None,
        });
        let is_known = move |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
        let names = names.filter(move |name| !is_known(name));
        let names = names.filter(|name| !self.declared.iter().any(|own| own.name.eq_ignore_ascii_case(name)));
        names.filter_map(move |name| {
            let near = |known: &str| {
                strsim::osa_distance(&name.to_ascii_lowercase(), &known.to_ascii_lowercase()) == 1
            };
            let meant = known.into_iter().find(|known| near(known))?;
            let message = format!(
                "{name} is the name of a custom resource that a node may have; did you mean {meant}?"
            );
            Some(Misfit { slot_type: kind.number, message })
        })
    }
}

impl SlotType {
    /// The share of a resource that a slot of this type has.
    fn share_of(&self, resource: &str) -> Share {
        let standard = Standard::by_name(resource);
        let (mut named, mut blanket) = (None, Share::Auto);
        for item in &self.items {
            match item {
                Item::Blanket(share) => blanket = *share,
                Item::Named { name, share, .. } => {
                    let same = standard.map_or(name.eq_ignore_ascii_case(resource), |standard| {
                        Standard::by_name(name) == Some(standard)
                    });
                    if same {
                        named = Some(*share);
                    }
                }
            }
        }
        named.unwrap_or(blanket)
    }
}
