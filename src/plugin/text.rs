//! Writes times and long texts for tables.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A time in UTC to the minute, without blanks: `2030-01-02T03:04Z`.
pub fn minute(time: &Time) -> String {
    time.0.strftime("%Y-%m-%dT%H:%MZ").to_string()
}

/// A span as HTCondor writes it: days, `+`, hours and minutes. A negative span counts as 0.
pub fn span(seconds: i64) -> String {
    let minutes = seconds.max(0) / 60;
    format!("{}+{:02}:{:02}", minutes / 1440, minutes / 60 % 24, minutes % 60)
}

/// The text, cut to at most `longest` characters; the last one is `…` if something was cut off.
pub fn shortened(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let kept: String = text.chars().take(longest.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        for (seconds, text) in [(-5, "0+00:00"), (59, "0+00:00"), (3_660, "0+01:01"), (90_000, "1+01:00")] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn long_text_is_cut_by_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }
}
