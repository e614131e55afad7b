//! Files that travel with a job, and files that its streams go to.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use submit::manifest::{self, FoundFile, MOST, Manifests, Settings};
use submit::{Cluster, Options};

use crate::manifests::place;

const HEAD: &str = "container_image = docker://debian\n";

/// The files of the place where the jobs are submitted, besides those of the folder `place`.
pub fn content(path: &str) -> FoundFile {
    let file = |bytes: Vec<u8>| FoundFile::File { bytes, is_executable: false };
    match path {
        "/home/ada/raw.bin" => file(vec![0xff, 0, 0x10]),
        "/home/ada/half.bin" | "/home/ada/other-half.bin" | "/home/ada/large/a" | "/home/ada/large/b" => {
            file(vec![0; 600_000])
        }
        "/home/ada/huge.bin" => FoundFile::TooLarge(MOST + 1),
        "/home/ada/large" | "/home/ada/other/table.csv" => {
            FoundFile::Directory(vec!["b".to_owned(), "a".to_owned()])
        }
        "/home/ada/many" => FoundFile::Directory((0..300).map(|n| format!("f{n:03}")).collect()),
        _ if path.starts_with("/home/ada/many/") || path.starts_with("/home/ada/other/") => {
            file(b"x".to_vec())
        }
        _ if path.starts_with("/home/ada/endless") => FoundFile::Directory(vec!["again".to_owned()]),
        "/home/ada/dos.sh" => file(b"#!/bin/sh\r\necho\r\n".to_vec()),
        "/home/ada/empty.sh" => file(Vec::new()),
        "/home/ada/with blank.sh" => file(b"#!/bin/sh\n".to_vec()),
        "/home/ada/secret.txt" => FoundFile::Unreadable("permission denied".to_owned()),
        "/home/ada/a:b" | "/home/ada/a b" | "/home/ada/sub/a_b" => file(b"x".to_vec()),
        _ => place().content(path),
    }
}

pub fn made(text: &str, template: Option<Value>) -> Manifests {
    let cluster = cluster(text);
    manifest::jobs(&cluster, &Settings { template, ..Settings::default() }, &content)
}

fn cluster(text: &str) -> Cluster {
    let submission = place().submit("t", &format!("{HEAD}{text}"), &Options::default());
    assert!(submission.errors().next().is_none(), "{:?}", submission.findings);
    submission.cluster.unwrap()
}

#[test]
fn a_program_and_its_inputs_travel() {
    let text = "executable = sim.sh\narguments = input.txt\n\
                transfer_input_files = input.txt, raw.bin, https://example.org/pub/a.tar?v=1\nqueue\n";
    let Manifests { jobs, files, findings, .. } = made(text, None);
    assert_eq!(findings, []);
    insta::assert_snapshot!(format!(
        "{}\n{}",
        serde_json::to_string_pretty(&files[0]).unwrap(),
        serde_json::to_string_pretty(&jobs[0]["spec"]["template"]).unwrap()
    ));
}

/// The mounts of each proc: the path in the container, and the content of the file.
fn mounted(manifests: &Manifests) -> Vec<BTreeMap<String, String>> {
    let mut all = Vec::new();
    for (job, files) in manifests.jobs.iter().zip(&manifests.files) {
        let files = files.clone().unwrap_or_default();
        for proc in 0..job["spec"]["count"].as_u64().unwrap() {
            let template = crate::manifests::template_of(job, usize::try_from(proc).unwrap());
            let mounts = template["spec"]["containers"][0]["volumeMounts"].as_array().cloned();
            let mounts =
                mounts.unwrap_or_default().into_iter().filter(|mount| mount.get("subPath").is_some());
            let file = |mount: Value| {
                let content = files["data"][mount["subPath"].as_str().unwrap()].as_str().unwrap();
                (mount["mountPath"].as_str().unwrap().to_owned(), content.to_owned())
            };
            all.push(mounts.map(file).collect());
        }
    }
    all
}

