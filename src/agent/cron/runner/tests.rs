//! Runs, without a schedule.

use super::*;

/// A program that begins may run for a moment before its memory is bounded.
#[tokio::test]
async fn the_memory_of_a_program_is_bounded() {
    let mut runner = Runner::new(Some(32 << 20));
    let script = "i=0; while [ $(ulimit -d) = unlimited ] && [ $i -lt 100000 ]; do i=$((i + 1)); done; echo Kib = $(ulimit -d)";
    let args = ["-c", script].map(str::to_owned).to_vec();
    let job = NodeCronJob { name: "x".to_owned(), args, ..NodeCronJob::default() };
    runner.start(&job, Path::new("/"), Path::new("/bin/sh")).unwrap();
    let Event::Told(_, told) = runner.event().await else { panic!("the program tells its bound") };
    assert_eq!(told.attributes["Kib"], "32768");
}

/// The process that has left the group writes for ever, so that reading takes as long as the runner allows.
#[tokio::test(start_paused = true)]
async fn a_group_that_has_ended_is_signalled_no_more() {
    let mut runner = Runner::new(None);
    let script = "setsid sh -c 'while :; do echo A = 1; echo -; done' & exit 0".to_owned();
    let job =
        NodeCronJob { name: "x".to_owned(), args: vec!["-c".to_owned(), script], ..NodeCronJob::default() };
    runner.start(&job, Path::new("/"), Path::new("/bin/sh")).unwrap();
    while !matches!(runner.event().await, Event::Ended(..)) {}
    // The number may be another's by now.
    assert_eq!(runner.runs["x"].group.end(), None);
}
