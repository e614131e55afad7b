//! Pages of a store.

use classad::Expr;
use tempfile::TempDir;

use super::*;
use crate::{Limits, Store};

/// A history of 30 procs in several files.
fn history() -> (TempDir, Store) {
    let directory = TempDir::new().unwrap();
    let mut store = Store::open(directory.path(), Limits { max_log: 2000, rotations: 50 }).unwrap();
    for number in 0..30_i64 {
        let (cluster, proc) = (1 + number / 10, number % 10);
        let mut ad = Ad::new()
            .with("ClusterId", cluster)
            .with("ProcId", proc)
            .with("Owner", if cluster == 2 { "bob" } else { "ada" })
            .with("CompletionDate", 1000 + number)
            .with("TotalSubmitProcs", 10)
            .with("GlobalJobId", format!("ns#{cluster}.{proc}#u").as_str());
        ad.insert("Twice", Expr::parse("Half * 4").unwrap());
        ad.set("Half", number);
        store.append(&[ad], 1000 + number, None).unwrap();
    }
    (directory, store)
}

/// The jobs of all pages, and how many pages there are.
fn read(directory: &TempDir, query: &Query) -> (Vec<(i64, i64)>, usize) {
    let (mut jobs, mut pages, mut query) = (Vec::new(), 0, query.clone());
    loop {
        let page = query.page(&Store::file_in(directory.path()), 0, &|| false).unwrap();
        pages += 1;
        let (ads, end) = PageEnd::split(&page.text).unwrap();
        assert_eq!(end, page.end);
        let mut records = Records::of(io::Cursor::new(ads), Direction::Forwards).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            jobs.push((record.banner.cluster.unwrap(), record.banner.proc.unwrap()));
            assert!(record.ad().is_ok());
        }
        match end.next {
            Some(next) => query.from = Some(next),
            None => return (jobs, pages),
        }
    }
}

fn all() -> Vec<(i64, i64)> {
    (0..30).map(|number| (1 + number / 10, number % 10)).collect()
}

#[test]
fn pages_have_each_ad_once_in_both_directions() {
    let (directory, _store) = history();
    for most_bytes in [1, 700, 1 << 20] {
        let mut query = Query { most_bytes, ..Query::default() };
        let (mut jobs, pages) = read(&directory, &query);
        jobs.reverse();
        assert_eq!(jobs, all());
        assert_eq!(pages == 1, most_bytes > 700, "{pages}");
        query.search.direction = Direction::Forwards;
        assert_eq!(read(&directory, &query).0, all());
    }
}

#[test]
fn a_page_that_is_late_ends_after_one_ad_at_least() {
    let (directory, _store) = history();
    let query = Query { most_bytes: 1 << 20, ..Query::default() };
    let page = query.page(&Store::file_in(directory.path()), 0, &|| true).unwrap();
    assert_eq!((page.end.found, page.end.next), (1, Some(30)));
}

#[test]
fn searches_end_when_they_have_all() {
    let (directory, _store) = history();
    let query = |search: Search| Query { most_bytes: 1 << 20, search, ..Query::default() };
    let end =
        |search: Search| query(search).page(&Store::file_in(directory.path()), 0, &|| false).unwrap().end;
    let one = end(Search { jobs: vec![(3, Some(5))], ..Search::default() });
    assert_eq!((one.found, one.next), (1, None));
    assert!(one.scanned <= 5, "{one:?}");
    let job = end(Search { jobs: vec![(2, None)], ..Search::default() });
    assert_eq!((job.found, job.scanned), (10, 10));
    let bob = end(Search { owners: vec!["BOB".to_owned()], limit: Some(3), ..Search::default() });
    assert_eq!((bob.found, bob.next), (3, None));
    let since = Expr::parse("ClusterId == 2").unwrap();
    assert_eq!(end(Search { since: Some(since), ..Search::default() }).found, 10);
    let few = vec![Expr::parse("Half >= 28").unwrap()];
    assert_eq!(end(Search { constraint: few, ..Search::default() }).found, 2);
    assert_eq!(end(Search { scan_limit: Some(4), ..Search::default() }).scanned, 4);
}

#[test]
fn attributes_come_with_those_that_they_refer_to() {
    let (directory, _store) = history();
    let names = ["Twice", "ClusterId", "Missing"].map(Name::from).into();
    let search = Search { limit: Some(1), ..Search::default() };
    let query = Query { search, attributes: Some(names), most_bytes: 1 << 20, from: None };
    let page = query.page(&Store::file_in(directory.path()), 0, &|| false).unwrap();
    let (ads, _) = PageEnd::split(&page.text).unwrap();
    let text = String::from_utf8(ads.to_vec()).unwrap();
    assert!(text.starts_with("ClusterId = 3\nHalf = 29\nTwice = Half * 4\n*** "), "{text}");
}

#[test]
fn a_damaged_ad_costs_no_other() {
    let (directory, store) = history();
    drop(store);
    let file = Store::file_in(directory.path());
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let query = Query { most_bytes: 1 << 20, ..Query::default() };
    let end = query.page(&file, 0, &|| false).unwrap().end;
    assert_eq!((end.found, end.damaged), (29, 1));
}

#[test]
fn a_page_that_was_cut_off_is_recognized() {
    let (directory, _store) = history();
    let query = Query { most_bytes: 1 << 20, ..Query::default() };
    let text = query.page(&Store::file_in(directory.path()), 0, &|| false).unwrap().text;
    for length in [0, 1, text.len() / 2, text.len() - 1] {
        assert_eq!(PageEnd::split(&text[..length]), None);
    }
}
