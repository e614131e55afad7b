//! The cost of claims: NEGOTIATOR_USE_SLOT_WEIGHTS and NEGOTIATOR_DISCOUNT_SUSPENDED_RESOURCES, each a short story.

use super::governed::negotiate_by;
use super::world::World;
use crate::kit;
use crate::negotiator::Config;
use crate::pool::{Benchmarks, Event, LastInput, ReportFacts, Sensed, StartdConfig, Time};
use classad::{Env, Expr};

/// The slots and the weight that a submitter is charged for.
fn charged(world: &World, submitter: &str) -> (u64, f64) {
    let (_, submitter) = world.pool.submitters().iter().find(|(name, _)| name.as_str() == submitter).unwrap();
    (submitter.accounts.resources_used(), submitter.accounts.weighted_resources_used())
}

fn size_of_the_pool(world: &World) -> f64 {
    let all = world.pool.at_work();
    all.iter().map(|one| crate::decide::sharing::weight(&world.pool, one, &Env::at(0))).sum()
}

#[test]
fn without_weights_a_claim_costs_one() {
    for (use_slot_weights, costs, pool) in [(true, 6.0, 8.0), (false, 2.0, 4.0)] {
        let mut world = World::new();
        world.fate = |_| (3600, 0);
        for node in ["n1", "n2"] {
            world.node(node, 4, 0);
        }
        negotiate_by(&mut world, Config { use_slot_weights, ..Config::default() });
        world.submit("wide", "alice", 2, |job| job.request.cpus = 3);
        world.pass(60);
        assert_eq!(charged(&world, "alice"), (2, costs));
        // The pool's size counts the two claims, and what is left of the two machines.
        assert!((size_of_the_pool(&world) - pool).abs() < f64::EPSILON, "{}", size_of_the_pool(&world));
    }
}

/// The quota then counts slots, in whole numbers.
#[test]
fn without_weights_a_quota_counts_slots() {
    let mut world = World::new();
    world.fate = |_| (3600, 0);
    for node in ["n1", "n2"] {
        world.node(node, 8, 0);
    }
    negotiate_by(&mut world, Config { use_slot_weights: false, ..Config::default() });
    world.group("physics", 2.5);
    world.submit("wide", "alice", 5, |job| {
        job.group = Some("physics".to_owned());
        job.request.cpus = 3;
    });
    world.pass(300);
    assert_eq!(charged(&world, "physics.alice"), (2, 2.0));
}

/// The agent of the node reports, so that it can suspend jobs.
fn report(world: &mut World) {
    let nobody = LastInput::At(Time::from_secs(0));
    let report = ReportFacts {
        sensed: Some(Sensed { keyboard: nobody, console: nobody, owner_load: 0.0 }),
        suspended: world.still.clone(),
        benchmarks: Some(Benchmarks { mips: 1, kflops: 1, at: Time::from_secs(0) }),
        ..ReportFacts::of("n1".into())
    };
    world.pool.apply(Event::Report(report), world.now);
}

/// A node that suspends polite jobs and never continues them.
fn desktop() -> World {
    let mut world = World::new();
    world.fate = |_| (36_000, 0);
    world.node("n1", 2, 0);
    suspend_the_polite(&mut world);
    world
}

fn suspend_the_polite(world: &mut World) {
    let mut startd = StartdConfig::default();
    let text = "WANT_SUSPEND = true\nSUSPEND = TARGET.Polite =?= true\nCONTINUE = false\nPREEMPT = false\n";
    crate::startd::config::understand(text).config.unwrap().put_into(&mut startd);
    world.govern(startd, text);
    report(world);
}

fn suspended(world: &World) -> usize {
    let activity = |slot: &&crate::pool::Slot| slot.state().activity() == "Suspended";
    world.pool.slots().values().filter(activity).count()
}

#[test]
fn a_suspended_job_costs_nothing_as_long_as_it_stands_still() {
    let mut world = desktop();
    let discounts =
        |discount_suspended_resources| Config { discount_suspended_resources, ..Config::default() };
    negotiate_by(&mut world, discounts(true));
    world.submit("busy", "alice", 1, |_| ());
    world.submit("polite", "alice", 1, |job| {
        job.attributes.insert("Polite".to_owned(), "true".to_owned());
    });
    world.pass(120);
    assert_eq!(suspended(&world), 1);
    assert_eq!(charged(&world, "alice"), (1, 1.0), "the one that runs");
    // The knob is changed: from the next cycle on the claim costs again. Changed back, the claim costs nothing.
    world.submit("waits", "bob", 1, |_| ());
    negotiate_by(&mut world, discounts(false));
    world.pass(120);
    assert_eq!(charged(&world, "alice"), (2, 2.0));
    negotiate_by(&mut world, discounts(true));
    world.pass(120);
    assert_eq!(charged(&world, "alice"), (1, 1.0));
    // The usage is exact when the claims end, also after another operator has taken over.
    world.restart();
    negotiate_by(&mut world, discounts(true));
    suspend_the_polite(&mut world);
    world.pass(120);
    assert_eq!((suspended(&world), charged(&world, "alice")), (1, (1, 1.0)));
    for job in ["busy", "polite", "waits"] {
        world.remove(job);
    }
    world.pass(600);
    assert_eq!((world.pool.slots().len(), charged(&world, "alice")), (0, (0, 0.0)));
}

