//! Runs, without a schedule.

use super::*;

/// The process that has left the group writes for ever, so that reading takes as long as the runner allows.
#[tokio::test(start_paused = true)]
async fn a_group_that_has_ended_is_signalled_no_more() {
    let mut runner = Runner::new();
    let script = "setsid sh -c 'while :; do echo A = 1; echo -; done' & exit 0".to_owned();
    let job =
        NodeCronJob { name: "x".to_owned(), args: vec!["-c".to_owned(), script], ..NodeCronJob::default() };
    runner.start(&job, Path::new("/"), Path::new("/bin/sh")).unwrap();
    while !matches!(runner.event().await, Event::Ended(..)) {}
    // The number may be another's by now.
    assert_eq!(runner.runs["x"].group.end(), None);
}
