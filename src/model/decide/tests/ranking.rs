//! Which jobs a slot prefers, from the match on, and which it lets in: each a short story.

use std::time::Duration;

use super::policy::{configure, stands, world};
use super::world::World;
use crate::pool::{Activation, State};
use crate::{decide, negotiator};

const PREFERS_ALICE: &str = "RANK = (TARGET.Owner == \"alice\") * 10 + 1\n";

fn current_rank(world: &World) -> f64 {
    world.pool.slots().values().next().unwrap().rank()
}

/// "If the resource has been claimed but no job is running, the current job ClassAd is the one that was used when claiming".
#[test]
fn a_claim_has_its_rank_as_soon_as_it_is_made() {
    let mut world = World::new();
    configure(&mut world, PREFERS_ALICE);
    world.submit("short", "alice", 1, |_| {});
    world.settle();
    world.node("n1", 1, 0);
    let begun = (0..600).find_map(|_| {
        world.now = world.now + Duration::from_secs(1);
        decide::decide(&mut world.pool, world.now).negotiation
    });
    let negotiation = begun.unwrap();
    let outcome = negotiator::negotiate(&negotiation.cycle);
    decide::conclude(&mut world.pool, &negotiation, &outcome, world.now);
    let slot = world.pool.slots().values().next().unwrap();
    assert_eq!((slot.state(), slot.activation()), (State::Matched, &Activation::Assigned));
    assert_eq!(current_rank(&world).to_bits(), 11.0_f64.to_bits());
}

/// A claim that an earlier leader made has its rank before another job could be matched with its slot.
#[test]
fn a_claim_that_is_found_has_its_rank_when_its_pod_is_made() {
    let mut world = World::new();
    configure(&mut world, PREFERS_ALICE);
    world.node("n1", 1, 0);
    world.fate = |_| (7200, 0);
    world.submit("long", "alice", 1, |_| {});
    world.pass(5);
    world.restart();
    configure(&mut world, PREFERS_ALICE);
    world.submit("other", "bob", 1, |_| {});
    world.pass(60);
    assert_eq!(current_rank(&world).to_bits(), 11.0_f64.to_bits(), "{}", stands(&world));
    assert_eq!(world.pool.slots().values().next().unwrap().claim().submitter.as_str(), "alice");
}

#[test]
fn a_claim_that_takes_over_brings_its_rank() {
    let mut world = world("RANK = ifThenElse(TARGET.Owner == \"bob\", 10, 1)\nMachineMaxVacateTime = 10\n");
    world.submit("urgent", "bob", 1, |_| {});
    world.pass(120);
    assert_eq!(world.pool.slots().values().next().unwrap().claim().submitter.as_str(), "bob");
    assert_eq!(current_rank(&world).to_bits(), 10.0_f64.to_bits());
}

/// `schedd.cpp`, `StartJob`: the slot was preempted for one job, and does not go to another of the same user that is first in the queue.
#[test]
fn a_slot_that_was_preempted_for_a_job_goes_to_that_job() {
    let mut world = world("RANK = (TARGET.Urgent =?= true) * 10\nMachineMaxVacateTime = 10\n");
    world.submit("first", "bob", 3, |_| {});
    world.submit("urgent", "bob", 1, |job| job.attributes.extend([("Urgent".to_owned(), "true".to_owned())]));
    world.pass(120);
    let slot = world.pool.slots().values().next().unwrap();
    assert_eq!((&*slot.claim().last.job.name, stands(&world).as_str()), ("urgent", "Claimed/Busy"));
}

/// A dynamic slot must itself let the job in, with its own size and type.
#[test]
fn start_is_asked_of_the_slot_that_was_carved() {
    for (start, runs) in [
        ("MY.Cpus >= 2", 0),
        ("DynamicSlot =!= True || Memory >= 1000000", 0),
        ("State == \"Unclaimed\" && RemoteOwner =?= undefined", 1),
        ("MY.Cpus >= 1", 1),
        ("SlotType == \"Partitionable\"", 0),
        ("SlotType == \"Partitionable\" || TARGET.RequestCpus == 1", 1),
    ] {
        let mut world = World::new();
        configure(&mut world, &format!("START = {start}\n"));
        world.node("n1", 8, 0);
        world.submit("small", "alice", 1, |_| {});
        world.pass(120);
        assert_eq!(world.runs.len(), runs, "{start}");
        assert!(runs == 1 || world.pool.slots().is_empty(), "{start}: nothing is carved");
        let job = world.pool.jobs().values().next().unwrap();
        assert_eq!(job.resting.is_some(), runs == 0, "{start}: it is not matched so without end");
    }
}

/// The queue has the schedd's order: `PreJobPrio1`, `PreJobPrio2`, `JobPrio`, `PostJobPrio1`, `PostJobPrio2`, then the
/// older job.
#[test]
fn jobs_of_one_submitter_stand_in_the_schedds_order() {
    let mut world = World::new();
    for (name, priority, attribute) in [
        ("plain", 0, None),
        ("later", 0, None),
        ("high", 5, None),
        ("post", 0, Some(("PostJobPrio1", "1"))),
        ("post2", 0, Some(("PostJobPrio2", "7"))),
        ("pre2", -9, Some(("PreJobPrio2", "1"))),
        ("pre", -9, Some(("PreJobPrio1", "-3"))),
    ] {
        world.pass(1);
        world.submit(name, "alice", 1, |job| {
            job.priority = priority;
            job.attributes.extend(attribute.map(|(name, text)| (name.to_owned(), text.to_owned())));
        });
    }
    world.settle();
    let queues = world.pool.queues();
    let order: Vec<&str> = queues.of(&"alice".into()).map(|key| &*key.job().name).collect();
    // An attribute that is not set counts as 0, so that a negative PreJobPrio1 comes last.
    assert_eq!(order, ["pre2", "high", "post", "post2", "plain", "later", "pre"]);
}

/// "nice_user jobs are submitted with a default retirement time of 0 ... unless the user overrides the default".
#[test]
fn nice_jobs_do_not_wait_in_retirement() {
    for (group, attribute, left) in [
        ("nice-user", None, Some(0)),
        ("Nice-User", None, Some(0)),
        ("nice-user", Some("600"), Some(600)),
        ("physics", None, None),
    ] {
        let mut world = World::new();
        world.group(group, 8.0);
        world.submit("sweep", "alice", 1, |job| {
            job.group = Some(group.to_owned());
            let said = attribute.map(|text: &str| ("MaxJobRetirementTime".to_owned(), text.to_owned()));
            job.attributes.extend(said);
        });
        world.settle();
        let ad = &world.pool.jobs().values().next().unwrap().spec.as_ref().unwrap().ad;
        let env = classad::Env::at(0);
        assert_eq!(ad.eval_attr("MaxJobRetirementTime", None, &env).as_int(), left, "{group} {attribute:?}");
    }
}
