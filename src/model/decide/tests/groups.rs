//! GroupQuotas that declare one group: which of them counts.

use std::collections::BTreeMap;

use super::world::World;
use crate::decide::quotas;

fn world() -> World {
    let mut world = World::new();
    world.node("n1", 8, 0);
    world
}

/// Declares a group by an object of this name.
fn declare(world: &mut World, object: &str, group: &str, quota: f64) {
    world.group_with(object, quota, |it| it.name = group.into());
}

/// The quota of the group physics, and the objects that are not accepted, each with the reason.
fn found(world: &World) -> (Option<f64>, BTreeMap<String, String>) {
    let found = quotas(&world.pool, world.now);
    let refused = found.1.iter().map(|(object, why)| (object.to_string(), why.clone()));
    (found.0.of("physics"), refused.collect())
}

/// Somebody who takes another group's name by mistake must not switch that group off.
#[test]
fn the_object_that_has_the_groups_name_counts() {
    let mut world = world();
    declare(&mut world, "physics", "physics", 4.0);
    declare(&mut world, "aaa", "Physics", 1.0);
    world.settle();
    let (quota, refused) = found(&world);
    assert_eq!(quota, Some(4.0));
    let why = "the GroupQuota physics declares the group physics, too, and counts; delete one of the two, or rename its group";
    assert_eq!(refused, [("aaa".to_owned(), why.to_owned())].into());
    assert_eq!(world.pool.group(&"physics".into()).unwrap().object, "physics".into());
}
