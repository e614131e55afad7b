//! The command line of condor_q.

use classad::Name;

use super::{Request, Shown, Times};
use crate::long::Form;
use crate::options::{ToolOption, Words, find, known};
use crate::values::{append, error, form, format, job_in_queue, limit, names, wide};

/// How condor_q is used here.
pub const USAGE: &str = "\
Usage: condor_q [OPTIONS] [CLUSTER | CLUSTER.PROC | OWNER ...]
 which jobs:
  CLUSTER, CLUSTER.PROC, OWNER   these, in all namespaces; else those of one namespace
  -allusers                      those of all namespaces
  -submitter NAME                those that are charged to an accounting group or a user
  -constraint EXPRESSION         those for which a ClassAd expression is true
  -run, -idle, -hold[:CODES]     running, idle, held ones
  -limit N                       the first N
  -jobads FILE                   those whose ads are in a file, as condor_q -long writes them
 in which form:
  -batch                         a line for each batch (the default)
  -nobatch                       a line for each proc
  -totals                        totals only
  -hold-codes                    a line for each reason of a hold
  -autoformat[:jlhVrTY,tng] ATTRIBUTE ..., -af     these attributes or expressions
  -aaf[:VrTY] ATTRIBUTE ...      the same, behind the columns of -nobatch, -run, -idle, -hold
  -format FORMAT ATTRIBUTE       an attribute or expression in a format of C's printf
  -long[:json|xml|new], -json, -xml   whole ads
  -attributes NAME,...           only these attributes of them
  -wide[:COLUMNS]                as wide as needed, or so many characters
  -cputime, -currentrun, -cumulative-time   the time in the column RUN_TIME
  -analyze, -better-analyze      why jobs do not run
  -version, -help
The environment variable SLOTWRIGHT_NAMESPACE names the namespace; else it is the kubeconfig's.";

/// The request of a command line.
#[derive(Debug)]
pub enum Asked {
    /// Jobs.
    Jobs(Box<Request>),
    /// The usage.
    Help,
    /// The version.
    Version,
}

/// The effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Wide,
    Long,
    Xml,
    Json,
    Limit,
    Constraint,
    Submitter,
    Attributes,
    Format,
    AppendColumns,
    Columns,
    Everybody,
    Help,
    Version,
    Analyze,
    Run,
    Idle,
    Hold,
    HoldCodes,
    CpuTime,
    CurrentRun,
    AllRuns,
    Batch,
    NoBatch,
    Totals,
    AdsFile,
    /// Nothing: the option has no effect on what is printed here.
    Nothing,
    /// The option is refused, with the reason, and what to do instead.
    Refused(&'static str),
}

use Does::Refused;

const ONE_QUEUE: &str = "there is one queue, the HTCJobs of the kubeconfig's cluster; use kubectl slotwright --context NAME condor_q, or -allusers";
const NO_LOGS: &str = "the queue is asked, not a job event log; condor_wait reads one";
const NO_FACTORIES: &str = "all procs exist from the start, at no cost";
const NO_DAGS: &str = "there is no DAGMan";
const OTHER_ANALYSIS: &str = "the operator analyzes jobs, with the slots and priorities that it decides with; use condor_q -better-analyze";

