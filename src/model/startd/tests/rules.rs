//! Rules of claimed slots that hold between the transitions, or in whatever activity a slot is.

use std::time::Duration;

use super::claimed::{BUSY, KILLING, NONE, NOTHING, SUSPENDED, VACATING, leaving, retiring, suspended};
use super::scene::Scene;
use crate::pool::{Cause, HoldReason, Removal};
use crate::startd::policy::{Answer, Question};
use crate::startd::{Chore, Grace, Pace, wake};

#[test]
fn after_killing_timeout_the_agent_is_asked_once_and_the_slot_still_waits() {
    let mut scene = leaving(KILLING, 0);
    assert_eq!(scene.wait(29).drive().done, NOTHING);
    assert_eq!(scene.wait(1).drive().done, [Chore::AskAgentToKill]);
    assert_eq!(scene.wait(3600).drive().done, NOTHING, "its end is not confirmed");
    assert_eq!(scene.slot.state(), KILLING);
    let mut patient = leaving(KILLING, 0).with(|s| s.policy.killing_timeout = Duration::from_mins(5));
    assert_eq!(patient.wait(299).drive().done, NOTHING);
    assert_eq!(patient.wait(1).drive().done, [Chore::AskAgentToKill]);
}

#[test]
fn a_job_that_stands_still_is_let_go_on_before_it_is_told_to_go() {
    let mut scene = suspended().with(|s| {
        s.slot.retire(Cause::Preempt);
        s.says.retirement = Some(0);
    });
    scene.drive();
    assert_eq!(scene.done, [Chore::Suspend(false), Chore::DeletePod(Grace::Vacating)]);
}

#[test]
fn a_job_that_stands_still_though_nothing_is_recorded_goes_on() {
    let mut scene = Scene::of(BUSY).with(|s| s.stands_still = true);
    assert_eq!(scene.drive().done, [Chore::Suspend(false)]);
}

#[test]
fn a_job_that_an_earlier_leader_suspended_remains_suspended_or_is_continued_on_purpose() {
    let found = |edit: fn(&mut Scene)| {
        let mut scene = Scene::of(BUSY).with(Scene::found_suspended).with(edit);
        scene.drive();
        (scene.slot.state(), scene.taken, scene.done)
    };
    // The agent may have reported that the job stands still, or not yet.
    for still in [|_: &mut Scene| {}, |s: &mut Scene| s.stands_still = true] {
        assert_eq!(found(still), (SUSPENDED, vec![14], vec![Chore::Suspend(true)]));
    }
    let (state, taken, done) = found(|s| s.agent = false);
    assert_eq!(
        (state, taken, done),
        (BUSY, vec![], vec![Chore::Suspend(false)]),
        "nobody could continue it later"
    );
    let (state, taken, done) = found(|s| {
        s.says.answers.insert(Question::Continue, Answer::True);
    });
    assert_eq!(
        (state, taken),
        (SUSPENDED, vec![14]),
        "a policy does not leave an activity when it is entered"
    );
    assert_eq!(done, [Chore::Suspend(true)]);
    let (_, taken, done) = found(|s| s.slot.must_go(Removal::ByUser));
    assert_eq!((taken, &*done), (vec![], &[Chore::Suspend(false), Chore::DeletePod(Grace::Own)][..]));
}

#[test]
fn a_pod_that_cannot_start_is_given_up_in_time_wherever_it_is() {
    for scene in [Scene::of(BUSY), suspended(), retiring(Cause::BetterClaim, 86_400)] {
        let state = scene.slot.state();
        let mut scene = scene.with(|s| s.starts_by = Some(s.now + Duration::from_mins(5)));
        scene.drive();
        assert!(!scene.done.contains(&Chore::GiveUp), "{state:?}");
        let wakes = wake(&scene.slot, &scene.view(), None);
        assert!(wakes.is_some() && wakes <= scene.starts_by, "{state:?}: {wakes:?}");
        scene.wait(300).drive();
        assert!(scene.done.contains(&Chore::GiveUp), "{state:?}: {:?}", scene.done);
        scene.pod_ends().drive();
        assert!(scene.taken.iter().all(|number| ![16, 17, 18].contains(number)), "nobody preempts it");
    }
    let mut asked = Scene::of(BUSY).with(|s| s.starts_by = Some(s.now));
    assert_eq!(asked.drive().drive().done, [Chore::GiveUp], "once");
}

