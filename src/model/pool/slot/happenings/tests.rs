//! A slot's life from one happening to the next, as the manual's states and Kubernetes' pods have it.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::pool::event::{Forced, Remains};
use crate::pool::ids::{ClaimId, JobKey, SlotName};
use crate::pool::negotiators::NegotiatorId;
use crate::pool::resources::Resources;
use crate::pool::slot::{Claimed, Entered, Number, Phase};
use crate::pool::stuck::{Obstacle, START_PATIENCE};

fn at(seconds: i64) -> Time {
    Time::from_secs(seconds)
}

fn pod(number: u32) -> PodRef {
    PodRef { namespace: "lab".into(), name: "pi-0".into(), uid: format!("pod-{number}").into() }
}

fn assignment(proc: u32) -> Assignment {
    let job = JobKey { uid: "u".into(), namespace: "lab".into(), name: "pi".into() };
    Assignment { job, cluster_id: 1, proc }
}

fn claim(submitter: &str) -> Claim {
    let name = SlotName::parse("slot1_1@n1").unwrap();
    Claim {
        id: ClaimId::new(&name, at(1), submitter.len() as u64),
        submitter: submitter.into(),
        group: None,
        negotiator: NegotiatorId::Unnamed,
        regrouped: false,
        weight: 1.0,
        limits: Wants::default(),
        since: at(1),
        last: assignment(0),
    }
}

fn slot() -> Slot {
    let phase = Phase::starting(State::Claimed(Claimed::Idle), at(1));
    Slot::new(SlotName::parse("slot1_1@n1").unwrap(), Resources::default(), claim("alice"), phase)
}

/// A slot whose pod was requested of the job's third generation, and created.
fn with_pod() -> Slot {
    let mut slot = slot();
    slot.assign(assignment(0), &Wants::default());
    slot.request_pod(Some(3), 1.0);
    slot.pod_is_created(&pod(1));
    slot
}

fn facts(running: bool) -> PodFacts {
    PodFacts { running, tracked: true, ..PodFacts::of_nothing(pod(1), &slot()) }
}

#[test]
fn a_claim_is_for_a_proc_only_while_there_is_one() {
    let (mut slot, limits) = (slot(), Wants::parse("license"));
    assert_eq!(slot.assignment(), None, "the first proc is assigned, not assumed");
    slot.must_go(Removal::ByUser);
    slot.claim_is_written();
    slot.assign(assignment(7), &limits);
    assert_eq!(slot.assignment(), Some(&assignment(7)));
    assert_eq!(
        (slot.removal(), slot.record()),
        (None, Record::Due),
        "another proc, which takes a unit of a limit: the object must name both"
    );
    assert_eq!(slot.withdraw(), Some(assignment(7)));
    assert_eq!(slot.assignment(), None);
    assert_eq!(slot.withdraw(), None, "a proc is withdrawn once");
    slot.assign_again();
    assert_eq!(slot.assignment(), Some(&assignment(7)));
    slot.request_pod(None, 0.0);
    let withdrawn = slot.withdraw();
    assert_eq!((withdrawn, slot.assignment()), (None, Some(&assignment(7))), "its pod may be there by now");
    assert_eq!(slot.pod_is_refused(), Some(assignment(7)));
    assert_eq!(slot.pod_is_refused(), None);
}

/// A claim that is used again is not written again, if the pod tells a new leader all that changed.
#[test]
fn a_claim_that_is_used_again_is_written_only_if_the_pod_does_not_tell_all() {
    let other_job = Assignment { job: JobKey { uid: "other".into(), ..assignment(1).job }, ..assignment(1) };
    let (none, license) = (Wants::default(), Wants::parse("license"));
    let cases = [
        ("another proc of the job", Record::Written, &none, assignment(1), &none, Record::Written),
        ("another job", Record::Written, &none, other_job, &none, Record::Due),
        ("the next proc takes a limit", Record::Written, &none, assignment(1), &license, Record::Due),
        ("the last proc took a limit", Record::Written, &license, assignment(1), &none, Record::Due),
        ("the last proc was never written", Record::Writing, &none, assignment(1), &none, Record::Due),
        ("somebody edited the claim", Record::Due, &none, assignment(1), &none, Record::Due),
    ];
    for (case, before, held, next, wanted, expected) in cases {
        let mut slot = slot();
        slot.take_limits(held.clone());
        slot.claim_is_written();
        slot.limits_are_written();
        match before {
            Record::Due => slot.claim_is_due(),
            Record::Writing => slot.write_begins(),
            _ => {}
        }
        slot.assign(next, wanted);
        assert_eq!(slot.record(), expected, "{case}");
    }
}

