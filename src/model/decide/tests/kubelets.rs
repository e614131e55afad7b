//! Kubelets that end pods, each a short story. Source: `docs/reference/pods.md`.

use std::time::Duration;

use super::world::World;
use crate::pool::{
    Capacity, End, Event, Forced, HoldReason, Outcome, PodFacts, PodRef, Remains, Retry, StartdConfig,
};
use crate::schedd::why;
use crate::startd::config::understand;

/// A node of one core under a policy. The only proc of a job runs there.
fn world(text: &str) -> World {
    let mut world = World::new();
    let mut startd = StartdConfig::default();
    understand(text).config.unwrap().put_into(&mut startd);
    world.govern(startd, text);
    world.node("n1", 1, 0);
    world.fate = |_| (86_400, 0);
    world.obeys = false;
    world.submit("long", "alice", 1, |_| {});
    world.pass(10);
    assert_eq!(world.pods.len(), 1);
    world
}

fn pod(world: &World) -> PodRef {
    world.pods["long-0"].facts.pod.clone()
}

/// The kubelet writes something into the pod's status.
fn writes(world: &mut World, edit: impl FnOnce(&mut PodFacts)) {
    let facts = &mut world.pods.get_mut("long-0").unwrap().facts;
    edit(facts);
    let facts = facts.clone();
    world.pool.apply(Event::Pod(facts), world.now);
    world.settle();
}

/// The numbers of succeeded, failed and idle procs of the job.
fn counts(world: &World) -> (u64, u64, u64) {
    let job = world.pool.jobs().values().next().unwrap();
    (job.succeeded.len(), job.failed.len(), job.idle.len())
}

fn evict(world: &mut World) {
    let config = StartdConfig {
        drain_cordoned: true,
        ..(*world.pool.startd(&world.pool.machines()[&"n1".into()])).clone()
    };
    world.govern(config, "drains");
    let cordoned = crate::pool::MachineFacts { cordoned: true, ..world.machines["n1"].clone() };
    world.set_node(cordoned);
    world.pass(1);
}

/// kubernetes#83916: a kubelet that has begun to end a pod keeps to the first grace period, whoever deletes the pod or
/// the Node later.
#[test]
fn a_proc_is_free_no_earlier_than_its_pods_first_grace_period_is_over() {
    let mut world = world("MachineMaxVacateTime = 60\n");
    world.cut.insert("n1".to_owned());
    evict(&mut world);
    assert_eq!(world.graces, [Some(60)]);
    world.machines.remove("n1");
    world.pool.apply(Event::MachineGone("n1".into()), world.now);
    world.pass(10);
    // The pod garbage collector deletes the pod by force.
    writes(&mut world, |facts| facts.forced = Forced::Running);
    world.pass(50);
    assert_eq!((counts(&world), world.pool.slots().len()), ((0, 0, 0), 1));
    world.pass(10);
    assert_eq!((counts(&world), world.pool.slots().len()), ((0, 0, 1), 0));
}

/// The operator waits for a pod that was deleted by force as long as its kubelet may run it.
#[test]
fn a_proc_is_free_once_its_kubelet_has_ended_a_pod_that_was_forced() {
    let mut world = world("");
    writes(&mut world, |facts| (facts.deleting, facts.forced) = (true, Forced::Running));
    world.pass(600);
    assert_eq!(counts(&world), (0, 0, 0));
    world.end_pod(&pod(&world), None);
    world.pass(1);
    assert_eq!(counts(&world), (0, 0, 1));
}

