//! Reads slot types from a configuration.

use super::check::Misfit;
use super::devices::Constraint;
use super::fault::Fault;
use super::share::{self, Item, Share, Standard, Unit, Written};
use super::totals::{Declared, Quantity};
use super::{Count, Kind, MAX_SLOTS, Reserved, SlotType, SlotTypes};
use classad::Expr;
use condor_config::{Config, Position, Severity, Text, ValueError};

/// Names that no custom resource can have, because they are those of standard resources.
const RESERVED_NAMES: &[&str] = &["CPU", "CPUS", "DISK", "SWAP", "MEM", "MEMORY", "RAM"];

/// The slot types that a configuration defines.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The types; none if one of the faults is an error.
    pub types: Option<SlotTypes>,
    /// Everything that is wrong with them.
    pub faults: Vec<Fault>,
}

impl SlotTypes {
    /// Reads `SLOT_TYPE_<N>`, `NUM_SLOTS`, `NUM_SLOTS_TYPE_<N>`, `SLOT_TYPE_<N>_PARTITIONABLE`, `RESERVED_MEMORY`,
    /// `RESERVED_DISK`, `MACHINE_RESOURCE_<name>` and `MACHINE_RESOURCE_NAMES`.
    ///
    /// A type of which there are no slots is not read, as in HTCondor.
    pub fn read(config: &Config) -> Reading {
        let mut reader = Reader { config, faults: Vec::new() };
        let declared = reader.declared();
        let types = reader.types();
        let mebibytes = |reader: &mut Reader, knob| reader.integer(knob).unwrap_or(0).max(0);
        let reserved = Reserved {
            memory_mib: mebibytes(&mut reader, "RESERVED_MEMORY"),
            disk_mib: mebibytes(&mut reader, "RESERVED_DISK"),
        };
        let usable = reader.faults.iter().all(|fault| fault.severity != Severity::Error);
        let types = usable.then_some(SlotTypes { types, reserved, declared });
        for misfit in types.iter().flat_map(SlotTypes::misfits) {
            reader.warn(misfit);
        }
        Reading { types, faults: reader.faults }
    }
}

