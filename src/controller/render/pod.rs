//! A proc's pod: the job's template, given the resources of the slot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, PodSpec, PodTemplateSpec, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use thiserror::Error;

use crate::convert::{DEFAULT_GRACE_PERIOD, amounts, millis, requests_of};
use api::labels;
use model::pool::{Capacity, PODS, PodPlan, Resources};

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

/// Whether [`pod`] can make a template's pods in a slot of this size.
///
/// # Errors
/// When the template has no containers, its other containers and sidecars leave nothing for the first, or an init
/// container takes more than the slot has.
pub fn check(template: &PodTemplateSpec, slot: &Resources) -> Result<(), BadTemplate> {
    let mut spec = template.spec.clone().unwrap_or_default();
    give_resources(&mut spec, slot)?;
    fits(&spec, slot)
}

/// Checks that a pod takes no more than the slot has, by the scheduler's rule, which counts init containers, sidecars and
/// overhead.
pub(super) fn fits(spec: &PodSpec, slot: &Resources) -> Result<(), BadTemplate> {
    let (takes, holds) = (requests_of(spec), Capacity::of(slot));
    let too_much = |resource: &str| Err(BadTemplate::TooMuch { resource: resource.to_owned() });
    if takes.milli_cpu > holds.milli_cpu {
        return too_much("cpu");
    }
    if takes.memory > holds.memory {
        return too_much("memory");
    }
    if takes.disk > holds.disk {
        return too_much("ephemeral-storage");
    }
    let over = takes
        .extended
        .iter()
        .find(|(name, amount)| &***name != PODS && **amount > holds.extended.get(name).copied().unwrap_or(0));
    over.map_or(Ok(()), |(name, _)| too_much(name))
}

/// Sets the first container's requests and limits to what the slot has, less what runs beside the first container: the
/// other containers, the sidecars and the overhead. The limits of all others are set, too, and their requests are their limits.
/// The pod then takes exactly the slot, and cannot use more.
pub(super) fn give_resources(spec: &mut PodSpec, slot: &Resources) -> Result<(), BadTemplate> {
    let mut left = Capacity::of(slot);
    let Some((main, others)) = spec.containers.split_first_mut() else {
        return Err(BadTemplate::NoContainers);
    };
    // Sidecars are init containers that do not end before the others start.
    let sidecars = spec.init_containers.iter_mut().flatten().filter(|init| is_sidecar(init));
    for beside in others.iter_mut().chain(sidecars) {
        left.subtract(&bound(beside)?);
    }
    left.subtract(&amounts(spec.overhead.iter().flatten()));
    let mut amounts = BTreeMap::new();
    let too_little =
        |resource: &str| BadTemplate::NothingLeft { main: main.name.clone(), resource: resource.to_owned() };
    let mut give = |name: &str, amount: i64, least: i64, text: String| {
        if amount < least {
            return Err(too_little(name));
        }
        if amount > 0 {
            amounts.insert(name.to_owned(), Quantity(text));
        }
        Ok(())
    };
    give("cpu", left.milli_cpu, 1, cpu_quantity(left.milli_cpu))?;
    give("memory", left.memory, 1 << 20, format!("{}Mi", left.memory >> 20))?;
    give("ephemeral-storage", left.disk, 0, format!("{}Ki", left.disk >> 10))?;
    for (name, amount) in left.extended.iter().filter(|(name, _)| is_kubelets(name)) {
        give(name, *amount, 0, amount.to_string())?;
    }
    for init in spec.init_containers.iter_mut().flatten().filter(|init| !is_sidecar(init)) {
        // An init container ends before the first container starts, and may use what the first container gets.
        let said = said(init);
        let unsaid = |name: &&String| BOUNDED.contains(&name.as_str()) && !said.contains_key(*name);
        let given: Vec<String> = amounts.keys().filter(unsaid).cloned().collect();
        let given = given.into_iter().filter_map(|name| Some((name.clone(), amounts.get(&name)?.clone())));
        take(init, said.clone().into_iter().chain(given).collect());
    }
    take(main, amounts);
    Ok(())
}

/// The resources of which each container beside the first one has to say how much it takes.
const BOUNDED: [&str; 2] = ["cpu", "memory"];

/// How much a container says that it takes at most: its limits, and its requests where it has no limit.
fn said(container: &Container) -> BTreeMap<String, Quantity> {
    let resources = container.resources.as_ref();
    let limits = resources.and_then(|resources| resources.limits.clone()).unwrap_or_default();
    let mut said = resources.and_then(|resources| resources.requests.clone()).unwrap_or_default();
    said.extend(limits);
    said
}

/// Sets a container's requests and limits to these amounts.
fn take(container: &mut Container, amounts: BTreeMap<String, Quantity>) {
    let resources = container.resources.get_or_insert_default();
    resources.requests = Some(amounts.clone());
    resources.limits = Some(amounts);
}

