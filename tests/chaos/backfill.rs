//! Stories of backfill work, and of claims that wait for its end.

use super::letting_go::IGNORES;
use super::plan::{Class, How, Item, Order, Plan, What, When};
use super::processes::Fated;
use super::regressions::{goes_well, job, story};

/// A node of eight CPUs whose idle slots do backfill work by one of the policies, and a job that comes later.
fn filled(how: u8, layout: u8, items: Vec<(When, What)>) -> Plan {
    filled_until(15_000, job(4), how, layout, items)
}

/// The same with this job, which comes at this time, in milliseconds.
fn filled_until(comes: u32, job: Order, how: u8, layout: u8, items: Vec<(When, What)>) -> Plan {
    let start = [
        (When::At(0), What::NodeBack(0, 8)),
        (When::At(0), What::Policy(0, how, layout)),
        (When::At(comes), What::Submit(job)),
    ];
    let items = start.into_iter().chain(items).map(|(when, what)| Item { when, what }).collect();
    Plan::told(90, items)
}

#[test]
fn a_claim_waits_for_the_end_of_backfill_work() {
    for (how, layout) in [(11, 0), (11, 1), (11, 3), (12, 0), (13, 4)] {
        goes_well(filled(how, layout, vec![]));
    }
}

/// Found by seeds 107212 and 841: an admin lowers a ceiling or limit while claims wait for backfill work to end. The work ignores
/// SIGTERM, so that the claims wait until it is killed.
#[test]
fn a_claim_that_waits_keeps_to_what_is_lowered_meanwhile() {
    for what in [What::Ceiling(0, Some(1)), What::Limit(0, 3)] {
        for (seconds, seed) in [(2, 3), (3, 3), (5, 3), (8, 3), (8, 107_212), (8, 841)] {
            let order = Order { job: 2, ..job(4) };
            let items = vec![
                (When::At(0), What::Fated(Some(Fated::Handler(IGNORES)))),
                (When::At(0), What::NodeBack(1, 2)),
                (When::At(0), What::Policy(1, 11, 0)),
                (When::At(seconds * 1000), what.clone()),
            ];
            goes_well(Plan { seed, ..story(5, order, items) });
        }
        // The work has begun before the job comes, and runs for ten seconds.
        for milliseconds in [4500, 5000, 5500, 6000] {
            let items = vec![
                (When::At(0), What::Fated(Some(Fated::Handler(IGNORES)))),
                (When::At(milliseconds), what.clone()),
            ];
            goes_well(filled_until(4000, Order { job: 2, ..job(4) }, 11, 0, items));
        }
    }
}

#[test]
fn backfill_work_outlives_an_operator_and_never_its_slot() {
    for when in [
        When::Before(Class::CreatePod, 0),
        When::After(Class::CreatePod, 0),
        When::Before(Class::DeletePod, 0),
        When::After(Class::DeletePod, 0),
        When::At(14_900),
        When::At(16_000),
    ] {
        goes_well(filled(11, 0, vec![(when, What::Kill(0))]));
    }
}

/// Found by seed 711017271: somebody deletes the Node of a machine that is on, and the Node comes back with one CPU more
/// while its kubelet still runs the backfill pod.
#[test]
fn backfill_work_of_a_deleted_node_holds_its_room_until_its_kubelet_has_ended_the_pod() {
    for back in [5200, 6000, 7000, 9000, 12_000] {
        let items = vec![(When::At(5000), What::NodeDeleted(0)), (When::At(back), What::NodeBack(0, 9))];
        goes_well(filled(11, 0, items));
    }
}

#[test]
fn a_backfill_pod_of_which_nobody_knows_is_waited_for() {
    for how in [How::SilenceAfter, How::ResetAfter, How::Error(503), How::ErrorAfter] {
        for more in [0, 20] {
            goes_well(filled(11, 0, vec![(When::Before(Class::CreatePod, 0), What::Call(how, more))]));
            goes_well(filled(11, 0, vec![(When::Before(Class::DeletePod, 0), What::Call(how, more))]));
        }
    }
}

#[test]
fn a_slot_leaves_backfill_when_its_policy_goes_while_its_pod_cannot_be_made() {
    for how in [How::Error(503), How::SilenceAfter, How::ResetAfter, How::ErrorAfter] {
        let fails = (When::Before(Class::CreatePod, 0), What::Call(how, 20));
        goes_well(filled(11, 0, vec![fails, (When::At(20_000), What::PolicyGone(0))]));
    }
}