struct Reader<'a> {
    config: &'a Config,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn types(&mut self) -> Vec<SlotType> {
        for knob in ["SLOT_TYPE_0", "NUM_SLOTS_TYPE_0"] {
            if self.config.value(knob).is_ok_and(|value| value.is_some()) {
                self.error_at_value(knob, format!("{knob} cannot be set: types are numbered from 1"));
            }
        }
        // Tells of a value that is no number.
        self.integer("MAX_SLOT_TYPES");
        let mut types = Vec::new();
        for number in 1..=self.config.last_slot_type() {
            let count = self.count(&format!("NUM_SLOTS_TYPE_{number}")).unwrap_or(0);
            if count == 0 {
                self.makes_none(number);
                continue;
            }
            self.not_backfill(number);
            let items = self.shares(&format!("SLOT_TYPE_{number}"));
            types.push(SlotType {
                number,
                count: Count::Of(count),
                kind: self.kind(number, Kind::Static),
                items,
            });
        }
        if types.is_empty() {
            // All slots are of type 0, which is partitionable unless SLOT_TYPE_0_PARTITIONABLE says otherwise. The manual does
            // not mention that knob.
            let kind = self.kind(0, Kind::Partitionable);
            self.not_backfill(0);
            let count = match (self.count("NUM_SLOTS"), kind) {
                (Some(count), _) => Count::Of(count),
                (None, Kind::Partitionable) => Count::Of(1),
                (None, Kind::Static) => Count::OneForEachCpu,
            };
            types.push(SlotType { number: 0, count, kind, items: Vec::new() });
        }
        types
    }

    /// Warns of a type that the text describes and of which there are no slots, because nothing says how many.
    fn makes_none(&mut self, number: u32) {
        let counted = self.config.definition(&format!("NUM_SLOTS_TYPE_{number}")).is_some();
        let knob = format!("SLOT_TYPE_{number}");
        if let (Some(definition), false) = (self.config.definition(&knob), counted) {
            let position = self.config.position(definition);
            let message =
                format!("{knob} makes no slots, since nothing says how many; set NUM_SLOTS_TYPE_{number}");
            self.faults.push(Fault { severity: Severity::Warning, knob, position, message });
        }
    }

    fn kind(&mut self, number: u32, otherwise: Kind) -> Kind {
        match self.boolean(&format!("SLOT_TYPE_{number}_PARTITIONABLE")) {
            Some(true) => Kind::Partitionable,
            Some(false) => Kind::Static,
            None => otherwise,
        }
    }

    /// Refuses HTCondor's backfill slots: they share resources with other slots, and slots here never do.
    fn not_backfill(&mut self, number: u32) {
        let knob = format!("SLOT_TYPE_{number}_BACKFILL");
        if self.boolean(&knob) == Some(true) {
            let why =
                "slots that share what others have are not made here; START_BACKFILL is for backfill work";
            self.error_at_value(&knob, format!("{knob} is true: {why}"));
        }
    }

    // --- shares

    fn shares(&mut self, knob: &str) -> Vec<Item> {
        let Some(text) = self.text(knob) else { return Vec::new() };
        let value = text.as_str();
        let mut items = Vec::new();
        for written in share::items(&value) {
            match self.item(knob, &text, &written) {
                Ok(item) => items.push(item),
                Err(fault) => self.faults.push(fault),
            }
        }
        items
    }

    fn item(&self, knob: &str, text: &Text, written: &Written) -> Result<Item, Fault> {
        let fault = |column: usize, message: String| {
            let position = self.config.position_in(text, written.line, column);
            error(knob, position, format!("{knob}: {message}"))
        };
        let here = |message| fault(written.column, message);
        if written.text.starts_with(':') {
            let how = "write it without blanks around the colon, or give each resource a line of its own";
            return Err(here(format!("a constraint belongs to the share before it; {how}")));
        }
        let Some((name, rest)) = written.text.split_once('=') else {
            return blanket(written.text).map_err(here);
        };
        let name = name.trim_ascii();
        if name.is_empty() {
            return Err(here(format!(
                "{} names no resource; where blanks divide the items, none may stand around =",
                written.text
            )));
        }
        let (amount, constraint) = match rest.split_once(':') {
            Some((amount, constraint)) => (amount, Some(constraint)),
            None => (rest, None),
        };
        let share = share::parse(amount.trim_ascii()).map_err(here)?;
        suits(name, share).map_err(here)?;
        let constraint = constraint.map(|constraint| {
            let end = written.text.chars().count() - constraint.chars().count();
            let column = written.column + end;
            parse_constraint(constraint).map_err(|(before, message)| fault(column + before, message))
        });
        Ok(Item::Named { name: name.to_owned(), share, constraint: constraint.transpose()?.flatten() })
    }

    // --- custom resources

    fn declared(&mut self) -> Vec<Declared> {
        let allowed = self.config.list("MACHINE_RESOURCE_NAMES").unwrap_or_default();
        let is_allowed =
            |name: &str| allowed.is_empty() || allowed.iter().any(|own| own.eq_ignore_ascii_case(name));
        let names: Vec<String> =
            self.config.definitions().filter_map(|found| resource_of(&found.name)).collect();
        let mut declared: Vec<Declared> = Vec::new();
        for name in names.into_iter().filter(|name| is_allowed(name)) {
            let knob = format!("MACHINE_RESOURCE_{name}");
            if declared.iter().any(|known| known.name.eq_ignore_ascii_case(&name)) {
                continue;
            }
            if RESERVED_NAMES.iter().any(|reserved| reserved.eq_ignore_ascii_case(&name)) {
                self.error_at_value(&knob, format!("{knob}: {name} is no name for a custom resource"));
                continue;
            }
            declared.extend(self.quantity(&knob).map(|quantity| Declared { name, quantity }));
        }
        declared
    }

    /// Reads how much there is of a custom resource: a count, or an expression that evaluates to a count; anything else is a list
    /// of ids. The ids or the number in `OFFLINE_MACHINE_RESOURCE_<name>` are subtracted. Such a resource cannot be split, so that
    /// the fraction of a count is dropped.
    fn quantity(&mut self, knob: &str) -> Option<Quantity> {
        self.text(knob)?;
        let offline = format!("OFFLINE_{knob}");
        if let Some(count) = self.config.real(knob).ok().flatten() {
            let offline = self.config.real(&offline).ok().flatten().unwrap_or(0.0);
            #[allow(clippy::cast_possible_truncation, reason = "saturates, and NaN is 0")]
            return Some(Quantity::Count((count.max(0.0) - offline).floor().max(0.0) as i64));
        }
        let offline = self.list(&offline);
        let ids = self.list(knob);
        Some(Quantity::Ids(ids.into_iter().filter(|id| !offline.contains(id)).collect()))
    }

    // --- values

    fn count(&mut self, knob: &str) -> Option<u32> {
        let number = self.integer(knob)?;
        let count = u32::try_from(number).ok().filter(|count| *count <= MAX_SLOTS);
        if count.is_none() {
            let message = format!("{knob} is {number}: a machine can have 0 to {MAX_SLOTS} slots");
            self.error_at_value(knob, message);
        }
        count
    }

    fn integer(&mut self, knob: &str) -> Option<i64> {
        let found = self.config.integer(knob);
        self.ok(knob, found)
    }

    fn boolean(&mut self, knob: &str) -> Option<bool> {
        let found = self.config.boolean(knob);
        self.ok(knob, found)
    }

    fn text(&mut self, knob: &str) -> Option<Text> {
        let found = self.config.text(knob).map_err(ValueError::from);
        self.ok(knob, found)
    }

    fn list(&mut self, knob: &str) -> Vec<String> {
        let found = self.config.list(knob).map(Some).map_err(ValueError::from);
        self.ok(knob, found).unwrap_or_default()
    }

    fn ok<T>(&mut self, knob: &str, found: Result<Option<T>, ValueError>) -> Option<T> {
        found.unwrap_or_else(|error| {
            self.faults.push(Fault::of_value(knob, &error));
            None
        })
    }

    fn warn(&mut self, misfit: Misfit) {
        let number = misfit.slot_type;
        for knob in [format!("SLOT_TYPE_{number}"), format!("NUM_SLOTS_TYPE_{number}")] {
            let Ok(Some(text)) = self.config.text(&knob) else { continue };
            let position = self.config.position_in(&text, 1, 1);
            let message = format!("{knob}: {}", misfit.message);
            self.faults.push(Fault { severity: Severity::Warning, knob, position, message });
            return;
        }
    }

    fn error_at_value(&mut self, knob: &str, message: String) {
        if let Some(text) = self.text(knob) {
            let position = self.config.position_in(&text, 1, 1);
            self.faults.push(error(knob, position, message));
        }
    }
}

