//! "Running Multiple Negotiators in One Pool": each negotiator has slots of its own, and does its own accounting.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::world::World;
use crate::decide::overlap_message;
use crate::kit;
use crate::negotiator::Config;
use crate::pool::accountant::Correction;
use crate::pool::{
    Event, GoverningFacts, Matchable, NegotiatorConfig, NegotiatorId, Problem, Quota, SubmitterFacts,
};
use classad::Expr;

const DAY: i64 = 86_400;

fn id(name: &str) -> NegotiatorId {
    NegotiatorId::from(Some(name))
}

fn facts(name: &str, config: Result<Config, Vec<Problem>>) -> GoverningFacts<NegotiatorConfig> {
    GoverningFacts {
        name: name.into(),
        uid: name.into(),
        generation: 1,
        selection: (),
        spec: format!("{config:?}").into(),
        config: config.map(|config| NegotiatorConfig::from(config).into()),
        warnings: None,
        recorded: None,
    }
}

fn add_with(world: &mut World, name: &str, constraint: &str, config: Config) {
    let config = Config { slot_constraint: Some(Expr::parse(constraint).unwrap()), ..config };
    world.sees(Event::Negotiator(facts(name, Ok(config))));
}

fn add(world: &mut World, name: &str, constraint: &str) {
    add_with(world, name, constraint, Config::default());
}

fn remove(world: &mut World, name: &str) {
    world.sees(Event::NegotiatorGone(name.into()));
}

/// Nodes of four cores, and negotiators given by name and constraint.
fn world(nodes: &[&str], negotiators: &[(&str, &str)]) -> World {
    let mut world = World::new();
    for node in nodes {
        world.node(node, 4, 0);
    }
    for (name, constraint) in negotiators {
        add(&mut world, name, constraint);
    }
    world
}

/// Two negotiators that share two nodes.
fn two() -> World {
    world(&["n1", "n2"], &[("cpu", "Machine == \"n1\""), ("gpu", "Machine == \"n2\"")])
}

fn alice(ceiling: Option<f64>) -> SubmitterFacts {
    SubmitterFacts { ceiling, ..kit::submitter("alice") }
}

fn submit_on(world: &mut World, name: &str, owner: &str, count: i64, machine: &str) {
    let requirements = Some(format!("Machine == \"{machine}\""));
    world.submit(name, owner, count, |job| job.requirements = requirements);
}

/// Claims by node, negotiator and submitter.
fn claims(world: &World) -> BTreeMap<(String, String, String), usize> {
    let mut claims = BTreeMap::new();
    for slot in world.pool.slots().values() {
        let negotiator = slot.claim().negotiator.name().map(ToString::to_string).unwrap_or_default();
        let key = (slot.name().machine.to_string(), negotiator, slot.claim().submitter.to_string());
        *claims.entry(key).or_default() += 1;
    }
    claims
}

fn claim(
    machine: &str,
    negotiator: &str,
    submitter: &str,
    count: usize,
) -> ((String, String, String), usize) {
    ((machine.to_owned(), negotiator.to_owned(), submitter.to_owned()), count)
}

/// Real priority and number of slots in use of a submitter with a negotiator.
fn account(world: &World, submitter: &str, negotiator: &NegotiatorId) -> (f64, u64) {
    let submitter = &world.pool.submitters()[&submitter.into()];
    let account = submitter.account_with(negotiator);
    (account.at(world.now.millis(), world.pool.halflife_of(negotiator)).real_priority, account.resources_used)
}

#[test]
fn each_matches_slots_of_its_own() {
    let mut world = two();
    world.submit("sweep", "alice", 20, |_| ());
    world.settle();
    let expected = [claim("n1", "cpu", "alice", 4), claim("n2", "gpu", "alice", 4)];
    assert_eq!(claims(&world), expected.into());
    for name in ["cpu", "gpu"] {
        let turn = world.pool.schedule().turn(&id(name));
        let last = turn.last.unwrap();
        assert_eq!((turn.cycles, last.matches, last.slots), (1, 4, 1), "{name}");
    }
    assert_eq!(world.pool.schedule().cycles, 2);
    let of = |id: &str| overlap_message(&NegotiatorId::from(Some(id)), world.pool.sharing());
    assert_eq!((of("cpu"), of("gpu"), world.pool.sharing().uncovered.count), (None, None, 0));
}

