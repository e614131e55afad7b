//! What each object's status should say, by the pool.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use kube::api::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use super::agent::agent_ready;
use super::conditions::{Says, accepted, condition, of_policy};
use super::drain::drain as drain_status;
use super::governing::{negotiator, submit_policy};
use super::held::{held, held_procs};
use super::limit::limit as limit_status;
use super::slot::{label_value, resources, static_slot};
use super::waiting::matchable;
use crate::translate::{kube_time, submitter_object_name, timestamp};
use api::{
    self, AccountStatus, GroupQuotaStatus, HTCJobStatus, NodePolicyStatus, PartitionableSlotSpec,
    PartitionableSlotStatus, SlotActivity, SlotRunning, SlotState, SlotStatus, SubmitterSpec,
    SubmitterStatus, Transition, condition as types, labels,
};
use model::decide::{PROC_WAITS, quotas};
use model::pool::{
    Activation, Claimed, Cluster, Document, Machine, NegotiatorId, Offer, Pool, Problem, Quota, Slot,
    SlotKind, SlotName, Standing, State, Submitter, Taken, Time,
};
use model::schedd::{group_usage, unknown_group};

/// An object as the pool wants it.
#[derive(Debug, PartialEq)]
pub enum Rendered {
    /// It exists by itself, or somebody else makes it: its status.
    Status(Value),
    /// The operator makes it: the object to create where there is none, and its status.
    Object {
        /// The object, without status.
        create: Value,
        /// The status.
        status: Value,
    },
    /// The operator takes it away.
    Absent,
    /// There is nothing to say.
    Nothing,
}

/// What an object should say now. `old` is the status that it has, whose condition times are kept.
pub fn render(pool: &Pool, document: &Document, old: &Value, now: Time) -> Rendered {
    let conditions: Vec<Condition> = old
        .get("conditions")
        .and_then(|found| serde_json::from_value(found.clone()).ok())
        .unwrap_or_default();
    match document {
        Document::Job(uid) => {
            pool.jobs.get(uid).map_or(Rendered::Nothing, |c| status(&job(pool, c, &conditions, now)))
        }
        Document::Slot(name) => claimed_or_standing(pool, name, &conditions, now),
        Document::PartitionableSlot(name) => standing(pool, name, SlotKind::Partitionable)
            .map_or(Rendered::Absent, |(machine, slot)| partitionable_slot(machine, slot, &conditions, now)),
        Document::Submitter(name) => {
            pool.submitters.get(name).map_or(Rendered::Nothing, |s| submitter(pool, s, &conditions, now))
        }
        Document::Group(object) => group(pool, object, &conditions, now),
        Document::Policy(name) => pool.policies.get(name).map_or(Rendered::Nothing, |policy| {
            let nodes =
                pool.machines.values().filter(|machine| machine.policy.as_ref() == Some(name)).count();
            status(&NodePolicyStatus {
                observed_generation: Some(policy.generation),
                nodes: count(nodes),
                accepted_spec: policy.accepted.as_deref().map(str::to_owned),
                conditions: of_policy(
                    &conditions,
                    (&policy.problems, policy.meanwhile()),
                    policy.warnings.as_deref(),
                    policy.generation,
                    now,
                ),
            })
        }),
        Document::SubmitPolicy(name) => pool
            .submit_policies
            .get(name)
            .map_or(Rendered::Nothing, |policy| status(&submit_policy(pool, name, policy, &conditions, now))),
        Document::Negotiator(name) => pool
            .negotiators
            .get(name)
            .map_or(Rendered::Nothing, |object| status(&negotiator(pool, name, object, &conditions, now))),
        Document::Limit(object) => pool
            .limits
            .get(object)
            .map_or(Rendered::Nothing, |limit| status(&limit_status(pool, limit, &conditions, now))),
        Document::Drain(name) => pool
            .drains
            .get(name)
            .map_or(Rendered::Nothing, |drain| status(&drain_status(pool, drain, &conditions, now))),
    }
}

