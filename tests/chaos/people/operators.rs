//! The happenings of operators and of their connections.

use super::super::plan::What;
use super::super::store::KINDS;
use super::super::world::{Drop, World};

/// The plural of a kind that operators watch, by number.
fn watched(n: u8) -> &'static str {
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.0).filter(|kind| *kind != "events").collect();
    kinds[usize::from(n) % kinds.len()]
}

/// Lets this happen, if it belongs to this file. Returns whether it does.
pub(super) fn perform(world: &mut World, what: &What, at: u64) -> bool {
    match what {
        What::Call(..) => {}
        What::Kill(seat) => {
            if let Some(who) = world.living(usize::from(*seat % 2)) {
                world.kill(who);
            }
        }
        What::KillAfterPolls(seat, polls) => {
            if let Some(who) = world.living(usize::from(*seat % 2)) {
                world.lives[who].polls_left = Some(*polls);
            }
        }
        What::Stop(seat) => {
            if let Some(who) = world.living(usize::from(*seat % 2)) {
                world.lives[who].stop.cancel();
            }
        }
        What::Second => world.second = true,
        What::Stall(seat, seconds) => {
            world.hindrances[usize::from(*seat % 2)].stalled_until = at + u64::from(*seconds) * 1000;
        }
        What::Cut(seat, seconds) => {
            world.hindrances[usize::from(*seat % 2)].cut_until = at + u64::from(*seconds) * 1000;
        }
        What::Lag(kind, lag, seconds) => {
            world.lags.insert(watched(*kind), (u64::from(*lag), at + u64::from(*seconds) * 1000));
        }
        What::DropWatch(kind, error) => {
            let how = if *error { Drop::ByError } else { Drop::Quietly };
            world.drops.insert(watched(*kind), (at, how));
        }
        What::Gone(kind) => {
            world.drops.insert(watched(*kind), (at, Drop::Gone));
        }
        What::Compact => world.store.compacted = world.store.version,
        _ => return false,
    }
    true
}
