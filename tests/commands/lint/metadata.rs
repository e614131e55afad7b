//! The metadata of objects.

use super::*;

#[test]
fn metadata_that_kubernetes_does_not_take_is_found_at_its_place() {
    for (metadata, expected) in [
        (
            "label: {a: x}",
            vec![
                "3:23: error: metadata.label: there is no such field [schema-unknown-field]",
                "hint: did you mean labels?",
            ],
        ),
        (
            "annotation: {}",
            vec!["3:23: error: metadata.annotation: there is no such field", "did you mean annotations?"],
        ),
        (
            "labels: {a: 1, b: yes, c: null, d: x}",
            vec![
                "3:35: error: metadata.labels[a]: must be text [metadata]",
                "hint: quote it: \"1\"",
                "3:41: error: metadata.labels[b]",
            ],
        ),
        (
            "labels: {b c: x y}",
            vec![
                "3:32: error: metadata.labels[b c]: is no key of a label",
                "3:37: error: metadata.labels[b c]: is no value of a label",
            ],
        ),
        ("labels: [a]", vec!["3:31: error: metadata.labels: must be a map"]),
        ("annotations: {a b: x}", vec!["3:37: error: metadata.annotations[a b]: is no key of an annotation"]),
        (
            "namespace: Alice_1",
            vec!["3:34: error: metadata.namespace: \"Alice_1\" is not a namespace's name"],
        ),
        (
            "labels: {example.com/a: '', b: x.y}, annotations: {Example.com/a: any text}, finalizers: [a/b], namespace: alice",
            vec![],
        ),
    ] {
        let job = format!(
            "apiVersion: slotwright.dev/v1alpha1\nkind: HTCJob\nmetadata: {{name: job, {metadata}}}\nspec:\n  template: {{spec: \
             {{containers: [{{name: a, image: i}}]}}}}\n"
        );
        let said = found(&[("a.yaml", &job)], &["a.yaml"]);
        for line in &expected {
            assert!(said.contains(line), "{line}\n{said}");
        }
        let errors = expected.iter().filter(|line| line.contains(": error: ")).count();
        assert_eq!(said.matches(": error: ").count(), errors, "{said}");
    }
}

/// A label that is no text hides nothing else that is wrong.
#[test]
fn an_object_with_a_wrong_label_is_read() {
    let job = "apiVersion: slotwright.dev/v1alpha1\nkind: HTCJob\nmetadata: {name: job, labels: {a: 1}}\nspec:\n  rank: Memroy\n  \
               template: {spec: {containers: [{name: a, image: i}]}}\n";
    let said = found(&[("a.yaml", job)], &["a.yaml"]);
    assert!(
        said.contains("metadata.labels[a]: must be text") && said.contains("did you mean Memory?"),
        "{said}"
    );
    let group = "apiVersion: slotwright.dev/v1alpha1\nkind: GroupQuota\nmetadata: {name: g, labels: {a: 1}}\nspec: {quota: 1}\n";
    let said = found(&[("a.yaml", group)], &["a.yaml"]);
    assert!(said.contains("a.yaml:3:33: error: metadata.labels[a]: must be text"), "{said}");
}
