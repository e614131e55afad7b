//! Properties that hold for all policies, at all times, whatever happens.

use proptest::prelude::*;

use super::scene::{Scene, claim};
use crate::pool::{Activation, Claimed, Preempting, Preemptor, Record, Removal, State};
use crate::startd::policy::{Answer, Question};
use crate::startd::{Off, Pace};

const QUESTIONS: [Question; 9] = [
    Question::IsOwner,
    Question::WantSuspend,
    Question::Suspend,
    Question::Continue,
    Question::Preempt,
    Question::WantVacate,
    Question::Kill,
    Question::WantHold,
    Question::StartNext,
];

/// Something that happens to a slot.
#[derive(Clone, Debug)]
enum Happening {
    Answers(usize, Answer),
    Passes(u16),
    PodEnds,
    Terms(Option<i64>, Option<i64>, Option<i64>),
    Agent(bool),
    StandsStill(bool),
    FoundSuspended,
    Offered(bool),
    Wanted(bool),
    Drains(Option<Pace>),
    Removed,
    Gone,
    BetterClaim(bool, bool),
    NextWanted(bool),
    Forgotten,
    CallFails,
    Settled(bool),
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![Just(Answer::True), Just(Answer::False), Just(Answer::Undefined), Just(Answer::Error)]
}

fn happening() -> impl Strategy<Value = Happening> {
    let time = || prop::option::of(-1_i64..5_000);
    let pace = prop_oneof![Just(Pace::Graceful), Just(Pace::Quick), Just(Pace::Fast)];
    prop_oneof![
        6 => (0..QUESTIONS.len(), answer()).prop_map(|(n, answer)| Happening::Answers(n, answer)),
        6 => (0_u16..2_000).prop_map(Happening::Passes),
        2 => Just(Happening::PodEnds),
        1 => (time(), time(), time()).prop_map(|(a, b, c)| Happening::Terms(a, b, c)),
        1 => any::<bool>().prop_map(Happening::Agent),
        1 => any::<bool>().prop_map(Happening::StandsStill),
        1 => Just(Happening::FoundSuspended),
        1 => any::<bool>().prop_map(Happening::Offered),
        1 => any::<bool>().prop_map(Happening::Wanted),
        1 => prop::option::of(pace).prop_map(Happening::Drains),
        1 => Just(Happening::Removed),
        1 => Just(Happening::Gone),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(waits, part)| Happening::BetterClaim(waits, part)),
        1 => any::<bool>().prop_map(Happening::NextWanted),
        1 => Just(Happening::Forgotten),
        1 => Just(Happening::CallFails),
        1 => any::<bool>().prop_map(Happening::Settled),
    ]
}

fn happen(scene: &mut Scene, happening: &Happening) {
    match happening {
        Happening::Answers(n, answer) => {
            scene.says.answers.insert(QUESTIONS[*n], *answer);
        }
        Happening::Passes(seconds) => {
            scene.wait(u64::from(*seconds));
        }
        Happening::PodEnds => {
            if scene.slot.active().is_some() {
                scene.pod_ends();
            }
        }
        Happening::Terms(machine, job, vacate) => {
            (scene.says.retirement, scene.says.job_retirement) = (*machine, *job);
            scene.says.job_vacate = vacate.map(|vacate| vacate.max(0));
        }
        Happening::Agent(there) => scene.agent = *there,
        Happening::StandsStill(still) => scene.stands_still = *still,
        Happening::FoundSuspended => scene.found_suspended(),
        Happening::Offered(offered) => scene.offered = *offered,
        Happening::Wanted(wanted) => scene.wanted = *wanted,
        Happening::Drains(pace) => scene.draining = *pace,
        Happening::Removed => scene.slot.must_go(Removal::ByUser),
        Happening::Gone => {
            scene.slot.must_go(Removal::MachineGone);
            scene.off = Off::NodeGone;
            call_fails(scene);
        }
        Happening::BetterClaim(waits, part) => {
            let next = Preemptor { claim: claim("bob"), rank: 1.0, part: *part };
            scene.slot.set_preemptor(waits.then_some(next));
        }
        Happening::NextWanted(wanted) => scene.next_wanted = *wanted,
        Happening::Forgotten => {
            if scene.slot.running().is_some() {
                scene.slot.running_mut().frozen = None;
            }
        }
        Happening::CallFails => call_fails(scene),
        Happening::Settled(settled) => scene.settled = *settled,
    }
}

fn call_fails(scene: &mut Scene) {
    scene.slot.mark_deleting(false);
}

fn start() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Claimed(Claimed::Idle)),
        Just(State::Claimed(Claimed::Busy)),
        Just(State::Claimed(Claimed::Suspended)),
        Just(State::Claimed(Claimed::Retiring)),
        Just(State::Claimed(Claimed::Cleaning)),
    ]
}

/// Performs the steps of the slot. The scene compares each with the manual's table.
fn drive(scene: &mut Scene) {
    let mut twin = scene.clone();
    twin.drive();
    scene.drive();
    assert_eq!((&twin.slot, &twin.done), (&scene.slot, &scene.done), "deciding twice is the same");
}

/// Whether the claim is over and its slot can be returned.
fn is_over(scene: &Scene) -> bool {
    scene.slot.record() == Record::Deleting
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn only_the_manuals_transitions_are_taken(
        start in start(),
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        let mut scene = Scene::of(start);
        for happening in &happenings {
            happen(&mut scene, happening);
            if is_over(&scene) {
                break;
            }
            drive(&mut scene);
            let busy = !matches!(scene.slot.activation(), Activation::Vacant | Activation::Assigned);
            prop_assert!(
                !busy || matches!(scene.slot.state(), State::Claimed(_) | State::Preempting(_)),
                "a pod holds its slot until its end is confirmed: {:?}", scene.slot
            );
            prop_assert!(
                scene.slot.running().is_none_or(|running| running.suspended_since.is_none())
                    || scene.slot.state() == State::Claimed(Claimed::Suspended)
            );
            prop_assert!(
                scene.slot.eviction().is_none() || matches!(scene.slot.state(), State::Preempting(_) | State::Owner)
            );
        }
    }

    #[test]
    fn there_is_a_way_out_of_every_state(
        start in start(),
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        let mut scene = Scene::of(start);
        for happening in &happenings {
            happen(&mut scene, happening);
            if is_over(&scene) {
                return Ok(());
            }
            drive(&mut scene);
        }
        // A fast drain, the confirmed end of the pod, and the passing of time.
        (scene.draining, scene.settled) = (Some(Pace::Fast), true);
        for _ in 0..4 {
            scene.wait(10_000);
            drive(&mut scene);
            if is_over(&scene) {
                return Ok(());
            }
            let asked = scene.slot.active().is_some_and(|pod| pod.deleting);
            prop_assert!(asked || !scene.slot.is_vacant(), "{:?}", scene.slot);
            if asked {
                scene.pod_ends();
                drive(&mut scene);
            }
        }
        prop_assert!(is_over(&scene), "{:?}", scene.slot.state());
    }

    #[test]
    fn killing_follows_vacating_and_never_the_other_way(
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        let mut scene = Scene::of(State::Claimed(Claimed::Busy));
        let mut killing = false;
        for happening in &happenings {
            happen(&mut scene, happening);
            if is_over(&scene) {
                break;
            }
            drive(&mut scene);
            let now = scene.slot.state() == State::Preempting(Preempting::Killing);
            prop_assert!(!killing || now || !matches!(scene.slot.state(), State::Preempting(_)));
            killing = now;
        }
    }
}
