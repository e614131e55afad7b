//! The plots of a report. The title of each is a sentence about the numbers that the plot shows.

use std::sync::Arc;

use super::plot::{Axis, Chart, Kind, Pair, Pairs, PlotError, Role, Series, Unit};
use super::report::{Report, Table};
use super::shares::{Whose, shares};

/// A plot of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// The file's name without `.svg`.
    pub name: &'static str,
    plot: Plot,
}

#[derive(Clone, Debug, PartialEq)]
enum Plot {
    Chart(Chart),
    Pairs(Pairs),
}

impl Drawing {
    /// The plot as an SVG document. Fails if there is nothing to draw, for example because nobody submitted a job.
    pub fn svg(&self) -> Result<String, PlotError> {
        match &self.plot {
            Plot::Chart(chart) => chart.svg(),
            Plot::Pairs(pairs) => pairs.svg(),
        }
    }
}

/// The columns of the table `slots` that are stacked, from below, with their names in the plot: first what runs, then
/// what is about to run, then what jobs cannot use.
const STATES: [(&str, &str, Role); 11] = [
    ("claimed_busy", "Claimed/Busy", Role::Measured),
    ("claimed_retiring", "Claimed/Retiring", Role::Measured),
    ("claimed_suspended", "Claimed/Suspended", Role::Measured),
    ("claimed_idle", "Claimed/Idle", Role::Measured),
    ("matched", "Matched", Role::Measured),
    ("preempting", "Preempting", Role::Measured),
    ("backfill", "Backfill", Role::Measured),
    ("drained", "Drained", Role::Measured),
    ("owner", "Owner", Role::Measured),
    ("foreign", "Pods outside the pool", Role::Measured),
    ("unclaimed", "Unclaimed", Role::Quiet),
];

/// The most submitters or groups that have a line each; more lines would cover each other, and are stacked instead.
const MOST_LINES: usize = 5;

/// Every plot that the report has values for.
pub fn charts(report: &Report) -> Vec<Drawing> {
    let draw = Draw { report };
    let charts = [
        ("states", draw.states()),
        ("submitters", draw.shares(Whose::Submitters, "submitter")),
        ("groups", draw.shares(Whose::Groups, "group")),
        ("priorities", draw.priorities()),
        ("queue", draw.queue()),
        ("waits", draw.waits()),
        ("work", draw.work()),
        ("fragmentation", draw.fragmentation()),
    ];
    let drawn =
        charts.into_iter().filter_map(|(name, chart)| Some(Drawing { name, plot: Plot::Chart(chart?) }));
    let deserved = [("deserved-submitters", Whose::Submitters), ("deserved-groups", Whose::Groups)];
    let pairs = deserved
        .into_iter()
        .filter_map(|(name, whose)| Some(Drawing { name, plot: Plot::Pairs(draw.deserved(whose)?) }));
    drawn.chain(pairs).collect()
}

struct Draw<'a> {
    report: &'a Report,
}