/// The options, in the order in which condor_q looks for them: of two that begin alike, the first is meant.
const OPTIONS: &[ToolOption<Does>] = &[
    known("wide", 1, Does::Wide),
    known("long", 1, Does::Long),
    known("xml", 3, Does::Xml),
    known("json", 2, Does::Json),
    known("limit", 3, Does::Limit),
    known("pool", 1, Refused(ONE_QUEUE)),
    known("name", 1, Refused(ONE_QUEUE)),
    known("direct", 1, Refused("there is no schedd to ask; the API server always answers")),
    known("submitter", 1, Does::Submitter),
    known("constraint", 1, Does::Constraint),
    known("slotconstraint", 5, Refused(OTHER_ANALYSIS)),
    known("mconstraint", 2, Refused(OTHER_ANALYSIS)),
    known("machine", 2, Refused(OTHER_ANALYSIS)),
    known("address", 1, Refused(ONE_QUEUE)),
    known(
        "autocluster",
        2,
        Refused("autoclusters live for one negotiation cycle; use slotwright negotiate on ads"),
    ),
    known("group-by", 2, Refused("use -af with sort and uniq")),
    known("factory", 4, Refused(NO_FACTORIES)),
    known("jobset", 5, Refused("there are no job sets; use labels of HTCJobs")),
    known("attributes", 2, Does::Attributes),
    known("format", 1, Does::Format),
    known("aaf", 3, Does::AppendColumns),
    known("autoformat", 5, Does::Columns),
    known("af", 2, Does::Columns),
    known("print-format", 2, Refused("use -autoformat or -format")),
    known("global", 1, Refused(ONE_QUEUE)),
    known("allusers", 2, Does::Everybody),
    known("all-users", 2, Does::Everybody),
    known("schedd-constraint", 5, Refused(ONE_QUEUE)),
    known("help", 1, Does::Help),
    known("better-analyze", 2, Does::Analyze),
    known("better-analyse", 2, Does::Analyze),
    known("analyze", 2, Does::Analyze),
    known("analyse", 2, Does::Analyze),
    known("reverse-analyze", 3, Refused(OTHER_ANALYSIS)),
    known(
        "unmatchable",
        5,
        Refused("use condor_q -better-analyze, which says of each job whether a machine could run it"),
    ),
    known("dry-run", 3, Refused("it is an option for those who develop condor_q")),
    known("capture-raw-results", 7, Refused("use -long")),
    known("verbose", 4, Does::Nothing),
    known("run", 1, Does::Run),
    known("hold", 2, Does::Hold),
    known("held", 2, Does::Hold),
    known("hold-codes", 6, Does::HoldCodes),
    known("holdcodes", 5, Does::HoldCodes),
    known("idle", 3, Does::Idle),
    known("cputime", 2, Does::CpuTime),
    known("currentrun", 3, Does::CurrentRun),
    known("cumulative-time", 3, Does::AllRuns),
    known("grid", 2, Refused("there is no grid universe")),
    known("debug", 3, Does::Nothing),
    known("io", 2, Refused("Slotwright does not move files")),
    known("dag", 2, Refused(NO_DAGS)),
    known("batch", 2, Does::Batch),
    known("progress", 3, Does::Batch),
    known("nobatch", 3, Does::NoBatch),
    known("totals", 3, Does::Totals),
    known("expert", 1, Does::Nothing),
    known("jobads", 1, Does::AdsFile),
    known("userlog", 1, Refused(NO_LOGS)),
    known("slotads", 1, Refused(OTHER_ANALYSIS)),
    known("userprios", 5, Refused(OTHER_ANALYSIS)),
    known("nouserprios", 7, Does::Nothing),
    known("version", 1, Does::Version),
    known("profile", 4, Refused("it is an option for those who develop condor_q")),
    known("stream-results", 2, Does::Nothing),
];

/// The effects of the options before they are put together.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent options")]
struct Said {
    request: Request,
    whole: Option<Form>,
    batch: Option<bool>,
    totals: bool,
    run: bool,
    idle: bool,
    hold: bool,
    hold_codes: bool,
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
            said.request.choose_word(word);
            continue;
        }
        let Some(given) = find(word, OPTIONS) else {
            return Err(format!("Error: unrecognized argument {word}\n{USAGE}"));
        };
        match given.does {
            Does::Help => return Ok(Asked::Help),
            Does::Version => return Ok(Asked::Version),
            Refused(why) => return Err(format!("Error: -{} is not supported: {why}", given.name)),
            does => said.option(does, given.name, given.more, &mut words)?,
        }
    }
    said.put_together().map(|request| Asked::Jobs(Box::new(request)))
}

impl Request {
    /// Adds a job or an owner.
    fn choose_word(&mut self, word: &str) {
        match job_in_queue(word) {
            Some(id) => self.chosen.jobs.push(id),
            None => self.chosen.owners.push(word.to_owned()),
        }
    }
}

