//! Specs of procs that differ from the job's: changes that the job's own transforms make when a proc would be held.
//!
//! `TransformOnEvict` names transforms, and `TransformBody_<name>` has the text of each. If a proc would be held, the transforms are
//! applied to the proc's ad. If a transform changes a request, the proc is not held: it is idle again, with the new request. So a
//! proc that went over its memory gets more. condor_submit makes these attributes of `retry_request_memory` and
//! `retry_request_disk`.
//!
//! Anybody may write such a transform. So a transform changes nothing but requests and what condor_submit's transforms keep for
//! themselves ([`CHANGEABLE`]), and the transforms of one proc take about a millisecond at most.
//!
//! Source: `TransformOnEvict` in HTCondor's schedd.cpp.

use std::sync::Arc;

use super::Pool;
use super::event::PodFacts;
use super::ids::{JobUid, SlotName};
use super::job::{Job, JobSpec};
use super::leaving::HoldReason;
use super::ranges::Ranges;
use super::stuck::OUT_OF_MEMORY;
use super::submit_rules::{SubmitRules, Transformed};
use super::time::Time;
use classad::{Ad, Env, Value};
use condor_config::{Host, Source};
use transform::RulesFile;

/// The most different specs that procs of one job have of their own: the job's status records each.
const MOST: usize = 64;
/// The most bytes that the changes of one such spec may have.
const LONGEST: usize = 4096;

/// The beginnings of the names of attributes that a job's own transform may change. Anything else could forge what policies and the owners
/// of machines rely on: who is charged, or which jobs are trusted.
const CHANGEABLE: [&str; 4] = [REQUEST, "RetryRequest", "MaxRequest", "NextRequest"];
/// The beginning of the names of attributes that request a resource.
const REQUEST: &str = "Request";
/// The most transforms that are looked at for a proc.
const LOOKED_AT: usize = 8;
/// The most bytes that the text of a transform may have.
const LONGEST_TEXT: usize = 4096;
/// The steps that one expression of a transform may take, as an expression that acts may.
const STEPS: u32 = 20_000;

