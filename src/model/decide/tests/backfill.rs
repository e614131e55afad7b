//! Backfill work, each a short story that names its transitions by the manual's numbers. Source: the manual's "Backfill
//! State".

use std::sync::Arc;
use std::time::Duration;

use super::world::World;
use crate::pool::backfill::Phase;
use crate::pool::slot_types::SlotTypes;
use crate::pool::{
    BackfillTemplate, Capacity, Claim, Event, Policy, SlotConfig, SlotFacts, SlotName, StartdConfig, State,
};
use condor_config::{Host, Reader, Source};

const TEMPLATE: &str = r#"{"spec":{"containers":[{"name":"boinc"}]}}"#;

fn template(mark: &str) -> Arc<BackfillTemplate> {
    Arc::new(BackfillTemplate { namespace: "fill".into(), template: TEMPLATE.into(), mark: mark.into() })
}

/// Applies a policy for all nodes, with backfill work.
fn govern(world: &mut World, text: &str, mark: &str) {
    let read = Reader::new(Host::none()).subsystem("STARTD").read(&[Source::block("spec.config", text)]);
    let (policy, faults) = Policy::read(&read.config, None);
    assert!(faults.is_empty(), "{faults:?}");
    let division = SlotTypes::read(&read.config).types.unwrap();
    let slots = SlotConfig { policy, ..SlotConfig::default() };
    let config =
        StartdConfig { division, backfill: Some(template(mark)), drain_cordoned: true, ..slots.into() };
    world.govern(config, &format!("{text}{mark}"));
}

const ALWAYS: &str = "ENABLE_BACKFILL = true\nSTART_BACKFILL = true\n";
const TWO: &str = "NUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1 = cpus=4\n";

/// A node of eight CPUs on which backfill work runs.
fn filled(text: &str) -> World {
    let mut world = World::new();
    world.node("n1", 8, 0);
    govern(&mut world, text, "m1");
    world
}

fn numbers(world: &mut World) -> Vec<String> {
    std::mem::take(&mut world.backfill_numbers)
}

fn state(world: &World, slot: u32) -> (&'static str, &'static str) {
    let state = world.pool.machines()[&"n1".into()].machine_slots[&slot].state();
    (state.state(), state.activity())
}

/// The CPUs that each backfill pod requests.
fn cpus(world: &World) -> Vec<i64> {
    world.backfill.values().flat_map(|pod| &pod.requests).map(|own| own.milli_cpu / 1000).collect()
}

#[test]
fn an_idle_slot_does_backfill_work() {
    let mut world = filled(ALWAYS);
    assert_eq!(numbers(&mut world), ["slot1@n1 7", "slot1@n1 26"]);
    assert_eq!((state(&world, 1), cpus(&world)), (("Backfill", "Busy"), vec![8]));
    assert_eq!(world.backfill.keys().collect::<Vec<_>>(), ["backfill-slot1.n1"]);
    world.pass(700);
    assert_eq!((numbers(&mut world), world.backfill_asked), (vec![], 1));
}

#[test]
fn a_policy_that_does_not_want_it_has_none() {
    for text in [
        "",
        "START_BACKFILL = true\n",
        "ENABLE_BACKFILL = true\n",
        "ENABLE_BACKFILL = true\nSTART_BACKFILL = Nope\n",
    ] {
        let mut world = filled(text);
        world.pass(700);
        assert_eq!((state(&world, 1), world.backfill_asked), (("Unclaimed", "Idle"), 0), "{text}");
    }
}

#[test]
fn it_begins_when_its_expression_becomes_true() {
    let mut world = filled("ENABLE_BACKFILL = true\nSTART_BACKFILL = time() - EnteredCurrentState > 400\n");
    world.pass(390);
    assert_eq!(state(&world, 1), ("Unclaimed", "Idle"));
    world.pass(300);
    assert_eq!(state(&world, 1), ("Backfill", "Busy"), "the policy is looked at each UPDATE_INTERVAL");
}

#[test]
fn work_that_ends_by_itself_begins_again() {
    let mut world = filled(ALWAYS);
    numbers(&mut world);
    world.backfill_is("backfill-slot1.n1", Phase::Over);
    world.settle();
    assert_eq!(numbers(&mut world), ["slot1@n1 27"]);
    assert_eq!((state(&world, 1), world.backfill.len()), (("Backfill", "Idle"), 0), "the pod's name is free");
    world.pass(11);
    assert_eq!((numbers(&mut world), world.backfill_asked), (vec!["slot1@n1 26".to_owned()], 2));
}

