//! The processor time of this process.

use rustix::time::{ClockId, clock_gettime};

/// How much processor time this process has used, in seconds.
pub fn processor_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
