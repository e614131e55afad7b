//! The permit, which the agent writes and the guard reads, and the guard's heartbeat, which the agent reads. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cgroup::{MAX_UID, is_uid};

/// The version of the files' format. A file of another version is not believed.
const VERSION: u32 = 1;
/// A guard whose last pass is older than this counts as silent.
const SILENT_AFTER: Duration = Duration::from_secs(10);

/// Why a file of the fence's directory is not believed.
#[derive(Debug, Error)]
pub(crate) enum Bad {
    /// The file is not what an agent or a guard writes. The file's content is not shown: it may be another file's secret.
    #[error("line {line}, column {column}: this is no permit and no heartbeat")]
    Json {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// The file is of another version.
    #[error(
        "the file has version {0}, and version {VERSION} was expected: upgrade the guard and the agent together"
    )]
    Version(u32),
    /// A uid has characters that no uid has, so that a path made of it could lead anywhere.
    #[error("a pod's uid has characters other than letters, digits and hyphens, or more than {MAX_UID}")]
    Uid,
}

/// The pods that may run on the node, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Permit {
    version: u32,
    /// The boot of which `renewed` tells the time.
    pub(crate) boot: String,
    /// Each permit that is written has a higher number than all before it.
    pub(crate) sequence: u64,
    /// When the agent sent the last renewal of its Lease that succeeded: the time since the boot, suspended time included.
    #[serde(rename = "renewedMillis", with = "millis")]
    pub(crate) renewed: Duration,
    /// The pods that may run, with the lease of each in seconds.
    pub(crate) pods: BTreeMap<String, u64>,
    /// The pods that must not run: those that must never run again, and those of `held`.
    pub(crate) ended: BTreeSet<String>,
    /// Some of the pods of `ended`, with the lease of each in seconds: their leases have passed, and a list of the node's pods tells
    /// which of them may run again. The guard makes no difference between them and the others of `ended`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) held: BTreeMap<String, u64>,
}

impl Permit {
    /// A permit under which nothing may run.
    pub(crate) fn empty(boot: &str, sequence: u64) -> Self {
        Self {
            version: VERSION,
            boot: boot.to_owned(),
            sequence,
            renewed: Duration::ZERO,
            pods: BTreeMap::new(),
            ended: BTreeSet::new(),
            held: BTreeMap::new(),
        }
    }

    /// Reads a permit.
    ///
    /// # Errors
    /// When the text is no permit, or one that cannot be believed.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Bad> {
        let permit: Self = read(text)?;
        let uids = permit.pods.keys().chain(&permit.ended).chain(permit.held.keys());
        if permit.version != VERSION {
            return Err(Bad::Version(permit.version));
        }
        if !uids.into_iter().all(|uid| is_uid(uid)) {
            return Err(Bad::Uid);
        }
        Ok(permit)
    }

    /// The permit as a file holds it.
    pub(crate) fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether a pod with this lease, in seconds, may no longer run at `now` in the boot `boot`. In another boot than
    /// the permit's, no pod may run: the permit tells of no renewal that has succeeded since that boot began.
    pub(crate) fn is_over(&self, lease: u64, boot: &str, now: Duration) -> bool {
        self.boot != boot || now >= self.renewed.saturating_add(Duration::from_secs(lease))
    }

    /// The pods that must not run at `now`.
    pub(crate) fn over<'a>(&'a self, boot: &'a str, now: Duration) -> impl Iterator<Item = &'a str> + 'a {
        let over = self.pods.iter().filter(move |(_, lease)| self.is_over(**lease, boot, now));
        self.ended.iter().chain(over.map(|(uid, _)| uid)).map(String::as_str)
    }
}

/// The heartbeat of the guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heartbeat {
    version: u32,
    /// The boot in which the guard runs.
    pub(crate) boot: String,
    /// When the guard last did its work: the time since the boot.
    #[serde(rename = "passedMillis", with = "millis")]
    pub(crate) passed: Duration,
    /// The number of the permit by which the guard acts; 0 if it has none.
    pub(crate) sequence: u64,
}

impl Heartbeat {
    /// The heartbeat of a guard that has done its work now.
    pub(crate) fn new(boot: &str, passed: Duration, sequence: u64) -> Self {
        Self { version: VERSION, boot: boot.to_owned(), passed, sequence }
    }

