//! Puts the operator's finalizer on accepted jobs, and takes it off once a deleted job has no claims and pods left.

use crate::pool::{Effect, Job, JobFinalizer, JobUid, Pool, Problem, is_like};

/// Reviews a job that changed.
pub fn review_job(pool: &mut Pool, uid: &JobUid, effects: &mut Vec<Effect>) {
    if pool.jobs().get(uid).is_some_and(|job| !job.removing) {
        tell_group(pool, uid);
    }
    let Some(job) = pool.jobs().get(uid) else { return };
    if job.removing {
        let clear = job.active.is_empty()
            && job.unrecorded.is_empty()
            && !pool.has_remains(uid)
            && !pool.awaits_history(uid)
            && !pool.orphans().values().any(|pod| pod.job == *uid && job.owns(pod));
        if clear && job.finalizer == JobFinalizer::Held {
            effects.push(Effect::RemoveJobFinalizer(job.key.clone()));
            pool.edit_job(uid, |job| job.finalizer = JobFinalizer::Releasing);
        }
        return;
    }
    let fresh = job.finalizer == JobFinalizer::Free && job.problems.is_empty();
    if let Some(spec) = job.spec.clone().filter(|_| fresh) {
        let key = job.key.clone();
        let note = format!(
            "accepted with ClusterId {}: {} procs of submitter {}",
            job.cluster_id, spec.count, spec.submitter
        );
        effects.push(Effect::AddJobFinalizer(key.clone()));
        let told = pool.edit_job(uid, |job| {
            job.finalizer = JobFinalizer::Asked;
            std::mem::replace(&mut job.told.accepted, true)
        });
        if told == Some(false) {
            pool.tell(&key, "Submitted", "Accept", note);
        }
    }
}

/// Warns the job's author once that the group is missing or not allowed. Warns again only if the group was usable in
/// between.
fn tell_group(pool: &mut Pool, uid: &JobUid) {
    let Some(problem) = pool.jobs().get(uid).map(|job| group_problem(pool, job)) else { return };
    let told = pool.edit_job(uid, |job| {
        let known = std::mem::replace(&mut job.told.group_missing, problem.is_some());
        (!known).then(|| job.key.clone())
    });
    if let (Some(problem), Some(key)) = (problem, told.flatten()) {
        pool.warn(&key, problem.reason, "Accept", problem.to_string());
    }
}

/// The problem with a job's accounting group: nobody declared the group, or the job's owner may not charge it.
pub fn group_problem(pool: &Pool, job: &Job) -> Option<Problem> {
    unknown_group(pool, job).or_else(|| group_not_allowed(pool, job))
}

/// Whether the job's owner may not charge the job's group. The SubmitPolicy's map may have given the owner the group; else the
/// group, or a group around it, has to name the owner.
fn group_not_allowed(pool: &Pool, job: &Job) -> Option<Problem> {
    let spec = job.spec.as_ref()?;
    let group = spec.group.as_ref()?;
    if spec.group_by_policy {
        return None;
    }
    let owner = spec.owner();
    let owners =
        group.ancestry().find_map(|name| pool.group(&name)?.owners.as_ref().map(|owners| (name, owners)));
    if owners.as_ref().is_some_and(|(_, owners)| owners.iter().any(|pattern| is_like(&owner, pattern))) {
        return None;
    }
    let open = match owners {
        Some((by, owners)) if owners.is_empty() => {
            format!("the GroupQuota of {by} has an empty list of owners")
        }
        Some((by, owners)) => format!("the GroupQuota of {by} is for {}", owners.join(", ")),
        None => "its GroupQuota names no owners".to_owned(),
    };
    Some(Problem {
        reason: "AccountingGroupNotAllowed",
        field: "spec.accountingGroup".to_owned(),
        message: format!(
            "{owner} may not charge the group {group}: {open}; name another group or none, or ask an admin to add {owner} to \
             spec.owners of the GroupQuota"
        ),
    })
}

/// The most groups that a message names.
const NAMED_GROUPS: usize = 10;

/// The problem that nobody declared a job's accounting group, if so.
fn unknown_group(pool: &Pool, job: &Job) -> Option<Problem> {
    let group = job.spec.as_ref()?.group.as_ref()?;
    // A group whose parent is missing is not accepted either: without the parent its cap is not known.
    let group = group.ancestry().find(|name| pool.group(name).is_none())?;
    let known: Vec<&str> = pool.groups().values().map(|group| group.name.as_str()).collect();
    let known = if known.is_empty() {
        "none is declared".to_owned()
    } else {
        let more = known.len().saturating_sub(NAMED_GROUPS);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let named: Vec<&str> = known.iter().copied().take(NAMED_GROUPS).collect();
        format!("declared: {}{more}", named.join(", "))
    };
    Some(Problem {
        reason: "UnknownGroup",
        field: "spec.accountingGroup".to_owned(),
        message: format!(
            "no GroupQuota declares the group {group} ({known}); use one of those, or ask an admin to apply a GroupQuota for it"
        ),
    })
}
