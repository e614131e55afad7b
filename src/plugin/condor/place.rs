//! The facts about this computer that the tools need: the screen, the time zone, the namespace.

use std::{env, fs};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tools::{Screen, Width};

use crate::cluster::Cluster;

/// The screen: a terminal of this width, or else a pipe.
pub(super) fn screen(width: Option<usize>) -> Screen {
    let now = Timestamp::now().as_second();
    Screen { width: width.map_or(Width::Piped, Width::Columns), now, zone: zone() }
}

/// The time zone of TZ, or else that of this computer; UTC if neither is known.
pub(crate) fn zone() -> TimeZone {
    let named = env::var("TZ").ok().filter(|name| !name.is_empty());
    if let Some(name) = named {
        let name = name.trim_start_matches(':');
        return TimeZone::get(name).or_else(|_| TimeZone::posix(name)).unwrap_or(TimeZone::UTC);
    }
    let of_this_computer = fs::read("/etc/localtime").ok();
    of_this_computer.and_then(|data| TimeZone::tzif("local", &data).ok()).unwrap_or(TimeZone::UTC)
}

/// The namespace of the user's jobs: that of SLOTWRIGHT_NAMESPACE, as for condor_submit, or else that of the kubeconfig's context.
pub(super) fn namespace(cluster: &Cluster) -> String {
    let named = env::var("SLOTWRIGHT_NAMESPACE").ok().filter(|name| !name.is_empty());
    named.unwrap_or_else(|| cluster.namespace.clone())
}

/// The time, in seconds since 1970.
pub(super) fn now() -> i64 {
    Timestamp::now().as_second()
}
