//! The start: what watches tell is handed to the pool in the order of stages, so that the pool knows whatever an object refers to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cache::Kind;
use super::kinds::{self, Stage};
use model::pool::{Event, PodFacts};

/// The kinds whose objects are not all told yet, and what waits for them.
///
/// The pool is told of a stage as soon as all kinds of the stages before are told. Little waits then: mostly pods, until all Slots
/// are told.
#[derive(Debug)]
pub struct Start {
    awaited: BTreeMap<Kind, Stage>,
    waiting: BTreeMap<Stage, Vec<PoolEvent>>,
}

/// An event for the pool.
#[derive(Debug)]
pub enum PoolEvent {
    /// The event itself.
    Event(Box<Event>),
    /// A pod of a proc was seen. The watch keeps the facts, too.
    Pod(Arc<PodFacts>),
}

impl From<Event> for PoolEvent {
    fn from(event: Event) -> Self {
        Self::Event(Box::new(event))
    }
}

impl From<PoolEvent> for Event {
    fn from(told: PoolEvent) -> Self {
        match told {
            PoolEvent::Event(event) => *event,
            PoolEvent::Pod(facts) => Self::Pod(Arc::unwrap_or_clone(facts)),
        }
    }
}

impl Start {
    /// A start at which nothing has been told.
    pub fn new() -> Self {
        let awaited = kinds::ALL.iter().filter(|entry| entry.awaited);
        Self { awaited: awaited.map(|entry| (entry.kind, entry.stage)).collect(), waiting: BTreeMap::new() }
    }

    /// Returns the event if the pool may be told of it now. If not, keeps the event until its stage has come.
    pub fn told(&mut self, stage: Stage, told: PoolEvent) -> Option<PoolEvent> {
        if self.has_come(stage) {
            return Some(told);
        }
        self.waiting.entry(stage).or_default().push(told);
        None
    }

    /// Notes that every object of a kind has been told. Returns the events whose stage has come by that, in the order in which the
    /// pool is to be told.
    pub fn all_told(&mut self, kind: Kind) -> impl Iterator<Item = PoolEvent> + use<> {
        self.awaited.remove(&kind);
        let stages: Vec<Stage> = self.waiting.keys().copied().filter(|stage| self.has_come(*stage)).collect();
        let come: Vec<_> = stages.iter().filter_map(|stage| self.waiting.remove(stage)).collect();
        come.into_iter().flatten()
    }

    /// Whether all awaited kinds have been told.
    pub fn is_over(&self) -> bool {
        self.awaited.is_empty()
    }

    fn has_come(&self, stage: Stage) -> bool {
        self.awaited.values().all(|of| *of >= stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str) -> PoolEvent {
        Event::LimitGone(name.into()).into()
    }

    fn names(told: impl IntoIterator<Item = PoolEvent>) -> Vec<String> {
        told.into_iter()
            .map(|told| match told.into() {
                Event::LimitGone(name) => name.to_string(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn each_stage_waits_for_all_kinds_of_the_stages_before() {
        let mut start = Start::new();
        assert_eq!(
            names(start.told(Stage::Negotiators, event("negotiator"))),
            ["negotiator"],
            "nothing comes before"
        );
        for (stage, name) in
            [(Stage::Pods, "pod"), (Stage::Slots, "slot"), (Stage::Jobs, "job"), (Stage::Pods, "pod 2")]
        {
            assert!(start.told(stage, event(name)).is_none());
        }
        let mut order = Vec::new();
        let mut kinds: Vec<(Stage, Kind)> =
            kinds::ALL.iter().filter(|entry| entry.awaited).map(|entry| (entry.stage, entry.kind)).collect();
        // Slots and pods are told first, though their stages come last.
        kinds.sort_by_key(|(stage, kind)| (*stage < Stage::Slots, *stage, *kind));
        for (_, kind) in kinds {
            assert!(!start.is_over());
            order.push(names(start.all_told(kind)));
        }
        order.retain(|told| !told.is_empty());
        assert_eq!(order, [vec!["job"], vec!["slot", "pod", "pod 2"]]);
        assert!(start.is_over());
    }

    #[test]
    fn an_event_of_a_stage_that_has_come_waits_no_longer() {
        let mut start = Start::new();
        for entry in kinds::ALL.iter().filter(|entry| entry.stage < Stage::Slots) {
            assert_eq!(names(start.all_told(entry.kind)), [""; 0]);
        }
        assert_eq!(names(start.told(Stage::Slots, event("slot"))), ["slot"]);
        assert_eq!(names(start.told(Stage::Jobs, event("a job that changed"))), ["a job that changed"]);
        assert!(start.told(Stage::Pods, event("pod")).is_none());
    }
}
