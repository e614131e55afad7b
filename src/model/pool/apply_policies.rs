//! Events about NodePolicies, SubmitPolicies and Negotiators.

use std::collections::BTreeMap;

use super::Pool;
use super::effect::{Notice, Subject};
use super::event::{NegotiatorFacts, PolicyFacts, SubmitPolicyFacts};
use super::governing::{Fallback, Governing, GoverningFacts};
use super::ids::PolicyName;
use super::job::Problem;
use super::marks::Change;
use super::time::Time;

/// The problems and warnings of a policy.
#[derive(Clone, Copy)]
struct Findings<'a> {
    problems: &'a [Problem],
    warnings: &'a [Problem],
}

impl<'a> Findings<'a> {
    fn of(problems: &'a [Problem], warnings: Option<&'a Vec<Problem>>) -> Self {
        Self { problems, warnings: warnings.map(Vec::as_slice).unwrap_or_default() }
    }

    /// The notices for people about a policy that was seen: its problems and its warnings, if they differ from those
    /// `before`. `meanwhile` ends the text about problems: it says what is in force until they are corrected.
    fn notices(self, about: &Subject, meanwhile: &str, before: Option<Findings<'_>>) -> Vec<Notice> {
        let note = |problems: &[Problem], end: &str| {
            let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!("{}{end}", text.join("; "))
        };
        let notice =
            |reason, note| Notice { about: about.clone(), warning: true, reason, action: "Reading", note };
        let mut notices = Vec::new();
        if let Some(first) = self.problems.first()
            && before.is_none_or(|before| before.problems != self.problems)
        {
            notices.push(notice(first.reason, note(self.problems, meanwhile)));
        }
        if let Some(first) = self.warnings.first()
            && before.is_none_or(|before| before.warnings != self.warnings)
        {
            notices.push(notice(first.reason, note(self.warnings, "")));
        }
        notices
    }
}

/// Stores an object that was seen, and returns the notices about it; `None` if the object is the same as before.
fn see<K: Ord, C: PartialEq, S: Clone + PartialEq>(
    all: &mut BTreeMap<K, Governing<C, S>>,
    name: K,
    facts: GoverningFacts<C, S>,
    about: &Subject,
    fallback: Fallback,
) -> Option<Vec<Notice>> {
    let before = all.get(&name);
    let object = Governing::seen(facts, before);
    if before == Some(&object) {
        return None;
    }
    let told = before.map(|before| Findings::of(&before.problems, before.warnings.as_ref()));
    let found = Findings::of(&object.problems, object.warnings.as_ref());
    let notices = found.notices(about, object.meanwhile(fallback), told);
    all.insert(name, object);
    Some(notices)
}

impl Pool {
    pub(super) fn policy(&mut self, facts: PolicyFacts) {
        let name = PolicyName::from(&*facts.name);
        let about = Subject::Policy { name: name.clone(), uid: facts.uid.clone() };
        if let Some(notices) = see(&mut self.policies, name, facts, &about, Fallback::NoOffers) {
            self.notices.extend(notices);
            self.changed(Change::Policies);
        }
    }

    pub(super) fn submit_policy(&mut self, facts: SubmitPolicyFacts, now: Time) {
        let name = facts.name.clone();
        let about = Subject::SubmitPolicy { name: name.clone(), uid: facts.uid.clone() };
        if let Some(notices) = see(&mut self.submit_policies, name, facts, &about, Fallback::Defaults) {
            self.notices.extend(notices);
            self.changed(Change::SubmitPolicies);
            self.judge_refused_jobs(now);
            self.plan_evaluations(now);
        }
    }

    pub(super) fn negotiator_seen(&mut self, facts: NegotiatorFacts, now: Time) {
        let name = facts.name.clone();
        let about = Subject::Negotiator { name: name.clone(), uid: facts.uid.clone() };
        let fallback = self.negotiator_fallback(&name);
        if let Some(notices) = see(&mut self.negotiators, name, facts, &about, fallback) {
            self.notices.extend(notices);
            self.negotiators_changed(now);
        }
    }
}
