//! Transitions of slots that are claimed: 8 to 25, a test for each.

use std::time::Duration;

use super::scene::{STARTED, Scene, active};
use crate::pool::{
    Activation, Cause, Claimed, Eviction, Number, Preempting, Preemptor, Record, Removal, State, Time,
};
use crate::startd::policy::{Answer, Question};
use crate::startd::{Chore, Grace, Off, Pace, Step};

/// No chore.
pub(super) const NOTHING: [Chore; 0] = [];

/// No transition.
pub(super) const NONE: [u8; 0] = [];

const MATCHED: State = State::Matched;
const IDLE: State = State::Claimed(Claimed::Idle);
pub(super) const BUSY: State = State::Claimed(Claimed::Busy);
pub(super) const SUSPENDED: State = State::Claimed(Claimed::Suspended);
const CLEANING: State = State::Claimed(Claimed::Cleaning);
const RETIRING: State = State::Claimed(Claimed::Retiring);
pub(super) const VACATING: State = State::Preempting(Preempting::Vacating);
pub(super) const KILLING: State = State::Preempting(Preempting::Killing);

fn matched() -> Scene {
    Scene::of(MATCHED).with(|s| {
        s.slot.set_activation(Activation::Assigned);
        s.slot.set_record(Record::Due);
    })
}

pub(super) fn suspended() -> Scene {
    Scene::of(SUSPENDED).says(Question::Continue, Answer::False).with(|s| {
        s.slot.running_mut().frozen = Some(true);
        s.slot.running_mut().suspended_since = Some(s.slot.phase().entered_activity());
    })
}

/// A job that retires, and has so much retirement time.
pub(super) fn retiring(cause: Cause, granted: i64) -> Scene {
    Scene::of(RETIRING).with(|s| {
        s.slot.retire(cause);
        s.says.retirement = Some(granted);
        s.slot.running_mut().pledged_vacate = 60;
    })
}

/// A claim that is being ended, with so many seconds to vacate.
pub(super) fn leaving(state: State, seconds: u64) -> Scene {
    Scene::of(state).with(|s| {
        s.slot.retire(Cause::Preempt);
        s.slot.evict(Cause::Preempt, Eviction::until(s.now + Duration::from_secs(seconds), None));
        if state == KILLING {
            s.slot.kill(s.now);
        }
        s.slot.mark_deleting(true);
    })
}

fn gone(scene: Scene) -> Scene {
    scene.with(|s| s.slot.pod_is_over())
}

#[test]
fn transition_8_a_match_that_is_not_claimed_in_time_is_given_up() {
    assert_eq!(matched().with(|s| s.slot.set_record(Record::Writing)).takes(), NONE);
    let late = |s: &mut Scene| {
        s.slot.set_record(Record::Writing);
        s.now = s.slot.phase().entered_state() + s.policy.match_timeout;
    };
    assert_eq!(matched().with(late).takes(), [8]);
    assert_eq!(matched().with(|s| s.policy.match_timeout = Duration::from_mins(10)).with(late).takes(), [8]);
    for fails in [
        (|s| s.wanted = false) as fn(&mut Scene),
        |s| s.offered = false,
        |s| s.draining = Some(Pace::Graceful),
        |s| s.slot.set_removal(Some(Removal::ByUser)),
    ] {
        assert_eq!(matched().with(fails).takes(), [8]);
    }
}

/// Somebody edits the Slot while the operator does not know yet that the claim is written: the claim is due again, and its object is
/// there. Found by seed 690016933.
#[test]
fn a_failed_match_leaves_no_object_of_a_claim_whose_write_had_begun() {
    let fails = |s: &mut Scene| s.wanted = false;
    assert_eq!(matched().with(fails).drive().done, [Chore::ReturnSlot], "no write had begun");
    let edited = |s: &mut Scene| {
        s.slot.write_begins();
        s.slot.claim_is_written();
        s.slot.claim_is_due();
    };
    assert_eq!(matched().with(edited).with(fails).drive().done, [Chore::DeleteClaim]);
}

