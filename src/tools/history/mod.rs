//! `condor_history`: jobs that have left the queue.
//!
//! The caller searches the history by [`Request::search`], and hands one ad after the other to a [`Printer`], which makes the text:
//! a history is too long to be held in memory.
//!
//! | file | is |
//! | --- | --- |
//! | `mod` | the request that a command line makes |
//! | `arguments` | the command line |
//! | `printer` | the text, ad by ad |

mod arguments;
mod printer;

use std::collections::BTreeSet;

use ::history::Search;
use classad::Name;

use crate::autoformat::Formats;
use crate::screen::Width;
pub use arguments::{Asked, USAGE, parse};
pub use printer::Printer;

/// The request that a command line makes.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A history file; `None`: the operator is asked.
    pub file: Option<String>,
    /// Whether [`Request::file`] names the last of several files, which HTCondor has rotated.
    pub rotated: bool,
    /// The search for the ads that are shown, in their order.
    pub search: Search,
    form: Shown,
    columns: Formats,
    only: Vec<Name>,
    width: Option<Width>,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    /// A line for each job.
    #[default]
    Table,
    /// The columns of -autoformat or -format.
    Columns,
    Long,
    Xml,
    Json,
    /// One JSON object in each line.
    JsonLines,
}

/// The attributes that the tables read.
const TABLE: &[&str] = &[
    "Args",
    "Arguments",
    "Cmd",
    "CompletionDate",
    "ImageSize",
    "JobCoolDownExpiration",
    "JobDescription",
    "JobPrio",
    "JobStatus",
    "MATCH_EXP_JobDescription",
    "MemoryUsage",
    "Owner",
    "QDate",
    "RemoteUserCpu",
    "RemoteWallClockTime",
    "TransferQueued",
    "TransferringInput",
    "TransferringOutput",
];

/// The attributes that every answer needs: the search ends once all procs of a job were found.
const ALWAYS: &[&str] = &["ClusterId", "ProcId", "TotalSubmitProcs"];

impl Request {
    /// The attributes that the answer shows, without the attributes to which their expressions refer; `None`: all.
    pub fn attributes(&self) -> Option<BTreeSet<Name>> {
        let mut names: BTreeSet<Name> = match self.form {
            Shown::Table => TABLE.iter().map(|name| Name::from(*name)).collect(),
            Shown::Columns => self.columns.reads(),
            _ if self.only.is_empty() => return None,
            _ => self.only.iter().cloned().collect(),
        };
        names.extend(ALWAYS.iter().map(|name| Name::from(*name)));
        Some(names)
    }

    /// A printer for this screen.
    pub fn printer<'r>(&'r self, screen: &'r crate::Screen) -> Printer<'r> {
        Printer::new(self, screen)
    }
}
