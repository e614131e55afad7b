//! Runs `slotwright lint` as a pipeline does: the examples are clean, each mistake is found at its place, and every
//! format of output is what its readers expect.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod advice;
mod input;
mod limits;
mod metadata;
mod types;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Runs lint in a directory.
fn lint_in(directory: &Path, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_slotwright"))
        .arg("lint")
        .args(args)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A directory with these files.
fn files(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

/// A manifest of a kind, with a name and these lines of its spec.
fn manifest(kind: &str, spec: &str) -> String {
    let api = "apiVersion: slotwright.dev/v1alpha1";
    format!("{api}\nkind: {kind}\nmetadata: {{name: {}}}\nspec:\n{spec}", kind.to_lowercase())
}

/// The output of lint for some files, and its exit status in a line of its own.
fn found(given: &[(&str, &str)], args: &[&str]) -> String {
    let directory = files(given);
    let output = lint_in(directory.path(), args, "");
    format!("{}exit {}\n{}", text(&output.stdout), output.status.code().unwrap(), text(&output.stderr))
}

#[test]
fn a_job_that_is_too_large_is_named_with_its_size() {
    let args = vec!["x".repeat(60_000); 5].join(", ");
    let job = format!(
        "apiVersion: slotwright.dev/v1alpha1\nkind: HTCJob\nmetadata: {{name: large, namespace: alice}}\nspec:\n  \
         template:\n    spec:\n      containers: [{{name: main, image: i, args: [{args}]}}]\n"
    );
    let said = found(&[("a.yaml", &job)], &["."]);
    assert!(said.contains("a.yaml:5:3: error: spec: has 300"), "{said}");
    assert!(said.contains("and may have 262144") && said.contains("[job-too-large]"), "{said}");
}

#[test]
fn a_template_with_a_native_sidecar_is_clean() {
    let job = |sidecar: &str| {
        format!(
            "apiVersion: slotwright.dev/v1alpha1\nkind: HTCJob\nmetadata: {{name: meshed, namespace: alice}}\nspec:\n  \
             requests: {{cpus: 1, memory: 1Gi}}\n  template:\n    spec:\n      containers: [{{name: main, image: busybox}}]\n      \
             initContainers:\n      - {{name: proxy, image: busybox, restartPolicy: Always, resources: {{requests: {{cpu: {sidecar}, memory: 64Mi}}}}}}\n"
        )
    };
    let clean = found(&[("job.yaml", &job("250m"))], &["job.yaml"]);
    assert!(clean.contains("exit 0"), "{clean}");
    let greedy = found(&[("job.yaml", &job("1"))], &["job.yaml"]);
    assert!(greedy.contains("more cpu than the slot holds, sidecars counted"), "{greedy}");
}

#[test]
fn the_examples_are_clean() {
    let mut paths: Vec<String> = fs::read_dir(root().join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned())
        .collect();
    paths.sort();
    let mut args: Vec<&str> = vec!["--strict"];
    args.extend(paths.iter().map(String::as_str));
    let output = lint_in(root(), &args, "");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("0 errors, 0 warnings in "), "{said}");
}

/// All files of `examples` and its directories but `broken`, below the root of the repository.
fn examples(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("broken") {
            found.extend(examples(&path));
        } else if path.is_file() {
            found.push(path.strip_prefix(root()).unwrap().to_owned());
        }
    }
    found.sort();
    found
}

/// Each file is checked alone, because some directories hold objects for different pools.
#[test]
fn no_expression_of_the_examples_is_called_a_mistake() {
    let paths = examples(&root().join("examples"));
    let manifests = paths.iter().filter(|path| path.extension().is_some_and(|is| is == "yaml"));
    let mut objects = 0;
    for path in manifests.map(|path| path.to_str().unwrap()) {
        let output = lint_in(root(), &["-o", "json", path], "");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        objects += report["summary"]["objects"].as_u64().unwrap();
        for finding in report["findings"].as_array().unwrap() {
            let rule = finding["rule"].as_str().unwrap();
            assert!(!rule.starts_with("expression-"), "{finding:#}");
        }
    }
    assert!(objects > 30, "only {objects} objects");
}

