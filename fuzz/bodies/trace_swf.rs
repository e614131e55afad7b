//! Reads any text as a workload in SWF. Each line must become a job or be skipped; see [`sorted`](crate::sorted).

use sim::trace;

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    // The first line says that the text is a workload in SWF, which can always be read.
    let text = format!("; Version: 2.2\n{text}");
    crate::sorted(&trace::read(&text).unwrap());
}
