//! Policies of machines' owners, each a short story.

use std::sync::Arc;

use super::world::World;
use crate::kit;
use crate::pool::{
    Assignment, Benchmarks, Claim, ClaimId, Event, LastInput, PolicyFacts, Preemptor, ReportFacts, Sensed,
    SlotName, StartdConfig,
};
use crate::startd::config;

/// Applies a policy to all nodes.
pub(super) fn configure(world: &mut World, text: &str) {
    let understood = config::understand(text);
    let errors: Vec<String> = understood
        .remarks
        .iter()
        .filter(|remark| remark.severity == config::Severity::Error)
        .map(ToString::to_string)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let mut startd = StartdConfig::default();
    understood.config.unwrap().put_into(&mut startd);
    let generation = 1 + world.pool.policies().values().next().map_or(0, |policy| policy.generation);
    let facts = PolicyFacts { generation, ..kit::policy("owners", startd, text) };
    world.sees(Event::Policy(facts));
}

/// The agent of a node reports that the owner uses the keyboard now, or never has.
fn report(world: &mut World, at_it: bool) {
    report_input(
        world,
        if at_it { LastInput::Ongoing } else { LastInput::At(crate::pool::Time::from_secs(0)) },
    );
}

/// The agent of a node reports when the owner last used the keyboard.
fn report_input(world: &mut World, keyboard: LastInput) {
    let owner_load = if keyboard == LastInput::Ongoing { 0.9 } else { 0.0 };
    let report = ReportFacts {
        sensed: Some(Sensed { keyboard, console: keyboard, owner_load }),
        suspended: world.still.clone(),
        // Benchmarks have run, so that none are run now.
        benchmarks: Some(Benchmarks { mips: 1, kflops: 1, at: crate::pool::Time::from_secs(0) }),
        ..ReportFacts::of("n1".into())
    };
    world.pool.apply(Event::Report(report), world.now);
}

/// A node with one job that runs for two hours.
pub(super) fn world(text: &str) -> World {
    let mut world = World::new();
    configure(&mut world, text);
    world.node("n1", 1, 0);
    report(&mut world, false);
    world.fate = |_| (7200, 0);
    world.submit("long", "alice", 1, |_| {});
    world.pass(10);
    assert_eq!(stands(&world), "Claimed/Busy");
    world.numbers.clear();
    world
}

pub(super) fn stands(world: &World) -> String {
    match world.pool.slots().values().next() {
        Some(slot) => format!("{}/{}", slot.state().state(), slot.state().activity()),
        None => "none".to_owned(),
    }
}

/// The manual's transitions that the slot took since the last call.
fn numbers(world: &mut World) -> Vec<u8> {
    std::mem::take(&mut world.numbers)
}

const DESKTOP: &str = "START = KeyboardIdle > 900\n\
    WANT_SUSPEND = true\n\
    SUSPEND = KeyboardIdle < 60\n\
    CONTINUE = KeyboardIdle > 300\n\
    PREEMPT = Activity == \"Suspended\" && time() - EnteredCurrentActivity > 600\n\
    MAXJOBRETIREMENTTIME = 0\n\
    MachineMaxVacateTime = 120\n\
    KILL = false\n";

#[test]
fn a_job_is_suspended_while_its_owner_is_there_for_a_moment() {
    let mut world = world(DESKTOP);
    report(&mut world, true);
    world.pass(6);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Claimed/Suspended", vec![14]));
    assert_eq!(world.still.len(), 1, "the agent was asked");
    let ran = world.pool.slots().values().next().unwrap().running().unwrap().run_time(world.now);
    world.pass(60);
    report(&mut world, false);
    world.pass(6);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Claimed/Busy", vec![15]));
    assert!(world.still.is_empty());
    let later = world.pool.slots().values().next().unwrap().running().unwrap().run_time(world.now);
    assert!(later.as_secs() <= ran.as_secs() + 6, "time in suspension is no run time");
}

