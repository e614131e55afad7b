//! Claims that are used again for jobs of other sizes.

use super::world::{Pod, World};
use crate::pool::{
    Capacity, ClaimId, End, Event, History, HoldReason, LASTING, PodFacts, PodRef, Ranges, Remains, Slot,
};
use crate::schedd::Submission;

/// Runs a job of a minute that fills a node's CPUs, and then another job of the same submitter. Returns what each pod has (CPUs,
/// MiB of memory, KiB of disk), and whether the second job ran on the claim of the first.
fn one_after_another(edit: impl FnOnce(&mut Submission)) -> (Vec<(i64, i64, i64)>, bool) {
    let mut world = World::new();
    world.node("n1", 4, 1);
    world.fate = |_| (60, 0);
    world.submit("large", "alice", 1, |job| {
        (job.request.cpus, job.request.memory_mib, job.request.disk_kib) = (4, 2048, 10 * 1024);
    });
    world.pass(10);
    world.submit("small", "alice", 1, edit);
    let claims = |world: &World| world.slots.values().map(|slot| slot.1.id.clone()).collect::<Vec<ClaimId>>();
    let before = claims(&world);
    world.pass(100);
    let again = claims(&world) == before;
    if again {
        let slot = world.slots.values().next().map(|(resources, _)| resources.cpus);
        assert_eq!(slot, Some(4), "the slot keeps its size");
    }
    let size = |pod: &Pod| {
        let resources = &pod.plan.resources;
        (resources.cpus, resources.memory_mib, resources.disk_kib)
    };
    (world.pods.values().map(size).collect(), again)
}

#[test]
fn a_pod_on_a_claim_that_is_used_again_is_as_large_as_its_own_proc_requests() {
    let (sizes, again) =
        one_after_another(|job| (job.request.memory_mib, job.request.disk_kib) = (100, 2000));
    assert!(again);
    // The amounts follow MODIFY_REQUEST_EXPR_REQUESTMEMORY and similar knobs, as in a slot that is carved for the proc.
    assert_eq!(sizes, [(4, 2048, 10 * 1024), (1, 128, 2048)]);
}

#[test]
fn a_claim_finds_the_job_that_may_start_behind_hundreds_that_may_not() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.fate = |_| (60, 0);
    world.submit("first", "alice", 1, |_| {});
    world.pass(10);
    let claim = |world: &World| world.slots.values().map(|slot| slot.1.id.clone()).collect::<Vec<ClaimId>>();
    let before = claim(&world);
    for n in 0..300 {
        world.submit(&format!("never-{n}"), "alice", 1, |job| {
            job.attributes.insert("JobMaterializeLimit".to_owned(), "0".to_owned());
        });
    }
    world.submit("last", "alice", 1, |_| {});
    world.pass(60);
    assert_eq!(world.runs.len(), 1, "the first has ended: {:?}", world.runs);
    assert_eq!((before.len(), claim(&world)), (1, before));
    assert!(world.pods.values().any(|pod| pod.facts.end.is_none() && pod.facts.job.as_str() == "uid-last"));
}

/// HTCondor's condor_submit adds a clause for a resource only if the job's own Requirements do not mention the
/// resource.
#[test]
fn a_claim_is_not_used_again_for_a_proc_that_does_not_fit() {
    let again = |edit: fn(&mut Submission)| {
        let (sizes, again) = one_after_another(|job| {
            job.requirements = Some("TARGET.Memory > 1 && TARGET.Cpus > 0 && TARGET.GPUs >= 0".into());
            edit(job);
        });
        assert_eq!(sizes.len(), 2, "the job runs, be it on a slot of its own");
        again
    };
    assert!(again(|_| {}));
    assert!(!again(|job| job.request.memory_mib = 2049));
    assert!(!again(|job| job.request.gpus = 1));
}

/// A world in which the second of three procs of a job runs on the claim of the first.
fn with_second_proc() -> World {
    let mut world = World::new();
    world.node("n1", 1, 1);
    world.submit("sweep", "alice", 3, |_| {});
    world.pass(45);
    let (_, claim) = world.slots.values().next().unwrap();
    let pod = &world.pods["sweep-1"];
    assert_eq!((pod.plan.claim.id.clone(), pod.facts.running), (claim.id.clone(), true));
    assert_eq!(claim.last.proc, 0, "the Slot is not written for the second proc: the pod tells");
    world
}

/// How many pods live without a claim.
fn strays(world: &World) -> usize {
    world.pool.orphans().values().filter(|pod| !pod.is_over()).count()
}

/// Whether all procs of the job had one claim, and how often each proc ran.
fn to_the_end(mut world: World) -> (bool, Vec<u32>) {
    let first = world.slots.values().next().unwrap().1.id.clone();
    world.pass(90);
    let same = world.pods.values().all(|pod| pod.plan.claim.id == first);
    (same && strays(&world) == 0, world.runs.values().copied().collect())
}

