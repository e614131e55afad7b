//! The command line of condor_status.

use super::{Kind, Request, Shown, Which};
use crate::long::Form;
use crate::options::{ToolOption, Words, find, known};
use crate::values::{append, error, form, format, limit, names, wide};

/// How condor_status is used here.
pub const USAGE: &str = "\
Usage: condor_status [OPTIONS] [NAME ...]
 which ads:
  NAME                  these slots, or the slots of these machines; with -claimed, those of these users
  -avail                slots that are Unclaimed and have CPUs and memory left
  -claimed, -run        slots that are Claimed, and who has them
  -absent               slots of machines whose nodes went (ABSENT_REQUIREMENTS)
  -schedd               the queue: how many jobs run, wait and are held
  -submitters           the same for each submitter
  -constraint EXPRESSION   those for which a ClassAd expression is true
  -limit N              at most N
  -ads FILE             those of a file, as condor_status -long writes them
 in which form:
  -compact              a line for each machine
  -state, -server       times of states and activities; amounts and speeds
  -totals               totals only
  -autoformat[:jlhVrTY,tng] ATTRIBUTE ..., -af     these attributes or expressions
  -aaf[:VrTY] ATTRIBUTE ...      the same, behind the usual columns
  -format FORMAT ATTRIBUTE       an attribute or expression in a format of C's printf
  -long[:json|xml|new], -json, -xml   whole ads
  -attributes NAME,...  only these attributes of them
  -sort EXPRESSION      in the order of an expression's values; no: as they come
  -wide[:COLUMNS]       as wide as needed, or so many characters
  -version, -help";

/// The request of a command line.
#[derive(Debug)]
pub enum Asked {
    /// Ads.
    Ads(Box<Request>),
    /// The usage.
    Help,
    /// The version.
    Version,
}

/// The effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Avail,
    Claimed,
    Absent,
    Slots,
    State,
    Server,
    Compact,
    NoCompact,
    Schedds,
    Submitters,
    AdsFile,
    Format,
    Columns,
    AppendColumns,
    Wide,
    Constraint,
    Help,
    Version,
    Limit,
    Long,
    Xml,
    Json,
    Attributes,
    Sort,
    Totals,
    /// Nothing: the option has no effect on what is printed here.
    Nothing,
    /// The option is refused, with the reason, and what to do instead.
    Refused(&'static str),
}

use Does::Refused;

const ONE_POOL: &str = "there is one pool, that of the kubeconfig's cluster; use kubectl slotwright --context NAME condor_status";
const NO_DAEMON: &str =
    "that daemon is part of the operator: see kubectl get pods, and the operator's metrics";
const NO_KIND: &str = "there are no such ads";