/// The operator's warnings of a job's matching by label, and of the labels that a policy hands on.
#[test]
fn a_node_label_in_single_quotes_is_no_mistake() {
    let job = "apiVersion: slotwright.dev/v1alpha1\nkind: HTCJob\nmetadata: {name: labelled, namespace: alice}\nspec:\n  \
               requirements: TARGET.NodeLabels.'kubernetes.io/arch' == \"amd64\"\n  \
               template: {spec: {containers: [{name: main, image: busybox}]}}\n";
    let policy = "apiVersion: slotwright.dev/v1alpha1\nkind: NodePolicy\nmetadata: {name: labelled}\nspec:\n  \
                  config: START = NodeLabels.'nvidia.com/gpu.memory' > 1\n  \
                  attributes: {GPUMemoryMb: \"int(NodeLabels.'nvidia.com/gpu.memory')\"}\n";
    let said = found(&[("job.yaml", job), ("policy.yaml", policy)], &["--strict", "."]);
    assert!(said.starts_with("0 errors, 0 warnings in 2 objects"), "{said}");
}

#[test]
fn the_groups_are_clean() {
    let output = lint_in(root(), &["--strict", "examples/groups"], "");
    assert!(output.status.success(), "{}", text(&output.stdout));
}

#[test]
fn the_negotiators_that_share_a_pool_are_clean() {
    let output = lint_in(root(), &["--strict", "examples/negotiators"], "");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("0 errors, 0 warnings in 2 objects"), "{said}");
}

/// Each file is checked alone, because the policies are for different pools.
#[test]
fn the_manuals_policies_are_understood() {
    for entry in fs::read_dir(root().join("examples/policies")).unwrap() {
        let path = entry.unwrap().path();
        let output = lint_in(root(), &[path.to_str().unwrap()], "");
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("0 errors"), "{said}");
    }
}

#[test]
fn the_broken_examples_are_found_broken() {
    let output = lint_in(root(), &["examples/broken", "examples/10-groupquotas.yaml"], "");
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn manifests_of_the_chart_and_of_others_are_none_of_ours() {
    let output = lint_in(root(), &["charts", "deploy", "crds"], "");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

const JOB: &str = r#"apiVersion: slotwright.dev/v1alpha1
kind: HTCJob
metadata:
  name: Bad_Name
  namespace: alice
spec:
  count: "3"
  requirement: TARGET.Memory > 1
  requirements: |
    TARGET.Memory > 1 &&
      TARGET.Arch ==
  rank: "TARGET.\"x\" +\t+ )"
  podRetention: keep
  accountingGroup: physic
  attributes:
    Flag: yes
    Owner: '"root"'
    1x: "1"
    Tags: >-
      {"a",
       "b" ; "c"}
  requests:
    cpus: 0
    memory: lots
  template:
    spec:
      restartPolicy: Always
      containers:
        - name: main
          imagee: x
          resources: {limits: {memory: 1Ti}}
---
apiVersion: slotwright.dev/v1alpha1
kind: HTCJob
metadata: {name: nothing}
status: {idle: 3}
---
apiVersion: slotwright.dev/v1beta1
kind: HTCJob
metadata: {name: nothing}
---
apiVersion: slotwright.dev/v1alpha1
kind: HTCjob
metadata: {name: nothing}
---
apiVersion: slotwright.dev/v1alpha1
kind: Slot
metadata: {name: slot1.n1}
spec: {}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nothing}
"#;

const LIST: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "physics"}, "spec": {"quota": 10}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "physics.a"}, "spec": {"quota": 6}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "physics.b"}, "spec": {"quota": 5, "dynamicQuota": 0.5}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "chem.x"}, "spec": {"dynamicQuota": 0.5}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "bio"}, "spec": {}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "other"}, "spec": {"group": "Physics", "dynamicQuota": 0.6}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "more"}, "spec": {"dynamicQuota": 0.6}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator", "metadata": {"name": "b"}, "spec": {"slotConstraint": "MY.x \u003d= \u201c"}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator", "metadata": {"name": "a"}, "spec": {"intervalSeconds": 0}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "p1"}, "spec": {"start": "a b", "tolerations": [{"keyy": "x"}], "nodeSelector": {"matchExpressions": [{"key": "a", "operator": "in"}]}}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "p1"}, "spec": {"nodeSelector": {"matchLabels": {"a": "b"}}}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "p2"}, "spec": {"nodeSelector": {"matchLabels": {"a": "b"}}, "precedence": -1}},
  {"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "most"}, "spec": {"dynamicQuota": 0.6}}
]}
"#;

