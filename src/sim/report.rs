//! What a simulation measured: tables over time, a record of each proc, and a summary. CSV, plots and comparisons are all
//! made of these.

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
    /// How long it went on.
    pub length: Duration,
    /// Whether anything in it went by the day of the week or the time of day: then dates mean something.
    pub calendar: bool,
    /// One for each subject: `pool`, `slots`, `submitters`, `groups`.
    pub tables: Vec<Table>,
    /// Every proc that was submitted, in the order of submission.
    pub jobs: Vec<JobRecord>,
    /// What slots did.
    pub transitions: Transitions,
    /// The jobs that nobody took, where there are any: they are in no table.
    pub refused: Option<Refused>,
    /// The whole in numbers.
    pub summary: Summary,
}

impl Report {
    /// A table by its name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// Jobs that were refused when they were submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// How many.
    pub jobs: u64,
    /// Which was the first, and all that is wrong with it.
    pub first: String,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, with the unit where it is not plain: `goodput_core_hours`.
    pub name: &'static str,
    /// What it is, for people.
    pub meaning: &'static str,
}

/// One subject over time. A row is a time, whose it is where the subject is divided, and a value for each column; a value
/// that there is none of is NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The subject: the CSV file's name without `.csv`.
    pub name: &'static str,
    /// What rows are divided by: `submitter`, `group`; nothing where there is one row for a time.
    pub key: Option<&'static str>,
    /// The columns behind time and key.
    pub columns: &'static [Column],
    rows: Vec<(f64, Option<Arc<str>>)>,
    values: Vec<f64>,
}

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// Seconds since the start.
    pub at: f64,
    /// Whose it is.
    pub key: Option<&'a Arc<str>>,
    /// A value for each column.
    pub values: &'a [f64],
}

/// A line to draw: whose it is, and points of seconds since the start and value.
pub type Series = (Option<Arc<str>>, Vec<(f64, f64)>);

impl Table {
    /// A table without rows.
    pub fn new(name: &'static str, key: Option<&'static str>, columns: &'static [Column]) -> Self {
        Self { name, key, columns, rows: Vec::new(), values: Vec::new() }
    }

    /// Adds a row: a value for each column, in their order. Values that are missing are none.
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

    /// The lines of one column, one for each key, in the order in which keys appear. Values that there are none of are left
    /// out.
    pub fn series(&self, column: &str) -> Vec<Series> {
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
            if let Some((_, points)) = series.get_mut(place).filter(|_| !value.is_nan()) {
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

/// What became of one proc. Times are seconds since the start.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    /// Who is charged.
    pub submitter: Arc<str>,
    /// The job.
    pub job: Arc<str>,
    /// The proc's number in it.
    pub proc: u32,
    /// `RequestCpus`.
    pub cpus: i64,
    /// `RequestMemory`, MiB.
    pub memory_mib: i64,
    /// `RequestGPUs`.
    pub gpus: i64,
    /// How long it runs where nothing interrupts it, in seconds.
    pub runtime: f64,
    /// When it was submitted.
    pub submitted: f64,
    /// When it first ran.
    pub first_started: Option<f64>,
    /// When it began the run that ended it, or the present one.
    pub started: Option<f64>,
    /// When it was done.
    pub ended: Option<f64>,
    /// How often it ran.
    pub runs: u32,
    /// Seconds that it ran in vain.
    pub lost: f64,
    /// Where it ran last.
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
    /// How long it waited until it first ran, in seconds.
    pub fn wait(&self) -> Option<f64> {
        self.first_started.map(|started| started - self.submitted)
    }
}

/// A number to the thousandth, as short as it can be written; nothing where there is none.
pub(super) fn number(text: &mut String, value: f64) {
    if value.is_nan() {
        return;
    }
    let rounded = (value * 1000.0).round() / 1000.0;
    // One zero: -0 would be another text for the same.
    let _ = write!(text, "{}", if rounded == 0.0 { 0.0 } else { rounded });
}

/// A field of CSV, in quotes where it needs them.
pub(super) fn field(text: &mut String, value: &str) {
    if value.contains([',', '"', '\n', '\r']) {
        let _ = write!(text, "\"{}\"", value.replace('"', "\"\""));
    } else {
        text.push_str(value);
    }
}

/// A simulation in numbers. Amounts over time are in core hours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// Where chance started.
    pub seed: u64,
    /// How long the simulation went on, in seconds.
    pub simulated_seconds: f64,
    /// All submitters together.
    pub all: Tally,
    /// What part of the cores that machines had was claimed, 0 to 1.
    pub utilization: f64,
    /// Negotiation cycles.
    pub cycles: u64,
    /// Matches made in them.
    pub matches: u64,
    /// What happened: pods made, owners who came, machines that left, and all else that took time.
    pub events: u64,
    /// Each submitter, in the order of names.
    pub submitters: Vec<Tally>,
}

/// What one submitter, or all, came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// The submitter; empty for all.
    pub name: String,
    /// Procs submitted.
    pub submitted: u64,
    /// Procs done.
    pub done: u64,
    /// Procs that run, or are about to, at the end.
    pub running: u64,
    /// Procs that wait at the end.
    pub idle: u64,
    /// How often a proc was thrown out.
    pub evictions: u64,
    /// Core hours of runs that ended by themselves.
    pub goodput_core_hours: f64,
    /// Core hours of runs that did not.
    pub badput_core_hours: f64,
    /// Core hours of claims: what the accountant charged, where nothing else sets the slot weight.
    pub charged_weight_hours: f64,
    /// Waits until the first run, in seconds, of procs that ran.
    pub wait_seconds: Waits,
}

/// A distribution of waits, in seconds; nothing ran where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Waits {
    /// The mean.
    pub mean: Option<f64>,
    /// Half waited less.
    pub median: Option<f64>,
    /// One in twenty waited longer.
    pub p95: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

impl Waits {
    /// Of these, in any order.
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
