//! NodeReports: what agents report of their nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;

use super::conditions::Says;
use super::sighting::told;
use super::{Custom, Names, News, Stage, crontab};
use crate::cache::Kind;
use crate::convert::time;
use api::{NodeReport, NodeReportSpec, NodeReportStatus, ReportedSlotAd, condition as types};
use classad::Expr;
use model::pool::{
    Benchmarks, Device, DeviceId, Event, LastInput, MOST_METRICS, Machine, PodUid, ReportFacts, ResourceName,
    Sensed, SlotOutput, Usage,
};
use model::schedd::is_attribute_name;
use model::startd::is_own;

impl Custom for NodeReport {
    type Kept = ();
    const KIND: Kind = Kind::of(&("NodeReport", "nodereports"));
    const STAGE: Stage = Stage::Machines;

    fn keep(_: &Self) {}

    fn there(report: Self, (): &()) -> Vec<News> {
        told(facts(&report).map_or_else(|| Event::ReportGone(report.name_any().into()), Event::Report))
    }

    fn gone(names: &Names, (): ()) -> Vec<News> {
        told(Event::ReportGone(names.name.as_str().into()))
    }
}

/// Reads a report for the pool; `None` if its agent has written nothing yet. Parts that cannot be read are left out,
/// since a program writes reports, and an error in one part must not hide the rest.
pub fn facts(report: &NodeReport) -> Option<ReportFacts> {
    let status = report.status.as_ref()?;
    let working = !status.conditions.iter().any(|c| c.type_ == types::READY && c.status == "False");
    let load = |load: Option<f64>| load.filter(|load| load.is_finite()).map_or(0.0, |load| load.max(0.0));
    let pool_load = load(status.pool_load);
    let amount = |kib: Option<i64>| kib.map(|kib| kib.max(0));
    Some(ReportFacts {
        machine: report.name_any().into(),
        working,
        sensed: sensed(status, (load(status.load) - pool_load).max(0.0)),
        pool_load,
        suspended: status.suspended_pods.iter().map(|uid| uid.as_str().into()).collect(),
        usage: status.usage.iter().map(|usage| (usage.uid.as_str().into(), used(usage))).collect(),
        pod_devices: pod_devices(&status.pod_devices),
        benchmarks: benchmarks(&report.spec, status),
        disk_kib: amount(status.disk_kib),
        virtual_memory_kib: amount(status.virtual_memory_kib),
        devices: status.devices.iter().map(device).collect(),
        attributes: expressions(&status.attributes),
        slot_ads: status.slot_ads.iter().map(slot_output).collect(),
        unread: unread(status),
        cron: report.spec.cron.as_ref().map(crontab::of_spec),
    })
}

/// Reads what the agent senses of the machine's owner; `None` as long as no input is known. The console is also a
/// keyboard: if the report gives only one of the two, that one counts for both.
fn sensed(status: &NodeReportStatus, owner_load: f64) -> Option<Sensed> {
    let inputs = status.last_input.as_ref()?;
    let keyboard = inputs.keyboard.as_ref().or(inputs.console.as_ref())?;
    let console = inputs.console.as_ref().unwrap_or(keyboard);
    Some(Sensed { keyboard: input(keyboard), console: input(console), owner_load })
}

fn input(input: &api::LastInput) -> LastInput {
    match input {
        api::LastInput::Ongoing => LastInput::Ongoing,
        api::LastInput::At(at) => LastInput::At(time(at)),
    }
}

/// The average over all runs. When the operator asks for another run, it writes the average so far beside the request, so
/// that the new average follows from the report alone.
fn benchmarks(spec: &NodeReportSpec, status: &NodeReportStatus) -> Option<Benchmarks> {
    let at = time(status.benchmarked_at.as_ref()?);
    let run = Benchmarks { mips: status.mips?.max(0), kflops: status.kflops?.max(0), at };
    let Some((asked, mips, kflops)) =
        spec.benchmark.as_ref().and_then(|asked| Some((time(asked), spec.mips_so_far?, spec.kflops_so_far?)))
    else {
        return Some(run);
    };
    let so_far = Benchmarks { mips: mips.max(0), kflops: kflops.max(0), at };
    Some(if run.answers(asked) { so_far.with(run) } else { so_far })
}

