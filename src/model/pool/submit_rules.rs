//! The policy's changes to a job at its submission: job transforms and submit requirements.
//!
//! A job's spec stays as its user wrote the spec. The transforms change the job's ad, and what an attribute stands for follows:
//! requests, accounting group, requirements, priorities, image. [`Transformed`] is what the transforms changed. The job's status
//! records the changes, so that the job keeps them, whatever becomes of the policy, until its spec is edited.
//!
//! Source: the manual, "Job Transforms" and "Submit Requirements".

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ids::GroupName;
use super::job::{JobSpec, Problem};
use super::resources::classad_name;
use super::secure_attributes::SecureAttributes;
use super::time::Time;
use classad::{Ad, Env, Expr, Maps, Value};
use condor_config::{Config, Diagnostic};
use transform::{Applied, Requirements, Transforms, Unmet};

/// Attributes that say who submitted which job. No transform changes them.
const IDENTITY: [&str; 8] =
    ["ClusterId", "JobName", "JobNamespace", "JobStatus", "MyType", "Owner", "ProcId", "QDate"];

/// Attributes that say which accounting group is charged.
const GROUP: [&str; 2] = ["AcctGroup", "AccountingGroup"];

/// Attributes that name the image of the job's container; the first that a transform sets counts.
const IMAGE: [&str; 2] = ["ContainerImage", "DockerImage"];

/// The largest amount that a transform may request, as in `JobDefaults`.
const MOST: f64 = 1e15;

/// The transforms, requirements and user maps of a `SubmitPolicy`.
#[derive(Debug)]
pub struct SubmitRules {
    text: String,
    transforms: Transforms,
    requirements: Requirements,
    immutable: Vec<String>,
    secure: SecureAttributes,
    superusers: Vec<String>,
    maps: Maps,
}

/// Two sets of rules are equal if they were read from the same text.
impl PartialEq for SubmitRules {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The changes that the transforms of a policy made in a job's ad.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transformed {
    /// The transforms that were for the job, in the order in which they were applied.
    pub names: Vec<String>,
    /// Attributes that the transforms wrote, with their expressions.
    set: Vec<(String, Expr)>,
    /// Attributes that the policy took out of the job's ad.
    removed: Vec<String>,
}

impl SubmitRules {
    /// The rules of a configuration text, which is read for the schedd. `maps` are what `userMap()` reads.
    pub fn new(text: &str, config: &Arc<Config>, maps: Maps, findings: &mut Vec<Diagnostic>) -> Self {
        let lists = ["IMMUTABLE_JOB_ATTRS", "PROTECTED_JOB_ATTRS"];
        // Nobody is a superuser unless the text says so: HTCondor's default names root and condor, which are accounts
        // of a machine, while here anybody might have such a name.
        let superusers = config.definition("QUEUE_SUPER_USERS");
        let superusers = superusers.and_then(|_| config.list("QUEUE_SUPER_USERS").ok()).unwrap_or_default();
        Self {
            text: text.to_owned(),
            transforms: Transforms::of(Arc::clone(config), findings),
            requirements: Requirements::of(config, findings),
            immutable: lists.iter().flat_map(|list| config.list(list).unwrap_or_default()).collect(),
            secure: SecureAttributes::of(config),
            superusers,
            maps,
        }
    }

    /// Whether an owner may edit everybody's jobs: `QUEUE_SUPER_USERS`.
    pub fn is_superuser(&self, owner: &str) -> bool {
        self.superusers.iter().any(|name| name == owner)
    }

    /// Whether the policy lets nobody change this attribute of an accepted job, or lets nobody but its own transforms set the attribute.
    pub(super) fn guards(&self, name: &str) -> bool {
        self.immutable.iter().any(|own| own.eq_ignore_ascii_case(name)) || self.secure.has(name)
    }

