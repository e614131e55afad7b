//! Values of wrong types, and fields that there are elsewhere.

use super::*;

fn job(spec: &str) -> String {
    let job = manifest(
        "HTCJob",
        &format!("{spec}\n  template: {{spec: {{containers: [{{name: a, image: i}}]}}}}\n"),
    );
    found(&[("a.yaml", &job)], &["a.yaml"])
}

/// A mistake in a list is told once: nothing else is told of the items that are wrong, nor of those behind them.
#[test]
fn an_item_of_a_wrong_type_has_no_other_findings() {
    let rows = job("  count: 2\n  items: {variables: [a], rows: [[1], [2]]}");
    assert_eq!(rows.matches("must be of type string").count(), 2, "{rows}");
    assert!(rows.contains("2 errors, 0 warnings"), "{rows}");
    let args =
        manifest("HTCJob", "  template: {spec: {containers: [{name: a, image: i, args: [1, 2.5, true]}]}}\n");
    let args = found(&[("a.yaml", &args)], &["a.yaml"]);
    assert!(args.contains("3 errors, 0 warnings"), "{args}");
}

#[test]
fn a_number_with_a_fraction_has_the_hint_of_its_unit() {
    let said = job("  requests: {memory: 1.5, disk: 2.5, gpus: 0.5}");
    for hint in [
        "hint: write it with a unit, such as 1.5Gi",
        "such as 2.5Gi",
        "hint: write a whole number, such as 1",
    ] {
        assert!(said.contains(hint), "{hint}\n{said}");
    }
    let limits = "  template: {spec: {containers: [{name: a, image: i, resources: {limits: {cpu: 0.5}}}]}}\n";
    let said = found(&[("a.yaml", &manifest("HTCJob", limits))], &["a.yaml"]);
    assert!(said.contains("hint: quote it: \"0.5\""), "{said}");
}

#[test]
fn a_field_of_the_jobs_of_kubernetes_has_what_to_write() {
    for (field, hint) in [
        ("completions: 3", "use count"),
        ("suspend: true", "use hold"),
        ("ttlSecondsAfterFinished: 3", "use podRetention; the job stays until it is deleted"),
        (
            "backoffLimit: 3",
            "use the attributes JobMaxRetries and OnExitRemove, or max_retries of a submit file",
        ),
    ] {
        let said = job(&format!("  {field}"));
        assert!(said.contains(&format!("hint: {hint}\n")), "{field}\n{said}");
    }
    let policy = found(&[("a.yaml", &manifest("NodePolicy", "  suspend: 'true'\n"))], &["a.yaml"]);
    assert!(policy.contains("there is no such field") && !policy.contains("use hold"), "{policy}");
}

/// The operator takes both, and the field counts.
#[test]
fn a_knob_that_a_field_of_a_negotiator_gives_too_is_a_warning() {
    let negotiator = manifest("Negotiator", "  intervalSeconds: 60\n  config: NEGOTIATOR_INTERVAL = 30\n");
    let said = found(&[("a.yaml", &negotiator)], &["a.yaml"]);
    assert!(said.contains("a.yaml:5:20: warning: spec.intervalSeconds: takes precedence over"), "{said}");
    assert!(said.contains("[config-overridden]") && said.contains("exit 0"), "{said}");
    let policy = manifest("NodePolicy", "  start: 'TRUE'\n  config: START = TRUE\n");
    let said = found(&[("a.yaml", &policy)], &["a.yaml"]);
    assert!(said.contains("[policy-conflict]") && said.contains("exit 1"), "{said}");
}

#[test]
fn attributes_that_differ_in_case_alone_are_an_error() {
    let said = job("  attributes: {PeriodicHold: 'MemoryUsage > 2000', periodichold: 'false'}");
    let expected = "error: spec.attributes[periodichold]: is the same attribute as PeriodicHold, since case does not count in names";
    assert!(said.contains(expected) && said.contains("[attribute-name]"), "{said}");
}
