//! Time zones by their names in the IANA database. The operator carries a copy of the database: nodes have different
//! versions, and images have none.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use model::pool::{Problem, Time, Zone};

/// A zone's changes of offset are read until the end of this century.
const UNTIL: i64 = 4_102_444_800;

/// A zone's table.
pub(super) fn zone(field: &str, name: &str) -> Result<Zone, Problem> {
    let found = TimeZone::get(name).map_err(|_| Problem {
        reason: "UnknownTimeZone",
        field: field.to_owned(),
        message: format!(
            "{name} is no time zone of the IANA database; give a name such as Europe/Zurich, America/Chicago or UTC"
        ),
    })?;
    let start = Timestamp::UNIX_EPOCH;
    let changes = found
        .following(start)
        .take_while(|change| change.timestamp().as_second() < UNTIL)
        .map(|change| (Time::from_secs(change.timestamp().as_second()), change.offset().seconds()));
    Ok(Zone::new(found.to_offset(start).seconds(), changes.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_their_summers() {
        let zone = |name| zone("spec.timeZone", name).unwrap();
        for (name, at, offset) in [
            ("UTC", 0, 0),
            ("Europe/Zurich", 1_768_500_000, 3600),
            ("Europe/Zurich", 1_784_000_000, 7200),
            ("America/Chicago", 1_784_000_000, -5 * 3600),
            ("Asia/Kolkata", 1_784_000_000, 19_800),
            ("Europe/Zurich", 4_087_000_000, 7200),
        ] {
            assert_eq!(zone(name).offset(Time::from_secs(at)), offset, "{name} {at}");
        }
    }

    #[test]
    fn what_is_no_zone_is_told() {
        let problem = zone("spec.timeZone", "Mars/Olympus").unwrap_err();
        assert_eq!(
            problem.to_string(),
            "spec.timeZone: Mars/Olympus is no time zone of the IANA database; give a name such as Europe/Zurich, \
             America/Chicago or UTC"
        );
    }
}
