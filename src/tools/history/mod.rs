//! `condor_history`: jobs that have left the queue.
//!
//! The caller reads the ads, newest first or as [`Request::forwards`] says, and keeps those that the request is about: a history is too
//! long to be held in memory. A [`Printer`] then makes the text of one ad after the other.
//!
//! | file | is |
//! | --- | --- |
//! | `mod` | what is asked for |
//! | `arguments` | the command line |
//! | `printer` | the text, ad by ad |

mod arguments;
mod printer;

use std::collections::BTreeSet;

use classad::{Expr, Name};

use crate::autoformat::Formats;
use crate::screen::Width;
pub use arguments::{Asked, USAGE, parse};
pub use printer::Printer;

/// What a command line asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A history file; `None`: the operator is asked.
    pub file: Option<String>,
    /// Whether [`Request::file`] names the last of several files, which HTCondor has rotated.
    pub rotated: bool,
    /// ClusterIds, each with a ProcId if one proc is meant. With [`Request::owners`]: one of all these must fit; without either, all
    /// jobs do.
    pub jobs: Vec<(i64, Option<i64>)>,
    /// Owners.
    pub owners: Vec<String>,
    /// Conditions that must all hold.
    pub constraint: Vec<Expr>,
    /// The search ends before the first ad for which this is true.
    pub since: Option<Expr>,
    /// The most ads that are shown.
    pub limit: Option<usize>,
    /// The most ads that are looked at.
    pub scan_limit: Option<usize>,
    /// Whether the oldest ads come first.
    pub forwards: bool,
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
    /// A JSON object a line.
    JsonLines,
}

/// What the tables read, and what tells when all procs of a job were found.
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

/// What every answer needs.
const ALWAYS: &[&str] = &["ClusterId", "ProcId", "TotalSubmitProcs"];

impl Request {
    /// The attributes that the answer shows, without those that these refer to; `None`: all.
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

    /// Prints on this screen.
    pub fn printer<'r>(&'r self, screen: &'r crate::Screen) -> Printer<'r> {
        Printer::new(self, screen)
    }
}
