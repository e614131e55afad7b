//! Warns about parts of a job's spec that have no effect, or another effect than they seem to have. The job is accepted
//! all the same.

use api::{HTCJob, labels};
use classad::{Expr, Name};
use k8s_openapi::api::core::v1::{Affinity, Container, PodTemplateSpec};
use model::attributes::meant;
use model::mistakes;
use model::pool::Problem;
use submit::commands::{COMMANDS, Support};

use super::submission::template_of;
use crate::render;

/// The most warnings that a job gets: the first few show the author what is wrong.
const TOLD: usize = 8;

/// Commands of submit files that look like attributes, and of which condor_submit makes `OnExitRemove`. Nothing acts on them here.
const NOT_ACTED_ON: [&str; 3] = ["MaxRetries", "RetryUntil", "SuccessExitCode"];

/// Attributes that are acted on where a submit file is submitted, and nowhere else.
const AT_SUBMISSION: [&str; 5] = ["Err", "Iwd", "Out", "ShouldTransferFiles", "TransferInput"];

/// Attributes that differ from proc to proc. All procs of a job share one ad when they are matched, which has none of these.
const OF_PROCS: [&str; 12] = [
    "DiskUsage",
    "ImageSize",
    "JobRunCount",
    "LastMatchTime",
    "LastRemoteHost",
    "MemoryUsage",
    "NumHolds",
    "NumJobCompletions",
    "NumJobMatches",
    "NumJobStarts",
    "NumShadowStarts",
    "ResidentSetSize",
];

/// The macros of submit files that stand for a proc's number.
const SUBMIT_MACROS: [&str; 6] =
    ["$(Process)", "$(ProcId)", "$(Cluster)", "$(ClusterId)", "$(Step)", "$(Item)"];

/// The least memory in bytes that a job can mean: with less, not even a shell starts.
const LEAST_AMOUNT: i64 = 1 << 20;

/// Returns what the job says in vain, at most [`TOLD`] warnings.
pub fn warnings(job: &HTCJob) -> Vec<Problem> {
    let template = template_of(job).unwrap_or_default();
    let reserved = render::dropped(&template).into_iter().map(|(field, name)| {
        let message =
            format!("{name} is dropped: names that begin with {} are the operator's", labels::PREFIX);
        warning("ReservedName", format!("spec.template.metadata.{field}"), message)
    });
    let all = reserved
        .chain(of_template(job, &template))
        .chain(
            render::doubts(job, &template)
                .into_iter()
                .map(|doubt| warning("UnknownVariable", format!("spec.{}", doubt.field), doubt.message)),
        )
        .chain(to_scheduler(&template))
        .chain(probes(&template))
        .chain(of_attributes(job))
        .chain(of_amounts(job))
        .chain(misspelt(job))
        .chain(of_mistakes(job))
        .chain(of_procs(job))
        .chain(of_limits(job));
    all.take(TOLD).collect()
}

fn warning(reason: &'static str, field: String, message: impl Into<String>) -> Problem {
    Problem { reason, field, message: message.into() }
}

/// Resources of containers that the operator replaces, and macros of submit files in a job without items.
fn of_template(job: &HTCJob, template: &PodTemplateSpec) -> Vec<Problem> {
    let mut found = Vec::new();
    let containers = template.spec.iter().flat_map(|spec| &spec.containers);
    for (index, container) in containers.enumerate() {
        let field = |name: &str| format!("spec.template.spec.containers[{index}].{name}");
        if let Some((list, resource)) = (index == 0).then(|| replaced(container)).flatten() {
            found.push(warning(
                "ReplacedResources",
                field("resources"),
                format!("the {resource} of {list} is replaced: the main container gets what its slot holds; say it in spec.requests"),
            ));
        }
        let texts = container
            .command
            .iter()
            .map(|texts| ("command", texts))
            .chain(container.args.iter().map(|texts| ("args", texts)));
        for (name, texts) in texts {
            let unset = texts.iter().filter(|_| job.spec.items.is_none());
            found.extend(unset.filter_map(|text| submit_macro(text)).map(|known| {
                let message = format!(
                    "{known} is passed on as it is: it stands for a proc's own value only where spec.items is set, if only to {{}}"
                );
                warning("SubmitMacro", field(name), message)
            }));
        }
    }
    found
}