#[test]
fn transition_9_a_match_becomes_a_claim_once_that_is_written() {
    let mut scene = matched();
    scene.slot.set_activation(Activation::Assigned);
    scene.drive();
    assert_eq!(scene.done, [Chore::WriteClaim, Chore::CreatePod]);
    assert_eq!(scene.taken, [9, 11], "and with the pod it is activated");
}

#[test]
fn transition_10_a_claim_without_a_job_is_given_up() {
    let idle = || Scene::of(IDLE).with(|s| s.more_work = true);
    for (why, leaves) in [
        ("the machine offers nothing", (|s| s.offered = false) as fn(&mut Scene)),
        ("the machine is gone", |s| s.slot.set_removal(Some(Removal::MachineGone))),
        ("it is drained", |s| s.draining = Some(Pace::Graceful)),
        ("the owner is there", |s| {
            s.says.answers.insert(Question::IsOwner, Answer::True);
        }),
        ("the schedd has no more work", |s| s.more_work = false),
    ] {
        assert_eq!(idle().with(leaves).takes(), [10, 22], "{why}");
    }
    assert_eq!(idle().claimed_by("bob", 0.0).takes()[..2], [10, 23], "a better claim waits");
    for uncertain in [Answer::False, Answer::Undefined, Answer::Error] {
        assert_eq!(idle().says(Question::IsOwner, uncertain).takes(), [11], "IS_OWNER is {uncertain:?}");
    }
}

#[test]
fn transition_11_an_activation_pledges_what_holds_for_the_job_as_long_as_it_runs() {
    let mut scene = Scene::of(IDLE).with(|s| {
        s.slot.set_activation(active());
        s.says.machine_vacate = 45;
        s.says.job_retirement = Some(30);
        s.says.rank = 2.5;
    });
    scene.drive();
    assert_eq!(scene.taken, [11]);
    let job = scene.slot.running().unwrap();
    assert_eq!((job.pledged_vacate, job.own_retirement, scene.slot.rank()), (45, Some(30), 2.5));
    scene.says.machine_vacate = 1;
    scene.wait(60).drive();
    assert_eq!(scene.slot.running().unwrap().pledged_vacate, 45);
}

#[test]
fn transition_12_a_job_that_ends_leaves_the_claim() {
    let mut scene = Scene::of(BUSY).with(|s| s.more_work = true);
    scene.pod_ends().drive();
    assert_eq!(scene.taken, [12, Number::TWELVE_A, 11], "and the claim is used again");
    assert_eq!(scene.done, [Chore::UntrackPod, Chore::FindWork, Chore::CreatePod]);
    assert_eq!(scene.slot.running().unwrap().started, None, "for another job");
}

#[test]
fn transition_12a_a_slot_is_cleaning_until_the_end_is_recorded_and_asks_no_policy() {
    let mut scene = Scene::of(BUSY).with(|s| s.settled = false).true_of(Question::Preempt);
    scene.pod_ends().drive();
    assert_eq!((scene.slot.state(), scene.taken.as_slice()), (CLEANING, &[12][..]));
    for asks in [Question::Preempt, Question::WantSuspend, Question::Suspend, Question::IsOwner] {
        assert_eq!(scene.clone().true_of(asks).step(), Step::Rest, "{asks:?}");
    }
    let drained = scene.clone().with(|s| s.draining = Some(Pace::Fast));
    assert_eq!(drained.step(), Step::Rest, "a drain and a better claim wait, too");
    assert_eq!(scene.clone().claimed_by("bob", 9.0).step(), Step::Rest);
    scene.settled = true;
    let better = scene.clone().claimed_by("bob", 9.0);
    assert_eq!(better.takes()[..3], [12, Number::TWELVE_A, 10], "and have their way once the job is gone");
    let owner = scene.true_of(Question::IsOwner);
    assert_eq!(owner.takes()[..3], [12, Number::TWELVE_A, 10], "so does the owner");
}

