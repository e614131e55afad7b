//! The command line of condor_history.

use ::history::Direction;
use classad::Expr;

use super::{Request, Shown};
use crate::options::{ToolOption, Words, find, known};
use crate::values::{error, format, names, wide};

/// The usage of condor_history.
pub const USAGE: &str = "\
Usage: condor_history [OPTIONS] [CLUSTER | CLUSTER.PROC | OWNER ...]
 from where:
  (none)                         the operator's history, of all namespaces
  -file FILE                     a history file
  -search FILE                   a history file, and those that were rotated from it
 which jobs:
  CLUSTER, CLUSTER.PROC, OWNER   these
  -constraint EXPRESSION         those for which a ClassAd expression is true
  -since JOB | EXPRESSION        those that ended after this job, or after the last for which the expression is true
  -completedsince TIME           those that completed after this time, in seconds since 1970
  -limit N, -match N             the first N
  -scanlimit N                   those among the first N of the history
  -backwards, -forwards          the newest first (the default), or the oldest
 in which form:
  -autoformat[:jlhVrTY,tng] ATTRIBUTE ..., -af     these attributes or expressions
  -format FORMAT ATTRIBUTE       an attribute or expression in a format of C's printf
  -long, -json, -jsonl, -xml     whole ads
  -attributes NAME,...           only these attributes of them
  -wide[:COLUMNS]                as wide as needed, or so many characters
  -help
The environment variable SLOTWRIGHT_HISTORY names the operator's Service, as NAMESPACE/NAME
[default: slotwright-system/slotwright-history].";

/// The meaning of a command line.
#[derive(Debug)]
pub enum Asked {
    /// The command line asks for jobs.
    Jobs(Box<Request>),
    /// The command line asks for the usage.
    Help,
}

/// The effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Long,
    Xml,
    Json,
    JsonLines,
    Backwards,
    Forwards,
    Wide,
    Limit,
    ScanLimit,
    File,
    Search,
    Attributes,
    Help,
    Format,
    Columns,
    Constraint,
    Since,
    CompletedSince,
    /// Nothing: the option has no effect on what is printed here.
    Nothing,
    /// The option is refused, with the reason, and what to do instead.
    Refused(&'static str),
}

use Does::Refused;

const ONE_HISTORY: &str = "there is one history, the operator's; -file FILE reads a file";
const NO_EPOCHS: &str = "only the ends of procs are kept, not those of their runs; use kubectl get events";
const NO_FILES: &str = "Slotwright does not move files";

/// The options, in the order in which condor_history looks for them: of two that begin alike, the first is meant.
const OPTIONS: &[ToolOption<Does>] = &[
    known("long", 1, Does::Long),
    known("xml", 3, Does::Xml),
    known("jsonl", 5, Does::JsonLines),
    known("json", 4, Does::Json),
    known("backwards", 1, Does::Backwards),
    known("nobackwards", 3, Does::Forwards),
    known("forwards", 4, Does::Forwards),
    known("wide", 1, Does::Wide),
    known("match", 1, Does::Limit),
    known("limit", 3, Does::Limit),
    known("scanlimit", 4, Does::ScanLimit),
    known("file", 2, Does::File),
    known("userlog", 1, Refused("condor_wait and kubectl slotwright userlog read job event logs")),
    known("local", 2, Refused(ONE_HISTORY)),
    known("startd", 3, Refused(ONE_HISTORY)),
    known("schedd", 3, Does::Nothing),
    known("stream-results", 6, Does::Nothing),
    known("attributes", 2, Does::Attributes),
    known("help", 1, Does::Help),
    known("format", 1, Does::Format),
    known("af", 2, Does::Columns),
    known("autoformat", 5, Does::Columns),
    known("print-format", 2, Refused("use -autoformat or -format")),
    known("daemon", 3, Refused("the history has jobs only")),
    known("epochs", 2, Refused(NO_EPOCHS)),
    known("transfer-history", 2, Refused(NO_FILES)),
    known("type", 2, Refused("the history has jobs only")),
    known("directory", 3, Refused(NO_EPOCHS)),
    known("search", 3, Does::Search),
    known("constraint", 1, Does::Constraint),
    known("since", 4, Does::Since),
    known("completedsince", 3, Does::CompletedSince),
    known("extract", 2, Refused("use -long, and the output of the shell")),
    known("debug", 3, Does::Nothing),
    known("diagnostic", 4, Does::Nothing),
    known("no-librarian", 12, Does::Nothing),
    known("name", 1, Refused(ONE_HISTORY)),
    known("pool", 1, Refused(ONE_HISTORY)),
];

