//! Submitters of accounts.

use serde_json::Value;

use super::accounts::Account;
use super::groups::Groups;
use super::object::object;
use api::names::submitter_object_name;
use api::{AccountCorrection, Submitter, SubmitterSpec};
use controller::convert::kube_time;
use model::negotiator::Config;
use model::negotiator::accountant::MIN_REAL_PRIORITY;
use model::pool::Time;

/// The Submitters of all accounts that say more than that there is a submitter: the operator makes the others.
pub(super) fn objects(accounts: &[Account], knobs: &Config, groups: &Groups) -> Vec<Value> {
    accounts.iter().filter_map(|account| submitter(account, knobs, groups)).collect()
}

fn submitter(account: &Account, knobs: &Config, groups: &Groups) -> Option<Value> {
    // HTCondor writes a factor that follows from the configuration into the account, too.
    let otherwise = knobs.priority_factor(&account.full, groups.of_submitter(&account.full));
    let is_own = |factor: &f64| (factor - otherwise).abs() > 1e-6 * otherwise;
    let spec = SubmitterSpec {
        name: None,
        priority_factor: account.factor.filter(is_own),
        ceiling: account.ceiling,
        floor: account.floor,
        correction: correction(account),
    };
    if spec == SubmitterSpec::default() {
        return None;
    }
    let name = submitter_object_name(account.name());
    let spec = SubmitterSpec { name: (name != account.name()).then(|| account.name().to_owned()), ..spec };
    Some(object(&Submitter::new(&name, spec)))
}

/// The usage of an account, as a correction: `None` if there is none.
fn correction(account: &Account) -> Option<AccountCorrection> {
    let time = |secs: Option<i64>| secs.map(|secs| kube_time(Time::from_secs(secs)));
    let correction = AccountCorrection {
        id: format!("condor_userprio-{}", account.updated),
        negotiator: None,
        real_priority: account.real_priority.filter(|priority| *priority > MIN_REAL_PRIORITY),
        accumulated_usage: account.usage,
        weighted_accumulated_usage: account.weighted_usage,
        begin_usage_time: time(account.begin),
        last_usage_time: time(account.last),
    };
    let says = correction.real_priority.is_some()
        || correction.accumulated_usage.is_some()
        || correction.weighted_accumulated_usage.is_some();
    says.then_some(correction)
}
