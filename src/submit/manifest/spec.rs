//! The parts of the spec that all procs of an HTCJob share.

mod requests;

pub(super) use requests::is_of_disk_usage;

use std::collections::BTreeSet;

use classad::{Ad, Value as ClassAdValue};
use serde_json::{Map, Value, json};

use super::complete::SHAPE;
use super::{Loaded, Settings, Wrong, expression, image, keeps_entry_point};
use crate::commands::{COMMANDS, Form, Support};
use crate::file::Cluster;
use crate::job::Program;

/// How the names of attributes begin that are transforms of procs that would be held, or that only these transforms read.
const OF_TRANSFORMS: [&str; 5] =
    ["TransformOnEvict", "TransformBody_", "RetryRequest", "MaxRequest", "NextRequest"];

/// Commands with rules of their own whose attributes an HTCJob keeps in its ad.
const KEPT: &[&str] = &[
    "deferral_prep_time",
    "deferral_time",
    "deferral_window",
    "disk_usage",
    "image_size",
    "kill_sig_timeout",
    "leave_in_queue",
    "max_retries",
    "on_exit_hold",
    "on_exit_hold_reason",
    "on_exit_hold_subcode",
    "on_exit_remove",
    "periodic_hold",
    "periodic_hold_reason",
    "periodic_hold_subcode",
    "periodic_release",
    "periodic_remove",
    "periodic_vacate",
    "project_name",
    "success_exit_code",
];

/// Attributes that the operator sets for each job, whatever the job's submit file says.
pub(super) const SET_BY_OPERATOR: [&str; 7] =
    ["ClusterId", "MyType", "Owner", "ProcId", "QDate", "Submitter", "User"];

/// Attributes that a field of the spec gives.
const FIELDS: &[&str] = &[
    "AccountingGroup",
    "AcctGroup",
    "AcctGroupUser",
    "ConcurrencyLimits",
    "JobPrio",
    "JobStatus",
    "Rank",
    "RemoteIwd",
    "RequireGPUs",
    "Requirements",
    "SubmitEventNotes",
    "SubmitEventUserNotes",
    "UserLog",
    "ContainerTargetDir",
    "DockerPullPolicy",
    "DockerOverrideEntrypoint",
];

/// The spec of the HTCJob that a proc belongs to, without what differs between its procs. Procs with the same value are in one
/// HTCJob.
pub(super) fn shared(cluster: &Cluster, loaded: &Loaded<'_>, settings: &Settings) -> Result<Value, Wrong> {
    let proc = loaded.proc;
    let mut ad = proc.ad.clone();
    ad.chain(Some(cluster.ad.clone()));
    let job = Shared { cluster, program: &proc.program, ad };
    let mut spec = Map::new();
    spec.insert("requests".to_owned(), job.requests()?);
    let requirements = proc.program.requirements.as_ref();
    spec.extend(requirements.map(|text| ("requirements".to_owned(), expression::given_for_job(text).into())));
    spec.extend(job.rank().map(|rank| ("rank".to_owned(), rank.into())));
    let priority = job.integer("priority", "JobPrio")?.unwrap_or(0);
    if priority != 0 {
        spec.insert("priority".to_owned(), priority.into());
    }
    spec.extend(job.group().map(|group| ("accountingGroup".to_owned(), group.into())));
    spec.extend(job.limits());
    if job.ad.get("JobStatus").and_then(classad::Expr::as_literal) == Some(&ClassAdValue::Int(5)) {
        spec.insert("hold".to_owned(), true.into());
    }
    let attributes = job.attributes();
    if !attributes.is_empty() {
        spec.insert("attributes".to_owned(), attributes.into());
    }
    spec.insert("template".to_owned(), job.template(settings, loaded)?);
    Ok(spec.into())
}

struct Shared<'s> {
    cluster: &'s Cluster,
    program: &'s Program,
    ad: Ad,
}

