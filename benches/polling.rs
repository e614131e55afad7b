//! Measures how long it takes on one core of this computer to evaluate the policy of every claimed slot once.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{EACH, claim, job, machine, machine_name, now, pod};
use model::decide::decide;
use model::pool::{Event, PolicyFacts, Pool, Resources, Selection, SlotFacts, SlotName, StartdConfig};
use model::startd::config::understand;

/// Adds one job to the pool, with `slots` procs that each run in a slot of their own.
fn fill(pool: &mut Pool, slots: u32) {
    let key = job(pool, 0, "alice", slots, 1);
    for proc in 0..slots {
        let machine = machine_name(proc / EACH);
        let name = SlotName { machine: machine.clone(), slot: 1, dynamic: Some(proc % EACH + 1) };
        let claim = claim(&name, &key, proc);
        let pod = pod(&claim, Some(machine));
        let resources = Resources { cpus: 1, memory_mib: 128, disk_kib: 1024, ..Resources::default() };
        pool.apply(Event::Slot(SlotFacts { name, resources, claim: Some(claim), recorded: None }), now());
        pool.apply(Event::Pod(pod), now());
    }
}

fn pool(slots: u32, text: &str) -> Pool {
    let mut pool = Pool::default();
    let mut config = StartdConfig::default();
    understand(text).config.unwrap().put_into(&mut config);
    let policy = PolicyFacts {
        name: "owners".into(),
        uid: "u".into(),
        generation: 1,
        selection: Selection::default(),
        config: Ok(Arc::new(config)),
        warnings: None,
        spec: text.into(),
        recorded: None,
    };
    pool.apply(Event::Policy(policy), now());
    for n in 0..slots.div_ceil(EACH) {
        machine(&mut pool, n);
    }
    fill(&mut pool, slots);
    pool.apply(Event::Synced, now());
    decide(&mut pool, now());
    pool.take_statuses();
    pool
}

/// The resident memory of this process, in MiB.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Measures and prints one row. Each row has a process of its own, so that the memory of its pool can be measured.
fn row(slots: u32, policy: &str) {
    // The manual's desktop policy has all of the policy expressions.
    let text = if policy == "Desktop" { "use POLICY : Desktop\n" } else { "" };
    let before = resident_mib();
    let mut pool = pool(slots, text);
    let used = resident_mib().saturating_sub(before);
    let at = pool.next_look().unwrap_or(now() + Duration::from_secs(5));
    let start = Instant::now();
    let decision = decide(&mut pool, at);
    let took = start.elapsed();
    assert!(decision.effects.is_empty(), "the owners are away");
    let each = took.as_secs_f64() * 1e6 / f64::from(slots);
    let more = resident_mib().saturating_sub(before + used);
    println!("| {policy} | {slots} | {:.3} s | {each:.2} us | {used} MiB | {more} MiB |", took.as_secs_f64());
}

fn main() {
    let mut args = std::env::args().skip_while(|arg| arg != "--row").skip(1);
    if let (Some(slots), Some(policy)) = (args.next(), args.next()) {
        return row(slots.parse().unwrap(), &policy);
    }
    println!("| policy | claimed slots | one look at each | for one slot | the pool holds | and the look |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for slots in ["12500", "25000", "50000", "100000"] {
        for policy in ["default", "Desktop"] {
            let program = std::env::current_exe().unwrap();
            let status = std::process::Command::new(program).args(["--row", slots, policy]).status().unwrap();
            assert!(status.success());
        }
    }
}