/// The measurements of monitors, without those whose name or value cannot be an attribute's; [`MOST_METRICS`] at the most.
pub fn metrics(reported: &BTreeMap<String, f64>) -> BTreeMap<Arc<str>, f64> {
    let is_name = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        name.bytes().all(plain) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
    };
    let sound = reported.iter().filter(|(name, value)| is_name(name) && value.is_finite() && **value >= 0.0);
    sound.take(MOST_METRICS).map(|(name, value)| (name.as_str().into(), *value)).collect()
}

fn used(usage: &api::PodUsage) -> Usage {
    let amount = |amount: Option<i64>| amount.filter(|amount| *amount >= 0);
    Usage {
        memory_mib: amount(usage.memory_mib),
        resident_kib: amount(usage.resident_kib),
        disk_kib: amount(usage.disk_kib),
        cpus: usage.cpus.filter(|cpus| cpus.is_finite() && *cpus >= 0.0),
        block_reads: amount(usage.block_reads),
        block_writes: amount(usage.block_writes),
        block_read_kib: amount(usage.block_read_kib),
        block_write_kib: amount(usage.block_write_kib),
        metrics: metrics(&usage.metrics),
    }
}

fn pod_devices(all: &[api::PodDevices]) -> BTreeMap<PodUid, BTreeMap<ResourceName, Vec<DeviceId>>> {
    let mut pods: BTreeMap<PodUid, BTreeMap<ResourceName, Vec<DeviceId>>> = BTreeMap::new();
    for one in all {
        let devices = pods.entry(one.uid.as_str().into()).or_default();
        let ids = one.ids.iter().map(|id| DeviceId::from(id.as_str()));
        devices.entry(one.resource.as_str().into()).or_default().extend(ids);
    }
    pods
}

fn slot_output(ad: &ReportedSlotAd) -> SlotOutput {
    SlotOutput { slots: ad.slots.clone(), attributes: expressions(&ad.attributes) }
}

/// The names of the attributes that are no expressions.
fn unread(status: &NodeReportStatus) -> Vec<Arc<str>> {
    let all = status.attributes.iter().chain(status.slot_ads.iter().flat_map(|ad| &ad.attributes));
    let unread = all.filter(|one| expressions([*one]).is_empty());
    unread.map(|(name, _)| Arc::from(name.as_str())).collect()
}

fn device(device: &api::ReportedDevice) -> Device {
    Device {
        resource: device.resource.as_str().into(),
        id: device.id.as_str().into(),
        properties: expressions(&device.properties),
    }
}

fn expressions<'a>(texts: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<(Arc<str>, Expr)> {
    let expression = |(name, text): (&'a String, &'a String)| {
        let expr = Expr::parse(text).ok().filter(|_| is_attribute_name(name))?;
        Some((Arc::from(name.as_str()), expr))
    };
    texts.into_iter().filter_map(expression).collect()
}

/// The message of the condition of an agent that works. Attributes that its cron jobs cannot set are named.
fn reporting(report: &ReportFacts) -> String {
    let said = report.attributes.iter().chain(report.slot_ads.iter().flat_map(|ad| &ad.attributes));
    let own: BTreeSet<&str> = said.map(|(name, _)| &**name).filter(|name| is_own(name)).collect();
    let unread: BTreeSet<&str> = report.unread.iter().map(|name| &**name).collect();
    let reasons =
        [(own, "slots have such attributes by themselves"), (unread, "what follows = is no expression")];
    let left_out = reasons.into_iter().filter(|(names, _)| !names.is_empty()).map(|(names, why)| {
        let names: Vec<&str> = names.into_iter().collect();
        format!("left out of what it reports: {} ({why})", names.join(", "))
    });
    let parts: Vec<String> =
        ["the agent senses, and suspends pods".to_owned()].into_iter().chain(left_out).collect();
    parts.join("; ")
}

