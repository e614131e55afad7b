//! Ready-made sets of nodes.

use super::owner::Owner;
use super::shape::{A100, GIB, NodeShape, T4};

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const INSTANCE: &str = "node.kubernetes.io/instance-type";

/// A dozen varied nodes over three zones: 4 to 64 cores, two nodes with GPUs (4 A100, 2 T4), one arm64 node; 272 cores
/// in all. The nodes have no taints. Each has an agent, and an owner who never comes.
pub fn demo() -> Vec<NodeShape> {
    let plain = |name: &str, cores: i64, gib: i64, zone: &str| {
        NodeShape::new(name, cores * 1000, gib * GIB)
            .label(ZONE, zone)
            .label(REGION, "hollow-1")
            .label(INSTANCE, &format!("h{cores}.{gib}g"))
            .agent(Owner::default())
    };
    let mut arm = plain("arm-1", 32, 64, "hollow-1c");
    "arm64".clone_into(&mut arm.arch);
    vec![
        plain("small-1", 4, 8, "hollow-1a"),
        plain("small-2", 4, 8, "hollow-1b"),
        plain("small-3", 4, 16, "hollow-1c"),
        plain("medium-1", 8, 32, "hollow-1a"),
        plain("medium-2", 8, 32, "hollow-1b"),
        plain("medium-3", 16, 64, "hollow-1c"),
        plain("large-1", 32, 128, "hollow-1a"),
        plain("highmem-1", 16, 256, "hollow-1b"),
        plain("huge-1", 64, 256, "hollow-1b"),
        arm,
        plain("gpu-a100-1", 64, 512, "hollow-1a").gpu(A100, 4),
        plain("gpu-t4-1", 20, 80, "hollow-1c").gpu(T4, 2),
    ]
}

/// `n` nodes of one size, named `node-001` and so on. `cpus` is in millicores, `memory` in bytes.
pub fn uniform(n: usize, cpus: i64, memory: i64) -> Vec<NodeShape> {
    (1..=n).map(|number| NodeShape::new(format!("node-{number:03}"), cpus, memory)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jiff::Timestamp;

    use super::*;

    #[test]
    fn the_demo_is_a_varied_dozen() {
        let shapes = demo();
        let names: BTreeSet<_> = shapes.iter().map(|shape| &shape.name).collect();
        assert_eq!((shapes.len(), names.len()), (12, 12));
        assert_eq!(shapes.iter().map(|shape| shape.cpus).sum::<i64>(), 272_000);
        assert_eq!(shapes.iter().filter(|shape| !shape.gpus.is_empty()).count(), 2);
        assert_eq!(shapes.iter().filter(|shape| shape.arch == "arm64").count(), 1);
    }

    #[test]
    fn a_gpu_node_is_registered_with_its_devices_and_labels() {
        let shape = demo().into_iter().find(|shape| shape.name == "gpu-a100-1").unwrap();
        let node = shape.node("172.18.0.1", Timestamp::UNIX_EPOCH);
        insta::assert_yaml_snapshot!(node);
    }
}
