//! The command lines of condor_hold, condor_release, condor_rm and condor_vacate_job.

use std::env;

use classad::Expr;

use super::{Request, Selection, Verb, tool_of};
use crate::tool::is_option;

/// The request of a command line.
#[derive(Debug, PartialEq)]
pub enum Asked {
    /// A request for acts. The texts are warnings about words that are skipped. The flag says whether a skipped word
    /// makes the tool fail.
    Act(Box<Request>, Vec<String>, bool),
    /// The usage.
    Help,
    /// The version.
    Version,
}

/// Why a command line cannot be carried out: a message, and whether the usage follows.
pub type Refusal = (String, bool);

/// Options with a value that have no meaning here, with the least length of their name.
const IGNORED: &[(&str, usize)] = &[("name", 1), ("pool", 1), ("addr", 2)];

/// How a tool is used.
pub fn usage(verb: Verb) -> String {
    let word = match verb {
        Verb::Hold => "Hold",
        Verb::Release => "Release",
        Verb::Remove => "Remove",
        Verb::Vacate | Verb::VacateFast => "Vacate",
    };
    let own = match verb {
        Verb::Hold => {
            "  -reason reason      Use the given HoldReason\n  -subcode number     Set HoldReasonSubCode\n"
        }
        Verb::Release => "  -reason reason      Say why, in the job's event\n",
        Verb::Remove => {
            "  -reason reason      Say why, in the job's event\n\
             \x20 -forcex             Force the immediate local removal of jobs in the X state\n"
        }
        Verb::Vacate | Verb::VacateFast => "  -fast               Kill, without time to shut down\n",
    };
    format!(
        "Usage: {} [options] [constraints]\n where [options] is zero or more of:\n\
         \x20 -help               Display this message and exit\n\
         \x20 -version            Display version information and exit\n\
         \x20 -totals             Display success/failure totals\n{own}\
         \x20and where [constraints] is one of:\n\
         \x20 cluster.proc        {word} the given job\n\
         \x20 cluster             {word} the given cluster of jobs\n\
         \x20 user                {word} all jobs owned by user\n\
         \x20 -constraint expr    {word} all jobs matching the boolean expression\n\
         \x20 -all                {word} all jobs (cannot be used with other constraints)\n\
         \x20 -held               {word} only held jobs (may be combined with the above constraints)\n\
         The environment variable SLOTWRIGHT_NAMESPACE names a namespace.",
        tool_of(verb)
    )
}

/// Reads the words behind the name of a tool.
///
/// # Errors
/// The mistake in the words.
pub fn parse(verb: Verb, words: &[String]) -> Result<Asked, Refusal> {
    let tool = tool_of(verb);
    let mut request = Request {
        verb,
        selection: Selection::default(),
        reason: None,
        subcode: 0,
        forced: false,
        totals: false,
        namespace: env::var("SLOTWRIGHT_NAMESPACE").ok().filter(|value| !value.is_empty()),
        owners_everywhere: true,
    };
    let (mut told, mut failed) = (Vec::new(), false);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            if request.selection.all {
                return Err((format!("{tool}: can't mix -all with other constraints"), true));
            }
            failed |= read_word(word, &mut request.selection, &mut told);
            continue;
        }
        let option = |name: &str, least: usize| is_option(word, name, least);
        let mut value = |name: &str| {
            let missing = || (format!("{tool}: -{name} requires another argument"), false);
            words.next().filter(|value| name == "reason" || !value.starts_with('-')).ok_or_else(missing)
        };
        if option("debug", 1) || option("long", 1) {
        } else if option("totals", 3) {
            request.totals = true;
        } else if option("constraint", 1) {
            let text = value("constraint")?;
            let constraint = Expr::parse_old(text)
                .map_err(|error| (format!("{tool}: {text:?} is no constraint: {error}"), false))?;
            let both = |first: Expr| Expr::parse(&format!("({first}) && ({constraint})")).unwrap_or(first);
            request.selection.constraint =
                Some(request.selection.constraint.take().map_or_else(|| constraint.clone(), both));
        } else if option("all", 1) {
            if request.selection != Selection::default() {
                return Err((format!("{tool}: can't mix -all with other constraints"), false));
            }
            request.selection.all = true;
        } else if option("held", 3) || option("hold", 3) {
            request.selection.held = true;
        } else if option("reason", 1) {
            request.reason = Some(value("reason")?.to_owned());
        } else if option("subcode", 1) {
            let text =
                words.next().ok_or_else(|| (format!("{tool}: -subcode requires another argument"), false))?;
            request.subcode = text.parse().map_err(|_| (format!("Invalid -subcode {text}!"), false))?;
        } else if option("fast", if verb == Verb::Vacate { 1 } else { 2 }) {
            if verb != Verb::Vacate {
                return Err(("-fast is only valid with condor_vacate_job".to_owned(), true));
            }
            request.verb = Verb::VacateFast;
        } else if option("forcex", if verb == Verb::Remove { 1 } else { 2 }) {
            if verb != Verb::Remove {
                return Err(("-forcex is only valid with condor_rm".to_owned(), true));
            }
            request.forced = true;
        } else if option("transfer", 2) {
            return Err((format!("{tool}: -transfer: Slotwright moves no files"), false));
        } else if let Some((name, _)) = IGNORED.iter().find(|(name, least)| option(name, *least)) {
            let why = "there is one queue, that of the cluster of the kubeconfig";
            return Err((format!("{tool}: -{name}: {why}; use SLOTWRIGHT_NAMESPACE or KUBECONFIG"), false));
        } else if option("version", 1) {
            return Ok(Asked::Version);
        } else if option("help", 1) {
            return Ok(Asked::Help);
        } else {
            return Err((format!("Unrecognized option: {word}"), true));
        }
    }
    if request.selection == Selection::default() && told.is_empty() {
        return Err(("You did not specify any jobs".to_owned(), true));
    }
    Ok(Asked::Act(Box::new(request), told, failed))
}

