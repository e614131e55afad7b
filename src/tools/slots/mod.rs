//! `condor_status`: slots, and with `-schedd` and `-submitters` who has jobs.
//!
//! | file | is |
//! | --- | --- |
//! | `mod` | the answer: which ads, in which form, with totals |
//! | `arguments` | the command line |
//! | `forms` | the columns of each form |
//! | `cells` | what the columns show |
//! | `compact` | a line for each machine: `-compact` |
//! | `order` | the order of slots |
//! | `totals` | the totals under the list |

mod arguments;
mod cells;
mod compact;
mod forms;
mod order;
mod totals;

use classad::{Ad, Env, Name};

use crate::autoformat::Formats;
use crate::choice::Constraint;
use crate::long::{Form, whole};
use crate::screen::{Screen, Width};
use crate::table::Table;
pub use arguments::{Asked, USAGE, parse};
use order::Order;
use totals::Totals;

/// The request of a command line.
#[derive(Clone, Debug, Default)]
pub struct Request {
    kind: Kind,
    /// Slots or machines, or users with -claimed; empty: all.
    names: Vec<String>,
    constraint: Constraint,
    which: Which,
    /// Only slots of absent machines are asked for: `-absent`.
    absent: bool,
    order: Order,
    limit: Option<usize>,
    form: Shown,
    compact: bool,
    only_totals: bool,
    columns: Formats,
    more_columns: Formats,
    only: Vec<Name>,
    width: Option<Width>,
    /// A file with ads; `None`: the caller has them.
    pub ads_file: Option<String>,
}

/// The kind of the ads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Slots.
    #[default]
    Slots,
    /// The one queue.
    Schedds,
    /// Submitters.
    Submitters,
}

/// Which slots are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Which {
    #[default]
    All,
    /// Those that are Unclaimed and have CPUs and memory left.
    Available,
    Claimed,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    /// The default of slots.
    #[default]
    Normal,
    Claimed,
    State,
    Server,
    /// Absent machines.
    Absent,
    Schedds,
    Submitters,
    /// The columns of -autoformat or -format.
    Columns,
    Whole(Form),
}

/// How many characters the names of rows of totals take, unless the screen is wide.
const TOTALS_WIDTH: usize = 14;

impl Request {
    /// The kind of ads that the request is about.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The slots, machines or users that the command line names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the ads of absent machines belong to the answer: with `-absent`, or if a constraint names the attribute.
    pub fn wants_absent(&self) -> bool {
        self.kind == Kind::Slots && (self.absent || self.constraint.names("Absent"))
    }

    /// A name that the command line gives, and that no slot or machine has. With `-claimed`, names are those of users, whom nobody
    /// has to know.
    pub fn unknown_name(&self, ads: &[Ad]) -> Option<&str> {
        let env = Env::at(0);
        let is = |ad: &Ad, attribute: &str, name: &str| {
            cells::text(ad, attribute, &env).is_some_and(|value| value.eq_ignore_ascii_case(name))
        };
        let known = |name: &&String| ads.iter().any(|ad| is(ad, "Name", name) || is(ad, "Machine", name));
        let names = self.names.iter().filter(|_| self.which != Which::Claimed);
        names.filter(|name| !known(name)).map(String::as_str).next()
    }

    fn shows(&self, ad: &Ad, env: &Env) -> bool {
        let is = |attribute: &str, name: &String| {
            cells::text(ad, attribute, env).is_some_and(|value| value.eq_ignore_ascii_case(name))
        };
        let named = |name: &String| {
            if self.which == Which::Claimed {
                is("RemoteUser", name)
            } else {
                is("Name", name) || is("Machine", name)
            }
        };
        if !self.names.is_empty() && !self.names.iter().any(named) {
            return false;
        }
        let state = cells::text(ad, "State", env).unwrap_or_default();
        let above = |attribute: &str| {
            ad.eval_attr(attribute, None, env).as_number().is_some_and(|amount| amount > 0.0)
        };
        let dynamic = cells::is_true(ad, "DynamicSlot", env);
        let carved = above("NumDynamicSlots");
        let available = state == "Unclaimed" && above("Cpus") && above("Memory");
        let claimed =
            if self.compact { (state == "Claimed" && !dynamic) || carved } else { state == "Claimed" };
        let whole_machines = !self.compact
            || self.which == Which::Claimed
            || !dynamic
            || cells::is_true(ad, "PartitionableSlot", env);
        let wanted = match self.which {
            Which::All => true,
            Which::Available => available,
            Which::Claimed => claimed,
        };
        let wanted = wanted && (!self.absent || cells::is_true(ad, "Absent", env));
        wanted && whole_machines && self.constraint.holds(ad, env)
    }

    /// The answer about these ads; empty if none is shown, except in XML.
    pub fn print(&self, ads: &[Ad], screen: &Screen) -> String {
        let screen = &Screen { width: self.width.unwrap_or(screen.width), ..screen.clone() };
        let env = screen.env();
        let mut shown: Vec<&Ad> = ads.iter().filter(|ad| self.shows(ad, &env)).collect();
        shown.truncate(self.limit.unwrap_or(usize::MAX));
        if self.compact && !matches!(self.order, Order::Machine) {
            Order::Machine.sort(&mut shown, &env);
        }
        self.order.sort(&mut shown, &env);
        match self.form {
            Shown::Columns => return self.columns.print(shown, screen),
            // condor_status has a blank line behind each ad.
            Shown::Whole(Form::Xml) => {
                return whole(shown, &self.only, Form::Xml).replace("\n</c>\n", "\n</c>\n\n");
            }
            Shown::Whole(form) => return whole(shown, &self.only, form),
            _ if shown.is_empty() => return String::new(),
            _ => {}
        }
        let mut out = String::new();
        if !self.only_totals {
            self.print_rows(&shown, screen, &env, &mut out);
        }
        if let Some(mut totals) = Totals::new(self.form) {
            for ad in &shown {
                if self.compact && !self.only_totals {
                    let platform = cells::platform(ad, screen, &env).unwrap_or_default();
                    totals.count_rolled_up(ad, &platform, &env);
                } else {
                    totals.count(ad, &env);
                }
            }
            let fits =
                is_wide(screen.width) || self.form == Shown::Submitters || !self.more_columns.is_empty();
            out.push('\n');
            out.push_str(&totals.print((!fits).then_some(TOTALS_WIDTH)));
        }
        out
    }

    fn print_rows(&self, shown: &[&Ad], screen: &Screen, env: &Env, out: &mut String) {
        let longest = match screen.width {
            Width::Columns(columns) => Some(columns.saturating_sub(1)),
            Width::Piped | Width::Wide => None,
        };
        let (mut table, rows) = if self.compact {
            compact::table(shown, self.form, screen, env, longest)
        } else {
            let (columns, fixed) = forms::columns(self.form, screen.width);
            let mut table = Table::new(columns, longest);
            table.columns.extend_from_slice(self.more_columns.columns());
            let rows = shown.iter().map(|ad| table.row(ad, screen, env)).collect();
            forms::fit(&mut table, screen.width, fixed);
            (table, rows)
        };
        let mut lines = String::new();
        out.push_str(&table.headings());
        out.push('\n');
        for row in &rows {
            table.print(row, &mut lines);
        }
        out.push_str(&lines);
    }
}

/// Whether a screen is wide enough for names of any length, as condor_status sees it.
const fn is_wide(width: Width) -> bool {
    match width {
        Width::Piped => false,
        Width::Wide => true,
        Width::Columns(columns) => columns > 100,
    }
}
