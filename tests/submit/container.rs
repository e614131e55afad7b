//! Containers of jobs: the image, the entry point of the image, and the program.

use serde_json::json;
use submit::Options;
use submit::manifest::{self, Manifests, Settings};

use crate::manifests::place;
use crate::travel::{content, made, with_volume};

/// Docker hands the program to the entry point of the image as its first argument.
#[test]
fn the_docker_universe_keeps_the_entry_point_of_the_image() {
    let docker = "universe = docker\ndocker_image = debian\nexecutable = /bin/cat\ntransfer_executable = false\narguments = a b\n";
    let container = docker.replace("universe = docker\ndocker_image = ", "container_image = docker://");
    for (head, more, command, args) in [
        (docker, "", json!(null), json!(["/bin/cat", "a", "b"])),
        (docker, "docker_override_entrypoint = true\n", json!(["/bin/cat"]), json!(["a", "b"])),
        (docker, "+DockerOverrideEntrypoint = true\n", json!(["/bin/cat"]), json!(["a", "b"])),
        (&container, "", json!(["/bin/cat"]), json!(["a", "b"])),
        (&container, "docker_override_entrypoint = false\n", json!(null), json!(["/bin/cat", "a", "b"])),
    ] {
        let submission = place().submit("t", &format!("{head}{more}queue\n"), &Options::default());
        let manifests = manifest::jobs(&submission.cluster.unwrap(), &Settings::default(), &content);
        assert_eq!(manifests.findings, []);
        let container = &manifests.jobs[0]["spec"]["template"]["spec"]["containers"][0];
        assert_eq!((&container["command"], &container["args"]), (&command, &args), "{head}{more}");
    }
    let text = format!("{docker}output = /results/o\nqueue\n");
    let cluster = place().submit("t", &text, &Options::default()).cluster.unwrap();
    let settings = Settings { template: Some(with_volume()), ..Settings::default() };
    let Manifests { jobs, findings, .. } = manifest::jobs(&cluster, &settings, &content);
    assert_eq!(jobs[0]["spec"]["template"]["spec"]["containers"][0]["command"][7], json!("/bin/cat"));
    assert!(
        findings[0].to_string().contains("line 6, column 10: output: the image's entry point does not run"),
        "{findings:?}"
    );
}

/// HTCondor takes an image without a scheme for a file or a directory.
#[test]
fn an_image_without_a_scheme_is_told_of() {
    let said = |image: &str| {
        let text = format!("{image}\nexecutable = /bin/cat\ntransfer_executable = false\nqueue\n");
        let cluster = place().submit("t", &text, &Options::default()).cluster.unwrap();
        let made = manifest::jobs(&cluster, &Settings::default(), &content);
        (made.jobs.len(), made.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    };
    for (image, jobs, expected) in [
        (
            "container_image = ubuntu:22.04",
            1,
            "'ubuntu:22.04' is taken for docker://ubuntu:22.04, and HTCondor takes it for a file",
        ),
        ("container_image = images/ubuntu", 1, "write docker://images/ubuntu"),
        ("container_image = data", 0, "'data' is no image of a registry"),
        ("container_image = https://example.org/x", 0, "is no image of a registry"),
        ("docker_image = ubuntu:22.04", 1, ""),
        ("docker_image = data", 1, ""),
        ("container_image = docker://ubuntu:22.04", 1, ""),
    ] {
        let (made, said) = said(image);
        assert!(
            made == jobs && said.contains(expected) && said.is_empty() == expected.is_empty(),
            "{image}: {said}"
        );
    }
}

/// A kubelet takes no such name, and its pod would wait for ever.
#[test]
fn an_image_that_no_kubelet_can_pull_is_refused() {
    for (image, expected) in [
        (
            "container_image = docker://bad image",
            "container_image: 'docker://bad image' is no name of an image: expected [REGISTRY/]PATH[:TAG][@DIGEST]",
        ),
        (
            "docker_image = Debian:12",
            "docker_image: 'Debian:12' is no name of an image: its path has small letters alone: write docker://debian:12",
        ),
        (
            "container_image = /cvmfs/singularity.opensciencegrid.org/opensciencegrid/osgvo-el9:latest",
            "kubelet pulls docker://NAME alone; write container_image = docker://opensciencegrid/osgvo-el9:latest",
        ),
        (
            "container_image = /cvmfs/unpacked.cern.ch/registry.example.org/foo:latest/",
            "; write container_image = docker://registry.example.org/foo:latest",
        ),
        ("container_image = /cvmfs/x.sif", "a kubelet pulls docker://NAME alone"),
        ("container_image = /images/Some Thing.sif", "a kubelet pulls docker://NAME alone"),
    ] {
        let text = format!("{image}\nexecutable = /bin/cat\ntransfer_executable = false\nqueue\n");
        let cluster = place().submit("t", &text, &Options::default()).cluster.unwrap();
        let Manifests { jobs, findings, .. } = manifest::jobs(&cluster, &Settings::default(), &content);
        let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(jobs.is_empty() && said.len() == 1, "{image}: {said:?}");
        assert!(
            said[0].starts_with("error: t.sub, line 1, column ") && said[0].contains(expected),
            "{said:?}"
        );
        assert!(!expected.ends_with("alone") || said[0].ends_with(expected), "{said:?}");
    }
}

/// condor_submit refuses such programs, too.
#[test]
fn a_program_that_cannot_start_is_refused() {
    for (text, expected) in [
        (
            "executable = dos.sh",
            "'dos.sh' is a script whose lines end in CR LF, as on Windows, so that Linux finds no interpreter",
        ),
        ("executable = empty.sh", "'empty.sh' is an empty file"),
        (
            "executable = sim.sh a  b",
            "'sim.sh a  b' is taken for the name of one file: write executable = sim.sh and arguments = a  b",
        ),
        ("executable = ./sim.sh a", "write executable = ./sim.sh and arguments = a"),
        (
            "executable = python plot.py\ntransfer_executable = false",
            "write executable = python and arguments = plot.py",
        ),
        (
            "executable = \"sim.sh\"",
            "'\"sim.sh\"' has double quotes, which count as a part of the name: write executable = sim.sh",
        ),
    ] {
        let Manifests { jobs, findings, .. } = made(&format!("{text}\nqueue\n"), None);
        let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(jobs.is_empty() && said.len() == 1, "{text}: {said:?}");
        assert!(said[0].starts_with("error: t.sub, line 2, column 14: executable: "), "{said:?}");
        assert!(said[0].contains(expected), "{said:?}");
    }
    for text in ["executable = with blank.sh", "executable = /opt/my program\ntransfer_executable = false"] {
        let Manifests { jobs, findings, .. } = made(&format!("{text}\nqueue\n"), None);
        assert!(jobs.len() == 1 && findings.is_empty(), "{text}: {findings:?}");
    }
}
