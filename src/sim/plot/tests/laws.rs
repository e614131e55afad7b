use proptest::prelude::*;

use super::super::labels::apart;
use super::*;

fn points() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let value = prop_oneof![4 => 0.0..1e6f64, 1 => Just(0.0), 1 => 0.0..1e-6f64, 1 => Just(f64::NAN), 1 => 0.0..1e14f64];
    let step = prop_oneof![3 => 0.0..1e5f64, 1 => Just(0.0), 1 => 0.0..1e9f64];
    proptest::collection::vec((step, value), 0..30).prop_map(|steps| {
        let mut x = 0.0;
        let at = |(step, y)| {
            x += step;
            (x, y)
        };
        steps.into_iter().map(at).collect()
    })
}

fn any_chart() -> impl Strategy<Value = Chart> {
    let kind = prop_oneof![Just(Kind::Lines), Just(Kind::Steps), Just(Kind::Stacked)];
    let role = prop_oneof![Just(Role::Measured), Just(Role::Reference), Just(Role::Quiet)];
    let time = prop_oneof![
        Just(Unit::Span),
        any::<i64>().prop_map(|start| Unit::Date { start }),
        Just(Unit::Number)
    ];
    let unit = prop_oneof![Just(Unit::Number), Just(Unit::Share), Just(Unit::Span)];
    let series = proptest::collection::vec((".{0,30}", role, points()), 0..15);
    ("(?s).{0,200}", "(?s).{0,200}", time, unit, kind, series).prop_map(
        |(title, subtitle, x, y, kind, series)| Chart {
            title,
            subtitle,
            x: Axis::new("x", x),
            y: Axis::new("y", y),
            kind,
            series: series.into_iter().map(|(name, role, points)| Series { name, role, points }).collect(),
        },
    )
}

proptest! {
    // A chart takes a tenth of a second without optimization.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_chart_is_a_well_formed_document_or_an_error(chart in any_chart()) {
        if let Ok(svg) = chart.svg() {
            let _ = texts(&svg);
            prop_assert_eq!(chart.svg().unwrap(), svg);
        }
    }

    #[test]
    fn names_stand_apart_and_within(wanted in proptest::collection::vec(-50.0..500.0f64, 0..20)) {
        let placed = apart(&wanted, 10.0, (0.0, 400.0));
        prop_assert_eq!(placed.len(), wanted.len());
        let mut sorted = placed.clone();
        sorted.sort_by(f64::total_cmp);
        prop_assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-6), "{:?}", sorted);
        prop_assert!(placed.iter().all(|place| (-1e-6..=400.0 + 1e-6).contains(place)), "{:?}", placed);
        for (one, other) in (0..wanted.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
            prop_assert!(wanted[one] <= wanted[other] || placed[one] > placed[other]);
        }
    }
}
