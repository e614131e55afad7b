//! HTCJobs as submissions.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::ResourceExt;

use super::requests::{gpu_demands, invalid_request, requests};
use super::size::too_large;
use super::template::check_template;
use crate::convert::time;
use crate::render;
use api::labels::JOB_FINALIZER;
use api::{HTCJob, HTCJobStatus, MOST_PROCS, PodRetention, ProcUsage};
use model::pool::{
    ByProc, GroupName, HoldReason, JobDefaults, JobFacts, JobKey, Problem, Ranges, RecordedOwner, Retention,
    SubmitterName, Time, Transformed, UnknownCreator, Usage,
};
use model::schedd::{Submission, submit};

/// The owner of a job unless the SubmitPolicy asks who created the job: the job's namespace. Access to the cluster is granted by
/// namespace, and no manifest can claim another one.
pub fn owner(job: &HTCJob) -> String {
    job.namespace().unwrap_or_default()
}

/// The pool's facts of an HTCJob.
pub fn facts(job: &HTCJob) -> Option<JobFacts> {
    let key =
        JobKey { uid: job.uid()?.into(), namespace: job.namespace()?.into(), name: job.name_any().into() };
    let status = job.status.clone().unwrap_or_default();
    let submitted = job.creation_timestamp().as_ref().map_or(Time::default(), time);
    Some(JobFacts {
        owner: recorded_owner(&status),
        // The engine fills this in, once it has looked at the job's seal and stamp.
        requester: Err(UnknownCreator::default()),
        spec: understand(job, submitted),
        submitter: status.submitter.as_deref().map(SubmitterName::from),
        group: job
            .spec
            .accounting_group
            .as_deref()
            .filter(|group| GroupName::is_valid(group))
            .map(GroupName::from),
        warnings: super::warnings::first_warnings(job),
        generation: job.metadata.generation.unwrap_or(1),
        submitted,
        removing: job.metadata.deletion_timestamp.is_some(),
        finalizer: is_ours(job),
        cluster_id: status.cluster_id,
        succeeded: recorded(&status.completed_procs, job),
        failed: recorded(&status.failed_procs, job),
        first_start: status.start_time.as_ref().map(time),
        completed_at: status.completion_time.as_ref().map(time),
        used: Box::new(status.usage.as_ref().map(used).unwrap_or_default()),
        defaults: JobDefaults::recall(&status.defaults).map(Arc::new),
        accepted: is_ours(job) && status.observed_generation == job.metadata.generation,
        transformed: transformed(&status, job.metadata.generation).map(Arc::new),
        on_hold: held(job, &status),
        life: Box::new(super::life::facts(job, &status)),
        key,
    })
}

fn used(usage: &ProcUsage) -> Usage {
    Usage {
        memory_mib: usage.memory_mib,
        resident_kib: usage.resident_kib,
        disk_kib: usage.disk_kib,
        cpus: usage.cpus,
        block_reads: usage.block_reads,
        block_writes: usage.block_writes,
        block_read_kib: usage.block_read_kib,
        block_write_kib: usage.block_write_kib,
        metrics: crate::kinds::node_report::metrics(&usage.metrics),
    }
}

fn recorded_owner(status: &HTCJobStatus) -> RecordedOwner {
    match &status.owner {
        Some(owner) => RecordedOwner::Of(owner.as_str().into()),
        None if status.observed_generation.is_some() => RecordedOwner::Namespace,
        None => RecordedOwner::New,
    }
}

/// Whether the operator's finalizer is on the job: an operator accepted the job.
fn is_ours(job: &HTCJob) -> bool {
    job.finalizers().iter().any(|finalizer| finalizer == JOB_FINALIZER)
}

/// The changes that the policy's transforms made to the spec, as the status records them. None if the spec was edited since.
fn transformed(status: &HTCJobStatus, generation: Option<i64>) -> Option<Transformed> {
    let policy = status.policy.as_ref().filter(|_| status.observed_generation == generation)?;
    Transformed::recall(policy.transforms.clone(), &policy.attributes, policy.removed.clone())
}

