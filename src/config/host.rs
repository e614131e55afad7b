//! The facts about the machine that a configuration may know.

use std::collections::BTreeMap;

/// The facts about the machine that a configuration text may ask for, as data.
///
/// A fact that is not given is refused with a message. [`Host::none`] is for texts from people who must not see the
/// machine that reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Predefined macros, such as `DETECTED_CPUS` and `HOSTNAME`. The reader adds SUBSYSTEM and LOCALNAME.
    pub predefined: Vec<(String, String)>,
    /// The variables that `$ENV()` finds. `None`: `$ENV()` is refused.
    pub environment: Option<BTreeMap<String, String>>,
    /// The seed of `$RANDOM_CHOICE()` and `$RANDOM_INTEGER()`. With the same seed, a value is always the same. `None`:
    /// both are refused.
    pub seed: Option<u64>,
    /// The time in seconds since 1970-01-01T00:00:00Z, for `time()` in `$INT()` and the other functions.
    pub now: i64,
}

impl Host {
    /// A host that tells nothing: no macros, no environment, no random numbers, and the time 0.
    pub fn none() -> Self {
        Self::default()
    }
}

/// Why an `include` gets no file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is no such file. This is an error, unless the statement is `include ifexist`.
    #[error("there is no such file")]
    Missing,
    /// The name is a directory's. As in HTCondor, an `include` of a directory reads nothing.
    #[error("it is a directory")]
    Directory,
    /// Files may not be read. The text is added to the message.
    #[error("files are not read here: put what they hold into the text itself{0}")]
    Refused(&'static str),
    /// The file cannot be read: why.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}
