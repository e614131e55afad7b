//! `condor_userprio`: submitters and their priorities.

use classad::{Ad, Env, Value};

use crate::autoformat::Formats;
use crate::choice::Constraint;
use crate::conversion::whole as integer;
use crate::long::{Form, whole};
use crate::options::{ToolOption, Words, find, known};
use crate::screen::Screen;
use condor_config::Format;

/// How condor_userprio is used here.
pub const USAGE: &str = "\
Usage: condor_userprio [OPTIONS] [NAME ...]
 which users:
  -allusers               also those who have used nothing for a day
  -name NEGOTIATOR        as this Negotiator sees them [default: the first by name]
  -constraint EXPRESSION  those for which a ClassAd expression is true, with -long or -af
 in which form:
  -most (default), -all, -priority, -usage   these columns
  -long, -autoformat[:jlhVr,tng] ATTRIBUTE ..., -af
 edits, of the user's Submitter:
  -setfactor USER N, -setceiling USER N (-1: none), -setfloor USER N
  -setprio USER N, -setaccum USER N, -setbegin USER SECONDS, -setlast USER SECONDS, -resetusage USER
  -delete USER
  -version, -help";

/// The request of a command line.
#[derive(Debug)]
pub enum Asked {
    /// A list of users.
    Users(Box<Request>),
    /// An edit of a user's Submitter.
    Edit(Edit),
    /// The usage.
    Help,
    /// The version.
    Version,
}

/// An edit of a user's Submitter.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The submitter.
    pub user: String,
    /// The Negotiator whose account is corrected; `None`: the first by name.
    pub negotiator: Option<String>,
    /// The change.
    pub what: Change,
}

/// The field that an edit changes, with the new value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The priority factor.
    Factor(f64),
    /// The ceiling; `None`: there is none.
    Ceiling(Option<f64>),
    /// The floor.
    Floor(f64),
    /// The real priority.
    Priority(f64),
    /// The accumulated weighted usage, in seconds.
    Usage(f64),
    /// When usage began, in seconds since 1970.
    Begin(i64),
    /// When the last usage was, in seconds since 1970.
    Last(i64),
    /// Usage is 0, and begins now.
    Reset,
    /// The record is deleted.
    Delete,
}

/// Which columns are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Columns {
    #[default]
    Most,
    All,
    Priority,
    Usage,
}

