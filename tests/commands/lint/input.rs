//! The input of lint: standard input, paths that lead to nothing, and files to which several paths lead.

use super::*;

/// The output and the exit status of `lint --strict -`.
fn strict_of_input(input: &str) -> (String, Option<i32>) {
    let output = lint_in(root(), &["--strict", "-"], input);
    (text(&output.stdout), output.status.code())
}

#[test]
fn standard_input_without_an_object_is_an_error() {
    for (input, place, message) in [
        ("", "1:1", "standard input has no document"),
        ("# nothing\n---\n", "1:1", "standard input has no document"),
        ("error: accumulating resources\n", "1:1", "this is no object: kind is missing [no-object]"),
        ("accumulating resources failed\n", "1:1", "this is no object [no-object]"),
        ("---\n---\n- apiVersion: v1\n", "3:1", "this is a list, and no object [no-object]"),
        ("kind: List\napiVersion: v1\nitems:\n- nothing\n", "4:3", "this is no object [no-object]"),
    ] {
        let (said, status) = strict_of_input(input);
        assert_eq!(status, Some(1), "{input}: {said}");
        assert!(said.contains(&format!("<stdin>:{place}")) && said.contains(message), "{input}: {said}");
    }
    for fine in [format!("---\n---\n{GROUP}---\n# the end\n"), "apiVersion: v1\nkind: ConfigMap\n".to_owned()]
    {
        assert_eq!(strict_of_input(&fine).1, Some(0), "{fine}");
    }
}

#[test]
fn a_path_that_leads_to_nothing_is_warned_of() {
    let directory = files(&[
        ("a.yaml", GROUP),
        ("empty/notes.txt", "x"),
        ("e.yaml", ""),
        ("values.yaml", "a: 1\n"),
        ("c.yaml", "START = TRUE &&\n"),
    ]);
    for (path, status, message) in [
        ("a.yaml", 0, "0 errors, 0 warnings in 1 object"),
        ("empty", 1, "empty:1:1: warning: nothing here is a manifest or configuration text [nothing-found]"),
        ("e.yaml", 1, "e.yaml:1:1: warning: nothing here"),
        ("values.yaml", 1, "values.yaml:1:1: warning: nothing here"),
        ("c.yaml", 1, "c.yaml:1:1: error: this is no object [no-object]"),
    ] {
        let output = lint_in(directory.path(), &["--strict", path], "");
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{path}: {said}");
        assert!(said.contains(message), "{path}: {said}");
    }
    let together =
        lint_in(directory.path(), &["--strict", "a.yaml", "e.yaml", "--config", "empty/notes.txt"], "");
    assert!(
        text(&together.stdout).contains("e.yaml:1:1: warning"),
        "the file is named, whatever else there is"
    );
}

#[test]
fn a_file_to_which_several_paths_lead_is_checked_once() {
    let directory = files(&[("d/a.yaml", GROUP)]);
    for paths in [&["d/a.yaml", "d/a.yaml"][..], &["d", "./d/a.yaml"], &["d/../d", "d"]] {
        let output = lint_in(directory.path(), &[&["--strict"], paths].concat(), "");
        let said = text(&output.stdout);
        assert_eq!(said, "0 errors, 0 warnings in 1 object of 1 file\n", "{paths:?}");
    }
    let twice = found(&[("a.yaml", GROUP), ("b.yaml", GROUP)], &["."]);
    assert!(twice.contains("b.yaml:3:18: error: GroupQuota physics stands also at a.yaml:3:18"), "{twice}");
}
