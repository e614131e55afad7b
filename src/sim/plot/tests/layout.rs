use super::super::labels::{apart, highest, inside};
use super::super::text::{fit, width, wrap};
use super::super::thin::{Columns, pieces, steps};

#[test]
fn names_that_would_cover_each_other_are_moved_apart() {
    for (wanted, placed) in [
        (vec![], vec![]),
        (vec![50.0], vec![50.0]),
        (vec![50.0, 80.0], vec![50.0, 80.0]),
        (vec![50.0, 52.0], vec![46.0, 56.0]),
        (vec![52.0, 50.0], vec![56.0, 46.0]),
        (vec![50.0, 50.0, 50.0], vec![40.0, 50.0, 60.0]),
        (vec![0.0, 1.0], vec![0.0, 10.0]),
        (vec![99.0, 100.0], vec![90.0, 100.0]),
        (vec![40.0, 49.0, 58.0], vec![39.0, 49.0, 59.0]),
    ] {
        assert_eq!(apart(&wanted, 10.0, (0.0, 100.0)), placed, "{wanted:?}");
    }
}

#[test]
fn a_name_stands_in_the_first_place_that_is_roomy_enough() {
    let area: Vec<(f64, f64, f64)> =
        (0..100).map(|x| (f64::from(x), 0.0, if (20..60).contains(&x) { 50.0 } else { 1.0 })).collect();
    assert_eq!(inside(&area, 10.0, 10.0), Some((40.0, 25.0)));
    assert_eq!(inside(&area, 50.0, 10.0), None);
    assert_eq!(inside(&area, 10.0, 60.0), None);
    assert_eq!(inside(&[], 10.0, 1.0), None);
    assert_eq!(highest(&area), Some((59.0, 25.0)));
}

#[test]
fn long_text_is_cut_in_its_middle_and_headings_are_wrapped() {
    assert_eq!(fit("short", 10.0, 100.0), "short");
    let cut = fit("group_physics.ann@submit.example.org", 10.0, 100.0);
    assert!(cut.starts_with("group") && cut.ends_with("org") && cut.contains('…'), "{cut}");
    assert!(width(&cut, 10.0) <= 100.0, "{cut}");
    assert_eq!(fit("wide", 10.0, 0.0), "w…");
    assert_eq!(wrap("one two three", 10.0, 60.0, 2), ["one two", "three"]);
    assert_eq!(wrap("one two three four five", 10.0, 60.0, 2).len(), 2);
    assert!(wrap("one two three four five", 10.0, 60.0, 2)[1].ends_with('…'));
    assert_eq!(wrap("", 10.0, 60.0, 2), Vec::<String>::new());
}

#[test]
fn a_line_breaks_where_it_has_no_value() {
    let points = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 2.0), (3.0, 3.0), (4.0, f64::INFINITY)];
    assert_eq!(pieces(&points), [vec![(0.0, 1.0)], vec![(2.0, 2.0), (3.0, 3.0)]]);
}

#[test]
fn a_point_between_gaps_is_a_dash() {
    let columns = Columns::new((0.0, 100.0), 100);
    assert_eq!(columns.seen(vec![(50.0, 7.0)]), [(48.0, 7.0), (52.0, 7.0)]);
    assert_eq!(columns.seen(vec![(0.0, 7.0)]), [(0.0, 7.0), (2.0, 7.0)]);
    let line = vec![(1.0, 2.0), (3.0, 4.0)];
    assert_eq!(columns.seen(line.clone()), line);
}

#[test]
fn steps_have_corners() {
    let points = [(0.0, 1.0), (1.0, 1.0), (2.0, 3.0), (4.0, 3.0)];
    assert_eq!(steps(&points), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0), (4.0, 3.0)]);
    assert_eq!(steps(&[]), []);
}

#[test]
fn a_thin_line_keeps_its_peaks() {
    let columns = Columns::new((0.0, 1000.0), 10);
    let points: Vec<(f64, f64)> =
        (0..=1000).map(|x| (f64::from(x), if x == 555 { 9.0 } else { 1.0 })).collect();
    let thin = columns.line(&points);
    assert!(
        thin.len() <= 40 && thin.contains(&(555.0, 9.0)) && thin.is_sorted_by_key(|(x, _)| *x),
        "{thin:?}"
    );
    assert_eq!((thin[0], thin[thin.len() - 1]), ((0.0, 1.0), (1000.0, 1.0)));
}

#[test]
fn means_are_of_the_time_that_a_value_holds() {
    let columns = Columns::new((0.0, 40.0), 4);
    let points = [(0.0, 4.0), (5.0, 8.0), (20.0, f64::NAN), (35.0, 2.0)];
    assert_eq!(columns.means(&points), [6.0, 8.0, 0.0, 1.0]);
    assert_eq!(columns.values(&points), [Some(6.0), Some(8.0), None, Some(2.0)]);
}

#[test]
fn dashes_are_parts_of_the_line() {
    let columns = Columns::new((0.0, 20.0), 20);
    assert_eq!(
        columns.dashes(&[(0.0, 0.0), (20.0, 20.0)]),
        [vec![(0.0, 0.0), (6.0, 6.0)], vec![(10.0, 10.0), (16.0, 16.0)]]
    );
    assert_eq!(columns.dashes(&[(2.0, 1.0), (3.0, 1.0), (3.0, 5.0), (4.0, 5.0)]).len(), 1);
    assert_eq!(columns.dashes(&[(7.0, 1.0), (9.0, 1.0)]), Vec::<Vec<(f64, f64)>>::new());
    assert_eq!(columns.dashes(&[]), Vec::<Vec<(f64, f64)>>::new());
}

#[test]
fn a_line_is_crowded_by_the_columns_that_it_is_in() {
    let columns = Columns::new((0.0, 100.0), 100);
    let dense =
        |from: u32, to: u32| (from * 2..to * 2).map(|half| (f64::from(half) / 2.0, 1.0)).collect::<Vec<_>>();
    for (points, crowded) in [
        (dense(0, 100), true),
        (dense(60, 100), true),
        (vec![(0.0, 1.0), (50.0, 1.0)], false),
        (vec![(0.0, 1.0), (0.0, 2.0)], false),
        (vec![], false),
    ] {
        assert_eq!(columns.are_crowded(&points), crowded, "{} points", points.len());
    }
}