const POLICY: &str = r#"apiVersion: slotwright.dev/v1alpha1
kind: NodePolicy
metadata: {name: literal}
spec:
  start: TARGET.x
  attributes: {Rack: '"r1"'}
  config: |
    # comment
    STRAT = 1
    START = TARGET.RequestCpus <= 4 &&
    SYSTEM_STARTD_LATCH_EXPRS = A
    if true
      CLAIM_WORKLIFE = "soon"
    Rack = "r2"
    STARTD_ATTRS = Rack
---
apiVersion: slotwright.dev/v1alpha1
kind: NodePolicy
metadata: {name: quoted}
spec:
  nodeSelector: {matchLabels: {a: b}}
  config: "use POLICY : Desktop\nSTART = $(IP_ADDRESS) =?= 1\nX-Y = \"é\" 1\n"
"#;

#[test]
fn every_mistake_is_found_at_its_place() {
    for (name, given) in [
        ("job", &[("a.yaml", JOB), ("groups.yaml", GROUP)][..]),
        ("list", &[("a.json", LIST)]),
        ("policy", &[("policy.yml", POLICY)]),
        (
            "configuration",
            &[
                (
                    "50-policy.config",
                    "START = TARGET.x > 1 &&\nMINE = 1\nMEMORY = lots\nNUM_CPUS = four\nSTRAT = True\n",
                ),
                ("60.conf", "# fine\nNEGOTIATOR_INTERVAL = 60\n"),
                ("70.htcondor", "X-Y = 1\n"),
            ],
        ),
        (
            "yaml",
            &[
                ("a.yaml", "a: [1, 2\nb: {{ .Values.x }}\n---\nc: 1\nc: 2\n"),
                ("b.yaml", "a: &a [*a]\n"),
                ("sub/c.yaml", "\u{feff}kind: HTCJob\nmetadata: {}\n"),
                (".hidden/d.yaml", "a: [\n"),
                ("chart/Chart.yaml", "name: x\n"),
                ("chart/templates/e.yaml", "a: {{ b }}\n"),
                ("notes.txt", "a: [\n"),
            ],
        ),
    ] {
        insta::assert_snapshot!(format!("places_{name}"), found(given, &["-v", "."]));
    }
}

/// Expressions with mistakes that people often make, each with a hint.
const MISTAKEN: &str = r#"apiVersion: slotwright.dev/v1alpha1
kind: HTCJob
metadata: {name: mistaken, namespace: alice}
spec:
  requirements: OpSys = "LINUX"
  rank: Memory >= 5GB
  requests: {memory: 512m}
  attributes:
    CronMinute: "*/15"
    Experiment: DUNE
    HoldMe: not Ready
    Note: too long
    Owner: '"bob"'
    RequestMemory: "4000"
    max_retries: "3"
  template: {spec: {containers: [{name: main, image: busybox}]}}
---
apiVersion: slotwright.dev/v1alpha1
kind: NodePolicy
metadata: {name: mistaken}
spec:
  config: |
    START = TARGET.ImageSize < 5 and TARGET.x
    RANK = TARGET.x => 5
    PREEMPT = False # never
"#;

#[test]
fn mistakes_that_people_often_make_have_hints() {
    insta::assert_snapshot!(found(&[("a.yaml", MISTAKEN)], &["."]));
}

#[test]
fn attributes_that_a_policy_looks_for_in_vain_are_found_in_fields_and_text() {
    let policy = |spec: &str| {
        format!("apiVersion: slotwright.dev/v1alpha1\nkind: NodePolicy\nmetadata: {{name: p}}\nspec:\n{spec}")
    };
    for (spec, expected) in [
        (
            "  start: KeybordIdle > 300\n",
            "a.yaml:5:10: warning: spec.start: looks at KeybordIdle, an attribute that neither nodes nor jobs have unless somebody \
             adds it [expression-attribute]\n    hint: did you mean KeyboardIdle?\n",
        ),
        (
            "  start: TARGET.Cpus > 2\n",
            "a.yaml:5:10: warning: spec.start: looks at TARGET.Cpus, which no job has unless its author adds it \
             [expression-mistake]\n    hint: did you mean MY.Cpus?\n",
        ),
        (
            "  config: |\n    START = MY.RequestMemory > 2\n",
            "a.yaml:6:5: warning: spec.config: START looks at MY.RequestMemory, which no slot has unless a policy publishes it \
             [expression-mistake]\n    hint: did you mean TARGET.RequestMemory?\n",
        ),
        ("  attributes: {HasJava: \"true\"}\n  config: |\n    START = MY.HasJava && TARGET.Mine > 2\n", ""),
    ] {
        let told = found(&[("a.yaml", &policy(spec))], &["."]);
        let wanted = if expected.is_empty() { "0 errors, 0 warnings" } else { expected };
        assert!(told.starts_with(expected) && told.contains(wanted), "{spec}: {told}");
    }
}

