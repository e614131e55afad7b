//! Amounts of resources: what machines have, slots hold and jobs request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::extended::ExtendedResources;
use super::plain::PlainSize;

/// The name of an extended resource in Kubernetes, such as `nvidia.com/gpu`.
pub type ResourceName = Arc<str>;

/// The resource that counts pods: a kubelet admits so many, and every pod takes one.
pub const PODS: &str = "pods";

/// The `ClassAd` name under which GPUs of all vendors are counted.
pub const GPUS: &str = "GPUs";

/// The attribute of a slot's ad that says which Kubernetes resource each `ClassAd` name counts, as a nested ad:
/// `[ GPUs = "nvidia.com/gpu" ]`.
pub const NODE_RESOURCES: &str = "NodeResources";

/// The `ClassAd` name of an extended resource: `GPUs` for GPUs of all vendors, otherwise the part behind the slash with
/// a capital letter, and with `_` for characters that a name cannot contain.
pub fn classad_name(resource: &str) -> String {
    let tail = resource.rsplit('/').next().unwrap_or(resource);
    if tail.eq_ignore_ascii_case("gpu") || resource.starts_with("gpu.intel.com/") {
        return GPUS.to_owned();
    }
    let mut name = String::with_capacity(tail.len());
    for (at, c) in tail.chars().enumerate() {
        match c {
            'a'..='z' if at == 0 => name.push(c.to_ascii_uppercase()),
            'a'..='z' | 'A'..='Z' => name.push(c),
            '0'..='9' if at > 0 => name.push(c),
            _ => name.push('_'),
        }
    }
    name
}

/// The id of a device, such as `GPU-6a96bd13`.
pub type DeviceId = Arc<str>;

/// The resources of a slot: whole CPUs, memory in MiB, disk in KiB, and extended resources by their Kubernetes name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Whole CPUs.
    pub cpus: i64,
    /// Memory in MiB.
    pub memory_mib: i64,
    /// Scratch space in KiB.
    pub disk_kib: i64,
    /// Extended resources.
    pub extended: ExtendedResources,
    /// For extended resources whose devices have ids: the ids, in the order in which they are handed out. Resources
    /// that are only counted are not in the map.
    pub devices: BTreeMap<ResourceName, Vec<DeviceId>>,
}

impl Resources {
    /// Subtracts `other`. Missing amounts become negative; see [`Resources::floor_at_zero`]. A device id that is not
    /// there cannot be removed, and leaves no debt.
    pub fn subtract(&mut self, other: &Self) {
        self.cpus = self.cpus.saturating_sub(other.cpus);
        self.memory_mib = self.memory_mib.saturating_sub(other.memory_mib);
        self.disk_kib = self.disk_kib.saturating_sub(other.disk_kib);
        for (name, amount) in other.extended.iter() {
            self.extended.change(name, |left| left.saturating_sub(*amount));
        }
        for (name, ids) in &other.devices {
            if let Some(left) = self.devices.get_mut(name) {
                left.retain(|id| !ids.contains(id));
            }
        }
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.cpus = self.cpus.saturating_add(other.cpus);
        self.memory_mib = self.memory_mib.saturating_add(other.memory_mib);
        self.disk_kib = self.disk_kib.saturating_add(other.disk_kib);
        for (name, amount) in other.extended.iter() {
            self.extended.change(name, |sum| sum.saturating_add(*amount));
        }
        for (name, ids) in &other.devices {
            self.devices.entry(name.clone()).or_default().extend(ids.iter().cloned());
        }
    }

    /// Replaces negative amounts by 0: a slot never offers less than nothing, even if pods outside the pool took more
    /// than was left.
    #[must_use]
    pub fn floor_at_zero(mut self) -> Self {
        self.cpus = self.cpus.max(0);
        self.memory_mib = self.memory_mib.max(0);
        self.disk_kib = self.disk_kib.max(0);
        for (_, amount) in self.extended.iter_mut() {
            *amount = (*amount).max(0);
        }
        self
    }

    /// For each resource the smaller of the two amounts, and the device ids that are in both.
    #[must_use]
    pub fn at_most(mut self, room: &Self) -> Self {
        self.cpus = self.cpus.min(room.cpus);
        self.memory_mib = self.memory_mib.min(room.memory_mib);
        self.disk_kib = self.disk_kib.min(room.disk_kib);
        for (name, amount) in self.extended.iter_mut() {
            *amount = (*amount).min(room.amount(name));
        }
        for (name, ids) in &mut self.devices {
            ids.retain(|id| room.devices_of(name).contains(id));
        }
        self.no_more_than_devices()
    }

    /// Lowers the amount of each resource whose devices have ids to the number of ids.
    #[must_use]
    pub fn no_more_than_devices(mut self) -> Self {
        for (name, ids) in &self.devices {
            if let Some(amount) = self.extended.get_mut(name) {
                *amount = (*amount).min(i64::try_from(ids.len()).unwrap_or(i64::MAX));
            }
        }
        self
    }

