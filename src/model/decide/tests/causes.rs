//! The text and the event that people read about a job that waits, for each cause. The text is the same in every view.

use super::reasons::pool;
use super::world::World;
use crate::kit;
use crate::pool::{
    DrainCost, DrainFacts, DrainSchedule, DrainSpec, Event, HoldReason, JOB_POLICY_UNDEFINED, Job,
    LimitObject, MachineFacts, StartdConfig, SubmitterFacts, Taint,
};
use crate::schedd::{GpuDemands, why};

fn job(world: &World) -> &Job {
    world.pool.jobs().values().find(|job| &*job.key.name == "job").unwrap()
}

fn text(world: &World) -> String {
    why::why(job(world), &[], world.now).unwrap()
}

fn limited(limit: f64) -> World {
    let mut world = pool();
    world.sees(Event::Limit(LimitObject {
        object: "xsw".into(),
        generation: 1,
        name: "xsw".into(),
        limit: Some(limit),
        limit_of_each: None,
        problems: Vec::new(),
    }));
    world
}

/// Adds a node on which nothing starts.
fn closed(world: &mut World, change: impl FnOnce(&mut MachineFacts)) {
    let mut facts = kit::machine("n3", 16, 16);
    change(&mut facts);
    world.set_node(facts);
}

/// A pool in which a job named `job` waits.
type Cause = fn() -> World;

