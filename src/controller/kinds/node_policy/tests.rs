//! NodePolicies as the pool knows them.

use serde_json::json;

use super::*;
use classad::Expr;

#[test]
fn policies_say_everything_that_is_wrong() {
    let object = json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "p"},
        "spec": {"start": "TARGET.x ==", "slotWeight": "Cpus", "attributes": {"a b": "1"},
                 "nodeSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "Is"}]}},
    });
    let facts = facts(&serde_json::from_value(object).unwrap());
    let problems: Vec<String> = facts.config.unwrap_err().iter().map(ToString::to_string).collect();
    insta::assert_yaml_snapshot!(problems);
}

fn with_text(name: &str, spec: serde_json::Value) -> PolicyFacts {
    let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy",
                        "metadata": {"name": name, "uid": "u1"}, "spec": spec});
    facts(&serde_json::from_value(object).unwrap())
}

#[test]
fn a_text_and_fields_go_together() {
    let facts = with_text(
        "p",
        json!({"config": "START = TARGET.a\nRack = 1\nSTARTD_ATTRS = Rack\n", "slotWeight": "Cpus * 2",
               "attributes": {"Door": "2"}, "tolerations": [{"key": "k"}]}),
    );
    let config = facts.config.unwrap();
    assert_eq!(facts.warnings, Some(vec![]));
    let expr = |expr: &Option<Expr>| expr.as_ref().unwrap().to_string();
    assert_eq!(
        (expr(&config.slots.policy.start), expr(&config.slots.slot_weight)),
        ("TARGET.a".to_owned(), "Cpus * 2".to_owned())
    );
    let names: Vec<&str> = config.slots.attributes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, config.tolerations.len(), &config.by_machine), (vec!["Door", "Rack"], 1, &None));
    let typed_only = with_text("p", json!({"start": "true"}));
    assert_eq!(typed_only.warnings, None);
}

#[test]
fn what_the_text_says_wrong_or_a_field_says_too_is_refused() {
    let facts = with_text(
        "p",
        json!({"config": "START = 1 +\nSLOT_WEIGHT = 2\nCLAIM_WORKLIFE = 1 h\nrack = 1\nSTARTD_ATTRS = rack\nSYSTEM_STARTD_LATCH_EXPRS = A\n",
               "start": "true", "slotWeight": "1", "claimWorklifeSeconds": 3, "attributes": {"Rack": "2", "B": "3"}}),
    );
    let problems: Vec<String> = facts.config.unwrap_err().iter().map(ToString::to_string).collect();
    let warnings: Vec<String> = facts.warnings.unwrap().iter().map(ToString::to_string).collect();
    insta::assert_yaml_snapshot!((problems, warnings));
}

#[test]
fn backfill_work_takes_a_template_and_a_policy_that_enables_it() {
    let spec = json!({"containers": [{"name": "boinc", "image": "boinc/client"}]});
    let backfill = |spec: &serde_json::Value| json!({"namespace": "fill", "template": {"spec": spec}});
    let enabled = "ENABLE_BACKFILL = true\nSTART_BACKFILL = true\n";
    for (given, problems, warnings) in [
        (json!({"config": enabled, "backfill": backfill(&spec)}), vec![], vec![]),
        (
            json!({"config": enabled}),
            vec![],
            vec![
                "spec.config: ENABLE_BACKFILL is true, and there is no spec.backfill that says what idle slots are to run",
            ],
        ),
        (
            json!({"backfill": backfill(&spec)}),
            vec![],
            vec!["spec.backfill: does nothing without ENABLE_BACKFILL = true in spec.config"],
        ),
        (
            json!({"config": enabled, "backfill": backfill(&json!({"containers": [], "nodeName": "n1"}))}),
            vec![
                "spec.backfill.template.spec.containers: is empty; give it at least one container",
                "spec.backfill.template.spec.nodeName: is set by the operator; leave it out",
            ],
            vec![],
        ),
        (
            json!({"config": enabled, "backfill": {"namespace": "fill", "template": {}}}),
            vec!["spec.backfill.template.spec: is missing; give it at least one container"],
            vec![],
        ),
        (
            json!({"config": format!("{enabled}BACKFILL_SYSTEM = seti"), "backfill": backfill(&spec)}),
            vec![
                "spec.config: line 3, column 19: BACKFILL_SYSTEM is seti, which is no backfill system: say BOINC, or leave it out",
            ],
            vec![],
        ),
    ] {
        let facts = with_text("p", given.clone());
        let shown = |all: &[Problem]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(facts.config.as_ref().map_or_else(|e| shown(e), |_| vec![]), problems, "{given}");
        assert_eq!(shown(&facts.warnings.unwrap_or_default()), warnings, "{given}");
    }
}

