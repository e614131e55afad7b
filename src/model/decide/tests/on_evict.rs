//! `TransformOnEvict`: a proc that would be held runs again with larger requests, as condor_submit's retry_request_memory and
//! retry_request_disk ask for.

use super::governed::submit_by;
use super::world::World;
use crate::pool::{
    End, Event, HoldReason, JOB_POLICY_UNDEFINED, JobSpec, Matchable, Remains, ReportFacts, Usage, Verb,
};
use crate::schedd::Submission;
use crate::schedd::why::why;
use classad::Env;

/// The transform that condor_submit makes of `retry_request_memory = 256 MB, 512 MB`.
const BY_LIST: &str = "REQUIREMENTS (VacateReasonCode==21 || VacateReasonCode == 34) && VacateReasonSubCode == 102\\n\
    EVALSET RequestMemory RetryRequestMemory[RetryRequestMemoryIndex?:0]\\n\
    EVALSET RetryRequestMemoryIndex MIN({size(RetryRequestMemory)-1, (RetryRequestMemoryIndex?:0)+1})";

fn by_list(job: &mut Submission) {
    transform(job, "RequestMemory", BY_LIST);
    job.attributes.insert("RetryRequestMemory".to_owned(), "{256, 512}".to_owned());
}

fn transform(job: &mut Submission, name: &str, body: &str) {
    let names = job.attributes.entry("TransformOnEvict".to_owned()).or_insert_with(|| "\"\"".to_owned());
    *names = format!("\"{} {name}\"", names.trim_matches('"'));
    job.attributes.insert(format!("TransformBody_{name}"), format!("\"{body}\""));
}

fn world(procs: i64, edit: impl FnOnce(&mut Submission)) -> World {
    let mut world = World::new();
    world.fate = |_| (36_000, 0);
    world.node("n1", 4, 0);
    world.submit("big", "ada", procs, edit);
    world.pass(5);
    world
}

/// The kubelet kills the program of a proc for its memory (102) or its disk (104).
fn kill(world: &mut World, proc: u32, subcode: i64) {
    let pod = world.pods.get_mut(&*format!("big-{proc}")).expect("the proc runs");
    pod.facts.end = Some(End::Evicted { why: "too much".into() });
    pod.facts.hold = Some(Box::new(HoldReason { code: 34, subcode, reason: "too much".into() }));
    pod.facts.remains = Remains::Nothing;
    let facts = pod.facts.clone();
    world.pool.apply(Event::Pod(facts), world.now);
}

/// The kubelet kills the program of a proc. Then time passes until the proc is tried again.
fn goes_over(world: &mut World, proc: u32, subcode: i64) {
    kill(world, proc, subcode);
    world.pass(60);
}

/// The memory in MiB, and the disk in MiB, that the pod of a proc was given; `None` if the proc does not run.
fn given(world: &World, proc: u32) -> Option<(i64, i64)> {
    let pod = world.pods.get(&*format!("big-{proc}")).filter(|pod| pod.facts.end.is_none())?;
    Some((pod.plan.resources.memory_mib, pod.plan.resources.disk_kib / 1024))
}

fn held(world: &World) -> Vec<(u32, i64, i64)> {
    let job = world.pool.jobs().values().next().unwrap();
    job.on_hold.iter().map(|(proc, hold)| (*proc, hold.code, hold.subcode)).collect()
}

/// The manual, retry_request_memory: "the memory request of the job will be adjusted to the next quantity and the job will run again
/// rather than being held. When the job is already requesting the last quantity in the list, it will be held".
#[test]
fn a_proc_that_goes_over_its_memory_has_the_next_amount_of_the_list() {
    let mut world = world(1, by_list);
    assert_eq!(given(&world, 0), Some((128, 1)));
    goes_over(&mut world, 0, 102);
    assert_eq!((given(&world, 0), held(&world)), (Some((256, 1)), vec![]));
    goes_over(&mut world, 0, 102);
    assert_eq!((given(&world, 0), held(&world)), (Some((512, 1)), vec![]));
    goes_over(&mut world, 0, 102);
    assert_eq!((given(&world, 0), held(&world)), (None, vec![(0, 34, 102)]));
}

#[test]
fn a_transform_whose_requirements_are_not_met_keeps_no_proc_from_its_hold() {
    let mut world = world(1, by_list);
    goes_over(&mut world, 0, 104);
    assert_eq!((given(&world, 0), held(&world)), (None, vec![(0, 34, 104)]));
}

#[test]
fn each_transform_is_for_what_its_requirements_say() {
    let mut world = world(1, |job| {
        by_list(job);
        transform(
            job,
            "RequestDisk",
            "REQUIREMENTS VacateReasonSubCode == 104\\nEVALSET RequestDisk RequestDisk * 2",
        );
    });
    goes_over(&mut world, 0, 104);
    assert_eq!(given(&world, 0), Some((128, 2)));
    goes_over(&mut world, 0, 102);
    assert_eq!(given(&world, 0), Some((256, 2)), "earlier changes stay");
}

