//! Tests of the pods of procs.

use serde_json::{Value, json};

use super::*;
use model::pool::{Claim, JobKey, Resources, SlotName, Time};

pub(in crate::render) fn plan() -> PodPlan {
    let job = JobKey { uid: "u1".into(), namespace: "alice".into(), name: "sweep".into() };
    let claim = Claim {
        id: "slot1_1@n1#0#1".into(),
        submitter: "alice".into(),
        group: None,
        negotiator: model::pool::NegotiatorId::Unnamed,
        regrouped: false,
        weight: 2.0,
        limits: model::pool::limits::Wants::default(),
        since: Time::from_secs(0),
        last: model::pool::Assignment { job, cluster_id: 12, proc: 3 },
    };
    PodPlan {
        lease: Duration::from_mins(40),
        longest_vacating: Duration::from_mins(10),
        run: 0,
        slot: SlotName::parse("slot1_1@n1").unwrap(),
        resources: Resources {
            cpus: 2,
            memory_mib: 1024,
            disk_kib: 2048,
            extended: [("nvidia.com/gpu".into(), 1)].into(),
            ..Resources::default()
        },
        claim,
        image: None,
        tolerations: vec![model::pool::Toleration { key: Some("gpu".into()), ..Default::default() }],
    }
}

#[test]
fn a_proc_has_its_own_values_where_its_job_has_items() {
    let made = |items: serde_json::Value| {
        let template = json!({
            "metadata": {"labels": {"run": "r$(Process)"}},
            "spec": {"containers": [{"name": "main", "args": ["$(size)", "$(Cluster).$(procid)", "$(HOME)"]}]},
        });
        let mut spec = json!({"count": 4, "template": template});
        if !items.is_null() {
            spec["items"] = items;
        }
        let job = json!({"metadata": {"name": "sweep", "namespace": "alice"}, "spec": spec});
        let job: api::HTCJob = serde_json::from_value(job).unwrap();
        let template = crate::kinds::job::template_of(&job).unwrap();
        let kept = crate::render::KeptTemplate::of(&job, &template).unwrap();
        let made = pod(&kept.of_proc(plan().claim.last.cluster_id, plan().claim.last.proc).unwrap(), &plan())
            .unwrap();
        let label = made.metadata.labels.unwrap().remove("run").unwrap();
        (label, made.spec.unwrap().containers.remove(0).args.unwrap().join(" "))
    };
    let rows = json!({"variables": ["size"], "rows": [["small"], ["large"]], "repeat": 2});
    assert_eq!(made(rows), ("r3".to_owned(), "large 12.3 $(HOME)".to_owned()));
    assert_eq!(made(json!({})), ("r3".to_owned(), "$(size) 12.3 $(HOME)".to_owned()));
    let as_it_is = ("r$(Process)".to_owned(), "$(size) $(Cluster).$(procid) $(HOME)".to_owned());
    assert_eq!(made(serde_json::Value::Null), as_it_is);
}

