//! Warns about pods that the API server would refuse, for as long as the template stays as it is.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec, Toleration, Volume};
use model::pool::Problem;

use super::template::containers;
use super::warning;
use api::names::{is_dns_label, is_label_key, is_label_name};

/// The field of the template in which pods are refused, and why, with what to do.
type Finding = (String, String);

/// The longest name of a container or a volume.
const LONGEST_NAME: usize = 63;

/// Warns of what the API server refuses in every pod of the template. A webhook of the cluster may add an image or a volume to the pods: so
/// the job is not refused. With `replaces`, the references in the template are replaced for each proc, so that a text with a reference is
/// not known.
pub(super) fn by_api_server(template: &PodTemplateSpec, replaces: bool) -> Vec<Problem> {
    let Some(spec) = &template.spec else { return Vec::new() };
    let of_containers = containers(spec).flat_map(|(list, index, container)| {
        let found = [of_container(spec, container), of_switches(container)].concat();
        found.into_iter().map(move |(field, why)| (format!("spec.{list}[{index}].{field}"), why))
    });
    let is_fixed = |text: &str| !(replaces && text.contains("$("));
    let found = of_containers.chain(of_pod(spec, is_fixed)).chain(of_labels(template, is_fixed));
    found
        .map(|(field, why)| {
            let (what, remedy) = why.split_once("; ").unwrap_or((&why, "leave it out"));
            let message = format!("{what}: the API server refuses the pods; {remedy}");
            warning("RefusedPod", format!("spec.template.{field}"), message)
        })
        .collect()
}

fn finding(field: impl Into<String>, why: impl Into<String>) -> Finding {
    (field.into(), why.into())
}

/// A container without an image, a name that no container can have, mounts of volumes that the template does not have, and paths on which
/// two volumes are mounted.
fn of_container(spec: &PodSpec, container: &Container) -> Vec<Finding> {
    let mut found = Vec::new();
    if container.image.as_deref().is_none_or(|image| image.trim().is_empty()) {
        found.push(finding("image", "is missing; name an image, unless a webhook of the cluster adds one"));
    }
    if !is_name(&container.name) {
        found.push(finding("name", no_name(&container.name, "container")));
    }
    let mut paths = BTreeSet::new();
    for (place, mount) in container.volume_mounts.iter().flatten().enumerate() {
        if !spec.volumes.iter().flatten().any(|volume| volume.name == mount.name) {
            let why = format!(
                "the template has no volume {}; add the volume to spec.template.spec.volumes",
                mount.name
            );
            found.push(finding(format!("volumeMounts[{place}].name"), why));
        }
        if !paths.insert(mount.mount_path.as_str()) {
            let why = format!(
                "{} is the path of an earlier mount, too; give each mount its own path",
                mount.mount_path
            );
            found.push(finding(format!("volumeMounts[{place}].mountPath"), why));
        }
    }
    found
}

/// Fields of a container that have a word none of theirs, or that exclude each other.
fn of_switches(container: &Container) -> Vec<Finding> {
    let mut found = Vec::new();
    let pull = container.image_pull_policy.as_deref().unwrap_or_default();
    found.extend(no_word("imagePullPolicy", pull, &["Always", "IfNotPresent", "Never"]));
    for (place, variable) in container.env.iter().flatten().enumerate() {
        let has_value = variable.value.as_deref().is_some_and(|value| !value.is_empty());
        if has_value && variable.value_from.is_some() {
            let why = format!("{} has a value, too; give one of the two", variable.name);
            found.push(finding(format!("env[{place}].valueFrom"), why));
        }
    }
    for (place, from) in container.env_from.iter().flatten().enumerate() {
        if from.config_map_ref.is_some() && from.secret_ref.is_some() {
            let why = "has configMapRef and secretRef; give each an item of its own";
            found.push(finding(format!("envFrom[{place}]"), why));
        }
    }
    let security = container.security_context.as_ref();
    if security
        .is_some_and(|own| own.privileged == Some(true) && own.allow_privilege_escalation == Some(false))
    {
        let why = "is false, and privileged is true; leave one of the two out";
        found.push(finding("securityContext.allowPrivilegeEscalation", why));
    }
    found
}