    /// Whether all of this fits into `room`.
    pub fn fits_in(&self, room: &Self) -> bool {
        self.cpus <= room.cpus
            && self.memory_mib <= room.memory_mib
            && self.disk_kib <= room.disk_kib
            && self.extended.iter().all(|(name, amount)| *amount <= room.amount(name))
            && self.devices.iter().all(|(name, ids)| ids.iter().all(|id| room.devices_of(name).contains(id)))
    }

    /// Whether both have the same amount of each resource. A missing entry is the same as 0, since objects leave out
    /// resources with an amount of 0.
    pub fn is_as_much_as(&self, other: &Self) -> bool {
        self.fits_in(other) && other.fits_in(self)
    }

    /// The amount of an extended resource.
    pub fn amount(&self, name: &str) -> i64 {
        self.extended.get(name).copied().unwrap_or(0)
    }

    /// The device ids of an extended resource; empty if the resource is only counted.
    pub fn devices_of(&self, name: &str) -> &[DeviceId] {
        self.devices.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The extended resource that a job names, if the machine counts it. The name is Kubernetes' own name, which has a
    /// domain, or the name of a `MACHINE_RESOURCE_<name>`, in upper or lower case: `cogs` names `Cogs`. If two
    /// resources have the same `ClassAd` name, only the one that this name counts can be had.
    pub fn named(&self, asked: &str) -> Option<&ResourceName> {
        let counted = self.called(&classad_name(asked))?;
        let same = &**counted == asked || (!counted.contains('/') && counted.eq_ignore_ascii_case(asked));
        same.then_some(counted)
    }

    /// The extended resource that is counted under a `ClassAd` name, in upper or lower case. If several resources have
    /// the name, the one with the greatest amount is counted; among equals the first by name.
    pub fn called(&self, name: &str) -> Option<&ResourceName> {
        self.extended
            .iter()
            .filter(|(resource, _)| classad_name(resource).eq_ignore_ascii_case(name))
            .max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0)))
            .map(|(resource, _)| resource)
    }

    /// The amounts of extended resources by `ClassAd` name: `GPUs`, `Fpga`, ...
    pub fn by_classad_name(&self) -> BTreeMap<String, i64> {
        let mut amounts = BTreeMap::new();
        for (name, amount) in self.extended.iter().filter(|(name, _)| &***name != PODS) {
            let slot = amounts.entry(classad_name(name)).or_insert(*amount);
            *slot = (*slot).max(*amount);
        }
        amounts
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} CPUs, {} MiB memory, {} KiB disk", self.cpus, self.memory_mib, self.disk_kib)?;
        for (name, amount) in self.extended.iter().filter(|(_, amount)| **amount != 0) {
            write!(f, ", {amount} {name}")?;
        }
        Ok(())
    }
}

/// Amounts as Kubernetes counts them on a node: thousandths of a CPU, and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Thousandths of a CPU.
    pub milli_cpu: i64,
    /// Memory in bytes.
    pub memory: i64,
    /// Ephemeral storage in bytes.
    pub disk: i64,
    /// Pods, or extended resources, by name.
    pub extended: ExtendedResources,
}

impl Capacity {
    /// Whether these are the requests of a pod that cannot be decoded: nothing but the pod itself. Each pod of the operator's requests
    /// more.
    pub fn is_unknown(&self) -> bool {
        let others = self.extended.iter().any(|(name, amount)| **name != *PODS && *amount != 0);
        (self.milli_cpu, self.memory, self.disk, others) == (0, 0, 0, false)
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.milli_cpu = self.milli_cpu.saturating_add(other.milli_cpu);
        self.memory = self.memory.saturating_add(other.memory);
        self.disk = self.disk.saturating_add(other.disk);
        for (name, amount) in other.extended.iter() {
            self.extended.change(name, |sum| sum.saturating_add(*amount));
        }
    }

    /// These requests of a pod, with no amount above 2^50 or below 0. Nothing has a petabyte, and the sum of the requests of thousands of
    /// pods is exact: a sum that had reached the end of 64 bits would forget the other pods when the pod goes.
    #[must_use]
    pub fn of_one_pod(self) -> Self {
        const MOST: i64 = 1 << 50;
        let mut extended = self.extended;
        for (_, amount) in extended.iter_mut() {
            *amount = (*amount).clamp(0, MOST);
        }
        Self {
            milli_cpu: self.milli_cpu.clamp(0, MOST),
            memory: self.memory.clamp(0, MOST),
            disk: self.disk.clamp(0, MOST),
            extended,
        }
    }

