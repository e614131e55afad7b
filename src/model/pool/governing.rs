//! Objects that govern the pool: SubmitPolicies, of which the first by name counts, and Negotiators. For each object
//! the last valid spec counts.

use std::sync::Arc;

use super::job::Problem;

/// The facts of a governing object, as the shell sees them; `C` is the type of the spec's content.
#[derive(Clone, Debug)]
pub struct GoverningFacts<C> {
    /// The object's name.
    pub name: Arc<str>,
    /// The object's uid.
    pub uid: Arc<str>,
    /// `metadata.generation`.
    pub generation: i64,
    /// The content of the spec, or everything that is wrong with the spec.
    pub config: Result<Arc<C>, Vec<Problem>>,
    /// The parts of the text that have no effect, or another effect than they seem to; `None` if the object has no
    /// text.
    pub warnings: Option<Vec<Problem>>,
    /// The spec as text, to be recorded once it is accepted.
    pub spec: Arc<str>,
    /// For a spec that is not valid: the spec that the object's status records as accepted, read and as text.
    pub recorded: Option<(Arc<C>, Arc<str>)>,
}

/// A governing object.
#[derive(Clone, Debug, PartialEq)]
pub struct Governing<C> {
    /// The object's uid.
    pub uid: Arc<str>,
    /// The `metadata.generation` last seen.
    pub generation: i64,
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

impl<C> Governing<C> {
    /// The state of an object after `facts` were seen; `before` is its state until then.
    pub fn seen(facts: GoverningFacts<C>, before: Option<&Self>) -> Self {
        let (found, problems) = match facts.config {
            Ok(config) => (Some((config, facts.spec)), Vec::new()),
            Err(problems) => {
                let kept = before.and_then(|before| before.config.clone().zip(before.accepted.clone()));
                (kept.or(facts.recorded), problems)
            }
        };
        let (config, accepted) = found.unzip();
        Self {
            uid: facts.uid,
            generation: facts.generation,
            config,
            accepted,
            problems,
            warnings: facts.warnings,
        }
    }

    /// The end of a message about a spec that is not accepted: says what is in force meanwhile. `others` says whether
    /// other objects do this object's work.
    pub fn meanwhile(&self, others: bool) -> &'static str {
        if self.config.is_some() {
            "; until it is corrected the last accepted spec stays in force"
        } else if others {
            "; until it is corrected it does nothing"
        } else {
            "; until it is corrected HTCondor's defaults hold"
        }
    }
}