impl Shared<'_> {
    /// Whether the file gives a command, under its name or that of its attribute.
    fn gives(&self, command: &str, attribute: &str) -> bool {
        let own = format!("MY.{attribute}");
        self.cluster.written.iter().any(|written| {
            [command, attribute, own.as_str()].iter().any(|name| written.name.eq_ignore_ascii_case(name))
        })
    }

    /// The accounting group: what HTCondor's negotiator reads, less the user. The user's name may have dots.
    fn group(&self) -> Option<String> {
        let submitter = self.string("AccountingGroup")?;
        let user = self.string("AcctGroupUser").unwrap_or_default();
        if submitter == user {
            return None;
        }
        let known = submitter.strip_suffix(&user).and_then(|start| start.strip_suffix('.'));
        let group = known.filter(|_| !user.is_empty()).or_else(|| Some(submitter.rsplit_once('.')?.0));
        group.map(str::to_owned)
    }

    fn string(&self, attribute: &str) -> Option<String> {
        self.ad.get(attribute)?.as_literal()?.as_str().map(str::to_owned)
    }

    fn rank(&self) -> Option<String> {
        let rank = self.ad.get("Rank")?;
        (rank.as_literal() != Some(&ClassAdValue::Real(0.0))).then(|| expression::for_job(rank))
    }

    fn limits(&self) -> Option<(String, Value)> {
        let limits = self.ad.get("ConcurrencyLimits")?;
        if !self.gives("concurrency_limits_expr", "") {
            let list = limits.as_literal()?.as_str()?;
            let list: Vec<&str> = list.split(',').collect();
            return Some(("concurrencyLimits".to_owned(), list.into()));
        }
        Some(("concurrencyLimitsExpr".to_owned(), expression::for_job(limits).into()))
    }

    /// The attributes that the file gives, but for those that are fields of the spec.
    fn attributes(&self) -> Map<String, Value> {
        let mut names: Vec<&str> = Vec::new();
        for command in COMMANDS {
            let kept = match command.form {
                Form::Special => KEPT.contains(&command.name),
                _ => matches!(command.support, Support::Honored(_)),
            };
            if kept && self.gives(command.name, command.attribute) {
                names.push(command.attribute);
            }
        }
        // These commands make `JobMaxRetries` and `OnExitRemove`, which the submit file need not contain.
        let retries = [
            ("max_retries", "JobMaxRetries"),
            ("success_exit_code", "JobSuccessExitCode"),
            ("retry_until", ""),
        ];
        if retries.iter().any(|(command, attribute)| self.gives(command, attribute)) {
            names.extend(["JobMaxRetries", "OnExitRemove"]);
        }
        // These commands go before others, whose attributes they set.
        for (command, attribute, other) in [
            ("cron_window", "CronWindow", "DeferralWindow"),
            ("cron_prep_time", "CronPrepTime", "DeferralPrepTime"),
        ] {
            if self.gives(command, attribute) {
                names.push(other);
            }
        }
        // retry_request_memory and its kin become transforms.
        let ads = std::iter::successors(Some(&self.ad), |ad| ad.chained());
        names.extend(ads.flat_map(Ad::iter).map(|(name, _)| name.as_str()).filter(|name| {
            OF_TRANSFORMS
                .iter()
                .any(|own| name.get(..own.len()).is_some_and(|start| start.eq_ignore_ascii_case(own)))
        }));
        let own = self.cluster.written.iter().filter_map(|written| {
            let (start, name) = written.name.split_at_checked(3)?;
            start.eq_ignore_ascii_case("MY.").then_some(name)
        });
        names.extend(own);
        let is_field = |name: &str| {
            let requests = name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("Request"));
            requests || SET_BY_OPERATOR.iter().chain(FIELDS).any(|field| field.eq_ignore_ascii_case(name))
        };
        let mut attributes = Map::new();
        // A command and a line with `+` may name one attribute in different case.
        let mut seen = BTreeSet::new();
        for name in names.into_iter().filter(|name| !is_field(name)) {
            if let Some(expr) = self.ad.get(name).filter(|_| seen.insert(name.to_ascii_lowercase())) {
                attributes.insert(name.to_owned(), expression::for_job(expr).into());
            }
        }
        attributes
    }

    /// The pod template without the texts that may differ between procs.
    fn template(&self, settings: &Settings, loaded: &Loaded<'_>) -> Result<Value, Wrong> {
        let mut template =
            settings.template.clone().unwrap_or_else(|| json!({"spec": {"containers": [{"name": "main"}]}}));
        let image = image::of(self.cluster, loaded.proc, settings, &template)?;
        let program = self.program;
        let shape = json!({
            "arguments": program.arguments.len(),
            "environment": program.environment.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            "executable": program.executable.is_some(),
            "files": loaded.cargo.shape(),
            "input": loaded.streams.input.is_empty(),
            "output": loaded.streams.output.is_empty(),
            "error": loaded.streams.error.is_empty(),
            "directory": self.string("ContainerTargetDir"),
            "entry": keeps_entry_point(self.cluster, loaded.proc),
        });
        for (command, text) in texts(program) {
            if text.contains("$$(") {
                let message = format!(
                    "'{text}' has $$(), which stands for an attribute of the machine: that is not put in here; \
                     use _CONDOR_SLOT, or the downward API in a template"
                );
                return Err((command.to_owned(), message));
            }
        }
        let Some(container) = template.pointer_mut("/spec/containers/0").and_then(Value::as_object_mut)
        else {
            return Err(("executable".to_owned(), "the pod template has no container".to_owned()));
        };
        container.insert("image".to_owned(), image.into());
        if let Some(directory) = self.string("RemoteIwd").or_else(|| self.string("ContainerTargetDir")) {
            container.insert("workingDir".to_owned(), directory.into());
        }
        if self.string("DockerPullPolicy").is_some_and(|policy| policy.eq_ignore_ascii_case("always")) {
            container.insert("imagePullPolicy".to_owned(), "Always".into());
        }
        // The shape only keeps procs apart that do not fit into one template.
        container.insert(SHAPE.to_owned(), shape);
        if let (Some(grace), Some(pod)) =
            (self.grace(), template.pointer_mut("/spec").and_then(Value::as_object_mut))
        {
            pod.entry("terminationGracePeriodSeconds").or_insert_with(|| grace.into());
        }
        Ok(template)
    }

    /// The vacating time that the file gives as a number, in seconds: the pod's grace period, which a removal gives the program. As on a
    /// machine, job_max_vacate_time goes before kill_sig_timeout. A grace period of 0 would mean that Kubernetes does not wait for the
    /// program's end.
    fn grace(&self) -> Option<i64> {
        let commands = [("job_max_vacate_time", "JobMaxVacateTime"), ("kill_sig_timeout", "KillSigTimeout")];
        let (_, attribute) =
            commands.into_iter().find(|(command, attribute)| self.gives(command, attribute))?;
        self.ad.get(attribute)?.as_literal()?.as_int().map(|seconds| seconds.max(1))
    }
}

fn texts(program: &Program) -> impl Iterator<Item = (&'static str, &str)> {
    let executable = program.executable.iter().map(|text| ("executable", text.as_str()));
    let arguments = program.arguments.iter().map(|text| ("arguments", text.as_str()));
    let environment = program
        .environment
        .iter()
        .map(|(name, value)| ("environment", value.as_deref().unwrap_or(name.as_str())));
    executable.chain(arguments).chain(environment)
}