/// "Let's say you have some GPU machines and non-GPU machines, and you want usage of the non-GPU machine to not 'count' against
/// the fair-share usage of GPU machines."
#[test]
fn usage_counts_with_the_negotiator_whose_slots_it_is_of() {
    let shares = |mut world: World| {
        world.fate = |_| (10 * DAY.unsigned_abs(), 0);
        submit_on(&mut world, "old", "alice", 4, "n1");
        world.settle();
        world.now = crate::pool::Time::from_secs(world.now.secs() + DAY);
        submit_on(&mut world, "a", "alice", 4, "n2");
        submit_on(&mut world, "b", "bob", 4, "n2");
        world.settle();
        let on_n2 = |owner: &str| {
            let own = claims(&world).into_iter();
            own.filter(|((node, _, user), _)| node == "n2" && user == owner).map(|(_, count)| count).sum()
        };
        let found: [usize; 2] = [on_n2("alice"), on_n2("bob")];
        (found, world)
    };
    let (alone, _) = shares(world(&["n1", "n2"], &[("all", "true")]));
    assert_eq!(alone, [0, 4], "alice has had her share elsewhere");
    let (apart, world) = shares(two());
    assert_eq!(apart, [2, 2], "what she has of the other's slots does not count");
    assert_eq!(account(&world, "alice", &id("cpu")), (2.25, 4));
    assert_eq!(account(&world, "alice", &id("gpu")), (0.5, 2));
    assert_eq!(account(&world, "bob", &id("cpu")), (0.5, 0));
}

#[test]
fn slots_that_several_take_are_told_of_and_the_first_by_name_has_them() {
    let mut world =
        world(&["n1", "n2", "n3"], &[("b", "Machine != \"n3\""), ("a", "Machine == \"n2\""), ("c", "false")]);
    world.submit("sweep", "alice", 20, |_| ());
    world.settle();
    assert_eq!(claims(&world), [claim("n1", "b", "alice", 4), claim("n2", "a", "alice", 4)].into());
    let of = |id: &str| overlap_message(&NegotiatorId::from(Some(id)), world.pool.sharing());
    let end = "if several Negotiators take a slot, the first by name matches it: let the constraints exclude each other";
    let says = |other: &str| {
        let first = format!("NEGOTIATOR_SLOT_CONSTRAINT of {other} takes 1 of these slots, too (slot1@n2)");
        Some(format!("{first}; {end}"))
    };
    assert_eq!((of("a"), of("b"), of("c")), (says("b"), says("a"), None));
    let uncovered = &world.pool.sharing().uncovered;
    assert_eq!(
        (uncovered.count, uncovered.example.as_ref().map(ToString::to_string)),
        (1, Some("slot1@n3".to_owned()))
    );
}

#[test]
fn overlaps_are_told_though_nothing_waits_and_no_more_once_they_are_gone() {
    let mut world = world(&["n1"], &[("a", "true"), ("b", "Cpus >= 4")]);
    let told = |world: &World| {
        let of = |text: &&String| text.contains("SlotsShared: NEGOTIATOR_SLOT_CONSTRAINT of");
        world.log.iter().filter(of).count()
    };
    world.settle();
    assert_eq!((world.pool.sharing().overlaps.len(), told(&world), world.pool.schedule().cycles), (1, 2, 0));
    add(&mut world, "b", "Cpus > 4");
    world.settle();
    assert_eq!((world.pool.sharing().overlaps.len(), told(&world)), (0, 2));
}