/// A list of users.
#[derive(Clone, Debug, Default)]
pub struct Request {
    names: Vec<String>,
    everybody: bool,
    columns: Columns,
    long: bool,
    formats: Formats,
    constraint: Constraint,
    /// The Negotiator whose accounts are shown; `None`: the first by name.
    pub negotiator: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Does {
    Change(fn(f64) -> Change),
    /// A change to a number, or to none, which is written -1.
    ChangeOrNone(fn(Option<f64>) -> Change),
    ChangeTime(fn(i64) -> Change),
    ChangeTo(Change),
    Shows(Columns),
    Everybody,
    Long,
    Format,
    Constraint,
    Name,
    Help,
    Version,
    Nothing,
    Refused(&'static str),
}

const NO_LEASES: &str = "factors, ceilings and floors hold until they are changed";
const GROUPS: &str = "see kubectl get groupquotas";

const OPTIONS: &[ToolOption<Does>] = &[
    known("setprio", 4, Does::Change(Change::Priority)),
    known("setfactor", 4, Does::Change(Change::Factor)),
    known("setfloor", 5, Does::Change(Change::Floor)),
    known("setceiling", 4, Does::ChangeOrNone(Change::Ceiling)),
    known("setaccum", 4, Does::Change(Change::Usage)),
    known("setbegin", 4, Does::ChangeTime(Change::Begin)),
    known("setlast", 4, Does::ChangeTime(Change::Last)),
    known("resetusage", 6, Does::ChangeTo(Change::Reset)),
    known("delete", 3, Does::ChangeTo(Change::Delete)),
    known("resetall", 6, Does::Refused("reset one user after the other: -resetusage USER")),
    known("duration", 2, Does::Refused(NO_LEASES)),
    known("cancelceilinglease", 7, Does::Refused(NO_LEASES)),
    known("cancelfloorlease", 7, Does::Refused(NO_LEASES)),
    known("cancelfactorlease", 7, Does::Refused(NO_LEASES)),
    known("long", 1, Does::Long),
    known("constraint", 1, Does::Constraint),
    known("legacy", 3, Does::Refused("each user has an ad of its own")),
    known("modular", 3, Does::Nothing),
    known("autoformat", 5, Does::Format),
    known("af", 2, Does::Format),
    known("hierarchical", 2, Does::Refused(GROUPS)),
    known("flat", 2, Does::Nothing),
    known("grouprollup", 6, Does::Refused(GROUPS)),
    known("grouporder", 6, Does::Refused(GROUPS)),
    known("quotas", 1, Does::Refused(GROUPS)),
    known("surplus", 2, Does::Refused(GROUPS)),
    known("sortkey", 2, Does::Refused(GROUPS)),
    known("allusers", 4, Does::Everybody),
    known("all", 2, Does::Shows(Columns::All)),
    known("most", 2, Does::Shows(Columns::Most)),
    known("groupid", 6, Does::Refused(GROUPS)),
    known("order", 1, Does::Refused(GROUPS)),
    known("activefrom", 2, Does::Refused("use -constraint 'LastUsageTime > SECONDS' with -af")),
    known("usage", 2, Does::Shows(Columns::Usage)),
    known("priority", 4, Does::Shows(Columns::Priority)),
    known("getreslist", 6, Does::Refused("use condor_status -claimed USER")),
    known("inputfile", 2, Does::Refused("accounts are in the Submitters; see kubectl get submitters")),
    known("pool", 1, Does::Refused("there is one pool, that of the kubeconfig's cluster")),
    known("name", 1, Does::Name),
    known("collector", 3, Does::Refused("accounts are in the Submitters")),
    known("negotiator", 3, Does::Nothing),
    known("debug", 3, Does::Nothing),
    known("help", 1, Does::Help),
    known("version", 1, Does::Version),
];

/// Reads the words behind the name of the program. The error is a message for standard error.
///
/// # Errors
/// When a word is not understood or has no meaning here.
pub fn parse(words: &[String]) -> Result<Asked, String> {
    let (mut request, mut edit) = (Request::default(), None);
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            request.names.push(word.to_owned());
            continue;
        }
        let given =
            find(word, OPTIONS).ok_or_else(|| format!("condor_userprio: {word} is no option\n{USAGE}"))?;
        let name = given.name;
        match given.does {
            Does::Help => return Ok(Asked::Help),
            Does::Version => return Ok(Asked::Version),
            Does::Refused(why) => return Err(format!("condor_userprio: -{name} is not supported: {why}")),
            Does::Nothing => {}
            Does::Everybody => request.everybody = true,
            Does::Shows(columns) => request.columns = columns,
            Does::Long => request.long = true,
            Does::Name => {
                request.negotiator = Some(words.needed(name, "the name of a Negotiator")?.to_owned());
            }
            Does::Format => request.formats.autoformat(given.more.unwrap_or_default(), &words.plain())?,
            Does::Constraint => {
                let text = words.needed(name, "an expression")?;
                let wrong = |error| format!("Error:  could not parse constraint {text}: {error}");
                request.constraint.and(text).map_err(wrong)?;
            }
            Does::Change(_) | Does::ChangeOrNone(_) | Does::ChangeTime(_) | Does::ChangeTo(_) => {
                let user = words.needed(name, "the name of a user")?.to_owned();
                edit = Some((user, change(given.does, name, &mut words)?));
            }
        }
    }
    Ok(match edit {
        Some((user, what)) => Asked::Edit(Edit { user, negotiator: request.negotiator, what }),
        None => Asked::Users(Box::new(request)),
    })
}

fn change(does: Does, name: &str, words: &mut Words) -> Result<Change, String> {
    let may_be_none = matches!(does, Does::ChangeOrNone(_));
    // A Submitter has no other factors.
    let least =
        if matches!(does, Does::Change(make) if matches!(make(0.0), Change::Factor(_))) { 1.0 } else { 0.0 };
    let mut number = || {
        let text = words.needed(name, "a number")?;
        let is_right = |number: f64| number >= least || (may_be_none && number.total_cmp(&-1.0).is_eq());
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && is_right(*number));
        let or = if may_be_none { ", or -1 for none" } else { "" };
        number.ok_or_else(|| format!("condor_userprio: -{name}: {text} is no number of at least {least}{or}"))
    };
    #[allow(clippy::cast_possible_truncation, reason = "the nearest there is")]
    match does {
        Does::Change(make) => number().map(make),
        Does::ChangeOrNone(make) => number().map(|number| make(Some(number).filter(|number| *number >= 0.0))),
        Does::ChangeTime(make) => number().map(|secs| make(secs as i64)),
        Does::ChangeTo(change) => Ok(change),
        _ => Err(format!("condor_userprio: -{name} is no edit")),
    }
}