#[test]
fn a_job_whose_owner_stays_is_vacated() {
    let mut world = world(DESKTOP);
    report(&mut world, true);
    world.pass(6);
    world.obeys = false;
    world.pass(610);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Preempting/Vacating", vec![14, 16, 18]));
    assert!(world.still.is_empty(), "a job that stands still cannot shut down");
    assert_eq!(world.graces, [Some(120)], "the vacating time is the pod's grace");
    world.pass(120);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Preempting/Killing", vec![21]));
    assert_eq!(world.graces, [Some(120), Some(1)]);
    let told = world.log.iter().filter(|line| line.starts_with("KillingTimeout")).count();
    assert_eq!(told, 0);
    world.pass(31);
    assert_eq!(world.log.iter().filter(|line| line.starts_with("KillingTimeout")).count(), 1);
    assert_eq!(world.pods.len(), 0, "the agent killed it");
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("none", vec![25]));
    assert_eq!(world.pool.machines().values().next().unwrap().available().cpus, 1);
}

/// The same owner as above, with a change of leader in the middle.
#[test]
fn a_suspended_job_stays_suspended_under_a_new_leader() {
    let mut world = world(DESKTOP);
    report(&mut world, true);
    world.pass(6);
    let suspended = |world: &World| {
        let slot = world.pool.slots().values().next().unwrap();
        let running = slot.running().unwrap();
        (
            slot.phase().entered_state(),
            slot.phase().entered_activity(),
            running.suspended_since.unwrap(),
            running.suspend_time(world.now),
        )
    };
    // The owner has left for longer than SUSPEND asks, and for less than CONTINUE asks.
    let left = world.now;
    world.pass(200);
    report_input(&mut world, LastInput::At(left));
    let before = suspended(&world);
    world.numbers.clear();
    world.restart();
    report_input(&mut world, LastInput::At(left));
    world.settle();
    assert_eq!(
        (stands(&world).as_str(), world.still.len()),
        ("Claimed/Suspended", 1),
        "as the earlier leader left it"
    );
    assert_eq!(suspended(&world), before, "since when, and for how long");
    assert_eq!(numbers(&mut world), [11, 14], "CONTINUE was not true, and the job did not go on");
    world.pass(110);
    assert_eq!((stands(&world).as_str(), world.still.len()), ("Claimed/Busy", 0), "CONTINUE is true");
}

#[test]
fn a_suspended_job_is_vacated_in_time_under_a_new_leader() {
    let mut world = world(DESKTOP);
    world.obeys = false;
    report(&mut world, true);
    world.pass(300);
    world.restart();
    report(&mut world, true);
    world.pass(295);
    assert_eq!(stands(&world), "Claimed/Suspended");
    world.pass(20);
    assert_eq!(stands(&world), "Preempting/Vacating", "PREEMPT counts what passed under the earlier leader");
}

#[test]
fn nothing_is_returned_before_the_pods_end_is_confirmed() {
    let mut world = world("PREEMPT = KeyboardIdle < 60\nWANT_VACATE = false\n");
    (world.obeys, world.agent_kills) = (false, false);
    report(&mut world, true);
    world.pass(3600);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Preempting/Killing", vec![13, 18]));
    assert_eq!(world.graces, [Some(1)]);
    assert_eq!(world.pool.machines().values().next().unwrap().available().cpus, 0);
    let pod = world.pods.values().next().unwrap().facts.pod.clone();
    world.end_pod(&pod, None);
    world.settle();
    assert_eq!(numbers(&mut world), [25]);
}

#[test]
fn a_job_keeps_the_run_time_that_it_was_granted() {
    let mut world =
        world("PREEMPT = KeyboardIdle < 60\nMAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 60\n");
    report(&mut world, true);
    world.pass(6);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Claimed/Retiring", vec![13]));
    report(&mut world, false);
    world.pass(3500);
    assert_eq!(stands(&world), "Claimed/Retiring", "never back, though the owner has gone");
    world.pass(60);
    assert_eq!(numbers(&mut world)[..2], [18, 22]);
    assert_eq!(world.graces, [Some(60)]);
}

