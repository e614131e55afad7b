//! Programs that run, end, and are killed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use api::NodeCronMode;

use super::*;

struct Site {
    directory: tempfile::TempDir,
    cron: Cron,
    jobs: Vec<NodeCronJob>,
}

impl Site {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cron = Cron::new(Some(directory.path().to_owned()));
        Self { directory, cron, jobs: Vec::new() }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a shell's program once.
    fn runs(&mut self, name: &str, script: &str, change: impl FnOnce(&mut NodeCronJob)) {
        let path = self.path().join(name);
        // Written by another process: a file that this one has open cannot be executed by the children of other tests.
        let text = format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n");
        let mut shell = std::process::Command::new("/bin/sh");
        assert!(
            shell
                .args(["-c", "printf %s \"$1\" > \"$2\"", "sh", &text])
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let mut job = NodeCronJob {
            name: name.to_owned(),
            executable: name.to_owned(),
            mode: NodeCronMode::OneShot,
            load: 0.01,
            ..NodeCronJob::default()
        };
        change(&mut job);
        self.jobs.push(job);
        self.ask(|_| {});
    }

    fn ask(&mut self, change: impl FnOnce(&mut NodeCron)) {
        let mut asked = NodeCron { jobs: self.jobs.clone(), max_job_load: 1.0, ..NodeCron::default() };
        change(&mut asked);
        self.cron.ask(Some(&asked));
    }

    /// Waits until a run ends. Returns the attributes of all slots, and what is wrong.
    async fn ends(&mut self) -> (String, String) {
        loop {
            let event = self.cron.event().await;
            let ended = matches!(event, Event::Ended(..));
            self.cron.heard(event, Timestamp::UNIX_EPOCH);
            if ended {
                let senses = self.cron.senses();
                let says = senses.says.attributes.iter().map(|(name, expr)| format!("{name}={expr}"));
                return (says.collect::<Vec<_>>().join(" "), senses.problem);
            }
        }
    }
}

fn no_problem(says: &str) -> (String, String) {
    (says.to_owned(), String::new())
}

#[tokio::test]
async fn a_program_is_given_its_name_arguments_environment_and_directory_and_nothing_else() {
    let mut site = Site::new();
    site.runs("tell", "echo Args = \\\"$#:$1:$2\\\"; echo Env = \\\"$A:$HOME:$STARTD_CRON_NAME\\\"; echo Cwd = \\\"$PWD\\\"", |job| {
        job.args = vec!["x y".to_owned(), "z".to_owned()];
        job.env = [("A".to_owned(), "1".to_owned())].into();
        job.prefix = "t_".to_owned();
    });
    let cwd = site.path().canonicalize().unwrap().display().to_string();
    let says = format!("t_Args=\"2:x y:z\" t_Cwd=\"{cwd}\" t_Env=\"1::startd\"");
    assert_eq!(site.ends().await, no_problem(&says));
    assert!(!site.cron.senses().keeps, "each job has spoken");
}

#[tokio::test]
async fn output_is_told_while_the_program_runs_and_what_is_left_of_the_program_is_killed() {
    let mut site = Site::new();
    // The background process holds the output open, and would do so for an hour.
    site.runs(
        "stream",
        "echo A = 1; echo '- update:true'; sleep 3600 & echo B = 2; echo C = 3; exit 7",
        |_| {},
    );
    let Event::Told(_, told) = site.cron.event().await else { panic!("the first ad comes first") };
    assert_eq!((told.update, told.attributes.len()), (Some(true), 1));
    assert!(
        site.cron.heard(Event::Told("stream".to_owned(), told), Timestamp::UNIX_EPOCH),
        "it asks for an update"
    );
    assert_eq!(site.ends().await, no_problem("B=2 C=3"), "an exit code is no fault");
}

#[tokio::test]
async fn a_program_that_says_too_much_or_nonsense_is_told_of() {
    let mut site = Site::new();
    site.runs("flood", "yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", |_| {});
    assert_eq!(site.ends().await, (String::new(), "flood: an ad has more than 65536 bytes".to_owned()));
    site.runs("nonsense", "echo hello; echo A = 1", |_| {});
    let (says, problem) = site.ends().await;
    assert_eq!(says, "A=1");
    assert!(
        problem.ends_with("nonsense: the output has \"hello\"; Attribute = expression was expected"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_program_that_fails_and_tells_nothing_is_told_of() {
    for (script, how) in [("exit 2", "with exit code 2"), ("kill -9 $$", "by signal 9")] {
        let mut site = Site::new();
        site.runs("broken", &format!("echo '$3: parameter not set' >&2; {script}"), |_| {});
        let problem = format!(
            "broken: a run ended {how} and told nothing: the agent's log has the beginning of its output"
        );
        assert_eq!(site.ends().await, (String::new(), problem));
    }
    let mut site = Site::new();
    site.runs("silent", "exit 0", |_| {});
    assert_eq!(site.ends().await, no_problem(""), "a program need not tell anything");
}

/// A line of `-` tells nothing, and takes the bounds off. A pipe holds 64 KiB: the agent has to read three quarters of the output before
/// the program ends, 4 KiB at once.
#[tokio::test(start_paused = true)]
async fn the_agent_pauses_after_each_read_of_what_a_program_writes() {
    for pipe in ["", " >&2"] {
        let mut site = Site::new();
        site.runs("chatty", &format!("yes - | head -c 262144{pipe}"), |_| {});
        let begun = tokio::time::Instant::now();
        let (says, _) = site.ends().await;
        assert!(says.is_empty() && begun.elapsed() >= 48 * runner::PAUSE, "{pipe}: {:?}", begun.elapsed());
    }
}

/// A process in another group outlives the program, and keeps its output. Time passes only while nothing is read.
#[tokio::test(start_paused = true)]
async fn a_process_that_has_left_the_group_is_heard_for_a_moment_only() {
    let mut site = Site::new();
    site.runs("daemon", "setsid sh -c 'while :; do echo A = 1; echo -; done' & exit 0", |_| {});
    let begun = tokio::time::Instant::now();
    let mut told = 0;
    while matches!(site.cron.event().await, Event::Told(..)) {
        told += 1;
    }
    assert!(begun.elapsed() < runner::REST + Duration::from_secs(3), "{:?}", begun.elapsed());
    // Each read has 4096 bytes at most, and the shortest ad has eight. The program itself may live for a few reads, too.
    let reads = 10 + runner::REST.as_millis() / runner::PAUSE.as_millis();
    assert!(told <= reads * 4096 / 8, "{told}");
}

#[tokio::test]
async fn a_program_is_killed_with_its_children_when_its_job_is_taken_off_the_list() {
    let mut site = Site::new();
    site.runs("stubborn", "trap '' TERM; echo A = 1; echo -; sleep 3600", |_| {});
    let told = site.cron.event().await;
    assert!(matches!(told, Event::Told(..)));
    site.jobs.clear();
    site.ask(|_| {});
    assert_eq!(site.ends().await, no_problem(""), "its last words count no longer");
}

#[tokio::test]
async fn a_program_hears_that_the_configuration_has_changed() {
    let mut site = Site::new();
    let script = "trap 'echo A = 2; exit 0' HUP; echo A = 1; echo -; while :; do sleep 0.1; done";
    site.runs("listener", script, |job| job.reconfig = true);
    let told = site.cron.event().await;
    site.cron.heard(told, Timestamp::UNIX_EPOCH);
    assert_eq!(site.cron.senses().says.attributes["A"], "1");
    site.ask(|asked| asked.log_non_zero_exit = true);
    assert_eq!(site.ends().await, no_problem("A=2"));
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_told_of() {
    let mut site = Site::new();
    site.runs("shell", "", |job| job.executable = "/bin/sh".to_owned());
    let directory = site.path().display().to_string();
    let problem = |site: &Site| site.cron.senses().problem;
    assert_eq!(problem(&site), format!("shell: /bin/sh is not below {directory}, the directory of programs"));
    site.jobs.clear();
    site.runs("plain", "", |_| {});
    assert_eq!(site.ends().await, no_problem(""));
    fs::set_permissions(site.path().join("plain"), fs::Permissions::from_mode(0o644)).unwrap();
    site.jobs[0].reconfig_rerun = true;
    site.ask(|_| {});
    assert!(problem(&site).contains("plain cannot be started: Permission denied"), "{}", problem(&site));
    site.jobs[0].env = [("BASH_ENV".to_owned(), "/host/scratch/x".to_owned())].into();
    site.ask(|_| {});
    assert!(problem(&site).starts_with("plain: ENV has BASH_ENV, which may let"), "{}", problem(&site));
    let mut cron = Cron::new(None);
    cron.ask(Some(&NodeCron { jobs: site.jobs.clone(), max_job_load: 1.0, ..NodeCron::default() }));
    assert_eq!(
        cron.senses().problem,
        "plain: the agent has no directory of programs: set agent.cronDirectory of the chart"
    );
}
