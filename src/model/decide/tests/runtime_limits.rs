//! Policies that read how long a job has run, by HTCondor's templates.

use super::policy::{stands, world};
use super::world::World;
use crate::startd::published_ad;
use classad::{Env, Value};

fn of_slot(world: &World, attribute: &str) -> Value {
    let slot = world.pool.slots().keys().next().unwrap();
    let ad = published_ad(&world.pool, slot, world.now).unwrap();
    ad.eval_attr(attribute, None, &Env::at(world.now.secs()))
}

#[test]
fn a_job_that_runs_too_long_is_held_and_keeps_its_retirement_until_then() {
    let mut world =
        world("MAXJOBRETIREMENTTIME = 7 * 24 * 3600\nuse POLICY : Hold_If_Runtime_Exceeds(3600)\n");
    world.pass(3000);
    assert_eq!(stands(&world), "Claimed/Busy");
    let left = of_slot(&world, "RetirementTimeRemaining").as_number().unwrap();
    assert!(left > 6.9 * 24.0 * 3600.0, "{left}");
    world.pass(700);
    let job = world.pool.jobs().values().next().unwrap();
    let hold = job.on_hold.values().next().expect("it is held");
    assert_eq!((hold.code, hold.subcode), (21, 103));
    assert_eq!(&*hold.reason, "runtime exceeded maximum (3600 seconds)");
    assert!(world.pods.is_empty());
}

#[test]
fn a_job_that_runs_too_long_is_vacated_by_preempt_if() {
    let mut world = world("use POLICY : Preempt_If_Runtime_Exceeds(600)\nMachineMaxVacateTime = 10\n");
    world.pass(500);
    assert_eq!((stands(&world).as_str(), world.numbers.as_slice()), ("Claimed/Busy", &[][..]));
    world.pass(200);
    assert_eq!(world.numbers[..2], [13, 18]);
}

/// A slot may publish what the schedd and the starter say about a running job, too.
#[test]
fn a_slot_shows_what_it_is_told_to_of_its_running_job() {
    let world = world("STARTD_JOB_ATTRS = JobCurrentStartDate JobState JobStatus\n");
    let started = world.pool.slots().values().next().unwrap().running().unwrap().started.unwrap().secs();
    assert_eq!(of_slot(&world, "JobCurrentStartDate"), Value::from(started));
    assert_eq!(of_slot(&world, "JobState"), Value::from("Running"));
    assert_eq!(of_slot(&world, "JobStatus"), Value::from(2));
}
