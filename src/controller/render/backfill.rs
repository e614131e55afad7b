//! A slot's backfill pod: the policy's template, given the resources of the slot that nobody has claimed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;

use super::pod::{BadTemplate, add_environment, given, leave_a_second, toleration};
use super::resources::{fits, give_resources};
use crate::convert::label_value;
use api::labels;
use model::pool::backfill::Plan;

/// The lease of a backfill pod, in seconds: for so long the pod goes on while its node is cut off, if the node has a guard. A job that sets
/// no `JobLeaseDuration` has the same lease by default.
const LEASE: &str = "2400";

/// Makes a slot's backfill pod. The NodePolicy owns the pod: Kubernetes deletes the pod with the policy, even if no
/// operator runs.
///
/// # Errors
/// When the template is not a pod template, has no containers, or takes more than the slot has.
pub fn backfill(plan: &Plan) -> Result<Pod, BadTemplate> {
    let template: PodTemplateSpec = serde_json::from_str(&plan.template.template)
        .map_err(|error| BadTemplate::NoTemplate { why: error.to_string() })?;
    let mut spec = template.spec.clone().unwrap_or_default();
    give_resources(&mut spec, &plan.resources)?;
    fits(&spec, &plan.resources)?;
    let environment = BTreeMap::from([("_CONDOR_SLOT".into(), plan.slot.to_string())]);
    for container in &mut spec.containers {
        add_environment(container, &environment);
    }
    spec.node_name = Some(plan.slot.machine.to_string());
    leave_a_second(&mut spec);
    spec.priority_class_name.get_or_insert_with(|| labels::BACKFILL_PRIORITY.to_owned());
    if !plan.tolerations.is_empty() {
        spec.tolerations.get_or_insert_default().extend(plan.tolerations.iter().map(toleration));
    }
    Ok(Pod { metadata: metadata(&template, plan), spec: Some(spec), status: None })
}

fn metadata(template: &PodTemplateSpec, plan: &Plan) -> ObjectMeta {
    // A backfill pod is never a job's, whatever the template says.
    let (mut pod_labels, mut annotations) = given(template);
    pod_labels.extend([
        (labels::BACKFILL.to_owned(), "true".to_owned()),
        (labels::NODE.to_owned(), label_value(plan.slot.machine.as_str())),
    ]);
    annotations.extend([
        (labels::SLOT.to_owned(), plan.slot.to_string()),
        (labels::BACKFILL_TEMPLATE.to_owned(), plan.template.mark.to_string()),
        (labels::LEASE_SECONDS.to_owned(), LEASE.to_owned()),
    ]);
    let (policy, uid) = &plan.policy;
    ObjectMeta {
        name: Some(plan.pod_name()),
        namespace: Some(plan.template.namespace.to_string()),
        labels: Some(pod_labels),
        annotations: Some(annotations),
        owner_references: Some(vec![OwnerReference {
            api_version: format!("{}/{}", api::GROUP, api::VERSION),
            kind: "NodePolicy".to_owned(),
            name: policy.to_string(),
            uid: uid.to_string(),
            controller: Some(true),
            block_owner_deletion: Some(false),
        }]),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use model::pool::{BackfillTemplate, Resources, SlotName};

    fn make(template: &Value) -> Result<Pod, BadTemplate> {
        let template = BackfillTemplate {
            namespace: "volunteers".into(),
            template: template.to_string().into(),
            mark: "m1".into(),
        };
        backfill(&Plan {
            slot: SlotName::parse("slot1@n1").unwrap(),
            template: Arc::new(template),
            policy: ("desktops".into(), "u1".into()),
            resources: Resources {
                cpus: 3,
                memory_mib: 1024,
                disk_kib: 2048,
                extended: [("Cogs".into(), 2), ("pods".into(), 1)].into(),
                ..Resources::default()
            },
            tolerations: vec![model::pool::Toleration { key: Some("gpu".into()), ..Default::default() }],
        })
    }

    #[test]
    fn a_backfill_pod_takes_what_nobody_has_claimed_of_its_slot() {
        let template = json!({"metadata": {"labels": {"app": "boinc", labels::JOB_UID: "forged"}},
                              "spec": {"containers": [{"name": "boinc", "image": "boinc/client"}]}});
        insta::assert_yaml_snapshot!(make(&template).unwrap());
    }

    #[test]
    fn a_priority_class_of_the_templates_own_stays() {
        let template = json!({"spec": {"priorityClassName": "mine", "containers": [{"name": "main"}]}});
        let spec = make(&template).unwrap().spec.unwrap();
        assert_eq!(spec.priority_class_name.as_deref(), Some("mine"));
    }

    #[test]
    fn what_is_no_template_is_refused() {
        assert_eq!(make(&json!({"spec": {"containers": []}})), Err(BadTemplate::NoContainers));
        assert!(matches!(make(&json!({"spec": 3})), Err(BadTemplate::NoTemplate { .. })));
    }
}
