//! Reads any JSON as a pod and as a node in a list. It must not panic, nor take the others in the list with it.

use controller::kinds::node::{self, SlimNode};
use controller::kinds::pod::{self, SlimPod};

use crate::objects::among_others;

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    among_others(text).as_ref().and_then(|pod: &SlimPod| pod::view(pod));
    among_others(text).as_ref().and_then(|node: &SlimNode| node::facts(node));
}