/// The held procs that a status records. If the spec was edited since, without those that an edit releases.
fn held(job: &HTCJob, status: &HTCJobStatus) -> ByProc<HoldReason> {
    let edited = status.observed_generation != job.metadata.generation;
    let mut all = ByProc::default();
    for held in &status.held_procs {
        let hold = HoldReason { code: held.code, subcode: held.subcode, reason: held.reason.as_str().into() };
        if !edited || hold.outlasts_edits() {
            all.give(&recorded(&held.procs, job), &hold);
        }
    }
    all
}

/// The procs that a record in the status names. A record that the operator cannot have written counts for all procs of the job:
/// otherwise procs that have ended would run again, and procs that are held would be released.
pub(super) fn recorded(procs: &str, job: &HTCJob) -> Ranges {
    let everything = || Ranges::up_to(u32::try_from(job.spec.count).unwrap_or(0).min(MOST_PROCS));
    read(procs).unwrap_or_else(everything)
}

/// The procs that a record in the status names; `None` if the operator cannot have written the record. Ranges of a few bytes may name
/// billions of procs, so that numbers that no job may have are refused.
pub(super) fn read(procs: &str) -> Option<Ranges> {
    Ranges::parse(procs).ok().filter(|procs| procs.is_below(MOST_PROCS))
}

fn understand(job: &HTCJob, submitted: Time) -> Result<Arc<model::pool::JobSpec>, Vec<Problem>> {
    let (submission, mut problems) = submission(job, submitted);
    match submit(&submission) {
        Ok(spec) if problems.is_empty() => Ok(Arc::new(spec)),
        Ok(_) => Err(problems),
        Err(others) => {
            problems.extend(others);
            Err(problems)
        }
    }
}

/// An HTCJob as a submission, and the problems with it as an object. [`submit`] finds the others.
pub fn submission(job: &HTCJob, submitted: Time) -> (Submission, Vec<Problem>) {
    let mut problems = Vec::new();
    // The schema says so, too, but a review may reach the webhook past the API server.
    if job.spec.count > MOST_PROCS.into() {
        let message = format!("{} is too much; a job has at most {MOST_PROCS} procs", job.spec.count);
        problems.push(invalid_request("spec.count".to_owned(), message));
    }
    let request = requests(&job.spec.requests, &mut problems);
    let gpus = gpu_demands(&job.spec.requests, &mut problems);
    let template = match template_of(job) {
        Ok(template) => {
            check_template(&template, &request, &mut problems);
            problems.extend(render::faults(job, &template).into_iter().map(|fault| Problem {
                reason: "InvalidItems",
                field: format!("spec.{}", fault.field),
                message: fault.message,
            }));
            template
        }
        Err(problem) => {
            problems.push(problem);
            PodTemplateSpec::default()
        }
    };
    let spec = template.spec.unwrap_or_default();
    // All procs share one ad, so that it cannot have an image that differs from proc to proc.
    let is_shared = |image: &String| job.spec.items.is_none() || !image.contains("$(");
    let image = spec.containers.into_iter().next().and_then(|main| main.image).filter(is_shared);
    let node_selector = spec.node_selector.unwrap_or_default();
    let submission = Submission {
        name: job.name_any(),
        namespace: job.namespace().unwrap_or_default(),
        owner: owner(job),
        submitted,
        count: job.spec.count,
        request,
        gpus,
        requirements: job.spec.requirements.clone(),
        rank: job.spec.rank.clone(),
        priority: job.spec.priority,
        group: job.spec.accounting_group.clone(),
        limits: job.spec.concurrency_limits.clone(),
        limits_expr: job.spec.concurrency_limits_expr.clone(),
        attributes: job.spec.attributes.clone(),
        image,
        node_selector,
        retention: match job.spec.pod_retention {
            PodRetention::Keep => Retention::Keep,
            PodRetention::KeepFailed => Retention::KeepFailed,
            PodRetention::Delete => Retention::Delete,
        },
        hold: job.spec.hold,
    };
    (submission, problems)
}