fn status<T: Serialize>(status: &T) -> Rendered {
    serde_json::to_value(status).map_or(Rendered::Nothing, Rendered::Status)
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) fn size(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn job(pool: &Pool, cluster: &Cluster, old: &[Condition], now: Time) -> HTCJobStatus {
    let mut problems = cluster.problems.clone();
    problems.extend(unknown_group(pool, cluster));
    let complete = cluster.is_complete() && problems.is_empty() && !cluster.removing;
    let mut conditions = vec![accepted(old, &problems, cluster.generation, now)];
    if problems.is_empty() && !cluster.removing {
        conditions.push(matchable(cluster, old, now));
        conditions.push(completion(cluster, complete, old, now));
        conditions.extend(held(cluster, old, now));
    }
    HTCJobStatus {
        observed_generation: Some(cluster.generation),
        cluster_id: Some(cluster.cluster),
        submitter: cluster.spec.as_ref().map(|spec| spec.submitter.to_string()),
        summary: Some(summary(cluster, complete, &problems).to_owned()),
        idle: size(cluster.idle.len()),
        running: count(cluster.active.len()),
        completed: size(cluster.succeeded.len()),
        failed: size(cluster.failed.len()),
        completed_procs: cluster.succeeded.to_string(),
        failed_procs: cluster.failed.to_string(),
        defaults: cluster.defaults.record(),
        held_procs: held_procs(&cluster.on_hold),
        start_time: cluster.first_start.map(kube_time),
        completion_time: cluster.completed_at.filter(|_| complete).map(kube_time),
        conditions,
    }
}

fn summary(cluster: &Cluster, complete: bool, problems: &[Problem]) -> &'static str {
    if cluster.removing {
        "Removing"
    } else if complete && cluster.failed.is_empty() {
        "Completed"
    } else if complete {
        "Failed"
    } else if !cluster.active.is_empty() {
        "Running"
    } else if problems.is_empty() && (cluster.on_hold.is_empty() || !cluster.idle.is_empty()) {
        "Idle"
    } else {
        "Held"
    }
}

fn completion(cluster: &Cluster, complete: bool, old: &[Condition], now: Time) -> Condition {
    let (reason, message) = match (complete, cluster.failed.len()) {
        (false, _) => ("ProcsLeft", "procs are idle or running".to_owned()),
        (true, 0) => ("AllSucceeded", "every proc ended with exit code 0".to_owned()),
        (true, failed) => {
            ("SomeFailed", format!("{failed} procs ended with another exit code than 0: {}", cluster.failed))
        }
    };
    condition(
        old,
        Says { type_: types::COMPLETE, status: Some(complete), reason, message },
        cluster.generation,
        now,
    )
}

fn state(state: State) -> SlotState {
    match state {
        State::Owner => SlotState::Owner,
        State::Unclaimed(_) => SlotState::Unclaimed,
        State::Matched => SlotState::Matched,
        State::Claimed(_) => SlotState::Claimed,
        State::Preempting(_) => SlotState::Preempting,
        State::Backfill(_) => SlotState::Backfill,
        State::Drained(_) => SlotState::Drained,
    }
}

fn activity(state: State) -> SlotActivity {
    match state.activity() {
        "Busy" => SlotActivity::Busy,
        "Suspended" => SlotActivity::Suspended,
        "Retiring" => SlotActivity::Retiring,
        "Vacating" => SlotActivity::Vacating,
        "Killing" => SlotActivity::Killing,
        "Benchmarking" => SlotActivity::Benchmarking,
        _ => SlotActivity::Idle,
    }
}

fn transition(last: &Taken) -> Transition {
    Transition {
        number: Some(i64::from(last.number)),
        reason: last.why.to_string(),
        time: Some(kube_time(last.at)),
    }
}

