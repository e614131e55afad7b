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
/// The first value that cannot be used.
pub fn named_groups(text: &Text) -> Result<Vec<NamedGroup>, ValueError> {
    let group = |name: String| {
        let number = |family: &str| {
            let knob = format!("{family}_{name}");
            text.real(&knob)?.map(|number| text.in_range(&knob, number)).transpose()
        };
        let truth = |family: &str| text.boolean(&format!("{family}_{name}"));
        Ok(NamedGroup {
            quota: number("GROUP_QUOTA")?,
            dynamic_quota: number("GROUP_QUOTA_DYNAMIC")?,
            accept_surplus: truth("GROUP_ACCEPT_SURPLUS")?,
            autoregroup: truth("GROUP_AUTOREGROUP")?,
            name,
        })
    };
    text.list("GROUP_NAMES")?.into_iter().map(group).collect()
}
