//! What the embedded API server knows about the shape of objects: pure functions over [`serde_json::Value`].
//!
//! Nothing here does I/O, reads a clock or keeps state. Callers pass `now`.
//!
//! | part | does |
//! | --- | --- |
//! | [`StructuralSchema`] | validate, default and prune custom resources as their CRD says |
//! | [`merge_patch`], [`json_patch`], [`strategic_merge_patch`] | the three classic patches |
//! | [`apply`], [`track_update`] | server-side apply and `metadata.managedFields` |
//! | [`Columns`], [`table`] | `meta.k8s.io/v1` Tables for `kubectl get` |
//! | [`openapi_v2`], [`openapi_v3`], [`openapi_v3_index`] | the documents `kubectl explain` and `kubectl apply` read |
//! | [`Quantity`] | resource quantities as exact integers of thousandths |
//!
//! A write in the server crosses them in this order: decode, patch (or [`apply`]), [`StructuralSchema::prune`],
//! [`StructuralSchema::default`], [`StructuralSchema::validate`], [`track_update`] (not after [`apply`], which
//! keeps the managed fields itself), store.

mod builtin;
mod error;
mod managed;
mod openapi;
mod patch;
mod quantity;
mod shape;
mod structural;
mod table;

pub use error::{FieldError, FieldErrorKind, PatchError, causes, invalid_message};
pub use managed::{ApplyError, Conflict, Writer, apply, strip_managed_fields, track_update};
pub use openapi::{ResourceDoc, openapi_v2, openapi_v3, openapi_v3_index};
pub use patch::{json_patch, merge_patch, strategic_merge_patch};
pub use quantity::Quantity;
pub use shape::Shape;
pub use structural::StructuralSchema;
pub use table::{Columns, IncludeObject, table};

/// How deep an object may nest before the functions here stop descending (Kubernetes' decoder stops at 10,000;
/// nothing real passes 50). Deeper parts are treated as opaque values.
pub const MAX_DEPTH: usize = 128;
