//! The totals under the list of slots.

use std::collections::BTreeMap;
use std::fmt::Write;

use classad::{Ad, Env, Value};

use super::{Shown, cells};

/// The kind of totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Slots by state, for each platform.
    Platforms,
    /// Slots by state, for each activity.
    Activities,
    /// Amounts, for each platform.
    Amounts,
    /// Speed and load, for each platform.
    Speeds,
    /// Jobs, in all.
    Schedds,
    /// Jobs, for each submitter.
    Submitters,
}

/// The totals of a list.
pub(super) struct Totals {
    kind: Kind,
    rows: BTreeMap<String, Counted>,
    all: Counted,
    malformed: usize,
}

/// The states, in the order of their numbers here.
const STATES: [&str; 7] = ["Owner", "Claimed", "Unclaimed", "Matched", "Preempting", "Drained", "Backfill"];
const UNCLAIMED: usize = 2;
const CLAIMED: usize = 1;
const BACKFILL: usize = 6;

/// The counts of one row.
#[derive(Clone, Debug, Default)]
struct Counted {
    slots: usize,
    states: [usize; 7],
    backfill_idle: usize,
    available: usize,
    memory: i64,
    disk: i64,
    mips: i64,
    kflops: i64,
    load: f64,
    jobs: [i64; 3],
}

/// How a slot counts in the compact form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rolled {
    /// As itself.
    No,
    /// A partitionable slot as its dynamic slots.
    Up,
    /// As itself, beside its dynamic slots.
    Beside,
}

impl Totals {
    /// Totals for a form; `None` if the form has none.
    pub(super) fn new(form: Shown) -> Option<Self> {
        let kind = match form {
            Shown::Normal | Shown::Absent => Kind::Platforms,
            Shown::State => Kind::Activities,
            Shown::Server => Kind::Amounts,
            Shown::Claimed => Kind::Speeds,
            Shown::Schedds => Kind::Schedds,
            Shown::Submitters => Kind::Submitters,
            Shown::Columns | Shown::Whole(_) => return None,
        };
        Some(Self { kind, rows: BTreeMap::new(), all: Counted::default(), malformed: 0 })
    }

    /// Counts an ad.
    pub(super) fn count(&mut self, ad: &Ad, env: &Env) {
        self.add(ad, None, Rolled::No, env);
    }

    /// Counts an ad of the compact form, in the row of a platform: a partitionable slot as its dynamic slots, and as itself too
    /// while it has CPUs left.
    pub(super) fn count_rolled_up(&mut self, ad: &Ad, platform: &str, env: &Env) {
        let key = Some(platform).filter(|platform| !platform.is_empty() && self.kind != Kind::Activities);
        self.add(ad, key, Rolled::Up, env);
        let is_whole = ad.eval_attr("Cpus", None, env).as_number().is_none_or(|cpus| cpus >= 0.1);
        if cells::is_true(ad, "PartitionableSlot", env)
            && is_whole
            && !cells::is_true(ad, "BackfillSlot", env)
        {
            self.add(ad, key, Rolled::Beside, env);
        }
    }

    fn key(&self, ad: &Ad, env: &Env) -> Option<String> {
        match self.kind {
            Kind::Schedds => Some(" ".to_owned()),
            Kind::Submitters => cells::text(ad, "Name", env),
            Kind::Activities => cells::text(ad, "Activity", env),
            Kind::Platforms | Kind::Amounts | Kind::Speeds => {
                Some(format!("{}/{}", cells::text(ad, "Arch", env)?, cells::text(ad, "OpSys", env)?))
            }
        }
    }

    fn add(&mut self, ad: &Ad, key: Option<&str>, rolled: Rolled, env: &Env) {
        let Some(key) = key.map(str::to_owned).or_else(|| self.key(ad, env)) else {
            self.malformed += 1;
            return;
        };
        let row = self.rows.entry(key).or_default();
        if !row.add(self.kind, ad, rolled, env) {
            self.malformed += 1;
        }
        self.all.add(self.kind, ad, rolled, env);
    }

    /// The lines. Names of rows take `width` characters; `None`: as many as the longest needs.
    pub(super) fn print(&self, width: Option<usize>) -> String {
        let longest = || self.rows.keys().map(String::len).max().unwrap_or(0).max("Total".len());
        let width = width.unwrap_or_else(longest);
        let cell = |text: &str| {
            let cut = text.get(..text.floor_char_boundary(width)).unwrap_or_default();
            format!("{cut:>width$}")
        };
        let mut out = format!("{}{}\n\n", cell(""), header(self.kind));
        for (key, row) in &self.rows {
            out.push_str(&cell(key));
            if self.kind != Kind::Schedds {
                let _ = writeln!(out, "{}", row.line(self.kind));
            }
        }
        if !self.rows.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "{}{}", cell("Total"), self.all.line(self.kind));
        if self.malformed > 0 {
            let omitted = format!("(Omitted {} malformed ads in computed attribute totals)", self.malformed);
            let _ = write!(out, "\n{}{omitted}\n\n", cell(""));
        }
        out
    }
}