/// A second deletion with a shorter grace period comes too late: the first grace period must be the time that the job
/// is to have.
#[test]
fn a_kill_that_time_alone_brings_is_foreseen() {
    let kill = "MachineMaxVacateTime = 600\nKILL = (time() - EnteredCurrentActivity) > 30\n";
    let mut world = self::world(kill);
    evict(&mut world);
    assert_eq!(world.graces, [Some(31)]);
    world.pass(40);
    assert_eq!(world.graces, [Some(31), Some(1)]);
    for (policy, grace) in [
        ("MachineMaxVacateTime = 600\n", 600),
        ("MachineMaxVacateTime = 20\nKILL = (time() - EnteredCurrentActivity) > 30\n", 20),
        ("MachineMaxVacateTime = 600\nKILL = KeyboardIdle < 10\n", 600),
        ("MachineMaxVacateTime = 600\nKILL = (time() - EnteredCurrentActivity) >= 599\n", 599),
    ] {
        let mut world = self::world(policy);
        evict(&mut world);
        assert_eq!(world.graces, [Some(grace)], "{policy}");
    }
}

/// The end of the main container is the end of the proc. Another container that still runs holds the slot, and the
/// operator ends it.
#[test]
fn a_container_that_outlives_the_main_one_is_ended() {
    let mut world = world("");
    writes(&mut world, |facts| (facts.end, facts.remains) = (Some(End::Exited { code: 3 }), Remains::Others));
    assert_eq!((counts(&world), world.pool.slots().len()), ((0, 1, 0), 1));
    world.pass(1);
    assert_eq!(world.graces, [Some(10)]);
    // Later reports of the kubelet about the pod's end change nothing.
    writes(&mut world, |facts| {
        (facts.end, facts.remains) =
            (Some(End::Evicted { why: "its pod was deleted".into() }), Remains::Nothing);
        facts.deleting = true;
    });
    world.pass(5);
    assert_eq!((counts(&world), world.pool.slots().len(), world.pods.len()), ((0, 1, 0), 0, 0));
}

/// The job keeps its finalizer until then, however long the API server takes to delete the pod.
#[test]
fn a_job_that_is_removed_waits_for_a_container_that_outlives_the_main_one() {
    let mut world = world("");
    let others = |facts: &mut PodFacts| {
        (facts.end, facts.remains) = (Some(End::Exited { code: 0 }), Remains::Others);
    };
    world.obeys = false;
    writes(&mut world, others);
    world.remove("long");
    world.pass(60);
    assert_eq!((world.jobs.len(), world.pods.len()), (1, 1));
    writes(&mut world, |facts| facts.remains = Remains::Nothing);
    world.pass(5);
    assert_eq!((world.jobs.len(), world.pods.len()), (0, 0));
}

/// The kubelet reports that the containers have ended about a second before it reports that the pod has.
#[test]
fn a_pod_that_has_ended_but_for_a_word_of_its_kubelet_holds_its_slot() {
    let mut world = world("");
    let ended = |facts: &mut PodFacts| {
        (facts.end, facts.remains) = (Some(End::Exited { code: 0 }), Remains::Ending);
    };
    writes(&mut world, ended);
    world.pass(1);
    assert_eq!((counts(&world), world.pool.slots().len(), world.graces.len()), ((0, 0, 0), 1, 0));
    writes(&mut world, |facts| facts.remains = Remains::Nothing);
    world.pass(5);
    assert_eq!((counts(&world), world.pool.slots().len()), ((1, 0, 0), 0));
    // A kubelet that evicts a pod says so with the final phase.
    let mut world = self::world("");
    writes(&mut world, ended);
    let evicted = || Some(End::Evicted { why: "Evicted: The node was low on resource: memory".into() });
    writes(&mut world, |facts| (facts.end, facts.remains) = (evicted(), Remains::Nothing));
    assert_eq!(counts(&world), (0, 0, 1));
    // A program that was seen to end before somebody deleted its pod was not told to end.
    let mut world = self::world("");
    writes(&mut world, ended);
    writes(&mut world, |facts| {
        (facts.end, facts.told, facts.remains) = (evicted(), true, Remains::Nothing);
        facts.deleting = true;
    });
    assert_eq!(counts(&world), (1, 0, 0));
}

