//! `kubectl slotwright status`: shows slots, like `condor_status`.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use serde::Serialize;

use api::{JobReference, PartitionableSlot, Slot, SlotActivity, SlotResources, SlotState, SlotType};
use classad::Env;
use controller::kinds::node::{self, SlimNode};
use model::pool::units::bytes;
use model::pool::{Capacity, Machine, SlotName, Time, classad_name};
use model::startd::machine_ad;
use table::{Align, Table};

/// The platform of a node, as the ads of its slots name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// `OpSys`.
    pub op_sys: String,
    /// `Arch`.
    pub arch: String,
}

/// A line of the answer: one slot.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlotLine {
    /// HTCondor's name of the slot, such as slot1_3@node7.
    pub name: String,
    /// The node.
    pub node: String,
    /// Partitionable, Dynamic or Static: the ad's SlotType.
    pub slot_type: &'static str,
    /// `OpSys`, if the node can be read.
    pub op_sys: Option<String>,
    /// `Arch`, if the node can be read.
    pub arch: Option<String>,
    /// The slot's state; `None` until the operator has set it.
    pub state: Option<SlotState>,
    /// The slot's activity.
    pub activity: Option<SlotActivity>,
    /// `Cpus`; for a partitionable slot what is not carved, as in its ad.
    pub cpus: i64,
    /// `Memory`, in MiB.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: i64,
    /// `Disk`, in KiB.
    #[serde(rename = "diskKiB")]
    pub disk_kib: i64,
    /// `GPUs`, the sum over all device plugins.
    pub gpus: i64,
    /// The submitter who is charged for the claim.
    pub submitter: Option<String>,
    /// ClusterId.ProcId of the proc for which the claim was made.
    pub job_id: Option<String>,
    /// The HTCJob of that proc.
    pub job: Option<JobReference>,
}

impl SlotLine {
    /// Whether a user who writes `name` means this slot, or its node.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.node == name
    }
}

/// The platform of each node, which follows from its labels.
pub fn platforms(nodes: impl IntoIterator<Item = ObjectMeta>) -> BTreeMap<String, Platform> {
    let platform = |metadata: ObjectMeta| {
        let facts = node::facts(&SlimNode { metadata, ..SlimNode::default() })?;
        let name = facts.name.to_string();
        // HTCondor's names of operating systems and architectures come from the machine's ad.
        let machine = Machine::new(facts, Capacity::default(), Time::default());
        let ad = machine_ad(&machine);
        let text = |attribute| ad.eval_attr(attribute, None, &Env::at(0)).as_str().map(str::to_owned);
        Some((name, Platform { op_sys: text("OpSys")?, arch: text("Arch")? }))
    };
    nodes.into_iter().filter_map(platform).collect()
}

/// A line for each slot of these names, which are slots or nodes, and of this node; empty `names` mean all. The lines
/// are in the order of nodes, with each partitionable slot before its dynamic slots.
pub fn lines(
    partitionable: &[PartitionableSlot],
    slots: &[Slot],
    platforms: &BTreeMap<String, Platform>,
    names: &[String],
    node: Option<&str>,
) -> Vec<SlotLine> {
    let mut lines: Vec<SlotLine> =
        partitionable.iter().map(partitionable_line).chain(slots.iter().map(slot_line)).collect();
    lines.retain(|line| is_meant(&line.name, &line.node, names, node));
    for line in &mut lines {
        if let Some(platform) = platforms.get(&line.node) {
            line.op_sys = Some(platform.op_sys.clone());
            line.arch = Some(platform.arch.clone());
        }
    }
    // Numbers are compared by value: slot1_10 comes after slot1_9. Names that cannot be parsed come last.
    lines.sort_by_cached_key(|line| {
        let parsed = SlotName::parse(&line.name).ok().map(|name| (name.slot, name.dynamic));
        (line.node.clone(), parsed.is_none(), parsed, line.name.clone())
    });
    lines
}

/// The proc that a slot's claim serves.
pub(super) struct Served<'a> {
    /// `ClusterId.ProcId`.
    pub job_id: &'a str,
    /// The proc's number.
    pub proc: i64,
    /// The name of the proc's pod.
    pub pod: &'a str,
}

