//! How much is carved from a partitionable slot for a job.
//!
//! Source: the manual, "Defaults for Partitionable Slot Sizes", MUST_MODIFY_REQUEST_EXPRS and RequireGPUs; where the manual is
//! silent, HTCondor's startd.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::devices::{Constraint, Free};
use super::fault::Fault;
use super::of_type;
use super::totals::Device;
use crate::pool::DeviceId;
use classad::{Ad, Env, Expr, Value};
use condor_config::Config;

/// The default of `MODIFY_REQUEST_EXPR_REQUEST<R>` for each resource that has one.
///
/// HTCondor's default for disk subtracts the size of files that jobs share; jobs share no files here.
const DEFAULTS: &[(&str, &str)] = &[
    ("Cpus", "quantize(RequestCpus, {1})"),
    ("Memory", "quantize(RequestMemory, {128})"),
    ("Disk", "quantize(RequestDisk, {TARGET.DiskQuantum ?: 1024})"),
];

/// How much is carved for a request from slots of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestPolicy {
    /// `MODIFY_REQUEST_EXPR_REQUEST<R>` with its R. In the expressions, MY is the job and TARGET the slot.
    modify: Vec<(String, Expr)>,
    /// `MUST_MODIFY_REQUEST_EXPRS`.
    must_modify: bool,
}

/// Amounts of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Whole CPUs.
    pub cpus: i64,
    /// Memory in MiB.
    pub memory_mib: i64,
    /// Disk in KiB.
    pub disk_kib: i64,
    /// Custom resources by their names in ClassAds.
    pub custom: BTreeMap<String, i64>,
}

/// The resources that a partitionable slot has left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Left {
    /// The amounts.
    pub amounts: Amounts,
    /// The free devices in the order in which slots get them, by the custom resource's name; no entry if devices have no ids.
    pub devices: BTreeMap<String, Vec<Device>>,
}

/// The resources that are carved for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carved {
    /// The amounts.
    pub amounts: Amounts,
    /// The ids of the devices, by the custom resource's name.
    pub devices: BTreeMap<String, Vec<DeviceId>>,
    /// Whether the slot's expressions have modified the job's request.
    pub modified: bool,
}

/// Why a job gets no dynamic slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCarved {
    /// The slot's Requirements are not true for the job.
    #[error("the slot's Requirements are not true for the job")]
    Requirements,
    /// A request is not an amount, or the job lacks a request that every job must have.
    #[error("the job's Request{resource} is {value}, which is no amount")]
    NoAmount {
        /// Such as `Memory`.
        resource: String,
        /// The value of the request.
        value: String,
    },
    /// Too little is left.
    #[error("the job asks for {wanted} of {resource}, and {left} is left")]
    Short {
        /// Such as `Memory`.
        resource: String,
        /// How much the job asks for.
        wanted: i64,
        /// How much is left.
        left: i64,
    },
    /// Too few of the free devices are what the job requires.
    #[error(
        "the job asks for {wanted} {resource}, and {found} of those that are free are what Require{resource} says"
    )]
    Devices {
        /// Such as `GPUs`.
        resource: String,
        /// How many are asked for.
        wanted: i64,
        /// How many there are.
        found: i64,
    },
}

impl Default for RequestPolicy {
    fn default() -> Self {
        static MODIFY: LazyLock<Vec<(String, Expr)>> = LazyLock::new(|| {
            let parse = |text: &str| Expr::parse(text).unwrap_or_else(|_| Expr::literal(Value::Error));
            DEFAULTS.iter().map(|(resource, text)| ((*resource).to_owned(), parse(text))).collect()
        });
        Self { modify: MODIFY.clone(), must_modify: false }
    }
}

