//! Shows progress as text: a table for a terminal, one line for a pipe. Pure.

use std::time::Duration;

use super::scene::{Job, Scene};

/// Cells of a progress bar.
const BAR: usize = 20;

/// The table: at most `rows` lines of at most `columns` characters.
pub fn table(scene: &Scene, elapsed: Duration, (columns, rows): (usize, usize)) -> Vec<String> {
    let width = scene.name_width();
    let mut lines = vec![headline(scene, elapsed), String::new()];
    lines.push(format!("{:<width$}{:>6}{:>6}{:>6}{:>6}{:>6}", "JOB", "PROCS", "IDLE", "RUN", "DONE", "FAIL"));
    lines.extend(scene.jobs.iter().map(|(key, job)| {
        let Job { procs, idle, running, done, failed, summary, .. } = job;
        let (name, bar) = (key.to_string(), bar(job));
        format!("{name:<width$}{procs:>6}{idle:>6}{running:>6}{done:>6}{failed:>6}  {bar}  {summary}")
    }));
    lines.push(String::new());
    lines.push(format!(
        "{:<width$}{:>6}{:>12}{:>8}{:>10}{:>14}",
        "SUBMITTER", "CLAIMS", "IN USE", "IDLE", "PRIORITY", "USAGE"
    ));
    lines.extend(scene.submitters.iter().map(|(name, record)| {
        format!(
            "{name:<width$}{:>6}{:>12.1}{:>8}{:>10.1}{:>12.1} s",
            record.running,
            scene.weight_in_use(Some(name)),
            record.idle,
            record.effective_priority,
            record.weighted_accumulated_usage,
        )
    }));
    if !scene.groups.is_empty() {
        lines.push(String::new());
        lines.push(groups(scene));
    }
    lines.truncate(rows);
    lines.into_iter().map(|line| line.chars().take(columns).collect()).collect()
}

/// One line for a log. The line does not contain the time, so that it changes only with the scene.
pub fn line(scene: &Scene) -> String {
    let sum = |of: fn(&Job) -> i64| scene.jobs.values().map(of).sum::<i64>();
    let complete = scene.jobs.values().filter(|job| job.complete).count();
    format!(
        "jobs {complete}/{} complete; procs {}: {} idle, {} running, {} done, {} failed; slots {} now, {} carved",
        scene.jobs.len(),
        sum(|job| job.procs),
        sum(|job| job.idle),
        sum(|job| job.running),
        sum(|job| job.done),
        sum(|job| job.failed),
        scene.slots(),
        scene.carved(),
    )
}

/// A time in minutes and seconds: 0:07, 12:34.
pub fn clock(elapsed: Duration) -> String {
    format!("{}:{:02}", elapsed.as_secs() / 60, elapsed.as_secs() % 60)
}

fn headline(scene: &Scene, elapsed: Duration) -> String {
    let capacity = &scene.capacity;
    format!(
        "slotwright demo  {}  {} nodes, {} cores, {} GPUs  {} slots, {} carved  {:.1} in use",
        clock(elapsed),
        capacity.nodes,
        capacity.cores,
        capacity.gpus,
        scene.slots(),
        scene.carved(),
        scene.weight_in_use(None),
    )
}

fn groups(scene: &Scene) -> String {
    let each =
        scene.groups.iter().map(|(name, group)| format!("{name} {:.0} of {:.0}", group.used, group.quota));
    format!("GROUPS  {}", each.collect::<Vec<_>>().join("   "))
}

/// The bar of a job: `#` for procs that ended, `=` for procs that run, `.` for procs that wait.
fn bar(job: &Job) -> String {
    let cells = |procs: i64| {
        let (procs, all) =
            (usize::try_from(procs).unwrap_or(0), usize::try_from(job.procs).unwrap_or(0).max(1));
        (procs.saturating_mul(BAR) / all).min(BAR)
    };
    let ended = cells(job.done + job.failed);
    let busy = cells(job.done + job.failed + job.running).max(ended);
    format!("[{}{}{}]", "#".repeat(ended), "=".repeat(busy - ended), ".".repeat(BAR - busy))
}
