//! When a report is written, and with what.

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn idle() -> Senses {
    let input = Some(LastInput::At(Time(at(900))));
    Senses {
        keyboard: input.clone(),
        console: input,
        load: Some(0.0),
        pool_load: Some(0.0),
        ..Senses::default()
    }
}

/// A reporter that has written what it sensed at 1000.
fn written() -> Reporter {
    let mut reporter = Reporter::new(at(1000));
    reporter.observe(idle(), at(1000));
    write(&mut reporter, 1000).unwrap();
    reporter
}

/// Makes the write that is due, and returns its patch of the status.
fn write(reporter: &mut Reporter, now: i64) -> Option<Value> {
    let write = reporter.due_write(at(now))?;
    reporter.record_write(write.status, at(now));
    assert_eq!(reporter.due_write(at(now)), None, "what was written is not written again");
    write.patch.get("status").cloned()
}

fn report(asked: i64, status: Value) -> NodeReport {
    serde_json::from_value(json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodeReport",
        "metadata": {"name": "n1", "generation": 2}, "spec": {"benchmark": Time(at(asked))}, "status": status}))
    .unwrap()
}

#[test]
fn an_idle_agent_writes_once() {
    let mut reporter = written();
    reporter.observe(idle(), at(900_000));
    assert_eq!((reporter.due_write(at(900_000)), reporter.next_wake(at(900_000))), (None, None));
    reporter.report_deleted();
    let patch = write(&mut reporter, 900_001).unwrap();
    assert_eq!(
        patch["lastInput"]["keyboard"],
        json!("1970-01-01T00:15:00Z"),
        "a report that somebody deleted is made anew"
    );
}

#[test]
fn input_is_ongoing_until_there_was_none_for_half_a_minute() {
    assert_eq!(input(at(100), at(129)), LastInput::Ongoing);
    assert_eq!(input(at(100), at(130)), LastInput::At(Time(at(100))));
    assert_eq!(input(at(100), at(99)), LastInput::Ongoing, "the kernel's clock may be a little ahead");
}

#[test]
fn suspensions_and_input_are_written_at_once_and_measures_after_a_while() {
    let mut reporter = written();
    reporter.observe(Senses { load: Some(2.5), pool_load: Some(2.0), ..idle() }, at(1004));
    assert_eq!((reporter.due_write(at(1004)), reporter.next_wake(at(1004))), (None, Some(at(1005))));
    assert_eq!(write(&mut reporter, 1005), Some(json!({"load": 2.5, "poolLoad": 2.0})));
    reporter.observe(Senses { load: Some(2.7), pool_load: Some(2.1), ..idle() }, at(1100));
    assert_eq!(reporter.next_wake(at(1100)), None, "less than a tenth of what it was is no move");
    let busy = Senses { load: Some(2.7), pool_load: Some(2.1), suspended: ["u1".into()].into(), ..idle() };
    reporter.observe(busy, at(1101));
    let expected = json!({"suspendedPods": ["u1"], "load": 2.7, "poolLoad": 2.1});
    assert_eq!(write(&mut reporter, 1101), Some(expected));
    reporter.observe(Senses { load: Some(2.7), pool_load: Some(2.1), ..idle() }, at(1102));
    assert_eq!(
        write(&mut reporter, 1102),
        Some(json!({"suspendedPods": null})),
        "the last one is taken away"
    );
    let here = Senses { keyboard: Some(LastInput::Ongoing), load: Some(2.7), pool_load: Some(2.1), ..idle() };
    reporter.observe(here, at(1103));
    assert_eq!(write(&mut reporter, 1103), Some(json!({"lastInput": {"keyboard": "ongoing"}})));
}

