//! Checks of a job's pod template.

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};

use super::requests::is_offered;
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

/// A fault in the pod's spec: the path of the field below `spec.template.spec`, and a message.
type Finding = (String, String);

fn finding(field: &str, message: &str) -> Finding {
    (field.to_owned(), message.to_owned())
}

/// Finds what no pod can have, or what the operator alone decides.
pub(super) fn check_template(template: &PodTemplateSpec, request: &Request, problems: &mut Vec<Problem>) {
    let found = match &template.spec {
        None => vec![finding("", NO_SPEC)],
        Some(spec) => [
            of_containers(spec),
            of_restarts(spec),
            not_honored(spec),
            of_unrequested(spec, request).into_iter().collect(),
            of_affinity(spec).into_iter().collect(),
            of_amounts(template, spec, request).into_iter().collect(),
        ]
        .concat(),
    };
    problems.extend(found.into_iter().map(|(field, message)| Problem {
        reason: "InvalidTemplate",
        field: format!("spec.template.spec{field}"),
        message,
    }));
}

/// A list of containers that is empty, and a name that two containers have.
fn of_containers(spec: &PodSpec) -> Vec<Finding> {
    let none = spec.containers.is_empty().then(|| finding(".containers", NO_CONTAINERS));
    let twice = name_used_twice(spec).map(|(second, first, name)| {
        let message = format!("{name} is the name of {first}, too; each container needs its own");
        (format!(".{second}.name"), message)
    });
    none.into_iter().chain(twice).collect()
}

/// Restart policies by which the kubelet, and not the operator, would run the program again.
fn of_restarts(spec: &PodSpec) -> Vec<Finding> {
    let restarts = |policy: &Option<String>| policy.as_deref().is_some_and(|policy| policy != "Never");
    let of_pod = restarts(&spec.restart_policy).then(|| {
        finding(
            ".restartPolicy",
            "must be Never or left out: whether a proc runs again is the operator's decision",
        )
    });
    let place = spec.containers.iter().position(|container| restarts(&container.restart_policy));
    let of_container = place.map(|place| {
        finding(
            &format!(".containers[{place}].restartPolicy"),
            "must be Never or left out: the program would run again after its proc is done; max_retries and OnExitRemove say when a \
             proc runs again",
        )
    });
    of_pod.into_iter().chain(of_container).collect()
}

/// Fields that the operator sets itself, or that only a scheduler could honor.
fn not_honored(spec: &PodSpec) -> Vec<Finding> {
    let has_any = |list: Option<usize>| list.is_some_and(|length| length > 0);
    let fields = [
        (
            spec.node_name.is_some(),
            ".nodeName",
            "is set by the operator; use spec.requirements, for example TARGET.Machine == \"node7\"",
        ),
        (
            spec.resources.is_some(),
            ".resources",
            "is not honored: a pod has what its slot holds; say it in spec.requests",
        ),
        (
            has_any(spec.resource_claims.as_ref().map(Vec::len)),
            ".resourceClaims",
            "is not honored: the scheduler would have to allocate them, and the operator places the pod itself",
        ),
        (
            has_any(spec.scheduling_gates.as_ref().map(Vec::len)),
            ".schedulingGates",
            "is not honored: a pod that is on a node cannot wait for its scheduling; spec.hold holds the job until you release it",
        ),
    ];
    let given = fields.into_iter().filter(|(is_given, ..)| *is_given);
    given.map(|(_, field, message)| finding(field, message)).collect()
}

/// An amount of the template of a resource that the job does not request.
fn of_unrequested(spec: &PodSpec, request: &Request) -> Option<Finding> {
    let (list, name, amount, wanted) = not_requested(spec, request)?;
    let message = if is_offered(name) {
        format!("is {amount}, but spec.requests asks for none: a pod has what its slot holds; set {wanted}")
    } else {
        format!("is {amount}: a pod has what its slot holds, and no slot has this resource; leave it out")
    };
    Some((format!(".containers[0].resources.{list}[{name}]"), message))
}

/// A demand on the node that only a scheduler would honor.
fn of_affinity(spec: &PodSpec) -> Option<Finding> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    Some(finding(
        ".affinity.nodeAffinity",
        "is not honored; say it in spec.requirements, for example TARGET.NodeLabels.'disktype' == \"ssd\"",
    ))
}

/// Amounts of containers that do not fit into the smallest slot that the job can get.
fn of_amounts(template: &PodTemplateSpec, spec: &PodSpec, request: &Request) -> Option<Finding> {
    let slot = smallest_slot(spec, request);
    if spec.containers.is_empty() || slot.cpus <= 0 || slot.memory_mib <= 0 || slot.disk_kib < 0 {
        return None;
    }
    let error = render::check(template, &slot).err()?;
    Some((".containers".to_owned(), error.to_string()))
}

/// The smallest slot that the job can get. An amount that the job does not give comes from defaults, which are not known here: it
/// counts as [`PLENTY`]. Nodes differ in the resource by which they count GPUs: the slot has whichever the template names.
fn smallest_slot(spec: &PodSpec, request: &Request) -> Resources {
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
    slot
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
