#![no_main]
//! Reads any JSON as an HTCJob in a list. It must not panic, nor take the others in the list with it.

use api::HTCJob;
use controller::kinds::job;
use libfuzzer_sys::fuzz_target;
use slotwright_fuzz::objects::among_others;

fuzz_target!(|text: &str| {
    among_others(text).as_ref().and_then(|job: &HTCJob| job::facts(job));
});
