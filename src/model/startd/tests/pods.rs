//! Pods that must leave their slot, with kubelets that act like real ones (`docs/reference/pods.md`).

use std::time::Duration;

use super::claimed::leaving;
use super::scene::Scene;
use crate::pool::{Activation, Claimed, Forced, Granted, Preempting, Remains, Removal, State};
use crate::startd::{Chore, Grace, Off, Pace, Step};

const NOTHING: [Chore; 0] = [];
const BUSY: State = State::Claimed(Claimed::Busy);
const CLEANING: State = State::Claimed(Claimed::Cleaning);
const VACATING: State = State::Preempting(Preempting::Vacating);
const KILLING: State = State::Preempting(Preempting::Killing);

/// The operator asks for the pod's deletion, with a grace period of so many seconds.
fn ask(scene: &mut Scene, seconds: u64) {
    let grace = Duration::from_secs(seconds);
    scene.slot.running_mut().granted =
        Some(Granted::by_deletion(scene.slot.running().unwrap().granted, grace, scene.now));
}

/// The pod was deleted just now, with a grace period of so many seconds.
fn grant(scene: &mut Scene, seconds: u64) {
    ask(scene, seconds);
    let now = scene.now;
    let running = scene.slot.running_mut();
    running.granted = running.granted.map(|granted| granted.shown(Duration::from_secs(seconds), now));
}

/// A kubelet whose Node was deleted still ends the pod by the grace period that it was told. The slot waits until that
/// time is over, though nobody will confirm the pod's end.
#[test]
fn transition_18_a_machine_whose_node_is_gone_has_what_its_pod_was_granted() {
    let gone = |s: &mut Scene| {
        s.slot.must_go(Removal::MachineGone);
        s.off = Off::NodeGone;
    };
    // A pod that nobody had deleted is killed first.
    let mut scene = Scene::of(BUSY).with(gone);
    scene.drive();
    assert_eq!((scene.taken.as_slice(), scene.done.as_slice()), (&[13, 18][..], &[Chore::KillPod][..]));
    grant(&mut scene, 1);
    assert_eq!(scene.wait(5).drive().done, NOTHING);
    assert_eq!(scene.wait(1).drive().done, [Chore::DeletePod(Grace::Force)]);
    scene.slot.running_mut().forced = Forced::Running;
    assert_eq!(scene.wait(0).drive().done, [Chore::LosePod, Chore::UntrackPod, Chore::DeleteClaim]);
    assert_eq!(scene.taken, [25]);
    // A pod that vacates has the rest of its vacating time.
    let mut scene = leaving(VACATING, 60).with(gone);
    grant(&mut scene, 60);
    assert_eq!(scene.drive().done, NOTHING);
    // A shorter deletion by somebody else does not change what the kubelet does.
    grant(&mut scene, 1);
    scene.slot.running_mut().forced = Forced::Running;
    assert_eq!(scene.wait(64).drive().done, NOTHING);
    assert_eq!(scene.wait(1).drive().done, [Chore::LosePod, Chore::UntrackPod, Chore::DeleteClaim]);
}

/// A deletion may hang in a webhook of the namespace and be tried again. The kubelet learns of the deletion when it
/// takes effect, so that the grace period counts from then.
#[test]
fn transition_18_what_a_pod_was_granted_counts_from_when_it_is_deleted() {
    let gone = |s: &mut Scene| {
        s.slot.must_go(Removal::MachineGone);
        s.off = Off::NodeGone;
    };
    let mut scene = Scene::of(BUSY).with(gone);
    scene.drive();
    ask(&mut scene, 1);
    assert_eq!(scene.wait(600).drive().done, NOTHING);
    grant(&mut scene, 1);
    assert_eq!(scene.wait(5).drive().done, NOTHING);
    assert_eq!(scene.wait(1).drive().done, [Chore::DeletePod(Grace::Force)]);
}

#[test]
fn a_fast_drain_kills_what_vacates() {
    let vacates = |pace| leaving(VACATING, 600).with(|s| s.draining = Some(pace)).takes();
    assert_eq!((vacates(Pace::Graceful), vacates(Pace::Quick)), (vec![], vec![]));
    assert_eq!(vacates(Pace::Fast), [21]);
}

/// A kubelet that has begun to end a pod ignores a shorter grace period (kubernetes#83916).
#[test]
fn an_agent_kills_at_once_what_the_kubelet_lets_run_for_long() {
    let killing = |granted: u64| {
        leaving(KILLING, 0).with(|s| {
            grant(s, granted);
        })
    };
    assert_eq!(killing(600).drive().done, [Chore::KillByAgent]);
    assert_eq!(killing(5).drive().done, NOTHING, "the kubelet ends it within a moment");
    assert_eq!(killing(600).with(|s| s.agent = false).drive().done, NOTHING);
    let late = killing(600).wait(30).drive().done.clone();
    assert_eq!(late, [Chore::KillByAgent, Chore::AskAgentToKill]);
}

#[test]
fn a_pod_whose_proc_has_ended_goes_once_nothing_of_it_is_left() {
    let ended = |remains, deleting| {
        Scene::of(CLEANING).with(|s| {
            s.slot.running_mut().deleting = deleting;
            if let Activation::Ended(running, _) = s.slot.activation().clone() {
                s.slot.set_activation(Activation::Ended(running, remains));
            }
        })
    };
    let others = Chore::DeletePod(Grace::Others);
    assert_eq!(ended(Remains::Nothing, false).drive().done[0], Chore::UntrackPod);
    assert_eq!(ended(Remains::Ending, false).drive().done, NOTHING);
    assert_eq!(
        ended(Remains::Others, false).step(),
        Step::Do(others),
        "containers beside the main one run on"
    );
    assert_eq!(ended(Remains::Others, true).drive().done, NOTHING);
    assert_eq!(ended(Remains::Others, false).with(|s| s.settled = false).drive().done, NOTHING);
    // Nobody else deletes pods on a machine that is off.
    let off = |off| ended(Remains::Others, true).with(move |s| s.off = off);
    let force = Step::Do(Chore::DeletePod(Grace::Force));
    assert_eq!(off(Off::OutOfService).step(), force);
    assert_eq!(
        off(Off::OutOfService).with(|s| s.slot.running_mut().asked_by_force = true).step(),
        Step::Rest
    );
    let forced = |s: &mut Scene| s.slot.running_mut().forced = Forced::Running;
    assert_eq!(off(Off::OutOfService).with(forced).step(), Step::Do(Chore::UntrackPod));
    assert_eq!(off(Off::NodeGone).step(), Step::Rest, "a kubelet may be there all the same");
    assert_eq!(off(Off::NodeGone).with(|s| grant(s, 0)).wait(5).step(), force);
}

/// The kubelet works, and will report nothing more about a pod that was deleted by force before a container ran.
#[test]
fn a_pod_that_was_forced_is_waited_for_where_a_container_ran() {
    let forced = |forced, off, silent: bool| {
        Scene::of(BUSY)
            .with(|s| {
                s.slot.mark_deleting(true);
                (s.slot.running_mut().forced, s.off) = (forced, off);
                s.lease_ends = silent.then_some(s.now + Duration::from_mins(1));
            })
            .step()
    };
    assert_eq!(forced(Forced::Idle, Off::No, false), Step::Do(Chore::LosePod));
    assert_eq!(forced(Forced::Idle, Off::No, true), Step::Rest, "nothing is heard of the node");
    assert_eq!(forced(Forced::Running, Off::No, false), Step::Rest);
}