#[test]
fn the_owner_has_the_slot_when_the_work_has_ended() {
    let text = format!("{ALWAYS}IS_OWNER = time() >= 1700000100 && time() < 1700000200\n");
    let mut world = filled(&text);
    numbers(&mut world);
    world.backfill_obeys = false;
    world.pass(110);
    assert_eq!(numbers(&mut world), ["slot1@n1 28"]);
    assert_eq!(state(&world, 1), ("Backfill", "Killing"), "until its end is confirmed");
    world.end_backfill("backfill-slot1.n1");
    world.settle();
    assert_eq!(numbers(&mut world), ["slot1@n1 29", "slot1@n1 30"]);
    assert_eq!(state(&world, 1), ("Owner", "Idle"));
    world.backfill_obeys = true;
    world.pass(400);
    assert_eq!(numbers(&mut world), ["slot1@n1 7", "slot1@n1 26"]);
}

#[test]
fn evict_backfill_ends_it_and_keeps_it_away() {
    let mut world = filled(&format!("{ALWAYS}EVICT_BACKFILL = time() >= 1700000100\n"));
    numbers(&mut world);
    world.pass(110);
    assert_eq!(numbers(&mut world), ["slot1@n1 28", "slot1@n1 29", "slot1@n1 30"]);
    assert_eq!(state(&world, 1), ("Unclaimed", "Idle"));
    world.pass(700);
    assert_eq!((numbers(&mut world), world.backfill_asked), (vec![], 1));
}

#[test]
fn work_that_does_not_end_is_killed() {
    let mut world = filled(&format!("{ALWAYS}EVICT_BACKFILL = time() >= 1700000100\nKILLING_TIMEOUT = 20\n"));
    world.backfill_obeys = false;
    world.pass(110);
    assert_eq!(world.graces, [None], "its own grace");
    world.pass(30);
    assert_eq!(world.graces, [None, Some(1)]);
    world.pass(100);
    assert_eq!((state(&world, 1), world.graces.len()), (("Backfill", "Killing"), 2));
}

#[test]
fn a_match_of_a_static_slot_waits_for_the_end_of_its_work() {
    let mut world = filled(&format!("{ALWAYS}{TWO}"));
    numbers(&mut world);
    world.backfill_obeys = false;
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(5);
    assert_eq!(numbers(&mut world), ["slot1@n1 28"]);
    assert!(world.slots.is_empty() && world.pods.is_empty(), "nothing is claimed before");
    assert_eq!(state(&world, 2), ("Backfill", "Busy"), "another slot's work goes on");
    world.end_backfill("backfill-slot1.n1");
    world.pass(5);
    assert_eq!(numbers(&mut world), ["slot1@n1 29", "slot1@n1 32"]);
    assert_eq!((world.slots.len(), world.pods.len()), (1, 1));
    world.backfill_obeys = true;
    world.pass(60);
    assert_eq!(
        (world.runs.len(), numbers(&mut world)),
        (1, vec!["slot1@n1 7".to_owned(), "slot1@n1 26".into()])
    );
}

#[test]
fn a_match_that_is_over_a_ceiling_or_limit_by_then_comes_to_nothing() {
    let lower: [fn(&mut World); 2] = [
        |world| world.pool.set_submitter("alice", |alice| alice.ceiling = Some(2.0)),
        |world| super::limits::set(world, "lic", Some(0.0), None),
    ];
    for lower in lower {
        let mut world = filled(&format!("{ALWAYS}{TWO}"));
        world.backfill_obeys = false;
        world.submit("sweep", "alice", 1, |job| job.limits = vec!["lic".to_owned()]);
        world.pass(5);
        lower(&mut world);
        world.end_backfill("backfill-slot1.n1");
        world.pass(5);
        assert!(world.slots.is_empty() && world.pods.is_empty(), "a slot weighs 4");
        assert!(world.pool.jobs().values().all(|job| job.idle.len() == 1));
    }
}

#[test]
fn a_match_that_waits_too_long_comes_to_nothing() {
    let mut world = filled(&format!("{ALWAYS}{TWO}MATCH_TIMEOUT = 60\nSTART = SlotID == 1\n"));
    numbers(&mut world);
    world.backfill_obeys = false;
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(65);
    assert!(world.pool.jobs().values().all(|job| job.idle.len() == 1), "the proc may look elsewhere");
    world.backfill_obeys = true;
    world.end_backfill("backfill-slot1.n1");
    world.settle();
    assert_eq!(numbers(&mut world)[..3], ["slot1@n1 28", "slot1@n1 29", "slot1@n1 30"]);
    world.pass(120);
    assert_eq!(world.runs.len(), 1);
}

