//! From the file to the scenario, or to everything that is wrong with it.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;

use super::amount::{Amount, Drawn};
use super::file::{self, File};
use super::manifests;
use crate::cli::lint::{Entry, Finding, Kind, Node, Source, find, parse};
use crate::controller::translate::{self, SlimNode, SlimNodeStatus};
use crate::pool::{Capacity, Event, MachineFacts, Request, Retention, Time};
use crate::schedd::{Submission, ancestry, submit};
use crate::sim::{
    Absence, Arrivals, Listed, MachineGroup, OwnerActivity, Profile, Scenario, Source as Jobs, Spread,
    Timing, Visits, Window,
};

/// The start where a scenario gives none: a Monday.
const START: &str = "2026-01-05T00:00:00Z";
/// The most machines and submitters of a scenario: names are made for each.
const MOST: u64 = 1_000_000;

/// Everything that is wrong with a scenario, each with its place.
#[derive(Debug, Default)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Something wrong at a byte offset of a file.
    pub fn at(&mut self, source: &Source, offset: usize, message: &str) {
        let (line, column) = source.place(offset);
        self.0.push(format!("{}:{line}:{column}: {message}", source.path));
    }

    /// What lint found.
    pub fn extend(&mut self, findings: impl Iterator<Item = Finding>) {
        self.0.extend(findings.map(|found| {
            let object = found.object.map_or_else(String::new, |object| format!("{object}: "));
            let hint = found.hint.map_or_else(String::new, |hint| format!("; {hint}"));
            format!("{}:{}:{}: {object}{}{hint}", found.path, found.line, found.column, found.message)
        }));
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Problems {}

/// Reads a scenario, with notes on what one should know of it: what of a trace is not used.
///
/// # Errors
/// Everything that is wrong with it, each with file, line and column.
pub fn scenario(path: &Path) -> Result<(Scenario, Vec<String>), Problems> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| Problems(vec![format!("{shown}: cannot be read: {error}")]))?;
    let source = Source::new(shown, text);
    let mut problems = Problems::default();
    let parsed = parse(&source.text);
    for fault in &parsed.faults {
        problems.at(&source, fault.at, &fault.message);
    }
    let root = match parsed.documents.as_slice() {
        [root] if problems.0.is_empty() => root,
        _ if !problems.0.is_empty() => return Err(problems),
        documents => {
            let message = format!("there are {} documents; a scenario is one", documents.len());
            problems.at(&source, 0, &message);
            return Err(problems);
        }
    };
    let file: File = match serde_saphyr::from_str(&source.text) {
        Ok(file) => file,
        Err(error) => {
            let error = error.without_snippet();
            let offset = error.location().map_or(root.start, |at| {
                let number = |n| usize::try_from(n).unwrap_or(1);
                source.offset(number(at.line()), number(at.column()))
            });
            let field = path_to(root, offset);
            problems.at(&source, offset, &format!("{field}{}", plain(&error.to_string())));
            return Err(problems);
        }
    };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut reader = Reader { source: &source, root, directory, problems, notes: Vec::new() };
    let scenario = reader.scenario(file, stem);
    if reader.problems.0.is_empty() { Ok((scenario, reader.notes)) } else { Err(reader.problems) }
}

/// The path of the innermost field around a place, with a colon behind it; nothing for the file itself.
fn path_to(root: &Node, offset: usize) -> String {
    let (mut path, mut node) = (String::new(), root);
    loop {
        let inner = match &node.kind {
            Kind::Scalar(_) => None,
            Kind::List(items) => {
                let mut inside = items.iter().enumerate();
                inside
                    .find(|(_, item)| (item.start..=item.end).contains(&offset))
                    .map(|(index, item)| (format!("[{index}]"), item))
            }
            Kind::Map(entries) => {
                let inside = |entry: &&Entry| (entry.value.start..=entry.value.end).contains(&offset);
                entries.iter().find(inside).map(|entry| (format!(".{}", entry.key), &entry.value))
            }
        };
        let Some((step, next)) = inner else { break };
        path.push_str(&step);
        node = next;
    }
    if path.is_empty() { path } else { format!("{}: ", path.trim_start_matches('.')) }
}

/// The parser's message without its own place, which is told in front.
fn plain(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    first.split(" at line ").next().unwrap_or(first).trim_end_matches([',', ' ']).to_owned()
}

pub(super) struct Reader<'a> {
    source: &'a Source,
    root: &'a Node,
    /// Where files that it names are.
    pub(super) directory: &'a Path,
    problems: Problems,
    /// What one should know of a scenario that can be used.
    pub(super) notes: Vec<String>,
}

