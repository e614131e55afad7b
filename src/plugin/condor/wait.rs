//! `condor_wait`: waits until the jobs of a job event log, or a job, have ended.

mod job;

use std::io::Write;
use std::path::{Path, PathBuf};

use tools::events::Found;

use super::{Answer, Failure, Outcome, place, version};
use crate::cluster::{Connection, Patience};
use crate::userlog::{PAUSE, Userlogs};

const USAGE: &str = "\
Usage: condor_wait [options] LOG [CLUSTER[.PROC]]
       condor_wait [-wait SECONDS] [-status] CLUSTER
  -status          Show job start and terminate info
  -echo            Echo log events relevant to the job
  -num NUMBER      Wait for this many jobs to end (default is all jobs)
  -wait SECONDS    Wait no more than this time (default is unlimited)
  -allevents       Continue on even if all jobs have ended; use with -echo to transcribe the whole log
  -log LOG         The log
Waits until the jobs of a job event log have ended, and keeps the log up to date meanwhile. Without a log, waits until no proc of
the job is in the queue.";

/// The request that a command line makes.
#[derive(Debug, Default)]
struct Request {
    log: Option<PathBuf>,
    job: Option<(i64, Option<i64>)>,
    status: bool,
    echo: bool,
    number: Option<usize>,
    seconds: Option<i64>,
    all_events: bool,
}

impl Request {
    /// The time at which `-wait` ends the tool.
    fn until(&self) -> Option<i64> {
        self.seconds.map(|seconds| place::now().saturating_add(seconds))
    }
}

fn parse(words: &[String]) -> Result<Request, Failure> {
    let mut request = Request::default();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut value =
            || words.next().ok_or_else(|| Failure(format!("{word} requires an argument\n{USAGE}")));
        match word {
            "-status" => request.status = true,
            "-echo" => request.echo = true,
            "-debug" => {}
            "-log" => request.log = Some(value()?.into()),
            "-wait" => {
                let text = value()?;
                let seconds =
                    text.parse().map_err(|_| format!("-wait {text}: that is no number of seconds"))?;
                request.seconds = Some(seconds);
            }
            "-num" => {
                let text = value()?;
                let number = text.parse().ok().filter(|number| *number > 0);
                request.number = Some(number.ok_or_else(|| "-num must be greater than zero".to_owned())?);
            }
            _ if word.len() >= 4 && "-allevents".starts_with(word) => request.all_events = true,
            "-1" if request.log.is_some() => {}
            _ if word.starts_with('-') => {
                return Err(Failure(format!("{word} is not supported\n{USAGE}")));
            }
            _ if request.log.is_none() && request.job.is_none() => match tools::job_id(word) {
                Some(job) if !Path::new(word).exists() => request.job = Some(job),
                _ => request.log = Some(word.into()),
            },
            _ if request.job.is_none() && request.log.is_some() => {
                let job =
                    tools::job_id(word.strip_suffix(".0").filter(|id| id.contains('.')).unwrap_or(word));
                request.job =
                    Some(job.ok_or_else(|| Failure(format!("Couldn't understand job number: {word}")))?);
            }
            _ => return Err(Failure(format!("Extra argument: {word}\n\n{USAGE}"))),
        }
    }
    if request.all_events && request.number.is_some() {
        return Err(Failure(format!("-num cannot be used with -allevents\n{USAGE}")));
    }
    if request.log.is_none() {
        if request.job.is_none() {
            return Err(Failure(USAGE.to_owned()));
        }
        let of_logs =
            [("-num", request.number.is_some()), ("-echo", request.echo), ("-allevents", request.all_events)];
        if let Some((option, _)) = of_logs.iter().find(|(_, given)| *given) {
            return Err(Failure(format!(
                "{option} is for job event logs: name the log before the job\n{USAGE}"
            )));
        }
    }
    Ok(request)
}