const CAUSES: [(&str, Cause, &str); 21] = [
    (
        "quota",
        || {
            let mut world = pool();
            world.group("physics", 2.0);
            world.submit("job", "alice", 5, |job| job.group = Some("physics".to_owned()));
            world
        },
        "waits for group physics: 2 of 2 in use",
    ),
    (
        "a quota that can never be",
        || {
            let mut world = pool();
            world.group("physics", 2.0);
            world.submit("job", "alice", 1, |job| {
                (job.group, job.request.cpus) = (Some("physics".to_owned()), 3);
            });
            world
        },
        "a proc takes 3 of group physics, whose quota is 2 in all; request less, or have an admin raise the quota",
    ),
    (
        "the part of a quota that the groups inside leave",
        || {
            let mut world = pool();
            world.group("chem", 6.0);
            world.group("chem.org", 4.0);
            world.submit("theirs", "bob", 4, |job| job.group = Some("chem.org".to_owned()));
            world.pass(30);
            world.submit("job", "alice", 5, |job| job.group = Some("chem".to_owned()));
            world
        },
        "waits for group chem: 2 of 2 in use; the groups inside chem have the other 4 of its quota of 6, and chem gets what they \
         leave: wait, charge the job to one of them, or have an admin change the quotas",
    ),
    (
        "groups inside that leave nothing of a quota",
        || {
            let mut world = pool();
            world.group("chem", 4.0);
            world.group("chem.org", 4.0);
            world.submit("theirs", "bob", 4, |job| job.group = Some("chem.org".to_owned()));
            world.pass(30);
            world.submit("job", "alice", 1, |job| job.group = Some("chem".to_owned()));
            world
        },
        "waits for group chem: 0 of 0 in use; the groups inside chem have the other 4 of its quota of 4, and chem gets what they \
         leave: wait, charge the job to one of them, or have an admin change the quotas",
    ),
    (
        "a quota that can never be, where a policy says what slots weigh",
        || {
            let mut world = pool();
            let text = "SLOT_WEIGHT = Cpus * 2\n";
            let mut startd = StartdConfig::default();
            crate::startd::config::understand(text).config.unwrap().put_into(&mut startd);
            world.govern(startd, text);
            world.group("physics", 2.0);
            world.submit("job", "alice", 1, |job| {
                (job.group, job.request.cpus) = (Some("physics".to_owned()), 3);
            });
            world
        },
        "a proc takes 6 of group physics, whose quota is 2 in all; request less, or have an admin raise the quota",
    ),
    (
        "busy, and somebody before whom no machine could ever run",
        || {
            let mut world = pool();
            world.submit("theirs", "carol", 8, |_| ());
            world.submit("never", "bob", 1, |job| job.request.cpus = 100);
            world.pass(30);
            world.submit("job", "alice", 3, |_| ());
            world
                .sees(Event::Submitter(SubmitterFacts { factor: Some(90_000.0), ..kit::submitter("alice") }));
            world
        },
        "every node that could run a proc is busy; the next turn is alice's",
    ),
    (
        "ceiling",
        || {
            let mut world = pool();
            world.sees(Event::Submitter(SubmitterFacts { ceiling: Some(3.0), ..kit::submitter("alice") }));
            world.submit("job", "alice", 6, |_| ());
            world
        },
        "waits for the ceiling of alice: 3 of 3 in use",
    ),
    (
        "limit",
        || {
            let mut world = limited(2.0);
            world.submit("job", "alice", 5, |job| job.limits = vec!["XSW".to_owned()]);
            world
        },
        "waits for concurrency limit xsw: 2 of 2 in use",
    ),
    (
        "a limit that can never be",
        || {
            let mut world = limited(3.0);
            world.submit("job", "alice", 5, |job| job.limits = vec!["XSW:9".to_owned()]);
            world
        },
        "a proc takes 9 of concurrency limit xsw, which has 3 in all; ask for less, or have an admin raise the limit",
    ),
    (
        "busy",
        || {
            let mut world = pool();
            world.submit("theirs", "bob", 8, |_| ());
            world.pass(30);
            closed(&mut world, |facts| facts.cordoned = true);
            world.submit("job", "alice", 3, |_| ());
            world
        },
        "every node that could run a proc is busy; the next turn is alice's; not in use: n3 is cordoned",
    ),
    (
        "too large",
        || {
            let mut world = pool();
            world.submit("job", "alice", 3, |job| job.request.disk_kib = 5 << 30);
            world
        },
        "spec.requests.disk: asks for 5Ti of disk, and the most that a node has is 100Gi of disk (n1); ask for less, or add a \
         larger node",
    ),
    (
        "cordoned",
        || {
            let mut world = pool();
            closed(&mut world, |facts| facts.cordoned = true);
            world.submit("job", "alice", 3, |job| job.request.cpus = 12);
            world
        },
        "the only node that could run a proc offers nothing now: n3 is cordoned",
    ),
    (
        "cordoned, while some procs of the job run there",
        || {
            let mut world = pool();
            closed(&mut world, |_| ());
            world.submit("job", "alice", 3, |job| job.request.cpus = 12);
            world.pass(30);
            closed(&mut world, |facts| facts.cordoned = true);
            world
        },
        "the only node that could run a proc offers nothing now: n3 is cordoned",
    ),
    (
        "drained",
        || {
            let mut world = pool();
            closed(&mut world, |_| ());
            world.settle();
            let spec = DrainSpec {
                machine: "n3".into(),
                schedule: DrainSchedule::Graceful,
                resume: false,
                check: None,
                start: None,
                reason: None,
            };
            world.sees(Event::Drain(DrainFacts {
                name: "d".into(),
                uid: "d".into(),
                generation: 1,
                created: world.now,
                spec: Ok(spec.into()),
                recorded: None,
                cost: DrainCost::default(),
            }));
            world.settle();
            world.submit("job", "alice", 3, |job| {
                job.requirements = Some("TARGET.Machine == \"n3\"".to_owned());
            });
            world
        },
        "no node matches: the nearest, n3, is drained for DrainRequest d; change the job, or ask an admin to change the policy or \
         add a node",
    ),
    (
        "drained because it is cordoned, while a job leaves",
        || {
            let mut world = pool();
            let text = "MAXJOBRETIREMENTTIME = 36000\n";
            let mut startd = StartdConfig { drain_cordoned: true, ..StartdConfig::default() };
            crate::startd::config::understand(text).config.unwrap().put_into(&mut startd);
            world.govern(startd, text);
            world.submit("theirs", "bob", 8, |_| ());
            world.pass(30);
            let facts = MachineFacts { cordoned: true, ..world.machines["n1"].clone() };
            world.set_node(facts);
            world.submit("job", "alice", 1, |job| {
                job.requirements = Some("TARGET.Machine == \"n1\"".to_owned());
            });
            world
        },
        "the only node that could run a proc offers nothing now: n1 is cordoned, and is drained",
    ),
    (
        "drained because it is cordoned, and refused by START too",
        || {
            let mut world = pool();
            let text = "START = TARGET.Owner == \"bob\"\n";
            let mut startd = StartdConfig { drain_cordoned: true, ..StartdConfig::default() };
            crate::startd::config::understand(text).config.unwrap().put_into(&mut startd);
            world.govern(startd, text);
            let facts = MachineFacts { cordoned: true, ..world.machines["n1"].clone() };
            world.set_node(facts);
            world.submit("job", "alice", 1, |_| ());
            world
        },
        "the only node, n2, refuses the job by START = TARGET.Owner == \"bob\" of NodePolicy p (the job has Owner \"alice\"); change \
         the job, or ask an admin to change the policy or add a node",
    ),
    (
        "tainted",
        || {
            let mut world = pool();
            closed(&mut world, |facts| {
                facts.taints =
                    vec![Taint { key: "gpu".into(), value: String::new(), effect: "NoSchedule".into() }];
            });
            world.submit("job", "alice", 3, |job| job.request.cpus = 12);
            world
        },
        "the only node that could run a proc offers nothing now: n3 has the taint gpu",
    ),
    (
        "START",
        || {
            let mut world = pool();
            let text = "START = TARGET.Owner == \"bob\"\n";
            let mut startd = StartdConfig::default();
            crate::startd::config::understand(text).config.unwrap().put_into(&mut startd);
            world.govern(startd, text);
            world.submit("job", "alice", 3, |_| ());
            world
        },
        "no node matches: the nearest, n1, refuses the job by START = TARGET.Owner == \"bob\" of NodePolicy p (the job has \
         Owner \"alice\"); change the job, or ask an admin to change the policy or add a node",
    ),
    (
        "requireGpus",
        || {
            let mut world = pool();
            let mut facts = kit::machine("gpu1", 8, 16);
            facts.allocatable.extended.insert("nvidia.com/gpu".into(), 2);
            let labels = [
                ("nvidia.com/gpu.product", "Tesla T4"),
                ("nvidia.com/gpu.compute.major", "7"),
                ("nvidia.com/gpu.compute.minor", "5"),
            ];
            facts.labels = labels
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into_iter()
                .collect::<std::collections::BTreeMap<_, _>>()
                .into();
            world.set_node(facts);
            world.submit("job", "alice", 1, |job| {
                job.request.gpus = 1;
                job.gpus =
                    GpuDemands { require: Some("Capability >= 8.0".to_owned()), ..GpuDemands::default() };
            });
            world
        },
        "spec.requests.requireGpus: no node matches: the nearest, gpu1, has as its best GPU a Tesla T4 with Capability 7.5, and \
         does not meet Capability >= 8.0; relax the job, or add a node that meets it",
    ),
    (
        "no node is there",
        || {
            let mut world = World::new();
            closed(&mut world, |facts| facts.ready = false);
            world.submit("job", "alice", 3, |_| ());
            world
        },
        "no node offers its resources: n3 is not Ready; see kubectl get pslots -o wide",
    ),
    (
        "held",
        || {
            let mut world = pool();
            world.submit("job", "alice", 1, |job| job.request.cpus = 64);
            let uid = job(&world).key.uid.clone();
            let hold = HoldReason { code: JOB_POLICY_UNDEFINED, subcode: 0, reason: "too many steps".into() };
            world.pool.hold_waiting(&uid, &hold, world.now);
            world
        },
        "proc 0 is held: too many steps (code 5); edit the job's spec to release it",
    ),
];

