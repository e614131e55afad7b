//! `condor_q`: jobs.
//!
//! | file | is |
//! | --- | --- |
//! | `mod` | the answer: which jobs, in which form, with header and totals |
//! | `arguments` | the command line |
//! | `forms` | the columns of `-nobatch`, `-run`, `-hold`, `-idle` |
//! | `cells` | what the columns show: times, memory, program, states |
//! | `batch` | a line for each batch: the default form |
//! | `holds` | a line for each reason of a hold: `-hold-codes` |
//! | `totals` | how many jobs are in each state |

mod arguments;
mod batch;
pub(crate) mod cells;
mod forms;
mod holds;
mod totals;

use classad::{Ad, Env, Name};

use crate::autoformat::Formats;
use crate::choice::Constraint;
use crate::conversion::whole as number;
use crate::long::{Form, whole};
use crate::screen::{Screen, Width};
use crate::table::{Table, trim_line};
pub use arguments::{Asked, USAGE, parse};
pub(crate) use forms::valued;
pub use totals::Totals;

/// The request of a command line.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Jobs and owners that are shown; empty: all that the caller hands over.
    chosen: Chosen,
    constraint: Constraint,
    limit: Option<usize>,
    form: Shown,
    /// Which states of jobs are shown, whatever the form: those of -run, -idle or -hold.
    states: Shown,
    columns: Formats,
    more_columns: Formats,
    only: Vec<Name>,
    times: Times,
    width: Option<Width>,
    /// Whether the text gets 80 characters if it goes to no terminal, as `-wide:0` asks.
    is_narrow: bool,
    /// Whether the jobs of everybody are asked for.
    pub everybody: bool,
    /// A file with the ads of jobs; `None`: the caller has them.
    pub ads_file: Option<String>,
    /// Whether an analysis is asked for, and not a list. The caller makes it.
    pub analysis: bool,
}

/// The jobs that words without a dash name.
#[derive(Clone, Debug, Default)]
struct Chosen {
    /// ClusterId, and ProcId if only one proc is meant.
    jobs: Vec<(i64, Option<i64>)>,
    owners: Vec<String>,
    /// Submitters, which accounting groups are part of.
    submitters: Vec<String>,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    /// The default: batches, unless another option asks for procs.
    #[default]
    Default,
    Batch,
    Procs,
    Run,
    Idle,
    Hold,
    HoldCodes,
    Totals,
    /// The columns of -autoformat or -format.
    Columns,
    Whole(Form),
    /// -totals -long.
    WholeTotals(Form),
}

/// Which time the column RUN_TIME shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Times {
    /// The present run's, or the last one's.
    #[default]
    Run,
    /// That of all runs.
    AllRuns,
    /// CPU time.
    Cpu,
}

/// Where the jobs come from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The text behind `--` in the header, such as `Schedd: default : https://10.0.0.1:6443`.
    pub label: String,
    /// The name of the user's own jobs, and their totals.
    pub own: Option<(String, Totals)>,
    /// The totals of everybody's jobs.
    pub everybody: Option<Totals>,
}

impl Request {
    /// Whether the command line names jobs or owners, so that those of others are meant too.
    pub fn names_jobs(&self) -> bool {
        !(self.chosen.jobs.is_empty() && self.chosen.owners.is_empty() && self.chosen.submitters.is_empty())
    }

    /// Whether the answer shows which jobs run, and not only how many.
    pub fn needs_runs(&self) -> bool {
        let counts = matches!(
            self.form,
            Shown::Default | Shown::Batch | Shown::Totals | Shown::Hold | Shown::HoldCodes
        );
        let held = matches!(self.states, Shown::Default | Shown::Hold | Shown::HoldCodes);
        !counts || !held || self.analysis || self.is_partial() && self.states == Shown::Default
    }

    /// The ClusterIds of the jobs that the command line names, with a ProcId if only one proc is meant.
    pub fn jobs(&self) -> &[(i64, Option<i64>)] {
        &self.chosen.jobs
    }

    /// Whether a job is shown.
    fn shows(&self, ad: &Ad, env: &Env) -> bool {
        self.chosen.has(ad, env) && self.states.wants(ad, env) && self.constraint.holds(ad, env)
    }