#[test]
fn what_never_was_valid_takes_no_slots_from_others() {
    let wrong =
        || Err(vec![Problem { reason: "Wrong", field: "spec".to_owned(), message: "wrong".to_owned() }]);
    let mut world = world(&["n1"], &[("b", "true")]);
    world.sees(Event::Negotiator(facts("a", wrong())));
    world.submit("job", "alice", 1, |_| ());
    world.settle();
    assert_eq!(claims(&world), [claim("n1", "b", "alice", 1)].into());
    assert!(world.pool.sharing().overlaps.is_empty());
    // A negotiator that is alone works with HTCondor's defaults.
    remove(&mut world, "b");
    world.submit("more", "alice", 1, |_| ());
    world.pass(60);
    assert_eq!(world.pool.at_work()[0].id, id("a"));
    assert!(world.pool.slots().values().all(|slot| slot.claim().negotiator == id("a")));
}

/// A claim counts against its group's quota even if the claim's negotiator is no longer at work. Chaos found that
/// such claims counted against no quota.
#[test]
fn quotas_count_what_one_used_that_is_at_work_no_more() {
    let wrong = vec![Problem { reason: "Wrong", field: "spec".to_owned(), message: "wrong".to_owned() }];
    let mut world = world(&["n1"], &[]);
    world.fate = |_| (10 * DAY.unsigned_abs(), 0);
    world.group("physics", 2.0);
    world.sees(Event::Negotiator(facts("a", Err(wrong))));
    world.submit("sweep", "alice", 4, |job| job.group = Some("physics".to_owned()));
    world.settle();
    assert_eq!(claims(&world), [claim("n1", "a", "physics.alice", 2)].into());
    add(&mut world, "b", "true");
    world.pass(100);
    assert_eq!(world.pool.slots().len(), 2);
    assert_eq!(account(&world, "physics.alice", &id("b")).1, 2);
}

#[test]
fn the_claims_of_one_that_is_deleted_count_with_the_first_by_name_and_its_account_stays() {
    let mut world = two();
    world.fate = |_| (10 * DAY.unsigned_abs(), 0);
    world.submit("sweep", "alice", 8, |_| ());
    world.settle();
    world.now = crate::pool::Time::from_secs(world.now.secs() + DAY);
    assert_eq!(account(&world, "alice", &id("gpu")), (2.25, 4));
    remove(&mut world, "gpu");
    world.settle();
    assert_eq!(account(&world, "alice", &id("cpu")), (2.25, 8));
    assert_eq!(account(&world, "alice", &id("gpu")), (2.25, 0), "what it knows of the past");
    add(&mut world, "gpu", "Machine == \"n2\"");
    world.settle();
    assert_eq!(account(&world, "alice", &id("cpu")), (2.25, 4));
    assert_eq!(account(&world, "alice", &id("gpu")), (2.25, 4));
}

/// HTCondor's accountant removes a record only if its accumulated usage is 0, too: totals do not decay, and the account with a
/// negotiator that is gone is all that knows of them.
#[test]
fn totals_outlast_the_negotiator_though_all_usage_has_decayed() {
    let mut world = two();
    submit_on(&mut world, "sweep", "alice", 4, "n2");
    world.settle();
    world.pass(DAY.unsigned_abs());
    world.now = crate::pool::Time::from_secs(world.now.secs() + 90 * DAY);
    let total =
        |world: &World| world.pool.submitters()[&"alice".into()].accounts.weighted_usage_at(world.now);
    let before = total(&world);
    assert!(before > 0.0);
    assert_eq!(account(&world, "alice", &id("gpu")), (0.5, 0));
    remove(&mut world, "gpu");
    add(&mut world, "other", "Machine == \"n2\"");
    world.settle();
    assert_eq!(total(&world).to_bits(), before.to_bits());
    assert!(world.pool.submitters()[&"alice".into()].accounts.of(&id("gpu")).is_some());
}

