//! Claim leases: what becomes of claims on a node that is silent.

use super::world::World;
use crate::pool::{Event, MachineFacts, Renewal, Taint};

/// A node with one job that runs for a day under a lease of 600 s. The node's kubelet renews its Lease.
fn world(fences: Option<bool>) -> World {
    begun(World::new(), fences)
}

fn begun(mut world: World, fences: Option<bool>) -> World {
    world.node("n1", 1, 0);
    world.fate = |name| (if name.starts_with("long") { 86_400 } else { 30 }, 0);
    if let Some(fences) = fences {
        world.agents.insert("n1".to_owned(), Renewal { version: "0".into(), fences });
    }
    world.submit("long", "alice", 1, |job| {
        job.attributes.insert("JobLeaseDuration".to_owned(), "600".to_owned());
    });
    listen(&mut world, 30);
    assert_eq!(stands(&world), "Claimed/Busy");
    world.numbers.clear();
    world
}

/// Lets time pass, in which nodes renew their Leases every ten seconds.
fn listen(world: &mut World, seconds: u64) {
    for _ in 0..seconds / 10 {
        world.renew();
        world.pass(10);
    }
}

fn stands(world: &World) -> String {
    match world.pool.slots().values().next() {
        Some(slot) => format!("{}/{}", slot.state().state(), slot.state().activity()),
        None => "none".to_owned(),
    }
}

fn told(world: &World, what: &str) -> usize {
    world.log.iter().filter(|line| line.starts_with(what)).count()
}

/// Whether the only proc of the job is idle.
fn is_idle(world: &World) -> bool {
    world.pool.jobs().values().next().unwrap().idle.contains(0)
}

fn node(world: &World) -> MachineFacts {
    world.machines["n1"].clone()
}

fn taint(world: &mut World, ready: bool) {
    let taint = Taint {
        key: "node.kubernetes.io/out-of-service".to_owned(),
        value: "nodeshutdown".to_owned(),
        effect: "NoExecute".to_owned(),
    };
    let facts = MachineFacts { ready, taints: vec![taint], ..node(world) };
    world.set_node(facts);
}

#[test]
fn a_claim_is_kept_for_its_lease_and_killed_after() {
    let mut world = world(None);
    world.cut.insert("n1".to_owned());
    listen(&mut world, 580);
    assert_eq!((stands(&world).as_str(), world.numbers.len()), ("Claimed/Busy", 0), "it may be back in time");
    listen(&mut world, 20);
    assert_eq!(stands(&world), "Preempting/Killing", "at once, without retirement and vacating");
    assert_eq!(world.numbers, [13, 18]);
    let slot = world.pool.slots().values().next().unwrap();
    assert_eq!(
        &*slot.phase().last().unwrap().why,
        "the claim's lease has expired: nothing was heard of the node"
    );
    assert_eq!(world.graces, [Some(1)]);
}

#[test]
fn a_node_that_is_back_in_time_keeps_its_claims() {
    let mut world = world(None);
    for _ in 0..3 {
        world.cut.insert("n1".to_owned());
        listen(&mut world, 550);
        world.reconnect("n1");
        listen(&mut world, 20);
    }
    assert_eq!((stands(&world).as_str(), world.numbers.len()), ("Claimed/Busy", 0));
}

#[test]
fn a_proc_of_which_nobody_is_certain_waits_for_its_node_and_people_are_told_once() {
    let mut world = world(None);
    world.cut.insert("n1".to_owned());
    listen(&mut world, 7200);
    assert_eq!(stands(&world), "Preempting/Killing");
    assert!(!is_idle(&world), "it may run yet");
    assert_eq!((told(&world, "NodeSilent"), told(&world, "KillingTimeout")), (1, 0), "{:?}", world.log);
    assert_eq!(world.graces, [Some(1)]);
    assert_eq!(world.pool.next_look(), None, "nothing is looked at because time passes");
    world.reconnect("n1");
    world.settle();
    assert_eq!((stands(&world).as_str(), is_idle(&world)), ("none", true));
}

#[test]
fn a_node_that_is_deleted_or_out_of_service_frees_its_procs() {
    let mut world = world(None);
    world.cut.insert("n1".to_owned());
    listen(&mut world, 900);
    taint(&mut world, true);
    world.settle();
    assert_eq!((stands(&world).as_str(), is_idle(&world)), ("none", true), "nothing was heard of it");
    assert_eq!(world.graces, [Some(1), Some(0)]);

    let mut world = self::world(None);
    world.cut.insert("n1".to_owned());
    taint(&mut world, false);
    listen(&mut world, 20);
    assert_eq!(stands(&world), "Claimed/Busy", "its kubelet was heard of just now");
    listen(&mut world, 20);
    assert_eq!((stands(&world).as_str(), is_idle(&world)), ("none", true), "the lease is not waited for");

    // For a node without a Lease, the condition Ready is the only sign.
    let mut world = self::world(None);
    world.cut.insert("n1".to_owned());
    world.pool.apply(Event::HeartbeatsEnded("n1".into()), world.now);
    taint(&mut world, true);
    world.settle();
    assert_eq!(stands(&world), "Claimed/Busy");
    taint(&mut world, false);
    world.settle();
    assert_eq!((stands(&world).as_str(), is_idle(&world)), ("none", true));

    let mut world = self::world(None);
    world.cut.insert("n1".to_owned());
    listen(&mut world, 900);
    world.pool.apply(Event::MachineGone("n1".into()), world.now);
    world.settle();
    assert_eq!((stands(&world).as_str(), is_idle(&world)), ("none", true));
}

#[test]
fn a_node_that_is_heard_of_is_in_service_whatever_its_taint_says() {
    let mut world = world(None);
    taint(&mut world, true);
    listen(&mut world, 60);
    assert_eq!((stands(&world).as_str(), world.graces.len()), ("Claimed/Busy", 0));
}