impl Does {
    /// Whether a colon and more may stand behind the option.
    fn takes_more(self) -> bool {
        matches!(self, Self::Wide | Self::Columns | Self::Nothing | Refused(_))
    }
}

/// The options of a command line, before they make a request.
#[derive(Default)]
struct Said {
    request: Request,
    whole: Vec<Shown>,
    long: bool,
    /// Whether -since was said, which -forwards excludes.
    since: bool,
}

/// Reads the words behind the name of the program. The error is a message for standard error.
///
/// # Errors
/// When a word is not understood or has no meaning here.
pub fn parse(words: &[String]) -> Result<Asked, String> {
    let mut said = Said::default();
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            match leading_id(word) {
                Some(id) => said.request.search.jobs.push(id),
                None => said.request.search.owners.push(word.to_owned()),
            }
            continue;
        }
        let given = find(word, OPTIONS).filter(|given| given.more.is_none() || given.does.takes_more());
        let given = given.ok_or_else(|| format!("Error: Unknown argument {word}\n{USAGE}"))?;
        match given.does {
            Does::Help => return Ok(Asked::Help),
            Refused(why) => return Err(format!("Error: -{} is not supported: {why}", given.name)),
            does => said.option(does, (word, given.name), given.more, &mut words)?,
        }
    }
    said.put_together().map(|request| Asked::Jobs(Box::new(request)))
}

impl Said {
    fn option(
        &mut self,
        does: Does,
        (word, name): (&str, &str),
        more: Option<&str>,
        words: &mut Words,
    ) -> Result<(), String> {
        let request = &mut self.request;
        match does {
            Does::Long => self.long = true,
            Does::Xml => self.whole.push(Shown::Xml),
            Does::Json => self.whole.push(Shown::Json),
            Does::JsonLines => self.whole.push(Shown::JsonLines),
            Does::Backwards => request.search.direction = Direction::Backwards,
            Does::Forwards => {
                if self.since {
                    return Err(OPPOSED.to_owned());
                }
                request.search.direction = Direction::Forwards;
            }
            Does::Wide => request.width = wide(more)?,
            Does::Limit => {
                let text = words
                    .next()
                    .ok_or("Error: Argument -match requires a number value as a parameter.".to_owned())?;
                request.search.limit = counted(text);
            }
            Does::ScanLimit => {
                let text = words.next();
                let missing = || format!("Error: Argument {word} requires a number value  as a parameter.");
                request.search.scan_limit = counted(text.ok_or_else(missing)?);
            }
            Does::File | Does::Search => {
                if request.file.is_some() {
                    return Err(format!("Error: {word}: one file can be read\n{USAGE}"));
                }
                request.file = Some(words.needed(name, "a file")?.to_owned());
                request.rotated = does == Does::Search;
            }
            Does::Attributes => {
                let list = words.next_plain();
                let missing = "Error: Argument -attributes must be followed by a list of attributes";
                request.only.extend(names(list.ok_or(missing.to_owned())?));
            }
            Does::Format => {
                format(&mut request.columns, words, "a spec and classad attribute name as parameters.")?;
            }
            Does::Columns => {
                let mut asked = Vec::new();
                while let Some(word) = words.next_plain() {
                    asked.push(word);
                }
                if asked.is_empty() {
                    return Err(format!("Error: Argument {word} requires at least one attribute parameter"));
                }
                request.columns.autoformat(more.unwrap_or_default(), &asked).map_err(error)?;
            }
            Does::Constraint => {
                let text = words.needed(name, "another parameter")?;
                let wrong = |error| format!("Error:  could not parse constraint ( ({text}) ): {error}");
                request.search.constraint.push(Expr::parse_old(text).map_err(wrong)?);
            }
            Does::Since => {
                if request.search.direction == Direction::Forwards {
                    return Err(OPPOSED.to_owned());
                }
                let text = words.needed(name, "another parameter")?;
                request.search.since = Some(since(text)?);
                self.since = true;
            }
            Does::CompletedSince => {
                let text = words.needed(name, "another parameter.")?;
                let wrong = |_| format!("Error: '{text}' not valid parameter for -completedsince ");
                request.search.since =
                    Some(Expr::parse_old(&format!("CompletionDate <= {text}")).map_err(wrong)?);
            }
            Does::Help | Does::Nothing | Refused(_) => {}
        }
        Ok(())
    }

