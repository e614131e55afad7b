//! Kubelets that end pods in their own time, each a short story.

use super::world::World;

/// A node of one CPU with a job of one proc, and another node of the same size.
fn world(handler: fn(&str) -> Option<u64>) -> World {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.handler = handler;
    world.fate = |_| (600, 0);
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(10);
    assert_eq!(world.pods.len(), 1);
    world
}

/// A program takes its time to end. Nobody else gets its slot before the kubelet has confirmed that nothing of the pod
/// is left.
#[test]
fn a_slot_is_free_once_nothing_of_its_pod_is_left() {
    let handlers: [fn(&str) -> Option<u64>; 4] = [|_| Some(0), |_| Some(1), |_| Some(3), |_| Some(9999)];
    for handler in handlers {
        let mut world = world(handler);
        world.remove("sweep");
        // World::check demands at each second that pods fit on their node, together with what is left of ended pods.
        world.submit("scan", "bob", 1, |_| {});
        world.pass(120);
        let pods: Vec<&str> = world.pods.keys().map(String::as_str).collect();
        assert!(pods.contains(&"scan-0"), "{pods:?}");
        assert_eq!(world.pool.jobs().len(), 1);
    }
}