/// Warnings about fields of a template that only the scheduler of Kubernetes reads, which never sees a proc's pod: the
/// negotiator chooses the node.
fn to_scheduler(template: &PodTemplateSpec) -> Vec<Problem> {
    let Some(spec) = &template.spec else { return Vec::new() };
    let affinity = spec.affinity.as_ref();
    let preferred = |affinity: &Affinity| {
        affinity
            .node_affinity
            .as_ref()?
            .preferred_during_scheduling_ignored_during_execution
            .as_ref()
            .map(|_| ())
    };
    let of_pods = "the negotiator chooses the node, and does not look at other pods; leave it out";
    [
        (
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
            affinity.and_then(preferred).is_some(),
            "the negotiator chooses the node; say in spec.rank which nodes are preferred",
        ),
        ("affinity.podAffinity", affinity.is_some_and(|own| own.pod_affinity.is_some()), of_pods),
        ("affinity.podAntiAffinity", affinity.is_some_and(|own| own.pod_anti_affinity.is_some()), of_pods),
        ("topologySpreadConstraints", spec.topology_spread_constraints.is_some(), of_pods),
        ("schedulerName", spec.scheduler_name.is_some(), "the negotiator chooses the node; leave it out"),
    ]
    .into_iter()
    .filter(|(_, said, _)| *said)
    .map(|(field, _, why)| {
        warning("NoScheduler", format!("spec.template.spec.{field}"), format!("has no effect: {why}"))
    })
    .collect()
}

/// Probes that restart a container while its processes are suspended. A pool may have policies that suspend and others, and
/// these change while jobs wait: each such job is warned of.
fn probes(template: &PodTemplateSpec) -> Vec<Problem> {
    let Some(spec) = &template.spec else { return Vec::new() };
    let all = [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())];
    let all = all.into_iter().flat_map(|(list, containers)| {
        containers.into_iter().flatten().enumerate().map(move |(index, container)| (list, index, container))
    });
    let probes = all.flat_map(|(list, index, container)| {
        let probes =
            [("livenessProbe", &container.liveness_probe), ("startupProbe", &container.startup_probe)];
        let probes = probes.into_iter().filter(|(_, probe)| probe.is_some());
        probes.map(move |(name, _)| format!("spec.template.spec.{list}[{index}].{name}"))
    });
    let why = "a suspended proc answers no probe, and the kubelet then restarts the container; leave it out where WANT_SUSPEND may \
               be true";
    probes.map(|field| warning("ProbeWhileSuspended", field, why)).collect()
}

/// A resource that the container asks for itself, and the list in which it stands.
fn replaced(container: &Container) -> Option<(&'static str, &str)> {
    let resources = container.resources.as_ref()?;
    let lists = [("requests", &resources.requests), ("limits", &resources.limits)];
    let counted = |name: &&String| matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
    lists
        .into_iter()
        .find_map(|(list, amounts)| Some((list, amounts.as_ref()?.keys().find(counted)?.as_str())))
}

fn submit_macro(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    SUBMIT_MACROS.into_iter().find(|known| text.contains(&known.to_ascii_lowercase()))
}

fn of_attributes(job: &HTCJob) -> Vec<Problem> {
    let why = |name: &String| {
        if NOT_ACTED_ON.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            let message = "condor_submit turns this command of submit files into OnExitRemove; give OnExitRemove instead";
            return Some(message.to_owned());
        }
        if AT_SUBMISSION.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            let message = "only the submission of a submit file acts on it; put files into a ConfigMap or a volume of the template";
            return Some(message.to_owned());
        }
        let mut commands = COMMANDS.iter().filter(|command| command.attribute.eq_ignore_ascii_case(name));
        match commands.next()?.support {
            Support::Honored(_) => None,
            Support::NoEffect(why) | Support::Refused(why) => Some(why.to_owned()),
        }
    };
    let told = |(name, text): (&String, &String)| {
        let is_off = text.trim().eq_ignore_ascii_case("false");
        let why = why(name).filter(|_| !is_off)?;
        let field = format!("spec.attributes.{name}");
        Some(warning("AttributeNotActedOn", field, format!("nothing acts on it: {why}")))
    };
    job.spec.attributes.iter().filter_map(told).collect()
}

/// Amounts without a unit are bytes in Kubernetes. In HTCondor they are MiB of memory, and KiB of disk.
fn of_amounts(job: &HTCJob) -> impl Iterator<Item = Problem> {
    let requests = &job.spec.requests;
    let amounts = [("memory", &requests.memory, "Mi"), ("disk", &requests.disk, "Ki")];
    amounts.into_iter().filter_map(|(field, amount, unit)| {
        let bytes: i64 = amount.as_ref()?.0.parse().ok()?;
        let message =
            format!("{bytes} without a unit means {bytes} bytes, as Kubernetes counts; write {bytes}{unit}");
        let field = format!("spec.requests.{field}");
        (1..LEAST_AMOUNT).contains(&bytes).then(|| warning("AmountInBytes", field, message))
    })
}

