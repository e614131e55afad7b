//! The examples of the manual's chapter "CronTab Scheduling", and what holds for every crontab.

use proptest::prelude::*;

use super::{Crontab, Field, date};

/// January 1, 2026 is a Thursday, 20,454 days after January 1, 1970.
const NEW_YEAR: i64 = 20_454;

/// The time of a minute of a day of 2026, by the number of the day in the year, from 1.
fn at(day: i64, hour: i64, minute: i64) -> i64 {
    ((NEW_YEAR + day - 1) * 24 * 60 + hour * 60 + minute) * 60
}

/// A crontab of the texts in the order of a line of a crontab.
fn crontab(line: &str) -> Crontab {
    let texts: Vec<&str> = line.split_whitespace().collect();
    Crontab::new(std::array::from_fn(|field| texts.get(field).copied())).unwrap()
}

/// The values that a text of a field names.
fn values(field: Field, text: &str) -> Vec<u32> {
    let set = field.values(text).unwrap();
    (0..64).filter(|value| set & (1 << value) != 0).collect()
}

#[test]
fn asterisks_ranges_lists_and_steps_name_the_values_that_the_manual_says() {
    for (field, text, expected) in [
        (Field::Month, "*", vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        (Field::Hour, "0-4", vec![0, 1, 2, 3, 4]),
        (Field::Minute, "15,20,25,30", vec![15, 20, 25, 30]),
        (Field::Hour, "0-3,9-12,15", vec![0, 1, 2, 3, 9, 10, 11, 12, 15]),
        (Field::Minute, "10-30/5", vec![10, 15, 20, 25, 30]),
        (Field::Hour, "*/3", vec![0, 3, 6, 9, 12, 15, 18, 21]),
        // "Multiple entries of the same value are ignored."
        (Field::Minute, "5,5,4-6", vec![4, 5, 6]),
        // condor_crontab.cpp: a step selects what it divides, wherever the range begins.
        (Field::DayOfMonth, "1-9/4", vec![4, 8]),
        // "Sunday is 0 or 7."
        (Field::DayOfWeek, "6-7", vec![0, 6]),
        (Field::DayOfWeek, "1-7/2", vec![0, 2, 4, 6]),
        // condor_crontab.cpp removes blanks, and skips items without a text.
        (Field::Minute, " 1 - 2 , ,30, ", vec![1, 2, 30]),
    ] {
        assert_eq!(values(field, text), expected, "{text}");
    }
}

#[test]
fn a_wrong_text_is_refused_with_its_place() {
    for (line, field, offset, says) in [
        ([Some("60"), None, None, None, None], Field::Minute, 0, "between 0 and 59"),
        ([Some("0,15,x"), None, None, None, None], Field::Minute, 5, "between 0 and 59"),
        ([None, Some("1-24"), None, None, None], Field::Hour, 2, "between 0 and 23"),
        ([None, Some("9-5"), None, None, None], Field::Hour, 2, "5 is less than 9"),
        ([None, None, Some("0"), None, None], Field::DayOfMonth, 0, "between 1 and 31"),
        ([None, None, None, Some("jan"), None], Field::Month, 0, "between 1 and 12"),
        ([None, None, None, None, Some("8")], Field::DayOfWeek, 0, "between 0 and 7"),
        ([Some("*/0"), None, None, None, None], Field::Minute, 2, "of at least 1"),
        ([Some("*/"), None, None, None, None], Field::Minute, 2, "of at least 1"),
        ([Some("5/2"), None, None, None, None], Field::Minute, 1, "*/5 or 10-30/5"),
        ([Some("1-3/4"), None, None, None, None], Field::Minute, 4, "can be divided by 4"),
        ([Some("1 2"), None, None, None, None], Field::Minute, 2, "found '2'"),
        ([Some("-1"), None, None, None, None], Field::Minute, 0, "between 0 and 59"),
        ([Some("99999999999999999999"), None, None, None, None], Field::Minute, 0, "between 0 and 59"),
        ([Some(" , "), None, None, None, None], Field::Minute, 0, "expected numbers"),
        ([None, None, Some("30-31"), Some("2"), None], Field::DayOfMonth, 0, "none of the months"),
    ] {
        let fault = Crontab::new(line).unwrap_err();
        assert_eq!((fault.field(), fault.offset()), (field, offset), "{line:?}: {fault}");
        assert!(fault.to_string().contains(says), "{line:?}: {fault}");
    }
}

/// The next times of crontabs after noon of January 1, 2026.
#[test]
fn the_next_times_are_those_of_the_manual() {
    for (line, expected) in [
        // "A job that runs every 15 minutes."
        ("0,15,30,45", vec![at(1, 12, 15), at(1, 12, 30), at(1, 12, 45), at(1, 13, 0)]),
        // "The job is scheduled to begin execution at the top of every hour."
        ("0 *", vec![at(1, 13, 0), at(1, 14, 0)]),
        // "Run 23 minutes after every two hours, every day of the week."
        ("23 0-23/2 * * *", vec![at(1, 12, 23), at(1, 14, 23), at(1, 16, 23)]),
        // "Run every 10 minutes and every 6 minutes before noon on January 18th."
        ("*/10,*/6 0-11 18 1 *", vec![at(18, 0, 0), at(18, 0, 6), at(18, 0, 10), at(18, 0, 12)]),
        // "Each of May 10th to May 20th, as well as every remaining" Tuesday, which the manual takes for a Monday.
        ("30 20 10-20 5 2", vec![at(125, 20, 30), at(130, 20, 30), at(131, 20, 30)]),
        // With a day of the month that is *, the day of the week decides, and the other way round.
        ("0 0 * * 1", vec![at(5, 0, 0), at(12, 0, 0)]),
        ("0 0 3 * *", vec![at(3, 0, 0), at(34, 0, 0)]),
        // condor_crontab.cpp: all days of the week, written as a range, are days like others of the logical or.
        ("0 0 3 * 0-6", vec![at(2, 0, 0), at(3, 0, 0), at(4, 0, 0)]),
        ("0 0 1-31 * 1", vec![at(5, 0, 0), at(12, 0, 0)]),
        // February 29 comes in 2028.
        ("0 0 29 2", vec![at(790, 0, 0)]),
    ] {
        let crontab = crontab(line);
        let mut time = at(1, 12, 0);
        for expected in expected {
            let next = crontab.next(time).unwrap();
            assert_eq!(next, expected, "{line} after {time}");
            time = next;
        }
    }
}

/// "A deferral time is determined based on the current time rounded later in time to the next minute."
#[test]
fn a_time_that_matches_is_not_its_own_next_time_but_its_own_last() {
    let crontab = crontab("0");
    assert_eq!(crontab.next(at(1, 12, 0)), Some(at(1, 13, 0)));
    assert_eq!(crontab.next(at(1, 12, 0) - 1), Some(at(1, 12, 0)));
    assert_eq!(crontab.last(at(1, 12, 0)), Some(at(1, 12, 0)));
    assert_eq!(crontab.last(at(1, 12, 0) - 1), Some(at(1, 11, 0)));
}

#[test]
fn a_time_at_the_end_of_the_numbers_has_no_next_time() {
    let crontab = crontab("0");
    assert_eq!((crontab.next(i64::MAX), crontab.last(i64::MIN)), (None, None));
}

/// Crontabs, times, and the next times that condor_crontab.cpp of HTCondor 25 finds: the file was compiled on its own, and asked for
/// 20,000 crontabs that were drawn at random. The answers were the same, but for the differences that docs/reference/differences.md
/// names.
#[test]
fn the_next_times_are_those_of_htcondor() {
    for (line, time, next) in [
        ("57,58 */2,5,4-6/4 9-26,2-22/4 * 4,*/4", 1_953_444_602, 1_953_449_820),
        ("17-59,*/3,6 3,22 7 2-5,9 0-6/1,*/6", 1_881_031_197, 1_882_926_000),
        ("2-13,24-52 10,*/9 6-14 * 5-7", 1_813_540_011, 1_813_881_720),
        ("* * 21-25,27,21 5-8/7 6,0-2,0", 1_834_571_150, 1_846_022_400),
        ("22,39 9,1,3-15/1 12 */7,*/6 0,2,3", 1_865_883_925, 1_875_144_120),
        ("* * 22-25/2,*/3 * 6-6", 1_929_121_977, 1_929_139_200),
        ("*/8,13,7 6 4,23-28,30 * 7,2", 1_930_361_491, 1_930_370_400),
        ("* 14-21/1 6 5,*/9 3,0-7/5,5-5", 1_844_246_292, 1_851_429_600),
        ("* * */3,10 */8 2-4,6,2", 1_906_488_787, 1_911_772_800),
        ("* */7 8-9 1-7 3-7", 1_877_593_598, 1_877_608_800),
        ("48-53/4,40 * 4-31,7-23 * */4", 1_795_670_009, 1_795_671_600),
        ("26-33/3 13,5-22,*/1 19 4-8 6-6", 1_795_418_584, 1_806_712_020),
        ("5,*/6 * 10-30 1-12/5 4,1-5/1,4", 1_841_923_168, 1_841_923_440),
        ("39,23,14 6-9 4,11-26 * 7,2", 1_897_315_300, 1_897_366_440),
        ("11,2-45/6 */2 27,1-14,*/5 10-12/6,10 */9", 1_777_240_979, 1_790_813_160),
        ("* * */5,5,24 6 *", 1_955_817_918, 1_970_006_400),
        ("9 3-4,*/9,16 */1,12,16 3,*/1 3-7/7,3", 1_829_880_604, 1_830_038_940),
        ("47-58/5,*/4 2-17,13,*/1 28,16 * 2", 1_890_054_087, 1_890_432_000),
        ("11-28 0-12,4 * 2-9,7,6-11 *", 1_950_163_594, 1_950_163_860),
        ("23,1 * 19,1-6/6 4-6/1 2", 1_851_936_279, 1_869_868_860),
        ("40-54 * 4 * 2-3/1", 1_945_126_139, 1_945_471_200),
        ("* * 12,*/9 4,9,9-11 1-7,3,*/3", 1_931_713_628, 1_932_768_000),
        ("* * 20,29 * *", 1_908_651_241, 1_908_921_600),
        ("0-23 0-17/2,18 * * 7,5", 1_873_720_243, 1_873_756_800),
        ("* * 23-29/6,1 */2 3,5,7", 1_806_350_719, 1_806_537_600),
        ("* * 6-12 3 *", 1_939_784_182, 1_962_144_000),
        ("5 * * 9 */2,6,1-7", 1_886_940_690, 1_914_451_500),
        ("5-58/6,10 19,4 */3,*/5 * 5,5,3", 1_938_763_709, 1_938_798_360),
    ] {
        assert_eq!(crontab(line).next(time), Some(next), "{line} after {time}");
    }
}

/// The values that a text of numbers, ranges and steps names, read in another way than the crate reads it.
#[derive(Clone, Debug)]
struct Listed {
    text: String,
    values: Vec<i64>,
    star: bool,
}

fn listed(low: i64, high: i64) -> impl Strategy<Value = Listed> {
    let item = prop_oneof![
        (low..=high).prop_map(|value| (value.to_string(), vec![value])),
        (low..=high, low..=high).prop_map(|(a, b)| {
            let (first, last) = (a.min(b), a.max(b));
            (format!("{first}-{last}"), (first..=last).collect())
        }),
        (1..=high.min(20)).prop_map(move |step| {
            (format!("*/{step}"), (low..=high).filter(|value| value % step == 0).collect())
        }),
    ];
    let list = prop::collection::vec(item, 1..4).prop_map(|items| Listed {
        text: items.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(","),
        values: items.into_iter().flat_map(|(_, values)| values).collect(),
        star: false,
    });
    let star = Just(Listed { text: "*".to_owned(), values: (low..=high).collect(), star: true });
    prop_oneof![2 => list, 1 => star]
}

fn matches(fields: &[Listed; 5], time: i64) -> bool {
    let [minutes, hours, days, months, weekdays] = fields;
    let date = date(time.div_euclid(86_400)).unwrap();
    let has = |listed: &Listed, value: i64| listed.values.contains(&value);
    let number = i64::from(date.weekday().to_sunday_zero_offset());
    let weekday = has(weekdays, number) || (number == 0 && has(weekdays, 7));
    let all_days = (1..=31).all(|day| has(days, day));
    let day = match (all_days, weekdays.star) {
        (true, true) => true,
        (true, false) => weekday,
        (false, true) => has(days, date.day().into()),
        (false, false) => weekday || has(days, date.day().into()),
    };
    let minute = time.div_euclid(60);
    has(minutes, minute.rem_euclid(60))
        && has(hours, minute.div_euclid(60).rem_euclid(24))
        && has(months, date.month().into())
        && day
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The search by minutes ends after 40 days, so that crontabs that match more seldom are only partly checked.
    #[test]
    fn the_next_time_matches_and_no_time_before_it_does(
        fields in [listed(0, 59), listed(0, 23), listed(1, 31), listed(1, 12), listed(0, 7)],
        time in at(1, 0, 0)..at(1500, 0, 0),
    ) {
        let texts = [0, 1, 2, 3, 4].map(|field: usize| fields.get(field).map(|listed| listed.text.as_str()));
        let Ok(crontab) = Crontab::new(texts) else { return Ok(()) };
        let next = crontab.next(time).unwrap();
        prop_assert!(next > time && next % 60 == 0 && matches(&fields, next), "{fields:?}: {next} after {time}");
        let minutes = (time.div_euclid(60) + 1..next / 60).take(40 * 24 * 60);
        for minute in minutes {
            prop_assert!(!matches(&fields, minute * 60), "{fields:?}: {} before {next}", minute * 60);
        }
        prop_assert_eq!(crontab.last(next), Some(next));
        let last = crontab.last(next - 1).unwrap();
        prop_assert!(last <= time && matches(&fields, last), "{:?}: {} before {}", fields, last, next);
        prop_assert_eq!(crontab.next(last), Some(next));
    }
}
