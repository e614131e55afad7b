//! `kubectl slotwright userprio`: shows submitters and their priorities, like `condor_userprio`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as KubeTime;
use serde::Serialize;

use super::text::{minute, span};
use api::{Negotiator, Submitter};
use controller::convert::{self, kube_time};
use controller::kinds;
use model::pool::accountant::Account;
use model::pool::{NegotiatorConfig, NegotiatorFacts, NegotiatorId, Time};
use table::{Align, Table};

/// A line of the answer: one submitter at the time asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserLine {
    /// The submitter's name at the accountant.
    pub name: String,
    /// The real priority times the factor; lower is better.
    pub effective_priority: f64,
    /// The weighted usage, smoothed with the half-life.
    pub real_priority: f64,
    /// The priority factor in force.
    pub priority_factor: f64,
    /// Slots in use.
    pub resources_used: u64,
    /// Slot weight in use.
    pub weighted_resources_used: f64,
    /// The usage since the beginning, in hours of slot weight.
    pub weighted_usage_hours: f64,
    /// The last known moment at which a slot was in use.
    pub last_usage_time: Option<KubeTime>,
    /// The most slot weight that may be in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<f64>,
}

/// The negotiator whose accounts are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenNegotiator {
    /// The negotiator's id.
    pub id: NegotiatorId,
    /// Whether this is the first negotiator by name. Accounts that name no negotiator belong to the first.
    first: bool,
    /// The negotiator's configuration in force.
    pub config: NegotiatorConfig,
}

/// The negotiator of this name, or the first by name; `None` if there is no object of this name. The configuration is
/// that of the object's spec, or of the last spec that was accepted, or else HTCondor's defaults. Defaults for an
/// object are a guess, because the operator may remember what the object's status does not; the second value is then
/// a note.
pub fn choose_negotiator(
    negotiators: &[Negotiator],
    name: Option<&str>,
) -> Option<(ChosenNegotiator, Option<String>)> {
    let unnamed =
        ChosenNegotiator { id: NegotiatorId::Unnamed, first: true, config: NegotiatorConfig::default() };
    let mut all: Vec<_> = negotiators.iter().map(kinds::negotiator::facts).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let config = |facts: &NegotiatorFacts| {
        let recorded = || facts.recorded.as_ref().map(|recorded| &recorded.config);
        facts.config.as_ref().ok().or_else(recorded).map(|config| NegotiatorConfig::clone(config))
    };
    let first = all.iter().find(|facts| config(facts).is_some()).or_else(|| all.first());
    let asked = match name {
        Some(name) => Some(all.iter().find(|facts| &*facts.name == name)?),
        None => first,
    };
    let Some(facts) = asked else { return Some((unnamed, None)) };
    let (id, first) = (Some(&*facts.name).into(), first.is_some_and(|first| first.name == facts.name));
    if let Some(config) = config(facts) {
        return Some((ChosenNegotiator { id, first, config }, None));
    }
    let note = format!(
        "the negotiator {} is not accepted, and never was as far as its status says: HTCondor's defaults are assumed",
        facts.name
    );
    Some((ChosenNegotiator { id, first, ..unnamed }, Some(note)))
}

/// A line for each submitter, the best priority first. Objects that the operator does not recognize are left out.
pub fn lines(submitters: &[Submitter], negotiator: &ChosenNegotiator, now: Time) -> Vec<UserLine> {
    let mut lines: Vec<UserLine> =
        submitters.iter().filter_map(|object| line(object, negotiator, now)).collect();
    lines.sort_by(|a, b| {
        a.effective_priority.total_cmp(&b.effective_priority).then_with(|| a.name.cmp(&b.name))
    });
    lines
}

fn line(object: &Submitter, negotiator: &ChosenNegotiator, now: Time) -> Option<UserLine> {
    let (facts, config) = (kinds::submitter::facts(object)?, &negotiator.config);
    // A factor that follows from the group or from a nice user's name was worked out by the operator, and is in the
    // status.
    let in_force = object.status.as_ref().and_then(|status| {
        let other = negotiator.id.name().and_then(|name| status.accounts.get(&**name));
        let own = negotiator.first.then_some(status.priority_factor);
        other.map(|other| other.priority_factor).or(own).filter(|factor| *factor >= 1.0)
    });
    let factor = facts.factor.or(in_force).unwrap_or(config.default_factor);
    let unnamed = || facts.accounts.of(&NegotiatorId::Unnamed).filter(|_| negotiator.first);
    let account = facts.accounts.of(&negotiator.id).or_else(unnamed).cloned();
    let account = account.unwrap_or_else(|| Account::new(now.millis()));
    let account = account.at(now.millis(), config.halflife.as_secs_f64());
    Some(UserLine {
        name: facts.name.to_string(),
        effective_priority: account.effective_priority(factor),
        real_priority: account.real_priority,
        priority_factor: factor,
        resources_used: account.resources_used,
        weighted_resources_used: account.weighted_resources_used,
        weighted_usage_hours: account.weighted_accumulated_usage / 3600.0,
        last_usage_time: account.last_usage_time.map(|secs| kube_time(Time::from_secs(secs))),
        ceiling: facts.ceiling,
    })
}

