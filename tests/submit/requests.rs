//! Amounts that a submit file requests.

use serde_json::{Value, json};

use crate::manifests::submitted;

const HEAD: &str = "executable = sim.sh\n";

/// Returns the requests of the HTCJob of a program with these lines, and the findings.
fn requested(lines: &str) -> (Value, Vec<String>) {
    let (_, made) = submitted("lines", &format!("{HEAD}{lines}queue\n"));
    let requests = made.jobs.first().map(|job| job["spec"]["requests"].clone());
    (requests.unwrap_or_default(), made.findings.iter().map(ToString::to_string).collect())
}

/// The old default of HTCondor's request_disk is `DiskUsage`, and HTCondor keeps the expression: the request grows with the job.
#[test]
fn a_request_that_reads_what_grows_with_the_job_is_told_of() {
    let default = "so that the HTCJob requests no disk, and gets the pool's default: write an amount, as in request_disk = 2G";
    let more = |resource: &str| format!("; retry_request_{resource} requests more after a run went over");
    for (lines, requests, says) in [
        ("request_disk = DiskUsage\n", json!({}), default.to_owned()),
        ("request_disk = DiskUsage * 3\n", json!({}), default.to_owned()),
        ("request_disk = MY.DiskUsage\n", json!({}), default.to_owned()),
        ("request_disk = DiskUsage * 3\ndisk_usage = 2048\n", json!({"disk": "6Mi"}), more("disk")),
        ("request_disk = max({DiskUsage, 1048576})\n", json!({"disk": "1Gi"}), more("disk")),
        ("request_memory = ImageSize / 1024 + 100\n", json!({"memory": "100Mi"}), more("memory")),
        (
            "request_memory = ResidentSetSize + 100\n+ResidentSetSize = 28\n",
            json!({"memory": "128Mi"}),
            more("memory"),
        ),
    ] {
        let (found, said) = requested(lines);
        assert_eq!(found, requests, "{lines}: {said:?}");
        let [said] = &said[..] else { panic!("{lines}: {said:?}") };
        assert!(said.starts_with("warning: lines.sub, line 2,") && said.ends_with(&says), "{lines}: {said}");
    }
}

#[test]
fn a_request_that_is_too_small_names_what_it_reads() {
    let (_, said) = requested("request_memory = ImageSize/1024\n");
    let expected = "request_memory: ImageSize / 1024 is 0 at submission, where ImageSize is 1, which is less than 1 MiB: write an amount, \
                    1 or more, or leave the line out";
    assert!(said.iter().any(|said| said.starts_with("error: ") && said.ends_with(expected)), "{said:?}");
    let (_, said) = requested("request_memory = 0\n");
    assert!(
        said.len() == 1
            && said[0].ends_with("asks for less than 1 MiB: write 1 or more, or leave the line out"),
        "{said:?}"
    );
}

#[test]
fn a_resource_that_is_likely_a_command_is_told_of() {
    for (name, meant) in [
        ("request_memory_max", "retry_request_memory_max"),
        ("request_memory_increase", "retry_request_memory_increase"),
        ("request_memory_mb", "request_memory"),
        ("request_disk_GB", "request_disk"),
        ("request_disk_max", "retry_request_disk"),
        ("request_memroy", "request_memory"),
    ] {
        let (submission, _) = submitted("lines", &format!("{HEAD}{name} = 3\nrequest_dsik = 1\nqueue\n"));
        let said: Vec<String> = submission.findings.iter().map(ToString::to_string).collect();
        let [said, other] = &said[..] else { panic!("{name}: {said:?}") };
        assert!(
            said.starts_with("warning: lines.sub, line 2,")
                && said.ends_with(&format!("did you mean {meant}?")),
            "{said}"
        );
        assert!(other.ends_with("did you mean request_disk?"), "each is told of: {other}");
    }
    for name in ["request_licenses", "request_memory_bandwidth", "request_fpga"] {
        let (submission, _) = submitted("lines", &format!("{HEAD}request_gpus = 1\n{name} = 3\nqueue\n"));
        assert_eq!(submission.findings, [], "{name}");
    }
}