const GROUP: &str =
    "apiVersion: slotwright.dev/v1alpha1\nkind: GroupQuota\nmetadata: {name: physics}\nspec: {quota: 1}\n";

#[test]
fn each_place_is_where_the_text_stands() {
    // The snapshot has the text at each finding's place, so that a wrong place is seen.
    let directory = files(&[("a.yaml", JOB), ("g.yaml", GROUP)]);
    let output = lint_in(directory.path(), &["-o", "json", "a.yaml", "g.yaml"], "");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let at = |rule: &str, field: &str| -> String {
        let finding = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|f| f["rule"] == rule && f["message"].as_str().unwrap().starts_with(field))
            .unwrap_or_else(|| panic!("no {rule} for {field} in {report:#}"));
        let line = JOB.lines().nth(usize::try_from(finding["line"].as_u64().unwrap()).unwrap() - 1).unwrap();
        line.chars().skip(usize::try_from(finding["column"].as_u64().unwrap()).unwrap() - 1).collect()
    };
    for (rule, field, rest) in [
        ("metadata", "metadata.name", "Bad_Name"),
        ("schema-type", "spec.count", "\"3\""),
        ("schema-unknown-field", "spec.requirement", "requirement: TARGET.Memory > 1"),
        ("expression-syntax", "spec.requirements", ""),
        ("expression-syntax", "spec.rank", "\\\"x\\\" +\\t+ )\""),
        ("schema-value", "spec.podRetention", "keep"),
        ("group-unknown", "spec.accountingGroup", "physic"),
        ("schema-type", "spec.attributes.Flag", "yes"),
        ("attribute-protected", "spec.attributes[Owner]", "Owner: '\"root\"'"),
        ("attribute-name", "spec.attributes[1x]", "1x: \"1\""),
        ("expression-syntax", "spec.attributes[Tags]", "; \"c\"}"),
        ("job-request", "spec.requests.memory", "lots"),
        ("job-template", "spec.template.spec.restartPolicy", "Always"),
        ("template-unknown-field", "spec.template.spec.containers[0].imagee", "imagee: x"),
    ] {
        assert_eq!(at(rule, field), rest, "{rule} {field}");
    }
}

#[test]
fn github_reads_the_commands() {
    let output = found(&[("a,b:c.yaml", "a: \"100%\n")], &["-o", "github", "."]);
    insta::assert_snapshot!(output);
}

#[test]
fn the_name_of_a_submitters_object_is_told() {
    let head = "apiVersion: slotwright.dev/v1alpha1\nkind: Submitter\n";
    let of = |name: &str| {
        format!("{head}metadata: {{name: {name}}}\nspec: {{name: group_physics.alice, floor: 2}}\n")
    };
    let right = "group-physics.alice-2c32f131b55e3f75";
    let told = |name: &str| found(&[("s.yaml", &of(name))], &["s.yaml"]);
    assert_eq!(told(right), "0 errors, 0 warnings in 1 object of 1 file\nexit 0\n");
    let said = told("group-physics.alice");
    let expected = format!(
        "s.yaml:4:14: error: spec.name: the Submitter of group_physics.alice must have the metadata.name {right}, and this one is the \
         Submitter of group-physics.alice [submitter-name]\n"
    );
    assert!(said.starts_with(&expected), "{said}");
}

#[test]
fn sarif_has_what_the_standard_requires() {
    let directory = files(&[("my file.yaml", JOB)]);
    let output = lint_in(directory.path(), &["-o", "sarif", ".", "nowhere"], "");
    assert_eq!(output.status.code(), Some(2));
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert!(run["tool"]["driver"]["name"].is_string());
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() > 5);
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()), "{result}");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "my%20file.yaml");
        assert!(place["region"]["startLine"].as_u64().unwrap() >= 1);
        assert!(place["region"]["startColumn"].as_u64().unwrap() >= 1);
    }
}

