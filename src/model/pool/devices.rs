//! Which devices a machine has, as far as they are known one by one.
//!
//! A device is handed out by its id: no two claims hold the same device. The kubelet's device plugin chooses the
//! devices that a pod then finds in its containers; see `docs/reference/differences.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::machine::Machine;
use super::resources::{GPUS, ResourceName, Resources, classad_name};
use super::slot_types::{Device, Quantity};
use classad::Ad;

/// The start of the names of the node labels that GPU feature discovery makes.
const NVIDIA: &str = "nvidia.com/";

/// The devices of a machine, by resource, in the order in which they are handed out. Resources that are only counted
/// are not in the map.
pub type Inventory = BTreeMap<ResourceName, Arc<[Device]>>;

impl Machine {
    /// The machine's devices: those that its policy names, those that its agent reports, and otherwise GPUs as the
    /// node's labels describe them.
    pub(super) fn find_devices(&self) -> Inventory {
        let here = self.facts.allocatable.extended.iter().map(|(resource, count)| (resource, *count));
        let of = |(resource, count): (&ResourceName, i64)| {
            let reported = self.reported(resource);
            let devices =
                if reported.is_empty() { labelled(resource, count, &self.facts.labels) } else { reported };
            (!devices.is_empty()).then(|| (resource.clone(), devices.into()))
        };
        let declared = self.declared.iter().filter_map(|(resource, quantity)| match quantity {
            Quantity::Ids(_) => Some((resource.clone(), quantity.devices().into())),
            Quantity::Count(_) => None,
        });
        // If the node and the policy have the same resource, the node's devices replace the policy's.
        declared.chain(here.filter_map(of)).collect()
    }

    fn reported(&self, resource: &str) -> Vec<Device> {
        let reported = self.report.iter().flat_map(|report| &report.devices);
        let of_it = reported.filter(|device| &*device.resource == resource);
        let device = |device: &super::agent::Device| {
            let mut properties = Ad::new();
            for (name, expr) in &device.properties {
                properties.insert(&**name, expr.clone());
            }
            Device { id: device.id.clone(), properties }
        };
        let mut devices: Vec<Device> = Vec::new();
        for device in of_it.map(device) {
            // An agent may report a device twice.
            if devices.iter().all(|known| known.id != device.id) {
                devices.push(device);
            }
        }
        devices
    }

    /// The device of `resource` whose id is `id`.
    pub fn device(&self, resource: &str, id: &str) -> Option<&Device> {
        self.devices.get(resource)?.iter().find(|device| &*device.id == id)
    }
}

impl Resources {
    /// These resources, with the devices of each that the machine has.
    #[must_use]
    pub(super) fn with_devices(mut self, inventory: &Inventory) -> Self {
        let of = |(resource, devices): (&ResourceName, &Arc<[Device]>)| {
            (resource.clone(), devices.iter().map(|device| device.id.clone()).collect())
        };
        self.devices =
            inventory.iter().filter(|(name, _)| self.extended.contains_key(name)).map(of).collect();
        self.no_more_than_devices()
    }
}

/// The most GPUs of a node that are told apart by their places. More than a thousand are no devices that anybody chooses among, but a
/// number that somebody wrote: such GPUs are only counted.
const MOST_LABELLED: i64 = 1024;

/// GPUs that only the node's labels describe, at most [`MOST_LABELLED`]. All have the same properties, and their ids are made of their
/// places.
fn labelled(resource: &ResourceName, count: i64, labels: &BTreeMap<String, String>) -> Vec<Device> {
    if classad_name(resource) != GPUS || !resource.starts_with(NVIDIA) || count > MOST_LABELLED {
        return Vec::new();
    }
    let properties = gpu_properties(labels);
    if properties.is_empty() {
        return Vec::new();
    }
    let device = |n| Device { id: format!("GPU-{n}").into(), properties: properties.clone() };
    (0..count).map(device).collect()
}

