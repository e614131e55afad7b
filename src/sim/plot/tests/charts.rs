use super::*;

#[test]
fn lines_have_their_names_at_their_ends() {
    let grown = hourly((0..=48).map(|hour| 100.0 - 99.5 * 0.5f64.powf(f64::from(hour) / 24.0)));
    let chart = Chart {
        title: "Real user priority grows toward the cores in use".to_owned(),
        subtitle: "One user takes 100 cores at hour 0; PRIORITY_HALFLIFE is a day; dashed: cores in use"
            .to_owned(),
        x: Axis::new("since the start", Unit::Span),
        y: Axis::new("real user priority", Unit::Number),
        kind: Kind::Lines,
        series: vec![
            Series::new("ann", grown),
            Series::new("ann", hourly([100.0; 49])).in_role(Role::Reference),
            Series::new("half", hourly([50.0; 49])).in_role(Role::Reference),
        ],
    };
    insta::assert_snapshot!("lines", chart.svg().unwrap());
}

#[test]
fn areas_have_their_names_beside_or_in_them() {
    let part = |values: [f64; 5]| hourly(values);
    let chart = Chart {
        title: "Owners come back at noon <& the pool waits>".to_owned(),
        subtitle: "Cores by state of their slot".to_owned(),
        x: Axis::new("", Unit::Date { start: 1_772_409_600 }),
        y: Axis::new("cores", Unit::Number),
        kind: Kind::Stacked,
        series: vec![
            Series::new("Claimed/Busy", part([80.0, 80.0, 10.0, 40.0, 60.0])),
            Series::new("Claimed/Suspended", part([0.0, 0.0, 60.0, 0.0, 0.0])),
            Series::new("Preempting/Vacating", part([0.0; 5])),
            Series::new("Owner", part([0.0, 0.0, 20.0, 40.0, 30.0])),
            Series::new("Unclaimed", part([20.0, 20.0, 10.0, 20.0, 10.0])).in_role(Role::Quiet),
        ],
    };
    let svg = chart.svg().unwrap();
    let texts = texts(&svg);
    assert!(texts.iter().any(|text| text == "Claimed/Suspended"), "{texts:?}");
    assert!(
        texts.iter().all(|text| text != "Preempting/Vacating"),
        "what never was needs no name: {texts:?}"
    );
    // The name of an area that has ended stands on a pale ground, in the ink of its area.
    let (before, _) = svg.split_once("Claimed/Suspended\n").unwrap();
    let (ground, text) = before.rsplit_once("<rect ").unwrap();
    assert!(text.contains("opacity=\"0.85\"") && text.contains("fill=\"#B44A26\""), "{text}");
    assert!(ground.contains("<polygon"), "the ground is above all areas");
    insta::assert_snapshot!("areas", svg);
}

#[test]
fn steps_hold_until_the_next_value() {
    let chart = chart(Kind::Steps, vec![Series::new("ann", hourly([1.0, 5.0, 5.0, 2.0]))]);
    insta::assert_snapshot!("steps", chart.svg().unwrap());
}

#[test]
fn of_many_the_largest_are_named_and_the_others_counted() {
    let users = |kind| {
        let series = (0..200).map(|user| Series::new(format!("user{user}"), hourly([f64::from(user); 3])));
        texts(&chart(kind, series.collect()).svg().unwrap())
    };
    let lines = users(Kind::Lines);
    for name in ["user199", "user198", "user197", "user196", "user195", "user194", "194 others"] {
        assert!(lines.contains(&name.to_owned()), "{name}: {lines:?}");
    }
    assert!(!lines.contains(&"user193".to_owned()), "{lines:?}");
    let areas = users(Kind::Stacked);
    for name in ["user199", "user193", "193 others"] {
        assert!(areas.contains(&name.to_owned()), "{name}: {areas:?}");
    }
}

#[test]
fn what_is_deserved_by_who_has_no_name_is_not_drawn() {
    let user = |user: u32| Series::new(format!("user{user}"), hourly([f64::from(user); 3]));
    let measured: Vec<Series> = (0..20).map(user).collect();
    let deserved = (0..20).map(|number| user(number).in_role(Role::Reference));
    let chart = chart(Kind::Lines, measured.into_iter().chain(deserved).collect());
    // Only the references of the six named series are drawn, in their colors; none is gray.
    let svg = chart.svg().unwrap();
    assert!(svg.contains("#0072B2") && !svg.contains("#777777"), "{svg}");
}

