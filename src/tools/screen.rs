//! Where the text of a tool goes.

use classad::Env;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// How wide the text may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// Nobody has said, and the text goes to no terminal: nothing is cut.
    #[default]
    Piped,
    /// As wide as the data are: `-wide`.
    Wide,
    /// So many characters: a terminal's width, or that of `-wide:80`.
    Columns(usize),
}

/// Where the text of a tool goes, and what the reader's clock says.
#[derive(Clone, Debug)]
pub struct Screen {
    /// How wide the text may be.
    pub width: Width,
    /// The time, in seconds since 1970-01-01T00:00:00Z.
    pub now: i64,
    /// The reader's time zone.
    pub zone: TimeZone,
}

impl Screen {
    /// The environment in which expressions are evaluated.
    pub(crate) fn env(&self) -> Env {
        let offset = instant(self.now).map_or(0, |instant| self.zone.to_offset(instant).seconds());
        Env { utc_offset: offset, ..Env::at(self.now) }
    }

    /// A date as HTCondor's tables have it, such as ` 1/31 09:05`: 11 characters.
    pub(crate) fn date(&self, secs: i64) -> String {
        match instant(secs).filter(|_| secs >= 0) {
            Some(instant) => {
                let date = self.zone.to_datetime(instant);
                format!("{:>2}/{:<2} {:02}:{:02}", date.month(), date.day(), date.hour(), date.minute())
            }
            None => "    ???    ".to_owned(),
        }
    }

    /// A date as `condor_userprio` has it, such as ` 1/31/2030 09:05`.
    pub(crate) fn date_with_year(&self, secs: i64) -> String {
        let Some(instant) = instant(secs) else { return String::new() };
        let date = self.zone.to_datetime(instant);
        format!(
            "{:>2}/{:02}/{:<4} {:02}:{:02}",
            date.month(),
            date.day(),
            date.year(),
            date.hour(),
            date.minute()
        )
    }

    /// A date and time as the header of condor_q has it: `01/31/30 09:05:00`.
    pub(crate) fn moment(&self, secs: i64) -> String {
        let instant = instant(secs);
        instant
            .map(|instant| self.zone.to_datetime(instant).strftime("%m/%d/%y %H:%M:%S").to_string())
            .unwrap_or_default()
    }
}

fn instant(secs: i64) -> Option<Timestamp> {
    Timestamp::from_second(secs).ok()
}

/// A span as HTCondor's tables have it, such as `  1+00:44:21`: days, hours, minutes, seconds. Each part of a negative span has
/// its own sign.
pub(crate) fn span(secs: i64) -> String {
    let (days, rest) = (secs / 86_400, secs % 86_400);
    format!("{days:>3}+{:02}:{:02}:{:02}", rest / 3600, rest % 3600 / 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_dates() {
        assert_eq!(span(90_061), "  1+01:01:01");
        assert_eq!(span(12_345 * 86_400), "12345+00:00:00");
        let screen = Screen { width: Width::Piped, now: 0, zone: TimeZone::fixed(jiff::tz::offset(2)) };
        assert_eq!(screen.date(0), " 1/1  02:00");
        assert_eq!(screen.date(-1), "    ???    ");
        assert_eq!(screen.date(i64::MAX), "    ???    ");
        assert_eq!(screen.moment(86_399), "01/02/70 01:59:59");
        assert_eq!(screen.env().utc_offset, 7200);
    }
}
