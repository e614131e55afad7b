//! The values of the chart: those that are refused, each by name, and those that are taken though they are unusual.

// A test states what it expects by panicking.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::io::Write;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use tempfile::NamedTempFile;

use super::chart::{check_types, helm, objects, render};

/// The chart rendered with these values, as YAML.
fn rendered(values: &str, more: &[&str]) -> Option<String> {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(values.as_bytes()).unwrap();
    render(&[&["--values", file.path().to_str().unwrap()], more].concat())
}

#[test]
fn wrong_values_are_refused_by_name() {
    for (set, named) in [
        ("replicas=-1", "/replicas"),
        ("enabled=yes", "/enabled"),
        ("replica=2", "replica"),
        ("image.digest=latest", "/image/digest"),
        ("healthPort=80", "/healthPort"),
        ("agent.readyPort=80", "/agent/readyPort"),
        ("metrics.port=80", "/metrics/port"),
        ("metrics.serviceMonitor.interval=often", "/metrics/serviceMonitor/interval"),
        ("webhook.port=443", "/webhook/port"),
        ("webhook.failurePolicy=Fail", "failurePolicy"),
        ("webhook.certManager.enabled=yes", "/webhook/certManager/enabled"),
        ("webhook.certManager.issuer=site", "/webhook/certManager/issuer"),
        ("webhook.certManager.issuer.namespace=x", "namespace"),
        ("admissionPolicy.owner=yes", "/admissionPolicy/owner"),
        ("flowSchema.enabled=yes", "/flowSchema/enabled"),
        ("admissionPolicy.leanPods=yes", "/admissionPolicy/leanPods"),
        ("networkPolicy.metricsFrom={all}", "/networkPolicy/metricsFrom"),
        ("rbac.poolViewers={all}", "/rbac/poolViewers"),
        ("rbac.poolViewers[0].kind=ServiceAccount,rbac.poolViewers[0].name=x", "namespace"),
        ("history.readers[0].kind=ServiceAccount,history.readers[0].name=x", "namespace"),
        ("podLabels.app\\.kubernetes\\.io/component=x", "/podLabels"),
        ("agent.podLabels.app\\.kubernetes\\.io/name=x", "/agent/podLabels"),
        ("podAnnotations.kubectl\\.kubernetes\\.io/default-container=x", "/podAnnotations"),
        ("history.persistence.annotations.helm\\.sh/resource-policy=x", "/history/persistence/annotations"),
        ("history.maxLog=1", "/history/maxLog"),
        ("history.persistence.accessMode=ReadOnlyMany", "/history/persistence/accessMode"),
        ("history.adstash.url=elastic:9200", "/history/adstash/url"),
        ("history.enabled=true,replicas=1", "history.tokenSecret"),
        ("history.enabled=true,history.tokenSecret=x", "history.persistence.accessMode"),
        ("metrics.port=8081", "healthPort and metrics.port are both 8081"),
        ("webhook.enabled=true,webhook.port=8080", "metrics.port and webhook.port are both 8080"),
        (
            "history.enabled=true,history.tokenSecret=x,replicas=1,history.port=8080",
            "history.port and metrics.port are both 8080",
        ),
        ("history.enabled=true,history.tokenSecret=x,replicas=1,history.adstash.ca=true", "adstash.secret"),
        ("log=", "/log"),
        ("log=warning", "/log"),
        ("log=INFO slotwright=debug", "/log"),
        ("log=info\\,slotwright=verbose", "/log"),
        ("logFormat=xml", "/logFormat"),
        ("fullnameOverride=My_Pool", "/fullnameOverride"),
        ("fullnameOverride=1st", "/fullnameOverride"),
        ("nameOverride=my.pool", "/nameOverride"),
        (
            "agent.enabled=true,agent.cronDirectory=/usr/local/bin",
            "agent.cronDirectory: /usr/local/bin of the node",
        ),
        ("agent.enabled=true,agent.cronDirectory=/usr", "agent.cronDirectory: /usr of the node"),
    ] {
        let Some(output) = helm(&["render", "charts/slotwright", "--set", set]) else { return };
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(named), "{set}: {message}");
    }
}

/// YAML reads `123` as a number, and the API server takes no number for a name.
#[test]
fn names_that_look_like_numbers_are_names() {
    let values = r#"
rbac: {jobNamespaces: ["123"]}
jobQuota: {enabled: true, namespaces: ["123"]}
nameOverride: "7"
serviceAccount: {name: "1"}
priorityClassName: "1000"
replicas: 1
history:
  enabled: true
  tokenSecret: "777"
  adstash: {url: "https://x", secret: "55"}
  persistence: {enabled: true, existingClaim: "12"}
agent: {enabled: true, priorityClassName: "1000", kubeletCAConfigMap: "1", diskUsage: true}
webhook: {enabled: true, certManager: {enabled: true, issuer: {name: "5", kind: "6", group: "7"}}}
"#;
    let Some(text) = rendered(values, &["--name", "123", "--namespace", "2026"]) else { return };
    let objects = objects(&text);
    check_types(&objects);
    let in_release = objects.iter().filter(|object| object["metadata"]["namespace"] == "2026").count();
    let in_jobs = objects.iter().filter(|object| object["metadata"]["namespace"] == "123").count();
    assert!(in_release > 5 && in_jobs == 2, "{in_release}, {in_jobs}");
}

/// As a restore needs, and a chart that has this one as a dependency.
#[test]
fn an_operator_may_be_scaled_to_nothing_and_a_parent_chart_may_say_enabled_and_global() {
    let values = ["--set", "replicas=0,enabled=true,global.imageRegistry=registry.example.org"];
    let Some(text) = render(&values) else { return };
    let objects = objects(&text);
    let replicas = |kind: &str| {
        let found = objects.iter().find(|object| object["kind"] == kind)?;
        found["spec"]["replicas"].as_i64()
    };
    assert_eq!(replicas("Deployment"), Some(0));
    assert!(objects.iter().all(|object| object["kind"] != "PodDisruptionBudget"));
}

#[test]
fn the_notes_say_how_to_run_a_job_with_these_values() {
    let confined = ["--notes", "--set", "rbac.jobNamespaces={alice,bob},agent.enabled=true"];
    let (Some(plain), Some(confined)) = (render(&["--notes"]), render(&confined)) else { return };
    for (notes, created_in) in
        [(&plain, " kubectl create -f -"), (&confined, " kubectl -n alice create -f -")]
    {
        let (_, job) = notes.split_once("echo '").unwrap();
        let (job, rest) = job.split_once("' |").unwrap();
        let job: api::HTCJob = serde_json::from_str(job).unwrap();
        let template: PodTemplateSpec = serde_json::from_str(job.spec.template.0.get()).unwrap();
        assert_eq!(template.spec.unwrap().containers.len(), 1);
        assert!(rest.lines().nth(1).unwrap().ends_with(created_in), "{rest}");
        assert!(notes.contains("Delete the jobs before you remove the release"), "{notes}");
    }
    let privileged = "pod-security.kubernetes.io/enforce=privileged";
    assert!(
        confined.contains(privileged) && !plain.contains(privileged),
        "agents need a privileged namespace"
    );
}
