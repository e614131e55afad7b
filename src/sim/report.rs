//! The measurements of a simulation: tables over time, a record of each proc, and a summary. CSV files, plots and
//! comparisons are made from them.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::transitions::Transitions;
use model::pool::Time;

/// The measurements of one simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The scenario's name.
    pub name: String,
    /// When the simulation began.
    pub start: Time,
    /// How long it lasted, in simulated time.
    pub length: Duration,
    /// Whether the scenario depends on the day of the week or the time of day; then plots show dates.
    pub calendar: bool,
    /// The tables `pool`, `slots`, `submitters` and `groups`.
    pub tables: Vec<Table>,
    /// A record of every proc, in the order of submission; procs of refused jobs have none.
    pub jobs: Vec<JobRecord>,
    /// Every transition of a slot.
    pub transitions: Transitions,
    /// The jobs that were refused, if any; they are in no table.
    pub refused: Option<Refused>,
    /// The machines that cannot be divided as their policies say, and why, each as `machine: why`.
    pub unfit: Vec<String>,
    /// The simulation in numbers.
    pub summary: Summary,
}

impl Report {
    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// Jobs that the schedd refused when they were submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// How many jobs were refused.
    pub jobs: u64,
    /// The name of the first refused job, and everything that is wrong with it.
    pub first: String,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column's name, with the unit where that is not obvious: `goodput_core_hours`.
    pub name: &'static str,
    /// The meaning of the column, for people.
    pub meaning: &'static str,
}

/// Measurements of one subject over time. A row has a time, a key if the table has one, and a value for each column;
/// a missing value is NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The table's name: the CSV file's name without `.csv`.
    pub name: &'static str,
    /// The name of the key: `submitter` or `group`; `None` if the table has one row for each time.
    pub key: Option<&'static str>,
    /// The columns after time and key.
    pub columns: &'static [Column],
    rows: Vec<(f64, Option<Arc<str>>)>,
    values: Vec<f64>,
}

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// Seconds since the start.
    pub at: f64,
    /// The submitter or group, if the table has a key.
    pub key: Option<&'a Arc<str>>,
    /// A value for each column.
    pub values: &'a [f64],
}

/// A line to draw: its key, and its points of seconds since the start and value.
pub type Series = (Option<Arc<str>>, Vec<(f64, f64)>);

impl Table {
    /// A table without rows.
    pub fn new(name: &'static str, key: Option<&'static str>, columns: &'static [Column]) -> Self {
        Self { name, key, columns, rows: Vec::new(), values: Vec::new() }
    }

    /// Adds a row with a value for each column, in the columns' order. Values missing at the end become NaN.
    pub fn push(&mut self, at: f64, key: Option<Arc<str>>, values: &[f64]) {
        self.rows.push((at, key));
        let given = values.iter().copied().chain(std::iter::repeat(f64::NAN));
        self.values.extend(given.take(self.columns.len()));
    }

    /// The rows, in order of time, then of keys.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let values = self.values.chunks_exact(self.columns.len().max(1));
        self.rows.iter().zip(values).map(|((at, key), values)| Row { at: *at, key: key.as_ref(), values })
    }

    /// The lines of one column, one for each key, in the order in which keys first appear, without missing values. An
    /// unknown column has no lines.
    pub fn series(&self, column: &str) -> Vec<Series> {
        let mut series = self.series_with_gaps(column);
        for (_, points) in &mut series {
            points.retain(|(_, value)| !value.is_nan());
        }
        series
    }

    /// The same, with NaN where a value is missing.
    pub fn series_with_gaps(&self, column: &str) -> Vec<Series> {
        let Some(index) = self.columns.iter().position(|known| known.name == column) else {
            return Vec::new();
        };
        let mut series: Vec<Series> = Vec::new();
        let mut places: std::collections::BTreeMap<Option<Arc<str>>, usize> =
            std::collections::BTreeMap::new();
        for row in self.rows() {
            let place = *places.entry(row.key.cloned()).or_insert_with(|| {
                series.push((row.key.cloned(), Vec::new()));
                series.len() - 1
            });
            let value = row.values.get(index).copied().unwrap_or(f64::NAN);
            if let Some((_, points)) = series.get_mut(place) {
                points.push((row.at, value));
            }
        }
        series
    }

    /// The table as CSV: a header, then a line for each row.
    pub fn csv(&self) -> String {
        let mut text = String::from("time");
        for name in self.key.into_iter().chain(self.columns.iter().map(|column| column.name)) {
            text.push(',');
            text.push_str(name);
        }
        text.push('\n');
        for row in self.rows() {
            number(&mut text, row.at);
            if let Some(key) = row.key {
                text.push(',');
                field(&mut text, key);
            }
            for value in row.values {
                text.push(',');
                number(&mut text, *value);
            }
            text.push('\n');
        }
        text
    }
}

