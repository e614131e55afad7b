//! Consumption policies: a partitionable slot says itself how much a match takes.
//!
//! A slot publishes its policy as `Consumption<R>`. The negotiator and the startd both evaluate these attributes, as in HTCondor.
//!
//! Source: the manual, "condor_negotiator-Side Resource Consumption Policies"; where the manual is silent, HTCondor's code for
//! consumption policies, which its startd and negotiator share, and the ads in `tests/oracle/devices.json`.

use std::collections::BTreeMap;

use super::devices::Constraint;
use super::fault::Fault;
use super::of_type;
use super::totals::Device;
use crate::pool::Resources;
use classad::{Ad, Env, Expr, Value};
use condor_config::Config;

/// The consumption of a resource that has no expression of its own: as much as the job requests.
const AS_REQUESTED: &str = "ifThenElse(TARGET.Request{} =?= undefined, 0, TARGET.Request{})";

/// The prefix of the knobs `CONSUMPTION_<R>`.
const KNOB: &str = "CONSUMPTION_";

/// The consumption policy of slots of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumptionPolicy {
    /// `CONSUMPTION_<R>`, by R in capitals. In the expressions, MY is the slot and TARGET the job.
    exprs: BTreeMap<String, Expr>,
    /// `NUM_CLAIMS`: how many matches a slot gets in one cycle. If unset, one for each CPU of the slot.
    num_claims: Option<i64>,
}

/// Why a match consumes nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotConsumed {
    /// An expression does not give an amount.
    #[error("Consumption{resource} is {value} for the job, which is no amount")]
    NoAmount {
        /// Such as `Cpus`.
        resource: String,
        /// The value of the expression.
        value: String,
    },
    /// Too little is left.
    #[error("the job would consume {wanted} of {resource}, and {left} is left")]
    Short {
        /// Such as `Cpus`.
        resource: String,
        /// How much the match would consume.
        wanted: f64,
        /// How much is left.
        left: f64,
    },
    /// The match would consume a fraction of a resource of which slots have whole numbers.
    #[error("the job would consume {wanted} of {resource}, of which slots have whole numbers")]
    Fraction {
        /// Such as `Cpus`.
        resource: String,
        /// How much the match would consume.
        wanted: f64,
    },
    /// The match would consume nothing. Such a slot could be matched without end.
    #[error("the job would consume nothing")]
    Nothing,
}

/// How much a match takes of each resource.
pub type Consumption = BTreeMap<String, f64>;

impl ConsumptionPolicy {
    /// Reads the policy of slots of a type; none if CONSUMPTION_POLICY is not true.
    ///
    /// # Errors
    /// The knobs whose values are not expressions, booleans or integers.
    pub fn read(config: &Config, slot_type: u32) -> Result<Option<Self>, Vec<Fault>> {
        let mut faults = Vec::new();
        let enabled = of_type(config, slot_type, "CONSUMPTION_POLICY");
        match config.boolean(&enabled) {
            Ok(Some(true)) => {}
            Ok(_) => return Ok(None),
            Err(error) => return Err(vec![Fault::of_value(&enabled, &error)]),
        }
        let mut exprs = BTreeMap::new();
        for resource in said(config) {
            let knob = of_type(config, slot_type, &format!("{KNOB}{resource}"));
            match config.expr(&knob) {
                Ok(expr) => exprs.extend(expr.map(|expr| (resource, expr))),
                Err(error) => faults.push(Fault::of_value(&knob, &error)),
            }
        }
        let knob = of_type(config, slot_type, "NUM_CLAIMS");
        let num_claims = config.integer(&knob).unwrap_or_else(|error| {
            faults.push(Fault::of_value(&knob, &error));
            None
        });
        if faults.is_empty() { Ok(Some(Self { exprs, num_claims })) } else { Err(faults) }
    }

