//! A line for each batch of jobs: the default form of condor_q.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use classad::{Ad, Env};

use super::{cells, id, status};
use crate::column::{Absent, Cell, Column, Show};
use crate::conversion::whole;
use crate::screen::{Screen, Width};
use crate::table::{Table, trim_line};

/// A batch: the clusters with one batch name and owner, or one cluster without a batch name.
struct Batch<'a> {
    /// The job with the lowest id.
    first: &'a Ad,
    lowest: (i64, i64),
    highest: (i64, i64),
    name: String,
    idle: i64,
    running: i64,
    held: i64,
    done: i64,
    /// How many jobs were submitted; `None` if a cluster does not tell.
    total: Option<i64>,
}

/// The jobs of one cluster.
struct Procs<'a> {
    first: &'a Ad,
    last: (i64, i64),
    present: i64,
    states: [i64; 8],
}

/// Splits jobs in the order of their ids into clusters.
fn clusters<'a>(shown: &[&'a Ad], env: &Env) -> Vec<((i64, i64), Procs<'a>)> {
    let mut clusters: Vec<((i64, i64), Procs)> = Vec::new();
    for ad in shown {
        let id = id(ad, env);
        let state = usize::try_from(status(ad, env)).unwrap_or(0);
        if clusters.last().is_none_or(|(first, _)| first.0 != id.0) {
            clusters.push((id, Procs { first: ad, last: id, present: 0, states: [0; 8] }));
        }
        let Some((_, procs)) = clusters.last_mut() else { continue };
        procs.last = id;
        procs.present += 1;
        if let Some(count) = procs.states.get_mut(state) {
            *count += 1;
        }
    }
    clusters
}

fn batches<'a>(shown: &[&'a Ad], partial: bool, env: &Env) -> Vec<Batch<'a>> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut named: HashMap<(String, Option<String>), usize> = HashMap::new();
    for (lowest, procs) in clusters(shown, env) {
        let name = cells::text(procs.first, "JobBatchName", env);
        let place = match &name {
            Some(name) => match named.entry((name.clone(), cells::text(procs.first, "Owner", env))) {
                Entry::Occupied(known) => Some(*known.get()),
                Entry::Vacant(free) => {
                    free.insert(batches.len());
                    None
                }
            },
            None => None,
        };
        let place = place.unwrap_or_else(|| {
            batches.push(Batch {
                first: procs.first,
                lowest,
                highest: procs.last,
                name: name.unwrap_or_else(|| format!("ID: {}", lowest.0)),
                idle: 0,
                running: 0,
                held: 0,
                done: 0,
                total: Some(0),
            });
            batches.len() - 1
        });
        let Some(batch) = batches.get_mut(place) else { continue };
        let [_, idle, running, _, _, held, transferring, suspended] = procs.states;
        batch.idle += idle + suspended;
        batch.running += running + transferring;
        batch.held += held;
        batch.highest = batch.highest.max(procs.last);
        let submitted =
            whole(&procs.first.eval_attr("TotalSubmitProcs", None, env)).filter(|total| *total != 0);
        batch.total = batch.total.zip(submitted).map(|(sum, total)| sum.saturating_add(total));
        if let Some(total) = submitted.filter(|_| !partial) {
            batch.done = batch.done.saturating_add(total.saturating_sub(procs.present));
        }
    }
    batches
}

/// The ids of a batch's jobs: the one, or the first and the last.
fn ids(batch: &Batch) -> String {
    let ((cluster, low), (last, high)) = (batch.lowest, batch.highest);
    match (cluster == last, low == high) {
        (true, true) => format!("{cluster}.{low}"),
        (true, false) => format!("{cluster}.{low}-{high}"),
        (false, _) => format!("{cluster}.{low} ... {last}.{high}"),
    }
}

/// The columns before those that count.
const NAMES: usize = 3;
/// The place of HOLD among the columns that count.
const HELD: usize = 3;

