//! The file of a scenario, as it is written. `docs/reference/simulate.md` describes every field.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::amount::{Amount, Bytes, Count, Drawn, Seconds};

/// The whole file.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    pub name: Option<String>,
    pub start: Option<String>,
    pub length: Option<Amount<Seconds>>,
    pub sample: Option<Amount<Seconds>>,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub timing: Timing,
    /// Objects, and names of files of objects. `manifests` reads them, because serde gives no positions.
    #[serde(default, rename = "manifests")]
    pub _manifests: Vec<IgnoredAny>,
    pub machines: Vec<Machines>,
    pub submitters: Vec<Submitter>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timing {
    pub call: Option<Amount<Seconds>>,
    pub status: Option<Amount<Seconds>>,
    pub pod_start: Option<Drawn<Seconds>>,
    pub pod_end: Option<Drawn<Seconds>>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Machines {
    pub name: String,
    #[serde(default = "one")]
    pub count: u32,
    pub cpus: Quantity,
    pub memory: Quantity,
    pub disk: Option<Quantity>,
    #[serde(default)]
    pub resources: BTreeMap<String, Quantity>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub owner: Option<Owner>,
    pub leaves: Option<Leaves>,
}

const fn one() -> u32 {
    1
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Owner {
    #[serde(default)]
    pub hours: Vec<Hours>,
    pub vary: Option<Amount<Seconds>>,
    pub visits: Option<Visits>,
    #[serde(default)]
    pub load: f64,
    #[serde(default)]
    pub pods: BTreeMap<String, Quantity>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hours {
    pub days: Option<Vec<Day>>,
    pub from: String,
    pub to: String,
}

#[derive(Deserialize, Debug, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Visits {
    pub away: Drawn<Seconds>,
    pub present: Drawn<Seconds>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Leaves {
    pub after: Drawn<Seconds>,
    pub away: Drawn<Seconds>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Submitter {
    pub name: String,
    #[serde(default = "one")]
    pub people: u32,
    pub owner: Option<String>,
    pub group: Option<String>,
    pub job: Option<IgnoredAny>,
    #[serde(default)]
    pub requests: Requests,
    pub arrivals: Arrivals,
    pub from: Option<Amount<Seconds>>,
    pub to: Option<Amount<Seconds>>,
    pub jobs: Option<u64>,
    pub procs: Option<Drawn<Count>>,
    pub runtime: Option<Drawn<Seconds>>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requests {
    pub cpus: Option<Drawn<Count>>,
    pub memory: Option<Drawn<Bytes>>,
    pub disk: Option<Drawn<Bytes>>,
    pub gpus: Option<Drawn<Count>>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Arrivals {
    At(Vec<Amount<Seconds>>),
    Poisson {
        every: Amount<Seconds>,
    },
    #[serde(rename_all = "camelCase")]
    Diurnal {
        per_day: f64,
        hours: Option<Vec<f64>>,
        days: Option<Vec<f64>>,
    },
    Bursts {
        every: Drawn<Seconds>,
        jobs: Drawn<Count>,
        spacing: Option<Drawn<Seconds>>,
    },
    Trace(Trace),
}

/// A trace: jobs that were submitted elsewhere.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trace {
    pub file: String,
    pub from: Option<Amount<Seconds>>,
    pub to: Option<Amount<Seconds>>,
    pub pace: Option<f64>,
    #[serde(default)]
    pub people: BTreeMap<String, Person>,
}

/// Who replaces an owner of a trace.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Person {
    pub owner: Option<String>,
    pub group: Option<String>,
}
