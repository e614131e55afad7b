//! ConcurrencyLimits of `<name>_LIMIT` and `CONCURRENCY_LIMIT_DEFAULT_<set>`.
//!
//! HTCondor looks at `<name>_LIMIT` when a job takes the limit, so that such a name may as well be a macro of the admin's own:
//! `WALLTIME_LIMIT = 3 * $(HOUR)`. A name to which values other than limits refer is taken for a macro.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Taken;
use super::names::Names;
use super::notes::{Notes, without_place};
use super::object::object;
use api::{ConcurrencyLimit, ConcurrencyLimitSpec};
use condor_config::knobs::{self, Class};
use condor_config::{Config, Definition, Origin};
use model::pool::limits::{is_limit_name, is_plain_name};

/// The knob of the limit of each member of a set, before the set's name.
const OF_SET: &str = "CONCURRENCY_LIMIT_DEFAULT_";
/// The knob of one limit, behind the limit's name.
const OF_ONE: &str = "_LIMIT";

/// The ConcurrencyLimits, in the order of their names. A value that cannot be used is left out, and noted.
pub(super) fn objects(central: &Config, taken: &mut Taken, notes: &mut Notes) -> Vec<Value> {
    let mut limits: BTreeMap<String, ConcurrencyLimitSpec> = BTreeMap::new();
    for definition in central.definitions().filter(|definition| definition.origin != Origin::Predefined) {
        let knob = bare(central, &definition.name);
        let Some((name, is_set)) = limit_of(knob) else { continue };
        taken.insert(definition.name.to_ascii_lowercase());
        let number = central
            .real(knob)
            .and_then(|number| number.map(|number| central.in_range(knob, number)).transpose());
        let of_limit = |other: &Definition| limit_of(bare(central, &other.name)).is_some();
        if let Some(other) = central.referring(knob).find(|other| !of_limit(other)) {
            if number.is_ok() {
                let message = format!(
                    "{knob} is taken for a macro, since {} refers to it; if jobs take a concurrency limit of that name, write a \
                     ConcurrencyLimit",
                    other.name
                );
                notes.at(central.position(definition), message);
            }
            continue;
        }
        let fits = if is_set { is_plain_name(name) } else { is_limit_name(name) };
        match number {
            Ok(Some(number)) if fits => {
                let limit = limits.entry(name.to_ascii_lowercase()).or_default();
                limit.name.get_or_insert_with(|| name.to_owned());
                *(if is_set { &mut limit.limit_of_each } else { &mut limit.limit }) = Some(number);
            }
            Ok(Some(_)) => {
                let why = "a limit is NAME or SET.NAME of letters, digits and _, no digit first";
                notes.at(central.position(definition), format!("{knob} is left out: {why}"));
            }
            // The knob is defined as nothing: HTCondor takes its default.
            Ok(None) => {}
            Err(fault) => {
                let message = format!("{}; the limit is left out", without_place(&fault));
                notes.at(fault.position().clone(), message);
            }
        }
    }
    let mut names = Names::default();
    let one = |(_, spec): (String, ConcurrencyLimitSpec)| {
        let limit = spec.name.clone().unwrap_or_default();
        let name = names.of(&limit);
        let is_same = name.eq_ignore_ascii_case(&limit);
        let spec = ConcurrencyLimitSpec { name: (!is_same).then_some(limit), ..spec };
        object(&ConcurrencyLimit::new(&name, spec))
    };
    limits.into_iter().map(one).collect()
}

/// A name without the negotiator's prefix.
fn bare<'n>(central: &Config, name: &'n str) -> &'n str {
    let own = |(prefix, _): &(&str, &str)| prefix.eq_ignore_ascii_case(central.subsystem());
    name.split_once('.').filter(own).map_or(name, |(_, bare)| bare)
}

/// The limit, or the set of limits, that a knob gives a number, and whether it is a set.
fn limit_of(knob: &str) -> Option<(&str, bool)> {
    let Class::Knob(known) = knobs::classify(knob) else { return None };
    match known.name {
        "CONCURRENCY_LIMIT_DEFAULT_<set>" => Some((knob.get(OF_SET.len()..)?, true)),
        "<name>_LIMIT" => Some((knob.get(..knob.len().checked_sub(OF_ONE.len())?)?, false)),
        _ => None,
    }
}