/// Somebody creates a Slot under the name of a claim that waits to be written.
#[test]
fn what_stands_in_the_place_of_a_match_that_comes_to_nothing_goes() {
    let mut world = filled(&format!("{ALWAYS}MATCH_TIMEOUT = 60\n"));
    world.backfill_obeys = false;
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(5);
    let (name, resources) = {
        let slot = world.pool.slots().values().next().expect("a match waits");
        (slot.name().clone(), slot.resources().clone())
    };
    let claim = Claim { id: "somebody#1#1".into(), ..world.pool.slots()[&name].claim().clone() };
    world.slots.insert(name.clone(), (resources.clone(), claim.clone()));
    let made_up = SlotFacts { name: name.clone(), resources, claim: Some(claim), recorded: None };
    world.pool.apply(Event::Slot(made_up), world.now);
    world.pass(5);
    assert!(world.slots.contains_key(&name), "it is in nobody's way yet");
    world.remove("sweep");
    world.backfill_obeys = true;
    world.end_backfill("backfill-slot1.n1");
    world.pass(70);
    assert_eq!((world.pool.slots().len(), world.slots.len()), (0, 0));
}

#[test]
fn a_partitionable_slot_goes_on_with_what_a_match_leaves() {
    let mut world = filled(ALWAYS);
    numbers(&mut world);
    world.fate = |_| (100, 0);
    world.backfill_obeys = false;
    world.submit("sweep", "alice", 2, |_| {});
    world.pass(3);
    assert_eq!(numbers(&mut world), ["slot1@n1 28", "slot1_1@n1 28", "slot1_2@n1 28"]);
    assert!(world.pods.is_empty());
    world.end_backfill("backfill-slot1.n1");
    world.backfill_obeys = true;
    world.pass(3);
    let mut taken = numbers(&mut world);
    taken.sort();
    assert_eq!(
        taken,
        ["slot1@n1 26", "slot1@n1 29", "slot1_1@n1 29", "slot1_1@n1 32", "slot1_2@n1 29", "slot1_2@n1 32"]
    );
    assert_eq!((cpus(&world), world.pods.len()), (vec![6], 2));
    world.pass(150);
    assert_eq!(world.runs.len(), 2);
    assert_eq!(
        (cpus(&world), numbers(&mut world)),
        (vec![6], vec![]),
        "for two CPUs more no work is thrown away"
    );
    world.submit("more", "alice", 2, |_| {});
    world.pass(60);
    assert_eq!(numbers(&mut world), ["slot1_1@n1 32", "slot1_2@n1 32"], "beside it there is room");
    assert_eq!(world.backfill_asked, 2);
}

#[test]
fn work_that_could_be_twice_as_large_begins_anew() {
    let mut world = World::new();
    world.node("n1", 8, 0);
    world.fate = |_| (100, 0);
    world.submit("sweep", "alice", 7, |_| {});
    world.pass(3);
    govern(&mut world, ALWAYS, "m1");
    assert_eq!(cpus(&world), [1]);
    world.pass(200);
    assert_eq!((world.runs.len(), cpus(&world)), (7, vec![8]));
}

#[test]
fn a_slot_with_nothing_left_does_nothing() {
    let mut world = filled(ALWAYS);
    numbers(&mut world);
    world.fate = |_| (100, 0);
    world.submit("sweep", "alice", 8, |_| {});
    world.pass(3);
    assert_eq!((world.pods.len(), world.backfill.len()), (8, 0));
    assert_eq!(state(&world, 1), ("Unclaimed", "Idle"));
    world.pass(200);
    assert_eq!((world.runs.len(), cpus(&world)), (8, vec![8]));
}

#[test]
fn a_drain_ends_it() {
    let mut world = filled(ALWAYS);
    numbers(&mut world);
    world.backfill_obeys = false;
    let cordoned = crate::pool::MachineFacts { cordoned: true, ..world.machines["n1"].clone() };
    world.set_node(cordoned);
    world.pass(5);
    assert_eq!(
        (state(&world, 1), numbers(&mut world)),
        (("Backfill", "Killing"), vec!["slot1@n1 28".to_owned()])
    );
    world.end_backfill("backfill-slot1.n1");
    world.settle();
    assert_eq!(numbers(&mut world), ["slot1@n1 29", "slot1@n1 30"]);
    assert_eq!(state(&world, 1), ("Drained", "Idle"));
}

