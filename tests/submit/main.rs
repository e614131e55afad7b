//! Tests of the crate `slotwright-submit` from outside.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test says what it expects by panicking"
)]

mod advice;
mod container;
mod manifests;
mod oracle;
mod place;
mod program;
mod requests;
mod rows;
mod safety;
mod travel;
