//! The cells of the columns of condor_status.

use classad::{Ad, Env, Value};

use crate::conversion::whole;
use crate::screen::{Screen, span};

pub(super) fn text(ad: &Ad, name: &str, env: &Env) -> Option<String> {
    ad.eval_attr(name, None, env).as_str().map(str::to_owned)
}

pub(super) fn number(ad: &Ad, name: &str, env: &Env) -> Option<i64> {
    whole(&ad.eval_attr(name, None, env))
}

pub(super) fn is_true(ad: &Ad, name: &str, env: &Env) -> bool {
    ad.eval_attr(name, None, env) == Value::Bool(true)
}

/// Makes functions that show an attribute's text; nothing if the attribute is no text.
macro_rules! texts {
    ($($function:ident: $attribute:literal),* $(,)?) => {
        $(#[allow(clippy::unnecessary_wraps, reason = "they are among the functions that make cells")]
        pub(super) fn $function(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
            Some(text(ad, $attribute, env).unwrap_or_default())
        })*
    };
}

texts! {
    name: "Name",
    op_sys: "OpSys",
    arch: "Arch",
    state: "State",
    remote_user: "RemoteUser",
    client_machine: "ClientMachine",
    machine: "Machine",
}

#[allow(clippy::unnecessary_wraps, reason = "it is one of the functions that make cells")]
pub(super) fn activity(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    let activity = text(ad, "Activity", env).filter(|activity| !activity.is_empty());
    let shown =
        activity.map(
            |activity| {
                if activity == "Idle" && is_true(ad, "OCU", env) { "OCU".to_owned() } else { activity }
            },
        );
    Some(shown.unwrap_or_else(|| "??".to_owned()))
}

pub(super) fn load(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    ad.eval_attr("CondorLoadAvg", None, env).as_number().map(|load| format!("{load:.3}"))
}

/// Since when the activity lasts. Without its beginning, the time since 1970.
pub(super) fn activity_time(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    let now = number(ad, "MyCurrentTime", env).or_else(|| number(ad, "LastHeardFrom", env))?;
    let since = number(ad, "EnteredCurrentActivity", env).unwrap_or(0);
    Some(span(now.saturating_sub(since).max(0)))
}

/// When the machine went.
pub(super) fn went_absent(ad: &Ad, screen: &Screen, env: &Env) -> Option<String> {
    number(ad, "LastHeardFrom", env).map(|at| screen.date(at))
}

/// When the ad is forgotten.
pub(super) fn will_forget(ad: &Ad, screen: &Screen, env: &Env) -> Option<String> {
    let lifetime = number(ad, "ClassAdLifetime", env).unwrap_or(0);
    Some(screen.date(number(ad, "LastHeardFrom", env)?.saturating_add(lifetime)))
}

fn since(ad: &Ad, name: &str, env: &Env) -> Option<String> {
    let now = number(ad, "LastHeardFrom", env)?;
    Some(span(now.saturating_sub(number(ad, name, env)?)))
}

pub(super) fn state_elapsed(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    since(ad, "EnteredCurrentState", env)
}

pub(super) fn activity_elapsed(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    since(ad, "EnteredCurrentActivity", env)
}

pub(super) fn keyboard_idle(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    number(ad, "KeyboardIdle", env).map(span)
}

/// Architecture and system in one word.
pub(super) fn platform(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    let windows = text(ad, "OpSys", env).is_some_and(|system| system == "WINDOWS");
    let system = text(ad, if windows { "OpSysShortName" } else { "OpSysAndVer" }, env)?;
    let arch = text(ad, "Arch", env).unwrap_or_default();
    let arch = match arch.as_str() {
        "X86_64" => "x64",
        "X86" => "x86",
        other => other,
    };
    Some(format!("{arch}/{system}"))
}
