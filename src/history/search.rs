//! Searches for the ads that a reader wants, and ends when the reader has them all.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek};

use classad::{Ad, Env, Expr, Name};

use crate::banner::Banner;
use crate::records::{Direction, Records, may_look_up};

/// The ads that are searched for, and the limits of the search.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// From which end the history is read.
    pub direction: Direction,
    /// ClusterIds, each with a ProcId if one proc is meant. An ad fits if one of `jobs` or `owners` fits, or if both are empty.
    pub jobs: Vec<(i64, Option<i64>)>,
    /// Owners.
    pub owners: Vec<String>,
    /// Conditions that must all hold.
    pub constraint: Vec<Expr>,
    /// The search ends before the first ad for which this is true.
    pub since: Option<Expr>,
    /// The most ads that are found.
    pub limit: Option<usize>,
    /// The most ads that are looked at.
    pub scan_limit: Option<usize>,
}

/// A search under way.
#[derive(Debug)]
pub struct Searching<'s> {
    search: &'s Search,
    env: Env,
    /// How many ads were looked at.
    pub scanned: usize,
    /// How many ads were found.
    pub found: usize,
    over: bool,
    /// How many procs of each job in `search.jobs` the search has yet to pass; `None` until an ad tells how many procs the job has.
    left: BTreeMap<(i64, Option<i64>), Option<i64>>,
}

impl Search {
    /// The attributes that the search reads; `None` if an expression may look up any attribute.
    pub(crate) fn reads(&self) -> Option<BTreeSet<Name>> {
        let mut names: BTreeSet<Name> =
            ["ClusterId", "ProcId", "Owner", "TotalSubmitProcs"].map(Name::from).into();
        for expr in self.constraint.iter().chain(&self.since) {
            if may_look_up(&expr.to_string()) {
                return None;
            }
            let found = expr.references();
            names.extend(found.my.into_iter().chain(found.bare));
        }
        Some(names)
    }

    /// Begins the search. `now` is the time that expressions see, in seconds since 1970.
    pub fn begin(&self, now: i64) -> Searching<'_> {
        let left = self.jobs.iter().map(|(cluster, proc)| ((*cluster, *proc), proc.map(|_| 1))).collect();
        Searching { search: self, env: Env::at(now), scanned: 0, found: 0, over: false, left }
    }
}

impl Searching<'_> {
    /// Whether no ad is wanted any more.
    pub fn is_over(&self) -> bool {
        let reached = |limit: Option<usize>, count| limit.is_some_and(|limit| count >= limit);
        self.over || reached(self.search.limit, self.found) || reached(self.search.scan_limit, self.scanned)
    }

    /// Whether the ad of this banner has to be read, since the ad may be wanted. Forwards, each ad is read, as by HTCondor's tool:
    /// an ad that is not read does not count as looked at.
    pub fn wants(&self, banner: &Banner) -> bool {
        if !banner.kind.is_empty() && banner.kind != "JOB" {
            return false;
        }
        let search = self.search;
        if search.direction == Direction::Forwards || (search.jobs.is_empty() && search.owners.is_empty()) {
            return true;
        }
        let untold = (banner.cluster.is_none() && !search.jobs.is_empty())
            || (banner.owner.is_none() && !search.owners.is_empty());
        untold
            || search.jobs.iter().any(|(cluster, _)| banner.cluster == Some(*cluster))
            || banner.owner.as_ref().is_some_and(|owner| self.is_owner(owner))
    }

    /// Reads the ads of a file until no more are wanted, and hands the ads that are found to `see`; `None` stands for an ad that
    /// cannot be read.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read<R: Read + Seek>(
        &mut self,
        mut records: Records<R>,
        mut see: impl FnMut(Option<&Ad>),
    ) -> io::Result<()> {
        while !self.is_over() {
            let Some(record) = records.next_record()? else { break };
            if !self.wants(&record.banner) || record.is_empty() {
                continue;
            }
            match record.ad() {
                Ok(ad) if self.look_at(&ad) => see(Some(&ad)),
                Ok(_) => {}
                Err(_) => see(None),
            }
        }
        Ok(())
    }

    fn is_owner(&self, owner: &str) -> bool {
        self.search.owners.iter().any(|wanted| wanted.eq_ignore_ascii_case(owner))
    }

    /// Looks at an ad, and returns whether the ad is one that is searched for.
    pub fn look_at(&mut self, ad: &Ad) -> bool {
        self.scanned += 1;
        let truth = |expr: &Expr| expr.eval(Some(ad), None, &self.env).as_bool_equiv() == Some(true);
        if self.search.since.as_ref().is_some_and(truth) {
            self.over = true;
            return false;
        }
        let number = |name: &str| ad.eval_attr(name, None, &self.env).as_int();
        let (cluster, proc) = (number("ClusterId"), number("ProcId"));
        let is = |(job, own): &(i64, Option<i64>)| cluster == Some(*job) && (own.is_none() || proc == *own);
        let owner = ad.eval_attr("Owner", None, &self.env);
        let named = (self.search.jobs.is_empty() && self.search.owners.is_empty())
            || self.search.jobs.iter().any(is)
            || owner.as_str().is_some_and(|owner| self.is_owner(owner));
        let found = named && self.search.constraint.iter().all(truth);
        self.found += usize::from(found);
        let procs = number("TotalSubmitProcs");
        for (job, left) in &mut self.left {
            if is(job) {
                *left = left.or(procs).map(|left| left - 1);
            }
        }
        // A history has each proc once, so that nothing is left once all procs of the jobs were seen. An owner may have more jobs.
        let all = |left: &Option<i64>| left.is_some_and(|left| left <= 0);
        if self.search.owners.is_empty() && !self.left.is_empty() && self.left.values().all(all) {
            self.over = true;
        }
        found
    }
}
