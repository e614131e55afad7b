//! Mistakes that lint finds in single objects and between objects, and its advice.

use super::*;

#[test]
fn expressions_of_drains_and_fields_of_policies_are_checked() {
    let drain = "  node: n1\n  check: Activity = \"Idle\"\n  start: TRUE &&\n";
    let odd = "  node: n1\n  check: isIdle(1)\n";
    let policy = "  start: regexpp(\"a\", Owner) || Owner == 'bob'\n  attributes: {Rack: isStudent(1)}\n";
    let backfill = "  config: ENABLE_BACKFILL = true\n";
    for (kind, spec, expected) in [
        (
            "DrainRequest",
            drain,
            vec!["6:19: error: spec.check: not a ClassAd", "7:17: error: spec.start: not a ClassAd"],
        ),
        (
            "DrainRequest",
            "  node: n1\n  check: Activty == \"Idle\"\n  start: TARGET.Owner == bob\n",
            vec![
                "6:10: warning: spec.check: looks at Activty",
                "7:10: warning: spec.start: compares Owner with bob",
            ],
        ),
        ("DrainRequest", odd, vec!["6:10: warning: spec.check: calls isIdle(), which is no function"]),
        (
            "NodePolicy",
            policy,
            vec![
                "5:10: warning: spec.start: calls regexpp(), which is no function",
                "5:10: warning: spec.start: has 'bob' in single quotes",
                "6:22: warning: spec.attributes[Rack]: calls isStudent()",
            ],
        ),
        (
            "NodePolicy",
            backfill,
            vec!["5:11: warning: spec.config: ENABLE_BACKFILL is true, and there is no"],
        ),
    ] {
        let said = found(&[("a.yaml", &manifest(kind, spec))], &["a.yaml"]);
        for line in &expected {
            assert!(said.contains(&format!("a.yaml:{line}")), "{line}\n{said}");
        }
        assert_eq!(said.matches("a.yaml:").count(), expected.len(), "{said}");
    }
}

/// One verdict on a text, whether it stands in a file of configuration or in the object that takes it.
#[test]
fn a_text_is_judged_alike_in_a_file_and_in_its_object() {
    let knobs = |text: &str| {
        let indented: Vec<String> = text.lines().map(|line| format!("    {line}\n")).collect();
        format!("  config: |\n{}", indented.concat())
    };
    for (kind, text, rule) in [
        (
            "SubmitPolicy",
            "SCHEDD_CLASSAD_USER_MAP_NAMES = G\nCLASSAD_USER_MAPFILE_G = /etc/m\n",
            Some("error: the map G is in a file, and none can be read here"),
        ),
        (
            "NodePolicy",
            "STARTD_CRON_JOBLIST = H\nSTARTD_CRON_H_EXECUTABLE = /h\nSTARTD_CRON_H_PERIOD = 60\nSTARTD_CRON_x_PERIOD = 1\n",
            Some("warning: STARTD_CRON_x_PERIOD has no effect: STARTD_CRON_JOBLIST does not list x"),
        ),
        (
            "SubmitPolicy",
            "MEM_LIMIT = (RequestMemory * 2)\nSYSTEM_PERIODIC_HOLD = MemoryUsage > $(MEM_LIMIT)\n",
            None,
        ),
        ("Negotiator", "MEM_LIMIT = (RequestMemory * 2)\n", Some("warning: MEM_LIMIT has no effect here")),
        (
            "NodePolicy",
            "START = TARGET.RemoteOwner == undefined\n",
            Some("warning: START compares with undefined by ==, which is never true nor false"),
        ),
        (
            "NodePolicy",
            "START = Owner == bob\n",
            Some("warning: START compares Owner with bob, an attribute that"),
        ),
        (
            "NodePolicy",
            "START = Arch == \"amd64\"\n",
            Some("warning: START compares Arch with \"amd64\", which no slot has unless an admin says so"),
        ),
        (
            "NodePolicy",
            "WANT_HOLD_REASON = \"too much\"\nPREEMPT = \"FALSE\"\n",
            Some("warning: PREEMPT is the text \"FALSE\", which is neither true nor a number"),
        ),
    ] {
        let in_file = found(&[("a.config", text)], &["a.config"]);
        let in_object = found(&[("a.yaml", &manifest(kind, &knobs(text)))], &["a.yaml"]);
        let object = in_object.replace("spec.config: ", "");
        for said in [&in_file, &object] {
            assert!(rule.is_none_or(|rule| said.contains(rule)), "{text}{said}");
            // An object's refusal may have a warning beside it.
            let level = rule.and_then(|rule| rule.split(' ').next()).unwrap_or_default();
            let told = said.lines().filter(|line| line.starts_with("a.") && line.contains(level)).count();
            assert_eq!(told, usize::from(rule.is_some()), "{text}{said}");
        }
        let exit = if rule.is_some_and(|rule| rule.starts_with("error")) { "exit 1" } else { "exit 0" };
        assert!(in_file.contains(exit) && in_object.contains(exit), "{text}{in_file}{in_object}");
    }
}

