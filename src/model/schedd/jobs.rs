//! Puts the operator's finalizer on accepted jobs, and takes it off once a deleted job has no claims and pods left.

use crate::pool::{Effect, GroupName, Job, JobFinalizer, JobUid, Pool, Problem, is_like};

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
            && !pool.orphans_of_job(uid).any(|pod| job.owns(pod));
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
    Some(match objection(pool, job)? {
        Objection::Unknown(group) => unknown(pool, &group),
        Objection::NotAllowed { owner, group, by } => not_allowed(pool, &owner, group, by.as_ref()),
    })
}

/// Whether a job may charge its accounting group. A job without a group may.
pub(super) fn may_charge(pool: &Pool, job: &Job) -> bool {
    objection(pool, job).is_none()
}

/// Why a job may not charge its accounting group.
enum Objection<'a> {
    /// No GroupQuota declares this group: the job's, or one around it, without which the cap of the job's group is not known.
    Unknown(GroupName),
    /// The job's owner may not charge the group. `by` is the group that names owners, if one does.
    NotAllowed { owner: String, group: &'a GroupName, by: Option<GroupName> },
}

/// The objection to a job's accounting group. The SubmitPolicy's map may have given the owner the group; else the group, or a
/// group around it, has to name the owner.
fn objection<'a>(pool: &Pool, job: &'a Job) -> Option<Objection<'a>> {
    let spec = job.spec.as_ref()?;
    let group = spec.group.as_ref()?;
    if let Some(unknown) = group.ancestry().find(|name| pool.group(name).is_none()) {
        return Some(Objection::Unknown(unknown));
    }
    if spec.group_by_policy {
        return None;
    }
    let owner = spec.owner();
    let named = group.ancestry().find_map(|by| Some((pool.group(&by)?.owners.as_ref()?, by)));
    match named {
        Some((owners, _)) if owners.iter().any(|pattern| is_like(&owner, pattern)) => None,
        named => Some(Objection::NotAllowed { owner, group, by: named.map(|(_, by)| by) }),
    }
}

fn not_allowed(pool: &Pool, owner: &str, group: &GroupName, by: Option<&GroupName>) -> Problem {
    let owners = by.and_then(|by| Some((by, pool.group(by)?.owners.as_deref()?)));
    let open = match owners {
        Some((by, [])) => format!("the GroupQuota of {by} has an empty list of owners"),
        Some((by, owners)) => format!("the GroupQuota of {by} is for {}", owners.join(", ")),
        None => "its GroupQuota names no owners".to_owned(),
    };
    Problem {
        reason: "AccountingGroupNotAllowed",
        field: "spec.accountingGroup".to_owned(),
        message: format!(
            "{owner} may not charge the group {group}: {open}; name another group or none, or ask an admin to add {owner} to \
             spec.owners of the GroupQuota"
        ),
    }
}

/// The most groups that a message names.
const NAMED_GROUPS: usize = 10;

fn unknown(pool: &Pool, group: &GroupName) -> Problem {
    // A group inside one that is not declared does not count.
    let counts = |name: &GroupName| name.ancestry().all(|around| pool.group(&around).is_some());
    let all = || pool.counting_groups().map(|declared| &declared.name);
    let known: Vec<&str> = all().filter(|name| counts(name)).map(GroupName::as_str).collect();
    let inside = all().find(|name| group.contains(name));
    let inside = inside
        .map(|child| format!("; the group {child}, which is inside {group}, does not count until then"));
    let (known, advice) = if known.is_empty() {
        ("none is declared".to_owned(), "ask")
    } else {
        let more = known.len().saturating_sub(NAMED_GROUPS);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let named: Vec<&str> = known.iter().copied().take(NAMED_GROUPS).collect();
        (format!("declared: {}{more}", named.join(", ")), "use one of those, or ask")
    };
    Problem {
        reason: "UnknownGroup",
        field: "spec.accountingGroup".to_owned(),
        message: format!(
            "no GroupQuota declares the group {group} ({known}); {advice} an admin to apply a GroupQuota for it{}",
            inside.unwrap_or_default()
        ),
    }
}