/// The condition `AgentReady`: whether an agent works on a machine, and what differs without an agent.
pub(super) fn agent_ready(machine: &Machine) -> Says<'static> {
    let without = "WANT_SUSPEND counts as False, and idle times and load are undefined";
    let (reason, message) = match &machine.report {
        Some(report) if machine.agent => ("Reporting", reporting(report)),
        None => ("NoAgent", format!("no agent reports of the node: {without}")),
        Some(report) if !report.working => {
            ("AgentNotReady", format!("the agent cannot work (the NodeReport says why): {without}"))
        }
        Some(_) => ("AgentSilent", format!("the agent has not renewed its Lease in time: {without}")),
    };
    Says { type_: types::AGENT_READY, status: Some(machine.agent), reason, message }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use model::pool::Time;

    fn facts(status: Value) -> ReportFacts {
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodeReport",
                            "metadata": {"name": "n1"}, "spec": {}, "status": status});
        super::facts(&serde_json::from_value(object).unwrap()).unwrap()
    }

    #[test]
    fn a_whole_report_is_read() {
        let facts = facts(json!({
            "lastInput": {"keyboard": "ongoing", "console": "2026-01-02T03:04:05Z"},
            "load": 2.5, "poolLoad": 1.5, "mips": 21_000, "kflops": 1_800_000, "benchmarkedAt": "2026-01-01T00:00:00Z",
            "suspendedPods": ["u2", "u1"], "diskKiB": 1024, "virtualMemoryKiB": 2048,
            "podDevices": [{"uid": "u1", "resource": "nvidia.com/gpu", "ids": ["GPU-7", "GPU-9"]}],
            "devices": [{"resource": "nvidia.com/gpu", "id": "GPU-1", "properties": {"Capability": "8.0", "bad name": "1"}}],
            "attributes": {"HasDocker": "true", "Broken": "1 +"},
            "slotAds": [{"slots": [1], "attributes": {"SlotId": "1", "Hot": "true"}}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Sensing", "message": "",
                            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }));
        insta::assert_debug_snapshot!(facts);
    }

    #[test]
    fn nothing_is_sensed_where_no_input_is_known() {
        let quiet = facts(json!({"load": 3.0}));
        assert_eq!((quiet.sensed, quiet.working, quiet.benchmarks), (None, true, None));
        let console =
            facts(json!({"lastInput": {"console": "1970-01-01T00:01:40Z"}, "load": 1.0, "poolLoad": 1.5}));
        let at = LastInput::At(Time::from_secs(100));
        assert_eq!(console.sensed, Some(Sensed { keyboard: at, console: at, owner_load: 0.0 }));
    }

    #[test]
    fn the_average_of_benchmarks_is_told_from_the_report_alone() {
        let of = |spec: Value, at: &str| {
            let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodeReport",
                "metadata": {"name": "n1"}, "spec": spec,
                "status": {"mips": 2000, "kflops": 800, "benchmarkedAt": at}});
            let found = super::facts(&serde_json::from_value(object).unwrap()).unwrap().benchmarks.unwrap();
            (found.mips, found.kflops, found.at.secs())
        };
        let (first, second) = ("1970-01-01T00:01:00Z", "1970-01-01T00:02:00Z");
        assert_eq!(of(json!({}), first), (2000, 800, 60));
        assert_eq!(of(json!({"benchmark": first}), first), (2000, 800, 60), "the first run is the average");
        let asked = json!({"benchmark": second, "mipsSoFar": 1000, "kflopsSoFar": 400});
        assert_eq!(of(asked.clone(), first), (1000, 400, 60), "what is asked for has not run");
        assert_eq!(of(asked, second), (1250, 500, 120));
    }

    #[test]
    fn an_agent_may_say_that_it_cannot_work() {
        let condition = json!({"type": "Ready", "status": "False", "reason": "NoFreezer", "message": "",
                               "lastTransitionTime": "2026-01-01T00:00:00Z"});
        assert!(!facts(json!({"conditions": [condition]})).working);
        let silent = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodeReport",
                            "metadata": {"name": "n1"}, "spec": {}});
        assert_eq!(
            super::facts(&serde_json::from_value(silent).unwrap()),
            None,
            "it has reported nothing yet"
        );
    }
}