fn begins(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// A spec that some procs of a job have instead of the job's.
#[derive(Clone, Debug)]
pub struct OwnSpec {
    changes: Transformed,
    spec: Arc<JobSpec>,
}

impl OwnSpec {
    /// The spec of a job with some changes, as far as a job's own transform may make them; `None` if the operator cannot act on the
    /// changes, or if they are too long to record.
    fn new(of: &JobSpec, mut changes: Transformed, submitted: Time) -> Option<Self> {
        changes.retain(|name| CHANGEABLE.iter().any(|prefix| begins(name, prefix)));
        let mut spec = of.clone();
        changes.put_into(&mut spec, submitted).ok()?;
        (changes.size() <= LONGEST).then(|| Self { changes, spec: Arc::new(spec) })
    }

    /// The spec with its changes.
    pub fn spec(&self) -> &Arc<JobSpec> {
        &self.spec
    }

    /// Puts the changes into the ad of a proc, to which the job's ad is chained.
    pub fn set_in(&self, ad: &mut Ad) {
        for name in self.changes.removed() {
            ad.set(name.as_str(), Value::Undefined);
        }
        for (name, expr) in self.changes.set() {
            ad.insert(name.as_str(), expr.clone());
        }
    }
}

/// The procs of a job that have specs of their own, by spec.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnSpecs(Vec<(Arc<OwnSpec>, Ranges)>);

impl OwnSpecs {
    fn of(&self, proc: u32) -> Option<&Arc<OwnSpec>> {
        self.0.iter().find(|(_, procs)| procs.contains(proc)).map(|(own, _)| own)
    }

    /// Forgets a proc.
    pub(super) fn remove(&mut self, proc: u32) {
        for (_, procs) in &mut self.0 {
            procs.remove(proc);
        }
        self.0.retain(|(_, procs)| !procs.is_empty());
    }

    /// Forgets all procs.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Says the job's number in each ad.
    pub(super) fn number(&mut self, cluster_id: i64) {
        for (own, _) in &mut self.0 {
            Arc::make_mut(&mut Arc::make_mut(own).spec).ad.set("ClusterId", cluster_id);
        }
    }

    /// Whether a proc may have a spec with these changes: another proc has, or there is room for another spec.
    fn has_room(&self, proc: u32, changes: &Transformed) -> bool {
        let only = Ranges::of(proc);
        self.0.len() < MOST
            || self.0.iter().any(|(own, procs)| own.changes.is_recorded_as(changes) || *procs == only)
    }

    /// Gives procs that have the job's spec a spec of their own.
    fn put(&mut self, procs: &Ranges, own: OwnSpec) {
        match self.0.iter_mut().find(|(other, _)| other.changes.is_recorded_as(&own.changes)) {
            Some((_, those)) => {
                for proc in procs.iter() {
                    those.insert(proc);
                }
            }
            None => self.0.push((Arc::new(own), procs.clone())),
        }
    }
}

impl Job {
    /// The spec in force for a proc: the proc's own, or else the job's.
    pub fn spec_of(&self, proc: u32) -> Option<&Arc<JobSpec>> {
        self.own_specs.of(proc).map(|own| &own.spec).or(self.spec.as_ref())
    }

    /// The spec that a proc has of its own.
    pub fn own_spec(&self, proc: u32) -> Option<&Arc<OwnSpec>> {
        self.own_specs.of(proc)
    }

    /// The lowest idle proc with this spec of its own, or with the job's, that may start now.
    pub fn next_idle_with(&self, own: Option<&Arc<OwnSpec>>, now: Time) -> Option<u32> {
        if !self.starts_any(now) {
            return None;
        }
        let Some(own) = own else {
            let others: Vec<&Ranges> = self.own_specs.0.iter().map(|(_, procs)| procs).collect();
            return self.idle.first_outside(&others, now);
        };
        let (_, procs) = self.own_specs.0.iter().find(|(other, _)| Arc::ptr_eq(other, own))?;
        self.idle.first_in(procs, now)
    }

    /// The lowest idle proc of each spec that may start now, with the spec.
    pub fn next_idle_each(&self, now: Time) -> Vec<(u32, &Arc<JobSpec>)> {
        let own = self.own_specs.0.iter().map(|(own, _)| Some(own));
        let next = own.chain([None]).filter_map(|own| {
            let proc = self.next_idle_with(own, now)?;
            Some((proc, own.map(|own| &own.spec).or(self.spec.as_ref())?))
        });
        let mut next: Vec<_> = next.collect();
        next.sort_by_key(|(proc, _)| *proc);
        next
    }

    /// How many idle procs of each spec may start now, less those for which claims already wait: the procs with specs of their own
    /// first.
    pub fn unmatched_each(&self, now: Time) -> Vec<(Option<Arc<OwnSpec>>, u64)> {
        let mut left = self.unmatched(now);
        let mut each = Vec::new();
        for (own, procs) in &self.own_specs.0 {
            let idle = procs.iter().filter(|proc| self.may_try(*proc, now)).count() as u64;
            let count = idle.min(left);
            left -= count;
            each.push((Some(Arc::clone(own)), count));
        }
        each.push((None, left));
        each.retain(|(_, count)| *count > 0);
        each
    }

    /// The changes of the procs that have specs of their own, as the job's status records them.
    pub fn changes_of_procs(&self) -> Vec<(Ranges, Transformed)> {
        self.own_specs.0.iter().map(|(own, procs)| (procs.clone(), own.changes.clone())).collect()
    }

    /// Takes over the changes of procs that an earlier leader recorded.
    pub(super) fn recall_changes(&mut self, changed: Vec<(Ranges, Transformed)>) {
        let Some(spec) = self.spec.clone() else { return };
        for (procs, changes) in changed {
            let mut wanted = Ranges::default();
            let counted = procs.iter().take_while(|proc| *proc < spec.count);
            for proc in counted.filter(|proc| !self.is_done(*proc)) {
                wanted.insert(proc);
            }
            if let Some(own) = OwnSpec::new(&spec, changes, self.submitted).filter(|_| !wanted.is_empty()) {
                self.own_specs.put(&wanted, own);
            }
        }
    }

    /// Applies one transform to a proc, whose ad also has these `facts`. Attributes that policy guards stay as they are. Returns the
    /// requests that the transform changed, each with its new value; `None` if the transform is not for the proc, cannot be carried
    /// out, or leaves what the operator cannot act on.
    fn transform(
        &mut self,
        proc: u32,
        text: &str,
        facts: &Ad,
        policy: Option<&SubmitRules>,
        env: &Env,
    ) -> Option<Vec<String>> {
        let (base, before) = (self.spec.clone()?, self.spec_of(proc)?.ad.clone());
        let rules = rules(text)?;
        let mut seen = before.clone();
        seen.update(facts);
        let applied = rules.apply_once(seen.clone(), env).ok().filter(|applied| !applied.names.is_empty())?;
        let known = self.own_spec(proc).map(|own| own.changes.clone()).unwrap_or_default();
        let mut changes = known.followed_by(&seen, &applied);
        changes.retain(|name| !policy.is_some_and(|policy| policy.guards(name)));
        let own = OwnSpec::new(&base, changes, self.submitted)
            .filter(|own| self.own_specs.has_room(proc, &own.changes))?;
        let after = Arc::clone(&own.spec);
        self.own_specs.remove(proc);
        self.own_specs.put(&Ranges::of(proc), own);
        let text = |ad: &Ad, name: &str| ad.get(name).map(ToString::to_string);
        let requests = after.ad.iter().map(|(name, _)| name.as_str()).filter(|name| begins(name, REQUEST));
        let others = requests.filter(|name| text(&before, name) != text(&after.ad, name));
        Some(others.map(|name| format!("{name} = {}", after.ad.eval_attr(name, None, env))).collect())
    }
}

/// The rules of a transform. As in HTCondor, a record separator is as good as the end of a line. `None` if the text has an error, or is too
/// long.
fn rules(text: &str) -> Option<RulesFile> {
    if text.len() > LONGEST_TEXT {
        return None;
    }
    let mut findings = Vec::new();
    let source = Source::new("TransformBody", text.replace('\x1e', "\n"));
    let rules = RulesFile::read(&source, Host::none(), None, &mut findings);
    findings.iter().all(|finding| finding.severity != condor_config::Severity::Error).then_some(rules)
}

impl Pool {
    /// Applies the job's transforms to a proc that would be held, in order, until one changes a request. Returns the changed requests;
    /// `None` if no transform changed one, so that the proc is held.
    pub(super) fn transform_on_evict(
        &mut self,
        name: &SlotName,
        facts: &PodFacts,
        hold: &HoldReason,
        now: Time,
    ) -> Option<String> {
        let (uid, proc) = (&facts.job, facts.proc);
        let spec = Arc::clone(self.jobs.get(uid)?.spec_of(proc)?);
        let policy = self.submit_config().map(|config| Arc::clone(&config.rules));
        let mut env = Env::at(now.secs());
        env.limits.steps = STEPS;
        let Value::Str(names) = spec.ad.eval_attr("TransformOnEvict", None, &env) else { return None };
        let ad = self.ad_of_evicted(uid, name, facts, hold)?;
        let names = names.split(|letter: char| letter.is_whitespace() || letter == ',');
        for name in names.filter(|name| !name.is_empty()).take(LOOKED_AT) {
            let Value::Str(text) = spec.ad.eval_attr(&format!("TransformBody_{name}"), None, &env) else {
                continue;
            };
            let changed = self.jobs.get_mut(uid)?.transform(proc, &text, &ad, policy.as_deref(), &env);
            let changed = changed.unwrap_or_default();
            if !changed.is_empty() {
                return Some(changed.join(", "));
            }
        }
        None
    }

    /// The facts that transforms may read of a proc that would be held, besides its ad.
    fn ad_of_evicted(
        &self,
        uid: &JobUid,
        name: &SlotName,
        facts: &PodFacts,
        hold: &HoldReason,
    ) -> Option<Ad> {
        let mut ad = Ad::new();
        self.jobs.get(uid)?.history_of(facts.proc).set_in(&mut ad, false);
        ad.set("ProcId", i64::from(facts.proc));
        ad.set("VacateReason", &*hold.reason);
        ad.set("VacateReasonCode", hold.code);
        ad.set("VacateReasonSubCode", hold.subcode);
        let usage = self.reports.get(&name.machine).and_then(|report| report.usage.get(&facts.pod.uid));
        if let Some(usage) = usage {
            usage.set_in(&mut ad);
        }
        // Nobody measured the program, but it was killed when it had used all of its memory.
        if ad.get("MemoryUsage").is_none() && hold.subcode == OUT_OF_MEMORY {
            ad.set("MemoryUsage", self.slots.get(name)?.resources().memory_mib);
        }
        Some(ad)
    }
}
