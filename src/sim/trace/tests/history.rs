use super::*;

/// An ad of the history as HTCondor 25 writes it, shortened, with some attributes changed; an empty text leaves the
/// attribute out.
fn ad(changes: &[(&str, &str)]) -> String {
    let usual = [
        ("AccountingGroup", "\"group_physics.ann\""),
        ("AcctGroup", "\"group_physics\""),
        ("AcctGroupUser", "\"ann\""),
        ("ClusterId", "12"),
        ("CommittedSuspensionTime", "0"),
        ("CommittedTime", "3600"),
        ("CompletionDate", "1769864560"),
        ("CpusProvisioned", "4"),
        ("CumulativeSuspensionTime", "0"),
        ("DiskUsage", "1000"),
        ("ExitBySignal", "false"),
        ("ExitCode", "0"),
        ("ImageSize", "2500"),
        ("JobCurrentStartDate", "1769860960"),
        ("JobPrio", "5"),
        ("JobStatus", "4"),
        ("JobUniverse", "5"),
        ("LastRemoteWallClockTime", "3600.0"),
        ("MemoryUsage", "((ResidentSetSize + 1023) / 1024)"),
        ("Owner", "\"ann\""),
        ("ProcId", "0"),
        ("QDate", "1769860800"),
        ("RemoteWallClockTime", "9000.0"),
        ("RequestCpus", "4"),
        ("RequestDisk", "DiskUsage"),
        ("RequestGPUs", "1"),
        ("RequestMemory", "ifThenElse(MemoryUsage =!= undefined, MemoryUsage, (ImageSize + 1023) / 1024)"),
        ("ResidentSetSize", "5000"),
        ("User", "\"ann@example.org\""),
    ];
    let otherwise = |name: &str| changes.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    let added = changes.iter().filter(|(name, _)| usual.iter().all(|(other, _)| other != name)).copied();
    let lines: Vec<String> = usual
        .iter()
        .map(|(name, value)| (*name, otherwise(name).unwrap_or(value)))
        .chain(added)
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name} = {value}\n"))
        .collect();
    lines.concat()
}

fn job(changes: &[(&str, &str)]) -> TraceJob {
    let trace = trace(&ad(changes));
    assert_eq!(trace.skipped, [], "{changes:?}");
    trace.jobs[0].clone()
}

#[test]
fn every_attribute_that_is_used_is_read() {
    let trace = trace(&ad(&[]));
    assert_eq!((trace.began, trace.processors), (Some(1_769_860_800), None));
    assert_eq!(
        trace.jobs,
        [TraceJob {
            submitted: 0,
            runtime: 3600,
            cpus: 4,
            memory_mib: Some(5),
            disk_kib: Some(1000),
            gpus: 1,
            owner: "ann".into(),
            group: Some("group_physics".into()),
            priority: 5,
            completed: true,
        }]
    );
}

#[test]
fn a_banner_ends_an_ad_in_the_file_and_a_blank_line_in_print() {
    let (one, two) = (ad(&[]), ad(&[("ProcId", "1"), ("QDate", "1769860860")]));
    for text in [
        format!("{one}\n{two}\n"),
        format!("{one}\n\n \n{two}"),
        format!(
            "{one}*** Offset = 0 ClusterId = 12 ProcId = 0 Owner = \"ann\" CompletionDate = 1769864560\n{two}*** Offset \
             = 733 ClusterId = 12 ProcId = 1 Owner = \"ann\" CompletionDate = 1769864560\n"
        ),
    ] {
        let submitted: Vec<u64> = trace(&text).jobs.iter().map(|job| job.submitted).collect();
        assert_eq!(submitted, [0, 60], "{text}");
        assert_eq!(trace(&text).skipped, []);
    }
}

#[test]
fn the_run_time_is_that_of_the_run_that_counted() {
    for (changes, runtime) in [
        (vec![], 3600),
        (vec![("CommittedSuspensionTime", "600")], 3000),
        (vec![("CommittedTime", "0")], 3600),
        (vec![("CommittedTime", "0"), ("LastRemoteWallClockTime", "")], 9000),
        (
            vec![
                ("CommittedTime", "0"),
                ("LastRemoteWallClockTime", ""),
                ("CumulativeSuspensionTime", "500"),
            ],
            8500,
        ),
        (vec![("CommittedTime", ""), ("LastRemoteWallClockTime", ""), ("RemoteWallClockTime", "0.0")], 3600),
    ] {
        assert_eq!(job(&changes).runtime, runtime, "{changes:?}");
    }
}

#[test]
fn requests_that_are_expressions_are_evaluated_in_the_ad() {
    for (changes, (cpus, memory, disk, gpus)) in [
        (vec![("MemoryUsage", "")], (4, Some(3), Some(1000), 1)),
        (
            vec![("RequestMemory", "2048"), ("RequestDisk", "1024 * 1024")],
            (4, Some(2048), Some(1_048_576), 1),
        ),
        (vec![("RequestMemory", "TARGET.Memory")], (4, None, Some(1000), 1)),
        (
            vec![("RequestMemory", "TARGET.Memory"), ("MemoryProvisioned", "4096")],
            (4, Some(4096), Some(1000), 1),
        ),
        (vec![("RequestGPUs", "")], (4, Some(5), Some(1000), 0)),
        (vec![("RequestGPUs", "undefined")], (4, Some(5), Some(1000), 0)),
        (vec![("RequestCpus", "TARGET.Cpus")], (4, Some(5), Some(1000), 1)),
        (vec![("RequestCpus", ""), ("CpusProvisioned", "")], (1, Some(5), Some(1000), 1)),
        (vec![("RequestCpus", "1 + 1")], (2, Some(5), Some(1000), 1)),
    ] {
        let job = job(&changes);
        let got = (job.cpus, job.memory_mib, job.disk_kib, job.gpus);
        assert_eq!(got, (cpus, memory, disk, gpus), "{changes:?}");
    }
}

