//! The actions of people on the objects of slots.

use serde_json::{Value, json};

use super::super::plan::What;
use super::super::store::Key;
use super::super::world::World;
use super::node;

/// Lets this happen, if it belongs to this file. Returns whether it does.
pub(super) fn perform(world: &mut World, what: &What) -> bool {
    match what {
        What::DeleteSlot(n) => {
            if let Some(key) = world.pick("slots", *n, |_| true) {
                world.tamper(&key);
                world.delete(&key, None);
            }
        }
        What::EditSlot(n, how) => {
            let Some(key) = world.pick("slots", *n, |_| true) else { return true };
            world.tamper(&key);
            let claims = world.store.of("slots").map(|(_, slot)| slot["spec"]["claim"].clone());
            let other = claims.into_iter().find(Value::is_object);
            world.edit(&key, |slot| {
                // Somebody claims a static slot by hand, in another's name.
                if !slot["spec"]["claim"].is_object() {
                    slot["spec"]["claim"] = other.unwrap_or(Value::Null);
                }
                if !slot["spec"]["claim"].is_object() {
                    return;
                }
                match how {
                    0 => slot["spec"]["claim"] = Value::Null,
                    1 => slot["spec"]["claim"]["id"] = json!("somebody#1#1"),
                    _ => slot["spec"]["claim"]["proc"] = json!(77),
                }
            });
        }
        What::MakeSlot(n) => {
            let (name, from) = (node(*n), u32::from(*n / 3) + 1);
            let fixed = n % 4 == 3;
            let name_of = |joint: &str, at: &str| {
                if fixed { format!("slot{from}{at}{name}") } else { format!("slot1{joint}{from}{at}{name}") }
            };
            let key = Key::new("slots", "", &name_of("-", "."));
            let claim = world.store.of("slots").next().map(|(_, slot)| slot["spec"]["claim"].clone());
            if world.store.get(&key).is_none() {
                world.checks.tampered_slots.insert(key.name.clone());
                let resources = json!({"cpus": 1, "memoryMiB": 128, "diskKiB": 1024});
                let kind = if fixed { "Static" } else { "Dynamic" };
                let spec = json!({"name": name_of("_", "@"), "node": name, "slotType": kind,
                    "resources": resources, "claim": claim.unwrap_or(Value::Null)});
                world.put(key, json!({"metadata": {}, "spec": spec}));
            }
        }
        What::DeletePslot(n) => {
            for kind in ["partitionableslots", "absentmachines"] {
                if let Some(key) = world.pick(kind, *n, |_| true) {
                    world.delete(&key, None);
                }
            }
        }
        _ => return false,
    }
    true
}
