//! The knob table: every knob of the manual, its type and default, and what it is here.

/// The compiled-in default of a knob, raw: what HTCondor's parameter table says for `SUBSYSTEM.NAME`, else for `NAME`.
/// Names are compared without case. `None`: no such knob, or one without a default.
pub fn default_of(_subsystem: Option<&str>, _name: &str) -> Option<&'static str> {
    None
}
