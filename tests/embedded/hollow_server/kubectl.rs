//! Runs common commands of the real kubectl against the embedded API server, and checks what they print.
//!
//! The test uses `$KUBECTL`, or `kubectl` on the PATH. Without a kubectl it says so and passes.

use std::fs;
use std::path::PathBuf;

use hollow::server::{HollowServer, ServerConfig};

use crate::program::Kubectl;

const CRD: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.dev}
spec:
  group: test.dev
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd], categories: [things]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns: [{name: Color, type: string, jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        description: A widget.
        properties:
          spec:
            type: object
            description: What is wanted.
            required: [color]
            properties:
              color: {type: string, enum: [red, green], description: The paint.}
              replicas: {type: integer, default: 1, minimum: 0}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

const NODE_AND_POD: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: "4"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: c, image: "nginx:1", resources: {limits: {cpu: 100m, memory: 64Mi}}}
"#;

const EVENT: &str = r#"
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: web.1}
eventTime: "2030-01-01T00:00:00.000000Z"
reason: Matched
note: matched to n1
type: Normal
action: Match
reportingController: slotwright
reportingInstance: slotwright-0
regarding: {kind: Pod, name: web, namespace: default, apiVersion: v1, uid: UID}
"#;

fn widget(color: &str) -> String {
    format!("apiVersion: test.dev/v1\nkind: Widget\nmetadata: {{name: w1}}\nspec: {{color: {color}}}\n")
}