#[test]
fn procs_of_one_job_have_inputs_of_their_own() {
    for text in [
        "executable = /bin/cat\ntransfer_executable = false\ninitialdir = run$(n)\ntransfer_input_files = input.txt\n\
         queue n in (1, 2)\n",
        "executable = /bin/cat\ntransfer_executable = false\ntransfer_input_files = run$INT(N)/input.txt\nN = $(Process) + 1\n\
         queue 2\n",
    ] {
        let manifests = made(text, None);
        assert_eq!(manifests.jobs.len(), 1, "{:?}", manifests.findings);
        let found = mounted(&manifests);
        assert_eq!(found.len(), 2);
        // Kubernetes 1.20 takes no empty text in a list.
        let spec = &manifests.jobs[0]["spec"];
        assert_eq!(spec["items"], json!({}), "the procs differ by their numbers alone");
        let mount = &spec["template"]["spec"]["containers"][0]["volumeMounts"][1];
        assert_eq!(mount["subPath"], json!("$(Process)-input.txt"));
        for (number, files) in (1..).zip(found) {
            let path = "/scratch/input.txt".to_owned();
            let there =
                std::fs::read_to_string(crate::place::folder().join(format!("place/run{number}/input.txt")));
            assert_eq!(files, BTreeMap::from([(path, there.unwrap())]), "{text}");
        }
    }
}

#[test]
fn names_that_are_no_keys_are_files_all_the_same() {
    let text =
        "executable = /bin/cat\ntransfer_executable = false\ntransfer_input_files = a b, sub/a_b\nqueue\n";
    let found = mounted(&made(text, None));
    let names: Vec<&str> = found[0].keys().map(String::as_str).collect();
    assert_eq!(names, ["/scratch/a b", "/scratch/a_b"]);
}

#[test]
fn where_the_program_is_from() {
    for (text, command, travels) in [
        ("executable = sim.sh", "/scratch/sim.sh", true),
        ("executable = ./sim.sh\ntransfer_input_files = sim.sh", "/scratch/sim.sh", true),
        ("executable = /home/ada/sim.sh", "/home/ada/sim.sh", false),
        ("executable = /home/ada/sim.sh\ntransfer_executable = true", "/scratch/sim.sh", true),
        ("executable = python3\ntransfer_executable = false", "python3", false),
        ("executable = sim.sh\nshould_transfer_files = no", "sim.sh", false),
        ("executable = sim.sh\nremote_initialdir = /home/ada", "sim.sh", false),
        ("executable = python3", "python3", false),
        ("executable = sim.sh\ncontainer_target_dir = /work", "/work/sim.sh", true),
    ] {
        let Manifests { jobs, files, findings, .. } = made(&format!("{text}\nqueue\n"), None);
        let container = &jobs[0]["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["command"], json!([command]), "{text}: {findings:?}");
        assert_eq!(files[0].is_some(), travels, "{text}");
        let is_said = findings.iter().any(|finding| finding.message.starts_with("executable: "));
        assert_eq!(is_said, !travels && !text.contains("transfer_executable"), "{text}: {findings:?}");
    }
    for (text, expected) in [
        ("executable = python3", "there is no file /home/ada/python3"),
        ("executable = /bin/ls", "transfer_executable = true has a local file travel"),
        ("executable = sim.sh\nshould_transfer_files = no", "nothing travels with this job"),
    ] {
        let said = made(&format!("{text}\nqueue\n"), None).findings.remove(0).message;
        assert!(said.contains(expected), "{text}: {said}");
    }
}

/// Parsl writes such files: its script is in a directory that is shared with the containers.
#[test]
fn nothing_travels_to_a_directory_that_the_job_names() {
    let text = "executable = /bin/bash\ntransfer_executable = false\nremote_initialdir = /home/ada\n\
                should_transfer_files = YES\ntransfer_input_files = no/such/script.sh\nqueue\n";
    let Manifests { jobs, files, findings, .. } = made(text, None);
    assert_eq!((jobs.len(), files), (1, vec![None]));
    let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("line 6, column 24: transfer_input_files: no file travels, because"),
        "{said:?}"
    );
}