fn slot(pool: &Pool, slot: &Slot, old: &[Condition], now: Time) -> SlotStatus {
    let claimed = matches!(slot.state, State::Claimed(_));
    let message = slot.last.as_ref().map(|last| last.why.to_string()).unwrap_or_default();
    let reason = slot.state.state();
    let says = Says { type_: types::CLAIMED, status: Some(claimed), reason, message };
    let mut conditions = vec![condition(old, says, 1, now)];
    conditions.extend(end_unknown(pool, slot, now).map(|says| condition(old, says, 1, now)));
    SlotStatus {
        observed_generation: None,
        state: Some(state(slot.state)),
        activity: Some(activity(slot.state)),
        entered_current_state: Some(MicroTime(timestamp(slot.entered_state))),
        entered_current_activity: Some(MicroTime(timestamp(slot.entered_activity))),
        last_transition: slot.last.as_ref().map(transition),
        running: running(slot),
        conditions,
    }
}

/// What an operator that takes over has to know of the job. It changes with the activity, which is written anyway.
fn running(slot: &Slot) -> Option<SlotRunning> {
    let Activation::Active { pod, .. } = &slot.activation else { return None };
    let activated = !matches!(slot.state, State::Matched | State::Claimed(Claimed::Idle));
    activated.then(|| SlotRunning {
        pod_uid: pod.uid.to_string(),
        max_vacate_seconds: slot.running.pledged_vacate,
        suspended_seconds: i64::try_from(slot.running.suspended.as_secs()).unwrap_or(i64::MAX),
        suspended_since: slot.running.suspended_since.map(kube_time),
    })
}

/// `EndConfirmed`: of a pod that was killed on a node of which nothing is heard nobody knows whether it still runs.
fn end_unknown(pool: &Pool, slot: &Slot, now: Time) -> Option<Says<'static>> {
    let (State::Preempting(_), Activation::Active { pod, .. }) = (slot.state, &slot.activation) else {
        return None;
    };
    let machine = &slot.name.machine;
    let since = pool.heartbeats.silent_since(machine, now)?;
    let message = format!(
        "nothing was heard of node {machine} since {}: whether pod {} still runs is not known, and {PROC_WAITS}",
        kube_time(since).0,
        pod.name
    );
    Some(Says { type_: types::END_CONFIRMED, status: Some(false), reason: "NodeSilent", message })
}

/// A standing slot of a machine that is there.
fn standing<'a>(pool: &'a Pool, name: &SlotName, kind: SlotKind) -> Option<(&'a Machine, &'a Standing)> {
    let machine = pool.machines.get(&name.machine).filter(|machine| machine.offer != Offer::Gone)?;
    Some((machine, machine.standing.get(&name.slot).filter(|slot| slot.kind == kind)?))
}

fn offered(machine: &Machine, old: &[Condition], now: Time) -> Condition {
    let (mut reason, mut message) = (machine.offer.reason(), machine.offer.message());
    if let (Some(why), Some(policy), true) =
        (&machine.unfit, &machine.policy, machine.offer == Offer::Offered)
    {
        reason = "PolicyUnfit";
        message = format!(
            "the node offers its resources as before: spec.config of NodePolicy {policy} cannot be used on it, {why}"
        );
    }
    let status = Some(machine.offer == Offer::Offered);
    condition(old, Says { type_: types::OFFERED, status, reason, message }, 1, now)
}

/// A slot with its claim; or a static one without, which has an object as long as it stands.
fn claimed_or_standing(pool: &Pool, name: &SlotName, old: &[Condition], now: Time) -> Rendered {
    if let Some(claimed) = pool.slots.get(name) {
        return status(&slot(pool, claimed, old, now));
    }
    if name.dynamic.is_some() {
        return Rendered::Nothing;
    }
    let Some((machine, slot)) = standing(pool, name, SlotKind::Static) else { return Rendered::Absent };
    let status = SlotStatus {
        observed_generation: Some(1),
        state: Some(state(slot.state)),
        activity: Some(activity(slot.state)),
        entered_current_state: Some(MicroTime(timestamp(slot.entered_state))),
        entered_current_activity: Some(MicroTime(timestamp(slot.entered_activity))),
        last_transition: slot.last.as_ref().map(transition),
        running: None,
        conditions: vec![offered(machine, old, now)],
    };
    object(&static_slot(name, &slot.total), &status)
}

