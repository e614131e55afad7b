//! Reads any text as a job history. Each ad must become a job or be skipped; see [`sorted`](crate::sorted).

use sim::trace;

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    // The text may have any form of trace.
    if let Ok(trace) = trace::read(text) {
        crate::sorted(&trace);
    }
    // A text that begins with a banner is a job history, which can always be read.
    let text = format!("*** Offset = 0\n{text}");
    crate::sorted(&trace::read(&text).unwrap());
}