#[test]
fn what_cannot_travel_is_refused_by_line() {
    for (text, expected) in [
        (
            "large",
            "transfer_input_files: /home/ada/large/b is one file too many: 200 files of 1048576 bytes together",
        ),
        (
            "many/",
            "transfer_input_files: /home/ada/many/f200 is one file too many: 200 files of 1048576 bytes",
        ),
        ("endless", "transfer_input_files: /home/ada/endless/again/again/"),
        ("nosuch.txt", "transfer_input_files: there is no file /home/ada/nosuch.txt"),
        (
            "input.txt table.csv",
            "transfer_input_files: there is no file /home/ada/input.txt table.csv; commas separate names: write input.txt, table.csv",
        ),
        (
            "~/input.txt",
            "transfer_input_files: there is no file /home/ada/~/input.txt; only shells know what ~ is: write $ENV(HOME)/",
        ),
        (
            "*.csv",
            "transfer_input_files: there is no file /home/ada/*.csv; patterns are not expanded here: name the files",
        ),
        ("secret.txt", "transfer_input_files: /home/ada/secret.txt cannot be read: permission denied"),
        (
            "huge.bin",
            "transfer_input_files: /home/ada/huge.bin has 1048577 bytes, and 1048576 can travel: put large",
        ),
        (
            "half.bin, other-half.bin",
            "transfer_input_files: the files of the job have 1200000 bytes, and 1048576 can travel: put large files",
        ),
        (
            "osdf:///pool/b.dat",
            "transfer_input_files: 'osdf:///pool/b.dat': only http and https URLs are fetched",
        ),
        ("ftp://b/c", "transfer_input_files: 'ftp://b/c': only http and https URLs are fetched"),
        (
            "https://example.org",
            "transfer_input_files: 'https://example.org' gives no name that a file can have",
        ),
        ("a:b", "transfer_input_files: '/home/ada/a:b' gives no name that a file can have here: rename it"),
        (
            "run1/input.txt, run2/input.txt",
            "transfer_input_files: /home/ada/run1/input.txt and /home/ada/run2/input.txt would both be input.txt",
        ),
    ] {
        let text = format!(
            "executable = /bin/cat\ntransfer_executable = false\ntransfer_input_files = {text}\nqueue\n"
        );
        let Manifests { jobs, findings, .. } = made(&text, None);
        let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(jobs.is_empty() && said.len() == 1, "{text}: {said:?}");
        assert!(said[0].contains(&format!("t.sub, line 4, column 24: {expected}")), "{said:?}");
    }
    let Manifests { jobs, findings, .. } = made("executable = huge.bin\nqueue\n", None);
    assert!(jobs.is_empty() && findings[0].message.contains("'huge.bin' has 1048577 bytes"), "{findings:?}");
}

pub fn with_volume() -> Value {
    json!({"spec": {
        "containers": [{"name": "main", "volumeMounts": [{"name": "results", "mountPath": "/results"}]}],
        "volumes": [{"name": "results", "persistentVolumeClaim": {"claimName": "results"}}],
    }})
}

#[test]
fn streams_go_to_files_of_a_volume() {
    let text = "executable = /bin/echo\ntransfer_executable = false\narguments = a\n\
                output = /results/$(Cluster).$(Process).out\nerror = err.txt\nqueue 2\n";
    let Manifests { jobs, findings, .. } = made(text, Some(with_volume()));
    let command = |proc| -> Vec<String> {
        serde_json::from_value(
            crate::manifests::template_of(&jobs[0], proc)["spec"]["containers"][0]["command"].clone(),
        )
        .unwrap()
    };
    for proc in 0..2 {
        let command = command(proc);
        let (streams, program) = submit::streams::unwrapped(&command).unwrap();
        assert_eq!(streams.output, format!("/results/{}.{proc}.out", manifest::CLUSTER));
        assert_eq!((streams.error.as_str(), program), ("", ["/bin/echo".to_owned()].as_slice()));
    }
    let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("line 6, column 9: error: standard error is the log of the pod"), "{said:?}");
    // Without the volume, all goes to the log.
    let Manifests { jobs, findings, .. } = made(text, None);
    assert_eq!(jobs[0]["spec"]["template"]["spec"]["containers"][0]["command"], json!(["/bin/echo"]));
    assert_eq!(findings.len(), 2);
    // A program that travels, and relative paths in a directory of the volume.
    let text = "executable = sim.sh\noutput = /results/o\nerror = /results/o\nqueue\n";
    let Manifests { jobs, .. } = made(text, Some(with_volume()));
    let command = jobs[0]["spec"]["template"]["spec"]["containers"][0]["command"].as_array().unwrap();
    assert_eq!(command[4..], ["", "/results/o", "/results/o", "/scratch/sim.sh"]);
    let text = "executable = /bin/ls\ntransfer_executable = false\nremote_initialdir = /results/run\noutput = o\nqueue\n";
    let Manifests { jobs, .. } = made(text, Some(with_volume()));
    assert_eq!(jobs[0]["spec"]["template"]["spec"]["containers"][0]["command"][5], json!("/results/run/o"));
    // The program that the image runs by itself is not known.
    let Manifests { jobs, findings, .. } =
        made("universe = container\noutput = /results/o\nqueue\n", Some(with_volume()));
    assert!(
        jobs.is_empty() && findings[0].to_string().contains("line 3, column 10: output: the program is"),
        "{findings:?}"
    );
}

