//! The attacks of people who can edit the objects of one namespace, or set up webhooks for it.

use serde_json::{Value, json};

use super::super::kubelets::is_of_pool;
use super::super::marks;
use super::super::plan::What;
use super::super::store::Key;
use super::super::world::World;
use super::OWNERS;

/// An object that no operator can decode until somebody repairs its field.
#[derive(Clone, Debug)]
pub struct Garbled {
    key: Key,
    /// The field, as a JSON pointer in two parts.
    field: (&'static str, &'static str),
}

/// Lets this happen, if it belongs to this file. Returns whether it does.
pub(super) fn perform(world: &mut World, what: &What, at: u64) -> bool {
    match what {
        What::Unmark(n, how) => {
            if let Some(key) = world.pick("pods", *n, is_of_pool) {
                world.edit(&key, |pod| marks::take_off(pod, *how != 1, *how != 0));
            }
        }
        What::Webhook(n, seconds, fails) => {
            let owner = OWNERS[usize::from(*n) % OWNERS.len()];
            world.webhooks.insert(owner.to_owned(), (at + u64::from(*seconds) * 1000, *fails));
        }
        What::Garble(n) => garble(world, *n),
        _ => return false,
    }
    true
}

/// Whether no operator can decode a pod.
pub fn is_garbled(pod: &Value) -> bool {
    pod["spec"]["overhead"].is_number()
}

/// Whether no operator can know what a pod requests of its node: nobody can decode the pod, and somebody took its labels off.
pub fn is_unknown(pod: &Value) -> bool {
    is_garbled(pod) && !marks::has_labels(pod)
}

/// Writes a number in place of an object, in a field that nobody else writes.
fn garble(world: &mut World, n: u8) {
    let (kind, field) = match n % 3 {
        0 => ("pods", ("spec", "overhead")),
        1 => ("nodes", ("status", "nodeInfo")),
        _ => ("htcjobs", ("spec", "template")),
    };
    let whole = |object: &Value| !object[field.0][field.1].is_number();
    let Some(key) = world.pick(kind, n / 3, whole) else { return };
    world.edit(&key, |object| {
        object[field.0]["before"] = object[field.0][field.1].take();
        object[field.0][field.1] = json!(7);
    });
    let job = world.store.get(&key).filter(|_| kind == "htcjobs");
    if let (Some(job), Some(archive)) = (job, &mut world.archive) {
        archive.cannot_read(&job);
    }
    world.garbled.push(Garbled { key, field });
}

/// Stops the webhooks and repairs the objects.
pub(super) fn mend(world: &mut World) {
    world.webhooks.clear();
    for Garbled { key, field: (part, name) } in std::mem::take(&mut world.garbled) {
        world.edit(&key, |object| {
            if !object[part][name].is_number() {
                return;
            }
            let fields = object[part].as_object_mut();
            let Some(fields) = fields else { return };
            match fields.remove("before") {
                None | Some(Value::Null) => fields.remove(name),
                Some(before) => fields.insert(name.to_owned(), before),
            };
        });
    }
}
