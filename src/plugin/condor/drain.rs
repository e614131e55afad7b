//! `condor_drain`: drains a machine by a DrainRequest.

use ::submit::manifest::in_new_syntax;
use api::DrainRequest;
use api::condition::DRAINED;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use tools::options::{ToolOption, Words, find};

use super::{Answer, Failure, Outcome, place, version};
use crate::cluster::{Cluster, Connection};
use crate::if_allowed;

/// How condor_drain is used here.
const USAGE: &str = "\
Usage: condor_drain [OPTIONS] MACHINE
  -graceful (default), -quick, -fast   how jobs leave
  -resume-on-completion                then take jobs again
  -reason TEXT                         why
  -check EXPRESSION                    only if this is true of all slots
  -start EXPRESSION                    the START expression meanwhile
  -cancel [-request-id ID]             delete the DrainRequests of the machine, or this one
  -verbose                             print the request's id, which is the name of the DrainRequest";

#[derive(Clone, Copy)]
enum Does {
    Help,
    Version,
    Verbose,
    Cancel,
    Schedule(&'static str),
    Resume,
    /// An option with a text, which becomes this field.
    Text(&'static str),
    /// The next word is an expression, in the old syntax of ClassAds, and the value of this field in the new one.
    Expression(&'static str),
    RequestId,
    Nothing,
    Refused(&'static str),
}

const NO_STARTD: &str =
    "a machine has no startd of its own; cordon the node with kubectl cordon if it is not to return";

const fn known(name: &'static str, least: usize, does: Does) -> ToolOption<Does> {
    ToolOption { name, least, does }
}

const OPTIONS: &[ToolOption<Does>] = &[
    known("help", 1, Does::Help),
    known("version", 1, Does::Version),
    known("debug", 3, Does::Nothing),
    known("verbose", 4, Does::Verbose),
    known("pool", 1, Does::Refused("there is one pool, that of the kubeconfig's cluster")),
    known("cancel", 1, Does::Cancel),
    known("fast", 1, Does::Schedule("Fast")),
    known("quick", 1, Does::Schedule("Quick")),
    known("graceful", 1, Does::Schedule("Graceful")),
    known("resume-on-completion", 1, Does::Resume),
    known("exit-on-completion", 2, Does::Refused(NO_STARTD)),
    known("restart-on-completion", 4, Does::Refused(NO_STARTD)),
    known("reconfig-on-completion", 3, Does::Refused("a change of the NodePolicy takes effect by itself")),
    known("reason", 3, Does::Text("reason")),
    known("request-id", 3, Does::RequestId),
    known("check", 2, Does::Expression("check")),
    known("start", 5, Does::Expression("start")),
];

/// The request of a command line.
#[derive(Debug, Default)]
struct Asked {
    machine: String,
    cancel: bool,
    request_id: Option<String>,
    verbose: bool,
    spec: serde_json::Map<String, Value>,
}

fn parse(words: &[String]) -> Result<Result<Asked, Answer>, String> {
    let mut asked = Asked::default();
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            if !asked.machine.is_empty() {
                return Err(format!("ERROR: unexpected argument: {word}"));
            }
            // A slot's machine stands behind the at sign.
            word.rsplit('@').next().unwrap_or(word).clone_into(&mut asked.machine);
            continue;
        }
        let given =
            find(word, OPTIONS).ok_or_else(|| format!("ERROR: unexpected argument: {word}\n{USAGE}"))?;
        let mut value = || {
            let missing = || format!("condor_drain: '{word}' requires another argument");
            words.next().map(str::to_owned).ok_or_else(missing)
        };
        match given.does {
            Does::Help => return Ok(Err(Answer { text: format!("{USAGE}\n"), ..Answer::default() })),
            Does::Version => return Ok(Err(version())),
            Does::Verbose => asked.verbose = true,
            Does::Cancel => asked.cancel = true,
            Does::Schedule(schedule) => {
                asked.spec.insert("schedule".to_owned(), json!(schedule));
            }
            Does::Resume => {
                asked.spec.insert("onCompletion".to_owned(), json!("Resume"));
            }
            Does::Text(field) => {
                asked.spec.insert(field.to_owned(), json!(value()?));
            }
            Does::Expression(field) => {
                asked.spec.insert(field.to_owned(), json!(in_new_syntax(&value()?)));
            }
            Does::RequestId => asked.request_id = Some(value()?),
            Does::Nothing => {}
            Does::Refused(why) => return Err(format!("ERROR: -{} is not supported: {why}", given.name)),
        }
    }
    match (&asked.request_id, asked.cancel) {
        _ if asked.machine.is_empty() => Err("ERROR: must specify one target machine".to_owned()),
        (Some(_), false) => Err("ERROR: -request-id may only be used with -cancel".to_owned()),
        (_, true) if !asked.spec.is_empty() => {
            Err("ERROR: -cancel may be used with -request-id only".to_owned())
        }
        _ => Ok(Ok(asked)),
    }
}

pub(super) async fn run(words: &[String], connection: &Connection) -> Outcome {
    let mut asked = match parse(words)? {
        Ok(asked) => asked,
        Err(answer) => return Ok(answer),
    };
    let cluster = Cluster::connect(connection).await?;
    if asked.cancel {
        return cancel(&cluster, &asked).await;
    }
    let mut notes = Vec::new();
    let machines = if_allowed(cluster.list_metadata::<Node>().await, &mut notes)?;
    if machines.is_some_and(|all| !all.iter().any(|node| node.name.as_ref() == Some(&asked.machine))) {
        return Err(Failure(format!("ERROR: unknown host {}", asked.machine)));
    }
    let requests: Vec<DrainRequest> = cluster.list_all().await?;
    if let Some(name) = requests.iter().find_map(|request| drains(request, &asked.machine)) {
        let machine = &asked.machine;
        return Err(Failure(format!("ERROR: {machine} is draining already, by DrainRequest {name}")));
    }
    let name = format!("condor-drain-{}-{}", asked.machine, place::now());
    asked.spec.insert("node".to_owned(), json!(asked.machine));
    let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "DrainRequest",
        "metadata": {"name": name}, "spec": asked.spec});
    cluster.make::<DrainRequest>(None, &object).await?;
    let mut text = format!("Sent request to drain {}.\n", asked.machine);
    if asked.verbose {
        text = format!("{text}\tRequest id: {name}\n");
    }
    Ok(Answer { text, notes, ..Answer::default() })
}

