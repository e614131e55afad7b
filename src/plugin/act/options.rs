//! The options of `kubectl slotwright hold`, `release`, `rm` and `vacate-job`.

use clap::Args;
use classad::Expr;

use super::{Request, Selection, Verb};

/// The procs to act on, and the reason.
#[derive(Args, Debug, Default)]
pub struct ActArgs {
    /// The namespace [default: the context's]
    #[arg(short, long)]
    namespace: Option<String>,
    /// Why, for people: HoldReason, and the text of an event
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Only procs of which this ClassAd expression is true, such as 'JobPrio < 0'
    #[arg(long, value_name = "EXPR", value_parser = expression)]
    constraint: Option<Expr>,
    /// All jobs of the namespace
    #[arg(long, conflicts_with_all = ["jobs", "user", "constraint"])]
    all: bool,
    /// Only procs that are held
    #[arg(long)]
    held: bool,
    /// All jobs of this owner in the namespace
    #[arg(long, value_name = "OWNER")]
    user: Vec<String>,
    /// Print how many procs were acted on
    #[arg(long)]
    totals: bool,
    /// Jobs by name or ClusterId, or procs by ClusterId.ProcId
    #[arg(
        value_name = "JOB|CLUSTER|CLUSTER.PROC",
        required_unless_present_any = ["all", "user", "constraint", "held"]
    )]
    jobs: Vec<String>,
}

/// The options of `hold`.
#[derive(Args, Debug, Default)]
pub struct HoldArgs {
    #[command(flatten)]
    acts: ActArgs,
    /// HoldReasonSubCode
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    subcode: i64,
}

/// The options of `vacate-job`.
#[derive(Args, Debug, Default)]
pub struct VacateArgs {
    #[command(flatten)]
    acts: ActArgs,
    /// Kill, without time to shut down
    #[arg(long)]
    fast: bool,
}

fn expression(text: &str) -> Result<Expr, String> {
    Expr::parse(text).map_err(|error| error.to_string())
}

impl ActArgs {
    /// The request that the options make.
    pub fn request(self, verb: Verb) -> Request {
        let mut selection = Selection {
            users: self.user,
            constraint: self.constraint,
            all: self.all,
            held: self.held,
            ..Selection::default()
        };
        for word in self.jobs {
            if !selection.add(&word) {
                selection.names.push(word);
            }
        }
        let (reason, totals, namespace) = (self.reason, self.totals, self.namespace);
        let owners_everywhere = false;
        Request { verb, selection, reason, subcode: 0, forced: false, totals, namespace, owners_everywhere }
    }
}

impl HoldArgs {
    /// The request that the options make.
    pub fn request(self) -> Request {
        Request { subcode: self.subcode, ..self.acts.request(Verb::Hold) }
    }
}

impl VacateArgs {
    /// The request that the options make.
    pub fn request(self) -> Request {
        self.acts.request(if self.fast { Verb::VacateFast } else { Verb::Vacate })
    }
}