/// Reads a word that is no option: ClusterId, ClusterId.ProcId, or a user. Returns whether it makes the whole fail.
fn read_word(word: &str, selection: &mut Selection, told: &mut Vec<String>) -> bool {
    if !word.starts_with(|c: char| c.is_ascii_digit()) {
        selection.users.push(word.to_owned());
        return false;
    }
    if tools::job_id(word).is_some_and(|(cluster, _)| cluster <= 0) {
        told.push(format!("Invalid cluster # from {word}."));
        return true;
    }
    if !selection.add(word) {
        selection.users.push(word.to_owned());
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::verb_of;
    use super::*;

    fn read(tool: &str, words: &[&str]) -> Result<Asked, Refusal> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse(verb_of(tool).unwrap(), &words)
    }

    fn request(tool: &str, words: &[&str]) -> Request {
        match read(tool, words) {
            Ok(Asked::Act(request, ..)) => *request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn command_lines_are_those_of_htcondor_s_tools() {
        let hold = request("condor_hold", &["-reason", "a b", "-sub", "42", "5", "6.3", "alice"]);
        assert_eq!((hold.verb, hold.reason.as_deref(), hold.subcode), (Verb::Hold, Some("a b"), 42));
        let selection = &hold.selection;
        assert_eq!((&selection.clusters, &selection.procs), (&vec![5], &vec![(6, 3)]));
        assert_eq!(selection.users, ["alice"]);
        assert_eq!(request("condor_vacate_job", &["-f", "5"]).verb, Verb::VacateFast);
        assert!(request("condor_rm", &["-all"]).selection.all);
        assert!(request("condor_release", &["-hel"]).selection.held);
        let both = request("condor_rm", &["-con", "JobPrio < 0", "-constraint", "ProcId > 2"]);
        let text = both.selection.constraint.unwrap().to_string();
        assert_eq!(text, "(JobPrio < 0) && (ProcId > 2)");
        assert_eq!(read("condor_rm", &["-help"]), Ok(Asked::Help));
        assert_eq!(read("condor_rm", &["-version"]), Ok(Asked::Version));
    }

    #[test]
    fn what_is_refused_says_why() {
        for (tool, words, expected, usage) in [
            ("condor_hold", &[][..], "You did not specify any jobs", true),
            ("condor_hold", &["-nonsense"], "Unrecognized option: -nonsense", true),
            ("condor_hold", &["5", "-all"], "condor_hold: can't mix -all with other constraints", false),
            ("condor_hold", &["-reason"], "condor_hold: -reason requires another argument", false),
            ("condor_hold", &["-subcode", "x", "5"], "Invalid -subcode x!", false),
            (
                "condor_rm",
                &["-constraint", "-all"],
                "condor_rm: -constraint requires another argument",
                false,
            ),
            ("condor_release", &["-fast", "5"], "-fast is only valid with condor_vacate_job", true),
        ] {
            assert_eq!(read(tool, words), Err((expected.to_owned(), usage)), "{tool} {words:?}");
        }
        // As HTCondor's tools do, a word that is neither a job nor a proc is taken for a user.
        let Ok(Asked::Act(request, told, failed)) = read("condor_rm", &["0", "5.x", "1,2"]) else { panic!() };
        assert_eq!((told, failed), (vec!["Invalid cluster # from 0.".to_owned()], true));
        assert_eq!(request.selection.users, ["5.x", "1,2"]);
    }
}
