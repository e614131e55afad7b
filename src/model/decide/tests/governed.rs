//! Worlds with a SubmitPolicy or a Negotiator.

use super::world::World;
use crate::negotiator::Config;
use crate::pool::{Event, GoverningFacts, NegotiatorConfig, OwnerRule, SubmitConfig};
use crate::schedd::policy::understand;

fn facts<C>(name: &str, spec: &str, config: C) -> GoverningFacts<C> {
    GoverningFacts {
        name: name.into(),
        uid: name.into(),
        generation: 1,
        selection: (),
        config: Ok(config.into()),
        warnings: None,
        spec: spec.into(),
        recorded: None,
    }
}

/// Applies a SubmitPolicy with this name and text.
pub fn submit_by(world: &mut World, name: &str, text: &str) {
    let (config, remarks) = understand(text);
    assert_eq!(remarks, []);
    world.pool.apply(Event::SubmitPolicy(facts(name, text, config.unwrap())), world.now);
}

/// Applies a SubmitPolicy with this name and text that finds the owner of a job by a rule.
pub fn submit_by_rule(world: &mut World, name: &str, text: &str, owner: OwnerRule) {
    let config = SubmitConfig { owner, ..understand(text).0.unwrap() };
    world.pool.apply(Event::SubmitPolicy(facts(name, text, config)), world.now);
}

/// Applies a Negotiator with this configuration.
pub fn negotiate_by(world: &mut World, config: Config) {
    let spec = format!("{config:?}");
    world.sees(Event::Negotiator(facts("n", &spec, NegotiatorConfig::from(config))));
}