/// The options, in the order in which condor_status looks for them: of two that begin alike, the first is meant.
const OPTIONS: &[ToolOption<Does>] = &[
    known("avail", 2, Does::Avail),
    known("pool", 1, Refused(ONE_POOL)),
    known("ads", 2, Does::AdsFile),
    known("format", 1, Does::Format),
    known("aaf", 3, Does::AppendColumns),
    known("autoformat", 5, Does::Columns),
    known("af", 2, Does::Columns),
    known("print-format", 2, Refused("use -autoformat or -format")),
    known("wide", 3, Does::Wide),
    known("natural", 3, Does::Nothing),
    known("target", 4, Refused("use slotwright classad match on two files of ads")),
    known("constraint", 3, Does::Constraint),
    known("annex-slots", 5, Refused("there are no annexes")),
    known("annex-name", 10, Refused("there are no annexes")),
    known(
        "direct",
        3,
        Refused("there is no daemon to ask but the API server, which every answer comes from"),
    ),
    known("diagnose", 3, Refused("it is an option for those who develop condor_status")),
    known("debug", 2, Does::Nothing),
    known(
        "defrag",
        3,
        Refused(
            "there is no defrag daemon; ALLOW_PSLOT_PREEMPTION gathers slots for a job that needs a whole machine",
        ),
    ),
    known("help", 1, Does::Help),
    known("limit", 2, Does::Limit),
    known("long", 1, Does::Long),
    known("xml", 1, Does::Xml),
    known("json", 2, Does::Json),
    known("group-by", 5, Refused("use -af with sort and uniq")),
    known("attributes", 2, Does::Attributes),
    known("claimed", 2, Does::Claimed),
    known("data", 2, Refused("Slotwright does not move files")),
    known("run", 1, Does::Claimed),
    known("cod", 3, Refused("there is no computing on demand")),
    known("gpus", 3, Refused("use -constraint 'GPUs > 0' -af Name GPUs GPUs_DeviceName")),
    known("java", 1, Refused("there is no java universe")),
    known("absent", 2, Does::Absent),
    known("offline", 2, Refused("there are no offline universes")),
    known("merge", 5, Refused("use -af and comm")),
    known("vm", 2, Refused("there is no vm universe")),
    known("slots", 2, Does::Slots),
    known("compact", 3, Does::Compact),
    known("nocompact", 5, Does::NoCompact),
    known("server", 2, Does::Server),
    known("state", 4, Does::State),
    known("broken", 4, Refused("use -constraint 'SlotBrokenReason =!= undefined' -af Name SlotBrokenReason")),
    known("lvm", 3, Refused("disks are Kubernetes' volumes")),
    known("healthy", 4, Refused("use kubectl get nodes")),
    known("snapshot", 4, Refused(NO_KIND)),
    known("statistics", 5, Refused("see the operator's metrics")),
    known(
        "startd",
        4,
        Refused("the startd is part of the operator and has no ad of its own; the default shows slots"),
    ),
    known("schedd", 2, Does::Schedds),
    known("grid", 1, Refused("there is no grid universe")),
    known("subsystem", 4, Refused(NO_KIND)),
    known("multiple", 4, Refused(NO_KIND)),
    known("license", 2, Refused("see kubectl get concurrencylimits")),
    known("storage", 3, Refused(NO_KIND)),
    known("negotiator", 1, Refused("see kubectl get negotiators")),
    known("generic", 2, Refused(NO_KIND)),
    known("any", 2, Refused("ask for slots, -schedd or -submitters")),
    known("sort", 2, Does::Sort),
    known("submitters", 4, Does::Submitters),
    known("master", 1, Refused(NO_DAEMON)),
    known("collector", 3, Refused(NO_DAEMON)),
    known("world", 1, Refused(NO_KIND)),
    known("ckptsrvr", 2, Refused("HTCondor dropped it")),
    known("totals", 1, Does::Totals),
    known("expert", 1, Does::Nothing),
    known("version", 3, Does::Version),
];

/// Reads the words behind the name of the program. The error is a message for standard error.
///
/// # Errors
/// When a word is not understood or has no meaning here.
pub fn parse(words: &[String]) -> Result<Asked, String> {
    let (mut request, mut whole) = (Request::default(), None);
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            request.names.push(word.to_owned());
            continue;
        }
        let Some(given) = find(word, OPTIONS) else {
            return Err(format!("Error:  Unknown option {word}\n{USAGE}"));
        };
        match given.does {
            Does::Help => return Ok(Asked::Help),
            Does::Version => return Ok(Asked::Version),
            Refused(why) => return Err(format!("Error: -{} is not supported: {why}", given.name)),
            Does::Long => whole = Some(form(given.more)?),
            Does::Xml => whole = Some(Form::Xml),
            Does::Json => whole = Some(Form::Json),
            does => request.option(does, given.name, given.more, &mut words)?,
        }
    }
    if let Some(form) = whole {
        request.form = Shown::Whole(form);
    } else if !request.columns.is_empty() {
        request.form = Shown::Columns;
    } else if request.absent && request.form == Shown::Normal && request.kind == Kind::Slots {
        request.form = Shown::Absent;
    }
    if !request.more_columns.is_empty()
        && (request.compact || matches!(request.form, Shown::Columns | Shown::Whole(_)))
    {
        return Err("Error: output formatting options conflict with -aaf options".to_owned());
    }
    // The option has no effect where ads are not those of slots.
    request.compact &= request.kind == Kind::Slots
        && !matches!(request.form, Shown::Absent | Shown::Columns | Shown::Whole(_));
    Ok(Asked::Ads(Box::new(request)))
}

