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
        let policy = objects.iter().find(|object| object["kind"] == STAMPING[0]).unwrap();
        Some(policy["metadata"]["name"].as_str().unwrap().to_owned())
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
    lets_write_by(policy, "status", before, pod)
}

/// As [`lets_write`], by this subresource.
fn lets_write_by(
    policy: &ValidatingAdmissionPolicy,
    subresource: &str,
    before: Option<&Value>,
    pod: &Value,
) -> bool {
    let spec = policy.spec.as_ref().unwrap();
    let inlined = |expression: &str| {
        let mut text = expression.replace("variables.mayMark", "false");
        // kube-cel's requests have no subresource.
        text = text.replace("has(request.subResource)", "true");
        text = text.replace("request.subResource", &format!("'{subresource}'"));
        if !expression.contains("finalizers") {
            // kube-cel escapes the keys of maps as CEL escapes names of fields; an API server does not.
            text = text.replace("slotwright.dev/", "slotwright__dot__dev__slash__");
        }
        let mut variables: Vec<_> = spec.variables.iter().flatten().collect();
        // The longer names first: one begins as another does.
        variables.sort_by_key(|variable| std::cmp::Reverse(variable.name.len()));
        for variable in variables {
            text =
                text.replace(&format!("variables.{}", variable.name), &format!("({})", variable.expression));
        }
        VapExpression { expression: text, message: Some("refused".into()), message_expression: None }
    };
    let rules: Vec<_> = spec.validations.iter().flatten().map(|rule| inlined(&rule.expression)).collect();
    let evaluator = VapEvaluator::builder().object(pod.clone());
    let evaluator = evaluator.old_object(before.cloned().unwrap_or_default()).build();
    let results = evaluator.evaluate(&rules);
    assert_eq!(results.len(), 4);
    // An expression that fails is not one that refuses.
    assert!(
        results.iter().all(|result| result.passed || result.message.as_deref() == Some("refused")),
        "{results:?}"
    );
    results.iter().all(|result| result.passed)
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

#[test]
fn nobody_else_resizes_a_pod_under_a_claim() {
    let Some(text) = render(&[]) else { return };
    let policy: ValidatingAdmissionPolicy = find(&objects(&text), "slotwright-pods");
    let pod = |metadata: Value| json!({"metadata": metadata, "spec": {}});
    let ours = pod(json!({"name": "p", "annotations": {"slotwright.dev/claim": "c"}}));
    let anybodys = pod(json!({"name": "p", "annotations": {"a": "b"}}));
    let bare = pod(json!({"name": "p"}));
    assert!(!lets_write_by(&policy, "resize", Some(&ours), &ours));
    assert!(lets_write_by(&policy, "status", Some(&ours), &ours));
    assert!(lets_write_by(&policy, "resize", Some(&anybodys), &anybodys));
    assert!(lets_write_by(&policy, "resize", Some(&bare), &bare));
}