#[test]
fn a_job_that_compares_with_a_name_is_warned() {
    let job = manifest(
        "HTCJob",
        "  requirements: TARGET.Machine == node7\n  template: {spec: {containers: [{name: a, image: i}]}}\n",
    );
    let said = found(&[("a.yaml", &job)], &["a.yaml"]);
    assert!(said.contains("a.yaml:5:17: warning: spec.requirements: compares Machine with node7"), "{said}");
    assert!(said.contains("hint: a text has double quotes: \"node7\""), "{said}");
}

#[test]
fn a_correction_names_a_negotiator_that_there_is() {
    let submitter = |name: &str| {
        manifest("Submitter", &format!("  correction: {{id: a, negotiator: {name}, realPriority: 1}}\n"))
    };
    let negotiator = manifest("Negotiator", "  intervalSeconds: 60\n");
    let wrong = found(&[("a.yaml", &submitter("negotiater")), ("b.yaml", &negotiator)], &["."]);
    let expected = "a.yaml:5:35: warning: spec.correction.negotiator: no Negotiator among the files has the name negotiater";
    assert!(wrong.contains(expected) && wrong.contains("hint: did you mean negotiator?"), "{wrong}");
    let right = found(&[("a.yaml", &submitter("negotiator")), ("b.yaml", &negotiator)], &["."]);
    let elsewhere = found(&[("a.yaml", &submitter("other"))], &["."]);
    assert!(
        right.starts_with("0 errors, 0 warnings") && elsewhere.starts_with("0 errors, 0 warnings"),
        "{right}{elsewhere}"
    );
}

