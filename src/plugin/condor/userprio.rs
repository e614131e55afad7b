//! `condor_userprio`.

use api::{Negotiator, Submitter};
use classad::Ad;
use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use model::pool::Time;
use serde_json::{Map, Value, json};
use tools::users::{self, Asked, Change, Edit, Request};

use super::{Answer, Failure, Outcome, place, version};
use crate::cluster::{Cluster, Connection};
use crate::userprio::{UserLine, choose_negotiator, lines};

/// The longest name of an object.
const LONGEST: usize = 253;

pub(super) async fn run(words: &[String], connection: &Connection, width: Option<usize>) -> Outcome {
    match users::parse(words)? {
        Asked::Help => Ok(Answer { text: format!("{}\n", users::USAGE), ..Answer::default() }),
        Asked::Version => Ok(version()),
        Asked::Users(request) => show(&request, connection, width).await,
        Asked::Edit(edit) => change(&edit, connection).await,
    }
}

async fn show(request: &Request, connection: &Connection, width: Option<usize>) -> Outcome {
    let screen = place::screen(width);
    let cluster = Cluster::connect(connection).await?;
    let submitters: Vec<Submitter> = cluster.list_all().await?;
    let negotiators: Vec<Negotiator> = cluster.list_all().await?;
    let name = request.negotiator.as_deref();
    let unknown = || Failure(format!("condor_userprio: no Negotiator {}", name.unwrap_or_default()));
    let (negotiator, note) = choose_negotiator(&negotiators, name).ok_or_else(unknown)?;
    let found = lines(&submitters, &negotiator, Time::from_secs(screen.now));
    let ads: Vec<Ad> = found.iter().map(|line| ad(line, &submitters, screen.now)).collect();
    Ok(Answer { text: request.print(&ads, &screen), notes: note.into_iter().collect(), ..Answer::default() })
}

/// The ad of a submitter, as the accountant of HTCondor has it.
fn ad(line: &UserLine, submitters: &[Submitter], now: i64) -> Ad {
    let mut ad = Ad::new()
        .with("MyType", "Accounting")
        .with("Name", line.name.as_str())
        .with("Priority", line.effective_priority)
        .with("PriorityFactor", line.priority_factor)
        .with("ResourcesUsed", i64::try_from(line.resources_used).unwrap_or(i64::MAX))
        .with("WeightedResourcesUsed", line.weighted_resources_used)
        .with("WeightedAccumulatedUsage", line.weighted_usage_hours * 3600.0)
        .with("LastUpdate", now);
    // Who uses something uses it now.
    let last = if line.resources_used > 0 {
        Some(now)
    } else {
        line.last_usage_time.as_ref().map(|time| time.0.as_second())
    };
    if let Some(last) = last {
        ad.set("LastUsageTime", last);
    }
    if let Some(ceiling) = line.ceiling {
        ad.set("Ceiling", ceiling);
    }
    if let Some(floor) = object(submitters, &line.name).and_then(|submitter| submitter.spec.floor) {
        ad.set("Floor", floor);
    }
    ad
}

/// The Submitter of a name at the accountant.
fn object<'a>(submitters: &'a [Submitter], name: &str) -> Option<&'a Submitter> {
    let is = |submitter: &&Submitter| {
        let own = submitter.status.as_ref().map(|status| status.name.as_str()).filter(|own| !own.is_empty());
        own.map_or_else(|| submitter.name_any() == name, |own| own == name)
    };
    submitters.iter().find(is)
}

