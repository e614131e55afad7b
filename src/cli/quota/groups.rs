//! Reads the groups that files of GroupQuota manifests declare, and the knobs of the Negotiator beside them.

use std::collections::BTreeMap;

use crate::lint::{Kinds, Object, Report, Severity, Source, check_references, document, parse};
use crate::problems::Problems;
use api::Negotiator;
use controller::kinds;
use model::negotiator::Config;
use model::negotiator::groups::{GroupSpec, Quota as TreeQuota};
use model::pool::Quota;

/// A group that a file declares.
pub struct Declared {
    /// The group, as the tree of groups takes it.
    pub spec: GroupSpec,
    /// `spec.priorityFactor`: the factor of the group's submitters that have none of their own.
    pub priority_factor: Option<f64>,
}

/// The groups that the files declare, or everything that is wrong with the files.
pub fn declared(sources: &[Source], config: &Config) -> Result<Vec<Declared>, Problems> {
    groups(sources, &objects(sources)?, config)
}

/// The objects of the files, or everything that is wrong with the files.
pub(super) fn objects(sources: &[Source]) -> Result<Vec<Object<'_>>, Problems> {
    let (mut problems, mut report, mut objects) = (Problems::default(), Report::default(), Vec::new());
    let kinds = Kinds::new();
    for source in sources {
        let parsed = parse(&source.text);
        for fault in &parsed.faults {
            problems.at(source, fault.at, &fault.message);
        }
        for node in parsed.documents {
            document(&kinds, source, node, &mut report, &mut objects);
        }
    }
    check_references(&objects, &mut report);
    report.sort();
    problems.extend(report.findings.into_iter().filter(|finding| finding.severity == Severity::Error));
    if problems.is_empty() { Ok(objects) } else { Err(problems) }
}

/// The knobs of the Negotiators among the objects, by the Negotiators' names. A Negotiator that the operator would refuse has
/// HTCondor's defaults.
pub(super) fn negotiators(objects: &[Object<'_>]) -> BTreeMap<String, Config> {
    let of = |object: &Object<'_>| {
        let negotiator: Negotiator = serde_json::from_value(object.value.clone()).ok()?;
        let knobs = kinds::negotiator::facts(&negotiator).config.ok();
        let knobs = knobs.map_or_else(Config::default, |config| Config::clone(&config.cycle));
        Some((negotiator.metadata.name?, knobs))
    };
    objects.iter().filter(|object| object.kind == "Negotiator").filter_map(of).collect()
}

/// The groups that the objects of the files declare.
///
/// # Errors
/// When they declare none.
pub(super) fn groups(
    sources: &[Source],
    objects: &[Object<'_>],
    config: &Config,
) -> Result<Vec<Declared>, Problems> {
    let groups: Vec<Declared> = objects.iter().filter_map(|object| group(object, config)).collect();
    if groups.is_empty() {
        let files: Vec<&str> = sources.iter().map(|source| source.path.as_str()).collect();
        let say = "there is no GroupQuota in it; give at least one";
        return Err(Problems::one(format!("{}: {say}", files.join(", "))));
    }
    Ok(groups)
}

fn group(object: &Object<'_>, config: &Config) -> Option<Declared> {
    if object.kind != "GroupQuota" {
        return None;
    }
    let group = kinds::group_quota::facts(&serde_json::from_value(object.value.clone()).ok()?);
    let spec = GroupSpec {
        name: group.name.to_string(),
        quota: Some(match group.quota {
            Quota::Static(weight) => TreeQuota::Static(weight),
            Quota::Dynamic(share) => TreeQuota::Dynamic(share),
        }),
        accept_surplus: group.accept_surplus.unwrap_or(config.group_accept_surplus),
        autoregroup: group.autoregroup.unwrap_or(config.group_autoregroup),
    };
    Some(Declared { spec, priority_factor: group.priority_factor })
}