impl Said {
    fn option(
        &mut self,
        does: Does,
        name: &str,
        more: Option<&str>,
        words: &mut Words,
    ) -> Result<(), String> {
        let request = &mut self.request;
        match does {
            Does::Wide => {
                request.width = wide(more)?;
                request.is_narrow = request.width.is_none();
            }
            Does::Long => self.form(form(more)?)?,
            Does::Xml => self.form(Form::Xml)?,
            Does::Json => self.form(Form::Json)?,
            Does::Limit => request.limit = Some(limit(words)?),
            Does::Constraint => {
                let text = words.needed(name, "another parameter")?;
                let wrong = |error| format!("Error: '{text}' is not a valid constraint: {error}");
                request.constraint.and(text).map_err(wrong)?;
            }
            Does::Submitter => {
                request.chosen.submitters.push(words.needed(name, "the name of a user.")?.to_owned());
            }
            Does::Attributes => {
                request.only.extend(names(words.needed(name, "a list of attributes to show")?));
            }
            Does::Format => {
                format(&mut request.columns, words, "format and attribute parameters")?;
            }
            Does::Columns => {
                let asked = words.plain();
                if asked.is_empty() {
                    return Err("Error: -autoformat requires at least one attribute parameter".to_owned());
                }
                request.columns.autoformat(more.unwrap_or_default(), &asked).map_err(error)?;
            }
            Does::AppendColumns => {
                let asked = words.plain();
                if asked.is_empty() {
                    return Err("Error: -aaf requires at least one attribute parameter".to_owned());
                }
                append(&mut request.more_columns, more.unwrap_or_default(), &asked, "V,r,T, or Y")?;
            }
            Does::Everybody => request.everybody = true,
            Does::Analyze => request.analysis = true,
            Does::Run => self.run = true,
            Does::Idle => self.idle = true,
            Does::Hold => {
                self.hold = true;
                request.hold_codes(more)?;
            }
            Does::HoldCodes => {
                self.hold_codes = true;
                request.hold_codes(more)?;
            }
            Does::CpuTime => request.times = Times::Cpu,
            Does::CurrentRun => request.times = Times::Run,
            Does::AllRuns => request.times = Times::AllRuns,
            Does::Batch => self.batch = Some(true),
            Does::NoBatch => self.batch = Some(false),
            Does::Totals => self.totals = true,
            Does::AdsFile => request.ads_file = Some(words.needed(name, "a filename")?.to_owned()),
            Does::Help | Does::Version | Does::Nothing | Refused(_) => {}
        }
        Ok(())
    }

    fn form(&mut self, form: Form) -> Result<(), String> {
        match (self.whole, form) {
            (Some(Form::Json), Form::Xml) | (Some(Form::Xml), Form::Json) => {
                Err("Error: Cannot print as both XML and JSON".to_owned())
            }
            _ => {
                self.whole = Some(form);
                Ok(())
            }
        }
    }

    fn put_together(self) -> Result<Request, String> {
        let mut request = self.request;
        if usize::from(self.run) + usize::from(self.idle) + usize::from(self.hold || self.hold_codes) > 1 {
            return Err(format!("-run and -hold/held or -idle are incompatible\n{USAGE}"));
        }
        let only_these = if self.run {
            Some(Shown::Run)
        } else if self.idle {
            Some(Shown::Idle)
        } else if self.hold_codes {
            Some(Shown::HoldCodes)
        } else {
            self.hold.then_some(Shown::Hold)
        };
        request.states = only_these.unwrap_or_default();
        request.form = match (self.whole, self.totals) {
            (Some(form), true) => Shown::WholeTotals(form),
            (Some(form), false) => Shown::Whole(form),
            (None, _) if !request.columns.is_empty() => {
                if self.batch == Some(true) {
                    return Err("Error: -batch conflicts with -format and -af".to_owned());
                }
                Shown::Columns
            }
            (None, true) => Shown::Totals,
            (None, false) => match (self.batch, only_these) {
                (Some(true), Some(Shown::Hold | Shown::HoldCodes) | None) | (None, None) => {
                    if self.batch.is_some() { Shown::Batch } else { Shown::Default }
                }
                (Some(true), Some(_)) => Shown::Batch,
                (_, Some(form)) => form,
                (Some(false), None) => Shown::Procs,
            },
        };
        // Whole ads have the attributes that columns read, and no others.
        if self.whole.is_some() && !request.columns.is_empty() {
            request.only.extend(request.columns.reads());
            request.only.extend(["ClusterId", "ProcId"].map(Name::from));
        }
        if !request.more_columns.is_empty() {
            match request.form {
                Shown::Default | Shown::Batch => {
                    return Err("Error: -aaf cannot be used with -batch mode output (the default), did you intend to use -af ?"
                        .to_owned());
                }
                Shown::Procs | Shown::Run | Shown::Idle | Shown::Hold => {}
                _ => return Err("Error: output formatting options conflict with -aaf options".to_owned()),
            }
        }
        Ok(request)
    }
}

