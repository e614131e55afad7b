//! The groups that the knobs of a configuration name.

use condor_config::knobs::Knob;
use condor_config::{Config as Text, ValueError};
use model::negotiator::Config;
use model::negotiator::groups::{GroupSpec, Quota};

/// The families of knobs that are about one group each, and what is before the group's name.
const OF_A_GROUP: &[(&str, &str)] = &[
    ("GROUP_QUOTA_DYNAMIC_<group>", "GROUP_QUOTA_DYNAMIC_"),
    ("GROUP_QUOTA_<group>", "GROUP_QUOTA_"),
    ("GROUP_ACCEPT_SURPLUS_<group>", "GROUP_ACCEPT_SURPLUS_"),
    ("GROUP_AUTOREGROUP_<group>", "GROUP_AUTOREGROUP_"),
    ("GROUP_PRIO_FACTOR_<group>", "GROUP_PRIO_FACTOR_"),
];

/// The group that a name is about which sets this knob; `None` if the knob is not about one group.
pub fn group_of<'n>(name: &'n str, knob: &Knob) -> Option<&'n str> {
    let (_, prefix) = OF_A_GROUP.iter().find(|(family, _)| *family == knob.name)?;
    let start = name.to_ascii_uppercase().find(prefix).map_or(0, |at| at + prefix.len());
    Some(name.get(start..).unwrap_or_default())
}

/// A group that `GROUP_NAMES` lists, with what knobs say of the group.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedGroup {
    /// The group's name.
    pub name: String,
    /// `GROUP_QUOTA_<group>`.
    pub quota: Option<f64>,
    /// `GROUP_QUOTA_DYNAMIC_<group>`.
    pub dynamic_quota: Option<f64>,
    /// `GROUP_ACCEPT_SURPLUS_<group>`.
    pub accept_surplus: Option<bool>,
    /// `GROUP_AUTOREGROUP_<group>`.
    pub autoregroup: Option<bool>,
    /// `GROUP_PRIO_FACTOR_<group>`.
    pub priority_factor: Option<f64>,
}

impl NamedGroup {
    /// The group as the negotiator reads it. A group without a quota has 0.
    pub fn spec(&self, config: &Config) -> GroupSpec {
        let share = || self.dynamic_quota.map(Quota::Dynamic);
        GroupSpec {
            name: self.name.clone(),
            quota: Some(self.quota.map(Quota::Static).or_else(share).unwrap_or(Quota::Static(0.0))),
            accept_surplus: self.accept_surplus.unwrap_or(config.group_accept_surplus),
            autoregroup: self.autoregroup.unwrap_or(config.group_autoregroup),
        }
    }
}

/// The groups that `GROUP_NAMES` lists, in this order.
///
/// # Errors
/// All values that cannot be used.
pub fn named_groups(text: &Text) -> Result<Vec<NamedGroup>, Vec<ValueError>> {
    let names = text.list("GROUP_NAMES").map_err(|fault| vec![fault.into()])?;
    let mut faults = Vec::new();
    let groups = names.into_iter().map(|name| named_group(text, name, &mut faults)).collect();
    if faults.is_empty() { Ok(groups) } else { Err(faults) }
}

fn named_group(text: &Text, name: String, faults: &mut Vec<ValueError>) -> NamedGroup {
    let number = |family: &str, faults: &mut Vec<ValueError>| {
        let knob = format!("{family}_{name}");
        let found =
            text.real(&knob).and_then(|found| found.map(|number| text.in_range(&knob, number)).transpose());
        kept(found, faults)
    };
    let truth =
        |family: &str, faults: &mut Vec<ValueError>| kept(text.boolean(&format!("{family}_{name}")), faults);
    NamedGroup {
        quota: number("GROUP_QUOTA", faults),
        dynamic_quota: number("GROUP_QUOTA_DYNAMIC", faults),
        accept_surplus: truth("GROUP_ACCEPT_SURPLUS", faults),
        autoregroup: truth("GROUP_AUTOREGROUP", faults),
        priority_factor: number("GROUP_PRIO_FACTOR", faults),
        name,
    }
}

/// The value; `None` if the knob is not set, or if the value cannot be used, which is added to the faults.
fn kept<T>(found: Result<Option<T>, ValueError>, faults: &mut Vec<ValueError>) -> Option<T> {
    found.unwrap_or_else(|fault| {
        faults.push(fault);
        None
    })
}