#[test]
fn transition_13_preempt_is_looked_at_where_want_suspend_is_not_true() {
    let granted = |s: &mut Scene| s.says.retirement = Some(86_400);
    let busy = || Scene::of(BUSY).with(granted);
    assert_eq!(busy().true_of(Question::Preempt).takes(), [13]);
    for answer in [Answer::False, Answer::Undefined, Answer::Error] {
        assert_eq!(busy().says(Question::Preempt, answer).takes(), NONE, "PREEMPT is {answer:?}");
        let scene = busy().true_of(Question::Preempt).says(Question::WantSuspend, answer);
        assert_eq!(scene.takes(), [13], "WANT_SUSPEND is {answer:?}");
    }
    let suspending = busy().true_of(Question::Preempt).true_of(Question::WantSuspend);
    assert_eq!(suspending.clone().takes(), NONE, "while WANT_SUSPEND is true PREEMPT is not looked at");
    assert_eq!(suspending.with(|s| s.agent = false).takes(), [13], "without an agent it counts as false");
}

#[test]
fn transition_13_a_better_claim_and_a_drain_have_the_job_retire() {
    let busy = || Scene::of(BUSY).with(|s| s.says.retirement = Some(86_400));
    let cause = |mut scene: Scene| {
        scene.drive();
        (scene.taken.clone(), scene.slot.retires_for())
    };
    assert_eq!(cause(busy().claimed_by("bob", 0.0)), (vec![13], Some(Cause::BetterClaim)));
    let drained = busy().with(|s| s.draining = Some(Pace::Graceful));
    assert_eq!(cause(drained), (vec![13], Some(Cause::Draining)));
    let both = busy().true_of(Question::Preempt).claimed_by("bob", 0.0);
    assert_eq!(cause(both), (vec![13], Some(Cause::Preempt)), "the owner goes first");
}

#[test]
fn transition_14_a_job_is_suspended_where_both_expressions_are_true() {
    let busy = || Scene::of(BUSY).true_of(Question::WantSuspend).true_of(Question::Suspend);
    let mut scene = busy();
    scene.drive();
    assert_eq!((scene.taken.as_slice(), scene.done.as_slice()), (&[14][..], &[Chore::Suspend(true)][..]));
    for answer in [Answer::False, Answer::Undefined, Answer::Error] {
        assert_eq!(busy().says(Question::Suspend, answer).takes(), NONE);
        assert_eq!(busy().says(Question::WantSuspend, answer).takes(), NONE);
    }
    assert_eq!(busy().with(|s| s.agent = false).takes(), NONE, "nobody could");
    let entered = busy().with(|s| s.now = s.slot.phase().entered_activity());
    assert_eq!(entered.takes(), NONE, "what was just entered is not left at the same moment");
}

#[test]
fn transition_15_a_job_continues() {
    let mut scene = suspended().true_of(Question::Continue);
    scene.drive();
    assert_eq!((scene.taken.as_slice(), scene.done.as_slice()), (&[15][..], &[Chore::Suspend(false)][..]));
    for answer in [Answer::False, Answer::Undefined, Answer::Error] {
        assert_eq!(suspended().says(Question::Continue, answer).takes(), NONE);
    }
}

#[test]
fn transition_15_a_suspended_job_that_ends_or_must_end_passes_through_busy() {
    let mut scene = suspended();
    scene.pod_ends().drive();
    assert_eq!(scene.taken[..2], [15, 12]);
    let removed = suspended().with(|s| s.slot.set_removal(Some(Removal::ByUser)));
    let mut scene = removed;
    scene.drive();
    assert_eq!(scene.taken, [15]);
    assert_eq!(scene.done, [Chore::Suspend(false), Chore::DeletePod(Grace::Own)], "it has to see that");
    assert_eq!(suspended().with(|s| s.agent = false).takes(), [15], "nobody could let it go on later");
}

#[test]
fn transition_16_preempt_ends_a_suspension() {
    let scene = || suspended().with(|s| s.says.retirement = Some(86_400));
    assert_eq!(scene().true_of(Question::Preempt).takes(), [16]);
    assert_eq!(scene().claimed_by("bob", 1.0).takes(), [16]);
    assert_eq!(scene().with(|s| s.draining = Some(Pace::Graceful)).takes(), [16]);
    let retires = scene().true_of(Question::Continue).with(|s| s.slot.retire(Cause::Preempt));
    assert_eq!(retires.takes(), [16], "one that continues in retirement goes on with that");
}