/// Items of the concurrency limits that are several limits, and amounts that are no numbers above 0: the job takes one unit, as in
/// HTCondor.
fn of_limits(job: &HTCJob) -> Vec<Problem> {
    let told = |reason, message| warning(reason, "spec.concurrencyLimits".into(), message);
    let are_several = |limit: &String| {
        let several = limit.split([',', ' ', '\t']).filter(|part| !part.is_empty()).nth(1).is_some();
        several
            .then(|| told("LimitName", format!("'{limit}' is several limits; give each an item of its own")))
    };
    let amount_is_wrong = |limit: &String| {
        let (_, amount) = limit.split_once(':')?;
        let is_right = amount.trim().parse::<f64>().is_ok_and(|amount| amount.is_finite() && amount > 0.0);
        let message = format!("{limit} takes one unit: expected a number above 0 behind the colon");
        (!is_right).then(|| told("LimitAmount", message))
    };
    job.spec
        .concurrency_limits
        .iter()
        .filter_map(|limit| are_several(limit).or_else(|| amount_is_wrong(limit)))
        .collect()
}

/// The expressions by which a job is matched, each with its field.
fn of_matching(job: &HTCJob) -> impl Iterator<Item = (&'static str, Expr)> {
    let texts = [("requirements", &job.spec.requirements), ("rank", &job.spec.rank)];
    texts.into_iter().filter_map(|(field, text)| Some((field, Expr::parse(text.as_ref()?).ok()?)))
}

/// Whether the spec gives the job an attribute of this name.
fn is_own(job: &HTCJob, name: &Name) -> bool {
    job.spec.attributes.keys().any(|own| own.eq_ignore_ascii_case(name.as_str()))
}

/// Attributes in requirements and rank that only procs have.
fn of_procs(job: &HTCJob) -> Vec<Problem> {
    let mut found = Vec::new();
    for (field, expr) in of_matching(job) {
        let references = expr.references();
        let names = references.my.iter().chain(references.bare.iter()).filter(|name| !is_own(job, name));
        let known =
            names.filter(|name| OF_PROCS.iter().any(|known| known.eq_ignore_ascii_case(name.as_str())));
        found.extend(known.map(|name| {
            let message = format!(
                "{} is undefined here: it differs from proc to proc, and all procs of a job are matched as one",
                name.as_str()
            );
            warning("AttributeOfProcs", format!("spec.{field}"), message)
        }));
    }
    found
}

/// Parts of the job's expressions that are error or undefined whatever the ads say.
fn of_mistakes(job: &HTCJob) -> Vec<Problem> {
    let spec = &job.spec;
    let fields = [
        ("requirements", &spec.requirements),
        ("rank", &spec.rank),
        ("concurrencyLimitsExpr", &spec.concurrency_limits_expr),
    ];
    let fields = fields.into_iter().filter_map(|(field, text)| Some((field.to_owned(), text.as_deref()?)));
    let attributes =
        spec.attributes.iter().map(|(name, text)| (format!("attributes[{name}]"), text.as_str()));
    let all =
        fields.chain(attributes).filter_map(|(field, text)| Some((field, text, Expr::parse(text).ok()?)));
    all.flat_map(|(field, text, expr)| {
        let found = mistakes::of(&expr, text).into_iter();
        found
            .map(move |mistake| warning("MistakenExpression", format!("spec.{field}"), mistake))
            .collect::<Vec<_>>()
    })
    .collect()
}

