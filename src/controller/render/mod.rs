//! From the pool to Kubernetes objects: pure functions.

mod conditions;
mod drain;
mod pod;
mod slot;
mod status;

pub use pod::{BadTemplate, check, pod};
pub use slot::slot;
pub use status::{Rendered, merge_patch, render};
