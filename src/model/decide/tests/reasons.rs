//! Why a job waits: each reason, written into the job and counted for the Negotiator.

use std::sync::Arc;
use std::time::Duration;

use super::governed::negotiate_by;
use super::world::World;
use crate::kit;
use crate::negotiator::Config;
use crate::pool::{CycleFigures, Event, Job, LimitObject, Rejected, StartdConfig, SubmitterFacts, Time};
use crate::schedd::why;
use classad::Expr;

/// Two nodes of four CPUs, on which jobs run for a long time.
pub(super) fn pool() -> World {
    let mut world = World::new();
    world.fate = |_| (36_000, 0);
    for node in ["n1", "n2"] {
        world.node(node, 4, 0);
    }
    world
}

/// The same pool, with a configuration of the negotiator.
fn negotiating(config: Config) -> World {
    let mut world = pool();
    negotiate_by(&mut world, config);
    world
}

/// A negotiator that preempts jobs for which `requirements` is true, whatever retirement time they have left.
fn preempting(requirements: &str) -> World {
    negotiating(Config {
        preemption_requirements: Some(Expr::parse(requirements).unwrap()),
        consider_early_preemption: true,
        ..Config::default()
    })
}

/// The same pool, with a configuration of its machines.
fn governed(mut world: World, text: &str) -> World {
    let mut startd = StartdConfig::default();
    crate::startd::config::understand(text).config.unwrap().put_into(&mut startd);
    world.govern(startd, text);
    world
}

fn limited(mut world: World) -> World {
    world.pool.apply(
        Event::Limit(LimitObject {
            object: "xsw".into(),
            generation: 1,
            name: "xsw".into(),
            limit: Some(2.0),
            limit_of_each: None,
            problems: Vec::new(),
        }),
        world.now,
    );
    world
}

fn with_ceiling(mut world: World) -> World {
    let facts = SubmitterFacts { ceiling: Some(3.0), ..kit::submitter("alice") };
    world.sees(Event::Submitter(facts));
    world
}

fn job<'a>(world: &'a World, name: &str) -> &'a Job {
    world.pool.jobs().values().find(|job| &*job.key.name == name).unwrap()
}

/// A pool in which a job named `job` waits.
type Story = fn() -> World;

/// The answer about a job: whether any machine could run it, the reason, and the name of the limit, group and so on.
type Said<'a> = (Option<bool>, &'a str, Option<&'a str>);

/// The answer about the job, with the name as text.
fn said(job: &Job, now: Time) -> (Option<bool>, &'static str, Option<String>) {
    let of = job.waits.as_ref().and_then(|waits| waits.bar.of());
    let said = why::matchable(job, now);
    (said.status, said.reason, of.map(|of| of.to_string()))
}

/// The figures of the last cycle.
fn last(world: &World) -> &CycleFigures {
    world.pool.schedule().turns.values().find_map(|turn| turn.last.as_ref()).unwrap()
}

/// The entry of the Negotiator's status whose example is this job.
fn counted<'a>(world: &'a World, example: &str) -> &'a Rejected {
    let rejections = &last(world).rejections;
    let of_job = |rejected: &&Rejected| &*rejected.example.name == example;
    rejections.reasons.iter().find(of_job).unwrap_or_else(|| panic!("{rejections:#?}"))
}

