//! Compares the reports of two policies over the same workload: what changes for whom.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::charts::{self, span};
use super::number::real;
use super::plot::{Axis, Pair, Pairs, Unit};
use super::report::{JobRecord, Report, Tally, Waits};
use super::shares::{Share, Whose, shares};

/// Two reports side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The names of both scenarios.
    pub scenarios: Both<String>,
    /// The difference between the two workloads, if they differ: then the reports cannot be compared.
    pub differs: Option<String>,
    /// All submitters together.
    pub all: Change,
    /// Each submitter of either report, in the order of names.
    pub submitters: Vec<Change>,
    /// Each accounting group of either report, in the order of names. A group's numbers include all submitters in it
    /// and in the groups inside it.
    pub groups: Vec<Change>,
}

/// The same value of both reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Both<T> {
    /// The value of the scenario that is compared with.
    pub against: T,
    /// The value of the scenario that is looked at.
    pub this: T,
}

impl<T> Both<T> {
    /// Applies a function to both values.
    pub fn map<U>(&self, mut of: impl FnMut(&T) -> U) -> Both<U> {
        Both { against: of(&self.against), this: of(&self.this) }
    }
}

/// The change for one submitter or group, or for all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The submitter or group; empty for all together.
    pub name: String,
    /// The numbers in both reports.
    #[serde(flatten)]
    pub numbers: Both<Numbers>,
}

/// The numbers of one submitter or group, or of all, in one report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Numbers {
    /// Procs submitted.
    pub submitted: u64,
    /// Procs completed.
    pub done: u64,
    /// Procs completed per simulated day.
    pub throughput_per_day: f64,
    /// How often a proc was evicted.
    pub evictions: u64,
    /// Core hours of runs that ended by themselves.
    pub goodput_core_hours: f64,
    /// Core hours of runs that were evicted.
    pub badput_core_hours: f64,
    /// Waits until the first start, of procs that started.
    pub wait_seconds: Waits,
    /// The mean slot weight in use.
    pub got: f64,
    /// The mean slot weight in use, divided by the mean slot weight deserved, over the times at which procs waited;
    /// unset if none ever waited. For all together: Jain's index of these quotients, which is 1 if all are the same.
    pub fairness: Option<f64>,
}

impl Comparison {
    /// Compares the report `this` with the report `against`.
    pub fn new(this: &Report, against: &Report) -> Self {
        let reports = Both { against, this };
        let submitters = changes(&reports.map(|report| of_submitters(report)));
        let groups = changes(&reports.map(|report| of_groups(report)));
        let parts = |of: fn(&Both<Numbers>) -> &Numbers| -> Vec<f64> {
            submitters.iter().filter_map(|change| of(&change.numbers).fairness).collect()
        };
        let jain = Both {
            against: jain(&parts(|numbers| &numbers.against)),
            this: jain(&parts(|numbers| &numbers.this)),
        };
        let whole = reports.map(|report| {
            let mut whole = numbers(report, &report.summary.all, None);
            whole.got = of_submitters(report).values().map(|numbers| numbers.got).sum();
            whole
        });
        let whole = Both {
            against: Numbers { fairness: jain.against, ..whole.against },
            this: Numbers { fairness: jain.this, ..whole.this },
        };
        Self {
            scenarios: reports.map(|report| report.name.clone()),
            differs: difference(this, against),
            all: Change { name: String::new(), numbers: whole },
            submitters,
            groups,
        }
    }

    /// The plots of the comparison, by the names of their files without `.svg`.
    pub fn plots(&self) -> Vec<(&'static str, Pairs)> {
        let hours = Axis::new("core hours", Unit::Number);
        let waits =
            self.pairs(Axis::new("mean wait", Unit::Span), "Mean wait until the first run", |numbers| {
                numbers.wait_seconds.mean
            });
        let good = self.pairs(hours.clone(), "Core hours of runs that ended by themselves", |numbers| {
            Some(numbers.goodput_core_hours)
        });
        let bad =
            self.pairs(hours, "Core hours of runs that did not", |numbers| Some(numbers.badput_core_hours));
        let fair = Axis::new("part of what is deserved", Unit::Share);
        let fairness = self
            .pairs(fair, "What was had of what was deserved while procs waited", |numbers| numbers.fairness);
        vec![
            ("compare-waits", Pairs { title: self.waits_title(), ..waits }),
            (
                "compare-goodput",
                Pairs { title: self.amount_title("goodput", |numbers| numbers.goodput_core_hours), ..good },
            ),
            (
                "compare-badput",
                Pairs { title: self.amount_title("badput", |numbers| numbers.badput_core_hours), ..bad },
            ),
            ("compare-fairness", Pairs { title: self.fairness_title(), ..fairness }),
        ]
    }