#[test]
fn want_hold_is_looked_at_where_preempt_was_the_cause() {
    let what_becomes = |cause, pace| {
        let mut scene = retiring(cause, 0).true_of(Question::WantHold).with(|s| s.draining = pace);
        scene.drive();
        scene.slot.eviction().unwrap().hold.clone()
    };
    let hold = HoldReason { code: 21, subcode: 7, reason: "the owner is back".into() };
    assert_eq!(what_becomes(Cause::Preempt, None), Some(hold));
    assert_eq!(what_becomes(Cause::Draining, Some(Pace::Quick)), None);
    for answer in [Answer::False, Answer::Undefined, Answer::Error] {
        let mut scene = retiring(Cause::Preempt, 0).says(Question::WantHold, answer);
        scene.drive();
        assert_eq!(scene.slot.eviction().unwrap().hold, None, "WANT_HOLD is {answer:?}");
    }
}

#[test]
fn the_jobs_own_terms_shorten_retirement_and_may_lengthen_vacating() {
    // If JobMaxVacateTime exceeds the machine's vacate time, the job has what is left of its retirement for vacating.
    let mut scene = retiring(Cause::Preempt, 1000).with(|s| s.says.job_vacate = Some(500));
    scene.drive().wait(1000 - 500 - 10).drive();
    assert_eq!(scene.taken, [18]);
    assert_eq!(scene.slot.eviction().unwrap().until, scene.now + Duration::from_secs(500));
    let short = retiring(Cause::Preempt, 1000).with(|s| s.says.job_retirement = Some(60));
    assert_eq!(short.takes(), [18]);
    // A MAXJOBRETIREMENTTIME that is no integer counts as 0.
    assert_eq!(retiring(Cause::Preempt, 0).with(|s| s.says.retirement = None).takes(), [18]);
}

/// The lease of the claim has expired.
fn expired(scene: Scene) -> Scene {
    scene.with(|s| s.lease_ends = Some(s.now))
}

#[test]
fn a_claim_whose_lease_expires_is_killed_at_once_wherever_it_stands() {
    let busy = || Scene::of(BUSY).with(|s| s.says.retirement = Some(86_400));
    for (name, scene, takes) in [
        ("busy", busy(), vec![13, 18]),
        ("suspended", suspended(), vec![16, 18]),
        ("retiring", retiring(Cause::Draining, 86_400), vec![18]),
        ("vacating", leaving(VACATING, 600), vec![21]),
        ("its job was removed", busy().with(|s| s.slot.set_removal(Some(Removal::ByUser))), vec![13, 18]),
    ] {
        let mut scene = expired(scene);
        scene.drive();
        assert_eq!((scene.taken, scene.slot.state()), (takes, KILLING), "{name}");
        assert!(scene.done.contains(&Chore::KillPod), "{name}: {:?}", scene.done);
    }
    let in_time = busy().with(|s| s.lease_ends = Some(s.now + Duration::from_secs(1)));
    assert_eq!(in_time.takes(), NONE);
    let kept = expired(busy()).says(Question::WantHold, Answer::True).with(|s| {
        s.drive();
    });
    assert_eq!(kept.slot.eviction().unwrap().hold, None, "nobody's policy ended it");
}

#[test]
fn a_killed_pod_is_let_go_where_the_agent_promised_to_have_ended_it() {
    use crate::pool::Fence;
    let mut scene = expired(leaving(KILLING, 0)).with(|s| s.agent = false);
    let then = scene.now + Duration::from_mins(1);
    scene.fence = Fence::At(then);
    scene.drive();
    assert_eq!(scene.done, NOTHING);
    let wakes = crate::startd::wake(&scene.slot, &scene.view(), None);
    assert_eq!(wakes, Some(scene.now + scene.policy.killing_timeout), "KILLING_TIMEOUT comes first");
    scene.wait(30).drive();
    assert_eq!(scene.done, NOTHING, "nobody would hear it");
    assert_eq!(crate::startd::wake(&scene.slot, &scene.view(), None), Some(then));
    let mut heard = scene.clone().with(|s| s.agent = true);
    assert_eq!(heard.drive().done, [Chore::AskAgentToKill], "an agent that is back can do it at once");
    scene.fence = Fence::Due;
    scene.wait(30).drive();
    assert_eq!(scene.done, [Chore::ReadAgentLease]);
    scene.fence = Fence::Held;
    scene.wait(1).drive();
    assert_eq!(scene.done, [Chore::DeletePod(Grace::Force)]);
    scene.wait(1).drive();
    assert_eq!(scene.done, NOTHING, "once");
    assert_eq!(scene.pod_ends().drive().taken, [25]);
}
