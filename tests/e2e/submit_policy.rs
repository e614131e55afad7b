//! SubmitPolicies: a job without requests gets the policy's defaults when it is submitted, and keeps them when the policy
//! changes; a job without an accounting group gets the group that the policy assigns to its owner.

use api::SubmitPolicy;
use controller::convert::{ceil_units, millis};
use hollow::nodes::shapes;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::{Cluster, condition, eventually, job, story};

fn policy(name: &str, config: &str) -> Value {
    json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "SubmitPolicy", "metadata": {"name": name},
           "spec": {"config": config}})
}

/// Waits until a condition of a policy's current generation has this reason, and `part` in its message.
async fn says(cluster: &Cluster, name: &str, type_: &str, reason: &str, part: &str) {
    let policies: Api<SubmitPolicy> = Api::all(cluster.client.clone());
    eventually(&format!("{name}: {type_} for {reason}: {part}"), || async {
        let policy = policies.get(name).await.unwrap();
        let generation = policy.metadata.generation;
        let conditions = policy.status.map(|status| status.conditions).unwrap_or_default();
        conditions.iter().any(|c| {
            (c.type_.as_str(), c.reason.as_str()) == (type_, reason)
                && c.observed_generation == generation
                && c.message.contains(part)
        })
    })
    .await;
}

/// Submits a job without requests.
async fn submit(cluster: &Cluster, name: &str, count: u32, runtime: &str) {
    cluster.apply(job("silent", name, count, runtime, |_| ())).await;
}

