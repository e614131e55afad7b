//! Chooses which of many series have a name in the plot, and draws the others together.

use super::thin::Columns;
use super::{Chart, Role, Series};

/// The measured and quiet series, divided into those with a name and the others, both in the chart's order.
pub(super) struct Choice<'a> {
    pub named: Vec<&'a Series>,
    pub others: Vec<&'a Series>,
}

impl<'a> Choice<'a> {
    /// Names at most `most` measured series, those with the largest mean. If there are others, they count as one of
    /// the `most`. Quiet series always have a name.
    pub fn new(chart: &'a Chart, columns: &Columns, most: usize) -> Self {
        let drawn: Vec<&Series> =
            chart.series.iter().filter(|series| series.role != Role::Reference).collect();
        let measured = drawn.iter().filter(|series| series.role == Role::Measured).count();
        if measured <= most {
            return Self { named: drawn, others: Vec::new() };
        }
        let mut sizes: Vec<(f64, usize)> = drawn
            .iter()
            .enumerate()
            .filter(|(_, series)| series.role == Role::Measured)
            .map(|(at, series)| (columns.means(&series.points).iter().map(|mean| mean.abs()).sum(), at))
            .collect();
        // The largest come first; equal ones are in the chart's order.
        sizes.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let dropped: Vec<usize> = sizes.into_iter().skip(most.saturating_sub(1)).map(|(_, at)| at).collect();
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for (at, series) in drawn.into_iter().enumerate() {
            if dropped.contains(&at) { others.push(series) } else { named.push(series) }
        }
        Self { named, others }
    }

    /// The name of the others together.
    pub fn others_name(&self) -> String {
        format!("{} others", self.others.len())
    }
}

/// The lowest and highest value of the series in each column that has a value: `(x, lowest, highest)`.
pub(super) fn band(series: &[&Series], columns: &Columns) -> Vec<(f64, f64, f64)> {
    let middles = columns.middles();
    let mut bounds: Vec<Option<(f64, f64)>> = vec![None; middles.len()];
    for one in series {
        for (bound, value) in bounds.iter_mut().zip(columns.values(&one.points)) {
            if let Some(value) = value {
                let (low, high) = bound.unwrap_or((value, value));
                *bound = Some((low.min(value), high.max(value)));
            }
        }
    }
    middles.into_iter().zip(bounds).filter_map(|(x, bound)| bound.map(|(low, high)| (x, low, high))).collect()
}