/// The kubelet has reported that the program ended, and is lost before it reports the pod's final phase. Only the final
/// phase would say that the kubelet evicted the pod. So nobody knows whether the program ended by itself, and the proc
/// runs again.
#[test]
fn an_end_without_a_last_phase_is_none_once_its_kubelet_is_lost() {
    let mut world = world("MachineMaxVacateTime = 60\n");
    writes(&mut world, |facts| {
        (facts.end, facts.remains) = (Some(End::Exited { code: 0 }), Remains::Ending);
    });
    world.cut.insert("n1".to_owned());
    world.machines.remove("n1");
    world.pool.apply(Event::MachineGone("n1".into()), world.now);
    world.pass(10);
    // The end of a program in a pod that is being deleted is read from the final phase.
    writes(&mut world, |facts| {
        (facts.deleting, facts.forced, facts.end) = (true, Forced::Running, None);
    });
    world.pass(120);
    assert_eq!((counts(&world), world.pool.slots().len()), ((0, 0, 1), 0));
}

/// A pod without the finalizer is deleted for good. If the status of such a pod says something afterwards, nothing is
/// counted as another end.
#[test]
fn what_was_let_go_is_not_booked_again() {
    let mut world = world("");
    evict(&mut world);
    let facts = world.pods["long-0"].facts.clone();
    world.end_pod(&pod(&world), None);
    world.pass(1);
    assert_eq!((counts(&world), world.pool.slots().len()), ((0, 0, 1), 0));
    let late = PodFacts { end: Some(End::Exited { code: 0 }), tracked: false, deleting: true, ..facts };
    world.pool.apply(Event::Pod(late), world.now);
    world.pass(60);
    assert_eq!(counts(&world), (0, 0, 1));
}

/// The answer to a failed call comes when the claim serves another proc already, or the proc has another pod.
#[test]
fn a_failed_call_for_an_earlier_pod_undoes_nothing() {
    let mut world = world("");
    evict(&mut world);
    let deleting = |world: &World| world.pool.slots().values().next().unwrap().running().unwrap().deleting;
    let slot = world.pool.slots().keys().next().unwrap().clone();
    assert!(deleting(&world));
    for (uid, still) in [("another".into(), true), (pod(&world).uid, false)] {
        world.pool.apply(Event::Outcome(Outcome::Failed(Retry::Pod(uid, Some(slot.clone())))), world.now);
        world.pool.wake(world.now + Duration::from_secs(5));
        assert_eq!(deleting(&world), still);
    }
}

#[test]
fn an_init_container_that_fails_is_told_with_its_own_exit_code() {
    let mut world = world("");
    writes(&mut world, |facts| {
        facts.end = Some(End::InitFailed { container: "fetch".into(), code: 4 });
    });
    world.pass(1);
    assert_eq!(counts(&world), (0, 1, 0));
    let told = world.log.iter().any(|line| line.contains("init container fetch ended with exit code 4"));
    assert!(told, "{:?}", world.log);
}

/// The kubelet deletes an evicted pod for good some seconds after its end. Until then the proc's next pod cannot have
/// the name.
#[test]
fn a_proc_waits_for_its_earlier_pod_to_go() {
    let mut world = world("");
    world.node("n2", 1, 0);
    let late = PodFacts { tracked: false, deleting: true, ..world.pods["long-0"].facts.clone() };
    evict(&mut world);
    world.end_pod(&pod(&world), None);
    let evicted = world.pods.get("long-0").map(|pod| pod.facts.clone());
    world.pass(1);
    // The API server shows the pod once more, without the operator's finalizer.
    let shown = PodFacts { end: Some(End::Evicted { why: "it was deleted".into() }), ..late.clone() };
    world.pool.apply(Event::Pod(shown), world.now);
    world.pass(25);
    assert!(evicted.is_some() && world.pods.is_empty(), "the claim waits");
    world.pool.apply(Event::PodGone(late.clone()), world.now);
    world.pass(2);
    assert_eq!(world.pods.len(), 1);
    // Somebody's finalizer keeps the pod for ever. After a while the operator asks the API server all the same, which
    // refuses.
    let stays = PodFacts { end: Some(End::Evicted { why: "it was deleted".into() }), ..late };
    world.end_pod(&pod(&world), None);
    world.pass(1);
    world.pool.apply(Event::Pod(stays), world.now);
    world.pass(120);
    assert_eq!(world.pods.len(), 1);
}

