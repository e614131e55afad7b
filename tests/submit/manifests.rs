//! The HTCJobs of the submit files of this folder.

use std::collections::BTreeMap;
use std::fmt::Write;

use api::HTCJob;
use serde_json::{Value, json};
use submit::commands::Support;
use submit::each::Items;
use submit::manifest::{self, FoundFile, Manifests, Settings};
use submit::{Cluster, Options, Submission};

use crate::place::{self, Place};

pub fn place() -> Place {
    Place {
        directory: "/home/ada".to_owned(),
        environment: BTreeMap::from([("HOME".to_owned(), "/home/ada".to_owned())]),
        sizes: BTreeMap::new(),
        version: (String::new(), String::new()),
        now: 0,
        cluster: manifest::CLUSTER,
    }
}

pub fn submitted(name: &str, text: &str) -> (Submission, Manifests) {
    let submission = place().submit(name, text, &Options::default());
    let settings = Settings { image: Some("registry.example/image".to_owned()), ..Settings::default() };
    let manifests = submission
        .cluster
        .as_ref()
        .map(|cluster| manifest::jobs(cluster, &settings, &|path| place().content(path)));
    (submission, manifests.unwrap_or_default())
}

/// Parsl writes `+projectname`, which is also the attribute of the command project_name: the operator refuses names that differ in case alone.
#[test]
fn an_attribute_that_is_given_in_different_case_is_in_the_manifest_once() {
    let text = "executable = a.sh\n+projectname = \"physics\"\n+Level = 1\nMY.level = 2\nqueue\n";
    let (_, manifests) = submitted("case.sub", text);
    let jobs = serde_json::to_value(&manifests.jobs).unwrap();
    assert_eq!(jobs[0]["spec"]["attributes"], json!({"ProjectName": "\"physics\"", "Level": "2"}));
}

/// retry_request_memory becomes transforms, which the operator applies: all that these read is in the manifest.
#[test]
fn the_transforms_of_a_retry_are_in_the_manifest() {
    let attributes = |name: &str| {
        let file = format!("{name}.sub");
        let text = std::fs::read_to_string(place::folder().join("files").join(&file)).expect("a text");
        let (_, manifests) = submitted(&file, &text);
        let attributes = manifests.jobs[0]["spec"]["attributes"].as_object().cloned().unwrap_or_default();
        let of_transforms = attributes
            .into_iter()
            .map(|(name, text)| format!("{name}: {}", text.as_str().unwrap_or_default()));
        of_transforms.collect::<Vec<_>>().join("\n").replace('\u{1e}', "\n    ")
    };
    let files =
        ["memory-retries", "memory-retries-inline", "memory-retries-increase", "memory-retries-expression"];
    let found = files.map(|name| format!("{name}\n{}\n", attributes(name))).concat();
    insta::assert_snapshot!(found);
}

/// The arguments and the environment that a manifest's procs get, as Kubernetes would hand them to the program.
fn run(job: &Value) -> Vec<(Vec<String>, BTreeMap<String, String>)> {
    let read: HTCJob = serde_json::from_value(job.clone()).expect("an HTCJob");
    let items = read.spec.items.as_ref();
    let items = Items {
        variables: items.map(|items| items.variables.as_slice()).unwrap_or_default(),
        rows: items.map(|items| items.rows.as_slice()).unwrap_or_default(),
        repeat: items.map_or(1, |items| usize::try_from(items.repeat).expect("a number")),
    };
    assert_eq!(submit::each::faults(items, read.spec.count, &job["spec"]["template"]), [], "{job}");
    let procs = usize::try_from(read.spec.count).expect("a number");
    let one = |proc| {
        let template = template_of(job, proc);
        let container = &template["spec"]["containers"][0];
        let texts = |list: &Value| -> Vec<String> {
            list.as_array()
                .into_iter()
                .flatten()
                .map(|text| kubernetes(text.as_str().expect("a text")))
                .collect()
        };
        let command = texts(&container["command"]);
        // The shell that opens files for the program is none of the submit file's.
        let program = submit::streams::unwrapped(&command).map_or(command.as_slice(), |(_, program)| program);
        let mut words = program.to_vec();
        words.extend(texts(&container["args"]));
        let variables = container["env"].as_array().into_iter().flatten().map(|variable| {
            (variable["name"].as_str().unwrap().to_owned(), kubernetes(variable["value"].as_str().unwrap()))
        });
        let own = |(name, _): &(String, String)| name != "_CONDOR_SCRATCH_DIR";
        (words, variables.filter(own).collect())
    };
    (0..procs).map(one).collect()
}

