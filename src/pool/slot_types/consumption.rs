//! Consumption policies: what a match takes of a partitionable slot, as the slot itself says.
//!
//! Source: the manual, "condor_negotiator-Side Resource Consumption Policies"; where it is silent, HTCondor's code for
//! them, which its startd and negotiator share.

use std::collections::BTreeMap;

use super::fault::Fault;
use super::of_type;
use crate::classad::{Ad, Env, Expr, Value};
use crate::config::Config;

/// What a resource without an expression of its own takes.
const AS_REQUESTED: &str = "ifThenElse(TARGET.Request{} =?= undefined, 0, TARGET.Request{})";

/// The consumption policy of slots of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumptionPolicy {
    /// `CONSUMPTION_<R>`, by R; MY is the slot, TARGET the job.
    exprs: Vec<(String, Expr)>,
    /// `NUM_CLAIMS`: how many claims a slot has at once. None: as many as fit.
    pub num_claims: Option<Expr>,
}

/// Why a match consumes nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotConsumed {
    /// An expression is no amount.
    #[error("Consumption{resource} is {value} for the job, which is no amount")]
    NoAmount {
        /// Such as `Cpus`.
        resource: String,
        /// What it evaluates to.
        value: String,
    },
    /// There is not enough.
    #[error("the job would consume {wanted} of {resource}, and {left} is left")]
    Short {
        /// Such as `Cpus`.
        resource: String,
        /// How much it would be.
        wanted: f64,
        /// How much there is.
        left: f64,
    },
    /// Nothing at all would be taken: such a slot would match without end.
    #[error("the job would consume nothing")]
    Nothing,
}

/// What a match takes, by resource.
pub type Consumption = BTreeMap<String, f64>;

impl ConsumptionPolicy {
    /// The policy of slots of a type on a machine with these custom resources; none where CONSUMPTION_POLICY is not true.
    ///
    /// # Errors
    /// What is no expression, or no boolean.
    pub fn read(config: &Config, slot_type: u32, custom: &[&str]) -> Result<Option<Self>, Vec<Fault>> {
        let mut faults = Vec::new();
        let enabled = of_type(config, slot_type, "CONSUMPTION_POLICY");
        match config.boolean(&enabled) {
            Ok(Some(true)) => {}
            Ok(_) => return Ok(None),
            Err(error) => return Err(vec![Fault::of_value(&enabled, &error)]),
        }
        let mut expr = |knob: &str| {
            let knob = of_type(config, slot_type, knob);
            config.expr(&knob).unwrap_or_else(|error| {
                faults.push(Fault::of_value(&knob, &error));
                None
            })
        };
        let resources = ["Cpus", "Memory", "Disk"].into_iter().chain(custom.iter().copied());
        let exprs = resources.map(|resource| {
            let own = expr(&format!("CONSUMPTION_{}", resource.to_ascii_uppercase()));
            (resource.to_owned(), own.unwrap_or_else(|| as_requested(resource)))
        });
        let exprs = exprs.collect();
        let num_claims = expr("NUM_CLAIMS");
        if faults.is_empty() { Ok(Some(Self { exprs, num_claims })) } else { Err(faults) }
    }

    /// Puts `Consumption<R>` into a slot's ad, where the negotiator looks for them.
    pub fn publish(&self, slot: &mut Ad) {
        for (resource, expr) in &self.exprs {
            slot.insert(format!("Consumption{resource}"), expr.clone());
        }
    }

