//! Jobs: held when accepted, released when they are being deleted and nothing of them is left.

use crate::pool::{Effect, Job, JobFinalizer, JobUid, Pool, Problem};

/// Looks at a job that changed.
pub fn review_job(pool: &mut Pool, uid: &JobUid, effects: &mut Vec<Effect>) {
    if pool.jobs().get(uid).is_some_and(|cluster| !cluster.removing) {
        tell_group(pool, uid);
    }
    let Some(cluster) = pool.jobs().get(uid) else { return };
    if cluster.removing {
        let clear = cluster.active.is_empty()
            && cluster.unrecorded.is_empty()
            && !pool.orphans().values().any(|pod| pod.job == *uid && cluster.owns(pod));
        if clear && cluster.finalizer == JobFinalizer::Held {
            effects.push(Effect::RemoveJobFinalizer(cluster.key.clone()));
            pool.edit_job(uid, |cluster| cluster.finalizer = JobFinalizer::Releasing);
        }
        return;
    }
    let fresh = cluster.finalizer == JobFinalizer::Free && cluster.problems.is_empty();
    if let Some(spec) = cluster.spec.clone().filter(|_| fresh) {
        let key = cluster.key.clone();
        let note = format!(
            "accepted as cluster {}: {} procs of submitter {}",
            cluster.cluster, spec.count, spec.submitter
        );
        effects.push(Effect::AddJobFinalizer(key.clone()));
        let told = pool.edit_job(uid, |cluster| {
            cluster.finalizer = JobFinalizer::Asked;
            std::mem::replace(&mut cluster.told.accepted, true)
        });
        if told == Some(false) {
            pool.tell(&key, "Submitted", "Accept", note);
        }
    }
}

/// Says once that the group is missing, and says it again only after it was there.
fn tell_group(pool: &mut Pool, uid: &JobUid) {
    let Some(problem) = pool.jobs().get(uid).map(|cluster| unknown_group(pool, cluster)) else { return };
    let told = pool.edit_job(uid, |cluster| {
        let known = std::mem::replace(&mut cluster.told.group_missing, problem.is_some());
        (!known).then(|| cluster.key.clone())
    });
    if let (Some(problem), Some(key)) = (problem, told.flatten()) {
        pool.warn(&key, problem.reason, "Accept", problem.to_string());
    }
}

/// What is wrong with a job's accounting group, if it has one that nobody declared.
pub fn unknown_group(pool: &Pool, cluster: &Job) -> Option<Problem> {
    let group = cluster.spec.as_ref()?.group.as_ref()?;
    // A group whose parent is missing is not accepted either: without the parent its cap is not known.
    let group = group.ancestry().find(|name| pool.group(name).is_none())?;
    let known: Vec<&str> = pool.groups().values().map(|group| group.name.as_str()).collect();
    let known = if known.is_empty() {
        "none is declared".to_owned()
    } else {
        format!("declared: {}", known.join(", "))
    };
    Some(Problem {
        reason: "UnknownGroup",
        field: "spec.accountingGroup".to_owned(),
        message: format!(
            "no GroupQuota declares the group {group} ({known}); use one of those, or ask an admin to apply a GroupQuota for it"
        ),
    })
}
