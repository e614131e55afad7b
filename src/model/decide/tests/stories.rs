//! The usual job and what may happen to it, each a short story.

use std::collections::BTreeMap;
use std::time::Duration;

use super::world::World;
use crate::kit;
use crate::pool::{
    Capacity, Claimed, Document, Effect, Event, Forced, GroupName, JobFacts, Matchable, NegotiatorId, Offer,
    Pool, SlotConfig, State,
};
use crate::{decide, negotiator};
use classad::Expr;

fn done(world: &World, job: &str) -> (u64, u64, u64) {
    let job = world.pool.jobs().values().find(|c| &*c.key.name == job).unwrap();
    (job.idle.len(), job.active.len() as u64, job.succeeded.len())
}

fn each_once(world: &World, procs: usize) {
    assert_eq!(world.runs.len(), procs);
    assert!(world.runs.values().all(|runs| *runs == 1), "{:?}", world.runs);
}

fn group_usage(pool: &Pool, group: &GroupName) -> f64 {
    pool.in_use().subtree_with_all(group)
}

#[test]
fn every_proc_runs_once_and_everything_is_returned() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.node("n2", 4, 0);
    world.submit("sweep", "alice", 20, |_| {});
    world.pass(10);
    assert_eq!(done(&world, "sweep"), (12, 8, 0));
    world.pass(200);
    assert_eq!(done(&world, "sweep"), (0, 0, 20));
    each_once(&world, 20);
    assert!(world.slots.is_empty() && world.pool.slots().is_empty());
    assert!(world.pool.machines().values().all(|m| m.available() == m.total));
    assert_eq!(world.pods.len(), 20, "pods are kept for their logs");
    let account = world.pool.submitters().values().next().unwrap().account_with(&NegotiatorId::Unnamed);
    assert_eq!(account.resources_used, 0);
    assert!(
        (account.weighted_accumulated_usage - 600.0).abs() < 60.0,
        "{}",
        account.weighted_accumulated_usage
    );
}

/// An operator dies each second, after some number of calls. Some of its other calls still reach the API server, but
/// all that it knew is gone.
#[test]
fn the_operator_may_die_at_any_second() {
    let mut world = World::new();
    for node in ["n1", "n2", "n3"] {
        world.node(node, 4, 0);
    }
    world.fate = |name| (5 + name.len() as u64 % 7, 0);
    world.group("physics", 5.0);
    world.submit("sweep", "alice", 40, |_| {});
    world.submit("scan", "bob", 40, |job| job.group = Some("physics".to_owned()));
    for second in 0..120 {
        world.calls_left = Some(second * 7 % 13);
        world.pass(1);
        if world.calls_left.take().is_some() {
            world.restart();
        }
        assert!(group_usage(&world.pool, &"physics".into()) <= 5.0);
    }
    world.pass(120);
    assert_eq!(done(&world, "sweep"), (0, 0, 40));
    assert_eq!(done(&world, "scan"), (0, 0, 40));
    each_once(&world, 80);
    assert!(world.slots.is_empty());
    for (name, seconds) in [("alice", 10 * 5 + 30 * 6), ("physics.bob", 10 * 11 + 30 * 5)] {
        let used = usage(&world, name);
        assert!((used - f64::from(seconds)).abs() < 60.0, "{name} used {used} s, and ran {seconds} s");
    }
}

/// The same with one death, between any two calls. Then some, all or none of the remaining calls reach the API server.
#[test]
fn the_operator_may_die_at_any_call() {
    let outlive: [fn(usize) -> bool; 4] =
        [|_| false, |place| place % 2 == 0, |place| place % 2 == 1, |_| true];
    for outlives in outlive {
        let calls = (0..1000).take_while(|calls| dies_after(*calls, outlives)).count();
        assert!(calls > 20, "{calls} calls are all there are");
    }
}

/// Runs a story in which the operator dies after so many calls. False if the story has fewer calls.
fn dies_after(calls: u32, outlives: fn(usize) -> bool) -> bool {
    let mut world = World::new();
    world.node("n1", 2, 0);
    world.fate = |name| if name.starts_with("gone") { (7200, 0) } else { (4, i32::from(name == "sweep-1")) };
    (world.calls_left, world.outlives) = (Some(calls), outlives);
    world.submit("sweep", "alice", 3, |_| {});
    world.submit("gone", "bob", 2, |_| {});
    world.pass(6);
    world.remove("gone");
    world.pass(30);
    assert_eq!(done(&world, "sweep"), (0, 0, 2), "{calls} calls");
    let pods: Vec<&str> = world.pods.keys().map(String::as_str).collect();
    assert_eq!((pods, world.slots.len()), (vec!["sweep-0", "sweep-1", "sweep-2"], 0), "{calls} calls");
    assert_eq!((world.pool.jobs().len(), world.pool.leftovers()), (1, None), "{calls} calls");
    let used = usage(&world, "alice");
    assert!((12.0..30.0).contains(&used), "{calls} calls: {used}");
    world.calls_left.is_none()
}