/// An account that says nothing is dropped with its negotiator.
#[test]
fn an_empty_account_goes_with_its_negotiator() {
    let mut world = two();
    world.sees(Event::Submitter(SubmitterFacts {
        correction: Some(Correction {
            id: "a".into(),
            real_priority: Some(9.0),
            accumulated_usage: None,
            weighted_accumulated_usage: None,
            begin_usage_time: None,
            last_usage_time: None,
            negotiator: Some("gpu".into()),
        }),
        ..kit::submitter("alice")
    }));
    world.settle();
    remove(&mut world, "gpu");
    world.settle();
    let kept = |world: &World| world.pool.submitters()[&"alice".into()].accounts.of(&id("gpu")).is_some();
    assert!(kept(&world), "its priority has not decayed");
    world.now = crate::pool::Time::from_secs(world.now.secs() + 90 * DAY);
    add(&mut world, "other", "Machine == \"n2\"");
    world.settle();
    assert!(!kept(&world));
}

#[test]
fn a_restart_keeps_the_accounts_with_all() {
    let mut world = two();
    world.fate = |_| (10 * DAY.unsigned_abs(), 0);
    submit_on(&mut world, "a", "alice", 3, "n1");
    submit_on(&mut world, "b", "alice", 1, "n2");
    world.settle();
    for _ in 0..2 {
        world.now = crate::pool::Time::from_secs(world.now.secs() + DAY);
        let accounts = |world: &World| ["cpu", "gpu"].map(|name| account(world, "alice", &id(name)));
        let before = accounts(&world);
        world.restart();
        world.settle();
        assert_eq!(accounts(&world), before);
        let used = |name: &str| world.pool.submitters()[&"alice".into()].accounts.used_with(&id(name));
        assert_eq!((used("cpu"), used("gpu")), (3.0, 1.0));
    }
}

/// If one negotiator replaces another, or there is none for a while, there is one account: usage is not forgotten
/// because an object has a new name.
#[test]
fn the_only_negotiator_goes_on_with_the_account_of_the_one_before() {
    let mut world = world(&["n1"], &[]);
    world.fate = |_| (10 * DAY.unsigned_abs(), 0);
    world.submit("sweep", "alice", 4, |_| ());
    world.settle();
    world.now = crate::pool::Time::from_secs(world.now.secs() + DAY);
    let unnamed = NegotiatorId::Unnamed;
    assert_eq!(account(&world, "alice", &unnamed), (2.25, 4));
    add(&mut world, "x", "true");
    world.settle();
    assert_eq!(
        (account(&world, "alice", &id("x")), account(&world, "alice", &unnamed)),
        ((2.25, 4), (0.5, 0))
    );
    world.restart();
    world.settle();
    assert_eq!(account(&world, "alice", &id("x")), (2.25, 4));
    remove(&mut world, "x");
    world.settle();
    assert_eq!(account(&world, "alice", &unnamed), (2.25, 4));
    add(&mut world, "y", "true");
    world.settle();
    assert_eq!(account(&world, "alice", &id("y")), (2.25, 4));
    let accounts = &world.pool.submitters()[&"alice".into()].accounts;
    assert_eq!(accounts.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), [id("y")]);
}

#[test]
fn each_has_cycles_of_its_own() {
    let mut world = World::new();
    world.node("n1", 4, 0);
    for (name, constraint, interval) in [("often", "Machine == \"n1\"", 60), ("seldom", "false", 600)] {
        let interval = std::time::Duration::from_secs(interval);
        add_with(&mut world, name, constraint, Config { interval, ..Config::default() });
    }
    world.submit("never", "alice", 1, |job| job.requirements = Some("false".to_owned()));
    world.pass(1205);
    let cycles = |name: &str| world.pool.schedule().turn(&id(name)).cycles;
    assert_eq!((cycles("often"), cycles("seldom")), (21, 3));
    assert!(world.pool.jobs().values().all(|job| matches!(job.matchable, Matchable::No(_))));
}

