//! Reads how the procs of a job stand from the objects of a cluster, for the job event log.

use api::HTCJob;
use classad::Env;
use controller::kinds;
use model::pool::{self, Event, Job, JobUid, Pool, Time, Verb, Whom};
use tools::events::{Exit, Now, Proc, Run};

use crate::condor::last_runs::{LastRun, LastRuns};

/// Where a job was submitted to, as the event 000 has it: the address of the API server, and the object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    /// Host and port.
    server: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Origin {
    pub(super) fn new(server: &str, namespace: &str, name: &str) -> Self {
        let server = server.split_once("://").map_or(server, |(_, rest)| rest);
        let server = server.trim_end_matches('/').to_owned();
        Self { server, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Reads `<10.0.0.1:6443?htcjob=alice/sim>`.
    pub(super) fn parse(host: &str) -> Option<Self> {
        let (server, query) = host.strip_prefix('<')?.strip_suffix('>')?.split_once('?')?;
        let (namespace, name) = query.strip_prefix("htcjob=")?.split_once('/')?;
        Some(Self::new(server, namespace, name))
    }

    pub(super) fn host(&self) -> String {
        format!("<{}?htcjob={}/{}>", self.server, self.namespace, self.name)
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn is_of(&self, server: &str) -> bool {
        self.server == Self::new(server, "", "").server
    }
}

/// A job whose procs are asked for.
pub(super) struct Subject<'j> {
    job: &'j HTCJob,
    known: Job,
    /// The acts that people asked of procs, as far as the object still has them.
    acts: Vec<pool::Act>,
    uid: &'j str,
    origin: &'j Origin,
}

impl<'j> Subject<'j> {
    /// `None` if the operator has given the job no number, or a number other than the log's.
    pub(super) fn of(job: &'j HTCJob, origin: &'j Origin, cluster: i64) -> Option<Self> {
        let uid = job.metadata.uid.as_deref()?;
        let mut pool = Pool::default();
        let facts = kinds::job::facts(job)?;
        let acts = facts.life.acts.clone();
        pool.apply(Event::Job(facts), Time::default());
        let known = pool.jobs().get(&JobUid::from(uid)).filter(|known| known.cluster_id == cluster)?.clone();
        Some(Self { job, known, acts, uid, origin })
    }

    /// The state of a proc, and its last run.
    pub(super) fn proc(&self, number: u32, last_runs: &LastRuns) -> Proc {
        let last = last_runs.get(self.uid, number);
        Proc {
            id: (self.known.cluster_id, number),
            submitted: self.known.submitted.secs(),
            host: self.origin.host(),
            run: last.and_then(run),
            now: self.now(number, last),
        }
    }

    fn now(&self, number: u32, last: Option<&LastRun>) -> Now {
        let known = &self.known;
        let history = known.history_of(number);
        if known.removed.contains(number) || known.removing && !known.is_done(number) {
            return Now::Removed { reason: self.why_removed(number) };
        }
        if known.is_done(number) {
            let status = self.job.status.as_ref();
            let completed = status.and_then(|status| status.completion_time.as_ref());
            let at = last.and_then(|run| run.finished).or_else(|| completed.map(|time| time.0.as_second()));
            return Now::Done { at, exit: self.exit(number, last) };
        }
        let since = (history.since > Time::default()).then(|| history.since.secs());
        if let Some(hold) = known.on_hold.get(&number) {
            let (reason, code, subcode) = (hold.reason.to_string(), hold.code, hold.subcode);
            return Now::Held { since, reason, code, subcode };
        }
        // A run's end shows in the job's status a moment after the pod shows it, and only the status tells what becomes of the
        // proc.
        if let Some(last) = last.filter(|run| run.started.is_some() && run.number > history.starts) {
            return Now::Running { suspended: last.suspended };
        }
        let evicted = last.and_then(|run| match &run.end {
            Some(pool::End::Evicted { why }) => Some(why.to_string()),
            _ => None,
        });
        let by_itself = history.completions > 0 && history.completions == history.starts;
        let exit = last.map_or_else(|| history.exit.filter(|_| by_itself), LastRun::exit);
        Now::Idle { since, evicted, requeued: exit.map(told) }
    }

    /// How the program of a proc that is done ended. The code is -1 if no more is known than that the program failed.
    fn exit(&self, number: u32, last: Option<&LastRun>) -> Exit {
        if let Some(exit) = last.and_then(LastRun::exit) {
            return told(exit);
        }
        if !self.known.succeeded.contains(number) {
            return Exit::Code(-1);
        }
        let success = self
            .known
            .spec
            .as_ref()
            .and_then(|spec| spec.ad.eval_attr("JobSuccessExitCode", None, &Env::at(0)).as_int());
        Exit::Code(success.and_then(|code| i32::try_from(code).ok()).unwrap_or(0))
    }

    /// The reason of the act that removed a proc, while the object has that act.
    fn why_removed(&self, number: u32) -> Option<String> {
        let removes = |act: &&pool::Act| {
            let meant = match &act.whom {
                Whom::All => true,
                Whom::Some(procs) => procs.contains(number),
            };
            act.verb == Verb::Remove && meant
        };
        self.acts.iter().rev().find(removes).map(|act| act.reason.to_string())
    }
}

fn run(last: &LastRun) -> Option<Run> {
    Some(Run {
        number: last.number,
        started: last.started?,
        host: format!("<{}>", last.node.as_deref().unwrap_or("unknown")),
        slot: last.slot.clone(),
    })
}

const fn told(exit: pool::Exit) -> Exit {
    match exit {
        pool::Exit::Code(code) => Exit::Code(code),
        pool::Exit::Signal(signal) => Exit::Signal(signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_back() {
        let origin = Origin::new("https://10.0.0.1:6443/", "alice", "sim-x7k2p");
        assert_eq!(origin.host(), "<10.0.0.1:6443?htcjob=alice/sim-x7k2p>");
        assert_eq!(Origin::parse(&origin.host()).as_ref(), Some(&origin));
        assert!(origin.is_of("https://10.0.0.1:6443") && !origin.is_of("https://10.0.0.2:6443"));
        for other in
            ["", "<10.0.0.1:9618?addrs=10.0.0.1-9618&alias=submit>", "<10.0.0.1>", "10.0.0.1?htcjob=a/b"]
        {
            assert_eq!(Origin::parse(other), None, "{other}");
        }
    }
}
