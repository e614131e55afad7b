//! Each proc its own: references in a pod template, such as `$(Process)`, and what they stand for.
//!
//! References are replaced in the texts of a template, never in names of fields. In `command`, `args` and `env` of containers,
//! Kubernetes replaces what is left: `$(NAME)` by a variable of the container's, `$$` by `$`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The names that each proc has.
const NUMBERS: [&str; 7] = ["Process", "ProcId", "Cluster", "ClusterId", "Row", "ItemIndex", "Step"];

/// The most bytes that a job's items may add to the pod of a proc. The API server takes no pod of more than about 1.5 MiB.
const MAX_ADDED: usize = 1 << 20;

/// Whether each proc has this name.
pub(crate) fn is_number(name: &str) -> bool {
    NUMBERS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Variables and their values for the procs of a job.
#[derive(Clone, Copy, Debug)]
pub struct Items<'i> {
    /// The names.
    pub variables: &'i [String],
    /// A value for each variable. There may be no rows.
    pub rows: &'i [Vec<String>],
    /// How many procs each row has.
    pub repeat: usize,
}

impl Items<'_> {
    /// The names of a proc of a cluster.
    pub fn names(&self, cluster: &str, proc: usize) -> Names {
        let row = self.rows.get(row_of(proc, self.repeat)).map(Vec::as_slice).unwrap_or_default();
        Names::of(cluster, proc, self.repeat, self.variables, row)
    }
}

/// The row of a proc, if each row has so many procs.
pub const fn row_of(proc: usize, repeat: usize) -> usize {
    if repeat > 1 { proc / repeat } else { proc }
}

/// The values of the references in a proc's template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(Vec<(String, String)>);

impl Names {
    /// The names of a proc. `values` are those of the proc's row, in the order of the variables.
    pub fn of(cluster: &str, proc: usize, repeat: usize, variables: &[String], values: &[String]) -> Self {
        let (row, step) = (row_of(proc, repeat), proc % repeat.max(1));
        let numbers = [proc.to_string(), cluster.to_owned(), row.to_string(), step.to_string()];
        let [process, cluster, row, step] = &numbers;
        let numbers = NUMBERS.into_iter().zip([process, process, cluster, cluster, row, row, step]);
        let own = variables.iter().map(String::as_str).zip(values);
        Self(numbers.chain(own).map(|(name, value)| (name.to_owned(), value.clone())).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Replaces the references in a text. If Kubernetes replaces references in the text afterwards, a value cannot become one.
    pub fn replace(&self, text: &str, then_kubernetes: bool) -> String {
        let mut replaced = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(found) = reference(rest) {
            let Reference { before, name, behind } = found;
            replaced.push_str(before);
            match self.get(name) {
                Some(value) if then_kubernetes => replaced.push_str(&value.replace('$', "$$")),
                Some(value) => replaced.push_str(value),
                None => {
                    replaced.push_str("$(");
                    replaced.push_str(name);
                    replaced.push(')');
                }
            }
            rest = behind;
        }
        replaced.push_str(rest);
        replaced
    }

    /// Replaces the references in a pod template.
    pub fn replace_in(&self, template: &mut Value) {
        walk(template, &mut Vec::new(), &mut |path, text| {
            if text.contains("$(") {
                *text = self.replace(text, is_expanded(path));
            }
        });
    }
}

/// A reference in a text.
struct Reference<'t> {
    before: &'t str,
    name: &'t str,
    behind: &'t str,
}

/// The first reference in a text. `$$` is none, whatever follows.
fn reference(text: &str) -> Option<Reference<'_>> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find('$')?;
        let behind = text.get(at + 1..)?;
        if behind.starts_with('$') {
            from = at + 2;
            continue;
        }
        let named = behind.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        match named.filter(|(name, _)| is_name(name)) {
            Some((name, behind)) => return Some(Reference { before: text.get(..at)?, name, behind }),
            None => from = at + 1,
        }
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}

