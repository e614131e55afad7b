//! The queue of waiting jobs: whose they are, in which order they wait, and which are alike.
//!
//! A queue may have a million jobs. It keeps the id, the priorities and the autocluster of each job, and one ad of
//! each autocluster.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use super::accounts::Accounts;
use super::policy::Policy;
use super::slots::considered;
use crate::ads::{Ads, LocatedAd};
use crate::stop::Stop;
use classad::{Ad, Env, Name, Value};
use model::negotiator::Request;
use model::negotiator::autoclusters::{Autoclusters, Significant};
use model::pool::JobSpec;

/// The `JobStatus` of jobs that wait.
const IDLE: i64 = 1;

/// A job's `ClusterId` and `ProcId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobId {
    cluster: i64,
    proc: i64,
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.cluster, self.proc)
    }
}

/// A job that waits. Jobs are ordered as by the schedd: greater priorities first, then smaller ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    /// `PreJobPrio1`, `PreJobPrio2`, `JobPrio`, `PostJobPrio1`, `PostJobPrio2`.
    priorities: Reverse<[i32; 5]>,
    id: JobId,
    autocluster: u32,
}

/// All jobs that wait, by submitter.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The jobs, by the index of their submitter in [`Accounts`].
    jobs: Vec<Vec<Job>>,
    /// One ad of each autocluster.
    ads: Vec<Ad>,
}

/// The jobs of one submitter that are of one autocluster.
pub(super) struct Alike {
    /// The request that the negotiator gets.
    pub(super) request: Request,
    /// The jobs, in the order in which they are to be matched.
    pub(super) jobs: Vec<JobId>,
}

impl Queue {
    /// Reads the jobs that wait and that `NEGOTIATOR_JOB_CONSTRAINT` lets the negotiator consider.
    pub(super) fn read(
        ads: &mut Ads<'_>,
        significant: &Significant,
        policy: &Policy,
        accounts: &mut Accounts,
        env: &Env,
    ) -> Result<Self, Stop> {
        let (mut queue, names) = (Self::default(), Attributes::default());
        let mut autoclusters = Autoclusters::new(significant);
        while let Some(LocatedAd { ad, line }) = ads.next_ad()? {
            let read = Reader { ad: &ad, env };
            let idle = read.int(&names.job_status).is_none_or(|status| status == IDLE);
            if !idle || !considered(policy.config.job_constraint.as_ref(), &ad, env) {
                continue;
            }
            let missing = |name: &Name| ads.wrong(line, &format!("the job's ad has no number as {name}"));
            let id = JobId {
                cluster: read.int(&names.cluster_id).ok_or_else(|| missing(&names.cluster_id))?,
                proc: read.int(&names.proc_id).ok_or_else(|| missing(&names.proc_id))?,
            };
            let Some(submitter) = read.submitter(&names) else {
                return Err(ads.wrong(line, "the job's ad has neither AccountingGroup nor User nor Owner"));
            };
            let account = accounts.open(&submitter);
            let autocluster = autoclusters.number(&ad);
            let job = Job {
                priorities: Reverse(JobSpec::priorities(
                    names.priorities.each_ref().map(|name| read.value(name)),
                )),
                id,
                autocluster: u32::try_from(autocluster).unwrap_or(u32::MAX),
            };
            if autocluster == queue.ads.len() {
                queue.ads.push(ad);
            }
            if queue.jobs.len() <= account {
                queue.jobs.resize_with(account + 1, Vec::new);
            }
            if let Some(jobs) = queue.jobs.get_mut(account) {
                jobs.push(job);
            }
        }
        Ok(queue)
    }

    /// How many jobs wait.
    pub(super) fn len(&self) -> usize {
        self.jobs.iter().map(Vec::len).sum()
    }

    /// One ad of each autocluster.
    pub(super) fn ads(&self) -> &[Ad] {
        &self.ads
    }

    /// The requests of each submitter, in the order of the accounts. A submitter's requests are in the order of their
    /// first jobs.
    pub(super) fn requests(self) -> Vec<Vec<Alike>> {
        let Self { jobs, ads } = self;
        jobs.into_iter().map(|jobs| alike(jobs, &ads)).collect()
    }
}

/// Sorts one submitter's jobs into requests.
fn alike(mut jobs: Vec<Job>, ads: &[Ad]) -> Vec<Alike> {
    jobs.sort_unstable();
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut requests: Vec<Alike> = Vec::new();
    for job in jobs {
        let place = *places.entry(job.autocluster).or_insert(requests.len());
        if place == requests.len() {
            let ad = ads.get(job.autocluster as usize).cloned().unwrap_or_default();
            requests.push(Alike { request: Request { ad, count: 0 }, jobs: Vec::new() });
        }
        if let Some(request) = requests.get_mut(place) {
            request.request.count += 1;
            request.jobs.push(job.id);
        }
    }
    requests
}

/// The names of the attributes that are read of each job, hashed once.
struct Attributes {
    job_status: Name,
    cluster_id: Name,
    proc_id: Name,
    priorities: [Name; 5],
    accounting_group: Name,
    acct_group: Name,
    acct_group_user: Name,
    nice_user: Name,
    user: Name,
    owner: Name,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            job_status: "JobStatus".into(),
            cluster_id: "ClusterId".into(),
            proc_id: "ProcId".into(),
            priorities: JobSpec::PRIORITIES.map(Name::from),
            accounting_group: "AccountingGroup".into(),
            acct_group: "AcctGroup".into(),
            acct_group_user: "AcctGroupUser".into(),
            nice_user: "NiceUser".into(),
            user: "User".into(),
            owner: "Owner".into(),
        }
    }
}

