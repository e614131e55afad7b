//! Slots: claims as objects, which a new leader reads back, and what the status of a static or dynamic slot says.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ObjectMeta;

use super::conditions::{Says, condition};
use super::offered::offered;
use super::sighting::{keep_once, told};
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use crate::convert::{kube_time, label_value, time, timestamp};
use api::{
    SlotActivity, SlotResources, SlotRunning, SlotSpec, SlotState, SlotStatus, SlotType, Transition,
    condition as types, labels,
};
use model::decide::PROC_WAITS;
use model::pool::limits::Wants;
use model::pool::{
    Assignment, Claim, ClaimId, Claimed, Document, Entered, Event, JobKey, LastTransition, Machine,
    MachineSlot, Offer, Pool, Recorded, Resources, Slot, SlotFacts, SlotKind, SlotName, State, Time,
};

impl Custom for api::Slot {
    /// The slot, and the claim on it; none of an object that is not the operator's.
    type Kept = Option<(SlotName, Option<ClaimId>)>;
    const KIND: Kind = Kind::of(&("Slot", "slots"));
    const STAGE: Stage = Stage::Slots;

    fn keep(slot: &Self) -> Self::Kept {
        Some((name(slot)?, slot.spec.claim.as_ref().map(|claim| claim.id.as_str().into())))
    }

    fn share(kept: &mut Self::Kept, near: &Self::Kept) {
        if let (Some((slot, claim)), Some((near, near_claim))) = (kept, near) {
            keep_once(&mut slot.machine, &near.machine);
            keep_once(claim, near_claim);
        }
    }

    fn there(slot: Self, kept: &Self::Kept) -> Vec<News> {
        told(kept.clone().map(|(name, id)| {
            let claim = slot.spec.claim.as_ref().and_then(claim);
            let claim = claim.zip(id).map(|(claim, id)| Claim { id, ..claim });
            Event::Slot(facts_of(&slot, name, claim))
        }))
    }

    fn document(_: &Self, kept: &Self::Kept) -> Option<Document> {
        kept.as_ref().map(|(name, _)| Document::Slot(name.clone()))
    }

    fn gone(_: &Names, kept: Self::Kept) -> Vec<News> {
        told(kept.map(|(slot, claim)| Event::SlotGone { slot, claim }))
    }
}

impl Shown for api::Slot {
    type Subject = SlotName;

    fn subject(document: &Document) -> Option<&SlotName> {
        match document {
            Document::Slot(name) => Some(name),
            _ => None,
        }
    }

    fn object(_: &Pool, name: &SlotName) -> Option<ObjectKey> {
        Some(Self::KIND.object(name.object_name()))
    }

    fn render(pool: &Pool, name: &SlotName, old: &[Condition], now: Time) -> Rendered {
        render(pool, name, old, now)
    }
}

/// The pool's facts of a Slot.
pub fn facts(slot: &api::Slot) -> Option<SlotFacts> {
    Some(facts_of(slot, name(slot)?, slot.spec.claim.as_ref().and_then(claim)))
}

/// The name of a Slot. An object whose name does not follow from its spec was not made by the operator.
fn name(slot: &api::Slot) -> Option<SlotName> {
    let name = SlotName::parse(&slot.spec.name).ok()?;
    (slot.metadata.name.as_deref() == Some(&name.object_name())).then_some(name)
}

fn facts_of(slot: &api::Slot, name: SlotName, claim: Option<Claim>) -> SlotFacts {
    let recorded = slot.status.as_ref().and_then(recorded);
    SlotFacts { name, resources: resources(&slot.spec.resources), claim, recorded }
}

fn recorded(status: &SlotStatus) -> Option<Recorded> {
    let running = status.running.as_ref()?;
    Some(Recorded {
        pod: running.pod_uid.as_str().into(),
        pledged_vacate: running.max_vacate_seconds.max(0),
        suspended: Duration::from_secs(u64::try_from(running.suspended_seconds).unwrap_or(0)),
        suspended_since: running.suspended_since.as_ref().map(time),
        entered: entered(status),
    })
}

fn entered(status: &SlotStatus) -> Option<Entered> {
    let since = |time: &MicroTime| Time::from_millis(time.0.as_millisecond());
    let activity = match (status.state?, status.activity?) {
        (SlotState::Claimed, SlotActivity::Busy) => Claimed::Busy,
        (SlotState::Claimed, SlotActivity::Suspended) => Claimed::Suspended,
        (SlotState::Claimed, SlotActivity::Retiring) => Claimed::Retiring,
        _ => return None,
    };
    Some(Entered {
        activity,
        state_since: status.entered_current_state.as_ref().map(since)?,
        activity_since: status.entered_current_activity.as_ref().map(since)?,
    })
}

