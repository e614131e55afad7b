//! Checks every configuration example in the manual's chapters: each parses, and means what the text beside it says.
//! There is a test for each example, named by its section. If an example is printed with a mistake (a missing
//! parenthesis), the test says so and expects HTCondor's answer.
//!
//! | file | chapter |
//! | --- | --- |
//! | `execution.rs`, `examples.rs`, `slots.rs` | Policy Configuration, for execution points: policy; its examples; slots |
//! | `access.rs` | Policy Configuration, for access points |
//! | `central.rs`, `daemons.rs` | Central Managers: quotas and limits; what daemons there are |
//! | `classic.rs` | Startd Policy Configuration (6.6) |

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "config_seeds/access.rs"]
mod access;
#[path = "config_seeds/central.rs"]
mod central;
#[path = "config_seeds/classic.rs"]
mod classic;
#[path = "config_seeds/daemons.rs"]
mod daemons;
#[path = "config_seeds/examples.rs"]
mod examples;
#[path = "config_seeds/execution.rs"]
mod execution;
#[path = "config_seeds/slots.rs"]
mod slots;
#[path = "config_seeds/support.rs"]
mod support;
