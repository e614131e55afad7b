//! Stories of nodes that are cut off, and of agents that have promised to end what runs there.

use super::plan::{Item, Order, Plan, Presence, What, When};
use super::regressions::{goes_well, job, story};
use super::rng::draw;
use super::run::run;

/// The number of the kind leases among those that operators watch.
const LEASES: u8 = 2;

/// Two nodes of one CPU, and a job of one proc that runs without end under a lease of 40 s. From 20 s on, the node on
/// which the proc runs is cut off for so many seconds.
fn cut_off(seed: u64, seconds: u8, items: Vec<(When, What)>) -> Plan {
    cut_off_at(20_000, seed, seconds, items)
}

/// The same, from another time on, in milliseconds.
fn cut_off_at(from: u32, seed: u64, seconds: u8, items: Vec<(When, What)>) -> Plan {
    let forever = Order { job: 4, ..job(1) };
    let start = vec![
        (When::At(0), What::NodeBack(1, 1)),
        (When::At(0), What::Agent(0, Presence::Works)),
        (When::At(0), What::Agent(1, Presence::Works)),
        (When::At(from), What::NodeCut(0, seconds)),
    ];
    let story = story(1, forever, start.into_iter().chain(items).collect());
    Plan { seed, ends: 210, ..story }
}

/// The nodes on which the proc was started, in this order, each with the second of the start.
fn started(plan: &Plan) -> Vec<(String, f64)> {
    let outcome = run(plan, true);
    assert_eq!(outcome.violation, None, "{}", super::story::tell(plan));
    let started = outcome.log.iter().filter_map(|line| {
        let (before, node) = line.split_once("the kubelet: forever-0 runs on ")?;
        Some((node.to_owned(), before.trim().parse().unwrap()))
    });
    started.collect()
}

/// Seeds in which the agent of the node that is cut off promises to end pods whose lease passes.
fn promises() -> impl Iterator<Item = u64> {
    (1..).filter(|seed| !draw("fences n0", *seed).is_multiple_of(4)).take(2)
}

#[test]
fn a_proc_on_a_node_that_is_cut_off_runs_elsewhere_once_its_agent_must_have_ended_it() {
    for seed in promises() {
        let started = started(&cut_off(seed, 150, vec![]));
        let nodes: Vec<&str> = started.iter().map(|(node, _)| node.as_str()).collect();
        assert_eq!(nodes, ["n0", "n1"], "seed {seed}");
        assert!(
            (85.0..160.0).contains(&started[1].1),
            "{started:?}: lease and margin, and before the node is back"
        );
    }
}

/// The node is cut off before the agent has told the operator that it knows of the pod: nobody may end it.
#[test]
fn a_proc_of_which_the_agent_has_not_told_waits_for_its_node() {
    for seed in promises() {
        let started = started(&cut_off_at(5000, seed, 150, vec![]));
        assert_eq!(
            started.first().map(|(node, at)| (node.as_str(), *at < 5.0)),
            Some(("n0", true)),
            "{started:?}"
        );
        assert!(started.len() < 2 || started[1].1 > 155.0, "seed {seed}: {started:?}");
    }
}

/// The node has two procs, and is cut off before its agent has told of the second. So the operator reads the agent's Lease for the
/// first. When the node is back, the agent tells of the second, which runs, and the operator may see that report before the
/// renewal of the Lease. Found by seed 80001630.
#[test]
fn a_proc_of_which_an_agent_tells_when_it_is_back_runs_on() {
    for seed in promises() {
        for lag in [0, 200, 1000, 5000] {
            let items = vec![
                (When::At(0), What::Agent(0, Presence::Works)),
                (When::At(17_500), What::NodeBack(0, 2)),
                (When::At(20_000), What::NodeCut(0, 130)),
                (When::At(145_000), What::Lag(LEASES, lag, 30)),
            ];
            goes_well(Plan { seed, ends: 210, ..story(1, Order { job: 4, ..job(2) }, items) });
        }
    }
}

#[test]
fn a_proc_on_a_node_that_is_cut_off_waits_without_a_promise() {
    for without in [Presence::TakenOff, Presence::CannotWork] {
        let items = vec![(When::At(9000), What::Agent(0, without)), (When::At(0), What::Agent(0, without))];
        let plan = cut_off(7, 150, items);
        let started = started(&plan);
        assert!(started.len() < 2 || started[1].1 > 170.0, "{started:?}");
    }
}

/// Only the wait keeps a proc from running twice: the node may be back, or its agent late, at any time.
#[test]
fn a_proc_never_runs_twice_however_long_its_node_is_cut_off() {
    for seed in promises() {
        for seconds in (35..150).step_by(13) {
            goes_well(cut_off(seed, seconds, vec![]));
        }
        for killed in [55_000, 70_000, 95_000] {
            goes_well(cut_off(seed, 150, vec![(When::At(killed), What::Kill(0))]));
        }
    }
}

#[test]
fn a_node_that_is_out_of_service_gives_its_procs_back() {
    let items = vec![(When::At(20_000), What::Taint(9, true))];
    let started = started(&Plan { items: items_of(items), ..cut_off(7, 1, vec![]) });
    assert_eq!(started.len(), 2, "{started:?}");
}

fn items_of(items: Vec<(When, What)>) -> Vec<Item> {
    let start = [
        (When::At(0), What::NodeBack(0, 1)),
        (When::At(0), What::NodeBack(1, 1)),
        (When::At(1200), What::Submit(Order { job: 4, ..job(1) })),
    ];
    start.into_iter().chain(items).map(|(when, what)| Item { when, what }).collect()
}

/// A node is cut off while its kubelet says that the program has ended, and has not said in which phase the pod is. Somebody
/// deletes the pod by force: whether the kubelet ended the program is never known. Found by seed 613012370.
#[test]
fn an_end_without_a_final_phase_need_not_count_after_a_deletion_by_force() {
    for cut in (9000..14_000).step_by(250) {
        let items = vec![
            (When::At(0), What::Agent(0, Presence::Works)),
            (When::At(cut), What::NodeCut(0, 190)),
            (When::At(70_000), What::DeleteSooner(0, 0)),
        ];
        goes_well(Plan { ends: 120, ..story(2, Order { job: 0, ..job(1) }, items) });
    }
}