fn resources(resources: &api::SlotResources) -> Resources {
    Resources {
        cpus: resources.cpus.max(0),
        memory_mib: resources.memory_mib.max(0),
        disk_kib: resources.disk_kib.max(0),
        extended: resources
            .extended
            .iter()
            .map(|(name, amount)| (Arc::from(name.as_str()), (*amount).max(0)))
            .collect(),
        devices: resources
            .devices
            .iter()
            .map(|(name, ids)| {
                (Arc::from(name.as_str()), ids.iter().map(|id| Arc::from(id.as_str())).collect())
            })
            .collect(),
    }
}

fn claim(claim: &api::SlotClaim) -> Option<Claim> {
    Some(Claim {
        id: claim.id.as_str().into(),
        submitter: claim.submitter.as_str().into(),
        group: claim.accounting_group.as_deref().map(Into::into),
        negotiator: claim.negotiator.as_deref().into(),
        regrouped: claim.autoregroup,
        weight: claim.weight,
        limits: Wants::parse(&claim.matched_concurrency_limits.join(",")),
        since: claim.claimed_at.as_ref().map_or(Time::default(), time),
        last: Assignment {
            job: JobKey {
                uid: claim.job.uid.as_str().into(),
                namespace: claim.job.namespace.as_str().into(),
                name: claim.job.name.as_str().into(),
            },
            cluster_id: claim.job_id.split_once('.').and_then(|(cluster_id, _)| cluster_id.parse().ok())?,
            proc: u32::try_from(claim.proc).ok()?,
        },
    })
}

/// A claim as a Slot has it.
fn claim_of(claim: &Claim) -> api::SlotClaim {
    api::SlotClaim {
        id: claim.id.to_string(),
        submitter: claim.submitter.to_string(),
        accounting_group: claim.group.as_ref().map(ToString::to_string),
        negotiator: claim.negotiator.name().map(ToString::to_string),
        autoregroup: claim.regrouped,
        weight: claim.weight,
        matched_concurrency_limits: claim.limits.each().collect(),
        claimed_at: Some(kube_time(claim.since)),
        job_id: claim.last.job_id(),
        job: api::JobReference {
            namespace: claim.last.job.namespace.to_string(),
            name: claim.last.job.name.to_string(),
            uid: claim.last.job.uid.to_string(),
        },
        proc: i64::from(claim.last.proc),
        pod: claim.pod_name(),
    }
}

/// Makes the Slot object of a slot with its claim.
pub fn claimed(name: &SlotName, held: &Resources, claim: &Claim) -> api::Slot {
    let mut slot = unclaimed(name, held);
    if name.dynamic.is_some() {
        let pslot = SlotName { dynamic: None, ..name.clone() };
        slot.spec.slot_type = SlotType::Dynamic;
        slot.spec.partitionable_slot = Some(pslot.object_name());
    }
    slot.spec.claim = Some(claim_of(claim));
    slot.metadata.labels.get_or_insert_default().extend([
        (labels::JOB_UID.to_owned(), claim.last.job.uid.to_string()),
        (labels::JOB_NAME.to_owned(), label_value(&claim.last.job.name)),
    ]);
    slot
}

/// Makes the Slot object of a static slot that nobody has claimed.
fn unclaimed(name: &SlotName, held: &Resources) -> api::Slot {
    let spec = SlotSpec {
        name: name.to_string(),
        node: name.machine.to_string(),
        slot_type: SlotType::Static,
        partitionable_slot: None,
        resources: shown(held),
        claim: None,
    };
    let metadata = ObjectMeta {
        name: Some(name.object_name()),
        labels: Some([(labels::NODE.to_owned(), label_value(name.machine.as_str()))].into()),
        ..ObjectMeta::default()
    };
    api::Slot { metadata, spec, status: None }
}

/// Resources as objects show them.
pub(super) fn shown(resources: &Resources) -> SlotResources {
    SlotResources {
        cpus: resources.cpus,
        memory_mib: resources.memory_mib,
        disk_kib: resources.disk_kib,
        extended: resources
            .extended
            .iter()
            .filter(|(_, amount)| **amount > 0)
            .map(|(name, amount)| (name.to_string(), *amount))
            .collect(),
        devices: resources
            .devices
            .iter()
            .filter(|(_, ids)| !ids.is_empty())
            .map(|(name, ids)| (name.to_string(), ids.iter().map(ToString::to_string).collect()))
            .collect(),
    }
}

