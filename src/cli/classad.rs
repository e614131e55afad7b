//! `slotwright classad eval` and `slotwright classad match`: expressions and matches without a cluster.

use std::fmt::Display;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use serde_json::json;

use crate::classad::{Ad, Env, Expr, MatchReport, ParseError, SideReport, Value, explain_match};

/// Everything was answered.
const DONE: u8 = 0;
/// The answer is no.
const NO: u8 = 1;
/// The input cannot be used.
const UNUSABLE: u8 = 2;

/// Evaluate ClassAd expressions and explain matches.
#[derive(Debug, Args)]
pub struct ClassadArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the value of each expression on a line
    Eval(EvalArgs),
    /// Tell whether two ads match, and which clause fails if they do not
    Match(MatchArgs),
}

/// What both commands need to know.
#[derive(Debug, Args)]
struct Circumstances {
    /// The current time, in seconds since 1970 [default: the clock's]
    #[arg(long, value_name = "SECONDS")]
    now: Option<i64>,
    /// Where random numbers start
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Debug, Args)]
struct EvalArgs {
    /// The ad in which bare names and MY are looked up, in either syntax; - is standard input
    #[arg(long, value_name = "FILE")]
    my: Option<PathBuf>,
    /// The ad that TARGET is, and where bare names are looked up that MY lacks
    #[arg(long, value_name = "FILE")]
    target: Option<PathBuf>,
    /// Read cases from standard input, a JSON object a line: id, my, target, expr
    #[arg(long, conflicts_with_all = ["my", "target", "exprs"])]
    batch: bool,
    #[command(flatten)]
    circumstances: Circumstances,
    /// Expressions
    #[arg(value_name = "EXPR", required_unless_present = "batch")]
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

impl Circumstances {
    fn env(&self) -> Env {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let now = self.now.unwrap_or_else(|| i64::try_from(clock()).unwrap_or(i64::MAX));
        Env { seed: self.seed, ..Env::at(now) }
    }
}

/// What stops a command: a message for standard error, or output that cannot be written.
enum Stop {
    Unusable(String),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn unusable(what: impl Display, error: impl Display) -> Stop {
    Stop::Unusable(format!("{what}: {error}"))
}

/// Runs the command. Gives the exit status: 0 done, 1 the ads do not match, 2 unusable input, about
/// which a message went to `stderr`. Fails where the output cannot be written.
pub fn run(
    args: &ClassadArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> io::Result<u8> {
    let outcome = match &args.command {
        Command::Eval(args) if args.batch => batch(stdin, stdout, &args.circumstances.env()),
        Command::Eval(args) => eval(args, stdin, stdout),
        Command::Match(args) => explain(args, stdin, stdout),
    };
    match outcome {
        Ok(status) => Ok(status),
        Err(Stop::Io(error)) => Err(error),
        Err(Stop::Unusable(message)) => {
            writeln!(stderr, "slotwright classad: {message}")?;
            Ok(UNUSABLE)
        }
    }
}

fn read_ad(path: &Path, stdin: &mut dyn BufRead) -> Result<Ad, Stop> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        stdin.read_to_string(&mut text).map(drop)
    } else {
        fs::read_to_string(path).map(|content| text = content)
    };
    read.map_err(|error| unusable(path.display(), error))?;
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

/// An ad that many cases in a row share is parsed once.
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

fn batch(stdin: &mut dyn BufRead, stdout: &mut dyn Write, env: &Env) -> Result<u8, Stop> {
    let (mut my, mut target) = (Parsed::default(), Parsed::default());
    for (place, line) in stdin.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let case: serde_json::Value = serde_json::from_str(&line)
            .map_err(|error| unusable(format!("case on line {}", place + 1), error))?;
        let text = |key: &str| case.get(key).and_then(serde_json::Value::as_str);
        let answer =
            answer(text("expr").unwrap_or(""), my.read(text("my")), target.read(text("target")), env);
        let (kind, value) = answer;
        let id = case.get("id").unwrap_or(&serde_json::Value::Null);
        writeln!(stdout, "{}", json!({"id": id, "type": kind, "value": value}))?;
    }
    Ok(DONE)
}

fn answer(
    text: &str,
    my: Result<Option<&Ad>, ParseError>,
    target: Result<Option<&Ad>, ParseError>,
    env: &Env,
) -> (&'static str, String) {
    let (Ok(expr), Ok(my), Ok(target)) = (Expr::parse_leniently(text), my, target) else {
        return ("parse-error", String::new());
    };
    describe(&expr.eval(my, target, env))
}

/// The type and the printed value, as the batch mode writes them.
pub fn describe(value: &Value) -> (&'static str, String) {
    let text = match value {
        Value::Undefined | Value::Error => String::new(),
        Value::Str(text) => text.to_string(),
        Value::Real(number) | Value::RelTime(number) => decimal(*number),
        Value::List(items) => json!(items.iter().map(describe).collect::<Vec<_>>()).to_string(),
        Value::AbsTime(time) => time.to_string(),
        Value::Bool(_) | Value::Int(_) | Value::Ad(_) => value.to_string(),
    };
    (value.type_name(), text)
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
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: ClassadArgs,
    }

