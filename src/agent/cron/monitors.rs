//! Monitors: cron jobs whose output is measured for each pod. A SUM is added up and told as an average over the time that the pod
//! runs; of a PEAK the greatest sample is told. Pure: times are spans since the agent began.
//!
//! Source: the manual, `STARTD_CRON_<JobName>_METRICS` and "GPU Monitoring"; for the names of attributes, HTCondor's startd. HTCondor
//! counts a job's use from the last sample before the job began, and so counts a part of what ran before it. Here a pod's first
//! sample is where its use begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use classad::{Ad, Env, Expr, Value};

use super::book::is_address;
use crate::pods::{Pod, Uid};
use api::{NodeCronJob, NodeResource, PodDevices};

/// The most ads of a job. Further ones are not measured.
const MAX_ADS: usize = 64;
/// The most attributes that are told of a pod.
const MAX_TOLD: usize = 64;

/// A monitor's ad: the job's name and the ad's tag.
type Key = (String, Option<String>);

/// What monitors have measured.
#[derive(Debug, Default)]
pub(super) struct Monitors {
    ads: BTreeMap<Key, Measured>,
    pods: BTreeMap<Uid, Followed>,
}

/// What a monitor's ad has told so far.
#[derive(Debug, Default)]
struct Measured {
    sums: BTreeMap<String, f64>,
    peaks: BTreeMap<String, f64>,
    /// When the ad was last told.
    at: Duration,
}

/// A pod that runs.
#[derive(Debug, Default)]
struct Followed {
    /// The pod's slot, as far as the agent knows its ad: what a monitor's ad is compared with.
    slot: Ad,
    id: Option<i64>,
    /// Where the pod's use of a SUM begins: by monitor and resource, the sum and the time of the first sample.
    begins: BTreeMap<(Key, String), (f64, Duration)>,
    /// The greatest sample of a PEAK.
    peaks: BTreeMap<(Key, String), f64>,
}

impl Monitors {
    /// Other jobs are asked for. What the others have measured counts no longer.
    pub(super) fn keep(&mut self, jobs: &[NodeCronJob]) {
        let names: BTreeSet<&str> =
            jobs.iter().filter(|job| !job.metrics.is_empty()).map(|job| job.name.as_str()).collect();
        let there = |(name, _): &Key| names.contains(name.as_str());
        self.ads.retain(|key, _| there(key));
        for pod in self.pods.values_mut() {
            pod.begins.retain(|(key, _), _| there(key));
            pod.peaks.retain(|(key, _), _| there(key));
        }
    }

    /// Takes note of which pods run, and of the devices that they have.
    pub(super) fn follow<'a>(
        &mut self,
        running: impl Iterator<Item = &'a Pod>,
        devices: &[PodDevices],
        resources: &[NodeResource],
    ) {
        let mut before = std::mem::take(&mut self.pods);
        for pod in running {
            let followed = before.remove(&pod.uid).unwrap_or_default();
            let own = devices.iter().filter(|found| *found.uid == *pod.uid);
            let (slot, id) = slot_ad(pod, own, resources);
            self.pods.insert(pod.uid.clone(), Followed { slot, id, ..followed });
        }
    }

    /// A monitor tells an ad. Takes the samples from the ad's attributes; what is left are attributes of slots.
    pub(super) fn told(
        &mut self,
        job: &NodeCronJob,
        tag: Option<&String>,
        attributes: &mut BTreeMap<String, String>,
        now: Duration,
    ) {
        let key = (job.name.clone(), tag.cloned());
        let mut samples = Vec::new();
        for metric in &job.metrics {
            let Some((kind, resource)) = metric.split_once(':') else { continue };
            let sums = kind == "SUM";
            samples.extend(
                sample(attributes, &sample_name(sums, resource)).map(|sample| (sums, resource, sample)),
            );
        }
        let of_job = self.ads.keys().filter(|(name, _)| *name == job.name).count();
        if !self.ads.contains_key(&key) && of_job >= MAX_ADS {
            return;
        }
        let goes_to = Address::of(job, attributes);
        let mut pods: Vec<&mut Followed> =
            self.pods.values_mut().filter(|pod| goes_to.reaches(&pod.slot, pod.id)).collect();
        let measured = self.ads.entry(key.clone()).or_default();
        measured.at = now;
        for (sums, resource, sample) in samples {
            let all = if sums { &mut measured.sums } else { &mut measured.peaks };
            let known = all.entry(resource.to_owned()).or_insert(0.0);
            *known = if sums { *known + sample } else { known.max(sample) };
            for pod in &mut pods {
                let name = (key.clone(), resource.to_owned());
                if sums {
                    pod.begins.entry(name).or_insert((*known, now));
                } else {
                    let peak = pod.peaks.entry(name).or_insert(sample);
                    *peak = peak.max(sample);
                }
            }
        }
    }

    /// What is told of a pod, by the name of the attribute: `<Resource>AverageUsage` for a SUM, `<Resource>Usage` for a PEAK, and the
    /// same with `Device` before for what its devices did since the agent began. Of several devices, averages are added up, and the
    /// greatest peak counts.
    pub(super) fn of_pod(&self, uid: &str) -> BTreeMap<String, f64> {
        let mut told = BTreeMap::new();
        let Some(pod) = self.pods.get(uid) else { return told };
        for ((key, resource), (first, since)) in &pod.begins {
            let Some((measured, sum)) = self.ads.get(key).and_then(|ad| Some((ad, ad.sums.get(resource)?)))
            else {
                continue;
            };
            if let Some(average) = average(sum - first, measured.at.saturating_sub(*since)) {
                *told.entry(format!("{resource}AverageUsage")).or_insert(0.0) += average;
            }
            if let Some(average) = average(*sum, measured.at) {
                *told.entry(format!("Device{resource}AverageUsage")).or_insert(0.0) += average;
            }
        }
        for ((key, resource), peak) in &pod.peaks {
            let ever = self.ads.get(key).and_then(|ad| ad.peaks.get(resource)).copied();
            for (name, peak) in [
                (format!("{resource}Usage"), *peak),
                (format!("Device{resource}PeakUsage"), ever.unwrap_or(*peak)),
            ] {
                let known = told.entry(name).or_insert(peak);
                *known = known.max(peak);
            }
        }
        told.into_iter().map(|(name, value)| (name, rounded(value))).take(MAX_TOLD).collect()
    }
}