#[test]
fn an_agent_that_promised_to_has_ended_the_pod_after_lease_and_margin() {
    let mut world = world(Some(true));
    world.cut.insert("n1".to_owned());
    listen(&mut world, 610);
    assert_eq!((stands(&world).as_str(), is_idle(&world)), ("Preempting/Killing", false));
    assert_eq!(told(&world, "the Lease"), 0);
    listen(&mut world, 20);
    assert_eq!(told(&world, "the Lease"), 1, "it is read before the promise is believed");
    assert_eq!((stands(&world).as_str(), is_idle(&world)), ("none", true));
    assert_eq!((&world.graces[..], told(&world, "NodeSilent")), (&[Some(1), Some(0)][..], 0));
}

/// The node is cut off before its agent has learned of the pod.
#[test]
fn a_pod_that_the_agent_never_named_is_not_covered_by_its_promise() {
    let mut world = World::new();
    world.forgetful.insert("n1".to_owned());
    let mut world = begun(world, Some(true));
    world.cut.insert("n1".to_owned());
    listen(&mut world, 7200);
    assert_eq!((stands(&world).as_str(), is_idle(&world)), ("Preempting/Killing", false));
    assert_eq!((told(&world, "the Lease"), told(&world, "NodeSilent")), (0, 1), "people are told");
}

/// Another operator leads. Its first list shows the Leases as they are, which is a sign of life for a new leader.
fn another_leader(world: &mut World) {
    world.restart();
    let renewal = world.agents["n1"].clone();
    let (machine, ttl) = (|| crate::pool::MachineName::from("n1"), std::time::Duration::from_secs(40));
    world.pool.apply(Event::Heartbeat { machine: machine(), ttl }, world.now);
    world.pool.apply(Event::AgentHeartbeat { machine: machine(), ttl, renewal }, world.now);
}

/// The report is all from which a new leader knows what the agent has named.
#[test]
fn what_a_report_named_is_covered_for_a_new_leader_once_it_sees_the_report() {
    let mut world = world(Some(true));
    let report = world.reports.remove("n1").unwrap();
    world.cut.insert("n1".to_owned());
    listen(&mut world, 590);
    another_leader(&mut world);
    listen(&mut world, 700);
    assert_eq!((stands(&world).as_str(), is_idle(&world)), ("Preempting/Killing", false));
    // The watch on reports was late. For all the new leader knows, the agent is back, and has just named the pod.
    world.pool.apply(Event::Report(report), world.now);
    listen(&mut world, 20);
    assert_eq!((told(&world, "the Lease"), is_idle(&world)), (0, false));
    listen(&mut world, 20);
    assert_eq!((told(&world, "the Lease"), is_idle(&world)), (1, true));
}

#[test]
fn an_agent_that_renewed_unseen_is_waited_for_again() {
    let mut world = world(Some(true));
    world.cut.insert("n1".to_owned());
    listen(&mut world, 500);
    // No watch shows the renewal.
    world.agents.insert("n1".to_owned(), Renewal { version: "unseen".into(), fences: true });
    listen(&mut world, 130);
    assert_eq!((told(&world, "the Lease"), is_idle(&world)), (1, false));
    listen(&mut world, 610);
    assert_eq!((told(&world, "the Lease"), is_idle(&world)), (1, false));
    listen(&mut world, 20);
    assert_eq!((told(&world, "the Lease"), is_idle(&world)), (2, true));
}

#[test]
fn an_agent_that_promised_nothing_is_not_counted_on() {
    for fences in [Some(false), None] {
        let mut world = world(fences);
        world.cut.insert("n1".to_owned());
        listen(&mut world, 7200);
        assert_eq!((stands(&world).as_str(), told(&world, "the Lease")), ("Preempting/Killing", 0));
    }
    // If the agent is uninstalled, its promise ends.
    let mut world = world(Some(true));
    world.cut.insert("n1".to_owned());
    world.agents.clear();
    listen(&mut world, 7200);
    assert_eq!((stands(&world).as_str(), told(&world, "the Lease")), ("Preempting/Killing", 1));
}

#[test]
fn a_new_leader_counts_anew() {
    let mut world = world(Some(true));
    world.cut.insert("n1".to_owned());
    listen(&mut world, 590);
    another_leader(&mut world);
    listen(&mut world, 590);
    assert_eq!(stands(&world), "Claimed/Busy");
    listen(&mut world, 30);
    assert_eq!((stands(&world).as_str(), is_idle(&world)), ("Preempting/Killing", false));
    listen(&mut world, 20);
    assert!(is_idle(&world));
}

#[test]
fn a_job_that_is_removed_waits_for_certainty_too() {
    let mut world = world(None);
    world.cut.insert("n1".to_owned());
    world.remove("long");
    listen(&mut world, 580);
    assert_eq!(stands(&world), "Claimed/Busy");
    listen(&mut world, 20);
    assert_eq!(stands(&world), "Preempting/Killing");
    taint(&mut world, true);
    world.settle();
    assert_eq!((stands(&world).as_str(), world.jobs.len()), ("none", 0));
}

#[test]
fn a_node_whose_agent_would_end_them_takes_no_more_jobs() {
    let mut world = world(Some(true));
    world.node("n1", 2, 0);
    let reason = |world: &World| world.pool.machines()[&"n1".into()].offer.reason();
    // The agent is cut off, but the kubelet is not.
    let agent = world.agents.remove("n1").unwrap();
    listen(&mut world, 60);
    assert_eq!(reason(&world), "AgentSilent");
    world.agents.insert("n1".to_owned(), agent);
    listen(&mut world, 10);
    assert_eq!(reason(&world), "Offered");
}
