//! Job transforms and submit requirements, as the manual's policy chapter has them, in a world with an operator that dies.

use std::sync::Arc;

use super::governed::{submit_by, submit_by_rule};
use super::world::World;
use crate::pool::{Event, JobSpec, OwnerRule, OwnerSource, Problem, Requester};
use crate::schedd::Submission;
use classad::{Env, Value};

fn world() -> World {
    let mut world = World::new();
    world.node("n1", 16, 0);
    world.pool.apply(Event::Synced, world.now);
    world
}

/// Applies a SubmitPolicy of this text.
pub(super) fn policy(world: &mut World, text: &str) {
    submit_by(world, "p", text);
}

/// Submits a job. Returns the spec as policy made it, or what policy says against the job.
fn submitted(
    world: &mut World,
    owner: &str,
    edit: impl FnOnce(&mut Submission),
) -> Result<Arc<JobSpec>, Vec<Problem>> {
    let name = format!("job{}", world.pool.jobs().len());
    world.submit(&name, owner, 1, edit);
    let job = world.pool.jobs().values().find(|job| *job.key.name == *name).unwrap();
    job.spec.clone().ok_or_else(|| job.problems.clone())
}

fn value(spec: &JobSpec, name: &str) -> Value {
    spec.ad.eval_attr(name, None, &Env::at(0))
}

fn messages(found: Result<Arc<JobSpec>, Vec<Problem>>) -> Vec<(&'static str, String)> {
    found.err().unwrap_or_default().into_iter().map(|problem| (problem.reason, problem.message)).collect()
}

/// The manual's example, with the map that the manual assumes.
const MANUAL: &str = r#"
SCHEDD_CLASSAD_USER_MAP_NAMES = Groups
CLASSAD_USER_MAPDATA_Groups @=end
* alice physics,chemistry
* bob cms
@end

JOB_TRANSFORM_NAMES = AssignGroup, SL6ToDocker

JOB_TRANSFORM_AssignGroup @=end
   # map Owner to group using the existing accounting group attribute as requested group
   EVALSET AcctGroup = userMap("Groups",Owner,AcctGroup)
   EVALSET AccountingGroup = join(".",AcctGroup,Owner)
@end

JOB_TRANSFORM_SL6ToDocker @=end
   # match only vanilla jobs that have WantSL6 and do not already have a DockerImage
   REQUIREMENTS JobUniverse==5 && WantSL6 && DockerImage =?= undefined
   SET  WantDocker = true
   SET  DockerImage = "SL6"
   SET  Requirements = TARGET.HasDocker && $(MY.Requirements)
@end
"#;

#[test]
fn the_manuals_assign_group_charges_jobs_to_the_groups_of_their_owners() {
    let mut world = world();
    policy(&mut world, MANUAL);
    for (owner, group, submitter) in [
        ("alice", None, "physics.alice"),
        ("alice", Some("chemistry"), "chemistry.alice"),
        ("alice", Some("cms"), "physics.alice"),
        ("bob", None, "cms.bob"),
    ] {
        let spec = submitted(&mut world, owner, |job| job.group = group.map(str::to_owned)).unwrap();
        assert_eq!(spec.submitter.as_str(), submitter, "{owner} {group:?}");
        assert_eq!(value(&spec, "AccountingGroup"), Value::from(submitter));
        assert!(spec.group_by_policy, "no GroupQuota need name the owner");
    }
    let nobody = submitted(&mut world, "carol", |_| {}).unwrap();
    assert_eq!((nobody.submitter.as_str(), nobody.group.clone()), ("carol", None), "whom no map knows");
}

#[test]
fn the_manuals_sl6_to_docker_gives_a_job_an_image_and_keeps_its_needs() {
    let mut world = world();
    policy(&mut world, MANUAL);
    let wants = |job: &mut Submission| {
        job.attributes.insert("WantSL6".into(), "true".into());
        job.requirements = Some("TARGET.Arch == \"X86_64\"".into());
        job.node_selector.insert("zone".into(), "a".into());
    };
    let spec = submitted(&mut world, "bob", wants).unwrap();
    assert_eq!((spec.image.as_deref(), value(&spec, "WantDocker")), (Some("SL6"), Value::from(true)));
    let requirements = spec.ad.get("Requirements").unwrap().to_string();
    for clause in ["TARGET.HasDocker", "TARGET.Arch == \"X86_64\"", "TARGET.NodeLabels"] {
        assert_eq!(requirements.matches(clause).count(), 1, "{clause} in {requirements}");
    }
    let plain = submitted(&mut world, "bob", |_| {}).unwrap();
    assert_eq!((plain.image.as_deref(), plain.ad.contains("WantDocker")), (None, false));
}

