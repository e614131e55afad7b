//! The script of a hollow pod, read from its annotations: how long the pod runs, how it ends, and how it reacts to
//! TERM.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;

/// Annotation: how long the containers run before they exit on their own, like `3s`, `250ms` or `1h30m`.
///
/// Without it a pod of `restartPolicy: Never` runs for [`DEFAULT_RUNTIME`], and any other pod until it is deleted.
pub const RUNTIME: &str = "hollow.slotwright.dev/runtime";
/// Annotation: the exit code, 0 to 255 (default 0). With 0 the pod ends as Succeeded, with any other as Failed.
pub const EXIT_CODE: &str = "hollow.slotwright.dev/exit-code";
/// Annotation: how long the pod stays Pending after its admission, as if the kubelet pulled an image (default 0).
pub const START_DELAY: &str = "hollow.slotwright.dev/start-delay";
/// Annotation: the containers never start, and wait with this reason and message, like `ErrImagePull: no such image`.
///
/// With the reason [`NO_COMMAND`] they do not wait: a command that cannot be run ends its container with exit code 128.
pub const START_ERROR: &str = "hollow.slotwright.dev/start-error";
/// Annotation: with `"true"` the containers ignore TERM. KILL ends them when the grace period is over, with exit code
/// 137.
pub const IGNORE_TERM: &str = "hollow.slotwright.dev/ignore-term";
/// Annotation: with `"true"` KILL has no effect, as on a process that hangs in the kernel. Only the node's agent can
/// end such a pod.
pub const IGNORE_KILL: &str = "hollow.slotwright.dev/ignore-kill";
/// Annotation: how long the containers take to stop after TERM (default 0).
pub const TERM_DELAY: &str = "hollow.slotwright.dev/term-delay";
/// Annotation: the exit code after TERM (default 143, which is 128 + SIGTERM). With 0 the pod ends like a job that
/// has saved a checkpoint.
pub const TERM_EXIT_CODE: &str = "hollow.slotwright.dev/term-exit-code";
/// Annotation: with `"true"` the main container is killed for its use of memory when its runtime is over: exit code 137,
/// reason `OOMKilled`.
pub const OUT_OF_MEMORY: &str = "hollow.slotwright.dev/out-of-memory";
/// Annotation: the kubelet evicts the pod with this message when its runtime is over, as it does when a pod uses more disk
/// than its limit.
pub const EVICTED: &str = "hollow.slotwright.dev/evicted";
/// Annotation: the exit code of the first init container. With any other than 0 the other containers never start, and the
/// pod fails.
pub const INIT_EXIT_CODE: &str = "hollow.slotwright.dev/init-exit-code";
/// Annotation: how long the containers after the first one run; without it, as long as the first one. They obey TERM at
/// once.
pub const OTHERS_RUNTIME: &str = "hollow.slotwright.dev/others-runtime";
/// Annotation: how long native sidecars (init containers with `restartPolicy: Always`) take to stop after all other
/// containers have ended (default 0).
pub const SIDECAR_DELAY: &str = "hollow.slotwright.dev/sidecar-delay";
/// Annotation that the kubelet writes: the device ids of the pod, as JSON `{"nvidia.com/gpu": ["GPU-..."]}`.
pub const DEVICES: &str = "hollow.slotwright.dev/devices";

/// How long a pod of `restartPolicy: Never` runs if it has no annotation [`RUNTIME`].
pub const DEFAULT_RUNTIME: Duration = Duration::from_secs(1);
/// The reason of a container whose command cannot be run, as containerd and runc report it.
pub const NO_COMMAND: &str = "StartError";

/// An annotation that cannot be read. The kubelet rejects its pod with this error as the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {key}: {value:?} is not {expected}")]
pub struct ScriptError {
    /// The annotation.
    pub key: &'static str,
    /// The annotation's value.
    pub value: String,
    /// The kind of value that the annotation should have.
    pub expected: &'static str,
}

/// Why containers do not start, as the kubelet reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError {
    /// One word, like `ErrImagePull`.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// The behavior of one pod's containers. All containers of the pod start together. Those after the first one exit with
/// it, unless the script says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// See [`RUNTIME`]; `None` if the containers run until somebody deletes the pod.
    pub runtime: Option<Duration>,
    /// See [`EXIT_CODE`].
    pub exit_code: i32,
    /// See [`START_DELAY`].
    pub start_delay: Duration,
    /// See [`START_ERROR`].
    pub start_error: Option<StartError>,
    /// See [`IGNORE_TERM`].
    pub ignore_term: bool,
    /// See [`IGNORE_KILL`].
    pub ignore_kill: bool,
    /// See [`TERM_DELAY`].
    pub term_delay: Duration,
    /// See [`TERM_EXIT_CODE`].
    pub term_exit_code: i32,
    /// See [`OUT_OF_MEMORY`].
    pub out_of_memory: bool,
    /// See [`EVICTED`].
    pub evicted: Option<String>,
    /// See [`INIT_EXIT_CODE`].
    pub init_exit_code: i32,
    /// See [`OTHERS_RUNTIME`].
    pub others_runtime: Option<Duration>,
    /// See [`SIDECAR_DELAY`].
    pub sidecar_delay: Duration,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            runtime: Some(DEFAULT_RUNTIME),
            exit_code: 0,
            start_delay: Duration::ZERO,
            start_error: None,
            ignore_term: false,
            ignore_kill: false,
            term_delay: Duration::ZERO,
            term_exit_code: 143,
            out_of_memory: false,
            evicted: None,
            init_exit_code: 0,
            others_runtime: None,
            sidecar_delay: Duration::ZERO,
        }
    }
}

