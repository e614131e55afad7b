//! Events about submitters and groups.

use super::Pool;
use super::accountant::Correction;
use super::event::SubmitterFacts;
use super::ids::SubmitterName;
use super::job::Problem;
use super::marks::Change;
use super::negotiators::NegotiatorId;
use super::policy::Group;
use super::time::Time;

impl Pool {
    pub(super) fn submitter(&mut self, facts: SubmitterFacts, now: Time) {
        let synced = self.synced;
        let changed = self.edit_submitter(&facts.name, now, |submitter| {
            let before = (submitter.factor, submitter.ceiling, submitter.floor);
            (submitter.generation, submitter.by_hand) = (Some(facts.generation), !facts.made);
            (submitter.factor, submitter.ceiling, submitter.floor) =
                (facts.factor, facts.ceiling, facts.floor);
            let other = std::mem::replace(&mut submitter.in_vain, facts.in_vain) != submitter.in_vain;
            // After the start, the accounts in memory are newer than those in the object, which the operator itself wrote.
            if !synced && facts.accounts.iter().next().is_some() {
                submitter.accounts = facts.accounts;
                submitter.corrected = facts.corrected;
            }
            other || before != (submitter.factor, submitter.ceiling, submitter.floor)
        });
        if self.correct(&facts.name, facts.correction.as_ref(), facts.misnamed, now) || changed {
            self.changed(Change::SubmitterSet(&facts.name));
        }
    }

    /// Makes the correction that the Submitter object asks for, or notes why the correction cannot be made, beside the problem with the
    /// object's name. Returns whether anything changed.
    fn correct(
        &mut self,
        name: &SubmitterName,
        correction: Option<&Correction>,
        misnamed: Option<Problem>,
        now: Time,
    ) -> bool {
        let with = correction.and_then(|correction| correction.negotiator.clone());
        let unknown = with.as_ref().filter(|with| !self.negotiators.contains_key(*with)).map(|with| Problem {
            reason: "NegotiatorNotFound",
            field: "spec.correction.negotiator".to_owned(),
            message: format!("there is no Negotiator {with}, and no account with it is corrected; name one that there is"),
        });
        let id = with.map_or_else(|| self.first_negotiator(), NegotiatorId::Named);
        let halflife = self.halflife_of(&id);
        let problems: Vec<Problem> = misnamed.into_iter().chain(unknown).collect();
        let makes = correction.filter(|_| problems.is_empty());
        self.edit_submitter(name, now, |submitter| {
            let other = std::mem::replace(&mut submitter.problems, problems) != submitter.problems;
            makes.is_some_and(|correction| submitter.correct(correction, &id, now, halflife)) || other
        })
    }

    pub(super) fn group_seen(&mut self, group: Group) {
        let before = self.groups.by_object().get(&group.object);
        if before != Some(&group) {
            if before.is_none_or(|before| before.priority_factor != group.priority_factor) {
                self.changed(Change::Priorities);
            }
            self.groups.insert(group);
            self.changed(Change::Groups);
        }
    }
}
