//! Which ads are in force, and what is told at once.

use super::*;
use NodeCronAutopublish::{Always, IfChanged, Never};

fn job(name: &str) -> NodeCronJob {
    NodeCronJob { name: name.to_owned(), ..NodeCronJob::default() }
}

fn told(tag: &str, attributes: &[(&str, &str)]) -> OutputAd {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let tag = Some(tag.to_owned()).filter(|tag| !tag.is_empty());
    OutputAd { tag, update: None, attributes: attributes.iter().map(owned).collect() }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn shown(book: &Book) -> String {
    let line = |attributes: &BTreeMap<String, String>| {
        attributes.iter().map(|(name, expr)| format!("{name}={expr}")).collect::<Vec<_>>().join(" ")
    };
    let published = book.published();
    let slots = published.slot_ads.iter().map(|ad| format!("{:?} {}", ad.slots, line(&ad.attributes)));
    [line(&published.attributes)].into_iter().chain(slots).collect::<Vec<_>>().join("; ")
}

#[test]
fn an_ad_replaces_the_last_of_its_job_and_tag() {
    let mut book = Book::default();
    let jobs = [job("a"), NodeCronJob { slots: vec![2], ..job("b") }];
    book.keep(&jobs);
    let mut tell = |at_: &NodeCronJob, tag: &str, attributes: &[(&str, &str)]| {
        book.told(at_, told(tag, attributes), Never, at(0));
        shown(&book)
    };
    assert_eq!(tell(&jobs[0], "", &[("A", "1"), ("B", "1")]), "A=1 B=1");
    assert_eq!(tell(&jobs[0], "", &[("A", "2")]), "A=2", "the whole ad is replaced");
    assert_eq!(tell(&jobs[0], "s1", &[("A", "3"), ("SlotId", "1")]), "A=2; [] A=3 SlotId=1");
    assert_eq!(
        tell(&jobs[0], "x", &[("a", "4")]),
        "a=4; [] A=3 SlotId=1",
        "a later ad comes first, whatever its case"
    );
    assert_eq!(
        tell(&jobs[1], "", &[("C", "5")]),
        "a=4; [2] C=5; [] A=3 SlotId=1",
        "ads without tags come first"
    );
    book.keep(&jobs[1..]);
    assert_eq!(shown(&book), "; [2] C=5", "a job that is gone says nothing");
}

/// `STARTD_CRON_AUTOPUBLISH`, and "the optional keyword update:<bool>, which can be used to override the Startd Cron configuration".
#[test]
fn what_is_told_at_once() {
    for (publish, update, first, same, changed) in [
        (Never, None, false, false, false),
        (IfChanged, None, true, false, true),
        (Always, None, true, true, true),
        (Never, Some(true), true, true, true),
        (Always, Some(false), false, false, false),
    ] {
        let mut book = Book::default();
        let mut tell = |value: &str, second: i64| {
            book.told(&job("a"), OutputAd { update, ..told("", &[("A", value)]) }, publish, at(second))
        };
        assert_eq!(
            [tell("1", 0), tell("1", 0), tell("2", 0)],
            [first, same, changed],
            "{publish:?} {update:?}"
        );
    }
    let mut book = Book::default();
    let mut tell = |attributes: &[(&str, &str)]| book.told(&job("a"), told("", attributes), Never, at(0));
    assert!(!tell(&[("A", "1")]));
    assert!(tell(&[("A", "1"), ("SlotBrokenReason", "\"hot\"")]), "a slot that breaks is to take no jobs");
    assert!(!tell(&[("A", "2"), ("SlotBrokenReason", "\"hot\"")]));
    assert!(tell(&[("A", "1")]), "nor is one that is mended to wait");
}

#[test]
fn the_time_of_the_last_run_is_told_where_each_run_is() {
    let job = NodeCronJob { prefix: "a_".to_owned(), ..job("a") };
    for (publish, expected) in [(Never, "a_A=1"), (IfChanged, "a_A=1"), (Always, "a_A=1 a_LastUpdate=7")] {
        let mut book = Book::default();
        book.told(&job, told("", &[("a_A", "1")]), publish, at(7));
        assert_eq!(shown(&book), expected, "{publish:?}");
    }
}

#[test]
fn the_report_has_room_for_so_much() {
    let mut book = Book::default();
    let attributes: Vec<(String, String)> = (0..150).map(|n| (format!("A{n}"), "1".to_owned())).collect();
    let ad = |prefix: &str| OutputAd {
        attributes: attributes
            .iter()
            .map(|(name, value)| (format!("{prefix}{name}"), value.clone()))
            .collect(),
        ..OutputAd::default()
    };
    book.told(&job("a"), ad("x"), Never, at(0));
    assert!(!book.published().left_out);
    book.told(&job("b"), ad("y"), Never, at(0));
    assert!(book.published().left_out && book.published().attributes.len() == 200);
    let mut book = Book::default();
    for number in 0..100 {
        book.told(&job("a"), told(&format!("t{number}"), &[("SlotId", "1")]), Never, at(0));
    }
    assert_eq!((book.ads.len(), book.published().slot_ads.len(), book.published().left_out), (64, 64, true));
    book.told(&job("a"), told("", &[("A", "1")]), Never, at(0));
    assert_eq!(book.published().attributes.len(), 1, "the ad without a tag has a place of its own");
    book.keep(&[job("a")]);
    assert!(!book.published().left_out, "until more is told again");
    book.told(&job("b"), told("t", &[("SlotId", "1")]), Never, at(0));
    assert!(book.published().left_out);
    let mut book = Book::default();
    let long = "1".repeat(4000);
    for number in 0..20 {
        book.told(&job(&format!("j{number}")), told("", &[(&format!("A{number}"), &long)]), Never, at(0));
    }
    assert!(book.published().left_out && book.published().attributes.len() == 16);
}