    /// Reads a heartbeat.
    ///
    /// # Errors
    /// When the text is no heartbeat, or one that cannot be believed.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Bad> {
        let heartbeat: Self = read(text)?;
        if heartbeat.version == VERSION { Ok(heartbeat) } else { Err(Bad::Version(heartbeat.version)) }
    }

    /// The heartbeat as a file holds it.
    pub(crate) fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether the guard lives at `now` in the boot `boot`.
    pub(crate) fn lives(&self, boot: &str, now: Duration) -> bool {
        self.boot == boot && now.saturating_sub(self.passed) <= SILENT_AFTER
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, Bad> {
    serde_json::from_slice(text).map_err(|error| Bad::Json { line: error.line(), column: error.column() })
}

/// Durations as whole milliseconds. A fraction is left out, so that a renewal never counts as later than it was.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit() -> Permit {
        let pods = [("a".into(), 40), ("b".into(), 600)].into();
        Permit {
            renewed: Duration::from_millis(100_500),
            pods,
            ended: ["c".into()].into(),
            ..Permit::empty("one", 7)
        }
    }

    fn over(permit: &Permit, boot: &str, millis: u64) -> String {
        permit.over(boot, Duration::from_millis(millis)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_pod_may_run_for_its_lease_after_the_last_renewal() {
        let permit = permit();
        for (boot, millis, expected) in [
            ("one", 100_500, "c"),
            ("one", 140_499, "c"),
            ("one", 140_500, "c a"),
            ("one", 700_500, "c a b"),
            // A permit of another boot permits nothing, whatever that boot's clock showed.
            ("two", 0, "c a b"),
            ("two", 100_500, "c a b"),
        ] {
            assert_eq!(over(&permit, boot, millis), expected, "{boot} {millis}");
        }
        assert_eq!(over(&Permit::empty("one", 1), "two", u64::MAX), "");
        let longest = Permit { pods: [("a".into(), u64::MAX)].into(), ..permit };
        assert_eq!(over(&longest, "one", u64::MAX), "c", "a lease without end overflows nothing");
    }

    #[test]
    fn a_permit_is_read_as_it_was_written() {
        assert_eq!(Permit::parse(&permit().text()).unwrap(), permit());
        let text = String::from_utf8(permit().text()).unwrap();
        assert_eq!(
            text,
            r#"{"version":1,"boot":"one","sequence":7,"renewedMillis":100500,"pods":{"a":40,"b":600},"ended":["c"]}"#
        );
        let held = Permit { held: [("c".into(), 40)].into(), ..permit() };
        let text = String::from_utf8(held.text()).unwrap();
        assert!(text.ends_with(r#""ended":["c"],"held":{"c":40}}"#), "{text}");
        assert_eq!(Permit::parse(&held.text()).unwrap(), held);
    }

    #[test]
    fn a_permit_that_cannot_be_believed_is_an_error_that_does_not_show_it() {
        let text = String::from_utf8(permit().text()).unwrap();
        let half = text.split_at(text.len() / 2).0;
        for (bad, expected) in [
            ("", "no permit"),
            ("root:x:0:0", "line 1, column 1: this is no permit"),
            (half, "no permit"),
            (&text.replace("\"version\":1", "\"version\":2"), "version 2"),
            (&text.replace("\"a\"", "\"../a\""), "characters"),
            (&text.replace("\"c\"", "\"c/d\""), "characters"),
            (&text.replace("\"c\"", "\"\""), "characters"),
            (&text.replace("[\"c\"]", "[\"c\"],\"held\":{\"c/d\":40}"), "characters"),
            (&text.replace("40", "-40"), "no permit"),
        ] {
            let error = Permit::parse(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("root"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_guard_lives_that_passed_in_this_boot_not_long_ago() {
        let beat = Heartbeat::new("one", Duration::from_secs(100), 7);
        assert_eq!(Heartbeat::parse(&beat.text()).unwrap(), beat);
        for (boot, seconds, lives) in
            [("one", 100, true), ("one", 110, true), ("one", 111, false), ("two", 100, false)]
        {
            assert_eq!(beat.lives(boot, Duration::from_secs(seconds)), lives, "{boot} {seconds}");
        }
        let later = String::from_utf8(beat.text()).unwrap().replace("\"version\":1", "\"version\":9");
        assert!(Heartbeat::parse(later.as_bytes()).is_err());
    }
}