/// The file that each proc's program reads: its path in the container.
fn inputs(text: &str, template: Option<Value>) -> Vec<String> {
    let manifests = made(text, template);
    assert_eq!((manifests.jobs.len(), &manifests.findings), (1, &vec![]), "{text}");
    let procs = manifests.jobs[0]["spec"]["count"].as_u64().unwrap();
    let of = |proc: u64| {
        let template = crate::manifests::template_of(&manifests.jobs[0], usize::try_from(proc).unwrap());
        let command = template["spec"]["containers"][0]["command"].clone();
        let command: Vec<String> = serde_json::from_value(command).unwrap();
        submit::streams::unwrapped(&command).map_or_else(String::new, |(streams, _)| streams.input)
    };
    (0..procs).map(of).collect()
}

#[test]
fn standard_input_is_a_file() {
    let cat = "executable = /bin/cat\ntransfer_executable = false\n";
    for (commands, expected) in [
        ("input = input.txt\n", &["/scratch/input.txt"][..]),
        ("stdin = run1/input.txt\n", &["/scratch/input.txt"]),
        ("input = input.txt\ntransfer_input_files = table.csv, input.txt\n", &["/scratch/input.txt"]),
        ("input = run$INT(N)/input.txt\nN = $(Process) + 1\n", &["/scratch/input.txt"; 2]),
        ("input = run1/input.txt\npreserve_relative_paths = true\n", &["/scratch/run1/input.txt"]),
        ("input = /dev/null\n", &[""]),
        // A volume has the file.
        ("input = /results/in\n", &["/results/in"]),
        ("input = in\nremote_initialdir = /results/run\n", &["/results/run/in"]),
        // The image has the file.
        ("input = /usr/share/words\ntransfer_input = false\n", &["/usr/share/words"]),
        ("input = /usr/share/words\nshould_transfer_files = NO\n", &["/usr/share/words"]),
        ("input = words\nshould_transfer_files = NO\n", &["words"]),
    ] {
        let text = format!("{cat}{commands}queue {}\n", expected.len());
        assert_eq!(inputs(&text, Some(with_volume())), expected, "{commands}");
    }
    // Each proc has the content of its own file.
    let text = format!("{cat}input = run$INT(N)/input.txt\nN = $(Process) + 1\nqueue 2\n");
    let found = mounted(&made(&text, None));
    assert_eq!(found.len(), 2);
    for (at, proc) in found.iter().enumerate() {
        let own = place().content(&format!("/home/ada/run{}/input.txt", at + 1));
        let FoundFile::File { bytes, .. } = own else { panic!("{own:?}") };
        assert_eq!(proc["/scratch/input.txt"].as_bytes(), bytes);
    }
    for (text, expected) in [
        (
            format!("{cat}input = nosuch\nqueue\n"),
            "line 4, column 9: input: there is no file /home/ada/nosuch",
        ),
        ("input = input.txt\nqueue\n".to_owned(), "line 2, column 9: input: the program is the image's own"),
    ] {
        let Manifests { jobs, findings, .. } = made(&text, None);
        let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(jobs.is_empty() && said.iter().any(|said| said.contains(expected)), "{text}: {said:?}");
    }
}

