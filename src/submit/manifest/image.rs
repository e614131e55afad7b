//! The image of a job's container.

mod reference;

use serde_json::Value;

use super::files::Hold;
use super::{Settings, Wrong, text};
use crate::file::{Cluster, Proc};
use crate::world::World;

/// The image of a proc, or that of the settings.
pub(super) fn of(
    cluster: &Cluster,
    proc: &Proc,
    settings: &Settings,
    template: &Value,
) -> Result<String, Wrong> {
    if let Some(image) = &proc.program.image {
        let name = image.strip_prefix("docker://").unwrap_or(image);
        if is_file(cluster, proc, image) || name.contains("://") {
            return Err(refused(cluster, proc, image));
        }
        return match reference::fault(name) {
            Some(why) => {
                Err((command(cluster, proc).to_owned(), format!("'{image}' is no name of an image: {why}")))
            }
            None => Ok(name.to_owned()),
        };
    }
    let given = template.pointer("/spec/containers/0/image").and_then(Value::as_str).map(str::to_owned);
    given.or_else(|| settings.image.clone()).ok_or_else(|| {
        let message = "a pod needs an image: write container_image = docker://NAME, or set SLOTWRIGHT_IMAGE";
        ("container_image".to_owned(), message.to_owned())
    })
}

/// A warning about a container_image that HTCondor takes for a directory, and a pod for an image of Docker Hub. The error: there is
/// such a file or directory.
pub(super) fn doubt(cluster: &Cluster, proc: &Proc, hold: &mut Hold<'_>) -> Result<Option<Wrong>, Wrong> {
    let Some(image) =
        proc.program.image.as_ref().filter(|image| !image.contains("://") && !is_file(cluster, proc, image))
    else {
        return Ok(None);
    };
    let command = command(cluster, proc);
    if command != "container_image" {
        return Ok(None);
    }
    let directory = text(cluster, proc, "Iwd").unwrap_or_default();
    if hold.has(&World::full_path(&directory, image)) {
        return Err(refused(cluster, proc, image));
    }
    // Such a name is refused anyway.
    if reference::fault(image).is_some() {
        return Ok(None);
    }
    let message = format!(
        "'{image}' is taken for docker://{image}, and HTCondor takes it for a file or a directory: write docker://{image}"
    );
    Ok(Some((command.to_owned(), message)))
}

/// Whether the name says that the image is a file or a directory.
fn is_file(cluster: &Cluster, proc: &Proc, image: &str) -> bool {
    image.ends_with('/') || image.starts_with(['/', '.']) || has(cluster, proc, "WantSIF")
}

fn refused(cluster: &Cluster, proc: &Proc, image: &str) -> Wrong {
    // Images that are unpacked under /cvmfs have their names in a registry behind the repository's.
    let unpacked = image.strip_prefix("/cvmfs/").and_then(|path| path.split_once('/'));
    let unpacked =
        unpacked.map(|(_, name)| name.trim_end_matches('/')).filter(|name| reference::fault(name).is_none());
    let write = unpacked.map(|name| format!("; write {} = docker://{name}", command(cluster, proc)));
    let message = format!(
        "'{image}' is no image of a registry: a kubelet pulls docker://NAME alone{}",
        write.unwrap_or_default()
    );
    (command(cluster, proc).to_owned(), message)
}

/// The command that names the image.
fn command(cluster: &Cluster, proc: &Proc) -> &'static str {
    if has(cluster, proc, "DockerImage") { "docker_image" } else { "container_image" }
}

fn has(cluster: &Cluster, proc: &Proc, attribute: &str) -> bool {
    proc.ad.contains(attribute) || cluster.ad.contains(attribute)
}