    fn outcome(args: &[&str], input: &str) -> (u8, String, String) {
        let cli = Cli::parse_from(std::iter::once(&"classad").chain(args));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status = run(&cli.args, &mut input.as_bytes(), &mut out, &mut err).unwrap();
        (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    #[test]
    fn eval_prints_a_value_a_line() {
        let (status, out, _) = outcome(&["eval", "1 + 1", "\"a\"", "time()", "--now", "7"], "");
        assert_eq!((status, out.as_str()), (0, "2\n\"a\"\n7\n"));
    }

    #[test]
    fn eval_reads_an_ad_in_either_syntax() {
        for ad in ["[A = 2]", "A = 2\n"] {
            let (status, out, _) = outcome(&["eval", "--my", "-", "a * 21"], ad);
            assert_eq!((status, out.as_str()), (0, "42\n"));
        }
    }

    #[test]
    fn a_broken_expression_is_located() {
        let (status, out, err) = outcome(&["eval", "1", "2 &&"], "");
        assert_eq!((status, out.as_str()), (2, "1\n"));
        let expected = "slotwright classad: expression 2: line 1, column 5: expected an operand after '&&', \
                        found end of input\n";
        assert_eq!(err, expected);
    }

    #[test]
    fn batch_answers_every_case_in_order() {
        let input = concat!(
            r#"{"id": 1, "my": "[A = 1]", "target": null, "expr": "A + 0.5"}"#,
            "\n",
            r#"{"id": "x", "my": null, "target": null, "expr": "(("}"#,
            "\n",
            r#"{"id": [3], "my": "[A = ", "target": null, "expr": "1"}"#,
            "\n",
            r#"{"id": null, "my": "[A = 1]", "target": "[B = 2]", "expr": "{A, B, \"q\\\"\", real(\"nan\"), TARGET.C, [x = 1]}"}"#,
            "\n",
        );
        let (status, out, _) = outcome(&["eval", "--batch"], input);
        let expected = [
            r#"{"id":1,"type":"real","value":"1.5"}"#,
            r#"{"id":"x","type":"parse-error","value":""}"#,
            r#"{"id":[3],"type":"parse-error","value":""}"#,
            r#"{"id":null,"type":"list","value":"[[\"integer\",\"1\"],[\"integer\",\"2\"],[\"string\",\"q\\\"\"],[\"real\",\"nan\"],[\"undefined\",\"\"],[\"classad\",\"[ x = 1 ]\"]]"}"#,
        ];
        assert_eq!(status, 0);
        assert_eq!(out.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn match_tells_which_clause_fails() {
        let directory = std::env::temp_dir().join(format!("slotwright-match-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let job = write("job", "Requirements = TARGET.Memory >= 10 && Arch == \"X\"\nRank = Memory\n");
        let slot = write("slot", "[Memory = 20; Arch = \"Y\"; Requirements = true]");
        let (status, out, _) = outcome(&["match", "--my", &job, "--target", &slot], "");
        fs::remove_dir_all(&directory).unwrap();
        let expected = "MY.Requirements: false\n    Arch == \"X\" is false\nMY.Rank: 20\n\
                        TARGET.Requirements: true\nTARGET.Rank: 0\nmatch: no\n";
        assert_eq!((status, out.as_str()), (1, expected));
    }
}
