//! The chart with the webhook's certificate from cert-manager: who makes what, and what the operator then may no longer do.

// A test states what it expects by panicking.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::Role;
use serde::Deserialize;
use serde_json::{Value, json};

use super::chart::{Object, find, granted, listed, objects, render};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Certificate {
    secret_name: String,
    #[serde(default)]
    dns_names: Vec<String>,
    #[serde(rename = "commonName")]
    _common_name: Option<String>,
    #[serde(default, rename = "isCA")]
    is_ca: bool,
    duration: String,
    renew_before: String,
    #[serde(rename = "usages")]
    _usages: Vec<String>,
    private_key: PrivateKey,
    issuer_ref: IssuerRef,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PrivateKey {
    algorithm: String,
    size: i32,
    encoding: String,
    rotation_policy: String,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct IssuerRef {
    name: String,
    kind: String,
    group: String,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
enum Issuer {
    #[serde(rename_all = "camelCase")]
    Ca {
        secret_name: String,
    },
    SelfSigned {},
}

/// Checks that an object is what cert-manager takes: `Certificate` or `Issuer`.
pub(super) fn check(object: &Value) {
    assert_eq!(object["apiVersion"], "cert-manager.io/v1");
    if object["kind"] == "Issuer" {
        read::<Issuer>(object);
    } else {
        read::<Certificate>(object);
    }
}

fn read<Spec: for<'de> Deserialize<'de>>(object: &Value) -> Object<Spec> {
    serde_json::from_value(object.clone())
        .unwrap_or_else(|error| panic!("{} {}: {error}", object["kind"], object["metadata"]["name"]))
}

fn of_kind<Spec: for<'de> Deserialize<'de>>(objects: &[Value], kind: &str) -> BTreeMap<String, Spec> {
    let found = objects.iter().filter(|object| object["kind"] == kind).map(read::<Spec>);
    found.map(|object| (object.metadata.name.unwrap(), object.spec)).collect()
}

const ON: &str = "webhook.enabled=true,webhook.certManager.enabled=true";

fn names(objects: &[Value]) -> BTreeSet<String> {
    let name = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', "");
    objects.iter().map(name).collect()
}

#[test]
fn the_operator_may_read_and_write_the_key_of_seals_alone() {
    let (Some(own), Some(with)) = (render(&["--set", "webhook.enabled=true"]), render(&["--set", ON])) else {
        return;
    };
    let (own, with) = (objects(&own), objects(&with));
    let gone: BTreeSet<String> = names(&own).difference(&names(&with)).cloned().collect();
    let expected = [
        "ClusterRole slotwright-webhook",
        "ClusterRoleBinding slotwright-webhook",
        "Secret slotwright-webhook-cert",
    ];
    assert_eq!(gone, expected.map(str::to_owned).into());
    let new: BTreeSet<String> = names(&with).difference(&names(&own)).cloned().collect();
    let expected = [
        "Certificate slotwright-webhook",
        "Certificate slotwright-webhook-ca",
        "Issuer slotwright-webhook",
        "Issuer slotwright-webhook-ca",
        "Secret slotwright-webhook-seal",
    ];
    assert_eq!(new, expected.map(str::to_owned).into());
    let role: Role = find(&with, "slotwright-webhook");
    assert_eq!(granted(role.rules), listed([("/secrets/slotwright-webhook-seal", &["get", "update"][..])]));
}

#[test]
fn cert_manager_writes_the_authority_into_both_configurations() {
    let Some(text) = render(&["--set", ON, "--name", "x", "--namespace", "hpc"]) else { return };
    let objects = objects(&text);
    let validating: ValidatingWebhookConfiguration = find(&objects, "x-slotwright");
    let mutating: MutatingWebhookConfiguration = find(&objects, "x-slotwright");
    for metadata in [validating.metadata, mutating.metadata] {
        let annotations = metadata.annotations.unwrap();
        assert_eq!(annotations["cert-manager.io/inject-ca-from"], "hpc/x-slotwright-webhook");
    }
    assert!(of_kind::<Certificate>(&objects, "Certificate").contains_key("x-slotwright-webhook"));
}

#[test]
fn the_operator_serves_the_files_of_the_certificates_secret_and_starts_without_them() {
    let Some(text) = render(&["--set", ON]) else { return };
    let objects = objects(&text);
    let certificate = &of_kind::<Certificate>(&objects, "Certificate")["slotwright-webhook"];
    assert_eq!(certificate.dns_names, ["slotwright-webhook.slotwright-system.svc"]);
    let deployment: Deployment = find(&objects, "slotwright");
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    let volume = &pod.volumes.unwrap()[0];
    let secret = volume.secret.as_ref().unwrap();
    assert_eq!(secret.secret_name.as_ref(), Some(&certificate.secret_name));
    assert_eq!(secret.optional, Some(true));
    let container = &pod.containers[0];
    let mount = &container.volume_mounts.as_ref().unwrap()[0];
    assert_eq!((&mount.name, mount.read_only), (&volume.name, Some(true)));
    let arguments = container.args.as_ref().unwrap();
    assert!(arguments.contains(&format!("--webhook-certificate-dir={}", mount.mount_path)));
    assert!(arguments.contains(&"--webhook-secret=slotwright-webhook-seal".to_owned()));
    assert!(!arguments.iter().any(|argument| argument.starts_with("--webhook-configuration")));
}

#[test]
fn the_chart_has_an_authority_of_its_own_that_outlives_what_it_signs() {
    let Some(text) = render(&["--set", ON]) else { return };
    let objects = objects(&text);
    let (certificates, issuers) =
        (of_kind::<Certificate>(&objects, "Certificate"), of_kind::<Issuer>(&objects, "Issuer"));
    let (leaf, authority) = (&certificates["slotwright-webhook"], &certificates["slotwright-webhook-ca"]);
    let hours = |text: &str| text.strip_suffix('h').unwrap().parse::<u32>().unwrap();
    assert!(authority.is_ca && !leaf.is_ca);
    assert_eq!(issuers[&leaf.issuer_ref.name], Issuer::Ca { secret_name: authority.secret_name.clone() });
    assert_eq!(issuers[&authority.issuer_ref.name], Issuer::SelfSigned {});
    // A renewed authority with another key would not be that of the certificates that are served.
    assert_eq!(
        (authority.private_key.rotation_policy.as_str(), leaf.private_key.rotation_policy.as_str()),
        ("Never", "Always")
    );
    assert!(hours(&authority.renew_before) > hours(&leaf.duration) && hours(&leaf.renew_before) > 0);
    assert!(hours(&authority.duration) > hours(&authority.renew_before));
    for key in [&authority.private_key, &leaf.private_key] {
        assert_eq!((key.algorithm.as_str(), key.size, key.encoding.as_str()), ("ECDSA", 256, "PKCS8"));
    }
}

#[test]
fn an_issuer_of_the_site_signs_if_one_is_named() {
    for (more, expected) in [
        ("", json!({"name": "site", "kind": "Issuer", "group": "cert-manager.io"})),
        (
            ",webhook.certManager.issuer.kind=ClusterIssuer,webhook.certManager.issuer.group=awspca.example",
            json!({"name": "site", "kind": "ClusterIssuer", "group": "awspca.example"}),
        ),
    ] {
        let Some(text) = render(&["--set", &format!("{ON},webhook.certManager.issuer.name=site{more}")])
        else {
            return;
        };
        let objects = objects(&text);
        let certificates = of_kind::<Certificate>(&objects, "Certificate");
        let expected: IssuerRef = serde_json::from_value(expected).unwrap();
        let issuers: Vec<&IssuerRef> = certificates.values().map(|one| &one.issuer_ref).collect();
        assert_eq!(issuers, [&expected]);
        assert!(of_kind::<Issuer>(&objects, "Issuer").is_empty());
    }
}

#[test]
fn without_the_webhook_nothing_is_cert_managers() {
    let (Some(off), Some(without)) = (render(&["--set", "webhook.certManager.enabled=true"]), render(&[]))
    else {
        return;
    };
    assert_eq!(off, without);
}