    /// A row for each submitter for whom `of` has a number in either report, the largest numbers first.
    fn pairs(&self, axis: Axis, what: &str, of: fn(&Numbers) -> Option<f64>) -> Pairs {
        let mut rows: Vec<Pair> = self
            .submitters
            .iter()
            .map(|change| Pair {
                name: change.name.clone(),
                first: of(&change.numbers.against),
                second: of(&change.numbers.this),
            })
            .filter(|row| row.first.is_some() || row.second.is_some())
            .collect();
        let largest = |row: &Pair| row.first.unwrap_or(0.0).max(row.second.unwrap_or(0.0));
        rows.sort_by(|one, other| largest(other).total_cmp(&largest(one)));
        Pairs {
            title: String::new(),
            subtitle: format!("{what}, by submitter"),
            axis,
            names: (self.scenarios.against.clone(), self.scenarios.this.clone()),
            rows,
        }
    }

    fn waits_title(&self) -> String {
        let Both { against, this } = self.all.numbers.map(|numbers| numbers.wait_seconds.mean.unwrap_or(0.0));
        let (name, other) = (&self.scenarios.this, &self.scenarios.against);
        if (this - against).abs() < 1.0 {
            return format!("Procs wait as long with {name} as with {other}");
        }
        let word = if this < against { "less" } else { "longer" };
        format!(
            "With {name} procs wait {} {word} in the mean than with {other}",
            span((this - against).abs())
        )
    }

    fn amount_title(&self, what: &str, of: fn(&Numbers) -> f64) -> String {
        let Both { against, this } = self.all.numbers.map(of);
        format!(
            "{}: {this:.0} core hours of {what}; {}: {against:.0}",
            self.scenarios.this, self.scenarios.against
        )
    }

    fn fairness_title(&self) -> String {
        let Both { against, this } = self.all.numbers.map(|numbers| numbers.fairness);
        let told = |fairness: Option<f64>| {
            fairness.map_or_else(|| "unknown".to_owned(), |index| format!("{index:.2}"))
        };
        format!(
            "{}: a fairness of {}; {}: {} (1 where all have the same part)",
            self.scenarios.this,
            told(this),
            self.scenarios.against,
            told(against)
        )
    }
}

fn numbers(report: &Report, tally: &Tally, share: Option<&Share>) -> Numbers {
    let days = report.length.as_secs_f64() / 86_400.0;
    Numbers {
        submitted: tally.submitted,
        done: tally.done,
        throughput_per_day: if days > 0.0 { real(tally.done) / days } else { 0.0 },
        evictions: tally.evictions,
        goodput_core_hours: tally.goodput_core_hours,
        badput_core_hours: tally.badput_core_hours,
        wait_seconds: tally.wait_seconds,
        got: share.map_or(0.0, |share| charts::mean(&share.got)),
        fairness: share.and_then(Share::asked).map(|asked| asked.got / asked.deserved),
    }
}

fn of_submitters(report: &Report) -> BTreeMap<String, Numbers> {
    let shares: BTreeMap<String, Share> = named(shares(report, Whose::Submitters));
    let of = |tally: &Tally| (tally.name.clone(), numbers(report, tally, shares.get(&tally.name)));
    report.summary.submitters.iter().map(of).collect()
}

/// The numbers of the report's accounting groups: the sums over the submitters in each.
fn of_groups(report: &Report) -> BTreeMap<String, Numbers> {
    let of = |(name, share): (String, Share)| {
        let inside = |submitter: &str| Whose::Groups.covers(&name, submitter);
        let mut sum = Tally::default();
        for tally in report.summary.submitters.iter().filter(|tally| inside(&tally.name)) {
            sum.submitted += tally.submitted;
            sum.done += tally.done;
            sum.evictions += tally.evictions;
            sum.goodput_core_hours += tally.goodput_core_hours;
            sum.badput_core_hours += tally.badput_core_hours;
        }
        let waits = report.jobs.iter().filter(|job| inside(&job.submitter)).filter_map(JobRecord::wait);
        sum.wait_seconds = Waits::of(waits.collect());
        let numbers = numbers(report, &sum, Some(&share));
        (name, numbers)
    };
    named(shares(report, Whose::Groups)).into_iter().map(of).collect()
}

