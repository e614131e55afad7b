//! Label and field selectors: parsing and matching.

use serde_json::Value;

use super::json::{get, text};

/// A malformed or unsupported selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct SelectorError(String);

/// One clause of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Clause {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

/// A label selector. The empty selector matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LabelSelector(Vec<Clause>);

impl LabelSelector {
    /// Parses a selector such as `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>3,m<4`.
    pub(super) fn parse(input: &str) -> Result<Self, SelectorError> {
        let mut clauses = Vec::new();
        for part in split_outside_parentheses(input) {
            let part = part.trim();
            if !part.is_empty() {
                clauses.push(clause(part)?);
            }
        }
        Ok(Self(clauses))
    }

    /// Reads a `metav1.LabelSelector` (`matchLabels`, `matchExpressions`).
    pub(super) fn from_object(selector: &Value) -> Self {
        let mut clauses = Vec::new();
        if let Some(labels) = get(selector, &["matchLabels"]).and_then(Value::as_object) {
            for (key, value) in labels {
                clauses.push(Clause::In(key.clone(), vec![value.as_str().unwrap_or_default().to_owned()]));
            }
        }
        for expression in super::json::list(selector, &["matchExpressions"]) {
            let key = text(expression, &["key"]).unwrap_or_default().to_owned();
            let values: Vec<String> = super::json::list(expression, &["values"])
                .iter()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect();
            clauses.push(match text(expression, &["operator"]).unwrap_or_default() {
                "NotIn" => Clause::NotIn(key, values),
                "Exists" => Clause::Exists(key),
                "DoesNotExist" => Clause::Absent(key),
                _ => Clause::In(key, values),
            });
        }
        Self(clauses)
    }

    /// Whether this is the selector that matches everything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the labels of `object` satisfy every clause.
    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|clause| clause.matches(object))
    }
}

impl Clause {
    fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| text(object, &["metadata", "labels", key]);
        match self {
            Self::In(key, values) => label(key).is_some_and(|v| values.iter().any(|w| w == v)),
            Self::NotIn(key, values) => label(key).is_none_or(|v| values.iter().all(|w| w != v)),
            Self::Exists(key) => label(key).is_some(),
            Self::Absent(key) => label(key).is_none(),
            Self::Greater(key, n) => label(key).and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v > *n),
            Self::Less(key, n) => label(key).and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v < *n),
        }
    }
}

fn split_outside_parentheses(input: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    input
        .split(move |c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            c == ',' && depth <= 0
        })
        .collect()
}

fn clause(part: &str) -> Result<Clause, SelectorError> {
    let bad = || SelectorError(format!("unable to parse requirement: found {part:?}, expected a selector"));
    let key = |text: &str| -> Result<String, SelectorError> {
        let text = text.trim();
        if text.is_empty() || text.contains(|c: char| c.is_whitespace() || "()=!<>,".contains(c)) {
            return Err(bad());
        }
        Ok(text.to_owned())
    };
    if let Some(rest) = part.strip_prefix('!') {
        return Ok(Clause::Absent(key(rest)?));
    }
    if let Some(body) = part.strip_suffix(')') {
        let (head, values) = body.split_once('(').ok_or_else(bad)?;
        let values = values.split(',').map(|v| v.trim().to_owned()).collect();
        let (name, operator) = head.trim().rsplit_once(char::is_whitespace).ok_or_else(bad)?;
        return match operator {
            "in" => Ok(Clause::In(key(name)?, values)),
            "notin" => Ok(Clause::NotIn(key(name)?, values)),
            _ => Err(bad()),
        };
    }
    for operator in ["!=", "==", "=", ">", "<"] {
        if let Some((name, value)) = part.split_once(operator) {
            let value = value.trim();
            let number = || value.parse::<i64>().map_err(|_| bad());
            return Ok(match operator {
                "!=" => Clause::NotIn(key(name)?, vec![value.to_owned()]),
                ">" => Clause::Greater(key(name)?, number()?),
                "<" => Clause::Less(key(name)?, number()?),
                _ => Clause::In(key(name)?, vec![value.to_owned()]),
            });
        }
    }
    Ok(Clause::Exists(key(part)?))
}

/// A field by which objects of a kind can be selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SelectableField {
    /// The name in the selector, such as `spec.nodeName`.
    pub(super) label: String,
    /// The paths of the value in the stored object. The first path with a value counts.
    pub(super) paths: Vec<Vec<String>>,
}