impl Request {
    /// The jobs that are held for these reasons: codes, each perhaps with a subcode as in `34.102`.
    fn hold_codes(&mut self, codes: Option<&str>) -> Result<(), String> {
        let Some(codes) = codes.filter(|codes| !codes.is_empty()) else { return Ok(()) };
        let mut conditions = Vec::new();
        for code in codes.split(',') {
            let (code, subcode) =
                code.split_once('.').map_or((code, None), |(code, subcode)| (code, Some(subcode)));
            let number = |text: &str| {
                text.trim()
                    .parse::<i64>()
                    .map_err(|_| format!("Error: {text} is no code of a hold: it must be a number"))
            };
            let mut condition = format!("HoldReasonCode == {}", number(code)?);
            if let Some(subcode) = subcode {
                condition = format!("({condition} && HoldReasonSubCode == {})", number(subcode)?);
            }
            conditions.push(condition);
        }
        self.constraint.and(&conditions.join(" || "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::{Screen, Width};

    fn asked(line: &str) -> Result<Request, String> {
        let words: Vec<String> = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        match parse(&words)? {
            Asked::Jobs(request) => Ok(*request),
            Asked::Help => Err("help".to_owned()),
            Asked::Version => Err("version".to_owned()),
        }
    }

    #[test]
    fn the_width_is_that_of_the_option_or_of_the_terminal() {
        let (terminal, none) = (Width::Columns(132), Width::Piped);
        for (line, of_screen, expected) in [
            ("", terminal, terminal),
            ("", none, none),
            ("-wide", terminal, Width::Wide),
            ("-wide:60", terminal, Width::Columns(60)),
            ("-wide:0", terminal, terminal),
            ("-wide:0", none, Width::Columns(80)),
            ("-wide:0 -wide", none, Width::Wide),
        ] {
            let screen = Screen { width: of_screen, now: 0, zone: jiff::tz::TimeZone::UTC };
            assert_eq!(asked(line).unwrap().width(&screen), expected, "{line} {of_screen:?}");
        }
    }

    #[test]
    fn the_form_follows_from_all_options() {
        for (line, form) in [
            ("", Shown::Default),
            ("-batch", Shown::Batch),
            ("-nob", Shown::Procs),
            ("-run", Shown::Run),
            ("-r -nobatch", Shown::Run),
            ("-hold", Shown::Hold),
            ("-ho -af Owner", Shown::Columns),
            ("-l", Shown::Whole(Form::Long)),
            ("-long:json -run", Shown::Whole(Form::Json)),
            ("-tot", Shown::Totals),
            ("-tot -xml", Shown::WholeTotals(Form::Xml)),
            ("-format %d ClusterId -nobatch", Shown::Columns),
            ("-idle -aaf Cmd", Shown::Idle),
        ] {
            assert_eq!(asked(line).unwrap().form, form, "{line}");
        }
        let request = asked("12 13.1 ada -limit 3 -all -sub physics").unwrap();
        assert_eq!(request.jobs(), [(12, None), (13, Some(1))]);
        assert!(request.names_jobs() && request.everybody && request.limit == Some(3));
        assert_eq!(
            (request.chosen.owners, request.chosen.submitters),
            (vec!["ada".into()], vec!["physics".into()])
        );
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_name() {
        for (line, part) in [
            ("-name x", "-name is not supported: there is one queue"),
            ("-pool x", "-pool is not supported"),
            ("-global", "-global is not supported"),
            ("-dag", "-dag is not supported: there is no DAGMan"),
            ("-userlog x", "-userlog is not supported: the queue is asked"),
            ("-terse", "unrecognized argument -terse"),
            ("-nonsense", "unrecognized argument -nonsense"),
            ("-af", "requires at least one attribute"),
            ("-af 1+", "is no expression"),
            ("-format %d%d x", "exactly one conversion"),
            ("-constraint 1+", "not a valid constraint"),
            ("-limit 0", "not a valid for -limit"),
            ("-run -hold", "incompatible"),
            ("-batch -af Owner", "-batch conflicts"),
            ("-aaf Owner", "cannot be used with -batch"),
            ("-nobatch -aaf:h Owner", "invalid -aaf format qualifier"),
            ("-json -xml", "both XML and JSON"),
            ("-hold:x", "no code of a hold"),
            ("-wide:x", "no number of columns"),
            ("-long:sideways", "the forms are"),
            ("-h", "help"),
            ("-v", "version"),
        ] {
            let error = asked(line).map(|_| ()).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
