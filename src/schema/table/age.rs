//! Ages as kubectl prints them: `5s`, `3m20s`, `4h12m`, `2d5h`, `3y40d`.

use jiff::Timestamp;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The text of a duration in seconds. The longer the duration, the coarser are its one or two units.
pub(super) fn human(seconds: i64) -> String {
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| {
        let (n, rest) = (seconds / big, seconds % big / small);
        if rest == 0 { format!("{n}{big_unit}") } else { format!("{n}{big_unit}{rest}{small_unit}") }
    };
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(MINUTE, "m", 1, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(HOUR, "h", MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(DAY, "d", HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(YEAR, "y", DAY, "d"),
        s => format!("{}y", s / YEAR),
    }
}

/// The seconds from an RFC 3339 time to `now`; `None` if the text is not such a time.
pub(super) fn seconds_since(time: &str, now: Timestamp) -> Option<i64> {
    let then: Timestamp = time.parse().ok()?;
    Some(now.as_second() - then.as_second())
}

/// The age of a time in an object: `<unknown>` if there is none, `<invalid>` if it is not a time.
pub(super) fn since(time: Option<&Value>, now: Timestamp) -> String {
    match time.filter(|t| !t.is_null()) {
        None => "<unknown>".to_owned(),
        Some(time) => {
            time.as_str().and_then(|t| seconds_since(t, now)).map_or_else(|| "<invalid>".to_owned(), human)
        }
    }
}