/// The properties of a node's GPUs by the labels of GPU feature discovery, under the names that `condor_gpu_discovery`
/// uses.
fn gpu_properties(labels: &BTreeMap<String, String>) -> Ad {
    let mut properties = Ad::new();
    let label = |name: &str| labels.get(&format!("{NVIDIA}{name}"));
    if let Some(product) = label("gpu.product") {
        properties.set("DeviceName", product.as_str());
    }
    if let Some(memory) = label("gpu.memory").and_then(|text| text.parse::<i64>().ok()) {
        properties.set("GlobalMemoryMb", memory);
    }
    let number = |name: &str| label(name).and_then(|text| text.parse::<u16>().ok());
    if let Some(major) = number("gpu.compute.major") {
        let version = format!("{major}.{}", number("gpu.compute.minor").unwrap_or(0));
        properties.set("Capability", version.parse().unwrap_or(f64::from(major)));
    }
    // Older releases of GPU feature discovery set the second label.
    let runtime = |part: &str| {
        number(&format!("cuda.runtime-version.{part}")).or_else(|| number(&format!("cuda.runtime.{part}")))
    };
    if let Some(major) = runtime("major") {
        let minor = i64::from(runtime("minor").unwrap_or(0));
        properties.set("MaxSupportedVersion", i64::from(major) * 1000 + minor * 10);
    }
    properties
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{Capacity, MachineFacts, ReportFacts, Time};
    use classad::{Env, Expr};

    const GPU: &str = "nvidia.com/gpu";

    fn machine(gpus: i64, labels: &[(&str, &str)]) -> Machine {
        let facts = MachineFacts {
            allocatable: Capacity { extended: [(GPU.into(), gpus)].into(), ..Capacity::default() },
            labels: Arc::new(labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()),
            ..MachineFacts::of_nothing("n1".into())
        };
        Machine::new(facts, Capacity::default(), Time::default())
    }

    fn ids(machine: &Machine) -> Vec<&str> {
        machine.total.devices_of(GPU).iter().map(|id| &**id).collect()
    }

    /// A kubelet, or a broken device plugin, may report any number.
    #[test]
    fn more_gpus_than_anybody_has_are_only_counted() {
        for (count, told_apart) in [(MOST_LABELLED, 1024), (MOST_LABELLED + 1, 0), (i64::MAX, 0)] {
            let machine = machine(count, &[("nvidia.com/gpu.product", "A100")]);
            assert_eq!(ids(&machine).len(), told_apart, "{count}");
            assert_eq!(machine.total.extended.get(GPU), Some(&count));
        }
    }

    #[test]
    fn labels_tell_of_gpus_that_are_all_alike() {
        let labels = [
            ("nvidia.com/gpu.product", "NVIDIA-A100"),
            ("nvidia.com/gpu.memory", "40960"),
            ("nvidia.com/gpu.compute.major", "8"),
            ("nvidia.com/gpu.compute.minor", "6"),
            ("nvidia.com/cuda.runtime-version.major", "12"),
            ("nvidia.com/cuda.runtime-version.minor", "1"),
        ];
        let machine = machine(2, &labels);
        assert_eq!(ids(&machine), ["GPU-0", "GPU-1"]);
        let properties = &machine.device(GPU, "GPU-1").unwrap().properties;
        for (name, value) in [
            ("DeviceName", "\"NVIDIA-A100\""),
            ("GlobalMemoryMb", "40960"),
            ("Capability", "8.6"),
            ("MaxSupportedVersion", "12010"),
        ] {
            let value = Expr::parse(value).unwrap().eval(None, None, &Env::at(0));
            assert_eq!(properties.eval_attr(name, None, &Env::at(0)), value, "{name}");
        }
    }

    #[test]
    fn older_releases_say_the_runtime_otherwise() {
        let machine =
            machine(1, &[("nvidia.com/cuda.runtime.major", "11"), ("nvidia.com/cuda.runtime.minor", "4")]);
        let properties = &machine.device(GPU, "GPU-0").unwrap().properties;
        assert_eq!(properties.eval_attr("MaxSupportedVersion", None, &Env::at(0)).as_int(), Some(11_040));
    }

    #[test]
    fn a_node_that_says_nothing_of_its_gpus_only_counts_them() {
        let machine = machine(2, &[]);
        assert_eq!((ids(&machine).len(), machine.total.amount(GPU)), (0, 2));
        assert!(machine.devices.is_empty());
    }

    #[test]
    fn an_agent_s_report_goes_before_labels_and_what_it_does_not_know_is_not_offered() {
        let mut machine = machine(3, &[("nvidia.com/gpu.memory", "1")]);
        let device = |id: &str| crate::pool::Device {
            resource: GPU.into(),
            id: id.into(),
            properties: vec![("Capability".into(), Expr::literal(8.0))],
        };
        let devices = vec![device("b"), device("a"), device("b")];
        machine.report = Some(Arc::new(ReportFacts { devices, ..ReportFacts::of("n1".into()) }));
        machine.recount();
        assert_eq!((ids(&machine), machine.total.amount(GPU)), (vec!["b", "a"], 2));
    }

    #[test]
    fn pods_of_others_take_of_the_count_and_nobody_knows_which() {
        let mut machine = machine(3, &[("nvidia.com/gpu.memory", "1")]);
        machine.foreign.extended.insert(GPU.into(), 1);
        machine.recount();
        assert_eq!((ids(&machine).len(), machine.total.amount(GPU)), (3, 2));
    }
}