impl RequestPolicy {
    /// Reads the policy of slots of a type, on a machine with these custom resources.
    ///
    /// # Errors
    /// The knobs whose values are not expressions or booleans.
    pub fn read(config: &Config, slot_type: u32, custom: &[&str]) -> Result<Self, Vec<Fault>> {
        let Self { modify: defaults, .. } = Self::default();
        let mut faults = Vec::new();
        let mut modify = Vec::new();
        let standard = DEFAULTS.iter().map(|(resource, _)| *resource);
        for resource in standard.chain(custom.iter().copied()) {
            let knob = format!("MODIFY_REQUEST_EXPR_REQUEST{}", resource.to_ascii_uppercase());
            let knob = of_type(config, slot_type, &knob);
            if !is_said(config, &knob) {
                modify.extend(defaults.iter().find(|(name, _)| name == resource).cloned());
                continue;
            }
            match config.expr(&knob) {
                // An empty knob leaves requests as they are.
                Ok(expr) => modify.extend(expr.map(|expr| (resource.to_owned(), expr))),
                Err(error) => faults.push(Fault::of_value(&knob, &error)),
            }
        }
        let must = of_type(config, slot_type, "MUST_MODIFY_REQUEST_EXPRS");
        let must_modify = config.boolean(&must).unwrap_or_else(|error| {
            faults.push(Fault::of_value(&must, &error));
            None
        });
        if faults.is_empty() {
            Ok(Self { modify, must_modify: must_modify == Some(true) })
        } else {
            Err(faults)
        }
    }

    /// The job's ad, with its requests modified by the slot's expressions. An expression that does not give a number leaves the
    /// request as it is.
    #[must_use]
    pub fn modified(&self, job: &Ad, slot: &Ad, env: &Env) -> Ad {
        let mut modified = job.clone();
        for (resource, expr) in &self.modify {
            if let Some(amount) = whole(&expr.eval(Some(&modified), Some(slot), env)) {
                modified.set(format!("Request{resource}"), amount);
            }
        }
        modified
    }

    /// Carves the resources of a job's request as the slot's expressions modify it, if the slot's Requirements are true for the
    /// modified job. Otherwise, unless MUST_MODIFY_REQUEST_EXPRS is true, the resources of the job's own request.
    ///
    /// A job without `RequestCpus` requests 1 CPU, and a job requests nothing of a custom resource that it does not mention.
    ///
    /// # Errors
    /// Why the job gets no dynamic slot; also if it has no `RequestMemory` or no `RequestDisk`.
    pub fn carve(&self, job: &Ad, slot: &Ad, left: &Left, env: &Env) -> Result<Carved, NotCarved> {
        let willing = |job: &Ad| slot.eval_attr("Requirements", Some(job), env).as_bool_equiv() == Some(true);
        let modified = self.modified(job, slot, env);
        if willing(&modified) {
            return carved(&modified, slot, left, env, true);
        }
        if self.must_modify || !willing(job) {
            return Err(NotCarved::Requirements);
        }
        carved(job, slot, left, env, false)
    }

    /// The resources that [`RequestPolicy::carve`] would carve for a job, whatever the slot's Requirements say about the job.
    /// None if too little is left.
    pub fn fitting(&self, job: &Ad, slot: &Ad, left: &Left, env: &Env) -> Option<Carved> {
        let modified = carved(&self.modified(job, slot, env), slot, left, env, true).ok();
        modified.or_else(|| (!self.must_modify).then(|| carved(job, slot, left, env, false).ok())?)
    }
}

/// Carves the resources of a job whose requests must not be modified any more.
///
/// # Errors
/// Why the job gets no dynamic slot.
pub fn carve_as_requested(job: &Ad, slot: &Ad, left: &Left, env: &Env) -> Result<Carved, NotCarved> {
    carved(job, slot, left, env, false)
}

/// Whether a text sets a knob, if only to nothing.
fn is_said(config: &Config, knob: &str) -> bool {
    [knob.to_owned(), format!("STARTD.{knob}")].iter().any(|name| config.definition(name).is_some())
}

fn carved(job: &Ad, slot: &Ad, left: &Left, env: &Env, modified: bool) -> Result<Carved, NotCarved> {
    let mut amounts = Amounts {
        cpus: request(job, slot, "Cpus", Some(1), env)?.max(1),
        memory_mib: request(job, slot, "Memory", None, env)?,
        disk_kib: request(job, slot, "Disk", None, env)?,
        custom: BTreeMap::new(),
    };
    for resource in left.amounts.custom.keys() {
        let amount = request(job, slot, resource, Some(0), env)?;
        if amount > 0 {
            amounts.custom.insert(resource.clone(), amount);
        }
    }
    let has = &left.amounts;
    let standard = [
        ("Cpus", amounts.cpus, has.cpus),
        ("Memory", amounts.memory_mib, has.memory_mib),
        ("Disk", amounts.disk_kib, has.disk_kib),
    ];
    let custom = amounts
        .custom
        .iter()
        .map(|(name, wanted)| (name.as_str(), *wanted, has.custom.get(name).copied().unwrap_or(0)));
    if let Some((resource, wanted, left)) =
        standard.into_iter().chain(custom).find(|(_, wanted, left)| wanted > left)
    {
        return Err(NotCarved::Short { resource: resource.to_owned(), wanted, left });
    }
    let devices = devices(job, &amounts, left, env)?;
    Ok(Carved { amounts, devices, modified })
}