impl Request {
    fn option(
        &mut self,
        does: Does,
        name: &str,
        more: Option<&str>,
        words: &mut Words,
    ) -> Result<(), String> {
        match does {
            Does::Avail => self.which = Which::Available,
            Does::Claimed => {
                self.which = Which::Claimed;
                self.form = Shown::Claimed;
            }
            Does::Absent => self.absent = true,
            Does::State => self.form = Shown::State,
            Does::Server => self.form = Shown::Server,
            Does::Compact => self.compact = true,
            Does::NoCompact => self.compact = false,
            Does::Schedds => (self.kind, self.form) = (Kind::Schedds, Shown::Schedds),
            Does::Submitters => (self.kind, self.form) = (Kind::Submitters, Shown::Submitters),
            Does::AdsFile => self.ads_file = Some(words.needed(name, "a filename")?.to_owned()),
            Does::Format => {
                format(&mut self.columns, words, "two additional parameters")?;
            }
            Does::Columns | Does::AppendColumns => {
                let asked = words.plain();
                if asked.is_empty() {
                    return Err(format!("Error: -{name} requires at least one attribute parameter"));
                }
                let letters = more.unwrap_or_default();
                if does == Does::Columns {
                    self.columns.autoformat(letters, &asked).map_err(error)?;
                } else {
                    append(&mut self.more_columns, letters, &asked, "V, r, T or Y")?;
                }
            }
            Does::Wide => self.width = wide(more)?,
            Does::Constraint => {
                let text = words.needed(name, "an additional parameter")?;
                let wrong = |error| format!("Error: '{text}' is not a valid constraint: {error}");
                self.constraint.and(text).map_err(wrong)?;
            }
            Does::Limit => self.limit = Some(limit(words)?),
            Does::Attributes => self.only.extend(names(words.needed(name, "one additional parameter")?)),
            Does::Sort => {
                let text = words.needed(name, "an additional parameter")?;
                self.order.add(text).map_err(|error| format!("Error:  Parse error of: {text}: {error}"))?;
            }
            Does::Totals => self.only_totals = true,
            Does::Slots
            | Does::Nothing
            | Does::Help
            | Does::Version
            | Does::Long
            | Does::Xml
            | Does::Json
            | Refused(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Request, String> {
        let words: Vec<String> = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        match parse(&words)? {
            Asked::Ads(request) => Ok(*request),
            Asked::Help => Err("help".to_owned()),
            Asked::Version => Err("version".to_owned()),
        }
    }

    #[test]
    fn options_are_those_of_condor_status() {
        for (line, form, compact) in [
            ("", Shown::Normal, false),
            ("-comp", Shown::Normal, true),
            ("-cl", Shown::Claimed, false),
            ("-run -comp", Shown::Claimed, true),
            ("-stat", Shown::State, false),
            ("-sub", Shown::Normal, false),
            ("-sc -compact", Shown::Schedds, false),
            ("-subm", Shown::Submitters, false),
            ("-l -compact", Shown::Whole(Form::Long), false),
            ("-af Name -claimed", Shown::Columns, false),
        ] {
            if line == "-sub" {
                assert!(asked(line).map(|_| ()).unwrap_err().contains("Unknown option -sub"));
                continue;
            }
            let request = asked(line).unwrap();
            assert_eq!((request.form, request.compact), (form, compact), "{line}");
        }
        let request = asked("node7 slot1@node8 -avail -limit 2").unwrap();
        assert_eq!(request.names(), ["node7", "slot1@node8"]);
        assert!(
            request.which == Which::Available && request.limit == Some(2) && request.kind() == Kind::Slots
        );
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_name() {
        for (line, part) in [
            ("-direct x", "-direct is not supported: there is no daemon to ask"),
            ("-pool x", "-pool is not supported: there is one pool"),
            ("-master", "-master is not supported: that daemon is part of the operator"),
            ("-java", "-java is not supported"),
            ("-nonsense", "Unknown option -nonsense"),
            ("-af", "requires at least one attribute"),
            ("-compact -aaf Name", "conflict with -aaf"),
            ("-constraint 1+", "not a valid constraint"),
            ("-sort 1+", "Parse error of: 1+"),
            ("-limit x", "not a valid for -limit"),
            ("-h", "help"),
            ("-ver", "version"),
        ] {
            let error = asked(line).map(|_| ()).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
