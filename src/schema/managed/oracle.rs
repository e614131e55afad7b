//! Replays requests that were sent to a real kube-apiserver 1.20.2, and compares conflicts, objects and owners.
//!
//! `oracle.json` has each request and the object that the server stored. Version 1.20 has no
//! `managedFields[].subresource`. Times, and metadata that the server sets, are left out.

use std::collections::BTreeMap;

use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::*;
use crate::{StructuralSchema, json_patch, merge_patch, strategic_merge_patch};

/// The steps in which later versions of Kubernetes, which this crate follows, differ from 1.20: an owner reference is
/// owned as a whole; applied lists keep their own order; fields that admission and registry set at creation have no owner,
/// because they are set after the managed fields are updated; a container without a name fails before validation.
const NEWER: [&str; 7] = [
    "cm owner refs",
    "cr apply reorder",
    "cr apply force",
    "pod create",
    "pod apply create",
    "pod nokey",
    "node create",
];

fn replay(step: &Value, shape: &Shape, before: Option<&Value>, writer: &Writer<'_>) -> Result<Value, String> {
    let (body, stored) = (&step["body"], &step["result"]);
    let tracked = |mut new: Value| {
        track_update(shape, before, &mut new, writer);
        new
    };
    // The stored object, which has the server's defaults.
    let defaulted = || {
        let mut new = stored.clone();
        strip_managed_fields(&mut new);
        new
    };
    let before_or_null = before.cloned().unwrap_or_default();
    let patched = match step["op"].as_str().unwrap() {
        "create" => return Ok(tracked(defaulted())),
        "update" => return Ok(tracked(body.clone())),
        "apply" => {
            let force = step["force"].as_bool().unwrap();
            return apply(shape, before, body, writer, force).map_err(|e| e.to_string());
        }
        "smp" => strategic_merge_patch(shape, &before_or_null, body),
        "json" => json_patch(&before_or_null, body),
        _ => {
            let mut new = before_or_null;
            merge_patch(&mut new, body);
            Ok(new)
        }
    };
    // The owners come from the object with defaults, everything else from the patch.
    let mut patched = patched.map_err(|e| e.to_string())?;
    let owners = tracked(defaulted())["metadata"]["managedFields"].take();
    patched["metadata"]["managedFields"] = owners;
    Ok(patched)
}

/// Whether `b` has everything that `a` has. `b` is the server's object, which has defaults too.
fn is_part(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().all(|(k, v)| b.get(k).is_some_and(|w| is_part(v, w)))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(v, w)| is_part(v, w))
        }
        _ => a == b,
    }
}

fn without_times(mut obj: Value) -> Value {
    if let Some(Value::Array(entries)) = obj.pointer_mut("/metadata/managedFields") {
        for entry in entries.iter_mut() {
            entry.as_object_mut().unwrap().remove("time");
        }
        entries.sort_by_key(|e| (e["operation"].to_string(), e["manager"].to_string()));
    }
    obj
}

#[test]
fn a_real_api_server_decides_alike() {
    let oracle: Value = serde_json::from_str(include_str!("oracle.json")).unwrap();
    let schema = StructuralSchema::parse(&oracle["schema"], "schema").unwrap();
    let steps = oracle["steps"].as_array().unwrap();
    let mut stored: BTreeMap<String, Value> = BTreeMap::new();
    let mut differences = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let gvk = |n: usize| step["gvk"][n].as_str().unwrap();
        let shape = match gvk(2) {
            "Thing" => Shape::custom(&schema),
            _ => Shape::built_in(&GroupVersionKind::gvk(gvk(0), gvk(1), gvk(2))),
        };
        let version = if gvk(0).is_empty() { gvk(1).to_owned() } else { format!("{}/{}", gvk(0), gvk(1)) };
        let now = Timestamp::from_second(1_700_000_000 + i64::try_from(i).unwrap()).unwrap();
        let writer = Writer {
            manager: step["manager"].as_str().unwrap(),
            api_version: &version,
            subresource: "",
            now,
        };
        let key = gvk(2).to_owned();
        if step["fresh"] == json!(true) {
            stored.remove(&key);
        }
        let ours = replay(step, &shape, stored.get(&key), &writer).map(without_times);
        let theirs = if step["code"].as_u64().unwrap() < 300 {
            Ok(without_times(step["result"].clone()))
        } else {
            Err(&step["result"])
        };
        let same = match (&ours, &theirs) {
            (Ok(a), Ok(b)) => {
                a["metadata"]["managedFields"] == b["metadata"]["managedFields"] && is_part(a, b)
            }
            (Err(a), Err(b)) => {
                a.starts_with(b.as_str().unwrap()) || step["op"] == "smp" || step["op"] == "json"
            }
            _ => false,
        };
        if !same && !NEWER.contains(&step["name"].as_str().unwrap()) {
            let ours = ours.map_or_else(|e| e, |v| v.to_string());
            let theirs = theirs.map_or_else(Value::to_string, |v| v.to_string());
            differences.push(format!("{}\n  ours:   {ours}\n  theirs: {theirs}", step["name"]));
        }
        if step["code"].as_u64().unwrap() < 300 {
            stored.insert(key, step["result"].clone());
        }
    }
    assert!(differences.is_empty(), "{} of {}:\n{}", differences.len(), steps.len(), differences.join("\n"));
}
