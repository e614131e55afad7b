//! A proc's pod: the job's template, given the resources of the slot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, PodSpec, PodTemplateSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use thiserror::Error;

use super::resources::{fits, give_resources};
use crate::convert::DEFAULT_GRACE_PERIOD;
use api::labels;
use model::pool::PodPlan;

/// Why no pod can be made of a template.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadTemplate {
    /// The text is not a pod template.
    #[error("not a pod template: {why}; a pod template has metadata and spec, as in a Job")]
    NoTemplate {
        /// Why.
        why: String,
    },
    /// The template has no containers.
    #[error("spec.template.spec.containers is empty; give it at least one container")]
    NoContainers,
    /// The other containers, the sidecars and the overhead leave no resources for the first container.
    #[error(
        "the containers besides {main} take more {resource} than the slot holds, sidecars counted; raise spec.requests, which are for all containers together"
    )]
    NothingLeft {
        /// The first container.
        main: String,
        /// The resource.
        resource: String,
    },
    /// A container beside the first one says neither what it requests of a resource nor what it is limited to, so that it
    /// could take more than the slot has.
    #[error(
        "the container {container} says nothing of {resource}: the slot's size holds for the whole pod, so that each container beside the first needs a request or a limit; give it resources.limits.{resource}"
    )]
    Unbounded {
        /// The container.
        container: String,
        /// The resource.
        resource: &'static str,
    },
    /// An init container takes more than the slot has, together with the sidecars that started before it; or the template
    /// says what the pod as a whole requests.
    #[error(
        "the pod as a whole takes more {resource} than the slot holds, init containers and sidecars counted as the scheduler does; raise spec.requests"
    )]
    TooMuch {
        /// The resource.
        resource: String,
    },
}

/// Makes a proc's pod.
///
/// # Errors
/// As [`check`].
pub fn pod(template: &PodTemplateSpec, plan: &PodPlan) -> Result<Pod, BadTemplate> {
    let mut spec = template.spec.clone().unwrap_or_default();
    give_resources(&mut spec, &plan.resources)?;
    if let (Some(image), Some(main)) = (&plan.image, spec.containers.first_mut()) {
        main.image = Some(image.to_string());
    }
    let environment = environment(plan);
    for container in &mut spec.containers {
        add_environment(container, &environment);
    }
    spec.node_name = Some(plan.slot.machine.to_string());
    spec.restart_policy = Some("Never".to_owned());
    leave_a_second(&mut spec);
    keep_within(&mut spec, plan.longest_vacating);
    fits(&spec, &plan.resources)?;
    if !plan.tolerations.is_empty() {
        spec.tolerations.get_or_insert_default().extend(plan.tolerations.iter().map(toleration));
    }
    outlast_silence(&mut spec, plan.lease);
    Ok(Pod { metadata: metadata(template, plan), spec: Some(spec), status: None })
}

/// The environment variables that tell a program its slot and its job's id.
fn environment(plan: &PodPlan) -> BTreeMap<Arc<str>, String> {
    let last = &plan.claim.last;
    BTreeMap::from([
        ("_CONDOR_SLOT".into(), plan.slot.to_string()),
        ("_CONDOR_JOB_ID".into(), last.job_id()),
        ("_CONDOR_PROC".into(), last.proc.to_string()),
    ])
}

/// Raises a grace period of 0 or less to one second. A pod with a grace period of 0 is deleted by force whenever anybody
/// deletes it, as if its end were confirmed: its proc would run elsewhere while the pod still runs.
pub(super) fn leave_a_second(spec: &mut PodSpec) {
    if let Some(grace) = &mut spec.termination_grace_period_seconds {
        *grace = (*grace).max(1);
    }
}

/// Lowers a grace period that is longer than any job may take to vacate the slot. A kubelet that has begun to end a pod ignores a shorter
/// period that comes later: the machine's owner would wait for whatever the template says. `HTCondor`'s startd kills a job that its user
/// removed after the same time (`Starter::startSoftkillTimeout`).
fn keep_within(spec: &mut PodSpec, longest: Duration) {
    let longest = i64::try_from(longest.as_secs()).unwrap_or(i64::MAX).max(1);
    let grace = &mut spec.termination_grace_period_seconds;
    if grace.unwrap_or(DEFAULT_GRACE_PERIOD.into()) > longest {
        *grace = Some(longest);
    }
}

/// Taints that a silent node gets. Kubernetes deletes pods that do not mention these taints after five minutes.
const SILENT: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Makes the pod tolerate a silent node for as long as the claim's lease, unless the template says otherwise.
fn outlast_silence(spec: &mut PodSpec, lease: Duration) {
    let tolerations = spec.tolerations.get_or_insert_default();
    for key in SILENT {
        let said = |toleration: &Toleration| {
            let of = toleration.key.as_deref().unwrap_or_default();
            (of.is_empty() || of == key)
                && matches!(toleration.effect.as_deref(), None | Some("" | "NoExecute"))
        };
        if !tolerations.iter().any(said) {
            tolerations.push(Toleration {
                key: Some(key.to_owned()),
                operator: Some("Exists".to_owned()),
                effect: Some("NoExecute".to_owned()),
                toleration_seconds: Some(i64::try_from(lease.as_secs()).unwrap_or(i64::MAX)),
                ..Toleration::default()
            });
        }
    }
}

