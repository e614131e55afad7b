#![no_main]
//! Reads any JSON as a pod and as a node in a list. It must not panic, nor take the others in the list with it.

use controller::kinds::node::{self, SlimNode};
use controller::kinds::pod::{self, SlimPod};
use libfuzzer_sys::fuzz_target;
use slotwright_fuzz::objects::among_others;

fuzz_target!(|text: &str| {
    among_others(text).as_ref().and_then(|pod: &SlimPod| pod::view(pod));
    among_others(text).as_ref().and_then(|node: &SlimNode| node::facts(node));
});