fn devices(
    job: &Ad,
    amounts: &Amounts,
    left: &Left,
    env: &Env,
) -> Result<BTreeMap<String, Vec<DeviceId>>, NotCarved> {
    let mut all = BTreeMap::new();
    for (resource, wanted) in &amounts.custom {
        let Some(free) = left.devices.get(resource).filter(|free| !free.is_empty()) else { continue };
        let require = job.get(&format!("Require{resource}")).cloned().map(Constraint::new);
        let ids = Free::new(free).take(*wanted, require.as_ref(), Some(job), env);
        let found = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        if found < *wanted {
            return Err(NotCarved::Devices { resource: resource.clone(), wanted: *wanted, found });
        }
        all.insert(resource.clone(), ids);
    }
    Ok(all)
}

/// How much of a resource a job requests; `missing` if its ad has no such request.
fn request(job: &Ad, slot: &Ad, resource: &str, missing: Option<i64>, env: &Env) -> Result<i64, NotCarved> {
    let value = job.eval_attr(&format!("Request{resource}"), Some(slot), env);
    let amount = if value.is_undefined() { missing } else { whole(&value) };
    let bad = || NotCarved::NoAmount { resource: resource.to_owned(), value: value.to_string() };
    amount.filter(|amount| *amount >= 0).ok_or_else(bad)
}

