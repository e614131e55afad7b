//! ALLOW_PSLOT_PREEMPTION on pods, each a short story: several dynamic slots make room for one wide job.

use super::governed::negotiate_by;
use super::world::World;
use crate::negotiator::Config;
use crate::pool::{Assignment, Capacity, Claim, ClaimId, Event, Resources, SlotName, StartdConfig, State};
use classad::Expr;

/// A node of eight cores, full of bob's narrow jobs of one core each, which alice's jobs may preempt.
fn full(allow: bool) -> World {
    let mut world = World::new();
    world.node("n1", 8, 0);
    preempting(&mut world, allow);
    world.fate = |name| if name.starts_with("narrow") { (100_000, 0) } else { (60, 0) };
    world.submit("narrow", "bob", 12, |_| ());
    world.pass(5);
    assert_eq!((running(&world, "narrow"), free(&world)), (8, 0));
    world
}

fn preempting(world: &mut World, allow: bool) {
    let config = Config {
        preemption_requirements: Expr::parse("TARGET.Owner == \"alice\" && MY.RemoteUser == \"bob\"").ok(),
        allow_pslot_preemption: allow,
        ..Config::default()
    };
    negotiate_by(world, config);
    world.pool.apply(Event::Synced, world.now);
}

fn wide(world: &mut World, procs: i64, cpus: i64) {
    world.submit("wide", "alice", procs, |job| job.request.cpus = cpus);
}

fn governed(world: &mut World, text: &str) {
    let policy = crate::startd::config::understand(text).config.unwrap();
    let mut startd = StartdConfig { drain_cordoned: true, ..StartdConfig::default() };
    policy.put_into(&mut startd);
    world.govern(startd, text);
}

/// How many pods of a job run.
fn running(world: &World, job: &str) -> usize {
    let active = world.pool.slots().values().filter(|slot| slot.active().is_some());
    active.filter(|slot| &*slot.claim().last.job.name == job).count()
}

/// The cores that anybody may claim.
fn free(world: &World) -> i64 {
    let machine = &world.pool.machines()[&"n1".into()];
    machine.slots().map(|slot| machine.available_in(slot).cpus).sum()
}

fn slot(world: &World, job: &str) -> Vec<(String, i64)> {
    let of = world.pool.slots().values().filter(|slot| &*slot.claim().last.job.name == job);
    of.map(|slot| (slot.name().to_string(), slot.resources().cpus)).collect()
}

/// "In this instance a job requiring 2GB of memory will be starved and unable to run": that is what happens without the
/// knob.
#[test]
fn a_wide_job_gets_a_machine_full_of_narrow_ones_only_where_that_is_allowed() {
    let mut world = full(false);
    wide(&mut world, 1, 4);
    world.pass(300);
    assert_eq!((running(&world, "narrow"), running(&world, "wide")), (8, 0), "starved");
    preempting(&mut world, true);
    world.numbers.clear();
    world.pass(30);
    assert_eq!((running(&world, "narrow"), running(&world, "wide"), free(&world)), (4, 1, 0));
    assert_eq!(slot(&world, "wide"), [("slot1_1@n1".to_owned(), 4)]);
    // Each of the four slots retires, vacates and goes. The new slot is matched and claimed.
    let mut numbers = world.numbers.clone();
    numbers.sort_unstable();
    assert_eq!(numbers, [9, 11, 13, 13, 13, 13, 18, 18, 18, 18, 22, 22, 22, 22]);
    assert!(world.log.iter().any(|told| told.contains("which has room for it when the jobs are gone")));
    // When the wide job is done, the narrow jobs run again.
    world.pass(60);
    assert_eq!((running(&world, "narrow"), running(&world, "wide"), free(&world)), (8, 0, 0));
    assert_eq!(world.runs.get("wide-0"), Some(&1));
}

/// A narrow job preempts one other, as without the knob. Its slot is carved anew.
#[test]
fn a_narrow_job_throws_out_one() {
    for (allow, numbers) in [(false, vec![11, 13, 18, 23]), (true, vec![9, 11, 13, 18, 22])] {
        let mut world = full(allow);
        world.numbers.clear();
        wide(&mut world, 1, 1);
        world.pass(30);
        assert_eq!((running(&world, "narrow"), running(&world, "wide")), (7, 1));
        world.numbers.sort_unstable();
        assert_eq!(world.numbers, numbers, "{allow}");
    }
}

