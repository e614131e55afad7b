use super::super::axis::{Scale, quantity, time};
use super::*;

fn told(scale: &Scale) -> String {
    let ticks: Vec<&str> = scale.ticks.iter().map(|(_, text)| text.as_str()).collect();
    format!("{}: {}", scale.label, ticks.join(" | "))
}

#[test]
fn quantities_start_at_zero_and_end_at_a_number() {
    for (unit, range, text) in [
        (Unit::Number, (0.0, 95.0), "q: 0 | 20 | 40 | 60 | 80 | 100"),
        (Unit::Number, (40.0, 100.0), "q: 0 | 20 | 40 | 60 | 80 | 100"),
        (Unit::Number, (0.0, 1.0), "q: 0.0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0"),
        (Unit::Number, (0.0, 0.0), "q: 0.0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0"),
        (Unit::Number, (-30.0, 30.0), "q: −30 | −20 | −10 | 0 | 10 | 20 | 30"),
        (
            Unit::Number,
            (0.0, 52_000.0),
            "q: 0 | 10\u{2009}000 | 20\u{2009}000 | 30\u{2009}000 | 40\u{2009}000 | 50\u{2009}000 | 60\u{2009}000",
        ),
        (Unit::Share, (0.0, 1.0), "q: 0 % | 20 % | 40 % | 60 % | 80 % | 100 %"),
        (Unit::Share, (0.0, 0.03), "q: 0.0 % | 0.5 % | 1.0 % | 1.5 % | 2.0 % | 2.5 % | 3.0 %"),
        (Unit::Span, (0.0, 100.0), "q, seconds: 0 | 30 | 60 | 90 | 120"),
        (Unit::Span, (0.0, 3600.0), "q, minutes: 0 | 10 | 20 | 30 | 40 | 50 | 60"),
        (Unit::Span, (0.0, 40_000.0), "q, hours: 0 | 2 | 4 | 6 | 8 | 10 | 12"),
        (Unit::Span, (0.0, 86_400.0 * 30.0), "q, days: 0 | 7 | 14 | 21 | 28 | 35"),
    ] {
        assert_eq!(told(&quantity(&Axis::new("q", unit), range, 6)), text, "{unit:?} {range:?}");
    }
}

#[test]
fn times_read_as_people_tell_them() {
    const DAY: f64 = 86_400.0;
    // A Monday, at midnight.
    let monday = Unit::Date { start: 1_772_409_600 };
    for (unit, range, text) in [
        (Unit::Span, (0.0, 2.0 * DAY), "t, hours: 0 | 6 | 12 | 18 | 24 | 30 | 36 | 42 | 48"),
        (Unit::Span, (0.0, 7200.0), "t, minutes: 0 | 15 | 30 | 45 | 60 | 75 | 90 | 105 | 120"),
        (Unit::Span, (0.0, 70.0 * DAY), "t, days: 0 | 7 | 14 | 21 | 28 | 35 | 42 | 49 | 56 | 63 | 70"),
        (monday, (0.0, 21_600.0), "t, UTC: Mon 2 Mar 00:00 | 01:00 | 02:00 | 03:00 | 04:00 | 05:00 | 06:00"),
        (
            monday,
            (50_000.0, 120_000.0),
            "t, UTC: Mon 2 Mar 15:00 | 18:00 | 21:00 | Tue 3 Mar 00:00 | 03:00 | 06:00 | 09:00",
        ),
        (
            monday,
            (0.0, 5.0 * DAY),
            "t, UTC: Mon 2 Mar 2026 | Tue 3 Mar | Wed 4 Mar | Thu 5 Mar | Fri 6 Mar | Sat 7 Mar",
        ),
        (
            monday,
            (0.0, 30.0 * DAY),
            "t, UTC: Mon 2 Mar 2026 | Mon 9 Mar | Mon 16 Mar | Mon 23 Mar | Mon 30 Mar",
        ),
        (monday, (0.0, 200.0 * DAY), "t, UTC: Apr 2026 | May | Jun | Jul | Aug | Sep"),
        (monday, (0.0, 366.0 * DAY), "t, UTC: May 2026 | Jul | Sep | Nov | Jan 2027 | Mar"),
        (monday, (0.0, 3000.0 * DAY), "t, UTC: 2028 | 2030 | 2032 | 2034"),
    ] {
        let most = if unit == Unit::Span { 10 } else { 7 };
        assert_eq!(told(&time(&Axis::new("t", unit), range, most)), text, "{range:?}");
    }
    assert_eq!(time(&Axis::new("", monday), (0.0, DAY), 7).label, "UTC");
}

#[test]
fn dates_beyond_the_calendar_are_told_as_spans() {
    let far = Axis::new("since then", Unit::Date { start: i64::MAX });
    assert_eq!(told(&time(&far, (0.0, 60.0), 7)), "since then, seconds: 0 | 10 | 20 | 30 | 40 | 50 | 60");
}

#[test]
fn a_moment_is_a_range_of_its_own() {
    assert_eq!(time(&Axis::new("t", Unit::Span), (5.0, 5.0), 7).range, (5.0, 6.0));
}
