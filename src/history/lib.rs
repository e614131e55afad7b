//! HTCondor's job history: the final ads of procs that have left the queue, in files.
//!
//! The files have HTCondor's own format: `condor_history -file` and other readers of a schedd's history read these files. An ad is
//! in the long form, and a line that begins with `***`, its banner, ends the ad:
//!
//! ```text
//! ClusterId = 12
//! ...
//! *** Offset = 0 ClusterId = 12 ProcId = 0 Owner = "ada" CompletionDate = 1893460000 ... Sequence = 1 Checksum = 97
//! ```
//!
//! `Sequence` and `Checksum` are Slotwright's: other readers skip words that they do not know. `Sequence` counts the ads of a
//! history, so that a reader who has read up to a number can go on from there. `Checksum` tells an ad that was written whole from
//! the remains of a crash.
//!
//! Guarantees: an ad is on the disk when [`Store::append`] has returned. An ad is not written again while the files
//! have an ad with the same `GlobalJobId`; but the completion of a proc is written though the files have a removal of
//! the proc. After a crash, the text behind the last ad that was written whole is cut off; nothing before is touched. A
//! damaged ad is skipped, and costs no other ad.
//!
//! | file | is |
//! | --- | --- |
//! | `banner` | the line that ends an ad |
//! | `lines` | reads a file of any size line by line, in either direction |
//! | `records` | ads with their banners, in either direction |
//! | `search` | searches for the ads that a reader wants |
//! | `files` | the files of one history: the one that grows, and those that were rotated |
//! | `store` | writes a history |
//! | `query` | searches a history, page by page |

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
