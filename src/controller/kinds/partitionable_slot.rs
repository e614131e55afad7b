//! PartitionableSlots. The objects follow from nodes and policies alone, so that the pool learns nothing from them:
//! whatever others do to them, the operator writes them as they should be.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ObjectMeta;

use super::conditions::condition;
use super::document::count;
use super::node_report::agent_ready;
use super::offered::offered;
use super::slot::{activity, machine_slot, shown, state};
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use crate::convert::label_value;
use api::{PartitionableSlot, PartitionableSlotSpec, PartitionableSlotStatus, labels};
use model::pool::{Document, Machine, MachineSlot, Pool, SlotKind, SlotName, Time};

impl Custom for PartitionableSlot {
    /// The slot.
    type Kept = Option<SlotName>;
    const KIND: Kind = Kind::of(&("PartitionableSlot", "partitionableslots"));
    const STAGE: Stage = Stage::Slots;

    fn keep(slot: &Self) -> Self::Kept {
        SlotName::parse(&slot.spec.name).ok()
    }

    fn there(slot: Self, _: &Self::Kept) -> Vec<News> {
        stale(Self::keep(&slot))
    }

    fn gone(_: &Names, slot: Self::Kept) -> Vec<News> {
        stale(slot)
    }
}

impl Shown for PartitionableSlot {
    type Subject = SlotName;

    fn subject(document: &Document) -> Option<&SlotName> {
        match document {
            Document::PartitionableSlot(name) => Some(name),
            _ => None,
        }
    }

    fn object(_: &Pool, name: &SlotName) -> Option<ObjectKey> {
        Some(Self::KIND.object(name.object_name()))
    }

    fn render(pool: &Pool, name: &SlotName, old: &[Condition], now: Time) -> Rendered {
        match machine_slot(pool, name, SlotKind::Partitionable) {
            Some((machine, slot)) => rendered(pool, machine, slot, old, now),
            None => Rendered::Absent,
        }
    }
}

/// The object is compared with what the pool says, and written if it differs.
fn stale(slot: Option<SlotName>) -> Vec<News> {
    slot.map(|name| News::Stale(Document::PartitionableSlot(name))).into_iter().collect()
}

fn rendered(pool: &Pool, machine: &Machine, slot: &MachineSlot, old: &[Condition], now: Time) -> Rendered {
    let name = slot.name(&machine.facts.name);
    let spec = PartitionableSlotSpec { name: name.to_string(), node: machine.facts.name.to_string() };
    let metadata = ObjectMeta {
        name: Some(name.object_name()),
        labels: Some([(labels::NODE.to_owned(), label_value(machine.facts.name.as_str()))].into()),
        ..ObjectMeta::default()
    };
    let status = PartitionableSlotStatus {
        state: Some(state(slot.state())),
        activity: Some(activity(slot.state())),
        total: shown(&slot.total),
        available: shown(&machine.available_in(slot)),
        dynamic_slots: count(slot.dynamic.len()),
        conditions: vec![
            offered(pool, machine, slot, old, now),
            condition(old, agent_ready(machine), None, now),
        ],
    };
    Rendered::object(&PartitionableSlot { metadata, spec, status: None }, &status)
}