impl Draw<'_> {
    /// A chart over the time of the report; `None` if it would be empty.
    fn chart(&self, title: String, what: &str, y: Axis, kind: Kind, series: Vec<Series>) -> Option<Chart> {
        let any = series.iter().any(|series| series.points.iter().any(|(_, y)| y.is_finite()));
        any.then(|| Chart {
            title,
            subtitle: format!("{what}; {}", self.report.name),
            x: self.time(),
            y,
            kind,
            series,
        })
    }

    /// The time axis: dates if the scenario depends on the calendar, else the time since the start.
    fn time(&self) -> Axis {
        let length = self.report.length.as_secs_f64();
        if !self.report.calendar {
            return Axis::new("since the start", Unit::Span).over(0.0, length);
        }
        Axis::new("", Unit::Date { start: self.report.start.secs() }).over(0.0, length)
    }

    fn table(&self, name: &str) -> Option<&Table> {
        self.report.table(name)
    }

    fn states(&self) -> Option<Chart> {
        let table = self.table("slots")?;
        let series: Vec<Series> = STATES
            .iter()
            .flat_map(|(column, name, role)| {
                let lines = table.series(column).into_iter();
                lines.map(|(_, points)| Series::new(*name, points).in_role(*role))
            })
            .filter(|series| series.points.iter().any(|(_, cores)| *cores > 0.0))
            .collect();
        let all: f64 = series.iter().map(|series| mean(&series.points)).sum();
        let busy: f64 = table.series("claimed_busy").iter().map(|(_, points)| mean(points)).sum();
        let title = format!("Jobs ran on {} of the cores", percent(busy / all));
        self.chart(title, "Cores by the state of their slot", cores(), Kind::Stacked, series)
    }

    /// The slot weight that each submitter or group used; with the slot weight that each deserved, if there are at
    /// most `MOST_LINES`.
    fn shares(&self, whose: Whose, kind: &str) -> Option<Chart> {
        let shares = shares(self.report, whose);
        let all: f64 = shares.iter().map(|share| mean(&share.got)).sum();
        let most = shares.iter().max_by(|one, other| mean(&one.got).total_cmp(&mean(&other.got)))?;
        let title = if shares.len() == 1 {
            format!("{} used {} in the mean", most.name, amount(all, "core"))
        } else {
            format!("{} had {} of what was used", most.name, percent(mean(&most.got) / all))
        };
        let weight = Axis::new("slot weight (cores, where nothing else is set)", Unit::Number);
        let many = shares.len() > MOST_LINES;
        let (mut got, mut deserved) = (Vec::new(), Vec::new());
        for share in shares {
            got.push(Series::new(share.name.clone(), share.got));
            deserved.push(Series::new(share.name, share.deserved).in_role(Role::Reference));
        }
        if many {
            return self.chart(title, &format!("Slot weight in use by {kind}"), weight, Kind::Stacked, got);
        }
        let what = format!("Slot weight in use by {kind}; dashed: what it deserves, while it waits for more");
        self.chart(title, &what, weight, Kind::Steps, got.into_iter().chain(deserved).collect())
    }

    /// The mean slot weight that each deserved and used while its procs waited.
    fn deserved(&self, whose: Whose) -> Option<Pairs> {
        let mut rows: Vec<Pair> = shares(self.report, whose)
            .into_iter()
            .filter_map(|share| {
                let asked = share.asked()?;
                Some(Pair { name: share.name, first: Some(asked.deserved), second: Some(asked.got) })
            })
            .collect();
        rows.sort_by(|one, other| value(other.first).total_cmp(&value(one.first)));
        let short = rows.iter().filter(|row| value(row.second) < 0.9 * value(row.first)).count();
        let title = match (short, rows.len()) {
            (_, 0) => return None,
            (0, _) => "All had nine tenths of what they deserved, or more".to_owned(),
            (short, all) => format!("{short} of {all} had less than nine tenths of what they deserved"),
        };
        Some(Pairs {
            title,
            subtitle: format!("Mean slot weight while procs waited; {}", self.report.name),
            axis: Axis::new("slot weight", Unit::Number),
            names: ("deserved".to_owned(), "had".to_owned()),
            rows,
        })
    }

    fn priorities(&self) -> Option<Chart> {
        let series = named(self.table("submitters")?, "real_priority");
        let most = |series: &Series| series.points.iter().map(|(_, priority)| *priority).fold(0.0, f64::max);
        let worst = series.iter().max_by(|one, other| most(one).total_cmp(&most(other)))?;
        let title = format!("{} reaches a real user priority of {:.1}", worst.name, most(worst));
        let what = "Real user priority: the lower, the better";
        self.chart(title, what, Axis::new("real user priority", Unit::Number), Kind::Lines, series)
    }

    fn queue(&self) -> Option<Chart> {
        let series = named(self.table("submitters")?, "idle");
        let waiting = named(self.table("pool")?, "idle");
        let most =
            waiting.iter().flat_map(|series| &series.points).map(|(_, idle)| *idle).fold(0.0, f64::max);
        let title = format!("Up to {} waited", amount(most, "proc"));
        let axis = Axis::new("procs that wait", Unit::Number);
        self.chart(title, "Procs that wait by submitter", axis, Kind::Stacked, series)
    }

    fn waits(&self) -> Option<Chart> {
        let waits = self.report.summary.all.wait_seconds;
        let title = match (waits.median, waits.p95) {
            (Some(median), Some(p95)) => {
                format!(
                    "Half of the procs waited less than {}, one in twenty more than {}",
                    span(median),
                    span(p95)
                )
            }
            _ => return None,
        };
        // Where no proc ran for the first time there is no mean, and no line.
        let series = self.table("submitters")?.series_with_gaps("wait_seconds").into_iter();
        let series = series
            .map(|(key, points)| Series::new(key.map_or_else(String::new, |key| key.to_string()), points));
        let series = series.filter(|series| series.points.iter().any(|(_, wait)| wait.is_finite())).collect();
        let what = "Mean wait of procs that ran for the first time, by submitter and sample";
        self.chart(title, what, Axis::new("wait", Unit::Span), Kind::Lines, series)
    }

    fn work(&self) -> Option<Chart> {
        let table = self.table("pool")?;
        let all = &self.report.summary.all;
        let (good, bad) = (all.goodput_core_hours, all.badput_core_hours);
        let title = if bad > 0.0 {
            format!("{} of the core hours were for nothing", percent(bad / (good + bad)))
        } else {
            "Nothing that ran was for nothing".to_owned()
        };
        let summed = |column: &str, name: &str| {
            let mut sum = 0.0;
            let add = |(at, hours): (f64, f64)| {
                sum += hours;
                (at, sum)
            };
            let points = table.series(column).into_iter().flat_map(|(_, points)| points).map(add).collect();
            Series::new(name, points)
        };
        let series = vec![summed("goodput_core_hours", "goodput"), summed("badput_core_hours", "badput")];
        let what = "Core hours so far: of runs that ended by themselves (goodput) and of those that did not (badput)";
        self.chart(title, what, Axis::new("core hours", Unit::Number), Kind::Stacked, series)
    }

    fn fragmentation(&self) -> Option<Chart> {
        let table = self.table("pool")?;
        let lines = [
            ("free_cores", "free", Role::Measured),
            ("unusable_cores", "free, and nothing fits", Role::Measured),
            ("largest_free", "free on one machine", Role::Measured),
        ];
        let series: Vec<Series> = lines
            .into_iter()
            .flat_map(|(column, name, role)| {
                table
                    .series(column)
                    .into_iter()
                    .map(move |(_, points)| Series::new(name, points).in_role(role))
            })
            .collect();
        let of = |name: &str| named(table, name).iter().map(|series| mean(&series.points)).sum::<f64>();
        let (free, unusable) = (of("free_cores"), of("unusable_cores"));
        let title = if unusable > 0.0 {
            let where_ = "where nothing that waited fit";
            format!("Of {} in the mean {} were {where_}", amount(free, "free core"), number(unusable))
        } else {
            format!("All of {} in the mean could be used", amount(free, "free core"))
        };
        let what = "Cores that are offered and not claimed, the most of them on one machine, and those on machines \
                    where nothing that waits fits";
        self.chart(title, what, cores(), Kind::Steps, series)
    }
}

