//! The CEL rules in `x-kubernetes-validations`, which the crate `kube-cel` evaluates.
//!
//! A rule that calls a CEL function that `kube-cel` does not have here (`isIP`, `semver`, ...) compiles and always holds.
//! Only a real server can check such a rule.

use kube_cel::{CompiledSchema, ErrorKind, compile_schema, validate_compiled};
use serde_json::{Map, Value};

use crate::MAX_DEPTH;
use crate::error::{FieldError, FieldErrorKind};

/// Compiles the rules of a schema. There is an error for each rule that is not CEL; its path begins with `path`.
pub(super) fn compile(schema: &Value, path: &str) -> Result<CompiledSchema, Vec<FieldError>> {
    let mut errors = Vec::new();
    check(schema, path, 0, &mut errors);
    if errors.is_empty() { Ok(compile_schema(schema)) } else { Err(errors) }
}

/// Compiles every rule by itself, to find the paths of those that do not compile.
fn check(schema: &Value, path: &str, depth: usize, errors: &mut Vec<FieldError>) {
    let Some(map) = schema.as_object().filter(|_| depth <= MAX_DEPTH) else { return };
    let rules = map.get("x-kubernetes-validations").and_then(Value::as_array);
    for (i, rule) in rules.into_iter().flatten().enumerate() {
        let alone =
            Map::from_iter([("x-kubernetes-validations".to_owned(), Value::from(vec![rule.clone()]))]);
        let compiled = compile_schema(&Value::Object(alone));
        for error in compiled.compilation_errors() {
            let text = rule.get("rule").cloned().unwrap_or_default();
            let cause =
                std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
            errors.push(FieldError::with_value(
                FieldErrorKind::Invalid,
                format!("{path}.x-kubernetes-validations[{i}].rule"),
                &text,
                &format!("compilation failed: {cause}"),
            ));
        }
    }
    if let Some(Value::Object(fields)) = map.get("properties") {
        for (name, field) in fields {
            check(field, &format!("{path}.properties[{name}]"), depth + 1, errors);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(child) = map.get(keyword) {
            check(child, &format!("{path}.{keyword}"), depth + 1, errors);
        }
    }
}

/// Returns an error for each rule that an object violates. Transition rules are checked if there is an `old` object.
pub(super) fn broken(compiled: &CompiledSchema, obj: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let Err(errors) = validate_compiled(compiled, obj, old) else { return Vec::new() };
    let errors = errors.into_vec().into_iter();
    let meant =
        errors.filter(|e| !matches!(e.kind, ErrorKind::UnsupportedReference | ErrorKind::SchemaTooDeep));
    meant
        .map(|error| {
            let bad = Value::from(kind_at(obj, &error.field_path));
            let field = if error.field_path.is_empty() { "<nil>".to_owned() } else { error.field_path };
            match error.reason.as_deref() {
                Some("FieldValueRequired") => {
                    FieldError::new(FieldErrorKind::Required, field, &error.message)
                }
                Some("FieldValueForbidden") => {
                    FieldError::new(FieldErrorKind::Forbidden, field, &error.message)
                }
                Some("FieldValueDuplicate") => {
                    FieldError::with_value(FieldErrorKind::Duplicate, field, &bad, "")
                }
                _ => FieldError::with_value(FieldErrorKind::Invalid, field, &bad, &error.message),
            }
        })
        .collect()
}

/// The type of the value at a path, which the real server prints instead of the value; `object` if there is no value.
fn kind_at(obj: &Value, path: &str) -> &'static str {
    let mut value = Some(obj);
    for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        value = value.and_then(|v| match v {
            Value::Array(list) => step.parse::<usize>().ok().and_then(|i| list.get(i)),
            other => other.get(step),
        });
    }
    value.map_or("object", super::validate::type_name)
}
