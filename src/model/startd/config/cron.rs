//! Reads the startd's cron jobs: `STARTD_CRON_*`.
//!
//! HTCondor logs what is wrong with a job, and runs the others. Here a text with such a mistake is not accepted, so that the author
//! learns of the mistake.
//!
//! Source: the manual, "Daemon Hook Configuration Options".

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::remarks::{Remark, Severity};
use super::{ok, words};
use crate::pool::{Autopublish, CronJob, CronMode, CronPolicy, Crontab, Metric, MetricKind};
use classad::Expr;
use condor_config::{Config, Definition, Origin, knobs};

const LIST: &str = "STARTD_CRON_JOBLIST";
/// The most cron jobs of a node.
const MAX_JOBS: usize = 64;
/// The most characters of a job's name.
const MAX_NAME: usize = 64;
/// The most bytes of a job's value.
const MAX_VALUE: usize = 4096;
/// The most metrics of a job.
const MAX_METRICS: usize = 16;
/// The longest period.
const MAX_PERIOD: Duration = Duration::from_hours(24 * 366);
/// A job of mode `WaitForExit` may have the period 0, as HTCondor's own template has. The job then runs again after this pause.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// Reads all cron jobs. Mistakes are added to `faults`.
pub(super) fn read(config: &Config, faults: &mut Vec<Remark>) -> CronPolicy {
    let mut policy = CronPolicy { tab: general(config, faults), conditions: BTreeMap::new() };
    for name in names(config, faults) {
        let mut text = Text { config, job: &name, faults };
        let Some(job) = text.job() else { continue };
        if let Some(condition) = text.condition() {
            policy.conditions.insert(name.clone(), condition);
        }
        let most = policy.tab.max_load;
        if job.load > most {
            let message = format!(
                "the cron job {name} never runs: its JOB_LOAD is {}, and STARTD_CRON_MAX_JOB_LOAD is {most}",
                job.load
            );
            text.remark("JOB_LOAD", Severity::Warning, message);
        }
        policy.tab.jobs.push(job);
    }
    faults.extend(unlisted(config));
    policy
}

/// Remarks about knobs of jobs that are not listed.
pub(super) fn unlisted(config: &Config) -> Vec<Remark> {
    let of = |definition: &Definition| {
        let job = unlisted_cron_job(config, definition).filter(|_| definition.origin == Origin::Source)?;
        let message = format!("{} has no effect: {LIST} does not list {job}", definition.name);
        Some(Remark::of_knob(config, definition, Severity::Warning, message))
    };
    config.definitions().filter_map(of).collect()
}

/// The cron job that a knob is about, in small letters, if `STARTD_CRON_JOBLIST` does not list the job.
pub fn unlisted_cron_job(config: &Config, definition: &Definition) -> Option<String> {
    let name = definition.name.to_ascii_lowercase();
    let (before, item) = knobs::find(&name)?.name.split_once("<JobName>")?;
    let rest = name.strip_prefix("startd.").unwrap_or(&name);
    let job = rest.strip_prefix(&before.to_ascii_lowercase())?.strip_suffix(&item.to_ascii_lowercase())?;
    let listed = config.list(LIST).unwrap_or_default();
    (!listed.iter().any(|listed| listed.eq_ignore_ascii_case(job))).then(|| job.to_owned())
}

/// The settings for all jobs.
fn general(config: &Config, faults: &mut Vec<Remark>) -> Crontab {
    const LOAD: &str = "STARTD_CRON_MAX_JOB_LOAD";
    let unset = Crontab::default();
    let load = ok(config.real(LOAD), faults).flatten();
    let words = ["Never", "If_Changed", "Always"];
    let publish = ok(config.one_of("STARTD_CRON_AUTOPUBLISH", "Never, If_Changed or Always", &words), faults);
    Crontab {
        jobs: Vec::new(),
        max_load: load.and_then(|load| ok(config.in_range(LOAD, load), faults)).unwrap_or(unset.max_load),
        publish: match publish.flatten() {
            Some("If_Changed") => Autopublish::IfChanged,
            Some("Always") => Autopublish::Always,
            _ => Autopublish::Never,
        },
        log_failures: ok(config.boolean("STARTD_CRON_LOG_NON_ZERO_EXIT"), faults).flatten().unwrap_or(false),
    }
}

