//! Notices as Kubernetes events. A notice that is given again within [`SERIES`] is counted in the event's series, as
//! `kubectl describe` shows it. A notice with another text is an event of its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use super::calls::once;
use super::{Context, Reply};
use crate::kinds::Unread;
use answers::Item;
use answers::wire;
use model::pool::{Notice, Subject, Time};

/// For how long after its last occurrence an event is counted on: as long as in client-go.
const SERIES: Duration = Duration::from_mins(6);
/// How many events are remembered.
const REMEMBERED: usize = 10_000;
/// The controller that events name as theirs.
const CONTROLLER: &str = "slotwright";

/// The events that were written, by the object's uid and the reason.
#[derive(Debug, Default)]
pub struct WrittenEvents(Mutex<BTreeMap<(String, &'static str), Occurrence>>);

/// An event that was written.
#[derive(Clone, Debug)]
struct Occurrence {
    note: String,
    namespace: String,
    name: String,
    count: i32,
    last: Time,
}

impl WrittenEvents {
    /// The event of the same series with the same note, if its last occurrence is less than [`SERIES`] ago.
    fn same(&self, told: &EventContent, now: Time) -> Option<Occurrence> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written
            .get(&told.key())
            .filter(|before| before.note == told.note && now.since(before.last) < SERIES)
            .cloned()
    }

    fn keep(&self, told: &EventContent, occurrence: Occurrence) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() > REMEMBERED {
            written.clear();
        }
        written.insert(told.key(), occurrence);
    }
}

/// The content of an event.
struct EventContent {
    about: ObjectReference,
    warning: bool,
    reason: &'static str,
    action: &'static str,
    note: String,
}

impl EventContent {
    /// The key of the event's series: the uid of the object, and the reason.
    fn key(&self) -> (String, &'static str) {
        (self.about.uid.clone().unwrap_or_default(), self.reason)
    }
}

/// Writes a notice as an event.
pub(super) async fn tell(context: &Context, notice: Notice) -> Vec<Reply> {
    let about = reference(&notice);
    let Notice { warning, reason, action, note, .. } = notice;
    write(context, EventContent { about, warning, reason, action, note }).await
}

/// Warns of an object that cannot be decoded, if its name is known.
pub(super) async fn unread(context: &Context, object: Unread) -> Vec<Reply> {
    if object.name.is_empty() {
        return Vec::new();
    }
    let about = ObjectReference {
        api_version: Some(object.api_version),
        kind: Some(object.kind.name().to_owned()),
        namespace: object.namespace,
        name: Some(object.name),
        uid: Some(object.uid).filter(|uid| !uid.is_empty()),
        ..ObjectReference::default()
    };
    let note = format!(
        "the operator cannot decode this object, and goes on with the object as last known: {}",
        object.why
    );
    write(context, EventContent { about, warning: true, reason: "Undecodable", action: "Read", note }).await
}

/// Writes an event. Nothing depends on an event: there is one attempt.
async fn write(context: &Context, told: EventContent) -> Vec<Reply> {
    match once(context, context.tools.places.limit(&context.lane), publish(context, &told)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::debug!(error = %answers::chain(&error), "an event was not written");
        }
        Err(_) => tracing::debug!("an event was not written in time"),
    }
    Vec::new()
}

async fn publish(context: &Context, told: &EventContent) -> Result<(), kube::Error> {
    let now = context.tools.clock.now();
    let occurrence = match context.tools.written.same(told, now) {
        Some(before) => match again(context, before).await {
            // The server forgets events after an hour.
            Err(kube::Error::Api(status)) if status.is_not_found() => anew(context, told).await?,
            other => other?,
        },
        None => anew(context, told).await?,
    };
    context.tools.written.keep(told, occurrence);
    Ok(())
}

async fn again(context: &Context, before: Occurrence) -> Result<Occurrence, kube::Error> {
    let count = before.count.saturating_add(1);
    let series = EventSeries { count, last_observed_time: MicroTime(context.tools.clock.timestamp()) };
    let events: Api<Item<Event>> = Api::namespaced(context.tools.client.clone(), &before.namespace);
    let patch = Patch::Merge(json!({"series": series}));
    events.patch(&before.name, &PatchParams::default(), &patch).await?;
    Ok(Occurrence { count, last: context.tools.clock.now(), ..before })
}