fn header(kind: Kind) -> String {
    match kind {
        Kind::Platforms => format!(
            "{:>6} {:>5} {:>7} {:>9} {:>7} {:>10} {:>6} {:>8} {:>6}",
            "Total", "Owner", "Claimed", "Unclaimed", "Matched", "Preempting", "Drain", "Backfill", "BkIdle"
        ),
        Kind::Activities => format!(
            "{:>6} {:>5} {:>9} {:>7} {:>10} {:>7} {:>6} {:>8} {:>6}",
            "Total", "Owner", "Unclaimed", "Claimed", "Preempting", "Matched", "Drain", "Backfill", "BkIdle"
        ),
        Kind::Amounts => {
            format!(
                "{:>9} {:>5} {:>7} {:>11} {:>11} {:>11}",
                "Slots", "Avail", "Memory", "Disk", "MIPS", "KFLOPS"
            )
        }
        Kind::Speeds => format!("{:>9}  {:>11}  {:>11}  {:>11}", "Machines", "MIPS", "KFLOPS", "AvgLoadAvg"),
        Kind::Schedds => {
            format!("{:>18} {:>18} {:>18}", "TotalRunningJobs", "TotalIdleJobs", "TotalHeldJobs")
        }
        Kind::Submitters => format!("{:>11} {:>10} {:>10}", "RunningJobs", "IdleJobs", "HeldJobs"),
    }
}

impl Counted {
    /// Counts an ad. False if the ad lacks something.
    fn add(&mut self, kind: Kind, ad: &Ad, rolled: Rolled, env: &Env) -> bool {
        match kind {
            Kind::Platforms | Kind::Activities => self.add_state(ad, rolled, env),
            Kind::Amounts => {
                let Some(state) = cells::text(ad, "State", env) else { return false };
                self.available += usize::from(state == "Claimed" || state == "Unclaimed");
                self.slots += 1;
                let all = [
                    added(&mut self.memory, ad, "Memory", env),
                    added(&mut self.disk, ad, "Disk", env),
                    added(&mut self.mips, ad, "Mips", env),
                    added(&mut self.kflops, ad, "KFlops", env),
                ];
                all == [true; 4]
            }
            Kind::Speeds => {
                self.slots += 1;
                let load = ad.eval_attr("LoadAvg", None, env).as_number();
                self.load += load.unwrap_or(0.0);
                let all = [
                    added(&mut self.mips, ad, "Mips", env),
                    added(&mut self.kflops, ad, "KFlops", env),
                    load.is_some(),
                ];
                all == [true; 3]
            }
            Kind::Schedds => self.add_jobs(ad, ["TotalRunningJobs", "TotalIdleJobs", "TotalHeldJobs"], env),
            Kind::Submitters => self.add_jobs(ad, ["RunningJobs", "IdleJobs", "HeldJobs"], env),
        }
    }

    fn add_jobs(&mut self, ad: &Ad, attributes: [&str; 3], env: &Env) -> bool {
        let mut all = true;
        for (sum, attribute) in self.jobs.iter_mut().zip(attributes) {
            all &= added(sum, ad, attribute, env);
        }
        all
    }

    fn add_state(&mut self, ad: &Ad, rolled: Rolled, env: &Env) -> bool {
        let is_backfill = rolled != Rolled::No && cells::is_true(ad, "BackfillSlot", env);
        if rolled == Rolled::Up && cells::is_true(ad, "PartitionableSlot", env) {
            if let Value::List(states) = ad.eval_attr("ChildState", None, env) {
                for state in states.iter().filter_map(Value::as_str) {
                    self.add_one(state, is_backfill);
                }
            }
            return true;
        }
        cells::text(ad, "State", env).is_some_and(|state| self.add_one(&state, is_backfill))
    }

    fn add_one(&mut self, state: &str, is_backfill: bool) -> bool {
        let Some(place) = STATES.iter().position(|known| known.eq_ignore_ascii_case(state)) else {
            return false;
        };
        if is_backfill && place == UNCLAIMED {
            self.backfill_idle += 1;
            return true;
        }
        let place = if is_backfill && place == CLAIMED { BACKFILL } else { place };
        if let Some(count) = self.states.get_mut(place) {
            *count += 1;
        }
        self.slots += 1;
        true
    }

    fn line(&self, kind: Kind) -> String {
        let [owner, claimed, unclaimed, matched, preempting, drained, backfill] = self.states;
        let (slots, idle) = (self.slots, self.backfill_idle);
        match kind {
            Kind::Platforms => format!(
                "{slots:>6} {owner:>5} {claimed:>7} {unclaimed:>9} {matched:>7} {preempting:>10} {drained:>6} {backfill:>8} {idle:>6}"
            ),
            Kind::Activities => format!(
                "{slots:>6} {owner:>5} {unclaimed:>9} {claimed:>7} {preempting:>10} {matched:>7} {drained:>6} {backfill:>8} {idle:>6}"
            ),
            Kind::Amounts => format!(
                "{slots:>9} {:>5} {:>11} {:>11} {:>11} {:>11}",
                self.available, self.memory, self.disk, self.mips, self.kflops
            ),
            Kind::Speeds => {
                #[allow(clippy::cast_precision_loss, reason = "it is shown with three decimals")]
                let load = if slots > 0 { self.load / slots as f64 } else { 0.0 };
                format!("{slots:>9}  {:>11}  {:>11}   {load:.3}", self.mips, self.kflops)
            }
            Kind::Schedds => {
                let [running, idle, held] = self.jobs;
                format!("{running:>18} {idle:>18} {held:>18}")
            }
            Kind::Submitters => {
                let [running, idle, held] = self.jobs;
                format!("{running:>11} {idle:>10} {held:>10}")
            }
        }
    }
}

/// Adds an attribute to a sum. False if the ad does not have it.
fn added(sum: &mut i64, ad: &Ad, attribute: &str, env: &Env) -> bool {
    let found = cells::number(ad, attribute, env);
    *sum = sum.saturating_add(found.unwrap_or(0));
    found.is_some()
}
