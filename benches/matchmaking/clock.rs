//! Processor time.

use rustix::time::{ClockId, clock_gettime};

/// Seconds of processor time that this process has had.
pub fn processor_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
