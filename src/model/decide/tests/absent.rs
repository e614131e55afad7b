//! Absent machines, each a short story. Source: the manual's "Absent ClassAds".

use super::world::World;
use crate::kit;
use crate::pool::{AbsentMachine, Document, Event, Time};
use crate::startd::config::understand;
use classad::{Ad, Env};

/// A pool of one node under this policy.
fn pool(text: &str) -> World {
    let mut world = World::new();
    let understood = understand(text);
    assert!(understood.remarks.is_empty(), "{:?}", understood.remarks);
    let mut config = crate::pool::StartdConfig::default();
    understood.config.unwrap().put_into(&mut config);
    world.govern(config, text);
    world.node("n1", 4, 0);
    world.settle();
    world
}

/// The node's kubelet reports that the node is not ready.
fn break_down(world: &mut World) {
    let mut facts = world.machines["n1"].clone();
    facts.ready = false;
    world.set_node(facts);
    world.settle();
}

fn delete(world: &mut World) {
    world.machines.remove("n1");
    world.pool.apply(Event::MachineGone("n1".into()), world.now);
    world.settle();
}

fn absent(world: &World) -> Option<AbsentMachine> {
    world.pool.absent(&"n1".into()).cloned()
}

/// The slots of the absent machine.
fn slots(world: &World) -> Vec<String> {
    absent(world).into_iter().flat_map(|machine| machine.slots).map(|(name, _)| name.to_string()).collect()
}

#[test]
fn a_machine_is_absent_if_it_was_out_of_order_when_its_node_went_and_the_requirements_hold() {
    for (text, ready, slots_then) in [
        ("START = True\n", false, &[][..]),
        ("ABSENT_REQUIREMENTS = True\n", false, &["slot1@n1"]),
        ("ABSENT_REQUIREMENTS = True\n", true, &[]),
        ("ABSENT_REQUIREMENTS = True\nEXPIRE_INVALIDATED_ADS = True\n", true, &["slot1@n1"]),
        ("EXPIRE_INVALIDATED_ADS = True\n", true, &[]),
        ("ABSENT_REQUIREMENTS = Machine == \"n1\" && TotalCpus > 2\n", false, &["slot1@n1"]),
        ("ABSENT_REQUIREMENTS = TotalCpus > 4\n", false, &[]),
        ("ABSENT_REQUIREMENTS = NoSuchAttribute\n", false, &[]),
        ("ABSENT_REQUIREMENTS = SlotID == 2\nNUM_SLOTS = 2\n", false, &["slot2@n1"]),
    ] {
        let mut world = pool(text);
        if !ready {
            break_down(&mut world);
        }
        assert_eq!(absent(&world), None, "{text}: the node is still there");
        delete(&mut world);
        assert_eq!(slots(&world), slots_then, "{text}");
        assert!(world.pool.machines().is_empty(), "{text}: nothing is matched to an absent machine");
    }
}

#[test]
fn a_machine_whose_kubelet_was_silent_is_absent() {
    let mut world = pool("ABSENT_REQUIREMENTS = True\n");
    let ttl = std::time::Duration::from_secs(40);
    world.pool.apply(Event::Heartbeat { machine: "n1".into(), ttl }, world.now);
    world.cut.insert("n1".to_owned());
    world.pass(60);
    delete(&mut world);
    assert_eq!(slots(&world), ["slot1@n1"]);
}

#[test]
fn the_last_ad_says_since_when_and_for_how_long() {
    let mut world = pool("ABSENT_REQUIREMENTS = True\nABSENT_EXPIRE_ADS_AFTER = 600\n");
    break_down(&mut world);
    delete(&mut world);
    let machine = absent(&world).unwrap();
    let ad = Ad::parse_long(&machine.slots[0].1).unwrap();
    let says = |attribute: &str| ad.eval_attr(attribute, None, &Env::at(0)).to_string();
    let since = machine.since.secs().to_string();
    for (attribute, value) in [
        ("Name", "\"slot1@n1\""),
        ("Machine", "\"n1\""),
        ("TotalCpus", "4"),
        ("Absent", "true"),
        ("ClassAdLifetime", "600"),
        ("LastHeardFrom", &since),
    ] {
        assert_eq!(says(attribute), value, "{attribute}");
    }
}