/// The template of a proc's pod.
pub fn template_of(job: &Value, proc: usize) -> Value {
    let read: HTCJob = serde_json::from_value(job.clone()).expect("an HTCJob");
    let mut template = job["spec"]["template"].clone();
    if let Some(items) = &read.spec.items {
        let repeat = usize::try_from(items.repeat).expect("a number");
        let items = Items { variables: &items.variables, rows: &items.rows, repeat };
        items.names(&manifest::CLUSTER.to_string(), proc).replace_in(&mut template);
    }
    template
}

/// The text that Kubernetes makes of a text without references: `$$` is `$`.
fn kubernetes(text: &str) -> String {
    assert!(!text.replace("$$", "").contains("$("), "a reference is left in {text}");
    text.replace("$$", "$")
}

/// The arguments and the environment that each proc's program should get by the submit file.
fn wanted(cluster: &Cluster) -> Vec<(Vec<String>, BTreeMap<String, String>)> {
    let one = |program: &submit::Program| {
        let is_there = |name: &&String| {
            let path = format!("/home/ada/{name}");
            program.is_transferred
                && !name.starts_with('/')
                && matches!(place().content(&path), FoundFile::File { .. })
        };
        let travels = program.executable.as_ref().filter(is_there).filter(|_| {
            cluster.ad.get("ShouldTransferFiles").and_then(|should| should.as_literal()?.as_str())
                != Some("NO")
        });
        let executable = match travels {
            Some(name) => Some(format!("/scratch/{name}")),
            None => program.executable.clone(),
        };
        let words = executable.into_iter().chain(program.arguments.iter().cloned()).collect();
        let environment =
            program.environment.iter().map(|(name, value)| (name.clone(), value.clone().unwrap()));
        (words, environment.collect())
    };
    cluster.procs.iter().map(|proc| one(&proc.program)).collect()
}

#[test]
fn procs_get_what_the_submit_file_says() {
    let mut procs = 0;
    for (name, _, text) in place::files() {
        let (submission, manifests) = submitted(&name, &text);
        let Some(cluster) = submission.cluster.as_ref().filter(|_| !manifests.jobs.is_empty()) else {
            continue;
        };
        let mut found: Vec<_> = manifests.jobs.iter().flat_map(run).collect();
        let mut wanted = wanted(cluster);
        procs += wanted.len();
        if manifests.jobs.len() > 1 {
            // Procs of a kind are together in an HTCJob, in whatever order.
            found.sort();
            wanted.sort();
        }
        assert_eq!(found, wanted, "{name}");
    }
    assert!(procs > 120, "{procs} procs");
}

/// The numbers of rows and steps are those of the submit file, whether procs of a row have a row in common in the HTCJob, a row
/// each, or none.
#[test]
fn rows_and_steps_keep_their_numbers() {
    for (arguments, last) in [
        ("$(Row) $(Step) $(n)", vec!["1", "1", "b"]),
        ("$(Row) $(Step) $INT(N3)", vec!["1", "1", "9"]),
        ("$(Row) $(Step)", vec!["1", "1"]),
    ] {
        let text = format!(
            "executable = /bin/echo\ntransfer_executable = false\nN3 = $(Process) * 3\narguments = {arguments}\n\
             queue 2 n from (\na\nb\n)\n"
        );
        let (submission, manifests) = submitted("rows", &text);
        let wanted = wanted(submission.cluster.as_ref().unwrap());
        assert_eq!(wanted[3].0[1..], last, "{arguments}");
        assert_eq!(manifests.jobs.iter().flat_map(run).collect::<Vec<_>>(), wanted, "{arguments}");
    }
}

