//! How admins set what groups, users and jobs may have.

use serde_json::json;

use super::super::plan::What;
use super::super::store::Key;
use super::super::world::World;
use super::{GROUPS, LIMITS, OWNERS};

/// Lets this happen, if it belongs to this file. Returns whether it does.
pub(super) fn perform(world: &mut World, what: &What, at: u64) -> bool {
    match what {
        What::Quota(n, quota) => {
            let name = GROUPS[usize::from(*n) % 4];
            world.checks.caps.set(format!("group {name}"), f64::from(*quota), at);
            world.put(
                Key::new("groupquotas", "", name),
                json!({"metadata": {}, "spec": {"quota": quota, "owners": ["*"]}}),
            );
        }
        What::QuotaGone(n) => {
            let name = GROUPS[usize::from(*n) % 4];
            world.checks.caps.set(format!("group {name}"), f64::INFINITY, at);
            world.delete(&Key::new("groupquotas", "", name), None);
        }
        What::Ceiling(n, ceiling) => {
            let name = OWNERS[usize::from(*n) % 2];
            let key = Key::new("submitters", "", name);
            let spec = ceiling.map_or(json!({}), |ceiling| json!({"ceiling": ceiling}));
            world.checks.caps.set(format!("submitter {name}"), ceiling.map_or(f64::INFINITY, f64::from), at);
            world.put(key, json!({"metadata": {}, "spec": spec}));
        }
        What::DeleteSubmitter(n) => {
            if let Some(key) = world.pick("submitters", *n, |_| true) {
                world.checks.caps.set(format!("submitter {}", key.name), f64::INFINITY, at);
                world.delete(&key, None);
            }
        }
        What::Limit(n, limit) => {
            let name = LIMITS[usize::from(*n) % LIMITS.len()];
            world.checks.caps.set(format!("limit {name}"), f64::from(*limit), at);
            world.put(
                Key::new("concurrencylimits", "", name),
                json!({"metadata": {}, "spec": {"limit": limit}}),
            );
        }
        What::LimitGone(n) => {
            let name = LIMITS[usize::from(*n) % LIMITS.len()];
            world.checks.caps.set(format!("limit {name}"), f64::INFINITY, at);
            world.delete(&Key::new("concurrencylimits", "", name), None);
        }
        _ => return false,
    }
    true
}