/// A job's status counts its suspended procs, also when they go on because their agent is gone: [`World::pass`] compares.
#[test]
fn a_jobs_status_follows_when_its_agent_is_gone() {
    let mut world = desktop();
    world.submit("polite", "alice", 2, |job| {
        job.attributes.insert("Polite".to_owned(), "true".to_owned());
    });
    world.pass(120);
    assert_eq!(suspended(&world), 2);
    world.pool.apply(Event::ReportGone("n1".into()), world.now);
    world.pass(10);
    assert_eq!(suspended(&world), 0);
}

/// A suspended claim that costs nothing counts against no ceiling: another proc may run meanwhile.
#[test]
fn what_stands_still_makes_room_below_a_ceiling() {
    for (discount_suspended_resources, running) in [(false, 1), (true, 2)] {
        let mut world = desktop();
        negotiate_by(&mut world, Config { discount_suspended_resources, ..Config::default() });
        let facts = crate::pool::SubmitterFacts { ceiling: Some(1.0), ..kit::submitter("alice") };
        world.sees(Event::Submitter(facts));
        world.submit("polite", "alice", 1, |job| {
            job.attributes.insert("Polite".to_owned(), "true".to_owned());
        });
        world.pass(60);
        assert_eq!(suspended(&world), 1);
        world.submit("next", "alice", 1, |_| ());
        world.pass(120);
        assert_eq!(world.pool.slots().len(), running, "{discount_suspended_resources}");
    }
}

/// NEGOTIATOR_DEPTH_FIRST on nodes, not only in the negotiator.
#[test]
fn depth_first_fills_one_node_before_the_next() {
    for (depth_first, nodes) in [(false, 2), (true, 1)] {
        let mut world = World::new();
        world.fate = |_| (3600, 0);
        for node in ["n1", "n2"] {
            world.node(node, 4, 0);
        }
        let pre_job_rank = Some(Expr::parse("MY.Cpus").unwrap());
        negotiate_by(&mut world, Config { pre_job_rank, depth_first, ..Config::default() });
        world.submit("narrow", "alice", 4, |_| ());
        world.pass(60);
        let used: std::collections::BTreeSet<_> =
            world.pool.slots().values().map(|slot| slot.name().machine.clone()).collect();
        assert_eq!((world.pool.slots().len(), used.len()), (4, nodes), "{depth_first}");
    }
}

/// `condor_userprio -delete`: a cluster with many short-lived namespaces must be rid of their accounts. Found by a reviewer, who could not
/// delete the Submitter of a namespace that was gone.
#[test]
fn a_deleted_submitter_without_jobs_is_forgotten_and_any_other_keeps_its_account() {
    let mut world = World::new();
    world.node("n1", 2, 0);
    world.fate = |_| (20, 0);
    world.submit("sweep", "alice", 1, |_| {});
    world.pass(10);
    let used = |world: &World| {
        let alice = world.pool.submitters().get(&"alice".into())?;
        Some((alice.accounts.resources_used(), alice.accounts.iter().count()))
    };
    world.pool.apply(Event::SubmitterGone("alice".into()), world.now);
    assert_eq!(used(&world), Some((1, 1)), "the proc runs");
    world.pass(60);
    world.pool.apply(Event::SubmitterGone("alice".into()), world.now);
    assert_eq!(used(&world), None, "the job is complete");
    world.submit("more", "alice", 1, |_| {});
    assert_eq!(used(&world), Some((0, 0)), "the submitter is new, and has no account yet");
}

/// A user writes one group after the other into a job. Found by a reviewer: each group left a Submitter for ever.
#[test]
fn a_submitter_that_nothing_needs_is_forgotten() {
    let names = |world: &World| {
        world.pool.submitters().keys().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
    };
    let mut world = World::new();
    world.submit("sweep", "alice", 1, |_| {});
    for group in ["a", "b", "c"] {
        world.edit("sweep", "alice", |submission| submission.group = Some(group.into()));
        world.pass(1);
        assert_eq!(
            names(&world),
            [format!("{group}.alice")],
            "the job waits, and no other submitter has a job"
        );
    }
    world.sees(Event::Submitter(crate::pool::SubmitterFacts { ceiling: Some(1.0), ..kit::submitter("bob") }));
    world.sees(Event::Submitter(kit::submitter("carol")));
    world.sees(Event::Submitter(crate::pool::SubmitterFacts { made: true, ..kit::submitter("dave") }));
    world.pass(1);
    assert_eq!(names(&world), ["bob", "c.alice", "carol"], "admins made the objects of bob and carol");
    world.edit("sweep", "alice", |submission| submission.group = None);
    world.node("n1", 1, 0);
    world.fate = |_| (20, 0);
    world.pass(60);
    world.remove("sweep");
    world.pass(10);
    assert_eq!(names(&world), ["alice", "bob", "carol"], "the job has used a slot");
}