/// Attributes in requirements and rank whose names are almost those of well-known attributes. The job's own attributes count as
/// meant.
fn misspelt(job: &HTCJob) -> Vec<Problem> {
    let mut found = Vec::new();
    for (field, expr) in of_matching(job) {
        let references = expr.references();
        let names = references.target.iter().chain(references.bare.iter().filter(|name| !is_own(job, name)));
        found.extend(names.filter_map(|name| Some((name, meant(name.as_str())?))).map(|(name, meant)| {
            let message = format!(
                "no machine has the attribute {} unless an admin adds it; did you mean {meant}?",
                name.as_str()
            );
            warning("UnlikelyAttribute", format!("spec.{field}"), message)
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(spec: Value) -> Vec<String> {
        let mut spec = spec;
        if spec.get("template").is_none() {
            spec["template"] = json!({"spec": {"containers": [{"name": "main"}]}});
        }
        let job = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "metadata": {"name": "j"}, "spec": spec});
        warnings(&serde_json::from_value(job).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_a_job_says_in_vain_is_told() {
        let main = |more: Value| {
            let mut container = json!({"name": "main"});
            container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"template": {"spec": {"containers": [container]}}})
        };
        for (spec, expected) in [
            (
                main(json!({"resources": {"requests": {"cpu": "2"}}})),
                "spec.template.spec.containers[0].resources: the cpu of requests is replaced: the main container gets what its slot \
                 holds; say it in spec.requests",
            ),
            (
                main(json!({"args": ["--seed", "$(process)"]})),
                "spec.template.spec.containers[0].args: $(Process) is passed on as it is: it stands for a proc's own value \
                 only where spec.items is set, if only to {}",
            ),
            (
                json!({"template": {"spec": {"containers": [{"name": "main"}], "affinity": {"nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": []}}}}}),
                "spec.template.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution: has no effect: the \
                 negotiator chooses the node; say in spec.rank which nodes are preferred",
            ),
            (
                json!({"template": {"spec": {"containers": [{"name": "main"}], "topologySpreadConstraints": []}}}),
                "spec.template.spec.topologySpreadConstraints: has no effect: the negotiator chooses the node, and does not look \
                 at other pods; leave it out",
            ),
            (
                main(json!({"livenessProbe": {"exec": {"command": ["true"]}}})),
                "spec.template.spec.containers[0].livenessProbe: a suspended proc answers no probe, and the kubelet then restarts \
                 the container; leave it out where WANT_SUSPEND may be true",
            ),
            (
                json!({"template": {"spec": {"containers": [{"name": "main", "readinessProbe": {}}], "initContainers": [
                    {"name": "proxy", "restartPolicy": "Always", "startupProbe": {"periodSeconds": 1}}]}}}),
                "spec.template.spec.initContainers[0].startupProbe: a suspended proc answers no probe, and the kubelet then \
                 restarts the container; leave it out where WANT_SUSPEND may be true",
            ),
            (
                json!({"attributes": {"maxRetries": "3", "OnExitRemove": "false", "PeriodicRemove": "true"}}),
                "spec.attributes.maxRetries: nothing acts on it: condor_submit turns this command of submit files into \
                 OnExitRemove; give OnExitRemove instead",
            ),
            (
                json!({"attributes": {"KillSig": "\"SIGUSR1\"", "LeaveJobInQueue": "true", "WantIOProxy": "false", "Mine": "1"}}),
                "spec.attributes.KillSig: nothing acts on it: the image decides which signal ends the program",
            ),
            (
                json!({"requests": {"memory": "500"}}),
                "spec.requests.memory: 500 without a unit means 500 bytes, as Kubernetes counts; write 500Mi",
            ),
            (
                json!({"requirements": "TARGET.Memroy > 100"}),
                "spec.requirements: no machine has the attribute Memroy unless an admin adds it; did you mean Memory?",
            ),
            (
                json!({"requirements": "TARGET.Machine =!= LastRemoteHost"}),
                "spec.requirements: LastRemoteHost is undefined here: it differs from proc to proc, and all procs of a job are matched \
                 as one",
            ),
            (
                json!({"concurrencyLimits": ["matlab", "XSW:2.5", "FOO:x"]}),
                "spec.concurrencyLimits: FOO:x takes one unit: expected a number above 0 behind the colon",
            ),
            (
                json!({"concurrencyLimits": ["a b", "c"]}),
                "spec.concurrencyLimits: 'a b' is several limits; give each an item of its own",
            ),
            (
                json!({"requests": {"disk": "10"}}),
                "spec.requests.disk: 10 without a unit means 10 bytes, as Kubernetes counts; write 10Ki",
            ),
            (
                json!({"rank": "Capabilty"}),
                "spec.rank: no machine has the attribute Capabilty unless an admin adds it; did you mean Capability?",
            ),
        ] {
            assert_eq!(told(spec), [expected]);
        }
    }

    #[test]
    fn a_mistake_in_an_expression_is_told() {
        let spec = json!({
            "requirements": "TARGET.OpSys == \"LINUX\" && isLinx(Machine)",
            "rank": "Name == 'n1'",
            "attributes": {"PeriodicHold": "size()", "Note": "\"isn't 'x'\""},
        });
        assert_eq!(
            told(spec),
            [
                "spec.requirements: calls isLinx(), which is no function: the call is error",
                "spec.rank: has 'n1' in single quotes, which is an attribute; a string has double quotes: \"n1\"",
                "spec.attributes[PeriodicHold]: calls size() with 0 arguments, which size() does not take: the call is error",
            ]
        );
    }

    #[test]
    fn what_is_meant_is_not_told() {
        for spec in [
            json!({"requirements": "TARGET.Memory > 100 && Cpus > 1 && HasRack =?= true"}),
            json!({"requirements": "Disks > 1", "attributes": {"Disks": "2"}}),
            json!({"requirements": "MY.NumJobStarts < 3 && TARGET.MemoryUsage < 5", "attributes": {"NumJobStarts": "0"}}),
            json!({"requests": {"memory": "500Mi"}}),
            json!({"requests": {"memory": "1073741824"}}),
            json!({"template": {"spec": {"containers": [{"name": "main", "args": ["$(HOME)"], "resources": {"limits": {"example.com/x": "1"}}}]}}}),
        ] {
            assert_eq!(told(spec.clone()), Vec::<String>::new(), "{spec}");
        }
    }
}