/// A cordon that does not drain evicts nobody. Backfill work that ends meanwhile is not begun again.
#[test]
fn a_cordon_lets_it_go_on() {
    let mut world = World::new();
    world.node("n1", 8, 0);
    govern(&mut world, ALWAYS, "m1");
    let kept = StartdConfig {
        drain_cordoned: false,
        ..(*world.pool.startd(&world.pool.machines()[&"n1".into()])).clone()
    };
    world.govern(kept, "kept");
    let cordoned = crate::pool::MachineFacts { cordoned: true, ..world.machines["n1"].clone() };
    world.set_node(cordoned);
    world.pass(60);
    assert_eq!((state(&world, 1), cpus(&world)), (("Backfill", "Busy"), vec![8]));
    world.backfill_is("backfill-slot1.n1", Phase::Over);
    world.pass(60);
    assert_eq!(state(&world, 1), ("Owner", "Idle"));
}

#[test]
fn pods_of_others_have_its_place() {
    let mut world = filled(ALWAYS);
    let requests = Capacity { milli_cpu: 3_000, ..Capacity::default() };
    world.pool.apply(Event::ForeignPod { pod: "f".into(), machine: "n1".into(), requests }, world.now);
    world.pass(3);
    assert_eq!((cpus(&world), state(&world, 1)), (vec![5], ("Backfill", "Busy")));
    let machine = &world.pool.machines()[&"n1".into()];
    assert_eq!(machine.foreign.milli_cpu, 3_000, "backfill pods are not pods of others");
}

#[test]
fn what_cannot_be_made_is_tried_ever_less_often() {
    let mut world = World::new();
    world.backfill_refused = Some(("no PriorityClass with name slotwright-backfill was found", true));
    world.node("n1", 8, 0);
    govern(&mut world, ALWAYS, "m1");
    assert_eq!((world.backfill_asked, state(&world, 1)), (1, ("Backfill", "Idle")));
    world.pass(10 + 20 + 40 + 80 + 160 + 5);
    assert_eq!(world.backfill_asked, 6);
    world.pass(3000);
    assert_eq!(world.backfill_asked, 16, "every five minutes");
    let told = world.log.iter().filter(|line| line.starts_with("BackfillRefused")).count();
    assert!((1..=6).contains(&told), "{:?}", world.log);
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(40);
    assert_eq!(world.runs.len(), 1, "jobs do not wait for it");
    world.backfill_refused = None;
    world.pass(310);
    assert_eq!(state(&world, 1), ("Backfill", "Busy"));
}

/// The pod may have been created all the same. Until that is known, a claim waits.
#[test]
fn a_pod_of_which_nobody_knows_is_in_the_way_for_a_minute() {
    let mut world = World::new();
    world.backfill_refused = Some(("given up after 8 attempts", false));
    world.node("n1", 8, 0);
    govern(&mut world, ALWAYS, "m1");
    world.backfill_refused = Some(("given up after 8 attempts", true));
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(55);
    assert!(world.pods.is_empty());
    world.pass(60);
    assert_eq!(world.runs.len(), 1);
}

#[test]
fn a_new_leader_goes_on_with_it() {
    let mut world = filled(&format!("{ALWAYS}{TWO}START_BACKFILL = time() - EnteredCurrentState > 100\n"));
    world.pass(310);
    assert_eq!(world.backfill.len(), 2);
    numbers(&mut world);
    world.restart();
    govern(&mut world, &format!("{ALWAYS}{TWO}START_BACKFILL = time() - EnteredCurrentState > 100\n"), "m1");
    assert_eq!(
        (numbers(&mut world), world.backfill_asked),
        (vec!["slot1@n1 26".to_owned(), "slot2@n1 26".into()], 2)
    );
    assert_eq!(state(&world, 2), ("Backfill", "Busy"));
}

#[test]
fn pods_that_are_nobodys_are_deleted_and_weigh_until_they_are_gone() {
    for (text, mark) in [("", "m1"), (ALWAYS, "m2"), (TWO, "m1")] {
        let mut world = filled(ALWAYS);
        world.restart();
        world.backfill_obeys = false;
        govern(&mut world, text, mark);
        world.submit("sweep", "alice", 2, |_| {});
        world.pass(10);
        assert!(world.backfill.values().all(|pod| pod.deletion.deleting), "{text} {mark}");
        assert!(world.pods.is_empty(), "{text} {mark}");
        world.end_backfill("backfill-slot1.n1");
        world.backfill_obeys = true;
        world.pass(60);
        assert_eq!(world.runs.len(), 2, "{text} {mark}");
    }
}