#[test]
fn want_hold_holds_the_proc_until_its_job_is_edited() {
    let mut world = world(
        "PREEMPT = KeyboardIdle < 60\nWANT_HOLD = true\nWANT_HOLD_REASON = strcat(\"used by its owner: \", Machine)\n\
         WANT_HOLD_SUBCODE = 3\n",
    );
    report(&mut world, true);
    world.pass(6);
    report(&mut world, false);
    world.pass(600);
    let job = world.pool.jobs().values().next().unwrap();
    let hold = job.on_hold.values().next().expect("it is held");
    assert_eq!((hold.code, hold.subcode, &*hold.reason), (21, 3, "used by its owner: n1"));
    assert_eq!((job.idle.len(), job.active.len(), world.pods.len()), (0, 0, 0));
    world.restart();
    world.pass(60);
    assert!(world.pods.is_empty(), "a new leader knows that it is held");
    let edited = world.jobs.values_mut().next().unwrap();
    edited.generation += 1;
    let edited = edited.clone();
    world.pool.apply(Event::Job(edited), world.now);
    world.pass(120);
    assert_eq!(stands(&world), "Claimed/Busy", "released");
}

/// Makes a better claim on the slot, for the next proc of bob.
fn better_claim(world: &mut World, rank: f64) -> bool {
    let (name, slot) = world.pool.slots().iter().next().unwrap();
    let name: SlotName = name.clone();
    let bob = world.pool.jobs().values().find(|job| &*job.key.name == "urgent").unwrap();
    let claim = Claim {
        id: ClaimId::new(&name, world.now, 4711),
        submitter: "bob".into(),
        last: Assignment { job: bob.key.clone(), cluster_id: bob.cluster_id, ..slot.claim().last.clone() },
        ..slot.claim().clone()
    };
    crate::startd::offer_claim(&mut world.pool, &name, Preemptor { claim, rank, part: false })
}

#[test]
fn a_better_claim_waits_for_the_job_and_takes_its_slot() {
    let mut world = world(
        "RANK = ifThenElse(TARGET.Owner == \"bob\", 10, 1)\nMAXJOBRETIREMENTTIME = 100\n\
        MachineMaxVacateTime = 10\n",
    );
    world.submit("urgent", "bob", 1, |_| {});
    world.pass(2);
    assert!(!better_claim(&mut world, 0.5), "the slot likes alice's job better");
    assert!(better_claim(&mut world, 10.0));
    world.pass(2);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Claimed/Retiring", vec![13]));
    assert!(!better_claim(&mut world, 9.0), "it likes the claim that waits better");
    world.pass(100);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Claimed/Busy", vec![18, 23, 11]));
    let slot = world.pool.slots().values().next().unwrap();
    assert_eq!(slot.claim().submitter.as_str(), "bob");
    let used = |name: &str| {
        world.pool.submitters().values().find(|s| s.name.as_str() == name).unwrap().accounts.resources_used()
    };
    assert_eq!((used("alice"), used("bob")), (0, 1));
    assert_eq!(world.slots.values().next().unwrap().1.submitter.as_str(), "bob", "and it is written");
}

#[test]
fn a_claim_does_not_wait_for_a_slot_that_nobody_will_have() {
    for leaves in [
        |world: &mut World| world.machines.get_mut("n1").unwrap().ready = false,
        |world: &mut World| world.machines.get_mut("n1").unwrap().cordoned = true,
    ] {
        let mut world = world("MAXJOBRETIREMENTTIME = 3600\n");
        world.submit("urgent", "bob", 1, |_| {});
        world.pass(2);
        assert!(better_claim(&mut world, 0.0));
        world.pass(2);
        leaves(&mut world);
        world.set_node(world.machines["n1"].clone());
        world.pass(2);
        assert!(world.pool.slots().values().all(|slot| slot.preemptor().is_none()));
        let urgent = world.pool.jobs().values().find(|job| &*job.key.name == "urgent").unwrap();
        assert_eq!(urgent.unmatched(world.now), 1, "it may be matched elsewhere");
    }
}