pub(super) async fn run(
    words: &[String],
    connection: &Connection,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Outcome {
    match words.first().map(String::as_str) {
        Some("-help") => return Ok(Answer { text: format!("{USAGE}\n"), ..Answer::default() }),
        Some("-version") => return Ok(version()),
        _ => {}
    }
    let request = parse(words)?;
    match &request.log {
        Some(log) => of_log(&request, log, connection, out, err).await,
        None => job::wait(&request, connection, err).await,
    }
}

/// The events of a log that were told.
#[derive(Debug, Default)]
struct EventCounts {
    /// How many events of the log were read.
    read: usize,
    submitted: usize,
    ended: usize,
}

impl EventCounts {
    /// Reads the events that are new in a log, and prints the lines that the request asks for.
    fn go_on(&mut self, request: &Request, text: &str, out: &mut dyn Write) -> std::io::Result<()> {
        let events = Found::all(text);
        for event in events.iter().skip(self.read) {
            let (cluster, proc) = event.id;
            let is_meant = request.job.is_none_or(|(wanted, wanted_proc)| {
                wanted == cluster && wanted_proc.is_none_or(|wanted| wanted == i64::from(proc))
            });
            if !is_meant {
                continue;
            }
            if request.echo {
                writeln!(out, "{}", event.head)?;
                event.lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
                writeln!(out, "...")?;
            }
            let said = match event.number {
                0 => {
                    self.submitted += 1;
                    "submitted".to_owned()
                }
                1 => format!("executing on host {}", event.behind("on host:").unwrap_or_default()),
                5 | 9 => {
                    self.ended += 1;
                    if event.number == 5 { "completed".to_owned() } else { "aborted".to_owned() }
                }
                _ => continue,
            };
            if request.status {
                writeln!(out, "{cluster}.{proc}.0 {said}")?;
            }
        }
        self.read = events.len();
        out.flush()
    }

    /// The answer, if what was told of a log is what the request waits for. Fails if the log has no event of it.
    fn answer(&self, request: &Request) -> Result<Option<Answer>, Failure> {
        let done = |text: String| Ok(Some(Answer { text, ..Answer::default() }));
        match request.number {
            Some(number) if self.ended >= number => {
                done(format!("Specifed number of jobs ({number}) done.\n"))
            }
            None if self.submitted == 0 => {
                let what = if request.job.is_some() { "that job" } else { "any jobs" };
                Err(Failure(format!("This log does not mention {what}!")))
            }
            None if request.all_events && request.seconds.is_none() => done(String::new()),
            None if self.ended >= self.submitted && !request.all_events => {
                done("All jobs done.\n".to_owned())
            }
            _ => Ok(None),
        }
    }
}

async fn of_log(
    request: &Request,
    log: &Path,
    connection: &Connection,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Outcome {
    let until = request.until();
    let (mut logs, mut told) = (Userlogs::new(connection), EventCounts::default());
    let (mut patience, mut has_warned) = (Patience::default(), false);
    loop {
        match logs.update(log).await {
            Ok(updated) => {
                told.go_on(request, &updated.text, out).map_err(|error| Failure(error.to_string()))?;
                if let Some(answer) = told.answer(request)? {
                    return Ok(answer);
                }
                let is_meant = |cluster| request.job.is_none_or(|(wanted, _)| wanted == cluster);
                let elsewhere = logs.elsewhere(&updated, is_meant).filter(|_| !has_warned);
                if let Some(why) = elsewhere {
                    has_warned = true;
                    // Nobody may be there to read it.
                    let _ = writeln!(err, "note: {why}");
                }
            }
            Err(error) if error.is_transient() => patience.bear(&error, err),
            Err(error) => return Err(Failure(format!("Error: {error}"))),
        }
        if until.is_some_and(|until| place::now() >= until) {
            return Ok(expired());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The answer once the time of `-wait` is over: on standard output, as condor_wait has it, though the tool fails.
fn expired() -> Answer {
    Answer { text: "Time expired.\n".to_owned(), status: 1, ..Answer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &[&str]) -> Result<Request, String> {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        parse(&words).map_err(|Failure(message)| message)
    }

    #[test]
    fn options_are_those_of_condor_wait() {
        let request = asked(&["-status", "-wait", "60", "-num", "2", "sim.log", "13.25.0"]).unwrap();
        assert_eq!(request.log.as_deref(), Some(Path::new("sim.log")));
        assert_eq!((request.job, request.number, request.seconds), (Some((13, Some(25))), Some(2), Some(60)));
        let request = asked(&["-all", "-echo", "-log", "sim.log"]).unwrap();
        assert!(request.all_events && request.echo && request.job.is_none());
        assert_eq!(asked(&["12"]).unwrap().job, Some((12, None)));
        for (line, part) in [
            (&[] as &[&str], "Usage: condor_wait"),
            (&["-num", "0", "sim.log"], "-num must be greater than zero"),
            (&["-num", "1", "-allevents", "sim.log"], "-num cannot be used with -allevents"),
            (&["sim.log", "x"], "Couldn't understand job number: x"),
            (&["sim.log", "1", "2"], "Extra argument: 2"),
            (&["-event-id", "5"], "-event-id is not supported"),
            (&["-num", "1", "12"], "-num is for job event logs: name the log"),
            (&["-echo", "12"], "-echo is for job event logs"),
            (&["-allevents", "12"], "-allevents is for job event logs"),
        ] {
            let error = asked(line).unwrap_err();
            assert!(error.contains(part), "{line:?}: {error}");
        }
    }

    #[test]
    fn what_was_told_answers_or_is_waited_for() {
        let told = |submitted, ended| EventCounts { read: 0, submitted, ended };
        let (all, two) = (Request::default(), Request { number: Some(2), ..Request::default() });
        let every = Request { all_events: true, ..Request::default() };
        for (request, told, expected) in [
            (&all, told(2, 1), Ok(None)),
            (&all, told(2, 2), Ok(Some("All jobs done.\n"))),
            (&all, told(0, 0), Err("This log does not mention any jobs!")),
            (&two, told(3, 1), Ok(None)),
            (&two, told(3, 2), Ok(Some("Specifed number of jobs (2) done.\n"))),
            (&every, told(2, 1), Ok(Some(""))),
        ] {
            let answer = told.answer(request);
            let answer = answer.map(|answer| answer.map(|answer| answer.text)).map_err(|Failure(why)| why);
            assert_eq!(answer, expected.map(|text| text.map(str::to_owned)).map_err(str::to_owned));
        }
    }

    #[test]
    fn events_are_told_once_and_counted() {
        let event =
            |number: &str, rest: &str| format!("{number} (012.003.000) 2026-11-26 09:05:00 {rest}\n...\n");
        let first =
            event("000", "Job submitted from host: <a>") + &event("001", "Job executing on host: <b>");
        let all = first.clone() + &event("005", "Job terminated.");
        let request = Request { status: true, ..Request::default() };
        let (mut told, mut out) = (EventCounts::default(), Vec::new());
        told.go_on(&request, &first, &mut out).unwrap();
        assert_eq!((told.submitted, told.ended), (1, 0));
        told.go_on(&request, &all, &mut out).unwrap();
        assert_eq!((told.submitted, told.ended), (1, 1));
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "12.3.0 submitted\n12.3.0 executing on host <b>\n12.3.0 completed\n");
        let other = Request { echo: true, job: Some((12, Some(4))), ..Request::default() };
        let (mut told, mut out) = (EventCounts::default(), Vec::new());
        told.go_on(&other, &all, &mut out).unwrap();
        assert_eq!((told.submitted, out.len()), (0, 0));
    }
}