    /// The user maps of the text.
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// The attributes that an edit changes although the policy says that no edit changes them: `IMMUTABLE_JOB_ATTRS`, and
    /// `PROTECTED_JOB_ATTRS`, since the operator does not know who edits an object. `before` is the spec that was
    /// accepted, with the changes by the policy's transforms, which `transformed` lists. `after` is the edited spec
    /// before any transform, so that attributes in `transformed` are not compared.
    pub fn forbidden_edits(
        &self,
        before: &JobSpec,
        transformed: &Transformed,
        after: &JobSpec,
    ) -> Vec<Problem> {
        let text = |spec: &JobSpec, name: &str| spec.ad.get(name).map(ToString::to_string);
        let own = self.immutable.iter().filter(|name| !transformed.changes(name));
        let changed = own.filter(|name| {
            let old = text(before, name);
            old.is_some() && old != text(after, name)
        });
        changed
            .map(|name| Problem {
                reason: "ImmutableAttribute",
                field: format!("spec.attributes[{name}]"),
                message: "the SubmitPolicy lets nobody change this attribute once it is set; set it back, or submit another job"
                    .to_owned(),
            })
            .collect()
    }

    /// Takes the attributes that only transforms set out of the ad of a submitted job, applies the transforms, and checks the
    /// requirements. Returns what policy changed, and the warnings for the job's author.
    ///
    /// # Errors
    /// An attribute that only transforms set, if the policy refuses such jobs; a transform that cannot be carried out; a change
    /// that the operator cannot act on; a requirement that the job does not meet.
    pub fn submit(
        &self,
        spec: &mut JobSpec,
        submitted: Time,
    ) -> Result<(Transformed, Vec<Problem>), Vec<Problem>> {
        if self.transforms.is_empty() && self.requirements.is_empty() && !self.secure.are_in(&spec.ad) {
            return Ok(<(Transformed, Vec<Problem>)>::default());
        }
        let env = Env { maps: self.maps.clone(), ..env_of(submitted) };
        let before = spec.ad.clone();
        let mut own = before.clone();
        let ignored = self.secure.take_from(&mut own)?;
        let applied = self.transforms.apply(own, &env).map_err(|error| {
            vec![Problem {
                reason: "TransformFailed",
                field: String::new(),
                message: format!(
                    "the SubmitPolicy cannot transform the job: {error}; ask an admin to mend it"
                ),
            }]
        })?;
        // Attributes that the author set in vain are among the attributes that the policy took away: the job's status
        // records them.
        let (transformed, mut warnings) = Transformed::between(&before, &applied);
        warnings.extend(ignored);
        transformed.put_into(spec, submitted)?;
        let schedd =
            Ad::new().with("MyType", "Scheduler").with("Name", before.eval_attr("JobNamespace", None, &env));
        let verdict = self.requirements.check(&schedd, &spec.ad, &env);
        if let Some(unmet) = verdict.refused {
            return Err(vec![said("SubmitRequirement", unmet)]);
        }
        warnings.extend(verdict.warnings.into_iter().map(|unmet| said("SubmitWarning", unmet)));
        Ok((transformed, warnings))
    }
}

