//! Cron jobs as the manual writes them, and what is wrong with others.

use super::super::understand;
use super::*;

fn read(text: &str) -> CronPolicy {
    let understood = understand(text);
    let config = understood.config.unwrap_or_else(|| panic!("{:?}", understood.remarks));
    (*config.cron).clone()
}

/// The remarks about a text, as lines.
fn remarks(text: &str) -> Vec<String> {
    understand(text).remarks.iter().map(|remark| format!("{} {remark}", remark.severity)).collect()
}

fn one(lines: &str) -> CronJob {
    let text = format!("STARTD_CRON_JOBLIST = a\nSTARTD_CRON_a_EXECUTABLE = /opt/cron/a\n{lines}\n");
    let mut jobs = read(&text).tab.jobs;
    assert_eq!(jobs.len(), 1, "{text}");
    jobs.remove(0)
}

/// "Here is a complete configuration example."
#[test]
fn the_manuals_example_is_read() {
    let policy = read(
        "MODULES = /opt/cron
STARTD_CRON_MAX_JOB_LOAD = 0.2
STARTD_CRON_JOBLIST =
STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) test
STARTD_CRON_TEST_MODE = OneShot
STARTD_CRON_TEST_RECONFIG_RERUN = True
STARTD_CRON_TEST_PREFIX = test_
STARTD_CRON_TEST_EXECUTABLE = $(MODULES)/test
STARTD_CRON_TEST_KILL = True
STARTD_CRON_TEST_ARGS = abc 123
STARTD_CRON_TEST_SLOTS = 1
STARTD_CRON_TEST_JOB_LOAD = 0.01
STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) date
STARTD_CRON_DATE_MODE = Periodic
STARTD_CRON_DATE_EXECUTABLE = $(MODULES)/date
STARTD_CRON_DATE_PERIOD = 15s
STARTD_CRON_DATE_JOB_LOAD = 0.01
STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) foo
STARTD_CRON_FOO_EXECUTABLE = $(MODULES)/foo
STARTD_CRON_FOO_PREFIX = Foo
STARTD_CRON_FOO_MODE = Periodic
STARTD_CRON_FOO_PERIOD = 10m
STARTD_CRON_FOO_JOB_LOAD = 0.2
",
    );
    let job = |name: &str| CronJob {
        name: name.to_owned(),
        executable: format!("/opt/cron/{name}"),
        load: 0.01,
        may_start: true,
        ..CronJob::default()
    };
    let test = CronJob {
        mode: CronMode::OneShot,
        rerun: true,
        kill: true,
        prefix: "test_".to_owned(),
        arguments: vec!["abc".to_owned(), "123".to_owned()],
        slots: vec![1],
        ..job("test")
    };
    let date = CronJob { period: Duration::from_secs(15), ..job("date") };
    let foo = CronJob { period: Duration::from_mins(10), prefix: "Foo".to_owned(), load: 0.2, ..job("foo") };
    let expected = Crontab { jobs: vec![test, date, foo], max_load: 0.2, ..Crontab::default() };
    assert_eq!(policy, CronPolicy { tab: expected, conditions: BTreeMap::new() });
}

#[test]
fn a_period_is_in_seconds_minutes_or_hours() {
    for (text, mode, seconds) in [
        ("15", "Periodic", 15),
        ("15s", "Periodic", 15),
        ("5 M", "Periodic", 300),
        ("1h", "WaitForExit", 3600),
        // HTCondor's template ContinuousCronHook says 0.
        ("0", "WaitForExit", 1),
        ("10m", "OneShot", 0),
    ] {
        let job = one(&format!("STARTD_CRON_a_MODE = {mode}\nSTARTD_CRON_a_PERIOD = {text}"));
        assert_eq!(job.period, Duration::from_secs(seconds), "{mode} {text}");
    }
}