/// The accumulated usage of a submitter, as the Submitter object says.
fn usage(world: &World, name: &str) -> f64 {
    world.submitters[&name.into()].accounts.of(&NegotiatorId::Unnamed).unwrap().weighted_accumulated_usage
}

#[test]
fn two_submitters_of_one_priority_share_alike() {
    let mut world = World::new();
    for n in 0..8 {
        world.node(&format!("n{n}"), 4, 0);
    }
    world.submit("sweep", "alice", 100, |_| {});
    world.submit("scan", "bob", 100, |_| {});
    world.pass(2);
    assert_eq!((done(&world, "sweep").1, done(&world, "scan").1), (16, 16));
}

#[test]
fn a_group_never_exceeds_its_quota_nor_its_parents() {
    let mut world = World::new();
    world.group("physics", 6.0);
    world.group("physics.higgs", 4.0);
    world.group("physics.top", 4.0);
    for n in 0..4 {
        world.node(&format!("n{n}"), 4, 0);
    }
    for (job, group) in [("h", "physics.higgs"), ("t", "physics.top")] {
        world.submit(job, "alice", 30, |s| s.group = Some(group.to_owned()));
    }
    for _ in 0..100 {
        world.pass(1);
        for (group, quota) in [("physics", 6.0), ("physics.higgs", 4.0), ("physics.top", 4.0)] {
            assert!(group_usage(&world.pool, &group.into()) <= quota, "{group}");
        }
    }
    assert!(group_usage(&world.pool, &"physics".into()) > 4.0, "both groups get something");
}

/// The part of its quota that a group does not use goes to a group that accepts surplus, also when claims are made. The
/// first group gets that part back as jobs end.
#[test]
fn surplus_is_claimed_and_comes_back() {
    let mut world = World::new();
    world.group_with("physics", 8.0, |group| group.accept_surplus = Some(true));
    world.group("biology", 8.0);
    for n in 0..4 {
        world.node(&format!("n{n}"), 4, 0);
    }
    world.submit("sweep", "alice", 60, |s| s.group = Some("physics".to_owned()));
    let used = |world: &World, group: &str| group_usage(&world.pool, &group.into());
    let most = |world: &mut World, group: &str| {
        let each = (0..20).map(|_| {
            world.pass(1);
            used(world, group)
        });
        each.fold(0.0, f64::max)
    };
    assert!((most(&mut world, "physics") - 16.0).abs() < 1e-9);
    let given = world.pool.given().groups["physics"];
    assert_eq!((given.quota, given.allocated, given.surplus()), (8.0, 16.0, 8.0));
    world.submit("scan", "bob", 100, |s| s.group = Some("biology".to_owned()));
    for _ in 0..100 {
        world.pass(1);
        assert!(used(&world, "biology") <= 8.0, "biology accepts no surplus");
    }
    assert_eq!(done(&world, "sweep").2, 60);
    assert!(used(&world, "biology") > 0.0);
}

/// A sidecar that a webhook adds, or a LimitRange's default, takes resources of the node beyond the slot.
#[test]
fn what_admission_adds_to_a_pod_is_counted_against_its_node() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.fate = |_| (60, 0);
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(5);
    let left = |world: &World| world.pool.machines()[&"n1".into()].available().cpus;
    assert_eq!(left(&world), 3);
    let mut facts = world.pods.values().next().unwrap().facts.clone();
    facts.requests = Capacity { milli_cpu: 1000, ..Capacity::default() };
    world.pool.apply(Event::Pod(facts.clone()), world.now);
    assert_eq!(left(&world), 3, "that is what the slot has");
    facts.requests =
        Capacity { milli_cpu: 2500, extended: [("pods".into(), 1)].into(), ..Capacity::default() };
    world.pool.apply(Event::Pod(facts), world.now);
    assert_eq!(left(&world), 1, "1.5 CPUs beyond the slot");
    assert_eq!(world.pool.machines()[&"n1".into()].total.cpus, 4, "the machine is what it was");
    world.pass(90);
    assert_eq!((world.runs.len(), left(&world)), (1, 4));
}

