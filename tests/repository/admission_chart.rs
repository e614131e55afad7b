//! The chart's admission webhook and admission policies: what they are asked about, whom they stop, and what they let the operator do.

// A test states what it expects by panicking.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube_cel::{VapEvaluator, VapExpression};
use serde_json::{Value, json};

use super::chart::{find, granted, listed, objects, render};

/// With the webhook, and by name: the Secret of its certificate, in the operator's namespace, which the chart makes, so that
/// the operator creates none; and the configuration into which the certificate's authority is written.
const CERTIFICATE: (&str, &[&str]) = ("/secrets/slotwright-webhook-cert", &["get", "update"]);
const AUTHORITY: [(&str, &[&str]); 2] = [
    ("admissionregistration.k8s.io/mutatingwebhookconfigurations/slotwright", &["get", "patch"]),
    ("admissionregistration.k8s.io/validatingwebhookconfigurations/slotwright", &["get", "patch"]),
];

#[test]
fn with_the_webhook_the_operator_may_keep_its_certificate_and_nothing_else_more() {
    let (Some(without), Some(with)) = (render(&[]), render(&["--set", "webhook.enabled=true"])) else {
        return;
    };
    let (without, with) = (objects(&without), objects(&with));
    let name = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', "");
    let before: BTreeSet<String> = without.iter().map(name).collect();
    let more: BTreeSet<String> = with.iter().map(name).filter(|name| !before.contains(name)).collect();
    let expected = [
        "ClusterRole slotwright-webhook",
        "ClusterRoleBinding slotwright-webhook",
        "MutatingWebhookConfiguration slotwright",
        "Role slotwright-webhook",
        "RoleBinding slotwright-webhook",
        "Secret slotwright-webhook-cert",
        "Service slotwright-webhook",
        "ValidatingWebhookConfiguration slotwright",
    ];
    assert_eq!(more, expected.map(str::to_owned).into());
    let role: Role = find(&with, "slotwright-webhook");
    assert_eq!(role.metadata.namespace.as_deref(), Some("slotwright-system"));
    assert_eq!(granted(role.rules), listed([CERTIFICATE]));
    let cluster: ClusterRole = find(&with, "slotwright-webhook");
    assert_eq!(granted(cluster.rules), listed(AUTHORITY));
}

/// With the policies that stamp jobs, and by name: whether they are in force. The operator reads no other policy, and writes none.
const STAMPING: [&str; 4] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

#[test]
fn with_the_policies_that_stamp_jobs_the_operator_may_look_at_them_and_knows_their_name() {
    let arguments = ["--set", "admissionPolicy.owner=true"];
    let (Some(without), Some(with)) = (render(&[]), render(&arguments)) else { return };
    let (without, with) = (objects(&without), objects(&with));
    let more = with.iter().filter(|object| !without.contains(object) && object["kind"] != "Deployment");
    let more: Vec<(&str, &str)> = more
        .map(|object| (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap()))
        .collect();
    let name = more[0].1;
    assert!(name.starts_with("slotwright-owner-"), "{name}");
    let role = "slotwright-owner";
    let rest = [("ClusterRole", role), ("ClusterRoleBinding", role)];
    let expected: Vec<(&str, &str)> = STAMPING.map(|kind| (kind, name)).into_iter().chain(rest).collect();
    assert_eq!(more, expected);
    let plural = |kind: &str| {
        kind.to_lowercase().replace("policy", "policies").replace("policiesbinding", "policybindings")
    };
    let looks: BTreeSet<String> = STAMPING
        .map(|kind| format!("admissionregistration.k8s.io/{}/{name} get", plural(kind)))
        .into_iter()
        .collect();
    assert_eq!(granted(find::<ClusterRole>(&with, role).rules), looks);
    let arguments = |objects: &[Value]| {
        let pod = find::<Deployment>(objects, "slotwright").spec.unwrap().template.spec.unwrap();
        pod.containers[0].args.clone().unwrap()
    };
    let more: Vec<String> =
        arguments(&with).into_iter().filter(|argument| !arguments(&without).contains(argument)).collect();
    assert_eq!(more, [format!("--owner-policy={name}")]);
}

/// The operator believes no stamp of a policy whose spec was edited: another text has to have another name.
#[test]
fn the_name_of_the_policies_that_stamp_jobs_is_of_their_text() {
    let name = |arguments: &[&str]| {
        let arguments = [&["--set", "admissionPolicy.owner=true"], arguments].concat();
        let objects = objects(&render(&arguments)?);
        let mut names = objects.iter().filter_map(|object| object["metadata"]["name"].as_str());
        Some(names.find(|name| name.contains("-owner-")).unwrap().to_owned())
    };
    let Some(found) = name(&[]) else { return };
    let (_, digest) = found.rsplit_once('-').unwrap();
    assert_eq!(digest.len(), 8);
    assert_eq!(name(&["--name", "x", "--namespace", "y"]), Some(format!("x-slotwright-owner-{digest}")));
}

