//! Tests of operators that take over what an earlier one left, and what people changed meanwhile.

use super::letting_go::IGNORES;
use super::plan::{Class, How, Order, Plan, Presence, What, When};
use super::processes::Fated;
use super::regressions::{WRITTEN_FIRST, goes_well, is_written_again, job, policy, story};
use super::run::run;

/// A job of one proc that runs without end.
fn forever() -> Order {
    Order { job: 4, ..job(1) }
}

/// The operator dies after it took the finalizer off an evicted proc's pod, and before it deleted the pod. Somebody
/// deletes the Slot.
#[test]
fn a_pod_that_was_untracked_and_not_deleted_is_in_nobodys_way() {
    for when in [When::After(Class::UntrackPod, 0), When::Before(Class::DeletePod, 0)] {
        for retention in 0..3 {
            let items =
                vec![(When::At(4000), What::Evict(0)), (when, What::DeleteSlot(0)), (when, What::Kill(0))];
            goes_well(story(1, Order { retention, ..job(1) }, items));
        }
    }
}

#[test]
fn a_pod_without_a_claim_is_deleted_until_it_is_gone() {
    for how in [How::Error(500), How::Reset, How::Silence] {
        let items = vec![
            (When::At(4000), What::EditSlot(0, 0)),
            (When::At(4000), What::Kill(0)),
            (When::Before(Class::DeletePod, 0), What::Call(how, 8)),
        ];
        goes_well(story(1, forever(), items));
    }
}

#[test]
fn a_slot_that_was_written_though_no_answer_says_so_does_not_stay() {
    for how in [How::ErrorAfter, How::ResetAfter, How::SilenceAfter] {
        for more in [0, 8, 20] {
            goes_well(story(1, job(1), vec![(When::Before(Class::CreateSlot, 0), What::Call(how, more))]));
        }
    }
}

/// A job is deleted, or vanishes without its finalizer, while nobody leads.
#[test]
fn a_new_operator_ends_the_pods_of_a_job_that_goes() {
    let (unhold, remove, kill) = (What::Unhold(4), What::Remove(4), What::Kill(0));
    for goes in [vec![kill.clone(), remove.clone()], vec![kill, unhold, remove]] {
        let items = goes.into_iter().map(|what| (When::At(8000), what)).collect();
        goes_well(story(1, forever(), items));
    }
}

/// A proc ends while no operator leads, its Slot is gone, and the job's Requirements no longer parse.
#[test]
fn an_end_counts_while_the_jobs_spec_is_not_understood() {
    let wrong = Order { requirements: 3, ..job(1) };
    let happens = [What::Edit(wrong), What::Kill(0), What::DeleteSlot(0), What::EndNow(0)];
    let items = happens.into_iter().map(|what| (When::At(4000), what)).collect();
    let plan = story(1, job(1), items);
    let outcome = run(&plan, true);
    assert_eq!(outcome.violation, None, "{}", super::story::tell(&plan));
    let made = outcome.log.iter().filter(|line| line.contains(": CreatePod ")).count();
    assert_eq!(made, 1, "{}", outcome.log.join("\n"));
}

