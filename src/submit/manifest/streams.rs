//! The streams of a proc: its output goes into files of a volume that the job names, or into the pod's log; its input comes from
//! a file that travels with the job, or that the container has.

use serde_json::Value;

use super::{Wrong, files, flag, keeps_entry_point, text};
use crate::file::{Cluster, Proc};
use crate::streams::{Mounted, Streams, mounted};
use crate::world::World;

/// Kinds of volumes that end with the pod, or that nobody can write into.
const PASSING: &[&str] =
    &["configMap", "downwardAPI", "emptyDir", "ephemeral", "gitRepo", "image", "projected", "secret"];

/// The streams, their commands and attributes.
const STREAMS: [(&str, &str); 2] = [("output", "Out"), ("error", "Err")];

/// The standard input of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    /// A file of the place of submission if the file travels, or else the path in the container.
    pub(super) file: String,
    /// Whether the file travels with the job.
    pub(super) travels: bool,
}

/// The standard input of a proc's program; `None` if there is none. The file does not travel if a volume of the template has it, or
/// if no file of the job travels: the container is taken to have the file then.
pub(super) fn input(cluster: &Cluster, proc: &Proc, template: Option<&Value>) -> Option<Input> {
    let file = text(cluster, proc, "In").filter(|file| !matches!(file.as_str(), "" | "/dev/null"))?;
    // Without remote_initialdir, a relative name is one in the directory in which the image begins.
    let within = text(cluster, proc, "RemoteIwd");
    let there = within.map_or_else(|| file.clone(), |within| World::full_path(&within, &file));
    let is_there = template.is_some_and(|template| mounted(template, &there).is_some());
    let travels =
        !is_there && !files::stays(cluster, proc) && flag(cluster, proc, "TransferIn") != Some(false);
    Some(Input { file: if travels { file } else { there }, travels })
}

/// Returns the files to which a proc's streams go, and a message for each stream that does not go where the submit
/// file says. An input file that travels is not among the files: its path depends on the scratch directory.
pub(super) fn of(
    cluster: &Cluster,
    proc: &Proc,
    input: Option<&Input>,
    template: Option<&Value>,
) -> Result<(Streams, Vec<Wrong>), Wrong> {
    let mut left = Vec::new();
    let mut paths = [String::new(), String::new()];
    for ((command, attribute), path) in STREAMS.into_iter().zip(&mut paths) {
        let file = text(cluster, proc, attribute).unwrap_or_default();
        if matches!(file.as_str(), "" | "/dev/null") {
            continue;
        }
        let within = text(cluster, proc, "RemoteIwd");
        let full = match &within {
            _ if file.starts_with('/') => Some(World::full_path("", &file)),
            Some(directory) => Some(World::full_path(directory, &file)),
            None => None,
        };
        match full.filter(|full| template.is_some_and(|template| lasts(template, full))) {
            Some(full) => *path = full,
            None => left.push((command.to_owned(), said(command))),
        }
    }
    let [output, error] = paths;
    let there = input.filter(|input| !input.travels).map(|input| input.file.clone());
    let streams = Streams { input: there.unwrap_or_default(), output, error };
    if (streams != Streams::default() || input.is_some()) && proc.program.executable.is_none() {
        let given = [("input", input.is_some()), ("output", !streams.output.is_empty()), ("error", true)];
        let command = given.into_iter().find(|(_, given)| *given).map_or("", |(command, _)| command);
        let message = "the program is the image's own, and its streams cannot be files: give executable";
        return Err((command.to_owned(), message.to_owned()));
    }
    Ok((streams, left))
}

/// A warning about an entry point of the image that does not run, because a shell opens files in its place.
pub(super) fn replaced_entry_point(
    cluster: &Cluster,
    proc: &Proc,
    input: Option<&Input>,
    streams: &Streams,
) -> Option<Wrong> {
    let opened = [
        ("input", input.is_some()),
        ("output", !streams.output.is_empty()),
        ("error", !streams.error.is_empty()),
    ];
    let (command, _) = opened.into_iter().find(|(_, opened)| *opened)?;
    keeps_entry_point(cluster, proc).then(|| {
        let message = "the image's entry point does not run, because a shell opens the file and becomes the program: name the entry \
                       point as the executable, or write docker_override_entrypoint = true if the program needs none";
        (command.to_owned(), message.to_owned())
    })
}

fn said(command: &str) -> String {
    format!(
        "standard {command} is the log of the pod, which kubectl slotwright output prints; a path in a volume of the pod \
         template (--template) is a file that stays"
    )
}

/// Whether a path is in a volume that the template mounts into its first container, and that outlives the pod.
fn lasts(template: &Value, path: &str) -> bool {
    let Some(Mounted { mount, volume }) = mounted(template, path) else { return false };
    if mount.get("readOnly").and_then(Value::as_bool).unwrap_or_default() {
        return false;
    }
    let kinds = volume.as_object().into_iter().flatten().map(|(field, _)| field.as_str());
    let mut kinds = kinds.filter(|field| *field != "name").peekable();
    kinds.peek().is_some() && kinds.all(|kind| !PASSING.contains(&kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_lasts_in_a_volume_that_outlives_the_pod() {
        let template = json!({"spec": {
            "containers": [{"volumeMounts": [
                {"name": "results", "mountPath": "/data/"},
                {"name": "memory", "mountPath": "/data/tmp"},
                {"name": "inputs", "mountPath": "/inputs", "readOnly": true},
                {"name": "nothing", "mountPath": "/nothing"},
            ]}],
            "volumes": [
                {"name": "results", "persistentVolumeClaim": {"claimName": "results"}},
                {"name": "memory", "emptyDir": {"medium": "Memory"}},
                {"name": "inputs", "nfs": {"server": "s", "path": "/"}},
            ],
        }});
        for (path, expected) in [
            ("/data/a.out", true),
            ("/data/run1/a.out", true),
            ("/data", false),
            ("/database/a.out", false),
            ("/data/tmp/a.out", false),
            ("/inputs/a.out", false),
            ("/nothing/a.out", false),
            ("/a.out", false),
        ] {
            assert_eq!(lasts(&template, path), expected, "{path}");
        }
        assert!(!lasts(&json!({}), "/data/a.out"));
    }
}
