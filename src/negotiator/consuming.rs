//! Slots with a consumption policy: they can be matched more than once in a cycle.
//!
//! Source: the manual, "condor_negotiator-Side Resource Consumption Policies".

use crate::classad::{Ad, Env, symmetric_match};
use crate::pool::slot_types::{Consumption, after, as_consumed, consumed, consumption, cost};

/// A slot that says what each match takes of it.
#[derive(Clone, Debug)]
pub(super) struct Consuming {
    /// The slot as the matches of this cycle leave it.
    pub(super) ad: Ad,
    /// What matches take of.
    resources: Vec<String>,
    /// `NumClaims`: how many matches it has left.
    claims: u64,
}

impl Consuming {
    /// The slot with this ad; none where it has no such policy.
    pub(super) fn of(ad: &Ad, env: &Env) -> Option<Self> {
        let resources = consumed(ad, env)?;
        let claims = ad.eval_attr("NumClaims", None, env).as_int();
        let claims = u64::try_from(claims.unwrap_or(1)).unwrap_or(0);
        Some(Self { ad: ad.clone(), resources, claims })
    }

    /// What a match with a job would take, if the two match.
    fn taken(&self, request: &Ad, env: &Env) -> Option<Consumption> {
        let taken = consumption(&self.ad, &self.resources, request, env).ok().filter(|_| self.claims > 0)?;
        symmetric_match(&as_consumed(request, &taken), &self.ad, env).then_some(taken)
    }

    /// Whether it matches a job.
    pub(super) fn matches(&self, request: &Ad, env: &Env) -> bool {
        self.taken(request, env).is_some()
    }

    /// What a match with a job costs: the slot's weight before it less that after it.
    pub(super) fn cost(&self, request: &Ad, env: &Env) -> Option<f64> {
        cost(&self.ad, &self.taken(request, env)?, env)
    }

    /// Takes what a match with a job takes. False, if no more can be matched with it.
    pub(super) fn take(&mut self, request: &Ad, env: &Env) -> bool {
        if let Some(taken) = self.taken(request, env) {
            self.ad = after(&self.ad, &taken, request, env);
        }
        self.claims = self.claims.saturating_sub(1);
        self.claims > 0
    }
}