/// A tenant may let its pod be suspended and continued as often as it likes.
#[test]
fn a_state_that_changes_all_the_time_is_written_once_a_second() {
    let mut reporter = written();
    let millis = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
    let flips =
        |n: i64| Senses { suspended: (n % 2 == 0).then(|| "u1".into()).into_iter().collect(), ..idle() };
    let mut writes = Vec::new();
    for n in 0..50 {
        let now = 1_100_000 + n * 100;
        reporter.observe(flips(n), millis(now));
        if let Some(write) = reporter.due_write(millis(now)) {
            reporter.record_write(write.status, millis(now));
            writes.push(now - 1_100_000);
        }
    }
    assert_eq!(writes, [0, 1100, 2200, 3300, 4400], "the first one at once");
    reporter.observe(flips(1), millis(1_104_500));
    assert_eq!(reporter.next_wake(millis(1_104_500)), Some(millis(1_105_400)));
    assert!(reporter.due_write(millis(1_105_400)).is_some(), "the last state is told of in any case");
}

/// Without this, the agent would tell of nothing until the clock shows again what it showed.
#[test]
fn a_clock_that_is_set_back_lets_no_write_wait() {
    let mut reporter = written();
    reporter.observe(Senses { suspended: ["u1".into()].into(), load: Some(9.0), ..idle() }, at(400));
    assert_eq!(write(&mut reporter, 400), Some(json!({"suspendedPods": ["u1"], "load": 9.0})));
    reporter.observe(Senses { suspended: ["u1".into()].into(), load: Some(1.0), ..idle() }, at(100));
    assert_eq!(write(&mut reporter, 100), Some(json!({"load": 1.0})));
}

#[test]
fn the_last_write_of_an_agent_waits_for_nothing() {
    let mut reporter = written();
    assert_eq!(reporter.last_write(), None, "there is nothing to say");
    let problem = Problem { reason: "Stopped", message: "the agent was stopped".to_owned() };
    reporter.observe(Senses { problem: Some(problem), ..idle() }, at(1000));
    assert_eq!(reporter.due_write(at(1000)), None);
    let write = reporter.last_write().unwrap();
    assert_eq!(write.patch["status"]["conditions"][0]["reason"], "Stopped");
}

#[test]
fn slow_measures_are_written_once_a_minute_if_they_have_moved_by_a_tenth() {
    let mut reporter = written();
    let disk = |kib: i64| Senses { disk_kib: Some(kib), ..idle() };
    reporter.observe(disk(1000), at(1001));
    assert_eq!(reporter.next_wake(at(1001)), Some(at(1060)), "a measure that was not there before");
    assert_eq!(write(&mut reporter, 1060), Some(json!({"diskKiB": 1000})));
    reporter.observe(disk(950), at(1070));
    assert_eq!(reporter.next_wake(at(1070)), None);
    reporter.observe(disk(900), at(1071));
    assert_eq!(reporter.next_wake(at(1071)), Some(at(1120)));
    reporter.observe(
        Senses { disk_kib: Some(900), attributes: [("A".to_owned(), "1".to_owned())].into(), ..idle() },
        at(1071),
    );
    assert_eq!(write(&mut reporter, 1120), Some(json!({"diskKiB": 900, "attributes": {"A": "1"}})));
    reporter.observe(disk(900), at(1130));
    assert_eq!(write(&mut reporter, 1180), Some(json!({"attributes": null})));
}

#[test]
fn what_pods_use_is_written_once_a_minute_if_it_has_moved() {
    let mut reporter = written();
    let uses = |memory: i64, cpus: f64| {
        let (uid, memory_mib, cpus) = ("u1".to_owned(), Some(memory), Some(cpus));
        let usage = PodUsage { uid, memory_mib, cpus, ..PodUsage::default() };
        Senses { usage: vec![usage], ..idle() }
    };
    reporter.observe(uses(100, 1.0), at(1001));
    assert_eq!(reporter.next_wake(at(1001)), Some(at(1060)));
    let expected = json!({"usage": [{"uid": "u1", "memoryMiB": 100, "cpus": 1.0}]});
    assert_eq!(write(&mut reporter, 1060), Some(expected));
    reporter.observe(uses(109, 0.95), at(1200));
    assert_eq!(reporter.next_wake(at(1200)), None);
    reporter.observe(uses(110, 0.95), at(1200));
    assert!(write(&mut reporter, 1200).is_some());
    reporter.observe(idle(), at(1300));
    assert_eq!(write(&mut reporter, 1300), Some(json!({"usage": null})));
}

