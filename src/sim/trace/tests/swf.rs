use super::*;

/// A line of 18 fields: the given ones, and -1 for the others.
fn line(fields: &[(usize, &str)]) -> String {
    let known = |field| fields.iter().find(|(at, _)| *at == field).map_or("-1", |(_, text)| text);
    (1..=18).map(known).collect::<Vec<_>>().join(" ")
}

/// The line of a job that ran a minute on two processors, with some fields changed.
fn job(changes: &[(usize, &str)]) -> String {
    let usual = [(1, "1"), (2, "0"), (4, "60"), (5, "2"), (11, "1"), (12, "3")];
    let unchanged = usual.iter().filter(|(at, _)| changes.iter().all(|(changed, _)| changed != at));
    line(&changes.iter().chain(unchanged).copied().collect::<Vec<_>>())
}

#[test]
fn every_field_that_is_used_is_read() {
    let text = "\
; Version: 2.2
; Computer: IBM SP2
; MaxNodes: 100
; MaxProcs: 128
; UnixStartTime: 865202064
; Queue: 1 batch: for all
  1  10    5  3600   8   -1  512   16  7200  1024  1  4  2  1 1 -1 -1 -1
; a comment in between, MaxProcs: 3
  2  70.4  0   0.4   4   -1  512   -1    -1    -1  0 -1 -1  1 1 -1 -1 -1
";
    let trace = trace(text);
    assert_eq!(trace.began, Some(865_202_074));
    assert_eq!(trace.processors, Some(128));
    assert_eq!(trace.skipped, []);
    assert_eq!(
        trace.jobs,
        [
            TraceJob {
                submitted: 0,
                runtime: 3600,
                cpus: 16,
                memory_mib: Some(16),
                disk_kib: None,
                gpus: 0,
                owner: "user4".into(),
                group: Some("group2".into()),
                priority: 0,
                completed: true,
            },
            TraceJob {
                submitted: 60,
                runtime: 0,
                cpus: 4,
                memory_mib: Some(2),
                disk_kib: None,
                gpus: 0,
                owner: "unknown".into(),
                group: None,
                priority: 0,
                completed: false,
            },
        ]
    );
}

#[test]
fn what_was_asked_for_goes_before_what_was_given() {
    for (changes, cpus, memory_mib) in [
        (vec![(5, "8"), (8, "16")], 16, None),
        (vec![(5, "8"), (8, "0")], 8, None),
        (vec![(5, "8")], 8, None),
        (vec![(5, "2"), (10, "1024")], 2, Some(2)),
        (vec![(5, "2"), (7, "100"), (10, "1024")], 2, Some(2)),
        (vec![(5, "3"), (7, "100")], 3, Some(1)),
        (vec![(5, "3"), (7, "0")], 3, None),
    ] {
        let job = &trace(&job(&changes)).jobs[0];
        assert_eq!((job.cpus, job.memory_mib), (cpus, memory_mib), "{changes:?}");
    }
}

#[test]
fn the_status_tells_what_became_of_a_job() {
    for (status, ran, completed) in [
        ("1", "60", Ok(true)),
        ("0", "60", Ok(false)),
        ("5", "60", Ok(false)),
        ("-1", "60", Ok(true)),
        ("5", "0", Err("line 1: never ran")),
        ("5", "-1", Err("line 1: never ran")),
        ("1", "-1", Err("line 1: does not say how long it ran")),
        ("1", "0", Ok(true)),
    ] {
        let text = job(&[(11, status), (4, ran)]);
        match completed {
            Ok(completed) => assert_eq!(trace(&text).jobs[0].completed, completed, "{text}"),
            Err(message) => assert_eq!(skipped(&text), [message], "{text}"),
        }
    }
}

#[test]
fn what_cannot_be_used_is_skipped_with_its_line_and_the_reason() {
    for (bad, message) in [
        ("2 0 5 60 4 -1 -1 4 -1 -1 1 7 2 -1 1".to_owned(), "has 15 fields, not 18"),
        (format!("{} 5", job(&[])), "has 19 fields, not 18"),
        (job(&[(4, "soon")]), "field 4 is no number"),
        (job(&[(18, "NaN")]), "field 18 is no number"),
        (job(&[(9, "inf")]), "field 9 is no number"),
        (job(&[(2, "-1")]), "does not say when it was submitted"),
        (job(&[(2, "1e300")]), "the time of submission is out of range"),
        (job(&[(4, "1e300")]), "the run time is out of range"),
        (job(&[(5, "-1")]), "does not say how many CPUs it asked for"),
        (job(&[(5, "0")]), "does not say how many CPUs it asked for"),
        (job(&[(5, "0.2")]), "the number of processors is out of range"),
        (job(&[(8, "1e300")]), "the number of processors is out of range"),
        (job(&[(1, "1e300")]), "the job's number is out of range"),
    ] {
        let text = format!("{}\n\n{bad}\n{}\n", job(&[]), job(&[(1, "9")]));
        assert_eq!(skipped(&text), [format!("line 3: {message}")], "{bad}");
        assert_eq!(trace(&text).jobs.len(), 2, "{bad}");
    }
}

#[test]
fn runs_of_a_job_that_is_summed_up_are_parts_of_it() {
    let text = [
        job(&[(1, "7"), (2, "100"), (4, "90"), (11, "1")]),
        job(&[(1, "7"), (2, "-1"), (4, "30"), (11, "2")]),
        job(&[(1, "7"), (2, "-1"), (4, "60"), (11, "3")]),
        job(&[(1, "8"), (2, "160"), (4, "5"), (11, "1")]),
    ]
    .join("\n");
    let ran: Vec<u64> = trace(&text).jobs.iter().map(|job| job.runtime).collect();
    assert_eq!(ran, [90, 5]);
    assert_eq!(
        skipped(&text),
        [
            "line 2: is a part of job 7, which line 1 sums up",
            "line 3: is a part of job 7, which line 1 sums up"
        ]
    );
}

#[test]
fn runs_without_a_sum_make_a_job() {
    let text = |last: &str| {
        [
            job(&[(1, "7"), (2, "100"), (4, "30"), (11, "2")]),
            job(&[(1, "8"), (2, "160"), (4, "5"), (11, "1")]),
            job(&[(1, "7"), (2, "-1"), (4, "60"), (11, last)]),
        ]
        .join("\n")
    };
    for (last, completed) in [("3", true), ("4", false), ("2", false)] {
        let trace = trace(&text(last));
        let jobs: Vec<_> = trace.jobs.iter().map(|job| (job.submitted, job.runtime, job.completed)).collect();
        assert_eq!(jobs, [(0, 90, completed), (60, 5, true)], "status {last}");
        assert_eq!(trace.skipped, []);
    }
}

#[test]
fn jobs_come_by_submission_whatever_the_order_of_the_lines() {
    let text =
        [job(&[(2, "70"), (12, "1")]), job(&[(2, "50"), (12, "2")]), job(&[(2, "50"), (12, "3")])].join("\n");
    let jobs: Vec<_> = trace(&text).jobs.iter().map(|job| (job.submitted, job.owner.to_string())).collect();
    assert_eq!(jobs, [(0, "user2".to_owned()), (0, "user3".to_owned()), (20, "user1".to_owned())]);
}
