//! Reads any text as a job history. Each ad must become a job or be skipped; see [`slotwright_fuzz::sorted`].

#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::trace;

fuzz_target!(|text: &str| {
    // The text may have any form of trace.
    if let Ok(trace) = trace::read(text) {
        slotwright_fuzz::sorted(&trace);
    }
    // A text that begins with a banner is a job history, which can always be read.
    let text = format!("*** Offset = 0\n{text}");
    slotwright_fuzz::sorted(&trace::read(&text).unwrap());
});
