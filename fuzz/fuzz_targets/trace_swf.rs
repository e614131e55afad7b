//! Reads any text as a workload in SWF. Each line must become a job or be skipped; see [`slotwright_fuzz::sorted`].

#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::trace;

fuzz_target!(|text: &str| {
    // The first line says that the text is a workload in SWF, which can always be read.
    let text = format!("; Version: 2.2\n{text}");
    slotwright_fuzz::sorted(&trace::read(&text).unwrap());
});
