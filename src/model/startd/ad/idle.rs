//! What a slot notices of the machine's owner: the keyboard, the console, and its part of the load.
//!
//! Source: the manual, "Multi-core Machine policy configuration": slots that are not connected to keyboard or console report
//! times from when the startd was started, and a boost.

use crate::pool::{LastInput, Load, Machine, StartdConfig};
use classad::Ad;

use super::constant;

/// Puts `KeyboardIdle`, `ConsoleIdle`, `LoadAvg` and `CondorLoadAvg` into the ad of a slot, as far as they are known. Idle
/// times grow by themselves, so that they stand in the ad as expressions.
pub(super) fn set(ad: &mut Ad, machine: &Machine, config: &StartdConfig, id: u32, load: Load) {
    let Some(sensed) = &machine.sensed else { return };
    for (name, input, connected) in [
        ("KeyboardIdle", sensed.keyboard, config.keyboard_slots),
        ("ConsoleIdle", sensed.console, config.console_slots),
    ] {
        let notices = connected.is_none_or(|connected| id <= connected);
        match input {
            LastInput::Ongoing if notices => ad.set(name, 0_i64),
            LastInput::At(time) if notices => ad.insert(name, since(time.secs())),
            LastInput::Ongoing | LastInput::At(_) => {
                let boost = i64::try_from(config.idle_boost.as_secs()).unwrap_or(i64::MAX);
                ad.insert(name, since(machine.since.secs().saturating_sub(boost)));
            }
        }
    }
    ad.set("LoadAvg", load.owner + load.condor);
    ad.set("CondorLoadAvg", load.condor);
}

fn since(seconds: i64) -> classad::Expr {
    constant(&format!("time() - {seconds}"))
}