/// The integer part of a number; none for any other value.
#[allow(clippy::cast_possible_truncation, reason = "saturates, and NaN is no number")]
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Real(number) if !number.is_nan() => Some(number.trunc() as i64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;

    const ENV: i64 = 1_769_860_800;

    fn job(text: &str) -> Ad {
        Ad::parse_long(text).unwrap()
    }

    fn slot() -> Ad {
        Ad::parse_long(
            "Cpus = 4\nMemory = 1000\nDisk = 100000\nRequirements = TARGET.RequestMemory <= Memory",
        )
        .unwrap()
    }

    fn left() -> Left {
        let device = |id: &str, capability: f64| Device {
            id: id.into(),
            properties: Ad::new().with("Capability", capability),
        };
        let custom = BTreeMap::from([("GPUs".to_owned(), 3), ("Cogs".to_owned(), 4)]);
        let gpus = vec![device("a", 7.0), device("b", 8.0), device("c", 8.6)];
        Left {
            amounts: Amounts { cpus: 4, memory_mib: 1000, disk_kib: 100_000, custom },
            devices: BTreeMap::from([("GPUs".to_owned(), gpus)]),
        }
    }

    fn carve(policy: &RequestPolicy, text: &str) -> Result<Carved, NotCarved> {
        policy.carve(&job(text), &slot(), &left(), &Env::at(ENV))
    }

    fn amounts(policy: &RequestPolicy, text: &str) -> (i64, i64, i64) {
        let taken = carve(policy, text).unwrap();
        (taken.amounts.cpus, taken.amounts.memory_mib, taken.amounts.disk_kib)
    }

    #[test]
    fn requests_are_rounded_up_by_default() {
        let policy = RequestPolicy::default();
        assert_eq!(RequestPolicy::read(&config(""), 1, &["GPUs"]), Ok(policy.clone()));
        for (text, expected) in [
            ("RequestCpus = 2\nRequestMemory = 1\nRequestDisk = 1", (2, 128, 1024)),
            ("RequestMemory = 129\nRequestDisk = 1025", (1, 256, 2048)),
            ("RequestCpus = 0\nRequestMemory = 128\nRequestDisk = 1024", (1, 128, 1024)),
            ("RequestMemory = 100.5\nRequestDisk = 2 * 512", (1, 128, 1024)),
        ] {
            assert_eq!(amounts(&policy, text), expected, "{text}");
        }
    }

    #[test]
    fn a_request_that_fits_only_unrounded_is_taken_as_it_is() {
        let text = "RequestMemory = 1000\nRequestDisk = 5";
        let taken = carve(&RequestPolicy::default(), text).unwrap();
        assert_eq!((taken.amounts.memory_mib, taken.amounts.disk_kib, taken.modified), (1000, 5, false));
        let must = RequestPolicy::read(&config("MUST_MODIFY_REQUEST_EXPRS = True\n"), 1, &[]).unwrap();
        assert_eq!(carve(&must, text), Err(NotCarved::Requirements));
    }

    #[test]
    fn expressions_are_the_type_s_or_everybody_s() {
        let text = "MODIFY_REQUEST_EXPR_REQUESTMEMORY = max({ 300, quantize(RequestMemory, {128}) })\n\
                    SLOT_TYPE_2_MODIFY_REQUEST_EXPR_REQUESTMEMORY = TARGET.Memory / 2\n\
                    MODIFY_REQUEST_EXPR_REQUESTDISK =\nMODIFY_REQUEST_EXPR_REQUESTGPUS = quantize(RequestGPUs, {2})\n";
        let config = config(text);
        let policy = |slot_type| RequestPolicy::read(&config, slot_type, &["GPUs"]).unwrap();
        let job = "RequestMemory = 10\nRequestDisk = 7\nRequestGPUs = 1";
        assert_eq!(amounts(&policy(1), job), (1, 300, 7));
        assert_eq!(amounts(&policy(2), job), (1, 500, 7));
        assert_eq!(carve(&policy(1), job).unwrap().amounts.custom, BTreeMap::from([("GPUs".to_owned(), 2)]));
    }

    #[test]
    fn what_is_wrong_names_the_knob() {
        let text = "MODIFY_REQUEST_EXPR_REQUESTCPUS = 1 +\nMUST_MODIFY_REQUEST_EXPRS = maybe\n";
        let faults = RequestPolicy::read(&config(text), 1, &[]).unwrap_err();
        let knobs: Vec<&str> = faults.iter().map(|fault| fault.knob.as_str()).collect();
        assert_eq!(knobs, ["MODIFY_REQUEST_EXPR_REQUESTCPUS", "MUST_MODIFY_REQUEST_EXPRS"]);
    }

    #[test]
    fn devices_are_those_that_the_job_requires() {
        let policy = RequestPolicy::default();
        let gpus = |require: &str| {
            let text = format!("RequestMemory = 1\nRequestDisk = 1\n{require}");
            carve(&policy, &text)
                .map(|taken| taken.devices.get("GPUs").map(|ids| ids.join(" ")).unwrap_or_default())
        };
        assert_eq!(gpus("RequestGPUs = 2\nRequireGPUs = Capability >= 8.0"), Ok("b c".to_owned()));
        assert_eq!(gpus("RequestGPUs = 1\nRequireGPUs = \"C\""), Ok("c".to_owned()));
        assert_eq!(gpus("RequestGPUs = 1"), Ok("a".to_owned()));
        assert_eq!(gpus(""), Ok(String::new()));
        assert_eq!(
            gpus("RequestGPUs = 2\nRequireGPUs = Capability > 8.0").unwrap_err().to_string(),
            "the job asks for 2 GPUs, and 1 of those that are free are what RequireGPUs says"
        );
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let policy = RequestPolicy::default();
        for (text, why) in [
            ("RequestDisk = 1", "the slot's Requirements are not true for the job"),
            ("RequestMemory = 1", "the job's RequestDisk is undefined, which is no amount"),
            ("RequestMemory = 1\nRequestDisk = \"x\"", "the job's RequestDisk is \"x\", which is no amount"),
            (
                "RequestMemory = 1\nRequestDisk = 1\nRequestCpus = 5",
                "the job asks for 5 of Cpus, and 4 is left",
            ),
            (
                "RequestMemory = 1\nRequestDisk = 1\nRequestCogs = 5",
                "the job asks for 5 of Cogs, and 4 is left",
            ),
        ] {
            assert_eq!(carve(&policy, text).unwrap_err().to_string(), why, "{text}");
        }
    }
}
