//! Warns about resources of the main container that the operator replaces by what the slot holds.

use api::HTCJob;
use k8s_openapi::api::core::v1::{Container, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use model::pool::{GPUS, Problem, classad_name};

use super::super::template::COMPUTE;
use super::template::containers;
use super::warning;
use crate::convert::ceil_units;

/// CPUs, memory and disk that the main container asks for itself.
pub(super) fn replaced(main: &Container) -> Option<Problem> {
    let resources = main.resources.as_ref()?;
    let lists = [("requests", &resources.requests), ("limits", &resources.limits)];
    let of_list = lists.into_iter().filter_map(|(list, amounts)| {
        let names: Vec<&str> =
            amounts.iter().flat_map(|amounts| amounts.keys().map(String::as_str)).collect();
        let names: Vec<&str> = COMPUTE.into_iter().filter(|name| names.contains(name)).collect();
        (!names.is_empty()).then_some((list, names))
    });
    let of_list: Vec<(&str, Vec<&str>)> = of_list.collect();
    let is = match of_list.as_slice() {
        [] => return None,
        [(_, names)] if names.len() == 1 => "is",
        _ => "are",
    };
    let all = of_list.iter().map(|(list, names)| format!("the {} of {list}", names.join(" and ")));
    let message = format!(
        "{} {is} replaced: the main container gets what its slot holds; say it in spec.requests",
        all.collect::<Vec<_>>().join(" and ")
    );
    let field = "spec.template.spec.containers[0].resources".to_owned();
    Some(warning("ReplacedResources", field, message))
}

/// Extended resources of which the main container asks for another amount than the job's request leaves to it. Resources that the job does
/// not request are refused, and an amount of 0 is what a container has of a resource that no slot of the job gives.
pub(super) fn other_than_requested(
    job: &HTCJob,
    template: &PodTemplateSpec,
    main: &Container,
) -> Vec<Problem> {
    let mut found = Vec::new();
    for list in ["limits", "requests"] {
        for (name, amount) in amounts(main, list).filter(|(name, _)| name.contains('/')) {
            let (Ok(asked), Some((field, requested))) = (ceil_units(amount, 1), requested(job, name)) else {
                continue;
            };
            let given = requested - beside(template, name);
            let is_told = list == "requests" && amounts(main, "limits").any(|(limited, _)| limited == name);
            if asked == 0 || asked == given || is_told {
                continue;
            }
            let message = format!(
                "is {asked}, and the main container gets {given}: a pod has what its slot holds; say in {field} how many each proc needs"
            );
            let field = format!("spec.template.spec.containers[0].resources.{list}[{name}]");
            found.push(warning("ReplacedResources", field, message));
        }
    }
    found
}

/// How much of a resource of Kubernetes the job requests, if any, and the field that says so.
fn requested(job: &HTCJob, name: &str) -> Option<(String, i64)> {
    let requests = &job.spec.requests;
    let own = requests.resources.get(name).copied().unwrap_or(0);
    let gpus = if classad_name(name) == GPUS { requests.gpus } else { 0 };
    match (own, gpus) {
        (1.., ..=0) => Some((format!("spec.requests.resources[{name}]"), own)),
        (..=0, 1..) => Some(("spec.requests.gpus".to_owned(), gpus)),
        _ => None,
    }
}

/// How much of a resource the containers and sidecars beside the main container take, and the pod's overhead.
fn beside(template: &PodTemplateSpec, name: &str) -> i64 {
    let Some(spec) = &template.spec else { return 0 };
    let is_beside = |list: &str, index: usize, container: &Container| match list {
        "containers" => index > 0,
        _ => container.restart_policy.as_deref() == Some("Always"),
    };
    let others = containers(spec).filter(|(list, index, container)| is_beside(list, *index, container));
    let taken = others.filter_map(|(_, _, container)| {
        let said = |list| amounts(container, list).find(|(own, _)| *own == name).map(|(_, amount)| amount);
        ceil_units(said("limits").or_else(|| said("requests"))?, 1).ok()
    });
    let overhead = spec.overhead.as_ref().and_then(|overhead| ceil_units(overhead.get(name)?, 1).ok());
    taken.chain(overhead).fold(0, i64::saturating_add)
}

/// The amounts in a list of a container's resources.
fn amounts<'a>(container: &'a Container, list: &str) -> impl Iterator<Item = (&'a str, &'a Quantity)> {
    let resources = container.resources.as_ref();
    let amounts = resources.and_then(|resources| match list {
        "limits" => resources.limits.as_ref(),
        _ => resources.requests.as_ref(),
    });
    amounts.into_iter().flatten().map(|(name, amount)| (name.as_str(), amount))
}