/// The labels and annotations that a template gives its pods. Those with the operator's prefix are the operator's: a template
/// could make a pod another job's by them, or have an agent end it.
pub(super) fn given(template: &PodTemplateSpec) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let ObjectMeta { labels, annotations, .. } = template.metadata.clone().unwrap_or_default();
    let others = |mut given: BTreeMap<String, String>| {
        given.retain(|key, _| !is_reserved(key));
        given
    };
    (others(labels.unwrap_or_default()), others(annotations.unwrap_or_default()))
}

fn is_reserved(key: &str) -> bool {
    key.starts_with(labels::PREFIX)
}

/// The labels, annotations and finalizers of a template that its pods do not get, as the paths of their fields, each with its
/// name.
pub fn dropped(template: &PodTemplateSpec) -> Vec<(&'static str, String)> {
    let Some(metadata) = &template.metadata else { return Vec::new() };
    let names = |map: &'_ Option<BTreeMap<String, String>>| -> Vec<String> {
        map.iter().flat_map(BTreeMap::keys).cloned().collect()
    };
    let finalizers = metadata.finalizers.clone().unwrap_or_default();
    let all = [
        ("labels", names(&metadata.labels)),
        ("annotations", names(&metadata.annotations)),
        ("finalizers", finalizers),
    ];
    all.into_iter()
        .flat_map(|(field, names)| names.into_iter().map(move |name| (field, name)))
        .filter(|(_, name)| is_reserved(name))
        .collect()
}

fn metadata(template: &PodTemplateSpec, plan: &PodPlan) -> ObjectMeta {
    let (mut pod_labels, mut annotations) = given(template);
    pod_labels.extend([
        (labels::JOB_UID.to_owned(), plan.claim.last.job.uid.to_string()),
        (labels::JOB_NAME.to_owned(), plan.claim.last.job.name.to_string()),
        (labels::PROC.to_owned(), plan.claim.last.proc.to_string()),
    ]);
    annotations.extend([
        (labels::CLAIM.to_owned(), plan.claim.id.to_string()),
        (labels::SUBMITTER.to_owned(), plan.claim.submitter.to_string()),
        (labels::SLOT.to_owned(), plan.slot.to_string()),
        (labels::JOB_ID.to_owned(), plan.claim.last.job_id()),
        (labels::LEASE_SECONDS.to_owned(), plan.lease.as_secs().to_string()),
        (labels::RUN.to_owned(), plan.run.to_string()),
    ]);
    let main = template.spec.as_ref().and_then(|spec| spec.containers.first());
    annotations.extend(main.map(|main| (labels::MAIN_CONTAINER.to_owned(), main.name.clone())));
    let size = plan.resources.plain();
    annotations.extend(size.map(|size| (labels::RESOURCES.to_owned(), size.to_string())));
    ObjectMeta {
        name: Some(plan.claim.pod_name()),
        namespace: Some(plan.claim.last.job.namespace.to_string()),
        labels: Some(pod_labels),
        annotations: Some(annotations),
        finalizers: Some(vec![labels::TRACKING_FINALIZER.to_owned()]),
        owner_references: Some(vec![OwnerReference {
            api_version: format!("{}/{}", api::GROUP, api::VERSION),
            kind: "HTCJob".to_owned(),
            name: plan.claim.last.job.name.to_string(),
            uid: plan.claim.last.job.uid.to_string(),
            controller: Some(true),
            block_owner_deletion: Some(false),
        }]),
        ..ObjectMeta::default()
    }
}

/// Adds environment variables to a container, except those that the template sets. The added variables come first, because a kubelet
/// expands `$(_CONDOR_PROC)` only in variables that stand behind `_CONDOR_PROC`.
pub(super) fn add_environment(container: &mut Container, given: &BTreeMap<Arc<str>, String>) {
    let own = container.env.take().unwrap_or_default();
    let unset = given.iter().filter(|(name, _)| !own.iter().any(|own| own.name == ***name));
    let variable = |(name, value): (&Arc<str>, &String)| EnvVar {
        name: name.to_string(),
        value: Some(value.clone()),
        value_from: None,
    };
    container.env = Some(unset.map(variable).chain(own.iter().cloned()).collect());
}

pub(super) fn toleration(toleration: &model::pool::Toleration) -> Toleration {
    Toleration {
        key: toleration.key.clone().filter(|key| !key.is_empty()),
        operator: Some(if toleration.value.is_some() { "Equal" } else { "Exists" }.to_owned()),
        value: toleration.value.clone(),
        effect: toleration.effect.clone().filter(|effect| !effect.is_empty()),
        toleration_seconds: None,
    }
}

#[cfg(test)]
pub(super) mod tests;
