//! The submitters of a scenario: what they submit, and when.

use std::collections::BTreeSet;
use std::time::Duration;

use super::amount::{Bytes, Drawn};
use super::file;
use super::manifests;
use super::read::{MOST, Reader, drawn};
use crate::cli::lint::find;
use crate::pool::{Event, Request, Retention};
use crate::schedd::{Submission, ancestry, submit};
use crate::sim::{Arrivals, Listed, Profile, Source as Jobs};

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

    /// Jobs of groups that nobody declares never start: on a cluster their authors are told.
    pub(super) fn groups(
        &mut self,
        index: usize,
        given: &file::Submitter,
        sources: &[Jobs],
        objects: &[Event],
    ) {
        let declared = |name: &str| {
            objects.iter().any(
                |event| matches!(event, Event::Group(group) if group.name.as_str().eq_ignore_ascii_case(name)),
            )
        };
        let groups: BTreeSet<&str> =
            sources.iter().filter_map(|jobs| jobs.template.group.as_deref()).flat_map(ancestry).collect();
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
