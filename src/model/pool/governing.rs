//! Objects that govern the pool: NodePolicies, of which each selects nodes; SubmitPolicies, of which the first by name counts; and
//! Negotiators. For each object the last valid spec counts.

use std::sync::Arc;

use super::job::Problem;

/// A spec that is valid.
#[derive(Clone, Debug)]
pub struct ValidSpec<C, S = ()> {
    /// The content of the spec.
    pub config: Arc<C>,
    /// The spec as text.
    pub text: Arc<str>,
    /// The selection of the spec.
    pub selection: S,
}

/// The facts of a governing object, as the shell sees them. `C` is the type of the spec's content, and `S` says which nodes the
/// spec selects; `()` if the object governs all of the pool.
#[derive(Clone, Debug)]
pub struct GoverningFacts<C, S = ()> {
    /// The object's name.
    pub name: Arc<str>,
    /// The object's uid.
    pub uid: Arc<str>,
    /// `metadata.generation`.
    pub generation: i64,
    /// The selection of the spec, even if the spec is not valid.
    pub selection: S,
    /// The content of the spec, or everything that is wrong with the spec.
    pub config: Result<Arc<C>, Vec<Problem>>,
    /// The parts of the text that have no effect, or another effect than they seem to; `None` if the object has no
    /// text.
    pub warnings: Option<Vec<Problem>>,
    /// The spec as text, to be recorded once it is accepted.
    pub spec: Arc<str>,
    /// For a spec that is not valid: the spec that the object's status records as accepted.
    pub recorded: Option<Box<ValidSpec<C, S>>>,
}

/// A governing object.
#[derive(Clone, Debug, PartialEq)]
pub struct Governing<C, S = ()> {
    /// The object's uid.
    pub uid: Arc<str>,
    /// The `metadata.generation` last seen.
    pub generation: i64,
    /// The selection of the last valid spec, or of the present spec if no spec has been valid.
    pub selection: S,
    /// The last valid spec, which stays in force while a newer spec is not valid.
    pub config: Option<Arc<C>>,
    /// The last valid spec as text. The object's status records it, so that a new leader knows it.
    pub accepted: Option<Arc<str>>,
    /// The problems with the present spec.
    pub problems: Vec<Problem>,
    /// The parts of the text that have no effect, or another effect than they seem to; `None` if the object has no
    /// text.
    pub warnings: Option<Vec<Problem>>,
}

/// The rule that holds while no spec of an object has been valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// HTCondor's defaults hold.
    Defaults,
    /// The object does nothing; others do its work.
    Nothing,
    /// The selected nodes offer nothing.
    NoOffers,
}

impl<C, S: Clone> Governing<C, S> {
    /// The state of an object after `facts` were seen; `before` is its state until then.
    pub fn seen(facts: GoverningFacts<C, S>, before: Option<&Self>) -> Self {
        let (valid, problems) = match facts.config {
            Ok(config) => {
                let selection = facts.selection.clone();
                (Some(ValidSpec { config, text: facts.spec, selection }), Vec::new())
            }
            Err(problems) => {
                let recorded = || facts.recorded.map(|recorded| *recorded);
                (before.and_then(Self::valid).or_else(recorded), problems)
            }
        };
        let (config, accepted, selection) = match valid {
            Some(valid) => (Some(valid.config), Some(valid.text), valid.selection),
            None => (None, None, facts.selection),
        };
        Self {
            uid: facts.uid,
            generation: facts.generation,
            selection,
            config,
            accepted,
            problems,
            warnings: facts.warnings,
        }
    }

    /// The last valid spec.
    fn valid(&self) -> Option<ValidSpec<C, S>> {
        let (config, text) = self.config.clone().zip(self.accepted.clone())?;
        Some(ValidSpec { config, text, selection: self.selection.clone() })
    }
}

impl<C, S> Governing<C, S> {
    /// The end of a message about a spec that is not accepted: says what is in force meanwhile.
    pub fn meanwhile(&self, fallback: Fallback) -> &'static str {
        match fallback {
            _ if self.config.is_some() => "; until it is corrected the last accepted spec stays in force",
            Fallback::Defaults => "; until it is corrected HTCondor's defaults hold",
            Fallback::Nothing => "; until it is corrected it does nothing",
            Fallback::NoOffers => "; until it is corrected the nodes that it selects offer nothing",
        }
    }
}
