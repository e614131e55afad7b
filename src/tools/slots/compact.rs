//! A line for each machine: `condor_status -compact`.

use std::collections::BTreeSet;

use classad::{Ad, Env, Value};

use super::forms::made;
use super::{Shown, cells};
use crate::column::{Absent, Cell, Column};
use crate::queue::valued;
use crate::screen::Screen;
use crate::table::{Row, Table};

/// A machine's slots of one type, as one line shows them.
struct Machine<'a> {
    first: &'a Ad,
    /// The name of the first slot, if the machine has a line already.
    below: Option<String>,
    slots: i64,
    free_cpus: i64,
    free_memory: f64,
    largest: Option<f64>,
    starts: Option<f64>,
    code: [char; 2],
}

/// The letters of states and activities; `#` if the dynamic slots of a slot do not agree.
const STATES: [(&str, char); 9] = [
    ("Owner", 'O'),
    ("Unclaimed", 'U'),
    ("Matched", 'M'),
    ("Claimed", 'C'),
    ("Preempting", 'P'),
    ("Shutdown", 'S'),
    ("Delete", 'X'),
    ("Backfill", 'F'),
    ("Drained", 'D'),
];
const ACTIVITIES: [(&str, char); 7] = [
    ("Idle", 'i'),
    ("Busy", 'b'),
    ("Retiring", 'r'),
    ("Vacating", 'v'),
    ("Suspended", 's'),
    ("Benchmarking", 'e'),
    ("Killing", 'k'),
];
const MIXED: char = '#';

fn letter(name: &str, table: &[(&str, char)]) -> char {
    let found = table.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map_or(' ', |(_, letter)| *letter)
}

/// The letter on which the dynamic slots of a slot agree; the letter `wins`, of a slot that preempts or vacates, goes
/// before all others.
fn agreed(ad: &Ad, attribute: &str, table: &[(&str, char)], wins: char, env: &Env) -> Option<char> {
    let Value::List(children) = ad.eval_attr(attribute, None, env) else { return None };
    let letters: BTreeSet<char> =
        children.iter().filter_map(Value::as_str).map(|name| letter(name, table)).collect();
    if letters.contains(&wins) && letters.len() > 1 {
        return Some(wins);
    }
    match letters.len() {
        0 => None,
        1 => letters.first().copied(),
        _ => Some(MIXED),
    }
}

/// The letters of a slot's state and activity, with those of its dynamic slots.
fn code(ad: &Ad, env: &Env) -> [char; 2] {
    let of = |attribute: &str, table: &[(&str, char)]| {
        letter(&cells::text(ad, attribute, env).unwrap_or_default(), table)
    };
    let (mut state, mut activity) = (of("State", &STATES), of("Activity", &ACTIVITIES));
    if !cells::is_true(ad, "PartitionableSlot", env) {
        return [state, activity];
    }
    let states = agreed(ad, "ChildState", &STATES, 'P', env);
    let activities = agreed(ad, "ChildActivity", &ACTIVITIES, 'v', env);
    let is_full = ad.eval_attr("Cpus", None, env).as_number().is_some_and(|cpus| cpus < 0.1);
    if (state, activity) == ('U', 'i') && is_full {
        (state, activity) = (states.unwrap_or(' '), activities.unwrap_or(' '));
    } else if state == 'D' && states == Some('C') {
        state = 'C';
    }
    if states == Some('P') {
        state = 'P';
    }
    if activities == Some('v') {
        activity = 'v';
    }
    let seen = |own: char, children: Option<char>| {
        if children.is_some_and(|children| children != own) { '*' } else { own }
    };
    [seen(state, states), seen(activity, activities)]
}

fn memory_of(ad: &Ad, env: &Env) -> f64 {
    ad.eval_attr("Memory", None, env).as_number().unwrap_or(0.0) / 1024.0
}

impl<'a> Machine<'a> {
    fn new(ad: &'a Ad, below: bool, env: &Env) -> Self {
        let name = || cells::text(ad, "Name", env).unwrap_or_default();
        let partitionable = cells::is_true(ad, "PartitionableSlot", env);
        let starts = ad.eval_attr("RecentJobStarts", None, env).as_number().map(|starts| starts / 20.0);
        let free = partitionable || !is_busy(ad, env);
        let children = || match ad.eval_attr("ChildMemory", None, env) {
            Value::List(sizes) => {
                sizes.iter().filter_map(Value::as_number).reduce(f64::max).map(|most| most / 1024.0)
            }
            _ => None,
        };
        Self {
            first: ad,
            below: below.then(|| format!("   {}", name().split('@').next().unwrap_or_default())),
            slots: if partitionable { cells::number(ad, "NumDynamicSlots", env).unwrap_or(0) } else { 1 },
            free_cpus: if free { cells::number(ad, "Cpus", env).unwrap_or(0) } else { 0 },
            free_memory: if free { memory_of(ad, env) } else { 0.0 },
            largest: if partitionable { children() } else { Some(memory_of(ad, env)) },
            starts,
            code: code(ad, env),
        }
    }