#[test]
fn a_claim_that_is_used_again_for_the_same_job_is_not_written_again() {
    assert_eq!(to_the_end(with_second_proc()), (true, vec![1, 1, 1]));
}

#[test]
fn a_new_leader_follows_the_pod_of_a_claim_that_was_used_again() {
    let mut world = with_second_proc();
    world.restart();
    let slot = world.pool.slots().values().next().unwrap();
    let assigned = slot.assignment().map(|assignment| assignment.proc);
    assert_eq!((assigned, strays(&world)), (Some(1), 0));
    assert_eq!(to_the_end(world), (true, vec![1, 1, 1]));
}

/// The first proc is idle again, so that the new leader would give the proc to the claim that names the proc.
#[test]
fn a_new_leader_follows_the_pod_though_the_proc_that_the_slot_names_waits() {
    let mut world = with_second_proc();
    for job in world.jobs.values_mut() {
        job.succeeded = Ranges::default();
    }
    world.pods.remove("sweep-0");
    world.restart();
    let slot = world.pool.slots().values().next().unwrap();
    assert_eq!(slot.assignment().map(|assignment| assignment.proc), Some(1));
    let waits = world.pool.jobs().values().next().unwrap().idle.contains(0);
    assert!(waits && strays(&world) == 0);
}

/// The earlier leader recorded that the proc whose pod runs is held, and the pod has not gone yet.
#[test]
fn a_claim_that_was_used_again_outlives_the_pod_of_a_held_proc() {
    let mut world = with_second_proc();
    for job in world.jobs.values_mut() {
        job.succeeded = Ranges::default();
        job.on_hold.give(&Ranges::of(1), &HoldReason::by_user(0, "look first"));
    }
    world.pods.remove("sweep-0");
    world.restart();
    let slot = world.pool.slots().values().next().unwrap();
    assert!(slot.has_ended() && slot.claim().last.proc == 1, "{:?}", slot.activation());
    let waits = world.pool.jobs().values().next().unwrap().idle.contains(0);
    assert!(waits && strays(&world) == 0);
}

/// The first proc was evicted, which is recorded, and its pod still has the finalizer. That pod is of an earlier run, and not of the
/// run for which the new leader would give the proc to the claim.
#[test]
fn a_new_leader_follows_the_pod_though_the_first_procs_pod_is_there() {
    let mut world = with_second_proc();
    for job in world.jobs.values_mut() {
        job.succeeded = Ranges::default();
        job.life.history.give(&Ranges::of(0), &History { starts: 1, ..History::default() });
    }
    let first = &mut world.pods.get_mut("sweep-0").unwrap().facts;
    first.end = Some(End::Evicted { why: "deleted".into() });
    (first.remains, first.tracked) = (Remains::Nothing, true);
    world.restart();
    let slot = world.pool.slots().values().next().unwrap();
    assert_eq!((slot.assignment().map(|assignment| assignment.proc), strays(&world)), (Some(1), 0));
    assert!(world.pool.jobs().values().next().unwrap().idle.contains(0));
}

/// While no operator led, somebody took the claim's id off a pod of a claim that was used again. If the new leader cannot decode the
/// pod, its machine is unknown, and the Slot's status says whose the pod is. Found by seed 420006251.
#[test]
fn a_new_leader_finds_the_claim_of_a_pod_without_the_claims_id() {
    for decodes in [true, false] {
        let mut world = with_second_proc();
        let pod = &mut world.pods.get_mut("sweep-1").unwrap().facts;
        let (machine, requests) = (pod.machine.clone(), pod.requests.clone());
        pod.claim = "".into();
        if !decodes {
            (pod.machine, pod.requests) = (None, Capacity::default());
        }
        world.restart();
        let slot = world.pool.slots().values().next().unwrap();
        let proc = slot.assignment().map(|assignment| assignment.proc);
        assert_eq!((proc, strays(&world)), (Some(1), 0), "{decodes}");
        let pod = &mut world.pods.get_mut("sweep-1").unwrap().facts;
        (pod.machine, pod.requests) = (machine, requests);
        assert_eq!(to_the_end(world), (true, vec![1, 1, 1]), "{decodes}");
    }
}

/// Somebody took the claim's id off a pod while no operator led, and takes the pod away under the next leader. Found by seed 500002553.
#[test]
fn a_pod_without_the_claims_id_that_is_taken_away_leaves_no_claim_behind() {
    let mut world = with_second_proc();
    world.pods.get_mut("sweep-1").unwrap().facts.claim = "".into();
    world.restart();
    let mut facts = world.pods.remove("sweep-1").unwrap().facts;
    facts.tracked = false;
    world.pool.apply(Event::Pod(facts.clone()), world.now);
    facts.deleting = true;
    world.pool.apply(Event::PodGone(facts), world.now);
    world.pass(120);
    assert!(world.slots.is_empty() && world.pool.slots().is_empty());
}

