//! Devices as a device plugin hands them out: ids per extended resource, each held by at most one pod.

use std::collections::BTreeMap;

/// Device ids by extended resource name.
pub type Assigned = BTreeMap<String, Vec<String>>;

/// The devices of one node. Given out in order of their numbers, lowest free one first.
#[derive(Debug, Clone, Default)]
pub struct DevicePool(BTreeMap<String, Vec<Device>>);

#[derive(Debug, Clone)]
struct Device {
    id: String,
    /// The uid of the pod that holds it.
    holder: Option<String>,
}

impl DevicePool {
    /// The devices of `node`. Ids depend on node and number only, so a restarted kubelet finds the same ones.
    pub fn new(node: &str, counts: &BTreeMap<String, i64>) -> Self {
        let devices = |resource: &str, count: i64| -> Vec<Device> {
            (0..count).map(|n| Device { id: device_id(node, resource, n), holder: None }).collect()
        };
        Self(counts.iter().map(|(resource, count)| (resource.clone(), devices(resource, *count))).collect())
    }

    /// Gives `count` free devices of each resource in `wanted` that has devices here to pod `uid`. Admission by
    /// counts comes first, so there are enough; if not, the pod gets what is left.
    pub fn assign<'r>(&mut self, uid: &str, wanted: impl Iterator<Item = (&'r str, i64)>) -> Assigned {
        let mut assigned = Assigned::new();
        for (resource, count) in wanted.filter(|(_, count)| *count > 0) {
            let Some(devices) = self.0.get_mut(resource) else { continue };
            let free = devices.iter_mut().filter(|d| d.holder.is_none());
            let ids = free.take(usize::try_from(count).unwrap_or(usize::MAX)).map(|device| {
                device.holder = Some(uid.to_owned());
                device.id.clone()
            });
            assigned.insert(resource.to_owned(), ids.collect());
        }
        assigned
    }

    /// Marks devices that pod `uid` had before the kubelet restarted as its own. Returns false and changes nothing
    /// when one of them does not exist here or is another pod's.
    pub fn adopt(&mut self, uid: &str, assigned: &Assigned) -> bool {
        let free = |resource: &String, id: &String| {
            let devices = self.0.get(resource).into_iter().flatten();
            devices.clone().any(|d| d.id == *id && d.holder.as_deref().is_none_or(|holder| holder == uid))
        };
        if !assigned.iter().all(|(resource, ids)| ids.iter().all(|id| free(resource, id))) {
            return false;
        }
        for (resource, ids) in assigned {
            for device in self.0.get_mut(resource).into_iter().flatten().filter(|d| ids.contains(&d.id)) {
                device.holder = Some(uid.to_owned());
            }
        }
        true
    }

    /// Takes back all devices of pod `uid`.
    pub fn release(&mut self, uid: &str) {
        for device in self.0.values_mut().flatten().filter(|d| d.holder.as_deref() == Some(uid)) {
            device.holder = None;
        }
    }
}

/// NVIDIA's plugin names devices `GPU-<uuid>`; others here are `<resource>-<number>`.
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

/// FNV-1a: stable over processes and versions, which the standard hasher does not promise.
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
    fn ids_look_like_nvidias_and_come_back_after_release() {
        let mut pool = pool(2);
        let first = pool.assign("a", [(GPU, 2), ("cpu", 4000)].into_iter());
        let ids = first.get(GPU).unwrap();
        assert!(ids.iter().all(|id| id.len() == 40 && id.starts_with("GPU-")), "{ids:?}");
        assert_eq!(pool.assign("b", [(GPU, 1)].into_iter()).get(GPU).unwrap().len(), 0);
        pool.release("a");
        assert_eq!(pool.assign("b", [(GPU, 2)].into_iter()), first);
    }

    #[test]
    fn adoption_refuses_what_another_pod_holds() {
        let mut pool = pool(2);
        let held = pool.assign("a", [(GPU, 1)].into_iter());
        assert!(pool.adopt("a", &held));
        assert!(!pool.adopt("b", &held));
        assert!(!pool.adopt("b", &Assigned::from([(GPU.to_owned(), vec!["GPU-none".to_owned()])])));
    }

    proptest! {
        #[test]
        fn no_device_is_held_twice(steps in prop::collection::vec((0..6_u8, 0..4_i64, any::<bool>()), 0..60)) {
            let mut pool = pool(8);
            let mut held: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for (pod, count, release) in steps {
                let uid = format!("p{pod}");
                if release {
                    pool.release(&uid);
                    held.remove(&uid);
                } else if let Entry::Vacant(place) = held.entry(uid) {
                    let ids = pool.assign(place.key(), [(GPU, count)].into_iter()).remove(GPU).unwrap_or_default();
                    place.insert(ids.into_iter().collect());
                }
                let all: Vec<_> = held.values().flatten().collect();
                let distinct: BTreeSet<_> = all.iter().collect();
                prop_assert_eq!(all.len(), distinct.len());
            }
        }
    }
}