    /// Adds another slot of the machine.
    fn add(&mut self, ad: &'a Ad, env: &Env) {
        let other = Self::new(ad, false, env);
        self.slots = self.slots.saturating_add(other.slots);
        self.free_cpus = self.free_cpus.saturating_add(other.free_cpus);
        self.free_memory += other.free_memory;
        self.largest = match (self.largest, other.largest) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        self.starts = self.starts.map(|starts| starts + other.starts.unwrap_or(0.0));
        for (own, other) in self.code.iter_mut().zip(other.code) {
            if *own != other {
                *own = '*';
            }
        }
    }
}

fn is_busy(ad: &Ad, env: &Env) -> bool {
    let state = cells::text(ad, "State", env).unwrap_or_default();
    ["Matched", "Claimed", "Preempting"].iter().any(|busy| busy.eq_ignore_ascii_case(&state))
}

#[allow(clippy::unnecessary_wraps, reason = "it is one of the functions that make cells")]
fn tag(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    let kind = cells::text(ad, "SlotType", env).unwrap_or_default();
    Some(match kind.as_str() {
        "Static" => "S".to_owned(),
        "Partitionable" => " ".to_owned(),
        other => other.chars().take(1).collect(),
    })
}

fn users(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    let Value::List(users) = ad.eval_attr("ChildRemoteUser", None, env) else { return None };
    let users: BTreeSet<&str> = users.iter().filter_map(Value::as_str).collect();
    Some(users.into_iter().collect::<Vec<_>>().join(", "))
}

fn nothing(_: &Ad, _: &Screen, _: &Env) -> Option<String> {
    None
}

const SLOTS: usize = 2;

/// Which of the columns behind `Slots` are computed, by their heading.
fn computed(machine: &Machine, heading: &str) -> Option<Cell> {
    let number =
        |number: Option<f64>| number.map_or_else(Cell::none, |number| Cell::number(format!("{number:.2}")));
    match heading {
        "FreCpu" => Some(Cell::number(machine.free_cpus.to_string())),
        " FreeGb " => Some(number(Some(machine.free_memory))),
        "ST" => Some(Cell::of(machine.code.iter().collect())),
        "Jobs/Min" => Some(number(machine.starts)),
        "MaxSlotGb" => Some(number(machine.largest)),
        _ => None,
    }
}

fn columns(form: Shown) -> Vec<Column> {
    let per_cpu = "TotalLoadAvg*1.0/TotalCpus";
    let mut columns = vec![
        Column { width: 12, ..made("Machine", cells::machine) },
        made("Platform", cells::platform),
        made("Slot", nothing).or(Absent::Nothing),
        made("s", tag).joined(),
    ];
    if form == Shown::Claimed {
        columns.push(made("Users", users));
        return columns;
    }
    columns.extend([
        valued("Cpus", "TotalSlotCpus", "%4d"),
        valued("Gpus", "TotalSlotGpus", "%4d"),
        valued(" TotalGb", "TotalSlotMemory/1024.0", "%8.2f"),
    ]);
    match form {
        Shown::Server => columns.extend([
            valued(" Mips  ", "Mips", "%7d").or(Absent::Char('-')),
            valued(" KFlops  ", "KFlops", "%9d").or(Absent::Char('-')),
            valued("CpuLoad", per_cpu, "%7.2f"),
            made("ST", nothing).left(2),
            made("Jobs/Min", nothing).or(Absent::Char('_')),
        ]),
        Shown::State => columns.extend([
            valued("CpuLoad", per_cpu, "%7.2f"),
            made("ST", nothing).left(2),
            made("Jobs/Min", nothing).or(Absent::Char('_')),
        ]),
        _ => columns.extend([
            made("FreCpu", nothing),
            made(" FreeGb ", nothing),
            valued("CpuLoad", per_cpu, "%7.2f"),
            made("ST", nothing).left(2),
            made("Jobs/Min", nothing).or(Absent::Char('_')),
            made("MaxSlotGb", nothing).or(Absent::Char('*')),
        ]),
    }
    columns
}

/// The table of the machines of these slots, which stand in the order of machines.
pub(super) fn table(
    shown: &[&Ad],
    form: Shown,
    screen: &Screen,
    env: &Env,
    longest: Option<usize>,
) -> (Table, Vec<Row>) {
    let mut machines: Vec<(String, String, Machine)> = Vec::new();
    for ad in shown {
        let machine = cells::text(ad, "Machine", env).unwrap_or_default();
        let kind = cells::number(ad, "SlotTypeID", env).map(|id| id.to_string()).unwrap_or_default();
        let mut same = machines.iter_mut().rev().take_while(|(known, ..)| *known == machine);
        if let Some((_, _, known)) = same.find(|(_, known, _)| *known == kind) {
            known.add(ad, env);
            continue;
        }
        let below = machines.last().is_some_and(|(known, ..)| *known == machine);
        machines.push((machine, kind, Machine::new(ad, below, env)));
    }
    let mut table = Table::new(columns(form), longest);
    let mut rows = Vec::new();
    for (_, _, machine) in &machines {
        let mut row = table.row(machine.first, screen, env);
        if let (Some(name), Some(cell)) = (&machine.below, row.first_mut()) {
            *cell = Cell::of(name.clone());
        }
        if let Some(cell) = row.get_mut(SLOTS) {
            *cell = Cell::number(machine.slots.to_string());
        }
        for (column, cell) in table.columns.iter().zip(&mut row) {
            if let Some(found) = computed(machine, &column.heading) {
                *cell = found;
            }
        }
        rows.push(row);
    }
    (table, rows)
}
