//! The repairs that people make when faults have stopped.

use serde_json::json;

use super::super::kubelets::node_key;
use super::super::plan::{Presence, What};
use super::super::store::Key;
use super::super::world::World;
use super::{GROUPS, LIMITS, NODES, OWNERS, attackers, jobs, nodes, perform_one, policies};

/// Stops faults, and repairs what people can repair.
pub fn mend(world: &mut World) {
    world.note(|| "faults stop, and everything is mended".to_owned());
    let at = world.at();
    world.items.clear();
    world.faults.clear();
    world.lags.clear();
    world.hindrances = Default::default();
    attackers::mend(world);
    for life in &mut world.lives {
        life.polls_left = None;
    }
    for (n, name) in (0_u8..).zip(NODES) {
        if let Some(machine) = world.kubelets.machines.get_mut(name) {
            (machine.cut_until, machine.refuses) = (0, 0);
            machine.agent.owner_until = 0;
            // The manager of the agents, such as a DaemonSet, starts them again.
            if machine.agent.presence.is_some_and(|presence| presence != Presence::TakenOff) {
                world.install(name, Presence::Works);
            }
        }
        nodes::node_back(world, name, 8);
        world.edit(&node_key(name), |node| {
            node["spec"] = json!({});
        });
        quietly(world, &What::ForeignGone(n));
        quietly(world, &What::PolicyGone(n));
        quietly(world, &What::DrainGone(n));
    }
    if world.layout != 0 {
        policies::policy(world, "last", 0, 4, world.layout);
    }
    // In the end, groups may compete for all that their quotas leave, since a slot may be wider than any quota.
    for (name, quota) in GROUPS.iter().zip([9, 4, 4, 4]) {
        world.checks.caps.set(format!("group {name}"), f64::INFINITY, at);
        let spec = json!({"quota": quota, "autoregroup": true, "owners": ["*"]});
        world.put(Key::new("groupquotas", "", name), json!({"metadata": {}, "spec": spec}));
    }
    for (n, name) in OWNERS.iter().enumerate() {
        world.checks.caps.set(format!("submitter {name}"), f64::INFINITY, at);
        if world.store.get(&Key::new("submitters", "", name)).is_some() {
            quietly(world, &What::Ceiling(u8::try_from(n).unwrap(), None));
        }
    }
    // The limit becomes what the proc takes that takes the most, so that the others wait for their turn.
    if world.store.get(&Key::new("concurrencylimits", "", LIMITS[0])).is_some() {
        quietly(world, &What::Limit(0, 2));
    }
    // Under a policy with fixed priorities, users could preempt each other for ever.
    if world.store.get(&Key::new("negotiators", "", "default")).is_some() {
        policies::negotiate(world, "PREEMPTION_REQUIREMENTS = False");
    }
    if world.store.get(&Key::new("negotiators", "", "second")).is_some() {
        world.delete(&Key::new("negotiators", "", "second"), None);
    }
    jobs::take_times_off(world);
    let endless = jobs::job_key(4);
    world.delete(&endless, None);
    world.ring();
}

/// Lets this happen, and notes nothing.
fn quietly(world: &mut World, what: &What) {
    let at = world.at();
    perform_one(world, what, at);
}