#[test]
fn directories_travel_with_what_is_in_them() {
    let names = |inputs: &str| -> Vec<String> {
        let text = format!("executable = /bin/ls\ntransfer_executable = false\n{inputs}queue\n");
        let manifests = made(&text, None);
        assert_eq!(manifests.findings, []);
        let names = mounted(&manifests)[0].keys().cloned().collect::<Vec<_>>();
        names.iter().map(|name| name.strip_prefix("/scratch/").unwrap().to_owned()).collect()
    };
    let data = ["data/a.dat", "data/b.dat", "data/c.dat"];
    assert_eq!(names("transfer_input_files = data\n"), data);
    assert_eq!(names("transfer_input_files = /home/ada/data\n"), data);
    assert_eq!(names("transfer_input_files = ./data/\n"), ["a.dat", "b.dat", "c.dat"], "what is in it");
    assert_eq!(names("transfer_input_files = data/\npreserve_relative_paths = true\n"), data);
    assert_eq!(names("transfer_input_files = data, data/\n").len(), 6, "twice, under two names");
}

#[test]
fn relative_paths_are_kept_where_the_job_says_so() {
    let made = |inputs: &str| {
        let head = "executable = /bin/cat\ntransfer_executable = false\npreserve_relative_paths = true\n";
        made(&format!("{head}transfer_input_files = {inputs}\nqueue\n"), None)
    };
    let manifests = made("run1/input.txt, ./run2//input.txt, /home/ada/data/a.dat, table.csv");
    assert_eq!(manifests.findings, []);
    let names: Vec<String> = mounted(&manifests)[0].keys().cloned().collect();
    assert_eq!(
        names,
        ["/scratch/a.dat", "/scratch/run1/input.txt", "/scratch/run2/input.txt", "/scratch/table.csv"]
    );
    for (inputs, expected) in [
        ("../ada/table.csv", "'../ada/table.csv' leads out of the scratch directory"),
        ("table.csv, /home/ada/other/table.csv/", "cannot both be: rename one of them"),
        ("run1/input.txt, https://example.org/run1", "cannot both be: rename one of them"),
    ] {
        let Manifests { jobs, findings, .. } = made(inputs);
        assert!(jobs.is_empty() && findings[0].message.contains(expected), "{inputs}: {findings:?}");
    }
}

/// The shell of this computer stands for that of an image, and a directory for the volume.
#[test]
fn streams_go_where_they_are_sent() {
    let directory = std::env::temp_dir().join(format!("slotwright-streams-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut template = with_volume();
    template["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] = json!(directory);
    let at = directory.display();
    for (commands, expected) in [
        (format!("output = {at}/o\nerror = {at}/e\n"), ("", "", Some("out a  b\n"), Some("err\n"))),
        (format!("output = {at}/o\nerror = {at}/o\n"), ("", "", Some("out a  b\nerr\n"), None)),
        (format!("output = {at}/o\n"), ("", "err\n", Some("out a  b\n"), None)),
        (format!("error = {at}/e\n"), ("out a  b\n", "", None, Some("err\n"))),
        (format!("input = {at}/i\noutput = {at}/o\n"), ("", "err\n", Some("in\nout a  b\n"), None)),
        (format!("input = {at}/i\n"), ("in\nout a  b\n", "err\n", None, None)),
    ] {
        for name in ["o", "e"] {
            let _ = std::fs::remove_file(directory.join(name));
        }
        std::fs::write(directory.join("i"), "in\n").unwrap();
        let text = format!(
            "executable = /bin/sh\ntransfer_executable = false\n\
             arguments = \"-c 'cat; echo out \"\"$1\"\"; echo err >&2; exit 3' sh 'a  b'\"\n{commands}queue\n"
        );
        let Manifests { jobs, .. } = made(&text, Some(template.clone()));
        let container = &jobs[0]["spec"]["template"]["spec"]["containers"][0];
        let words =
            |field: &str| container[field].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let mut words = words("command").chain(words("args"));
        let run = std::process::Command::new(words.next().unwrap()).args(words).output().unwrap();
        assert_eq!(run.status.code(), Some(3), "{run:?}");
        let file = |name: &str| std::fs::read_to_string(directory.join(name)).ok();
        let (out, err) = (String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap());
        let (o, e) = (file("o"), file("e"));
        assert_eq!((out.as_str(), err.as_str(), o.as_deref(), e.as_deref()), expected, "{commands}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
