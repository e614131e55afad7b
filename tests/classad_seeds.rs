//! Every ClassAd example that the manual prints: it parses, and means what the text beside it says. A test an example,
//! named by the manual's section. `../../shared/seeds`: chapter 0 is the current policy chapter (3 is the same,
//! rendered), 1 that of Condor 6, 2 the central manager's.
//!
//! | file | chapter |
//! | --- | --- |
//! | `execution.rs`, `slots.rs` | Policy Configuration, for execution points: policy; slots |
//! | `access.rs` | Policy Configuration, for access points |
//! | `central.rs` | Central Managers: cycles, limits, metrics |
//! | `classic.rs` | Startd Policy Configuration (6.6) |

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

#[path = "classad_seeds/access.rs"]
mod access;
#[path = "classad_seeds/central.rs"]
mod central;
#[path = "classad_seeds/classic.rs"]
mod classic;
#[path = "classad_seeds/execution.rs"]
mod execution;
#[path = "classad_seeds/slots.rs"]
mod slots;
#[path = "classad_seeds/support.rs"]
mod support;
