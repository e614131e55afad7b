//! Machines: which policy governs one, whether it offers anything, and the state of its partitionable slot.

use super::ad::partitionable_slot_ad;
use super::config;
use super::policy::{Answer, Question};
use super::standing::{Standing, standing};
use crate::classad::Env;
use crate::pool::{
    Activation, Document, Machine, MachineName, NodePolicy, Offer, PolicyName, Pool, Removal, StartdConfig,
    State, Time, Toleration,
};

/// Looks at a machine that changed: policy, offer, state. A machine whose node is gone stays until its claims have ended.
pub fn review_machine(pool: &mut Pool, name: &MachineName, now: Time) {
    let Some(machine) = pool.machines.get(name) else { return };
    let policy = governing(pool, machine);
    let config = policy.as_ref().and_then(|name| pool.policies.get(name)?.config.clone()).unwrap_or_default();
    if let Some(machine) = pool.machines.get_mut(name) {
        config::review(&config, machine);
    }
    let Some(machine) = pool.machines.get(name) else { return };
    let own = pool.startd(machine);
    let offer = offer(pool, machine, policy.as_ref(), now);
    if offer == Offer::Gone {
        evacuate(pool, name);
    }
    let Some(machine) = pool.machines.get_mut(name) else { return };
    if machine.policy != policy {
        pool.stale.extend(machine.policy.iter().chain(&policy).cloned().map(Document::Policy));
        machine.policy = policy;
    }
    let was = machine.state;
    // The node's admin, not a job, decides what happens on a node that offers nothing.
    let owner = offer != Offer::Offered || is_owner(machine, &own, now);
    if let Some((transition, _)) = standing(machine.state, &Standing { owner, ..Standing::default() }) {
        machine.state = transition.to;
        machine.entered_state = now;
    }
    // IS_OWNER may change though nothing happens.
    let polled =
        offer == Offer::Offered && own.policy.is_owner.as_ref().is_some_and(|e| e.as_literal().is_none());
    let again = polled.then(|| now + own.policy.update_interval);
    if was != machine.state || machine.offer != offer {
        pool.stale.insert(Document::PartitionableSlot(name.clone()));
    }
    let newly_offered = was == State::Owner && machine.state != State::Owner;
    // A slot on it may have to let go, or may start what waited.
    let slots = machine.dynamic.iter().map(|dynamic| crate::pool::SlotName {
        machine: name.clone(),
        slot: 1,
        dynamic: Some(*dynamic),
    });
    if machine.offer != offer {
        pool.attention.slots.extend(slots);
        pool.offers += 1;
    }
    machine.offer = offer;
    pool.wake_machine_at(name, again);
    if newly_offered {
        pool.schedule.wanted = true;
    }
    forget_if_gone(pool, name);
}

/// `IS_OWNER`, which knows no job. A constant needs no ad.
fn is_owner(machine: &Machine, config: &StartdConfig, now: Time) -> bool {
    config.policy.is_owner.as_ref().is_some_and(|expr| {
        let value = match expr.as_literal() {
            Some(value) => value.clone(),
            None => expr.eval(Some(&partitionable_slot_ad(machine, config)), None, &Env::at(now.secs())),
        };
        Question::IsOwner.is_met_by(Answer::of(&value))
    })
}

fn evacuate(pool: &mut Pool, name: &MachineName) {
    let from = crate::pool::SlotName { machine: name.clone(), slot: 0, dynamic: None };
    let on_it = pool.slots.range_mut(from..).take_while(|(slot, _)| slot.machine == *name);
    for (slot_name, slot) in on_it {
        if slot.removal.replace(Removal::MachineGone) != Some(Removal::MachineGone)
            && let Activation::Active { deleting, .. } = &mut slot.activation
        {
            // Whoever was asked to end the pod is gone with the node: it is deleted once more, by force.
            *deleting = false;
        }
        pool.attention.slots.insert(slot_name.clone());
    }
}

fn forget_if_gone(pool: &mut Pool, name: &MachineName) {
    let over = pool.machines.get(name).is_some_and(|m| m.offer == Offer::Gone && m.dynamic.is_empty());
    if over && let Some(machine) = pool.forget_machine(name) {
        pool.stale.insert(Document::PartitionableSlot(name.clone()));
        pool.stale.extend(machine.policy.map(Document::Policy));
    }
}

/// The policy that governs a machine: of those that select it the one of the greatest precedence, then the first by name.
fn governing(pool: &Pool, machine: &Machine) -> Option<PolicyName> {
    let mut best: Option<(&PolicyName, &NodePolicy)> = None;
    for (name, policy) in &pool.policies {
        if policy.selector.selects(&machine.facts.labels)
            && best.is_none_or(|(_, b)| policy.precedence > b.precedence)
        {
            best = Some((name, policy));
        }
    }
    best.map(|(name, _)| name.clone())
}

fn offer(pool: &Pool, machine: &Machine, policy: Option<&PolicyName>, now: Time) -> Offer {
    let facts = &machine.facts;
    if machine.offer == Offer::Gone {
        return Offer::Gone;
    }
    if !facts.ready {
        return Offer::NotReady;
    }
    if pool.heartbeats.is_silent(&facts.name, now) {
        return Offer::Silent;
    }
    if facts.cordoned {
        return Offer::Cordoned;
    }
    let policy = policy.and_then(|name| pool.policies.get_key_value(name));
    if let Some((name, policy)) = policy
        && policy.config.is_none()
    {
        return Offer::PolicyNotAccepted(name.clone());
    }
    if let Some((name, _)) = policy
        && let Some(Err(why)) = machine.own_config.as_ref().map(|own| &own.config)
    {
        return Offer::PolicyUnfit(name.clone(), why.clone());
    }
    let tolerations: &[Toleration] =
        policy.and_then(|(_, policy)| policy.config.as_ref()).map_or(&[], |config| &config.tolerations);
    match facts.taints.iter().find(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint)))
    {
        Some(taint) => Offer::Tainted(taint.key.clone()),
        None => Offer::Offered,
    }
}