    /// Puts `Consumption<R>` into a slot's ad for each of these resources.
    pub fn publish<'a>(&self, slot: &mut Ad, resources: impl IntoIterator<Item = &'a str>) {
        for resource in resources {
            let own = self.exprs.get(&resource.to_ascii_uppercase()).cloned();
            slot.insert(format!("Consumption{resource}"), own.unwrap_or_else(|| as_requested(resource)));
        }
    }

    /// `NumClaims` of a slot with this many CPUs.
    pub fn num_claims(&self, cpus: i64) -> i64 {
        self.num_claims.unwrap_or(cpus)
    }
}

/// The resources that may have a knob `CONSUMPTION_<R>`: the standard resources, and those for which the text defines one.
fn said(config: &Config) -> Vec<String> {
    let of = |name: &str| {
        let name = name.to_ascii_uppercase();
        let resource = name.get(name.find(KNOB)? + KNOB.len()..)?;
        (resource != "POLICY" && !resource.is_empty()).then(|| resource.to_owned())
    };
    let custom = config.definitions().filter_map(|definition| of(&definition.name));
    let mut resources: Vec<String> =
        ["CPUS", "MEMORY", "DISK"].into_iter().map(str::to_owned).chain(custom).collect();
    resources.sort();
    resources.dedup();
    resources
}

/// The resources that matches with a slot consume: all resources of its machine but swap. None if the slot has no consumption
/// policy: it is not partitionable, or lacks `Consumption<R>` for one of the resources.
pub fn consumed(slot: &Ad, env: &Env) -> Option<Vec<String>> {
    // There may be very many slots, and most have no consumption policy: this check is cheap.
    if !slot.contains("ConsumptionCpus")
        || slot.eval_attr("PartitionableSlot", None, env).as_bool_equiv() != Some(true)
    {
        return None;
    }
    let names = slot.eval_attr("MachineResources", None, env);
    let names = names.as_str()?.split_ascii_whitespace().filter(|name| !name.eq_ignore_ascii_case("Swap"));
    let names: Vec<String> = names.map(str::to_owned).collect();
    names.iter().all(|name| slot.contains(&format!("Consumption{name}"))).then_some(names)
}

/// How much a match with a job takes of a slot's resources. `_condor_Request<R>`, which a schedd may have set, overrides
/// `Request<R>`; a request that the job lacks is 0.
///
/// # Errors
/// If an expression does not give an amount, too little is left, or the match would take nothing at all.
pub fn consumption(slot: &Ad, resources: &[String], job: &Ad, env: &Env) -> Result<Consumption, NotConsumed> {
    let mut taken = Consumption::new();
    for resource in resources {
        let name = format!("Consumption{resource}");
        let value = slot.eval_attr(&name, Some(&asking(job, resource, env)), env);
        let amount = value.as_number().filter(|amount| *amount >= 0.0 && amount.is_finite());
        let bad = || NotConsumed::NoAmount { resource: resource.clone(), value: value.to_string() };
        let wanted = amount.ok_or_else(bad)?;
        if wanted.fract() != 0.0 && !may_be_fraction(resource, wanted) {
            return Err(NotConsumed::Fraction { resource: resource.clone(), wanted });
        }
        let left = slot.eval_attr(resource, None, env).as_number().unwrap_or(0.0);
        if wanted > left {
            return Err(NotConsumed::Short { resource: resource.clone(), wanted, left });
        }
        taken.insert(resource.clone(), wanted);
    }
    if taken.values().all(|amount| *amount <= 0.0) {
        return Err(NotConsumed::Nothing);
    }
    Ok(taken)
}

/// Whether a fraction of a resource can be consumed: of disk, which is rounded up, and less than one CPU, because a dynamic slot
/// has at least one. HTCondor rounds a fraction of any other resource down, and then refuses the dynamic slot because it is too
/// small for what it consumes.
fn may_be_fraction(resource: &str, amount: f64) -> bool {
    resource == "Disk" || resource == "Cpus" && amount < 1.0
}

/// The cost of a match for its submitter: by how much the match lowers the slot's `SlotWeight`.
pub fn cost(slot: &Ad, taken: &Consumption, env: &Env) -> Option<f64> {
    let weight = |ad: &Ad| ad.eval_attr("SlotWeight", None, env).as_number();
    let mut rest = slot.clone();
    deduct(&mut rest, taken, env);
    Some(weight(slot)? - weight(&rest)?)
}

