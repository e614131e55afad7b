//! The actions of people, nodes and the plan's faults on the world, with a file for each kind of object that they change.

mod attackers;
mod caps;
mod jobs;
mod mending;
mod names;
mod nodes;
mod operators;
mod pods;
mod policies;
mod slots;

pub use attackers::{Garbled, is_garbled, is_unknown};
pub use jobs::release;
pub use mending::mend;
pub use names::name;

use super::plan::What;
use super::world::World;

const NODES: [&str; 3] = ["n0", "n1", "n2"];
const OWNERS: [&str; 2] = ["alice", "bob"];
const GROUPS: [&str; 4] = ["physics", "physics.higgs", "physics.top", "biology"];
const LIMITS: [&str; 2] = ["lic", "other"];

fn node(n: u8) -> &'static str {
    NODES[usize::from(n) % NODES.len()]
}

/// Lets this happen.
pub fn perform(world: &mut World, what: &What) {
    world.coverage.fault(name(what));
    world.note(|| format!("{what:?}"));
    let line = format!("{what:?}");
    world.hash(line.as_bytes());
    let at = world.at();
    perform_one(world, what, at);
    world.ring();
}

fn perform_one(world: &mut World, what: &What, at: u64) {
    let done = operators::perform(world, what, at)
        || nodes::perform(world, what, at)
        || pods::perform(world, what, at)
        || jobs::perform(world, what)
        || slots::perform(world, what)
        || caps::perform(world, what, at)
        || attackers::perform(world, what, at)
        || policies::perform(world, what);
    assert!(done, "nobody does {what:?}");
}