/// The amount that a pod has read or written only grows. A pod that writes all the time is told of ever more seldom.
#[test]
fn what_pods_transfer_is_written_when_it_has_grown_by_ten_mebibytes_and_a_tenth() {
    let mut reporter = written();
    let transfers = |block_write_kib: i64, block_writes: i64| {
        let (uid, block_write_kib, block_writes) =
            ("u1".to_owned(), Some(block_write_kib), Some(block_writes));
        Senses {
            usage: vec![PodUsage { uid, block_write_kib, block_writes, ..PodUsage::default() }],
            ..idle()
        }
    };
    reporter.observe(transfers(0, 0), at(1001));
    assert!(write(&mut reporter, 1060).is_some());
    for (kib, operations, is_due) in [
        (10_239, 9_000_000, false),
        (10_240, 9_000_000, true),
        (20_479, 9_000_001, false),
        (1_000_000, 9_000_002, true),
        (1_099_999, 9_000_003, false),
        (1_100_000, 9_000_003, true),
    ] {
        let now = reporter.written.as_ref().unwrap().1.as_second() + 60;
        reporter.observe(transfers(kib, operations), at(now));
        let patch = write(&mut reporter, now);
        let expected = json!({"usage": [{"uid": "u1", "blockWriteKiB": kib, "blockWrites": operations}]});
        assert_eq!(patch, is_due.then_some(expected), "{kib} KiB");
    }
    let mut writes = 0;
    for minute in 1..=24 * 60 {
        let now = 100_000 + minute * 60;
        reporter.observe(transfers(1_100_000 + minute * 6_000_000, 0), at(now));
        writes += usize::from(write(&mut reporter, now).is_some());
    }
    assert!(writes < 100, "a pod that writes 100 MB a second, for a day: {writes}");
}

#[test]
fn benchmarks_are_run_once_when_they_are_asked_for() {
    let figures = Figures { mips: 20_000, kflops: 2_000_000 };
    let mut reporter = written();
    reporter.observe_report(&report(1000, json!({"benchmarkedAt": Time(at(1000)), "mips": 1, "kflops": 2})));
    assert!(!reporter.wants_benchmark(), "an earlier agent has answered");
    reporter.observe_report(&report(1020, json!({"benchmarkedAt": Time(at(1000)), "mips": 1, "kflops": 2})));
    assert!(reporter.wants_benchmark());
    reporter.benchmarked(figures, at(1025));
    let patch = write(&mut reporter, 1025).unwrap();
    assert_eq!((&patch["mips"], &patch["kflops"]), (&json!(20_000), &json!(2_000_000)));
    reporter.observe_report(&report(1020, json!({"benchmarkedAt": Time(at(1000)), "mips": 1, "kflops": 2})));
    assert!(!reporter.wants_benchmark(), "the answer is on its way");
    reporter.observe_report(&report(1050, Value::Null));
    reporter.benchmarked(figures, at(1040));
    let patch = write(&mut reporter, 1040).unwrap();
    assert_eq!(
        patch["benchmarkedAt"],
        json!("1970-01-01T00:17:30Z"),
        "by another's clock it was asked for later"
    );
}