/// A node keeps its static slots, whatever admission adds to the pods in them; but less can be carved.
#[test]
fn what_admission_adds_to_a_pod_changes_no_layout() {
    let mut world = World::new();
    super::policy::configure(&mut world, "use FEATURE : StaticSlots(1, 4)\n");
    world.node("n1", 4, 0);
    world.fate = |_| (7200, 0);
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(5);
    let slots = |world: &World| {
        world.pool.machines()[&"n1".into()].slots().map(|slot| slot.total.cpus).collect::<Vec<_>>()
    };
    assert_eq!(slots(&world), [1; 4]);
    let mut facts = world.pods.values().next().unwrap().facts.clone();
    facts.requests = Capacity { milli_cpu: 1100, ..Capacity::default() };
    world.pool.apply(Event::Pod(facts), world.now);
    world.settle();
    let machine = &world.pool.machines()[&"n1".into()];
    assert_eq!(
        (slots(&world), machine.offer.clone(), machine.available().cpus),
        (vec![1; 4], Offer::Offered, 2)
    );
    world.submit("more", "alice", 3, |_| {});
    world.pass(60);
    assert_eq!(world.pool.slots().len(), 3, "the fourth slot's CPU is not there");
}

/// With autoregroup, no quota limits what is left at the end of a cycle, also when claims are made.
#[test]
fn a_group_with_autoregroup_has_what_nobody_else_wants() {
    let mut world = World::new();
    world.group_with("physics", 2.0, |group| group.autoregroup = Some(true));
    world.group("biology", 2.0);
    world.node("n1", 8, 0);
    world.submit("sweep", "alice", 30, |s| s.group = Some("physics".to_owned()));
    world.submit("scan", "bob", 30, |s| s.group = Some("biology".to_owned()));
    let (mut most, mut regrouped) = (0.0_f64, 0);
    for _ in 0..30 {
        world.pass(1);
        most = most.max(group_usage(&world.pool, &"physics".into()));
        let of_physics = |slot: &&crate::pool::Slot| slot.claim().regrouped;
        regrouped = regrouped.max(world.pool.slots().values().filter(of_physics).count());
        assert!(group_usage(&world.pool, &"biology".into()) <= 2.0);
    }
    assert!((most - 6.0).abs() < 1e-9, "{most}");
    assert!(regrouped >= 4, "what is beyond the quota was negotiated with those of no group: {regrouped}");
    let slot = world.pool.slots().values().find(|slot| slot.claim().regrouped).unwrap();
    let ad = crate::startd::published_ad(&world.pool, slot.name(), world.now).unwrap();
    let said = |name: &str| ad.eval_attr(name, None, &classad::Env::at(0));
    assert_eq!((said("RemoteAutoregroup"), said("RemoteNegotiatingGroup")), (true.into(), "<none>".into()));
    assert_eq!(said("RemoteGroup"), "physics".into());
}

/// As long as the groups have work, jobs of no group get only what the quotas leave, also of a slot's leftovers.
#[test]
fn jobs_of_no_group_get_what_the_groups_leave() {
    let mut world = World::new();
    world.group("physics", 12.0);
    world.node("n1", 16, 0);
    world.submit("sweep", "alice", 100, |_| {});
    world.submit("scan", "bob", 100, |s| s.group = Some("physics".to_owned()));
    world.pass(1);
    let ungrouped = |world: &World| -> f64 {
        let claims = world.pool.slots().values().map(crate::pool::Slot::claim);
        claims.filter(|claim| claim.group.is_none()).map(|claim| claim.weight).sum()
    };
    for _ in 0..30 {
        world.pass(1);
        assert!(ungrouped(&world) <= 4.0);
    }
    assert!(ungrouped(&world) > 0.0);
}

#[test]
fn a_job_of_an_unknown_group_waits_until_it_is_declared() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.submit("sweep", "alice", 2, |s| s.group = Some("biology".to_owned()));
    world.pass(30);
    assert_eq!(done(&world, "sweep"), (2, 0, 0));
    world.group("Biology", 4.0);
    world.pass(60);
    assert_eq!(done(&world, "sweep"), (0, 0, 2));
}

