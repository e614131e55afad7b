//! Reviews machines: which policy governs a machine, into which slots it is divided, whether it offers its resources,
//! and the states of its unclaimed slots.

use super::governing::foremost;
use super::view::Off;
use super::{absence, backfill, config, cron, draining, layout, neighbours, unclaimed};
use crate::pool::{
    Effect, Machine, MachineName, OUT_OF_SERVICE, Offer, Pool, StartdConfig, Time, Toleration,
};

/// Reviews a machine that changed. A machine whose node is gone stays in the pool until its claims and its
/// backfill pods have ended.
pub fn review_machine(pool: &mut Pool, name: &MachineName, now: Time, effects: &mut Vec<Effect>) {
    govern(pool, name);
    let waits = lay_out(pool, name, now);
    let Some(machine) = pool.machines().get(name) else { return };
    let offer = match offer(pool, machine, now) {
        Offer::Offered if waits => Offer::LayoutWaits,
        offer => offer,
    };
    if offer == Offer::Gone || is_out_of_service(pool, machine, now) {
        pool.evacuate(name);
    }
    absence::review(pool, name, now);
    let Some(machine) = pool.machines().get(name) else { return };
    let config = pool.startd(machine);
    pool.edit_machine(name, |machine| machine.utc_offset = config.zone.offset(now));
    draining::review(pool, name, now);
    backfill::adopt(pool, name, &offer, now);
    unclaimed::step(pool, name, &offer, now, effects);
    if draining::complete(pool, name, now) {
        unclaimed::step(pool, name, &offer, now, effects);
    }
    backfill::tend(pool, name, &offer, now, effects);
    let Some(machine) = pool.machines().get(name) else { return };
    let again = if offer == Offer::Offered { unclaimed::again(machine, &config, now) } else { None };
    pool.edit_machine(name, |machine| machine.offer = offer);
    neighbours::look_around(pool, name, now);
    let fills = pool.machines().get(name).and_then(|machine| backfill::again(pool, machine, &config, now));
    let asks = cron::ask(pool, name, &config, now, effects);
    pool.wake_machine_at(
        name,
        [again, fills, asks, config.zone.next_change(now)].into_iter().flatten().min(),
    );
    pool.forget_if_gone(name);
}

/// Puts a machine under the policy that selects it. If the policy's configuration cannot be used on this machine, the
/// configuration in force stays.
fn govern(pool: &mut Pool, name: &MachineName) {
    let Some(machine) = pool.machines().get(name) else { return };
    let mut foremost = foremost(pool.policies(), &machine.facts.labels);
    let policy = foremost.first().cloned();
    if foremost.len() < 2 {
        foremost.clear();
    }
    let config = policy.as_ref().and_then(|name| pool.policies().get(name)?.config.clone());
    let config = config.unwrap_or_else(StartdConfig::unset);
    pool.edit_machine(name, |machine| {
        config::review(&config, machine);
        machine.policy = policy;
        machine.tied = foremost;
        let own = machine.own_config.as_ref().map(|own| own.config.clone());
        match own.unwrap_or(Ok(config)).and_then(|config| layout::fits(machine, &config).map(|()| config)) {
            Ok(config) => {
                layout::declare(machine, &config);
                machine.in_force = Some(config);
                machine.unfit = None;
            }
            Err(why) => machine.unfit = Some(why),
        }
    });
}

/// Divides a machine into slots as its policy says. True if claims on the present slots keep the machine from that.
fn lay_out(pool: &mut Pool, name: &MachineName, now: Time) -> bool {
    let Some(machine) = pool.machines().get(name).filter(|machine| machine.offer != Offer::Gone) else {
        return false;
    };
    let Ok(shares) = layout::shares(machine, &pool.startd(machine)) else { return false };
    pool.lay_out(name, shares, now)
}

/// Whether an admin says, by a taint, that nothing runs on a machine any more. The taint counts only while the kubelet
/// is silent: a taint that was left on a node that is back means nothing, and neither does a taint on a node whose
/// kubelet itself reports that it is not ready.
fn is_out_of_service(pool: &Pool, machine: &Machine, now: Time) -> bool {
    let said = machine.facts.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE);
    let name = &machine.facts.name;
    said && (pool.heartbeats().is_silent(name, now)
        || !(machine.facts.ready || pool.heartbeats().knows(name)))
}

/// Whether a machine is off: its Node was deleted, or an admin says so by the out-of-service taint.
pub fn off(pool: &Pool, machine: &Machine, now: Time) -> Off {
    if is_out_of_service(pool, machine, now) {
        Off::OutOfService
    } else if machine.offer == Offer::Gone {
        Off::NodeGone
    } else {
        Off::No
    }
}

fn offer(pool: &Pool, machine: &Machine, now: Time) -> Offer {
    let facts = &machine.facts;
    if machine.offer == Offer::Gone {
        return Offer::Gone;
    }
    if !facts.ready {
        return Offer::NotReady;
    }
    if pool.heartbeats().is_silent(&facts.name, now) {
        return Offer::Silent;
    }
    if pool.agents().is_silent(&facts.name, now) && pool.fences().promised(&facts.name) {
        return Offer::AgentSilent;
    }
    if facts.cordoned {
        return Offer::Cordoned;
    }
    let policy = machine.policy.as_ref().and_then(|name| pool.policies().get_key_value(name));
    if let Some((name, policy)) = policy
        && policy.config.is_none()
    {
        return Offer::PolicyNotAccepted(name.clone());
    }
    if let (Some((name, _)), Some(why), None) = (policy, &machine.unfit, &machine.in_force) {
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