/// The resources of a preempted slot are kept for the wide job while other slots still vacate.
#[test]
fn what_has_come_free_is_kept_for_the_one_who_waits() {
    let mut world = full(true);
    governed(&mut world, "MachineMaxVacateTime = 600\n");
    world.obeys = false;
    wide(&mut world, 1, 4);
    world.pass(30);
    let leaving: Vec<_> =
        world.pods.values().filter(|pod| pod.facts.deleting).map(|pod| pod.facts.pod.clone()).collect();
    assert_eq!(leaving.len(), 4);
    for (gone, pod) in leaving.iter().enumerate() {
        assert_eq!((running(&world, "wide"), free(&world)), (0, 0), "{gone} have gone");
        world.end_pod(pod, None);
        world.pass(50);
    }
    assert_eq!((running(&world, "narrow"), running(&world, "wide")), (4, 1), "though bob has more that wait");
}

/// Each proc waits once; a second proc of the job waits for other slots.
#[test]
fn each_proc_waits_for_its_own() {
    let mut world = full(true);
    governed(&mut world, "MachineMaxVacateTime = 600\n");
    world.obeys = false;
    wide(&mut world, 3, 3);
    world.pass(90);
    let slots: Vec<usize> = world.pool.gatherings().values().map(|gathering| gathering.slots.len()).collect();
    assert_eq!(slots, [3, 3], "two cores are too few for the third");
    let waits = world.pool.jobs().values().find(|job| &*job.key.name == "wide").unwrap();
    assert_eq!((waits.waits_for.len(), waits.unmatched(world.now)), (2, 1));
}

/// Lets a claim of alice wait for the first slots of bob.
fn gather(world: &mut World, slots: usize) {
    let names: Vec<(SlotName, f64)> =
        world.pool.slots().keys().take(slots).map(|name| (name.clone(), 0.0)).collect();
    let wide = world.pool.jobs().values().find(|job| &*job.key.name == "wide").unwrap();
    let (key, cluster_id) = (wide.key.clone(), wide.cluster_id);
    let parent = SlotName { dynamic: None, ..names[0].0.clone() };
    let present = world.pool.slots()[&names[0].0].claim().clone();
    let claim = Claim {
        id: ClaimId::new(&parent, world.now, 4711),
        submitter: "alice".into(),
        weight: 4.0,
        last: Assignment { job: key, cluster_id, ..present.last },
        ..present
    };
    let resources = Resources { cpus: 4, memory_mib: 128, disk_kib: 1024, ..Resources::default() };
    world.pool.gather(claim, parent, resources, &names);
}

fn states(world: &World, state: State) -> usize {
    world.pool.slots().values().filter(|slot| slot.state() == state).count()
}

/// If nobody wants the slots any more, the jobs that are still in retirement continue.
#[test]
fn who_waits_no_more_lets_the_others_go_on() {
    use crate::pool::Claimed::{Busy, Retiring};
    type Edit = fn(&mut World);
    let edits: [(&str, Edit, bool, usize); 5] = [
        ("the job is removed", |world| world.remove("wide"), true, 8),
        (
            "the job is gone",
            |world| {
                world.jobs.remove("uid-wide");
                world.pool.apply(Event::JobGone("uid-wide".into()), world.now);
            },
            true,
            8,
        ),
        (
            "the node is drained, which all retire for",
            |world| {
                let mut facts = world.machines["n1"].clone();
                facts.cordoned = true;
                world.set_node(facts);
            },
            true,
            0,
        ),
        (
            "one of the slots ends by itself",
            |world| {
                let pod = world.pods.values().next().unwrap().facts.pod.clone();
                world.end_pod(&pod, Some(0));
            },
            false,
            4,
        ),
        ("nothing happens", |_| (), false, 4),
    ];
    for (case, edit, dismissed, goes_on) in edits {
        let mut world = full(true);
        governed(&mut world, "MAXJOBRETIREMENTTIME = 3600\n");
        wide(&mut world, 1, 4);
        world.settle();
        gather(&mut world, 4);
        world.pass(3);
        assert_eq!(states(&world, State::Claimed(Retiring)), 4, "{case}");
        edit(&mut world);
        world.pass(3);
        assert_eq!(world.pool.gatherings().is_empty(), dismissed, "{case}");
        assert_eq!(states(&world, State::Claimed(Busy)), goes_on, "{case}");
    }
}

