//! The job event log is read, missing events are found, and no event is written twice.

use jiff::tz::TimeZone;
use tools::events::{Exit, Log, Now, Proc, Run, Standing};

const HOST: &str = "<10.0.0.1:6443?htcjob=ada/sim>";
const ID: (i64, u32) = (12, 3);

fn run(number: u32, started: i64) -> Run {
    Run { number, started, host: "<node7>".into(), slot: Some("slot1_1@node7".into()) }
}

fn proc(run: Option<Run>, now: Now) -> Proc {
    Proc { id: ID, submitted: 100, host: HOST.into(), run, now }
}

fn idle(since: i64) -> Now {
    Now::Idle { since: Some(since), evicted: None, requeued: None }
}

fn held(since: i64, reason: &str, code: i64) -> Now {
    Now::Held { since: Some(since), reason: reason.into(), code, subcode: 0 }
}

fn done(at: i64, code: i32) -> Now {
    Now::Done { at: Some(at), exit: Exit::Code(code) }
}

/// Brings a log up to date at 1000. Returns the new events as number and time.
fn update(log: &mut String, proc: &Proc) -> Vec<(u32, i64)> {
    let known = Log::read(log).remove(&proc.id).unwrap_or_default();
    let events = proc.missing(&known, 1000);
    for event in &events {
        log.push_str(&event.text(&TimeZone::UTC));
    }
    let again = Log::read(log).remove(&proc.id).unwrap_or_default();
    assert_eq!(proc.missing(&again, 2000), [], "twice the same: {proc:?}\n{log}");
    events.into_iter().map(|event| (event.kind.number(), event.time)).collect()
}

#[test]
fn a_log_that_is_kept_up_has_what_happens() {
    let mut log = String::new();
    let suspended = |suspended| Now::Running { suspended };
    for (now, expected) in [
        (proc(None, idle(100)), &[(0, 100)][..]),
        (proc(Some(run(1, 200)), suspended(false)), &[(1, 200)]),
        (proc(Some(run(1, 200)), suspended(true)), &[(10, 1000)]),
        (proc(Some(run(1, 200)), suspended(false)), &[(11, 1000)]),
        (proc(Some(run(1, 200)), held(300, "via condor_hold", 1)), &[(4, 300), (12, 300)]),
        (proc(Some(run(1, 200)), held(310, "too much memory", 34)), &[(13, 310), (12, 310)]),
        (proc(Some(run(1, 200)), idle(320)), &[(13, 320)]),
        (proc(Some(run(2, 400)), suspended(false)), &[(1, 400)]),
        (proc(Some(run(3, 500)), suspended(false)), &[(4, 500), (1, 500)]),
        (proc(Some(run(3, 500)), held(550, "five", 3)), &[(12, 550)]),
        (proc(Some(run(4, 600)), suspended(true)), &[(13, 600), (1, 600), (10, 1000)]),
        (proc(Some(run(4, 600)), done(700, 3)), &[(11, 700), (5, 700)]),
        (proc(None, done(700, 3)), &[]),
    ] {
        assert_eq!(update(&mut log, &now), expected, "{now:?}\n{log}");
    }
}

#[test]
fn a_log_that_was_not_kept_up_gets_what_is_still_known() {
    for (now, expected) in [
        (proc(Some(run(1, 200)), done(700, 0)), &[(0, 100), (1, 200), (5, 700)][..]),
        (proc(None, done(700, 0)), &[(0, 100), (5, 700)]),
        (proc(Some(run(2, 200)), held(300, "x", 34)), &[(0, 100), (12, 300)]),
        (proc(Some(run(2, 200)), Now::Removed { reason: None }), &[(0, 100), (9, 1000)]),
        // Times that are not known, or make no sense, do not go backwards.
        (
            proc(Some(run(1, 50)), Now::Done { at: None, exit: Exit::Signal(9) }),
            &[(0, 100), (1, 100), (5, 1000)],
        ),
    ] {
        assert_eq!(update(&mut String::new(), &now), expected, "{now:?}");
    }
}

#[test]
fn removal_of_a_proc_that_runs_is_an_eviction_first() {
    let mut log = String::new();
    update(&mut log, &proc(Some(run(1, 200)), Now::Running { suspended: false }));
    let removed = proc(Some(run(1, 200)), Now::Removed { reason: Some("via condor_rm".into()) });
    assert_eq!(update(&mut log, &removed), [(4, 1000), (9, 1000)]);
    assert!(log.ends_with("Job was aborted.\n\tvia condor_rm\n...\n"), "{log}");
}

#[test]
fn texts_of_others_make_no_events() {
    let held = held(300, "a\n...\n005 (012.003.000) 2026-01-01 00:00:00 Job terminated.", 1);
    let mut log = String::new();
    assert_eq!(update(&mut log, &proc(None, held)), [(0, 100), (12, 300)]);
    assert_eq!(Log::read(&log)[&ID].standing, Standing::Held);
}

#[test]
fn what_is_no_event_is_left_out() {
    let text = "nonsense\n000 (012.003.000) 11/26 09:05:00 Job submitted from host: <a>\n...\n001 (012.003.000) cut\n\
                028 (012.003.000) 2026-11-26 09:05:00 Job ad information event triggered.\nProc = 3\n...\n005 (12.x.000) \n...\n";
    let procs = Log::read(text);
    assert_eq!(procs.len(), 1);
    let log = &procs[&ID];
    assert_eq!((log.standing, log.host.as_deref(), log.run), (Standing::Idle, Some("<a>"), 0));
}
