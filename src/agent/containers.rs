//! The containers of a pod, as the pod's status tells of them. Pure.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::IgnoredAny;

use answers::{Decode, Parts};
use k8s_openapi::api::core::v1::Pod;

/// The fewest characters of a container's id. Container runtimes make ids of 64.
const MIN_ID: usize = 12;
/// The most characters of a container's id.
const MAX_ID: usize = 128;
/// The most containers of a pod that the agent keeps. No kubelet runs nearly as many.
const MAX_CONTAINERS: usize = 256;

/// The containers of a pod whose programs run.
///
/// A container's cgroup is there before its program: the container runtime puts a process of its own into the cgroup, and sets the
/// container up by it. If that process is frozen, the runtime hangs. Only the pod's status tells when the program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Containers {
    running: BTreeSet<Box<str>>,
    /// Whether a container waits to be started.
    waits: bool,
}

impl Containers {
    /// Reads the status of a pod.
    ///
    /// # Errors
    /// When the text has not the form of a status.
    pub(crate) fn read(status: &str) -> Result<Self, serde_json::Error> {
        let status: Option<Status> = serde_json::from_str(status)?;
        let Status { init, containers, ephemeral } = status.unwrap_or_default();
        let mut read = Self::default();
        for container in [init, containers, ephemeral].into_iter().flatten().flatten() {
            let State { running, waiting } = container.state.unwrap_or_default();
            read.waits |= waiting.is_some();
            let id = container.id.as_deref().and_then(id).filter(|_| running.is_some());
            read.running.extend(id.filter(|_| read.running.len() < MAX_CONTAINERS));
        }
        Ok(read)
    }

    /// Whether this is the name of the cgroup of a container whose program runs: the container's id, or a systemd scope such as
    /// `cri-containerd-ID.scope`.
    pub(crate) fn runs(&self, cgroup: &str) -> bool {
        let name = cgroup
            .strip_suffix(".scope")
            .map_or(cgroup, |scope| scope.rsplit_once('-').map_or(scope, |(_, id)| id));
        self.running.contains(name)
    }

    /// Whether the programs of some containers run, and no container waits to be started.
    pub(crate) fn are_started(&self) -> bool {
        self.any_runs() && !self.waits
    }

    /// Whether the program of some container runs.
    pub(crate) fn any_runs(&self) -> bool {
        !self.running.is_empty()
    }

    /// Containers with these ids that run.
    #[cfg(test)]
    pub(crate) fn running<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        Self { running: ids.into_iter().map(Box::from).collect(), waits: false }
    }

    /// The same, and a container that waits to be started.
    #[cfg(test)]
    pub(crate) fn and_one_that_waits(self) -> Self {
        Self { waits: true, ..self }
    }
}

impl Decode for Containers {
    type Of = Pod;

    fn decode(parts: &Parts<'_>) -> Result<Self, serde_json::Error> {
        Self::read(parts.text("status"))
    }
}

/// The id in `containerd://ID`; none if it cannot be the name of a cgroup.
fn id(text: &str) -> Option<Box<str>> {
    let id = text.rsplit_once("://").map_or(text, |(_, id)| id);
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (plain && (MIN_ID..=MAX_ID).contains(&id.len())).then(|| id.into())
}

/// The part of a pod's status that the agent reads.
#[derive(Default, Deserialize)]
struct Status {
    #[serde(rename = "initContainerStatuses")]
    init: Option<Vec<ContainerStatus>>,
    #[serde(rename = "containerStatuses")]
    containers: Option<Vec<ContainerStatus>>,
    #[serde(rename = "ephemeralContainerStatuses")]
    ephemeral: Option<Vec<ContainerStatus>>,
}

#[derive(Deserialize)]
struct ContainerStatus {
    #[serde(rename = "containerID")]
    id: Option<String>,
    state: Option<State>,
}

#[derive(Default, Deserialize)]
struct State {
    running: Option<IgnoredAny>,
    waiting: Option<IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const FIRST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const SECOND: &str = "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn container(id: &str, state: &str) -> Value {
        json!({"name": "c", "containerID": format!("containerd://{id}"), "state": {state: {"startedAt": "2026-01-01T00:00:00Z"}}})
    }

    #[test]
    fn containers_run_once_the_status_says_so() {
        let waits = json!({"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}});
        let init = |state| json!([container(FIRST, state)]);
        let cases = [
            (Value::Null, Containers::default()),
            (json!({}), Containers::default()),
            (json!({"containerStatuses": null}), Containers::default()),
            (json!({"containerStatuses": [waits]}), Containers::default().and_one_that_waits()),
            (
                json!({"initContainerStatuses": init("running"), "containerStatuses": [waits]}),
                Containers::running([FIRST]).and_one_that_waits(),
            ),
            (
                json!({"initContainerStatuses": init("terminated"), "containerStatuses": [waits]}),
                Containers::default().and_one_that_waits(),
            ),
            (
                json!({"initContainerStatuses": init("terminated"), "containerStatuses": [container(SECOND, "running")]}),
                Containers::running([SECOND]),
            ),
            (
                json!({"containerStatuses": init("running"), "ephemeralContainerStatuses": [container(SECOND, "running")]}),
                Containers::running([FIRST, SECOND]),
            ),
            (json!({"containerStatuses": [container("..", "running")]}), Containers::default()),
            (json!({"containerStatuses": [container("", "running")]}), Containers::default()),
        ];
        for (status, expected) in cases {
            assert_eq!(Containers::read(&status.to_string()).unwrap(), expected, "{status}");
        }
        assert!(Containers::read("{\"containerStatuses\": 7}").is_err());
    }

    #[test]
    fn cgroups_are_those_of_containers_that_run_under_every_driver() {
        let containers = Containers::running([FIRST]);
        for (name, runs) in [
            (FIRST.to_owned(), true),
            (format!("cri-containerd-{FIRST}.scope"), true),
            (format!("crio-{FIRST}.scope"), true),
            (format!("docker-{FIRST}.scope"), true),
            (SECOND.to_owned(), false),
            (format!("cri-containerd-{SECOND}.scope"), false),
            (format!("{FIRST}.slice"), false),
            (String::new(), false),
        ] {
            assert_eq!(containers.runs(&name), runs, "{name}");
        }
    }
}
