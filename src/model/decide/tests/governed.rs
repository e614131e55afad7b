//! Worlds with a policy for submissions, or with a Negotiator.

use super::world::World;
use crate::negotiator::Config;
use crate::pool::{Event, GoverningFacts, NegotiatorConfig};
use crate::schedd::policy::understand;

fn facts<C>(name: &str, spec: &str, config: C) -> GoverningFacts<C> {
    GoverningFacts {
        name: name.into(),
        uid: name.into(),
        generation: 1,
        config: Ok(config.into()),
        warnings: None,
        spec: spec.into(),
        recorded: None,
    }
}

/// Puts a SubmitPolicy of this name and text in force.
pub fn submit_by(world: &mut World, name: &str, text: &str) {
    let (config, remarks) = understand(text);
    assert_eq!(remarks, []);
    world.pool.apply(Event::SubmitPolicy(facts(name, text, config.unwrap())), world.now);
}

/// A Negotiator says so.
pub fn negotiate_by(world: &mut World, config: Config) {
    let spec = format!("{config:?}");
    world.sees(Event::Negotiator(facts("n", &spec, NegotiatorConfig::from(config))));
}
