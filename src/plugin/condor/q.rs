//! `condor_q`.

use std::fs;

use api::{HTCJob, Slot};
use classad::{Ad, Env};
use model::pool::Time;
use tools::Screen;
use tools::queue::{self, Asked, Request, Source, Totals};

use super::jobs::{self, Runs};
use super::last_runs::LastRuns;
use super::{Answer, Failure, Outcome, analysis, place, version};
use crate::cluster::{self, Cluster, Connection};
use crate::if_allowed;

pub(super) async fn run(words: &[String], connection: &Connection, width: Option<usize>) -> Outcome {
    let request = match queue::parse(words)? {
        Asked::Jobs(request) => request,
        Asked::Help => return Ok(Answer { text: format!("{}\n", queue::USAGE), ..Answer::default() }),
        Asked::Version => return Ok(version()),
    };
    let screen = place::screen(width);
    if let Some(file) = &request.ads_file {
        return of_file(&request, file, &screen);
    }
    let cluster = Cluster::connect(connection).await?;
    let mut found = QueueObjects::read(&cluster, &request).await?;
    let now = Time::from_secs(screen.now);
    let ads = jobs::ads(&found.jobs, found.runs.as_ref(), Some(&found.last_runs), now);
    let label = format!("Schedd: {} : {}", found.namespace, cluster.server());
    let text = if request.analysis {
        analysis::print(&request.choose(&ads, &screen), &found.jobs, &label, &screen)
    } else {
        request.print(&ads, &found.source(label, &ads, request.names_jobs(), screen.now), &screen)
    };
    Ok(Answer { text, notes: std::mem::take(&mut found.notes), ..Answer::default() })
}

/// The answer about jobs whose ads are in a file.
fn of_file(request: &Request, file: &str, screen: &Screen) -> Outcome {
    if request.analysis {
        let why = "Error: -better-analyze asks a cluster which nodes it has: leave out -jobads, or give the ads to slotwright negotiate";
        return Err(why.to_owned().into());
    }
    let text = fs::read_to_string(file).map_err(|error| format!("Error: {file}: {error}"))?;
    let ads = tools::reads_ads(&text).map_err(|error| format!("Error: {file}: {error}"))?;
    let source = Source { label: format!("Jobads: {file}"), ..Source::default() };
    Ok(Answer { text: request.print(&ads, &source, screen), ..Answer::default() })
}

/// The objects that an answer is made of.
struct QueueObjects {
    namespace: String,
    jobs: Vec<HTCJob>,
    /// Whether `jobs` are those of all namespaces.
    all: bool,
    runs: Option<Runs>,
    /// The last runs of procs that are done, of the jobs whose `LeaveJobInQueue` may keep such procs in the queue.
    last_runs: LastRuns,
    notes: Vec<String>,
}

impl QueueObjects {
    async fn read(cluster: &Cluster, request: &Request) -> Result<Self, Failure> {
        let namespace = place::namespace(cluster);
        let mut notes = Vec::new();
        let mut jobs: Option<Vec<HTCJob>> = None;
        let all = request.everybody || request.names_jobs();
        if all {
            jobs = match cluster.list_all().await {
                // If the user may not list all namespaces, only jobs of the current namespace are shown.
                Err(error @ cluster::Error::Forbidden { .. }) => {
                    notes.push(format!("note: {error}; only the jobs of namespace {namespace} are shown"));
                    None
                }
                other => Some(other?),
            };
        }
        let all = jobs.is_some();
        let jobs = match jobs {
            Some(jobs) => jobs,
            None => cluster.list(Some(&namespace)).await?,
        };
        notes.extend(unseen(&jobs, place::now()));
        let some_run = jobs.iter().any(|job| job.status.as_ref().is_some_and(|status| status.running > 0));
        let runs = if request.needs_runs() && some_run {
            runs(cluster, (!all).then_some(namespace.as_str()), &mut notes).await?
        } else {
            None
        };
        let mut left = jobs.iter().filter(|job| jobs::may_leave_in_queue(job)).peekable();
        let last_runs = match left.peek() {
            Some(_) => if_allowed(LastRuns::read(cluster, left).await, &mut notes)?.unwrap_or_default(),
            None => LastRuns::default(),
        };
        Ok(Self { namespace, jobs, all, runs, last_runs, notes })
    }

