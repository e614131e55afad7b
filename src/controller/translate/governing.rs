//! Objects of which one governs the pool, with configuration text: what their translations have in common.

use std::sync::Arc;

use kube::ResourceExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use model::pool::{GoverningFacts, Problem};

/// What a spec says, or everything that is wrong with it; and what of its text does nothing, if it has one.
pub(super) type Read<C> = (Result<Arc<C>, Vec<Problem>>, Option<Vec<Problem>>);

/// What the pool knows of an object. Where its spec cannot be used: also of the one that its status records as accepted.
pub(super) fn facts<S: Serialize + DeserializeOwned, C>(
    object: &impl ResourceExt,
    spec: &S,
    accepted: Option<&str>,
    read: impl Fn(&S) -> Read<C>,
) -> GoverningFacts<C> {
    let (config, warnings) = read(spec);
    let recorded = || {
        let record = accepted?;
        let (config, _) = read(&serde_json::from_str(record).ok()?);
        Some((config.ok()?, record.into()))
    };
    GoverningFacts {
        name: object.name_any().into(),
        uid: object.uid().unwrap_or_default().into(),
        generation: object.meta().generation.unwrap_or(1),
        recorded: if config.is_err() { recorded() } else { None },
        config,
        warnings,
        spec: serde_json::to_string(spec).unwrap_or_default().into(),
    }
}