/// Prints the batches of these jobs, which stand in the order of their ids. `partial`: nobody knows how many jobs are done.
pub(super) fn print(shown: &[&Ad], partial: bool, screen: &Screen, env: &Env, out: &mut String) {
    let batches = batches(shown, partial, env);
    let rows: Vec<Vec<Cell>> = batches.iter().map(|batch| row(batch, screen, env)).collect();
    let held = rows.is_empty() || batches.iter().any(|batch| batch.held > 0);
    let mut table = table(&rows, held, screen.width);
    out.push_str(&table.headings());
    for row in &rows {
        table.print(row, out);
        if table.longest.is_none() {
            trim_line(out);
        }
    }
}

fn row(batch: &Batch, screen: &Screen, env: &Env) -> Vec<Cell> {
    let total = batch.total.unwrap_or(0);
    let done = batch.total.map_or(0, |_| batch.done);
    let owner = cells::owner(batch.first, screen, env).map_or_else(Cell::none, Cell::of);
    let queued = cells::queued(batch.first, screen, env).map_or_else(Cell::none, Cell::of);
    let counts = [done, batch.running, batch.idle, batch.held, total].map(Cell::counted);
    [owner, Cell::of(batch.name.clone()), queued]
        .into_iter()
        .chain(counts)
        .chain([Cell::of(ids(batch))])
        .collect()
}

/// The table, whose columns are as wide as these rows need, or as a screen lets them.
fn table(rows: &[Vec<Cell>], held: bool, width: Width) -> Table {
    let column = |heading: &str| Column::new(heading, Show::Fixed(String::new()));
    let widest = |place: usize| {
        let len = |row: &Vec<Cell>| row.get(place).and_then(Cell::text).map_or(0, str::len);
        rows.iter().map(len).max().unwrap_or(0)
    };
    let mut owner = widest(0);
    let mut batch = widest(1);
    let longest = match width {
        Width::Columns(columns) => {
            (owner, batch) = shrunk(columns, owner, batch, widest(8));
            Some(columns.saturating_sub(1))
        }
        Width::Piped | Width::Wide => None,
    };
    let mut owner_column = column("OWNER").or(Absent::Unknown);
    owner_column = match rows {
        // Without rows, the column keeps the width of its heading.
        [] => owner_column.left("OWNER".len()),
        _ if owner < "OWNER".len() => owner_column.left(owner.max(8)),
        _ => owner_column.left(owner),
    };
    let batch = if rows.is_empty() { 12 } else { batch.max(10) };
    let mut columns = vec![owner_column, column("BATCH_NAME").left(batch), column("   SUBMITTED").right(12)];
    for (number, heading) in ["  DONE", "  RUN ", "  IDLE", "  HOLD", " TOTAL"].into_iter().enumerate() {
        let column = column(heading).right(widest(NAMES + number).max(6)).or(Absent::Char('_'));
        columns.push(Column { hidden: number == HELD && !held, ..column });
    }
    columns.push(column("JOB_IDS").last());
    Table::new(columns, longest)
}

/// The widths of owners and batch names on a screen. The other columns take 50 characters; if the rest of the screen is too
/// narrow for the names, both get less.
fn shrunk(screen: usize, owner: usize, batch: usize, ids: usize) -> (usize, usize) {
    const LEAST: (i64, i64, i64) = (8, 10, 9);
    let of = |width: usize| i64::try_from(width).unwrap_or(i64::MAX);
    let (screen, owner, batch, mut ids) = (of(screen), of(owner), of(batch), of(ids));
    let room = screen - 50;
    let back = |width: i64| usize::try_from(width).unwrap_or(0);
    if owner + batch + ids <= room {
        return (back(owner), back(batch));
    }
    let each = (room - (LEAST.0 + LEAST.1 + LEAST.2)) / 3;
    let (mut names, mut batches) = (each, each);
    if each < ids && owner + batch - (batches + names + 18) > 7 && batches < 10 {
        ids /= 2;
    }
    if each + 9 > ids {
        let rest = each + 9 - ids;
        names += rest / 2;
        batches += rest - rest / 2;
    }
    if batches + 10 > batch {
        let rest = batches + 10 - batch;
        names = (8 + names + rest).min(owner) - 8;
    }
    if names + 8 > owner {
        let rest = names + 8 - owner;
        batches = (10 + batches + rest).min(batch) - 10;
    }
    (back(owner.min(names + 8)), back(batch.min(batches + 10)))
}
