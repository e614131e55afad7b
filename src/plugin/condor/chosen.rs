//! Which jobs a tool acts on: ClusterIds, ClusterId.ProcIds, owners, a constraint, or all of the namespace.

use api::HTCJob;
use classad::{Ad, Env, Expr};
use model::pool::Time;

use super::{Failure, jobs, place};
use crate::cluster::{self, Cluster};

/// The jobs that a command line names.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    ids: Vec<(i64, Option<i64>)>,
    owners: Vec<String>,
    pub(super) constraint: Option<Expr>,
    /// All jobs of the namespace.
    pub(super) all: bool,
}

/// A job of which procs are chosen.
pub(super) struct Picked {
    pub(super) job: HTCJob,
    /// How many of its procs in the queue are chosen.
    pub(super) procs: usize,
    /// Whether all procs of the job that are in the queue are chosen.
    pub(super) whole: bool,
}

impl Chosen {
    /// Adds a job or an owner.
    pub(super) fn add(&mut self, word: &str) {
        match tools::job_in_queue(word) {
            Some(id) => self.ids.push(id),
            None => self.owners.push(word.to_owned()),
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.ids.is_empty() && self.owners.is_empty() && self.constraint.is_none() && !self.all
    }

    fn has(&self, ad: &Ad, env: &Env) -> bool {
        let number = |name: &str| ad.eval_attr(name, None, env).as_int().unwrap_or(-1);
        let (cluster, own_proc) = (number("ClusterId"), number("ProcId"));
        let owner = ad.eval_attr("Owner", None, env);
        let named = self.all
            || self.ids.iter().any(|(id, proc)| *id == cluster && proc.is_none_or(|proc| proc == own_proc))
            || owner
                .as_str()
                .is_some_and(|owner| self.owners.iter().any(|named| named.eq_ignore_ascii_case(owner)));
        let holds = |expr: &Expr| expr.eval(Some(ad), None, env).as_bool_equiv() == Some(true);
        let unnamed = self.ids.is_empty() && self.owners.is_empty();
        match &self.constraint {
            Some(constraint) => (named || unnamed) && holds(constraint),
            None => named,
        }
    }

    /// The chosen jobs: those of one namespace with `all` or a constraint alone, and else those of all namespaces.
    ///
    /// # Errors
    /// When the jobs cannot be listed, or none is chosen.
    pub(super) async fn pick(&self, cluster: &Cluster) -> Result<Vec<Picked>, Failure> {
        let namespace = place::namespace(cluster);
        let everywhere = !self.ids.is_empty() || !self.owners.is_empty();
        let found: Result<Vec<HTCJob>, _> =
            if everywhere { cluster.list_all().await } else { cluster.list(Some(&namespace)).await };
        let jobs = match found {
            // If the user may not list all namespaces, the jobs of the current namespace are meant.
            Err(cluster::Error::Forbidden { .. }) if everywhere => cluster.list(Some(&namespace)).await?,
            other => other?,
        };
        let now = place::now();
        let env = Env::at(now);
        let mut picked = Vec::new();
        for job in jobs {
            let ads = jobs::ads(std::slice::from_ref(&job), None, None, Time::from_secs(now));
            let procs = ads.iter().filter(|ad| self.has(ad, &env)).count();
            if procs > 0 {
                picked.push(Picked { job, procs, whole: procs == ads.len() });
            }
        }
        if picked.is_empty() {
            return Err(Failure("no job in the queue matches; see all with: condor_q -allusers".to_owned()));
        }
        Ok(picked)
    }
}
