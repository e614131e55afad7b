//! The operator's shell and deciders against a model of the API server, in virtual time, with faults drawn from a seed.
//!
//! A run follows from its seed alone. After each call that took effect the invariants are checked on what the server has;
//! when faults stop, everything has to settle. See docs/chaos.md.

// A test states what it expects by panicking.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]
#![allow(missing_docs, clippy::cast_precision_loss, clippy::cast_possible_truncation)]

mod checks;
mod coverage;
mod kubelets;
mod people;
mod plan;
mod rng;
mod run;
mod store;
mod verbs;
mod watches;
mod wire;
mod world;

use plan::{Item, Order, Plan, What, When};
use run::run;

fn calm() -> Plan {
    let order = Order { job: 0, group: None, count: 5, cpus: 1, gpus: 0, requirements: 0, retention: 0 };
    let items = vec![
        Item { when: When::At(0), what: What::NodeBack(0, 2) },
        Item { when: When::At(1000), what: What::Submit(order) },
    ];
    Plan { seed: 0, ends: 20, bookmarks: true, skew: 0, items }
}

#[test]
fn a_calm_run_ends_well() {
    let outcome = run(&calm(), true);
    for line in &outcome.log {
        println!("{line}");
    }
    println!("{} {} {:x}", outcome.took, outcome.writes, outcome.trace);
    assert_eq!(outcome.violation, None);
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..10 {
        let plan = Plan::of(seed);
        let (one, other) = (run(&plan, false), run(&plan, false));
        assert_eq!(
            (one.trace, one.took, &one.violation),
            (other.trace, other.took, &other.violation),
            "{seed}"
        );
    }
}