/// The reasons in the order in which the issue lists them: "no machine passes Requirements and which clause fails
/// where; machines refuse; quota; limit; priority; preemption not allowed", and then the others.
const STORIES: [(&str, Story, Said<'static>); 13] = [
    (
        "no machine passes Requirements",
        || {
            let mut world = pool();
            let requirements = "TARGET.Machine == \"n1\" && TARGET.Arch == \"PPC64\"".to_owned();
            world.submit("job", "alice", 3, |job| job.requirements = Some(requirements));
            world
        },
        (Some(false), "RequirementsNotMet", None),
    ),
    (
        "no machine is large enough",
        || {
            let mut world = pool();
            world.submit("job", "alice", 3, |job| job.request.cpus = 5);
            world
        },
        (Some(false), "RequestTooLarge", None),
    ),
    (
        "machines refuse",
        || {
            let mut world = governed(pool(), "START = TARGET.Owner == \"bob\"\n");
            world.submit("job", "alice", 3, |_| ());
            world
        },
        (Some(false), "RefusedByMachines", None),
    ),
    (
        "no machine is offered",
        || {
            let mut world = World::new();
            world.submit("job", "alice", 3, |_| ());
            world
        },
        (Some(false), "NoMachines", None),
    ),
    (
        "quota",
        || {
            let mut world = pool();
            world.group("physics", 2.0);
            world.submit("job", "alice", 5, |job| job.group = Some("physics".to_owned()));
            world
        },
        (Some(true), "GroupQuotaReached", Some("physics")),
    ),
    (
        "limit",
        || {
            let mut world = limited(pool());
            world.submit("job", "alice", 5, |job| job.limits = vec!["XSW".to_owned()]);
            world
        },
        (Some(true), "ConcurrencyLimitReached", Some("xsw")),
    ),
    (
        "ceiling",
        || {
            let mut world = with_ceiling(pool());
            world.submit("job", "alice", 6, |_| ());
            world
        },
        (Some(true), "CeilingReached", Some("alice")),
    ),
    (
        "priority: each of the two has half, and none takes more from the other",
        || {
            let mut world = preempting("True");
            world.submit("theirs", "bob", 9, |_| ());
            world.submit("job", "alice", 7, |_| ());
            world
        },
        (Some(true), "SubmitterLimitReached", None),
    ),
    (
        "preemption not allowed: the priority is not so much better",
        || {
            let mut world = preempting("RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2");
            world.submit("theirs", "bob", 8, |_| ());
            world.pass(30);
            world.submit("job", "alice", 3, |_| ());
            world.pool.set_submitter("bob", |one| one.factor = Some(1000.0));
            world.pool.set_submitter("alice", |one| one.factor = Some(1e6));
            world
        },
        (Some(true), "PreemptionNotAllowed", None),
    ),
    (
        "machines have jobs that they rank higher",
        || {
            let mut world = governed(preempting("True"), "RANK = TARGET.Owner == \"bob\"\n");
            world.submit("theirs", "bob", 8, |_| ());
            world.pass(30);
            world.submit("job", "alice", 3, |_| ());
            world
        },
        (Some(true), "PresentJobsRankHigher", None),
    ),
    (
        "machines that match are in use",
        || {
            let mut world = pool();
            world.submit("theirs", "bob", 6, |_| ());
            world.pass(30);
            world.submit("job", "alice", 1, |job| job.request.cpus = 4);
            world
        },
        (Some(true), "MachinesBusy", None),
    ),
    (
        "nothing is left at all",
        || {
            let mut world = pool();
            world.submit("theirs", "bob", 8, |_| ());
            world.pass(30);
            world.submit("job", "alice", 3, |_| ());
            world
        },
        (Some(true), "MachinesBusy", None),
    ),
    (
        "the cycle has no time",
        || {
            let mut world = negotiating(Config { max_time_per_cycle: Duration::ZERO, ..Config::default() });
            world.submit("job", "alice", 3, |_| ());
            world
        },
        (Some(true), "TimeLimitReached", None),
    ),
];

#[test]
fn each_reason_is_said_of_the_job_and_counted() {
    for (reason, story, expected) in STORIES {
        let mut world = story();
        world.pass(120);
        let job = job(&world, "job");
        let (status, said_of_it, of) = expected;
        let expected = (status, said_of_it, of.map(str::to_owned));
        assert_eq!(said(job, world.now), expected, "{reason}");
        let counted = counted(&world, "job");
        assert_eq!(counted.reason, said_of_it, "{reason}");
        assert!(of.is_none() || counted.of.as_deref() == of, "{reason}: {:?}", counted.of);
        let alike: Vec<&Job> = world
            .pool
            .jobs()
            .values()
            .filter(|other| said(other, world.now) == expected && !other.idle.is_empty())
            .collect();
        let procs = alike.iter().map(|job| job.idle.len()).sum();
        assert_eq!((counted.jobs, counted.procs), (alike.len() as u64, procs), "{reason}");
    }
}

/// Each clause is counted where it fails, whichever clause stands first.
#[test]
fn clauses_are_counted_on_each_slot() {
    let mut world = pool();
    let requirements = "TARGET.Machine == \"n1\" && TARGET.Arch == \"PPC64\"".to_owned();
    world.submit("job", "alice", 3, |job| job.requirements = Some(requirements));
    world.pass(10);
    let clauses = |clauses: &[crate::pool::FailedClause]| -> Vec<(String, usize)> {
        clauses.iter().map(|clause| (clause.text.to_string(), clause.slots)).collect()
    };
    let expected = [("TARGET.Arch == \"PPC64\"".to_owned(), 2), ("TARGET.Machine == \"n1\"".to_owned(), 1)];
    let counted = counted(&world, "job");
    assert_eq!(clauses(&counted.clauses), expected);
    assert_eq!(counted.of.as_deref(), Some("TARGET.Arch == \"PPC64\""));
    assert_eq!(
        text(&world),
        "spec.requirements: no node matches: the nearest, n1, has Arch \"X86_64\", and does not meet TARGET.Arch == \"PPC64\"; \
         relax the job, or add a node that meets it"
    );
}

/// Why the job named `job` waits, as every view shows it.
fn text(world: &World) -> String {
    why::why(job(world, "job"), &[], world.now).unwrap()
}

/// A machine that the job accepts may refuse the job, while the job refuses all others.
#[test]
fn what_machines_refuse_stands_beside_what_the_job_does() {
    let mut world = governed(pool(), "START = TARGET.Owner == \"bob\"\n");
    world.submit("job", "alice", 1, |job| job.requirements = Some("TARGET.Machine == \"n1\"".to_owned()));
    world.pass(10);
    assert_eq!(
        text(&world),
        "no node matches: the nearest, n1, refuses the job by START = TARGET.Owner == \"bob\" of NodePolicy p (the job has \
         Owner \"alice\"); change the job, or ask an admin to change the policy or add a node"
    );
}

/// Reasons of few procs are counted together; reasons of many procs come first.
#[test]
fn what_is_kept_of_a_cycle_is_bounded() {
    let mut world = pool();
    for number in 1..=13_i64 {
        let requirements = format!("TARGET.Machine == \"none{number}\"");
        world.submit(&format!("job{number}"), "alice", number, |job| job.requirements = Some(requirements));
    }
    world.pass(300);
    let rejections = Arc::clone(&last(&world).rejections);
    let procs: Vec<u64> = rejections.reasons.iter().map(|rejected| rejected.procs).collect();
    assert_eq!(procs, [13, 12, 11, 10, 9, 8, 7, 6, 5, 4]);
    assert_eq!(rejections.other_procs, 3 + 2 + 1);
}

/// Jobs that wait for the same thing are one entry.
#[test]
fn equal_reasons_are_counted_together() {
    let mut world = limited(pool());
    for (name, procs) in [("a", 3), ("b", 4)] {
        world.submit(name, "alice", procs, |job| job.limits = vec!["xsw".to_owned()]);
    }
    world.pass(120);
    let counted = counted(&world, "a");
    assert_eq!((counted.jobs, counted.procs, counted.of.as_deref()), (2, 5, Some("xsw")));
}

/// The reason goes once the procs have slots.
#[test]
fn a_job_that_got_its_slots_waits_for_nothing() {
    let mut world = pool();
    world.fate = |_| (60, 0);
    world.submit("theirs", "bob", 8, |_| ());
    world.pass(30);
    world.submit("job", "alice", 3, |_| ());
    world.pass(20);
    assert_eq!(said(job(&world, "job"), world.now).1, "MachinesBusy");
    world.pass(120);
    assert_eq!(said(job(&world, "job"), world.now).1, "NoneWaits");
}
