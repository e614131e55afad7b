//! The errors of plots.

/// Why there is no plot.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlotError {
    /// No series has a value.
    #[error("there is nothing to draw: no series has a value")]
    Empty,
    /// A value has no place on the horizontal axis.
    #[error("series {series}: {x} is no time")]
    Time {
        /// The series.
        series: String,
        /// The time.
        x: f64,
    },
    /// A value is beyond what an axis can tell.
    #[error("series {series}: {y} is out of range")]
    OutOfRange {
        /// The series.
        series: String,
        /// The value.
        y: f64,
    },
    /// A point is earlier than the one before it.
    #[error("series {series}: time goes back, from {from} to {to}")]
    Backwards {
        /// The series.
        series: String,
        /// A time.
        from: f64,
        /// The next point's time.
        to: f64,
    },
    /// A value of a stacked area is negative.
    #[error("series {series}: {y} cannot be stacked: it is negative")]
    Negative {
        /// The series.
        series: String,
        /// The value.
        y: f64,
    },
    /// The `plotters` crate failed.
    #[error("the plot cannot be drawn: {0}")]
    Drawing(String),
}