impl SelectableField {
    /// A field whose name is its path.
    pub(super) fn plain(label: &str) -> Self {
        Self { label: label.to_owned(), paths: vec![label.split('.').map(str::to_owned).collect()] }
    }

    /// A field whose name differs from its paths.
    pub(super) fn renamed(label: &str, paths: &[&str]) -> Self {
        let paths = paths.iter().map(|p| p.split('.').map(str::to_owned).collect()).collect();
        Self { label: label.to_owned(), paths }
    }

    fn value(&self, object: &Value) -> String {
        let found = self.paths.iter().find_map(|path| {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            get(object, &path).filter(|v| !v.is_null())
        });
        match found {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            // These two fields are booleans. An absent boolean is false in the real server.
            None if matches!(self.label.as_str(), "spec.unschedulable" | "spec.hostNetwork") => {
                "false".into()
            }
            None => String::new(),
        }
    }
}

/// A field selector. The empty selector matches everything. Each clause has a field, whether the value must be equal or
/// must differ, and the value.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldSelector(Vec<(SelectableField, bool, String)>);

impl FieldSelector {
    /// Parses a selector such as `a=b,c==d,e!=f`. `fields` are the fields that the kind supports in addition to name and
    /// namespace.
    pub(super) fn parse(input: &str, fields: &[SelectableField]) -> Result<Self, SelectorError> {
        let mut clauses = Vec::new();
        for part in input.split(',').filter(|p| !p.trim().is_empty()) {
            let (name, equal, value) = field_clause(part.trim())?;
            let field = if matches!(name, "metadata.name" | "metadata.namespace") {
                SelectableField::plain(name)
            } else {
                let known = fields.iter().find(|f| f.label == name);
                known.cloned().ok_or_else(|| SelectorError(format!("field label not supported: {name}")))?
            };
            clauses.push((field, equal, value.to_owned()));
        }
        Ok(Self(clauses))
    }

    /// Whether this is the selector that matches everything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the fields of `object` satisfy every clause.
    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(field, equal, want)| (field.value(object) == *want) == *equal)
    }
}

fn field_clause(part: &str) -> Result<(&str, bool, &str), SelectorError> {
    for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((name, value)) = part.split_once(operator) {
            return Ok((name.trim(), equal, value.trim()));
        }
    }
    Err(SelectorError(format!("invalid selector: {part:?}; can't understand {part:?}")))
}

/// Which objects a list or watch selects.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    /// The namespace; `None` for all namespaces.
    pub(super) namespace: Option<String>,
    /// The label selector.
    pub(super) labels: LabelSelector,
    /// The field selector.
    pub(super) fields: FieldSelector,
}

impl Selection {
    /// Whether `object` is selected.
    pub(super) fn matches(&self, object: &Value) -> bool {
        self.namespace.as_deref().is_none_or(|ns| super::json::meta(object, "namespace") == ns)
            && self.labels.matches(object)
            && self.fields.matches(object)
    }

    /// Whether both selectors are empty.
    pub(super) fn is_plain(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn label_selectors() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "3"}}});
        for (selector, want) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=3", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (db, web),tier notin (1,2)", true),
            ("app in (db)", false),
            ("other notin (x)", true),
            ("app", true),
            ("!app", false),
            ("!other", true),
            ("tier>2,tier<4", true),
            ("tier>3", false),
            ("app>3", false),
        ] {
            assert_eq!(LabelSelector::parse(selector).map(|s| s.matches(&object)), Ok(want), "{selector}");
        }
        for bad in ["=x", "a in b)", "tier>x", "a b", "!", "x (y)"] {
            assert!(LabelSelector::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn field_selectors() {
        let object = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}});
        let fields = [SelectableField::plain("spec.nodeName"), SelectableField::plain("spec.unschedulable")];
        for (selector, want) in [
            ("metadata.name=p,spec.nodeName==n1", true),
            ("spec.nodeName!=n1", false),
            ("spec.nodeName=", false),
            ("spec.unschedulable=false", true),
        ] {
            assert_eq!(
                FieldSelector::parse(selector, &fields).map(|s| s.matches(&object)).ok(),
                Some(want),
                "{selector}"
            );
        }
        let error = FieldSelector::parse("spec.foo=1", &fields).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "field label not supported: spec.foo");
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in "[a-z!=<>(), ./\\PC]{0,30}") {
            let object = json!({"metadata": {"labels": {"a": "b"}}});
            let _ = LabelSelector::parse(&text).map(|s| s.matches(&object));
            let _ = FieldSelector::parse(&text, &[]).map(|s| s.matches(&object));
            let _ = super::super::path::parse(&text);
        }
    }
}
