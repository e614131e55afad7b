//! Pods that the kubelet cannot start: their image cannot be had, or a container cannot be made.
//!
//! Kubernetes lets such a pod wait for ever, and its claim would wait with it. HTCondor's starter puts the job on hold.

use std::sync::Arc;
use std::time::Duration;

use super::leaving::HoldReason;
use super::time::Time;

/// How long the kubelet may try. It tries again and again, 10 s after the first time, then after twice as long each time: five
/// times in this, so that a registry that is away for a moment holds nobody's jobs.
pub const START_PATIENCE: Duration = Duration::from_mins(5);

/// `HoldReasonCode` `InvalidDockerImage`: a container's image cannot be had.
pub const INVALID_DOCKER_IMAGE: i64 = 35;

/// `HoldReasonCode` `FailedToCreateProcess`: a container cannot be made.
pub const FAILED_TO_CREATE_PROCESS: i64 = 6;

/// `HoldReasonCode` `StartdHeldJob`: the slot's `WANT_HOLD` was true.
pub const STARTD_HELD_JOB: i64 = 21;

/// `HoldReasonCode` `JobOutOfResources`: the job went over its memory limit or its disk limit.
pub const JOB_OUT_OF_RESOURCES: i64 = 34;

/// The most of what the kubelet says that is kept, in bytes: it comes from registries.
const LONGEST: usize = 512;

/// Why a container does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// How the proc is held for it.
    pub hold: HoldReason,
    /// Trying again is in vain.
    pub hopeless: bool,
}

impl Obstacle {
    /// What it means that a container waits for this reason, in the kubelet's words; nothing where it only takes its time.
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

/// A pod that has met one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// As it was seen last.
    pub obstacle: Arc<Obstacle>,
    /// Since when, as far as was seen.
    pub since: Time,
    /// Its pod was deleted for it.
    pub given_up: bool,
}

impl Stuck {
    /// When nobody waits for it any longer. Where it is known that this is in vain, that is now.
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
            // They only take their time.
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
