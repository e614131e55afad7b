//! Reads the machines of a scenario, and what their owners do.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;

use super::file;
use super::read::Reader;
use controller::convert;
use controller::kinds::node::{self, SlimNode, SlimNodeStatus};
use model::pool::{Capacity, MachineFacts};
use sim::{Absence, MachineGroup, OwnerActivity, Visits, Window};

impl Reader<'_> {
    pub(super) fn machines(&mut self, index: usize, group: &file::Machines) -> MachineGroup {
        let path = format!("machines[{index}]");
        let mut allocatable = group.resources.clone();
        allocatable.insert("cpu".to_owned(), group.cpus.clone());
        allocatable.insert("memory".to_owned(), group.memory.clone());
        allocatable.extend(group.disk.clone().map(|disk| ("ephemeral-storage".to_owned(), disk)));
        for (name, quantity) in &allocatable {
            let field = match name.as_str() {
                "cpu" => format!("{path}.cpus"),
                "memory" => format!("{path}.memory"),
                "ephemeral-storage" => format!("{path}.disk"),
                name => format!("{path}.resources.{name}"),
            };
            if let Err(error) = convert::millis(quantity) {
                self.wrong(&field, &error.to_string());
            }
        }
        let facts = facts(&group.name, group.labels.clone(), allocatable);
        if facts.allocatable.whole().cpus < 1 {
            self.wrong(&format!("{path}.cpus"), "a machine needs at least one whole CPU");
        }
        if facts.allocatable.whole().memory_mib < 1 {
            self.wrong(&format!("{path}.memory"), "a machine needs at least 1Mi of memory");
        }
        let owner = group.owner.as_ref().map(|owner| self.owner(&format!("{path}.owner"), owner));
        let absence = group
            .leaves
            .as_ref()
            .map(|leaves| Absence { after: leaves.after.spread.clone(), away: leaves.away.spread.clone() });
        MachineGroup { name: group.name.clone(), count: group.count, facts, owner, absence }
    }

    fn owner(&mut self, path: &str, owner: &file::Owner) -> OwnerActivity {
        let mut windows = Vec::new();
        for (index, hours) in owner.hours.iter().enumerate() {
            let from = self.clock(&format!("{path}.hours[{index}].from"), &hours.from);
            let to = self.clock(&format!("{path}.hours[{index}].to"), &hours.to);
            let days: Vec<i64> = match &hours.days {
                Some(days) => days.iter().map(|day| *day as i64).collect(),
                None => (0..7).collect(),
            };
            windows.extend(days.into_iter().map(|day| Window::of_day(day, from, to)));
        }
        if !owner.load.is_finite() || owner.load < 0.0 {
            self.wrong(&format!("{path}.load"), &format!("{} is no load; give 0 or more", owner.load));
        }
        for (name, quantity) in &owner.pods {
            if let Err(error) = convert::millis(quantity) {
                self.wrong(&format!("{path}.pods.{name}"), &error.to_string());
            }
        }
        let vary = format!("{path}.vary");
        OwnerActivity {
            windows,
            vary: self.span(&vary, owner.vary, 0.0, 0.0).as_secs_f64(),
            visits: owner.visits.as_ref().map(|visits| Visits {
                away: visits.away.spread.clone(),
                present: visits.present.spread.clone(),
            }),
            load: owner.load,
            pods: capacity(owner.pods.iter().map(|(name, amount)| {
                let name = if name == "cpus" { "cpu" } else { name };
                (name.to_owned(), amount.clone())
            })),
        }
    }

    /// Reads a time of day such as `17:30`, in seconds since midnight. `24:00` is midnight.
    fn clock(&mut self, path: &str, text: &str) -> i64 {
        let read = || {
            let (hours, minutes) = text.split_once(':')?;
            let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
            ((0..=24).contains(&hours) && (0..60).contains(&minutes) && hours * 60 + minutes <= 24 * 60)
                .then_some((hours * 3600 + minutes * 60) % 86_400)
        };
        read().unwrap_or_else(|| {
            self.wrong(path, &format!("{text:?} is no time of day; write it as \"17:30\""));
            0
        })
    }
}

/// The operator's facts about a node with these labels and resources.
fn facts(
    name: &str,
    labels: BTreeMap<String, String>,
    allocatable: BTreeMap<String, Quantity>,
) -> MachineFacts {
    let ready =
        NodeCondition { type_: "Ready".to_owned(), status: "True".to_owned(), ..NodeCondition::default() };
    let node = SlimNode {
        metadata: ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() },
        status: SlimNodeStatus { allocatable, conditions: vec![ready], ..SlimNodeStatus::default() },
        ..SlimNode::default()
    };
    // `node::facts` returns `None` only for a node without a name.
    node::facts(&node).unwrap_or_else(|| MachineFacts::of_nothing(name.into()))
}

fn capacity(amounts: impl Iterator<Item = (String, Quantity)>) -> Capacity {
    facts("owner", BTreeMap::new(), amounts.collect()).allocatable
}
