//! The figures as a table for a page.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::measured::Turn;
use super::{Round, Workload};

const FROM: &str = "<!-- make bench writes the cluster from here -->\n";
const TO: &str = "<!-- to here: the cluster -->";

/// The lines of a workload: each figure of Slotwright, of batch/v1 Jobs and their ratio, and of pods that nobody manages, as
/// medians of the rounds.
pub fn table(all: &[(Workload, Vec<Round>)]) -> String {
    let mut text = String::from(
        "| work | figure | Slotwright | batch/v1 | ratio | pods alone |\n| --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    for (workload, rounds) in all {
        let mut title = title(workload);
        for (name, digits, of) in figures(workload) {
            let median = |side: fn(&Round) -> &Turn| {
                let mut values: Vec<f64> = rounds.iter().map(|round| of(workload, side(round))).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            let (ours, batch) = (median(|round| &round.ours), median(|round| &round.batch));
            let (ratio, alone) = (ours / batch, median(|round| &round.alone));
            // Nobody's processes manage the pods.
            let alone = if name.contains("own") { String::new() } else { format!("{alone:.digits$}") };
            let _ = writeln!(
                text,
                "| {title} | {name} | {ours:.digits$} | {batch:.digits$} | {ratio:.2} | {alone} |"
            );
            title.clear();
        }
        if let Some(round) = rounds.last() {
            let [ours, batch, alone] =
                [&round.ours, &round.batch, &round.alone].map(|turn| writes(workload, turn));
            let _ = writeln!(text, "| | writes for each proc | {ours} | {batch} | | {alone} |");
        }
    }
    text
}

type Figure = (&'static str, usize, fn(&Workload, &Turn) -> f64);

fn figures(workload: &Workload) -> [Figure; 6] {
    let rate: &str = if workload.ends() { "procs ended a second" } else { "procs started a second" };
    [
        (rate, 0, |work, turn| f64::from(work.procs) / turn.all.as_secs_f64()),
        ("first pod runs after, s", 1, |_, turn| turn.first.as_secs_f64()),
        ("API server, CPU ms for each proc", 1, |work, turn| {
            turn.server_cpu * 1000.0 / f64::from(work.procs)
        }),
        ("own CPU ms for each proc", 2, |work, turn| turn.own_cpu * 1000.0 / f64::from(work.procs)),
        ("own memory, MiB", 0, |_, turn| turn.own_mib as f64),
        ("cores that server and own processes kept busy", 2, |_, turn| {
            (turn.server_cpu + turn.own_cpu) / turn.all.max(Duration::from_millis(1)).as_secs_f64()
        }),
    ]
}

fn title(workload: &Workload) -> String {
    let Workload { procs, nodes, seconds } = workload;
    if workload.ends() {
        format!("{procs} procs of {seconds} s on {nodes} nodes of 8 cores, to the end")
    } else {
        format!("{procs} procs on {nodes} nodes of 8 cores, until all run")
    }
}

/// The writes that each proc cost: those of at least a tenth for each proc.
fn writes(workload: &Workload, turn: &Turn) -> String {
    let each = |count: u64| count as f64 / f64::from(workload.procs);
    let many = turn.writes.iter().filter(|(_, count)| each(**count) >= 0.1);
    many.map(|(what, count)| format!("{:.1} {what}", each(*count))).collect::<Vec<_>>().join(", ")
}

/// Replaces the table of a page.
pub fn write(page: &Path, table: &str) {
    let text = std::fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(FROM).expect("the page has the place of the table");
    let (_, after) = rest.split_once(TO).expect("the page has the end of the table");
    std::fs::write(page, format!("{before}{FROM}{table}{TO}{after}")).unwrap();
}