#[test]
fn an_agent_that_restarts_takes_away_what_its_forerunner_left_and_keeps_its_figures() {
    let mut reporter = Reporter::new(at(1000));
    let left = json!({"suspendedPods": ["gone"], "diskKiB": 5, "attributes": {"A": "1", "B": "2"},
        "benchmarkedAt": Time(at(900)), "mips": 1, "kflops": 2, "load": 3.0});
    reporter.observe_report(&report(800, left));
    let attributes = [("B".to_owned(), "2".to_owned())].into();
    reporter.observe(Senses { attributes, ..idle() }, at(1000));
    let patch = write(&mut reporter, 1000).unwrap();
    assert_eq!(patch["suspendedPods"], Value::Null);
    assert_eq!(patch["diskKiB"], Value::Null);
    assert!(patch.as_object().unwrap().contains_key("diskKiB"));
    assert_eq!(patch["attributes"], json!({"A": null}));
    assert!(patch.get("mips").is_none(), "nothing to change: {patch}");
}

#[test]
fn an_agent_that_does_not_know_what_its_forerunner_left_takes_away_each_field() {
    let mut reporter = Reporter::new(at(1000));
    reporter.observe(Senses::default(), at(1000));
    let patch = write(&mut reporter, 1000).unwrap();
    for field in ["suspendedPods", "diskKiB", "lastInput", "mips", "attributes", "slotAds", "load"] {
        assert_eq!(patch.get(field), Some(&Value::Null), "{field}");
    }
    assert_eq!(patch.get("devices"), None, "the field is not the agent's");
    assert_eq!(patch["conditions"][0]["status"], "True");
}

/// Somebody else may describe the devices of the node.
#[test]
fn the_devices_of_a_stored_report_stay() {
    let mut reporter = Reporter::new(at(1000));
    let devices = json!([{"resource": "nvidia.com/gpu", "id": "GPU-1"}]);
    reporter.observe_report(&report(0, json!({"devices": devices, "diskKiB": 7})));
    reporter.observe(idle(), at(1000));
    let patch = write(&mut reporter, 1000).unwrap();
    assert_eq!((patch.get("devices"), &patch["diskKiB"]), (None, &Value::Null));
    assert_eq!(json!(reporter.status())["devices"], devices);
}

#[test]
fn an_agent_that_cannot_work_says_so_and_since_when() {
    let mut reporter = written();
    let problem = Problem { reason: "NoCgroups", message: "no cgroups".to_owned() };
    reporter.observe(Senses { problem: Some(problem), ..idle() }, at(1100));
    let ready = write(&mut reporter, 1100).unwrap()["conditions"][0].clone();
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("NoCgroups")));
    assert_eq!(ready["lastTransitionTime"], json!("1970-01-01T00:18:20Z"));
    reporter.observe(idle(), at(1200));
    let ready = write(&mut reporter, 1200).unwrap()["conditions"][0].clone();
    assert_eq!(
        (&ready["status"], &ready["lastTransitionTime"]),
        (&json!("True"), &json!("1970-01-01T00:20:00Z"))
    );
}

/// The time of a condition says since when it is so, and not since when the agent runs.
#[test]
fn an_agent_that_starts_anew_keeps_the_times_of_conditions_that_stay() {
    let cron = |problem: &str| Senses {
        cron: CronSenses { jobs: 1, problem: problem.to_owned(), ..CronSenses::default() },
        ..idle()
    };
    let times = |reporter: &mut Reporter, now: i64| {
        let conditions = write(reporter, now).unwrap()["conditions"].clone();
        [0, 1].map(|n| conditions[n]["lastTransitionTime"].as_str().unwrap().to_owned())
    };
    let mut first = Reporter::new(at(1000));
    first.observe(cron(""), at(1000));
    let began = times(&mut first, 1000);
    let mut second = Reporter::new(at(2000));
    let stored = serde_json::to_value(first.status()).unwrap();
    second.observe_report(&report(0, stored));
    second.observe(Senses { load: Some(3.0), ..cron("") }, at(2001));
    let status = second.due_write(at(2001)).unwrap().status;
    assert!(
        status.conditions.iter().all(|condition| condition.last_transition_time.0 == at(1000)),
        "{status:?}"
    );
    second.observe(cron("a fault"), at(2002));
    let [ready, cron_jobs] = times(&mut second, 2002);
    assert_eq!((&ready, &*cron_jobs), (&began[0], "1970-01-01T00:33:22Z"));
}