/// The status of a slot's object. A claimed slot has an object with its claim; a static slot has an object even while
/// unclaimed, as long as its machine lays it out.
///
/// The status names no `observedGeneration`: the operator writes the spec, too, each claim is a generation of its own, and a
/// status that followed each would cost a write more. Tools take an object for current if the object names none, and for
/// stale if the object names an old one.
fn render(pool: &Pool, name: &SlotName, old: &[Condition], now: Time) -> Rendered {
    if let Some(claimed) = pool.slots().get(name) {
        return Rendered::status(&status(pool, claimed, old, now));
    }
    if name.dynamic.is_some() {
        return Rendered::Nothing;
    }
    let Some((machine, slot)) = machine_slot(pool, name, SlotKind::Static) else { return Rendered::Absent };
    let status = SlotStatus {
        state: Some(state(slot.state())),
        activity: Some(activity(slot.state())),
        entered_current_state: Some(MicroTime(timestamp(slot.phase().entered_state()))),
        entered_current_activity: Some(MicroTime(timestamp(slot.phase().entered_activity()))),
        last_transition: slot.phase().last().map(transition),
        running: None,
        conditions: vec![offered(pool, machine, slot, old, now)],
    };
    Rendered::object(&unclaimed(name, &slot.total), &status)
}

fn status(pool: &Pool, slot: &Slot, old: &[Condition], now: Time) -> SlotStatus {
    let claimed = matches!(slot.state(), State::Claimed(_));
    // A leader does not read the last transition of an earlier leader from the status.
    let message =
        slot.phase().last().map_or("the claim was found when this operator began", |last| &last.why);
    let (reason, message) = (slot.state().state(), message.to_owned());
    let says = Says { type_: types::CLAIMED, status: Some(claimed), reason, message };
    let mut conditions = vec![condition(old, says, None, now)];
    conditions.extend(end_unknown(pool, slot, now).map(|says| condition(old, says, None, now)));
    SlotStatus {
        state: Some(state(slot.state())),
        activity: Some(activity(slot.state())),
        entered_current_state: Some(MicroTime(timestamp(slot.phase().entered_state()))),
        entered_current_activity: Some(MicroTime(timestamp(slot.phase().entered_activity()))),
        last_transition: slot.phase().last().map(transition),
        running: running(slot),
        conditions,
    }
}

/// The record of the running job that an operator that takes over needs. It changes only with the activity, which is
/// written anyway.
fn running(slot: &Slot) -> Option<SlotRunning> {
    let running = slot.active()?;
    let activated = !matches!(slot.state(), State::Matched | State::Claimed(Claimed::Idle));
    activated.then(|| SlotRunning {
        job_id: Some(slot.claim().last.job_id()),
        pod: Some(running.pod.name.to_string()),
        pod_uid: running.pod.uid.to_string(),
        max_vacate_seconds: running.pledged_vacate,
        suspended_seconds: i64::try_from(running.suspended.as_secs()).unwrap_or(i64::MAX),
        suspended_since: running.suspended_since.map(kube_time),
    })
}

/// `EndConfirmed` is False after a pod was killed on a node that is silent: nobody knows whether the pod still runs.
fn end_unknown(pool: &Pool, slot: &Slot, now: Time) -> Option<Says<'static>> {
    let pod = &slot.active().filter(|_| matches!(slot.state(), State::Preempting(_)))?.pod;
    let machine = &slot.name().machine;
    let since = pool.heartbeats().silent_since(machine, now)?;
    let message = format!(
        "nothing was heard of node {machine} since {}: whether pod {} still runs is not known, and {PROC_WAITS}",
        kube_time(since).0,
        pod.name
    );
    Some(Says { type_: types::END_CONFIRMED, status: Some(false), reason: "NodeSilent", message })
}

/// A machine slot, if its machine is there.
pub(super) fn machine_slot<'a>(
    pool: &'a Pool,
    name: &SlotName,
    kind: SlotKind,
) -> Option<(&'a Machine, &'a MachineSlot)> {
    let machine = pool.machines().get(&name.machine).filter(|machine| machine.offer != Offer::Gone)?;
    Some((machine, machine.machine_slots.get(&name.slot).filter(|slot| slot.kind == kind)?))
}