    /// What a match with a job takes of a slot. `_condor_Request<R>`, which a schedd may have set, goes before
    /// `Request<R>`; what a job does not ask for is 0.
    pub fn consumption(&self, slot: &Ad, job: &Ad, env: &Env) -> Result<Consumption, NotConsumed> {
        let mut taken = Consumption::new();
        for (resource, expr) in &self.exprs {
            let value = expr.eval(Some(slot), Some(&asking(job, resource, env)), env);
            let amount = value.as_number().filter(|amount| *amount >= 0.0);
            let bad = || NotConsumed::NoAmount { resource: resource.clone(), value: value.to_string() };
            let wanted = amount.ok_or_else(bad)?;
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
}

/// What a match costs its submitter: the slot's `SlotWeight` before it less that after it.
pub fn cost(slot: &Ad, taken: &Consumption, env: &Env) -> Option<f64> {
    let weight = |ad: &Ad| ad.eval_attr("SlotWeight", None, env).as_number();
    Some(weight(slot)? - weight(&after(slot, taken, env))?)
}

/// The slot without what a match takes.
#[must_use]
pub fn after(slot: &Ad, taken: &Consumption, env: &Env) -> Ad {
    let mut rest = slot.clone();
    for (resource, amount) in taken {
        let left = slot.eval_attr(resource, None, env).as_number().unwrap_or(0.0);
        rest.set(resource.as_str(), number(left - amount));
    }
    rest
}

/// The job as the slot's Requirements see it: each request that it has is what it would consume.
#[must_use]
pub fn as_consumed(job: &Ad, taken: &Consumption) -> Ad {
    let mut seen = job.clone();
    for (resource, amount) in taken {
        let name = format!("Request{resource}");
        if job.contains(&name) {
            seen.set(name, number(*amount));
        }
    }
    seen
}

/// The job with its request for a resource as the expressions are to see it.
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

/// Whole numbers stay integers, as matchmaking prints and compares them.
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
    use crate::config::{Host, Reader, Source};

    fn policy(text: &str, custom: &[&str]) -> Option<ConsumptionPolicy> {
        let config = Reader::new(Host::none())
            .subsystem("STARTD")
            .read(&[Source::block("policy", text)])
            .into_config()
            .unwrap();
        ConsumptionPolicy::read(&config, 1, custom).unwrap()
    }

    fn ad(text: &str) -> Ad {
        Ad::parse_long(text).unwrap()
    }

    const SLOT: &str = "Cpus = 8\nMemory = 1024\nDisk = 100000\ngpus = 4\nSlotWeight = Cpus";

    #[test]
    fn there_is_none_by_default() {
        assert_eq!(policy("", &[]), None);
        assert_eq!(policy("CONSUMPTION_POLICY = True\nSLOT_TYPE_1_CONSUMPTION_POLICY = False\n", &[]), None);
    }

    #[test]
    fn the_manual_s_example_of_cores() {
        let text =
            "SLOT_TYPE_1_CONSUMPTION_POLICY = True\nSLOT_TYPE_1_CONSUMPTION_CPUS = TARGET.RequestCpus\n";
        let (policy, env) = (policy(text, &[]).unwrap(), Env::at(0));
        let (slot, job) = (ad(SLOT), ad("RequestCpus = 3\nRequestMemory = 100\nRequestDisk = 1"));
        let taken = policy.consumption(&slot, &job, &env).unwrap();
        let expected = [("Cpus", 3.0), ("Disk", 1024.0), ("Memory", 128.0)];
        assert_eq!(taken, expected.map(|(name, amount)| (name.to_owned(), amount)).into());
        assert_eq!(cost(&slot, &taken, &env), Some(3.0));
        let rest = after(&slot, &taken, &env);
        assert_eq!(rest.eval_attr("Cpus", None, &env), Value::Int(5));
        assert_eq!(as_consumed(&job, &taken).eval_attr("RequestMemory", None, &env), Value::Int(128));
        // Two jobs match in one cycle; the third finds too little.
        let rest = after(&rest, &policy.consumption(&rest, &job, &env).unwrap(), &env);
        let short = policy.consumption(&rest, &job, &env).unwrap_err();
        assert_eq!(short.to_string(), "the job would consume 3 of Cpus, and 2 is left");
    }

    #[test]
    fn a_custom_resource_is_consumed_as_requested() {
        let (policy, env) = (policy("CONSUMPTION_POLICY = True\n", &["gpus"]).unwrap(), Env::at(0));
        let consumed = |job: &str| {
            let taken = policy.consumption(&ad(SLOT), &ad(job), &env);
            taken.map(|taken| taken.get("gpus").copied())
        };
        assert_eq!(consumed("RequestCpus = 1\nRequestGpus = 2"), Ok(Some(2.0)));
        assert_eq!(consumed("RequestCpus = 1"), Ok(Some(0.0)));
        assert_eq!(consumed("RequestCpus = 1\nRequestGpus = 2\n_condor_RequestGpus = 3"), Ok(Some(3.0)));
        assert_eq!(
            consumed("RequestCpus = 1\nRequestGpus = \"x\"").unwrap_err().to_string(),
            "Consumptiongpus is \"x\" for the job, which is no amount"
        );
    }

    #[test]
    fn a_match_must_take_something() {
        let text =
            "CONSUMPTION_POLICY = True\nCONSUMPTION_CPUS = 0\nCONSUMPTION_MEMORY = 0\nCONSUMPTION_DISK = 0\n";
        let taken =
            policy(text, &["gpus"]).unwrap().consumption(&ad(SLOT), &ad("RequestCpus = 1"), &Env::at(0));
        assert_eq!(taken, Err(NotConsumed::Nothing));
    }

    #[test]
    fn expressions_are_published() {
        let mut slot = ad(SLOT);
        policy("CONSUMPTION_POLICY = True\n", &[]).unwrap().publish(&mut slot);
        assert_eq!(slot.get("ConsumptionCpus").unwrap().to_string(), "quantize(target.RequestCpus,{ 1 })");
    }
}