/// A field and the text say the same of an attribute that each slot sets itself.
#[test]
fn attributes_that_slots_set_themselves_are_warned_of() {
    let why = "has no effect: each slot sets Memory itself; take another name, or SLOT_TYPE_1 for the sizes of slots";
    for (spec, expected) in [
        (json!({"attributes": {"Memory": "5", "Rack": "1"}}), format!("spec.attributes[Memory]: {why}")),
        (
            json!({"config": "Memory = 5\nRack = 1\nSTARTD_ATTRS = Memory, Rack\n"}),
            format!("spec.config: line 1, column 1: the attribute Memory {why}"),
        ),
    ] {
        let facts = with_text("p", spec.clone());
        assert!(facts.config.is_ok(), "{spec}");
        let warnings = facts.warnings.unwrap();
        let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert!(told.contains(&expected), "{told:#?}");
        assert!(warnings.iter().all(|warning| !warning.message.contains("Rack")), "{told:#?}");
    }
}

#[test]
fn pods_of_one_template_bear_one_mark() {
    let mark = |namespace: &str, name: &str| {
        let template = json!({"spec": {"containers": [{"name": name}]}});
        let facts = with_text("p", json!({"backfill": {"namespace": namespace, "template": template}}));
        facts.config.unwrap().backfill.as_ref().unwrap().mark.to_string()
    };
    assert_eq!(mark("a", "b"), "8c9925cceec5bcc0", "pods of clusters have this mark");
    assert!(mark("a", "b") != mark("a", "c") && mark("a", "b") != mark("b", "b"));
}

#[test]
fn the_last_accepted_text_stays_in_force_and_events_say_what_is_wrong() {
    use model::pool::{Event, Notice, Pool, Subject, Time};
    let mut pool = Pool::default();
    let mut apply = |text: &str| {
        pool.apply(Event::Policy(with_text("p", json!({"config": text}))), Time::from_secs(1));
        let notices: Vec<Notice> = pool.take_notices();
        let policy = pool.policies().values().next().unwrap();
        let start = policy
            .config
            .as_ref()
            .and_then(|config| config.slots.policy.start.as_ref().map(ToString::to_string));
        let told: Vec<String> = notices
            .into_iter()
            .map(|notice| {
                assert_eq!(notice.about, Subject::Policy { name: "p".into(), uid: "u1".into() });
                format!("{} {}", notice.reason, notice.note)
            })
            .collect();
        (start, told)
    };
    let story: Vec<_> = [
        "START = (",
        "START = TARGET.a",
        "START = TARGET.b &&",
        "START = TARGET.b &&",
        "START = TARGET.c\nSYSTEM_STARTD_LATCH_EXPRS = A",
        "START = TARGET.d\nSYSTEM_STARTD_LATCH_EXPRS = A",
    ]
    .map(&mut apply)
    .into();
    insta::assert_yaml_snapshot!(story);
}

#[test]
fn a_new_leader_knows_the_accepted_spec_by_the_record() {
    use model::pool::{Event, Pool, Time};
    let good =
        NodePolicySpec { config: Some("START = TARGET.a".to_owned()), precedence: 7, ..Default::default() };
    let bad = json!({"config": "START = (", "nodeSelector": {"matchLabels": {"a": "b"}}});
    for (record, in_force) in [
        (serde_json::to_string(&good).unwrap(), Some("TARGET.a")),
        ("{\"config\": \"START = (\"}".to_owned(), None),
        ("no JSON".to_owned(), None),
    ] {
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "p"},
                            "spec": bad, "status": {"acceptedSpec": record}});
        let facts = facts(&serde_json::from_value(object).unwrap());
        let mut pool = Pool::default();
        pool.apply(Event::Policy(facts), Time::from_secs(1));
        let policy = pool.policies().values().next().unwrap();
        let start = policy
            .config
            .as_ref()
            .and_then(|config| config.slots.policy.start.as_ref().map(ToString::to_string));
        assert_eq!(start.as_deref(), in_force);
        assert_eq!(
            policy.accepted.as_deref(),
            in_force.map(|_| record.as_str()),
            "the record stays as it is"
        );
        assert_eq!(
            (policy.selection.precedence, policy.selection.selector.terms.len()),
            if in_force.is_some() { (7, 0) } else { (0, 1) }
        );
        assert_eq!(policy.problems.len(), 1);
    }
}

#[test]
fn an_attribute_in_a_field_that_is_almost_a_known_one_is_warned_of() {
    let facts = with_text(
        "p",
        json!({"start": "tru && Rak == 1 && TARGET.JobPrioo > 1", "attributes": {"Rak": "1"}}),
    );
    let told: Vec<String> = facts.warnings.iter().flatten().map(ToString::to_string).collect();
    let nobodys = "an attribute that neither nodes nor jobs have unless somebody adds it; did you mean";
    assert_eq!(
        told,
        [
            format!("spec.start: looks at JobPrioo, {nobodys} JobPrio?"),
            format!("spec.start: looks at tru, {nobodys} true?"),
        ]
    );
}

#[test]
fn what_is_wrong_with_slot_types_is_told_first() {
    let text = "RESERVED_SWAP = 5\nSTRAT = true\nSLOT_TYPE_1 = cpus=1\n";
    let facts = with_text("p", json!({"config": text}));
    let reasons: Vec<&str> = facts.warnings.iter().flatten().map(|warning| warning.reason).collect();
    assert_eq!(reasons, ["SlotType", "KnobNotActedOn", "UnknownKnob"]);
}