#[test]
fn the_exit_status_says_how_bad_it_is() {
    let warned = JOB.split("---").next().unwrap();
    let warned = warned
        .lines()
        .filter(|line| line.starts_with(['a', 'k']))
        .chain(["metadata: {name: g}", "spec: {}"])
        .map(|line| line.replace("HTCJob", "GroupQuota"))
        .collect::<Vec<_>>()
        .join("\n");
    for (given, args, status) in [
        (GROUP, &["a.yaml"][..], 0),
        (warned.as_str(), &["a.yaml"], 0),
        (warned.as_str(), &["--strict", "a.yaml"], 1),
        ("a: [", &["a.yaml"], 1),
        ("a: [", &["a.yaml", "b.yaml"], 2),
        (GROUP, &["b.yaml"], 2),
        (GROUP, &[], 2),
        (GROUP, &["-o", "xml", "a.yaml"], 2),
        ("START = 1 +", &["-c", "a.yaml"], 1),
        ("START = 1", &["--config", "a.yaml"], 0),
    ] {
        let directory = files(&[("a.yaml", given)]);
        let output = lint_in(directory.path(), args, "");
        assert_eq!(output.status.code(), Some(status), "{given} {args:?}: {}", text(&output.stdout));
    }
}

#[test]
fn standard_input_is_a_file() {
    let output = lint_in(root(), &["-"], "kind: HTCJob\napiVersion: slotwright.dev/v1alpha1\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("<stdin>:1:1: error: "), "{}", text(&output.stdout));
}

#[test]
fn every_rule_has_its_place_in_the_page() {
    let page = fs::read_to_string(root().join("docs/reference/lint.md")).unwrap();
    let directory = files(&[("a.yaml", GROUP)]);
    let output = lint_in(directory.path(), &["-o", "sarif", "a.yaml"], "");
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    for rule in rules {
        let (id, level) =
            (rule["id"].as_str().unwrap(), rule["defaultConfiguration"]["level"].as_str().unwrap());
        let summary = rule["shortDescription"]["text"].as_str().unwrap();
        let row = format!("| <a id=\"{id}\"></a>`{id}` | {level} | {summary} |");
        assert!(page.contains(&row), "docs/reference/lint.md lacks\n{row}");
    }
    assert_eq!(page.matches("<a id=").count(), rules.len(), "docs/reference/lint.md has a rule that is none");
}

#[test]
fn the_pipelines_in_the_docs_are_yaml() {
    let page = fs::read_to_string(root().join("docs/how-to/gitops.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    for document in blocks.iter().flat_map(|block| block.split("\n---\n")) {
        let _: Value = serde_saphyr::from_str(document).unwrap();
    }
    let pipelines: Vec<&&str> = blocks.iter().filter(|block| block.contains("lint --strict")).collect();
    assert!(pipelines.len() >= 2);
    for pipeline in pipelines {
        assert!(pipeline.contains(concat!("slotwright:", env!("CARGO_PKG_VERSION"))), "{pipeline}");
    }
}

#[test]
fn a_large_repository_is_quick_enough_for_every_commit() {
    let job = fs::read_to_string(root().join("examples/33-assembly.yaml")).unwrap();
    let many: Vec<(PathBuf, String)> = (0..200)
        .map(|n| {
            (
                PathBuf::from(format!("{n}.yaml")),
                job.replace("name: assembly", &format!("name: assembly-{n}")),
            )
        })
        .collect();
    let given: Vec<(&str, &str)> =
        many.iter().map(|(path, text)| (path.to_str().unwrap(), text.as_str())).collect();
    let said = found(&given, &["."]);
    assert!(said.starts_with("0 errors, 0 warnings in 200 objects of 200 files\n"), "{said}");
}

#[test]
fn a_submit_description_is_called_by_its_name() {
    let said = found(&[("job.sub", "executable = /bin/sleep\narguments = 60\n\nqueue 10\n")], &["job.sub"]);
    assert_eq!(
        said,
        "job.sub:4:1: error: this is a submit description of HTCondor, and no manifest [submit-description]\n    \
         hint: slotwright submit makes the HTCJob: docs/how-to/submit-files.md says how\n\
         1 error, 0 warnings in 0 objects of 1 file\nexit 1\n"
    );
    let manifest = "apiVersion: v1\nkind: ConfigMap\ndata:\n  job.sub: |\n    queue 10\n";
    assert!(found(&[("a.yaml", manifest)], &["a.yaml"]).contains("0 errors"), "a manifest may hold one");
}