/// The lines of lint's output for a manifest, without the summary.
fn lines(manifest: &str) -> Vec<String> {
    let said = found(&[("a.yaml", manifest)], &["a.yaml"]);
    said.lines()
        .take_while(|line| !line.contains(" in 1 object"))
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn a_field_that_is_indented_too_little_is_told_where_it_belongs() {
    let head = "apiVersion: slotwright.dev/v1alpha1\nmetadata: {name: a}\n";
    let job = format!("{head}kind: HTCJob\nspec:\n  requests:\n  cpus: 1\n  memory: 1Gi\n  template: {{}}\n");
    let policy = format!("{head}kind: NodePolicy\nspec:\nnodeSelector: {{}}\nconfig: START = TRUE\n");
    let some = format!("{head}kind: NodePolicy\nspec:\n  precedence: 1\nconfig: START = TRUE\n");
    let other = format!("{head}kind: NodePolicy\nspec: {{}}\ncolour: red\n");
    for (manifest, path, hint) in [
        (&job, "6:3: error: spec.cpus", "cpus is a field of spec.requests: indent it"),
        (&job, "7:3: error: spec.memory", "memory is a field of spec.requests: indent it"),
        (&policy, "5:1: error: nodeSelector", "nodeSelector is a field of spec: indent it"),
        (&policy, "6:1: error: config", "config is a field of spec: indent it"),
        (&some, "6:1: error: config", "config is a field of spec: indent it"),
        (&other, "5:1: error: colour", "known here: spec, status"),
    ] {
        let lines = lines(manifest);
        let expected = [
            format!("a.yaml:{path}: there is no such field [schema-unknown-field]"),
            format!("hint: {hint}"),
        ];
        assert!(lines.windows(2).any(|pair| pair == expected), "{expected:#?}\n{lines:#?}");
    }
}

#[test]
fn a_configuration_whose_lines_yaml_joined_is_told_how_to_be_written() {
    let text = "    START = TRUE\n    RANK = 1\n";
    for style in ["config: >\n", "config: >-\n", "config:\n", "config: \"\n", "config: '\n"] {
        let end = style.trim_end().chars().last().filter(|c| matches!(c, '"' | '\''));
        let end = end.map(|quote| format!("    {quote}\n")).unwrap_or_default();
        for kind in ["NodePolicy", "SubmitPolicy", "Negotiator"] {
            let lines = lines(&manifest(kind, &format!("  {style}{text}{end}")));
            let [error, hint] = &lines[..] else { panic!("{style}: {lines:#?}") };
            assert!(
                error.ends_with(": error: spec.config: YAML has joined the lines [config-syntax]"),
                "{error}"
            );
            assert_eq!(hint, "hint: write config: |");
        }
    }
    for fine in [
        "config: |\n    START = TRUE\n    RANK = 1\n",
        "config: >\n    START = TRUE\n\n    RANK = 1\n",
        "config: >\n    START = TRUE &&\n    (Cpus == 1) && Memory >= 1\n",
        "config: \"START = TRUE\\nRANK = 1\\n\"\n",
    ] {
        assert_eq!(lines(&manifest("NodePolicy", &format!("  {fine}"))), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn a_whole_number_may_be_written_as_a_real() {
    let job = |count: &str| {
        let pod = "template: {spec: {containers: [{name: main, image: busybox}]}}";
        manifest("HTCJob", &format!("  count: {count}\n  {pod}\n"))
    };
    for whole in ["10", "10.0", "1e1", "+1.0e+1"] {
        assert_eq!(lines(&job(whole)), Vec::<String>::new(), "{whole}");
    }
    for (other, hint) in [
        ("10.5", "hint: write a whole number, such as 11"),
        ("1e-1", "hint: write a whole number, such as 1"),
        ("2500m", "hint: write a whole number, such as 3"),
        ("\"10\"", "hint: remove the quotes: 10"),
    ] {
        let lines = lines(&job(other));
        assert!(lines[0].contains("a.yaml:5:10: error: spec.count: must be of type integer"), "{lines:#?}");
        assert_eq!(lines[1], hint, "{other}");
    }
}

#[test]
fn a_span_of_time_with_a_unit_is_told_to_be_in_seconds() {
    let config = "  config: |\n    NEGOTIATOR_INTERVAL = 5m\n    PRIORITY_HALFLIFE = 1 day\n    NEGOTIATOR_CYCLE_DELAY = often\n";
    assert_eq!(
        lines(&manifest("Negotiator", config)),
        [
            "a.yaml:6:27: error: spec.config: NEGOTIATOR_INTERVAL is 5m, which is no integer [config-value]",
            "hint: give seconds, such as 300, or 5 * $(MINUTE)",
            "a.yaml:7:25: error: spec.config: PRIORITY_HALFLIFE is 1 day, which is no number [config-value]",
            "hint: give seconds, such as 300, or 5 * $(MINUTE)",
            "a.yaml:8:30: error: spec.config: NEGOTIATOR_CYCLE_DELAY is often, which is no integer [config-value]",
        ]
    );
}

/// The operator takes the GroupQuota whose own name is the group's, wherever the other stands.
#[test]
fn of_two_objects_for_a_group_the_one_of_another_name_is_too_many() {
    let group = |name: &str, spec: &str| {
        format!(
            "apiVersion: slotwright.dev/v1alpha1\nkind: GroupQuota\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        )
    };
    let (other, own) = (group("aaa", "{group: Physics, quota: 1}"), group("physics", "{quota: 100}"));
    let said = found(&[("a.yaml", &other), ("b.yaml", &own)], &["."]);
    assert!(
        said.contains("a.yaml:4:15: error: group \"Physics\": there is already a group \"physics\""),
        "{said}"
    );
    assert!(!said.contains("b.yaml:"), "{said}");
}