/// The record of one proc. Times are in seconds since the start.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    /// The submitter who is charged for the proc.
    pub submitter: Arc<str>,
    /// The job's name.
    pub job: Arc<str>,
    /// The proc's number in its job.
    pub proc: u32,
    /// `RequestCpus`.
    pub cpus: i64,
    /// `RequestMemory`, MiB.
    pub memory_mib: i64,
    /// `RequestGPUs`.
    pub gpus: i64,
    /// How long the proc runs if nothing interrupts it, in seconds.
    pub runtime: f64,
    /// When the proc was submitted.
    pub submitted: f64,
    /// When the proc first started.
    pub first_started: Option<f64>,
    /// When the proc's present or completed run started; `None` while it waits.
    pub started: Option<f64>,
    /// When the proc completed.
    pub ended: Option<f64>,
    /// How often the proc started.
    pub runs: u32,
    /// Seconds of runs that ended in an eviction.
    pub lost: f64,
    /// The machine of the proc's last run.
    pub machine: Option<Arc<str>>,
}

/// The header of the CSV of [`JobRecord`]s.
const JOB_COLUMNS: &str = "submitter,job,proc,cpus,memory_mib,gpus,runtime,submitted,first_started,started,ended,wait,runs,lost,machine\n";

impl Report {
    /// Every transition of a slot as CSV.
    pub fn transitions_csv(&self) -> String {
        self.transitions.csv(self.start)
    }

    /// The records of procs as CSV.
    pub fn jobs_csv(&self) -> String {
        let mut text = String::from(JOB_COLUMNS);
        for record in &self.jobs {
            field(&mut text, &record.submitter);
            text.push(',');
            field(&mut text, &record.job);
            let _ = write!(text, ",{},{},{},{},", record.proc, record.cpus, record.memory_mib, record.gpus);
            number(&mut text, record.runtime);
            let wait = record.wait();
            let times = [Some(record.submitted), record.first_started, record.started, record.ended, wait];
            for time in times {
                text.push(',');
                number(&mut text, time.unwrap_or(f64::NAN));
            }
            let _ = write!(text, ",{},", record.runs);
            number(&mut text, record.lost);
            text.push(',');
            field(&mut text, record.machine.as_deref().unwrap_or_default());
            text.push('\n');
        }
        text
    }
}

impl JobRecord {
    /// Seconds from the proc's submission until it first started; `None` if it never started.
    pub fn wait(&self) -> Option<f64> {
        self.first_started.map(|started| started - self.submitted)
    }
}

/// Writes a number rounded to three decimals, in its shortest form; writes nothing for NaN.
pub(super) fn number(text: &mut String, value: f64) {
    if value.is_nan() {
        return;
    }
    let rounded = (value * 1000.0).round() / 1000.0;
    // -0 is written as 0.
    let _ = write!(text, "{}", if rounded == 0.0 { 0.0 } else { rounded });
}

/// Writes a field of CSV, in quotes if CSV needs them.
pub(super) fn field(text: &mut String, value: &str) {
    if value.contains([',', '"', '\n', '\r']) {
        let _ = write!(text, "\"{}\"", value.replace('"', "\"\""));
    } else {
        text.push_str(value);
    }
}