/// Somebody may edit the claim of a Slot at any time. The operator knows its own writing, whatever proc runs by now.
#[test]
fn an_object_is_known_by_the_proc_that_was_written_last() {
    let claim_for = |proc| Claim { last: assignment(proc), ..claim("alice") };
    let mut slot = slot();
    assert!(slot.is_named_by(&claim_for(0)), "the first write may have arrived");
    slot.claim_is_written();
    slot.assign(assignment(1), &Wants::default());
    let named = [0, 1].map(|proc| slot.is_named_by(&claim_for(proc)));
    assert_eq!(named, [true, false], "nobody wrote that the claim serves proc 1");
    slot.claim_is_due();
    slot.write_begins();
    let named = [0, 1, 77].map(|proc| slot.is_named_by(&claim_for(proc)));
    assert_eq!(named, [true, true, false], "the write is under way");
    slot.claim_is_written();
    let named = [0, 1].map(|proc| slot.is_named_by(&claim_for(proc)));
    assert_eq!(named, [false, true]);
    assert!(
        !slot.is_named_by(&Claim { id: ClaimId::new(slot.name(), at(2), 9), ..claim_for(1) }),
        "another claim"
    );
}

#[test]
fn what_is_known_of_a_pod_goes_with_the_pod() {
    let mut slot = with_pod();
    slot.pod_lives(facts(true), at(10));
    slot.activate(600, Some(60), (3600, 600), 2.5, at(10));
    slot.ask_to_freeze(true);
    slot.delete_pod_by_force(at(20));
    let end = Some(End::Exited { code: 0 });
    slot.pod_ends(&PodFacts { remains: Remains::Others, end, ..facts(true) }, at(30));
    let running = slot.running().unwrap();
    assert_eq!((running.pledged_vacate, running.frozen, running.asked_by_force), (600, Some(true), true));
    assert_eq!((slot.active(), slot.remains()), (None, Some(Remains::Others)));
    slot.pod_is_over();
    assert_eq!((slot.running(), slot.remains(), slot.assignment()), (None, None, None));
    slot.assign(assignment(1), &Wants::default());
    slot.request_pod(Some(4), 0.0);
    slot.pod_is_created(&pod(2));
    let next = slot.running().unwrap();
    assert_eq!((next.started, next.pledged_vacate, next.frozen, next.generation), (None, 0, None, Some(4)));
}

#[test]
fn only_news_of_a_pod_is_looked_at() {
    let mut slot = with_pod();
    assert!(slot.running().unwrap().is_of_before(4) && !slot.running().unwrap().is_of_before(3));
    assert_eq!(slot.pod_lives(facts(false), at(5)), PodNews::Nothing);
    assert_eq!(slot.pod_lives(facts(true), at(6)), PodNews::Started);
    assert_eq!(slot.pod_lives(facts(true), at(7)), PodNews::Nothing);
    assert_eq!(slot.running().unwrap().started, Some(at(6)), "the first time counts");
    let deleted = PodFacts { deleting: true, grace: Some(Duration::from_secs(30).into()), ..facts(true) };
    assert_eq!(slot.pod_lives(deleted.clone(), at(8)), PodNews::Pod);
    assert_eq!(slot.pod_lives(deleted.clone(), at(9)), PodNews::Nothing);
    assert_eq!(slot.pod_lives(facts(true), at(9)), PodNews::Nothing, "a stale look does not undo a deletion");
    let forced = PodFacts { forced: Forced::Running, ..deleted };
    assert_eq!(slot.pod_lives(forced, at(10)), PodNews::Pod);
}

