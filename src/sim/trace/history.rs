//! HTCondor's job history: ads in the long form. In the schedd's file a banner, `*** Offset = ...`, ends an ad;
//! `condor_history -l` prints a blank line after each.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Collected, TraceJob, Why, second, whole};
use classad::{Ad, Env, Limits, ParseError, Value};

/// The most bytes of an ad.
const LONGEST_AD: usize = 1 << 20;
/// The most steps that the evaluation of an attribute may take; requests are short expressions.
const STEPS: u32 = 2_000;

/// The attributes that are used. An ad may lack any of them; an ad in which one of them cannot be parsed is skipped.
const USED: [&str; 29] = [
    "AccountingGroup",
    "AcctGroup",
    "AcctGroupUser",
    "ClusterId",
    "CommittedSuspensionTime",
    "CommittedTime",
    "CompletionDate",
    "CpusProvisioned",
    "CumulativeSuspensionTime",
    "DiskProvisioned",
    "ExitBySignal",
    "ExitCode",
    "GPUsProvisioned",
    "JobCurrentStartDate",
    "JobPrio",
    "JobStartDate",
    "JobStatus",
    "JobUniverse",
    "LastRemoteWallClockTime",
    "MemoryProvisioned",
    "Owner",
    "ProcId",
    "QDate",
    "RemoteWallClockTime",
    "RequestCpus",
    "RequestDisk",
    "RequestGPUs",
    "RequestMemory",
    "User",
];

/// Reads the lines of a history.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The ad so far.
    text: String,
    /// The line where the ad began, from 1.
    line: usize,
    too_long: bool,
    /// The line where each job was read first. Histories that were put together have the same job more than once.
    met: HashMap<Identity, usize>,
}

/// The values that tell jobs apart, even jobs of several schedds.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Identity {
    owner: Arc<str>,
    cluster: i64,
    proc: i64,
    submitted: i64,
}

impl Reader {
    pub fn line(&mut self, text: &str, line: usize, collected: &mut Collected) {
        if let Some(banner) = text.strip_prefix("***") {
            self.end(Some(banner), collected);
        } else if text.trim().is_empty() {
            self.end(None, collected);
        } else {
            if self.text.is_empty() && !self.too_long {
                self.line = line;
            }
            self.too_long |= self.text.len() + text.len() >= LONGEST_AD;
            if self.too_long {
                self.text.clear();
            } else {
                self.text.push_str(text);
                self.text.push('\n');
            }
        }
    }

    pub fn finish(mut self, collected: &mut Collected) {
        self.end(None, collected);
    }

    /// Handles the end of an ad: at a banner, a blank line or the end of the text.
    fn end(&mut self, banner: Option<&str>, collected: &mut Collected) {
        let text = std::mem::take(&mut self.text);
        let too_long = std::mem::take(&mut self.too_long);
        if text.is_empty() && !too_long {
            return;
        }
        let taken = match banner.and_then(kind) {
            _ if too_long => Err(Why::TooLong),
            Some(kind) => Err(Why::NotAJob { banner: kind }),
            None => self.ad(&text, collected),
        };
        match taken {
            Ok(job) => collected.jobs.push(job),
            Err(why) => collected.skip(self.line, why),
        }
    }

    fn ad(&mut self, text: &str, collected: &mut Collected) -> Result<(i64, TraceJob), Why> {
        let (ad, errors) = Ad::parse_long_lenient(text);
        if let Some(error) = errors.into_iter().find(|error| is_used(text, error)) {
            return Err(Why::Unreadable(error.shifted(self.line.saturating_sub(1), 0)));
        }
        let job = Job::new(&ad).take(collected)?;
        collected.epoch = Some(0);
        self.once(&ad, job)
    }

    /// The job, unless it was read before.
    fn once(&mut self, ad: &Ad, job: (i64, TraceJob)) -> Result<(i64, TraceJob), Why> {
        let read = Job::new(ad);
        let (Some(cluster), Some(proc)) = (read.integer("ClusterId"), read.integer("ProcId")) else {
            return Ok(job);
        };
        let identity = Identity { owner: job.1.owner.clone(), cluster, proc, submitted: job.0 };
        if let Some(&line) = self.met.get(&identity) {
            return Err(Why::Again { line });
        }
        self.met.insert(identity, self.line);
        Ok(job)
    }
}

/// Whether the attribute that cannot be parsed is one of [`USED`].
fn is_used(text: &str, error: &ParseError) -> bool {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let name = line.split_once('=').map_or(line, |(name, _)| name).trim();
    USED.iter().any(|used| used.eq_ignore_ascii_case(name))
}

/// The kind of ad that a banner names, if the ad is not a job: `*** EPOCH ClusterId=1 ...`.
fn kind(banner: &str) -> Option<String> {
    let word = banner.split_ascii_whitespace().next()?;
    let kind = word.len() < 32 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    kind.then(|| word.to_owned())
}

/// An ad of the history.
struct Job<'a> {
    ad: &'a Ad,
    env: Env,
}

impl<'a> Job<'a> {
    fn new(ad: &'a Ad) -> Self {
        let limits = Limits { steps: STEPS, ..Limits::default() };
        let bare = Self { ad, env: Env { limits, ..Env::at(0) } };
        // Expressions are evaluated as of the job's submission, because a history has no time of its own.
        let now = bare.integer("QDate").unwrap_or(0);
        Self { env: Env { now, ..bare.env }, ..bare }
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.ad.eval_attr(name, None, &self.env).as_number().filter(|number| number.is_finite())
    }

