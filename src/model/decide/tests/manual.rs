//! The manual's example policies, each as `examples/policies` writes it for a node, and what the manual says that
//! happens.

use std::sync::Arc;

use super::world::World;
use crate::kit;
use crate::pool::{
    Benchmarks, Device, Event, LastInput, MachineFacts, ReportFacts, Sensed, SlotName, StartdConfig, State,
    Time, Zone,
};
use crate::startd::{config, unclaimed_slot_ad};
use classad::{Env, Expr};

/// The text of `spec.config` of a manifest.
fn text_of(manifest: &str) -> String {
    let (_, text) = manifest.split_once("  config: |\n").expect("it has a text");
    text.lines().flat_map(|line| [line.strip_prefix("    ").unwrap_or(line), "\n"]).collect()
}

macro_rules! policy {
    ($name:literal) => {
        text_of(include_str!(concat!("../../../../examples/policies/", $name, ".yaml")))
    };
}

/// A pool whose nodes all have this policy.
pub(super) fn pool(text: &str, zone: Zone, now: Time) -> World {
    let understood = config::understand(text);
    let errors: Vec<_> =
        understood.remarks.iter().filter(|remark| remark.severity == config::Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let mut startd = StartdConfig { zone, ..StartdConfig::default() };
    understood.config.unwrap().put_into(&mut startd);
    if understood.by_machine {
        let by_machine = crate::pool::ByMachine { text: text.into(), fields: StartdConfig::default() };
        startd.by_machine = Some(Arc::new(by_machine));
    }
    let policy = kit::policy("owners", startd, text);
    let mut world = World::new();
    world.now = now;
    world.pool.apply(Event::Policy(policy), now);
    world.fate = |_| (7200, 0);
    world
}

/// A Monday, 00:00 UTC, in winter.
const MONDAY: i64 = 1_767_571_200;

fn at(hours: i64, minutes: i64) -> Time {
    Time::from_secs(MONDAY + hours * 3600 + minutes * 60)
}

/// One node with an agent, on Monday noon, UTC. Nobody has used the keyboard all morning.
fn desk(text: &str, cpus: i64) -> World {
    let mut world = pool(text, Zone::default(), at(12, 0));
    world.node("n1", cpus, 0);
    nobody_since(&mut world, at(6, 0));
    world.settle();
    world
}

fn report(world: &mut World, keyboard: LastInput, owner_load: f64) {
    let sensed = Sensed { keyboard, console: keyboard, owner_load };
    let report = ReportFacts {
        sensed: Some(sensed),
        suspended: world.still.clone(),
        // Benchmarks have run, so that none are run now.
        benchmarks: Some(Benchmarks { mips: 20_000, kflops: 2_000_000, at: at(0, 0) }),
        ..ReportFacts::of("n1".into())
    };
    world.pool.apply(Event::Report(report), world.now);
}

fn somebody_types(world: &mut World) {
    report(world, LastInput::Ongoing, 0.1);
}

fn nobody_since(world: &mut World, since: Time) {
    report(world, LastInput::At(since), 0.0);
}

/// The slot's job, state and activity; an unclaimed slot has no job.
fn stands(world: &World, slot: u32) -> String {
    let claimed = world.pool.slots().values().find(|claimed| claimed.name().slot == slot);
    let shown = |state: State| format!("{}/{}", state.state(), state.activity());
    match claimed {
        Some(slot) => format!("{} {}", slot.claim().last.job.name, shown(slot.state())),
        None => shown(world.pool.machines()[&"n1".into()].machine_slots[&slot].state()),
    }
}

fn submit(world: &mut World, name: &str, owner: &str, attributes: &[(&str, &str)]) {
    world.submit(name, owner, 1, |job| {
        job.attributes = attributes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    });
}

fn numbers(world: &mut World) -> Vec<u8> {
    std::mem::take(&mut world.numbers)
}

#[test]
fn the_default_policy_starts_jobs_always_and_disturbs_none() {
    let mut world = desk(&policy!("10-default"), 1);
    somebody_types(&mut world);
    submit(&mut world, "job", "alice", &[]);
    world.pass(60);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("job Claimed/Busy", vec![9, 11]));
    world.pass(3600);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("job Claimed/Busy", vec![]));
}

