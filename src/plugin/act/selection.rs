//! Which jobs and procs a request means, and in which namespaces they are looked for.

use api::HTCJob;
use classad::Expr;

use super::procs::{self, JobProcs};
use super::{Error, Request};
use crate::cluster::{self, Cluster};

/// The procs to act on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Procs: ClusterId and ProcId.
    pub procs: Vec<(i64, u32)>,
    /// Jobs by ClusterId.
    pub clusters: Vec<i64>,
    /// Jobs by the names of their objects.
    pub names: Vec<String>,
    /// All jobs of these owners.
    pub users: Vec<String>,
    /// A condition on procs that are selected by anything but their numbers.
    pub constraint: Option<Expr>,
    /// All jobs.
    pub all: bool,
    /// Only procs that are held.
    pub held: bool,
}

/// Returns the jobs of the namespace. If the request names a number that is not among them, or owners in all namespaces, also returns the
/// meant jobs of other namespaces, if the user may list all namespaces.
pub(super) async fn jobs(
    cluster: &Cluster,
    namespace: &str,
    request: &Request,
) -> Result<Vec<HTCJob>, cluster::Error> {
    let own: Vec<HTCJob> = cluster.list(Some(namespace)).await?;
    if !request.looks_elsewhere(&own) {
        return Ok(own);
    }
    match cluster.list_all::<HTCJob>().await {
        Ok(mut all) => {
            all.retain(|job| {
                job.metadata.namespace.as_deref() == Some(namespace) || request.means_elsewhere(job)
            });
            Ok(all)
        }
        // If the user may not list all namespaces, jobs of other namespaces count as not found.
        Err(cluster::Error::Forbidden { .. }) => Ok(own),
        Err(error) => Err(error),
    }
}

/// The request with each word of `kubectl slotwright` as what the word means: the names of objects may be numbers.
///
/// # Errors
/// When a word means no job, or two.
pub(super) fn resolved(request: &Request, namespace: &str, found: &[JobProcs]) -> Result<Request, Error> {
    let mut resolved = request.clone();
    if !request.is_kubectls() {
        return Ok(resolved);
    }
    let with_name = |name: &str| found.iter().find(|job| job.namespace == namespace && job.name == name);
    let none = |wanted: String| Error::NoSuchJob { wanted, namespace: namespace.to_owned() };
    if let Some(name) = request.selection.names.iter().find(|name| with_name(name).is_none()) {
        return Err(none(name.clone()));
    }
    resolved.selection.clusters.clear();
    for number in &request.selection.clusters {
        let numbered = found.iter().find(|job| job.cluster == *number);
        match (numbered, with_name(&number.to_string())) {
            (None, None) => return Err(none(number.to_string())),
            (None, Some(named)) => resolved.selection.names.push(named.name.clone()),
            (Some(numbered), Some(named)) if named.cluster != *number => {
                return Err(Error::TwoJobs {
                    word: *number,
                    numbered: numbered.place(),
                    named: named.place(),
                    number: named.cluster,
                });
            }
            (Some(_), _) => resolved.selection.clusters.push(*number),
        }
    }
    Ok(resolved)
}

impl Request {
    /// Whether `kubectl slotwright` asks, whose words may be names of objects. The words of HTCondor's own tools are numbers and owners.
    pub(super) const fn is_kubectls(&self) -> bool {
        !self.owners_everywhere
    }

    /// The selection in the words of HTCondor's tools. `kubectl slotwright` also names a job of another namespace than `namespace`.
    pub(super) fn told(&self, namespace: &str, found: &[JobProcs]) -> String {
        let told = self.selection.told();
        let elsewhere = |job: &&JobProcs| {
            let numbers = self.selection.clusters.as_slice();
            self.is_kubectls() && numbers == [job.cluster] && job.namespace != namespace
        };
        found.iter().find(elsewhere).map_or_else(|| told.clone(), |job| format!("{told} ({})", job.place()))
    }

    fn numbers(&self) -> impl Iterator<Item = i64> {
        let selection = &self.selection;
        selection.procs.iter().map(|(number, _)| *number).chain(selection.clusters.iter().copied())
    }

    /// Whether jobs of other namespaces may be meant than those of the namespace, which are given.
    fn looks_elsewhere(&self, own: &[HTCJob]) -> bool {
        let is_there = |number| own.iter().any(|job| number_of(job) == Some(number));
        self.owners_everywhere && !self.selection.users.is_empty() || !self.numbers().all(is_there)
    }

    /// Whether a job of another namespace is meant: by its number, or by its owner.
    fn means_elsewhere(&self, job: &HTCJob) -> bool {
        let by_owner = || {
            let owner = procs::owner(job);
            self.selection.users.iter().any(|user| user.eq_ignore_ascii_case(&owner))
        };
        number_of(job).is_some_and(|id| self.numbers().any(|number| number == id))
            || self.owners_everywhere && by_owner()
    }
}

fn number_of(job: &HTCJob) -> Option<i64> {
    job.status.as_ref().and_then(|status| status.cluster_id)
}