/// Sets the requests and the limits of a container that runs beside the first one to what the container says, and returns
/// these amounts.
fn bound(container: &mut Container) -> Result<Capacity, BadTemplate> {
    let said = said(container);
    let none = |name: &&str| {
        let amount = said.get(*name).and_then(|amount| millis(amount).ok());
        amount.is_none_or(|amount| amount <= 0)
    };
    if let Some(resource) = BOUNDED.into_iter().find(none) {
        return Err(BadTemplate::Unbounded { container: container.name.clone(), resource });
    }
    let taken = amounts(&said);
    take(container, said);
    Ok(taken)
}

/// Whether an init container is a sidecar (KEP-753), which runs until the pod's other containers have ended.
fn is_sidecar(init: &Container) -> bool {
    init.restart_policy.as_deref() == Some("Always")
}

/// Whether the kubelet knows an extended resource, whose name then has a domain. Only the pool counts what
/// `MACHINE_RESOURCE_<name>` declares: the kubelet would refuse a pod that asked for such a resource. Nor does a pod ask
/// for the resource `pods`, of which every pod takes one.
fn is_kubelets(name: &str) -> bool {
    name.contains('/')
}

/// Thousandths of a CPU as people write them: whole where they are.
fn cpu_quantity(milli: i64) -> String {
    if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") }
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
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use model::pool::{Claim, JobKey, SlotName, Time};

    fn plan() -> PodPlan {
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
            let made =
                pod(&kept.of_proc(plan().claim.last.cluster_id, plan().claim.last.proc).unwrap(), &plan())
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
        let own = json!([{"key": unreachable, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]);
        assert_eq!(tolerated(own), [(not_ready, Some(2400)), (unreachable, Some(5))]);
        assert_eq!(tolerated(json!([{"operator": "Exists"}])), [], "all taints are tolerated for ever");
    }

    /// In the value of a variable, a kubelet expands `$(NAME)` only if NAME is a variable before that one.
    #[test]
    fn the_operators_variables_come_before_the_users() {
        let env = json!([{"name": "PART", "value": "part-$(_CONDOR_SLOT)"}, {"name": "_CONDOR_PROC", "value": "mine"}]);
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

    #[test]
    fn what_only_the_policy_declares_is_not_asked_of_the_kubelet() {
        let template = json!({"spec": {"containers": [{"name": "main", "image": "busybox"}]}});
        let mut plan = plan();
        plan.resources.extended.extend([("Cogs".into(), 2), (PODS.into(), 1)]);
        let pod = pod(&serde_json::from_value(template).unwrap(), &plan).unwrap();
        let resources = pod.spec.unwrap().containers.remove(0).resources.unwrap();
        let names = ["cpu", "ephemeral-storage", "memory", "nvidia.com/gpu"];
        for amounts in [resources.requests, resources.limits] {
            assert_eq!(amounts.unwrap().into_keys().collect::<Vec<_>>(), names);
        }
    }

    fn make(spec: Value) -> Result<Pod, BadTemplate> {
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
    fn a_pod_takes_exactly_its_slot() {
        insta::assert_yaml_snapshot!(
            make(json!({"containers": [{"name": "main", "image": "busybox"}]})).unwrap()
        );
    }

    #[test]
    fn other_containers_keep_what_they_request() {
        let pod = make(json!({"containers": [
            {"name": "main", "resources": {"requests": {"cpu": "7"}}},
            {"name": "side", "resources": {"requests": {"cpu": "250m", "memory": "24Mi"}}}]}))
        .unwrap();
        let spec = pod.spec.unwrap();
        let requests = spec.containers[0].resources.clone().unwrap().requests.unwrap();
        assert_eq!((requests["cpu"].0.as_str(), requests["memory"].0.as_str()), ("1750m", "1000Mi"));
    }

    #[test]
    fn init_containers_may_not_take_more_than_the_slot() {
        let greedy = json!({"containers": [{"name": "main"}],
                            "initContainers": [{"name": "init", "resources": {"requests": {"memory": "2Gi"}}}]});
        assert_eq!(make(greedy), Err(BadTemplate::TooMuch { resource: "memory".into() }));
        let beside = json!({"containers": [{"name": "main"}], "initContainers": [
            {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1m", "memory": "100Mi"}}},
            {"name": "init", "resources": {"requests": {"memory": "925Mi"}}}]});
        assert_eq!(make(beside), Err(BadTemplate::TooMuch { resource: "memory".into() }));
        let small = json!({"containers": [{"name": "main"}],
                           "initContainers": [{"name": "init", "resources": {"requests": {"cpu": "1"}}}]});
        assert!(make(small).is_ok());
    }

    #[test]
    fn sidecars_keep_what_they_are_limited_to_and_the_pod_takes_exactly_its_slot() {
        let sidecar = |name: &str, resources: Value| json!({"name": name, "restartPolicy": "Always", "resources": resources});
        let pod = make(json!({
            "containers": [{"name": "main"}, {"name": "side", "resources": {"requests": {"cpu": "200m", "memory": "1Mi"}}}],
            "initContainers": [
                sidecar("proxy", json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "300m", "memory": "23Mi"}})),
                {"name": "init", "resources": {"requests": {"cpu": "1400m"}}},
                sidecar("logs", json!({"requests": {"memory": "100Mi"}, "limits": {"cpu": "50m"}}))]}))
        .unwrap();
        let spec = pod.spec.unwrap();
        let inits = spec.init_containers.clone().unwrap();
        let shown: Vec<_> = spec
            .containers
            .iter()
            .chain(&inits)
            .map(|container| {
                let resources = container.resources.clone().unwrap();
                assert_eq!(resources.requests, resources.limits, "{}", container.name);
                let limits = resources.limits.unwrap();
                (container.name.clone(), limits["cpu"].0.clone(), limits["memory"].0.clone())
            })
            .collect();
        let expected = [
            ("main", "1450m", "900Mi"),
            ("side", "200m", "1Mi"),
            ("proxy", "300m", "23Mi"),
            // An init container gets as much of a resource that it does not request as the first container gets.
            ("init", "1400m", "900Mi"),
            ("logs", "50m", "100Mi"),
        ];
        assert_eq!(
            shown,
            expected.map(|(name, cpu, memory)| (name.to_owned(), cpu.to_owned(), memory.to_owned()))
        );
        let whole = requests_of(&spec);
        assert_eq!((whole.milli_cpu, whole.memory), (2000, 1024 << 20));

        let greedy = json!({"containers": [{"name": "main"}],
                            "initContainers": [sidecar("proxy", json!({"requests": {"cpu": "2", "memory": "1Mi"}}))]});
        assert_eq!(
            make(greedy),
            Err(BadTemplate::NothingLeft { main: "main".into(), resource: "cpu".into() })
        );
    }

    /// The slot's size holds for the whole pod: nobody gets more by a second container.
    #[test]
    fn what_runs_beside_the_first_container_is_bounded() {
        for (resources, resource) in [
            (json!({}), "cpu"),
            (json!({"requests": {"memory": "1Mi"}}), "cpu"),
            (json!({"limits": {"cpu": "64"}}), "memory"),
            (json!({"limits": {"cpu": "0", "memory": "1Mi"}}), "cpu"),
        ] {
            for place in ["containers", "initContainers"] {
                let mut spec = json!({"containers": [{"name": "main"}], "initContainers": []});
                let side = json!({"name": "side", "restartPolicy": "Always", "resources": resources});
                spec[place].as_array_mut().unwrap().push(side);
                assert_eq!(
                    make(spec),
                    Err(BadTemplate::Unbounded { container: "side".into(), resource }),
                    "{resources}"
                );
            }
        }
        let greedy = json!({"containers": [{"name": "main"},
            {"name": "side", "resources": {"limits": {"cpu": "64", "memory": "1Mi"}, "requests": {"cpu": "1m"}}}]});
        assert_eq!(
            make(greedy),
            Err(BadTemplate::NothingLeft { main: "main".into(), resource: "cpu".into() })
        );
    }

    #[test]
    fn overhead_is_within_the_slot() {
        let pod = make(json!({"containers": [{"name": "main"}], "runtimeClassName": "kata",
                              "overhead": {"cpu": "250m", "memory": "124Mi"}}))
        .unwrap();
        let spec = pod.spec.unwrap();
        let own = spec.containers[0].resources.clone().unwrap().requests.unwrap();
        assert_eq!((own["cpu"].0.as_str(), own["memory"].0.as_str()), ("1750m", "900Mi"));
    }

    #[test]
    fn containers_that_leave_nothing_are_refused() {
        let greedy = json!({"containers": [{"name": "main"}, {"name": "side", "resources": {"requests": {"cpu": "2", "memory": "1Mi"}}}]});
        assert_eq!(
            make(greedy),
            Err(BadTemplate::NothingLeft { main: "main".into(), resource: "cpu".into() })
        );
        assert_eq!(make(json!({"containers": []})), Err(BadTemplate::NoContainers));
        // Less than a MiB would be written as 0Mi, which is no limit at all.
        let all_but_bytes = json!({"containers": [{"name": "main"},
            {"name": "side", "resources": {"requests": {"cpu": "1m", "memory": ((1024_u64 << 20) - 1000).to_string()}}}]});
        assert_eq!(
            make(all_but_bytes),
            Err(BadTemplate::NothingLeft { main: "main".into(), resource: "memory".into() })
        );
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
}