/// Request, priorities, image and so on follow from the ad's attributes as a transform leaves them.
#[test]
fn a_transform_reaches_what_acts() {
    let mut world = world();
    policy(
        &mut world,
        r#"
JOB_TRANSFORM_NAMES = More
JOB_TRANSFORM_More @=end
   SET RequestCpus = 2
   SET RequestMemory = RequestCpus * 512
   SET RequestDisk = 2048
   SET JobPrio = 7
   DEFAULT MaxJobRetirementTime 60
   SET Requirements = true
   SET ContainerImage = "docker://registry/sl6:1"
@end
"#,
    );
    let spec = submitted(&mut world, "alice", |job| {
        job.node_selector.insert("zone".into(), "a".into());
    })
    .unwrap();
    let request = &spec.request;
    assert_eq!((request.cpus, request.memory_mib, request.disk_kib), (2, 1024, 2048));
    assert_eq!((spec.priorities, value(&spec, "MaxJobRetirementTime")), ([0, 0, 7, 0, 0], Value::from(60)));
    assert_eq!(spec.image.as_deref(), Some("registry/sl6:1"));
    let requirements = spec.ad.get("Requirements").unwrap().to_string();
    assert!(
        requirements.contains("NodeLabels"),
        "a pod cannot run where its node selector is not met: {requirements}"
    );
}

#[test]
fn a_transform_changes_nobodys_identity() {
    let mut world = world();
    policy(&mut world, "JOB_TRANSFORM_NAMES = Root\nJOB_TRANSFORM_Root = SET Owner \"root\"\n");
    let spec = submitted(&mut world, "alice", |_| {}).unwrap();
    assert_eq!((value(&spec, "Owner"), spec.submitter.as_str()), (Value::from("alice"), "alice"));
    let told: Vec<String> = world.pool.take_notices().into_iter().map(|notice| notice.note).collect();
    assert!(
        told.iter().any(|note| note.contains("(Root) changes Owner, which no policy can change")),
        "{told:?}"
    );
}

#[test]
fn a_change_that_nothing_can_act_on_is_the_jobs_problem() {
    for (text, message) in [
        (
            "SET RequestMemory \"much\"",
            "the SubmitPolicy's transforms make RequestMemory \"much\", which is no amount of at least 1; ask an admin to mend them",
        ),
        (
            "DELETE RequestCpus",
            "the SubmitPolicy's transforms make RequestCpus undefined, which is no amount of at least 1; ask an admin to mend them",
        ),
        (
            "SET AcctGroup \"a b\"",
            "the SubmitPolicy's transforms make AcctGroup \"a b\", which is no group's name; ask an admin to mend them",
        ),
        (
            "SET DockerImage 7",
            "the SubmitPolicy's transforms make DockerImage 7, which is no image's name; ask an admin to mend them",
        ),
    ] {
        let mut world = world();
        policy(&mut world, &format!("JOB_TRANSFORM_NAMES = T\nJOB_TRANSFORM_T = {text}\n"));
        let found = messages(submitted(&mut world, "alice", |_| {}));
        assert_eq!(found, [("TransformFailed", message.to_owned())], "{text}");
    }
}

/// The manual's submit requirements and the warning before a new one.
const REQUIREMENTS: &str = r#"
SUBMIT_REQUIREMENT_NAMES = NotStandardUniverse, MinimalRequestMemory, NotChris
SUBMIT_REQUIREMENT_NotStandardUniverse = JobUniverse != 1
SUBMIT_REQUIREMENT_MinimalRequestMemory = RequestMemory > 512
SUBMIT_REQUIREMENT_NotChris = Owner != "chris"
SUBMIT_REQUIREMENT_MinimalRequestMemory_REASON = strcat( "The job only requested ", \
  RequestMemory, " Megabytes.  If that small amount is really enough, please contact ..." )