/// Whether an attribute says who submitted which job.
pub(super) fn is_identity(name: &str) -> bool {
    IDENTITY.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// The problem of a job that does not meet a requirement.
fn said(reason: &'static str, unmet: Unmet) -> Problem {
    Problem { reason, field: String::new(), message: format!("{} ({})", unmet.reason, unmet.name) }
}

fn env_of(submitted: Time) -> Env {
    Env::at(submitted.secs())
}

impl Transformed {
    /// The changes between two ads, with warnings about those that are left out.
    fn between(before: &Ad, applied: &Applied) -> (Self, Vec<Problem>) {
        let Applied { ad: after, names, written, .. } = applied;
        let other =
            |name: &str, expr: &Expr| before.get(name).is_none_or(|old| old.to_string() != expr.to_string());
        let set: Vec<(String, Expr)> = after
            .iter()
            .filter(|(name, expr)| other(name.as_str(), expr) || written.contains(*name))
            .map(|(name, expr)| (name.as_str().to_owned(), expr.clone()))
            .collect();
        let gone = before.iter().map(|(name, _)| name.as_str()).filter(|name| !after.contains(name));
        let (kept, removed): (Vec<String>, Vec<String>) =
            gone.map(str::to_owned).partition(|name| is_identity(name));
        let (refused, set): (Vec<_>, Vec<_>) = set.into_iter().partition(|(name, _)| is_identity(name));
        let refused = refused.into_iter().map(|(name, _)| name).chain(kept);
        let by = names.join(", ");
        let warnings = refused.map(|name| Problem {
            reason: "TransformIgnored",
            field: String::new(),
            message: format!(
                "a transform ({by}) changes {name}, which no policy can change: the job keeps it"
            ),
        });
        let warnings = warnings.collect();
        (Self { names: names.clone(), set, removed }, warnings)
    }

    /// Returns these changes, followed by the changes that further transforms made. `before` is the ad that the further
    /// transforms were given, and `applied` is their result.
    pub(super) fn followed_by(self, before: &Ad, applied: &Applied) -> Self {
        let (next, _) = Self::between(before, applied);
        let (names, mut set, mut removed) = (self.names, self.set, self.removed);
        set.retain(|(name, _)| !next.changes(name));
        removed.retain(|name| !next.changes(name));
        set.extend(next.set);
        removed.extend(next.removed);
        set.sort_by(|(one, _), (other, _)| one.cmp(other));
        removed.sort();
        Self { names, set, removed }
    }

    /// Leaves out the changes of the attributes for which `keep` is false.
    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.set.retain(|(name, _)| keep(name));
        self.removed.retain(|name| keep(name));
    }

    /// How many bytes a record of the changes takes.
    pub(super) fn size(&self) -> usize {
        let set = self.attributes().iter().map(|(name, text)| name.len() + text.len()).sum::<usize>();
        set + self.removed.iter().map(String::len).sum::<usize>()
    }

    /// Whether the transforms changed nothing.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.set.is_empty() && self.removed.is_empty()
    }

    /// Makes the changes in a job, with what follows from them.
    ///
    /// # Errors
    /// Changes that the operator cannot act on.
    pub fn put_into(&self, spec: &mut JobSpec, submitted: Time) -> Result<(), Vec<Problem>> {
        for name in &self.removed {
            spec.ad.remove(name);
        }
        for (name, expr) in &self.set {
            spec.ad.insert(name.as_str(), expr.clone());
        }
        let mut problems = Vec::new();
        let env = env_of(submitted);
        if GROUP.iter().any(|name| self.changes(name)) {
            charge(spec, &env, &mut problems);
        }
        self.set_requests(spec, &env, &mut problems);
        if self.changes("Requirements") {
            let own = spec.ad.get("Requirements").cloned();
            match spec.needs.beside(own) {
                Ok(requirements) => spec.ad.insert("Requirements", requirements),
                Err(problem) => problems.push(problem),
            }
        }
        spec.priorities =
            JobSpec::priorities(JobSpec::PRIORITIES.map(|name| spec.ad.eval_attr(name, None, &env)));
        if let Some(name) = IMAGE.into_iter().find(|name| self.sets(name)) {
            match spec.ad.eval_attr(name, None, &env) {
                Value::Str(image) => spec.image = Some(image.trim_start_matches("docker://").into()),
                value => problems.push(unusable(name, &value, "is no image's name")),
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn set_requests(&self, spec: &mut JobSpec, env: &Env, problems: &mut Vec<Problem>) {
        let request = &mut spec.request;
        let rows = [
            ("RequestCpus".to_owned(), 1.0, &mut request.cpus),
            ("RequestMemory".to_owned(), 1.0, &mut request.memory_mib),
            ("RequestDisk".to_owned(), 0.0, &mut request.disk_kib),
            ("RequestGPUs".to_owned(), 0.0, &mut request.gpus),
        ];
        let others = request
            .extended
            .iter_mut()
            .map(|(name, amount)| (format!("Request{}", classad_name(name)), 0.0, amount));
        for (name, least, amount) in rows.into_iter().chain(others) {
            if !self.changes(&name) {
                continue;
            }
            let value = spec.ad.eval_attr(&name, None, env);
            match value.as_number().map(f64::ceil).filter(|found| (least..=MOST).contains(found)) {
                #[allow(clippy::cast_possible_truncation, reason = "it is whole and far below 2^53")]
                Some(found) => *amount = found as i64,
                None => problems.push(unusable(&name, &value, &format!("is no amount of at least {least}"))),
            }
        }
    }

    fn sets(&self, name: &str) -> bool {
        self.set.iter().any(|(set, _)| set.eq_ignore_ascii_case(name))
    }

    fn changes(&self, name: &str) -> bool {
        self.sets(name) || self.removed.iter().any(|removed| removed.eq_ignore_ascii_case(name))
    }

    /// The attributes that were set, each with its expression as text, in the form in which the job's status records them.
    pub fn attributes(&self) -> BTreeMap<String, String> {
        self.set.iter().map(|(name, expr)| (name.clone(), expr.to_string())).collect()
    }

    /// The attributes that were set, each with its expression.
    pub(super) fn set(&self) -> &[(String, Expr)] {
        &self.set
    }

    /// The attributes that are no more there.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Whether a record that was read is the record of these changes. The texts are compared: the order of attributes, and how an
    /// expression was put together, are not in a record.
    pub fn is_recorded_as(&self, record: &Self) -> bool {
        (&self.names, &self.removed) == (&record.names, &record.removed)
            && self.attributes() == record.attributes()
    }

    /// Reads a record. `None` if one of the attributes is no expression.
    pub fn recall(
        names: Vec<String>,
        attributes: &BTreeMap<String, String>,
        removed: Vec<String>,
    ) -> Option<Self> {
        let read = |(name, text): (&String, &String)| Some((name.clone(), Expr::parse(text).ok()?));
        Some(Self { names, set: attributes.iter().map(read).collect::<Option<_>>()?, removed })
    }
}

fn unusable(name: &str, value: &Value, why: &str) -> Problem {
    Problem {
        reason: "TransformFailed",
        field: String::new(),
        message: format!(
            "the SubmitPolicy's transforms make {name} {value}, which {why}; ask an admin to mend them"
        ),
    }
}

/// Charges a job to the group that its ad names now, or to none. The owner stays who submitted the job: of
/// `AccountingGroup = "physics.alice"` only `physics` counts.
fn charge(spec: &mut JobSpec, env: &Env, problems: &mut Vec<Problem>) {
    let text = |name: &str| match spec.ad.eval_attr(name, None, env) {
        Value::Str(text) if !text.is_empty() => Some(text.to_string()),
        _ => None,
    };
    let owner = spec.owner();
    let submitter = text("AccountingGroup").filter(|submitter| *submitter != owner);
    let of_submitter = submitter.and_then(|submitter| Some(submitter.rsplit_once('.')?.0.to_owned()));
    let group = text("AcctGroup").or(of_submitter);
    for name in ["AcctGroup", "AcctGroupUser", "AccountingGroup"] {
        spec.ad.remove(name);
    }
    spec.ad.set("User", owner.as_str());
    (spec.submitter, spec.group) = (owner.as_str().into(), None);
    let Some(group) = group else { return };
    if GroupName::is_valid(&group) {
        spec.charge_to(&group);
        spec.group_by_policy = true;
    } else {
        problems.push(unusable("AcctGroup", &Value::from(group.as_str()), "is no group's name"));
    }
}

/// The rules of a policy that has none.
impl Default for SubmitRules {
    fn default() -> Self {
        let reading = condor_config::Reader::new(condor_config::Host::none()).subsystem("SCHEDD").read(&[]);
        Self::new("", &Arc::new(reading.config), Maps::default(), &mut Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job whose record is not recognized would never start.
    #[test]
    fn a_record_is_recognized_whatever_the_case_and_shape_of_what_was_set() {
        let set =
            [("beta", "(1 + (2))"), ("Alpha", "1.5E3 =?= TARGET.x"), ("zeta", "{ 1,\"a\" }"), ("Eta", "-1")];
        let set = set.map(|(name, text)| (name.to_owned(), Expr::parse(text).unwrap())).to_vec();
        let made = Transformed { names: vec!["T".into()], set, removed: vec!["Gone".into()] };
        let read = Transformed::recall(made.names.clone(), &made.attributes(), made.removed.clone()).unwrap();
        assert!(made.is_recorded_as(&read));
        let other = Transformed { removed: Vec::new(), ..read };
        assert!(!made.is_recorded_as(&other));
    }
}
