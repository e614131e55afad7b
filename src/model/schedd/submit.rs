//! Makes a job's ad of a submission, or lists everything that is wrong with the submission.

use std::collections::BTreeMap;

use super::demands::{GpuDemands, clauses};
use super::limits;
use super::names::{given_twice, is_attribute_name};
use crate::attributes::instead_of_setting;
use crate::pool::{
    GPUS, GroupName, JobSpec, Needs, Problem, Request, ResourceName, Retention, Time, check_crontab,
    classad_name,
};
use classad::{Ad, Env, Expr, ParseError};

/// The most procs of a job.
pub const MOST_PROCS: u32 = 100_000;

/// The longest job name from which a pod's name and host name can be made: 63 characters, less a dash and five digits.
const LONGEST_NAME: usize = 57;

/// The longest expression of a submission, in bytes. Every evaluation is bounded; this bounds what a job's ad takes of memory.
const LONGEST_EXPRESSION: usize = 16_384;

/// The most attributes that a submission may give.
const MOST_ATTRIBUTES: usize = 256;

/// The longest name of an attribute that a submission may give, in bytes.
const LONGEST_NAME_OF_ATTRIBUTE: usize = 256;

/// A job as it was submitted, whether as an HTCJob or by another way.
#[derive(Clone, Debug, Default)]
pub struct Submission {
    /// The job's name.
    pub name: String,
    /// The job's namespace.
    pub namespace: String,
    /// The user who submitted the job.
    pub owner: String,
    /// The time at which the job was submitted.
    pub submitted: Time,
    /// The number of procs.
    pub count: i64,
    /// The resources that each proc requests.
    pub request: Request,
    /// The properties that the job's GPUs must have.
    pub gpus: GpuDemands,
    /// `Requirements`.
    pub requirements: Option<String>,
    /// `Rank`.
    pub rank: Option<String>,
    /// `JobPrio`.
    pub priority: i32,
    /// The accounting group.
    pub group: Option<String>,
    /// `concurrency_limits`: the concurrency limits that a proc uses, each with its amount.
    pub limits: Vec<String>,
    /// `concurrency_limits_expr`: an expression that gives this list for the machine that is TARGET.
    pub limits_expr: Option<String>,
    /// Further attributes of the job's ad, by name.
    pub attributes: BTreeMap<String, String>,
    /// The image of the main container, as the template names it.
    pub image: Option<String>,
    /// Labels that the node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Which of the job's pods are kept after they have ended.
    pub retention: Retention,
    /// Whether all procs are held.
    pub hold: bool,
}

/// Attributes that the operator sets itself. A submission may not set them in `attributes`, nor those of [`RESERVED`].
const PROTECTED: &[&str] = &[
    "AccountingGroup",
    "AcctGroup",
    "AcctGroupUser",
    "ClusterId",
    "ConcurrencyLimits",
    "JobPrio",
    "JobStatus",
    "MyType",
    "Owner",
    "ProcId",
    "QDate",
    "Rank",
    "Requirements",
    "Submitter",
    "User",
];

/// The beginnings of names of attributes that the operator sets itself. A job says only in `spec.requests` what it
/// requests, so that matches and claims use the same amounts. `_cp_orig_Request<R>` is the request before a consumption
/// policy changed it.
const RESERVED: &[&str] = &["Request", "_cp_"];

/// Whether the operator sets an attribute of this name itself.
pub fn is_protected(name: &str) -> bool {
    let begins = |with: &&str| name.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    PROTECTED.iter().any(|protected| protected.eq_ignore_ascii_case(name)) || RESERVED.iter().any(begins)
}