SUBMIT_REQUIREMENT_NotChris_REASON = "Chris, you may only submit jobs to the instructional pool."
SUBMIT_REQUIREMENT_NAMES = OneGig $(SUBMIT_REQUIREMENT_NAMES)
SUBMIT_REQUIREMENT_OneGig = RequestMemory > 1024
SUBMIT_REQUIREMENT_OneGig_REASON = "As of <date>, the minimum requested memory will be 1024."
SUBMIT_REQUIREMENT_OneGig_IS_WARNING = TRUE
"#;

#[test]
fn the_manuals_submit_requirements_refuse_with_the_first_reason_and_warn() {
    let mut world = world();
    policy(&mut world, REQUIREMENTS);
    let found = messages(submitted(&mut world, "alice", |job| job.request.memory_mib = 256));
    let little = "The job only requested 256 Megabytes.  If that small amount is really enough, please contact ... \
                  (MinimalRequestMemory)";
    assert_eq!(found, [("SubmitRequirement", little.to_owned())]);
    let found = messages(submitted(&mut world, "chris", |job| job.request.memory_mib = 2048));
    let chris = "Chris, you may only submit jobs to the instructional pool. (NotChris)";
    assert_eq!(found, [("SubmitRequirement", chris.to_owned())]);
    world.pool.take_notices();
    assert!(submitted(&mut world, "alice", |job| job.request.memory_mib = 800).is_ok());
    let told: Vec<_> =
        world.pool.take_notices().into_iter().map(|notice| (notice.reason, notice.note)).collect();
    let warned = "As of <date>, the minimum requested memory will be 1024. (OneGig)";
    assert!(told.contains(&("SubmitWarning", warned.to_owned())), "{told:?}");
    world.settle();
    assert_eq!(world.pool.slots().len(), 1, "only the job that was let in runs");
}

#[test]
fn requirements_look_at_the_job_as_transforms_made_it() {
    let mut world = world();
    let text = "JOB_TRANSFORM_NAMES = Memory\nJOB_TRANSFORM_Memory = SET RequestMemory 1024\n\
                SUBMIT_REQUIREMENT_NAMES = Big\nSUBMIT_REQUIREMENT_Big = RequestMemory > 512\n";
    policy(&mut world, text);
    assert_eq!(submitted(&mut world, "alice", |_| {}).unwrap().request.memory_mib, 1024);
}

/// No edit changes an attribute that `IMMUTABLE_JOB_ATTRS` or `PROTECTED_JOB_ATTRS` lists. The feature
/// AssignAccountingGroup adds attributes to the first list.
#[test]
fn what_is_immutable_is_not_edited() {
    let mut world = world();
    policy(&mut world, "IMMUTABLE_JOB_ATTRS = Project\nPROTECTED_JOB_ATTRS = Site\n");
    let with = |name: &'static str, text: &'static str| {
        move |job: &mut Submission| {
            job.attributes.insert(name.into(), text.into());
        }
    };
    for (name, edited) in [("Project", false), ("Site", false), ("Color", true)] {
        let spec = submitted(&mut world, "alice", with(name, "1")).unwrap();
        world.settle();
        let job =
            world.pool.jobs().values().find(|job| job.spec.as_ref() == Some(&spec)).unwrap().key.clone();
        world.edit(&job.name, "alice", with(name, "2"));
        let job = &world.pool.jobs()[&job.uid];
        let found: Vec<&str> = job.problems.iter().map(|problem| problem.reason).collect();
        assert_eq!(found.is_empty(), edited, "{name}: {found:?}");
    }
}

