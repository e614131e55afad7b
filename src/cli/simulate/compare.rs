//! Prints and plots what changes from one policy to another.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::output::{named, span};
use sim::PlotError;
use sim::compare::{Both, Change, Comparison, Numbers};
use table::{Align, Table};

/// Writes the plots of a comparison, and its numbers as JSON.
///
/// # Errors
/// When a file cannot be written.
pub fn write_files(comparison: &Comparison, directory: &Path) -> io::Result<()> {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| named(&error, &path))
    };
    for (name, plot) in comparison.plots() {
        match plot.svg() {
            Ok(svg) => write(&format!("{name}.svg"), &svg)?,
            // There is no value to draw, for example because no proc waited.
            Err(PlotError::Empty) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    write("comparison.json", &format!("{}\n", serde_json::to_string_pretty(comparison)?))
}

/// Prints a comparison as tables: one of submitters, and one of groups if there are any.
///
/// # Errors
/// When the output cannot be written.
pub fn text(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let Both { against, this } = &comparison.scenarios;
    writeln!(out, "\nWhat changes from {against} to {this}:\n")?;
    let mut whole = Change { name: "all".to_owned(), ..comparison.all.clone() };
    // The fairness of all is Jain's index, not a quotient as in the column: it is printed below the table.
    whole.numbers = whole.numbers.map(|numbers| Numbers { fairness: None, ..*numbers });
    write!(out, "{}", table("SUBMITTER", comparison.submitters.iter().chain([&whole])))?;
    let fairness = comparison
        .all
        .numbers
        .map(|numbers| numbers.fairness.map_or_else(|| "-".to_owned(), |of| format!("{of:.2}")));
    writeln!(
        out,
        "\nFairness, 1 where all had the same part of what they deserved: {} → {}",
        fairness.against, fairness.this
    )?;
    if !comparison.groups.is_empty() {
        write!(out, "\n{}", table("GROUP", comparison.groups.iter()))?;
    }
    Ok(())
}

fn table<'a>(who: &'static str, changes: impl Iterator<Item = &'a Change>) -> Table {
    let mut table = Table::new(&[
        (who, Align::Left),
        ("DONE/DAY", Align::Right),
        ("WAIT MEAN", Align::Right),
        ("MEDIAN", Align::Right),
        ("P95", Align::Right),
        ("MEAN USE", Align::Right),
        ("OF DESERVED", Align::Right),
        ("GOOD CORE-H", Align::Right),
        ("BAD CORE-H", Align::Right),
        ("EVICTIONS", Align::Right),
    ]);
    for change in changes {
        table.row(row(change));
    }
    table
}

fn row(change: &Change) -> [String; 10] {
    let told = |of: &dyn Fn(&Numbers) -> Option<String>| {
        let Both { against, this } =
            change.numbers.map(|numbers| of(numbers).unwrap_or_else(|| "-".to_owned()));
        if against == this { this } else { format!("{against} → {this}") }
    };
    [
        change.name.clone(),
        told(&|numbers| Some(format!("{:.1}", numbers.throughput_per_day))),
        told(&|numbers| numbers.wait_seconds.mean.map(span)),
        told(&|numbers| numbers.wait_seconds.median.map(span)),
        told(&|numbers| numbers.wait_seconds.p95.map(span)),
        told(&|numbers| Some(format!("{:.1}", numbers.got))),
        told(&|numbers| numbers.fairness.map(|part| format!("{part:.2}"))),
        told(&|numbers| Some(format!("{:.1}", numbers.goodput_core_hours))),
        told(&|numbers| Some(format!("{:.1}", numbers.badput_core_hours))),
        told(&|numbers| Some(numbers.evictions.to_string())),
    ]
}
