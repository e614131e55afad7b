//! The command line of condor_submit.

use std::env;

use super::{Dry, Printed, Request};
use crate::tool::is_option;

/// How condor_submit is used here.
pub const USAGE: &str = "\
Usage: condor_submit [OPTIONS] [NAME=VALUE ...] [- | FILE]
  -append LINE          read a line before each queue statement
  -queue ARGUMENTS ...  the queue statement, if the file has none
  -batch-name NAME      the batch name
  -dry-run FILE         write the ads to a file, or to standard output (-), and submit nothing
  -dump FILE            the same, with all attributes of each proc
  -maxjobs N            submit nothing if there are more procs
  -single-cluster       submit nothing if more than one HTCJob is needed
  -terse, -verbose      print less, or the ads
  -unused               do not warn of variables that nothing uses
  -disable              without effect: files are never checked
The environment variables SLOTWRIGHT_NAMESPACE, SLOTWRIGHT_IMAGE and SLOTWRIGHT_TEMPLATE name a namespace, the image of
jobs that name none, and a file with a pod template; SLOTWRIGHT_FETCH_IMAGE names an image with curl, which fetches the URLs of
transfer_input_files. With SLOTWRIGHT_USERLOG=follow, a process stays behind that keeps the job event
log up to date.";

/// Options of condor_submit that have no meaning here, with the least length of their name, and why they are refused.
const REFUSED: &[(&str, usize, &str)] = &[
    (
        "remote",
        1,
        "HTCJobs are created in the cluster of the kubeconfig; use --context of kubectl slotwright submit",
    ),
    ("name", 1, "there is no schedd; use SLOTWRIGHT_NAMESPACE"),
    (
        "pool",
        2,
        "HTCJobs are created in the cluster of the kubeconfig; use --context of kubectl slotwright submit",
    ),
    ("address", 2, "there is no schedd"),
    (
        "spool",
        1,
        "nothing is kept where the job is submitted; small files of transfer_input_files travel without it",
    ),
    ("interactive", 1, "there are no interactive jobs; submit a job that sleeps, and use kubectl exec"),
    ("factory", 2, "all procs exist from the start, at no cost"),
    ("generator", 1, "all procs exist from the start, at no cost"),
    ("digest", 6, "all procs exist from the start, at no cost"),
    ("capabilities", 3, "there is no schedd"),
    ("allow-crlf-script", 8, "Linux starts no such script; convert it, such as by dos2unix"),
    ("force-mpi-universe", 7, "HTCondor dropped the universe"),
];

/// The request of a command line.
#[derive(Debug)]
pub enum Asked {
    /// A submission.
    Submit(Box<Request>),
    /// The usage.
    Help,
}

/// A line that sets the batch name, or another attribute that is a text.
pub(super) fn batch_name(name: &str) -> String {
    text_attribute("JobBatchName", name)
}

fn text_attribute(attribute: &str, value: &str) -> String {
    let quoted = if value.starts_with('"') { value.to_owned() } else { format!("\"{value}\"") };
    format!("MY.{attribute} = {quoted}")
}

/// The queue statement with these arguments, before which an author may have written the word itself.
pub(super) fn statement(arguments: &str) -> String {
    let (first, rest) = arguments.trim().split_once(' ').unwrap_or((arguments.trim(), ""));
    let is_word = ["queue", "iterate"].iter().any(|word| first.eq_ignore_ascii_case(word));
    format!("queue {}", if is_word { rest } else { arguments })
}

/// Whether a line is a queue statement.
fn is_queue(line: &str) -> bool {
    line.split_ascii_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("queue"))
}