/// An object of Kubernetes has room for about 1.5 MB.
#[test]
fn ads_are_kept_as_far_as_an_object_has_room() {
    let mut world = pool("ABSENT_REQUIREMENTS = True\nNUM_SLOTS = 1000\n");
    let facts = kit::machine("n1", 1000, 1000);
    world.set_node(facts);
    world.settle();
    break_down(&mut world);
    delete(&mut world);
    let machine = absent(&world).unwrap();
    let bytes: usize = machine.slots.iter().map(|(_, ad)| ad.len()).sum();
    assert!((10..1000).contains(&machine.slots.len()), "{}", machine.slots.len());
    assert!(bytes <= 1 << 20, "{bytes}");
}

#[test]
fn a_machine_is_forgotten_in_time_or_never() {
    for (text, seconds) in [
        ("ABSENT_EXPIRE_ADS_AFTER = 600\n", Some(600)),
        ("", Some(30 * 24 * 60 * 60)),
        ("ABSENT_EXPIRE_ADS_AFTER = 0\n", None),
    ] {
        let mut world = pool(&format!("ABSENT_REQUIREMENTS = True\n{text}"));
        break_down(&mut world);
        delete(&mut world);
        let machine = absent(&world).unwrap();
        let until = seconds.map(|seconds| Time::from_secs(machine.since.secs() + seconds));
        assert_eq!(machine.until, until, "{text}");
        assert_eq!(world.pool.next_look().is_some(), until.is_some(), "{text}");
        let Some(until) = until else { continue };
        world.pool.wake(Time::from_millis(until.millis() - 1));
        assert!(absent(&world).is_some(), "{text}");
        world.pool.wake(until);
        assert_eq!(absent(&world), None, "{text}");
        assert!(world.pool.take_statuses().contains(&Document::AbsentMachine("n1".into())), "{text}");
    }
}

#[test]
fn a_machine_that_is_back_is_absent_no_longer() {
    let mut world = pool("ABSENT_REQUIREMENTS = True\n");
    break_down(&mut world);
    delete(&mut world);
    world.node("n1", 4, 0);
    world.settle();
    assert_eq!(absent(&world), None);
    // Who leads next sees the object before the operator has deleted it.
    let seen = AbsentMachine { name: "n1".into(), since: world.now, until: None, slots: Vec::new() };
    world.pool.apply(Event::Absent(seen), world.now);
    assert_eq!(absent(&world), None);
    assert!(world.pool.take_statuses().contains(&Document::AbsentMachine("n1".into())));
}

#[test]
fn whoever_leads_next_learns_which_machines_are_absent() {
    let mut world = pool("ABSENT_REQUIREMENTS = True\n");
    break_down(&mut world);
    delete(&mut world);
    let machine = absent(&world).unwrap();
    for back in [false, true] {
        let mut next = crate::pool::Pool::default();
        next.apply(Event::Absent(machine.clone()), world.now);
        if back {
            next.apply(Event::Machine(kit::machine("n1", 4, 8)), world.now);
        }
        next.apply(Event::Synced, world.now);
        assert_eq!(next.absent(&"n1".into()), (!back).then_some(&machine));
    }
}

#[test]
fn a_machine_is_forgotten_when_somebody_deletes_its_object() {
    let mut world = pool("ABSENT_REQUIREMENTS = True\n");
    break_down(&mut world);
    delete(&mut world);
    let since = absent(&world).unwrap().since;
    let earlier = Time::from_secs(since.secs() - 100);
    let gone = |since| Event::AbsentGone { machine: "n1".into(), since };
    // The object of an earlier absence goes: the operator had deleted that one.
    world.pool.apply(gone(earlier), world.now);
    assert!(absent(&world).is_some());
    world.pool.apply(gone(since), world.now);
    assert_eq!(absent(&world), None);
}