/// To three digits behind the point: seconds of use are no more exact.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Use a second; none if no time has passed.
fn average(used: f64, span: Duration) -> Option<f64> {
    let average = used / span.as_secs_f64();
    average.is_finite().then_some(average)
}

/// The attribute with the samples of a metric.
fn sample_name(sums: bool, resource: &str) -> String {
    if sums { format!("Uptime{resource}Seconds") } else { format!("Uptime{resource}PeakUsage") }
}

/// Takes a sample from an ad; none if the ad has none, or if the sample is no number of at least 0.
fn sample(attributes: &mut BTreeMap<String, String>, name: &str) -> Option<f64> {
    let known = attributes.keys().find(|known| known.eq_ignore_ascii_case(name))?.clone();
    let expr = Expr::parse(&attributes.remove(&known)?).ok()?;
    let sample = number(&expr.eval(None, None, &Env::at(0)))?;
    Some(sample).filter(|sample| sample.is_finite() && *sample >= 0.0)
}

#[allow(clippy::cast_precision_loss, reason = "a sample of more than 2^53 is rounded")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        _ => None,
    }
}

/// The part of the slot's ad that the agent knows: `Name`, `SlotID`, and `Assigned<Resource>` for the devices that the kubelet has
/// given to the pod.
fn slot_ad<'a>(
    pod: &Pod,
    devices: impl Iterator<Item = &'a PodDevices>,
    resources: &[NodeResource],
) -> (Ad, Option<i64>) {
    let mut ad = Ad::new();
    let id = pod.slot().and_then(slot_id);
    if let Some(name) = pod.slot() {
        ad.set("Name", name);
    }
    if let Some(id) = id {
        ad.set("SlotID", id);
    }
    for found in devices {
        if let Some(known) = resources.iter().find(|known| known.resource == found.resource) {
            ad.set(format!("Assigned{}", known.name), found.ids.join(","));
        }
    }
    (ad, id)
}

/// The number of a slot: 1 for `slot1_3@node7`.
fn slot_id(name: &str) -> Option<i64> {
    let digits = name.split(['@', '_']).next()?.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.parse().ok()
}

/// Into which slots' ads a monitor's ad goes: as for other cron jobs, by the slots of the job and by the first that is there of
/// SlotMergeConstraint, SlotName or Name, SlotTypeId and SlotId. The agent does not know slots' types.
struct Address {
    slots: Vec<u32>,
    own: Ad,
}

impl Address {
    fn of(job: &NodeCronJob, attributes: &BTreeMap<String, String>) -> Self {
        let mut own = Ad::new();
        for (name, text) in attributes {
            if is_address(name)
                && let Ok(expr) = Expr::parse(text)
            {
                own.insert(name.as_str(), expr);
            }
        }
        Self { slots: job.slots.clone(), own }
    }

    fn reaches(&self, slot: &Ad, id: Option<i64>) -> bool {
        let env = Env::at(0);
        if !self.slots.is_empty() && !self.slots.iter().any(|wanted| Some(i64::from(*wanted)) == id) {
            return false;
        }
        if self.own.get("SlotMergeConstraint").is_some() {
            let merges = self.own.eval_attr("SlotMergeConstraint", Some(slot), &env);
            return merges.as_bool_equiv() == Some(true);
        }
        let text = |ad: &Ad, name: &str| ad.eval_attr(name, None, &env).as_str().map(str::to_owned);
        let named = ["SlotName", "Name"].iter().find_map(|name| text(&self.own, name));
        if let (Some(start), Some(name)) = (named.filter(|name| !name.is_empty()), text(slot, "Name")) {
            return name.starts_with(&start);
        }
        if self.own.get("SlotTypeId").is_some() {
            return false;
        }
        match self.own.eval_attr("SlotId", None, &env) {
            Value::Int(wanted) => Some(wanted) == id,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests;