#[test]
fn a_job_that_no_machine_can_hold_is_told_so() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.submit("huge", "alice", 1, |s| s.request.cpus = 64);
    world.submit("picky", "alice", 1, |s| s.requirements = Some("TARGET.Arch == \"PPC64\"".to_owned()));
    world.pass(5);
    let reasons: BTreeMap<&str, String> = world
        .pool
        .jobs()
        .values()
        .map(|job| match &job.matchable {
            Matchable::No(problem) => (&*job.key.name, problem.to_string()),
            other => panic!("{other:?}"),
        })
        .collect();
    insta::assert_yaml_snapshot!(reasons);
}

#[test]
fn a_removed_job_ends_its_pods_and_goes() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.submit("sweep", "alice", 10, |_| {});
    world.pass(5);
    world.remove("sweep");
    world.pass(2);
    assert!(world.jobs.is_empty() && world.slots.is_empty() && world.pods.is_empty());
    assert_eq!(world.pool.machines().values().next().unwrap().available().cpus, 4);
}

/// While no operator leads, somebody edits a claim. The claim is not used again while the pod lives that was created
/// under it.
#[test]
fn what_runs_under_an_edited_claim_has_what_the_claim_holds() {
    for proc in [77, 1] {
        let mut world = World::new();
        world.node("n1", 3, 0);
        world.fate = |_| (7200, 0);
        world.submit("fold", "alice", 4, |job| job.request.cpus = 3);
        world.pass(5);
        let id = world.slots.values().next().unwrap().1.id.clone();
        world.slots.values_mut().next().unwrap().1.last.proc = proc;
        let requests = Capacity { milli_cpu: 3000, ..Capacity::default() };
        world.pods.values_mut().for_each(|pod| pod.facts.requests = requests.clone());
        world.obeys = false;
        world.restart();
        world.settle();
        let under = |world: &World| world.pods.values().filter(|pod| pod.plan.claim.id == id).count();
        assert_eq!(under(&world), 1, "proc {proc}");
        world.pass(20);
        assert_eq!(under(&world), 1, "proc {proc}");
    }
}

/// Anybody may write a job's labels on a pod of their own. Such a pod does not keep the job from going.
#[test]
fn a_pod_in_another_namespace_does_not_keep_a_job_that_it_names() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(5);
    let mut facts = world.pods.values().next().unwrap().facts.clone();
    facts.pod.namespace = "mallory".into();
    (facts.pod.uid, facts.tracked) = ("mine".into(), false);
    world.pool.apply(Event::Pod(facts), world.now);
    world.remove("sweep");
    world.pass(2);
    assert!(world.jobs.is_empty() && world.pool.orphans().len() == 1);
}

/// A user makes a pod with the operator's finalizer that no node may have, with a finalizer of its own and an endless grace period, and
/// deletes the pod. No kubelet has such a pod, so that the operator does not wait for the grace period. Found by a reviewer.
#[test]
fn a_deleted_pod_that_no_node_has_is_let_go_at_once() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(5);
    let mut facts = world.pods.values().next().unwrap().facts.clone();
    (facts.pod.uid, facts.pod.name, facts.proc) = ("mine".into(), "sweep-77777".into(), 77_777);
    (facts.machine, facts.running, facts.tracked) = (None, false, false);
    (facts.deleting, facts.forced, facts.grace) =
        (true, Forced::Idle, Some(Duration::from_secs(1_000_000_000).into()));
    world.pool.apply(Event::Pod(facts), world.now);
    world.pass(1);
    assert_eq!(world.pool.orphans().len(), 0);
}

/// Applies a policy to all nodes.
fn policy(world: &mut World, name: &str, slots: SlotConfig) {
    world.sees(Event::Policy(kit::policy(name, slots.into(), "")));
    world.settle();
}

#[test]
fn a_node_that_falls_silent_starts_nothing_until_it_is_heard_of() {
    let mut world = World::new();
    world.node("n1", 2, 0);
    let beat = || Event::Heartbeat { machine: "n1".into(), ttl: Duration::from_secs(40) };
    world.pool.apply(beat(), world.now);
    world.pass(41);
    world.submit("sweep", "alice", 2, |_| {});
    world.pass(10);
    assert_eq!(done(&world, "sweep"), (2, 0, 0));
    assert_eq!(world.pool.machines().values().next().unwrap().offer, Offer::Silent);
    world.pool.apply(beat(), world.now);
    world.pass(60);
    assert_eq!(done(&world, "sweep"), (0, 0, 2));
}

