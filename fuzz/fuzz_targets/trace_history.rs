//! Any ads of a job history: each is a job or skipped, and jobs come by submission.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::trace;

fuzz_target!(|text: &str| {
    // Whichever form it has.
    if let Ok(trace) = trace::read(text) {
        slotwright_fuzz::sorted(&trace);
    }
    // A banner settles the form.
    let text = format!("*** Offset = 0\n{text}");
    slotwright_fuzz::sorted(&trace::read(&text).unwrap());
});