#[test]
fn other_procs_keep_the_jobs_request() {
    let mut world = world(3, by_list);
    goes_over(&mut world, 1, 102);
    assert_eq!([0, 1, 2].map(|proc| given(&world, proc)), [Some((128, 1)), Some((256, 1)), Some((128, 1))]);
}

#[test]
fn why_says_that_no_node_has_what_a_transform_asks_for() {
    let mut world = world(2, |job| {
        by_list(job);
        job.attributes.insert("RetryRequestMemory".to_owned(), "{1048576}".to_owned());
    });
    goes_over(&mut world, 0, 102);
    let job = world.pool.jobs().values().next().unwrap();
    assert_eq!((job.idle.len(), job.active.len()), (1, 1));
    let why = why(job, &job.problems, world.now).unwrap();
    assert!(
        why.starts_with("spec.requests.memory: asks for 1Ti of memory, and the most that a node has is"),
        "{why}"
    );
    assert!(
        why.ends_with("; the request is the one that the job's TransformOnEvict made after a kill"),
        "{why}"
    );
    // Whoever asks for less by an edit is explained by the job's own request again.
    world.edit("big", "ada", |job| job.count = 2);
    world.pass(60);
    let job = world.pool.jobs().values().next().unwrap();
    assert_eq!((job.idle.len(), job.active.len(), &job.matchable), (0, 2, &Matchable::Yes));
}

/// A claim is used again only by a proc that fits into its slot.
#[test]
fn a_proc_with_a_larger_request_leaves_its_slot_to_others() {
    let mut world = world(8, by_list);
    goes_over(&mut world, 0, 102);
    assert_eq!(given(&world, 0), None, "no slot is large enough, and four procs run that fit into theirs");
    assert_eq!((0..8).filter(|proc| given(&world, *proc) == Some((128, 1))).count(), 4);
}

#[test]
fn a_new_leader_knows_what_procs_request() {
    let mut world = world(2, by_list);
    goes_over(&mut world, 1, 102);
    world.restart();
    world.pass(5);
    assert_eq!([0, 1].map(|proc| given(&world, proc)), [Some((128, 1)), Some((256, 1))]);
    goes_over(&mut world, 1, 102);
    assert_eq!((given(&world, 1), held(&world)), (Some((512, 1)), vec![]), "the list goes on where it was");
}

#[test]
fn condor_history_knows_what_the_proc_requested_in_the_end() {
    let mut world = world(2, by_list);
    world.keep_history();
    goes_over(&mut world, 1, 102);
    for proc in [0, 1] {
        let pod = world.pods[&*format!("big-{proc}")].facts.pod.clone();
        world.end_pod(&pod, Some(0));
    }
    world.pass(5);
    let ads = world.history.iter().flatten().map(|(_, (_, ad))| ad);
    let requested = ads
        .map(|ad| ["ProcId", "RequestMemory"].map(|name| ad.eval_attr(name, None, &Env::at(0)).to_string()));
    assert_eq!(requested.collect::<Vec<_>>(), [["0", "128"], ["1", "256"]]);
}

#[test]
fn whoever_edits_the_job_says_anew_what_its_procs_request() {
    let mut world = world(1, by_list);
    goes_over(&mut world, 0, 102);
    world.edit("big", "ada", |job| {
        by_list(job);
        job.attributes.insert("RetryRequestMemory".to_owned(), "{640, 1024}".to_owned());
        job.request.memory_mib = 384;
    });
    goes_over(&mut world, 0, 102);
    assert_eq!(given(&world, 0), Some((384, 1)), "what ran was killed under the former spec");
    goes_over(&mut world, 0, 102);
    assert_eq!(given(&world, 0), Some((640, 1)), "the list begins again");
}

/// `retry_request_memory = MemoryUsage * 3 / 2`: by what an agent measured, or else by the limit that the proc reached.
#[test]
fn a_transform_sees_what_the_proc_used() {
    let body = "REQUIREMENTS VacateReasonSubCode == 102\\nEVALSET RequestMemory MemoryUsage * 3 / 2";
    for (measured, expected) in [(None, 256), (Some(400), 640)] {
        let mut world = world(1, |job| transform(job, "M", body));
        if let Some(memory) = measured {
            let mut facts = ReportFacts::of("n1".into());
            let usage = Usage { memory_mib: Some(memory), ..Usage::default() };
            facts.usage.extend([(world.pods["big-0"].facts.pod.uid.clone(), usage)]);
            world.pool.apply(Event::Report(facts), world.now);
        }
        goes_over(&mut world, 0, 102);
        let why = "3/2 of 128 is 192, and 3/2 of 400 is 600: the slot's quantum rounds up to 128 MiB";
        assert_eq!(given(&world, 0), Some((expected, 1)), "{measured:?}: {why}");
    }
}

