//! Events about NodePolicies, SubmitPolicies and Negotiators.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Pool;
use super::effect::{Notice, Subject};
use super::event::{NegotiatorFacts, PolicyFacts, SubmitPolicyFacts};
use super::governing::{Governing, GoverningFacts};
use super::job::Problem;
use super::marks::Change;
use super::policy::NodePolicy;
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
/// `others` says whether other objects do its work while its spec is not valid.
fn see<C: PartialEq>(
    all: &mut BTreeMap<Arc<str>, Governing<C>>,
    facts: GoverningFacts<C>,
    about: &Subject,
    others: bool,
) -> Option<Vec<Notice>> {
    let name = facts.name.clone();
    let before = all.get(&name);
    let object = Governing::seen(facts, before);
    if before == Some(&object) {
        return None;
    }
    let told = before.map(|before| Findings::of(&before.problems, before.warnings.as_ref()));
    let found = Findings::of(&object.problems, object.warnings.as_ref());
    let notices = found.notices(about, object.meanwhile(others), told);
    all.insert(name, object);
    Some(notices)
}

impl Pool {
    pub(super) fn policy(&mut self, facts: PolicyFacts) {
        let mut policy = NodePolicy {
            uid: facts.uid,
            generation: facts.generation,
            selector: facts.selector,
            precedence: facts.precedence,
            config: None,
            accepted: None,
            problems: Vec::new(),
            warnings: facts.warnings,
        };
        match (
            facts.config,
            self.policies.get(&facts.name).filter(|old| old.config.is_some()),
            facts.recorded,
        ) {
            (Ok(config), ..) => (policy.config, policy.accepted) = (Some(config), Some(facts.spec)),
            (Err(problems), Some(old), _) => {
                policy = NodePolicy {
                    uid: policy.uid,
                    generation: policy.generation,
                    problems,
                    warnings: policy.warnings,
                    ..old.clone()
                };
            }
            (Err(problems), None, recorded) => {
                policy.problems = problems;
                if let Some((Ok(config), recorded)) =
                    recorded.map(|recorded| (recorded.config.clone(), recorded))
                {
                    (policy.selector, policy.precedence) = (recorded.selector, recorded.precedence);
                    (policy.config, policy.accepted) = (Some(config), Some(recorded.spec));
                }
            }
        }
        let before = self.policies.get(&facts.name);
        if before != Some(&policy) {
            let about = Subject::Policy { name: facts.name.clone(), uid: policy.uid.clone() };
            let told = before.map(|before| Findings::of(&before.problems, before.warnings.as_ref()));
            let found = Findings::of(&policy.problems, policy.warnings.as_ref());
            let notices = found.notices(&about, policy.meanwhile(), told);
            self.notices.extend(notices);
            self.policies.insert(facts.name.clone(), policy);
            self.changed(Change::Policies);
        }
    }

    pub(super) fn submit_policy(&mut self, facts: SubmitPolicyFacts, now: Time) {
        let about = Subject::SubmitPolicy { name: facts.name.clone(), uid: facts.uid.clone() };
        if let Some(notices) = see(&mut self.submit_policies, facts, &about, false) {
            self.notices.extend(notices);
            self.changed(Change::SubmitPolicies);
            self.judge_refused_jobs(now);
            self.plan_evaluations(now);
        }
    }

    pub(super) fn negotiator_seen(&mut self, facts: NegotiatorFacts, now: Time) {
        let about = Subject::Negotiator { name: facts.name.clone(), uid: facts.uid.clone() };
        let others = self.others_work(&facts.name);
        if let Some(notices) = see(&mut self.negotiators, facts, &about, others) {
            self.notices.extend(notices);
            self.negotiators_changed(now);
        }
    }
}