/// Reads the words behind the name of the program. The error is a message.
pub fn parse(words: &[String]) -> Result<Asked, String> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let mut request = Request {
        namespace: variable("SLOTWRIGHT_NAMESPACE"),
        template: variable("SLOTWRIGHT_TEMPLATE"),
        as_condor_submit: true,
        ..Request::default()
    };
    request.settings.image = variable("SLOTWRIGHT_IMAGE");
    request.settings.fetch_image = variable("SLOTWRIGHT_FETCH_IMAGE");
    let mut late = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "-" || !word.starts_with('-') {
            match word.split_once('=') {
                Some((name, value)) => request.assign(name, value),
                None => word.clone_into(&mut request.file),
            }
            continue;
        }
        let option = |name: &str, least: usize| is_option(word, name, least);
        let mut value = || words.next().ok_or_else(|| format!("{word} requires another argument"));
        if option("verbose", 1) {
            request.printed = Printed::Ads;
        } else if option("terse", 3) {
            request.printed = Printed::Terse;
        } else if option("disable", 3) || option("debug", 2) {
        } else if option("dry-run", 3) {
            request.dry = Some(Dry::Ads(value()?.to_owned()));
        } else if option("dump", 2) {
            request.dry = Some(Dry::Whole(value()?.to_owned()));
        } else if option("file", 2) {
            value()?.clone_into(&mut request.file);
        } else if option("append", 1) {
            let line = value()?;
            if is_queue(line) {
                request.options.queue = Some(line.to_owned());
            } else {
                request.options.appended.push(line.to_owned());
            }
        } else if option("batch-name", 1) {
            late.push(batch_name(value()?));
        } else if option("batch-id", 7) {
            late.push(text_attribute("JobBatchId", value()?));
        } else if option("maxjobs", 3) {
            let number = value()?;
            request.most_procs =
                Some(number.parse().map_err(|_| format!("-maxjobs: '{number}' is no number"))?);
        } else if option("single-cluster", 3) {
            request.single = true;
        } else if option("unused", 1) {
            request.silent_about_unused = !request.silent_about_unused;
        } else if option("queue", 1) || option("iterate", 2) {
            let mut arguments = value()?.to_owned();
            // The statement goes on up to the next option, so that the shell may expand patterns.
            while let Some(more) = words.next_if(|more| !more.starts_with('-')) {
                arguments.push(' ');
                arguments.push_str(more);
            }
            request.options.queue = Some(statement(&arguments));
        } else if option("help", 1) {
            return Ok(Asked::Help);
        } else if let Some((name, _, why)) = REFUSED.iter().find(|(name, least, _)| option(name, *least)) {
            return Err(format!("-{name} is not supported: {why}"));
        } else {
            return Err(format!("{word} is no option\n{USAGE}"));
        }
    }
    // The command line stands above the file.
    request.options.appended.extend(late);
    // As in HTCondor, the word - makes the answer long, and no word does not.
    if request.file == "-" && request.printed == Printed::Counts {
        request.printed = Printed::Ads;
    }
    if request.file.is_empty() {
        "-".clone_into(&mut request.file);
    }
    Ok(Asked::Submit(Box::new(request)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &[&str]) -> Result<Request, String> {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        match parse(&words)? {
            Asked::Submit(request) => Ok(*request),
            Asked::Help => Err("help".to_owned()),
        }
    }

    #[test]
    fn options_are_those_of_condor_submit() {
        let request =
            asked(&["-a", "request_cpus = 2", "N=3", "-terse", "sim.sub", "-batch-name", "a b"]).unwrap();
        assert_eq!(request.file, "sim.sub");
        assert_eq!(request.options.appended, ["request_cpus = 2", "MY.JobBatchName = \"a b\""]);
        assert_eq!(request.options.assigned, [("N".to_owned(), "3".to_owned())]);
        assert!(request.printed == Printed::Terse && request.as_condor_submit && request.dry.is_none());
        let request = asked(&["sim.sub", "-queue", "x", "in", "(a,", "b)", "-dry-run", "-"]).unwrap();
        assert_eq!(request.options.queue.as_deref(), Some("queue x in (a, b)"));
        assert_eq!(request.dry, Some(Dry::Ads("-".to_owned())));
        for (given, expected) in [
            ("3", "queue 3"),
            ("queue 3", "queue 3"),
            ("Iterate x in (a b)", "queue x in (a b)"),
            ("queue", "queue "),
            ("queues in (a)", "queue queues in (a)"),
        ] {
            assert_eq!(statement(given), expected, "{given}");
        }
        let printed = |line: &[&str]| asked(line).map(|request| (request.file, request.printed));
        assert_eq!(printed(&[]), Ok(("-".to_owned(), Printed::Counts)));
        assert_eq!(printed(&["-"]), Ok(("-".to_owned(), Printed::Ads)));
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_name() {
        for (line, part) in [
            (&["-remote", "x"] as &[&str], "-remote is not supported"),
            (&["-name", "x"], "-name is not supported: there is no schedd"),
            (&["-pool", "x"], "-pool is not supported"),
            (&["-spool", "a.sub"], "-spool is not supported: nothing is kept"),
            (
                &["-allow-crlf-script", "a.sub"],
                "-allow-crlf-script is not supported: Linux starts no such script",
            ),
            (&["-i"], "-interactive is not supported"),
            (&["-nonsense"], "is no option"),
            (&["-append"], "requires another argument"),
            (&["-maxjobs", "many"], "is no number"),
            (&["-help"], "help"),
        ] {
            let error = asked(line).expect_err("refused");
            assert!(error.contains(part), "{line:?}: {error}");
        }
    }
}
