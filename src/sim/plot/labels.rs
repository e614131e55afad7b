//! Finds places for names, so that they do not cover each other.

/// Moves names apart. `wanted` has the best height of each name; in the result, neighbors are at least `gap` apart,
/// and all are within `from..=to`. The names keep the order of their wanted heights, and the sum of squared moves is
/// as small as possible.
pub(super) fn apart(wanted: &[f64], gap: f64, (from, to): (f64, f64)) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    let height = |at: usize| wanted.get(at).copied().unwrap_or(from);
    order.sort_by(|one, other| height(*one).total_cmp(&height(*other)));
    // After the gaps are subtracted, the names must only keep their order. The solution of least squares under that
    // condition puts blocks of neighboring names at the mean of their wanted heights.
    let mut blocks: Vec<(f64, f64)> = Vec::new();
    for (place, at) in order.iter().enumerate() {
        let (mut sum, mut count) = (height(*at) - gap * float(place), 1.0);
        while let Some((before, many)) = blocks.pop_if(|(before, many)| *before / *many > sum / count) {
            sum += before;
            count += many;
        }
        blocks.push((sum, count));
    }
    let last = (to - gap * float(order.len().saturating_sub(1))).max(from);
    let mut placed = wanted.to_vec();
    let mut place = 0;
    for (sum, count) in blocks {
        let mut left = count;
        while left > 0.5 {
            if let Some(spot) = order.get(place).and_then(|at| placed.get_mut(*at)) {
                *spot = (sum / count).clamp(from, last) + gap * float(place);
            }
            place += 1;
            left -= 1.0;
        }
    }
    placed
}

/// The place in an area for a name that is `wide` columns wide and `high` in values: the middle of the first of the
/// roomiest places; `None` if none is large enough.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a name's width")]
pub(super) fn inside(bounds: &[(f64, f64, f64)], wide: f64, high: f64) -> Option<(f64, f64)> {
    let rooms: Vec<(f64, (f64, f64))> = bounds
        .windows((wide.ceil() as usize).max(1))
        .map(|window| {
            let lower = window.iter().map(|(_, low, _)| *low).fold(f64::NEG_INFINITY, f64::max);
            let upper = window.iter().map(|(_, _, high)| *high).fold(f64::INFINITY, f64::min);
            let x = window.get(window.len() / 2).map_or(0.0, |(x, _, _)| *x);
            // A place of more than three times the name's height is no better.
            ((upper - lower).min(3.0 * high), (x, f64::midpoint(lower, upper)))
        })
        .collect();
    let best = rooms.iter().map(|(room, _)| *room).fold(f64::NEG_INFINITY, f64::max);
    let equal = |room: f64| room >= best * (1.0 - 1e-9);
    let first = rooms.iter().position(|(room, _)| best >= high && equal(*room))?;
    let many = rooms.iter().skip(first).take_while(|(room, _)| equal(*room)).count();
    rooms.get(first + many / 2).map(|(_, place)| *place)
}

/// The middle of the last place where an area is highest.
pub(super) fn highest(bounds: &[(f64, f64, f64)]) -> Option<(f64, f64)> {
    let high = |bound: &(f64, f64, f64)| bound.2 - bound.1;
    let highest = bounds.iter().reduce(|best, other| if high(other) < high(best) { best } else { other })?;
    Some((highest.0, f64::midpoint(highest.1, highest.2)))
}

#[allow(clippy::cast_precision_loss, reason = "a few")]
fn float(count: usize) -> f64 {
    count as f64
}