/// The lines as a table for people.
pub fn render(lines: &[UserLine], config: &NegotiatorConfig, now: Time) -> String {
    let halflife = i64::try_from(config.halflife.as_secs()).unwrap_or(i64::MAX);
    let mut table = Table::new(&[
        ("UserName", Align::Left),
        ("EffPrio", Align::Right),
        ("RealPrio", Align::Right),
        ("Factor", Align::Right),
        ("InUse", Align::Right),
        ("WghtedHrs", Align::Right),
        ("LastUsage", Align::Right),
    ]);
    for line in lines {
        table.row([
            line.name.clone(),
            format!("{:.2}", line.effective_priority),
            format!("{:.2}", line.real_priority),
            format!("{:.2}", line.priority_factor),
            format!("{:.2}", line.weighted_resources_used),
            format!("{:.2}", line.weighted_usage_hours),
            last_usage(line, now),
        ]);
    }
    // The sum starts at +0, because the standard library's sum of nothing is -0, which people would see.
    let total = |of: fn(&UserLine) -> f64| lines.iter().map(of).fold(0.0, |sum, one| sum + one);
    format!(
        "Priorities at {}, half-life {}\n\n{table}\n{} users: {:.2} in use, {:.2} weighted hours\n",
        minute(&kube_time(now)),
        span(halflife),
        lines.len(),
        total(|line| line.weighted_resources_used),
        total(|line| line.weighted_usage_hours),
    )
}

/// How long ago the last usage was, as `condor_userprio` writes it.
fn last_usage(line: &UserLine, now: Time) -> String {
    match &line.last_usage_time {
        _ if line.resources_used > 0 => "<now>".to_owned(),
        Some(last) => span(now.secs().saturating_sub(convert::time(last).secs())),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn submitter(name: &str, spec: &serde_json::Value, status: &serde_json::Value) -> Submitter {
        serde_json::from_value(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "Submitter",
            "metadata": {"name": name}, "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn negotiator(name: &str, spec: &serde_json::Value) -> Negotiator {
        serde_json::from_value(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator",
            "metadata": {"name": name}, "spec": spec,
        }))
        .unwrap()
    }

    fn submitters() -> Vec<Submitter> {
        let idle = json!({"name": "alice", "realPriority": 8.0, "weightedAccumulatedUsage": 7200.0,
            "beginUsageTime": "2030-01-01T00:00:00Z", "lastUsageTime": "2030-01-01T00:00:00Z",
            "updateTime": "2030-01-01T00:00:00.000000Z"});
        let busy = json!({"name": "bob", "realPriority": 0.5, "resourcesUsed": 2, "weightedResourcesUsed": 4.0,
            "updateTime": "2030-01-01T00:00:00.000000Z"});
        vec![
            submitter("alice", &json!({"priorityFactor": 100.0}), &idle),
            submitter("bob", &json!({}), &busy),
            submitter("carol", &json!({"ceiling": 3.0}), &json!(null)),
            submitter("wrong-object", &json!({}), &json!({"name": "dave"})),
        ]
    }

    fn later(hours: i64) -> Time {
        Time::from_secs("2030-01-01T00:00:00Z".parse::<jiff::Timestamp>().unwrap().as_second() + hours * 3600)
    }

    #[test]
    fn priorities_are_those_of_the_moment() {
        let negotiators = [
            negotiator("b", &json!({"priorityHalflifeSeconds": 1})),
            negotiator("a", &json!({"priorityHalflifeSeconds": 3600, "defaultPriorityFactor": 10.0})),
        ];
        let (first, note) = choose_negotiator(&negotiators, None).unwrap();
        assert_eq!(note, None);
        let at = |hours| render(&lines(&submitters(), &first, later(hours)), &first.config, later(hours));
        insta::assert_snapshot!(format!("{}\n{}", at(0), at(2)));
    }

    /// "You should always name the specific negotiator you want condor_userprio to talk to with the -name option."
    #[test]
    fn accounts_are_those_with_the_negotiator_that_is_asked_for() {
        let negotiators = ["cpu", "gpu"].map(|name| negotiator(name, &json!({})));
        let gpu = json!({"realPriority": 9.0, "priorityFactor": 500.0, "weightedResourcesUsed": 3.0,
            "updateTime": "2030-01-01T00:00:00.000000Z"});
        let status = json!({"name": "alice", "negotiator": "cpu", "realPriority": 2.0, "priorityFactor": 1000.0,
            "updateTime": "2030-01-01T00:00:00.000000Z", "accounts": {"gpu": gpu}});
        let found = |name: Option<&str>| {
            let (asked, _) = choose_negotiator(&negotiators, name)?;
            let lines = lines(&[submitter("alice", &json!({}), &status)], &asked, later(0));
            lines.first().map(|line| (line.real_priority, line.priority_factor, line.weighted_resources_used))
        };
        assert_eq!(found(None), Some((2.0, 1000.0, 0.0)));
        assert_eq!(found(Some("cpu")), Some((2.0, 1000.0, 0.0)));
        assert_eq!(found(Some("gpu")), Some((9.0, 500.0, 3.0)));
        assert_eq!(found(Some("other")), None);
    }

    #[test]
    fn a_negotiator_that_is_not_accepted_is_a_guess() {
        let (asked, note) =
            choose_negotiator(&[negotiator("n", &json!({"slotConstraint": "1 +"}))], None).unwrap();
        assert_eq!(asked.config, NegotiatorConfig::default());
        assert!(note.is_some_and(|note| note.contains("negotiator n is not accepted")));
    }

    #[test]
    fn nobody_is_nothing() {
        let config = NegotiatorConfig::default();
        assert!(render(&[], &config, later(0)).ends_with("\n0 users: 0.00 in use, 0.00 weighted hours\n"));
    }
}