/// Anybody may write a transform for their own job. So a transform changes none of the attributes by which a policy
/// or the owner of a machine tells jobs apart.
#[test]
fn a_transform_changes_nothing_but_requests() {
    let body = "SET RequestMemory 256\\nSET AcctGroup \\\"physics\\\"\\nSET Owner \\\"bob\\\"\\nSET User \\\"bob\\\"\\n\
        SET Requirements true\\nSET JobPrio 20\\nSET Trust true\\nSET ContainerImage \\\"evil\\\"\\nDELETE Rank";
    let mut world = world(1, |job| transform(job, "M", body));
    goes_over(&mut world, 0, 102);
    assert_eq!(given(&world, 0), Some((256, 1)));
    let job = world.pool.jobs().values().next().unwrap();
    let (base, own) = (job.spec.as_ref().unwrap(), job.spec_of(0).unwrap());
    let other = |(name, expr): &(&classad::Name, &classad::Expr)| {
        base.ad.get(name.as_str()).map(ToString::to_string) != Some(expr.to_string())
    };
    let changed: Vec<_> = own.ad.iter().filter(other).map(|(name, _)| name.as_str().to_owned()).collect();
    assert_eq!(changed, ["RequestMemory"]);
    let rest =
        |spec: &JobSpec| (spec.submitter.clone(), spec.group.clone(), spec.priorities, spec.image.clone());
    assert_eq!(rest(own), rest(base));
}

#[test]
fn a_transform_changes_no_request_that_the_policy_guards() {
    let mut world = World::new();
    submit_by(&mut world, "p", "IMMUTABLE_JOB_ATTRS = requestmemory\n");
    world.fate = |_| (36_000, 0);
    world.node("n1", 4, 0);
    world.submit("big", "ada", 1, by_list);
    world.pass(5);
    goes_over(&mut world, 0, 102);
    assert_eq!((given(&world, 0), held(&world)), (None, vec![(0, 34, 102)]));
}

/// The operator looks at the first eight transforms of a job only: its time belongs to all jobs.
#[test]
fn only_so_many_transforms_are_looked_at() {
    for (before, helps) in [(7, true), (8, false)] {
        let mut world = world(1, |job| {
            for number in 0..before {
                transform(job, &format!("N{number}"), "SET Beta 1");
            }
            transform(job, "M", "SET RequestMemory 256");
        });
        goes_over(&mut world, 0, 102);
        assert_eq!(given(&world, 0).is_some(), helps, "after {before} others");
    }
}

/// A transform that changes no request, that is no transform or too long a text, whose request is no amount, or whose changes are too
/// long to record, keeps no proc from its hold.
#[test]
fn a_transform_that_helps_nobody_changes_nothing() {
    let long = format!("SET RequestMemory 256\\n{}", "#".repeat(4096));
    let much = "SET RequestMemory 256\\nEVALSET RequestNote strcat(Pad, Pad)";
    let bodies =
        ["SET Beta 1", "SET", "EVALSET RequestMemory undefined", "SET RequestMemory -1", "", &long, much];
    for body in bodies {
        let mut world = world(1, |job| {
            transform(job, "M", body);
            job.attributes.insert("Pad".to_owned(), format!("\"{}\"", "x".repeat(3000)));
        });
        goes_over(&mut world, 0, 102);
        assert_eq!((given(&world, 0), held(&world)), (None, vec![(0, 34, 102)]), "{body:.60}");
    }
}

/// However much the specs of procs differ, the job's status stays small: a proc for which there is no room is held.
#[test]
fn a_job_has_a_bounded_number_of_specs() {
    let mut world = world(70, |job| transform(job, "M", "EVALSET RequestMemory RequestMemory + ProcId + 1"));
    world.node("n2", 80, 0);
    world.pass(60);
    for proc in 0..70 {
        kill(&mut world, proc, 102);
    }
    let job = world.pool.jobs().values().next().unwrap();
    assert_eq!(job.changes_of_procs().len(), 64);
    assert_eq!(held(&world), [64, 65, 66, 67, 68, 69].map(|proc| (proc, 34, 102)));
    world.act("big", Verb::Remove, "0-63", "via condor_rm (by user ada)");
    world.pass(1);
    let job = world.pool.jobs().values().next().unwrap();
    assert!(job.changes_of_procs().is_empty(), "specs that no proc has any more are forgotten");
}

/// The request of a proc that was killed takes too many steps to evaluate. The procs with the job's own request wait on.
#[test]
fn only_the_procs_whose_own_request_is_too_expensive_are_held() {
    let mut world = world(8, |job| {
        transform(job, "M", "SET RequestMemory 256");
        job.requirements = Some("RequestMemory < 200 || regexp(\"(a{1,110}){1,110}b\", B)".to_owned());
        job.attributes.insert("B".to_owned(), format!("\"{}\"", "a".repeat(11_000)));
    });
    goes_over(&mut world, 0, 102);
    world.node("n2", 1, 0);
    world.pass(60);
    let codes: Vec<(u32, i64)> = held(&world).into_iter().map(|(proc, code, _)| (proc, code)).collect();
    assert_eq!(codes, [(0, JOB_POLICY_UNDEFINED)]);
}