/// A ceiling that is reached meanwhile stops the claim, before the first slot has gone.
#[test]
fn ceilings_are_held_against_it_again() {
    let mut world = full(true);
    governed(&mut world, "MAXJOBRETIREMENTTIME = 100\n");
    wide(&mut world, 1, 4);
    world.settle();
    gather(&mut world, 4);
    world.pass(3);
    world.pool.set_submitter("alice", |alice| alice.ceiling = Some(3.0));
    world.pass(200);
    assert!(world.pool.gatherings().is_empty());
    assert_eq!(running(&world, "wide"), 0);
    assert_eq!(free(&world), 0, "bob has it again");
}

/// The job's units of concurrency limits are kept for it once, however many slots it waits for.
#[test]
fn limits_count_once() {
    let mut world = full(true);
    governed(&mut world, "MachineMaxVacateTime = 600\n");
    world.obeys = false;
    world.submit("wide", "alice", 2, |job| {
        job.request.cpus = 4;
        job.limits = vec!["lic:2".to_owned()];
    });
    world.pass(30);
    let held = |world: &World| world.pool.holdings().book().tally("lic").amount;
    assert_eq!((world.pool.gatherings().len(), held(&world)), (2, 4.0));
    world.obeys = true;
    for pod in world.pods.values().map(|pod| pod.facts.pod.clone()).collect::<Vec<_>>() {
        if world.pods[&*pod.name].facts.deleting {
            world.end_pod(&pod, None);
        }
    }
    world.pass(5);
    assert_eq!((running(&world, "wide"), held(&world)), (2, 4.0));
    world.pass(70);
    assert!(held(&world).abs() < 1e-9);
}

/// A new leader does not know which claims waited. Jobs that vacate go on vacating, and the waiting job is negotiated
/// again.
#[test]
fn the_operator_may_die_at_any_second() {
    for second in 0..40 {
        let mut world = full(true);
        governed(&mut world, "MachineMaxVacateTime = 20\n");
        world.obeys = false;
        wide(&mut world, 2, 3);
        world.pass(second);
        world.calls_left = u32::try_from(second % 4).ok();
        world.settle();
        if world.calls_left.take().is_some() {
            world.restart();
        }
        world.obeys = true;
        for pod in world.pods.values().map(|pod| pod.facts.pod.clone()).collect::<Vec<_>>() {
            if world.pods[&*pod.name].facts.deleting {
                world.end_pod(&pod, None);
            }
        }
        world.pass(240);
        assert_eq!(
            (world.runs.get("wide-0"), world.runs.get("wide-1")),
            (Some(&1), Some(&1)),
            "after {second} s"
        );
        assert_eq!((running(&world, "narrow"), free(&world)), (8, 0), "after {second} s");
    }
}

/// If pods outside the pool have taken a part of the node, more claims must go than the wide job would need.
#[test]
fn the_node_may_have_shrunk() {
    let mut world = full(true);
    let requests = Capacity { milli_cpu: 3_000, ..Capacity::default() };
    let pod = Event::ForeignPod { pod: "f".into(), machine: "n1".into(), requests };
    world.pool.apply(pod, world.now);
    wide(&mut world, 1, 4);
    world.pass(30);
    assert_eq!((running(&world, "narrow"), running(&world, "wide")), (1, 1), "{:#?}", world.log);
    assert!(!world.log.iter().any(|told| told.contains("refused its claim")), "{:#?}", world.log);
    wide(&mut world, 1, 6);
    world.pass(30);
    assert_eq!(running(&world, "narrow"), 1, "six cores are not there");
}

/// The node goes while slots make room.
#[test]
fn the_node_may_go() {
    let mut world = full(true);
    governed(&mut world, "MachineMaxVacateTime = 600\n");
    world.obeys = false;
    wide(&mut world, 1, 4);
    world.pass(30);
    assert_eq!(world.pool.gatherings().len(), 1);
    world.machines.remove("n1");
    world.pool.apply(Event::MachineGone("n1".into()), world.now);
    world.pass(30);
    assert!(!world.pool.slots().is_empty(), "a kubelet that is still there gives the pods their 600 s");
    world.pass(600);
    assert!(world.pool.gatherings().is_empty() && world.pool.slots().is_empty());
    world.node("n2", 8, 0);
    world.obeys = true;
    world.pass(30);
    assert_eq!(running(&world, "wide"), 1);
}