/// Neither `condor_submit` nor `condor_qedit` can set a secure attribute, whoever asks. By default the job goes on
/// without the attribute; with `IGNORE_ATTEMPTS_TO_SET_SECURE_JOB_ATTRS = False` the job is refused.
#[test]
fn only_transforms_set_secure_attributes() {
    const SECURE: &str = "SECURE_JOB_ATTRS = Trust AcctGroup RequestCpus\n\
        JOB_TRANSFORM_NAMES = T\nJOB_TRANSFORM_T = SET Trust 7\n";
    let with = |name: &'static str, text: &'static str| {
        move |job: &mut Submission| {
            job.attributes.insert(name.into(), text.into());
        }
    };
    let reasons = |problems: &[Problem]| problems.iter().map(|problem| problem.reason).collect::<Vec<_>>();
    for (text, trust, warned) in
        [(SECURE, Some("7"), true), ("SECURE_JOB_ATTRS = trust\n", None, true), ("", Some("1"), false)]
    {
        let mut world = world();
        policy(&mut world, text);
        let spec = submitted(&mut world, "alice", with("Trust", "1")).unwrap();
        assert_eq!(spec.ad.get("Trust").map(ToString::to_string).as_deref(), trust, "{text}");
        let job = world.pool.jobs().values().next().unwrap();
        assert_eq!(
            reasons(&job.told.policy),
            if warned { vec!["SecureAttribute"] } else { vec![] },
            "{text}"
        );
    }
    let mut world = world();
    policy(&mut world, &format!("{SECURE}IGNORE_ATTEMPTS_TO_SET_SECURE_JOB_ATTRS = False\n"));
    let refused = submitted(&mut world, "alice", with("trust", "1")).unwrap_err();
    assert_eq!(reasons(&refused), ["SecureAttribute"]);
    let refused = submitted(&mut world, "alice", with("AuthTokenSubject", "\"root\"")).unwrap_err();
    assert_eq!(reasons(&refused), ["SecureAttribute"], "of SYSTEM_SECURE_JOB_ATTRS");
    let spec = submitted(&mut world, "alice", |_| {}).unwrap();
    assert_eq!(spec.ad.get("Trust").map(ToString::to_string).as_deref(), Some("7"));
}

/// Otherwise the attribute would be back after a change of the leader.
#[test]
fn a_secure_attribute_that_was_ignored_stays_away() {
    let mut world = world();
    policy(&mut world, "SECURE_JOB_ATTRS = Trust\n");
    let set = |job: &mut Submission| drop(job.attributes.insert("Trust".into(), "1".into()));
    submitted(&mut world, "alice", set).unwrap();
    world.settle();
    world.restart();
    world.settle();
    let job = world.pool.jobs().values().next().unwrap();
    assert!(job.policy_recorded && job.spec.as_ref().unwrap().ad.get("Trust").is_none());
    assert_eq!(job.transformed.removed(), ["Trust"]);
}

/// A job keeps what policy made of it, whoever leads and whatever becomes of the policy; a job that was refused is judged by
/// the policy in force.
#[test]
fn a_job_keeps_what_policy_made_of_it_and_a_refused_job_is_judged_again() {
    let mut world = world();
    let text = "JOB_TRANSFORM_NAMES = Two\nJOB_TRANSFORM_Two = SET RequestCpus 2\n\
                SUBMIT_REQUIREMENT_NAMES = NotBob\nSUBMIT_REQUIREMENT_NotBob = Owner != \"bob\"\n";
    policy(&mut world, text);
    assert!(submitted(&mut world, "alice", |_| {}).is_ok());
    assert!(submitted(&mut world, "bob", |_| {}).is_err());
    world.settle();
    policy(&mut world, "JOB_TRANSFORM_NAMES = Three\nJOB_TRANSFORM_Three = SET RequestCpus 3\n");
    world.settle();
    let cpus = |world: &World, name: &str| {
        let job = world.pool.jobs().values().find(|job| *job.key.name == *name).unwrap();
        job.spec.as_ref().unwrap().request.cpus
    };
    assert_eq!((cpus(&world, "job0"), cpus(&world, "job1")), (2, 3));
    world.restart();
    world.settle();
    assert_eq!((cpus(&world, "job0"), cpus(&world, "job1")), (2, 3), "no policy is left, and a record");
}

/// A job in the namespace `lab` of a world whose policy asks who created a job. Returns the submitter, and what the job says in vain.
fn created_by(world: &mut World, name: &str, user: Option<&str>) -> (String, Vec<&'static str>) {
    world.submit_as(name, "lab", user.map(|user| Requester { user: user.into(), groups: Vec::new() }));
    let job = world.pool.jobs().values().find(|job| *job.key.name == *name).unwrap();
    let told = job.warnings.iter().map(|warning| warning.reason).collect();
    (job.spec.as_ref().unwrap().submitter.to_string(), told)
}

