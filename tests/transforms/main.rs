//! Tests of the crate `slotwright-transform` from outside.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what it expects by panicking"
)]

mod manual;
mod oracle;
mod requirements;
mod safety;
