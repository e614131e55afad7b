//! The figures as a table for a page.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::measured::Turn;
use super::trouble::CASES;
use super::{Round, Troubled, Workload};

/// The place of a table in a page: the lines before and after.
pub type Place = (&'static str, &'static str);

/// The place of the comparison with batch/v1 Jobs.
pub const CLUSTER: Place =
    ("<!-- make bench writes the cluster from here -->\n", "<!-- to here: the cluster -->");
/// The place of the table of troubles.
pub const TROUBLE: Place =
    ("<!-- make bench writes the trouble from here -->\n", "<!-- to here: the trouble -->");

/// The lines of a workload under each trouble, as medians of the rounds.
pub fn troubled(all: &[(Workload, Vec<Troubled>)]) -> String {
    let mut text = String::from(
        "| work | trouble | procs ended a second | first pod runs after, s | own CPU ms for each proc |\n\
         | --- | --- | ---: | ---: | ---: |\n",
    );
    for (workload, rounds) in all {
        let mut title = title(workload);
        for (at, case) in CASES.into_iter().enumerate() {
            let median = |of: &dyn Fn(&Turn) -> f64| {
                let mut values: Vec<f64> = rounds.iter().map(|turns| of(&turns[at])).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            let procs = f64::from(workload.procs);
            let rate = median(&|turn| procs / turn.all.as_secs_f64());
            let first = median(&|turn| turn.first.as_secs_f64());
            let own = median(&|turn| turn.own_cpu * 1000.0 / procs);
            let _ = writeln!(text, "| {title} | {} | {rate:.0} | {first:.1} | {own:.2} |", case.title);
            title.clear();
        }
    }
    text
}

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

/// Replaces a table of a page.
pub fn write(page: &Path, table: &str, (from, to): Place) {
    let text = std::fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(from).expect("the page has the place of the table");
    let (_, after) = rest.split_once(to).expect("the page has the end of the table");
    std::fs::write(page, format!("{before}{from}{table}{to}{after}")).unwrap();
}