#[test]
fn a_pod_that_cannot_start_is_given_up_once_and_says_for_what() {
    let mut slot = with_pod();
    assert_eq!(slot.give_up_pod(at(5)), None, "nothing keeps it from starting");
    let obstacle = Obstacle::of("main", "ErrImagePull", "no such image").map(Arc::new);
    let stuck = PodFacts { obstacle, ..facts(false) };
    assert_eq!(slot.pod_lives(stuck.clone(), at(10)), PodNews::Pod);
    assert_eq!(slot.pod_lives(stuck, at(20)), PodNews::Nothing);
    assert_eq!(slot.running().unwrap().stuck.as_ref().unwrap().until(false), at(10) + START_PATIENCE);
    assert_eq!(slot.held_for(), None);
    let (given_up, hold) = slot.give_up_pod(at(310)).unwrap();
    assert_eq!((given_up, hold.code, slot.held_for().map(|hold| hold.code)), (pod(1), 35, Some(35)));
    slot.pod_lives(PodFacts { deleting: true, ..facts(false) }, at(311));
    assert!(slot.held_for().is_some(), "the kubelet says no longer what a deleted pod waits for");
}

#[test]
fn the_end_that_the_program_came_to_by_itself_counts() {
    let exited = End::Exited { code: 0 };
    let evicted = || End::Evicted { why: "drained".into() };
    let seen = PodFacts { end: Some(exited.clone()), ..facts(true) };
    for (told, end) in [(true, exited), (false, evicted())] {
        let mut slot = with_pod();
        slot.pod_lives(seen.clone(), at(10));
        assert_eq!(slot.book_end(&PodFacts { told, ..facts(true) }, evicted(), at(12)), end, "told: {told}");
        assert!(!slot.is_spent(), "the kubelet ran the pod");
    }
    let mut refused = with_pod();
    refused.book_end(&facts(false), evicted(), at(12));
    assert!(refused.is_spent(), "a kubelet that evicts what never ran refuses pods");
}

#[test]
fn an_eviction_belongs_to_a_retirement_and_ends_with_the_job() {
    let mut slot = with_pod();
    assert_eq!((slot.retires_for(), slot.eviction()), (None, None));
    slot.retire(Cause::Draining);
    slot.unretire();
    assert_eq!(slot.retires_for(), None);
    slot.retire(Cause::Draining);
    slot.retire(Cause::Preempt);
    slot.evict(Cause::MachineGone, Eviction::until(at(60), None));
    assert_eq!(slot.retires_for(), Some(Cause::Preempt), "the retirement has its cause");
    slot.kill(at(60));
    slot.kill(at(70));
    slot.kill_by_agent();
    slot.killing_takes_too_long();
    let eviction = slot.eviction().unwrap();
    assert_eq!((eviction.killed, eviction.by_agent, eviction.agent_asked), (Some(at(60)), true, true));
    slot.forget_asked();
    let eviction = slot.eviction().unwrap();
    assert_eq!((eviction.killed, eviction.by_agent, eviction.agent_asked), (Some(at(60)), false, false));
    slot.settle();
    assert_eq!((slot.retires_for(), slot.eviction()), (None, None));
}

#[test]
fn a_suspension_counts_until_the_job_continues_or_the_claim_leaves() {
    let mut slot = with_pod();
    slot.suspend(at(5));
    slot.suspend(at(9));
    slot.continue_job(at(15));
    slot.continue_job(at(25));
    let running = slot.running().unwrap();
    assert_eq!((running.suspended.as_secs(), running.suspended_since), (10, None));
}

#[test]
fn a_new_leader_goes_on_from_what_is_recorded_of_the_same_pod() {
    let recorded = |uid: &str| Recorded {
        pod: uid.into(),
        pledged_vacate: 45,
        suspended: Duration::from_secs(7),
        suspended_since: Some(at(100)),
        entered: Some(Entered { activity: Claimed::Suspended, state_since: at(20), activity_since: at(100) }),
    };
    for (uid, vacate, suspended, state, entered, later) in
        [("pod-1", 45, 57, 20, (20, 100), (20, 300)), ("pod-0", 600, 0, 1, (1, 160), (1, 300))]
    {
        let mut slot = slot().adopted(true, None, Some(recorded(uid)));
        slot.pod_lives(facts(true), at(140));
        let mut enter = |number, to, second| {
            let why = "a reason".into();
            slot.enter(
                State::Claimed(to),
                LastTransition { number: Number::new(number, None), why, at: at(second) },
            );
            (slot.phase().entered_state().secs(), slot.phase().entered_activity().secs())
        };
        assert_eq!(enter(11, Claimed::Busy, 150), (state, 150), "no leader recorded that");
        slot.activate(600, None, (0, 600), 0.0, at(150));
        slot.rests();
        let mut late = slot.clone();
        let enter = |slot: &mut Slot, second| {
            let to = State::Claimed(Claimed::Suspended);
            slot.enter(
                to,
                LastTransition { number: Number::new(14, None), why: "SUSPEND".into(), at: at(second) },
            );
            (slot.phase().entered_state().secs(), slot.phase().entered_activity().secs())
        };
        assert_eq!(enter(&mut slot, 160), entered, "{uid}");
        assert_eq!(enter(&mut late, 300), later, "{uid}: a suspension of its own");
        let running = slot.running().unwrap();
        assert_eq!((running.pledged_vacate, running.suspended.as_secs()), (vacate, suspended), "{uid}");
        let since = |slot: &Slot| slot.running().unwrap().suspended_since.map(Time::secs);
        late.suspend(at(300));
        assert_eq!(since(&late), Some(300), "{uid}: the recorded suspension is over");
        slot.remain_suspended(at(160));
        assert_eq!(since(&slot), Some(entered.1), "{uid}");
        let all = slot.running().unwrap().suspend_time(at(160)).as_secs();
        assert_eq!(all, if uid == "pod-1" { 67 } else { 0 }, "{uid}");
        slot.rests();
        assert!(!slot.records(&"pod-1".into()) && !slot.records(&"pod-0".into()));
    }
}

