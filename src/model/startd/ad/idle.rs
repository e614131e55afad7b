//! The attributes of the machine's owner in a slot's ad: idle times of keyboard and console, and the slot's part of the load.
//!
//! Source: the manual, "Multi-core Machine policy configuration": slots that are not connected to keyboard or console report the
//! time since the startd was started, plus a boost.

use crate::pool::{LastInput, Load, Machine, StartdConfig};
use classad::Ad;

use super::constant;

/// Puts `KeyboardIdle`, `ConsoleIdle`, `LoadAvg` and `CondorLoadAvg` into the ad of a slot, if the machine's agent reports them.
/// Idle times are expressions over `time()`, so that the ad need not be made again when time passes.
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