#[test]
fn a_mistake_in_an_expression_of_a_field_is_warned_of() {
    let facts = with_text("p", json!({"start": "Owner != 'bob'", "attributes": {"Rack": "toupper()"}}));
    let told: Vec<String> = facts.warnings.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "spec.start: has 'bob' in single quotes, which is an attribute; a string has double quotes: \"bob\"",
            "spec.attributes[Rack]: calls toupper() with 0 arguments, which toupper() does not take: the call is error",
        ]
    );
}

#[test]
fn a_policy_beside_others_says_whether_they_get_into_its_way() {
    use crate::kinds;
    use model::pool::Time;

    let now = Time::from_secs(1_700_000_000);
    let mut pool = Pool::default();
    let conditions = |pool: &Pool, name: &str| -> Vec<String> {
        let document = Document::Policy(name.into());
        let Rendered::Status(status) = kinds::render(pool, &document, &json!(null), now) else {
            panic!("{name}")
        };
        let text = |one: &serde_json::Value, field: &str| one[field].as_str().unwrap().to_owned();
        let shown = |one| ["type", "status", "reason", "message"].map(|field| text(one, field)).join(" ");
        status["conditions"].as_array().unwrap().iter().map(shown).collect()
    };
    let desktops = json!({"nodeSelector": {"matchLabels": {"kind": "desktop"}}});
    pool.apply(Event::Policy(with_text("all", json!({}))), now);
    assert_eq!(conditions(&pool, "all"), ["Accepted True Accepted the spec is in force"]);
    pool.apply(Event::Policy(with_text("desk", desktops)), now);
    insta::assert_yaml_snapshot!(["all", "desk"].map(|name| conditions(&pool, name)));
}

/// A field is warned of as `spec.config` is.
#[test]
fn each_expression_of_a_field_is_read_as_the_text_is() {
    let nobodys =
        "an attribute that neither nodes nor jobs have unless somebody adds it; a text has double quotes";
    let agents = "which only an agent reports: on a node without an agent that attribute is undefined, and a slot whose START is not true \
                  takes no job; run agents, take the attribute out of START, or publish an attribute of this name by STARTD_ATTRS";
    for (spec, expected) in [
        (
            json!({"start": "TARGET.Owner == bob"}),
            vec![format!("MistakenExpression spec.start: compares Owner with bob, {nobodys}: \"bob\"")],
        ),
        (
            json!({"start": "KeyboardIdle > 300 && LoadAvg < 1"}),
            vec![format!("AttributeNotReported spec.start: looks at KeyboardIdle, LoadAvg, {agents}")],
        ),
        (
            json!({"slotWeight": "\"Cpus\""}),
            vec![
                "MistakenExpression spec.slotWeight: is the text \"Cpus\", which is neither true nor a number; take the double quotes away"
                    .to_owned(),
            ],
        ),
        (
            json!({"start": "MY.Arch =?= \"arm64\""}),
            vec![
                "MistakenExpression spec.start: compares Arch with \"arm64\", which no slot has unless an admin says so; write \"aarch64\""
                    .to_owned(),
            ],
        ),
        (
            json!({"attributes": {"Site": "CERN", "Door": "Site", "Rack": "\"B\"", "Big": "Cpus"}}),
            vec![
                "MistakenExpression spec.attributes[Site]: reads the attribute CERN, which neither nodes nor jobs have unless somebody adds \
                 it; a string has its own quotes: '\"CERN\"'"
                    .to_owned(),
            ],
        ),
        // The policy itself publishes what it reads.
        (
            json!({"start": "KeyboardIdle > 3 && Arch == \"amd64\" && Owner == friend", "attributes": {"KeyboardIdle": "5", "Arch": "\"amd64\""},
                   "config": "friend = \"bob\"\nSTARTD_ATTRS = friend"}),
            vec![],
        ),
        // Programs may publish anything.
        (
            json!({"attributes": {"Site": "CERN"}, "config": "STARTD_CRON_JOBLIST = a\nSTARTD_CRON_a_EXECUTABLE = /bin/a\n\
                    STARTD_CRON_a_PERIOD = 60s"}),
            vec![],
        ),
    ] {
        let facts = with_text("p", spec.clone());
        let found: Vec<String> = facts
            .warnings
            .unwrap_or_default()
            .iter()
            .map(|warning| format!("{} {warning}", warning.reason))
            .collect();
        assert!(facts.config.is_ok(), "{spec}");
        assert_eq!(found, expected, "{spec}");
    }
}

#[test]
fn attributes_that_differ_in_case_alone_are_refused() {
    let facts = with_text("p", json!({"attributes": {"Foo": "1", "foo": "2"}}));
    let problems: Vec<String> = facts.config.unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "spec.attributes[foo]: is the same attribute as Foo, since case does not count in names; give one of the two"
        ]
    );
}