/// Makes a job of a submission. Requests that the submission does not set are left out;
/// [`JobDefaults::complete`](crate::pool::JobDefaults::complete) adds the pool's defaults.
///
/// # Errors
/// Everything that is wrong with the submission, each problem with the field, the place and the remedy.
pub fn submit(submission: &Submission) -> Result<JobSpec, Vec<Problem>> {
    let mut problems = Vec::new();
    check_name(submission, &mut problems);
    let count = check_counts(submission, &mut problems);
    let mut ad = identity(submission);
    set_requests(&mut ad, &submission.request);
    let requirements = expression("spec.requirements", submission.requirements.as_deref(), &mut problems);
    let rank = expression("spec.rank", submission.rank.as_deref(), &mut problems);
    ad.insert("Rank", rank.unwrap_or_else(|| Expr::literal(0.0)));
    add_attributes(&mut ad, &submission.attributes, &mut problems);
    // Policies may go by the image, so that no attribute of the submission's own may hide it.
    for name in ["ContainerImage", "DockerImage"] {
        ad.remove(name);
    }
    if let Some(image) = &submission.image {
        ad.set("ContainerImage", image.as_str());
    }
    problems.extend(check_crontab(&ad, submission.submitted).err());
    submission.gpus.put_into(&mut ad, &mut problems);
    limits::put_into(&mut ad, submission, &mut problems);
    let needs =
        Needs::new([node_clauses(&submission.node_selector), clauses(&ad, &submission.request)].concat());
    match needs.beside(requirements) {
        Ok(requirements) => ad.insert("Requirements", requirements),
        Err(problem) => problems.push(problem),
    }
    if let Some(group) = &submission.group {
        check_group(group, &mut problems);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let env = Env::at(submission.submitted.secs());
    let priorities = JobSpec::PRIORITIES.map(|name| ad.eval_attr(name, None, &env));
    let mut spec = JobSpec {
        count,
        request: submission.request.clone(),
        ad,
        priorities: JobSpec::priorities(priorities),
        submitter: submission.owner.as_str().into(),
        group: None,
        group_by_policy: false,
        image: None,
        needs,
        retention: submission.retention,
        hold: submission.hold,
    };
    if let Some(group) = &submission.group {
        spec.charge_to(group);
    }
    Ok(spec)
}

fn identity(submission: &Submission) -> Ad {
    let mut ad = Ad::new();
    ad.set("MyType", "Job");
    ad.set("JobUniverse", 5_i64);
    ad.set("JobStatus", 1_i64);
    ad.set("Owner", submission.owner.as_str());
    ad.set("User", submission.owner.as_str());
    ad.set("JobName", submission.name.as_str());
    ad.set("JobNamespace", submission.namespace.as_str());
    ad.set("QDate", submission.submitted.secs());
    ad.set("JobPrio", i64::from(submission.priority));
    ad
}

fn set_requests(ad: &mut Ad, request: &Request) {
    for (unsaid, name, amount) in [
        (request.unsaid.cpus, "RequestCpus", request.cpus),
        (request.unsaid.memory, "RequestMemory", request.memory_mib),
        (request.unsaid.disk, "RequestDisk", request.disk_kib),
    ] {
        if !unsaid {
            ad.set(name, amount);
        }
    }
    if request.gpus > 0 {
        ad.set("RequestGPUs", request.gpus);
    }
    for (name, amount) in request.extended.iter().filter(|(_, amount)| **amount > 0) {
        ad.set(&*format!("Request{}", classad_name(name)), *amount);
    }
}

/// The clauses of Requirements that the template's `nodeSelector` demands.
fn node_clauses(node_selector: &BTreeMap<String, String>) -> Vec<String> {
    let clause = |(key, value): (&String, &String)| {
        format!("TARGET.NodeLabels.'{}' =?= \"{}\"", quoted(key, '\''), quoted(value, '"'))
    };
    node_selector.iter().map(clause).collect()
}

/// The text as it stands between quotes in an expression.
pub(super) fn quoted(text: &str, quote: char) -> String {
    text.chars().flat_map(|c| (c == quote || c == '\\').then_some('\\').into_iter().chain([c])).collect()
}

fn check_name(submission: &Submission, problems: &mut Vec<Problem>) {
    if submission.name.len() > LONGEST_NAME {
        problems.push(Problem {
            reason: "NameTooLong",
            field: "metadata.name".to_owned(),
            message: format!(
                "{} characters are too many, since pods are named after the job; use at most {LONGEST_NAME}",
                submission.name.len()
            ),
        });
    }
}

fn check_counts(submission: &Submission, problems: &mut Vec<Problem>) -> u32 {
    let request = &submission.request;
    let mut demand = |field: &str, amount: i64, least: i64| {
        if amount < least {
            problems.push(Problem {
                reason: "InvalidRequest",
                field: field.to_owned(),
                message: format!("{amount} is too little; ask for at least {least}"),
            });
        }
    };
    demand("spec.count", submission.count, 1);
    for (unsaid, field, amount, least) in [
        (request.unsaid.cpus, "spec.requests.cpus", request.cpus, 1),
        (request.unsaid.memory, "spec.requests.memory", request.memory_mib, 1),
        (request.unsaid.disk, "spec.requests.disk", request.disk_kib, 0),
    ] {
        if !unsaid {
            demand(field, amount, least);
        }
    }
    demand("spec.requests.gpus", request.gpus, 0);
    for (name, amount) in request.extended.iter() {
        demand(&resource_field(name), *amount, 0);
    }
    check_names(request, problems);
    if submission.count > i64::from(MOST_PROCS) {
        problems.push(Problem {
            reason: "InvalidRequest",
            field: "spec.count".to_owned(),
            message: format!(
                "{} procs are too many for one job; submit several jobs of at most {MOST_PROCS}",
                submission.count
            ),
        });
    }
    u32::try_from(submission.count).unwrap_or(0)
}

/// Checks that no two requested resources have the same name in ads: a slot could not tell them apart.
fn check_names(request: &Request, problems: &mut Vec<Problem>) {
    let asked = request.extended.iter().filter(|(_, amount)| **amount > 0).map(|(name, _)| name);
    let mut names = BTreeMap::new();
    for resource in asked {
        let name = classad_name(resource);
        let other =
            names.insert(name.clone(), resource).map(|other| format!("spec.requests.resources[{other}]"));
        let gpus = (name == GPUS && request.gpus > 0).then(|| "spec.requests.gpus".to_owned());
        if let Some(other) = other.or(gpus) {
            problems.push(Problem {
                reason: "InvalidRequest",
                field: resource_field(resource),
                message: format!("ads count it as {name}, like {other}; ask for one of them"),
            });
        }
    }
}

fn resource_field(name: &ResourceName) -> String {
    format!("spec.requests.resources[{name}]")
}

pub(super) fn expression(field: &str, text: Option<&str>, problems: &mut Vec<Problem>) -> Option<Expr> {
    let text = text?;
    if text.len() > LONGEST_EXPRESSION {
        problems.push(Problem {
            reason: "InvalidExpression",
            field: field.to_owned(),
            message: format!(
                "{} bytes are too many for an expression; use at most {LONGEST_EXPRESSION}",
                text.len()
            ),
        });
        return None;
    }
    match Expr::parse(text) {
        Ok(expr) => Some(expr),
        Err(error) => {
            problems.push(bad_expression(field, &error));
            None
        }
    }
}

/// The problem that a text is not an expression, with the place of the error.
pub fn bad_expression(field: &str, error: &ParseError) -> Problem {
    Problem {
        reason: "InvalidExpression",
        field: field.to_owned(),
        message: format!("not a ClassAd expression: {error}; correct it and apply the object again"),
    }
}

fn add_attributes(ad: &mut Ad, attributes: &BTreeMap<String, String>, problems: &mut Vec<Problem>) {
    if attributes.len() > MOST_ATTRIBUTES {
        problems.push(Problem {
            reason: "InvalidAttribute",
            field: "spec.attributes".to_owned(),
            message: format!("{} attributes are too many; give at most {MOST_ATTRIBUTES}", attributes.len()),
        });
        return;
    }
    problems.extend(given_twice(attributes.keys()));
    for (name, text) in attributes {
        let field = format!("spec.attributes[{name}]");
        if name.len() > LONGEST_NAME_OF_ATTRIBUTE {
            problems.push(Problem {
                reason: "InvalidAttribute",
                field: "spec.attributes".to_owned(),
                message: format!(
                    "a name of {} bytes is too long; use at most {LONGEST_NAME_OF_ATTRIBUTE}",
                    name.len()
                ),
            });
        } else if !is_attribute_name(name) {
            problems.push(Problem {
                reason: "InvalidAttribute",
                field,
                message: "not an attribute name; use letters, digits and _, and no digit first".to_owned(),
            });
        } else if is_protected(name) {
            problems.push(Problem {
                reason: "ProtectedAttribute",
                field,
                message: format!("the operator sets this attribute itself; {}", instead_of_setting(name)),
            });
        } else if let Some(expr) = expression(&field, Some(text), problems) {
            ad.insert(name.as_str(), expr);
        }
    }
}

fn check_group(group: &str, problems: &mut Vec<Problem>) {
    if !GroupName::is_valid(group) {
        problems.push(Problem {
            reason: "InvalidGroup",
            field: "spec.accountingGroup".to_owned(),
            message: format!(
                "{group:?} is not a group's name: write letters, digits, _ and -, and a dot before a group inside another, as in \
                 physics.higgs"
            ),
        });
    }
}
