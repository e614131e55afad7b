//! Tells a failing run as shortly as possible.

use std::fmt::Write;

use super::plan::{Plan, Server, What};
use super::run::run;

/// How many runs may be made to shorten one story.
const PATIENCE: usize = 400;

/// Leaves parts out of the plan, one after another, as long as the run fails in the same way.
pub fn shrink(plan: &Plan, wrong: &str) -> Plan {
    let kind = kind(wrong);
    let mut best = plan.clone();
    let mut left = PATIENCE;
    let mut fails = |plan: &Plan| {
        left = left.checked_sub(1)?;
        Some(run(plan, false).violation.is_some_and(|other| self::kind(&other) == kind))
    };
    // First halves are left out, then smaller and smaller parts, until nothing more can go.
    let mut size = best.items.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        let mut gone = false;
        while from < best.items.len() {
            let mut shorter = best.clone();
            shorter.items.drain(from..(from + size).min(best.items.len()));
            match fails(&shorter) {
                Some(true) => (best, gone) = (shorter, true),
                Some(false) => from += size,
                None => return best,
            }
        }
        size = if size > 1 { size / 2 } else { usize::from(gone) };
    }
    for simpler in simpler(&best) {
        if fails(&simpler) == Some(true) {
            best = simpler;
        }
    }
    best
}

/// Plans in which one thing is simpler than in this plan.
fn simpler(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    if plan.skew != 0 {
        plans.push(Plan { skew: 0, ..plan.clone() });
    }
    if plan.ghosts {
        plans.push(Plan { ghosts: false, ..plan.clone() });
    }
    let newest = Server::NEWEST;
    for server in
        [Server { bookmarks: newest.bookmarks, ..plan.server }, Server { lists: newest.lists, ..plan.server }]
    {
        if server != plan.server {
            plans.push(Plan { server, ..plan.clone() });
        }
    }
    if plan.layout != 0 {
        plans.push(Plan { layout: 0, ..plan.clone() });
    }
    for (n, item) in plan.items.iter().enumerate() {
        let mut other = plan.clone();
        match &item.what {
            What::Submit(order) => {
                let mut order = order.clone();
                (order.group, order.device, order.requirements, order.retention) = (None, 0, 0, 0);
                other.items[n].what = What::Submit(order);
            }
            What::Policy(name, how, layout) if *how != 4 && *layout != 0 => {
                other.items[n].what = What::Policy(*name, 4, *layout);
            }
            What::Call(how, more) if *more > 0 => other.items[n].what = What::Call(*how, 0),
            _ => continue,
        }
        if other != *plan {
            plans.push(other);
        }
    }
    plans
}

/// The text of a failure without names, numbers and times, to compare failures.
fn kind(wrong: &str) -> String {
    let text = wrong.split_once(" s: ").map_or(wrong, |(_, text)| text);
    let text = text.split(" left").next().unwrap_or(text);
    let words =
        text.split(' ').filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == ',' || c == ':'));
    words.take(8).collect::<Vec<_>>().join(" ")
}

/// Tells how a run of the plan fails, the plan, and what happened.
pub fn tell(plan: &Plan) -> String {
    let outcome = run(plan, true);
    let mut text = String::new();
    let wrong = outcome.violation.unwrap_or_else(|| "nothing".to_owned());
    let _ = writeln!(text, "seed {}: {wrong}", plan.seed);
    let _ = writeln!(
        text,
        "ends {} s, bookmarks {}, lists {:?}, ghosts {}, skew {}, layout {}",
        plan.ends, plan.server.bookmarks, plan.server.lists, plan.ghosts, plan.skew, plan.layout
    );
    for item in &plan.items {
        let _ = writeln!(text, "    {:?}: {:?}", item.when, item.what);
    }
    let lines: Vec<&String> = outcome
        .log
        .iter()
        .filter(|line| {
            let dull = ["  > ", ": Lease ", ": Tell ", ": Watch ", ": List "];
            !dull.iter().any(|dull| line.contains(dull))
        })
        .collect();
    let limit = std::env::var("CHAOS_LINES").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let skipped = lines.len().saturating_sub(limit);
    if skipped > 0 {
        let _ = writeln!(text, "    ... {skipped} lines before");
    }
    for line in lines.iter().skip(skipped) {
        let _ = writeln!(text, "{line}");
    }
    text
}
