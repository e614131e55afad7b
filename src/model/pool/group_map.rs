//! Which accounting group a job is charged to where its owner has no free choice: `use FEATURE : AssignAccountingGroup`.
//!
//! Source: the manual, "Setting Accounting Group automatically per user". HTCondor's feature is a transform and two submit
//! requirements: the groups of a job's owner are looked up when the job is submitted, and it keeps them.

use super::ids::GroupName;
use super::job::{JobSpec, Problem};
use condor_config::user_map::{UserMap, preferred};

/// The groups of owners.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupMap {
    /// Owners to groups, of several one after another with commas between them.
    pub owners: UserMap,
    /// A job that names another group than its owner has is not accepted; else it is charged to the owner's nevertheless.
    pub checked: bool,
}

impl GroupMap {
    /// What a job is charged to that this owner submits now.
    pub fn at_submission(&self, owner: &str) -> Groups {
        Groups::OfOwner { groups: self.owners.of(owner), checked: self.checked }
    }
}

/// What a job may be charged to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Groups {
    /// The group that it names, or none.
    #[default]
    AsNamed,
    /// A group of its owner's.
    OfOwner {
        /// The groups with commas between them; none where the owner has none.
        groups: Option<String>,
        /// A job that names another is not accepted.
        checked: bool,
    },
}

impl Groups {
    /// Charges a job to the group of its owner's that it names, whatever its case, else to the first of them.
    ///
    /// # Errors
    /// The owner has none, or the job names another.
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
