//! The accounting groups of owners, if an admin assigns them and owners have no free choice:
//! `use FEATURE : AssignAccountingGroup`.
//!
//! Source: the manual, "Setting Accounting Group automatically per user". HTCondor's feature is a transform and two
//! submit requirements: when a job is submitted, the groups of its owner are looked up and stored in the job.

use super::ids::GroupName;
use super::job::{JobSpec, Problem};
use condor_config::user_map::{UserMap, preferred};

/// Assigns accounting groups to owners.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupMap {
    /// The groups of each owner; several groups of one owner are separated by commas.
    pub owners: UserMap,
    /// Whether a job that names a group other than its owner's groups is refused. If not, it is charged to the owner's
    /// group nevertheless.
    pub checked: bool,
}

impl GroupMap {
    /// The groups to which a job that this owner submits now may be charged.
    pub fn at_submission(&self, owner: &str) -> Groups {
        Groups::OfOwner { groups: self.owners.of(owner), checked: self.checked }
    }
}

/// The groups to which a job may be charged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Groups {
    /// The group that the job names, or no group.
    #[default]
    AsNamed,
    /// One of the groups of the job's owner.
    OfOwner {
        /// The owner's groups, separated by commas; `None` if the owner has no group.
        groups: Option<String>,
        /// Whether a job that names another group is refused.
        checked: bool,
    },
}

impl Groups {
    /// Charges a job to the one of its owner's groups that the job names (in upper or lower case), and otherwise to the
    /// first of the owner's groups.
    ///
    /// # Errors
    /// The owner has no group, or the job names another group and that is checked.
    pub fn charge(&self, spec: &mut JobSpec) -> Result<(), Problem> {
        let Self::OfOwner { groups, checked } = self else { return Ok(()) };
        let problem = |message: String| Problem {
            reason: "AccountingGroupNotAllowed",
            field: "spec.accountingGroup".to_owned(),
            message,
        };
        let owner = spec.owner();
        let Some(groups) = groups.as_deref().filter(|groups| !preferred(groups, None).is_empty()) else {
            return Err(problem(format!(
                "the SubmitPolicy has no accounting group for {owner}; ask an admin to add a line for {owner} to \
                 CLASSAD_USER_MAPDATA_AssignAccountingGroup, and submit the job again"
            )));
        };
        let requested = spec.group.clone();
        let group = preferred(groups, requested.as_ref().map(GroupName::as_str));
        if let Some(requested) = requested {
            if *checked && !requested.as_str().eq_ignore_ascii_case(group) {
                return Err(problem(format!(
                    "{requested} is no accounting group of {owner}, who has {groups}; name one of those, or none"
                )));
            }
            spec.ad.set("RequestedAcctGroup", requested.as_str());
        }
        spec.charge_to(group);
        Ok(())
    }
}
