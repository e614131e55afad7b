//! `condor_q -analyze` and `-better-analyze`: why jobs do not run, as the operator says.

use std::fmt::Write;

use api::HTCJob;
use classad::{Ad, Env};
use tools::Screen;
use tools::queue::text_of;

/// The conditions of a job that say something about procs that wait or are held.
const TELLING: [&str; 5] = ["Accepted", "Matchable", "Held", "PodRefused", "FullyApplied"];

/// The analysis of each job that the chosen procs are of. `chosen` stand in the order of their ids.
pub(super) fn print(chosen: &[&Ad], jobs: &[HTCJob], label: &str, screen: &Screen) -> String {
    let env = Env::at(screen.now);
    let mut out = format!("\n\n-- {label}\n");
    let mut last = None;
    for ad in chosen {
        let of = |name: &str| ad.eval_attr(name, None, &env).as_int().unwrap_or(-1);
        let (cluster, proc) = (of("ClusterId"), of("ProcId"));
        let id = format!("{cluster}.{proc:03}");
        if last != Some(cluster) {
            if let Some(requirements) = ad.get("Requirements") {
                let _ = write!(
                    out,
                    "The Requirements expression for job {id} is\n\n    {}\n\n",
                    requirements.to_old().replace(" && ", " &&\n    ")
                );
            }
            if let Some(job) = jobs
                .iter()
                .find(|job| job.status.as_ref().and_then(|status| status.cluster_id) == Some(cluster))
            {
                conditions(job, cluster, &mut out);
            }
        }
        last = Some(cluster);
        let text = |name: &str| text_of(ad, name, &env);
        let said = match of("JobStatus") {
            2 => text("RemoteHost")
                .map_or_else(|| "Job is running.".to_owned(), |host| format!("Job is running on {host}.")),
            3 => "Job is being removed.".to_owned(),
            5 => format!("Job is held.\n\nHold reason: {}", text("HoldReason").unwrap_or_default()),
            7 => "Job is suspended.".to_owned(),
            _ => match text("LastRejMatchReason") {
                Some(why) => format!("Job waits; the reason that the operator gives for its cluster: {why}"),
                None => "Job has not yet been considered by the matchmaker.".to_owned(),
            },
        };
        let _ = write!(out, "{id}:  {said}\n\n");
    }
    out
}

/// The operator's conditions of the job.
fn conditions(job: &HTCJob, cluster: i64, out: &mut String) {
    let status = job.status.clone().unwrap_or_default();
    let telling = status.conditions.iter().filter(|condition| TELLING.contains(&condition.type_.as_str()));
    let lines: Vec<String> = telling
        .filter(|condition| !condition.message.is_empty())
        .map(|condition| format!("    {} is {}: {}\n", condition.type_, condition.status, condition.message))
        .collect();
    if !lines.is_empty() {
        let _ = write!(out, "The operator says of job {cluster}:\n\n{}\n", lines.concat());
    }
}