#[test]
fn a_desktop_is_its_owners_until_nobody_has_touched_it_for_a_quarter_of_an_hour() {
    let mut world = desk(&policy!("20-uwcs-desktop"), 1);
    assert_eq!(stands(&world, 1), "Unclaimed/Idle");
    somebody_types(&mut world);
    world.settle();
    assert_eq!(stands(&world, 1), "Owner/Idle");
    submit(&mut world, "job", "alice", &[]);
    let left = world.now;
    nobody_since(&mut world, left);
    world.pass(900);
    assert_eq!(stands(&world, 1), "Owner/Idle");
    // The policy is evaluated each UPDATE_INTERVAL; then the next cycle matches the slot.
    world.pass(300 + 60);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("job Claimed/Busy", vec![9, 11]));
}

#[test]
fn a_desktop_suspends_a_job_while_its_owner_types_and_for_five_minutes_more() {
    let mut world = desk(&policy!("20-uwcs-desktop"), 1);
    submit(&mut world, "job", "alice", &[]);
    world.pass(120);
    numbers(&mut world);
    somebody_types(&mut world);
    world.pass(6);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("job Claimed/Suspended", vec![14]));
    assert_eq!(world.still.len(), 1);
    let left = world.now;
    nobody_since(&mut world, left);
    world.pass(299);
    assert_eq!(stands(&world, 1), "job Claimed/Suspended");
    world.pass(10);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("job Claimed/Busy", vec![15]));
}

#[test]
fn a_desktop_vacates_a_job_that_was_suspended_for_ten_minutes() {
    let mut world = desk(&policy!("20-uwcs-desktop"), 1);
    submit(&mut world, "job", "alice", &[]);
    world.pass(120);
    numbers(&mut world);
    somebody_types(&mut world);
    world.pass(590);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("job Claimed/Suspended", vec![14]));
    world.pass(20);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("Owner/Idle", vec![16, 18, 22]));
    assert_eq!(world.graces, [Some(600)], "it has the vacating time to write a checkpoint");
}

/// "Suspend [...] if the CPU has been busy for more than two minutes and the job has been running for more than 90 seconds."
#[test]
fn a_desktop_suspends_a_job_when_something_else_keeps_the_cpu_busy() {
    let mut world = desk(&policy!("20-uwcs-desktop"), 1);
    submit(&mut world, "job", "alice", &[]);
    world.pass(120);
    numbers(&mut world);
    report(&mut world, LastInput::At(at(6, 0)), 0.8);
    world.pass(110);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("job Claimed/Busy", vec![]));
    world.pass(20);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("job Claimed/Suspended", vec![14]));
    report(&mut world, LastInput::At(at(6, 0)), 0.1);
    world.pass(20);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("job Claimed/Busy", vec![15]));
}

/// "we want that job to start regardless of what is happening on the machine. We do not want the job suspended, vacated or
/// killed."
#[test]
fn a_test_job_starts_whatever_happens_and_is_left_alone() {
    let mut world = desk(&policy!("30-test-job"), 1);
    somebody_types(&mut world);
    world.settle();
    // "since coltrane might claim this resource, but has not yet, [...] Unclaimed".
    assert_eq!(stands(&world, 1), "Unclaimed/Idle");
    submit(&mut world, "other", "tyner", &[]);
    world.pass(120);
    assert_eq!(stands(&world, 1), "Unclaimed/Idle", "all others wait as usual");
    submit(&mut world, "test", "coltrane", &[]);
    world.pass(120);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("test Claimed/Busy", vec![9, 11]));
    world.pass(3600);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("test Claimed/Busy", vec![]));
}

#[test]
fn beside_test_jobs_a_desktop_is_a_desktop() {
    let mut world = desk(&policy!("30-test-job"), 1);
    submit(&mut world, "other", "tyner", &[]);
    world.pass(120);
    numbers(&mut world);
    somebody_types(&mut world);
    world.pass(6);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("other Claimed/Suspended", vec![14]));
}

