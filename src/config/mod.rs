//! HTCondor's configuration language: macros, conditionals, templates, the knob table.

pub mod knobs;
pub mod templates;