    /// The part of these CPUs, memory and disk that exceeds what a slot holds.
    #[must_use]
    pub fn beyond(&self, slot: &Resources) -> Self {
        let has = Self::of(slot);
        let more = |asked: i64, has: i64| asked.saturating_sub(has).max(0);
        Self {
            milli_cpu: more(self.milli_cpu, has.milli_cpu),
            memory: more(self.memory, has.memory),
            disk: more(self.disk, has.disk),
            extended: ExtendedResources::new(),
        }
    }

    /// Subtracts `other`.
    pub fn subtract(&mut self, other: &Self) {
        self.milli_cpu = self.milli_cpu.saturating_sub(other.milli_cpu);
        self.memory = self.memory.saturating_sub(other.memory);
        self.disk = self.disk.saturating_sub(other.disk);
        for (name, amount) in other.extended.iter() {
            self.extended.change(name, |left| left.saturating_sub(*amount));
        }
    }

    /// The amounts that pods may request in a slot that holds `resources`.
    pub fn of(resources: &Resources) -> Self {
        Self {
            milli_cpu: resources.cpus.saturating_mul(1000),
            memory: resources.memory_mib.saturating_mul(1 << 20),
            disk: resources.disk_kib.saturating_mul(1 << 10),
            extended: resources.extended.clone(),
        }
    }

    /// The resources of the slot of a pod with these requests, each amount rounded up; with a pod, if the machine counts pods.
    /// `None` if the pod requests something besides CPUs, memory and disk.
    pub fn in_slot(&self, counts_pods: bool) -> Option<Resources> {
        let others = self.extended.iter().any(|(name, amount)| **name != *PODS && *amount > 0);
        (!others).then(|| self.rounded_up().resources(counts_pods))
    }

    /// These CPUs, memory and disk, each amount rounded up to what slots have: whole CPUs, MiB and KiB.
    pub(super) fn rounded_up(&self) -> PlainSize {
        let whole = |amount: i64, unit: i64| amount.max(0).saturating_add(unit - 1) / unit;
        PlainSize {
            cpus: whole(self.milli_cpu, 1000),
            memory_mib: whole(self.memory, 1 << 20),
            disk_kib: whole(self.disk, 1 << 10),
        }
    }

    /// The whole amounts that slots can offer: whole CPUs, MiB and KiB, each rounded down so that nothing is offered
    /// twice.
    pub fn whole(&self) -> Resources {
        Resources {
            cpus: self.milli_cpu.div_euclid(1000),
            memory_mib: self.memory.div_euclid(1 << 20),
            disk_kib: self.disk.div_euclid(1 << 10),
            extended: self.extended.clone(),
            devices: BTreeMap::new(),
        }
        .floor_at_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_have_classad_names() {
        for (resource, name) in [
            ("nvidia.com/gpu", "GPUs"),
            ("amd.com/gpu", "GPUs"),
            ("gpu.intel.com/i915", "GPUs"),
            ("example.com/fpga", "Fpga"),
            ("example.com/fast-nic.2", "Fast_nic_2"),
            ("example.com/9p", "_p"),
            ("", ""),
        ] {
            assert_eq!(classad_name(resource), name, "{resource}");
        }
    }

    fn gpus(ids: &[&str]) -> Resources {
        let gpu: ResourceName = "nvidia.com/gpu".into();
        Resources {
            extended: [(gpu.clone(), i64::try_from(ids.len()).unwrap())].into(),
            devices: [(gpu, ids.iter().copied().map(Arc::from).collect())].into(),
            ..Resources::default()
        }
    }

    #[test]
    fn devices_are_taken_and_returned_in_their_order() {
        let total = gpus(&["c", "a", "b"]);
        let mut carved = gpus(&["a"]);
        carved.add(&gpus(&["c"]));
        let mut left = total.clone();
        left.subtract(&carved);
        assert_eq!(left, gpus(&["b"]));
        carved.subtract(&gpus(&["c"]));
        let mut left = total.clone();
        left.subtract(&carved);
        assert_eq!(left, gpus(&["c", "b"]));
        assert!(gpus(&["b"]).fits_in(&left) && !gpus(&["a"]).fits_in(&left));
        assert_eq!(total.at_most(&gpus(&["b", "d"])), gpus(&["b"]), "one is in both, so that there is one");
    }

    #[test]
    fn fractions_are_not_offered() {
        let capacity = Capacity {
            milli_cpu: 7_900,
            memory: (3 << 20) - 1,
            disk: 2_047,
            extended: ExtendedResources::new(),
        };
        assert_eq!(
            capacity.whole(),
            Resources { cpus: 7, memory_mib: 2, disk_kib: 1, ..Resources::default() }
        );
    }

    #[test]
    fn more_taken_than_there_is_offers_nothing() {
        let capacity = Capacity { milli_cpu: -500, ..Capacity::default() };
        assert_eq!(capacity.whole().cpus, 0);
    }
}
