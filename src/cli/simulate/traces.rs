//! Reads submitters whose jobs are those of a trace: one source of jobs for each owner and group of the trace.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::file;
use super::read::Reader;
use super::submitters::{last_name, said_of};
use model::pool::{Request, Unsaid};
use model::schedd::Submission;
use sim::trace::{Person, Reading, Selection, Trace, TraceJob};
use sim::{Arrivals, Listed, Source as Jobs, Spread};

/// An owner of a trace, and the owner's accounting group.
type Submitter = (Arc<str>, Option<Arc<str>>);

impl Reader<'_> {
    /// The sources of a submitter whose arrivals are a trace.
    pub(super) fn traced(&mut self, path: &str, given: &file::Submitter, trace: &file::Trace) -> Vec<Jobs> {
        self.refuse_what_the_trace_says(path, given);
        let owner = given.owner.as_deref().unwrap_or(&given.name);
        let Some(template) = self.template(path, given, owner, &given.name) else {
            return Vec::new();
        };
        let Some(selected) = self.selected(&format!("{path}.arrivals.trace"), given, trace) else {
            return Vec::new();
        };
        let begin = self.span(&format!("{path}.from"), given.from, 0.0, 0.0);
        let mut sources: Vec<(Submitter, Vec<Listed>)> = Vec::new();
        let mut places: HashMap<Submitter, usize> = HashMap::new();
        for job in &selected.jobs {
            let submitter = (job.owner.clone(), job.group.clone());
            let place = *places.entry(submitter.clone()).or_insert_with(|| {
                sources.push((submitter, Vec::new()));
                sources.len() - 1
            });
            if let Some((_, jobs)) = sources.get_mut(place) {
                jobs.push(listed(job, begin, &template.request));
            }
        }
        sources
            .into_iter()
            .filter_map(|(who, jobs)| self.source_of(path, given, &template, &who, jobs))
            .collect()
    }

    /// Refuses fields of the submitter that the trace sets for each job.
    fn refuse_what_the_trace_says(&mut self, path: &str, given: &file::Submitter) {
        let requests = &given.requests;
        let said = [
            ("runtime", given.runtime.is_some()),
            ("procs", given.procs.is_some()),
            ("people", given.people != 1),
            ("requests.cpus", requests.cpus.is_some()),
            ("requests.memory", requests.memory.is_some()),
            ("requests.disk", requests.disk.is_some()),
            ("requests.gpus", requests.gpus.is_some()),
        ];
        for (field, _) in said.into_iter().filter(|(_, is_said)| *is_said) {
            self.wrong(&format!("{path}.{field}"), "a trace says this of each job; leave it out");
        }
    }

    fn selected(&mut self, path: &str, given: &file::Submitter, trace: &file::Trace) -> Option<Trace> {
        let file = self.directory.join(&trace.file);
        let read = match read(&file) {
            Ok(read) => read,
            Err(message) => {
                self.wrong(&format!("{path}.file"), &format!("{}: {message}", file.display()));
                return None;
            }
        };
        let person =
            |person: &file::Person| Person { owner: person.owner.clone(), group: person.group.clone() };
        let from = self.span(&format!("{path}.from"), trace.from, 0.0, 0.0).as_secs();
        let to =
            trace.to.map_or(u64::MAX, |to| self.span(&format!("{path}.to"), Some(to), 0.0, 0.0).as_secs());
        let selection = Selection {
            window: from..to,
            pace: trace.pace.unwrap_or(1.0),
            people: trace.people.iter().map(|(name, stand_in)| (name.clone(), person(stand_in))).collect(),
            jobs: given.jobs.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX),
        };
        let reasons = read
            .reasons()
            .iter()
            .map(|reason| format!("{}: skipped {reason}", file.display()))
            .collect::<Vec<_>>();
        match read.select(&selection) {
            Ok(selected) => {
                if selected.jobs.is_empty() {
                    self.wrong(path, "no job is left of the trace");
                }
                self.notes.extend(reasons);
                Some(selected)
            }
            Err(error) => {
                self.wrong(path, &error.to_string());
                None
            }
        }
    }

    /// The source of one owner's jobs; `None`, and a problem, if the schedd would refuse them.
    fn source_of(
        &mut self,
        path: &str,
        given: &file::Submitter,
        template: &Submission,
        (owner, group): &Submitter,
        jobs: Vec<Listed>,
    ) -> Option<Jobs> {
        let template = Submission {
            namespace: owner.to_string(),
            owner: owner.to_string(),
            group: group.as_ref().map(ToString::to_string).or_else(|| template.group.clone()),
            ..template.clone()
        };
        let name = match group {
            Some(group) => format!("{}-{group}.{owner}", given.name),
            None => format!("{}-{owner}", given.name),
        };
        let longest = last_name(&name, u64::try_from(jobs.len()).unwrap_or(u64::MAX));
        let sample = Submission { name: longest.clone(), count: 1, ..template.clone() };
        if let Err(problems) = model::schedd::submit(&sample) {
            for problem in problems {
                let said = said_of(&longest, &problem);
                let message = format!("{owner}: {said}; let another stand in for it under people");
                self.wrong(&format!("{path}.arrivals.trace"), &message);
            }
            return None;
        }
        Some(Jobs {
            name,
            template,
            arrivals: Arrivals::Listed(jobs),
            from: Duration::ZERO,
            to: given.to.map(|to| self.span(&format!("{path}.to"), Some(to), 0.0, 0.0)),
            most: None,
            count: Spread::always(1.0),
            runtime: Spread::always(0.0),
            cpus: None,
            memory_mib: None,
            disk_kib: None,
            gpus: None,
        })
    }
}

/// Converts a job of a trace. Requests that the trace does not give are the template's.
fn listed(job: &TraceJob, begin: Duration, template: &Request) -> Listed {
    let whole = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
    let request = Request {
        cpus: whole(job.cpus),
        memory_mib: job.memory_mib.map_or(template.memory_mib, whole),
        disk_kib: job.disk_kib.map_or(template.disk_kib, whole),
        gpus: whole(job.gpus),
        unsaid: Unsaid {
            cpus: false,
            memory: template.unsaid.memory && job.memory_mib.is_none(),
            disk: template.unsaid.disk && job.disk_kib.is_none(),
        },
        ..template.clone()
    };
    let saturated = if job.priority < 0 { i32::MIN } else { i32::MAX };
    Listed {
        at: begin + Duration::from_secs(job.submitted),
        count: Some(1),
        runtime: Some(Duration::from_secs(job.runtime)),
        request: Some(request),
        priority: Some(i32::try_from(job.priority).unwrap_or(saturated)),
    }
}

/// Reads a trace line by line, because it may be larger than memory.
fn read(path: &Path) -> Result<Trace, String> {
    let mut file = BufReader::new(File::open(path).map_err(|error| error.to_string())?);
    let (mut reading, mut line) = (Reading::new(), Vec::new());
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(|error| error.to_string())? == 0 {
            return reading.finish().map_err(|error| error.to_string());
        }
        let text = String::from_utf8_lossy(&line);
        reading.line(text.trim_end_matches(['\n', '\r'])).map_err(|error| error.to_string())?;
    }
}