#[test]
fn a_claim_that_is_withdrawn_lets_the_job_go_on() {
    let mut world = world("MAXJOBRETIREMENTTIME = 3600\n");
    world.submit("urgent", "bob", 1, |_| {});
    world.pass(2);
    assert!(better_claim(&mut world, 0.0), "of the same rank: a better priority");
    world.pass(2);
    assert_eq!(numbers(&mut world), [13]);
    world.remove("urgent");
    world.pass(2);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Claimed/Busy", vec![19]));
    // The same if the waiting job vanishes at once.
    world.submit("urgent", "bob", 1, |_| {});
    world.pass(2);
    assert!(better_claim(&mut world, 0.0));
    world.pass(2);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Claimed/Retiring", vec![13]));
    world.jobs.remove("uid-urgent");
    world.pool.apply(Event::JobGone("uid-urgent".into()), world.now);
    world.pass(2);
    assert_eq!((stands(&world).as_str(), numbers(&mut world)), ("Claimed/Busy", vec![19]));
}

#[test]
fn a_new_leader_goes_on_where_the_old_one_stood() {
    let mut world =
        world("PREEMPT = KeyboardIdle < 60\nMAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 60\n");
    report(&mut world, true);
    world.pass(1000);
    assert_eq!(stands(&world), "Claimed/Retiring");
    world.restart();
    configure(
        &mut world,
        "PREEMPT = KeyboardIdle < 60\nMAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 60\n",
    );
    report(&mut world, true);
    world.pass(10);
    assert_eq!(stands(&world), "Claimed/Retiring");
    // The pod says since when it has run: no time is granted twice.
    world.pass(3600 - 60 - 1010);
    assert_eq!(world.graces, [Some(60)]);
}

/// Under a new leader the pledged vacating time still holds, and the time for which the job was suspended is no run time.
#[test]
fn a_new_leader_knows_what_was_pledged_and_how_long_a_job_stood_still() {
    let text = |vacate: u64| {
        format!(
            "WANT_SUSPEND = true\nSUSPEND = KeyboardIdle < 60\nCONTINUE = KeyboardIdle > 60\n\
             MAXJOBRETIREMENTTIME = 1000\nMachineMaxVacateTime = {vacate}\n"
        )
    };
    let mut world = world(&text(60));
    let ran = |world: &World| {
        let running = world.pool.slots().values().next().unwrap().running().unwrap();
        (running.run_time(world.now).as_secs(), running.pledged_vacate)
    };
    let lead = |world: &mut World, at_it| {
        world.restart();
        configure(world, &text(5));
        report(world, at_it);
        world.pass(1);
    };
    world.pass(100);
    report(&mut world, true);
    world.pass(300);
    report(&mut world, false);
    world.pass(100);
    let before = ran(&world);
    assert!((205..220).contains(&before.0), "{before:?}");
    lead(&mut world, false);
    assert_eq!(stands(&world), "Claimed/Busy");
    assert_eq!(ran(&world), (before.0 + 1, 60), "the policy's 5 s are for others");
    // The job is suspended when the leader dies.
    report(&mut world, true);
    world.pass(300);
    assert_eq!(stands(&world), "Claimed/Suspended");
    let before = ran(&world);
    lead(&mut world, true);
    let after = ran(&world);
    assert!(after.0 <= before.0 + 2, "{before:?} {after:?}");
    world.pass(100);
    assert_eq!(stands(&world), "Claimed/Suspended");
}

#[test]
fn the_default_policy_asks_for_no_look_at_what_runs() {
    let world = world("");
    assert_eq!(world.pool.next_look(), None);
}