/// 8:00 to 17:00, Monday to Friday, in Zurich.
#[test]
fn jobs_run_after_hours_by_the_clock_of_those_who_work_there() {
    let zurich = Zone::new(3600, vec![]);
    let mut world = pool(&policy!("40-time-of-day"), zurich, at(5, 30));
    world.node("n1", 1, 0);
    nobody_since(&mut world, at(0, 0));
    world.pass(10);
    submit(&mut world, "early", "alice", &[]);
    world.pass(120);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("early Claimed/Busy", vec![9, 11]));
    world.pass(5270);
    assert_eq!(world.now, at(7, 0), "eight o'clock in Zurich");
    world.pass(6);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("Unclaimed/Idle", vec![13, 18, 22]));
    world.pass(3600);
    assert_eq!(stands(&world, 1), "Unclaimed/Idle", "nothing starts in work hours");
    // It is five o'clock there, and a cycle later.
    world.now = at(16, 0);
    world.pass(120);
    assert_eq!(stands(&world, 1), "early Claimed/Busy");
}

#[test]
fn the_keyboard_matters_on_desktops_alone() {
    let text = policy!("50-desktop-non-desktop");
    for (kind, returns) in [("desktop", "job Claimed/Suspended"), ("cluster", "job Claimed/Busy")] {
        let mut world = desk(&text, 1);
        let facts = world.machines["n1"].clone();
        let labels = Arc::new([("kind".to_owned(), kind.to_owned())].into());
        world.set_node(MachineFacts { labels, ..facts });
        submit(&mut world, "job", "alice", &[]);
        world.pass(120);
        assert_eq!(stands(&world, 1), "job Claimed/Busy", "{kind}");
        somebody_types(&mut world);
        world.pass(6);
        assert_eq!(stands(&world, 1), returns, "{kind}");
        // The job waits while the keyboard is used for a moment, and leaves if the use goes on.
        world.pass(610);
        let stays = if kind == "desktop" { "Unclaimed/Idle" } else { "job Claimed/Busy" };
        assert_eq!(stands(&world, 1), stays, "{kind}");
    }
}

/// "we don't want to suspend this job, but the conditions to suspend jobs have been met (someone is using the machine)"
#[test]
fn a_job_that_is_not_to_be_suspended_is_preempted() {
    let never = "\nWANT_SUSPEND = ($(WANT_SUSPEND)) && TARGET.NeverSuspend =!= True\n";
    let mut world = desk(&format!("{}{never}", policy!("20-uwcs-desktop")), 1);
    submit(&mut world, "job", "alice", &[("NeverSuspend", "true")]);
    world.pass(120);
    numbers(&mut world);
    somebody_types(&mut world);
    world.pass(6);
    assert_eq!((stands(&world, 1).as_str(), numbers(&mut world)), ("Owner/Idle", vec![13, 18, 22]));
}

const SUSPENDABLE: (&str, &str) = ("IsSuspendableJob", "true");

#[test]
fn a_suspendable_job_stands_still_while_the_other_slot_of_its_pair_works() {
    let mut world = desk(&policy!("60-suspension"), 4);
    world.fate = |pod| (if pod.starts_with("urgent") { 300 } else { 7200 }, 0);
    submit(&mut world, "patient", "alice", &[SUSPENDABLE]);
    world.pass(120);
    assert_eq!(stands(&world, 3), "patient Claimed/Busy", "slots 1 and 2 take no such job");
    for name in ["urgent-a", "urgent-b"] {
        submit(&mut world, name, "bob", &[]);
    }
    world.pass(120);
    assert_eq!([1, 2].map(|slot| stands(&world, slot).contains("Claimed/Busy")), [true, true]);
    assert_eq!(stands(&world, 3), "patient Claimed/Suspended");
    submit(&mut world, "second", "carol", &[SUSPENDABLE]);
    world.pass(120);
    assert_eq!(stands(&world, 4), "Unclaimed/Idle", "its pair is at work: a suspendable job does not start");
    world.pass(300);
    assert_eq!(stands(&world, 3), "patient Claimed/Busy");
    assert_eq!(stands(&world, 4), "second Claimed/Busy");
}

#[test]
fn slot_1_is_for_interactive_jobs_and_the_keyboard_is_its_alone() {
    let mut world = desk(&policy!("70-interactive"), 3);
    for name in ["a", "b", "c"] {
        submit(&mut world, name, "alice", &[]);
    }
    world.pass(120);
    assert_eq!(stands(&world, 1), "Unclaimed/Idle");
    assert!([2, 3].into_iter().all(|slot| stands(&world, slot).ends_with("Claimed/Busy")));
    submit(&mut world, "shell", "bob", &[("InteractiveJob", "true")]);
    world.pass(120);
    assert_eq!(stands(&world, 1), "shell Claimed/Busy");
    somebody_types(&mut world);
    world.pass(6);
    assert_eq!(stands(&world, 1), "Unclaimed/Idle");
    assert!([2, 3].into_iter().all(|slot| stands(&world, slot).ends_with("Claimed/Busy")));
}