#[test]
fn a_lost_node_gives_its_procs_back() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.submit("sweep", "alice", 4, |_| {});
    world.pass(5);
    world.machines.remove("n1");
    world.pool.apply(Event::MachineGone("n1".into()), world.now);
    world.pass(2);
    assert_eq!(done(&world, "sweep"), (4, 0, 0));
    assert!(world.pool.machines().is_empty() && world.slots.is_empty() && world.pods.is_empty());
    world.node("n2", 4, 0);
    world.pass(90);
    assert_eq!(done(&world, "sweep"), (0, 0, 4));
    each_once(&world, 4);
}

#[test]
fn failed_procs_are_done_and_counted() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.fate = |name| (3, i32::from(name.ends_with('1')));
    world.submit("sweep", "alice", 4, |_| {});
    world.pass(10);
    let job = world.pool.jobs().values().next().unwrap();
    assert_eq!((job.succeeded.to_string(), job.failed.to_string()), ("0,2-3".to_owned(), "1".to_owned()));
    assert!(job.completed_at.is_some());
}

#[test]
fn gpus_go_to_those_who_ask() {
    let mut world = World::new();
    world.node("gpu", 8, 2);
    world.submit("train", "alice", 3, |s| s.request.gpus = 1);
    world.pass(5);
    assert_eq!(done(&world, "train"), (1, 2, 0));
    let used: i64 = world.slots.values().map(|(resources, _)| resources.amount("nvidia.com/gpu")).sum();
    assert_eq!(used, 2);
}

#[test]
fn the_groups_quotas_are_told_anew_when_carving_changes_the_pools_weight() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.group("physics", 1.0);
    let weight = Expr::parse("Memory / 4096.0").unwrap();
    policy(&mut world, "by-memory", SlotConfig { slot_weight: Some(weight), ..SlotConfig::default() });
    world.submit("sweep", "alice", 1, |_| {});
    let job = world.jobs.values().next().map(|facts| JobFacts { finalizer: true, ..facts.clone() }).unwrap();
    world.pool.apply(Event::Job(job), world.now);
    let negotiation = decide::decide(&mut world.pool, world.now).negotiation.unwrap();
    let outcome = negotiator::negotiate(&negotiation.cycle);
    world.pool.take_statuses();
    decide::conclude(&mut world.pool, &negotiation, &outcome, world.now);
    assert_eq!(world.pool.slots().len(), 1);
    let stale = world.pool.take_statuses();
    assert!(stale.contains(&Document::Group("physics".into())), "{stale:?}");
}

/// A job may vanish, with its finalizer taken off, between the end of a proc and the record of that end.
#[test]
fn an_end_that_nobody_can_record_any_more_frees_its_slot() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(5);
    let pod = world.pods["sweep-0"].facts.pod.clone();
    world.end_pod(&pod, Some(0));
    let asked = decide::decide(&mut world.pool, world.now);
    let released = asked.effects.iter().any(|effect| matches!(effect, Effect::UntrackPod { .. }));
    assert!(!released, "the pod waits for its end to be recorded");
    let uid = world.jobs["uid-sweep"].key.uid.clone();
    world.jobs.clear();
    world.pool.apply(Event::JobGone(uid), world.now);
    world.settle();
    assert!(world.pool.slots().is_empty() && world.slots.is_empty());
}

/// One cycle fills as many nodes as there are jobs for.
#[test]
fn one_cycle_fills_all_nodes() {
    let mut world = World::new();
    for n in 1..4 {
        world.node(&format!("n{n}"), 3, 0);
    }
    world.fate = |_| (7200, 0);
    world.submit("sweep", "alice", 8, |_| {});
    world.pass(5);
    assert_eq!((world.pool.slots().len(), world.pool.schedule().cycles), (8, 1));
}

/// Policies such as `ActivityTimer > 600` go on, and no status has to be written again.
#[test]
fn a_new_leader_knows_since_when_a_slot_is_busy() {
    let mut world = World::new();
    world.node("n1", 1, 0);
    world.submit("long", "alice", 1, |_| {});
    world.fate = |_| (3600, 0);
    world.pass(60);
    let phase = |world: &World| world.pool.slots().values().next().unwrap().phase().clone();
    let before = phase(&world);
    assert_eq!(before.state(), State::Claimed(Claimed::Busy));
    world.restart();
    world.settle();
    assert_eq!(phase(&world), before);
}
