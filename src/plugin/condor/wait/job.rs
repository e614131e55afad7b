//! Waits for a job without a log: until no proc of it is in the queue.

use std::io::Write;

use answers::Item;
use api::HTCJob;
use classad::{Ad, Env};
use model::pool::Time;

use super::super::history::last_ad;
use super::super::{Answer, Failure, Outcome, jobs, place};
use super::{Request, USAGE, expired};
use crate::cluster::{self, Cluster, Connection, Patience, decoded};
use crate::userlog::PAUSE;

pub(super) async fn wait(
    request: &Request,
    connection: &Connection,
    err: &mut (dyn Write + Send),
) -> Outcome {
    let Some((wanted, proc)) = request.job else { return Err(Failure(USAGE.to_owned())) };
    let cluster = Cluster::connect(connection).await?;
    let (until, mut patience) = (request.until(), Patience::default());
    let done = || {
        let id = proc.map_or_else(|| wanted.to_string(), |proc| format!("{wanted}.{proc}"));
        let status = if request.status { format!("{id} completed\n") } else { String::new() };
        Ok(Answer { text: format!("{status}All jobs done.\n"), ..Answer::default() })
    };
    let Some((namespace, name)) = object_of(&cluster, wanted, proc).await? else { return done() };
    loop {
        match cluster.items(&namespace, Some(&name)).await {
            Ok(items) => {
                if items.into_iter().all(|item| is_over(item, wanted, proc)) {
                    return done();
                }
            }
            Err(error) if error.is_transient() => patience.bear(&error, err),
            Err(error) => return Err(error.into()),
        }
        if until.is_some_and(|until| place::now() >= until) {
            return Ok(expired());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The namespace and name of a job. `None`: the job was deleted, and the history has its end.
async fn object_of(
    cluster: &Cluster,
    wanted: i64,
    proc: Option<i64>,
) -> Result<Option<(String, String)>, Failure> {
    let (all, sees_all): (Vec<HTCJob>, bool) = match cluster.list_all().await {
        Err(cluster::Error::Forbidden { .. }) => {
            (cluster.list(Some(&place::namespace(cluster))).await?, false)
        }
        other => (other?, true),
    };
    let Some(job) = all.into_iter().find(|job| number(job) == Some(wanted)) else {
        let first = format!("{wanted}.{}", proc.unwrap_or(0));
        let has_ended = sees_all && last_ad(cluster, &first).await.is_ok_and(|ad| ad.is_some());
        return if has_ended { Ok(None) } else { Err(unknown(wanted, sees_all)) };
    };
    if let Some(proc) = proc.filter(|proc| !(0..job.spec.count).contains(proc)) {
        let last = job.spec.count.saturating_sub(1);
        return Err(Failure(format!("Error: job {wanted} has no proc {proc}: its procs are 0 to {last}")));
    }
    Ok(Some((job.metadata.namespace.unwrap_or_default(), job.metadata.name.unwrap_or_default())))
}

fn unknown(wanted: i64, sees_all: bool) -> Failure {
    let why = if sees_all {
        "the job was deleted or never existed; see condor_history"
    } else {
        "you may list the jobs of one namespace only; choose the job's with SLOTWRIGHT_NAMESPACE"
    };
    Failure(format!("Error: no job {wanted}: {why}"))
}

fn number(job: &HTCJob) -> Option<i64> {
    job.status.as_ref().and_then(|status| status.cluster_id)
}

/// Whether no proc that is waited for is in the queue any more. An object that cannot be read says nothing of its
/// procs.
fn is_over(item: Item<HTCJob>, wanted: i64, proc: Option<i64>) -> bool {
    let Some(job) = decoded(item) else { return false };
    let now = place::now();
    let ads = jobs::ads(std::slice::from_ref(&job), None, None, Time::from_secs(now));
    let is_meant =
        |ad: &Ad| proc.is_none_or(|proc| ad.eval_attr("ProcId", None, &Env::at(now)).as_int() == Some(proc));
    number(&job) != Some(wanted) || !ads.iter().any(is_meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_waited_for_while_a_proc_that_is_meant_is_in_the_queue() {
        let object = |completed: &str, replicas: &str| {
            let text = format!(
                r#"{{"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
                    "metadata": {{"name": "sim", "namespace": "ada", "uid": "u"}},
                    "spec": {{"count": {replicas}, "template": {{}}}},
                    "status": {{"clusterId": 12, "completedProcs": "{completed}"}}}}"#
            );
            serde_json::from_str::<Item<HTCJob>>(&text).unwrap()
        };
        for (completed, wanted, proc, expected) in [
            ("", 12, None, false),
            ("0", 12, None, false),
            ("0", 12, Some(0), true),
            ("0", 12, Some(1), false),
            ("0-1", 12, None, true),
            ("", 13, None, true),
        ] {
            let over = is_over(object(completed, "2"), wanted, proc);
            assert_eq!(over, expected, "{completed:?} {wanted} {proc:?}");
        }
        assert!(!is_over(object("", "\"two\""), 12, None), "an object that cannot be read has not ended");
    }
}
