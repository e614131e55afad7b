//! Asks the agents of machines to run the cron jobs of their policies.
//!
//! The cron jobs that an agent is to run stand in the spec of its machine's report, so that an agent that starts anew knows them.
//! The pool compares the spec that it sees with what the policy says now.

use std::sync::Arc;
use std::time::Duration;

use super::ad::machine_ad;
use crate::pool::{CronPolicy, Crontab, Effect, Machine, MachineName, Pool, StartdConfig, Time};
use classad::Env;

/// How long the operator waits for a report to show the jobs that it asked for. Then it asks again: the write failed, or somebody changed
/// the spec.
const ASK_AGAIN: Duration = Duration::from_mins(1);

/// Asks the machine's agent to run the policy's cron jobs, if its report shows others. Returns when to compare again. A machine without a
/// report has no agent to ask: the report's appearance leads back here.
pub(super) fn ask(
    pool: &mut Pool,
    name: &MachineName,
    config: &StartdConfig,
    now: Time,
    effects: &mut Vec<Effect>,
) -> Option<Time> {
    let machine = pool.machines().get(name)?;
    let report = machine.report.as_ref()?;
    let again = (!config.cron.conditions.is_empty()).then(|| now + config.slots.policy.update_interval);
    let wanted = wanted(machine, &config.cron, now);
    let seen = report.cron.as_ref();
    if seen.map_or(wanted.jobs.is_empty(), |seen| *seen == wanted) {
        return again;
    }
    let asked =
        machine.cron_asked.as_ref().filter(|(asked, _)| **asked == wanted).map(|(_, at)| *at + ASK_AGAIN);
    if let Some(patient) = asked.filter(|patient| now < *patient) {
        return again.into_iter().chain([patient]).min();
    }
    let tab = Arc::new(wanted);
    pool.edit_machine(name, |machine| machine.cron_asked = Some((Arc::clone(&tab), now)));
    effects.push(Effect::Cron { machine: name.clone(), tab });
    again.into_iter().chain([now + ASK_AGAIN]).min()
}

/// The jobs that the agent is to run now. A job whose condition is not true stays in the list, and does not start. The condition is
/// evaluated "in a context similar to a slot ad, but without any slot-specific attributes".
fn wanted(machine: &Machine, policy: &CronPolicy, now: Time) -> Crontab {
    let mut tab = policy.tab.clone();
    if policy.conditions.is_empty() {
        return tab;
    }
    let (ad, env) = (machine_ad(machine), Env::at(now.secs()));
    for job in &mut tab.jobs {
        let condition = policy.conditions.get(&job.name);
        let met =
            |condition: &classad::Expr| condition.eval(Some(&ad), None, &env).as_bool_equiv() == Some(true);
        job.may_start = condition.is_none_or(met);
    }
    tab
}