/// A job is suspended at first, until nobody has typed for 10 s, and again from 20 s on, when the owner is back for 6 s. From 31 s on
/// SUSPEND is false, and CONTINUE is not true yet: the operator dies, and the next one leads at 32 s. The job stands still until the policy
/// sends it away at 38 s, as it would have under one operator.
#[test]
fn a_suspended_job_stays_suspended_under_a_new_operator() {
    let items = vec![
        policy(5, 0),
        (When::At(0), What::Agent(0, Presence::Works)),
        (When::At(20_000), What::Owner(0, 6)),
        (When::At(31_500), What::Kill(0)),
    ];
    let plan = story(1, forever(), items);
    let outcome = run(&plan, true);
    assert_eq!(outcome.violation, None, "{}", super::story::tell(&plan));
    let seconds = |line: &String| {
        let (_, rest) = line.split_once("\"suspendedSeconds\":")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    let longest = outcome.log.iter().filter_map(seconds).max();
    let expected = longest.is_some_and(|seconds| (25..31).contains(&seconds));
    assert!(expected, "suspended for {longest:?} s:\n{}", outcome.log.join("\n"));
}

/// Somebody holds a proc, the deletions of its pod do nothing, and the operator dies. Then the program ends by itself: that end counts
/// under the next operator, so that the proc does not run again after its release.
#[test]
fn the_end_of_a_held_proc_whose_pod_was_not_deleted_counts() {
    for job in [job(1), forever()] {
        for ends in [12_000, 16_000, 20_000, 30_000] {
            let items = vec![
                (When::Before(Class::DeletePod, 0), What::Call(How::Silence, 8)),
                (When::At(8000), What::Act(job.job, 0, 1)),
                (When::At(9500), What::Kill(0)),
                (When::At(ends), What::EndNow(0)),
            ];
            goes_well(story(1, job.clone(), items));
        }
    }
}

#[test]
fn a_job_submitted_while_nobody_led_gets_a_number_of_its_own() {
    let items =
        vec![(When::At(6000), What::Kill(0)), (When::At(6000), What::Submit(Order { job: 0, ..job(1) }))];
    let outcome = run(&story(2, forever(), items), true);
    assert_eq!(outcome.violation, None);
    for number in [1, 2] {
        let told = format!("\"clusterId\":{number}");
        assert!(outcome.log.iter().any(|line| line.contains(&told)), "{}", outcome.log.join("\n"));
    }
}

#[test]
fn a_claim_that_somebody_edits_is_written_again() {
    for how in 0..3 {
        for killed in [None, Some(10_500), Some(30_000)] {
            let mut items = vec![(When::At(10_000), What::EditSlot(0, how))];
            items.extend(killed.map(|at| (When::At(at), What::Kill(0))));
            goes_well(story(1, forever(), items));
        }
    }
}

#[test]
fn a_slot_that_is_deleted_before_its_writing_is_answered_is_written_again() {
    is_written_again(vec![
        (When::Before(Class::CreateSlot, 0), What::Call(How::LateAnswer(3000), 0)),
        (When::After(Class::CreateSlot, 0), What::DeleteSlot(0)),
    ]);
}

/// The next operator finds a Slot with a copy of another Slot's claim.
#[test]
fn a_slot_that_somebody_made_up_holds_no_proc() {
    for n in 0..3 {
        let items = vec![(When::At(10_000), What::MakeSlot(n)), (When::At(10_000), What::Kill(0))];
        let plan = story(2, forever(), items);
        let outcome = run(&plan, true);
        assert_eq!(outcome.violation, None, "{}", super::story::tell(&plan));
        let made = outcome.log.iter().filter(|line| line.contains(": CreatePod ")).count();
        assert_eq!(made, 1, "{}", outcome.log.join("\n"));
    }
}

#[test]
fn what_is_refused_at_once_is_not_asked_without_end() {
    let items = vec![(When::Before(Class::CreatePod, 0), What::Call(How::Error(403), 255))];
    let outcome = run(&story(1, job(1), items), true);
    assert_eq!(outcome.violation, None);
    let asked = outcome.log.iter().filter(|line| line.contains(": CreatePod ")).count();
    assert!(asked < 25, "{asked} times in 90 s");
}

/// Two negotiators divide the nodes between them, want the same nodes, or one of them has an invalid constraint; and
/// the next operator finds another division.
#[test]
fn procs_run_once_however_negotiators_divide_the_nodes() {
    for before in 0..4 {
        for after in 0..4 {
            for killed in
                [When::At(10_000), When::After(Class::CreateSlot, 2), When::Before(Class::CreatePod, 4)]
            {
                let items = vec![
                    (When::At(0), What::NodeBack(1, 4)),
                    (When::At(0), What::Negotiators(before)),
                    (When::At(1300), What::Submit(Order { job: 0, cpus: 2, ..job(4) })),
                    (killed, What::Negotiators(after)),
                    (killed, What::Kill(0)),
                ];
                goes_well(Plan { seed: u64::from(after), ..story(4, job(6), items) });
            }
        }
    }
}

/// A claim was used again, so that its Slot names an earlier proc, and somebody takes the claim's id off the pod of the present
/// one. That pod ends, and its leader dies before the end is recorded. Found by seed 400013562.
#[test]
fn the_claim_of_an_ended_pod_stays_until_the_end_is_recorded_though_the_pod_lost_its_marks() {
    for (nth, status) in [(1, 4), (2, 7)] {
        let items = vec![
            (When::After(Class::CreatePod, nth), What::Unmark(0, 1)),
            (When::After(Class::CreatePod, nth), What::Unmark(1, 1)),
            (When::After(Class::JobStatus, status), What::Kill(0)),
        ];
        goes_well(Plan { history: true, ..story(1, Order { job: 0, retention: 1, ..job(5) }, items) });
    }
}

/// A job is held, and its programs need a while to end. Its leader dies, and the job is released before the next one leads. Found by
/// seed 410001669.
#[test]
fn the_claims_of_procs_that_were_held_last_until_their_pods_end() {
    for late in [100, 600, 1100] {
        let items = vec![
            (When::At(0), What::Fated(Some(Fated::Handler(IGNORES)))),
            (When::At(20_000), What::Hold(4, true)),
            (When::At(20_500 + late), What::Kill(0)),
            (When::At(20_600 + late), What::Hold(4, false)),
        ];
        goes_well(story(3, Order { count: 3, ..forever() }, items));
    }
}

/// A proc's program ended and is to run again. The claim went to the job's next proc, whose pod a webhook keeps from being created,
/// when the leader dies. The pod of the earlier run does not take the claim back. Found by seed 410010061.
#[test]
fn a_claim_that_went_on_to_the_next_proc_does_not_go_back_to_an_earlier_run() {
    for second in [24, 30, 36] {
        let items = vec![
            (When::At(0), What::Limit(0, 3)),
            (When::At(1400), What::Attributes(2, 6)),
            (When::At(second * 1000), What::Webhook(0, 46, true)),
            (When::At(second * 1000 + 8000), What::Kill(0)),
        ];
        goes_well(story(1, Order { job: 2, retention: 1, ..job(4) }, items));
    }
}

/// A job is held, and its leader dies before the pod is deleted. The claim is written, or its pod is all that there is of the claim.
#[test]
fn a_new_leader_runs_no_held_proc_in_a_claim_that_it_finds() {
    for written in [true, false] {
        let mut items = vec![
            (When::At(3000), What::Hold(0, true)),
            (When::Before(Class::DeletePod, 0), What::Call(How::Reset, 2)),
            // The hold is recorded.
            (When::After(Class::JobStatus, 1), What::Kill(0)),
        ];
        items.extend(written.then_some(WRITTEN_FIRST));
        let plan = story(1, Order { job: 0, ..job(1) }, items);
        let outcome = run(&plan, true);
        assert_eq!(outcome.violation, None, "{}", super::story::tell(&plan));
        let ended = outcome.log.iter().any(|line| line.contains("operator 1: DeletePod sweep-0"));
        assert!(ended, "{}", outcome.log.join("\n"));
    }
}

/// A proc is evicted, its pod cannot be let go, and its claim goes to the job's next proc. The leader dies, and the job is deleted.
/// Found by seed 430005163.
#[test]
fn a_claim_of_a_job_that_goes_does_not_go_back_to_an_earlier_run() {
    for at in [30_000, 40_000] {
        let items = vec![
            (When::At(10_000), What::Evict(0)),
            (When::Before(Class::UntrackPod, 0), What::Call(How::Silence, 20)),
            (When::At(at), What::Remove(4)),
            (When::At(at), What::Kill(0)),
        ];
        goes_well(story(1, Order { count: 2, ..forever() }, items));
    }
}

/// The node of a pod goes, and the leader dies before it has written the pod's claim. The pod has no claim any more, and
/// counts against the ceiling of its submitter as long as it exists. Found by seeds 612012134 and 612011612.
#[test]
fn a_pod_whose_node_is_gone_counts_against_the_ceiling() {
    for seed in 0..6 {
        let items = vec![
            (When::At(0), What::Ceiling(0, Some(4))),
            (When::At(2500), What::NodeGone(0)),
            (When::At(3000), What::Kill(0)),
            (When::At(5000), What::NodeBack(1, 6)),
            (When::At(9000), What::Submit(Order { job: 4, cpus: 2, ..job(4) })),
        ];
        goes_well(Plan { seed, ..story(3, Order { job: 0, cpus: 3, ..job(1) }, items) });
    }
}

/// A proc is evicted, its claim serves the next proc, and the finalizer of the first pod is taken off late. The leader dies before
/// that, and has not recorded the eviction. The claim is that of the pod that lives. Found by seed 615031209.
#[test]
fn a_claim_belongs_to_the_pod_that_lives_and_not_to_the_pod_that_is_over() {
    for kill in (5500..12_000).step_by(500) {
        let items = vec![
            WRITTEN_FIRST,
            (When::Before(Class::JobStatus, 1), What::Call(How::ErrorAfter, 60)),
            (When::At(4000), What::TaintEvict(0)),
            (When::Before(Class::UntrackPod, 0), What::Call(How::Late(60_000), 0)),
            (When::At(kill), What::Kill(0)),
        ];
        goes_well(story(1, Order { job: 2, ..job(3) }, items));
    }
}