#[test]
fn transition_17_retirement_may_end_in_suspension() {
    let scene = |granted| {
        suspended().with(|s| {
            s.slot.retire(Cause::Preempt);
            s.says.retirement = Some(granted);
        })
    };
    assert_eq!(scene(86_400).takes(), NONE);
    assert_eq!(scene(0).takes(), [17]);
    let mut scene = scene(0).says(Question::WantVacate, Answer::False);
    scene.drive();
    assert_eq!((scene.taken.as_slice(), scene.slot.state()), (&[17][..], KILLING));
}

#[test]
fn transition_18_retirement_ends_when_the_job_has_had_its_time_or_is_over() {
    // The job has run for ten seconds. It is told to go 60 s before the end of its retirement.
    assert_eq!(retiring(Cause::Preempt, 71).takes(), NONE);
    assert_eq!(retiring(Cause::Preempt, 70).takes(), [18]);
    let mut scene = retiring(Cause::Preempt, 3600);
    scene.drive().wait(3600 - 60 - 11).drive();
    assert_eq!(scene.taken, NONE);
    scene.wait(1).drive();
    assert_eq!(scene.taken, [18]);
    assert_eq!(scene.done, [Chore::DeletePod(Grace::Vacating)]);
    assert_eq!(scene.slot.eviction().unwrap().until, Time::from_secs(STARTED + 3600));
    let mut over = retiring(Cause::Preempt, 3600);
    over.pod_ends().drive();
    assert_eq!(over.taken, [18, 22]);
}

#[test]
fn transition_18_suspension_does_not_count_against_the_job() {
    let mut scene = retiring(Cause::Preempt, 100);
    scene.slot.running_mut().suspended = Duration::from_secs(1000);
    scene.now = Time::from_secs(STARTED + 1030);
    assert_eq!(scene.clone().takes(), NONE, "it ran for 30 s");
    scene.now = Time::from_secs(STARTED + 1040);
    assert_eq!(scene.takes(), [18]);
}

#[test]
fn transition_18_want_vacate_matters_where_preempt_was_the_cause() {
    let ends = |cause, want: Answer, pace| {
        let mut scene = retiring(cause, 0).says(Question::WantVacate, want).with(|s| s.draining = pace);
        if cause == Cause::BetterClaim {
            scene = scene.claimed_by("bob", 0.0);
        }
        scene.drive();
        assert_eq!(scene.taken, [18]);
        scene.slot.state()
    };
    assert_eq!(ends(Cause::Preempt, Answer::True, None), VACATING);
    assert_eq!(ends(Cause::Preempt, Answer::False, None), KILLING);
    assert_eq!(ends(Cause::Preempt, Answer::Undefined, None), VACATING);
    assert_eq!(ends(Cause::Preempt, Answer::Error, None), VACATING);
    assert_eq!(ends(Cause::BetterClaim, Answer::False, None), VACATING);
    assert_eq!(ends(Cause::Draining, Answer::False, Some(Pace::Graceful)), VACATING);
    assert_eq!(ends(Cause::Draining, Answer::False, Some(Pace::Quick)), VACATING);
    assert_eq!(ends(Cause::Draining, Answer::True, Some(Pace::Fast)), KILLING);
    for cause in [Cause::Preempt, Cause::BetterClaim] {
        assert_eq!(ends(cause, Answer::True, Some(Pace::Quick)), VACATING, "{cause:?}");
        assert_eq!(
            ends(cause, Answer::True, Some(Pace::Fast)),
            KILLING,
            "{cause:?}: a fast drain waits for nothing"
        );
    }
    // Quick and fast drains grant no retirement.
    let drained = |pace| retiring(Cause::Draining, 86_400).with(|s| s.draining = Some(pace)).takes();
    assert_eq!(drained(Pace::Graceful), NONE);
    assert_eq!((drained(Pace::Quick), drained(Pace::Fast)), (vec![18], vec![18]));
}