/// The name of a request, if it drains this machine or is about to.
fn drains<'r>(request: &'r DrainRequest, machine: &str) -> Option<&'r str> {
    let conditions = request.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let phase = conditions.iter().find(|condition| condition.type_ == DRAINED);
    let phase = phase.map(|condition| condition.reason.as_str());
    let drains =
        request.spec.node == machine && matches!(phase, None | Some("Waiting" | "Draining" | "Drained"));
    request.metadata.name.as_deref().filter(|_| drains)
}

async fn cancel(cluster: &Cluster, asked: &Asked) -> Outcome {
    let requests: Vec<DrainRequest> = cluster.list_all().await?;
    let is_meant = |request: &&DrainRequest| {
        request.spec.node == asked.machine
            && asked.request_id.as_ref().is_none_or(|id| request.metadata.name.as_ref() == Some(id))
    };
    let meant: Vec<&DrainRequest> = requests.iter().filter(is_meant).collect();
    if meant.is_empty() {
        return Err(Failure(format!("ERROR: {} is not draining by such a request", asked.machine)));
    }
    for request in meant {
        cluster
            .remove::<DrainRequest>(
                None,
                request.metadata.name.as_deref().unwrap_or_default(),
                request.metadata.uid.as_deref().unwrap_or_default(),
            )
            .await?;
    }
    Ok(Answer {
        text: format!("Sent request to cancel draining on {}\n", asked.machine),
        ..Answer::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_a_drain_request() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let asked = parse(&words("-quick -reason kernel -resume slot1@node7 -start true")).unwrap().unwrap();
        assert_eq!(asked.machine, "node7");
        assert_eq!(
            Value::Object(asked.spec),
            json!({"schedule": "Quick", "reason": "kernel", "onCompletion": "Resume", "start": "true"})
        );
        let asked = parse(&words(r#"-check regexp("\d",Name) node7"#)).unwrap().unwrap();
        assert_eq!(asked.spec["check"], r#"regexp("\\d",Name)"#);
        for (line, part) in [
            ("-fast", "must specify one target machine"),
            ("a b", "unexpected argument: b"),
            ("-exit a", "-exit-on-completion is not supported"),
            ("-request-id x a", "only be used with -cancel"),
            ("-cancel -fast a", "-cancel may be used"),
            ("-reason", "requires another argument"),
        ] {
            assert!(parse(&words(line)).is_err_and(|error| error.contains(part)), "{line}");
        }
    }
}
