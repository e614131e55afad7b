//! Makes the output of HTCondor's tools from ads: `condor_q`, `condor_history`, `condor_status` and `condor_userprio`; and the job
//! event log.
//!
//! Each tool is a function from ads, options and a [`Screen`] to text. The crate reads no ads, and knows neither the time nor
//! the terminal: the caller tells. So the same text is printed of ads that were made from a cluster's objects, and of ads in a
//! file, which the real tools read too: `tests/tools` compares.
//!
//! | file | is |
//! | --- | --- |
//! | `screen` | where the text goes: width, time, time zone |
//! | `values` | reads words that several tools take |
//! | `options` | finds an option by the beginning of its name, as HTCondor's tools do |
//! | `conversion` | one conversion of a format: C's, and HTCondor's `%v`, `%V`, `%r`, `%T`, `%Y` |
//! | `column`, `table` | columns of ads' values: how wide they get, and how a row prints |
//! | `autoformat` | the columns that `-autoformat` and `-format` ask for |
//! | `long`, `xml` | whole ads: long form, JSON, new syntax, XML |
//! | `choice` | which ads are shown |
//! | `events` | the job event log |
//! | `queue` | `condor_q` |
//! | `history` | `condor_history` |
//! | `slots` | `condor_status` |
//! | `users` | `condor_userprio` |

mod autoformat;
mod choice;
mod column;
mod conversion;
pub mod events;
pub mod history;
mod long;
pub mod options;
pub mod queue;
mod screen;
pub mod slots;
mod table;
pub mod users;
mod values;
mod xml;

pub use autoformat::Formats;
pub use choice::reads as reads_ads;
pub use long::{Form, whole};
pub use screen::{Screen, Width};
pub use values::{job_id, job_in_queue};
