//! `kubectl slotwright`: the plugin, a thin front of the same library.

fn main() {}