/// The proc that a slot's claim serves, as far as the object tells; `None` if the slot has no claim. The status names the
/// proc that runs; until then the claim names the proc for which the claim was written.
pub(super) fn served(slot: &Slot) -> Option<Served<'_>> {
    let claim = slot.spec.claim.as_ref()?;
    let written = Served { job_id: &claim.job_id, proc: claim.proc, pod: &claim.pod };
    let running = slot.status.as_ref().and_then(|status| status.running.as_ref());
    let shown = running.and_then(|running| {
        let job_id = running.job_id.as_deref()?;
        let proc = job_id.split_once('.')?.1.parse().ok()?;
        Some(Served { job_id, proc, pod: running.pod.as_deref()? })
    });
    Some(shown.unwrap_or(written))
}

/// Whether a slot is to be shown: `names`, unless empty, must have the slot or its node, and the slot must be on
/// `node`, if given.
pub(super) fn is_meant(slot: &str, on: &str, names: &[String], node: Option<&str>) -> bool {
    let chosen = names.is_empty() || names.iter().any(|name| name == slot || name == on);
    chosen && node.is_none_or(|node| node == on)
}

fn partitionable_line(object: &PartitionableSlot) -> SlotLine {
    let status = object.status.clone().unwrap_or_default();
    SlotLine {
        state: status.state,
        activity: status.activity,
        ..unclaimed(&object.spec.name, &object.spec.node, "Partitionable", &status.available)
    }
}

fn slot_line(object: &Slot) -> SlotLine {
    let spec = &object.spec;
    let slot_type = match spec.slot_type {
        SlotType::Static => "Static",
        SlotType::Dynamic => "Dynamic",
    };
    let (status, claim) = (object.status.as_ref(), spec.claim.as_ref());
    SlotLine {
        state: status.and_then(|status| status.state),
        activity: status.and_then(|status| status.activity),
        submitter: claim.map(|claim| claim.submitter.clone()),
        job_id: served(object).map(|served| served.job_id.to_owned()),
        job: claim.map(|claim| claim.job.clone()),
        ..unclaimed(&spec.name, &spec.node, slot_type, &spec.resources)
    }
}

fn unclaimed(name: &str, node: &str, slot_type: &'static str, resources: &SlotResources) -> SlotLine {
    let gpus = resources.extended.iter().filter(|(name, _)| classad_name(name) == "GPUs");
    SlotLine {
        name: name.to_owned(),
        node: node.to_owned(),
        slot_type,
        op_sys: None,
        arch: None,
        state: None,
        activity: None,
        cpus: resources.cpus,
        memory_mib: resources.memory_mib,
        disk_kib: resources.disk_kib,
        gpus: gpus.fold(0, |sum: i64, (_, amount)| sum.saturating_add(*amount)),
        submitter: None,
        job_id: None,
        job: None,
    }
}

/// The lines and their totals, as tables for people.
pub fn render(lines: &[SlotLine]) -> String {
    let mut table = Table::new(&[
        ("Name", Align::Left),
        ("OpSys", Align::Left),
        ("Arch", Align::Left),
        ("State", Align::Left),
        ("Activity", Align::Left),
        ("Cpus", Align::Right),
        ("Mem", Align::Right),
        ("Disk", Align::Right),
        ("GPUs", Align::Right),
        ("ClaimedBy", Align::Left),
        ("JobId", Align::Left),
    ]);
    for line in lines {
        table.row([
            line.name.clone(),
            line.op_sys.clone().unwrap_or_default(),
            line.arch.clone().unwrap_or_default(),
            line.state.map(|state| format!("{state:?}")).unwrap_or_default(),
            line.activity.map(|activity| format!("{activity:?}")).unwrap_or_default(),
            line.cpus.to_string(),
            bytes(line.memory_mib.saturating_mul(1024)),
            bytes(line.disk_kib),
            line.gpus.to_string(),
            line.submitter.clone().unwrap_or_default(),
            line.job_id.clone().unwrap_or_default(),
        ]);
    }
    format!("{table}\n{}", totals(lines))
}

/// The states in the order of `condor_status`.
const STATES: [(&str, SlotState); 7] = [
    ("Owner", SlotState::Owner),
    ("Claimed", SlotState::Claimed),
    ("Unclaimed", SlotState::Unclaimed),
    ("Matched", SlotState::Matched),
    ("Preempting", SlotState::Preempting),
    ("Drained", SlotState::Drained),
    ("Backfill", SlotState::Backfill),
];