#[test]
fn claims_end_by_claim_worklife() {
    let mut world = World::new();
    configure(&mut world, "CLAIM_WORKLIFE = 50\n");
    world.node("n1", 1, 0);
    world.submit("sweep", "alice", 4, |_| {});
    world.pass(200);
    let claims: std::collections::BTreeSet<&str> =
        world.pods.values().map(|pod| pod.plan.claim.id.as_str()).collect();
    assert_eq!((world.runs.len(), claims.len()), (4, 2), "two jobs of 30 s each, then another claim");
}

/// The reason of transition 10 says what has ended a claim.
#[test]
fn a_claim_that_is_given_up_says_why() {
    let (old, no_work) = (
        "the claim is older than CLAIM_WORKLIFE: it takes no more procs",
        "the schedd has nothing more for the claim",
    );
    for (worklife, expected) in [(20, vec![old, no_work]), (1200, vec![no_work])] {
        let mut world = World::new();
        configure(&mut world, &format!("CLAIM_WORKLIFE = {worklife}\n"));
        world.node("n1", 1, 0);
        world.submit("sweep", "alice", 2, |_| {});
        world.pass(200);
        let taken = world.taken.iter().map(|noted| &noted.taken);
        let why: Vec<&str> =
            taken.filter(|taken| taken.number.to_string() == "10").map(|taken| &*taken.why).collect();
        assert_eq!(why, expected);
    }
}

#[test]
fn is_owner_keeps_a_slot_its_owners() {
    let mut world = World::new();
    configure(&mut world, "IS_OWNER = KeyboardIdle < 300\nUPDATE_INTERVAL = 60\n");
    world.node("n1", 1, 0);
    report(&mut world, true);
    world.settle();
    let state =
        |world: &World| world.pool.machines().values().next().unwrap().machine_slots[&1].state().state();
    assert_eq!(state(&world), "Owner");
    let sensed =
        Sensed { keyboard: LastInput::At(world.now), console: LastInput::At(world.now), owner_load: 0.0 };
    let report = ReportFacts { sensed: Some(sensed), ..ReportFacts::of("n1".into()) };
    world.pool.apply(Event::Report(report), world.now);
    world.pass(290);
    assert_eq!(state(&world), "Owner");
    world.pass(70);
    assert_eq!(state(&world), "Unclaimed", "idle times grow though nothing happens");
}

/// The same through the negotiator: a match by the startd's RANK takes the slot, whatever the users' priorities are.
#[test]
fn the_negotiator_preempts_by_startd_rank() {
    let mut world = world("RANK = ifThenElse(TARGET.Owner == \"bob\", 10, 1)\nMachineMaxVacateTime = 10\n");
    world.submit("urgent", "bob", 1, |_| {});
    world.pass(120);
    let slot = world.pool.slots().values().next().unwrap();
    assert_eq!(slot.claim().submitter.as_str(), "bob");
    assert_eq!(numbers(&mut world)[..4], [13, 18, 23, 11]);
    // A job of alice would have to rank higher than the present job, and does not.
    world.submit("late", "alice", 1, |_| {});
    world.pass(600);
    assert_eq!(world.pool.slots().values().next().unwrap().claim().submitter.as_str(), "bob");
}

/// A claim that waited is not made if others have reached the ceiling meanwhile.
#[test]
fn a_claim_that_waited_is_held_against_the_ceiling_again() {
    let mut world = world("RANK = ifThenElse(TARGET.Owner == \"bob\", 10, 1)\nMAXJOBRETIREMENTTIME = 100\n");
    world.submit("urgent", "bob", 1, |_| {});
    world.pass(2);
    assert!(better_claim(&mut world, 10.0));
    world.pool.set_submitter("bob", |bob| bob.ceiling = Some(0.0));
    world.pass(200);
    assert!(world.pool.slots().values().all(|slot| slot.claim().submitter.as_str() != "bob"));
}

/// Ads are kept by the address of the configuration of which they were made.
#[test]
fn machines_without_a_policy_share_one_configuration() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    world.node("n2", 8, 0);
    world.settle();
    let of = |name: &str| world.pool.startd(&world.pool.machines()[&name.into()]);
    assert!(Arc::ptr_eq(&of("n1"), &of("n2")));
}