impl Reader<'_> {
    /// Something wrong with the field of this path.
    pub(super) fn wrong(&mut self, path: &str, message: &str) {
        let place = find(self.root, path);
        let offset = if place.found { place.node.start } else { place.key };
        self.problems.at(self.source, offset, &format!("{path}: {message}"));
    }

    fn scenario(&mut self, file: File, stem: String) -> Scenario {
        let start = file.start.as_deref().unwrap_or(START);
        let start = start.parse::<Timestamp>().map_or_else(
            |error| {
                self.wrong("start", &format!("{error}; write it as {START}"));
                Time::default()
            },
            |time| Time::from_millis(time.as_millisecond()),
        );
        let objects = manifests::objects(self.source, self.root, self.directory, &mut self.problems);
        let timing = self.timing(&file.timing);
        let machines: Vec<MachineGroup> =
            file.machines.iter().enumerate().map(|(index, group)| self.machines(index, group)).collect();
        if machines.is_empty() {
            self.wrong("machines", "there are none; give at least one group");
        }
        self.unique(machines.iter().map(|group| group.name.as_str()), "machines");
        let mut sources = Vec::new();
        for (index, submitter) in file.submitters.iter().enumerate() {
            sources.extend(self.submitters(index, submitter));
        }
        self.unique(file.submitters.iter().map(|submitter| submitter.name.as_str()), "submitters");
        self.groups(&file.submitters, &sources, &objects);
        let machine_count: u64 = machines.iter().map(|group| u64::from(group.count)).sum();
        if machine_count > MOST {
            self.wrong("machines", &format!("{machine_count} are too many; give at most {MOST}"));
        }
        Scenario {
            name: file.name.unwrap_or(stem),
            start,
            length: self.span("length", file.length, 7.0 * 86_400.0, 1.0),
            sample: self.span("sample", file.sample, 600.0, 1.0),
            seed: file.seed,
            timing,
            objects,
            machines,
            sources,
        }
    }

    /// Jobs of groups that nobody declares never start: on a cluster their authors are told.
    fn groups(&mut self, given: &[file::Submitter], sources: &[Jobs], objects: &[Event]) {
        let declared = |name: &str| {
            objects.iter().any(
                |event| matches!(event, Event::Group(group) if group.name.as_str().eq_ignore_ascii_case(name)),
            )
        };
        for (index, submitter) in given.iter().enumerate() {
            let first =
                if submitter.people == 1 { submitter.name.clone() } else { format!("{}1", submitter.name) };
            let of = |jobs: &&Jobs| jobs.name == first;
            let group =
                sources.iter().find(of).and_then(|jobs| jobs.template.group.clone()).unwrap_or_default();
            let missing = ancestry(&group).find(|name| !name.is_empty() && !declared(name));
            if let Some(missing) = missing {
                let field = if submitter.group.is_some() { "group" } else { "job.spec.accountingGroup" };
                let message = format!("no GroupQuota declares {missing}; add one to manifests");
                self.wrong(&format!("submitters[{index}].{field}"), &message);
            }
        }
    }

    fn unique<'n>(&mut self, names: impl Iterator<Item = &'n str>, list: &str) {
        let mut seen = BTreeSet::new();
        for (index, name) in names.enumerate() {
            if !seen.insert(name) {
                self.wrong(
                    &format!("{list}[{index}].name"),
                    &format!("{name} is there already; use another"),
                );
            }
        }
    }

    /// A span of at least `least` seconds.
    pub(super) fn span(
        &mut self,
        path: &str,
        given: Option<Amount<super::amount::Seconds>>,
        otherwise: f64,
        least: f64,
    ) -> Duration {
        let seconds = given.map_or(otherwise, |given| given.value);
        if !(least..=1e11).contains(&seconds) {
            self.wrong(path, &format!("{seconds} seconds cannot be; give at least {least}"));
        }
        crate::sim::span(seconds)
    }

    fn timing(&mut self, timing: &file::Timing) -> Timing {
        Timing {
            call: self.span("timing.call", timing.call, 0.02, 0.0),
            status: self.span("timing.status", timing.status, 1.0, 0.0),
            pod_start: drawn(timing.pod_start.as_ref(), 2.0),
            pod_end: drawn(timing.pod_end.as_ref(), 1.0),
        }
    }

    fn machines(&mut self, index: usize, group: &file::Machines) -> MachineGroup {
        let path = format!("machines[{index}]");
        let mut allocatable = group.resources.clone();
        allocatable.insert("cpu".to_owned(), group.cpus.clone());
        allocatable.insert("memory".to_owned(), group.memory.clone());
        allocatable.extend(group.disk.clone().map(|disk| ("ephemeral-storage".to_owned(), disk)));
        for (name, quantity) in &allocatable {
            let field = match name.as_str() {
                "cpu" => format!("{path}.cpus"),
                "memory" => format!("{path}.memory"),
                "ephemeral-storage" => format!("{path}.disk"),
                name => format!("{path}.resources.{name}"),
            };
            if let Err(error) = translate::millis(quantity) {
                self.wrong(&field, &error.to_string());
            }
        }
        let facts = facts(&group.name, group.labels.clone(), allocatable);
        if facts.allocatable.whole().cpus < 1 {
            self.wrong(&format!("{path}.cpus"), "a machine needs at least one whole CPU");
        }
        let owner = group.owner.as_ref().map(|owner| self.owner(&format!("{path}.owner"), owner));
        let absence = group
            .leaves
            .as_ref()
            .map(|leaves| Absence { after: leaves.after.spread.clone(), away: leaves.away.spread.clone() });
        MachineGroup { name: group.name.clone(), count: group.count, facts, owner, absence }
    }

    fn owner(&mut self, path: &str, owner: &file::Owner) -> OwnerActivity {
        let mut windows = Vec::new();
        for (index, hours) in owner.hours.iter().enumerate() {
            let from = self.clock(&format!("{path}.hours[{index}].from"), &hours.from);
            let to = self.clock(&format!("{path}.hours[{index}].to"), &hours.to);
            let days: Vec<i64> = match &hours.days {
                Some(days) => days.iter().map(|day| *day as i64).collect(),
                None => (0..7).collect(),
            };
            windows.extend(days.into_iter().map(|day| Window::of_day(day, from, to)));
        }
        if !owner.load.is_finite() || owner.load < 0.0 {
            self.wrong(&format!("{path}.load"), &format!("{} is no load; give 0 or more", owner.load));
        }
        for (name, quantity) in &owner.pods {
            if let Err(error) = translate::millis(quantity) {
                self.wrong(&format!("{path}.pods.{name}"), &error.to_string());
            }
        }
        let vary = format!("{path}.vary");
        OwnerActivity {
            windows,
            vary: self.span(&vary, owner.vary, 0.0, 0.0).as_secs_f64(),
            visits: owner.visits.as_ref().map(|visits| Visits {
                away: visits.away.spread.clone(),
                present: visits.present.spread.clone(),
            }),
            load: owner.load,
            pods: capacity(owner.pods.iter().map(|(name, amount)| {
                let name = if name == "cpus" { "cpu" } else { name };
                (name.to_owned(), amount.clone())
            })),
        }
    }

    /// Seconds since midnight of `17:30`.
    fn clock(&mut self, path: &str, text: &str) -> i64 {
        let read = || {
            let (hours, minutes) = text.split_once(':')?;
            let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
            ((0..=24).contains(&hours) && (0..60).contains(&minutes) && hours * 60 + minutes <= 24 * 60)
                .then_some((hours * 3600 + minutes * 60) % 86_400)
        };
        read().unwrap_or_else(|| {
            self.wrong(path, &format!("{text:?} is no time of day; write it as \"17:30\""));
            0
        })
    }

    fn submitters(&mut self, index: usize, given: &file::Submitter) -> Vec<Jobs> {
        let path = format!("submitters[{index}]");
        if let file::Arrivals::Trace(trace) = &given.arrivals {
            return self.traced(&path, given, trace);
        }
        let Some(runtime) = &given.runtime else {
            self.wrong(&path, "has no runtime; give one such as 20m, or a distribution");
            return Vec::new();
        };
        let owner = given.owner.as_deref().unwrap_or(&given.name);
        let Some(template) = self.template(&path, given, owner) else { return Vec::new() };
        if !(1..=MOST).contains(&u64::from(given.people)) {
            self.wrong(
                &format!("{path}.people"),
                &format!("{} is no number of people; give 1 or more", given.people),
            );
        }
        let arrivals = self.arrivals(&format!("{path}.arrivals"), &given.arrivals);
        let from = self.span(&format!("{path}.from"), given.from, 0.0, 0.0);
        let to = given.to.map(|to| self.span(&format!("{path}.to"), Some(to), 0.0, 0.0));
        let scaled = |amount: &Option<Drawn<super::amount::Bytes>>, unit: f64| {
            amount.as_ref().map(|amount| amount.spread.clone().scaled(1.0 / unit))
        };
        let requests = &given.requests;
        #[allow(clippy::cast_precision_loss, reason = "at most 100000")]
        let procs = template.count as f64;
        let jobs = Jobs {
            name: given.name.clone(),
            template,
            arrivals,
            from,
            to,
            most: given.jobs,
            count: drawn(given.procs.as_ref(), procs),
            runtime: runtime.spread.clone(),
            cpus: requests.cpus.as_ref().map(|cpus| cpus.spread.clone()),
            memory_mib: scaled(&requests.memory, 1_048_576.0),
            disk_kib: scaled(&requests.disk, 1024.0),
            gpus: requests.gpus.as_ref().map(|gpus| gpus.spread.clone()),
        };
        if given.people == 1 {
            return vec![jobs];
        }
        let person = |number: u32| {
            let mut jobs = jobs.clone();
            jobs.name = format!("{}{number}", given.name);
            jobs.template.owner = format!("{owner}{number}");
            jobs.template.namespace.clone_from(&jobs.template.owner);
            jobs
        };
        (1..=given.people).map(person).collect()
    }

    /// What is submitted, checked by the schedd as it will be.
    pub(super) fn template(
        &mut self,
        path: &str,
        given: &file::Submitter,
        owner: &str,
    ) -> Option<Submission> {
        let place = find(self.root, &format!("{path}.job"));
        let mut template = if given.job.is_some() && place.found {
            manifests::job(self.source, place.node, owner, &mut self.problems)?
        } else {
            let request = Request { cpus: 1, memory_mib: 1024, disk_kib: 1 << 20, ..Request::default() };
            Submission { request, ..Submission::default() }
        };
        template.count = template.count.max(1);
        owner.clone_into(&mut template.namespace);
        owner.clone_into(&mut template.owner);
        template.retention = Retention::Delete;
        if let Some(group) = &given.group {
            template.group = Some(group.clone());
        }
        let sample = Submission { name: given.name.clone(), count: 1, ..template.clone() };
        for problem in submit(&sample).err().into_iter().flatten() {
            let field = if problem.field == "spec.accountingGroup" { ".group" } else { ".name" };
            self.wrong(&format!("{path}{field}"), &problem.message);
        }
        Some(template)
    }

    fn arrivals(&mut self, path: &str, given: &file::Arrivals) -> Arrivals {
        match given {
            file::Arrivals::At(times) => {
                let mut at: Vec<Duration> = times.iter().map(|time| crate::sim::span(time.value)).collect();
                at.sort();
                let listed = |at| Listed { at, count: None, runtime: None, request: None, priority: None };
                Arrivals::Listed(at.into_iter().map(listed).collect())
            }
            file::Arrivals::Poisson { every } => {
                let path = format!("{path}.poisson.every");
                Arrivals::Poisson { every: self.span(&path, Some(*every), 1.0, 0.001).as_secs_f64() }
            }
            file::Arrivals::Diurnal { per_day, hours, days } => {
                let path = format!("{path}.diurnal");
                if !per_day.is_finite() || *per_day <= 0.0 {
                    self.wrong(&format!("{path}.perDay"), &format!("{per_day} is no rate; give more than 0"));
                }
                let mut profile = Profile::default();
                if let Some(hours) = hours {
                    match <[f64; 24]>::try_from(hours.as_slice()) {
                        Ok(hours) => profile.hours = hours,
                        Err(_) => self.wrong(
                            &format!("{path}.hours"),
                            &format!("{} weights; give 24, from midnight on", hours.len()),
                        ),
                    }
                }
                if let Some(days) = days {
                    match <[f64; 7]>::try_from(days.as_slice()) {
                        Ok(days) => profile.days = days,
                        Err(_) => self.wrong(
                            &format!("{path}.days"),
                            &format!("{} weights; give 7, Monday first", days.len()),
                        ),
                    }
                }
                if !profile.is_sound() {
                    self.wrong(&path, "weights must be 0 or more, and not all of them 0");
                }
                Arrivals::Diurnal { per_day: *per_day, profile }
            }
            file::Arrivals::Bursts { every, jobs, spacing } => Arrivals::Bursts {
                every: every.spread.clone(),
                jobs: jobs.spread.clone(),
                spacing: drawn(spacing.as_ref(), 0.0),
            },
            file::Arrivals::Trace(_) => Arrivals::Listed(Vec::new()),
        }
    }
}

/// The distribution given, or always the default.
pub(super) fn drawn<U>(given: Option<&Drawn<U>>, otherwise: f64) -> Spread {
    given.map_or_else(|| Spread::always(otherwise), |given| given.spread.clone())
}

/// What the operator would know of such a node.
fn facts(
    name: &str,
    labels: std::collections::BTreeMap<String, String>,
    allocatable: std::collections::BTreeMap<String, Quantity>,
) -> MachineFacts {
    let ready =
        NodeCondition { type_: "Ready".to_owned(), status: "True".to_owned(), ..NodeCondition::default() };
    let node = SlimNode {
        metadata: ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() },
        status: SlimNodeStatus { allocatable, conditions: vec![ready] },
        ..SlimNode::default()
    };
    // A node with a name is always understood.
    translate::node(&node).unwrap_or_else(|| MachineFacts {
        name: name.into(),
        arch: "".into(),
        os: "".into(),
        labels: std::sync::Arc::default(),
        allocatable: Capacity::default(),
        ready: false,
        cordoned: false,
        taints: Vec::new(),
    })
}

fn capacity(amounts: impl Iterator<Item = (String, Quantity)>) -> Capacity {
    facts("owner", std::collections::BTreeMap::new(), amounts.collect()).allocatable
}
