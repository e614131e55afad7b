use proptest::prelude::*;
use serde_json::{Value, json};

use super::StructuralSchema;

const AT: &str = "spec.versions[0].schema.openAPIV3Schema";

fn spec(spec: &Value) -> StructuralSchema {
    let mut fields =
        json!({"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}});
    fields["spec"] = spec.clone();
    StructuralSchema::parse(&json!({"type": "object", "properties": fields}), AT).unwrap()
}

fn field(schema: &Value) -> StructuralSchema {
    spec(&json!({"type": "object", "properties": {"x": schema}}))
}

fn messages(schema: &StructuralSchema, obj: &Value) -> Vec<String> {
    schema.validate(obj, None).iter().map(ToString::to_string).collect()
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn a_bad_value_is_named_as_kubernetes_names_it() {
    let number = "spec.x in body should be greater than or equal to 1";
    let cron = r"^(\d+|\*)(/\d+)?$";
    let cases = [
        (json!({"type": "integer", "minimum": 1}), json!(0), vec![format!("spec.x: Invalid value: 0: {number}")]),
        (json!({"type": "integer", "minimum": 1}), json!(1), vec![]),
        (
            json!({"type": "integer", "maximum": 10, "exclusiveMaximum": true}),
            json!(10),
            vec!["spec.x: Invalid value: 10: spec.x in body should be less than 10".into()],
        ),
        (
            json!({"type": "integer"}),
            json!("a"),
            vec![r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#.into()],
        ),
        (json!({"type": "number"}), json!(1), vec![]),
        (json!({"type": "integer"}), json!(1.0), vec![]),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("x"),
            vec![r#"spec.x: Unsupported value: "x": supported values: "a", "b""#.into()],
        ),
        (
            json!({"type": "string", "pattern": cron}),
            json!("bad"),
            vec![format!(r#"spec.x: Invalid value: "bad": spec.x in body should match '{cron}'"#)],
        ),
        (
            json!({"type": "string", "minLength": 1}),
            json!(""),
            vec![r#"spec.x: Invalid value: "": spec.x in body should be at least 1 chars long"#.into()],
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("abc"),
            vec!["spec.x: Too long: may not be more than 2 bytes".into()],
        ),
        (
            json!({"type": "array", "maxItems": 1, "items": {"type": "integer"}}),
            json!([1, 2]),
            vec!["spec.x: Too many: 2: must have at most 1 item".into()],
        ),
        (
            json!({"type": "array", "minItems": 1, "items": {"type": "integer"}}),
            json!([]),
            vec!["spec.x: Invalid value: 0: spec.x in body should have at least 1 items".into()],
        ),
        (
            json!({"type": "object", "required": ["y"], "properties": {"y": {"type": "string"}}}),
            json!({}),
            vec!["spec.x.y: Required value".into()],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            vec![r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean""#.into()],
        ),
        (json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}), json!("5%"), vec![]),
        (
            json!({"type": "string"}),
            json!(null),
            vec![r#"spec.x: Invalid value: "null": spec.x in body must be of type string: "null""#.into()],
        ),
        (json!({"type": "string", "nullable": true}), json!(null), vec![]),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("noon"),
            vec![r#"spec.x: Invalid value: "noon": spec.x in body must be of type date-time: "noon""#.into()],
        ),
        (json!({"type": "string", "format": "date-time"}), json!("2024-01-01T00:00:00Z"), vec![]),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            json!(["a", "b", "a"]),
            vec![r#"spec.x[2]: Duplicate value: "a""#.into()],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                   "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}),
            json!([{"name": "a"}, {"name": "a"}]),
            vec![r#"spec.x[1]: Duplicate value: {"name":"a"}"#.into()],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"k": "v"}),
            vec![r#"spec.x.k: Invalid value: "string": spec.x.k in body must be of type integer: "string""#.into()],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            json!({"kind": "Pod"}),
            vec!["spec.x.apiVersion: Required value: must not be empty".into()],
        ),
        (
            json!({"type": "integer", "multipleOf": 5}),
            json!(7),
            vec!["spec.x: Invalid value: 7: spec.x in body should be a multiple of 5".into()],
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_i64),
            vec![r#"spec.x: Invalid value: 3000000000: spec.x in body must be of type int32: "3000000000""#.into()],
        ),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(messages(&field(&schema), &json!({"spec": {"x": value}})), expected, "{schema} {value}");
    }
}

#[test]
fn junctions_report_at_the_root_with_the_path_in_the_text() {
    let one =
        spec(&json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}));
    assert_eq!(messages(&one, &json!({"spec": {"a": "1"}})), Vec::<String>::new());
    assert_eq!(
        messages(&one, &json!({"spec": {"a": "1", "b": "2"}})),
        [
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
    assert_eq!(
        messages(&one, &json!({"spec": {}})),
        [
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.a: Required value"
        ]
    );
    let any = spec(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}));
    assert_eq!(
        messages(&any, &json!({"spec": {}})).first().unwrap(),
        r#"<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)"#
    );
    let not = spec(
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "not": {"required": ["a"]}}),
    );
    assert_eq!(
        messages(&not, &json!({"spec": {"a": 1}})),
        [r#"<nil>: Invalid value: "": "spec" must not validate the schema (not)"#]
    );
    let all = spec(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "allOf": [{"required": ["a"]}, {"required": ["b"]}]}));
    assert_eq!(
        messages(&all, &json!({"spec": {"a": 1}})),
        [
            "spec.b: Required value",
            r#"<nil>: Invalid value: "": "spec" must validate all the schemas (allOf)"#
        ]
    );
}

#[test]
fn cel_rules_hold() {
    let schema = spec(&json!({"type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.min <= self.max", "message": "min must not exceed max"},
            {"rule": "self.min == oldSelf.min", "message": "min is immutable", "reason": "FieldValueForbidden", "fieldPath": ".min"},
        ],
        "properties": {"min": {"type": "integer"}, "max": {"type": "integer"},
            "name": {"type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('a')", "messageExpression": "'not ' + self"}]}}}));
    assert!(schema.rules.is_some());
    let obj = |min: i64, max: i64, name: &str| json!({"spec": {"min": min, "max": max, "name": name}});
    assert_eq!(messages(&schema, &obj(1, 2, "ab")), Vec::<String>::new());
    assert_eq!(
        messages(&schema, &obj(3, 2, "ab")),
        [r#"spec: Invalid value: "object": min must not exceed max"#]
    );
    assert_eq!(messages(&schema, &obj(1, 2, "b")), [r#"spec.name: Invalid value: "string": not b"#]);
    let changed: Vec<String> =
        schema.validate(&obj(2, 2, "a"), Some(&obj(1, 2, "a"))).iter().map(ToString::to_string).collect();
    assert_eq!(changed, ["spec.min: Forbidden: min is immutable"]);
    // If the object does not satisfy the schema, the rules do not run.
    assert_eq!(messages(&schema, &json!({"spec": {"min": "x", "max": 0}})).len(), 1);
}

#[test]
fn a_rule_that_is_not_cel_is_refused() {
    let bad = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": "self.("}]}}});
    let errors = StructuralSchema::parse(&bad, AT).unwrap_err();
    let text = errors.first().unwrap().to_string();
    let start = format!(
        "{AT}.properties[spec].x-kubernetes-validations[0].rule: Invalid value: \"self.(\": compilation failed"
    );
    assert!(text.starts_with(&start), "{text}");
}

#[test]
fn schemas_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<StructuralSchema>();
}

#[test]
fn schemas_that_are_not_structural_are_refused() {
    let cases = [
        (json!({"properties": {}}), ".type: Required value: must not be empty at the root"),
        (json!({"type": "string"}), r#".type: Invalid value: "string": must be object at the root"#),
        (
            json!({"type": "object", "properties": {"a": {}}}),
            ".properties[a].type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            ".properties[a].items: Required value: must be specified",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "text"}}}),
            r#".properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}),
            ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
    ];
    for (schema, expected) in cases {
        let errors = StructuralSchema::parse(&schema, AT).unwrap_err();
        assert_eq!(errors.first().unwrap().to_string(), format!("{AT}{expected}"));
    }
}

#[test]
fn defaults_fill_outside_in_and_nulls_go() {
    let schema = spec(&json!({"type": "object", "default": {}, "properties": {
        "replicas": {"type": "integer", "default": 1},
        "note": {"type": "string", "nullable": true, "default": "n"},
        "gone": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}}}},
    }}));
    let cases = [
        (json!({}), json!({"spec": {"replicas": 1, "note": "n"}})),
        (
            json!({"spec": {"replicas": null, "note": null, "gone": null}}),
            json!({"spec": {"replicas": 1, "note": null}}),
        ),
        (
            json!({"spec": {"replicas": 3, "list": [{}, {"protocol": "UDP"}]}}),
            json!({"spec": {"replicas": 3, "note": "n", "list": [{"protocol": "TCP"}, {"protocol": "UDP"}]}}),
        ),
    ];
    for (mut obj, expected) in cases {
        schema.default(&mut obj);
        assert_eq!(obj, expected);
    }
}

#[test]
fn pruning_keeps_what_is_declared_preserved_or_metadata() {
    let schema = spec(&json!({"type": "object", "properties": {
        "a": {"type": "string"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"in": {"type": "object"}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"v": {"type": "string"}}}},
        "list": {"type": "array", "items": {"type": "object"}},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
    }}));
    let mut obj = json!({
        "apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "anything": 1}, "extra": 1,
        "spec": {"a": "x", "b": 1, "open": {"y": 1, "in": {"z": 1}}, "map": {"k": {"v": "1", "w": 2}}, "list": [{"q": 1}],
                 "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"s": 1}, "more": 1}}
    });
    let dropped = schema.prune(&mut obj);
    assert_eq!(
        dropped,
        [
            "extra",
            "spec.b",
            "spec.list[0].q",
            "spec.map.k.w",
            "spec.open.in.z",
            "spec.pod.more",
            "spec.pod.spec.s"
        ]
    );
    assert_eq!(
        obj,
        json!({
            "apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "anything": 1},
            "spec": {"a": "x", "open": {"y": 1, "in": {}}, "map": {"k": {"v": "1"}}, "list": [{}],
                     "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}}
        })
    );
}

#[test]
fn a_bottomless_schema_is_bounded() {
    let mut schema = json!({"type": "object"});
    for _ in 0..200 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    assert!(StructuralSchema::parse(&schema, AT).is_ok());
}

/// Any JSON value.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-5_i64..5).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("(spec|status|metadata|name|a|b|list|type)", inner, 0..4)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn rich() -> StructuralSchema {
    spec(&json!({"type": "object", "properties": {
        "a": {"type": "integer", "default": 7, "minimum": 0},
        "b": {"type": "object", "default": {"a": 1}, "properties": {"a": {"type": "integer"}, "b": {"type": "string", "default": "z"}}},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string", "default": "n"}}}},
    }, "anyOf": [{"required": ["a"]}, {"not": {"required": ["b"]}}]}))
}

proptest! {
    #[test]
    fn prune_then_default_is_idempotent(mut obj in any_json()) {
        let schema = rich();
        schema.prune(&mut obj);
        schema.default(&mut obj);
        let once = obj.clone();
        prop_assert!(schema.prune(&mut obj).is_empty());
        schema.default(&mut obj);
        prop_assert_eq!(once, obj);
    }

    #[test]
    fn arbitrary_rules_never_panic(rule in r"[ -~]{0,24}|(self|oldSelf)(\.[a-c]|\[[0-9a-c]\]|[+*<=!&|?:-]{1,2}|size\(self\)|[0-9'\(\)]){0,8}", obj in any_json()) {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": rule}]});
        if let Ok(schema) = StructuralSchema::parse(&schema, AT) {
            let _ = schema.validate(&obj, Some(&obj));
        }
    }

    #[test]
    fn arbitrary_schemas_and_objects_never_panic(schema in any_json(), mut obj in any_json()) {
        let _ = rich().validate(&obj, None);
        if let Ok(schema) = StructuralSchema::parse(&schema, AT) {
            let _ = schema.validate(&obj, None);
            schema.prune(&mut obj);
            schema.default(&mut obj);
        }
    }
}
