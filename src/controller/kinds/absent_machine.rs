//! AbsentMachines: machines whose nodes went, as objects, which a new leader reads back.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::ObjectMeta;

use super::sighting::told;
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use crate::convert::{kube_time, label_value, time};
use api::{AbsentMachine, AbsentMachineSpec, AbsentMachineStatus, AbsentSlot, labels};
use model::pool::{AbsentMachine as Absent, Document, Event, MachineName, Pool, SlotName, Time};

impl Custom for AbsentMachine {
    /// Since when the machine is absent; `None` if the object does not say so.
    type Kept = Option<Time>;
    const KIND: Kind = Kind::of(&("AbsentMachine", "absentmachines"));
    const STAGE: Stage = Stage::Machines;

    fn keep(object: &Self) -> Self::Kept {
        object.status.as_ref()?.since.as_ref().map(time)
    }

    fn there(object: Self, _: &Self::Kept) -> Vec<News> {
        facts(&object).map_or_else(|| stale(&object.name_any()), |absent| told(Event::Absent(absent)))
    }

    fn gone(names: &Names, since: Self::Kept) -> Vec<News> {
        let machine = names.name.as_str().into();
        since.map_or_else(|| stale(&names.name), |since| told(Event::AbsentGone { machine, since }))
    }
}

impl Shown for AbsentMachine {
    type Subject = MachineName;

    fn subject(document: &Document) -> Option<&MachineName> {
        match document {
            Document::AbsentMachine(name) => Some(name),
            _ => None,
        }
    }

    fn object(_: &Pool, name: &MachineName) -> Option<ObjectKey> {
        Some(Self::KIND.object(name.to_string()))
    }

    fn render(pool: &Pool, name: &MachineName, _: &[Condition], _: Time) -> Rendered {
        pool.absent(name).map_or(Rendered::Absent, rendered)
    }
}

/// The object is compared with what the pool says, and written or deleted if it differs.
fn stale(name: &str) -> Vec<News> {
    vec![News::Stale(Document::AbsentMachine(name.into()))]
}

/// Reads an absent machine for the pool; `None` without the time since when the machine is absent, or without a slot.
fn facts(object: &AbsentMachine) -> Option<Absent> {
    let status = object.status.as_ref()?;
    let slots = status.slots.iter().filter_map(|slot| {
        let name = SlotName::parse(&slot.name).ok()?;
        Some((name, slot.ad.as_str().into()))
    });
    let slots: Vec<_> = slots.collect();
    let since = time(status.since.as_ref()?);
    let until = status.until.as_ref().map(time);
    (!slots.is_empty()).then(|| Absent { name: object.name_any().into(), since, until, slots })
}

fn rendered(absent: &Absent) -> Rendered {
    let metadata = ObjectMeta {
        name: Some(absent.name.to_string()),
        labels: Some([(labels::NODE.to_owned(), label_value(absent.name.as_str()))].into()),
        ..ObjectMeta::default()
    };
    let slot = |(name, ad): &(SlotName, Arc<str>)| AbsentSlot { name: name.to_string(), ad: ad.to_string() };
    let status = AbsentMachineStatus {
        since: Some(kube_time(absent.since)),
        until: absent.until.map(kube_time),
        slots: absent.slots.iter().map(slot).collect(),
    };
    let spec = AbsentMachineSpec { node: absent.name.to_string() };
    Rendered::object(&AbsentMachine { metadata, spec, status: None }, &status)
}
