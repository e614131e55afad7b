//! Measures how long one negotiation cycle takes on one core of this computer.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use classad::Ad;
use model::negotiator::{Candidate, Cycle, Request, SubmitterInput, negotiate};
use model::pool::{self, Capacity, ExtendedResources, Machine, MachineFacts, StartdConfig, Time};
use model::schedd::{Submission, submit};
use model::startd::whole_slot_ad;

const SLOTS: i64 = 10_000;
const SUBMITTERS: i64 = 100;

fn slot(n: i64) -> Ad {
    let labels = BTreeMap::from([("topology.kubernetes.io/zone".to_owned(), format!("zone-{}", n % 5))]);
    let facts = MachineFacts {
        name: format!("node-{n}").into(),
        arch: if n % 10 == 0 { "arm64" } else { "amd64" }.into(),
        os: "linux".into(),
        labels: Arc::new(labels),
        allocatable: Capacity {
            milli_cpu: (4 + n % 61) * 1000,
            memory: (8 + n % 249) << 30,
            disk: 100 << 30,
            extended: ExtendedResources::new(),
        },
        ready: true,
        cordoned: false,
        taints: Vec::new(),
        system: model::pool::System::default(),
    };
    let machine = Machine::new(facts, Capacity::default(), Time::from_secs(0));
    let slot = machine.slots().next().unwrap();
    whole_slot_ad(&machine, slot, &StartdConfig::default())
}

fn job(n: i64) -> Ad {
    let submission = Submission {
        name: format!("job-{n}"),
        namespace: format!("user-{}", n % SUBMITTERS),
        owner: format!("user-{}", n % SUBMITTERS),
        count: 100,
        request: pool::Request {
            cpus: 1 + n % 8,
            memory_mib: 1024 << (n % 4),
            disk_kib: 1024,
            ..Default::default()
        },
        requirements: Some("TARGET.Arch == \"X86_64\" && TARGET.TotalSlotMemory >= 16384".to_owned()),
        rank: Some("TARGET.Memory - 1024 * TARGET.Cpus".to_owned()),
        ..Submission::default()
    };
    submit(&submission).unwrap().ad
}

fn main() {
    let slots: Vec<Ad> = (0..SLOTS).map(slot).collect();
    let jobs: Vec<Ad> = (0..SUBMITTERS).map(job).collect();
    let cycle = Cycle {
        now: 1_700_000_000,
        slots: slots.into_iter().map(|ad| Candidate::new(ad, 8.0)).collect(),
        submitters: jobs
            .into_iter()
            .enumerate()
            .map(|(n, ad)| SubmitterInput {
                name: format!("user-{n}"),
                effective_priority: 500.0 + n as f64,
                requests: vec![Request { ad, count: 100 }],
                ..SubmitterInput::default()
            })
            .collect(),
        pool_weight: SLOTS as f64 * 8.0,
        ..Cycle::default()
    };
    let start = Instant::now();
    let outcome = negotiate(&cycle);
    let took = start.elapsed().as_secs_f64();
    println!(
        "one cycle, {SLOTS} slots, {SUBMITTERS} submitters of 100 procs: {took:.2} s, {} matches, {} pairs looked at",
        outcome.matches.len(),
        outcome.stats.pairs_considered
    );
}