/// `ResState.cpp`: "before entering the preempting state, we must check to see if we would have preempted during the preceding
/// polling interval. This allows startd policies to put jobs on hold during draining."
#[test]
fn preempt_is_asked_once_more_at_the_end_of_the_retirement() {
    for suspends in [Answer::False, Answer::True] {
        for cause in [Cause::Draining, Cause::BetterClaim] {
            let mut scene = retiring(cause, 0)
                .says(Question::Preempt, Answer::True)
                .says(Question::WantSuspend, suspends)
                .says(Question::WantHold, Answer::True);
            if cause == Cause::BetterClaim {
                scene = scene.claimed_by("bob", 0.0);
            }
            scene.drive();
            assert_eq!((scene.taken.as_slice(), scene.slot.retires_for()), (&[18][..], Some(Cause::Preempt)));
            assert!(scene.slot.eviction().is_some_and(|eviction| eviction.hold.is_some()), "{cause:?}");
        }
    }
}

/// A quick drain waits for no retirement. The job may take its own time to vacate all the same, out of what it has left.
#[test]
fn a_job_has_its_own_vacating_time_in_a_quick_drain() {
    let until = |pace| {
        let mut scene = retiring(Cause::Draining, 86_400).with(|s| {
            s.says.job_vacate = Some(3600);
            s.draining = Some(pace);
        });
        scene.drive();
        scene.slot.eviction().map(|eviction| eviction.until.since(scene.now).as_secs())
    };
    assert_eq!(until(Pace::Quick), Some(3600));
    assert_eq!(until(Pace::Fast), Some(0));
}

#[test]
fn transition_18_a_machine_that_is_off_waits_for_nothing() {
    let mut scene = Scene::of(BUSY).with(|s| {
        s.slot.must_go(Removal::MachineGone);
        s.off = Off::OutOfService;
        s.says.retirement = Some(86_400);
    });
    scene.drive();
    assert_eq!((scene.taken.as_slice(), scene.slot.state()), (&[13, 18][..], KILLING));
    assert_eq!(scene.done, [Chore::DeletePod(Grace::Force)]);
    scene.pod_ends().drive();
    assert_eq!(scene.taken, [13, 18, 25]);
}

#[test]
fn transition_18_a_machine_that_is_back_confirms_the_end_of_what_runs_there() {
    let mut back = Scene::of(BUSY).with(|s| s.slot.set_removal(Some(Removal::MachineGone)));
    back.drive();
    assert_eq!(back.done, [Chore::KillPod]);
}

#[test]
fn transition_19_a_claim_unretires_when_what_it_made_way_for_is_withdrawn() {
    let waits = || retiring(Cause::BetterClaim, 86_400).claimed_by("bob", 0.0);
    assert_eq!(waits().takes(), NONE);
    assert_eq!(waits().with(|s| s.next_wanted = false).takes(), [19]);
    let drained = |pace| retiring(Cause::Draining, 86_400).with(|s| s.draining = pace).takes();
    assert_eq!(drained(Some(Pace::Graceful)), NONE);
    assert_eq!(drained(None), [19], "the drain was canceled");
}

#[test]
fn transition_19_nothing_unretires_for_which_the_owner_wants_the_slot() {
    let owner = retiring(Cause::Preempt, 86_400);
    assert_eq!(owner.says(Question::Preempt, Answer::False).takes(), NONE);
    // If PREEMPT was true once during retirement, the job does not unretire.
    let mut scene = retiring(Cause::BetterClaim, 86_400).claimed_by("bob", 0.0).true_of(Question::Preempt);
    scene.drive();
    assert_eq!(scene.done, [Chore::Condemn]);
    let mut later = scene.says(Question::Preempt, Answer::False).with(|s| s.next_wanted = false);
    later.drive();
    assert_eq!(later.taken, NONE);
    // If the job is to be suspended first, PREEMPT is not evaluated.
    let mut scene = retiring(Cause::BetterClaim, 86_400)
        .claimed_by("bob", 0.0)
        .true_of(Question::Preempt)
        .true_of(Question::WantSuspend);
    assert_eq!(scene.drive().done, NOTHING);
}