/// `condor_userprio -name`.
#[test]
fn a_correction_is_of_the_account_with_the_negotiator_that_it_names() {
    let mut world = two();
    let mut correct = |id: &str, negotiator: Option<&str>| {
        let correction = Correction {
            id: id.into(),
            negotiator: negotiator.map(Into::into),
            real_priority: Some(9.0),
            accumulated_usage: None,
            weighted_accumulated_usage: None,
            begin_usage_time: None,
            last_usage_time: None,
        };
        let facts = SubmitterFacts { correction: Some(correction), ..alice(None) };
        world.sees(Event::Submitter(facts));
        let priorities = ["cpu", "gpu"].map(|name| account(&world, "alice", &super::several::id(name)).0);
        (priorities, world.pool.submitters()[&"alice".into()].problems.len())
    };
    assert_eq!(correct("1", Some("typo")), ([0.5, 0.5], 1));
    assert_eq!(correct("1", Some("gpu")), ([0.5, 9.0], 0));
    assert_eq!(correct("2", None), ([9.0, 9.0], 0));
}

/// A ceiling limits all that a submitter holds, whichever negotiator's slots it holds.
#[test]
fn ceilings_are_of_the_whole_pool() {
    let mut world = two();
    world.sees(Event::Submitter(alice(Some(5.0))));
    world.submit("sweep", "alice", 20, |_| ());
    world.settle();
    assert_eq!(world.pool.slots().len(), 5);
}

/// A submitter that has its floor with one negotiator has no floor left with the other.
#[test]
fn floors_are_of_the_whole_pool() {
    let on_n2 = |floor: f64| {
        let mut world = two();
        world.fate = |_| (10 * DAY.unsigned_abs(), 0);
        world.sees(Event::Submitter(SubmitterFacts { floor: Some(floor), ..alice(None) }));
        submit_on(&mut world, "have", "alice", 4, "n1");
        world.settle();
        submit_on(&mut world, "a", "alice", 4, "n2");
        submit_on(&mut world, "b", "bob", 4, "n2");
        world.settle();
        claims(&world).get(&claim("n2", "gpu", "alice", 0).0).copied()
    };
    assert_eq!([0.0, 4.0, 7.0].map(on_n2), [Some(2), Some(2), Some(3)]);
}

/// A static quota is an amount of the whole pool; a dynamic quota is a share of each negotiator's slots; a dynamic
/// quota inside a static one is a share of that.
#[test]
fn quotas_hold_in_the_whole_pool() {
    for (quotas, group, expected) in [
        (&[("g", Quota::Static(5.0))][..], "g", [4, 1]),
        (&[("g", Quota::Dynamic(0.5))], "g", [2, 2]),
        (&[("g", Quota::Static(6.0)), ("g.i", Quota::Dynamic(0.5))], "g.i", [3, 0]),
        (&[("g", Quota::Dynamic(0.75)), ("g.i", Quota::Dynamic(0.34))], "g.i", [1, 1]),
        (&[("g", Quota::Dynamic(0.75)), ("g.i", Quota::Static(5.0))], "g.i", [3, 2]),
        (&[("g", Quota::Static(20.0))], "g", [4, 4]),
    ] {
        let mut world = two();
        world.fate = |_| (10 * DAY.unsigned_abs(), 0);
        for (name, quota) in quotas {
            world.group_with(name, 0.0, |group| group.quota = *quota);
        }
        world.submit("sweep", "alice", 20, |job| job.group = Some(group.to_owned()));
        world.pass(200);
        let claims = claims(&world);
        let on = |node: &str| claims.iter().filter(|((on, ..), _)| on == node).map(|(_, count)| *count).sum();
        let found: [usize; 2] = [on("n1"), on("n2")];
        assert_eq!(found, expected, "{quotas:?}");
    }
}

