//! What a configuration may know of the machine that reads it.

use std::collections::BTreeMap;

/// What a configuration text may ask of the host, as data. What is not given is refused with a message, so
/// [`Host::none`] is for texts out of manifests: the operator's own machine is none of their business.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Predefined macros, such as `DETECTED_CPUS` and `HOSTNAME`. SUBSYSTEM and LOCALNAME are the reader's.
    pub predefined: Vec<(String, String)>,
    /// What `$ENV()` sees; `None` refuses it.
    pub environment: Option<BTreeMap<String, String>>,
    /// Where `$RANDOM_CHOICE()` and `$RANDOM_INTEGER()` start; `None` refuses them. With the same seed, a value
    /// is the same at each look.
    pub seed: Option<u64>,
    /// The time in seconds since 1970, for `time()` in `$INT()` and its kin.
    pub now: i64,
}

impl Host {
    /// Nothing is known and nothing may be asked.
    pub fn none() -> Self {
        Self::default()
    }
}

/// Why there is no file for an `include`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is none: an error, unless the statement is `include ifexist`.
    #[error("there is no such file")]
    Missing,
    /// Files are not to be read here.
    #[error("files are not read here: put what they hold into the text itself{0}")]
    Refused(&'static str),
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}
