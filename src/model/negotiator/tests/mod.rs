//! Tests of the negotiator, a file for each subject.

mod accountant;
mod autoclusters;
mod consuming;
mod dynamic;
mod expensive;
mod groups;
mod kit;
mod knobs;
mod laws;
mod partitionable;
mod preemption;
mod promises;
mod quotas;
mod ranks;
mod ready;
mod settling;
mod shares;
mod stories;
mod surplus;
mod time_limits;

/// Asserts that two numbers differ by a billionth of the larger at most.
#[track_caller]
fn assert_near(left: f64, right: f64) {
    let close = (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1.0);
    assert!(close, "{left} is not {right}");
}
