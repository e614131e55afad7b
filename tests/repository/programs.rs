//! The programs in `examples/programs` write what their users are told.

// A test states what it expects by panicking.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// The output of dcgm-exporter about two GPUs, and about a GPU's instance without a uuid.
const METRICS: &str = r#"# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-6a96bd13-70bc",device="nvidia0",modelName="A100",Hostname="n1"} 37
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-77777777-0000",device="nvidia1",modelName="A100",Hostname="n1"} 0
DCGM_FI_DEV_GPU_UTIL{gpu="2"} 99
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-6a96bd13-70bc",device="nvidia0",modelName="A100",Hostname="n1"} 20480
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-6a96bd13-70bc"} 55.123
"#;

/// The shell that the program's first line names, as far as the program needs it.
const BUSYBOX: &str = r#"#!/bin/sh
case $1 in
sh) shift; exec /bin/sh "$@" ;;
wget) [ "$7" = http://exporter/metrics ] && cat "$METRICS" ;;
*) exec "$@" ;;
esac
"#;

/// Writes a program that can be executed.
fn executable(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The program is started as the agent starts it, by its first line, with the job's name as argument 0, so that the test sees the same
/// `$1` as the program on a node.
#[test]
fn dcgm_monitor_makes_samples_of_what_the_exporter_tells() {
    let directory = tempfile::tempdir().unwrap();
    let busybox = directory.path().join("busybox");
    executable(&busybox, BUSYBOX);
    let metrics = directory.path().join("metrics");
    std::fs::write(&metrics, METRICS).unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/programs/dcgm-monitor");
    let text = std::fs::read_to_string(shipped).unwrap();
    let installed = "/usr/local/libexec/slotwright/lib/busybox";
    assert!(text.starts_with(&format!("#!{installed} sh\n")), "{text}");
    let program = directory.path().join("dcgm-monitor");
    executable(&program, &text.replacen(installed, &busybox.to_string_lossy(), 1));
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new(program)
        .arg0("gpus")
        .args(["http://exporter/metrics", "10"])
        .envs([("PATH", path.as_str()), ("METRICS", &metrics.to_string_lossy())])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "SlotMergeConstraint = StringListMember(\"GPU-6a96bd13-70bc\", AssignedGPUs)\nUptimeGPUsSeconds = 3.700\nUptimeGPUsMemoryPeakUsage = 20480\n- GPU-6a96bd13-70bc\n",
        "SlotMergeConstraint = StringListMember(\"GPU-77777777-0000\", AssignedGPUs)\nUptimeGPUsSeconds = 0.000\n- GPU-77777777-0000\n",
    ] {
        assert!(text.contains(expected), "{expected}is not in\n{text}");
    }
    assert_eq!(text.matches("SlotMergeConstraint").count(), 2, "{text}");
}
