//! `condor_config_val`: what the pool's configuration says.
//!
//! The configuration stands in objects: that of the schedd in the SubmitPolicy, that of the negotiator in a Negotiator, that of
//! machines in NodePolicies. HTCondor's defaults stand behind each.

use api::{Negotiator, NodePolicy, SubmitPolicy};
use condor_config::{Config, Host, Reader, Source};
use kube::ResourceExt;
use serde_json::Value;

use super::{Answer, Failure, Outcome, version};
use crate::cluster::{Cluster, Connection};
use crate::if_allowed;

const USAGE: &str = "\
Usage: condor_config_val [-schedd | -negotiator | -startd] [-name OBJECT] [-dump] [-verbose] NAME ...
  -schedd, -negotiator, -startd   the configuration of the SubmitPolicy, of Negotiators, of NodePolicies [default: whichever sets
                                  the name, in this order]
  -name OBJECT                    that of the object of this name
  -dump                           all that the objects set
  -verbose                        name the object beside the value";

/// The configuration of one object.
struct Written {
    /// The daemon that reads the configuration in HTCondor.
    daemon: &'static str,
    /// The object, such as `NodePolicy desktops`.
    object: String,
    name: String,
    config: String,
}

/// The request of a command line.
#[derive(Default)]
struct Asked {
    daemon: Option<&'static str>,
    object: Option<String>,
    dump: bool,
    verbose: bool,
    names: Vec<String>,
}

fn parse(words: &[String]) -> Result<Result<Asked, Answer>, String> {
    let mut asked = Asked::default();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-schedd" => asked.daemon = Some("SCHEDD"),
            "-negotiator" => asked.daemon = Some("NEGOTIATOR"),
            "-startd" => asked.daemon = Some("STARTD"),
            "-name" => asked.object = Some(words.next().ok_or("-name requires an argument")?.to_owned()),
            "-dump" | "-d" => asked.dump = true,
            "-verbose" | "-v" => asked.verbose = true,
            "-help" | "-h" => return Ok(Err(Answer { text: format!("{USAGE}\n"), ..Answer::default() })),
            "-version" => return Ok(Err(version())),
            "-set" | "-rset" | "-unset" | "-runset" => {
                return Err(format!(
                    "{word} is not supported: edit spec.config of the SubmitPolicy, Negotiator or NodePolicy"
                ));
            }
            _ if word.starts_with('-') => return Err(format!("{word} is not supported\n{USAGE}")),
            _ => asked.names.push(word.to_owned()),
        }
    }
    if asked.names.is_empty() && !asked.dump { Err(USAGE.to_owned()) } else { Ok(Ok(asked)) }
}

pub(super) async fn run(words: &[String], connection: &Connection) -> Outcome {
    let asked = match parse(words)? {
        Ok(asked) => asked,
        Err(answer) => return Ok(answer),
    };
    let cluster = Cluster::connect(connection).await?;
    let mut notes = Vec::new();
    let texts = texts(&cluster, &asked, &mut notes).await?;
    let text = if asked.dump { dump(&texts)? } else { values(&texts, &asked)? };
    Ok(Answer { text, notes })
}

async fn texts(cluster: &Cluster, asked: &Asked, notes: &mut Vec<String>) -> Result<Vec<Written>, Failure> {
    let policies: Vec<SubmitPolicy> = if_allowed(cluster.list_all().await, notes)?.unwrap_or_default();
    let negotiators: Vec<Negotiator> = if_allowed(cluster.list_all().await, notes)?.unwrap_or_default();
    let of_machines: Vec<NodePolicy> = if_allowed(cluster.list_all().await, notes)?.unwrap_or_default();
    let text = |daemon: &'static str, kind: &str, name: String, spec: serde_json::Result<Value>| {
        let config = spec.ok()?.pointer("/config")?.as_str()?.to_owned();
        Some(Written { daemon, object: format!("{kind} {name}"), name, config })
    };
    let mut all: Vec<Written> = Vec::new();
    all.extend(
        policies.iter().filter_map(|one| {
            text("SCHEDD", "SubmitPolicy", one.name_any(), serde_json::to_value(&one.spec))
        }),
    );
    all.extend(
        negotiators.iter().filter_map(|one| {
            text("NEGOTIATOR", "Negotiator", one.name_any(), serde_json::to_value(&one.spec))
        }),
    );
    all.extend(
        of_machines
            .iter()
            .filter_map(|one| text("STARTD", "NodePolicy", one.name_any(), serde_json::to_value(&one.spec))),
    );
    all.retain(|text| {
        asked.daemon.is_none_or(|daemon| daemon == text.daemon)
            && asked.object.as_ref().is_none_or(|name| *name == text.name)
    });
    Ok(all)
}