/// The claim of a proc that is done holds its slot while containers of its pod run, also under a new leader.
#[test]
fn a_new_leader_finds_what_is_left_of_a_pod() {
    let mut world = world("");
    writes(&mut world, |facts| (facts.end, facts.remains) = (Some(End::Exited { code: 0 }), Remains::Others));
    world.pass(1);
    // The pod is being deleted, and the kubelet has not yet reported how it ended.
    writes(&mut world, |facts| (facts.end, facts.deleting) = (None, true));
    world.restart();
    world.pass(60);
    assert_eq!((counts(&world), world.pool.slots().len()), ((1, 0, 0), 1));
    writes(&mut world, |facts| {
        (facts.end, facts.remains) =
            (Some(End::Evicted { why: "its pod was deleted".into() }), Remains::Nothing);
    });
    world.pass(5);
    assert_eq!((counts(&world), world.pool.slots().len()), ((1, 0, 0), 0));
}

/// Somebody takes the claim's id off a pod while no operator leads. The Slot says which claim the proc has.
#[test]
fn a_new_leader_knows_a_pod_without_its_claim_by_the_slot() {
    // If the new leader cannot decode the pod, machine and requests are unknown, too.
    for decodes in [true, false] {
        let mut world = world("");
        let (mut machine, mut requests) = (None, Capacity::default());
        writes(&mut world, |facts| {
            machine = facts.machine.clone();
            facts.claim = "".into();
            facts.machine = facts.machine.take().filter(|_| decodes);
            requests = facts.requests.clone();
            if !decodes {
                facts.requests = Capacity::default();
            }
        });
        world.restart();
        world.pass(60);
        assert_eq!(
            (world.pool.orphans().len(), world.pool.slots().len(), world.pods.len()),
            (0, 1, 1),
            "{decodes}"
        );
        writes(&mut world, |facts| {
            (facts.machine, facts.requests) = (machine.clone(), requests.clone());
            (facts.end, facts.remains) = (Some(End::Exited { code: 0 }), Remains::Others);
        });
        assert_eq!((counts(&world), world.pool.slots().len()), ((1, 0, 0), 1), "{decodes}");
    }
}

/// The claim of a held proc holds its slot while containers of the proc's pod run, also under a new leader.
#[test]
fn a_new_leader_finds_what_is_left_of_the_pod_of_a_proc_that_is_held() {
    let mut world = world("");
    writes(&mut world, |facts| {
        facts.end = Some(End::Evicted { why: "out of memory".into() });
        facts.hold = Some(Box::new(HoldReason { code: 34, subcode: 0, reason: "out of memory".into() }));
        facts.remains = Remains::Others;
    });
    world.pass(1);
    let held = |world: &World| world.pool.jobs().values().next().unwrap().on_hold.len();
    assert_eq!((held(&world), world.pool.slots().len()), (1, 1));
    let said = why::held(world.pool.jobs().values().next().unwrap()).map(|said| said.reason);
    assert_eq!(said, Some("JobOutOfResources"), "HTCondor's name of the code 34");
    world.restart();
    world.pass(60);
    assert_eq!((held(&world), world.pool.slots().len()), (1, 1));
    writes(&mut world, |facts| facts.remains = Remains::Nothing);
    world.pass(5);
    assert_eq!((held(&world), world.pool.slots().len()), (1, 0));
}
