//! Reads the answers of the API server, whatever others wrote into the objects. The operator, the webhook, the agents and the plugin
//! call the API server by this crate.
//!
//! | part | |
//! | --- | --- |
//! | [`chain`] | an error with what caused the error |
//! | [`decode`] | an [`Item`] is an object that is there even if the object cannot be decoded |
//! | [`guarded`](mod@guarded) | a client that checks answers before kube decodes them |
//! | [`Pauses`], [`Patience`], [`patient`] | the pauses between attempts: of a call, of a watch |
//! | [`merge_patch`] | the patch that makes an object what it should be |
//! | [`wire`] | calls whose answers are [`Item`]s |

mod causes;
pub mod decode;
pub mod guarded;
mod patch;
mod patience;
mod pauses;
pub mod wire;

use std::time::Duration;

pub use causes::chain;
pub use decode::{Decode, Item, Parts, Undecodable};
pub use guarded::{guarded, watching};
pub use patch::merge_patch;
pub use patience::{Patience, patient};
pub use pauses::Pauses;

/// How long a connection to the API server may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(4);
/// For how long an answer may bring no byte: longer than a watch may be silent. A connection that is silent for longer is lost.
const SILENCE_LIMIT: Duration = Duration::from_mins(5);

/// The configuration of a program that repeats its calls by itself, with a bound and a log, and watches for as long as it lives.
#[must_use]
pub fn for_a_daemon(mut config: kube::Config) -> kube::Config {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_LIMIT);
    config.read_timeout = Some(SILENCE_LIMIT);
    config
}