async fn change(edit: &Edit, connection: &Connection) -> Outcome {
    let cluster = Cluster::connect(connection).await?;
    let submitters: Vec<Submitter> = cluster.list_all().await?;
    let unknown = || {
        Failure(format!(
            "condor_userprio: no Submitter {}; see all with: condor_userprio -allusers",
            edit.user
        ))
    };
    let found = object(&submitters, &edit.user);
    let found = found.map(|submitter| (submitter.name_any(), submitter.uid().unwrap_or_default()));
    let spec = || patch(edit, Timestamp::now());
    match (found, edit.what) {
        (Some((name, uid)), Change::Delete) => cluster.remove::<Submitter>(None, &name, &uid).await?,
        (Some((name, _)), _) => cluster.merge::<Submitter>(None, &name, &json!({"spec": spec()})).await?,
        // HTCondor's accountant keeps an entry for each name that it was ever told. So a name without a Submitter
        // gets one.
        (None, Change::Factor(_) | Change::Ceiling(_) | Change::Floor(_)) => {
            if !is_object_name(&edit.user) {
                return Err(Failure(format!(
                    "condor_userprio: no Submitter {user}, and none can be created before {user} submits a job: a name with \
                     other characters than a-z, 0-9, - and . is not the name of a Submitter, and the operator chooses the name; \
                     submit a job of {user} first",
                    user = edit.user
                )));
            }
            let object = json!({
                "apiVersion": Submitter::api_version(&()),
                "kind": Submitter::kind(&()),
                "metadata": {"name": edit.user},
                "spec": spec(),
            });
            cluster.make::<Submitter>(None, &object).await?;
        }
        (None, _) => return Err(unknown()),
    }
    Ok(Answer { text: said(edit), ..Answer::default() })
}

/// Whether an object may have this name: parts of lower-case letters, digits and hyphens, with dots in between.
fn is_object_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || c == '-')
    };
    name.len() <= LONGEST && name.split('.').all(is_part)
}

/// The part of the Submitter's spec that an edit sets. Each correction has an id of its own, so that it is made once.
fn patch(edit: &Edit, now: Timestamp) -> Value {
    let time = |secs: i64| Timestamp::from_second(secs).unwrap_or_default().to_string();
    let corrections = |fields: &[(&str, Value)]| {
        let id = format!("condor-userprio-{}", now.as_millisecond());
        // The fields that an earlier correction set are taken back.
        let none = [
            "realPriority",
            "accumulatedUsage",
            "weightedAccumulatedUsage",
            "beginUsageTime",
            "lastUsageTime",
        ];
        let mut correction: Map<String, Value> =
            none.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
        correction.insert("id".to_owned(), json!(id));
        correction.insert("negotiator".to_owned(), json!(edit.negotiator));
        correction.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        json!({"correction": correction})
    };
    let correction = |field: &str, value: Value| corrections(&[(field, value)]);
    match edit.what {
        Change::Factor(factor) => json!({"priorityFactor": factor}),
        Change::Ceiling(ceiling) => json!({"ceiling": ceiling}),
        Change::Floor(floor) => json!({"floor": floor}),
        Change::Priority(priority) => correction("realPriority", json!(priority)),
        Change::Usage(usage) => correction("weightedAccumulatedUsage", json!(usage)),
        Change::Begin(secs) => correction("beginUsageTime", json!(time(secs))),
        Change::Last(secs) => correction("lastUsageTime", json!(time(secs))),
        Change::Reset | Change::Delete => corrections(&[
            ("weightedAccumulatedUsage", json!(0.0)),
            ("accumulatedUsage", json!(0.0)),
            ("beginUsageTime", json!(time(now.as_second()))),
        ]),
    }
}

fn said(edit: &Edit) -> String {
    let user = &edit.user;
    match edit.what {
        Change::Factor(factor) => format!("The priority factor of {user} was set to {factor}\n"),
        Change::Ceiling(ceiling) => format!("The ceiling of {user} was set to {ceiling}\n"),
        Change::Floor(floor) => format!("The floor of {user} was set to {floor}\n"),
        Change::Priority(priority) => format!("The priority of {user} was set to {priority}\n"),
        Change::Usage(usage) => format!("The Accumulated Usage of {user} was set to {usage}\n"),
        Change::Begin(secs) => format!("The Begin Usage Time of {user} was set to {secs}\n"),
        Change::Last(secs) => format!("The Last Usage Time of {user} was set to {secs}\n"),
        Change::Reset => format!("The accumulated usage of {user} was reset\n"),
        Change::Delete => format!("The accountant record named {user} was deleted\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_submitters_that_no_object_may_have_are_known() {
        for (name, expected) in [
            ("alice", true),
            ("physics.alice-2", true),
            ("0", true),
            ("group_physics.alice", false),
            ("Alice", false),
            ("alice@pool", false),
            ("", false),
            (".a", false),
            ("a..b", false),
            ("a-", false),
            ("-a", false),
            ("\u{e4}", false),
        ] {
            assert_eq!(is_object_name(name), expected, "{name}");
        }
        assert!(is_object_name(&"a".repeat(253)) && !is_object_name(&"a".repeat(254)));
    }
}
