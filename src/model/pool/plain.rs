//! Sizes of nothing but CPUs, memory and disk, as the operator writes them on pods.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::resources::{Capacity, PODS, Resources};

/// A size of nothing but CPUs, memory and disk. Its text is that of a slot type: `cpus=1, memory=128, disk=1024`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainSize {
    pub(super) cpus: i64,
    pub(super) memory_mib: i64,
    pub(super) disk_kib: i64,
}

/// The text is not that of a [`PlainSize`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSize;

impl fmt::Display for PlainSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpus, memory_mib, disk_kib } = self;
        write!(f, "cpus={cpus}, memory={memory_mib}, disk={disk_kib}")
    }
}

impl FromStr for PlainSize {
    type Err = NoSize;

    fn from_str(text: &str) -> Result<Self, NoSize> {
        let mut parts = text.split(", ");
        let mut next = |name: &str| {
            let amount = parts.next()?.strip_prefix(name)?.strip_prefix('=')?;
            amount.parse().ok().filter(|amount: &i64| *amount >= 0)
        };
        let size = next("cpus").zip(next("memory")).zip(next("disk"));
        let size = size.map(|((cpus, memory_mib), disk_kib)| Self { cpus, memory_mib, disk_kib });
        size.filter(|_| parts.next().is_none()).ok_or(NoSize)
    }
}

impl PlainSize {
    /// The resources of a slot of this size, with one of the resource `pods` if the machine counts that resource.
    pub fn resources(self, counts_pods: bool) -> Resources {
        Resources {
            cpus: self.cpus,
            memory_mib: self.memory_mib,
            disk_kib: self.disk_kib,
            extended: counts_pods.then(|| (PODS.into(), 1)).into_iter().collect(),
            devices: BTreeMap::new(),
        }
    }

    /// Whether a pod with these requests may have been created with this size: it requests no less, though admission may have added
    /// to its requests. Requests count in whole CPUs, MiB and KiB, rounded up, as slots have them. No pod is created without CPUs.
    pub fn is_within(self, requests: &Capacity) -> bool {
        let whole = requests.rounded_up();
        self.cpus >= 1
            && self.cpus <= whole.cpus
            && self.memory_mib <= whole.memory_mib
            && self.disk_kib <= whole.disk_kib
    }
}

impl Resources {
    /// Whether these are nothing but CPUs, memory, disk and a pod.
    pub fn is_plain(&self) -> bool {
        self.devices.is_empty() && self.extended.iter().all(|(name, amount)| **name == *PODS || *amount == 0)
    }

    /// The size, if it is nothing but CPUs, memory and disk, and a pod.
    pub fn plain(&self) -> Option<PlainSize> {
        let Self { cpus, memory_mib, disk_kib, .. } = *self;
        self.is_plain().then_some(PlainSize { cpus, memory_mib, disk_kib })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_as_it_is_written() {
        let resources = PlainSize { cpus: 2, memory_mib: 128, disk_kib: 1024 }.resources(true);
        let size = resources.plain().unwrap();
        assert_eq!(size.to_string(), "cpus=2, memory=128, disk=1024");
        assert_eq!(size.to_string().parse(), Ok(size));
        let others =
            ["", "cpus=2", "cpus=2, memory=128", "cpus=-2, memory=128, disk=1", "memory=1, cpus=1, disk=1"];
        for other in
            others.into_iter().chain(["cpus=2, memory=128, disk=1024, gpus=1", "cpus=two, memory=1, disk=1"])
        {
            assert_eq!(other.parse::<PlainSize>(), Err(NoSize), "{other}");
        }
        let requests =
            |cpu, memory| Capacity { milli_cpu: cpu, memory, disk: 1 << 20, ..Capacity::default() };
        // The sidecars of a template may leave less than a MiB of the slot unused.
        assert!(size.is_within(&requests(2100, (127 << 20) + 1)));
        assert!(!size.is_within(&requests(1000, 128 << 20)) && !size.is_within(&requests(2000, 127 << 20)));
        let nothing = PlainSize { cpus: 0, memory_mib: 0, disk_kib: 0 };
        assert!(!nothing.is_within(&requests(64_000, 128 << 20)), "somebody wrote that");
        let gpu = Resources { extended: [("nvidia.com/gpu".into(), 1)].into(), ..resources };
        assert_eq!(gpu.plain(), None);
    }
}
