//! Every configuration example that the seeds print: it parses, and means what the text beside it says. One test for
//! each, named by its section. Where an example is printed with a slip (a parenthesis short), the test says so and
//! holds us to HTCondor's answer.
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
