//! An embedded API server and hollow nodes: a test bed and the default of the demo, not the product.

pub mod nodes;
pub mod server;
pub mod watchdog;
