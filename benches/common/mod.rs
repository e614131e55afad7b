//! The objects that the benches of the model put into a pool: machines with their agents, jobs, claims, and pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::pool::{
    Assignment, Capacity, Claim, ClaimId, Event, ExtendedResources, JobFacts, JobKey, LastInput,
    MachineFacts, MachineName, NegotiatorId, PodFacts, PodRef, Pool, ReportFacts, Request, Sensed, SlotName,
    Time,
};
use model::schedd::{Submission, submit};

/// How many CPUs each machine has.
pub const EACH: u32 = 8;
/// The second at which a bench begins.
pub const START: i64 = 1_700_000_000;

/// The time at which a bench begins.
pub fn now() -> Time {
    Time::from_secs(START)
}

/// The name of a machine.
pub fn machine_name(n: u32) -> MachineName {
    format!("node-{n}").into()
}

/// Adds a machine whose agent has reported.
pub fn machine(pool: &mut Pool, n: u32) {
    let facts = MachineFacts {
        name: machine_name(n),
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
    pool.apply(Event::Machine(facts), now());
    report(pool, n, 0.1);
}

/// Applies the report of an agent that senses this load of the owner.
pub fn report(pool: &mut Pool, n: u32, owner_load: f64) {
    let idle = LastInput::At(Time::from_secs(START - 3600));
    let sensed = Sensed { keyboard: idle, console: idle, owner_load };
    let report =
        ReportFacts { sensed: Some(sensed), suspended: BTreeSet::new(), ..ReportFacts::of(machine_name(n)) };
    pool.apply(Event::Report(report), now());
}

/// A job of so many procs, as its author writes it.
pub fn submission(n: u32, owner: &str, procs: u32, cpus: i64) -> Submission {
    Submission {
        name: format!("job-{n}"),
        namespace: "default".to_owned(),
        owner: owner.to_owned(),
        submitted: now(),
        count: i64::from(procs),
        request: Request { cpus, memory_mib: 128, disk_kib: 1024, ..Request::default() },
        ..Submission::default()
    }
}

/// The facts of a job that was accepted.
pub fn job_facts(n: u32, submission: &Submission) -> JobFacts {
    let name = submission.name.as_str();
    let key = JobKey { uid: name.into(), namespace: "default".into(), name: name.into() };
    JobFacts {
        finalizer: true,
        cluster_id: Some(i64::from(n) + 1),
        accepted: true,
        ..JobFacts::new(key, submission.submitted, submit(submission).map(Arc::new))
    }
}

/// Adds a job of so many procs.
pub fn job(pool: &mut Pool, n: u32, owner: &str, procs: u32, cpus: i64) -> JobKey {
    let facts = job_facts(n, &submission(n, owner, procs, cpus));
    let key = facts.key.clone();
    pool.apply(Event::Job(facts), now());
    key
}

/// A claim for a proc.
pub fn claim(name: &SlotName, key: &JobKey, proc: u32) -> Claim {
    Claim {
        id: ClaimId::new(name, now(), u64::from(proc)),
        submitter: "alice".into(),
        group: None,
        negotiator: NegotiatorId::Unnamed,
        regrouped: false,
        weight: 1.0,
        limits: model::pool::limits::Wants::default(),
        since: now(),
        last: Assignment { job: key.clone(), cluster_id: 1, proc },
    }
}

/// A pod that runs the proc of this claim.
pub fn pod(claim: &Claim, machine: Option<MachineName>) -> PodFacts {
    let pod = PodRef {
        namespace: "default".into(),
        name: claim.pod_name().into(),
        uid: format!("pod-{}", claim.last.proc).into(),
    };
    PodFacts { running: true, started: Some(now()), tracked: true, ..PodFacts::of_claim(pod, claim, machine) }
}