fn partitionable_slot(machine: &Machine, slot: &Standing, old: &[Condition], now: Time) -> Rendered {
    let name = slot.name(&machine.facts.name);
    let spec = PartitionableSlotSpec { name: name.to_string(), node: machine.facts.name.to_string() };
    let metadata = ObjectMeta {
        name: Some(name.object_name()),
        labels: Some([(labels::NODE.to_owned(), label_value(machine.facts.name.as_str()))].into()),
        ..ObjectMeta::default()
    };
    let status = PartitionableSlotStatus {
        observed_generation: Some(1),
        state: Some(state(slot.state)),
        activity: Some(activity(slot.state)),
        total: resources(&slot.total),
        available: resources(&machine.available_in(slot)),
        dynamic_slots: count(slot.dynamic.len()),
        conditions: vec![offered(machine, old, now), condition(old, agent_ready(machine), 1, now)],
    };
    object(&api::PartitionableSlot { metadata, spec, status: None }, &status)
}

fn object<K: Serialize, S: Serialize>(create: &K, status: &S) -> Rendered {
    match (serde_json::to_value(create), serde_json::to_value(status)) {
        (Ok(create), Ok(status)) => Rendered::Object { create, status },
        _ => Rendered::Nothing,
    }
}

/// Two digits behind the point: what people read, and fewer writes.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn submitter(pool: &Pool, submitter: &Submitter, old: &[Condition], now: Time) -> Rendered {
    let (mut idle, mut running) = (0, 0);
    for cluster in submitter.queue.iter().filter_map(|key| pool.jobs.get(&key.job().uid)) {
        idle += size(cluster.idle.len());
        running += count(cluster.active.len());
    }
    let generation = submitter.generation.unwrap_or(1);
    let id = pool.first_negotiator();
    let first = account(pool, submitter, &id);
    let others = submitter.accounts.iter().filter(|(other, _)| **other != id);
    let status = SubmitterStatus {
        observed_generation: Some(generation),
        name: submitter.name.to_string(),
        negotiator: id.name().map(ToString::to_string),
        accounts: others
            .filter_map(|(id, _)| Some((id.name()?.to_string(), account(pool, submitter, id))))
            .collect(),
        real_priority: first.real_priority,
        effective_priority: first.effective_priority,
        priority_factor: first.priority_factor,
        resources_used: first.resources_used,
        weighted_resources_used: first.weighted_resources_used,
        accumulated_usage: first.accumulated_usage,
        weighted_accumulated_usage: first.weighted_accumulated_usage,
        weighted_usage_hours: rounded(first.weighted_accumulated_usage / 3600.0),
        begin_usage_time: first.begin_usage_time,
        last_usage_time: first.last_usage_time,
        update_time: first.update_time,
        corrected: submitter.corrected.as_deref().map(str::to_owned),
        idle,
        running,
        conditions: vec![accepted(old, &submitter.problems, generation, now)],
    };
    let metadata = ObjectMeta { name: Some(submitter_object_name(&submitter.name)), ..ObjectMeta::default() };
    object(&api::Submitter { metadata, spec: SubmitterSpec::default(), status: None }, &status)
}

/// A submitter's account with a negotiator.
fn account(pool: &Pool, submitter: &Submitter, id: &NegotiatorId) -> AccountStatus {
    let account = submitter.account_with(id);
    let factor = pool.priority_factor(submitter, pool.config_of(id));
    let seconds = |secs: Option<i64>| secs.map(|secs| kube_time(Time::from_secs(secs)));
    AccountStatus {
        // Read back after a restart: a millionth is less than anything follows from.
        real_priority: (account.real_priority * 1e6).round() / 1e6,
        effective_priority: rounded(account.effective_priority(factor)),
        priority_factor: factor,
        resources_used: size(account.resources_used),
        weighted_resources_used: account.weighted_resources_used,
        accumulated_usage: account.accumulated_usage,
        weighted_accumulated_usage: account.weighted_accumulated_usage,
        begin_usage_time: seconds(account.begin_usage_time),
        last_usage_time: seconds(account.last_usage_time),
        update_time: Some(MicroTime(timestamp(Time::from_millis(account.updated_at)))),
    }
}

