//! Reads the submitters of a scenario: what they submit, and when.

use std::collections::BTreeSet;
use std::time::Duration;

use super::amount::{Bytes, Drawn};
use super::file;
use super::manifests;
use super::read::{MOST, Reader, drawn};
use crate::lint::find;
use model::pool::{Event, GroupName, Problem, Request, Retention};
use model::schedd::{MOST_PROCS, Submission, submit};
use sim::{Arrivals, Listed, Profile, Source as Jobs, Spread};

/// The number of jobs that a submitter is assumed to have if the scenario sets no bound. The number matters because
/// it is part of the last job's name.
const MANY_JOBS: u64 = 9_999_999;

/// The schedd's message about a job, for a user who does not know the job's name, because the simulator made it.
pub(super) fn said_of(name: &str, problem: &Problem) -> String {
    match problem.reason {
        "NameTooLong" => format!("jobs are named up to {name}: {}", problem.message),
        _ => problem.message.clone(),
    }
}

/// The name of the last of a source's jobs.
pub(super) fn last_name(source: &str, jobs: u64) -> String {
    format!("{source}-{}", jobs.max(1))
}

/// The longest name of a submitter's jobs. For a trace, whose sources have names of their own, only the start of
/// those names.
fn longest_name(given: &file::Submitter) -> String {
    let jobs = match &given.arrivals {
        file::Arrivals::Trace(_) => return given.name.clone(),
        file::Arrivals::At(times) => u64::try_from(times.len()).unwrap_or(u64::MAX),
        _ => MANY_JOBS,
    };
    let jobs = given.jobs.map_or(jobs, |most| most.min(jobs));
    match given.people {
        0 | 1 => last_name(&given.name, jobs),
        people => last_name(&format!("{}{people}", given.name), jobs),
    }
}

impl Reader<'_> {
    pub(super) fn submitters(&mut self, index: usize, given: &file::Submitter) -> Vec<Jobs> {
        let path = format!("submitters[{index}]");
        if let file::Arrivals::Trace(trace) = &given.arrivals {
            return self.traced(&path, given, trace);
        }
        let Some(runtime) = &given.runtime else {
            self.wrong(&path, "has no runtime; give one such as 20m, or a distribution");
            return Vec::new();
        };
        let owner = given.owner.as_deref().unwrap_or(&given.name);
        let Some(template) = self.template(&path, given, owner, &longest_name(given)) else {
            return Vec::new();
        };
        if !self.people(&path, given.people) {
            return Vec::new();
        }
        let arrivals = self.arrivals(&format!("{path}.arrivals"), &given.arrivals);
        let from = self.span(&format!("{path}.from"), given.from, 0.0, 0.0);
        let to = given.to.map(|to| self.span(&format!("{path}.to"), Some(to), 0.0, 0.0));
        let scaled = |amount: &Option<Drawn<Bytes>>, unit: f64| {
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
            count: self.procs(&format!("{path}.procs"), drawn(given.procs.as_ref(), procs)),
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

    /// Counts a submitter's people. Returns false, and adds a problem, if their number is 0, or if they are too many,
    /// alone or together with the people of the submitters before.
    fn people(&mut self, path: &str, people: u32) -> bool {
        self.people = self.people.saturating_add(u64::from(people));
        let why = match people {
            0 => "0 is no number of people; give 1 or more".to_owned(),
            _ if u64::from(people) > MOST => format!("{people} are too many people; give at most {MOST}"),
            _ if self.people > MOST => {
                format!(
                    "with those before there are {} people, too many; give at most {MOST} in all",
                    self.people
                )
            }
            _ => return true,
        };
        self.wrong(&format!("{path}.people"), &why);
        false
    }

    /// The distribution of procs in a job, bounded by what the schedd takes. A distribution that may exceed a bound
    /// of its own is a problem; one without a bound gets the schedd's.
    fn procs(&mut self, path: &str, count: Spread) -> Spread {
        let most = f64::from(MOST_PROCS);
        match count.largest() {
            Some(largest) if largest.round() <= most => count,
            Some(largest) => {
                let message = format!("{largest} procs are too many for one job; give at most {MOST_PROCS}");
                self.wrong(path, &message);
                Spread::always(1.0)
            }
            None => count.at_most(most).unwrap_or_else(|_| Spread::always(1.0)),
        }
    }

    /// The template of a submitter's jobs, checked by the schedd's code under the longest name that a job will have.
    /// `None`, and a problem, if the manifest cannot be read.
    pub(super) fn template(
        &mut self,
        path: &str,
        given: &file::Submitter,
        owner: &str,
        longest: &str,
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
        let sample = Submission { name: longest.to_owned(), count: 1, ..template.clone() };
        for problem in submit(&sample).err().into_iter().flatten() {
            let field = if problem.field == "spec.accountingGroup" { ".group" } else { ".name" };
            self.wrong(&format!("{path}{field}"), &said_of(longest, &problem));
        }
        Some(template)
    }

    fn arrivals(&mut self, path: &str, given: &file::Arrivals) -> Arrivals {
        match given {
            file::Arrivals::At(times) => {
                let mut at: Vec<Duration> = times.iter().map(|time| sim::span(time.value)).collect();
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

    /// Adds a problem for each accounting group that no GroupQuota declares: its jobs would never start.
    pub(super) fn groups(
        &mut self,
        index: usize,
        given: &file::Submitter,
        sources: &[Jobs],
        objects: &[Event],
    ) {
        let declared = |name: &GroupName| {
            objects.iter().any(|event| matches!(event, Event::Group(group) if group.name.is_same(name)))
        };
        let named = sources.iter().filter_map(|jobs| jobs.template.group.as_deref());
        let groups: BTreeSet<GroupName> = named.flat_map(|name| GroupName::from(name).ancestry()).collect();
        let (field, or) = match (&given.arrivals, &given.group) {
            (file::Arrivals::Trace(_), _) => {
                ("arrivals.trace", ", or let another group stand in for it under people")
            }
            (_, Some(_)) => ("group", ""),
            (_, None) => ("job.spec.accountingGroup", ""),
        };
        for missing in groups.into_iter().filter(|name| !declared(name)) {
            let message = format!("no GroupQuota declares {missing}; add one to manifests{or}");
            self.wrong(&format!("submitters[{index}].{field}"), &message);
        }
    }
}