/// "Build a list of all the slots, subject to NEGOTIATOR_SLOT_CONSTRAINT": the pie is the weight of these slots.
#[test]
fn the_pie_is_of_the_negotiators_own_slots() {
    for (negotiators, weights) in [
        (&[("one", "Machine == \"n1\"")][..], &[4.0][..]),
        (&[("one", "Machine == \"n1\""), ("two", "true")], &[4.0, 8.0]),
        (&[("one", "true"), ("two", "true")], &[12.0, 0.0]),
    ] {
        let mut world = world(&["n1", "n2", "n3"], negotiators);
        world.settle();
        let weight = |world: &World| -> Vec<f64> {
            let env = classad::Env::at(0);
            world
                .pool
                .at_work()
                .iter()
                .map(|one| crate::decide::sharing::weight(&world.pool, one, &env))
                .collect()
        };
        assert_eq!(weight(&world), weights, "{negotiators:?}");
        world.submit("job", "alice", 3, |_| ());
        world.settle();
        assert_eq!(
            (world.pool.slots().len(), weight(&world)),
            (3, weights.to_vec()),
            "{negotiators:?}, claimed"
        );
    }
}

/// If several negotiators set the same limit, the smallest value counts.
#[test]
fn concurrency_limits_are_of_the_whole_pool() {
    let mut world = World::new();
    for (node, limit) in [("n1", 5.0), ("n2", 3.0)] {
        world.node(node, 4, 0);
        let config = Config { concurrency_limits: [("xsw".to_owned(), limit)].into(), ..Config::default() };
        add_with(&mut world, &format!("for-{node}"), &format!("Machine == \"{node}\""), config);
    }
    world.submit("sweep", "alice", 20, |job| job.limits = vec!["xsw".to_owned()]);
    world.pass(25);
    assert_eq!(world.pool.slots().len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With any constraints, each slot belongs to the first negotiator whose constraint takes it, or to none; and no
    /// proc is in two slots.
    #[test]
    fn a_slot_belongs_to_one_at_most(
        takes in prop::collection::vec(prop::collection::vec(any::<bool>(), 4), 2..5),
        procs in 0_i64..24,
        again in any::<bool>(),
    ) {
        let nodes = ["n1", "n2", "n3", "n4"];
        let mut world = world(&nodes, &[]);
        for (index, taken) in takes.iter().enumerate() {
            let parts: Vec<String> = nodes.iter().zip(taken).filter(|(_, takes)| **takes)
                .map(|(node, _)| format!("Machine == \"{node}\"")).collect();
            add(&mut world, &format!("neg{index}"), &format!("false || {}", [parts, vec!["false".to_owned()]].concat().join(" || ")));
        }
        world.submit("sweep", "alice", procs, |_| ());
        world.settle();
        if again {
            world.restart();
            world.pass(30);
        }
        let mut covered = 0_usize;
        for (place, node) in nodes.iter().enumerate() {
            let owner = takes.iter().position(|taken| taken[place]).map(|index| id(&format!("neg{index}")));
            covered += usize::from(owner.is_some());
            let slot = crate::pool::SlotName { machine: (*node).into(), slot: 1, dynamic: None };
            let having: Vec<NegotiatorId> = (0..takes.len()).map(|index| id(&format!("neg{index}")))
                .filter(|id| world.pool.sharing().has(id, &slot)).collect();
            prop_assert_eq!(having, owner.clone().into_iter().collect::<Vec<_>>());
            for claimed in world.pool.slots().values().filter(|slot| slot.name().machine.as_str() == *node) {
                prop_assert_eq!(Some(&claimed.claim().negotiator), owner.as_ref());
            }
            for first in 0..takes.len() {
                for second in first + 1..takes.len() {
                    let both = nodes.iter().enumerate().filter(|(at, _)| takes[first][*at] && takes[second][*at]).count();
                    let key = (id(&format!("neg{first}")), id(&format!("neg{second}")));
                    let told = world.pool.sharing().overlaps.get(&key).map_or(0, |slots| slots.count);
                    prop_assert_eq!(usize::try_from(told).unwrap(), both);
                }
            }
        }
        if !again {
            prop_assert_eq!(world.pool.slots().len(), usize::try_from(procs).unwrap().min(covered * 4));
        }
        let used: u64 = world.pool.submitters().values().map(|one| one.accounts.resources_used()).sum();
        prop_assert_eq!(usize::try_from(used).unwrap(), world.pool.slots().len());
    }
}