/// This happens when a job was suspended for too long and its owner still types.
#[test]
fn a_job_that_retires_and_is_suspended_at_once_does_not_go_on_for_a_moment() {
    let mut scene = suspended()
        .true_of(Question::Preempt)
        .true_of(Question::WantSuspend)
        .true_of(Question::Suspend)
        .with(|s| s.says.retirement = Some(86_400));
    scene.drive();
    assert_eq!((scene.taken.as_slice(), scene.done.as_slice()), (&[16, 20][..], &NOTHING[..]));
}

#[test]
fn transition_20_a_job_is_suspended_in_retirement_too() {
    let mut scene = retiring(Cause::Preempt, 86_400)
        .true_of(Question::WantSuspend)
        .true_of(Question::Suspend)
        .says(Question::Continue, Answer::False);
    scene.drive();
    assert_eq!(scene.taken, [20]);
    let mut later = scene.true_of(Question::Continue).says(Question::Suspend, Answer::False);
    later.wait(5).drive();
    assert_eq!(later.taken, [16], "and continues into retirement");
}

#[test]
fn transition_21_kill_and_the_end_of_the_vacating_time_end_the_patience() {
    assert_eq!(leaving(VACATING, 60).takes(), NONE);
    assert_eq!(leaving(VACATING, 0).takes(), [21]);
    let mut scene = leaving(VACATING, 60).true_of(Question::Kill);
    scene.drive();
    assert_eq!((scene.taken.as_slice(), scene.done.as_slice()), (&[21][..], &[Chore::KillPod][..]));
    for answer in [Answer::False, Answer::Undefined, Answer::Error] {
        assert_eq!(leaving(VACATING, 60).says(Question::Kill, answer).takes(), NONE, "KILL is {answer:?}");
    }
}

#[test]
fn transition_22_a_vacated_slot_is_its_owners() {
    assert_eq!(gone(leaving(VACATING, 60)).takes(), [22]);
    let refused = gone(leaving(VACATING, 60)).claimed_by("bob", 1.0);
    assert_eq!(refused.clone().says(Question::StartNext, Answer::False).takes(), [22]);
    assert_eq!(refused.with(|s| s.offered = false).takes(), [22]);
}

/// One of several slots that make room for a claim is not taken over: its resources return to the partitionable slot.
#[test]
fn transitions_22_and_25_a_slot_that_makes_room_is_its_owners() {
    for (activity, number) in [(VACATING, 22), (KILLING, 25)] {
        let scene = gone(leaving(activity, 60)).claimed_by("bob", 1.0).with(|scene| {
            let next = scene.slot.preemptor().cloned().map(|next| Preemptor { part: true, ..next });
            scene.slot.set_preemptor(next);
        });
        assert_eq!(scene.takes(), [number]);
    }
}

#[test]
fn transition_23_a_claim_that_waited_takes_a_vacated_slot() {
    for answer in [Answer::True, Answer::Undefined] {
        let mut scene = gone(leaving(VACATING, 60)).claimed_by("bob", 1.0).says(Question::StartNext, answer);
        assert!(
            matches!(scene.step(), Step::Take(transition, ..) if transition.number.whole() == Some(23)),
            "{answer:?}"
        );
        scene.more_work = true;
        scene.drive();
        assert_eq!(scene.slot.claim().submitter.as_str(), "bob");
        assert_eq!((scene.slot.preemptor(), scene.slot.retirement()), (None, None));
        assert_eq!(scene.slot.claim().since, scene.now, "its work life begins now");
    }
}

#[test]
fn transition_24_a_claim_that_waited_takes_a_slot_whose_job_was_killed() {
    let scene = gone(leaving(KILLING, 0)).claimed_by("bob", 1.0).with(|s| s.more_work = true);
    assert_eq!(scene.takes()[0], 24);
}

#[test]
fn transition_25_a_slot_whose_job_was_killed_is_its_owners() {
    assert_eq!(gone(leaving(KILLING, 0)).takes(), [25]);
    let refused = gone(leaving(KILLING, 0)).claimed_by("bob", 1.0);
    assert_eq!(refused.says(Question::StartNext, Answer::Error).takes(), [25]);
}