/// The names in the list. A name that is listed again counts once.
fn names(config: &Config, faults: &mut Vec<Remark>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut names = ok(config.list(LIST), faults).unwrap_or_default();
    names.retain(|name| seen.insert(name.to_ascii_lowercase()));
    let plain = |name: &String| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        name.len() <= MAX_NAME && name.bytes().all(allowed)
    };
    if names.len() > MAX_JOBS || !names.iter().all(plain) {
        let message = format!(
            "{LIST} has at most {MAX_JOBS} names of at most {MAX_NAME} letters, digits, hyphens, periods and underscores"
        );
        faults.extend(listed(config).map(|list| Remark::of_knob(config, list, Severity::Error, message)));
        return Vec::new();
    }
    names
}

fn listed(config: &Config) -> Option<&Definition> {
    definition(config, LIST)
}

fn definition<'a>(config: &'a Config, knob: &str) -> Option<&'a Definition> {
    config.definition(knob).or_else(|| config.definition(&format!("STARTD.{knob}")))
}

/// A text of which one job is read.
struct Text<'a> {
    config: &'a Config,
    job: &'a str,
    faults: &'a mut Vec<Remark>,
}

impl Text<'_> {
    fn knob(&self, item: &str) -> String {
        format!("STARTD_CRON_{}_{item}", self.job)
    }

    /// Reads the job; none if something is wrong with it.
    fn job(&mut self) -> Option<CronJob> {
        let before = self.faults.len();
        let mode = self.mode();
        let executable = self.executable();
        let job = CronJob {
            name: self.job.to_owned(),
            executable: executable.unwrap_or_default(),
            arguments: self.words("ARGS", words::arguments),
            environment: self.words("ENV", words::environment),
            directory: self.directory(),
            mode,
            period: self.period(mode),
            prefix: self.prefix(),
            kill: self.truth("KILL"),
            reconfig: self.truth("RECONFIG"),
            rerun: self.truth("RECONFIG_RERUN"),
            slots: self.slots(),
            load: self.load(),
            metrics: self.metrics(),
            may_start: true,
        };
        (self.faults.len() == before).then_some(job)
    }

    fn mode(&mut self) -> CronMode {
        let words = ["Periodic", "WaitForExit", "OneShot", "OnDemand"];
        let knob = self.knob("MODE");
        match ok(self.config.one_of(&knob, "Periodic, WaitForExit or OneShot", &words), self.faults).flatten()
        {
            Some("WaitForExit") => CronMode::WaitForExit,
            Some("OneShot") => CronMode::OneShot,
            Some("OnDemand") => {
                let message = format!(
                    "{knob} is OnDemand, which is for BENCHMARKS jobs: HTCondor never runs another job of this mode; say Periodic, \
                     WaitForExit or OneShot"
                );
                self.error("MODE", message);
                CronMode::default()
            }
            _ => CronMode::Periodic,
        }
    }

    fn executable(&mut self) -> Option<String> {
        let knob = self.knob("EXECUTABLE");
        let Some(path) = self.text("EXECUTABLE") else {
            let message =
                format!("the cron job {} has no program: set {knob}, or take the job off {LIST}", self.job);
            self.error("EXECUTABLE", message);
            return None;
        };
        if path.contains('\0') || path.split('/').any(|part| part == "..") {
            let message = format!(
                "{knob} is {path}, which may lead out of the directory of programs; say the program's path without .."
            );
            self.error("EXECUTABLE", message);
        }
        Some(path)
    }

    fn directory(&mut self) -> Option<String> {
        let path = self.text("CWD")?;
        if !path.starts_with('/') || path.contains('\0') {
            let message = format!("{} is {path}; say an absolute path", self.knob("CWD"));
            self.error("CWD", message);
        }
        Some(path)
    }

    /// Reads the period. A job of mode `OneShot` has none, even if the text gives one.
    fn period(&mut self, mode: CronMode) -> Duration {
        if mode == CronMode::OneShot {
            return Duration::ZERO;
        }
        let knob = self.knob("PERIOD");
        let Some(text) = self.text("PERIOD") else {
            self.error("PERIOD", format!("the cron job {} has no period: set {knob}, such as 5m", self.job));
            return Duration::ZERO;
        };
        let least = if mode == CronMode::WaitForExit { Duration::ZERO } else { LEAST_PAUSE };
        if let Some(period) = period(&text).filter(|period| (least..=MAX_PERIOD).contains(period)) {
            return period.max(LEAST_PAUSE);
        }
        let message = format!(
            "{knob} is {text}; say a number of seconds from 1 to a year, or of minutes or hours, such as 30, 30s, 5m or 1h"
        );
        self.error("PERIOD", message);
        Duration::ZERO
    }

    fn prefix(&mut self) -> String {
        let prefix = self.text("PREFIX").unwrap_or_default();
        let plain = prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !plain || prefix.starts_with(|first: char| first.is_ascii_digit()) {
            let message = format!(
                "{} is {prefix}; an attribute's name has letters, digits and underscores, and no digit first",
                self.knob("PREFIX")
            );
            self.error("PREFIX", message);
        }
        prefix
    }

    fn slots(&mut self) -> Vec<u32> {
        let knob = self.knob("SLOTS");
        let list = ok(self.config.list(&knob), self.faults).unwrap_or_default();
        let slots: Option<Vec<u32>> =
            list.iter().map(|slot| slot.parse().ok().filter(|id| *id > 0)).collect();
        slots.unwrap_or_else(|| {
            let message = format!("{knob} is {}; say numbers of slots, such as 1, 2", list.join(", "));
            self.error("SLOTS", message);
            Vec::new()
        })
    }

    /// Reads what the job measures: `SUM:GPUs, PEAK:GPUsMemory`.
    fn metrics(&mut self) -> Vec<Metric> {
        let knob = self.knob("METRICS");
        let list = ok(self.config.list(&knob), self.faults).unwrap_or_default();
        let mut metrics = Vec::new();
        for item in list {
            match metric(&item) {
                Some(metric) if metrics.contains(&metric) => {}
                Some(metric) => metrics.push(metric),
                None => {
                    let message = format!(
                        "{knob} has {item}; say SUM:RESOURCE or PEAK:RESOURCE, such as SUM:GPUs, PEAK:GPUsMemory"
                    );
                    self.error("METRICS", message);
                }
            }
        }
        if metrics.len() > MAX_METRICS {
            self.error("METRICS", format!("{knob} has more than {MAX_METRICS} metrics; leave some out"));
        }
        metrics
    }

    fn load(&mut self) -> f64 {
        let knob = self.knob("JOB_LOAD");
        let said = ok(self.config.real(&knob), self.faults).flatten();
        said.and_then(|load| ok(self.config.in_range(&knob, load), self.faults)).unwrap_or(0.01)
    }

    fn truth(&mut self, item: &str) -> bool {
        ok(self.config.boolean(&self.knob(item)), self.faults).flatten().unwrap_or(false)
    }

    fn condition(&mut self) -> Option<Expr> {
        ok(self.config.expr(&self.knob("CONDITION")), self.faults).flatten()
    }

    fn words<T: Default>(&mut self, item: &str, read: impl Fn(&str) -> Result<T, &'static str>) -> T {
        let Some(text) = self.text(item) else { return T::default() };
        read(&text).unwrap_or_else(|why| {
            self.error(item, format!("{} is {text}: {why}", self.knob(item)));
            T::default()
        })
    }

    /// A value; none if it is unset, or if something is wrong with it.
    fn text(&mut self, item: &str) -> Option<String> {
        let knob = self.knob(item);
        let text = ok(self.config.value(&knob), self.faults).flatten()?;
        if text.len() > MAX_VALUE {
            self.error(item, format!("{knob} has more than {MAX_VALUE} bytes; shorten it"));
            return None;
        }
        Some(text.trim_ascii().to_owned()).filter(|text| !text.is_empty())
    }

    fn error(&mut self, item: &str, message: String) {
        self.remark(item, Severity::Error, message);
    }

    /// Adds a remark at the knob, or at the list of jobs if the text does not set the knob. A job that is read is listed.
    fn remark(&mut self, item: &str, severity: Severity, message: String) {
        let set = definition(self.config, &self.knob(item)).or_else(|| listed(self.config));
        self.faults.extend(set.map(|set| Remark::of_knob(self.config, set, severity, message)));
    }
}

/// Reads a metric: its kind, in upper or lower case, a colon, and the name of a resource.
fn metric(item: &str) -> Option<Metric> {
    let (kind, resource) = item.split_once(':')?;
    let kind = match kind.trim_ascii().to_ascii_uppercase().as_str() {
        "SUM" => MetricKind::Sum,
        "PEAK" => MetricKind::Peak,
        _ => return None,
    };
    let resource = resource.trim_ascii();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = !resource.is_empty() && resource.len() <= MAX_NAME && resource.bytes().all(plain);
    is_name.then(|| Metric { kind, resource: resource.to_owned() })
}

/// Reads a period: a whole number, with `s`, `m` or `h` behind it or nothing.
fn period(text: &str) -> Option<Duration> {
    let unit = match text.chars().last()?.to_ascii_lowercase() {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        _ => None,
    };
    let number = if unit.is_some() { text.get(..text.len() - 1)? } else { text };
    let number: u64 = number.trim_ascii().parse().ok()?;
    Some(Duration::from_secs(number.checked_mul(unit.unwrap_or(1))?))
}

#[cfg(test)]
mod tests;