/// Volumes, tolerations and bounds of the pod as a whole.
fn of_pod(spec: &PodSpec, is_fixed: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    if spec.active_deadline_seconds.is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        let why = "is no number of seconds from 1 to 2147483647; leave it out, or use the attribute AllowedExecuteDuration";
        found.push(finding("activeDeadlineSeconds", why));
    }
    let policies = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    found.extend(no_word("dnsPolicy", spec.dns_policy.as_deref().unwrap_or_default(), &policies));
    let mut names = BTreeSet::new();
    for (place, volume) in spec.volumes.iter().flatten().enumerate() {
        if is_fixed(&volume.name) && !is_name(&volume.name) {
            found.push(finding(format!("volumes[{place}].name"), no_name(&volume.name, "volume")));
        }
        if !names.insert(volume.name.as_str()) {
            let why = format!("{} is the name of an earlier volume, too; give each its own", volume.name);
            found.push(finding(format!("volumes[{place}].name"), why));
        }
        let sources = sources(volume);
        if sources.len() > 1 {
            let why = format!("is {} at once; give each a volume of its own", sources.join(" and "));
            found.push(finding(format!("volumes[{place}]"), why));
        }
    }
    for (place, toleration) in spec.tolerations.iter().flatten().enumerate() {
        let said = of_toleration(toleration);
        found.extend(said.map(|(field, why)| (format!("tolerations[{place}].{field}"), why)));
    }
    found.into_iter().map(|(field, why)| (format!("spec.{field}"), why)).collect()
}

fn of_toleration(toleration: &Toleration) -> impl Iterator<Item = Finding> {
    let operator = toleration.operator.as_deref().unwrap_or_default();
    let effect = toleration.effect.as_deref().unwrap_or_default();
    // Newer servers have Lt and Gt.
    let is_known = matches!(operator, "Lt" | "Gt");
    let of_operator = no_word("operator", operator, &["Equal", "Exists"]).filter(|_| !is_known);
    of_operator.into_iter().chain(no_word("effect", effect, &["NoExecute", "NoSchedule", "PreferNoSchedule"]))
}

/// Keys and values of labels and of the node selector that no label can have.
fn of_labels(template: &PodTemplateSpec, is_fixed: impl Fn(&str) -> bool) -> Vec<Finding> {
    let of_pods = template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    let of_nodes = template.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
    let mut found = Vec::new();
    for (map, labels) in [("metadata.labels", of_pods), ("spec.nodeSelector", of_nodes)] {
        for (key, value) in labels.into_iter().flatten() {
            let field = format!("{map}.{key}");
            if is_fixed(key) && !is_label_key(key) {
                let why = format!(
                    "{key:?} is no key of a label; use at most 63 letters, digits, -, _ and ., if need be with a domain and / before them"
                );
                found.push(finding(&field, why));
            }
            if is_fixed(value) && !value.is_empty() && !is_label_name(value) {
                let why = format!(
                    "{value:?} is no value of a label; use at most 63 letters, digits, -, _ and ., with a letter or digit at either end"
                );
                found.push(finding(&field, why));
            }
        }
    }
    found
}

/// A field that has none of the words that it may have. No word at all is left to the server's default, and a reference to an item may be
/// any word.
fn no_word(field: &str, said: &str, words: &[&str]) -> Option<Finding> {
    let is_wrong = !said.is_empty() && !words.contains(&said) && !said.contains("$(");
    is_wrong.then(|| finding(field, format!("{said:?} is none of its words; use {}", words.join(", "))))
}

/// Whether a container or a volume may have a name.
fn is_name(name: &str) -> bool {
    is_dns_label(name) && name.len() <= LONGEST_NAME
}

fn no_name(name: &str, of: &str) -> String {
    format!("{name:?} is no {of}'s name; use small letters, digits and -, and at most {LONGEST_NAME} of them")
}

/// The fields of a volume that say where its files come from.
fn sources(volume: &Volume) -> Vec<String> {
    let fields = serde_json::to_value(volume).ok();
    let fields = fields.as_ref().and_then(serde_json::Value::as_object).into_iter().flatten();
    fields.map(|(field, _)| field.clone()).filter(|field| field != "name").collect()
}