    /// The label, and the totals that are known beside those of the jobs that are shown. Where the command line names jobs or owners,
    /// condor_q does not count those of the user.
    fn source(&self, label: String, ads: &[Ad], named: bool, now: i64) -> Source {
        let env = Env::at(now);
        let own = ads
            .iter()
            .filter(|ad| ad.eval_attr("JobNamespace", None, &env).as_str() == Some(self.namespace.as_str()));
        Source {
            label,
            own: (!named).then(|| (self.namespace.clone(), Totals::of(own, &env))),
            everybody: self.all.then(|| Totals::of(ads, &env)),
        }
    }
}

/// A note if jobs have waited for their numbers for a while: an operator gives a number at once.
fn unseen(jobs: &[HTCJob], now: i64) -> Option<String> {
    /// For how long a job may have no number, in seconds.
    const SOON: i64 = 10;
    let made = |job: &HTCJob| job.metadata.creation_timestamp.as_ref().map(|time| time.0.as_second());
    let waits = |job: &&HTCJob| {
        let number = job.status.as_ref().and_then(|status| status.cluster_id);
        number.is_none() && made(job).is_some_and(|made| now - made > SOON)
    };
    match jobs.iter().filter(waits).count() {
        0 => None,
        1 => Some("note: 1 HTCJob has no number yet, and is not shown: does an operator run?".to_owned()),
        some => Some(format!(
            "note: {some} HTCJobs have no numbers yet, and are not shown: does an operator run?"
        )),
    }
}

/// The procs that run, as slots and pods tell, if the user may list one of them.
async fn runs(
    cluster: &Cluster,
    namespace: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Option<Runs>, Failure> {
    let mut hidden = Vec::new();
    let slots: Option<Vec<Slot>> = if_allowed(cluster.list_all().await, &mut hidden)?;
    let pods = if_allowed(jobs::pods(cluster, namespace).await, &mut hidden)?;
    if slots.is_none() && pods.is_none() {
        notes.append(&mut hidden);
        notes.push(
            "note: without slots and pods, which procs run is not known: the first ones are shown as running"
                .to_owned(),
        );
        return Ok(None);
    }
    Ok(Some(Runs::of(&slots.unwrap_or_default(), &pods.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_analysis_of_ads_in_a_file_is_refused() {
        let words = ["-jobads", "queue.ads", "-better-analyze", "12.0"].map(str::to_owned);
        let Ok(Asked::Jobs(request)) = queue::parse(&words) else { panic!("{words:?}") };
        let refused = of_file(&request, "queue.ads", &place::screen(None));
        assert!(refused.is_err_and(|failure| failure.0.contains("-better-analyze asks a cluster")));
    }

    #[test]
    fn jobs_that_nobody_has_looked_at_for_a_while_are_told_of() {
        let job = |number: Option<i64>| -> HTCJob {
            serde_json::from_value(json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
                "metadata": {"name": "a", "creationTimestamp": "2030-01-01T00:00:00Z"},
                "spec": {"template": {}}, "status": {"clusterId": number}}))
            .unwrap()
        };
        let (new, known) = (job(None), job(Some(3)));
        let made = new.metadata.creation_timestamp.as_ref().unwrap().0.as_second();
        let said = |jobs: &[HTCJob], after: i64| unseen(jobs, made + after);
        assert_eq!(said(std::slice::from_ref(&new), 10), None);
        assert!(
            said(&[new.clone(), known.clone()], 11)
                .is_some_and(|note| note.contains("1 HTCJob has no number"))
        );
        assert!(said(&[new.clone(), new], 11).is_some_and(|note| note.contains("2 HTCJobs have no numbers")));
        assert_eq!(said(&[known], 60), None);
    }
}
