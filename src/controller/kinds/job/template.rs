//! Checks of a job's pod template.

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};

use crate::render;
use model::pool::{GPUS, Problem, Request, Resources, classad_name};

/// The problem of a template without a spec.
pub(in crate::kinds) const NO_SPEC: &str = "is missing; give it at least one container";
/// The problem of a template without containers.
pub(in crate::kinds) const NO_CONTAINERS: &str = "is empty; give it at least one container";

/// The resources of a container that follow from the job's CPUs, memory and disk.
pub(super) const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// An amount of a resource that no template exceeds.
const PLENTY: i64 = 1 << 32;

/// Finds what no pod can have, or what the operator alone decides.
pub(super) fn check_template(template: &PodTemplateSpec, request: &Request, problems: &mut Vec<Problem>) {
    let mut problem = |field: &str, message: &str| {
        problems.push(Problem {
            reason: "InvalidTemplate",
            field: format!("spec.template.spec{field}"),
            message: message.to_owned(),
        });
    };
    let Some(spec) = &template.spec else {
        problem("", NO_SPEC);
        return;
    };
    if spec.containers.is_empty() {
        problem(".containers", NO_CONTAINERS);
    }
    if let Some((second, first, name)) = name_used_twice(spec) {
        problem(
            &format!(".{second}.name"),
            &format!("{name} is the name of {first}, too; each container needs its own"),
        );
    }
    if spec.restart_policy.as_deref().is_some_and(|policy| policy != "Never") {
        problem(
            ".restartPolicy",
            "must be Never or left out: whether a proc runs again is the operator's decision",
        );
    }
    let restarts = |containers: &[Container]| {
        containers
            .iter()
            .position(|container| container.restart_policy.as_deref().is_some_and(|policy| policy != "Never"))
    };
    if let Some(place) = restarts(&spec.containers) {
        problem(
            &format!(".containers[{place}].restartPolicy"),
            "must be Never or left out: the program would run again after its proc is done; max_retries and OnExitRemove say when a \
             proc runs again",
        );
    }
    if spec.node_name.is_some() {
        problem(
            ".nodeName",
            "is set by the operator; use spec.requirements, for example TARGET.Machine == \"node7\"",
        );
    }
    if spec.resources.is_some() {
        problem(".resources", "is not honored: a pod has what its slot holds; say it in spec.requests");
    }
    if spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty()) {
        problem(
            ".resourceClaims",
            "is not honored: the scheduler would have to allocate them, and the operator places the pod itself",
        );
    }
    if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        problem(
            ".schedulingGates",
            "is not honored: a pod that is on a node cannot wait for its scheduling; spec.hold holds the job until you release it",
        );
    }
    if let Some((list, name, amount, wanted)) = not_requested(spec, request) {
        problem(
            &format!(".containers[0].resources.{list}[{name}]"),
            &format!(
                "is {amount}, but spec.requests asks for none: a pod has what its slot holds; set {wanted}"
            ),
        );
    }
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    if affinity.is_some_and(|affinity| affinity.required_during_scheduling_ignored_during_execution.is_some())
    {
        problem(
            ".affinity.nodeAffinity",
            "is not honored; say it in spec.requirements, for example TARGET.NodeLabels.'disktype' == \"ssd\"",
        );
    }
    // The smallest slot that the job can get. An amount that the job does not give comes from defaults, which are not
    // known here: it counts as [`PLENTY`]. Nodes differ in the resource by which they count GPUs: the slot has whichever
    // the template names.
    let given = |unsaid: bool, amount: i64| if unsaid { PLENTY } else { amount };
    let mut slot = Resources {
        cpus: given(request.unsaid.cpus, request.cpus),
        memory_mib: given(request.unsaid.memory, request.memory_mib),
        disk_kib: given(request.unsaid.disk, request.disk_kib),
        extended: request.extended.clone(),
        ..Resources::default()
    };
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let asked = containers.filter_map(|container| container.resources.as_ref()?.limits.as_ref());
    for name in asked.flat_map(|limits| limits.keys()).filter(|name| classad_name(name) == GPUS) {
        slot.extended.insert(name.as_str().into(), request.gpus);
    }
    if !spec.containers.is_empty()
        && slot.cpus > 0
        && slot.memory_mib > 0
        && slot.disk_kib >= 0
        && let Err(error) = render::check(template, &slot)
    {
        problem(".containers", &error.to_string());
    }
}

/// The first container whose name an earlier container has: both by their places, and the name.
fn name_used_twice(spec: &PodSpec) -> Option<(String, String, &str)> {
    let lists = [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())];
    let mut seen: Vec<(String, &str)> = Vec::new();
    for (list, containers) in lists {
        for (index, container) in containers.into_iter().flatten().enumerate() {
            let (place, name) = (format!("{list}[{index}]"), container.name.as_str());
            if let Some((first, _)) = seen.iter().find(|(_, known)| *known == name) {
                return Some((place, first.clone(), name));
            }
            seen.push((place, name));
        }
    }
    None
}

/// An extended resource that the main container asks for and the job does not: the list in which it stands, its name, its amount, and
/// the field of the job to set. The pod would run without it.
fn not_requested<'a>(
    spec: &'a PodSpec,
    request: &Request,
) -> Option<(&'static str, &'a str, &'a str, String)> {
    let resources = spec.containers.first()?.resources.as_ref()?;
    let lists = [("limits", &resources.limits), ("requests", &resources.requests)];
    let all = lists.into_iter().flat_map(|(list, amounts)| {
        amounts.iter().flatten().map(move |(name, amount)| (list, name.as_str(), amount.0.as_str()))
    });
    let missing = |(list, name, amount)| {
        if COMPUTE.contains(&name)
            || amount == "0"
            || request.extended.get(name).is_some_and(|asked| *asked > 0)
        {
            return None;
        }
        let field = if classad_name(name) != GPUS {
            format!("spec.requests.resources[{name}]")
        } else if request.gpus == 0 {
            "spec.requests.gpus".to_owned()
        } else {
            return None;
        };
        Some((list, name, amount, field))
    };
    all.into_iter().find_map(missing)
}
