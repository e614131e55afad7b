//! `condor_status`.

use std::collections::BTreeMap;
use std::fs;

use api::{AbsentMachine, HTCJob};
use classad::Ad;
use model::pool::Time;
use tools::slots::{self, Asked, Kind, Request};

use super::{Answer, Failure, Outcome, place, version};
use crate::ads::Objects;
use crate::cluster::{Cluster, Connection};

pub(super) async fn run(words: &[String], connection: &Connection, width: Option<usize>) -> Outcome {
    let request = match slots::parse(words)? {
        Asked::Ads(request) => request,
        Asked::Help => return Ok(Answer { text: format!("{}\n", slots::USAGE), ..Answer::default() }),
        Asked::Version => return Ok(version()),
    };
    let screen = place::screen(width);
    let mut notes = Vec::new();
    let ads = match &request.ads_file {
        Some(file) => {
            let text = fs::read_to_string(file).map_err(|error| format!("Error: {file}: {error}"))?;
            tools::reads_ads(&text).map_err(|error| format!("Error: {file}: {error}"))?
        }
        None => read(&request, connection, screen.now, &mut notes).await?,
    };
    Ok(Answer { text: request.print(&ads, &screen), notes, ..Answer::default() })
}

/// The ads that a request is about, as the cluster's objects tell.
async fn read(
    request: &Request,
    connection: &Connection,
    now: i64,
    notes: &mut Vec<String>,
) -> Result<Vec<Ad>, Failure> {
    let cluster = Cluster::connect(connection).await?;
    if request.kind() == Kind::Slots {
        let mut ads = Objects::read(&cluster, notes).await?.ads(&[], None, Time::from_secs(now));
        for ad in &mut ads {
            // The ad is of this moment.
            ad.set("MyCurrentTime", now);
            ad.set("LastHeardFrom", now);
        }
        if request.wants_absent() {
            ads.extend(absent(&cluster.list_all().await?));
        }
        if let Some(unknown) = request.unknown_name(&ads) {
            return Err(Failure(format!("condor_status: unknown host {unknown}")));
        }
        return Ok(ads);
    }
    let jobs: Vec<HTCJob> = cluster.list_all().await?;
    Ok(match request.kind() {
        Kind::Schedds => vec![schedd(&jobs, cluster.server())],
        Kind::Slots | Kind::Submitters => submitters(&jobs, cluster.server()),
    })
}

/// The last ads of the slots of absent machines. An ad that somebody has made unreadable is left out.
fn absent(machines: &[AbsentMachine]) -> Vec<Ad> {
    let slots =
        machines.iter().filter_map(|machine| machine.status.as_ref()).flat_map(|status| &status.slots);
    slots.filter_map(|slot| Ad::parse_long(&slot.ad).ok()).collect()
}

/// How many procs run, wait and are held.
#[derive(Clone, Copy, Debug, Default)]
struct Procs {
    running: i64,
    idle: i64,
    held: i64,
}

impl Procs {
    fn add(&mut self, job: &HTCJob) {
        let Some(status) = &job.status else { return };
        self.running = self.running.saturating_add(status.running);
        self.idle = self.idle.saturating_add(status.idle);
        self.held = self.held.saturating_add(status.held);
    }
}

/// The one queue: all HTCJobs of the cluster.
fn schedd(jobs: &[HTCJob], server: &str) -> Ad {
    let mut procs = Procs::default();
    for job in jobs {
        procs.add(job);
    }
    Ad::new()
        .with("MyType", "Scheduler")
        .with("Name", "slotwright")
        .with("Machine", server)
        .with("TotalRunningJobs", procs.running)
        .with("TotalIdleJobs", procs.idle)
        .with("TotalHeldJobs", procs.held)
        .with("TotalJobAds", procs.running.saturating_add(procs.idle).saturating_add(procs.held))
}

/// Each submitter that has jobs.
fn submitters(jobs: &[HTCJob], server: &str) -> Vec<Ad> {
    let mut all: BTreeMap<String, Procs> = BTreeMap::new();
    for job in jobs {
        if let Some(submitter) = job.status.as_ref().and_then(|status| status.submitter.clone()) {
            all.entry(submitter).or_default().add(job);
        }
    }
    let ad = |(name, procs): (&String, &Procs)| {
        Ad::new()
            .with("MyType", "Submitter")
            .with("Name", name.as_str())
            .with("Machine", server)
            .with("RunningJobs", procs.running)
            .with("IdleJobs", procs.idle)
            .with("HeldJobs", procs.held)
    };
    all.iter().map(ad).collect()
}