fn group(pool: &Pool, object: &std::sync::Arc<str>, old: &[Condition], now: Time) -> Rendered {
    let Some(group) = pool.groups.get(object) else { return Rendered::Nothing };
    let (quotas, refused) = quotas(pool, now);
    let problems: Vec<Problem> = refused
        .get(object)
        .map(|why| Problem {
            reason: "GroupNotAccepted",
            field: "spec.group".to_owned(),
            message: why.clone(),
        })
        .into_iter()
        .collect();
    let name = group.name.as_str();
    let given = pool.given().groups.get(&name.to_ascii_lowercase()).copied().unwrap_or_default();
    let inside = |submitter: &&Submitter| submitter.group().is_some_and(|own| group.name.contains(&own));
    let (mut idle, mut running) = (0, 0);
    for key in pool.submitters.values().filter(inside).flat_map(|submitter| &submitter.queue) {
        if let Some(cluster) = pool.jobs.get(&key.job().uid) {
            idle += size(cluster.idle.len());
            running += count(cluster.active.len());
        }
    }
    status(&GroupQuotaStatus {
        observed_generation: Some(group.generation),
        group: group.name.to_string(),
        config_quota: match group.quota {
            Quota::Static(quota) | Quota::Dynamic(quota) => quota,
        },
        effective_quota: rounded(quotas.own(name).unwrap_or(0.0)),
        subtree_quota: rounded(quotas.of(name).unwrap_or(0.0)),
        requested: rounded(given.requested),
        allocated: rounded(given.allocated),
        weighted_resources_used: rounded(group_usage(pool, &group.name)),
        idle,
        running,
        conditions: vec![accepted(old, &problems, group.generation, now)],
    })
}

/// What has to be merged into `old` so that it becomes `new`: null for what is gone. None where they are the same.
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        // An API server gives 2.0 back as 2.
        let same = old == new || (old.is_number() && new.is_number() && old.as_f64() == new.as_f64());
        return (!same).then(|| new.clone());
    };
    let mut patch = serde_json::Map::new();
    for (key, value) in after {
        match before.get(key) {
            None if value.is_null() => {}
            None => {
                patch.insert(key.clone(), value.clone());
            }
            Some(old) => {
                patch.extend(merge_patch(old, value).map(|changed| (key.clone(), changed)));
            }
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patches_make_old_into_new() {
        for (old, new, patch) in [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
            (json!({"a": 1, "b": 1}), json!({"a": 1}), Some(json!({"b": null}))),
            (json!({"a": {"x": 1, "y": 2}}), json!({"a": {"x": 1, "y": 3}}), Some(json!({"a": {"y": 3}}))),
            (json!({}), json!({"a": [1]}), Some(json!({"a": [1]}))),
            (Value::Null, json!({"a": 1}), Some(json!({"a": 1}))),
            (json!({"a": 2}), json!({"a": 2.0}), None),
        ] {
            assert_eq!(merge_patch(&old, &new), patch, "{old} {new}");
        }
    }

    /// Usage is a sum of spans, and sums have seventeen digits. One that is read back as another number is written again
    /// whenever its object is looked at.
    #[test]
    fn what_was_written_is_not_written_again() {
        let mut usage = 0.0;
        for span in 1..20_000_u32 {
            usage += f64::from(span % 977) / 1000.0;
            let status = json!({"accumulatedUsage": usage});
            let known = serde_json::from_str(&status.to_string()).unwrap();
            assert_eq!(merge_patch(&known, &status), None, "{usage}");
        }
    }
}
