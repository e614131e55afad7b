//! The rules by which a Kubernetes API server checks and changes objects, as functions over [`serde_json::Value`]. The
//! embedded API server uses them, and `slotwright lint` uses the schemas.
//!
//! | item | what it does |
//! | --- | --- |
//! | [`StructuralSchema`] | validates, defaults and prunes custom resources by the schema in their CRD |
//! | [`merge_patch`], [`json_patch()`], [`strategic_merge_patch`] | apply the three kinds of patches |
//! | [`apply`], [`track_update`] | server-side apply, and the `metadata.managedFields` of other writes |
//! | [`Shape`] | says how the fields of a type merge, for apply and strategic merge patch |
//! | [`Columns`], [`table`] | build the `meta.k8s.io/v1` Tables that `kubectl get` prints |
//! | [`openapi_v2`], [`openapi_v3`], [`openapi_v3_index`] | build the documents that `kubectl explain` and `kubectl apply` read |
//! | [`Quantity`] | parses resource quantities |
//!
//! The server handles a write in this order: it decodes the body, patches (or calls [`apply`]), calls
//! [`StructuralSchema::prune`], [`StructuralSchema::default`], [`StructuralSchema::validate`] and [`track_update`] (not
//! after [`apply`], which updates the managed fields itself), and stores the object.
//!
//! Invariant: nothing here does I/O, reads a clock or keeps state. Callers pass the time.
//!
//! Invariant: this crate does not know the custom resources of this project. It reads their schemas as JSON.

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
pub use managed::{ApplyError, Conflict, Writer, apply, track_update};
pub use openapi::{ResourceDoc, openapi_v2, openapi_v3, openapi_v3_index};
pub use patch::{json_patch, merge_patch, strategic_merge_patch};
pub use quantity::Quantity;
pub use shape::Shape;
pub use structural::StructuralSchema;
pub use table::{Columns, IncludeObject, table};

/// The depth at which the functions here stop to descend into an object or a schema, so that hostile input cannot
/// overflow the stack. They treat deeper parts as opaque values. Real objects nest less than 50 deep; the decoder of
/// Kubernetes stops at 10,000.
const MAX_DEPTH: usize = 128;
