//! The resources of a pod's containers: together exactly what the slot has.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::BadTemplate;
use crate::convert::{amounts, millis, requests_of};
use model::pool::{Capacity, PODS, Resources};

/// Whether [`pod`](super::pod()) can make a template's pods in a slot of this size.
///
/// # Errors
/// When the template has no containers, its other containers and sidecars leave nothing for the first, or an init
/// container takes more than the slot has.
pub fn check(template: &PodTemplateSpec, slot: &Resources) -> Result<(), BadTemplate> {
    let mut spec = template.spec.clone().unwrap_or_default();
    give_resources(&mut spec, slot)?;
    fits(&spec, slot)
}

/// Checks that a pod takes no more than the slot has, by the scheduler's rule, which counts init containers, sidecars and
/// overhead.
pub(super) fn fits(spec: &PodSpec, slot: &Resources) -> Result<(), BadTemplate> {
    let (takes, holds) = (requests_of(spec), Capacity::of(slot));
    let too_much = |resource: &str| Err(BadTemplate::TooMuch { resource: resource.to_owned() });
    if takes.milli_cpu > holds.milli_cpu {
        return too_much("cpu");
    }
    if takes.memory > holds.memory {
        return too_much("memory");
    }
    if takes.disk > holds.disk {
        return too_much("ephemeral-storage");
    }
    let over = takes
        .extended
        .iter()
        .find(|(name, amount)| &***name != PODS && **amount > holds.extended.get(name).copied().unwrap_or(0));
    over.map_or(Ok(()), |(name, _)| too_much(name))
}

/// Sets the first container's requests and limits to what the slot has, less what runs beside the first container: the
/// other containers, the sidecars and the overhead. The limits of all others are set, too, and their requests are their limits.
/// The pod then takes exactly the slot, and cannot use more.
pub(super) fn give_resources(spec: &mut PodSpec, slot: &Resources) -> Result<(), BadTemplate> {
    let mut left = Capacity::of(slot);
    let Some((main, others)) = spec.containers.split_first_mut() else {
        return Err(BadTemplate::NoContainers);
    };
    // Sidecars are init containers that do not end before the others start.
    let sidecars = spec.init_containers.iter_mut().flatten().filter(|init| is_sidecar(init));
    for beside in others.iter_mut().chain(sidecars) {
        left.subtract(&bound(beside)?);
    }
    left.subtract(&amounts(spec.overhead.iter().flatten()));
    let mut amounts = BTreeMap::new();
    let too_little =
        |resource: &str| BadTemplate::NothingLeft { main: main.name.clone(), resource: resource.to_owned() };
    let mut give = |name: &str, amount: i64, least: i64, text: String| {
        if amount < least {
            return Err(too_little(name));
        }
        if amount > 0 {
            amounts.insert(name.to_owned(), Quantity(text));
        }
        Ok(())
    };
    give("cpu", left.milli_cpu, 1, cpu_quantity(left.milli_cpu))?;
    give("memory", left.memory, 1 << 20, format!("{}Mi", left.memory >> 20))?;
    give("ephemeral-storage", left.disk, 0, format!("{}Ki", left.disk >> 10))?;
    for (name, amount) in left.extended.iter().filter(|(name, _)| is_kubelets(name)) {
        give(name, *amount, 0, amount.to_string())?;
    }
    for init in spec.init_containers.iter_mut().flatten().filter(|init| !is_sidecar(init)) {
        // An init container ends before the first container starts, and may use what the first container gets.
        let said = said(init);
        let unsaid = |name: &&String| BOUNDED.contains(&name.as_str()) && !said.contains_key(*name);
        let given: Vec<String> = amounts.keys().filter(unsaid).cloned().collect();
        let given = given.into_iter().filter_map(|name| Some((name.clone(), amounts.get(&name)?.clone())));
        take(init, said.clone().into_iter().chain(given).collect());
    }
    take(main, amounts);
    Ok(())
}

/// The resources of which each container beside the first one has to say how much it takes.
const BOUNDED: [&str; 2] = ["cpu", "memory"];

/// How much a container says that it takes at most: its limits, and its requests where it has no limit.
fn said(container: &Container) -> BTreeMap<String, Quantity> {
    let resources = container.resources.as_ref();
    let limits = resources.and_then(|resources| resources.limits.clone()).unwrap_or_default();
    let mut said = resources.and_then(|resources| resources.requests.clone()).unwrap_or_default();
    said.extend(limits);
    said
}

/// Sets a container's requests and limits to these amounts.
fn take(container: &mut Container, amounts: BTreeMap<String, Quantity>) {
    let resources = container.resources.get_or_insert_default();
    resources.requests = Some(amounts.clone());
    resources.limits = Some(amounts);
}

/// Sets the requests and the limits of a container that runs beside the first one to what the container says, and returns
/// these amounts.
fn bound(container: &mut Container) -> Result<Capacity, BadTemplate> {
    let said = said(container);
    let none = |name: &&str| {
        let amount = said.get(*name).and_then(|amount| millis(amount).ok());
        amount.is_none_or(|amount| amount <= 0)
    };
    if let Some(resource) = BOUNDED.into_iter().find(none) {
        return Err(BadTemplate::Unbounded { container: container.name.clone(), resource });
    }
    let taken = amounts(&said);
    take(container, said);
    Ok(taken)
}

/// Whether an init container is a sidecar (KEP-753), which runs until the pod's other containers have ended.
fn is_sidecar(init: &Container) -> bool {
    init.restart_policy.as_deref() == Some("Always")
}

/// Whether the kubelet knows an extended resource, whose name then has a domain. Only the pool counts what
/// `MACHINE_RESOURCE_<name>` declares: the kubelet would refuse a pod that asked for such a resource. Nor does a pod ask
/// for the resource `pods`, of which every pod takes one.
fn is_kubelets(name: &str) -> bool {
    name.contains('/')
}

/// Thousandths of a CPU as people write them: whole where they are.
fn cpu_quantity(milli: i64) -> String {
    if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") }
}

#[cfg(test)]
mod tests;