    /// The jobs that are shown, in the order of their ids.
    pub fn choose<'a>(&self, ads: &'a [Ad], screen: &Screen) -> Vec<&'a Ad> {
        let env = screen.env();
        let mut shown: Vec<&Ad> = ads.iter().filter(|ad| self.shows(ad, &env)).collect();
        shown.sort_by_cached_key(|ad| id(ad, &env));
        shown.truncate(self.limit.unwrap_or(usize::MAX));
        shown
    }

    /// Whether jobs are left out of batches that are shown, so that nobody can tell how many jobs of a batch are done.
    fn is_partial(&self) -> bool {
        !self.constraint.is_empty()
            || self.chosen.jobs.iter().any(|(_, proc)| proc.is_some())
            || self.states != Shown::Default
    }

    /// How wide the text may be.
    fn width(&self, screen: &Screen) -> Width {
        let of_screen = match screen.width {
            Width::Piped if self.is_narrow => Width::Columns(80),
            width => width,
        };
        self.width.unwrap_or(of_screen)
    }

    /// The answer about these jobs.
    pub fn print(&self, ads: &[Ad], source: &Source, screen: &Screen) -> String {
        let screen = &Screen { width: self.width(screen), ..screen.clone() };
        let env = screen.env();
        let shown = self.choose(ads, screen);
        match self.form {
            Shown::Columns => return self.columns.print(shown, screen),
            Shown::Whole(form) => return whole(shown, &self.only, form),
            Shown::WholeTotals(form) => {
                let totals = Totals::of(shown, &env).ad();
                return whole([&totals], &[], form);
            }
            _ => {}
        }
        let time =
            shown.iter().find_map(|ad| ad.eval_attr("ServerTime", None, &env).as_int()).unwrap_or(screen.now);
        let mut out = format!("\n\n-- {} @ {}\n", source.label, screen.moment(time));
        match self.form {
            Shown::Default | Shown::Batch => batch::print(&shown, self.is_partial(), screen, &env, &mut out),
            Shown::HoldCodes => holds::print(&shown, screen, &env, &mut out),
            Shown::Totals => {}
            _ => self.print_rows(&shown, screen, &env, &mut out),
        }
        if matches!(self.form, Shown::Run | Shown::Idle | Shown::HoldCodes) {
            return out;
        }
        if self.form != Shown::Totals {
            out.push('\n');
        }
        out.push_str(&totals::footer(&Totals::of(shown, &env), source));
        out.push('\n');
        out
    }

    fn print_rows(&self, shown: &[&Ad], screen: &Screen, env: &Env, out: &mut String) {
        // Reasons of holds are never cut.
        let longest = match screen.width {
            Width::Columns(columns) if self.form != Shown::Hold && self.more_columns.is_empty() => {
                Some(columns.saturating_sub(1))
            }
            _ => None,
        };
        let mut table = Table::new(forms::columns(self.form, self.times), longest);
        if !self.more_columns.is_empty() {
            forms::append(&mut table, self.more_columns.columns());
        }
        let rows: Vec<_> = shown.iter().map(|ad| table.row(ad, screen, env)).collect();
        forms::fit(&mut table, shown, longest.map(|longest| longest + 1), env);
        out.push_str(&table.headings());
        for row in &rows {
            table.print(row, out);
            if longest.is_none() {
                trim_line(out);
            }
        }
    }
}

impl Chosen {
    fn has(&self, ad: &Ad, env: &Env) -> bool {
        let all = self.jobs.is_empty() && self.owners.is_empty() && self.submitters.is_empty();
        let (cluster, own_proc) = id(ad, env);
        let is = |attribute: &str, names: &[String]| {
            let value = ad.eval_attr(attribute, None, env);
            value.as_str().is_some_and(|value| names.iter().any(|name| name.eq_ignore_ascii_case(value)))
        };
        all || self.jobs.iter().any(|(job, proc)| *job == cluster && proc.is_none_or(|proc| proc == own_proc))
            || (!self.owners.is_empty() && is("Owner", &self.owners))
            || (!self.submitters.is_empty()
                && (is("User", &self.submitters)
                    || is("AccountingGroup", &self.submitters)
                    || is("Owner", &self.submitters)))
    }
}

impl Shown {
    fn wants(self, ad: &Ad, env: &Env) -> bool {
        match self {
            Self::Run => matches!(status(ad, env), 2 | 6 | 7),
            Self::Idle => status(ad, env) == 1,
            Self::Hold | Self::HoldCodes => status(ad, env) == 5,
            _ => true,
        }
    }
}

/// An attribute's text. `None`: the ad has no such attribute, or it is no text.
pub fn text_of(ad: &Ad, name: &str, env: &Env) -> Option<String> {
    cells::text(ad, name, env)
}

/// `JobStatus`; 0 if the ad has none.
fn status(ad: &Ad, env: &Env) -> i64 {
    number(&ad.eval_attr("JobStatus", None, env)).unwrap_or(0)
}

/// ClusterId and ProcId; -1 if the ad has none.
fn id(ad: &Ad, env: &Env) -> (i64, i64) {
    let of = |name| number(&ad.eval_attr(name, None, env)).unwrap_or(-1);
    (of("ClusterId"), of("ProcId"))
}

/// `ClusterId.ProcId`. `None`: the ad is no job's.
pub(crate) fn job_id(ad: &Ad, env: &Env) -> Option<String> {
    let (cluster, proc) = id(ad, env);
    match (cluster, proc) {
        (-1, _) => ad.eval_attr("JobId", None, env).as_str().map(str::to_owned),
        (cluster, -1) => Some(cluster.to_string()),
        (cluster, proc) => Some(format!("{cluster}.{proc}")),
    }
}
