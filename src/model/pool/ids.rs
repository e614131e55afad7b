//! Names and ids, each a type of its own so that one is never taken for another.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::time::Time;

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &self.0)
            }
        }
    )*};
}

text_id! {
    /// A machine: the name of its node.
    MachineName;
    /// An HTCJob's uid.
    JobUid;
    /// A pod's uid.
    PodUid;
    /// A claim's id.
    ClaimId;
    /// A submitter as the accountant names it: `OWNER` or `GROUP.OWNER`.
    SubmitterName;
    /// An accounting group's full name, such as `physics.higgs`.
    GroupName;
    /// The name of a `NodePolicy`.
    PolicyName;
}

impl ClaimId {
    /// Makes an id as HTCondor does, of the slot, the time and a number. The id is no secret here: the API server
    /// guards Slots.
    pub fn new(slot: &SlotName, now: Time, number: u64) -> Self {
        format!("{slot}#{}#{number}", now.millis()).into()
    }

    /// The slot for which the claim was made, and the time; `None` if the text is no id of the operator's.
    pub fn made_for(&self) -> Option<(SlotName, Time)> {
        let mut parts = self.as_str().rsplitn(3, '#');
        let (_, millis, slot) = (parts.next()?, parts.next()?, parts.next()?);
        Some((SlotName::parse(slot).ok()?, Time::from_millis(millis.parse().ok()?)))
    }

    /// Whether the claim was made for this slot.
    pub fn is_of(&self, slot: &SlotName) -> bool {
        self.as_str().strip_prefix(&slot.to_string()).is_some_and(|rest| rest.starts_with('#'))
    }
}

impl SubmitterName {
    /// The submitter for jobs of an owner that charge a group, or no group.
    #[must_use]
    pub fn within(group: Option<&GroupName>, owner: &str) -> Self {
        group.map_or_else(|| owner.into(), |group| format!("{}.{owner}", group.as_str()).into())
    }

    /// The owner: the part behind the last dot. The ceiling of the submitter whose name is the owner alone holds for
    /// all submitters of the owner together, whatever groups they charge.
    #[must_use]
    pub fn owner(&self) -> Self {
        let name = self.as_str();
        name.rsplit_once('.').map_or(name, |(_, owner)| owner).into()
    }
}

impl GroupName {
    /// Whether `other` is this group or a group inside it: `physics` contains `physics` and `Physics.higgs`, but not
    /// `physicsX`. As in HTCondor, upper and lower case are the same in names of groups.
    pub fn contains(&self, other: &Self) -> bool {
        let (outer, inner) = (self.as_str(), other.as_str());
        inner.get(..outer.len()).is_some_and(|head| head.eq_ignore_ascii_case(outer))
            && matches!(inner.as_bytes().get(outer.len()), None | Some(b'.'))
    }

    /// Whether a text can be a group's name: letters, digits, `_` and `-`, with a dot before a group inside another.
    pub fn is_valid(text: &str) -> bool {
        text.split('.').all(|part| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        })
    }

    /// Whether a submitter of this name charges this group or a group inside this group.
    pub fn is_charged_by(&self, submitter: &str) -> bool {
        submitter.rsplit_once('.').is_some_and(|(group, _)| self.contains(&group.into()))
    }

    /// Whether both are names of the same group, in upper or lower case.
    pub fn is_same(&self, other: &Self) -> bool {
        self.as_str().eq_ignore_ascii_case(other.as_str())
    }

    /// The name of the group around this group: `a.b` for `a.b.c`, none for `a`.
    pub fn parent(&self) -> Option<Self> {
        self.as_str().rsplit_once('.').map(|(parent, _)| parent.into())
    }

    /// This name and those of the groups around the group, from the inside out: `a.b.c`, `a.b`, `a`.
    pub fn ancestry(&self) -> impl Iterator<Item = Self> + use<> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }
}

/// An HTCJob. The uid identifies the object; namespace and name say where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// The uid.
    pub uid: JobUid,
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

/// One proc of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcId {
    /// The job.
    pub job: JobUid,
    /// The proc's number, from 0.
    pub proc: u32,
}

