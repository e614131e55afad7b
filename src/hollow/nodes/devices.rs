//! Devices as a device plugin assigns them: each extended resource has device ids, and each device is assigned to
//! at most one pod.

use std::collections::BTreeMap;

/// Device ids by extended resource name.
pub type Assigned = BTreeMap<String, Vec<String>>;

/// The devices of one node. The free device with the lowest number is assigned first.
#[derive(Debug, Clone, Default)]
pub struct DevicePool(BTreeMap<String, Vec<Device>>);

#[derive(Debug, Clone)]
struct Device {
    id: String,
    /// The uid of the pod to which the device is assigned.
    pod: Option<String>,
}

impl DevicePool {
    /// The devices of `node`. A device's id depends only on node, resource and number, so a restarted kubelet has
    /// the same devices.
    pub fn new(node: &str, counts: &BTreeMap<String, i64>) -> Self {
        let devices = |resource: &str, count: i64| -> Vec<Device> {
            (0..count).map(|n| Device { id: device_id(node, resource, n), pod: None }).collect()
        };
        Self(counts.iter().map(|(resource, count)| (resource.clone(), devices(resource, *count))).collect())
    }

    /// Assigns to pod `uid` the wanted number of free devices of each resource in `wanted` that has devices here.
    /// Admission checks the counts before, so there are enough; if not, the pod gets those that are left.
    pub fn assign<'r>(&mut self, uid: &str, wanted: impl Iterator<Item = (&'r str, i64)>) -> Assigned {
        let mut assigned = Assigned::new();
        for (resource, count) in wanted.filter(|(_, count)| *count > 0) {
            let Some(devices) = self.0.get_mut(resource) else { continue };
            let free = devices.iter_mut().filter(|d| d.pod.is_none());
            let ids = free.take(usize::try_from(count).unwrap_or(usize::MAX)).map(|device| {
                device.pod = Some(uid.to_owned());
                device.id.clone()
            });
            assigned.insert(resource.to_owned(), ids.collect());
        }
        assigned
    }

    /// Assigns to pod `uid` the devices that it had before the kubelet restarted. Returns false and changes nothing
    /// if one of these devices does not exist here or is assigned to another pod.
    pub fn adopt(&mut self, uid: &str, assigned: &Assigned) -> bool {
        let free = |resource: &String, id: &String| {
            let devices = self.0.get(resource).into_iter().flatten();
            devices.clone().any(|d| d.id == *id && d.pod.as_deref().is_none_or(|pod| pod == uid))
        };
        if !assigned.iter().all(|(resource, ids)| ids.iter().all(|id| free(resource, id))) {
            return false;
        }
        for (resource, ids) in assigned {
            for device in self.0.get_mut(resource).into_iter().flatten().filter(|d| ids.contains(&d.id)) {
                device.pod = Some(uid.to_owned());
            }
        }
        true
    }

    /// Frees all devices of pod `uid`.
    pub fn free(&mut self, uid: &str) {
        for device in self.0.values_mut().flatten().filter(|d| d.pod.as_deref() == Some(uid)) {
            device.pod = None;
        }
    }
}

/// The id of a device: `GPU-<uuid>`, as NVIDIA's plugin has it, or `<resource>-<number>` for other resources.
fn device_id(node: &str, resource: &str, number: i64) -> String {
    let short = resource.rsplit('/').next().unwrap_or(resource);
    if resource != "nvidia.com/gpu" {
        return format!("{short}-{number}");
    }
    let high = fnv64(&format!("{node}/{resource}/{number}"));
    let low = fnv64(&format!("{number}/{resource}/{node}"));
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
    format!("GPU-{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
}

/// The FNV-1a hash of a text. It is the same in every process and version, which the standard hasher does not
/// promise.
pub(super) fn fnv64(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::collections::btree_map::Entry;

    use proptest::prelude::*;

    use super::*;

    const GPU: &str = "nvidia.com/gpu";

    fn pool(count: i64) -> DevicePool {
        DevicePool::new("n1", &BTreeMap::from([(GPU.to_owned(), count)]))
    }

    #[test]
    fn ids_look_like_nvidias_and_freed_devices_are_assigned_again() {
        let mut pool = pool(2);
        let first = pool.assign("a", [(GPU, 2), ("cpu", 4000)].into_iter());
        let ids = first.get(GPU).unwrap();
        assert!(ids.iter().all(|id| id.len() == 40 && id.starts_with("GPU-")), "{ids:?}");
        assert_eq!(pool.assign("b", [(GPU, 1)].into_iter()).get(GPU).unwrap().len(), 0);
        pool.free("a");
        assert_eq!(pool.assign("b", [(GPU, 2)].into_iter()), first);
    }

    #[test]
    fn no_pod_adopts_the_device_of_another_pod() {
        let mut pool = pool(2);
        let assigned = pool.assign("a", [(GPU, 1)].into_iter());
        assert!(pool.adopt("a", &assigned));
        assert!(!pool.adopt("b", &assigned));
        assert!(!pool.adopt("b", &Assigned::from([(GPU.to_owned(), vec!["GPU-none".to_owned()])])));
    }

    proptest! {
        #[test]
        fn no_device_is_assigned_twice(steps in prop::collection::vec((0..6_u8, 0..4_i64, any::<bool>()), 0..60)) {
            let mut pool = pool(8);
            let mut assigned: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for (pod, count, free) in steps {
                let uid = format!("p{pod}");
                if free {
                    pool.free(&uid);
                    assigned.remove(&uid);
                } else if let Entry::Vacant(place) = assigned.entry(uid) {
                    let ids = pool.assign(place.key(), [(GPU, count)].into_iter()).remove(GPU).unwrap_or_default();
                    place.insert(ids.into_iter().collect());
                }
                let all: Vec<_> = assigned.values().flatten().collect();
                let distinct: BTreeSet<_> = all.iter().collect();
                prop_assert_eq!(all.len(), distinct.len());
            }
        }
    }
}
