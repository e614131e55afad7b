//! The owners of jobs: who asked the API server to create a job, and the owner that the `SubmitPolicy` finds for the
//! job.
//!
//! A job's owner is decided when the operator first sees the job, and stays. The job's status records the owner.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::job::Problem;
use classad::{Maps, preferred};

/// Who asked the API server for an object, as the API server authenticated them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requester {
    /// The user's name, such as `alice` or `system:serviceaccount:ci:runner`.
    pub user: Arc<str>,
    /// The groups of the user.
    pub groups: Vec<Arc<str>>,
}

/// Why nobody knows who created a job, in words that go on from "the job is charged to its namespace".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCreator(Arc<str>);

impl UnknownCreator {
    /// Makes an unknown creator with the reason `why`.
    pub fn because(why: &str) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for UnknownCreator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The reason for which the creator of a job is unknown if only the admission webhook could have seen the creator.
impl Default for UnknownCreator {
    fn default() -> Self {
        Self::because("the admission webhook did not see who created the job")
    }
}

/// The source of an owner's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OwnerSource {
    /// The job's namespace.
    #[default]
    Namespace,
    /// The user who created the job.
    User,
    /// The part that `*` stands for in this pattern, of the first group of the user that is like the pattern; the whole group if
    /// the pattern has no `*`.
    Group(Arc<str>),
}

/// How a `SubmitPolicy` finds the owner of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnerRule {
    source: OwnerSource,
    /// The name of the user map that gives the owner of a user or group, and the maps.
    map: Option<(Arc<str>, Maps)>,
}

/// The owner of a job, as the job's status records the owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RecordedOwner {
    /// No operator has written a status: the job is new.
    #[default]
    New,
    /// The job is its namespace's.
    Namespace,
    /// The job is this owner's.
    Of(Arc<str>),
}

impl RecordedOwner {
    /// The record of an owner.
    pub fn of(owner: Option<&Arc<str>>) -> Self {
        owner.map_or(Self::Namespace, |owner| Self::Of(Arc::clone(owner)))
    }

    /// The owner, if one is recorded.
    pub fn owner(&self) -> Option<&Arc<str>> {
        match self {
            Self::Of(owner) => Some(owner),
            Self::New | Self::Namespace => None,
        }
    }
}

/// The beginning of the owner of a job whose namespace is charged because nobody knows who created the job. No user's owner begins
/// so, since the colon is in no such owner: a user cannot be charged for jobs of a namespace that has the user's name.
const BY_NAMESPACE: &str = "namespace:";

/// The longest owner, in characters.
const MOST: usize = 128;

impl OwnerRule {
    /// A rule. If a map is named, `maps` has the map.
    pub fn new(source: OwnerSource, map: Option<(Arc<str>, Maps)>) -> Self {
        Self { source, map }
    }

    /// Whether the rule asks who created a job.
    pub fn asks_who(&self) -> bool {
        self.source != OwnerSource::Namespace
    }

    /// The groups that the rule can use, of all that a user has: what a seal has to keep.
    pub fn usable_groups<'a>(&self, groups: impl IntoIterator<Item = &'a str>) -> Vec<Arc<str>> {
        let OwnerSource::Group(pattern) = &self.source else { return Vec::new() };
        groups.into_iter().find(|group| is_like(group, pattern)).map(Arc::from).into_iter().collect()
    }

    /// The owner of a new job. `None`: the namespace, as the job itself says. If the rule finds nobody, the job is charged to its
    /// namespace by an owner that no user has; [`problem`](Self::problem) says why.
    pub fn decide(
        &self,
        requester: Result<&Requester, &UnknownCreator>,
        namespace: &str,
    ) -> Option<Arc<str>> {
        let found = self.asks_who().then(|| self.of(requester))?;
        Some(found.unwrap_or_else(|_| format!("{BY_NAMESPACE}{namespace}").into()))
    }

    /// Why a job of this owner is charged to its namespace, if so. After a change of the policy the reason at the time is unknown.
    pub fn problem(
        &self,
        requester: Result<&Requester, &UnknownCreator>,
        owner: Option<&str>,
    ) -> Option<Problem> {
        let namespace = owner?.strip_prefix(BY_NAMESPACE)?;
        let why = self.asks_who().then(|| self.of(requester).err()).flatten();
        let why =
            why.unwrap_or_else(|| "who created it was not known when the operator first saw it".to_owned());
        Some(Problem {
            reason: "OwnerUnknown",
            field: String::new(),
            message: format!("the job is charged to its namespace, {namespace}: {why}"),
        })
    }

    fn of(&self, requester: Result<&Requester, &UnknownCreator>) -> Result<Arc<str>, String> {
        let requester = requester.map_err(ToString::to_string)?;
        let user = &*requester.user;
        let (what, name) = match &self.source {
            OwnerSource::Group(pattern) => {
                let found = requester.groups.iter().find_map(|group| starred(group, pattern));
                ("group", found.ok_or_else(|| format!("no group of the user {user} is like {pattern}"))?)
            }
            OwnerSource::Namespace | OwnerSource::User => ("user", user),
        };
        let mapped = match &self.map {
            Some((map, maps)) => {
                let found = maps.look_up(map, name);
                let found =
                    found.ok_or_else(|| format!("the user map {map} has no line for the {what} {name}"))?;
                preferred(&found, None).to_owned()
            }
            None => name.to_owned(),
        };
        if is_owner(&mapped) {
            return Ok(mapped.into());
        }
        let mut why = format!("{mapped:?} is no owner's name, which has letters, digits, _, - and @ only");
        if self.map.is_none() {
            let _ =
                write!(why, "; an admin can map the {what} to a name by spec.owner.map of the SubmitPolicy");
        }
        Err(why)
    }
}