/// How many slots are in each state, by platform and in all. A slot whose state is not known counts only in the
/// column Total.
fn totals(lines: &[SlotLine]) -> Table {
    let mut by_platform: BTreeMap<String, Vec<&SlotLine>> = BTreeMap::new();
    for line in lines {
        let platform = match (&line.arch, &line.op_sys) {
            (Some(arch), Some(op_sys)) => format!("{arch}/{op_sys}"),
            _ => "unknown".to_owned(),
        };
        by_platform.entry(platform).or_default().push(line);
    }
    let titles = STATES.iter().map(|(title, _)| (*title, Align::Right));
    let columns: Vec<_> = [("", Align::Right), ("Total", Align::Right)].into_iter().chain(titles).collect();
    let mut table = Table::new(&columns);
    let counts = |name: String, lines: &[&SlotLine]| {
        let of = |state| lines.iter().filter(|line| line.state == Some(state)).count().to_string();
        let states = STATES.iter().map(|(_, state)| of(*state));
        [name, lines.len().to_string()].into_iter().chain(states).collect::<Vec<_>>()
    };
    for (platform, lines) in by_platform {
        table.row(counts(platform, &lines));
    }
    table.row(counts("Total".to_owned(), &lines.iter().collect::<Vec<_>>()));
    table
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pslot(name: &str, node: &str, status: &Value) -> PartitionableSlot {
        serde_json::from_value(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "PartitionableSlot",
            "metadata": {"name": "p"}, "spec": {"name": name, "node": node}, "status": status,
        }))
        .unwrap()
    }

    fn slot(name: &str, node: &str, state: &Value) -> Slot {
        let claim = json!({"id": "c", "submitter": "physics.alice", "weight": 1, "claimedAt": null, "jobId": "12.0",
            "job": {"namespace": "default", "name": "pi", "uid": "u"}, "proc": 0, "pod": "pi-0"});
        serde_json::from_value(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "Slot", "metadata": {"name": "s"}, "status": state,
            "spec": {"name": name, "node": node, "slotType": "Dynamic", "claim": claim,
                     "resources": {"cpus": 2, "memoryMiB": 1536, "diskKiB": 1024, "extended": {"nvidia.com/gpu": 1}}},
        }))
        .unwrap()
    }

    fn pool() -> (Vec<PartitionableSlot>, Vec<Slot>) {
        let free = json!({"state": "Unclaimed", "activity": "Idle",
            "available": {"cpus": 60, "memoryMiB": 252_000, "diskKiB": 104_857_600,
                          "extended": {"nvidia.com/gpu": 2, "gpu.intel.com/i915": 1, "example.com/fpga": 5}}});
        let busy = json!({"state": "Claimed", "activity": "Busy"});
        let partitionable = vec![
            pslot("slot1@node2", "node2", &json!({"state": "Owner", "activity": "Idle"})),
            pslot("slot1@node1", "node1", &free),
        ];
        let slots = vec![
            slot("slot1_10@node1", "node1", &busy),
            slot("slot1_9@node1", "node1", &json!({"state": "Preempting", "activity": "Vacating"})),
            slot("slot1_1@node2", "node2", &json!(null)),
        ];
        (partitionable, slots)
    }

    fn nodes() -> BTreeMap<String, Platform> {
        let node = |name: &str, arch: &str| ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([("kubernetes.io/arch".to_owned(), arch.to_owned())].into()),
            ..ObjectMeta::default()
        };
        platforms([node("node1", "amd64"), node("node3", "arm64")])
    }

    #[test]
    fn slots_in_order_with_totals() {
        let (partitionable, slots) = pool();
        insta::assert_snapshot!(render(&lines(&partitionable, &slots, &nodes(), &[], None)));
    }

    #[test]
    fn one_node() {
        let (partitionable, slots) = pool();
        let lines = lines(&partitionable, &slots, &nodes(), &[], Some("node2"));
        let names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["slot1@node2", "slot1_1@node2"]);
        insta::assert_yaml_snapshot!(lines);
    }
}