#[test]
fn what_a_job_may_say() {
    let job = one("STARTD_CRON_a_MODE = waitforexit\nSTARTD_CRON_A_PERIOD = 1\nSTARTD_CRON_a_CWD = /tmp\n\
        STARTD_CRON_a_ENV = \"A=1 B='x y'\"\nSTARTD_CRON_a_ARGS = \"one 'two words'\"\nSTARTD_CRON_a_RECONFIG = 1\n\
        STARTD_CRON_a_SLOTS = 1, 3");
    assert_eq!(
        (job.mode, job.directory.as_deref(), job.reconfig),
        (CronMode::WaitForExit, Some("/tmp"), true)
    );
    assert_eq!(job.arguments, ["one", "two words"]);
    assert_eq!((job.environment["A"].as_str(), job.environment["B"].as_str()), ("1", "x y"));
    assert_eq!((job.slots, job.load), (vec![1, 3], 0.01));
    let policy = read(
        "use FEATURE : StartdCronPeriodic(a, 30, /opt/cron/a, x)\nuse FEATURE : StartdCronOneShot(b, /opt/cron/b)\n\
         use FEATURE : StartdCronContinuous(c, /opt/cron/c)\nSTARTD_CRON_AUTOPUBLISH = if_changed\n\
         STARTD_CRON_LOG_NON_ZERO_EXIT = true\nSTARTD_CRON_B_CONDITION = TotalCpus > 2\nSTARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST), A",
    );
    let modes: Vec<_> = policy.tab.jobs.iter().map(|job| (job.name.as_str(), job.mode)).collect();
    assert_eq!(modes, [("a", CronMode::Periodic), ("b", CronMode::OneShot), ("c", CronMode::WaitForExit)]);
    assert_eq!((policy.tab.publish, policy.tab.log_failures), (Autopublish::IfChanged, true));
    assert_eq!(policy.conditions["b"].to_string(), "TotalCpus > 2");
    assert_eq!(read("START = true"), CronPolicy::default());
}

#[test]
fn what_is_wrong_with_a_job_is_told_by_name_with_its_place() {
    const HEAD: &str = "STARTD_CRON_JOBLIST = a\nSTARTD_CRON_a_EXECUTABLE = a\nSTARTD_CRON_a_PERIOD = 5\n";
    for (line, expected) in [
        (
            "STARTD_CRON_a_MODE = OnDemand",
            "STARTD_CRON_a_MODE is OnDemand, which is for BENCHMARKS jobs: HTCondor never runs another job of this mode; say \
             Periodic, WaitForExit or OneShot",
        ),
        (
            "STARTD_CRON_a_MODE = often",
            "STARTD_CRON_a_MODE is often, which is no Periodic, WaitForExit or OneShot",
        ),
        (
            "STARTD_CRON_a_PERIOD = 5d",
            "STARTD_CRON_a_PERIOD is 5d; say a number of seconds from 1 to a year, or of minutes or hours, such as 30, 30s, 5m or 1h",
        ),
        (
            "STARTD_CRON_a_PERIOD = 0",
            "STARTD_CRON_a_PERIOD is 0; say a number of seconds from 1 to a year, or of minutes or hours, such as 30, 30s, 5m or 1h",
        ),
        (
            "STARTD_CRON_a_EXECUTABLE = x/../../bin/sh",
            "STARTD_CRON_a_EXECUTABLE is x/../../bin/sh, which may lead out of the directory of programs; say the program's path \
             without ..",
        ),
        ("STARTD_CRON_a_CWD = tmp", "STARTD_CRON_a_CWD is tmp; say an absolute path"),
        (
            "STARTD_CRON_a_PREFIX = 1st_",
            "STARTD_CRON_a_PREFIX is 1st_; an attribute's name has letters, digits and underscores, and no digit first",
        ),
        ("STARTD_CRON_a_SLOTS = 1, all", "STARTD_CRON_a_SLOTS is 1, all; say numbers of slots, such as 1, 2"),
        ("STARTD_CRON_a_ENV = A", "STARTD_CRON_a_ENV is A: each variable is NAME=VALUE"),
        (
            "STARTD_CRON_a_ARGS = \"x",
            "STARTD_CRON_a_ARGS is \"x: it begins with a double quote and does not end with one; inside, \"\" stands for one",
        ),
        ("STARTD_CRON_a_JOB_LOAD = 101", "STARTD_CRON_a_JOB_LOAD must be at most 100, and is 101"),
        (
            "STARTD_CRON_AUTOPUBLISH = Sometimes",
            "STARTD_CRON_AUTOPUBLISH is Sometimes, which is no Never, If_Changed or Always",
        ),
    ] {
        let text = format!("{HEAD}{line}\n");
        let found = remarks(&text);
        let [found] = &found[..] else { panic!("{line}: {found:?}") };
        let place = found.strip_prefix("error line 4, column ").unwrap_or_else(|| panic!("{found}"));
        assert_eq!(place.split_once(": ").unwrap().1, expected, "{line}");
        assert!(understand(&text).config.is_none(), "{line}");
    }
    for (text, expected) in [
        (
            "STARTD_CRON_JOBLIST = a\nSTARTD_CRON_a_PERIOD = 5",
            "error line 1, column 1: the cron job a has no program: set STARTD_CRON_a_EXECUTABLE, or take the job off \
             STARTD_CRON_JOBLIST",
        ),
        (
            "STARTD_CRON_JOBLIST = a\nSTARTD_CRON_a_EXECUTABLE = a",
            "error line 1, column 1: the cron job a has no period: set STARTD_CRON_a_PERIOD, such as 5m",
        ),
        (
            "STARTD_CRON_JOBLIST = a/b",
            "error line 1, column 1: STARTD_CRON_JOBLIST has at most 64 names of at most 64 letters, digits, hyphens, periods and \
             underscores",
        ),
    ] {
        assert_eq!(remarks(text), [expected], "{text}");
    }
}