/// A new leader cannot decode the pod, and knows only its metadata: the pod may hold as much as its slot has.
#[test]
fn claims_wait_for_work_whose_requests_nobody_knows() {
    let mut world = filled(ALWAYS);
    world.backfill.values_mut().for_each(|pod| pod.requests = None);
    world.restart();
    world.backfill_obeys = false;
    govern(&mut world, ALWAYS, "m1");
    numbers(&mut world);
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(10);
    assert_eq!(numbers(&mut world), ["slot1@n1 28", "slot1_1@n1 28"]);
    assert!(world.pods.is_empty(), "the work has not ended");
    world.end_backfill("backfill-slot1.n1");
    world.pass(10);
    assert_eq!(world.pods.len(), 1);
}

#[test]
fn another_template_begins_anew() {
    let mut world = filled(ALWAYS);
    numbers(&mut world);
    govern(&mut world, ALWAYS, "m2");
    assert_eq!(numbers(&mut world), ["slot1@n1 28", "slot1@n1 29", "slot1@n1 26"]);
    assert_eq!(world.backfill.values().map(|pod| &*pod.mark).collect::<Vec<_>>(), ["m2"]);
}

#[test]
fn a_pod_that_somebody_forged_is_none_of_the_slots() {
    let mut world = filled(ALWAYS);
    let mut forged = world.backfill["backfill-slot1.n1"].clone();
    forged.pod.namespace = "mallory".into();
    forged.pod.uid = "forged".into();
    world.pool.apply(Event::Backfill(forged), world.now);
    world.now = world.now + Duration::from_secs(1);
    let effects = crate::decide::decide(&mut world.pool, world.now).effects;
    let deleted = effects.iter().any(|effect| {
        matches!(effect, crate::pool::Effect::DeleteBackfill { pod, .. } if pod.uid.as_str() == "forged")
    });
    assert!(deleted, "{effects:?}");
}

/// Nobody confirms the end of a pod whose Node was deleted. The kubelet may still be there: kill, wait, and only then
/// delete the pod by force.
#[test]
fn a_node_that_is_gone_leaves_nothing_behind() {
    let mut world = filled(ALWAYS);
    world.machines.remove("n1");
    world.backfill_obeys = false;
    world.pool.apply(Event::MachineGone("n1".into()), world.now);
    world.pass(4);
    assert_eq!((&world.graces[..], world.pool.machines().len()), (&[Some(1)][..], 1));
    world.pass(5);
    assert_eq!(world.graces, [Some(1), Some(0)]);
    assert!(world.backfill.is_empty() && world.pool.machines().is_empty());
    assert!(world.pool.backfill().is_off(&"n1".into()));
}

/// A pod that was given 30 s before its Node was deleted may run for 30 s, whatever later deletions say.
#[test]
fn a_pod_on_a_node_that_is_gone_has_the_time_that_it_was_granted() {
    let mut world = filled(&format!("{ALWAYS}EVICT_BACKFILL = time() >= 1700000100\n"));
    world.backfill_obeys = false;
    world.pass(105);
    assert_eq!(world.graces, [None]);
    world.machines.remove("n1");
    world.pool.apply(Event::MachineGone("n1".into()), world.now);
    world.pass(25);
    assert_eq!((&world.graces[..], world.pool.machines().len()), (&[None][..], 1));
    world.pass(10);
    assert_eq!(world.graces, [None, Some(0)]);
    assert!(world.backfill.is_empty() && world.pool.machines().is_empty());
}

/// Found by seed 711017271: the Node comes back, larger, while the kubelet still runs the pod.
#[test]
fn work_on_a_node_that_comes_back_is_made_once_the_earlier_pod_has_ended() {
    let mut world = filled(ALWAYS);
    world.backfill_obeys = false;
    world.pool.apply(Event::MachineGone("n1".into()), world.now);
    world.pass(2);
    world.node("n1", 9, 0);
    world.pass(30);
    assert_eq!((world.backfill_asked, cpus(&world), &world.graces[..]), (1, vec![8], &[Some(1)][..]));
    world.backfill_obeys = true;
    world.end_backfill("backfill-slot1.n1");
    world.pass(60);
    assert_eq!((world.backfill_asked, cpus(&world)), (2, vec![9]));
}

#[test]
fn transitions_of_a_backfilled_slot_are_those_of_its_slot() {
    let mut world = filled(&format!("{ALWAYS}{TWO}"));
    world.backfill_obeys = false;
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(3);
    let name = SlotName { machine: "n1".into(), slot: 1, dynamic: None };
    assert!(matches!(world.pool.slots()[&name].state(), State::Backfill(_)));
    world.remove("sweep");
    world.pass(3);
    assert!(world.pool.slots().contains_key(&name), "its owner has it when the work has ended");
    world.end_backfill("backfill-slot1.n1");
    world.settle();
    assert!(world.pool.slots().is_empty() && world.jobs.is_empty());
}