fn cron(attributes: &[(&str, &str)]) -> CronSenses {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut senses = CronSenses { jobs: 1, ..CronSenses::default() };
    senses.says.attributes = attributes.iter().map(owned).collect();
    senses
}

#[test]
fn what_cron_jobs_say_is_written_once_a_minute_or_soon_and_never_twice() {
    let mut reporter = written();
    let says = |value: &str| Senses { cron: cron(&[("A", value)]), ..idle() };
    reporter.observe(says("1"), at(1001));
    assert_eq!(reporter.next_wake(at(1001)), Some(at(1060)));
    let patch = write(&mut reporter, 1060).unwrap();
    assert_eq!(
        (&patch["attributes"], &patch["conditions"][1]["reason"]),
        (&json!({"A": "1"}), &json!("Running"))
    );
    reporter.observe(says("1"), at(1200));
    assert_eq!(reporter.next_wake(at(1200)), None, "the same again is not written, however often a job runs");
    reporter.hurry();
    assert_eq!(reporter.next_wake(at(1200)), None, "nor is it if the job asks for an update");
    reporter.observe(says("2"), at(1201));
    reporter.hurry();
    assert_eq!(write(&mut reporter, 1201), Some(json!({"attributes": {"A": "2"}})));
    reporter.observe(says("3"), at(1202));
    assert_eq!(reporter.next_wake(at(1202)), Some(at(1261)), "the hurry is over");
    reporter.hurry();
    assert_eq!(reporter.next_wake(at(1202)), Some(at(1206)), "paced as a load is");
}

#[test]
fn what_is_wrong_with_cron_jobs_is_a_condition() {
    let mut reporter = written();
    let fails =
        |problem: &str| Senses { cron: CronSenses { problem: problem.to_owned(), ..cron(&[]) }, ..idle() };
    reporter.observe(fails("a: no such file"), at(1100));
    let conditions = write(&mut reporter, 1100).unwrap()["conditions"].clone();
    assert_eq!((&conditions[0]["type"], &conditions[0]["status"]), (&json!("Ready"), &json!("True")));
    let expected = json!({"type": "CronJobs", "status": "False", "reason": "Failing", "message": "a: no such file",
        "lastTransitionTime": "1970-01-01T00:18:20Z"});
    assert_eq!(conditions[1], expected);
    reporter.observe(idle(), at(1200));
    let conditions = write(&mut reporter, 1200).unwrap()["conditions"].clone();
    assert_eq!(conditions.as_array().unwrap().len(), 1, "without cron jobs there is nothing to say");
}

#[test]
fn an_agent_that_restarts_keeps_what_its_forerunners_cron_jobs_said_until_its_own_have_spoken() {
    let mut reporter = Reporter::new(at(1000));
    let ad = json!({"attributes": {"SlotId": "1", "SlotBrokenReason": "\"hot\""}});
    let left = json!({"attributes": {"A": "1", "CpuPressure": "0"}, "slotAds": [ad]});
    reporter.observe_report(&report(800, left));
    let own = || [("CpuPressure".to_owned(), "10".to_owned())].into();
    let keeps = CronSenses { keeps: true, ..cron(&[]) };
    reporter.observe(Senses { attributes: own(), cron: keeps, ..idle() }, at(1000));
    let patch = write(&mut reporter, 1000).unwrap();
    assert_eq!((&patch["attributes"], patch.get("slotAds")), (&json!({"CpuPressure": "10"}), None));
    reporter.observe(Senses { attributes: own(), cron: cron(&[("A", "2")]), ..idle() }, at(1010));
    let patch = write(&mut reporter, 1060).unwrap();
    assert_eq!((&patch["attributes"], &patch["slotAds"]), (&json!({"A": "2"}), &Value::Null));
}