    fn put_together(self) -> Result<Request, String> {
        let mut request = self.request;
        let mut whole = self.whole;
        whole.dedup();
        request.form = match whole.as_slice() {
            [] if self.long => Shown::Long,
            [] if !request.columns.is_empty() => Shown::Columns,
            [] => Shown::Table,
            [form] => *form,
            _ => return Err("Error: Cannot use more than one of XML and JSON[L]".to_owned()),
        };
        // Whole ads have the attributes that columns read, and no others.
        if !matches!(request.form, Shown::Columns | Shown::Table) {
            request.only.extend(request.columns.reads());
        }
        Ok(request)
    }
}

const OPPOSED: &str = "Error: Argument -forwards cannot be combined with -since.";

/// The expression that ends the search, from the value of -since: a job, or an expression that is no literal.
fn since(text: &str) -> Result<Expr, String> {
    if let Some(expr) = Expr::parse_old(text).ok().filter(|expr| expr.as_literal().is_none()) {
        return Ok(expr);
    }
    let condition = crate::job_in_queue(text).map(|(cluster, proc)| match proc {
        Some(proc) => format!("ClusterId == {cluster} && ProcId == {proc}"),
        None => format!("ClusterId == {cluster}"),
    });
    condition.and_then(|text| Expr::parse_old(&text).ok()).ok_or_else(|| {
        format!("Error: invalid -since constraint: {text}\n\tconstraint must be a job-id, or expression.")
    })
}

/// The number at the beginning of a text, and the text behind the number.
fn leading(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

/// The number of a limit. As for HTCondor's tool, a word that is no number is no limit, and 0 is no limit.
fn counted(text: &str) -> Option<usize> {
    leading(text).and_then(|(number, _)| usize::try_from(number).ok()).filter(|number| *number > 0)
}

/// The job that a word means. As for HTCondor's tool, each word that begins with a number is a job.
fn leading_id(word: &str) -> Option<(i64, Option<i64>)> {
    let (cluster, rest) = leading(word)?;
    let proc = rest.strip_prefix('.').and_then(leading).map(|(proc, _)| proc);
    Some((cluster, proc))
}

#[cfg(test)]
mod tests {
    use classad::Name;

    use super::*;

    fn asked(line: &str) -> Result<Request, String> {
        let words: Vec<String> = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        match parse(&words)? {
            Asked::Jobs(request) => Ok(*request),
            Asked::Help => Err("help".to_owned()),
        }
    }

    #[test]
    fn what_begins_with_a_number_is_a_job() {
        for (word, expected) in [
            ("12", Some((12, None))),
            ("12.3", Some((12, Some(3)))),
            ("12.x", Some((12, None))),
            ("3d", Some((3, None))),
            ("ada", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(leading_id(word), expected, "{word}");
        }
        assert_eq!([counted("7x"), counted("0"), counted("x"), counted("-1")], [Some(7), None, None, None]);
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_name() {
        for (line, said) in [
            ("-name x", "one history"),
            ("-epochs", "only the ends"),
            ("-userlog f", "condor_wait"),
            ("-print-format f", "-autoformat"),
            ("-extract f", "-long"),
            ("-long:json", "Unknown argument -long:json"),
            ("-x", "Unknown argument -x"),
            ("-since 1 -forwards", "cannot be combined"),
        ] {
            let refused = asked(line).unwrap_err();
            assert!(refused.contains(said), "{line}: {refused}");
        }
        assert_eq!(asked("-help").unwrap_err(), "help");
    }

    #[test]
    fn only_what_is_shown_is_read() {
        let names = |line: &str| asked(line).unwrap().attributes();
        assert_eq!(names("-long"), None);
        assert!(names("").unwrap().contains(&Name::from("Cmd")));
        let asked = names("-af:j ExitCode MY.NumJobStarts+1").unwrap();
        let asked: Vec<&str> = asked.iter().map(Name::as_str).collect();
        assert_eq!(asked, ["ClusterId", "ExitCode", "NumJobStarts", "ProcId", "TotalSubmitProcs"]);
        assert!(names("-json -attributes Owner").unwrap().contains(&Name::from("Owner")));
    }
}
