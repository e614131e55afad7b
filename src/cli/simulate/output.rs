//! Writes the results of a simulation: CSV files, plots, and the summary for people.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use sim::charts::charts;
use sim::{Report, Tally};
use table::{Align, Table};

/// Writes a file for each table and each plot, one for the procs, one for the transitions, and the summary.
///
/// # Errors
/// When the directory cannot be made, or a file written.
pub fn write_files(report: &Report, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory).map_err(|error| named(&error, directory))?;
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| named(&error, &path))
    };
    for table in &report.tables {
        write(&format!("{}.csv", table.name), &table.csv())?;
    }
    for drawing in charts(report) {
        write(&format!("{}.svg", drawing.name), &drawing.svg().map_err(io::Error::other)?)?;
    }
    write("jobs.csv", &report.jobs_csv())?;
    write("transitions.csv", &report.transitions_csv())?;
    write("summary.json", &format!("{}\n", serde_json::to_string_pretty(&report.summary)?))
}

pub(super) fn named(error: &io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Prints the summary for people.
///
/// # Errors
/// When the output cannot be written.
pub fn text(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let summary = &report.summary;
    writeln!(
        out,
        "{}: {} simulated, seed {}; {:.1} % of the cores were claimed; {} cycles made {} matches\n",
        summary.scenario,
        span(summary.simulated_seconds),
        summary.seed,
        100.0 * summary.utilization,
        summary.cycles,
        summary.matches,
    )?;
    let counts = counts(&summary.all);
    let name = ("SUBMITTER", Align::Left);
    let counted = counts.iter().map(|(heading, _)| (*heading, Align::Right));
    let measured = ["GOOD CORE-H", "BAD CORE-H", "WAIT MEAN", "MEDIAN", "P95", "MAX"];
    let columns: Vec<_> =
        [name].into_iter().chain(counted).chain(measured.map(|heading| (heading, Align::Right))).collect();
    let mut table = Table::new(&columns);
    for tally in summary.submitters.iter().chain([&summary.all]) {
        table.row(row(tally, &counts));
    }
    write!(out, "{table}")
}

/// A number of procs, of one submitter or of all.
type Count = fn(&Tally) -> u64;

/// The numbers of procs that the summary shows: no procs that are held or removed if there are none.
fn counts(all: &Tally) -> Vec<(&'static str, Count)> {
    let counts: [(&str, Count); 7] = [
        ("SUBMITTED", |tally| tally.submitted),
        ("DONE", |tally| tally.done),
        ("RUNNING", |tally| tally.running),
        ("IDLE", |tally| tally.idle),
        ("HELD", |tally| tally.held),
        ("REMOVED", |tally| tally.removed),
        ("EVICTIONS", |tally| tally.evictions),
    ];
    let is_shown =
        |(heading, count): &(&str, Count)| !["HELD", "REMOVED"].contains(heading) || count(all) > 0;
    counts.into_iter().filter(is_shown).collect()
}

fn row(tally: &Tally, counts: &[(&str, Count)]) -> Vec<String> {
    let waits = tally.wait_seconds;
    let wait = |seconds: Option<f64>| seconds.map_or_else(String::new, span);
    let name = if tally.name.is_empty() { "all".to_owned() } else { tally.name.clone() };
    let measured = [
        format!("{:.1}", tally.goodput_core_hours),
        format!("{:.1}", tally.badput_core_hours),
        wait(waits.mean),
        wait(waits.median),
        wait(waits.p95),
        wait(waits.max),
    ];
    let counted = counts.iter().map(|(_, count)| count(tally).to_string());
    [name].into_iter().chain(counted).chain(measured).collect()
}

/// A span of time in its two largest units.
pub(super) fn span(seconds: f64) -> String {
    let units = [("d", 86_400.0), ("h", 3_600.0), ("m", 60.0)];
    for (place, (name, unit)) in units.iter().enumerate() {
        if seconds >= *unit {
            let (next, part) = units.get(place + 1).copied().unwrap_or(("s", 1.0));
            let whole = (seconds / unit).floor();
            let rest = ((seconds - whole * unit) / part).floor();
            return if rest > 0.0 { format!("{whole}{name}{rest}{next}") } else { format!("{whole}{name}") };
        }
    }
    format!("{seconds:.0}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        for (seconds, text) in
            [(0.4, "0s"), (59.0, "59s"), (60.0, "1m"), (3_725.0, "1h2m"), (86_400.0 * 7.5, "7d12h")]
        {
            assert_eq!(span(seconds), text);
        }
    }
}
