//! The `slotwright` command.

fn main() {}
