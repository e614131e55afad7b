//! The columns of the forms of condor_q that have a line for each job.

use classad::{Ad, Env};

use super::{Shown, Times, cells, id};
use crate::column::{Absent, Column, Show};
use crate::conversion::{Conversion, Source};
use crate::table::Table;

/// A column that shows an expression in a format. Both are written here, and tests print each.
pub(crate) fn valued(heading: &str, expression: &str, format: &str) -> Column {
    let conversion = Conversion::parse(format).ok().flatten().unwrap_or_else(Conversion::value);
    let source = Source::parse(expression).unwrap_or_else(|_| Source::attribute(expression));
    Column::new(heading, Show::Value(source, conversion))
}

fn made(heading: &str, make: fn(&Ad, &crate::Screen, &Env) -> Option<String>) -> Column {
    Column::new(heading, Show::Made(make))
}

/// The place of the owner among the columns of each form.
const OWNER: usize = 2;
/// How many characters of an owner are shown.
const OWNER_WIDTH: usize = 14;

/// The columns of a form.
pub(super) fn columns(form: Shown, times: Times) -> Vec<Column> {
    let unknown = Absent::Unknown;
    let mut columns = vec![
        valued(" ID", "ClusterId", "%4d.").right(5),
        valued(" ", "ProcId", "%-3d").right(3).joined(),
        made("OWNER", cells::owner).left(OWNER_WIDTH).or(unknown),
    ];
    let submitted = made("  SUBMITTED", cells::queued).right(11);
    let time = match times {
        Times::Run => made("    RUN_TIME", cells::run_time),
        Times::AllRuns => made("    RUN_TIME", cells::all_run_time),
        Times::Cpu => made("    CPU_TIME", cells::cpu_time),
    };
    let time = time.right(12);
    match form {
        Shown::Run => columns.extend([
            submitted.or(unknown),
            time.or(unknown),
            made("HOST(S)", cells::host).last().or(unknown),
        ]),
        Shown::Idle => columns.extend([
            made("UNIVERSE ", cells::universe),
            valued("CPUS", "RequestCpus", "%4d"),
            valued("MEMORY", "RequestMemory", "%6d"),
            valued("STARTS", "NumShadowStarts ?: 0", "%6d"),
            valued("LAST_HOST", "LastRemoteHost", "%v").last(),
        ]),
        Shown::Hold => columns.extend([
            made("HELD_SINCE", cells::held_since).right(11).or(unknown),
            valued("CODE", "HoldReasonCode", "%4d").or(Absent::Char('?')),
            Column { cuts: true, ..valued("/SUB", "HoldReasonSubCode", "/%-3d").joined() },
            valued("HOLD_REASON", "HoldReason", "%v").last(),
        ]),
        _ => columns.extend([
            submitted,
            time,
            made("ST", cells::state),
            valued("PRI", "JobPrio", "%v"),
            Column::new("SIZE", Show::Number(cells::size)).right(4),
            made("CMD", cells::program).last(),
        ]),
    }
    columns
}

/// Adds the columns of `-aaf` behind those of a form, whose last column then is as wide as its texts.
pub(super) fn append(table: &mut Table, more: &[Column]) {
    if let Some(last) = table.columns.last_mut().filter(|last| last.width == 0) {
        *last = Column { width: 3, left: true, grows: true, cuts: false, ..last.clone() };
    }
    table.columns.extend_from_slice(more);
}

/// Widens the columns of ids, and those beside, as condor_q does if one of the ids or owners is longer than usual. `screen` is the
/// width of the screen, if the table must fit.
pub(super) fn fit(table: &mut Table, shown: &[&Ad], screen: Option<usize>, env: &Env) {
    let ids = shown.iter().map(|ad| id(ad, env));
    let (cluster, proc) = ids.fold((0, 0), |most, id| (most.0.max(id.0), most.1.max(id.1)));
    let owner = |ad: &&Ad| cells::text(ad, "Owner", env).map_or(0, |owner| owner.len());
    let longest = shown.iter().map(owner).max().unwrap_or(0);
    if cluster < 9999 && proc < 999 && longest <= OWNER_WIDTH {
        return;
    }
    let digits = |number: i64| number.to_string().len();
    if let Some(column) = table.columns.first_mut().filter(|_| (5..=9).contains(&digits(cluster))) {
        column.width = digits(cluster) + 1;
    }
    if let Some(column) = table.columns.get_mut(1).filter(|_| (4..=9).contains(&digits(proc))) {
        column.width = digits(proc);
        column.left = true;
    }
    if let (Some(screen), Some(column)) = (screen, table.columns.get_mut(OWNER)) {
        let most = (OWNER_WIDTH + screen).saturating_sub(80);
        column.width = column.width.max(longest.min(most));
    }
    let most = shown.iter().filter_map(|ad| cells::memory(ad, env)).fold(0.0, f64::max);
    for column in table.columns.iter_mut().filter(|column| column.heading == "SIZE") {
        column.width = column.width.max(format!("{most:.1}").len());
    }
}
