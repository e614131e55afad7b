//! The groups: `GroupQuota` manifests, checked as `slotwright lint` checks them.

use std::path::Path;

use super::{Stop, unusable};
use crate::cli::lint::{Kinds, Report, Severity, Source, document, parse};
use crate::controller::translate;
use crate::negotiator::Config;
use crate::negotiator::groups::{GroupSpec, Quota, Tree};
use crate::pool;

/// Reads the groups of a file. What is of another kind is passed over.
///
/// # Errors
/// All that is wrong, a line each, with its place.
pub(super) fn read(path: &Path, text: &str, config: &Config) -> Result<Tree, Stop> {
    let source = Source::new(path.display().to_string(), text);
    let mut problems = Vec::new();
    let parsed = parse(&source.text);
    for fault in &parsed.faults {
        let (line, column) = source.place(fault.at);
        problems.push(format!("line {line}, column {column}: {}", fault.message));
    }
    let (kinds, mut report, mut objects) = (Kinds::new(), Report::default(), Vec::new());
    for node in parsed.documents {
        document(&kinds, &source, node, &mut report, &mut objects);
    }
    report.sort();
    let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    problems.extend(
        errors.map(|found| format!("line {}, column {}: {}", found.line, found.column, found.message)),
    );
    let mut specs = Vec::new();
    let mut places = Vec::new();
    for object in objects.iter().filter(|object| object.kind == "GroupQuota") {
        // What does not fit the type is among the findings.
        let Ok(quota) = serde_json::from_value(object.value.clone()) else { continue };
        specs.push(spec(&translate::group(&quota), config));
        places.push(source.place(object.offset("metadata.name")));
    }
    let tree = Tree::new(&specs);
    for (spec, error) in tree.refused() {
        let (line, column) = places.get(*spec).copied().unwrap_or((1, 1));
        problems.push(format!("line {line}, column {column}: {error}"));
    }
    if problems.is_empty() {
        Ok(tree)
    } else {
        Err(unusable(path.display(), problems.join(&format!("\n{}: ", path.display()))))
    }
}

fn spec(group: &pool::Group, config: &Config) -> GroupSpec {
    let quota = match group.quota {
        pool::Quota::Static(quota) => Quota::Static(quota),
        pool::Quota::Dynamic(share) => Quota::Dynamic(share),
    };
    GroupSpec {
        name: group.name.as_str().to_owned(),
        quota: Some(quota),
        accept_surplus: group.accept_surplus.unwrap_or(config.group_accept_surplus),
        autoregroup: group.autoregroup.unwrap_or(config.group_autoregroup),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHYSICS: &str = "apiVersion: slotwright.dev/v1alpha1\nkind: GroupQuota\nmetadata: {name: physics}\nspec: {quota: 10}\n";

    #[test]
    fn groups_are_read_and_others_passed_over() {
        let text = format!(
            "{PHYSICS}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: x}}\n---\n{}",
            PHYSICS.replace("name: physics", "name: physics.hep")
        );
        let tree = read(Path::new("g"), &text, &Config::default()).map_err(|_| ()).unwrap();
        let names: Vec<&str> = tree.groups().iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["physics", "physics.hep"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let fault = |text: &str| match read(Path::new("g"), text, &Config::default()) {
            Err(Stop::Unusable(message)) => message,
            _ => panic!("it was read"),
        };
        assert!(fault(&PHYSICS.replace("10", "-1")).starts_with("g: line 4, column "));
        let orphan = fault(&PHYSICS.replace("physics", "physics.hep"));
        assert!(
            orphan.starts_with("g: line 3, column ")
                && orphan.contains("\"physics\" is not an accepted group"),
            "{orphan}"
        );
    }
}
