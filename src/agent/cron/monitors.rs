//! Monitors: cron jobs whose output is measured for each pod. A SUM is added up and told as an average over the time that the pod
//! runs; of a PEAK the greatest sample is told. Pure: times are spans since the agent began.
//!
//! Source: the manual, `STARTD_CRON_<JobName>_METRICS` and "GPU Monitoring"; for the names of attributes, HTCondor's startd.
//! HTCondor counts a job's use from the last sample before the job began, and so counts a part of what ran before it. Here a pod's
//! first sample is where its use begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use classad::{Ad, Env, Expr, Value};

use super::book::is_address;
use crate::pods::{Pod, Uid};
use api::{NodeCronJob, PodDevices};
use model::pool::{SlotOutput, classad_name};
use model::startd::goes_into;

/// The most ads of a job. Further ones are not measured.
const MAX_ADS: usize = 64;
/// The most attributes that are told of a pod.
const MAX_TOLD: usize = 64;

/// A monitor's ad: the job's name and the ad's tag.
type Key = (String, Option<String>);

/// The measurements of monitors.
#[derive(Debug, Default)]
pub(super) struct Monitors {
    ads: BTreeMap<Key, Measured>,
    pods: BTreeMap<Uid, Followed>,
}

/// The content of a monitor's ads so far.
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
    /// The slot's number; 0 if the pod does not tell.
    id: u32,
    /// Where the pod's use of a SUM begins: by monitor and resource, the sum and the time of the first sample.
    begins: BTreeMap<(Key, String), (f64, Duration)>,
    /// The greatest sample of a PEAK.
    peaks: BTreeMap<(Key, String), f64>,
}

impl Monitors {
    /// Keeps the measurements of the monitors among `jobs`, which are the jobs that the operator asks for now. Drops
    /// the measurements of all other monitors.
    pub(super) fn keep(&mut self, jobs: &[NodeCronJob]) {
        let names: BTreeSet<&str> =
            jobs.iter().filter(|job| !job.metrics.is_empty()).map(|job| job.name.as_str()).collect();
        let there = |(name, _): &Key| names.contains(name.as_str());
        self.ads.retain(|key, _| there(key));
        if names.is_empty() {
            self.pods.clear();
        }
        for pod in self.pods.values_mut() {
            pod.begins.retain(|(key, _), _| there(key));
            pod.peaks.retain(|(key, _), _| there(key));
        }
    }

    /// Takes note of which pods run, and of the devices that they have.
    pub(super) fn follow<'a>(&mut self, running: impl Iterator<Item = &'a Pod>, devices: &[PodDevices]) {
        let mut before = std::mem::take(&mut self.pods);
        for pod in running {
            let followed = before.remove(&pod.uid).unwrap_or_default();
            let own = devices.iter().filter(|found| *found.uid == *pod.uid);
            let (slot, id) = slot_ad(pod, own);
            self.pods.insert(pod.uid.clone(), Followed { slot, id, ..followed });
        }
    }

    /// A monitor tells an ad. Takes the samples from the ad's attributes; the attributes that are left are those of slots.
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
        let output = address(job, attributes);
        let mut pods: Vec<&mut Followed> =
            self.pods.values_mut().filter(|pod| goes_into(&output, &pod.slot, pod.id)).collect();
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

    /// The values that are told of a pod, by the name of the attribute: `<Resource>AverageUsage` for a SUM, `<Resource>Usage` for
    /// a PEAK; and `Device<Resource>AverageUsage` and `Device<Resource>PeakUsage`, which are those of its devices since the agent
    /// began. If the pod has several devices, averages are added up, and the greatest peak counts.
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

/// The part of the slot's ad that the agent knows, and the slot's number: `Name`, `SlotID`, and `Assigned<Resource>` for the
/// devices that the kubelet has given to the pod. The agent does not know the slot's type: `SlotTypeID` is -1, which no slot has.
fn slot_ad<'a>(pod: &Pod, devices: impl Iterator<Item = &'a PodDevices>) -> (Ad, u32) {
    let mut ad = Ad::new().with("SlotTypeID", -1);
    let id = pod.slot().and_then(slot_id).unwrap_or(0);
    if let Some(name) = pod.slot() {
        ad.set("Name", name);
        ad.set("SlotID", i64::from(id));
    }
    for found in devices {
        ad.set(format!("Assigned{}", classad_name(&found.resource)), found.ids.join(","));
    }
    (ad, id)
}

/// The number of a slot: 1 for `slot1_3@node7`.
fn slot_id(name: &str) -> Option<u32> {
    let digits = name.split(['@', '_']).next()?.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.parse().ok()
}

/// The attributes of a monitor's ad that say which slots the ad is about, with the slots of the job.
fn address(job: &NodeCronJob, attributes: &BTreeMap<String, String>) -> SlotOutput {
    let own = attributes.iter().filter(|(name, _)| is_address(name));
    let parsed = own.filter_map(|(name, text)| Some((name.as_str().into(), Expr::parse(text).ok()?)));
    SlotOutput { slots: job.slots.clone(), attributes: parsed.collect() }
}

#[cfg(test)]
mod tests;
