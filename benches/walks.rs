//! Measures what decisions cost on one core of this computer while the pool holds many objects that the decisions are not about:
//! drains of other machines, orphans, gatherings, procs that rest, and accounting groups.

#![allow(missing_docs, clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark")]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use classad::Ad;
use common::{EACH, START, claim, machine, machine_name, now, report};
use model::decide::{conclude, decide};
use model::negotiator::groups::{GroupSpec, Quota, Tree};
use model::negotiator::{Candidate, Cycle, SubmitterInput, negotiate};
use model::pool::{
    Act, Cooling, DrainCost, DrainFacts, DrainSchedule, DrainSpec, Event, History, JobKey, Pause, PodFacts,
    Pool, Ranges, Resources, SlotFacts, SlotName, Time, Verb, Whom,
};
use model::schedd::{Submission, find_work};

/// Adds a job of so many procs to those of a hundred users.
fn job(pool: &mut Pool, n: u32, procs: u32, cpus: i64) -> JobKey {
    common::job(pool, n, &format!("user-{}", n % 100), procs, cpus)
}

/// A pod that lives, is being deleted, and names a claim that nobody knows.
fn orphan(pool: &mut Pool, key: &JobKey, proc: u32) {
    let name = SlotName { machine: machine_name(proc / EACH), slot: 1, dynamic: Some(1000 + proc % EACH) };
    let facts = PodFacts { deleting: true, ..common::pod(&claim(&name, key, proc), None) };
    pool.apply(Event::Pod(facts), now());
}

fn drain(pool: &mut Pool, n: u32) {
    let spec = DrainSpec {
        machine: machine_name(n),
        schedule: DrainSchedule::Graceful,
        resume: false,
        check: None,
        start: None,
        reason: None,
    };
    let name: Arc<str> = format!("drain-{n}").into();
    let facts = DrainFacts {
        uid: Arc::clone(&name),
        name,
        generation: 1,
        created: now(),
        spec: Ok(Arc::new(spec)),
        recorded: None,
        cost: DrainCost::default(),
    };
    pool.apply(Event::Drain(facts), now());
}

fn pool(machines: u32) -> Pool {
    let mut pool = Pool::default();
    for n in 0..machines {
        machine(&mut pool, n);
    }
    pool
}

fn ready(pool: &mut Pool) {
    pool.apply(Event::Synced, now());
    decide(pool, now());
    pool.take_statuses();
}

fn took(what: &str, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    println!("| {what} | {:.1} ms |", start.elapsed().as_secs_f64() * 1e3);
}

/// Every machine is reviewed, while some are drained.
fn drains(machines: u32, drains: u32) {
    let mut pool = pool(machines);
    for n in 0..drains {
        drain(&mut pool, n);
    }
    ready(&mut pool);
    for n in 0..machines {
        report(&mut pool, n, 0.2);
    }
    took(&format!("{machines} machines are reviewed, {drains} DrainRequests"), || {
        drop(decide(&mut pool, now()));
    });
}

/// One cycle's matches become claims and pods, while pods live that have no claim.
fn orphans(orphans: u32) {
    let mut pool = pool(1_250);
    let of = job(&mut pool, 0, orphans.max(1), 1);
    job(&mut pool, 1, 5_000, 1);
    for proc in 0..orphans {
        orphan(&mut pool, &of, proc);
    }
    pool.apply(Event::Synced, now());
    let cycle = decide(&mut pool, now()).negotiation.unwrap();
    let outcome = negotiate(&cycle.cycle);
    conclude(&mut pool, &cycle, &outcome, now());
    took(&format!("{} matches begin, {orphans} orphans", outcome.matches.len()), || {
        drop(decide(&mut pool, now()));
    });
    took(&format!("a decision about nothing, {orphans} orphans"), || drop(decide(&mut pool, now())));
}

/// Every machine is reviewed, while claims wait for room on some.
fn gatherings(machines: u32, gatherings: u32) {
    let mut pool = pool(machines);
    let of = job(&mut pool, 0, gatherings.max(1), 4);
    ready(&mut pool);
    for n in 0..gatherings {
        let parent = SlotName { machine: machine_name(n), slot: 1, dynamic: None };
        let resources = Resources { cpus: 4, memory_mib: 128, disk_kib: 1024, ..Resources::default() };
        let of_parent = claim(&parent, &of, n);
        let gone = SlotName { dynamic: Some(9), ..parent.clone() };
        pool.gather(of_parent, parent, resources, &[(gone, 0.0)]);
    }
    for n in 0..machines {
        report(&mut pool, n, 0.2);
    }
    took(&format!("{machines} machines are reviewed, {gatherings} gatherings"), || {
        drop(decide(&mut pool, now()));
    });
}

/// A cycle whose matches are for jobs with a million idle procs. The first procs of the first job rest after a run that failed.
fn idle(jobs: u32, each: u32, resting: u32) {
    let mut pool = pool(12_500);
    for n in 0..jobs {
        job(&mut pool, n, each, 1);
    }
    let until = now() + Duration::from_secs(10);
    pool.edit_job(&"job-0".into(), |job| {
        for proc in 0..resting {
            let cooling = Cooling { times: 1, until };
            job.idle.pause(proc, Pause { cooling, why: "left its slot".into() });
        }
    });
    pool.apply(Event::Synced, now());
    let mut decision = None;
    let what = format!("{jobs} jobs of {each} procs, {resting} rest, 100000 CPUs: ");
    took(&format!("{what}first decision"), || decision = decide(&mut pool, now()).negotiation);
    let cycle = decision.unwrap();
    let mut outcome = None;
    took(&format!("{what}cycle"), || outcome = Some(negotiate(&cycle.cycle)));
    took(&format!("{what}claims"), || conclude(&mut pool, &cycle, outcome.as_ref().unwrap(), now()));
    took(&format!("{what}pods"), || drop(decide(&mut pool, now())));
    took(&format!("{what}a decision about nothing"), || drop(decide(&mut pool, now())));
}