#[test]
fn each_cause_is_told_in_the_same_words_everywhere() {
    for (cause, story, expected) in CAUSES {
        let mut world = story();
        world.pass(120);
        assert_eq!(why::why(job(&world), &[], world.now).as_deref(), Some(expected), "{cause}");
        let held = why::held(job(&world)).map(|_| "is held: too many steps (code 5)");
        let event = held.map_or_else(
            || format!("{}: {expected}", why::matchable(job(&world), world.now).reason),
            str::to_owned,
        );
        assert!(world.log.iter().any(|told| told.contains(&event)), "{cause}: {:#?}", world.log);
    }
}

/// No cycle looks for a node until the pause is over, so that the text must not promise that the next one decides.
#[test]
fn a_proc_that_pauses_says_why_and_until_when() {
    let mut world = pool();
    world.submit("job", "alice", 2, |_| ());
    world.pass(5);
    let evict = |world: &mut World, pod: &str| {
        let pod = world.pods[pod].facts.pod.clone();
        world.end_pod(&pod, None);
        world.settle();
    };
    let pauses = |world: &World, expected: &str| {
        assert_eq!(text(world), expected);
        let said = why::matchable(job(world), world.now);
        assert_eq!((said.status, said.reason), (Some(true), "Pausing"));
    };
    evict(&mut world, "job-0");
    pauses(&world, "proc 0 was evicted (deleted), and is tried again at 2023-11-14T22:13:35Z");
    world.pass(70);
    assert_eq!(why::why(job(&world), &[], world.now), None, "both run");
    evict(&mut world, "job-0");
    evict(&mut world, "job-1");
    pauses(
        &world,
        "proc 1 was evicted (deleted), and is tried again at 2023-11-14T22:14:45Z; another proc pauses, too",
    );
    // Somebody else takes all nodes during the pause.
    world.submit("theirs", "bob", 8, |_| ());
    world.pass(9);
    assert_eq!(why::matchable(job(&world), world.now).reason, "Pausing");
    world.pass(70);
    assert_eq!(why::matchable(job(&world), world.now).reason, "MachinesBusy");
}
