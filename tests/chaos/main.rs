//! The operator's shell and deciders against a model of the API server, in virtual time, with faults drawn from a seed.
//!
//! A run follows from its seed alone. After each call that takes effect, the checks compare the objects on the server
//! with the invariants. When faults stop, everything must settle. See docs/reference/chaos.md.

// A test states what it expects by panicking.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]
#![allow(missing_docs, clippy::cast_precision_loss, clippy::cast_possible_truncation)]

// A package's own tests see its library under the library's name.
extern crate slotwright_controller as controller;

mod agents;
mod archive;
mod backfill;
mod caps;
mod checks;
mod containers;
mod coverage;
mod cut_off;
mod ends;
mod kubelets;
mod layouts;
mod letting_go;
mod marks;
mod people;
mod plan;
mod processes;
mod regressions;
mod rng;
mod run;
mod store;
mod story;
mod takeovers;
mod verbs;
mod watches;
mod wire;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use coverage::Coverage;
use plan::{Item, Order, Plan, What, When};
use run::{Outcome, run};

fn calm() -> Plan {
    let order = Order { job: 0, group: None, count: 5, cpus: 1, device: 0, requirements: 0, retention: 0 };
    let items = vec![
        Item { when: When::At(0), what: What::NodeBack(0, 2) },
        Item { when: When::At(1000), what: What::Submit(order) },
    ];
    Plan::told(20, items)
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
    for seed in 0..number("CHAOS_SEEDS", 10) {
        let plan = Plan::of(seed);
        let (one, other) = (run(&plan, true), run(&plan, true));
        let differ = one.log.iter().zip(&other.log).position(|(one, other)| one != other);
        if let Some(n) = differ {
            let (one, other) = (&one.log[n.saturating_sub(5)..=n], &other.log[n.saturating_sub(5)..=n]);
            panic!("seed {seed}:\n{}\n\n{}", one.join("\n"), other.join("\n"));
        }
        assert_eq!((one.trace, one.took), (other.trace, other.took), "{seed}");
    }
}

/// Processes differ in the seeds of their hash maps, in addresses, in their directories and in their environment.
#[test]
fn the_same_seed_is_the_same_run_in_every_process() {
    let here = std::env::current_dir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for seed in 0..10 {
        let summary = summary(seed, &run(&Plan::of(seed), false));
        for (place, zone) in [(here.as_path(), "UTC"), (elsewhere.path(), "Asia/Kolkata")] {
            let told = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "--nocapture", SEEDS])
                .envs([("CHAOS_SEED", seed.to_string().as_str()), ("TZ", zone)])
                .current_dir(place)
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&told.stdout);
            assert!(told.contains(&summary), "{summary}\nin another process is\n{told}");
        }
    }
}

/// A run in one line.
fn summary(seed: u64, outcome: &Outcome) -> String {
    let Outcome { took, writes, trace, .. } = outcome;
    format!("run of seed {seed}: {took} virtual ms, {writes} writes, trace {trace:x}")
}

/// A number from the environment variable of this name, or `otherwise`.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The name of the test that runs seeds.
const SEEDS: &str = "whatever_happens_the_invariants_hold_and_everything_settles";

/// Runs seeds (`make chaos SEEDS=2000`), or one seed with its story (`make chaos SEED=7`).
#[test]
fn whatever_happens_the_invariants_hold_and_everything_settles() {
    if let Ok(seed) = std::env::var("CHAOS_SEED") {
        let seed = seed.parse().unwrap();
        let plan = Plan::of(seed);
        let outcome = run(&plan, false);
        println!("{}", summary(seed, &outcome));
        if let Some(wrong) = outcome.violation {
            panic!("{}", story::tell(&story::shrink(&plan, &wrong)));
        }
        return;
    }
    let (first, seeds) = (number("CHAOS_FIRST", 0), number("CHAOS_SEEDS", 60));
    let most = number("CHAOS_FINDINGS", 3);
    let (next, found) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let reached = Mutex::new(Coverage::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds || found.lock().unwrap().len() as u64 >= most {
                        return;
                    }
                    let outcome = run(&Plan::of(seed), false);
                    if let Some(wrong) = outcome.violation {
                        println!("seed {seed}: {wrong}");
                        found.lock().unwrap().push((seed, wrong));
                    }
                    reached.lock().unwrap().add(&outcome.coverage);
                    if (seed + 1) % 500 == 0 {
                        println!("{} runs begun", seed + 1 - first);
                    }
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    let reached = reached.into_inner().unwrap();
    reached.print(seeds);
    if std::env::var_os("CHAOS_NO_STORY").is_some() {
        assert!(found.is_empty(), "{} findings", found.len());
    }
    if let Some((seed, wrong)) = found.iter().min() {
        panic!("{} findings\n{}", found.len(), story::tell(&story::shrink(&Plan::of(*seed), wrong)));
    }
    // Fewer runs may miss a rare event by chance.
    if seeds >= 2000 {
        assert_eq!(reached.missing(), Vec::<String>::new(), "is never reached");
    }
}
