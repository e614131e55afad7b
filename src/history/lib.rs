//! HTCondor's job history: the final ads of procs that have left the queue, in files.
//!
//! The files are HTCondor's own: `condor_history -file` and whatever else reads a schedd's history reads them. An ad is in the long
//! form, and a line that begins with `***`, its banner, ends the ad:
//!
//! ```text
//! ClusterId = 12
//! ...
//! *** Offset = 0 ClusterId = 12 ProcId = 0 Owner = "ada" CompletionDate = 1893460000 CurrentTime = 1893460001 Sequence = 1 Checksum = 97
//! ```
//!
//! `Sequence` and `Checksum` are Slotwright's: others skip what they do not know. The first counts the ads of a history, so that whoever
//! has read up to a number can go on from there; the second tells an ad that was written whole from the remains of a crash.
//!
//! Guarantees: an ad is on the disk when [`Store::append`] has returned. An ad with the same `GlobalJobId` is written once. After a crash,
//! whatever stands behind the last ad that was written whole is cut off; nothing before is touched. A damaged ad is skipped, and costs no
//! other.
//!
//! | file | is |
//! | --- | --- |
//! | `banner` | the line that ends an ad |
//! | `lines` | reads a file of any size line by line, in either direction |
//! | `records` | ads with their banners, in either direction |
//! | `search` | which ads a reader wants, and when the reader has them all |
//! | `files` | the files of one history: the one that grows, and those that were rotated |
//! | `store` | writes |
//! | `query` | reads a store, page by page |

mod banner;
mod files;
mod lines;
mod query;
mod records;
mod search;
mod store;

pub use banner::Banner;
pub use files::{Files, rotated_name};
pub use query::{Page, PageEnd, Query};
pub use records::{Direction, Record, Records};
pub use search::{Search, Searching};
pub use store::{Appended, Limits, Store};