/// The series of a column: one for each key, or one named after the column if the table has no key.
fn named(table: &Table, column: &str) -> Vec<Series> {
    let name = |key: Option<Arc<str>>| key.map_or_else(|| column.to_owned(), |key| key.to_string());
    table.series(column).into_iter().map(|(key, points)| Series::new(name(key), points)).collect()
}

fn cores() -> Axis {
    Axis::new("cores", Unit::Number)
}

fn value(value: Option<f64>) -> f64 {
    value.unwrap_or(0.0)
}

/// The mean of the values, which are samples at equal distances; 0 if there are none.
pub(super) fn mean(points: &[(f64, f64)]) -> f64 {
    let sum: f64 = points.iter().map(|(_, y)| *y).sum();
    sum / super::number::real(points.len().max(1) as u64)
}

/// A share in percent, with one decimal, as in the text of a simulation.
fn percent(share: f64) -> String {
    let percent = if share.is_finite() { 100.0 * share } else { 0.0 };
    format!("{percent:.1} %")
}

fn number(value: f64) -> String {
    if value < 10.0 && value.fract() != 0.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn amount(value: f64, of: &str) -> String {
    let number = number(value);
    if number == "1" { format!("1 {of}") } else { format!("{number} {of}s") }
}

/// A span of time in words.
pub(super) fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds if seconds < 5_400.0 => format!("{:.0} min", seconds / 60.0),
        seconds if seconds < 172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        seconds => format!("{:.1} days", seconds / 86_400.0),
    }
}
