//! Compares group quotas with those of the real condor_negotiator, for the manual's trees and a hundred random ones.
//!
//! `tests/oracle/quotas.json` is what `hack/oracle/quotas.py` recorded. `QUOTA_ORACLE` names another recording.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::env;
use std::fs;

use model::negotiator::allocation::{Allocations, Demand, plan};
use model::negotiator::groups::{GroupSpec, Quota, ROOT, Tree};
use model::negotiator::{Config, Cycle};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    slots: u32,
    cpus: u32,
    config: BTreeMap<String, String>,
    demand: BTreeMap<String, f64>,
    groups: BTreeMap<String, GroupLog>,
}

/// The real negotiator's log of a group.
#[derive(Deserialize)]
struct GroupLog {
    quota: f64,
    requested: f64,
    allocated: f64,
    unmet: f64,
    limit: Option<f64>,
}

impl Case {
    fn knob(&self, name: &str) -> Option<&str> {
        self.config.get(name).map(String::as_str)
    }

    fn truth(&self, name: &str, otherwise: bool) -> bool {
        self.knob(name).map_or(otherwise, |value| value.eq_ignore_ascii_case("true"))
    }

    fn tree(&self) -> Tree {
        let amount = |knob: String| self.knob(&knob).map(|value| value.parse::<f64>().unwrap());
        let (surplus, regroup) =
            (self.truth("GROUP_ACCEPT_SURPLUS", false), self.truth("GROUP_AUTOREGROUP", false));
        let specs = self.knob("GROUP_NAMES").unwrap().split(", ").map(|name| GroupSpec {
            name: name.to_owned(),
            quota: amount(format!("GROUP_QUOTA_{name}"))
                .map(Quota::Static)
                .or(amount(format!("GROUP_QUOTA_DYNAMIC_{name}")).map(Quota::Dynamic)),
            accept_surplus: self.truth(&format!("GROUP_ACCEPT_SURPLUS_{name}"), surplus),
            autoregroup: self.truth(&format!("GROUP_AUTOREGROUP_{name}"), regroup),
        });
        Tree::new(&specs.collect::<Vec<_>>())
    }

    /// Our answer: the tree, what each group is given, and the limits of the groups' turns.
    fn ours(&self) -> (Tree, Allocations, Vec<f64>) {
        let tree = self.tree();
        let config = Config {
            allow_quota_oversubscription: self.truth("NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION", true),
            use_slot_weights: self.truth("NEGOTIATOR_USE_SLOT_WEIGHTS", true),
            ..Config::default()
        };
        let weight = if config.use_slot_weights { self.cpus } else { 1 };
        let pool_weight = f64::from(self.slots * weight);
        let groups = tree.inputs(pool_weight, config.allow_quota_oversubscription, &[]);
        let asks = |name: &str| self.demand.get(name).copied().unwrap_or(0.0);
        let demand =
            Demand { root: asks(""), groups: tree.groups().iter().map(|group| asks(&group.name)).collect() };
        let cycle = Cycle { config, groups, pool_weight, ..Cycle::default() };
        let (allocations, limits) = plan(&cycle, &demand);
        (tree, allocations, limits)
    }
}

/// Whether two numbers are the same, but for rounding: the log has six digits, and sums may be made in another order.
fn near(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= 6e-6 * theirs.abs() + 1e-9
}

#[test]
fn recorded_quotas_of_condor_negotiator() {
    let recorded = env::var("QUOTA_ORACLE").map_or_else(
        |_| include_str!("../oracle/quotas.json").to_owned(),
        |path| fs::read_to_string(path).unwrap(),
    );
    let cases: Vec<Case> = serde_json::from_str(&recorded).unwrap();
    assert!(cases.len() >= 100, "{} cases", cases.len());
    let (mut wrong, mut numbers) = (Vec::new(), 0);
    for case in &cases {
        let (tree, allocations, limits) = case.ours();
        assert_eq!(case.groups.len(), tree.groups().len() + 1, "{}", case.name);
        for (name, told) in &case.groups {
            let group = (name != ROOT).then(|| tree.find(name).unwrap());
            let given = allocations.of(group).unwrap();
            let limit = limits[group.unwrap_or(tree.groups().len())];
            let mut compare = |what: &str, ours: f64, theirs: f64| {
                numbers += 1;
                if !near(ours, theirs) {
                    wrong.push(format!("{}: {name}: {what} is {theirs}, ours {ours}", case.name));
                }
            };
            compare("quota", given.quota, told.quota);
            // With GROUP_AUTOREGROUP, HTCondor adds what the root was given to what the root asked for.
            if case.knob("GROUP_AUTOREGROUP").is_none() || group.is_some() {
                compare("requested", given.requested, told.requested);
                compare("unmet", given.requested - given.allocated, told.unmet);
            }
            compare("allocated", given.allocated, told.allocated);
            if let Some(theirs) = told.limit {
                compare("limit", limit, theirs);
            }
            if group.is_some() {
                assert_eq!(told.limit.is_some(), given.allocated > 0.0, "{}: {name} has a turn", case.name);
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {numbers} numbers differ:\n{}", wrong.len(), wrong.join("\n"));
}