/// One pod, identified by its uid. A pod that is created later under the same name is another pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The uid.
    pub uid: PodUid,
}

/// A slot's name as `HTCondor` writes it: `slot1@node` for the first slot of a machine, `slot1_3@node` for the third
/// dynamic slot carved from it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotName {
    /// The machine.
    pub machine: MachineName,
    /// `SlotID`, from 1.
    pub slot: u32,
    /// `DSlotID`, from 1; `None` for a slot that is not dynamic.
    pub dynamic: Option<u32>,
}

/// A text that is no name of a slot.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not a slot name; slot names read slot1@node or slot1_3@node")]
pub struct BadSlotName(String);

impl SlotName {
    /// The name of the Slot or `PartitionableSlot` object. `_` and `@` are not allowed in names of objects, so that
    /// `slot1_3@node` becomes `slot1-3.node`.
    pub fn object_name(&self) -> String {
        match self.dynamic {
            Some(dynamic) => format!("slot{}-{dynamic}.{}", self.slot, self.machine),
            None => format!("slot{}.{}", self.slot, self.machine),
        }
    }

    /// Reads an HTCondor slot name.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Self, BadSlotName> {
        Self::read(text).ok_or_else(|| BadSlotName(text.to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        let (ids, machine) = text.strip_prefix("slot")?.split_once('@')?;
        let (slot, dynamic) = match ids.split_once('_') {
            Some((slot, dynamic)) => (slot, Some(positive(dynamic)?)),
            None => (ids, None),
        };
        (!machine.is_empty()).then_some(())?;
        Some(Self { machine: machine.into(), slot: positive(slot)?, dynamic })
    }
}

fn positive(digits: &str) -> Option<u32> {
    digits.parse().ok().filter(|n| *n > 0)
}

impl fmt::Display for SlotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dynamic {
            Some(dynamic) => write!(f, "slot{}_{dynamic}@{}", self.slot, self.machine),
            None => write!(f, "slot{}@{}", self.slot, self.machine),
        }
    }
}

impl fmt::Debug for SlotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_names_read_and_print() {
        for text in ["slot1@node7", "slot1_3@node7.example.com", "slot12_345@a"] {
            assert_eq!(SlotName::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "slot@a",
            "slot0@a",
            "slot1_@a",
            "slot1_0@a",
            "slot1",
            "slot1@",
            "slotx@a",
            "1@a",
            "slot99999999999@a",
        ] {
            assert_eq!(SlotName::parse(text), Err(BadSlotName(text.to_owned())));
        }
    }

    #[test]
    fn a_group_contains_itself_and_the_groups_inside_it() {
        for (outer, inner, contains) in [
            ("physics", "physics", true),
            ("physics", "Physics.higgs", true),
            ("Physics.Higgs", "physics.higgs.top", true),
            ("physics.higgs", "physics", false),
            ("physics", "physicsx", false),
            ("physics", "chem.physics", false),
            ("a", "é", false),
        ] {
            let names = (GroupName::from(outer), GroupName::from(inner));
            assert_eq!(names.0.contains(&names.1), contains, "{outer} {inner}");
            assert_eq!(names.1.ancestry().any(|name| name.is_same(&names.0)), contains, "{outer} {inner}");
        }
    }

    #[test]
    fn a_submitter_charges_the_group_of_its_name_and_the_groups_around_it() {
        for (submitter, charged) in [
            ("nice-user.alice", true),
            ("Nice-User.alice", true),
            ("nice-user.sweeps.alice@uni.edu", true),
            ("nice-users.alice", false),
            ("physics.nice-user", false),
            ("nice-user", false),
        ] {
            assert_eq!(GroupName::from("nice-user").is_charged_by(submitter), charged, "{submitter}");
        }
    }

    #[test]
    fn object_names_are_valid_in_kubernetes() {
        assert_eq!(SlotName::parse("slot1_3@node7.lab").unwrap().object_name(), "slot1-3.node7.lab");
        assert_eq!(SlotName::parse("slot1@node7").unwrap().object_name(), "slot1.node7");
    }
}
