//! Where the program of a job is, and where it begins.

use serde_json::{Value, json};
use submit::Options;

use crate::manifests::place;
use crate::travel::made;

/// The command of the container, the container's working directory, and the findings.
fn container(lines: &str) -> (Value, Value, Vec<String>) {
    let manifests = made(&format!("{lines}queue\n"), None);
    let container = manifests.jobs[0]["spec"]["template"]["spec"]["containers"][0].clone();
    let said = manifests.findings.iter().map(ToString::to_string).collect();
    (container["command"].clone(), container["workingDir"].clone(), said)
}

#[test]
fn a_program_that_travels_as_an_input_is_started_in_the_scratch_directory() {
    let head = "transfer_executable = false\ntransfer_input_files = ";
    for (lines, command) in [
        (format!("executable = sim.sh\n{head}sim.sh\n"), "/scratch/sim.sh"),
        (format!("executable = ./sim.sh\n{head}input.txt, sim.sh\n"), "/scratch/sim.sh"),
        (format!("executable = sim.sh\n{head}https://example.org/sim.sh\n"), "/scratch/sim.sh"),
        (
            format!("executable = data/a.dat\npreserve_relative_paths = true\n{head}data\n"),
            "/scratch/data/a.dat",
        ),
        (format!("executable = /bin/sim.sh\n{head}sim.sh\n"), "/bin/sim.sh"),
        (format!("executable = python3\n{head}sim.sh\n"), "python3"),
    ] {
        let (found, _, said) = container(&lines);
        assert_eq!((found, said), (json!([command]), vec![]), "{lines}");
    }
}

#[test]
fn a_name_that_is_looked_up_in_the_image_although_there_is_a_file_is_told_of() {
    let (command, _, said) = container("executable = sim.sh\ntransfer_executable = false\n");
    assert_eq!(command, json!(["sim.sh"]));
    let expected = "line 2, column 14: executable: 'sim.sh' has no slash, and is looked up in the PATH of the image; the file \
                    /home/ada/sim.sh does not travel: leave transfer_executable out, or write the program's path in the image";
    assert!(said.len() == 1 && said[0].ends_with(expected), "{said:?}");
    let (_, _, said) = container("executable = python3\ntransfer_executable = false\n");
    assert_eq!(said, Vec::<String>::new());
}

#[test]
fn a_job_on_a_shared_file_system_is_told_what_to_write() {
    let (command, directory, said) =
        container("executable = sim.sh\ninitialdir = run1\nshould_transfer_files = NO\n");
    assert_eq!((command, directory), (json!(["sim.sh"]), Value::Null));
    let expected = "; if a volume of the template has the directory, as on a shared file system, write executable = /home/ada/sim.sh \
                    and remote_initialdir = /home/ada/run1";
    assert!(said.len() == 1 && said[0].ends_with(expected), "{said:?}");
}

#[test]
fn an_initialdir_that_nothing_reads_is_told_of() {
    let head = "executable = /bin/true\ntransfer_executable = false\n";
    for (lines, says) in [
        (
            "initialdir = run1\nqueue\n",
            "line 4, column 14: initialdir: has no effect, because no file is read from /home/ada/run1: the program begins in the image's own \
             working directory; with remote_initialdir = /home/ada/run1 it begins there, if a volume of the template has the directory",
        ),
        (
            "job_iwd = run1\ntransfer_input_files = /home/ada/input.txt\nqueue\n",
            "job_iwd: has no effect, because no file is read from /home/ada/run1: the program begins in its scratch directory /scratch; with",
        ),
        (
            "queue initialdir matching dirs run*\n",
            "initialdir: has no effect, so that the procs do not differ by it, because no file is read from /home/ada/run1/: ",
        ),
        (
            "initialdir = run1\nremote_initialdir = /data\nqueue\n",
            "has no effect, because no file is read from /home/ada/run1: the program begins in remote_initialdir",
        ),
        ("initialdir = run1\ninput = /home/ada/input.txt\nqueue\n", "initialdir: has no effect, "),
        ("initialdir = run1\ntransfer_input_files = input.txt\nqueue\n", ""),
        ("initialdir = run1\ninput = input.txt\nqueue\n", ""),
        ("initialdir = run1\nlog = job.log\nqueue\n", ""),
        ("initialdir = run1\narguments = $Ff(f)\nf = input.txt\nqueue\n", ""),
    ] {
        let said: Vec<String> =
            made(&format!("{head}{lines}"), None).findings.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), usize::from(!says.is_empty()), "{lines}: {said:?}");
        assert!(said.iter().all(|said| said.contains(says)), "{lines}: {said:?}");
    }
}

/// condor_submit refuses such a job.
#[test]
fn an_initialdir_that_is_not_there_is_warned_of() {
    let text = "executable = /bin/true\ninitialdir = run$(n)\nqueue n in (1, 3)\n";
    let submission = place().submit("t", text, &Options::default());
    assert_eq!(submission.errors().count(), 0);
    let said: Vec<String> = submission.findings.iter().map(ToString::to_string).collect();
    let told = "initialdir: there is no directory /home/ada/run3; condor_submit refuses such a job";
    assert_eq!(said.iter().filter(|said| said.contains(told)).count(), 1, "{said:?}");
}
