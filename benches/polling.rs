//! Measures how long it takes on one core of this computer to evaluate the policy of every claimed slot once.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::decide::decide;
use model::pool::{
    Assignment, Capacity, Claim, ClaimId, Event, ExtendedResources, Forced, JobFacts, JobKey, LastInput,
    MachineFacts, MachineName, NegotiatorId, PodFacts, PodRef, PolicyFacts, Pool, Remains, ReportFacts,
    Request, Resources, Selector, Sensed, SlotFacts, SlotName, StartdConfig, Time,
};
use model::schedd::{Submission, submit};
use model::startd::config::understand;

/// How many claimed slots each machine has.
const EACH: u32 = 8;
const START: i64 = 1_700_000_000;

fn machine(pool: &mut Pool, name: &MachineName, now: Time) {
    let facts = MachineFacts {
        name: name.clone(),
        arch: "amd64".into(),
        os: "linux".into(),
        labels: Arc::new(BTreeMap::from([("zone".to_owned(), "a".to_owned())])),
        allocatable: Capacity {
            milli_cpu: i64::from(EACH) * 1000,
            memory: i64::from(EACH) << 32,
            disk: 100 << 30,
            extended: ExtendedResources::new(),
        },
        ready: true,
        cordoned: false,
        taints: Vec::new(),
        system: model::pool::System::default(),
    };
    pool.apply(Event::Machine(facts), now);
    let idle = LastInput::At(Time::from_secs(START - 3600));
    let sensed = Sensed { keyboard: idle, console: idle, owner_load: 0.1 };
    let report =
        ReportFacts { sensed: Some(sensed), suspended: BTreeSet::new(), ..ReportFacts::of(name.clone()) };
    pool.apply(Event::Report(report), now);
}

/// Adds one job to the pool, with `slots` procs that each run in a slot of their own.
fn fill(pool: &mut Pool, slots: u32, now: Time) {
    let submission = Submission {
        name: "sweep".to_owned(),
        namespace: "default".to_owned(),
        owner: "alice".to_owned(),
        submitted: now,
        count: i64::from(slots),
        request: Request { cpus: 1, memory_mib: 128, disk_kib: 1024, ..Request::default() },
        ..Submission::default()
    };
    let key = JobKey { uid: "job".into(), namespace: "default".into(), name: "sweep".into() };
    let facts = JobFacts {
        finalizer: true,
        cluster_id: Some(1),
        accepted: true,
        ..JobFacts::new(key.clone(), now, submit(&submission).map(Arc::new))
    };
    pool.apply(Event::Job(facts), now);
    for proc in 0..slots {
        let machine: MachineName = format!("node-{}", proc / EACH).into();
        let name = SlotName { machine: machine.clone(), slot: 1, dynamic: Some(proc % EACH + 1) };
        let claim = Claim {
            id: ClaimId::new(&name, now, u64::from(proc)),
            submitter: "alice".into(),
            group: None,
            negotiator: NegotiatorId::Unnamed,
            regrouped: false,
            weight: 1.0,
            limits: model::pool::limits::Wants::default(),
            since: now,
            last: Assignment { job: key.clone(), cluster_id: 1, proc },
        };
        let pod = PodRef {
            namespace: "default".into(),
            name: claim.pod_name().into(),
            uid: format!("pod-{proc}").into(),
        };
        let resources = Resources { cpus: 1, memory_mib: 128, disk_kib: 1024, ..Resources::default() };
        let id = claim.id.clone();
        pool.apply(Event::Slot(SlotFacts { name, resources, claim: Some(claim), recorded: None }), now);
        pool.apply(
            Event::Pod(PodFacts {
                pod,
                machine: Some(machine),
                job: key.uid.clone(),
                proc,
                claim: id,
                running: true,
                created: None,
                started: Some(now),
                finished: None,
                obstacle: None,
                hold: None,
                end: None,
                told: false,
                asked: None,
                remains: Remains::Nothing,
                deleting: false,
                grace: None,
                own_grace: Duration::ZERO,
                forced: Forced::No,
                disrupted: false,
                suspended: false,
                lease: None,
                run: None,
                size: None,
                tracked: true,
                requests: Capacity::default(),
            }),
            now,
        );
    }
}

fn pool(slots: u32, text: &str, now: Time) -> Pool {
    let mut pool = Pool::default();
    let mut config = StartdConfig::default();
    understand(text).config.unwrap().put_into(&mut config);
    let policy = PolicyFacts {
        name: "owners".into(),
        uid: "u".into(),
        generation: 1,
        selector: Selector::default(),
        precedence: 0,
        config: Ok(Arc::new(config)),
        warnings: None,
        spec: text.into(),
        recorded: None,
    };
    pool.apply(Event::Policy(policy), now);
    for n in 0..slots.div_ceil(EACH) {
        machine(&mut pool, &format!("node-{n}").into(), now);
    }
    fill(&mut pool, slots, now);
    pool.apply(Event::Synced, now);
    decide(&mut pool, now);
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
    let mut pool = pool(slots, text, Time::from_secs(START));
    let used = resident_mib().saturating_sub(before);
    let at = pool.next_look().unwrap_or(Time::from_secs(START) + Duration::from_secs(5));
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