/// The job's pod template.
///
/// # Errors
/// When `spec.template` is not a pod template, or when the spec is too large, so that no part of it is kept.
pub fn template_of(job: &HTCJob) -> Result<PodTemplateSpec, Problem> {
    if let Some(problem) = too_large(job) {
        return Err(problem);
    }
    serde_json::from_str(job.spec.template.0.get()).map_err(|error| {
        // Line and column are those of the JSON that the API server sent, which the job's author never saw.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let why = error.to_string();
        let why = why.strip_suffix(&place).unwrap_or(&why);
        Problem {
            reason: "InvalidTemplate",
            field: "spec.template".to_owned(),
            message: format!("not a pod template: {why}; a pod template has metadata and spec, as in a Job"),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn facts(spec: Value) -> JobFacts {
        let object = json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
            "metadata": {"name": "sweep", "namespace": "alice", "uid": "u1", "generation": 3,
                         "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": spec,
        });
        super::facts(&serde_json::from_value(object).unwrap()).unwrap()
    }

    fn good() -> Value {
        json!({"count": 3, "requests": {"cpus": 2, "memory": "1500M", "disk": "1Gi"},
               "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}})
    }

    #[test]
    fn a_job_is_understood() {
        let facts = facts(good());
        let spec = facts.spec.unwrap();
        assert_eq!(
            (spec.count, spec.request.cpus, spec.request.memory_mib, spec.request.disk_kib),
            (3, 2, 1431, 1 << 20)
        );
        assert_eq!(spec.submitter.as_str(), "alice");
        assert_eq!(facts.submitted, Time::from_secs(1_767_225_600));
    }

    #[test]
    fn what_procs_used_is_known_to_the_next_leader() {
        let mut object = json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
            "metadata": {"name": "sweep", "namespace": "alice", "uid": "u1", "generation": 3}, "spec": good(),
        });
        let used =
            |object: &Value| super::facts(&serde_json::from_value(object.clone()).unwrap()).unwrap().used;
        assert_eq!(*used(&object), Usage::default());
        object["status"] = json!({"usage": {"memoryMiB": 300, "cpus": 1.5}});
        assert_eq!(*used(&object), Usage { memory_mib: Some(300), cpus: Some(1.5), ..Usage::default() });
    }

    #[test]
    fn everything_wrong_is_named_at_once() {
        let mut bad = good();
        bad["requirements"] = json!("TARGET.Memory >= && 3");
        bad["rank"] = json!("(1");
        bad["accountingGroup"] = json!("a..b");
        bad["attributes"] = json!({"Owner": "\"root\"", "1x": "1", "Ok": "1 +"});
        bad["template"]["spec"]["restartPolicy"] = json!("Always");
        bad["template"]["spec"]["containers"][0]["restartPolicy"] = json!("OnFailure");
        bad["template"]["spec"]["nodeName"] = json!("n1");
        bad["template"]["spec"]["resources"] = json!({"requests": {"cpu": "30"}});
        bad["template"]["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "mine"}]);
        bad["requests"]["memory"] = json!("lots");
        let problems: Vec<String> = facts(bad).spec.unwrap_err().iter().map(ToString::to_string).collect();
        insta::assert_yaml_snapshot!(problems);
    }

    #[test]
    fn what_no_node_can_give_is_refused() {
        for (change, problem) in [
            (r#"{"requests": {"disk": "-5"}}"#, "spec.requests.disk: -1 is too little; ask for at least 0"),
            (
                r#"{"requests": {"resources": {"cpu": 1}}}"#,
                "spec.requests.resources[cpu]: is no extended resource; say it in spec.requests.cpus",
            ),
            (
                r#"{"requests": {"resources": {"pods": 1}}}"#,
                "spec.requests.resources[pods]: is no resource to ask for: each proc is one pod; leave it out",
            ),
            (
                r#"{"requests": {"resources": {"hugepages-2Mi": 64}}}"#,
                "spec.requests.resources[hugepages-2Mi]: is a resource that no slot has; leave it out",
            ),
            (
                r#"{"requests": {"resources": {"kubernetes.io/foo": 1}}}"#,
                "spec.requests.resources[kubernetes.io/foo]: is a resource that no slot has; leave it out",
            ),
            (
                r#"{"template": {"spec": {"containers": [{"name": "main", "resources": {"limits": {"hugepages-2Mi": "64Mi"}}}]}}}"#,
                "spec.template.spec.containers[0].resources.limits[hugepages-2Mi]: is 64Mi: a pod has what its slot holds, and no \
                 slot has this resource; leave it out",
            ),
            (
                r#"{"requests": {"resources": {"no such!": 1}}}"#,
                "spec.requests.resources[no such!]: is no name of a resource; such names read nvidia.com/gpu, or squid for one \
                 that MACHINE_RESOURCE_squid declares",
            ),
            (
                r#"{"template": {"spec": {"schedulingGates": [{"name": "x"}], "containers": [{"name": "main"}]}}}"#,
                "spec.template.spec.schedulingGates: is not honored: a pod that is on a node cannot wait for its scheduling; \
                 spec.hold holds the job until you release it",
            ),
            (
                r#"{"template": {"spec": {"containers": [{"name": "main"}, {"name": "main"}]}}}"#,
                "spec.template.spec.containers[1].name: main is the name of containers[0], too; each container needs its own",
            ),
            (
                r#"{"template": {"spec": {"initContainers": [{"name": "main"}], "containers": [{"name": "main"}]}}}"#,
                "spec.template.spec.initContainers[0].name: main is the name of containers[0], too; each container needs its own",
            ),
            (
                r#"{"template": {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]}}}"#,
                "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]: is 2, but spec.requests asks for none: a pod has \
                 what its slot holds; set spec.requests.gpus",
            ),
            (
                r#"{"template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"a.b/fpga": "1"}}}]}}}"#,
                "spec.template.spec.containers[0].resources.requests[a.b/fpga]: is 1, but spec.requests asks for none: a pod has what \
                 its slot holds; set spec.requests.resources[a.b/fpga]",
            ),
        ] {
            let mut spec = good();
            spec.as_object_mut()
                .unwrap()
                .extend(serde_json::from_str::<serde_json::Map<_, _>>(change).unwrap());
            let problems = facts(spec).spec.unwrap_err();
            assert_eq!(problems[0].to_string(), problem, "{change}");
        }
    }

    #[test]
    fn extended_resources_of_the_template_may_repeat_the_request() {
        let mut spec = good();
        spec["requests"]["gpus"] = json!(1);
        spec["requests"]["resources"] = json!({"a.b/fpga": 1, "squid": 2});
        spec["template"]["spec"]["containers"][0]["resources"] =
            json!({"limits": {"nvidia.com/gpu": "1", "a.b/fpga": "1", "amd.com/gpu": "0"}});
        assert!(facts(spec.clone()).spec.is_ok(), "{:?}", facts(spec).spec);
    }

    #[test]
    fn containers_that_do_not_fit_are_refused_before_any_pod_is_made() {
        let mut greedy = good();
        greedy["template"]["spec"]["containers"] = json!([
            {"name": "main"}, {"name": "side", "resources": {"requests": {"cpu": "100m", "memory": "8Gi"}}}]);
        let problems = facts(greedy).spec.unwrap_err();
        assert_eq!(problems[0].field, "spec.template.spec.containers");
        assert!(problems[0].message.contains("more memory than the slot holds"), "{}", problems[0].message);
    }

    #[test]
    fn native_sidecars_with_requests_are_accepted() {
        let mut spec = good();
        spec["template"]["spec"]["initContainers"] = json!([
            {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}}},
            {"name": "fetch", "resources": {"requests": {"cpu": "1500m"}}}]);
        assert!(facts(spec.clone()).spec.is_ok());
        spec["template"]["spec"]["initContainers"][1]["resources"]["requests"]["cpu"] = json!("1600m");
        let problems = facts(spec).spec.unwrap_err();
        assert_eq!(problems[0].field, "spec.template.spec.containers");
        assert!(
            problems[0].message.contains("takes more cpu than the slot holds, init"),
            "{}",
            problems[0].message
        );
    }

    #[test]
    fn a_template_that_is_none_is_said_so() {
        let mut bad = good();
        bad["template"] = json!({"spec": {"containers": "none"}});
        let problems = facts(bad).spec.unwrap_err();
        assert_eq!(problems[0].field, "spec.template");
    }

    #[test]
    fn items_that_do_not_fit_are_named() {
        let mut spec = good();
        spec["items"] = json!({"variables": ["size"], "rows": [["1"], ["2"], ["3"]]});
        spec["template"]["spec"]["containers"][0]["args"] = json!(["$(size) $(Process) $(HOME)"]);
        spec["template"]["metadata"] = json!({"labels": {"run": "r$(Process)"}});
        assert!(facts(spec.clone()).spec.is_ok());
        spec["count"] = json!(4);
        spec["template"]["metadata"]["labels"]["size"] = json!("$(sise)");
        let problems: Vec<String> = facts(spec).spec.unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("spec.count: is 4, but 3 rows"), "{}", problems[0]);
        assert!(problems[1].contains("spec.template.metadata.labels.size"), "{}", problems[1]);
    }

    #[test]
    fn a_job_that_is_too_large_is_refused_and_not_kept() {
        let mut large = good();
        large["template"]["spec"]["containers"][0]["args"] = json!(vec!["x".repeat(60_000); 5]);
        let problems = facts(large.clone()).spec.unwrap_err();
        assert_eq!((problems[0].reason, problems[0].field.as_str()), ("ObjectTooLarge", "spec"));
        assert!(problems[0].message.contains("may have 262144"), "{}", problems[0].message);
        assert!(problems[0].message.contains("has 300"), "{}", problems[0].message);
        let object = json!({"metadata": {"name": "sweep", "namespace": "alice", "uid": "u1"}, "spec": large});
        assert!(template_of(&serde_json::from_value(object).unwrap()).is_err());
        let mut fits = good();
        fits["template"]["spec"]["containers"][0]["args"] = json!(vec!["x".repeat(60_000); 4]);
        assert!(facts(fits).spec.is_ok());
    }

    /// Whoever may write statuses can name four billion procs in a few bytes: such a record counts for the procs of the job.
    #[test]
    fn a_record_that_cannot_be_read_runs_nothing_again() {
        for bad in ["0-x", "1 ", "0-2,3", "0-4294967295", "0-1,100000"] {
            let object = json!({
                "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
                "metadata": {"name": "sweep", "namespace": "alice", "uid": "u1", "generation": 1},
                "spec": good(),
                "status": {
                    "observedGeneration": 1, "completedProcs": bad, "failedProcs": bad, "removedProcs": bad,
                    "heldProcs": [
                        {"procs": "1", "code": 1, "subcode": 0, "reason": "look first"},
                        {"procs": bad, "code": 1, "subcode": 0, "reason": "by a user"},
                    ],
                    "runs": [{"procs": bad, "starts": 2, "completions": 1, "holds": 0}],
                    "transformedProcs": [{"procs": bad, "attributes": {"RequestMemory": "512"}}],
                },
            });
            let facts = super::facts(&serde_json::from_value(object).unwrap()).unwrap();
            let life = &facts.life;
            for ended in [&facts.succeeded, &facts.failed, &life.removed, &life.history.procs()] {
                assert_eq!(ended.to_string(), "0-2", "{bad:?}");
            }
            let holds: Vec<_> = facts.on_hold.iter().map(|(proc, hold)| (proc, &*hold.reason)).collect();
            assert_eq!(holds, [(0, "by a user"), (1, "look first"), (2, "by a user")], "{bad:?}");
            assert!(life.changes.is_empty(), "{bad:?}");
        }
    }

    #[test]
    fn node_selectors_become_requirements() {
        let mut selective = good();
        selective["requirements"] = json!("TARGET.Memory > 1 || false");
        selective["template"]["spec"]["nodeSelector"] = json!({"it's": "a \"b\""});
        let spec = facts(selective).spec.unwrap();
        assert_eq!(
            spec.ad.get("Requirements").unwrap().to_string(),
            r#"(TARGET.Memory > 1 || false) && TARGET.NodeLabels.'it\'s' is "a \"b\"""#
        );
    }
}