#[test]
fn what_does_nothing_is_told() {
    let told = remarks(
        "STARTD_CRON_JOBLIST = a\nSTARTD_CRON_a_EXECUTABLE = a\nSTARTD_CRON_a_PERIOD = 5\nSTARTD_CRON_b_PERIOD = 5",
    );
    assert_eq!(
        told,
        ["warning line 4, column 1: STARTD_CRON_b_PERIOD has no effect: STARTD_CRON_JOBLIST does not list b"]
    );
    let heavy = "STARTD_CRON_JOBLIST = a\nSTARTD_CRON_a_EXECUTABLE = a\nSTARTD_CRON_a_PERIOD = 5\nSTARTD_CRON_a_JOB_LOAD = 0.2";
    assert_eq!(
        remarks(heavy),
        [
            "warning line 4, column 1: the cron job a never runs: its JOB_LOAD is 0.2, and STARTD_CRON_MAX_JOB_LOAD is 0.1"
        ]
    );
    let monitor = "use FEATURE : Monitor(SQUIDs, Periodic, 10, /opt/cron/squids, SUM:SQUIDs)";
    assert_eq!(remarks(monitor), [] as [String; 0]);
    let metrics: Vec<Metric> = read(monitor).tab.jobs.into_iter().flat_map(|job| job.metrics).collect();
    assert_eq!(metrics, [Metric { kind: MetricKind::Sum, resource: "SQUIDs".to_owned() }]);
}

#[test]
fn the_metrics_of_a_monitor_are_read() {
    let job = "STARTD_CRON_JOBLIST = a\nSTARTD_CRON_a_EXECUTABLE = a\nSTARTD_CRON_a_PERIOD = 5\nSTARTD_CRON_a_METRICS = ";
    let metrics = |list: &str| -> Vec<String> {
        let jobs = read(&format!("{job}{list}")).tab.jobs;
        jobs.iter().flat_map(|job| &job.metrics).map(|metric| format!("{metric:?}")).collect()
    };
    let sum = r#"Metric { kind: Sum, resource: "GPUs" }"#;
    let peak = r#"Metric { kind: Peak, resource: "GPUsMemory" }"#;
    for (list, expected) in [
        ("", vec![]),
        ("SUM:GPUs, PEAK:GPUsMemory", vec![sum, peak]),
        ("peak:GPUsMemory sum:GPUs SUM:GPUs", vec![peak, sum]),
    ] {
        assert_eq!(metrics(list), expected, "{list}");
    }
    for wrong in ["GPUs", "MEAN:GPUs", "SUM:", "SUM:G PU", "SUM:G-PU"] {
        let told = remarks(&format!("{job}{wrong}")).join("\n");
        assert!(told.contains("say SUM:RESOURCE or PEAK:RESOURCE"), "{wrong}: {told}");
    }
}
