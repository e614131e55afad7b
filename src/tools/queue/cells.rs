//! The cells of the columns of condor_q.

use classad::{Ad, Env, Value};

use super::status;
use crate::conversion::whole;
use crate::screen::{Screen, span};

pub(crate) fn text(ad: &Ad, name: &str, env: &Env) -> Option<String> {
    ad.eval_attr(name, None, env).as_str().map(str::to_owned)
}

fn number(ad: &Ad, name: &str, env: &Env) -> Option<i64> {
    whole(&ad.eval_attr(name, None, env))
}

fn real(ad: &Ad, name: &str, env: &Env) -> Option<f64> {
    ad.eval_attr(name, None, env).as_number()
}

pub(crate) fn owner(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    text(ad, "Owner", env)
}

pub(crate) fn queued(ad: &Ad, screen: &Screen, env: &Env) -> Option<String> {
    number(ad, "QDate", env).map(|secs| screen.date(secs))
}

pub(crate) fn completed(ad: &Ad, screen: &Screen, env: &Env) -> Option<String> {
    number(ad, "CompletionDate", env).map(|secs| screen.date(secs))
}

pub(super) fn held_since(ad: &Ad, screen: &Screen, env: &Env) -> Option<String> {
    number(ad, "EnteredCurrentStatus", env).map(|secs| screen.date(secs))
}

/// The wall-clock time of a job: of the present run, and of `earlier` ones.
fn wall_clock(ad: &Ad, earlier: f64, idle: Option<f64>, env: &Env) -> String {
    let now = number(ad, "ServerTime", env).filter(|now| *now != 0);
    let Some(now) = now else { return span(-1) };
    let began = number(ad, "ShadowBday", env).filter(|began| *began != 0);
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "seconds")]
    let secs = match (status(ad, env), began) {
        (2 | 6 | 7, Some(began)) => earlier + now.saturating_sub(began) as f64,
        (1 | 5 | 8, _) => idle.unwrap_or(earlier),
        _ => earlier,
    } as i64;
    span(secs)
}

#[allow(clippy::unnecessary_wraps, reason = "it is one of the functions that make cells")]
pub(super) fn run_time(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    Some(wall_clock(ad, 0.0, real(ad, "LastRemoteWallClockTime", env), env))
}

#[allow(clippy::unnecessary_wraps, reason = "it is one of the functions that make cells")]
pub(super) fn all_run_time(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    Some(wall_clock(ad, real(ad, "RemoteWallClockTime", env).unwrap_or(0.0), None, env))
}

pub(super) fn cpu_time(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    number(ad, "RemoteUserCpu", env).map(span)
}

/// The letter of a `JobStatus`.
pub(crate) const fn letter(status: i64) -> char {
    match status {
        0 => 'U',
        1 => 'I',
        2 => 'R',
        3 => 'X',
        4 => 'C',
        5 => 'H',
        6 => '>',
        7 => 'S',
        8 => 'F',
        9 => 'B',
        _ => ' ',
    }
}

/// One letter, and a mark for a transfer of files or a pause after a failure.
pub(crate) fn state(ad: &Ad, screen: &Screen, env: &Env) -> Option<String> {
    let status = number(ad, "JobStatus", env)?;
    let is = |name: &str| ad.eval_attr(name, None, env) == Value::Bool(true);
    let letter = letter(status);
    let queued = if is("TransferQueued") { 'q' } else { ' ' };
    let mut shown = (letter, ' ');
    if is("TransferringInput") {
        shown = ('<', queued);
    }
    if is("TransferringOutput") || status == 6 {
        shown = (queued, '>');
    }
    if number(ad, "JobCoolDownExpiration", env).is_some_and(|until| until > screen.now) {
        shown.1 = 'c';
    }
    Some(format!("{}{}", shown.0, shown.1))
}

/// In MiB.
pub(super) fn memory(ad: &Ad, env: &Env) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
    let as_real = |number: i64| number as f64;
    let used = number(ad, "MemoryUsage", env).map(as_real);
    used.or_else(|| number(ad, "ImageSize", env).map(|size| as_real(size) / 1024.0))
}

pub(super) fn size(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    memory(ad, env).map(|mib| format!("{mib:.1}"))
}

/// The description of a job, or else its program and arguments.
pub(crate) fn program(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    let program = text(ad, "Cmd", env)?;
    let description = text(ad, "MATCH_EXP_JobDescription", env).or_else(|| text(ad, "JobDescription", env));
    if let Some(description) = description.filter(|text| !text.is_empty()) {
        return Some(format!("({description})"));
    }
    let name = program.rsplit('/').next().unwrap_or(&program);
    let arguments = text(ad, "Arguments", env).or_else(|| text(ad, "Args", env)).unwrap_or_default();
    Some(if arguments.is_empty() { name.to_owned() } else { format!("{name} {arguments}") })
}

pub(super) fn host(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    text(ad, "RemoteHost", env)
}

pub(super) fn universe(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    let name = match number(ad, "JobUniverse", env)? {
        1 => "Standard",
        2 => "Pipe",
        3 => "Linda",
        4 => "PVM",
        5 => "Vanilla",
        6 => "PVMD",
        7 => "Scheduler",
        8 => "MPI",
        9 => "Grid",
        10 => "Java",
        11 => "Parallel",
        12 => "Local",
        13 => "VM",
        _ => "Unknown",
    };
    Some(name.to_owned())
}
