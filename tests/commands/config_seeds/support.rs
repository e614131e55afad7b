//! Reads an example and evaluates what it sets.

use classad::{Ad, Env, Expr, Value};
use condor_config::{Config, Host, Reader, Source};

/// The present time of all tests.
pub const NOW: i64 = 1_000_000_000;

/// Macros that the examples refer to.
pub const FRAGMENTS: &str = "use FEATURE : Policy_Expr_Fragments\n";

/// A machine of 4 cores and 8 GiB.
pub fn host() -> Host {
    let known = [("DETECTED_CORES", "4"), ("DETECTED_CPUS", "4"), ("DETECTED_MEMORY", "8192")];
    let predefined = known.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Host { predefined, seed: Some(1), now: NOW, ..Host::none() }
}

/// The example, as the daemon `subsystem` reads it.
pub fn read_as(subsystem: &str, text: &str) -> Config {
    let reading = Reader::new(host()).subsystem(subsystem).read(&[Source::new("example", text)]);
    reading.into_config().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The example, as the startd reads it.
pub fn startd(text: &str) -> Config {
    read_as("STARTD", text)
}

/// A name's expanded value; empty if it is not defined.
pub fn value(config: &Config, name: &str) -> String {
    config.value(name).unwrap().unwrap_or_default()
}

/// A name's value as an expression.
pub fn expr(config: &Config, name: &str) -> Expr {
    config
        .expr(name)
        .unwrap_or_else(|error| panic!("{error}"))
        .unwrap_or_else(|| panic!("{name} is not defined"))
}

/// A name's value, evaluated for a slot and a job, each given as attributes: `KeyboardIdle = 34; State = "Owner"`.
pub fn eval(config: &Config, name: &str, slot: &str, job: &str) -> Value {
    expr(config, name).eval(Some(&ad(slot)), Some(&ad(job)), &Env::at(NOW))
}

/// The same as [`eval`], for a slot whose ad also has the values of the names `published`.
pub fn eval_in(config: &Config, name: &str, published: &[&str], slot: &str, job: &str) -> Value {
    let mut slot = ad(slot);
    for attribute in published {
        slot.insert(*attribute, expr(config, attribute));
    }
    expr(config, name).eval(Some(&slot), Some(&ad(job)), &Env::at(NOW))
}

/// The ad with these attributes.
pub fn ad(attributes: &str) -> Ad {
    Ad::parse_new(&format!("[{attributes}]")).unwrap_or_else(|error| panic!("{error}: {attributes}"))
}

/// Checks a condition for each slot and job. Values that are neither true nor false count as false, as in HTCondor's
/// state machine.
pub fn holds(config: &Config, name: &str, cases: &[(&str, &str, bool)]) {
    for (slot, job, wanted) in cases {
        let found = eval(config, name, slot, job);
        assert_eq!(found.as_bool_equiv().unwrap_or(false), *wanted, "{name} for {slot}, {job}: {found:?}");
    }
}