/// The pod without an id may be seen before the other, which names its claim.
#[test]
fn a_pod_without_a_claims_id_gets_the_claim_that_no_other_pod_names() {
    for unmarked in ["sweep-2", "sweep-3"] {
        let mut world = World::new();
        world.node("n1", 2, 1);
        world.submit("sweep", "alice", 4, |_| {});
        world.pass(45);
        let claim_of = |world: &World, pod: &str| world.pods[pod].plan.claim.id.clone();
        let made = ["sweep-2", "sweep-3"].map(|pod| claim_of(&world, pod));
        world.pods.get_mut(unmarked).unwrap().facts.claim = "".into();
        world.restart();
        assert_eq!(strays(&world), 0, "{unmarked}");
        for (proc, claim) in [(2, &made[0]), (3, &made[1])] {
            let slot = world.pool.slots().values().find(|slot| slot.claim().id == *claim).unwrap();
            assert_eq!(slot.assignment().map(|assignment| assignment.proc), Some(proc), "{unmarked}");
        }
    }
}

/// Anybody may write a pod's labels. A pod that is not where the claim is does not get the claim.
#[test]
fn a_new_leader_follows_only_what_the_operator_can_have_made() {
    let edits: [fn(&mut PodFacts); 4] = [
        |facts| facts.machine = Some("n2".into()),
        |facts| facts.pod.name = "sweep-2".into(),
        |facts| facts.pod.namespace = "kube-system".into(),
        |facts| facts.tracked = false,
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let mut world = with_second_proc();
        edit(&mut world.pods.get_mut("sweep-1").unwrap().facts);
        world.restart();
        assert_eq!(strays(&world), 1, "edit {number}");
        assert!(world.pool.slots().values().all(Slot::is_vacant), "edit {number}");
    }
}

/// The job is gone, though its finalizer should have kept the job. Its pod still has the claim's resources until it ends.
#[test]
fn a_new_leader_follows_the_pod_of_a_job_that_is_gone() {
    let mut world = with_second_proc();
    world.jobs.clear();
    world.pods.remove("sweep-0");
    world.restart();
    let slot = world.pool.slots().values().next().unwrap();
    assert_eq!(slot.assignment().map(|assignment| assignment.proc), Some(1));
    world.pass(30);
    assert!(world.slots.is_empty() && strays(&world) == 0);
}

/// The status of a Slot tells of a proc only once that proc has run for five seconds.
#[test]
fn a_status_tells_of_a_proc_once_the_proc_lasts() {
    let mut world = World::new();
    world.node("n1", 1, 1);
    world.fate = |name| (if name == "sweep-1" { 3 } else { 30 }, 0);
    world.submit("sweep", "alice", 3, |_| {});
    let mut told = Vec::new();
    for _ in 0..60 {
        world.pass(1);
        let Some((name, slot)) = world.pool.slots().iter().next() else { continue };
        let recorded = world.recorded.get(name).map(|recorded| recorded.pod.clone());
        let shown = world.pods.iter().find(|(_, pod)| Some(&pod.facts.pod.uid) == recorded.as_ref());
        if let Some((pod, _)) = shown.filter(|(pod, _)| !told.iter().any(|(name, _)| name == *pod)) {
            told.push((pod.clone(), world.now.since(slot.running().and_then(|pod| pod.started).unwrap())));
        }
    }
    assert_eq!(told, [("sweep-0".to_owned(), LASTING), ("sweep-2".to_owned(), LASTING)]);
}

/// A proc was evicted, and its claim served the next proc. The leader died before it had recorded the run and taken the finalizer off.
/// The claim is that of the pod that lives, in whatever order the next leader sees Slots and pods. Found by seed 650008439.
#[test]
fn the_claim_of_an_evicted_proc_is_that_of_the_pod_that_lives() {
    for late in [false, true] {
        let mut world = World::new();
        world.slots_are_told_late = late;
        world.fate = |_| (36_000, 0);
        world.node("n1", 1, 0);
        world.submit("sweep", "alice", 2, |_| {});
        world.pass(5);
        let mut next = world.pods["sweep-0"].clone();
        next.facts.proc = 1;
        next.facts.pod = PodRef { name: "sweep-1".into(), uid: "next".into(), ..next.facts.pod };
        next.plan.claim.last.proc = 1;
        world.pods.insert("sweep-1".to_owned(), next);
        let evicted = &mut world.pods.get_mut("sweep-0").unwrap().facts;
        evicted.end = Some(End::Evicted { why: "EvictionByEvictionAPI".into() });
        evicted.finished = Some(world.now);
        (evicted.deleting, evicted.remains) = (true, Remains::Nothing);
        world.restart();
        world.pass(5);
        let slot = world.pool.slots().values().next().unwrap();
        assert_eq!(slot.running().map(|running| &*running.pod.name), Some("sweep-1"));
        assert_eq!(world.pods.keys().collect::<Vec<_>>(), ["sweep-1"]);
        assert!(!world.pods["sweep-1"].facts.deleting);
    }
}
