//! Any lines of a workload: each is a job or skipped, and jobs come by submission.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::trace;

fuzz_target!(|text: &str| {
    // The form is settled by the first line.
    let text = format!("; Version: 2.2\n{text}");
    slotwright_fuzz::sorted(&trace::read(&text).unwrap());
});