#[test]
fn a_job_is_charged_to_who_created_it_and_one_that_nobody_is_known_to_have_created_to_its_namespace() {
    let mut world = world();
    world.fate = |_| (600, 0);
    submit_by_rule(&mut world, "p", "", OwnerRule::new(OwnerSource::User, None));
    assert_eq!(created_by(&mut world, "a", Some("alice")), ("alice".to_owned(), vec![]));
    assert_eq!(created_by(&mut world, "b", None), ("namespace:lab".to_owned(), vec!["OwnerUnknown"]));
    world.pass(30);
    let charged: Vec<&str> =
        world.pool.slots().values().map(|slot| slot.claim().submitter.as_str()).collect();
    assert_eq!(charged, ["alice", "namespace:lab"]);
}

#[test]
fn transforms_and_user_maps_see_the_owner_whom_the_policy_found() {
    let mut world = world();
    submit_by_rule(&mut world, "p", MANUAL, OwnerRule::new(OwnerSource::User, None));
    assert_eq!(created_by(&mut world, "a", Some("alice")).0, "physics.alice");
}

/// Otherwise usage would change hands with the policy, with a new leader, or with whoever edits the job.
#[test]
fn a_job_keeps_its_owner_whatever_becomes_of_the_policy() {
    let mut world = world();
    submit_by_rule(&mut world, "p", "", OwnerRule::new(OwnerSource::User, None));
    created_by(&mut world, "a", Some("alice"));
    world.pass(5);
    submit_by(&mut world, "p", "");
    created_by(&mut world, "b", Some("bob"));
    world.pass(5);
    submit_by_rule(&mut world, "p", "", OwnerRule::new(OwnerSource::User, None));
    for _ in 0..2 {
        let owners: Vec<String> =
            world.pool.jobs().values().map(|job| job.spec.as_ref().unwrap().owner()).collect();
        assert_eq!(owners, ["alice", "lab"]);
        world.restart();
        submit_by_rule(&mut world, "p", "", OwnerRule::new(OwnerSource::User, None));
    }
}

/// If a proc started before the status records the owner, a new leader could charge somebody else for the proc.
#[test]
fn no_proc_starts_before_the_owner_is_recorded() {
    let mut world = world();
    submit_by_rule(&mut world, "p", "", OwnerRule::new(OwnerSource::User, None));
    created_by(&mut world, "a", Some("alice"));
    let job = world.pool.jobs().values().next().unwrap();
    assert!(!job.policy_recorded);
    world.pass(5);
    assert!(world.pool.jobs().values().next().unwrap().policy_recorded);
}

/// Otherwise somebody whom a requirement keeps out could submit while no webhook answers.
#[test]
fn a_requirement_can_keep_out_jobs_whose_creator_nobody_knows() {
    let mut world = world();
    let text =
        "SUBMIT_REQUIREMENT_NAMES = Known\nSUBMIT_REQUIREMENT_Known = !regexp(\"^namespace:\", Owner)\n";
    submit_by_rule(&mut world, "p", text, OwnerRule::new(OwnerSource::User, None));
    world.submit_as("a", "lab", None);
    world.submit_as("b", "lab", Some(Requester { user: "alice".into(), groups: Vec::new() }));
    let accepted: Vec<bool> = world.pool.jobs().values().map(|job| job.problems.is_empty()).collect();
    assert_eq!(accepted, [false, true]);
}

/// Policies may go by the image, which the job itself cannot pretend.
#[test]
fn a_requirement_may_allow_certain_images() {
    let text = "SUBMIT_REQUIREMENT_NAMES = Image\nSUBMIT_REQUIREMENT_Image = regexp(\"^registry/\", ContainerImage)\n\
                SUBMIT_REQUIREMENT_Image_REASON = strcat(ContainerImage, \" is no image of ours\")\n";
    let mut world = world();
    policy(&mut world, text);
    let with = |image: &'static str| {
        move |submission: &mut Submission| {
            submission.image = Some(image.to_owned());
            submission.attributes.insert("ContainerImage".to_owned(), "\"registry/mine\"".to_owned());
        }
    };
    assert!(submitted(&mut world, "alice", with("registry/sim:3")).is_ok());
    let told = messages(submitted(&mut world, "alice", with("evil/sim:3")));
    assert_eq!(told.len(), 1);
    assert!(told[0].1.contains("evil/sim:3 is no image of ours"), "{told:?}");
}
