//! Writes findings as SARIF 2.1.0 (OASIS), which GitHub code scanning, GitLab and editors read.

use serde_json::{Value, json};

use super::super::report::{Finding, Report};
use super::super::rules;

const PAGE: &str = "https://github.com/slotwright/slotwright/blob/main/docs/reference/lint.md";

/// The report as a log with one run.
pub(super) fn log(report: &Report, unusable: &[String]) -> Value {
    let rules: Vec<Value> = rules::ALL
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.summary},
                "helpUri": format!("{PAGE}#{}", rule.id),
                "defaultConfiguration": {"level": rule.severity.word()},
            })
        })
        .collect();
    let notifications: Vec<Value> =
        unusable.iter().map(|text| json!({"level": "error", "message": {"text": text}})).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "slotwright lint",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": PAGE,
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": unusable.is_empty(),
                "toolExecutionNotifications": notifications,
            }],
            "results": report.findings.iter().map(result).collect::<Vec<Value>>(),
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let hint = finding.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
    let index = rules::ALL.iter().position(|rule| rule.id == finding.rule.id);
    let mut location = json!({"physicalLocation": {
        "artifactLocation": {"uri": uri(&finding.path)},
        "region": {"startLine": finding.line, "startColumn": finding.column},
    }});
    if let (Some(object), Some(location)) = (&finding.object, location.as_object_mut()) {
        location.insert(
            "logicalLocations".to_owned(),
            json!([{"fullyQualifiedName": object, "kind": "resource"}]),
        );
    }
    json!({
        "ruleId": finding.rule.id,
        "ruleIndex": index,
        "level": finding.severity.word(),
        "message": {"text": format!("{}{hint}", finding.message)},
        "locations": [location],
    })
}

/// A path as a relative reference of a URI. Characters that a URI does not take are escaped, and colons, because a
/// colon would end a scheme.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=@".contains(&byte);
    path.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