/// The `SlotWeight` of a slot that has what a match takes, and nothing more.
pub fn weight_of(slot: &Ad, taken: &Consumption, env: &Env) -> Option<f64> {
    let mut part = slot.clone();
    for (resource, amount) in taken {
        part.set(resource.as_str(), number(*amount));
    }
    part.eval_attr("SlotWeight", None, env).as_number()
}

/// The slot's ad without what a match with a job takes. If the job's constraint admits more devices than the match takes, the
/// first are taken.
#[must_use]
pub fn after(slot: &Ad, taken: &Consumption, job: &Ad, env: &Env) -> Ad {
    let mut rest = slot.clone();
    deduct(&mut rest, taken, env);
    for (resource, amount) in taken.iter().filter(|(_, amount)| **amount > 0.0) {
        let available = format!("Available{resource}");
        if let Value::List(devices) = slot.eval_attr(&available, None, env) {
            let require = job.get(&format!("Require{resource}")).cloned().map(Constraint::new);
            let admits = |place: usize, device: &Value| match (&require, device) {
                (None, _) => true,
                (Some(require), Value::Ad(properties)) => {
                    let id = properties.eval_attr("Id", None, env);
                    let id = id.as_str().unwrap_or_default().into();
                    let device = Device { id, properties: properties.clone() };
                    require.admits(place, &device, Some(job), env)
                }
                (Some(_), _) => false,
            };
            let mut wanted = *amount;
            let mut left = Vec::new();
            for (place, device) in devices.iter().enumerate() {
                if wanted > 0.0 && admits(place, device) {
                    wanted -= 1.0;
                } else {
                    left.push(device.clone());
                }
            }
            rest.set(available, Value::List(left.into()));
        }
    }
    rest
}

/// Returns resources by their names in ads, without those of which there is nothing.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "amounts of slots are far below 2^53")]
pub fn by_name(resources: &Resources) -> Consumption {
    let standard = [("Cpus", resources.cpus), ("Memory", resources.memory_mib), ("Disk", resources.disk_kib)];
    let standard = standard.map(|(name, amount)| (name.to_owned(), amount));
    let all = standard.into_iter().chain(resources.by_classad_name());
    all.filter(|(_, amount)| *amount != 0).map(|(name, amount)| (name, amount as f64)).collect()
}

/// The slot's ad with the amounts that dynamic slots would return. The list of available devices stays as it is.
#[must_use]
pub fn given_back(slot: &Ad, amounts: &Consumption, env: &Env) -> Ad {
    let mut whole = slot.clone();
    let taken: Consumption = amounts.iter().map(|(resource, amount)| (resource.clone(), -amount)).collect();
    deduct(&mut whole, &taken, env);
    whole
}

fn deduct(slot: &mut Ad, taken: &Consumption, env: &Env) {
    for (resource, amount) in taken {
        let left = slot.eval_attr(resource, None, env).as_number().unwrap_or(0.0);
        slot.set(resource.as_str(), number(left - amount));
    }
}

/// The job's ad as the slot's Requirements see it: each `Request<R>` is what the job would consume, and the original request is
/// in `_cp_orig_Request<R>`.
#[must_use]
pub fn as_consumed(job: &Ad, taken: &Consumption) -> Ad {
    let mut seen = job.clone();
    for (resource, amount) in taken {
        let name = format!("Request{resource}");
        if let Some(request) = job.get(&name) {
            seen.insert(format!("_cp_orig_{name}"), request.clone());
            seen.set(name, number(*amount));
        }
    }
    seen
}

/// The job's ad with the request for a resource that the expressions see: `_condor_Request<R>`, `Request<R>` or 0.
fn asking(job: &Ad, resource: &str, env: &Env) -> Ad {
    let name = format!("Request{resource}");
    let mut asking = job.clone();
    let set = job.eval_attr(&format!("_condor_{name}"), None, env);
    if let Some(set) = set.as_number() {
        asking.set(name, set);
    } else if !job.contains(&name) {
        asking.set(name, 0);
    }
    asking
}