#[test]
fn a_claim_that_waited_starts_anew() {
    let mut slot = with_pod();
    slot.claim_is_written();
    slot.book_end(&facts(false), End::Evicted { why: "refused".into() }, at(5));
    slot.must_go(Removal::MachineGone);
    slot.must_go(Removal::ByUser);
    assert_eq!(slot.removal(), Some(Removal::MachineGone), "a machine that is gone is the stronger reason");
    slot.retire(Cause::BetterClaim);
    slot.pod_is_over();
    slot.is_awaited_by(Preemptor { claim: claim("bob"), rank: 9.0, part: false });
    assert_eq!(slot.is_awaited_no_longer(|next| next.part), None);
    slot.succeed(at(50));
    assert_eq!((slot.claim().submitter.as_str(), slot.claim().since), ("bob", at(50)));
    assert_eq!(
        (slot.removal(), slot.is_spent(), slot.retires_for(), slot.preemptor()),
        (None, false, None, None)
    );
    assert_eq!((slot.record(), slot.rank().to_bits()), (Record::Due, 9.0_f64.to_bits()));
}

#[test]
fn limits_count_until_the_object_says_what_is_held() {
    let mut slot = slot();
    slot.take_limits(Wants::parse("xsw:2"));
    slot.take_limits(Wants::parse("gpu"));
    assert_eq!(slot.claim().limits, Wants::parse("gpu"));
    assert_eq!(*slot.carried_limits(), Wants::parse("xsw:2"));
    slot.limits_are_written();
    assert!(slot.carried_limits().is_empty());
}

#[test]
fn the_object_of_a_static_slot_proves_nothing_of_a_claim_that_nobody_heard_was_written() {
    let phase = Phase::starting(State::Owner, at(1));
    for (name, written, shown) in [
        ("slot1@n1", false, Shown::Unheard),
        ("slot1@n1", true, Shown::Own),
        ("slot1_1@n1", false, Shown::Own),
    ] {
        let name = SlotName::parse(name).unwrap();
        let mut slot = Slot::new(name.clone(), Resources::default(), claim("alice"), phase.clone());
        slot.write_begins();
        if written {
            slot.claim_is_written();
        }
        slot.deletion_begins();
        assert_eq!((slot.shown(), slot.record()), (shown, Record::Deleting), "{name} {written}");
        slot.deletion_failed();
        assert_eq!(slot.record(), Record::Written);
    }
    let mut dynamic = slot();
    dynamic.object_shows(false);
    assert_eq!(dynamic.shown(), Shown::Another);
    dynamic.object_is_gone();
    assert_eq!(dynamic.shown(), Shown::Own);
}

/// A pool may have 100,000 slots, each with a pod that a watch keeps as well. The bounds are sizes that musl's allocator, which the
/// image has, gives out without waste.
#[test]
fn slots_and_pods_are_small() {
    assert!(size_of::<Slot>() <= 492, "{}", size_of::<Slot>());
    assert!(size_of::<Running>() <= 236, "{}", size_of::<Running>());
    assert!(size_of::<PodFacts>() <= 380, "{}", size_of::<PodFacts>());
}
