//! Warns about pods that the API server would refuse, for as long as the template stays as it is.

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use model::pool::Problem;

use super::template::containers;
use super::warning;
use api::names::is_dns_label;

/// Warns of a container without an image, of a container's name that is no DNS label, and of a mount of a volume that the template does
/// not have. A webhook of the cluster may add an image or a volume to the pods: so the job is not refused.
pub(super) fn by_api_server(template: &PodTemplateSpec) -> Vec<Problem> {
    let Some(spec) = &template.spec else { return Vec::new() };
    let mut found = Vec::new();
    for (list, index, container) in containers(spec) {
        let field = |name: &str| format!("spec.template.spec.{list}[{index}].{name}");
        if container.image.as_deref().is_none_or(|image| image.trim().is_empty()) {
            let message = "is missing: the API server refuses the pods; name an image, unless a webhook of the cluster adds one";
            found.push(warning("RefusedPod", field("image"), message));
        }
        if !is_dns_label(&container.name) {
            let message = format!(
                "{:?} is no container's name: the API server refuses the pods; use small letters, digits and -, and at most 63 of them",
                container.name
            );
            found.push(warning("RefusedPod", field("name"), message));
        }
        for (place, mount) in container.volume_mounts.iter().flatten().enumerate() {
            if !has_volume(spec, &mount.name) {
                let message = format!(
                    "the template has no volume {}: the API server refuses the pods; add the volume to spec.template.spec.volumes",
                    mount.name
                );
                found.push(warning("RefusedPod", field(&format!("volumeMounts[{place}].name")), message));
            }
        }
    }
    found
}

fn has_volume(spec: &PodSpec, name: &str) -> bool {
    spec.volumes.iter().flatten().any(|volume| volume.name == name)
}
