//! A Slot object with its claim.

use kube::api::ObjectMeta;

use crate::translate::claim_of;
use api::{self, SlotResources, SlotSpec, SlotType, labels};
use model::pool::{Claim, Resources, SlotName};

/// Makes the Slot object of a slot with its claim.
pub fn slot(name: &SlotName, held: &Resources, claim: &Claim) -> api::Slot {
    let mut slot = static_slot(name, held);
    if name.dynamic.is_some() {
        let pslot = SlotName { dynamic: None, ..name.clone() };
        slot.spec.slot_type = SlotType::Dynamic;
        slot.spec.partitionable_slot = Some(pslot.object_name());
    }
    slot.spec.claim = Some(claim_of(claim));
    slot.metadata.labels.get_or_insert_default().extend([
        (labels::JOB_UID.to_owned(), claim.job.uid.to_string()),
        (labels::JOB_NAME.to_owned(), label_value(&claim.job.name)),
    ]);
    slot
}

/// Makes the Slot object of a static slot that nobody has claimed.
pub fn static_slot(name: &SlotName, held: &Resources) -> api::Slot {
    let spec = SlotSpec {
        name: name.to_string(),
        node: name.machine.to_string(),
        slot_type: SlotType::Static,
        partitionable_slot: None,
        resources: resources(held),
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
pub(super) fn resources(resources: &Resources) -> SlotResources {
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

/// A node's name as a label's value, which is at most 63 characters long.
pub(super) fn label_value(name: &str) -> String {
    let short: String = name.chars().take(63).collect();
    short.trim_end_matches(['-', '.', '_']).to_owned()
}