#[test]
fn what_becomes_of_each_submit_file() {
    let mut table = String::new();
    for (name, about, text) in place::files() {
        let (submission, manifests) = submitted(&name, &text);
        let procs = submission.cluster.as_ref().map_or(0, |cluster| cluster.procs.len());
        writeln!(table, "{name}: {about}\n  {procs} procs, {} HTCJobs", manifests.jobs.len()).unwrap();
        for finding in submission.findings.iter().chain(&manifests.findings) {
            writeln!(table, "  {finding}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn manifests_of_some_submit_files() {
    let mut all = String::new();
    for (name, _, text) in place::files() {
        let chosen =
            ["attributes", "docker", "gpus", "guide-parameters", "queue-several-items", "requests", "shell"];
        if chosen.contains(&name.as_str()) {
            for job in submitted(&name, &text).1.jobs {
                writeln!(all, "{name}: {}", serde_json::to_string_pretty(&job).unwrap()).unwrap();
            }
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn the_reference_lists_each_command() {
    let page = std::fs::read_to_string(place::folder().join("../../docs/reference/submit.md")).unwrap();
    for command in submit::commands::COMMANDS {
        let attribute =
            if command.attribute.is_empty() { "-".to_owned() } else { format!("`{}`", command.attribute) };
        let (here, why) = match command.support {
            Support::Honored(why) => ("honored", why),
            Support::NoEffect(why) => ("no effect", why),
            Support::Refused(why) => ("refused", why),
        };
        let line = format!("| `{}` | {attribute} | {here} | {why} |", command.name);
        assert!(page.lines().any(|found| found == line), "docs/reference/submit.md lacks: {line}");
    }
}

#[test]
fn items_that_are_too_large_are_refused_before_they_are_submitted() {
    let file = |rows: usize| {
        let rows = (0..rows).map(|row| format!("item{row:0>40}\n")).collect::<Vec<_>>().concat();
        format!(
            "executable = /bin/true\ntransfer_executable = false\narguments = $(x)\nqueue x from (\n{rows})\n"
        )
    };
    assert_eq!(submitted("small", &file(1000)).1.jobs.len(), 1);
    let (_, Manifests { jobs, findings, .. }) = submitted("large", &file(10_000));
    assert!(jobs.is_empty());
    assert!(findings[0].message.contains("and the operator takes 262144"), "{}", findings[0]);
    assert_eq!(findings[0].position.line, 4, "the queue statement's: {}", findings[0]);
}

/// A command may have several names.
#[test]
fn a_warning_has_the_place_and_the_name_that_the_file_uses() {
    let text = "executable = /bin/true\ntransfer_executable = false\nstderr = $(Process).err\narguments = x\n  \
                stdout = a.out\nget_env = True\nqueue 2\n";
    let (_, Manifests { findings, .. }) = submitted("names", text);
    let found: Vec<String> = findings
        .iter()
        .map(|finding| {
            let words = finding.message.split(' ').take(3).collect::<Vec<_>>().join(" ");
            format!("{}:{}: {words}", finding.position.line, finding.position.column)
        })
        .collect();
    assert_eq!(
        found,
        ["3:10: stderr: standard error", "5:12: stdout: standard output", "6:11: get_env: the job"]
    );
    let text = "executable = /bin/true\ntransfer_executable = false\n+TransferInput = \"no\"\nqueue\n";
    let (_, Manifests { findings, .. }) = submitted("attribute", text);
    assert_eq!(
        findings[0].to_string(),
        "error: attribute.sub, line 3, column 18: MY.TransferInput: there is no file /home/ada/no"
    );
}

/// The findings of a submit file of one program with these lines.
pub fn findings_of(lines: &str) -> Vec<String> {
    let text = format!("executable = /bin/true\ntransfer_executable = false\n{lines}queue\n");
    submitted("lines", &text).1.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn an_attribute_without_effect_on_the_job_is_warned_of() {
    let found = findings_of("+Owner = \"bob\"\n+Args = \"x\"\n+Project = \"x\"\n");
    let [owner, args] = &found[..] else { panic!("{found:#?}") };
    assert!(
        owner.starts_with("warning: lines.sub, line 3,") && owner.contains("+Owner has no effect"),
        "{owner}"
    );
    assert!(
        args.starts_with("warning: lines.sub, line 4,") && args.contains("only shown in the job's ad"),
        "{args}"
    );
}

/// The error names the line of the submit file, and not a field of the HTCJob.
#[test]
fn a_request_that_reads_what_is_not_known_at_submission_is_warned_of() {
    for (line, read) in [
        ("request_memory = MemoryUsage =?= undefined ? 100 : MemoryUsage * 3 / 2", Some("MemoryUsage")),
        ("request_cpus = TARGET.Cpus > 8 ? 8 : 4", Some("Cpus")),
        (
            "request_disk = ifThenElse(Memory > 8 && isUndefined(NumJobStarts), 1, 2)",
            Some("Memory and NumJobStarts"),
        ),
        ("+RequestMemory = (NumJobStarts ?: 1) * 512", Some("NumJobStarts")),
        ("request_memory = RemoteWallClockTime > 3600 ? 2048 : 1024", Some("RemoteWallClockTime")),
        ("request_memory = time() - EnteredCurrentStatus > 60 ? 2048 : 1024", Some("EnteredCurrentStatus")),
        ("request_memory = RequestCpus * 1024", None),
        ("request_memory = JobStatus == 1 ? 1024 : 2048", None),
        ("request_memory = 1G, 2G", None),
        ("request_memory = 1G\nretry_request_memory = MAX({MemoryUsage, 2048})", None),
    ] {
        let found = findings_of(&format!("{line}\n"));
        let told = found.iter().find(|finding| finding.contains("which is known only later"));
        match read {
            Some(read) => assert!(
                told.is_some_and(|told| told.contains(&format!(": reads {read}, which"))),
                "{line}: {found:?}"
            ),
            None => assert_eq!(told, None, "{line}"),
        }
    }
}

#[test]
fn a_request_of_nothing_is_refused_with_its_line() {
    for (line, says) in [
        ("request_cpus = 0", "request_cpus: asks for less than 1 CPU"),
        ("request_memory = -5", "request_memory: asks for less than 1 MiB"),
    ] {
        let found = findings_of(&format!("{line}\n"));
        let [error] = &found[..] else { panic!("{found:#?}") };
        assert!(error.starts_with("error: lines.sub, line 3,") && error.contains(says), "{error}");
    }
}

#[test]
fn conditions_on_gpus_are_left_out_if_a_job_asks_for_none() {
    let text = "executable = /bin/true\ntransfer_executable = false\nrequest_gpus = $(n)\nn = 0\n\
                require_gpus = Capability > 7\nqueue\n";
    let (_, Manifests { jobs, findings, .. }) = submitted("gpus", text);
    assert!(findings.is_empty(), "{findings:?}");
    assert!(jobs[0]["spec"]["requests"].get("requireGpus").is_none(), "{}", jobs[0]["spec"]["requests"]);
}

/// condor_submit makes one cluster of these, in whose ad RequireGPUs has the bounds once.
#[test]
fn procs_with_bounds_on_gpus_that_differ_in_arguments_alone_are_one_htcjob() {
    let text = "executable = /bin/sleep\ntransfer_executable = false\narguments = $(Process)\nrequest_gpus = 1\n\
                gpus_minimum_memory = 8G\ngpus_minimum_capability = 7.5\nREQUIRE\nqueue 3\n";
    for (require, expected, said) in [
        ("", "Capability >= GPUsMinCapability && GlobalMemoryMb >= GPUsMinMemory", json!(null)),
        (
            "require_gpus = DeviceName == \"a\"",
            "DeviceName == \"a\" && Capability >= GPUsMinCapability && GlobalMemoryMb >= GPUsMinMemory",
            json!("DeviceName == \"a\""),
        ),
    ] {
        let (submission, manifests) = submitted("job.sub", &text.replace("REQUIRE", require));
        let cluster = submission.cluster.expect("a cluster");
        assert_eq!(cluster.ad.get("RequireGPUs").expect("RequireGPUs").to_old(), expected);
        assert!(cluster.procs.iter().skip(1).all(|proc| proc.ad.get("RequireGPUs").is_none()));
        let [job] = manifests.jobs.as_slice() else { panic!("{:?}", manifests.jobs) };
        assert_eq!((&job["spec"]["count"], &job["spec"]["requests"]["requireGpus"]), (&json!(3), &said));
    }
}

/// The operator numbers a job that has its name already.
#[test]
fn a_batch_name_with_the_number_of_the_cluster_gives_a_name_without() {
    for (batch, expected) in [("run-$(Cluster)", "run"), ("$(Cluster)", "job"), ("a$(Cluster)b", "ab")] {
        let text =
            format!("executable = /bin/true\ntransfer_executable = false\nbatch_name = {batch}\nqueue\n");
        let (_, manifests) = submitted("job.sub", &text);
        let job = &manifests.jobs[0];
        assert_eq!(job["metadata"]["name"], expected, "{batch}");
        assert!(!job.to_string().contains(&manifest::CLUSTER.to_string()), "{job}");
    }
}

/// `condor_submit` takes these lines for a request of a resource of its own, or for an expression with a mistake.
#[test]
fn a_misspelt_request_and_a_unit_of_kubernetes_are_told_of() {
    let said = |line: &str| {
        let text = format!("executable = /bin/true\ntransfer_executable = false\n{line}queue\n");
        let (submission, manifests) = submitted("lines", &text);
        let findings = submission.findings.iter().map(ToString::to_string);
        findings.chain(manifests.findings.iter().map(ToString::to_string)).collect::<Vec<_>>().join("; ")
    };
    for (line, expected) in [
        ("request_memmory = 4096\n", "did you mean request_memory?"),
        ("request_ram = 4096\n", "did you mean request_memory?"),
        ("request_cores = 4\n", "did you mean request_cpus?"),
        ("request_memory = 2Gi\n", "'2Gi' is no amount: the units are K, M, G and T, as in 2G"),
        ("request_disk = 2.5 gigs\n", "'2.5 gigs' is no amount"),
    ] {
        assert!(said(line).contains(expected), "{line}: {}", said(line));
    }
    for line in [
        "request_cogs = 4\n",
        "request_licenses = 1\n",
        "request_memory = 2 * 1024\n",
        "request_disk = 2gb\n",
    ] {
        assert_eq!(said(line), "", "{line}");
    }
}

/// HTCondor's negotiator reads the attribute, which the command accounting_group sets.
#[test]
fn attributes_of_the_ad_that_fields_give_are_in_the_fields() {
    let spec = |lines: &str| {
        let text = format!("executable = /bin/true\ntransfer_executable = false\n{lines}queue\n");
        submitted("fields", &text).1.jobs[0]["spec"].clone()
    };
    let group = |lines: &str| spec(lines)["accountingGroup"].as_str().map(str::to_owned);
    assert_eq!(group("+AccountingGroup = \"group_x.hep.alice\"\n").as_deref(), Some("group_x.hep"));
    assert_eq!(
        group("accounting_group = group_y\n+AccountingGroup = \"group_x.alice\"\n").as_deref(),
        Some("group_x")
    );
    assert_eq!(group("+AccountingGroup = \"alice\"\n"), None);
    let dotted = "accounting_group = group_y\naccounting_group_user = ada.l\n";
    assert_eq!(group(dotted).as_deref(), Some("group_y"));
    assert_eq!(group("accounting_group_user = ada.l\n"), None);
    assert_eq!(group("accounting_group = group_y\n+AcctGroup = \"z\"\n").as_deref(), Some("group_y"));
    assert_eq!(group("accounting_group = group_y\n").as_deref(), Some("group_y"));
    assert_eq!(spec("+RequestLicenses = 3\n")["requests"]["resources"], serde_json::json!({"Licenses": 3}));
}

#[test]
fn a_vacating_time_that_is_a_number_is_the_grace_period_of_the_pod() {
    for (lines, expected) in [
        ("job_max_vacate_time = 300\n", Some(300)),
        ("kill_sig_timeout = 40\n", Some(40)),
        ("job_max_vacate_time = 300\nkill_sig_timeout = 40\n", Some(300)),
        ("job_max_vacate_time = 0\n", Some(1)),
        ("job_max_vacate_time = Memory\n", None),
        ("", None),
    ] {
        let text = format!("executable = /bin/true\ntransfer_executable = false\n{lines}queue\n");
        let (_, Manifests { jobs, .. }) = submitted("grace", &text);
        let grace =
            jobs[0].pointer("/spec/template/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
        assert_eq!(grace, expected, "{lines}");
    }
}

/// condor_submit takes any text, and the schedd holds the job.
#[test]
fn a_wrong_crontab_is_refused_with_its_place() {
    for (lines, line, column, says) in [
        ("cron_minute = 0,60\n", 2, 17, "cron_minute: expected a number between 0 and 59"),
        ("cron_minute = 0\ncron_hour = 9 - 5\n", 3, 17, "cron_hour: 5 is less than 9"),
        ("CronDayOfWeek = mon\n", 2, 17, "CronDayOfWeek: expected a number between 0 and 7"),
        (
            "cron_month = 2\ncron_day_of_month = 30\n",
            3,
            21,
            "cron_day_of_month: none of the months has such a day",
        ),
    ] {
        let text = format!("executable = sim.sh\n{lines}queue\n");
        let (submission, jobs) = submitted("wrong.sub", &text);
        let found: Vec<_> = submission.errors().collect();
        assert_eq!(found.len(), 1, "{found:?}");
        let place = (found[0].position.line, found[0].position.column);
        assert_eq!(place, (line, column), "{}", found[0]);
        assert!(found[0].to_string().contains(says), "{}", found[0]);
        assert!(jobs.jobs.is_empty(), "{text}");
    }
}

/// cron_window and cron_prep_time set the attributes of deferral.
#[test]
fn a_crontab_is_in_the_attributes_of_the_htcjob() {
    let files = place::files();
    let attributes = |name: &str| {
        let (_, _, text) = files.iter().find(|(file, ..)| file == name).unwrap();
        let (_, manifests) = submitted(name, text);
        manifests.jobs[0]["spec"]["attributes"].clone()
    };
    assert_eq!(
        attributes("crontab"),
        serde_json::json!({"CronMinute": "\"0,15,30,45\"", "DeferralPrepTime": "60", "OnExitRemove": "false"})
    );
    assert_eq!(attributes("crontab-window")["DeferralWindow"], "360");
}
