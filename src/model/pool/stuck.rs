//! Pods that the kubelet cannot start, because an image cannot be pulled or a container cannot be created.
//!
//! Kubernetes lets such a pod wait for ever, and its claim would wait with it. HTCondor's starter puts the job on hold.

use std::sync::Arc;
use std::time::Duration;

use super::leaving::HoldReason;
use super::time::Time;

/// How long the kubelet may try. The kubelet tries again after 10 s, then after twice as long each time: five times in this
/// span, so that a registry that is away for a moment holds nobody's jobs.
pub const START_PATIENCE: Duration = Duration::from_mins(5);

/// `HoldReasonCode` `InvalidDockerImage`: a container's image cannot be pulled.
pub const INVALID_DOCKER_IMAGE: i64 = 35;

/// `HoldReasonCode` `FailedToCreateProcess`: a container cannot be created.
pub const FAILED_TO_CREATE_PROCESS: i64 = 6;

/// `HoldReasonCode` `StartdHeldJob`: the slot's `WANT_HOLD` was true.
pub const STARTD_HELD_JOB: i64 = 21;

/// `HoldReasonCode` `JobOutOfResources`: the job went over its memory limit or its disk limit.
pub const JOB_OUT_OF_RESOURCES: i64 = 34;

/// `HoldReasonSubCode` of a job that went over its memory limit.
pub const OUT_OF_MEMORY: i64 = 102;

/// `HoldReasonSubCode` of a job that went over its disk limit.
pub const OUT_OF_DISK: i64 = 104;

/// The longest message of the kubelet that is kept, in bytes. The text comes from registries, and may be long.
const LONGEST: usize = 512;

/// Why a container does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The hold of the proc, if the pod has to be given up.
    pub hold: HoldReason,
    /// Whether trying again cannot help.
    pub hopeless: bool,
}

impl Obstacle {
    /// The obstacle that a waiting container's reason stands for, in the kubelet's words; `None` if the container only
    /// takes its time.
    pub fn of(container: &str, reason: &str, message: &str) -> Option<Self> {
        let (code, hopeless) = match reason {
            "InvalidImageName" => (INVALID_DOCKER_IMAGE, true),
            "ErrImagePull"
            | "ImagePullBackOff"
            | "ErrImageNeverPull"
            | "ImageInspectError"
            | "RegistryUnavailable"
            | "SignatureValidationFailed" => (INVALID_DOCKER_IMAGE, false),
            "CreateContainerConfigError"
            | "CreateContainerError"
            | "PreCreateHookError"
            | "PreStartHookError"
            | "RunContainerError" => (FAILED_TO_CREATE_PROCESS, false),
            _ => return None,
        };
        let said = if message.is_empty() { "the kubelet gives no message" } else { message };
        let mut text = format!("container {container} cannot start: {reason}: {said}");
        text.truncate(text.floor_char_boundary(LONGEST));
        Some(Self { hold: HoldReason { code, subcode: 0, reason: text.into() }, hopeless })
    }
}

/// The state of a pod that has met an obstacle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The obstacle that was seen last.
    pub obstacle: Arc<Obstacle>,
    /// When the operator first saw an obstacle.
    pub since: Time,
    /// Whether the operator has deleted the pod because of the obstacle.
    pub given_up: bool,
}

impl Stuck {
    /// When the operator gives the pod up. With `in_vain`, or if the obstacle is hopeless, the kubelet gets no time to
    /// try again.
    pub fn until(&self, in_vain: bool) -> Time {
        if in_vain || self.obstacle.hopeless { self.since } else { self.since + START_PATIENCE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kubelet_says_is_told_apart() {
        for (reason, code) in [
            ("ErrImagePull", Some((35, false))),
            ("ImagePullBackOff", Some((35, false))),
            ("InvalidImageName", Some((35, true))),
            ("CreateContainerConfigError", Some((6, false))),
            // These reasons mean that the container only takes its time.
            ("ContainerCreating", None),
            ("PodInitializing", None),
            ("", None),
        ] {
            let found = Obstacle::of("main", reason, "it said so");
            assert_eq!(found.as_ref().map(|found| (found.hold.code, found.hopeless)), code, "{reason}");
            let text = format!("container main cannot start: {reason}: it said so");
            assert!(found.is_none_or(|found| *found.hold.reason == text));
        }
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let found = Obstacle::of("main", "ErrImagePull", &"é".repeat(1000)).unwrap();
        assert!((510..=512).contains(&found.hold.reason.len()));
        assert!(Obstacle::of("main", "ErrImagePull", "").unwrap().hold.reason.ends_with("no message"));
    }
}
