//! Pods that the operator makes, and what it writes on pods: pure functions.

mod agent;
mod backfill;
mod each;
mod pod;
mod resources;

pub use agent::{DISRUPTION_TARGET, disruption_target, kill, suspend};
pub use backfill::backfill;
pub use each::{KeptTemplate, borrowed, doubts, faults};
pub use pod::{BadTemplate, dropped, pod};
pub use resources::check;