/// An integer if the amount is whole, because matchmaking prints and compares integers and reals differently.
#[allow(clippy::cast_possible_truncation, reason = "saturates")]
fn number(amount: f64) -> Value {
    if amount.fract() == 0.0 { Value::Int(amount as i64) } else { Value::Real(amount) }
}

fn as_requested(resource: &str) -> Expr {
    Expr::parse(&AS_REQUESTED.replace("{}", resource)).unwrap_or_else(|_| Expr::literal(Value::Error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use condor_config::{Host, Reader, Source};

    fn policy(text: &str) -> Option<ConsumptionPolicy> {
        let config = Reader::new(Host::none())
            .subsystem("STARTD")
            .read(&[Source::block("policy", text)])
            .into_config()
            .unwrap();
        ConsumptionPolicy::read(&config, 1).unwrap()
    }

    fn ad(text: &str) -> Ad {
        Ad::parse_long(text).unwrap()
    }

    const SLOT: &str = "Cpus = 8\nMemory = 1024\nDisk = 100000\ngpus = 4\nSlotWeight = Cpus\n\
                        PartitionableSlot = True\nMachineResources = \"Cpus Memory Disk Swap gpus\"";

    const RESOURCES: [&str; 4] = ["Cpus", "Memory", "Disk", "gpus"];

    /// A slot under a policy.
    fn slot(text: &str) -> Ad {
        let mut slot = ad(SLOT);
        policy(text).unwrap().publish(&mut slot, RESOURCES);
        slot
    }

    fn taken(slot: &Ad, job: &Ad) -> Result<Consumption, NotConsumed> {
        let env = Env::at(0);
        consumption(slot, &consumed(slot, &env).unwrap(), job, &env)
    }

    #[test]
    fn there_is_none_by_default() {
        assert_eq!(policy(""), None);
        assert_eq!(policy("CONSUMPTION_POLICY = True\nSLOT_TYPE_1_CONSUMPTION_POLICY = False\n"), None);
        assert_eq!(consumed(&ad(SLOT), &Env::at(0)), None);
    }

    #[test]
    fn the_manual_s_example_of_cores() {
        let text =
            "SLOT_TYPE_1_CONSUMPTION_POLICY = True\nSLOT_TYPE_1_CONSUMPTION_CPUS = TARGET.RequestCpus\n";
        let (slot, env) = (slot(text), Env::at(0));
        let job = ad("RequestCpus = 3\nRequestMemory = 100\nRequestDisk = 1");
        let first = taken(&slot, &job).unwrap();
        let expected = [("Cpus", 3.0), ("Disk", 1024.0), ("Memory", 128.0), ("gpus", 0.0)];
        assert_eq!(first, expected.map(|(name, amount)| (name.to_owned(), amount)).into());
        assert_eq!(cost(&slot, &first, &env), Some(3.0));
        let rest = after(&slot, &first, &job, &env);
        assert_eq!(rest.eval_attr("Cpus", None, &env), Value::Int(5));
        let seen = as_consumed(&job, &first);
        assert_eq!(seen.eval_attr("RequestMemory", None, &env), Value::Int(128));
        assert_eq!(seen.eval_attr("_cp_orig_RequestMemory", None, &env), Value::Int(100));
        // Two jobs match in one cycle; the third finds too little.
        let rest = after(&rest, &taken(&rest, &job).unwrap(), &job, &env);
        let short = taken(&rest, &job).unwrap_err();
        assert_eq!(short.to_string(), "the job would consume 3 of Cpus, and 2 is left");
    }

    #[test]
    fn a_custom_resource_is_consumed_as_requested_unless_the_policy_says_otherwise() {
        let of = |text: &str, job: &str| taken(&slot(text), &ad(job)).map(|taken| taken.get("gpus").copied());
        let consumed = |job: &str| of("CONSUMPTION_POLICY = True\n", job);
        assert_eq!(consumed("RequestCpus = 1\nRequestGpus = 2"), Ok(Some(2.0)));
        assert_eq!(consumed("RequestCpus = 1"), Ok(Some(0.0)));
        assert_eq!(consumed("RequestCpus = 1\nRequestGpus = 2\n_condor_RequestGpus = 3"), Ok(Some(3.0)));
        assert_eq!(
            consumed("RequestCpus = 1\nRequestGpus = \"x\"").unwrap_err().to_string(),
            "Consumptiongpus is \"x\" for the job, which is no amount"
        );
        let text = "CONSUMPTION_POLICY = True\nCONSUMPTION_gpus = 2 * TARGET.RequestGpus\n";
        assert_eq!(of(text, "RequestCpus = 1\nRequestGpus = 1"), Ok(Some(2.0)));
    }

    #[test]
    fn a_match_takes_the_devices_that_the_job_requires() {
        let mut slot = slot("CONSUMPTION_POLICY = True\n");
        let devices = "{[Id = \"a\"; Capability = 7.0], [Id = \"b\"; Capability = 8.0], [Id = \"c\"; Capability = 8.6]}";
        slot.insert("Availablegpus", Expr::parse(devices).unwrap());
        let left = |require: &str| {
            let job = ad(&format!("RequestCpus = 1\nRequestGpus = 1\nLeast = 8.0{require}"));
            let rest = after(&slot, &taken(&slot, &job).unwrap(), &job, &Env::at(0));
            let ids = Expr::parse("join(\" \", evalInEachContext(Id, Availablegpus))").unwrap();
            ids.eval(Some(&rest), None, &Env::at(0)).to_string()
        };
        assert_eq!(left(""), "\"b c\"");
        assert_eq!(left("\nRequiregpus = Capability >= Least"), "\"a c\"");
    }

    #[test]
    fn slots_have_whole_numbers_of_most_things() {
        let job = ad("RequestCpus = 1\nRequestMemory = 100\nRequestDisk = 1\nRequestgpus = 1");
        for (text, works) in [
            ("CONSUMPTION_CPUS = 1.5", false),
            ("CONSUMPTION_CPUS = 0.5", true),
            ("CONSUMPTION_MEMORY = 100.5", false),
            ("CONSUMPTION_GPUS = 1.5", false),
            ("CONSUMPTION_DISK = 1000.5", true),
        ] {
            let slot = slot(&format!("CONSUMPTION_POLICY = True\n{text}\n"));
            assert_eq!(taken(&slot, &job).is_ok(), works, "{text}");
        }
    }

    #[test]
    fn a_match_must_take_something() {
        let text =
            "CONSUMPTION_POLICY = True\nCONSUMPTION_CPUS = 0\nCONSUMPTION_MEMORY = 0\nCONSUMPTION_DISK = 0\n";
        assert_eq!(taken(&slot(text), &ad("RequestCpus = 1")), Err(NotConsumed::Nothing));
    }

    #[test]
    fn a_slot_has_a_claim_for_each_cpu_unless_the_policy_says_how_many() {
        assert_eq!(policy("CONSUMPTION_POLICY = True\n").unwrap().num_claims(8), 8);
        assert_eq!(policy("CONSUMPTION_POLICY = True\nNUM_CLAIMS = 2\n").unwrap().num_claims(8), 2);
        let config = Reader::new(Host::none())
            .subsystem("STARTD")
            .read(&[Source::block("policy", "CONSUMPTION_POLICY = True\nNUM_CLAIMS = Cpus / 4\n")])
            .into_config()
            .unwrap();
        let faults = ConsumptionPolicy::read(&config, 1).unwrap_err();
        assert_eq!(faults.first().map(|fault| fault.knob.as_str()), Some("NUM_CLAIMS"));
    }

    #[test]
    fn expressions_are_published() {
        let slot = slot("CONSUMPTION_POLICY = True\n");
        assert_eq!(slot.get("ConsumptionCpus").unwrap().to_string(), "quantize(target.RequestCpus,{ 1 })");
    }
}
