//! Warns about parts of the pod template.

use api::HTCJob;
use k8s_openapi::api::core::v1::{Affinity, Container, PodSpec, PodTemplateSpec};
use model::pool::Problem;

use super::{resources, warning};

/// The macros of submit files that stand for a proc's number.
const SUBMIT_MACROS: [&str; 6] =
    ["$(Process)", "$(ProcId)", "$(Cluster)", "$(ClusterId)", "$(Step)", "$(Item)"];

/// Resources of containers that the operator replaces, and macros of submit files in a job without items.
pub(super) fn of_template(job: &HTCJob, template: &PodTemplateSpec) -> Vec<Problem> {
    let mut found = Vec::new();
    let containers = template.spec.iter().flat_map(|spec| &spec.containers);
    for (index, container) in containers.enumerate() {
        let field = |name: &str| format!("spec.template.spec.containers[{index}].{name}");
        if index == 0 {
            found.extend(resources::replaced(container));
            found.extend(resources::other_than_requested(job, template, container));
        }
        let texts = container
            .command
            .iter()
            .map(|texts| ("command", texts))
            .chain(container.args.iter().map(|texts| ("args", texts)));
        for (name, texts) in texts {
            let unset = texts.iter().filter(|_| job.spec.items.is_none());
            found.extend(unset.filter_map(|text| submit_macro(text)).map(|known| {
                let message = format!(
                    "{known} is passed on as it is: it stands for a proc's own value only where spec.items is set, if only to {{}}"
                );
                warning("SubmitMacro", field(name), message)
            }));
        }
    }
    found
}

/// Warnings about fields of a template that only the scheduler of Kubernetes reads, which never sees a proc's pod: the
/// negotiator chooses the node.
pub(super) fn to_scheduler(template: &PodTemplateSpec) -> Vec<Problem> {
    let Some(spec) = &template.spec else { return Vec::new() };
    let affinity = spec.affinity.as_ref();
    let preferred = |affinity: &Affinity| {
        affinity
            .node_affinity
            .as_ref()?
            .preferred_during_scheduling_ignored_during_execution
            .as_ref()
            .map(|_| ())
    };
    let of_pods = "the negotiator chooses the node, and does not look at other pods; leave it out";
    [
        (
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
            affinity.and_then(preferred).is_some(),
            "the negotiator chooses the node; say in spec.rank which nodes are preferred",
        ),
        ("affinity.podAffinity", affinity.is_some_and(|own| own.pod_affinity.is_some()), of_pods),
        ("affinity.podAntiAffinity", affinity.is_some_and(|own| own.pod_anti_affinity.is_some()), of_pods),
        ("topologySpreadConstraints", spec.topology_spread_constraints.is_some(), of_pods),
        ("schedulerName", spec.scheduler_name.is_some(), "the negotiator chooses the node; leave it out"),
    ]
    .into_iter()
    .filter(|(_, said, _)| *said)
    .map(|(field, _, why)| {
        warning("NoScheduler", format!("spec.template.spec.{field}"), format!("has no effect: {why}"))
    })
    .collect()
}

/// Tolerations of taints that only a scheduler looks at. A taint NoExecute ends pods that run: these tolerations act, and so do those
/// without an effect.
pub(super) fn tolerations(template: &PodTemplateSpec) -> Vec<Problem> {
    let tolerations = template.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten()).enumerate();
    let vain = tolerations.filter_map(|(place, toleration)| {
        let effect = toleration.effect.as_deref()?;
        matches!(effect, "NoSchedule" | "PreferNoSchedule").then_some((place, effect))
    });
    vain.map(|(place, effect)| {
        let message = format!(
            "has no effect on taints {effect}: no scheduler looks at the pod, and a node with such a taint takes jobs where its NodePolicy \
             tolerates the taint; ask an admin to add the toleration to spec.tolerations of a NodePolicy"
        );
        warning("NoScheduler", format!("spec.template.spec.tolerations[{place}]"), message)
    })
    .collect()
}

/// Ports of the node that procs take: a node has each port once, and the negotiator does not count ports.
pub(super) fn host_ports(template: &PodTemplateSpec) -> Vec<Problem> {
    let Some(spec) = &template.spec else { return Vec::new() };
    let of_node = spec.host_network == Some(true);
    let ports = containers(spec).flat_map(|(list, index, container)| {
        let ports = container.ports.iter().flatten().enumerate();
        ports.filter_map(move |(place, port)| {
            let taken = port.host_port.filter(|port| *port > 0).or(of_node.then_some(port.container_port))?;
            Some((format!("spec.template.spec.{list}[{index}].ports[{place}]"), taken))
        })
    });
    ports
        .map(|(field, port)| {
            let message = format!(
                "takes port {port} of the node: the negotiator does not count ports, the kubelet refuses another pod with this port, and \
                 the proc is tried again; leave the port out"
            );
            warning("HostPort", field, message)
        })
        .collect()
}

/// Probes that restart a container while its processes are suspended. A pool may have policies that suspend and others, and
/// these change while jobs wait: each such job is warned of.
pub(super) fn probes(template: &PodTemplateSpec) -> Vec<Problem> {
    let Some(spec) = &template.spec else { return Vec::new() };
    let probes = containers(spec).flat_map(|(list, index, container)| {
        let probes =
            [("livenessProbe", &container.liveness_probe), ("startupProbe", &container.startup_probe)];
        let probes = probes.into_iter().filter(|(_, probe)| probe.is_some());
        probes.map(move |(name, _)| format!("spec.template.spec.{list}[{index}].{name}"))
    });
    let why = "a suspended proc answers no probe, and the kubelet then restarts the container; leave it out where WANT_SUSPEND may \
               be true";
    probes.map(|field| warning("ProbeWhileSuspended", field, why)).collect()
}

/// The containers of a pod, each with the list in which it stands and its place there.
pub(super) fn containers(spec: &PodSpec) -> impl Iterator<Item = (&'static str, usize, &Container)> {
    let all = [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())];
    all.into_iter().flat_map(|(list, containers)| {
        containers.into_iter().flatten().enumerate().map(move |(index, container)| (list, index, container))
    })
}

fn submit_macro(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    SUBMIT_MACROS.into_iter().find(|known| text.contains(&known.to_ascii_lowercase()))
}