/// Calls a function for each text of a template, with the path of the text.
fn walk(value: &mut Value, path: &mut Vec<String>, each: &mut dyn FnMut(&[String], &mut String)) {
    match value {
        Value::String(text) => each(path, text),
        Value::Array(list) => {
            for (at, value) in list.iter_mut().enumerate() {
                path.push(at.to_string());
                walk(value, path, each);
                path.pop();
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                path.push(name.clone());
                walk(value, path, each);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Whether Kubernetes replaces references in the text at this path.
fn is_expanded(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path.as_slice(),
        ["spec", "containers" | "initContainers", _, "command" | "args", _]
            | ["spec", "containers" | "initContainers", _, "env", _, "value"]
    )
}

/// Whether the operator needs the text at this path before there is a proc.
fn is_fixed(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path.as_slice(),
        [
            "spec",
            "nodeSelector" | "affinity" | "tolerations" | "overhead" | "schedulerName" | "runtimeClassName",
            ..
        ] | ["spec", "containers" | "initContainers", _, "name" | "resources", ..]
    )
}

/// Something wrong with items: the field, below `spec`, and the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field, such as `items.rows[2]` or `template.metadata.labels.run`.
    pub field: String,
    /// The text for people: what is wrong, and what to do.
    pub message: String,
}

/// The mistakes in the items of a job with so many procs, and in the references of its template.
pub fn faults(items: Items<'_>, count: i64, template: &Value) -> Vec<Fault> {
    let mut faults = of_items(items, count);
    let mut fault = |field: String, message: String| faults.push(Fault { field, message });
    let longest = longest(items);
    let mut added = 0_usize;
    references(items, template, &mut |path, name, is_known| {
        let field = field(path);
        added = added.saturating_add(longest.get(&name.to_ascii_lowercase()).copied().unwrap_or_default());
        if is_known && is_fixed(path) {
            fault(
                field,
                format!("$({name}) cannot stand here: the operator needs the value before there is a proc"),
            );
        } else if !is_known && !is_expanded(path) {
            let message = match near(items, name) {
                Some(near) => format!("there is no variable {name}: did you mean {near}?"),
                None => format!(
                    "there is no variable {name}: add it to spec.items.variables, or write $$({name})"
                ),
            };
            fault(field, message);
        }
    });
    if added > MAX_ADDED {
        let message = format!(
            "the references in the template may add {added} bytes to a pod, and {MAX_ADDED} are allowed: refer to long values \
             less often, or put them into a file of the image"
        );
        faults.push(Fault { field: "items.rows".to_owned(), message });
    }
    faults
}

/// The mistakes in the items of a job with so many procs.
fn of_items(items: Items<'_>, count: i64) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |field: String, message: String| faults.push(Fault { field, message });
    let mut known = BTreeSet::new();
    for (at, name) in items.variables.iter().enumerate() {
        let field = format!("items.variables[{at}]");
        if !is_name(name) {
            fault(
                field,
                format!("'{name}' is no name: use letters, digits, _ and ., and begin with a letter or _"),
            );
        } else if is_number(name) {
            fault(field, format!("{name} is what each proc has anyway: choose another name"));
        } else if !known.insert(name.to_ascii_lowercase()) {
            fault(field, format!("{name} stands there twice: choose another name"));
        }
    }
    for (at, row) in items.rows.iter().enumerate() {
        if row.len() != items.variables.len() {
            let message = format!("has {} values for {} variables", row.len(), items.variables.len());
            fault(format!("items.rows[{at}]"), message);
            break;
        }
    }
    let wanted = items.rows.len().saturating_mul(items.repeat);
    if !items.rows.is_empty() && i64::try_from(wanted) != Ok(count) {
        let message = format!(
            "is {count}, but {} rows with {} procs each are {wanted}: write count: {wanted}",
            items.rows.len(),
            items.repeat
        );
        fault("count".to_owned(), message);
    }
    if items.rows.is_empty() && !items.variables.is_empty() {
        fault("items.rows".to_owned(), "is empty, so that the variables have no values: add rows".to_owned());
    }
    faults
}

/// How many bytes the longest value of each variable may add to a pod, by the variable's name in lower case. A dollar may have
/// to be doubled.
fn longest(items: Items<'_>) -> BTreeMap<String, usize> {
    let mut longest = BTreeMap::new();
    for (at, name) in items.variables.iter().enumerate() {
        let bytes = |value: &String| value.len() + value.matches('$').count();
        let most = items.rows.iter().filter_map(|row| row.get(at)).map(bytes).max().unwrap_or_default();
        longest.insert(name.to_ascii_lowercase(), most);
    }
    longest
}

/// Warnings of unknown references in `command`, `args` and `env`, if their names are almost those of variables. The
/// names may be those of variables of the container, so that an unknown reference is no error there.
pub fn doubts(items: Items<'_>, template: &Value) -> Vec<Fault> {
    let mut doubts = Vec::new();
    references(items, template, &mut |path, name, is_known| {
        if !is_known
            && is_expanded(path)
            && let Some(near) = near(items, name)
        {
            let message = format!(
                "$({name}) stays as it is, because there is no variable {name}: did you mean {near}?"
            );
            doubts.push(Fault { field: field(path), message });
        }
    });
    doubts
}

/// Calls a function for each reference of a template: the path, the name, and whether the name is known.
fn references(items: Items<'_>, template: &Value, each: &mut dyn FnMut(&[String], &str, bool)) {
    let is_known =
        |name: &str| is_number(name) || items.variables.iter().any(|known| known.eq_ignore_ascii_case(name));
    walk(&mut template.clone(), &mut Vec::new(), &mut |path, text| {
        let mut rest = text.as_str();
        while let Some(found) = reference(rest) {
            each(path, found.name, is_known(found.name));
            rest = found.behind;
        }
    });
}

/// The variable that a name is almost.
fn near(items: Items<'_>, name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let names = NUMBERS.into_iter().chain(items.variables.iter().map(String::as_str));
    let distance = |known: &str| strsim::damerau_levenshtein(&known.to_ascii_lowercase(), &lower);
    let best = names.min_by_key(|known| distance(known))?;
    // HOME is not meant to be name.
    let most = if name.len() >= 6 { 2 } else { 1 };
    (name.len() >= 4 && distance(best) <= most).then(|| best.to_owned())
}

/// A path as people write fields, below `spec`.
fn field(path: &[String]) -> String {
    let mut field = "template".to_owned();
    for part in path {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            field.extend(["[", part, "]"]);
        } else {
            field.push('.');
            field.push_str(part);
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variables() -> Vec<String> {
        vec!["name".to_owned(), "Size".to_owned()]
    }

    fn rows() -> Vec<Vec<String>> {
        [["a", "1"], ["b$(X)", "2"]].map(|row| row.map(str::to_owned).to_vec()).to_vec()
    }

    #[test]
    fn references_are_replaced_and_others_stay() {
        let (variables, rows) = (variables(), rows());
        let names = Names::of("12", 3, 2, &variables, &rows[row_of(3, 2)]);
        for (text, in_container, elsewhere) in [
            ("run $(Process) of $(cluster)", "run 3 of 12", "run 3 of 12"),
            ("$(ROW).$(Step) $(ItemIndex) $(ProcId)", "1.1 1 3", "1.1 1 3"),
            ("$(NAME)-$(size)", "b$$(X)-2", "b$(X)-2"),
            ("$(HOME) $(date) $(", "$(HOME) $(date) $(", "$(HOME) $(date) $("),
            ("$$(Process) $$$(Process)", "$$(Process) $$3", "$$(Process) $$3"),
            ("$(date +%s) $(Process)", "$(date +%s) 3", "$(date +%s) 3"),
            ("cost: 5$", "cost: 5$", "cost: 5$"),
            ("$(a $(Step)", "$(a 1", "$(a 1"),
        ] {
            assert_eq!(names.replace(text, true), in_container, "{text}");
            assert_eq!(names.replace(text, false), elsewhere, "{text}");
        }
    }

    #[test]
    fn a_template_is_replaced_in_texts_alone() {
        let mut template = json!({
            "metadata": {"labels": {"run": "r$(Process)", "$(Process)": "x"}},
            "spec": {"containers": [{"name": "main", "args": ["$(name)"], "env": [{"name": "A", "value": "$(Size)"}]}],
                     "subdomain": "s$(Step)", "activeDeadlineSeconds": 5},
        });
        let (variables, rows) = (variables(), rows());
        Names::of("1", 1, 1, &variables, &rows[1]).replace_in(&mut template);
        let expected = json!({
            "metadata": {"labels": {"run": "r1", "$(Process)": "x"}},
            "spec": {"containers": [{"name": "main", "args": ["b$$(X)"], "env": [{"name": "A", "value": "2"}]}],
                     "subdomain": "s0", "activeDeadlineSeconds": 5},
        });
        assert_eq!(template, expected);
    }

    /// A long value that is referred to a thousand times would fill the operator's memory at each pod.
    #[test]
    fn what_items_add_to_a_pod_is_bounded() {
        let variables = ["a".to_owned()];
        let rows = [vec!["x".to_owned()], vec!["$".repeat(1 << 16)]];
        let items = Items { variables: &variables, rows: &rows, repeat: 1 };
        for (references, expected) in
            [(8, None), (9, Some("items.rows: the references in the template may add 1179648 bytes"))]
        {
            let template = json!({"spec": {"containers": [{"args": ["$(A)".repeat(references)]}]}});
            let found = faults(items, 2, &template)
                .first()
                .map(|fault| format!("{}: {}", fault.field, fault.message));
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().starts_with(expected.unwrap_or_default()));
        }
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let names = ["1x", "Process", "a", "A"].map(str::to_owned);
        let rows = [vec!["1".to_owned()]];
        let template = json!({
            "metadata": {"annotations": {"note": "$(Proces) $(b) $(a)"}},
            "spec": {"nodeSelector": {"zone": "$(a)"}, "containers": [{"args": ["$(HOME) $(Proces)"]}]},
        });
        let items = Items { variables: &names, rows: &rows, repeat: 2 };
        let found: Vec<String> = faults(items, 1, &template)
            .iter()
            .map(|fault| format!("{}: {}", fault.field, fault.message))
            .collect();
        let expected = [
            "items.variables[0]: '1x' is no name: use letters, digits, _ and ., and begin with a letter or _",
            "items.variables[1]: Process is what each proc has anyway: choose another name",
            "items.variables[3]: A stands there twice: choose another name",
            "items.rows[0]: has 1 values for 4 variables",
            "count: is 1, but 1 rows with 2 procs each are 2: write count: 2",
            "template.metadata.annotations.note: there is no variable Proces: did you mean Process?",
            "template.metadata.annotations.note: there is no variable b: add it to spec.items.variables, or write $$(b)",
            "template.spec.nodeSelector.zone: $(a) cannot stand here: the operator needs the value before there is a proc",
        ];
        assert_eq!(found, expected);
        // HOME is not meant to be name, although two letters make one of the other.
        let other = ["name".to_owned()];
        for items in [items, Items { variables: &other, rows: &[], repeat: 1 }] {
            let doubts: Vec<String> =
                doubts(items, &template).into_iter().map(|doubt| doubt.message).collect();
            let expected =
                "$(Proces) stays as it is, because there is no variable Proces: did you mean Process?";
            assert_eq!(doubts, [expected]);
        }
    }
}
