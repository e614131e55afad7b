//! The health checks that the page about GitOps has for Flux.

// A test states what it expects by panicking.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use kube_cel::{VapEvaluator, VapExpression};
use serde_json::{Value, json};

use super::chart::{objects, read};

/// Whether an expression is true of an object. `None` if the expression fails.
fn is_true(expression: &str, object: &Value) -> Option<bool> {
    // Flux gives an expression the object's fields, and an API server the object.
    let text = expression.replace("status.", "object.status.").replace("metadata.", "object.metadata.");
    let text = text.replace("c.object.status", "c.status");
    let rule = VapExpression { expression: text, message: Some("no".into()), message_expression: None };
    let results = VapEvaluator::builder().object(object.clone()).build().evaluate(&[rule]);
    let failed = !results[0].passed && results[0].message.as_deref() != Some("no");
    (!failed).then_some(results[0].passed)
}

#[test]
fn flux_knows_a_spec_that_is_not_accepted() {
    let page = read("docs/how-to/gitops.md");
    let block = page.split("```yaml\n").find(|block| block.contains("healthCheckExprs")).unwrap();
    let checks = objects(block.split("```").next().unwrap()).remove(0);
    let check = &checks["spec"]["healthCheckExprs"][0];
    let object = |observed: i64, accepted: &str| {
        json!({"metadata": {"generation": 2}, "status": {"observedGeneration": observed, "conditions": [
            {"type": "FullyApplied", "status": "True"}, {"type": "Accepted", "status": accepted}]}})
    };
    for (object, expected) in [
        (object(2, "True"), [false, false, true]),
        (object(2, "False"), [false, true, false]),
        (object(1, "True"), [true, false, true]),
    ] {
        let found =
            ["inProgress", "failed", "current"].map(|name| is_true(check[name].as_str().unwrap(), &object));
        assert_eq!(found, expected.map(Some), "{object}");
    }
}