/// A column: two lines of heading, the width, and the text of a user.
struct Column {
    heading: [&'static str; 2],
    width: usize,
    text: fn(&Ad, usize, &Screen, &Env) -> String,
    /// The text under the column.
    sum: fn(&[&Ad], usize, &Env) -> String,
}

fn number(ad: &Ad, name: &str, env: &Env) -> Option<f64> {
    ad.eval_attr(name, None, env).as_number()
}

/// A number in a width: with so many decimals, or else with as many digits as fit.
fn fitted(value: f64, width: usize, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.len() <= width {
        return text;
    }
    let format = Format::parse(&format!("%.{}g", width.saturating_sub(6)));
    format.map_or(text, |format| format.real(value))
}

fn day(secs: i64, screen: &Screen) -> String {
    if secs > 0 { screen.date_with_year(secs) } else { String::new() }
}

fn since(ad: &Ad, screen: &Screen, env: &Env) -> String {
    let updated = integer(&ad.eval_attr("LastUpdate", None, env)).unwrap_or(screen.now);
    match integer(&ad.eval_attr("LastUsageTime", None, env)) {
        Some(last) if updated > last => {
            let minutes = (updated - last) / 60;
            format!("{:>3}+{:02}:{:02}", minutes / 1440, minutes / 60 % 24, minutes % 60)
        }
        Some(_) => "<now>".to_owned(),
        None => String::new(),
    }
}

fn total(ads: &[&Ad], name: &str, env: &Env) -> f64 {
    // The sum starts at +0, because the standard library's sum of nothing is -0, which people would see.
    ads.iter().filter_map(|ad| number(ad, name, env)).fold(0.0, |sum, one| sum + one)
}

fn none(_: &[&Ad], _: usize, _: &Env) -> String {
    String::new()
}

const fn column(
    heading: [&'static str; 2],
    width: usize,
    text: fn(&Ad, usize, &Screen, &Env) -> String,
) -> Column {
    Column { heading, width, text, sum: none }
}

/// The columns, in condor_userprio's order.
fn columns(shown: Columns) -> Vec<Column> {
    use Columns::{All, Most, Priority, Usage};
    let of = |columns: &[Columns]| columns.contains(&shown);
    let mut all = Vec::new();
    if of(&[Most, All, Priority]) {
        all.push(column(["Effective", "Priority"], 12, |ad, width, _, env| {
            shown_number(ad, "Priority", width, 2, env)
        }));
    }
    if of(&[All, Priority]) {
        all.push(column(["Real", "Priority"], 8, |ad, width, _, env| {
            let factor = number(ad, "PriorityFactor", env).filter(|factor| *factor > 0.0);
            let real =
                number(ad, "Priority", env).zip(factor).map_or(0.0, |(priority, factor)| priority / factor);
            fitted(real, width, 2)
        }));
    }
    if of(&[Most, All, Priority]) {
        all.push(column(["Priority", "Factor"], 9, |ad, width, _, env| {
            shown_number(ad, "PriorityFactor", width, 2, env)
        }));
    }
    if of(&[Most, All, Usage]) {
        all.push(Column {
            sum: |ads, width, env| fitted(total(ads, "WeightedResourcesUsed", env), width, 0),
            ..column(["Wghted", "In Use"], 6, |ad, width, _, env| {
                shown_number(ad, "WeightedResourcesUsed", width, 0, env)
            })
        });
        all.push(Column {
            sum: |ads, width, env| fitted(total(ads, "WeightedAccumulatedUsage", env) / 3600.0, width, 2),
            ..column(["Total Usage", "(wghted-hrs)"], 12, |ad, width, _, env| {
                let usage = number(ad, "WeightedAccumulatedUsage", env);
                usage.map_or_else(String::new, |usage| fitted(usage / 3600.0, width, 2))
            })
        });
    }
    if of(&[All, Usage]) {
        all.push(column(["Usage", "Start Time"], 16, |ad, _, screen, env| {
            day(integer(&ad.eval_attr("BeginUsageTime", None, env)).unwrap_or(0), screen)
        }));
        all.push(column(["Last", "Usage Time"], 16, |ad, _, screen, env| {
            day(integer(&ad.eval_attr("LastUsageTime", None, env)).unwrap_or(0), screen)
        }));
    }
    if of(&[Most, All]) {
        all.push(column(["Time Since", "Last Usage"], 10, |ad, _, screen, env| since(ad, screen, env)));
    }
    if of(&[Most, All]) {
        all.push(column(["Weighted", "Requested"], 10, |ad, width, _, env| {
            shown_number(ad, "Requested", width, 0, env)
        }));
        all.push(column(["Submitter", "Floor"], 9, |ad, width, _, env| {
            number(ad, "Floor", env)
                .filter(|floor| *floor > 0.0)
                .map_or_else(String::new, |floor| fitted(floor, width, 2))
        }));
        all.push(column(["Submitter", "Ceiling"], 9, |ad, width, _, env| {
            let ceiling = number(ad, "Ceiling", env).filter(|ceiling| *ceiling > -1.0);
            ceiling.map_or_else(String::new, |ceiling| fitted(ceiling, width, 2))
        }));
    }
    all
}

fn shown_number(ad: &Ad, name: &str, width: usize, decimals: usize, env: &Env) -> String {
    number(ad, name, env).map_or_else(String::new, |value| fitted(value, width, decimals))
}

/// The name of a user without the domain that condor_userprio of HTCondor demands: submitters have no domain here. `None`: the name
/// has none.
pub fn without_domain(name: &str) -> Option<&str> {
    name.rsplit_once('@').map(|(local, _)| local).filter(|local| !local.is_empty())
}

/// Users are active if they used something in this time, in seconds.
const ACTIVE: i64 = 86_400;

impl Request {
    fn shows(&self, ad: &Ad, env: &Env) -> bool {
        let name = ad.eval_attr("Name", None, env);
        let name = name.as_str().unwrap_or_default();
        let last = integer(&ad.eval_attr("LastUsageTime", None, env)).unwrap_or(-1);
        let is_active = self.everybody || !self.names.is_empty() || last >= env.now.saturating_sub(ACTIVE);
        let named = |wanted: &String| {
            wanted == name || name.split('@').next() == Some(wanted) || without_domain(wanted) == Some(name)
        };
        (self.names.is_empty() || self.names.iter().any(named)) && is_active
    }

    /// The answer about these users.
    pub fn print(&self, ads: &[Ad], screen: &Screen) -> String {
        let env = screen.env();
        if self.long || !self.formats.is_empty() {
            // Whole ads are those of all users.
            let all = ads.iter().filter(|ad| self.constraint.holds(ad, &env));
            return if self.long { whole(all, &[], Form::Long) } else { self.formats.print(all, screen) };
        }
        let mut shown: Vec<&Ad> = ads.iter().filter(|ad| self.shows(ad, &env)).collect();
        let key = if self.columns == Columns::Usage { "WeightedAccumulatedUsage" } else { "Priority" };
        let order = |ad: &Ad| number(ad, key, &env).unwrap_or(0.0);
        shown.sort_by(|a, b| order(a).total_cmp(&order(b)));
        let updated = shown
            .iter()
            .find_map(|ad| integer(&ad.eval_attr("LastUpdate", None, &env)))
            .unwrap_or(screen.now);
        self.table(&shown, updated, screen, &env)
    }

    fn table(&self, shown: &[&Ad], updated: i64, screen: &Screen, env: &Env) -> String {
        let columns = columns(self.columns);
        let count = format!("Number of users: {}", shown.len());
        let name = |ad: &Ad| match ad.eval_attr("Name", None, env) {
            Value::Str(name) => name.to_string(),
            _ => String::new(),
        };
        let longest = shown.iter().map(|ad| name(ad).len()).max().unwrap_or(0);
        let width = longest.min(99).max(count.len());
        let cut = |text: &str| {
            format!("{:<width$}", text.get(..text.floor_char_boundary(width)).unwrap_or_default())
        };
        let line = |first: &str, cells: Vec<String>| format!("{} {}\n", cut(first), cells.join(" "));
        let centered = |text: &str, width: usize| {
            let left = width.saturating_sub(text.len()) / 2;
            format!("{:<width$}", format!("{}{text}", " ".repeat(left)))
        };
        let heading = |place: usize| {
            let of = |column: &Column| centered(column.heading.get(place).unwrap_or(&""), column.width);
            columns.iter().map(of).collect::<Vec<_>>()
        };
        let rule = line(&"-".repeat(width), columns.iter().map(|column| "-".repeat(column.width)).collect());
        let mut out = format!("Last Priority Update: {}\n", screen.date(updated));
        out.push_str(&line("", heading(0)));
        out.push_str(&line("User Name", heading(1)));
        out.push_str(&rule);
        for ad in shown {
            let cell = |column: &Column| {
                format!("{:>1$}", (column.text)(ad, column.width, screen, env), column.width)
            };
            out.push_str(&line(&name(ad), columns.iter().map(cell).collect()));
        }
        out.push_str(&rule);
        let sum = |column: &Column| format!("{:>1$}", (column.sum)(shown, column.width, env), column.width);
        out.push_str(&line(&count, columns.iter().map(sum).collect()));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Width;
    use jiff::tz::TimeZone;

    fn parsed(line: &str) -> Result<Asked, String> {
        parse(&line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>())
    }

    fn printed(line: &str) -> String {
        let ads = Ad::parse_long_stream(
            "Name = \"bob\"\nPriority = 1234.5\nPriorityFactor = 1000.0\nWeightedResourcesUsed = 6.0\n\
             WeightedAccumulatedUsage = 72000.0\nLastUsageTime = 1893456000\nLastUpdate = 1893456000\nCeiling = 10.0\n\n\
             Name = \"ada\"\nPriority = 500.0\nPriorityFactor = 1000.0\nWeightedResourcesUsed = 0.0\n\
             WeightedAccumulatedUsage = 360000000000000.0\nLastUsageTime = 1893366000\nLastUpdate = 1893456000\n",
        )
        .unwrap();
        let screen = Screen { width: Width::Piped, now: 1_893_456_000, zone: TimeZone::UTC };
        let Ok(Asked::Users(request)) = parsed(line) else { panic!("{line}") };
        request.print(&ads, &screen)
    }

    #[test]
    fn users_stand_in_the_order_of_their_priority() {
        assert_eq!(
            printed("-allusers"),
            "\
Last Priority Update:  1/1  00:00
                    Effective   Priority  Wghted Total Usage  Time Since  Weighted  Submitter Submitter
User Name            Priority    Factor   In Use (wghted-hrs) Last Usage Requested    Floor    Ceiling \n\
------------------ ------------ --------- ------ ------------ ---------- ---------- --------- ---------
ada                      500.00   1000.00      0        1e+11    1+01:00                               
bob                     1234.50   1000.00      6        20.00      <now>                          10.00
------------------ ------------ --------- ------ ------------ ---------- ---------- --------- ---------
Number of users: 2                             6        1e+11                                          \n"
        );
        // Who has used nothing for a day is not active.
        assert!(printed("").contains("Number of users: 1 "));
        assert_eq!(printed("-af Name Priority"), "bob 1234.5\nada 500.0\n");
        for name in ["ada", "ada@example.org"] {
            let said = printed(&format!("-priority {name}"));
            assert!(said.contains("\nada                      500.00     0.50   1000.00\n"), "{said}");
        }
    }

    #[test]
    fn edits_and_what_is_refused() {
        for (line, what) in [
            ("-setfactor ada 5", Change::Factor(5.0)),
            ("-setprio ada 0.5", Change::Priority(0.5)),
            ("-setlast ada 7", Change::Last(7)),
            ("-resetusage ada", Change::Reset),
            ("-setceil ada 3", Change::Ceiling(Some(3.0))),
            ("-setceiling ada -1", Change::Ceiling(None)),
        ] {
            let Ok(Asked::Edit(edit)) = parsed(line) else { panic!("{line}") };
            assert_eq!((edit.user.as_str(), edit.what), ("ada", what), "{line}");
        }
        for (line, part) in [
            ("-setfactor ada x", "x is no number"),
            ("-setfactor ada 0.5", "0.5 is no number of at least 1"),
            ("-setprio ada -1", "-1 is no number of at least 0"),
            ("-setceil ada -2", "-2 is no number of at least 0, or -1 for none"),
            ("-setfactor", "requires the name of a user"),
            ("-quotas", "-quotas is not supported: see kubectl get groupquotas"),
            ("-pool x", "-pool is not supported"),
            ("-nonsense", "is no option"),
        ] {
            assert!(parsed(line).is_err_and(|error| error.contains(part)), "{line}");
        }
    }
}