#[test]
fn the_submitter_is_whom_fair_share_is_reckoned_by() {
    for (changes, owner, group) in [
        (vec![], "ann", Some("group_physics")),
        (vec![("AcctGroupUser", "\"portal\"")], "portal", Some("group_physics")),
        (vec![("AcctGroupUser", "")], "ann", Some("group_physics")),
        (vec![("AcctGroup", ""), ("AccountingGroup", "")], "ann", None),
        (
            vec![
                ("AcctGroup", ""),
                ("AcctGroupUser", ""),
                ("AccountingGroup", "\"group_a.b.bob@example.org\""),
            ],
            "bob",
            Some("group_a.b"),
        ),
        (
            vec![("AcctGroup", ""), ("AcctGroupUser", ""), ("AccountingGroup", "\"group_a\"")],
            "ann",
            Some("group_a"),
        ),
        (
            vec![("AcctGroup", ""), ("AcctGroupUser", ""), ("AccountingGroup", ""), ("Owner", "undefined")],
            "ann",
            None,
        ),
        (
            vec![
                ("AcctGroup", ""),
                ("AcctGroupUser", ""),
                ("AccountingGroup", ""),
                ("Owner", ""),
                ("User", ""),
            ],
            "unknown",
            None,
        ),
    ] {
        let job = job(&changes);
        assert_eq!((&*job.owner, job.group.as_deref()), (owner, group), "{changes:?}");
    }
}

#[test]
fn only_what_ended_by_itself_and_well_completed() {
    for (changes, completed) in [
        (vec![], true),
        (vec![("ExitCode", "1")], false),
        (vec![("ExitCode", ""), ("ExitBySignal", "true")], false),
        (vec![("JobStatus", "3"), ("ExitCode", "")], false),
    ] {
        assert_eq!(job(&changes).completed, completed, "{changes:?}");
    }
}

#[test]
fn what_cannot_be_used_is_skipped_with_its_line_and_the_reason() {
    let unstarted = [
        ("CommittedTime", "0"),
        ("LastRemoteWallClockTime", ""),
        ("RemoteWallClockTime", "0.0"),
        ("JobCurrentStartDate", ""),
        ("CompletionDate", "0"),
    ];
    let with = |more: (&'static str, &'static str)| unstarted.into_iter().chain([more]).collect::<Vec<_>>();
    for (changes, message) in [
        (vec![("QDate", "")], "does not say when it was submitted"),
        (vec![("QDate", "1.0e300")], "QDate is out of range"),
        (vec![("CommittedTime", "1.0e300")], "the run time is out of range"),
        (with(("JobStatus", "3")), "never ran"),
        (with(("JobStatus", "1")), "does not say how long it ran"),
        (
            vec![("RequestCpus", "TARGET.Cpus"), ("CpusProvisioned", "")],
            "does not say how many CPUs it asked for",
        ),
        (vec![("RequestCpus", "1.0e300")], "RequestCpus is out of range"),
        (vec![("JobUniverse", "7")], "is of universe 7, whose jobs are not matched with one slot each"),
        (vec![("ProcId", "0")], "is the job of line 1 again"),
        (
            vec![("CommittedTime", "3600 +")],
            "cannot be read: line 36, column 23: expected an operand after '+', found end of input",
        ),
    ] {
        let text = format!("{}\n{}\n{}", ad(&[]), ad(&changes), ad(&[("ProcId", "9")]));
        assert_eq!(skipped(&text), [format!("line 31: {message}")], "{changes:?}");
        assert_eq!(trace(&text).jobs.len(), 2, "{changes:?}");
    }
}

#[test]
fn what_is_not_used_need_not_be_readable() {
    assert_eq!(trace(&ad(&[("Environment", "\"unfinished")])).jobs.len(), 1);
}

#[test]
fn ads_about_single_runs_are_no_jobs() {
    let text = format!(
        "{}*** EPOCH ClusterId=12 ProcId=0 RunInstanceId=0 Owner=\"ann\" CurrentTime=1769864560\n{}*** Offset = 0\n",
        ad(&[]),
        ad(&[])
    );
    assert_eq!(skipped(&text), ["line 1: is no job but EPOCH: give the job history"]);
    assert_eq!(trace(&text).jobs.len(), 1);
}

#[test]
fn an_ad_is_bounded() {
    let long = format!("{}Huge = \"{}\"\nMore = 1\n", ad(&[]), "x".repeat(1 << 20));
    let text = format!("{long}\n{}", ad(&[]));
    assert_eq!(skipped(&text), ["line 1: is longer than 1 MiB"]);
    assert_eq!(trace(&text).jobs.len(), 1);
}

#[test]
fn a_request_without_a_value_costs_its_job_the_request_only() {
    for text in ["RequestMemory + 1", "evalInEachContext(1, 2, 3)", "1 / 0", "\"much\""] {
        assert_eq!(job(&[("RequestMemory", text)]).memory_mib, None, "{text}");
    }
}
