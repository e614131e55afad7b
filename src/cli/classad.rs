//! `slotwright classad eval` and `slotwright classad match`: evaluate expressions and match ads without a cluster.

mod words;

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Args, Subcommand};
use serde_json::json;

use super::circumstances::Circumstances;
use super::input;
use super::stop::{DONE, NO, Stop, UNUSABLE, status, unusable};
use classad::{Ad, Bound, Env, Expr, MatchReport, ParseError, SideReport, Value, explain_match};
use words::with_late_options;

/// Evaluate ClassAd expressions and explain matches.
#[derive(Debug, Args)]
pub struct ClassadArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the value of each expression, a line for each
    Eval(EvalArgs),
    /// Say whether two ads match, and which clauses fail if they do not
    Match(MatchArgs),
}

#[derive(Clone, Debug, Args)]
struct EvalArgs {
    /// The ad of MY, in which names without a scope are looked up first, in either syntax; - is standard input
    #[arg(long, value_name = "FILE")]
    my: Option<PathBuf>,
    /// The ad of TARGET, in which names without a scope are looked up that MY lacks
    #[arg(long, value_name = "FILE")]
    target: Option<PathBuf>,
    /// Read cases from standard input, a JSON object on each line: id, my, target, expr
    #[arg(long, conflicts_with_all = ["my", "target", "exprs"])]
    batch: bool,
    #[command(flatten)]
    circumstances: Circumstances,
    /// Expressions; they may begin with a dash
    #[arg(value_name = "EXPR", required_unless_present = "batch", allow_hyphen_values = true)]
    exprs: Vec<String>,
}

#[derive(Debug, Args)]
struct MatchArgs {
    /// One ad, in either syntax; - is standard input
    #[arg(long, value_name = "FILE")]
    my: PathBuf,
    /// The other ad
    #[arg(long, value_name = "FILE")]
    target: PathBuf,
    #[command(flatten)]
    circumstances: Circumstances,
}

/// Runs the command. Returns the exit status: 0 done, 1 the ads do not match, 2 unusable input, which `stderr`
/// explains. Fails if the output cannot be written.
pub fn run(
    args: &ClassadArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> io::Result<u8> {
    let outcome = match &args.command {
        Command::Eval(args) if args.exprs.is_empty() => {
            batch(stdin, stdout, stderr, &args.circumstances.env())
        }
        Command::Eval(args) => match with_late_options(args, &args.exprs) {
            Ok(args) => eval(&args, stdin, stdout),
            Err(error) => Err(Stop::Unusable(said(&error))),
        },
        Command::Match(args) => explain(args, stdin, stdout),
    };
    status("classad", outcome, stderr)
}

/// The mistake in an option, in one line. clap's advice on values that begin with a dash is left out, because an
/// expression needs none of it.
fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            format!("{line}; correct the option, or put an expression that begins so in parentheses")
        }
        _ => line.to_owned(),
    }
}

fn read_ad(path: &Path, stdin: &mut dyn BufRead) -> Result<Ad, Stop> {
    let text = input::text(path, stdin).map_err(|error| unusable(path.display(), error))?;
    Ad::parse_any(&text).map_err(|error| unusable(path.display(), error))
}

fn eval(args: &EvalArgs, stdin: &mut dyn BufRead, stdout: &mut dyn Write) -> Result<u8, Stop> {
    let env = args.circumstances.env();
    let my = args.my.as_deref().map(|path| read_ad(path, stdin)).transpose()?;
    let target = args.target.as_deref().map(|path| read_ad(path, stdin)).transpose()?;
    for (place, text) in args.exprs.iter().enumerate() {
        let what = || format!("expression {}", place + 1);
        let expr = Expr::parse(text).map_err(|error| unusable(what(), error))?;
        let outcome = expr.evaluate(my.as_ref(), target.as_ref(), &env);
        match outcome.bound {
            None => writeln!(stdout, "{}", outcome.value)?,
            Some(bound) => writeln!(stdout, "{} // {bound}", outcome.value)?,
        }
    }
    Ok(DONE)
}

/// The ad of the last case, kept because many cases in a row share one ad.
#[derive(Default)]
struct Parsed {
    text: Option<String>,
    ad: Option<Ad>,
}

impl Parsed {
    fn read(&mut self, text: Option<&str>) -> Result<Option<&Ad>, ParseError> {
        if self.text.as_deref() != text {
            *self = Self::default();
            self.ad = text.map(Ad::parse_new_leniently).transpose()?;
            self.text = text.map(str::to_owned);
        }
        Ok(self.ad.as_ref())
    }
}