#[test]
fn the_size_of_a_plot_does_not_depend_on_how_many_points_there_are() {
    let sawtooth = |points: u32| {
        let values =
            (0..points).map(|at| (f64::from(at), f64::from(at % 7) + f64::from(at) / f64::from(points)));
        values.collect::<Vec<_>>()
    };
    for kind in [Kind::Lines, Kind::Steps, Kind::Stacked] {
        for points in [1_000, 50_000, 400_000] {
            let series = (0..10).map(|name| Series::new(format!("{name}"), sawtooth(points)));
            let size = chart(kind, series.collect()).svg().unwrap().len();
            assert!(size < 400_000, "{kind:?}, {points} points: {size} bytes");
        }
    }
}

#[test]
fn what_cannot_be_drawn_is_refused_with_the_reason() {
    for (kind, points, message) in [
        (Kind::Lines, vec![], "there is nothing to draw: no series has a value"),
        (Kind::Lines, vec![(0.0, f64::NAN)], "there is nothing to draw: no series has a value"),
        (Kind::Lines, vec![(f64::INFINITY, 1.0)], "series ann: inf is no time"),
        (Kind::Lines, vec![(1.0, 1.0), (0.0, 1.0)], "series ann: time goes back, from 1 to 0"),
        (Kind::Stacked, vec![(0.0, -1.0)], "series ann: -1 cannot be stacked: it is negative"),
        (Kind::Lines, vec![(0.0, 1e300)], "series ann: 1e300 is out of range"),
        (Kind::Lines, vec![(-1e300, 1.0)], "series ann: -1e300 is no time"),
    ] {
        let chart = chart(kind, vec![Series::new("ann", points)]);
        assert_eq!(chart.svg().unwrap_err().to_string().replace(&"0".repeat(300), "e300"), message);
    }
}

#[test]
fn text_of_others_stays_text() {
    let hostile = "<script>alert('&')</script>\u{0}\u{ffff}\n\"]]>";
    let mut chart = chart(Kind::Lines, vec![Series::new(hostile, hourly([1.0, 2.0]))]);
    chart.title = hostile.to_owned();
    chart.subtitle = hostile.to_owned();
    chart.x.label = hostile.to_owned();
    chart.y.label = hostile.to_owned();
    let svg = chart.svg().unwrap();
    assert!(!svg.contains("<script"), "{svg}");
    assert_eq!(texts(&svg)[1], "<script>alert('&')</script>\u{fffd}\u{fffd} \"]]>");
}

#[test]
fn pairs_are_points_on_a_line_each() {
    let pair = |name: &str, first, second| Pair { name: name.to_owned(), first, second };
    let pairs = Pairs {
        title: "With short.yaml procs wait 30 min less".to_owned(),
        subtitle: "Mean wait until the first run, by submitter".to_owned(),
        axis: Axis::new("mean wait", Unit::Span),
        names: ("long.yaml".to_owned(), "short.yaml".to_owned()),
        rows: vec![
            pair("ann", Some(5400.0), Some(1800.0)),
            pair("bob & eve", Some(3600.0), None),
            pair("zoe", None, Some(60.0)),
        ],
    };
    insta::assert_snapshot!("pairs", pairs.svg().unwrap());
    let many = Pairs {
        rows: (0..40).map(|row| pair(&row.to_string(), Some(1.0), Some(2.0))).collect(),
        ..pairs.clone()
    };
    let texts = texts(&many.svg().unwrap());
    assert!(texts.iter().any(|text| text.ends_with("10 more are not shown")), "{texts:?}");
    assert_eq!(Pairs { rows: vec![pair("ann", None, None)], ..pairs.clone() }.svg(), Err(PlotError::Empty));
    let far = Pairs { rows: vec![pair("ann", Some(1e300), None)], ..pairs }.svg();
    assert!(matches!(far, Err(PlotError::OutOfRange { .. })), "{far:?}");
}
