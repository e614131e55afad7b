//! The boot of the computer, and the time since then.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::named::named;

/// The id of the boot: a new one each time the computer starts. All containers see the same.
pub(crate) fn id(proc: &Path) -> io::Result<String> {
    let path = proc.join("sys/kernel/random/boot_id");
    let text = std::fs::read_to_string(&path).map_err(|error| named(&path, &error))?;
    Ok(text.trim().to_owned())
}

/// The time since the boot, by a clock that nobody sets, and that goes on while the computer sleeps.
pub(crate) fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}