/// Answers every line of the input, in order. A line that is not a case gets the answer of an expression that does
/// not parse, and a message on `stderr`; the exit status is then [`UNUSABLE`].
fn batch(
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
    env: &Env,
) -> Result<u8, Stop> {
    let (mut my, mut target) = (Parsed::default(), Parsed::default());
    let mut status = DONE;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if stdin.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let (id, answer) = match Case::read(&line) {
            Ok(case) => {
                let ads = (my.read(case.my.as_deref()), target.read(case.target.as_deref()));
                (case.id, answer(&case.expr, ads.0, ads.1, env))
            }
            Err(error) => {
                writeln!(stderr, "slotwright classad: case on line {number}: {error}")?;
                status = UNUSABLE;
                (serde_json::Value::Null, Answer::unparsed())
            }
        };
        if let Some(remark) = answer.remark {
            writeln!(stderr, "slotwright classad: case on line {number}: {remark}")?;
        }
        writeln!(stdout, "{}", json!({"id": id, "type": answer.kind, "value": answer.value}))?;
    }
    Ok(status)
}

/// An input line of the batch mode.
#[derive(serde::Deserialize)]
struct Case {
    #[serde(default)]
    id: serde_json::Value,
    #[serde(default)]
    my: Option<String>,
    #[serde(default)]
    target: Option<String>,
    expr: String,
}

impl Case {
    fn read(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| {
            // serde_json counts every line as line 1, because it reads one at a time.
            error.to_string().replace(" at line 1 column", ", column")
        })
    }
}

/// An answer of the batch mode.
struct Answer {
    kind: &'static str,
    value: String,
    /// A message for standard error.
    remark: Option<String>,
}

impl Answer {
    fn unparsed() -> Self {
        Self { kind: "parse-error", value: String::new(), remark: None }
    }
}

fn answer(
    text: &str,
    my: Result<Option<&Ad>, ParseError>,
    target: Result<Option<&Ad>, ParseError>,
    env: &Env,
) -> Answer {
    let (Some(expr), Ok(my), Ok(target)) = (Expr::parse_leniently(text), my, target) else {
        return Answer::unparsed();
    };
    let outcome = expr.evaluate(my, target, env);
    let remark = outcome.bound.as_ref().map(Bound::to_string);
    if let Some((kind, value)) = described(&outcome.value) {
        return Answer { kind, value, remark };
    }
    let (kind, value) = TOO_LONG;
    let long = format!("the value takes more than {LONGEST} bytes to print; ask for a part of it");
    Answer { kind, value, remark: Some(long) }
}

/// The most bytes that the batch mode prints of a value. Lists in lists need a bound: escaping doubles the text at
/// each level.
const LONGEST: usize = 1 << 20;
/// The type and the value that are printed for a longer value.
const TOO_LONG: (&str, String) = ("error", String::new());

/// The type and the printed value, as the batch mode writes them; those of an error if the value is too long.
pub fn describe(value: &Value) -> (&'static str, String) {
    described(value).unwrap_or(TOO_LONG)
}

/// As [`describe`], but `None` if the value is too long.
fn described(value: &Value) -> Option<(&'static str, String)> {
    let text = match value {
        Value::Undefined | Value::Error => String::new(),
        Value::Str(text) => text.to_string(),
        Value::Real(number) | Value::RelTime(number) => decimal(*number),
        Value::List(items) => described_list(items)?,
        Value::AbsTime(time) => time.to_string(),
        Value::Bool(_) | Value::Int(_) | Value::Ad(_) => value.to_string(),
    };
    (text.len() <= LONGEST).then(|| (value.type_name(), text))
}

/// The items as JSON; `None` if they are too long. Reading stops at the first item that is too much, which bounds the
/// work at each level.
fn described_list(items: &[Value]) -> Option<String> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    for item in items {
        let item = described(item)?;
        bytes += item.0.len() + item.1.len();
        if bytes > LONGEST {
            return None;
        }
        all.push(item);
    }
    Some(json!(all).to_string())
}

fn decimal(number: f64) -> String {
    match number {
        _ if number.is_nan() => "nan".to_owned(),
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        _ => format!("{number:?}"),
    }
}

fn explain(args: &MatchArgs, stdin: &mut dyn BufRead, stdout: &mut dyn Write) -> Result<u8, Stop> {
    let my = read_ad(&args.my, stdin)?;
    let target = read_ad(&args.target, stdin)?;
    let report = explain_match(&my, &target, &args.circumstances.env());
    print_report(&report, stdout)?;
    Ok(if report.matches() { DONE } else { NO })
}

fn print_report(report: &MatchReport, stdout: &mut dyn Write) -> io::Result<()> {
    print_side("MY", &report.my, stdout)?;
    print_side("TARGET", &report.target, stdout)?;
    writeln!(stdout, "match: {}", if report.matches() { "yes" } else { "no" })
}

fn print_side(side: &str, report: &SideReport, stdout: &mut dyn Write) -> io::Result<()> {
    match &report.requirements {
        Some(value) => writeln!(stdout, "{side}.Requirements: {value}")?,
        None => writeln!(stdout, "{side}.Requirements: not defined, which accepts nothing")?,
    }
    if let Some(bound) = report.bound {
        writeln!(stdout, "    {bound}")?;
    }
    if !report.accepts {
        for clause in report.failed() {
            writeln!(stdout, "    {clause}")?;
        }
    }
    writeln!(stdout, "{side}.Rank: {}", report.rank)
}

#[cfg(test)]
mod tests;