/// Reads attributes of one ad.
struct Reader<'a> {
    ad: &'a Ad,
    env: &'a Env,
}

impl Reader<'_> {
    fn value(&self, name: &Name) -> Value {
        match self.ad.get_name(name).map(|expr| (expr, expr.as_literal())) {
            None => Value::Undefined,
            Some((_, Some(literal))) => literal.clone(),
            Some((expr, None)) => expr.eval(Some(self.ad), None, self.env),
        }
    }

    fn int(&self, name: &Name) -> Option<i64> {
        self.value(name).as_int()
    }

    /// The value of an attribute, if it is a string that is not empty.
    fn text(&self, name: &Name) -> Option<String> {
        self.value(name).as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Who is charged for the job: `AccountingGroup`, which condor_submit makes of `AcctGroup` and `AcctGroupUser`,
    /// or else the user who submitted the job.
    fn submitter(&self, names: &Attributes) -> Option<String> {
        if let Some(group) = self.text(&names.accounting_group) {
            return Some(group);
        }
        let user = || self.text(&names.user).or_else(|| self.text(&names.owner));
        let in_group = || self.text(&names.acct_group_user).or_else(user);
        if let Some(group) = self.text(&names.acct_group) {
            return in_group().map(|user| format!("{group}.{user}"));
        }
        let nice = self.value(&names.nice_user).as_bool_equiv() == Some(true);
        in_group().map(|user| if nice { format!("nice-user.{user}") } else { user })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Vec<Vec<Alike>>, Accounts), String> {
        let mut ads = Ads::new("jobs".to_owned(), Box::new(text.as_bytes()));
        let mut accounts = Accounts::default();
        let significant = Significant::of([&Ad::parse_long("Start = TARGET.Size < 5").unwrap()], &[]);
        match Queue::read(&mut ads, &significant, &Policy::default(), &mut accounts, &Env::at(0)) {
            Ok(queue) => Ok((queue.requests(), accounts)),
            Err(Stop::Unusable(message)) => Err(message),
            Err(Stop::Io(error)) => panic!("{error}"),
        }
    }

    /// The jobs of the only submitter, request by request.
    fn order(jobs: &[&str]) -> Vec<String> {
        let ads = jobs.iter().map(|job| format!("User = \"u\"\n{}", job.replace(';', "\n")));
        let text = ads.collect::<Vec<_>>().join("\n\n");
        let (requests, _) = read(&text).unwrap();
        let line = |alike: &Alike| alike.jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        requests.iter().flatten().map(line).collect()
    }

    #[test]
    fn jobs_wait_in_the_order_of_the_schedd() {
        let jobs = [
            "ClusterId = 2;ProcId = 1;Size = 1",
            "ClusterId = 10;ProcId = 0;Size = 2;JobPrio = 5",
            "ClusterId = 2;ProcId = 0;Size = 3",
            "ClusterId = 3;ProcId = 0;Size = 4;PostJobPrio1 = -9",
            "ClusterId = 11;ProcId = 0;Size = 5;PreJobPrio2 = 1.9;JobPrio = -1",
            "ClusterId = 12;ProcId = 0;Size = 6;PreJobPrio1 = -1;PreJobPrio2 = 9;JobPrio = 9",
            "ClusterId = 13;ProcId = 0;Size = 7;PreJobPrio1 = \"3\"",
        ];
        // An attribute that is not set, or no number, counts as 0.
        assert_eq!(order(&jobs), ["11.0", "10.0", "2.0", "2.1", "13.0", "3.0", "12.0"]);
    }

    #[test]
    fn jobs_that_are_alike_are_one_request_at_the_place_of_the_first() {
        let jobs = [
            "ClusterId = 1;ProcId = 0;Size = 1",
            "ClusterId = 1;ProcId = 1;Size = 2",
            "ClusterId = 1;ProcId = 2;Size = 1",
        ];
        assert_eq!(order(&jobs), ["1.0 1.2", "1.1"]);
    }

    #[test]
    fn only_idle_jobs_wait() {
        assert_eq!(
            order(&["ClusterId = 1;ProcId = 0;JobStatus = 2", "ClusterId = 1;ProcId = 1;JobStatus = 1"]),
            ["1.1"]
        );
    }

    #[test]
    fn who_is_charged_is_the_accounting_group_or_the_user() {
        let job = |text: &str| {
            let text = format!("ClusterId = 1\nProcId = 0\n{}\n", text.replace(';', "\n"));
            let (_, accounts) = read(&text).unwrap();
            accounts.names().next().unwrap().to_owned()
        };
        assert_eq!(job("User = \"a@x\";Owner = \"a\""), "a@x");
        assert_eq!(job("Owner = \"a\""), "a");
        assert_eq!(job("User = \"a@x\";AccountingGroup = \"g.b\";AcctGroup = \"h\""), "g.b");
        assert_eq!(job("User = \"a@x\";AcctGroup = \"g\""), "g.a@x");
        assert_eq!(job("User = \"a@x\";AcctGroup = \"g\";AcctGroupUser = \"b\""), "g.b");
        assert_eq!(job("User = \"a@x\";NiceUser = true"), "nice-user.a@x");
    }

    #[test]
    fn a_job_without_number_or_user_is_told_with_its_place() {
        let fault = |text: &str| read(text).err().unwrap();
        assert_eq!(
            fault("\nUser = \"a\"\nProcId = 0\n"),
            "jobs: line 2, column 1: the job's ad has no number as ClusterId"
        );
        let nobody = "jobs: line 1, column 1: the job's ad has neither AccountingGroup nor User nor Owner";
        assert_eq!(fault("ClusterId = 1\nProcId = 0\n"), nobody);
    }
}
