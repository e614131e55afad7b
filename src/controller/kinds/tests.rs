//! The list of kinds.

use super::*;
use model::pool::SlotName;

#[test]
fn every_document_is_of_one_kind() {
    let slot = SlotName::parse("slot1@n1").unwrap();
    let all = [
        Document::Job("u".into()),
        Document::Slot(slot.clone()),
        Document::PartitionableSlot(slot),
        Document::AbsentMachine("n1".into()),
        Document::Submitter("alice".into()),
        Document::Group("g".into()),
        Document::Policy("p".into()),
        Document::SubmitPolicy("s".into()),
        Document::Negotiator("n".into()),
        Document::Limit("l".into()),
        Document::Drain("d".into()),
    ];
    for document in all {
        // A new document belongs into the list above.
        match &document {
            Document::Job(_)
            | Document::Slot(_)
            | Document::PartitionableSlot(_)
            | Document::AbsentMachine(_)
            | Document::Submitter(_)
            | Document::Group(_)
            | Document::Policy(_)
            | Document::SubmitPolicy(_)
            | Document::Negotiator(_)
            | Document::Limit(_)
            | Document::Drain(_) => {}
        }
        let pool = Pool::default();
        let renders = |kind: &&Entry| {
            kind.status
                .is_some_and(|status| (status.render)(&pool, &document, &[], Time::default()).is_some())
        };
        assert_eq!(ALL.iter().filter(renders).count(), 1, "{document:?}");
    }
}

#[test]
fn every_kind_of_the_operators_own_is_watched() {
    for definition in api::definitions() {
        let names = definition.spec.names;
        let found = ALL
            .iter()
            .any(|entry| (entry.kind.name(), entry.kind.plural()) == (&*names.kind, &*names.plural));
        assert!(found, "{}", names.kind);
    }
}