/// One command: its arguments, its standard input, whether it must succeed, and texts that its output must contain.
struct Step(&'static str, String, bool, &'static [&'static str]);

fn does(line: &'static str, says: &'static [&'static str]) -> Step {
    Step(line, String::new(), true, says)
}

fn with(line: &'static str, input: impl Into<String>, says: &'static [&'static str]) -> Step {
    Step(line, input.into(), true, says)
}

fn fails(line: &'static str, input: impl Into<String>, says: &'static [&'static str]) -> Step {
    Step(line, input.into(), false, says)
}

fn built_in_kinds() -> Vec<Step> {
    vec![
        does("version", &["Server Version: v1.33"]),
        does("api-resources --categories=all", &["pods", "deployments"]),
        with("apply -f -", NODE_AND_POD, &["node/n1 created", "pod/web created"]),
        with("apply -f -", NODE_AND_POD, &["node/n1 unchanged", "pod/web unchanged"]),
        does("get pods -o wide", &["web", "Pending", "NOMINATED NODE"]),
        does("get po,no", &["pod/web", "node/n1"]),
        does("get pod web -o jsonpath={.status.qosClass}", &["Guaranteed"]),
        with("create -f -", EVENT, &["event.events.k8s.io/web.1 created"]),
        does("describe pod web", &["QoS Class:", "Guaranteed", "Matched", "matched to n1"]),
        does("events --for pod/web", &["Matched"]),
        does("explain pod.spec.nodeName", &["KIND:       Pod", "which node this pod is scheduled"]),
        does("label pod web tier=a", &["pod/web labeled"]),
        does("annotate pod web note=x", &["pod/web annotated"]),
        does("get pods -l tier=a,app!=db -L tier", &["TIER", "web"]),
        does("get pods --field-selector spec.nodeName=n1", &["No resources found"]),
        fails(
            "apply -f -",
            NODE_AND_POD.replace("nginx:1\"", "nginx:1\", tyop: 1"),
            &["unknown field \"spec.containers[0].tyop\""],
        ),
        does("create configmap c --from-literal=x=1", &["configmap/c created"]),
        fails("create configmap c", "", &["configmaps \"c\" already exists"]),
        does("create deployment d --image=nginx --replicas=2", &["deployment.apps/d created"]),
        does("scale deployment d --replicas=5", &["deployment.apps/d scaled"]),
        does("get deployment d", &["0/5"]),
        does("auth can-i create pods", &["yes"]),
        does("cordon n1", &["node/n1 cordoned"]),
        does("get nodes", &["SchedulingDisabled"]),
        does("uncordon n1", &["node/n1 uncordoned"]),
        with(
            "create -f -",
            "{apiVersion: v1, kind: Pod, metadata: {name: placed}, spec: {nodeName: n1, \
             terminationGracePeriodSeconds: 0, containers: [{name: c, image: i}]}}",
            &["pod/placed created"],
        ),
        does("drain n1 --force", &["pod/placed evicted", "node/n1 drained"]),
        does("delete pod web", &["pod \"web\" deleted"]),
        fails("get pod web", "", &["Error from server (NotFound): pods \"web\" not found"]),
        does("create namespace team", &["namespace/team created"]),
        does("create configmap c -n team", &["configmap/c created"]),
        does("delete namespace team", &["namespace \"team\" deleted"]),
    ]
}

fn custom_kinds() -> Vec<Step> {
    vec![
        with("apply -f -", CRD, &["widgets.test.dev created"]),
        does("wait --for=condition=Established crd/widgets.test.dev --timeout=10s", &["condition met"]),
        with("apply --server-side -f -", widget("red"), &["widget.test.dev/w1 serverside-applied"]),
        with("apply --server-side --field-manager=two -f -", widget("red"), &["serverside-applied"]),
        fails(
            "apply --server-side --field-manager=two -f -",
            widget("green"),
            &["Apply failed with 1 conflict: conflict with \"kubectl\"", ".spec.color"],
        ),
        with("apply --server-side --force-conflicts -f -", widget("green"), &["serverside-applied"]),
        fails("apply -f -", widget("blue"), &["spec.color: Unsupported value: \"blue\""]),
        with("apply --dry-run=server -f -", widget("red"), &["(server dry run)"]),
        does("get wd", &["COLOR", "green"]),
        does("get things -o name", &["widget.test.dev/w1"]),
        does("explain wd.spec", &["The paint.", "replicas"]),
        does("scale wd/w1 --replicas=3", &["scaled"]),
        does("wait wd/w1 --for=jsonpath={.spec.replicas}=3 --timeout=10s", &["condition met"]),
        does("patch wd w1 --type=merge -p {\"spec\":{\"replicas\":4}}", &["patched"]),
        does(
            "patch wd w1 --type=json -p [{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":4}]",
            &["w1"],
        ),
        does("patch wd w1 --subresource=status --type=merge -p {\"status\":{\"ok\":true}}", &["patched"]),
        does("get wd w1 -o yaml", &["replicas: 4", "ok: true", "generation: 4"]),
        does("edit wd w1", &["edited"]),
        does("get wd w1", &["red"]),
        does("delete wd w1", &["\"w1\" deleted"]),
        does("wait --for=delete wd/w1 --timeout=10s", &[]),
        does("delete crd widgets.test.dev", &["deleted"]),
        fails("get --raw /apis/test.dev/v1/widgets", "", &["could not find the requested resource"]),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_works() {
    let server = HollowServer::start(([127, 0, 0, 1], 0).into(), ServerConfig::default()).await.unwrap();
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("kubectl-{}", server.addr().port()));
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config"), server.kubeconfig()).unwrap();
    let Some(kubectl) = Kubectl::find(home.clone()) else {
        println!("SKIPPED: no kubectl on the PATH; set KUBECTL to one");
        return;
    };
    let story = tokio::task::spawn_blocking(move || {
        for Step(line, input, succeeds, says) in built_in_kinds().into_iter().chain(custom_kinds()) {
            // `kubectl describe` finds events by the uid of their object.
            let uid = || kubectl.run("get pod web -o jsonpath={.metadata.uid}", "").1;
            let input = if input == EVENT { input.replace("UID", &uid()) } else { input };
            let (ok, output) = kubectl.run(line, &input);
            assert_eq!(ok, succeeds, "kubectl {line}\n{output}");
            for text in says {
                assert!(output.contains(text), "kubectl {line}: no {text:?} in\n{output}");
            }
        }
    });
    story.await.unwrap();
    server.shutdown().await;
    fs::remove_dir_all(home).unwrap();
}