    fn positive(&self, name: &str) -> Option<f64> {
        self.number(name).filter(|number| *number > 0.0)
    }

    fn integer(&self, name: &str) -> Option<i64> {
        self.ad.eval_attr(name, None, &self.env).as_int()
    }

    fn text(&self, name: &str) -> Option<Arc<str>> {
        match self.ad.eval_attr(name, None, &self.env) {
            Value::Str(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    fn take(&self, collected: &mut Collected) -> Result<(i64, TraceJob), Why> {
        self.universe()?;
        let submitted = self.positive("QDate").ok_or(Why::NoSubmission)?;
        let submitted = second(submitted).ok_or(Why::OutOfRange { what: "QDate" })?;
        let runtime = whole(self.runtime()?).ok_or(Why::OutOfRange { what: "the run time" })?;
        let (group, owner) = self.submitter();
        let job = TraceJob {
            submitted: 0,
            runtime,
            cpus: self.cpus()?,
            memory_mib: self.amount("RequestMemory", "MemoryProvisioned"),
            disk_kib: self.amount("RequestDisk", "DiskProvisioned"),
            gpus: self.amount("RequestGPUs", "GPUsProvisioned").unwrap_or(0),
            owner: collected.names.intern(owner.as_deref().unwrap_or("unknown")),
            group: group.map(|group| collected.names.intern(&group)),
            priority: self.integer("JobPrio").unwrap_or(0),
            completed: self.completed(),
        };
        Ok((submitted, job))
    }

    /// Refuses universes whose jobs do not run in one slot: jobs of the scheduler (7), grid (9) and local (12)
    /// universes run outside slots, and jobs of the parallel universe (8 and 11) in several slots at once.
    fn universe(&self) -> Result<(), Why> {
        match self.integer("JobUniverse") {
            Some(number @ (7 | 8 | 9 | 11 | 12)) => Err(Why::Universe { number }),
            _ => Ok(()),
        }
    }

    /// The seconds that the work took, without runs that were lost: under another policy those runs might not be
    /// lost.
    fn runtime(&self) -> Result<f64, Why> {
        let suspended = |name: &str| self.positive(name).unwrap_or(0.0);
        if let Some(committed) = self.positive("CommittedTime") {
            return Ok((committed - suspended("CommittedSuspensionTime")).max(0.0));
        }
        if let Some(last) = self.positive("LastRemoteWallClockTime") {
            return Ok(last);
        }
        if let Some(all) = self.positive("RemoteWallClockTime") {
            return Ok((all - suspended("CumulativeSuspensionTime")).max(0.0));
        }
        let started = self.positive("JobCurrentStartDate").or_else(|| self.positive("JobStartDate"));
        match (started, self.positive("CompletionDate")) {
            (Some(started), Some(ended)) if ended >= started => Ok(ended - started),
            (None, _) if self.integer("JobStatus") == Some(REMOVED) => Err(Why::NeverRan),
            _ => Err(Why::NoRunTime),
        }
    }

    fn cpus(&self) -> Result<u64, Why> {
        match self.positive("RequestCpus").or_else(|| self.positive("CpusProvisioned")) {
            Some(cpus) => whole(cpus).filter(|cpus| *cpus > 0).ok_or(Why::OutOfRange { what: "RequestCpus" }),
            // condor_submit asks for one CPU if the submit file does not say how many.
            None if !self.ad.contains("RequestCpus") => Ok(1),
            None => Err(Why::NoCpus),
        }
    }

    /// The amount that the job asked for, or else was given.
    fn amount(&self, asked: &str, given: &str) -> Option<u64> {
        self.positive(asked).or_else(|| self.positive(given)).and_then(whole)
    }

    /// The accounting group, and the name that fair share counts by.
    fn submitter(&self) -> (Option<Arc<str>>, Option<Arc<str>>) {
        let owner = || self.text("Owner").or_else(|| self.text("User").map(|user| local(&user).into()));
        let (group, user) = (self.text("AcctGroup"), self.text("AcctGroupUser"));
        if group.is_some() || user.is_some() {
            return (group, user.or_else(owner));
        }
        match self.text("AccountingGroup") {
            Some(whole) => match local(&whole).rsplit_once('.') {
                Some((group, user)) if !group.is_empty() && !user.is_empty() => {
                    (Some(group.into()), Some(user.into()))
                }
                _ => (Some(local(&whole).into()), owner()),
            },
            None => (None, owner()),
        }
    }

    fn completed(&self) -> bool {
        self.integer("JobStatus").is_none_or(|status| status == COMPLETED)
            && self.integer("ExitCode").is_none_or(|code| code == 0)
            && self.ad.eval_attr("ExitBySignal", None, &self.env).as_bool_equiv() != Some(true)
    }
}

/// `JobStatus` of a job that was removed.
const REMOVED: i64 = 3;
/// `JobStatus` of a job that completed.
const COMPLETED: i64 = 4;

/// A user's name without the domain.
fn local(user: &str) -> &str {
    user.split_once('@').map_or(user, |(name, _)| name)
}