impl Script {
    /// Reads a pod's annotations. `ends` says whether the restart policy is `Never`, so that the pod ends by itself
    /// even without an annotation.
    pub fn parse(annotations: &BTreeMap<String, String>, ends: bool) -> Result<Self, ScriptError> {
        let defaults = Self::default();
        let runtime = duration(annotations, RUNTIME)?;
        Ok(Self {
            runtime: runtime.or(if ends { defaults.runtime } else { None }),
            exit_code: exit_code(annotations, EXIT_CODE)?.unwrap_or(defaults.exit_code),
            start_delay: duration(annotations, START_DELAY)?.unwrap_or(defaults.start_delay),
            start_error: start_error(annotations, START_ERROR)?,
            ignore_term: flag(annotations, IGNORE_TERM)?.unwrap_or(defaults.ignore_term),
            ignore_kill: flag(annotations, IGNORE_KILL)?.unwrap_or(defaults.ignore_kill),
            term_delay: duration(annotations, TERM_DELAY)?.unwrap_or(defaults.term_delay),
            term_exit_code: exit_code(annotations, TERM_EXIT_CODE)?.unwrap_or(defaults.term_exit_code),
            out_of_memory: flag(annotations, OUT_OF_MEMORY)?.unwrap_or(defaults.out_of_memory),
            evicted: annotations.get(EVICTED).cloned(),
            init_exit_code: exit_code(annotations, INIT_EXIT_CODE)?.unwrap_or(defaults.init_exit_code),
            others_runtime: duration(annotations, OTHERS_RUNTIME)?,
            sidecar_delay: duration(annotations, SIDECAR_DELAY)?.unwrap_or(defaults.sidecar_delay),
        })
    }
}

fn read<T>(
    annotations: &BTreeMap<String, String>,
    key: &'static str,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, ScriptError> {
    let Some(value) = annotations.get(key) else { return Ok(None) };
    let refused = || ScriptError { key, value: value.clone(), expected };
    parse(value.trim()).map(Some).ok_or_else(refused)
}

fn duration(
    annotations: &BTreeMap<String, String>,
    key: &'static str,
) -> Result<Option<Duration>, ScriptError> {
    let parse = |text: &str| Duration::try_from(text.parse::<SignedDuration>().ok()?).ok();
    read(annotations, key, "a duration of zero or more with a unit, like 3s, 250ms or 1h30m", parse)
}

fn exit_code(annotations: &BTreeMap<String, String>, key: &'static str) -> Result<Option<i32>, ScriptError> {
    read(annotations, key, "an exit code from 0 to 255", |text| text.parse::<u8>().ok().map(i32::from))
}

fn start_error(
    annotations: &BTreeMap<String, String>,
    key: &'static str,
) -> Result<Option<StartError>, ScriptError> {
    read(annotations, key, "a reason and a message, like ErrImagePull: no such image", |text| {
        let (reason, message) = text.split_once(": ")?;
        let word = !reason.is_empty() && reason.bytes().all(|byte| byte.is_ascii_alphanumeric());
        word.then(|| StartError { reason: reason.to_owned(), message: message.to_owned() })
    })
}

fn flag(annotations: &BTreeMap<String, String>, key: &'static str) -> Result<Option<bool>, ScriptError> {
    read(annotations, key, "true or false", |text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(pairs: &[(&str, &str)], ends: bool) -> Result<Script, ScriptError> {
        let annotations = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Script::parse(&annotations, ends)
    }

    #[test]
    fn without_annotations_a_pod_that_may_end_runs_one_second_and_succeeds() {
        assert_eq!(script(&[], true), Ok(Script::default()));
        assert_eq!(script(&[], false), Ok(Script { runtime: None, ..Script::default() }));
    }

    #[test]
    fn every_annotation_is_read() {
        let all = [
            (RUNTIME, "1m30s"),
            (EXIT_CODE, "3"),
            (START_DELAY, "250ms"),
            (START_ERROR, "ErrImagePull: pull access denied: nowhere"),
            (IGNORE_TERM, "true"),
            (IGNORE_KILL, "true"),
            (TERM_DELAY, " 1.5s "),
            (TERM_EXIT_CODE, "0"),
            (OUT_OF_MEMORY, "true"),
            (EVICTED, "too much disk"),
            (INIT_EXIT_CODE, "9"),
            (OTHERS_RUNTIME, "1h"),
            (SIDECAR_DELAY, "2s"),
        ];
        let expected = Script {
            runtime: Some(Duration::from_secs(90)),
            exit_code: 3,
            start_delay: Duration::from_millis(250),
            start_error: Some(StartError {
                reason: "ErrImagePull".into(),
                message: "pull access denied: nowhere".into(),
            }),
            ignore_term: true,
            ignore_kill: true,
            term_delay: Duration::from_millis(1500),
            term_exit_code: 0,
            out_of_memory: true,
            evicted: Some("too much disk".into()),
            init_exit_code: 9,
            others_runtime: Some(Duration::from_hours(1)),
            sidecar_delay: Duration::from_secs(2),
        };
        assert_eq!(script(&all, false), Ok(expected));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let cases = [
            (RUNTIME, "3"),
            (RUNTIME, "-3s"),
            (RUNTIME, "soon"),
            (EXIT_CODE, "256"),
            (EXIT_CODE, "-1"),
            (IGNORE_TERM, "yes"),
            (START_ERROR, "no such image: nowhere"),
            (START_ERROR, "ErrImagePull"),
        ];
        for (key, value) in cases {
            let error = script(&[(key, value)], true).expect_err(value);
            assert_eq!((error.key, error.value.as_str()), (key, value));
        }
    }
}
