//! Reduces points to as many as pixels can show.

/// How many columns wide a point without neighbors is drawn.
const DASH: f64 = 4.0;

/// Splits a line at its missing values. A piece has at least one point.
pub(super) fn pieces(points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    points
        .split(|(_, y)| !y.is_finite())
        .filter(|piece| !piece.is_empty())
        .map(<[(f64, f64)]>::to_vec)
        .collect()
}

/// The corners of a line whose values each hold until the next point.
pub(super) fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::with_capacity(points.len() * 2);
    for &(x, y) in points {
        match corners.last() {
            Some(&(_, before)) if before.total_cmp(&y).is_eq() => {}
            Some(&(_, before)) => corners.extend([(x, before), (x, y)]),
            None => corners.push((x, y)),
        }
    }
    if let (Some(&(x, y)), Some(&(end, _))) = (points.last(), corners.last())
        && end < x
    {
        corners.push((x, y));
    }
    corners
}

/// The part of a line between two times.
fn clip(line: &[(f64, f64)], (from, to): (f64, f64)) -> Vec<(f64, f64)> {
    let first = line.partition_point(|(x, _)| *x < from);
    let last = line.partition_point(|(x, _)| *x <= to);
    let at = |x: f64, next: usize| {
        let (one, other) = (line.get(next.checked_sub(1)?)?, line.get(next)?);
        Some((x, one.1 + (other.1 - one.1) * (x - one.0) / (other.0 - one.0)))
    };
    let inside = line.get(first..last).unwrap_or_default();
    at(from, first).into_iter().chain(inside.iter().copied()).chain(at(to, last)).collect()
}

/// The columns of pixels between two times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    from: f64,
    to: f64,
    count: usize,
}

impl Columns {
    pub fn new((from, to): (f64, f64), count: usize) -> Self {
        Self { from, to, count: count.max(1) }
    }

    /// The time at which the first column begins.
    pub fn from(&self) -> f64 {
        self.from
    }

    /// The time at which the last column ends.
    pub fn to(&self) -> f64 {
        self.to
    }

    /// The column that a time is in.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a pixel"
    )]
    fn of(&self, x: f64) -> usize {
        let share = (x - self.from) / (self.to - self.from);
        if share.is_finite() { ((share * self.count as f64) as usize).min(self.count - 1) } else { 0 }
    }

    /// The time at which a column begins.
    #[allow(clippy::cast_precision_loss, reason = "a pixel")]
    fn start(&self, column: usize) -> f64 {
        self.from + (self.to - self.from) * column as f64 / self.count as f64
    }

    /// A piece of a line that can be seen: a point alone becomes a dash around it.
    #[allow(clippy::cast_precision_loss, reason = "a pixel")]
    pub fn seen(&self, piece: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
        let &[(x, y)] = piece.as_slice() else { return piece };
        let half = DASH / 2.0 * (self.to - self.from) / self.count as f64;
        vec![((x - half).max(self.from), y), ((x + half).min(self.to), y)]
    }

    /// The first, lowest, highest and last point of each column. A line through these looks the same as one through
    /// all points.
    pub fn line(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut thin = Vec::new();
        for column in points.chunk_by(|one, other| self.of(one.0) == self.of(other.0)) {
            let place = |pick: fn(f64, f64) -> bool| {
                let mut best: Option<(usize, f64)> = None;
                for (at, (_, y)) in column.iter().enumerate() {
                    if best.is_none_or(|(_, known)| pick(*y, known)) {
                        best = Some((at, *y));
                    }
                }
                best.map_or(0, |(at, _)| at)
            };
            let mut kept = [0, place(|y, known| y < known), place(|y, known| y > known), column.len() - 1];
            kept.sort_unstable();
            let mut last = None;
            for at in kept {
                if last != Some(at) {
                    thin.extend(column.get(at));
                    last = Some(at);
                }
            }
        }
        thin
    }

    /// The mean over each column of values that each hold until the next point. Missing values count as 0. The last
    /// value holds to the end.
    pub fn means(&self, points: &[(f64, f64)]) -> Vec<f64> {
        let wide = (self.to - self.from) / self.columns();
        self.integrals(points).into_iter().map(|(sum, _)| sum / wide).collect()
    }

    /// As [`Columns::means`], but missing values do not count; `None` for a column without a value.
    pub fn values(&self, points: &[(f64, f64)]) -> Vec<Option<f64>> {
        let value = |(sum, covered)| (covered > 0.0).then_some(sum / covered);
        self.integrals(points).into_iter().map(value).collect()
    }

    /// The dashes of a line: six of every ten columns. A dash has the same length in time however steep the line is,
    /// so that the number of dashes is bounded by the number of columns.
    pub fn dashes(&self, line: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
        let starts = (0..self.count).step_by(10);
        let dashes = starts.map(|start| clip(line, (self.start(start), self.start(start + 6))));
        dashes.filter(|dash| dash.len() > 1).collect()
    }

    /// Whether the points are so dense that a line through them would look like a ribbon: at least two to a column.
    pub fn are_crowded(&self, points: &[(f64, f64)]) -> bool {
        let ends = points.first().zip(points.last());
        ends.is_some_and(|(first, last)| {
            let over = self.of(last.0) - self.of(first.0) + 1;
            over > 1 && points.len() >= 2 * over
        })
    }

    /// The lowest and highest value in each column that has one: `(x, lowest, highest)`.
    pub fn extremes(&self, points: &[(f64, f64)]) -> Vec<(f64, f64, f64)> {
        let mut extremes = Vec::new();
        for column in points.chunk_by(|one, other| self.of(one.0) == self.of(other.0)) {
            let values = || column.iter().map(|(_, y)| *y).filter(|y| y.is_finite());
            let (low, high) =
                (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
            if let (Some((x, _)), true) = (column.first(), low <= high) {
                extremes.push((*x, low, high));
            }
        }
        extremes
    }

    /// The values of [`Columns::values`] as points at the middles of the columns; NaN if a column has none.
    pub fn averages(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let values = self.values(points).into_iter().map(|value| value.unwrap_or(f64::NAN));
        self.middles().into_iter().zip(values).collect()
    }

    /// A 0 for every column.
    pub fn zeros(&self) -> Vec<f64> {
        vec![0.0; self.count]
    }

    /// The integral over each column, and for how long the column has values.
    fn integrals(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0); self.count];
        let ends = points.iter().skip(1).map(|(x, _)| *x).chain([self.to]);
        for (&(from, y), to) in points.iter().zip(ends) {
            if y.is_finite() {
                self.add(&mut sums, (from, to), y);
            }
        }
        sums
    }

    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    fn columns(&self) -> f64 {
        self.count as f64
    }

    /// Adds to each column the integral of a value that holds from one time to another.
    fn add(&self, sums: &mut [(f64, f64)], (from, to): (f64, f64), y: f64) {
        for column in self.of(from)..=self.of(to) {
            let overlap = (to.min(self.start(column + 1)) - from.max(self.start(column))).max(0.0);
            if let Some((sum, covered)) = sums.get_mut(column) {
                *sum += y * overlap;
                *covered += overlap;
            }
        }
    }

    /// The middles of the columns.
    pub fn middles(&self) -> Vec<f64> {
        (0..self.count).map(|column| f64::midpoint(self.start(column), self.start(column + 1))).collect()
    }
}