fn error(knob: &str, position: Position, message: String) -> Fault {
    Fault { severity: Severity::Error, knob: knob.to_owned(), position, message }
}

/// The name of the resource that a knob declares: `GPUs` for `MACHINE_RESOURCE_GPUs`.
fn resource_of(knob: &str) -> Option<String> {
    let plain =
        knob.get(.."STARTD.".len()).filter(|start| start.eq_ignore_ascii_case("STARTD.")).map_or(0, str::len);
    let (start, name) = knob.get(plain..)?.split_at_checked("MACHINE_RESOURCE_".len())?;
    let is_other = ["NAMES", "INVENTORY_"].iter().any(|other| {
        let same = |start: &str| start.eq_ignore_ascii_case(other);
        if other.ends_with('_') { name.get(..other.len()).is_some_and(same) } else { same(name) }
    });
    (start.eq_ignore_ascii_case("MACHINE_RESOURCE_") && !name.is_empty() && !is_other)
        .then(|| name.to_owned())
}

/// Reads the share of all resources that are not named. An amount is refused: the same amount cannot suit every resource.
fn blanket(text: &str) -> Result<Item, String> {
    let share = share::parse(text)?;
    match share {
        Share::Fraction(part) if part > 1.0 => Err(format!("{text} is more than there is")),
        Share::Amount(amount, _) if amount > 0.0 => Err(format!(
            "{text} is no share of every resource: write a percentage, a fraction, auto or minimal, or name the resource as \
             in cpus={text}"
        )),
        Share::Amount(..) => Ok(Item::Blanket(Share::Fraction(0.0))),
        _ => Ok(Item::Blanket(share)),
    }
}

/// Checks that a share's unit is one in which the resource can be counted.
fn suits(name: &str, share: Share) -> Result<(), String> {
    let Share::Amount(_, unit) = share else { return Ok(()) };
    let least = match Standard::by_name(name) {
        _ if unit == Unit::None => return Ok(()),
        Some(Standard::Memory) => Unit::Mebi,
        Some(Standard::Disk | Standard::Swap) => Unit::Kibi,
        _ => return Err(format!("{name} has no unit: write a number, a percentage or a fraction")),
    };
    if unit < least {
        return Err(format!("{name} is counted in MiB: write it with M, or without a unit"));
    }
    Ok(())
}

/// Reads a constraint; none if the text is empty.
///
/// # Errors
/// The column in the text, from 0, at which it cannot be read, and why.
fn parse_constraint(text: &str) -> Result<Option<Constraint>, (usize, String)> {
    let blanks = text.len() - text.trim_ascii_start().len();
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    match Expr::parse_old(text) {
        Ok(expr) => Ok(Some(Constraint::new(expr))),
        Err(error) => {
            let message = format!("{text} is no constraint: {}", error.fault());
            Err((blanks + error.column().saturating_sub(1), message))
        }
    }
}