#[test]
fn a_pod_stays_on_a_silent_node_for_its_lease_unless_its_template_says_otherwise() {
    let tolerated = |said: serde_json::Value| {
        let template = json!({"spec": {"containers": [{"name": "main"}], "tolerations": said}});
        let made = pod(&serde_json::from_value(template).unwrap(), &plan()).unwrap();
        let all = made.spec.unwrap().tolerations.unwrap_or_default();
        let mut found: Vec<(String, Option<i64>)> = all
            .into_iter()
            .filter(|toleration| toleration.effect.as_deref() == Some("NoExecute"))
            .map(|toleration| (toleration.key.unwrap_or_default(), toleration.toleration_seconds))
            .collect();
        found.sort();
        found
    };
    let (not_ready, unreachable) = (SILENT[0].to_owned(), SILENT[1].to_owned());
    let both = [(not_ready.clone(), Some(2400)), (unreachable.clone(), Some(2400))];
    assert_eq!(tolerated(json!([])), both);
    let own =
        json!([{"key": unreachable, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]);
    assert_eq!(tolerated(own), [(not_ready, Some(2400)), (unreachable, Some(5))]);
    assert_eq!(tolerated(json!([{"operator": "Exists"}])), [], "all taints are tolerated for ever");
}

/// In the value of a variable, a kubelet expands `$(NAME)` only if NAME is a variable before that one.
#[test]
fn the_operators_variables_come_before_the_users() {
    let env =
        json!([{"name": "PART", "value": "part-$(_CONDOR_SLOT)"}, {"name": "_CONDOR_PROC", "value": "mine"}]);
    let template = json!({"spec": {"containers": [{"name": "main", "env": env}, {"name": "side", "resources": {"limits": {"cpu": "100m", "memory": "10Mi"}}}]}});
    let made = pod(&serde_json::from_value(template).unwrap(), &plan()).unwrap();
    let of = |container: &Container| -> Vec<(String, Option<String>)> {
        container
            .env
            .iter()
            .flatten()
            .map(|variable| (variable.name.clone(), variable.value.clone()))
            .collect()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    let containers = made.spec.unwrap().containers;
    let slot = pair("_CONDOR_SLOT", "slot1_1@n1");
    let (id, proc, own) =
        (pair("_CONDOR_JOB_ID", "12.3"), pair("_CONDOR_PROC", "3"), pair("_CONDOR_PROC", "mine"));
    assert_eq!(of(&containers[0]), [id.clone(), slot.clone(), pair("PART", "part-$(_CONDOR_SLOT)"), own]);
    assert_eq!(of(&containers[1]), [id, proc, slot]);
}

pub(in crate::render) fn make(spec: Value) -> Result<Pod, BadTemplate> {
    let template = json!({"metadata": {"labels": {"app": "x"}, "annotations": {"a": "b"}}, "spec": spec});
    pod(&serde_json::from_value(template).unwrap(), &plan())
}

/// A template could otherwise make its pods another job's, or have an agent end them.
#[test]
fn the_operators_names_in_a_template_are_dropped() {
    let ours = json!({"slotwright.dev/kill": "true", labels::CLAIM: "another's", "app": "x"});
    let template = json!({"metadata": {"labels": ours, "annotations": ours, "finalizers": ["slotwright.dev/x", "a/b"]},
        "spec": {"containers": [{"name": "main"}]}});
    let template: PodTemplateSpec = serde_json::from_value(template).unwrap();
    let made = pod(&template, &plan()).unwrap().metadata;
    for given in [made.labels.unwrap(), made.annotations.clone().unwrap()] {
        assert!(given.contains_key("app") && !given.contains_key("slotwright.dev/kill"));
    }
    assert_eq!(made.annotations.unwrap().get(labels::CLAIM).map(String::as_str), Some("slot1_1@n1#0#1"));
    assert_eq!(made.finalizers.unwrap(), [labels::TRACKING_FINALIZER]);
    assert_eq!(dropped(&template).len(), 5);
    assert_eq!(dropped(&PodTemplateSpec::default()), []);
}

#[test]
fn a_pod_has_no_more_time_to_end_than_its_machine_gives() {
    for (said, most, given) in [
        (json!(315_360_000), 600, Some(600)),
        (json!(90), 600, Some(90)),
        (json!(null), 600, None),
        (json!(null), 10, Some(10)),
        (json!(90), 0, Some(1)),
    ] {
        let spec = json!({"containers": [{"name": "main"}], "terminationGracePeriodSeconds": said});
        let template = serde_json::from_value(json!({"spec": spec})).unwrap();
        let plan = PodPlan { longest_vacating: Duration::from_secs(most), ..plan() };
        let made = pod(&template, &plan).unwrap().spec.unwrap().termination_grace_period_seconds;
        assert_eq!(made, given, "{said} within {most}");
    }
}

#[test]
fn nobody_deletes_a_pod_by_force_unasked() {
    for (said, given) in
        [(json!(0), Some(1)), (json!(-5), Some(1)), (json!(90), Some(90)), (json!(null), None)]
    {
        let spec = json!({"containers": [{"name": "main"}], "terminationGracePeriodSeconds": said});
        let made = make(spec).unwrap().spec.unwrap().termination_grace_period_seconds;
        assert_eq!(made, given, "{said}");
    }
}