pub(super) fn state(state: State) -> SlotState {
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

pub(super) fn activity(state: State) -> SlotActivity {
    match state.activity() {
        "Busy" => SlotActivity::Busy,
        "Suspended" => SlotActivity::Suspended,
        "Retiring" => SlotActivity::Retiring,
        "Cleaning" => SlotActivity::Cleaning,
        "Vacating" => SlotActivity::Vacating,
        "Killing" => SlotActivity::Killing,
        "Benchmarking" => SlotActivity::Benchmarking,
        _ => SlotActivity::Idle,
    }
}

fn transition(last: &LastTransition) -> Transition {
    Transition {
        number: Some(match last.number.whole() {
            Some(number) => IntOrString::Int(number.into()),
            None => IntOrString::String(last.number.to_string()),
        }),
        reason: last.why.to_string(),
        time: Some(kube_time(last.at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim_of_alice() -> Claim {
        Claim {
            id: "slot1_1@n1#0#1".into(),
            submitter: "alice".into(),
            group: None,
            negotiator: None.into(),
            regrouped: false,
            weight: 2.0,
            limits: Wants::default(),
            since: Time::from_secs(0),
            last: Assignment {
                job: JobKey { uid: "u".into(), namespace: "alice".into(), name: "sweep".into() },
                cluster_id: 12,
                proc: 3,
            },
        }
    }

    #[test]
    fn a_claim_is_read_with_its_negotiator() {
        for negotiator in [None, Some("gpu")] {
            let claim = Claim { negotiator: negotiator.into(), ..claim_of_alice() };
            let name = SlotName::parse("slot1_1@n1").unwrap();
            let object = claimed(&name, &Resources::default(), &claim);
            assert_eq!(object.spec.claim.as_ref().unwrap().negotiator.as_deref(), negotiator);
            assert_eq!(facts(&object).unwrap().claim, Some(claim));
        }
    }

    #[test]
    fn the_status_of_a_claim_that_was_found_has_a_message() {
        let name = SlotName::parse("slot1_1@n1").unwrap();
        let (claim, resources) = (Some(claim_of_alice()), Resources::default());
        let found = SlotFacts { name: name.clone(), resources, claim, recorded: None };
        let mut pool = Pool::default();
        pool.apply(Event::Slot(found), Time::from_secs(60));
        let status = status(&pool, pool.slots().get(&name).unwrap(), &[], Time::from_secs(60));
        assert_eq!(status.conditions[0].message, "the claim was found when this operator began");
    }

    /// A claim that is written or taken off makes a new generation, and no status is written for that alone. Tools such as
    /// `kubectl wait` would wait for ever for a status that names an old generation.
    #[test]
    fn no_status_of_a_slot_names_a_generation() {
        let (claimed, free) = (SlotName::parse("slot1_1@n1").unwrap(), SlotName::parse("slot1@n1").unwrap());
        let now = Time::from_secs(60);
        let mut pool = Pool::default();
        pool.apply(Event::Machine(model::pool::MachineFacts::of_nothing("n1".into())), now);
        let found = SlotFacts {
            name: claimed.clone(),
            resources: Resources::default(),
            claim: Some(claim_of_alice()),
            recorded: None,
        };
        pool.apply(Event::Slot(found), now);
        let documents = [Document::Slot(claimed), Document::PartitionableSlot(free)];
        for document in documents {
            let (Rendered::Status(status) | Rendered::Object { status, .. }) =
                crate::kinds::render(&pool, &document, &serde_json::Value::Null, now)
            else {
                panic!("{document:?} has no status");
            };
            assert_ne!(status["conditions"], json!([]), "{document:?}");
            assert!(!status.to_string().contains("observedGeneration"), "{status}");
        }
    }

    /// The times are written with each status, and read by the next leader.
    #[test]
    fn since_when_a_slot_is_busy_is_read_from_its_status() {
        let read = |state: &str, activity: &str| {
            let status = json!({
                "state": state, "activity": activity, "conditions": [],
                "enteredCurrentState": "2030-01-01T00:00:00.250000Z", "enteredCurrentActivity": "2030-01-01T00:01:00.500000Z",
                "running": {"podUid": "p", "maxVacateSeconds": 600, "suspendedSeconds": 0},
            });
            let mut object =
                claimed(&SlotName::parse("slot1_1@n1").unwrap(), &Resources::default(), &claim_of_alice());
            object.status = Some(serde_json::from_value(status).unwrap());
            facts(&object).unwrap().recorded.unwrap().entered
        };
        let since = Time::from_millis(1_893_456_000_250);
        let entered = |activity| Entered {
            activity,
            state_since: since,
            activity_since: since + Duration::from_millis(60_250),
        };
        assert_eq!(read("Claimed", "Busy"), Some(entered(Claimed::Busy)));
        assert_eq!(read("Claimed", "Suspended"), Some(entered(Claimed::Suspended)));
        assert_eq!(read("Claimed", "Retiring"), Some(entered(Claimed::Retiring)));
        assert_eq!(
            read("Preempting", "Vacating"),
            None,
            "how long it may go on follows from the pod's deletion"
        );
    }
}