/// An attribute of an unclaimed slot.
fn shown(world: &World, slot: u32, attribute: &str) -> String {
    let machine = &world.pool.machines()[&"n1".into()];
    let ad = unclaimed_slot_ad(machine, &machine.machine_slots[&slot], &world.pool.startd(machine));
    ad.eval_attr(attribute, None, &Env::at(world.now.secs())).to_string()
}

#[test]
fn attributes_differ_from_slot_to_slot() {
    let world = desk(&policy!("80-per-slot"), 3);
    let rows = [1, 2, 3].map(|slot| {
        ["favorite_color", "favorite_season", "favorite_movie", "favorite_song"]
            .map(|name| shown(&world, slot, name).trim_matches('"').to_owned())
            .join(" ")
    });
    assert_eq!(
        rows,
        ["blue spring Blow-Up undefined", "green spring undefined Naima", "blue summer undefined undefined"]
    );
}

/// The manual's slots by kinds of GPUs, on a machine with four.
pub(super) fn gpu_slots() -> World {
    let mut world = pool(&policy!("90-gpu-slots"), Zone::default(), at(12, 0));
    world.node("n1", 40, 4);
    let gpu = |id: &str, capability: &str| Device {
        resource: "nvidia.com/gpu".into(),
        id: id.into(),
        properties: vec![("Capability".into(), Expr::parse(capability).unwrap())],
    };
    let devices =
        vec![gpu("GPU-1", "7.5"), gpu("GPU-6a96bd13", "7.0"), gpu("GPU-2", "8.0"), gpu("GPU-3", "8.6")];
    world.pool.apply(Event::Report(ReportFacts { devices, ..ReportFacts::of("n1".into()) }), world.now);
    world.settle();
    world
}

#[test]
fn gpus_are_divided_by_what_they_are() {
    let mut world = gpu_slots();
    let machine = &world.pool.machines()[&"n1".into()];
    let devices: Vec<String> =
        machine.slots().map(|slot| slot.total.devices_of("nvidia.com/gpu").join(" ")).collect();
    assert_eq!(devices, ["GPU-2 GPU-3", "GPU-6a96bd13", "GPU-1", ""]);
    world.submit("training", "alice", 1, |job| job.request.gpus = 2);
    world.pass(60);
    assert_eq!(stands(&world, 1), "training Claimed/Busy");
}

#[test]
fn cogs_and_actuators_are_carved_like_anything_else() {
    let mut world = desk(&policy!("95-cogs"), 8);
    assert_eq!([1, 2, 3].map(|slot| shown(&world, slot, "Cogs")), ["8", "4", "4"]);
    assert_eq!([1, 2, 3].map(|slot| shown(&world, slot, "Actuator")), ["6", "1", "1"]);
    assert_eq!(
        ["TotalCogs", "DetectedCogs", "TotalSlotCogs"].map(|name| shown(&world, 1, name)),
        ["16", "16", "8"]
    );
    // request_cogs = 2, request_actuator = 1. The static slots have too few CPUs, so that the first slot runs the job.
    world.submit("assembly", "alice", 1, |job| {
        job.request.cpus = 3;
        job.request.extended = [("cogs".into(), 2), ("actuator".into(), 1)].into();
    });
    world.pass(60);
    assert_eq!(stands(&world, 1), "assembly Claimed/Busy");
    assert_eq!((shown(&world, 1, "Cogs"), shown(&world, 1, "Actuator")), ("6".to_owned(), "5".to_owned()));
    let slot = SlotName::parse("slot1_1@n1").unwrap();
    assert_eq!(world.slots[&slot].0.amount("Cogs"), 2);
    world.submit("too-many", "bob", 1, |job| job.request.extended = [("Cogs".into(), 9)].into());
    world.pass(7300);
    assert_eq!(shown(&world, 1, "Cogs"), "8", "they are all back");
    assert!(!world.runs.contains_key("too-many-0"));
}
