//! Warnings and errors of commands that do not do what they seem to do.

use serde_json::{Value, json};
use submit::manifest::Manifests;

use crate::manifests::{findings_of, submitted};

const HEAD: &str = "executable = /bin/true\ntransfer_executable = false\n";

/// The manifests of a submit file of one program that ends with these lines.
fn made(lines: &str) -> Manifests {
    submitted("lines", &format!("{HEAD}{lines}")).1
}

#[test]
fn commands_among_the_variables_of_a_queue_statement_are_commands() {
    let specs = |queue: &str, pointer: &str| -> Vec<Value> {
        let Manifests { jobs, findings, .. } = made(queue);
        assert_eq!(findings, [], "{queue}");
        jobs.iter().map(|job| job["spec"].pointer(pointer).cloned().unwrap_or_default()).collect()
    };
    assert_eq!(
        specs("queue request_fpga in (1 2)\n", "/requests/resources"),
        [json!({"fpga": 1}), json!({"fpga": 2})]
    );
    assert_eq!(specs("queue RequestMemory in (1GB 2GB)\n", "/requests/memory"), [json!("1Gi"), json!("2Gi")]);
    let experiments = specs("queue MY.Experiment in (\"a\" \"b\")\n", "/attributes/Experiment");
    assert_eq!(experiments, [json!("\"a\""), json!("\"b\"")]);
    let queue = "queue JobPrio, RequestGPUs, MY.RequestCpus from (\n1 2 3\n)\n";
    assert_eq!(specs(queue, "/priority"), [json!(1)]);
    assert_eq!(specs(queue, "/requests"), [json!({"cpus": 3, "gpus": 2})]);
}

#[test]
fn what_is_refused_is_refused_as_a_variable_of_a_queue_statement() {
    for queue in ["queue noop_job in (true)\n", "queue noop_job in (false true)\n"] {
        let Manifests { jobs, findings, .. } = made(queue);
        assert!(jobs.is_empty(), "{queue}");
        let said = findings[0].to_string();
        assert!(said.starts_with("error: lines.sub, line 3, column 1: noop_job: "), "{said}");
    }
    assert_eq!(made("queue noop_job in (false false)\n").findings, []);
}

#[test]
fn a_periodic_release_that_releases_nothing_is_told_of() {
    let found = findings_of("hold = true\nperiodic_release = true\n");
    assert!(
        found.len() == 1 && found[0].contains("line 4, column 20: periodic_release: does not release"),
        "{found:?}"
    );
    assert_eq!(findings_of("hold = false\nperiodic_release = true\n"), Vec::<String>::new());
}

#[test]
fn an_error_of_one_item_names_the_row() {
    let text = format!("{HEAD}arguments = \"$(f)\"\nqueue f from (\na\nb's\n)\n");
    let said = submitted("lines", &text).0.errors().map(ToString::to_string).collect::<Vec<_>>();
    assert!(said.len() == 1 && said[0].ends_with(" (row 2: f = b's)"), "{said:?}");
    let found = made("queue request_cpus in (1 0)\n").findings;
    assert!(found.len() == 1 && found[0].message.ends_with(" (row 2: request_cpus = 0)"), "{found:?}");
    let found = made("transfer_input_files = $(f)\nqueue f in (nosuch.txt input.txt)\n").findings;
    assert!(found.len() == 1 && found[0].message.ends_with(" (row 1: f = nosuch.txt)"), "{found:?}");
}

#[test]
fn a_command_that_needs_another_names_the_other() {
    let said = |lines: &str| {
        let (submission, manifests) = submitted("lines", &format!("{HEAD}{lines}queue\n"));
        let all = submission.findings.iter().chain(&manifests.findings);
        all.map(ToString::to_string).collect::<Vec<_>>()
    };
    for (line, expected) in [
        (
            "require_gpus = Capability > 7",
            "require_gpus has no effect without request_gpus: write how many GPUs the job needs",
        ),
        ("GPUsMinMemory = 8G", "GPUsMinMemory has no effect without request_gpus"),
        (
            "request_memory = size({1})\nretry_request_memory = 4G",
            "retry_request_memory has no effect without a plain amount in request_memory",
        ),
        ("stream_output = true", "stream_output: the log of a pod is always streamed"),
        (
            "request_memory = \"2\"",
            "request_memory: \"2\" is a text, and an HTCJob requests numbers: write request_memory = 2",
        ),
        (
            "+RequestCpus = \"2\"",
            "MY.RequestCpus: \"2\" is a text, and an HTCJob requests numbers: write MY.RequestCpus = 2",
        ),
        (
            "request_licenses = \"matlab\"",
            "request_licenses: \"matlab\" is \"matlab\" at submission: expected a number",
        ),
        ("Request_Disks = 10GB", "requests a resource named Disks: did you mean request_disk?"),
    ] {
        let found = said(&format!("{line}\n"));
        assert!(found.len() == 1 && found[0].contains(expected), "{line}: {found:?}");
    }
}

/// HTCondor takes such a text for the submitter's name.
#[test]
fn an_accounting_group_without_a_user_is_told_of() {
    for (line, says) in [
        (
            "+AccountingGroup = \"physics\"",
            "+AccountingGroup names no group, because \"physics\" is no text GROUP.USER: nobody but the namespace is charged; write \
             accounting_group = physics",
        ),
        ("+AccountingGroup = strcat(\"a.\", Owner)", "write accounting_group = GROUP"),
        ("+AcctGroup = \"physics\"", "+AcctGroup has no effect: write accounting_group"),
    ] {
        let found = findings_of(&format!("{line}\n"));
        assert!(
            found.len() == 1 && found[0].starts_with("warning: ") && found[0].ends_with(says),
            "{line}: {found:?}"
        );
    }
    assert_eq!(findings_of("+AccountingGroup = \"physics.ada\"\n"), Vec::<String>::new());
}

