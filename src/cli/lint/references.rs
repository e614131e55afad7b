//! Checks objects against each other: groups, limits, duplicates, names of Negotiators, and objects of which only one counts.

mod limits;

use std::collections::BTreeMap;

use serde_json::Value;

use super::nearest::nearest;
use super::object::Object;
use super::report::{Report, Saying};
use super::rules::{self, Rule};
use api::GroupQuota;
use controller::kinds;
use model::decide::shares_all;
use model::negotiator::groups::{GroupError, GroupSpec, Quota as TreeQuota, Tree};
use model::pool::{Event, GroupName, Pool, Quota, Time, is_like};
use model::startd::shadowed;

/// Checks all objects together.
pub fn check(objects: &[Object<'_>], report: &mut Report) {
    duplicates(objects, report);
    let groups = Groups::of(objects);
    groups.check(report);
    let pool = pool_of(objects);
    for job in objects.iter().filter(|object| object.kind == "HTCJob") {
        groups.check_charge(job, report);
        limits::check(job, pool.holdings().book().capacities(), report);
    }
    several("SubmitPolicy", &rules::SUBMIT_POLICY_SEVERAL, objects, report);
    overlaps(&pool, objects, report);
    corrections(objects, report);
}

fn place_of(object: &Object<'_>) -> String {
    let (line, column) = object.source.place(object.offset("metadata.name"));
    format!("{}:{line}:{column}", object.source.path)
}

fn duplicates(objects: &[Object<'_>], report: &mut Report) {
    let mut seen: BTreeMap<String, &Object<'_>> = BTreeMap::new();
    for object in objects.iter().filter(|object| object.value.pointer("/metadata/name").is_some()) {
        let title = object.title();
        if let Some(first) = seen.get(&title) {
            let saying = Saying::new(format!("{title} stands also at {}", place_of(first)));
            let saying = saying.hint("the one that is applied last wins; remove one").about(&title);
            report.add(&rules::OBJECT_DUPLICATE, object.source, object.offset("metadata.name"), saying);
        } else {
            seen.insert(title, object);
        }
    }
}

/// The accounting groups that the files declare.
struct Groups<'a> {
    objects: Vec<(&'a Object<'a>, GroupSpec)>,
    tree: Tree,
    /// The owners whom GroupQuotas name, by the group's name in lower case.
    owners: BTreeMap<String, Vec<String>>,
    /// Whether there is a SubmitPolicy, whose map may give owners groups.
    may_be_assigned: bool,
}

impl<'a> Groups<'a> {
    fn of(objects: &'a [Object<'a>]) -> Self {
        let may_be_assigned = objects.iter().any(|object| object.kind == "SubmitPolicy");
        let mut owners = BTreeMap::new();
        let mut objects: Vec<(&Object<'_>, GroupSpec)> = objects
            .iter()
            .filter(|object| object.kind == "GroupQuota")
            .filter_map(|object| {
                let group = kinds::group_quota::facts(
                    &serde_json::from_value::<GroupQuota>(object.value.clone()).ok()?,
                );
                let quota = Some(match group.quota {
                    Quota::Static(weight) => TreeQuota::Static(weight),
                    Quota::Dynamic(share) => TreeQuota::Dynamic(share),
                });
                owners.extend(group.owners.map(|owners| (group.name.as_str().to_ascii_lowercase(), owners)));
                Some((object, GroupSpec { name: group.name.to_string(), quota, ..GroupSpec::default() }))
            })
            .collect();
        // If several GroupQuotas declare one group, the operator goes by the GroupQuota whose own name is the group's.
        objects.sort_by_key(|(object, spec)| !object.name.eq_ignore_ascii_case(&spec.name));
        let specs: Vec<GroupSpec> = objects.iter().map(|(_, spec)| spec.clone()).collect();
        Self { objects, tree: Tree::new(&specs), owners, may_be_assigned }
    }

    fn check(&self, report: &mut Report) {
        for (index, error) in self.tree.refused() {
            let Some((object, _)) = self.objects.get(*index) else { continue };
            let (rule, hint) = match error {
                GroupError::MissingParent { parent, .. } => {
                    (&rules::GROUP_PARENT, format!("add a GroupQuota for {parent}"))
                }
                GroupError::Duplicate { .. } => (&rules::GROUP_DUPLICATE, "remove one of the two".to_owned()),
                _ => (&rules::GROUP_NAME, "write dotted names such as physics.higgs".to_owned()),
            };
            let text = error.to_string();
            let what = text.split("; ").next().unwrap_or(&text);
            add(rule, object, group_field(object), Saying::new(what).hint(hint), report);
        }
        for (object, spec) in &self.objects {
            quota_fields(object, spec, report);
        }
        self.sums(report);
    }

    /// Reports quotas of sibling groups that add up to more than there is. The finding is at the group whose quota exceeds the limit
    /// first, in the order of the files, but after those whose GroupQuotas have the names of their groups.
    fn sums(&self, report: &mut Report) {
        for excess in self.tree.excesses() {
            let Some((object, _)) = self.objects.get(excess.spec) else { continue };
            let (field, remedy) = match excess.quota {
                None => ("spec.dynamicQuota", "make them add up to at most 1"),
                Some(_) => ("spec.quota", "lower them, or raise the quota around them"),
            };
            let saying = Saying::new(format!("{field}: {excess}"));
            let saying = saying.hint(format!("all of them are scaled down; {remedy}"));
            add(&rules::GROUP_SUM, object, field, saying, report);
        }
    }

    /// Reports a job whose accounting group is not declared. If the files declare no group at all, groups are
    /// declared elsewhere, and nothing is reported.
    fn check_charge(&self, job: &Object<'_>, report: &mut Report) {
        let Some(group) = job.value.pointer("/spec/accountingGroup").and_then(Value::as_str) else { return };
        if self.objects.is_empty() {
            return;
        }
        if self.tree.find(group).is_some() {
            return self.check_owner(job, &group.into(), report);
        }
        let names: Vec<&str> = self.tree.groups().iter().map(|group| group.name.as_str()).collect();
        let saying = Saying::new(format!(
            "spec.accountingGroup: no GroupQuota among the files declares the group {group}"
        ));
        let saying = match nearest(group, names.iter().copied()) {
            Some(meant) => saying.hint(format!("did you mean {meant}?")),
            None => saying.hint(format!("declared: {}", names.join(", "))),
        };
        add(&rules::GROUP_UNKNOWN, job, "spec.accountingGroup", saying, report);
    }

    /// Checks that a declared group is open to the job's owner, unless a SubmitPolicy among the files may assign groups.
    fn check_owner(&self, job: &Object<'_>, group: &GroupName, report: &mut Report) {
        let Some(owner) = job.value.pointer("/metadata/namespace").and_then(Value::as_str) else { return };
        let owners = group.ancestry().find_map(|name| self.owners.get(&name.as_str().to_ascii_lowercase()));
        let open = owners.is_some_and(|owners| owners.iter().any(|pattern| is_like(owner, pattern)));
        if open || self.may_be_assigned {
            return;
        }
        let named = owners.filter(|owners| !owners.is_empty()).map(|owners| owners.join(", "));
        let saying = Saying::new(format!("spec.accountingGroup: {owner} may not charge the group {group}"));
        let saying = saying.hint(match named {
            Some(named) => format!(
                "it is open to {named}; add {owner} to spec.owners of its GroupQuota, or name another group"
            ),
            None => format!("its GroupQuota is open to nobody; write owners: [{owner}] there"),
        });
        add(&rules::GROUP_OWNER, job, "spec.accountingGroup", saying, report);
    }
}

fn group_field(object: &Object<'_>) -> &'static str {
    if object.value.pointer("/spec/group").is_some() { "spec.group" } else { "metadata.name" }
}

fn quota_fields(object: &Object<'_>, spec: &GroupSpec, report: &mut Report) {
    let has = |field: &str| object.value.pointer(field).is_some();
    let (saying, field) = match (has("/spec/quota"), has("/spec/dynamicQuota")) {
        (true, true) => (
            Saying::new("spec.dynamicQuota: the static quota wins; the share has no effect")
                .hint("leave one of the two out"),
            "spec.dynamicQuota",
        ),
        (false, false) => (
            Saying::new(format!("spec: group {} has no quota, so that none of its jobs runs", spec.name))
                .hint("set quota or dynamicQuota"),
            "spec",
        ),
        _ => return,
    };
    add(&rules::GROUP_QUOTA, object, field, saying, report);
}

/// Reports objects of a kind of which only the first by name counts for the pool: all but that one.
fn several(kind: &str, rule: &'static Rule, objects: &[Object<'_>], report: &mut Report) {
    let mut all: Vec<&Object<'_>> = objects.iter().filter(|object| object.kind == kind).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let Some((first, others)) = all.split_first() else { return };
    for other in others.iter().filter(|other| other.name != first.name) {
        let saying =
            Saying::new(format!("metadata.name: the {kind} {} is in force, the first by name", first.name));
        add(rule, other, "metadata.name", saying.hint("delete one of the two"), report);
    }
}

/// Reports corrections of accounts with a Negotiator that is not declared. If the files declare no Negotiator at all, Negotiators are
/// declared elsewhere, and nothing is reported.
fn corrections(objects: &[Object<'_>], report: &mut Report) {
    let of_kind = |kind| objects.iter().filter(move |object| object.kind == kind);
    let names: Vec<&str> = of_kind("Negotiator").map(|object| object.name.as_str()).collect();
    for submitter in of_kind("Submitter").filter(|_| !names.is_empty()) {
        let with = submitter.value.pointer("/spec/correction/negotiator").and_then(Value::as_str);
        let Some(with) = with.filter(|with| !names.contains(with)) else { continue };
        let field = "spec.correction.negotiator";
        let saying = Saying::new(format!("{field}: no Negotiator among the files has the name {with}"));
        let saying = match nearest(with, names.iter().copied()) {
            Some(meant) => saying.hint(format!("did you mean {meant}?")),
            None => saying.hint(format!("there are {}", names.join(", "))),
        };
        add(&rules::NEGOTIATOR_UNKNOWN, submitter, field, saying, report);
    }
}

/// Reports NodePolicies that never count, Negotiators that share all their slots with another, and ConcurrencyLimits that set the same
/// limit.
fn overlaps(pool: &Pool, objects: &[Object<'_>], report: &mut Report) {
    for object in objects {
        let name = object.name.as_str();
        let (rule, problem) = match object.kind.as_str() {
            "NodePolicy" => (&rules::POLICY_SHADOWED, shadowed(pool.policies(), &name.into())),
            "Negotiator" => (&rules::NEGOTIATOR_SEVERAL, shares_all(pool, &name.into())),
            "ConcurrencyLimit" => {
                let limit = pool.limits().get(name);
                (
                    &rules::LIMIT_DUPLICATE,
                    limit.and_then(|limit| kinds::concurrency_limit::shared(pool, limit)),
                )
            }
            _ => continue,
        };
        let Some(problem) = problem else { continue };
        add(rule, object, &problem.field, Saying::of(&problem), report);
    }
}

/// The pool as the operator would know it if the cluster had these policies, negotiators and limits alone.
fn pool_of(objects: &[Object<'_>]) -> Pool {
    let mut pool = Pool::default();
    for object in objects {
        let value = || object.value.clone();
        let event = match object.kind.as_str() {
            "NodePolicy" => serde_json::from_value(value())
                .ok()
                .map(|policy| Event::Policy(kinds::node_policy::facts(&policy))),
            "Negotiator" => serde_json::from_value(value())
                .ok()
                .map(|negotiator| Event::Negotiator(kinds::negotiator::facts(&negotiator))),
            "ConcurrencyLimit" => serde_json::from_value(value())
                .ok()
                .map(|limit| Event::Limit(kinds::concurrency_limit::facts(&limit))),
            _ => None,
        };
        if let Some(event) = event {
            pool.apply(event, Time::default());
        }
    }
    pool
}

fn add(rule: &'static Rule, object: &Object<'_>, field: &str, saying: Saying, report: &mut Report) {
    report.add(rule, object.source, object.offset(field), saying.about(object.title()));
}
