//! The metadata of objects, field by field.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Fields, Undecodable, times};

/// Reads the metadata of an object: all that can be read, and why something cannot. `managedFields` are not read.
pub(super) fn read(fields: Fields<'_>) -> (ObjectMeta, Option<Undecodable>) {
    let mut found = ObjectMeta::default();
    let mut wrong = None;
    let fields = match fields {
        Fields::Known(fields) => fields,
        Fields::Missing => return (found, None),
        Fields::Wrong => return (found, Some(Undecodable("metadata: expected an object".to_owned()))),
    };
    for (key, value) in &fields {
        let read = match key.as_ref() {
            "name" => set(&mut found.name, value),
            "namespace" => set(&mut found.namespace, value),
            "generateName" => set(&mut found.generate_name, value),
            "uid" => set(&mut found.uid, value),
            "resourceVersion" => set(&mut found.resource_version, value),
            "generation" => set(&mut found.generation, value),
            "labels" => set(&mut found.labels, value),
            "annotations" => set(&mut found.annotations, value),
            "finalizers" => set(&mut found.finalizers, value),
            "ownerReferences" => set(&mut found.owner_references, value),
            "deletionGracePeriodSeconds" => set(&mut found.deletion_grace_period_seconds, value),
            "creationTimestamp" => set_time(&mut found.creation_timestamp, value),
            "deletionTimestamp" => set_time(&mut found.deletion_timestamp, value),
            _ => Ok(()),
        };
        wrong = wrong.or(read.err().map(|error| Undecodable::new(&error)));
    }
    (found, wrong)
}

fn set<T: DeserializeOwned>(field: &mut Option<T>, text: &RawValue) -> Result<(), serde_json::Error> {
    *field = serde_json::from_str(text.get())?;
    Ok(())
}

/// The API server alone writes these times. One that Rust's calendar does not have is the last moment of that calendar: an
/// object with a deletion timestamp is being deleted, whatever the timestamp says.
fn set_time(field: &mut Option<Time>, text: &RawValue) -> Result<(), serde_json::Error> {
    *field = serde_json::from_str::<Option<String>>(text.get())?.map(|text| times::nearest(&text));
    Ok(())
}