/// A cycle of as many groups as slots, every second group below another. Each group's submitter has one waiting job.
fn groups(groups: usize) {
    let name = |n: usize| if n.is_multiple_of(2) { format!("g{n}") } else { format!("g{}.h", n - 1) };
    let spec = |n: usize| GroupSpec {
        name: name(n),
        quota: Some(Quota::Static(2.0)),
        accept_surplus: true,
        ..GroupSpec::default()
    };
    let tree = Tree::new(&(0..groups).map(spec).collect::<Vec<_>>());
    let slot = Ad::parse_long("Cpus = 1\nRank = 0.0\nRequirements = true\n").unwrap();
    let ad = Ad::parse_long("RequestCpus = 1\nRequirements = true\n").unwrap();
    let submitter = |n: usize| {
        let name = format!("{}.user", name(n));
        let requests = vec![model::negotiator::Request { ad: ad.clone(), count: 1 }];
        SubmitterInput {
            group: tree.group_of(&name),
            name,
            effective_priority: 500.0,
            requests,
            ..Default::default()
        }
    };
    let pool_weight = groups as f64;
    let cycle = Cycle {
        now: START,
        slots: vec![Candidate::new(slot, 1.0); groups],
        submitters: (0..groups).map(submitter).collect(),
        pool_weight,
        groups: tree.inputs(pool_weight, true, &[]),
        ..Cycle::default()
    };
    took(&format!("a cycle of {groups} groups"), || assert_eq!(negotiate(&cycle).matches.len(), groups));
}

/// A claim whose proc has ended looks for the next proc of the same submitter. The jobs before it in the queue rest after a refusal.
fn resting(jobs: u32) {
    let mut pool = pool(1);
    for n in 0..jobs {
        let key = common::job(&mut pool, n, "alice", 1, 1);
        pool.edit_job(&key.uid, |job| job.rest(now()));
    }
    let mut facts = common::job_facts(jobs, &common::submission(jobs, "alice", 100, 1));
    facts.succeeded = Ranges::of(0);
    let name = SlotName { machine: machine_name(0), slot: 1, dynamic: Some(1) };
    let claim = claim(&name, &facts.key, 0);
    let resources = Resources { cpus: 1, memory_mib: 128, disk_kib: 1024, ..Resources::default() };
    pool.apply(Event::Job(facts), now());
    let slot = SlotFacts { name: name.clone(), resources, claim: Some(claim), recorded: None };
    pool.apply(Event::Slot(slot), now());
    pool.apply(Event::Synced, now());
    drop(pool.queues());
    took(&format!("a claim looks for work, {jobs} jobs before it rest"), || {
        assert!(find_work(&pool, &name, now()).is_some());
    });
    let cycle = decide(&mut pool, now()).negotiation.unwrap();
    conclude(&mut pool, &cycle, &negotiate(&cycle.cycle), now());
    decide(&mut pool, now());
    took(&format!("a decision about nothing, {jobs} jobs rest"), || drop(decide(&mut pool, now())));
}

/// A cycle for a job with a crontab. The lower half of the procs has run for the present time, and waits for the next.
fn crontab(procs: u32) {
    let mut pool = pool(1_250);
    let attributes = [("CronMinute", "\"*\""), ("DeferralPrepTime", "0"), ("DeferralWindow", "600")];
    let submission = Submission {
        submitted: Time::from_secs(START - 3600),
        attributes: attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        ..common::submission(0, "alice", procs, 1)
    };
    let ran = History { completions: 1, starts: 1, since: Time::from_secs(START - 10), ..History::default() };
    let mut facts = common::job_facts(0, &submission);
    facts.life.history = (0..procs / 2).map(|proc| (proc, ran)).collect();
    pool.apply(Event::Job(facts), now());
    pool.apply(Event::Synced, now());
    let cycle = decide(&mut pool, now()).negotiation.unwrap();
    let outcome = negotiate(&cycle.cycle);
    let what = format!("a crontab, {procs} procs, {} have run: ", procs / 2);
    took(&format!("{what}{} claims", outcome.matches.len()), || {
        conclude(&mut pool, &cycle, &outcome, now());
    });
    took(&format!("{what}pods"), || drop(decide(&mut pool, now())));
}

/// The author of a job of many procs writes acts on one of them.
fn acts(procs: u32, acts: u64) {
    let mut pool = pool(1);
    let mut facts = common::job_facts(0, &common::submission(0, "alice", procs, 1));
    pool.apply(Event::Job(facts.clone()), now());
    ready(&mut pool);
    let act =
        |id| Act { id, verb: Verb::Hold, whom: Whom::Some(Ranges::of(0)), reason: "no".into(), subcode: 0 };
    facts.life.acts = (1..=acts).map(act).collect();
    took(&format!("{acts} acts on one proc of {procs}"), || pool.apply(Event::Job(facts), now()));
}

fn main() {
    println!("| what | time |\n| --- | ---: |");
    drains(12_500, 0);
    drains(12_500, 1_000);
    orphans(0);
    orphans(10_000);
    gatherings(12_500, 0);
    gatherings(12_500, 1_000);
    groups(4_000);
    groups(16_000);
    idle(10_000, 100, 0);
    idle(10, 100_000, 0);
    idle(10, 100_000, 10_000);
    resting(100_000);
    crontab(100_000);
    acts(100_000, 32);
}