#[test]
fn the_webhook_is_asked_about_our_own_kinds_only_and_stops_nobody_while_the_operator_is_down() {
    let Some(text) = render(&["--set", "webhook.enabled=true"]) else { return };
    let objects = objects(&text);
    let validating: ValidatingWebhookConfiguration = find(&objects, "slotwright");
    let mutating: MutatingWebhookConfiguration = find(&objects, "slotwright");
    let validating = validating.webhooks.unwrap().into_iter().map(|webhook| {
        let bounds = (webhook.failure_policy, webhook.side_effects, webhook.timeout_seconds);
        ("/validate", bounds, webhook.client_config, webhook.rules)
    });
    let mutating = mutating.webhooks.unwrap().into_iter().map(|webhook| {
        let bounds = (webhook.failure_policy, webhook.side_effects, webhook.timeout_seconds);
        ("/mutate", bounds, webhook.client_config, webhook.rules)
    });
    for (path, bounds, client, rules) in validating.chain(mutating) {
        assert_eq!(bounds, (Some("Ignore".to_owned()), "None".to_owned(), Some(3)));
        assert!(client.ca_bundle.is_none(), "the operator's to write");
        let service = client.service.unwrap();
        assert_eq!((service.name.as_str(), service.path.as_deref()), ("slotwright-webhook", Some(path)));
        for rule in rules.unwrap() {
            assert_eq!(rule.api_groups.unwrap(), [api::GROUP]);
            assert_eq!(rule.api_versions.unwrap(), [api::VERSION]);
            let kinds: BTreeSet<String> =
                api::definitions().into_iter().map(|crd| crd.spec.names.plural).collect();
            assert!(rule.resources.unwrap().iter().all(|resource| kinds.contains(resource)));
        }
    }
    let policy: NetworkPolicy = find(&objects, "slotwright");
    let rules = policy.spec.unwrap().ingress.unwrap();
    assert!(
        rules
            .iter()
            .flat_map(|rule| rule.ports.iter().flatten())
            .any(|port| { port.port == Some(IntOrString::String("webhook".to_owned())) })
    );
}

/// Whether the chart's admission policy lets somebody who may not mark pods write a pod over what it was before.
fn lets_write(policy: &ValidatingAdmissionPolicy, before: Option<&Value>, pod: &Value) -> bool {
    lets_write_by(policy, Some("status"), before, pod)
}

/// How the policy asks whether somebody may mark pods.
const MAY_MARK: &str = "authorizer.group('slotwright.dev').resource('pods').check('mark').allowed()";

/// As [`lets_write`], of an object that is written by this subresource, or as it is.
fn lets_write_by(
    policy: &ValidatingAdmissionPolicy,
    subresource: Option<&str>,
    before: Option<&Value>,
    object: &Value,
) -> bool {
    let spec = policy.spec.as_ref().unwrap();
    let mut variables: Vec<_> = spec.variables.iter().flatten().collect();
    variables.sort_by_key(|variable| std::cmp::Reverse(variable.name.len()));
    let holds = |expression: &str, may_mark: bool| {
        let mut text = expression.to_owned();
        // The longer names first: one begins as another does.
        for variable in &variables {
            text =
                text.replace(&format!("variables.{}", variable.name), &format!("({})", variable.expression));
        }
        // kube-cel has no authorizer, and its requests have no subresource.
        text = text.replace(MAY_MARK, &may_mark.to_string());
        text = text.replace("has(request.subResource)", &subresource.is_some().to_string());
        text = text.replace("request.subResource", &format!("'{}'", subresource.unwrap_or_default()));
        // kube-cel escapes the keys of maps as CEL escapes names of fields; an API server does not.
        text = text
            .replace("key.startsWith('slotwright.dev/')", "key.startsWith('slotwright__dot__dev__slash__')");
        text = text.replace("'slotwright.dev/claim'", "'slotwright__dot__dev__slash__claim'");
        let rule = VapExpression { expression: text, message: Some("no".into()), message_expression: None };
        let evaluator = VapEvaluator::builder().object(object.clone());
        let evaluator = evaluator.old_object(before.cloned().unwrap_or_default()).build();
        let results = evaluator.evaluate(&[rule]);
        // An expression that fails is not one that refuses.
        assert!(results[0].passed || results[0].message.as_deref() == Some("no"), "{results:?}");
        results[0].passed
    };
    let conditions = spec.match_conditions.as_ref().unwrap();
    assert!(
        !conditions.iter().all(|condition| holds(&condition.expression, true)),
        "whoever may mark may write anything"
    );
    let is_asked = conditions.iter().all(|condition| holds(&condition.expression, false));
    let rules = spec.validations.as_ref().unwrap();
    assert_eq!(rules.len(), 4);
    let passes = rules.iter().all(|rule| holds(&rule.expression, false));
    assert_eq!(is_asked, !passes, "the conditions match exactly what the validations refuse");
    passes
}

