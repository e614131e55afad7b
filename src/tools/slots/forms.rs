//! The columns of the forms of condor_status that have a line for each slot.

use classad::{Ad, Env};

use super::{Shown, cells};
use crate::column::{Absent, Column, Show};
use crate::queue::valued;
use crate::screen::{Screen, Width};
use crate::table::Table;

/// The least width to which a name is cut.
const LEAST_NAME: usize = 12;
/// The least width to which a machine is cut.
const LEAST_MACHINE: usize = 7;

pub(super) fn made(heading: &str, make: fn(&Ad, &Screen, &Env) -> Option<String>) -> Column {
    Column::new(heading, Show::Made(make))
}

/// The columns of a form, and how many characters of a line all but names and machines take.
pub(super) fn columns(form: Shown, width: Width) -> (Vec<Column>, i64) {
    let unknown = Absent::Unknown;
    let name = Column { grows: true, ..made("Name", cells::name).left(34).whole() };
    let op_sys = made("OpSys", cells::op_sys).left(10).whole();
    let arch = made("Arch", cells::arch).left(8).whole();
    let load = made("LoadAv", cells::load).right(6).or(unknown);
    match form {
        Shown::Claimed => {
            let user = made("RemoteUser", cells::remote_user).left(20).whole();
            let client = made("ClientMachine", cells::client_machine).left(16).whole();
            (vec![name, op_sys, arch, load, user, client], 63)
        }
        Shown::State => {
            let columns = vec![
                name,
                valued("Cpu", "Cpus", "%v"),
                valued(" Mem", "Memory", "%v").right(5).whole(),
                load,
                made("  KbdIdle", cells::keyboard_idle).right(12).or(Absent::Nothing),
                made("State", cells::state).left(7).whole(),
                made("  StateTime", cells::state_elapsed).right(12).or(unknown),
                valued("Activ", "Activity", "%v"),
                made("  ActvtyTime", cells::activity_elapsed).right(12).or(Absent::Char('-')),
            ];
            (columns, 70)
        }
        Shown::Server => {
            let amount =
                |heading, format, width| valued(heading, heading, format).right(width).whole().or(unknown);
            let columns = vec![
                name,
                op_sys,
                arch,
                load,
                amount("Memory", "%8d", 8),
                amount("Disk", "%9d", 9),
                amount("Mips", "%7d", 7),
                amount("KFlops", "%9d", 9),
            ];
            (columns, 65)
        }
        Shown::Absent => {
            let or_unknown = |column: Column| column.whole().or(unknown);
            let wide = super::is_wide(width);
            let columns = vec![
                Column { grows: wide, ..name },
                or_unknown(made("OpSys", cells::op_sys).left(10)),
                or_unknown(made("Arch", cells::arch).left(8)),
                or_unknown(made("Went Absent", cells::went_absent).left(11)),
                or_unknown(made("Will Forget", cells::will_forget).left(11)),
            ];
            (columns, 0)
        }
        Shown::Schedds => {
            let mut columns = named();
            columns.extend(counts(["TotalRunningJobs", "TotalIdleJobs", "TotalHeldJobs"]));
            (columns, 35)
        }
        Shown::Submitters => {
            let mut columns = named();
            columns.extend(counts(["RunningJobs", "IdleJobs", "HeldJobs"]));
            (columns, 35)
        }
        _ => {
            let is_narrow = match width {
                Width::Piped => true,
                Width::Wide => false,
                Width::Columns(columns) => columns <= 100,
            };
            let dash = Absent::Char('-');
            let time = if is_narrow {
                made("  ActvtyTime", cells::activity_time).right(12).joined().or(dash)
            } else {
                let time = Column::new("ActivityTime", Show::Number(cells::activity_time));
                Column { cuts: true, ..time }.or(dash)
            };
            let columns = vec![
                name,
                op_sys,
                arch,
                made("State", cells::state),
                made("Activity", cells::activity).left(8).whole(),
                load,
                valued("Mem", "Memory", "%6d").right(6).whole().or(unknown),
                time,
            ];
            (columns, 65)
        }
    }
}

fn named() -> Vec<Column> {
    let name = made("Name", cells::name);
    let machine = made("Machine", cells::machine);
    vec![Column { width: 15, ..name }, Column { width: 12, ..machine }]
}

fn counts(attributes: [&str; 3]) -> Vec<Column> {
    let [running, idle, held] = attributes;
    vec![
        valued("RunningJobs", running, "%11d"),
        valued("  IdleJobs", idle, "%10d"),
        valued("  HeldJobs", held, "%10d"),
    ]
}

/// Narrows the names and the machines so that lines fit the screen. `fixed` is what the other columns take.
pub(super) fn fit(table: &mut Table, width: Width, fixed: i64) {
    let Width::Columns(columns) = width else { return };
    let of = |width: usize| i64::try_from(width).unwrap_or(i64::MAX);
    let back = |width: i64| usize::try_from(width).unwrap_or(0);
    let place = |heading: &str| table.columns.iter().position(|column| column.heading == heading);
    let (name, machine) = (place("Name"), place("Machine"));
    let wide = |place: Option<usize>| {
        place.and_then(|place| table.columns.get(place)).map_or(0, |column| of(column.width))
    };
    let (name_width, machine_width) = (wide(name), wide(machine));
    let remain = of(columns) - 1 - fixed - name_width - machine_width;
    if remain >= 0 {
        return;
    }
    let mut crop = -remain;
    let mut set = |place: Option<usize>, width: i64| {
        if let Some(column) = place.and_then(|place| table.columns.get_mut(place)) {
            *column = Column { width: back(width), grows: false, cuts: true, ..column.clone() };
        }
    };
    if name.is_some() {
        let kept = (machine_width - crop / 2).max(of(LEAST_MACHINE));
        if machine.is_some() {
            set(machine, kept);
            crop -= machine_width - kept;
        }
        set(name, (name_width - crop).max(of(LEAST_NAME)));
    } else {
        set(machine, (machine_width - crop).max(of(LEAST_MACHINE)));
    }
}