fn named(shares: Vec<Share>) -> BTreeMap<String, Share> {
    shares.into_iter().map(|share| (share.name.clone(), share)).collect()
}

/// A change for every name in either map; a name that is missing in one has default numbers there.
fn changes(of: &Both<BTreeMap<String, Numbers>>) -> Vec<Change> {
    let names: BTreeSet<&String> = of.against.keys().chain(of.this.keys()).collect();
    let change = |name: &String| Change {
        name: name.clone(),
        numbers: of.map(|numbers| numbers.get(name).copied().unwrap_or_default()),
    };
    names.into_iter().map(change).collect()
}

/// Jain's index of fairness of n parts: 1 if all are the same, 1/n if one has everything; `None` if there is nothing.
fn jain(parts: &[f64]) -> Option<f64> {
    let (sum, squares) =
        parts.iter().fold((0.0, 0.0), |(sum, squares), part| (sum + part, squares + part * part));
    (squares > 0.0).then(|| sum * sum / (real(parts.len() as u64) * squares))
}

/// The first difference between two workloads: their lengths, or a proc that was not submitted alike to both; `None` if
/// the workloads are the same.
fn difference(this: &Report, against: &Report) -> Option<String> {
    if this.length != against.length {
        let told =
            |report: &Report| format!("{} goes on for {}", report.name, span(report.length.as_secs_f64()));
        return Some(format!("{}, {}", told(this), told(against)));
    }
    let work = |job: &JobRecord| {
        let amounts = (job.cpus, job.memory_mib, job.gpus);
        (job.submitter.clone(), job.submitted.to_bits(), job.runtime.to_bits(), amounts)
    };
    let mut pairs = this.jobs.iter().zip(&against.jobs);
    if let Some((one, other)) = pairs.find(|(one, other)| work(one) != work(other)) {
        let told = |job: &JobRecord, report: &Report| {
            format!("{} has {} of {} at {:.0} s", report.name, job.job, job.submitter, job.submitted)
        };
        return Some(format!("{}, {}", told(one, this), told(other, against)));
    }
    let counts = (this.jobs.len(), against.jobs.len());
    (counts.0 != counts.1)
        .then(|| format!("{} has {} procs, {} has {}", this.name, counts.0, against.name, counts.1))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::report::{Column, Summary};
    use super::*;
    use model::pool::Time;

    const COLUMNS: &[Column] = &[
        Column { name: "got", meaning: "" },
        Column { name: "deserved", meaning: "" },
        Column { name: "idle", meaning: "" },
    ];

    /// The name of a submitter, and its `got`, `deserved` and `idle` at each hour.
    type Course<'a> = (&'a str, &'a [[f64; 3]]);

    fn report(name: &str, submitters: &[Course], groups: &[Course], waits: &[(&str, f64)]) -> Report {
        let table = |name, key, courses: &[Course]| {
            let mut table = super::super::report::Table::new(name, Some(key), COLUMNS);
            for (course, rows) in courses {
                for (hour, row) in rows.iter().enumerate() {
                    table.push(real(hour as u64) * 3600.0, Some(Arc::from(*course)), row);
                }
            }
            table
        };
        let tally = |(name, _): &Course| Tally { name: (*name).to_owned(), done: 12, ..Tally::default() };
        let job = |(submitter, wait): &(&str, f64)| JobRecord {
            submitter: Arc::from(*submitter),
            job: Arc::from("job"),
            proc: 0,
            cpus: 1,
            memory_mib: 1,
            gpus: 0,
            runtime: 60.0,
            submitted: 0.0,
            first_started: Some(*wait),
            started: Some(*wait),
            ended: None,
            runs: 1,
            lost: 0.0,
            machine: None,
        };
        Report {
            name: name.to_owned(),
            start: Time::default(),
            length: Duration::from_hours(12),
            calendar: false,
            tables: vec![table("submitters", "submitter", submitters), table("groups", "group", groups)],
            jobs: waits.iter().map(job).collect(),
            transitions: crate::transitions::Transitions::default(),
            refused: None,
            unfit: Vec::new(),
            summary: Summary { submitters: submitters.iter().map(tally).collect(), ..Summary::default() },
        }
    }

    fn change<'a>(changes: &'a [Change], name: &str) -> &'a Change {
        changes.iter().find(|change| change.name == name).unwrap()
    }

    #[test]
    fn what_one_had_of_what_it_deserved_counts_while_it_waited() {
        // In the second hour no proc waits; in the third, Ann deserves nothing.
        let course = [[5.0, 10.0, 1.0], [0.0, 10.0, 0.0], [9.0, 0.0, 1.0], [10.0, 10.0, 2.0]];
        let this = report("this", &[("ann", &course)], &[], &[]);
        let against = report("against", &[("ann", &[[4.0, 10.0, 0.0]])], &[], &[]);
        let comparison = Comparison::new(&this, &against);
        let ann = &change(&comparison.submitters, "ann").numbers;
        assert_eq!((ann.this.got, ann.this.fairness), (6.0, Some(0.75)));
        assert_eq!((ann.against.got, ann.against.fairness), (4.0, None));
        assert_eq!((ann.this.done, ann.this.throughput_per_day), (12, 24.0));
    }

    #[test]
    fn fairness_of_all_is_jains_index() {
        for (parts, index) in
            [(vec![], None), (vec![0.5, 0.5], Some(1.0)), (vec![1.0, 0.0], Some(0.5)), (vec![0.0], None)]
        {
            assert_eq!(jain(&parts), index, "{parts:?}");
        }
        let had = |one, other| {
            let courses: [Course; 2] = [("ann", &[[one, 10.0, 1.0]]), ("bob", &[[other, 10.0, 1.0]])];
            report("r", &courses, &[], &[])
        };
        let comparison = Comparison::new(&had(10.0, 10.0), &had(10.0, 0.0));
        assert_eq!(
            comparison.all.numbers.map(|numbers| numbers.fairness),
            Both { against: Some(0.5), this: Some(1.0) }
        );
        assert!((comparison.all.numbers.this.got - 20.0).abs() < 1e-9);
    }

    #[test]
    fn a_group_is_its_submitters_and_those_of_the_groups_in_it() {
        let one = [[1.0, 2.0, 1.0]];
        let submitters: [Course; 3] =
            [("physics.ann", &one), ("physics.higgs.bob", &one), ("physicists.eve", &one)];
        let groups: [Course; 1] = [("physics", &[[2.0, 8.0, 0.0]])];
        let waits = [("physics.ann", 10.0), ("physics.higgs.bob", 30.0), ("physicists.eve", 1000.0)];
        let report = report("r", &submitters, &groups, &waits);
        let physics = change(&Comparison::new(&report, &report).groups, "physics").numbers.this;
        assert_eq!((physics.done, physics.wait_seconds.mean, physics.fairness), (24, Some(20.0), Some(0.25)));
    }

    #[test]
    fn who_is_in_one_only_has_nothing_in_the_other() {
        let [this, against] = ["ann", "bob"].map(|name| report("r", &[(name, &[[1.0, 1.0, 1.0]])], &[], &[]));
        let comparison = Comparison::new(&this, &against);
        let names: Vec<&str> = comparison.submitters.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["ann", "bob"]);
        assert_eq!(change(&comparison.submitters, "ann").numbers.against, Numbers::default());
    }

    #[test]
    fn workloads_that_differ_are_told_apart() {
        let waits = |waits: &[(&str, f64)]| report("r", &[], &[], waits);
        let same = waits(&[("ann", 1.0)]);
        for (other, difference) in [
            (waits(&[("ann", 9.0)]), None),
            (waits(&[("bob", 1.0)]), Some("r has job of ann at 0 s, r has job of bob at 0 s")),
            (waits(&[("ann", 1.0), ("ann", 1.0)]), Some("r has 1 procs, r has 2")),
            (
                Report { length: Duration::from_hours(6), ..same.clone() },
                Some("r goes on for 12.0 h, r goes on for 6.0 h"),
            ),
        ] {
            assert_eq!(Comparison::new(&same, &other).differs.as_deref(), difference);
        }
    }

    #[test]
    fn the_titles_say_what_changes() {
        let waited = |seconds| {
            let mut report = report(if seconds > 90.0 { "long" } else { "short" }, &[], &[], &[]);
            report.summary.all.wait_seconds.mean = Some(seconds);
            report
        };
        for (this, against, title) in [
            (3600.0, 60.0, "With long procs wait 59 min longer in the mean than with short"),
            (60.0, 3600.0, "With short procs wait 59 min less in the mean than with long"),
            (60.0, 60.5, "Procs wait as long with short as with short"),
        ] {
            let comparison = Comparison::new(&waited(this), &waited(against));
            assert_eq!(comparison.plots().first().unwrap().1.title, title);
        }
    }
}