/// Whether an owner stands for a namespace that is charged because nobody knows who created its jobs. Such jobs may
/// belong to several people.
pub fn is_namespace(owner: &str) -> bool {
    owner.starts_with(BY_NAMESPACE)
}

/// Whether a text is like a pattern, which may have one `*` for any characters.
pub fn is_like(text: &str, pattern: &str) -> bool {
    starred(text, pattern).is_some()
}

/// The part of a text that `*` stands for in a pattern that the text is like; the whole text if the pattern has no `*`.
fn starred<'a>(text: &'a str, pattern: &str) -> Option<&'a str> {
    match pattern.split_once('*') {
        None => (text == pattern).then_some(text),
        Some((start, end)) => text.strip_prefix(start)?.strip_suffix(end),
    }
}

/// Whether a text can be an owner. A dot cannot be in one: in a submitter's name, the owner stands behind the last dot.
fn is_owner(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '@');
    (1..=MOST).contains(&text.len()) && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(source: OwnerSource, user: &str, groups: &[&str]) -> (String, String) {
        let groups = groups.iter().map(|group| Arc::from(*group)).collect();
        let requester = Requester { user: user.into(), groups };
        let rule = OwnerRule::new(source, None);
        let owner = rule.decide(Ok(&requester), "lab");
        let problem = rule.problem(Ok(&requester), owner.as_deref());
        (
            owner.unwrap_or_default().to_string(),
            problem.map(|problem| problem.to_string()).unwrap_or_default(),
        )
    }

    #[test]
    fn a_user_owns_what_the_user_created() {
        for user in ["alice", "alice@site", "A_b-3"] {
            assert_eq!(decided(OwnerSource::User, user, &[]), (user.to_owned(), String::new()));
        }
    }

    #[test]
    fn a_group_owns_by_the_part_that_the_star_stands_for() {
        let by = |pattern: &str| OwnerSource::Group(pattern.into());
        let groups = ["system:authenticated", "owner:physics", "owner:biology"];
        assert_eq!(decided(by("owner:*"), "x", &groups).0, "physics");
        assert_eq!(decided(by("owner:bio*"), "x", &groups).0, "logy");
        let (owner, why) = decided(by("team:*"), "x", &groups);
        assert_eq!(owner, "namespace:lab");
        assert_eq!(why, "the job is charged to its namespace, lab: no group of the user x is like team:*");
        let kept = OwnerRule::new(by("owner:*"), None).usable_groups(groups);
        assert_eq!(kept, [Arc::from("owner:physics")]);
    }

    /// A submitter is GROUP.OWNER: a user with a dot could be charged as another user of a group.
    #[test]
    fn what_cannot_be_an_owner_is_charged_to_the_namespace_and_nobody_can_pass_for_a_namespace() {
        for user in
            ["physics.alice", "system:serviceaccount:ci:runner", "namespace:other", "", "a b", "é", "a/b"]
        {
            let (owner, why) = decided(OwnerSource::User, user, &[]);
            assert_eq!(owner, "namespace:lab", "{user}");
            assert!(why.contains("is no owner's name"), "{why}");
        }
        let rule = OwnerRule::new(OwnerSource::User, None);
        for unknown in [UnknownCreator::default(), UnknownCreator::because("nobody looked")] {
            let owner = rule.decide(Err(&unknown), "lab");
            assert_eq!(owner.as_deref(), Some("namespace:lab"));
            let problem = rule.problem(Err(&unknown), owner.as_deref()).unwrap();
            assert!(problem.message.ends_with(&format!("lab: {unknown}")), "{problem}");
        }
    }

    #[test]
    fn by_namespace_the_job_itself_says_whose_it_is() {
        assert_eq!(decided(OwnerSource::Namespace, "alice", &[]), (String::new(), String::new()));
    }

    #[test]
    fn a_recorded_owner_says_that_the_namespace_is_charged() {
        let (rule, unknown) = (OwnerRule::default(), UnknownCreator::default());
        assert!(rule.problem(Err(&unknown), Some("namespace:lab")).is_some());
        assert_eq!(rule.problem(Err(&unknown), Some("lab")), None);
        assert_eq!(rule.problem(Err(&unknown), None), None);
    }
}