async fn anew(context: &Context, told: &EventContent) -> Result<Occurrence, kube::Error> {
    let event = event(context, told);
    let about_namespace = event.regarding.as_ref().and_then(|about| about.namespace.clone());
    let mut namespace = about_namespace.clone().unwrap_or_else(|| "default".to_owned());
    let create = async |namespace: &str| {
        let events: Api<Item<Event>> = Api::namespaced(context.tools.client.clone(), namespace);
        wire::make(&events, &PostParams::default(), &event).await
    };
    let made = match create(&namespace).await {
        // Servers before 1.21 take events about objects without a namespace in `kube-system` only.
        Err(kube::Error::Api(status)) if status.code == 422 && about_namespace.is_none() => {
            "kube-system".clone_into(&mut namespace);
            create(&namespace).await?
        }
        other => other?,
    };
    let name = made.metadata().name.clone().unwrap_or_default();
    Ok(Occurrence { note: told.note.clone(), namespace, name, count: 1, last: context.tools.clock.now() })
}

fn event(context: &Context, told: &EventContent) -> Event {
    let now = context.tools.clock.timestamp();
    let about = told.about.name.as_deref().unwrap_or(CONTROLLER);
    Event {
        metadata: ObjectMeta { name: Some(name(about, context.tools.number(now))), ..ObjectMeta::default() },
        action: Some(told.action.to_owned()),
        reason: Some(told.reason.to_owned()),
        note: Some(beginning(&told.note, MOST_NOTE).to_owned()),
        type_: Some(if told.warning { "Warning" } else { "Normal" }.to_owned()),
        event_time: Some(MicroTime(now)),
        regarding: Some(told.about.clone()),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(context.tools.identity.to_string()),
        ..Event::default()
    }
}

/// The most bytes of an event's note that the API server takes.
const MOST_NOTE: usize = 1024;
/// The most bytes of an object's name in the name of an event, which has 253 at most. A number in hexadecimal digits follows.
const MOST_NAME: usize = 220;

/// The name of an event about an object of this name.
fn name(about: &str, number: i128) -> String {
    format!("{}.{number:x}", beginning(about, MOST_NAME).trim_end_matches(['-', '.']))
}

/// The beginning of a text: as many whole characters as fit into so many bytes.
fn beginning(text: &str, most: usize) -> &str {
    text.split_at_checked(text.floor_char_boundary(most)).map_or(text, |(beginning, _)| beginning)
}

fn reference(notice: &Notice) -> ObjectReference {
    let (kind, namespace, name) = match &notice.about {
        Subject::Job(job) => ("HTCJob", Some(job.namespace.to_string()), job.name.to_string()),
        Subject::Policy { name, .. } => ("NodePolicy", None, name.to_string()),
        Subject::Negotiator { name, .. } => ("Negotiator", None, name.to_string()),
        Subject::SubmitPolicy { name, .. } => ("SubmitPolicy", None, name.to_string()),
        Subject::Drain { name, .. } => ("DrainRequest", None, name.to_string()),
    };
    ObjectReference {
        api_version: Some(format!("{}/{}", api::GROUP, api::VERSION)),
        kind: Some(kind.to_owned()),
        namespace,
        name: Some(name),
        uid: Some(notice.about.uid().to_owned()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_and_a_name_fit_into_an_event() {
        assert_eq!(beginning("held", MOST_NOTE), "held");
        let note = beginning(&"\u{e9}t\u{e9} ".repeat(400), MOST_NOTE).to_owned();
        assert!((MOST_NOTE - 1..=MOST_NOTE).contains(&note.len()), "{}", note.len());
        assert_eq!(name("pi", 255), "pi.ff");
        let long = name(&format!("{}-{}", "a".repeat(MOST_NAME - 1), "b".repeat(30)), i128::from(u64::MAX));
        assert_eq!(long, format!("{}.ffffffffffffffff", "a".repeat(MOST_NAME - 1)));
    }
}
