//! `condor_userprio`.

use api::names::submitter_object_name;
use api::{GroupQuota, Negotiator, Submitter};
use classad::Ad;
use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use model::pool::Time;
use serde_json::{Map, Value, json};
use tools::users::{self, Asked, Change, Edit, Request, without_domain};

use super::{Answer, Failure, Outcome, place, version};
use crate::cluster::{Cluster, Connection};
use crate::userprio::{UserLine, choose_negotiator, lines};

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
    let object = submitter_object_name(name);
    submitters.iter().find(|submitter| submitter.name_any() == object)
}

async fn change(edit: &Edit, connection: &Connection) -> Outcome {
    let cluster = Cluster::connect(connection).await?;
    let submitters: Vec<Submitter> = cluster.list_all().await?;
    let meant = meant(&edit.user, &submitters);
    let notes = meant.iter().map(|name| format!("{} is {name}: submitters have no domain here", edit.user));
    let notes = notes.collect();
    let edit = &Edit { user: meant.unwrap_or(&edit.user).to_owned(), ..edit.clone() };
    let unknown = || {
        Failure(format!(
            "condor_userprio: no Submitter {}; see all with: condor_userprio -allusers",
            edit.user
        ))
    };
    let found = object(&submitters, &edit.user);
    let found = found.map(|submitter| (submitter.name_any(), submitter.uid().unwrap_or_default()));
    if found.is_none() && is_group(&cluster.list_all().await?, &edit.user) {
        let instead = "spec.priorityFactor of its GroupQuota is the factor of its submitters, and spec.quota is their limit";
        let message = format!("condor_userprio: {} is a group, which has no account; {instead}", edit.user);
        return Err(Failure(message));
    }
    let spec = || patch(edit, Timestamp::now());
    match (found, edit.what) {
        (Some((name, uid)), Change::Delete) => cluster.remove::<Submitter>(None, &name, &uid).await?,
        (Some((name, _)), _) => cluster.merge::<Submitter>(None, &name, &json!({"spec": spec()})).await?,
        // HTCondor's accountant keeps an entry for each name that it was ever told. So a name without a Submitter
        // gets one.
        (None, Change::Factor(_) | Change::Ceiling(Some(_)) | Change::Floor(_)) => {
            let name = submitter_object_name(&edit.user);
            let mut spec = spec();
            if let Some(fields) = spec.as_object_mut().filter(|_| name != edit.user) {
                fields.insert("name".to_owned(), json!(edit.user));
            }
            let object = json!({
                "apiVersion": Submitter::api_version(&()),
                "kind": Submitter::kind(&()),
                "metadata": {"name": name},
                "spec": spec,
            });
            cluster.make::<Submitter>(None, &object).await?;
        }
        (None, _) => return Err(unknown()),
    }
    Ok(Answer { text: said(edit), notes, ..Answer::default() })
}

/// The submitter that is meant by a name with a domain, as people type it in HTCondor; `None` if the name itself is meant: it has no
/// domain, or it is that of a Submitter, as where users own jobs and a user's name has an @.
fn meant<'n>(name: &'n str, submitters: &[Submitter]) -> Option<&'n str> {
    without_domain(name).filter(|_| object(submitters, name).is_none())
}

/// Whether a name is that of an accounting group. HTCondor's condor_userprio demands a domain, which groups do not have.
fn is_group(groups: &[GroupQuota], name: &str) -> bool {
    let of = |group: &GroupQuota| group.spec.group.clone().unwrap_or_else(|| group.name_any());
    groups.iter().any(|group| of(group).eq_ignore_ascii_case(name))
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
        Change::Ceiling(ceiling) => format!("The ceiling of {user} was set to {}\n", ceiling.unwrap_or(-1.0)),
        Change::Floor(floor) => format!("The floor of {user} was set to {floor}\n"),
        Change::Priority(priority) => format!("The priority of {user} was set to {priority}\n"),
        Change::Usage(usage) => format!("The Accumulated Usage of {user} was set to {usage}\n"),
        Change::Begin(secs) => format!("The Begin Usage Time of {user} was set to {secs}\n"),
        Change::Last(secs) => format!("The Last Usage Time of {user} was set to {secs}\n"),
        Change::Reset => format!("The accumulated usage of {user} was reset\n"),
        Change::Delete => format!("The accountant record named {user} was deleted\n"),
    }
}
