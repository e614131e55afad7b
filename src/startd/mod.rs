//! The startd's part: carving, the slot ad, policy and the state machine.
