//! Objects that govern the pool: `SubmitPolicy`, of which the first by name counts, and Negotiator. Of each the last spec that was
//! valid counts.

use std::sync::Arc;

use super::job::Problem;

/// What the shell sees of such an object; `C` is what its spec says.
#[derive(Clone, Debug)]
pub struct GoverningFacts<C> {
    /// The object's name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
    /// `metadata.generation`.
    pub generation: i64,
    /// What its spec says, or everything that is wrong with it.
    pub config: Result<Arc<C>, Vec<Problem>>,
    /// What of its text does nothing, or not what it seems to; none where it has no text.
    pub warnings: Option<Vec<Problem>>,
    /// The spec as text, to be recorded once it is accepted.
    pub spec: Arc<str>,
    /// Where this spec cannot be used: what the one says that the object's status records as accepted, and that one.
    pub recorded: Option<(Arc<C>, Arc<str>)>,
}

/// Such an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Governing<C> {
    /// Its uid.
    pub uid: Arc<str>,
    /// The `metadata.generation` last seen.
    pub generation: i64,
    /// What the last spec said that was valid. It stays in force while a newer one is not.
    pub config: Option<Arc<C>>,
    /// That spec, as text: the object's status records it, so that a new leader knows it.
    pub accepted: Option<Arc<str>>,
    /// What is wrong with the present one.
    pub problems: Vec<Problem>,
    /// What of its text does nothing, or not what it seems to; none where it has no text.
    pub warnings: Option<Vec<Problem>>,
}

impl<C> Governing<C> {
    /// What is known of an object that was seen, and perhaps before.
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

    /// What holds while the present spec is not accepted, as the end of a message; `others` says whether others do its work.
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