/// A simulation in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// The seed of the random streams.
    pub seed: u64,
    /// How many seconds were simulated.
    pub simulated_seconds: f64,
    /// All submitters together.
    pub all: Tally,
    /// The fraction of the machines' cores that was claimed, from 0 to 1, over all samples.
    pub utilization: f64,
    /// Negotiation cycles.
    pub cycles: u64,
    /// Matches that the cycles made.
    pub matches: u64,
    /// How many entries of the queue were carried out: pods made, owners who came, machines that left and so on.
    pub events: u64,
    /// Each submitter, in the order of names.
    pub submitters: Vec<Tally>,
}

/// The numbers of one submitter, or of all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// The submitter; empty for all together.
    pub name: String,
    /// Procs submitted.
    pub submitted: u64,
    /// Procs completed.
    pub done: u64,
    /// Procs that have a claim at the end.
    pub running: u64,
    /// Procs that wait at the end.
    pub idle: u64,
    /// Procs that are held at the end.
    pub held: u64,
    /// Procs that were removed.
    pub removed: u64,
    /// How often a proc was evicted. Procs that are held or removed are not evicted.
    pub evictions: u64,
    /// Core hours of runs that ended by themselves.
    pub goodput_core_hours: f64,
    /// Core hours of runs that were evicted, held or removed.
    pub badput_core_hours: f64,
    /// Hours of claims times their slot weight, as the accountant charged them; core hours unless a policy sets
    /// SLOT_WEIGHT.
    pub charged_weight_hours: f64,
    /// Waits until the first start, of procs that started.
    pub wait_seconds: Waits,
}

impl Tally {
    /// Adds what can be added of another tally: all but the name and the distribution of waits.
    pub(crate) fn add(&mut self, other: &Self) {
        self.submitted += other.submitted;
        self.done += other.done;
        self.running += other.running;
        self.idle += other.idle;
        self.held += other.held;
        self.removed += other.removed;
        self.evictions += other.evictions;
        self.goodput_core_hours += other.goodput_core_hours;
        self.badput_core_hours += other.badput_core_hours;
        self.charged_weight_hours += other.charged_weight_hours;
    }
}

/// A distribution of waits, in seconds; all are `None` if no proc started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Waits {
    /// The mean wait.
    pub mean: Option<f64>,
    /// The median wait.
    pub median: Option<f64>,
    /// The 95th percentile: one proc in twenty waited longer.
    pub p95: Option<f64>,
    /// The longest wait.
    pub max: Option<f64>,
}

impl Waits {
    /// The distribution of these waits, given in any order.
    pub fn of(mut waits: Vec<f64>) -> Self {
        waits.sort_by(f64::total_cmp);
        let count = waits.len();
        let rank = |percent: usize| waits.get((count * percent).div_ceil(100).max(1) - 1).copied();
        let mean = waits.iter().sum::<f64>() / super::number::real(count as u64);
        Self {
            mean: (count > 0).then_some(mean),
            median: rank(50),
            p95: rank(95),
            max: waits.last().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_tidy_csv_and_lines_to_draw() {
        const COLUMNS: &[Column] =
            &[Column { name: "got", meaning: "" }, Column { name: "wait_seconds", meaning: "" }];
        let mut table = Table::new("submitters", Some("submitter"), COLUMNS);
        table.push(0.0, Some("a".into()), &[1.0, f64::NAN]);
        table.push(0.0, Some("b, \"c\"".into()), &[0.1 + 0.2]);
        table.push(600.0, Some("a".into()), &[-0.0, 2.0]);
        assert_eq!(
            table.csv(),
            "time,submitter,got,wait_seconds\n0,a,1,\n0,\"b, \"\"c\"\"\",0.3,\n600,a,0,2\n"
        );
        assert_eq!(
            table.series("wait_seconds"),
            [(Some("a".into()), vec![(600.0, 2.0)]), (Some("b, \"c\"".into()), vec![])]
        );
        assert_eq!(table.series("nothing"), []);
    }

    #[test]
    fn waits_are_ranks_of_what_was_waited() {
        let waits = Waits::of((1..=100).rev().map(f64::from).collect());
        assert_eq!(
            (waits.mean, waits.median, waits.p95, waits.max),
            (Some(50.5), Some(50.0), Some(95.0), Some(100.0))
        );
        assert_eq!(Waits::of(vec![]), Waits::default());
    }
}
