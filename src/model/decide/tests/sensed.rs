//! The facts that agents and clocks tell of a machine, each a short story.

use super::world::World;
use crate::pool::{
    Benchmarks, Event, LastInput, ReportFacts, Sensed, SlotName, StartdConfig, Time, Usage, Zone,
};
use crate::startd::{claimed_slot_ad, unclaimed_slot_ad};
use classad::Env;

fn govern(world: &mut World, name: &str, config: StartdConfig) {
    world.govern(config, name);
}

fn report(world: &mut World, edit: impl FnOnce(&mut ReportFacts)) {
    let mut facts = ReportFacts::of("n1".into());
    edit(&mut facts);
    world.pool.apply(Event::Report(facts), world.now);
    world.settle();
}

fn state(world: &World) -> (&'static str, &'static str, u8) {
    let slot = &world.pool.machines()[&"n1".into()].machine_slots[&1];
    (
        slot.state().state(),
        slot.state().activity(),
        slot.phase().last().map_or(0, |last| last.number.whole().unwrap_or(0)),
    )
}

/// A load of the machine's first slot.
fn load(world: &World, attribute: &str) -> f64 {
    let machine = &world.pool.machines()[&"n1".into()];
    let ad = unclaimed_slot_ad(machine, &machine.machine_slots[&1], &world.pool.startd(machine));
    ad.eval_attr(attribute, None, &Env::at(0)).as_number().unwrap()
}

/// An attribute of the machine's first slot.
fn says(world: &World, attribute: &str) -> String {
    let machine = &world.pool.machines()[&"n1".into()];
    let ad = unclaimed_slot_ad(machine, &machine.machine_slots[&1], &world.pool.startd(machine));
    ad.eval_attr(attribute, None, &Env::at(world.now.secs())).to_string()
}

/// The agent tells of each proc in turn. The job keeps the most of each amount, also when its procs have ended.
#[test]
fn a_job_keeps_the_most_that_one_of_its_procs_used() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.submit("sweep", "alice", 2, |_| {});
    world.pass(20);
    let pods: Vec<_> =
        world.pool.slots().values().filter_map(|slot| Some(slot.active()?.pod.uid.clone())).collect();
    let [one, other] = &pods[..] else { panic!("two run: {pods:?}") };
    let used = |memory_mib, cpus| Usage { memory_mib, cpus, ..Usage::default() };
    let measured = |values: &[(&str, f64)]| Usage {
        metrics: values.iter().map(|(name, value)| ((*name).into(), *value)).collect(),
        ..Usage::default()
    };
    for (pod, usage) in [
        (one, used(Some(300), None)),
        (other, used(Some(200), Some(1.5))),
        (other, used(None, Some(0.5))),
        (one, measured(&[("GPUsAverageUsage", 0.5), ("GPUsMemoryUsage", 900.0)])),
        (other, measured(&[("GPUsAverageUsage", 0.75), ("GPUsMemoryUsage", 70.0)])),
    ] {
        report(&mut world, |facts| facts.usage.extend([(pod.clone(), usage)]));
    }
    report(&mut world, |facts| {
        facts.usage.extend([("of somebody else's pod".into(), used(Some(9999), None))]);
    });
    world.pass(3600);
    let job = world.pool.jobs().values().next().unwrap();
    assert!(job.is_complete());
    let most = measured(&[("GPUsAverageUsage", 0.75), ("GPUsMemoryUsage", 900.0)]);
    assert_eq!(job.used, Usage { memory_mib: Some(300), cpus: Some(1.5), ..most });
}

#[test]
fn benchmarks_that_nobody_answers_are_given_up_after_ten_minutes() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    report(&mut world, |_| {});
    assert_eq!(
        (state(&world), says(&world, "LastBenchmark").as_str()),
        (("Unclaimed", "Benchmarking", 3), "0")
    );
    world.pass(595);
    assert_eq!(state(&world), ("Unclaimed", "Benchmarking", 3));
    world.pass(10);
    assert_eq!(state(&world), ("Unclaimed", "Idle", 4));
    world.pass(1000);
    assert_eq!(state(&world), ("Unclaimed", "Idle", 4), "not twice in a row");
}

#[test]
fn benchmarks_that_are_answered_are_over_and_outlive_the_operator() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.settle();
    report(&mut world, |_| {});
    world.pass(30);
    let benchmarks = Some(Benchmarks { mips: 21_000, kflops: 1_800_000, at: world.now });
    report(&mut world, |facts| facts.benchmarks = benchmarks);
    let last = world.now.secs().to_string();
    assert_eq!((state(&world), says(&world, "LastBenchmark")), (("Unclaimed", "Idle", 4), last.clone()));
    world.pass(60);
    world.restart();
    report(&mut world, |facts| facts.benchmarks = benchmarks);
    assert_eq!(
        (state(&world), says(&world, "LastBenchmark")),
        (("Unclaimed", "Idle", 1), last),
        "none is due"
    );
}

#[test]
fn clocks_change_when_the_zone_does_though_nothing_happens() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    let summer = Time::from_secs(world.now.secs() + 100);
    let zone = Zone::new(3600, vec![(summer, 7200)]);
    govern(&mut world, "summer", StartdConfig { zone, ..StartdConfig::default() });
    let offset = |world: &World| world.pool.machines()[&"n1".into()].utc_offset;
    world.pass(95);
    assert_eq!(offset(&world), 3600);
    world.pass(10);
    assert_eq!(offset(&world), 7200);
    let minute = (world.now.secs() + 7200) % 86_400 / 60;
    assert_eq!(says(&world, "ClockMin"), minute.to_string());
    govern(&mut world, "another", StartdConfig { zone: Zone::new(-3600, vec![]), ..StartdConfig::default() });
    assert_eq!(offset(&world), -3600, "spec.timeZone was changed");
}

#[test]
fn a_machines_load_is_divided_among_its_slots() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.fate = |_| (1000, 0);
    world.submit("sweep", "alice", 2, |_| {});
    world.pass(3);
    let idle = LastInput::At(world.now);
    report(&mut world, |facts| {
        facts.sensed = Some(Sensed { keyboard: idle, console: idle, owner_load: 2.5 });
        facts.pool_load = 1.0;
        facts.benchmarks = Some(Benchmarks { mips: 1, kflops: 1, at: Time::from_secs(1) });
    });
    // The partitionable slot has two CPUs left and gets of the owner's load first. Each job causes half of the pool's
    // load.
    let loads = [load(&world, "LoadAvg"), load(&world, "CondorLoadAvg"), load(&world, "TotalLoadAvg")];
    assert!(loads.iter().zip([2.0, 0.0, 3.5]).all(|(load, known)| (load - known).abs() < 1e-9), "{loads:?}");
    let claimed = |dynamic| {
        let name = SlotName { machine: "n1".into(), slot: 1, dynamic: Some(dynamic) };
        let machine = &world.pool.machines()[&name.machine];
        let ad = claimed_slot_ad(
            machine,
            &world.pool.startd(machine),
            &world.pool.slots()[&name],
            None,
            &Env::at(world.now.secs()),
        );
        let of = |attribute| ad.eval_attr(attribute, None, &Env::at(0)).as_number().unwrap();
        (of("LoadAvg"), of("CondorLoadAvg"))
    };
    // The first slot gets the rest of the owner's load.
    for (dynamic, known) in [(1, (1.0, 0.5)), (2, (0.5, 0.5))] {
        let (load, condor) = claimed(dynamic);
        assert!((load - known.0).abs() + (condor - known.1).abs() < 1e-9, "{dynamic}: {load} {condor}");
    }
}