impl Selection {
    /// Adds a job or a proc by its number. Returns whether the word is such a number.
    pub(super) fn add(&mut self, word: &str) -> bool {
        match tools::job_id(word) {
            Some((cluster, None)) => self.clusters.push(cluster),
            Some((cluster, Some(proc))) => match u32::try_from(proc) {
                Ok(proc) => self.procs.push((cluster, proc)),
                Err(_) => return false,
            },
            None => return false,
        }
        true
    }

    /// Whether procs are named beside a constraint, which HTCondor's tools then warn of. With `-held`, they make one
    /// constraint of all.
    pub(super) fn ignores_constraint(&self) -> bool {
        !self.procs.is_empty() && self.constraint.is_some() && !self.held
    }

    pub(super) fn is_by_constraint(&self) -> bool {
        self.all
            || self.constraint.is_some()
            || !self.clusters.is_empty()
            || !self.names.is_empty()
            || !self.users.is_empty()
            || (self.held && self.procs.is_empty())
    }

    /// Whether the selection means this job, apart from its constraint.
    pub(super) fn means(&self, found: &JobProcs) -> bool {
        let named = !self.clusters.is_empty() || !self.users.is_empty() || !self.names.is_empty();
        !named
            || self.clusters.contains(&found.cluster)
            || self.users.iter().any(|user| user.eq_ignore_ascii_case(&found.owner))
            || self.names.contains(&found.name)
    }

    /// The selection in the words of HTCondor's tools.
    pub(super) fn told(&self) -> String {
        match (self.clusters.as_slice(), self.users.as_slice(), self.names.as_slice(), &self.constraint) {
            ([], [], [], None) => String::new(),
            ([cluster], [], [], None) => format!(" in cluster {cluster}"),
            ([], [user], [], None) => format!(" of user \"{user}\""),
            ([], [], [name], None) => format!(" of {name}"),
            _ => format!(" matching constraint ({})", self.as_constraint()),
        }
    }

    /// The selection as one expression, as HTCondor's tools put it together.
    fn as_constraint(&self) -> String {
        let clusters = self.clusters.iter().map(|cluster| format!("ClusterId == {cluster}"));
        let users = self.users.iter().map(|user| format!("Owner == \"{user}\""));
        let names = self.names.iter().map(|name| format!("JobName == \"{name}\""));
        let all: Vec<String> = clusters.chain(users).chain(names).collect();
        match (&self.constraint, all.join(" || ")) {
            (Some(constraint), any) if any.is_empty() => constraint.to_string(),
            (Some(constraint), any) => format!("({constraint}) && ({any})"),
            (None, any) => any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Asked, Verb, parse};
    use super::*;

    #[test]
    fn jobs_of_other_namespaces_are_meant_by_number_or_owner() {
        let job = |namespace: &str, number: i64| -> HTCJob {
            serde_json::from_value(serde_json::json!({
                "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
                "metadata": {"name": "sim", "namespace": namespace, "uid": "u"},
                "spec": {"template": {}}, "status": {"clusterId": number},
            }))
            .unwrap()
        };
        let asked = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            match parse(Verb::Remove, &words) {
                Ok(Asked::Act(request, ..)) => *request,
                other => panic!("{other:?}"),
            }
        };
        let own = [job("ada", 5)];
        for (words, looks, sixth, seventh) in [
            (&["5"] as &[&str], false, false, false),
            (&["5.0", "6"], true, true, false),
            (&["Team"], true, true, true),
            (&["5", "bob"], true, false, false),
            (&["-constraint", "true"], false, false, false),
        ] {
            let request = asked(words);
            assert_eq!(request.looks_elsewhere(&own), looks, "{words:?}");
            assert_eq!(request.means_elsewhere(&job("team", 6)), sixth, "{words:?}");
            assert_eq!(request.means_elsewhere(&job("team", 7)), seventh, "{words:?}");
        }
        let here = Request { owners_everywhere: false, ..asked(&["team"]) };
        assert!(!here.looks_elsewhere(&own) && !here.means_elsewhere(&job("team", 6)));
    }

    #[test]
    fn selections_are_told_as_htcondor_s_tools_tell_them() {
        let selection = |edit: fn(&mut Selection)| {
            let mut selection = Selection::default();
            edit(&mut selection);
            selection.told()
        };
        assert_eq!(selection(|s| s.all = true), "");
        let constraint = Expr::parse("true").ok();
        let both = Selection { procs: vec![(12, 3)], constraint, ..Selection::default() };
        assert!(both.ignores_constraint() && !Selection { held: true, ..both.clone() }.ignores_constraint());
        assert!(!Selection { procs: Vec::new(), ..both }.ignores_constraint());
        assert_eq!(selection(|s| s.clusters = vec![7]), " in cluster 7");
        assert_eq!(selection(|s| s.users = vec!["bob".into()]), " of user \"bob\"");
        let two = " matching constraint (ClusterId == 7 || ClusterId == 8)";
        assert_eq!(selection(|s| s.clusters = vec![7, 8]), two);
        let expr = " matching constraint (JobPrio < 0)";
        assert_eq!(selection(|s| s.constraint = Expr::parse("JobPrio < 0").ok()), expr);
    }
}