fn read(daemon: &str, object: &str, text: &str) -> Result<Config, Failure> {
    let reading = Reader::new(Host::none()).subsystem(daemon).read(&[Source::new(object, text.to_owned())]);
    reading.into_config().map_err(|error| Failure(error.to_string()))
}

/// The values of names: of the first object that sets the name, or else HTCondor's default.
fn values(texts: &[Written], asked: &Asked) -> Result<String, Failure> {
    let configs: Vec<(&Written, Config)> = texts
        .iter()
        .map(|text| Ok((text, read(text.daemon, &text.object, &text.config)?)))
        .collect::<Result<_, Failure>>()?;
    let defaults = read(asked.daemon.unwrap_or("SCHEDD"), "defaults", "")?;
    let (mut out, mut missing) = (String::new(), Vec::new());
    for name in &asked.names {
        let default = defaults.raw(name);
        let sets = |config: &Config| config.raw(name).is_some_and(|raw| Some(&raw) != default.as_ref());
        let setting = configs.iter().find(|(_, config)| sets(config));
        let (place, config) = setting
            .map_or(("HTCondor's default", &defaults), |(text, config)| (text.object.as_str(), config));
        match config.value(name) {
            Ok(Some(value)) if asked.verbose => out.extend([name, " = ", &value, "\n # at: ", place, "\n"]),
            Ok(Some(value)) => out.extend([&*value, "\n"]),
            Ok(None) => missing.push(format!("Not defined: {name}")),
            Err(error) => missing.push(format!("{name}: {error}")),
        }
    }
    if missing.is_empty() { Ok(out) } else { Err(Failure(out + &missing.join("\n"))) }
}

/// The texts of the objects, each under its name.
fn dump(texts: &[Written]) -> Result<String, Failure> {
    let mut out = String::new();
    for text in texts {
        read(text.daemon, &text.object, &text.config)?;
        out.extend(["# ", text.daemon, " of ", &text.object, "\n", text.config.trim_end(), "\n"]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_object_that_sets_a_name_counts() {
        let text = |daemon, object: &str, text: &str| Written {
            daemon,
            object: object.to_owned(),
            name: object.to_owned(),
            config: text.to_owned(),
        };
        let texts = [
            text("NEGOTIATOR", "Negotiator a", "A = 1\nPRIORITY_HALFLIFE = 60\n"),
            text("STARTD", "NodePolicy b", "A = 2\nB = $(A)3\n"),
        ];
        let asked = |names: &[&str]| Asked {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Asked::default()
        };
        assert_eq!(
            values(&texts, &asked(&["A", "B", "PRIORITY_HALFLIFE", "SLOT_WEIGHT"])).unwrap(),
            "1\n23\n60\nCpus\n"
        );
        let verbose = Asked { verbose: true, ..asked(&["B"]) };
        assert_eq!(values(&texts, &verbose).unwrap(), "B = 23\n # at: NodePolicy b\n");
        assert_eq!(values(&texts, &asked(&["NOBODY"])).unwrap_err().0, "Not defined: NOBODY");
        assert!(dump(&texts).unwrap().starts_with("# NEGOTIATOR of Negotiator a\nA = 1\n"));
    }
}