/// The requests of the job's pods: millicores of CPU, MiB of memory, MiB of disk.
async fn requested(cluster: &Cluster, name: &str) -> Vec<(i64, i64, i64)> {
    let labels = kube::api::ListParams::default().labels(&format!("{}={name}", api::labels::JOB_NAME));
    let pods = cluster.pods("silent").list(&labels).await.unwrap();
    let of = |pod: k8s_openapi::api::core::v1::Pod| {
        let spec = pod.spec.unwrap();
        let requests = spec.containers[0].resources.clone().unwrap().requests.unwrap();
        let whole = |quantity: &Quantity| ceil_units(quantity, 1 << 20).unwrap();
        (millis(&requests["cpu"]).unwrap(), whole(&requests["memory"]), whole(&requests["ephemeral-storage"]))
    };
    pods.into_iter().map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_says_nothing_keeps_the_defaults_of_its_time() {
    let mut cluster = Cluster::start(shapes::uniform(1, 4000, 8 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("silent").await;

    submit(&cluster, "plain", 1, "100ms").await;
    cluster.completed("silent", "plain").await;
    assert_eq!(requested(&cluster, "plain").await, [(1000, 128, 1024)], "HTCondor's own defaults");

    let text = "JOB_DEFAULT_REQUESTCPUS = 2\nJOB_DEFAULT_REQUESTMEMORY = 300 * RequestCpus\n\
                JOB_DEFAULT_REQUESTDISK = 64 * 1024\nMAX_JOBS_PER_SUBMISSION = 5\n";
    cluster.apply(policy("default", text)).await;
    says(&cluster, "default", "Accepted", "Accepted", "").await;
    says(&cluster, "default", "FullyApplied", "KnobNotActedOn", "line 4, column 1: MAX_JOBS_PER_SUBMISSION")
        .await;
    // Only two of the three procs fit, and the third waits.
    submit(&cluster, "wide", 3, "5s").await;
    cluster
        .job_when("silent", "wide", "has two procs running", |job| {
            job.status.as_ref().is_some_and(|status| status.running == 2 && status.idle == 1)
        })
        .await;

    // Neither an edit of the policy nor a restart of the operator changes the defaults that the job got.
    let policies: Api<SubmitPolicy> = Api::all(cluster.client.clone());
    let edit = Patch::Merge(json!({"spec": {"config": "JOB_DEFAULT_REQUESTMEMORY = 1024\n"}}));
    policies.patch("default", &PatchParams::default(), &edit).await.unwrap();
    says(&cluster, "default", "FullyApplied", "AllHonored", "").await;
    cluster.kill_operator();
    cluster.start_operator();
    cluster.completed("silent", "wide").await;
    assert_eq!(requested(&cluster, "wide").await, [(2000, 640, 64); 3], "640 is 600 in steps of 128");
    submit(&cluster, "late", 1, "100ms").await;
    cluster.completed("silent", "late").await;
    assert_eq!(requested(&cluster, "late").await, [(1000, 1024, 1024)]);

    // The status names the place of an error, and the last good text stays in force.
    let edit = Patch::Merge(json!({"spec": {"config": "JOB_DEFAULT_REQUESTMEMORY = 1 +\n"}}));
    policies.patch("default", &PatchParams::default(), &edit).await.unwrap();
    says(&cluster, "default", "Accepted", "InvalidExpression", "line 1, column 31").await;
    says(&cluster, "default", "Accepted", "InvalidExpression", "the last accepted spec stays in force").await;
    cluster.apply(policy("second", "")).await;
    says(&cluster, "second", "Accepted", "AnotherSubmitPolicy", "default is in force").await;
    submit(&cluster, "later", 1, "100ms").await;
    cluster.completed("silent", "later").await;
    assert_eq!(requested(&cluster, "later").await, [(1000, 1024, 1024)]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_charged_to_the_group_of_their_owner() {
    let mut cluster = Cluster::start(shapes::uniform(1, 4000, 8 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("mapped").await;
    // The map opens physics to those whom it names.
    for (group, owners) in [("physics", json!([])), ("chemistry", json!(["*"]))] {
        cluster
            .apply(json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota",
                          "metadata": {"name": group}, "spec": {"quota": 4, "owners": owners}}))
            .await;
    }
    let text = "CLASSAD_USER_MAPDATA_AssignAccountingGroup @=end\n* /^MAP/i physics\n@end\n\
                use FEATURE : AssignAccountingGroup(groups.map)\n";
    cluster.apply(policy("default", text)).await;
    says(&cluster, "default", "FullyApplied", "AllHonored", "").await;

    let named = |name: &str, group: Option<&str>| {
        job("mapped", name, 1, "1s", |object| object["spec"]["accountingGroup"] = json!(group))
    };
    cluster.apply(named("silent", None)).await;
    cluster.apply(named("wants", Some("chemistry"))).await;
    cluster.completed("mapped", "silent").await;
    cluster
        .job_when("mapped", "wants", "is told whose group it may name", |job| {
            condition(job, "Accepted").is_some_and(|(status, reason, message)| {
                status == "False" && reason == "SubmitRequirement" && message.contains("CheckRequestedGroup")
            })
        })
        .await;
    let submitters: Api<api::Submitter> = Api::all(cluster.client.clone());
    eventually("physics is charged", || async {
        let charged = submitters.get_opt("physics.mapped").await.unwrap().and_then(|s| s.status);
        charged.is_some_and(|status| status.accumulated_usage > 0.0)
    })
    .await;

    // An operator that starts now reads from the job's status what the policy gave the job.
    cluster.kill_operator();
    Api::<SubmitPolicy>::all(cluster.client.clone())
        .delete("default", &DeleteParams::default())
        .await
        .unwrap();
    cluster.start_operator();
    cluster
        .apply(job("mapped", "free", 1, "100ms", |o| o["spec"]["accountingGroup"] = json!("chemistry")))
        .await;
    cluster.completed("mapped", "free").await;
    // Nothing refuses the other job any more.
    cluster.completed("mapped", "wants").await;
    cluster.stop().await;
}

/// The manual's transforms and requirements, from the policy to the pod.
#[tokio::test(flavor = "multi_thread")]
async fn transforms_change_jobs_and_requirements_keep_jobs_out() {
    let mut cluster = Cluster::start(shapes::uniform(1, 4000, 8 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("silent").await;
    let text = "JOB_TRANSFORM_NAMES = Sl6\nJOB_TRANSFORM_Sl6 @=end\n  REQUIREMENTS WantSL6\n  \
                SET RequestMemory 1024\n  SET DockerImage \"registry.example/sl6:1\"\n@end\n\
                SUBMIT_REQUIREMENT_NAMES = Memory, Gig\n\
                SUBMIT_REQUIREMENT_Memory = RequestMemory > 128\n\
                SUBMIT_REQUIREMENT_Memory_REASON = strcat(\"only \", RequestMemory, \" MiB\")\n\
                SUBMIT_REQUIREMENT_Gig = RequestMemory > 1024\nSUBMIT_REQUIREMENT_Gig_IS_WARNING = True\n";
    cluster.apply(policy("default", text)).await;
    says(&cluster, "default", "FullyApplied", "AllHonored", "").await;

    // A job that is refused waits; its spec is what its author wrote.
    submit(&cluster, "little", 1, "100ms").await;
    cluster
        .job_when("silent", "little", "is refused with the requirement's reason", |job| {
            condition(job, "Accepted").is_some_and(|(status, reason, message)| {
                (status.as_str(), reason.as_str()) == ("False", "SubmitRequirement")
                    && message.starts_with("only 128 MiB (Memory)")
            })
        })
        .await;
    let attributes = json!({"WantSL6": "true"});
    cluster.apply(job("silent", "sl6", 1, "1s", |object| object["spec"]["attributes"] = attributes)).await;
    let done = cluster.completed("silent", "sl6").await;
    let record = done.status.and_then(|status| status.policy).expect("the status records what policy made");
    assert_eq!(record.transforms, ["Sl6"]);
    assert_eq!(record.attributes["RequestMemory"], "1024");
    assert_eq!(requested(&cluster, "sl6").await, [(1000, 1024, 1024)]);
    let pod = cluster.pods("silent").get("sl6-0").await.unwrap();
    assert_eq!(pod.spec.unwrap().containers[0].image.as_deref(), Some("registry.example/sl6:1"));
    let told = story(&cluster, "silent", "sl6").await;
    assert_eq!(told["SubmitWarning"], "Submit requirement Gig not met. (Gig)");

    // A restarted operator goes on from the record, and a changed policy lets the other job in.
    cluster.kill_operator();
    cluster.start_operator();
    let policies: Api<SubmitPolicy> = Api::all(cluster.client.clone());
    let edit = Patch::Merge(json!({"spec": {"config": "SUBMIT_REQUIREMENT_NAMES =\n"}}));
    policies.patch("default", &PatchParams::default(), &edit).await.unwrap();
    cluster.completed("silent", "little").await;
    cluster.stop().await;
}