#[test]
fn bounds_of_a_file_that_becomes_several_htcjobs_are_told_of() {
    let lines = "max_idle = 2\n+JobMaterializeLimit = 5\nqueue request_cpus in (1 2)\n";
    let said: Vec<String> = made(lines).findings.iter().map(ToString::to_string).collect();
    let [idle, limit] = &said[..] else { panic!("{said:?}") };
    assert!(idle.contains("line 3, column 12: max_idle: holds for each of the 2 HTCJobs"), "{idle}");
    assert!(limit.contains("line 4,") && limit.contains("concurrency_limits bind all"), "{limit}");
    assert_eq!(made("max_idle = 2\nqueue 2\n").findings, []);
}

/// An attribute is found by the name of the attribute alone: +Log is none of HTCondor's.
#[test]
fn attributes_of_commands_are_told_of_as_the_commands_are() {
    for (line, severity, says) in [
        (
            "+SuccessCheckpointExitCode = 85",
            "error",
            "+SuccessCheckpointExitCode: a proc that exits has ended",
        ),
        ("+IsNoopJob = true", "error", "+IsNoopJob: a job always runs its program"),
        ("+TransferOutput = \"a\"", "warning", "+TransferOutput: no files travel back"),
        ("+StreamOut = true", "warning", "+StreamOut: the log of a pod"),
        ("+JobSetName = \"a\"", "warning", "+JobSetName: job sets"),
        ("+WantIOProxy = true", "warning", "+WantIOProxy: there is no chirp"),
        ("+KillSig = \"SIGUSR1\"", "warning", "+KillSig: the image decides"),
        ("+WantGracefulRemoval = true", "warning", "+WantGracefulRemoval: a pod always"),
        ("+JobNotification = 2", "warning", "+JobNotification: no mail"),
        (
            "+DockerImage = \"debian\"",
            "warning",
            "+DockerImage is only shown in the job's ad, and changes nothing in its pod: write container_image",
        ),
        ("+SingularityImage = \"/cvmfs/x\"", "warning", "+SingularityImage is only shown"),
        ("+WantDocker = true", "warning", "+WantDocker is only shown"),
        (
            "MY.Cmd = \"/bin/false\"",
            "warning",
            "+Cmd is only shown in the job's ad, and changes nothing in its pod: write executable",
        ),
    ] {
        let found = findings_of(&format!("{line}\n"));
        let [found] = &found[..] else { panic!("{line}: {found:#?}") };
        assert!(
            found.starts_with(&format!("{severity}: lines.sub, line 3,")) && found.contains(says),
            "{found}"
        );
    }
    for line in
        ["+WantIOProxy = false", "+JobNotification = 0", "+WantDocker = false", "+Log = 1", "+Kill_Sig = 1"]
    {
        assert_eq!(findings_of(&format!("{line}\n")), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn a_group_in_double_quotes_is_told_of() {
    for (command, name) in [("accounting_group", "physics"), ("accounting_group_user", "ada")] {
        let (submission, _) = submitted("lines", &format!("{HEAD}{command} = \"{name}\"\nqueue 2\n"));
        let said: Vec<String> = submission.findings.iter().map(ToString::to_string).collect();
        let expected = format!(
            "{command}: has double quotes, which count as a part of the name: write {command} = {name}"
        );
        assert!(said.len() == 1 && said[0].ends_with(&expected), "{said:?}");
    }
}

#[test]
fn permissions_of_tokens_are_told_of_as_their_services_are() {
    for name in
        ["box_oauth_permissions", "scitokens_oauth_permissions_h", "My_OAuth_Resource", "x_oauth_options_a_b"]
    {
        let (submission, _) = submitted("lines", &format!("{HEAD}{name} = read:/\nqueue\n"));
        let said: Vec<String> = submission.findings.iter().map(ToString::to_string).collect();
        let expected = format!("{name}: credentials come from a Secret in the template");
        assert!(said.len() == 1 && said[0].ends_with(&expected), "{said:?}");
    }
    let (submission, _) = submitted("lines", &format!("{HEAD}x_oauth_permission = read:/\nqueue\n"));
    assert!(submission.findings[0].message.ends_with("is it a typo?"), "{:?}", submission.findings);
}

#[test]
fn a_list_of_no_output_files_is_not_told_of() {
    for line in ["transfer_output_files = \"\"", "transfer_output_files =", "TransferOutput = \"\""] {
        assert_eq!(findings_of(&format!("{line}\n")), Vec::<String>::new(), "{line}");
    }
    assert_eq!(findings_of("transfer_output_files = a\n").len(), 1);
    assert_eq!(made("transfer_output_files = $(f)\nqueue f from (\na\n)\n").findings.len(), 1);
}

#[test]
fn a_condition_on_a_proc_is_answered_as_it_was_written() {
    let (submission, _) =
        submitted("lines", &format!("{HEAD}  if $(Process) == 0\narguments = a\nendif\nqueue 2\n"));
    let said: Vec<String> = submission.errors().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "error: lines.sub, line 3, column 6: $(Process) == 0, which is 0 == 0 here, is not a valid condition because complex \
          conditionals are not supported; a condition is decided once, before there are procs: let these differ by \
          $CHOICE(Process, a, b), or by a column of the items"
        ]
    );
    let (submission, _) = submitted("lines", &format!("{HEAD}if 1 == 0\narguments = a\nendif\nqueue 2\n"));
    let said: Vec<String> = submission.errors().map(ToString::to_string).collect();
    assert!(said.len() == 1 && said[0].ends_with("conditionals are not supported"), "{said:?}");
}
