//! The jobs of each source. Everything random about a job is drawn when it is submitted, from the source's own
//! streams, so that the workload is the same under every policy.

use std::time::Duration;

use super::arrivals::{Course, Listed};
use super::chance::{Chance, stream};
use super::number::{span, whole};
use super::scenario::{Scenario, Source};
use model::pool::{Request, Time};
use model::schedd::{MOST_PROCS, Submission};

/// A job about to be submitted.
#[derive(Debug)]
pub struct Arrival {
    /// When the job is submitted.
    pub at: Time,
    /// The job.
    pub submission: Submission,
    /// How long each proc runs, if nothing interrupts it.
    pub runtimes: Vec<Duration>,
}

/// The jobs of one source, in the order of submission.
#[derive(Debug)]
pub struct Stream<'s> {
    source: &'s Source,
    start: Time,
    end: Time,
    course: Course,
    times: Chance,
    sizes: Chance,
    made: u64,
}

impl<'s> Stream<'s> {
    /// The jobs of a source of a scenario.
    pub fn new(scenario: &Scenario, source: &'s Source) -> Self {
        let end = scenario.start + source.to.unwrap_or(scenario.length).min(scenario.length);
        Self {
            source,
            start: scenario.start,
            end,
            course: Course::new(source.arrivals.clone(), scenario.start + source.from),
            times: stream(scenario.seed, "arrivals", &source.name),
            sizes: stream(scenario.seed, "jobs", &source.name),
            made: 0,
        }
    }

    /// The next job; `None` when no more come.
    pub fn next(&mut self) -> Option<Arrival> {
        if self.source.most.is_some_and(|most| self.made >= most) {
            return None;
        }
        let (at, listed) = self.course.next(self.start, &mut self.times)?;
        if at >= self.end {
            return None;
        }
        self.made += 1;
        Some(self.job(at, listed))
    }

    fn job(&mut self, at: Time, listed: Option<Listed>) -> Arrival {
        let source = self.source;
        let rng = &mut self.sizes;
        // The draws are made even if a trace lists the values, so that later draws of the stream stay the same.
        let drawn = whole(source.count.draw(rng), 1);
        let mut request = source.template.request.clone();
        draw_request(source, &mut request, rng);
        let listed = listed.unwrap_or(Listed {
            at: Duration::ZERO,
            count: None,
            runtime: None,
            request: None,
            priority: None,
        });
        let count = listed.count.map_or(drawn, i64::from);
        // A job of more than MOST_PROCS procs is refused, and needs no runtimes.
        let runtimes = (0..count.min(i64::from(MOST_PROCS)))
            .map(|_| {
                let drawn = span(source.runtime.draw(rng));
                listed.runtime.unwrap_or(drawn)
            })
            .collect();
        let submission = Submission {
            name: format!("{}-{}", source.name, self.made),
            submitted: at,
            count,
            request: listed.request.unwrap_or(request),
            priority: listed.priority.unwrap_or(source.template.priority),
            ..source.template.clone()
        };
        Arrival { at, submission, runtimes }
    }
}

fn draw_request(source: &Source, request: &mut Request, rng: &mut Chance) {
    if let Some(cpus) = &source.cpus {
        request.cpus = whole(cpus.draw(rng), 1);
        request.unsaid.cpus = false;
    }
    if let Some(memory) = &source.memory_mib {
        request.memory_mib = whole(memory.draw(rng), 1);
        request.unsaid.memory = false;
    }
    if let Some(disk) = &source.disk_kib {
        request.disk_kib = whole(disk.draw(rng), 0);
        request.unsaid.disk = false;
    }
    if let Some(gpus) = &source.gpus {
        request.gpus = whole(gpus.draw(rng), 0);
    }
}
