//! From the pool to Kubernetes objects: pure functions.

mod agent;
mod backfill;
mod conditions;
mod drain;
mod governing;
mod held;
mod limit;
mod pod;
mod slot;
mod status;
mod waiting;

pub use agent::{DISRUPTION_TARGET, disruption_target, kill, suspend};
pub use backfill::backfill;
pub use pod::{BadTemplate, check, pod};
pub use slot::slot;
pub use status::{Rendered, merge_patch, render};