#[test]
fn nobody_else_writes_the_operators_labels_annotations_and_finalizers() {
    let Some(text) = render(&[]) else { return };
    let policy: ValidatingAdmissionPolicy = find(&objects(&text), "slotwright-pods");
    let pod = |metadata: Value| json!({"metadata": metadata, "spec": {}});
    let plain = pod(json!({"name": "p", "labels": {"app": "x"}, "finalizers": ["example.com/a"]}));
    let bare = pod(json!({"name": "p"}));
    let ours = pod(json!({"name": "p",
        "labels": {"app": "x", "slotwright.dev/job-uid": "u", "slotwright.dev/proc": "0"},
        "annotations": {"slotwright.dev/claim": "c"},
        "finalizers": ["slotwright.dev/tracking"]}));
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut pod = ours.clone();
        edit(&mut pod["metadata"]);
        pod
    };
    assert!(lets_write(&policy, None, &plain) && lets_write(&policy, None, &bare));
    assert!(lets_write(&policy, Some(&plain), &bare) && lets_write(&policy, Some(&bare), &plain));
    assert!(lets_write(&policy, Some(&ours), &ours));
    for others in [
        with(&|pod| pod["labels"]["app"] = "y".into()),
        with(&|pod| pod["annotations"]["hollow.slotwright.dev/runtime"] = "1s".into()),
        with(&|pod| pod["finalizers"] = json!(["example.com/a", "slotwright.dev/tracking"])),
    ] {
        assert!(lets_write(&policy, Some(&ours), &others), "{others}");
    }
    assert!(!lets_write(&policy, None, &ours));
    // A binding's annotations become the pod's.
    let binding = |annotations: Value| json!({"metadata": {"name": "p", "annotations": annotations}, "target": {"name": "n"}});
    let binds = |binding: Value| lets_write_by(&policy, Some("binding"), None, &binding);
    assert!(binds(binding(json!({"a": "b"}))) && !binds(binding(json!({"slotwright.dev/kill": "true"}))));
    assert!(!lets_write_by(&policy, None, None, &ours) && lets_write_by(&policy, None, Some(&ours), &ours));
    for field in ["labels", "annotations", "finalizers"] {
        let alone = pod(json!({"name": "p", field: ours["metadata"][field]}));
        assert!(!lets_write(&policy, None, &alone) && !lets_write(&policy, Some(&plain), &alone), "{field}");
        let without = with(&|pod| drop(pod.as_object_mut().unwrap().remove(field)));
        assert!(!lets_write(&policy, Some(&ours), &without), "{field}");
    }
    for forged in [
        with(&|pod| pod["labels"]["slotwright.dev/proc"] = "1".into()),
        with(&|pod| drop(pod["labels"].as_object_mut().unwrap().remove("slotwright.dev/proc"))),
        with(&|pod| pod["annotations"]["slotwright.dev/kill"] = "true".into()),
    ] {
        assert!(!lets_write(&policy, Some(&ours), &forged), "{forged}");
    }
}

/// The pods of procs get no record of who wrote which field, and the API server does not look at a pod of anybody else's.
#[test]
fn only_new_pods_of_procs_are_made_lean() {
    let (Some(with), Some(by_default)) = (render(&["--set", "admissionPolicy.leanPods=true"]), render(&[]))
    else {
        return;
    };
    let lean = |text: &str| -> Vec<Value> {
        let named = |object: &Value| object["metadata"]["name"] == "slotwright-lean-pods";
        objects(text).into_iter().filter(named).collect()
    };
    assert!(lean(&by_default).is_empty(), "without a cluster, Helm knows no such kind");
    let [policy, binding] = &lean(&with)[..] else { panic!("a policy and its binding") };
    assert_eq!((&policy["kind"], &binding["kind"]), (&json!(STAMPING[0]), &json!(STAMPING[1])));
    assert_eq!(binding["spec"], json!({"policyName": "slotwright-lean-pods"}));
    let remove = "has(object.metadata.managedFields) ? [JSONPatch{op: 'remove', path: '/metadata/managedFields'}] : []";
    let expected = json!({
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "Namespaced"},
            ],
            "objectSelector": {"matchExpressions": [{"key": api::labels::JOB_UID, "operator": "Exists"}]},
        },
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": remove}}],
    });
    assert_eq!(policy["spec"], expected);
}

#[test]
fn nobody_else_resizes_a_pod_under_a_claim() {
    let Some(text) = render(&[]) else { return };
    let policy: ValidatingAdmissionPolicy = find(&objects(&text), "slotwright-pods");
    let pod = |metadata: Value| json!({"metadata": metadata, "spec": {}});
    let ours = pod(json!({"name": "p", "annotations": {"slotwright.dev/claim": "c"}}));
    let anybodys = pod(json!({"name": "p", "annotations": {"a": "b"}}));
    let bare = pod(json!({"name": "p"}));
    assert!(!lets_write_by(&policy, Some("resize"), Some(&ours), &ours));
    assert!(lets_write_by(&policy, Some("status"), Some(&ours), &ours));
    assert!(lets_write_by(&policy, Some("resize"), Some(&anybodys), &anybodys));
    assert!(lets_write_by(&policy, Some("resize"), Some(&bare), &bare));
}
