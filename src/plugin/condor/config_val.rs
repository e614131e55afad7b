//! `condor_config_val`: what the pool's configuration says.
//!
//! The configuration stands in objects: that of the schedd in the SubmitPolicy, that of the negotiator in a Negotiator, that of
//! machines in NodePolicies. HTCondor's defaults stand behind each.

use api::{Negotiator, NodePolicy, SubmitPolicy};
use condor_config::knobs::{self, Class};
use condor_config::{Config, Host, Origin, Reader, Source};
use controller::kinds::{negotiator, node_policy};
use kube::ResourceExt;
use model::startd::config::MACHINE_MACROS;
use serde::Serialize;
use serde_json::Value;

use super::{Answer, Failure, Outcome, version};
use crate::ads::Objects;
use crate::cluster::{Cluster, Connection};
use crate::if_allowed;

const USAGE: &str = "\
Usage: condor_config_val [-schedd | -negotiator | -startd] [-name NAME] [-verbose] NAME ...
       condor_config_val [-schedd | -negotiator | -startd] [-name NAME] -dump [NAME ...]
  -schedd, -negotiator, -startd   the configuration of the SubmitPolicy, of Negotiators, of NodePolicies [default: whichever sets
                                  the name, in this order]
  -name NAME                      that of the object of this name, or of this node
  -dump                           all that the objects set, or what they set of names that contain NAME
  -verbose                        name the object beside the value";

/// The configuration of one object.
struct ObjectConfig {
    /// The daemon that reads the configuration in HTCondor.
    daemon: &'static str,
    /// The object, such as `NodePolicy desktops`.
    object: String,
    name: String,
    /// `spec.config`, and behind it the fields of the spec that stand for knobs.
    config: String,
}

/// The texts that answer, and the node for which they are read.
struct Read {
    texts: Vec<ObjectConfig>,
    /// The macros of the node; `None` if the user named no node, so that the values of these macros are not known.
    macros: Option<Vec<(String, String)>>,
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
    let read = read(&cluster, &asked, &mut notes).await?;
    let (text, missing) = if asked.dump {
        (dump(&read, &asked, &mut notes)?, Vec::new())
    } else {
        values(&read, &asked, &mut notes)?
    };
    let status = u8::from(!missing.is_empty());
    notes.extend(missing);
    Ok(Answer { text, notes, status })
}

/// Reads the configuration of the objects that are meant.
async fn read(cluster: &Cluster, asked: &Asked, notes: &mut Vec<String>) -> Result<Read, Failure> {
    let mut texts = texts(cluster, notes).await?;
    texts.retain(|text| asked.daemon.is_none_or(|daemon| daemon == text.daemon));
    let Some(name) = &asked.object else { return Ok(Read { texts, macros: None }) };
    if texts.iter().any(|text| text.name == *name) {
        texts.retain(|text| text.name == *name);
        return Ok(Read { texts, macros: None });
    }
    // As in HTCondor, a slot or a startd may be named, such as slot1@node7.
    let node = name.rsplit('@').next().unwrap_or(name);
    let Some(governing) = Objects::governing(cluster, node, crate::now()).await? else {
        return Err(Failure(format!(
            "Error: there is no {name}: name a node, or an object that has a spec.config"
        )));
    };
    texts.retain(|text| text.daemon == STARTD && Some(&text.name) == governing.policy.as_ref());
    Ok(Read { texts, macros: Some(governing.macros) })
}

const STARTD: &str = "STARTD";

/// The configuration of all objects.
async fn texts(cluster: &Cluster, notes: &mut Vec<String>) -> Result<Vec<ObjectConfig>, Failure> {
    let policies: Vec<SubmitPolicy> = if_allowed(cluster.list_all().await, notes)?.unwrap_or_default();
    let negotiators: Vec<Negotiator> = if_allowed(cluster.list_all().await, notes)?.unwrap_or_default();
    let of_machines: Vec<NodePolicy> = if_allowed(cluster.list_all().await, notes)?.unwrap_or_default();
    let mut all: Vec<ObjectConfig> = Vec::new();
    all.extend(policies.iter().filter_map(|one| text("SCHEDD", "SubmitPolicy", one, &one.spec, &[])));
    let fields = &negotiator::KNOBS_OF_FIELDS;
    all.extend(negotiators.iter().filter_map(|one| text("NEGOTIATOR", "Negotiator", one, &one.spec, fields)));
    let fields = &node_policy::KNOBS_OF_FIELDS;
    all.extend(of_machines.iter().filter_map(|one| text(STARTD, "NodePolicy", one, &one.spec, fields)));
    Ok(all)
}

/// The configuration of an object; `None` if the object gives none.
fn text(
    daemon: &'static str,
    kind: &str,
    object: &impl ResourceExt,
    spec: &impl Serialize,
    fields: &[(&str, &str)],
) -> Option<ObjectConfig> {
    let config = written(&serde_json::to_value(spec).ok()?, daemon, fields)?;
    let name = object.name_any();
    Some(ObjectConfig { daemon, object: format!("{kind} {name}"), name, config })
}

/// The configuration that a spec gives, as a text, with the knobs for which fields stand; `None` if the spec gives none.
fn written(spec: &Value, daemon: &str, fields: &[(&str, &str)]) -> Option<String> {
    let mut text = spec.pointer("/config").and_then(Value::as_str).unwrap_or_default().trim_end().to_owned();
    // A field goes before the text, even where the text names the daemon: NEGOTIATOR.NEGOTIATOR_INTERVAL.
    for (field, knob) in fields {
        let value = match spec.get(*field) {
            Some(Value::String(value)) => value.split_whitespace().collect::<Vec<_>>().join(" "),
            Some(Value::Number(value)) => value.to_string(),
            _ => continue,
        };
        text.extend(["\n", daemon, ".", knob, " = ", &value]);
    }
    (!text.is_empty()).then(|| text.trim_start_matches('\n').to_owned() + "\n")
}

fn parsed(daemon: &str, object: &str, text: &str, macros: &[(String, String)]) -> Result<Config, Failure> {
    let host = Host { predefined: macros.to_vec(), ..Host::none() };
    let reading = Reader::new(host).subsystem(daemon).read(&[Source::new(object, text.to_owned())]);
    reading.into_config().map_err(|error| Failure(error.to_string()))
}

/// A text's configuration on a node; if no node is known, on two nodes that differ in everything.
struct Configs {
    config: Config,
    other: Option<Config>,
}

impl Configs {
    fn of(
        daemon: &str,
        object: &str,
        text: &str,
        macros: Option<&[(String, String)]>,
    ) -> Result<Self, Failure> {
        if let Some(macros) = macros {
            return Ok(Self { config: parsed(daemon, object, text, macros)?, other: None });
        }
        let all = |value: &str| -> Vec<(String, String)> {
            MACHINE_MACROS.iter().map(|name| ((*name).to_owned(), value.to_owned())).collect()
        };
        let config = parsed(daemon, object, text, &all("3"))?;
        Ok(Self { config, other: Some(parsed(daemon, object, text, &all("70"))?) })
    }

    /// The value of a name. Fails if the value depends on the node and none is known.
    fn value(&self, name: &str) -> Result<Option<String>, String> {
        let value = |config: &Config| config.value(name).map_err(|error| error.to_string());
        let found = value(&self.config)?;
        match &self.other {
            Some(other) if value(other)? != found => {
                Err("depends on the node: name one with -name".to_owned())
            }
            _ => Ok(found),
        }
    }
}

/// Whether a configuration itself defines a name, with or without its daemon before the name.
fn is_defined(config: &Config, name: &str) -> bool {
    let with_daemon = format!("{}.{name}", config.subsystem());
    [name, &with_daemon].into_iter().any(|name| config.definition(name).is_some())
}

/// The default of a knob in Slotwright, if HTCondor's is another; an empty text if the knob is unset by default.
fn ours(name: &str) -> Option<&'static str> {
    let Class::Knob(knob) = knobs::classify(name) else { return None };
    knob.ours
}

/// The values of names: of the first object that sets the name, or else the default. Beside them, what is said of names
/// without a value.
fn values(read: &Read, asked: &Asked, notes: &mut Vec<String>) -> Result<(String, Vec<String>), Failure> {
    let macros = read.macros.as_deref();
    let configs = configs(read, asked, notes)?;
    let daemon = if macros.is_some() { STARTD } else { asked.daemon.unwrap_or("SCHEDD") };
    let defaults = Configs::of(daemon, "defaults", "", macros)?;
    let (mut out, mut missing) = (String::new(), Vec::new());
    for name in &asked.names {
        let (default, ours) = (defaults.config.raw(name), ours(name));
        // A value that is HTCondor's default means something where Slotwright has another default.
        let sets = |configs: &Configs| match configs.config.raw(name) {
            Some(raw) if ours.is_none() => Some(&raw) != default.as_ref(),
            Some(_) => is_defined(&configs.config, name),
            None => false,
        };
        let setting = configs.iter().find(|(_, config)| sets(config));
        let (place, value) = match (setting, ours) {
            (Some((text, config)), _) => (text.object.as_str(), config.value(name)),
            (None, Some("")) => ("Slotwright's default", Ok(None)),
            (None, Some(ours)) => ("Slotwright's default", Ok(Some(ours.to_owned()))),
            (None, None) => ("HTCondor's default", defaults.value(name)),
        };
        let policies = configs.iter().filter(|(text, _)| text.daemon == STARTD).count();
        if setting.is_some_and(|(text, _)| text.daemon == STARTD) && policies > 1 {
            notes.push(format!(
                "note: {name} is that of {place}, and there are {policies} NodePolicies; see a node's by -name NODE"
            ));
        }
        match value {
            Ok(Some(value)) if asked.verbose => out.extend([name, " = ", &value, "\n # at: ", place, "\n"]),
            Ok(Some(value)) => out.extend([&*value, "\n"]),
            Ok(None) => missing.push(format!("Not defined: {name}")),
            Err(error) => missing.push(format!("{name}: {error}")),
        }
    }
    Ok((out, missing))
}

/// The configurations of the objects. A mistake in one object hides no other: the object is left out, and a note says
/// so. Fails if no object is left, or the user named the object.
fn configs<'r>(
    read: &'r Read,
    asked: &Asked,
    notes: &mut Vec<String>,
) -> Result<Vec<(&'r ObjectConfig, Configs)>, Failure> {
    let (mut configs, mut broken) = (Vec::new(), None);
    for text in &read.texts {
        match Configs::of(text.daemon, &text.object, &text.config, read.macros.as_deref()) {
            Ok(config) => configs.push((text, config)),
            Err(failure) if asked.object.is_some() => return Err(failure),
            Err(failure) => {
                notes.push(format!("note: {} is left out: {}", text.object, failure.0));
                broken.get_or_insert(failure);
            }
        }
    }
    match broken {
        Some(failure) if configs.is_empty() => Err(failure),
        _ => Ok(configs),
    }
}

/// The texts of the objects, each under its name; or with names, what the objects set whose name contains one of them.
fn dump(read: &Read, asked: &Asked, notes: &mut Vec<String>) -> Result<String, Failure> {
    let mut out = String::new();
    for (text, configs) in configs(read, asked, notes)? {
        let set = match asked.names.as_slice() {
            [] => text.config.trim_end().to_owned() + "\n",
            names => matching(&configs.config, names),
        };
        if !set.is_empty() {
            out.extend(["# ", text.daemon, " of ", &text.object, "\n", &set]);
        }
    }
    Ok(out)
}

/// Returns what a configuration itself sets of names that contain one of these, as lines of a configuration.
fn matching(config: &Config, parts: &[String]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| part.to_ascii_uppercase()).collect();
    let mut out = String::new();
    for definition in config.definitions().filter(|definition| definition.origin != Origin::Predefined) {
        let name = definition.name.as_str();
        let upper = name.to_ascii_uppercase();
        if !parts.iter().any(|part| upper.contains(part.as_str())) {
            continue;
        }
        let raw = definition.raw();
        let lines = if raw.contains('\n') {
            format!("{name} @=end\n{raw}\n@end\n")
        } else {
            format!("{name} = {raw}\n")
        };
        out.push_str(&lines);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(daemon: &'static str, object: &str, text: &str) -> ObjectConfig {
        let (object, config) = (object.to_owned(), text.to_owned());
        ObjectConfig { daemon, name: object.clone(), object, config }
    }

    fn asked(names: &[&str]) -> Asked {
        Asked { names: names.iter().map(|name| (*name).to_owned()).collect(), ..Asked::default() }
    }

    #[test]
    fn the_first_object_that_sets_a_name_counts() {
        let texts = vec![
            of("NEGOTIATOR", "Negotiator a", "A = 1\nPRIORITY_HALFLIFE = 60\n"),
            of(STARTD, "NodePolicy b", "A = 2\nB = $(A)3\n"),
        ];
        let (read, mut notes) = (Read { texts, macros: None }, Vec::new());
        let known = ["A", "B", "PRIORITY_HALFLIFE", "SLOT_WEIGHT"];
        let none = Vec::<String>::new();
        assert_eq!(
            values(&read, &asked(&known), &mut notes).unwrap(),
            ("1\n23\n60\nCpus\n".to_owned(), none.clone())
        );
        let verbose = Asked { verbose: true, ..asked(&["B"]) };
        assert_eq!(values(&read, &verbose, &mut notes).unwrap().0, "B = 23\n # at: NodePolicy b\n");
        let part = values(&read, &asked(&["NOBODY", "A"]), &mut notes).unwrap();
        assert_eq!((part, notes), (("1\n".to_owned(), vec!["Not defined: NOBODY".to_owned()]), none));
        let dumped = |names: &[&str]| dump(&read, &asked(names), &mut Vec::new()).unwrap();
        assert!(dumped(&[]).starts_with("# NEGOTIATOR of Negotiator a\nA = 1\n"));
        assert_eq!(dumped(&["half"]), "# NEGOTIATOR of Negotiator a\nPRIORITY_HALFLIFE = 60\n");
        assert_eq!(dumped(&["b", "nothing"]), "# STARTD of NodePolicy b\nB = $(A)3\n");
        assert_eq!(dumped(&["DETECTED"]), "");
    }

    #[test]
    fn where_nothing_is_set_the_defaults_of_slotwright_answer() {
        let (read, mut notes) = (Read { texts: Vec::new(), macros: None }, Vec::new());
        let names = ["NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION", "PRIORITY_HALFLIFE", "QUEUE_SUPER_USERS"];
        let verbose = Asked { verbose: true, ..asked(&names) };
        let said = "NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = False\n # at: Slotwright's default\n\
                    PRIORITY_HALFLIFE = 86400\n # at: HTCondor's default\n";
        let missing = vec!["Not defined: QUEUE_SUPER_USERS".to_owned()];
        assert_eq!(values(&read, &verbose, &mut notes).unwrap(), (said.to_owned(), missing));
        let texts = vec![
            of("NEGOTIATOR", "Negotiator a", "NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = true\n"),
            of("SCHEDD", "SubmitPolicy a", "SCHEDD.QUEUE_SUPER_USERS = root, condor\n"),
        ];
        let read = Read { texts, macros: None };
        let htcondors = values(&read, &asked(&[names[0], names[2]]), &mut notes).unwrap();
        assert_eq!(htcondors, ("true\nroot, condor\n".to_owned(), Vec::new()));
    }

    #[test]
    fn a_field_of_a_negotiator_goes_before_its_text() {
        for text in ["NEGOTIATOR_INTERVAL = 30", "NEGOTIATOR.NEGOTIATOR_INTERVAL = 30"] {
            let spec = serde_json::json!({"config": text, "intervalSeconds": 15});
            let config = written(&spec, "NEGOTIATOR", &negotiator::KNOBS_OF_FIELDS).unwrap();
            let read = Read { texts: vec![of("NEGOTIATOR", "Negotiator a", &config)], macros: None };
            assert_eq!(
                values(&read, &asked(&["NEGOTIATOR_INTERVAL"]), &mut Vec::new()).unwrap().0,
                "15\n",
                "{text}"
            );
        }
    }

    #[test]
    fn a_mistake_in_one_object_hides_no_other() {
        let (broken, whole) =
            (|| of(STARTD, "NodePolicy broken", "if\n"), || of(STARTD, "NodePolicy b", "A = 2\n"));
        let both = Read { texts: vec![broken(), whole()], macros: None };
        let mut notes = Vec::new();
        assert_eq!(values(&both, &asked(&["A"]), &mut notes).unwrap().0, "2\n");
        assert!(
            matches!(notes.as_slice(), [note] if note.starts_with("note: NodePolicy broken is left out: ")),
            "{notes:?}"
        );
        assert_eq!(dump(&both, &asked(&[]), &mut Vec::new()).unwrap(), "# STARTD of NodePolicy b\nA = 2\n");
        let named = Asked { object: Some("NodePolicy broken".to_owned()), ..asked(&["A"]) };
        let alone = Read { texts: vec![broken()], macros: None };
        for (read, asked) in [(&both, &named), (&alone, &asked(&["A"]))] {
            assert!(values(read, asked, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn a_value_that_depends_on_the_node_needs_the_node() {
        let spec = serde_json::json!({"config": "HALF = $(DETECTED_CPUS) / 2", "start": "TARGET.RequestCpus\n  <= $(HALF)"});
        let policy =
            of(STARTD, "NodePolicy b", &written(&spec, STARTD, &node_policy::KNOBS_OF_FIELDS).unwrap());
        let mut read = Read { texts: vec![policy, of(STARTD, "NodePolicy c", "")], macros: None };
        let mut notes = Vec::new();
        let missing = values(&read, &asked(&["START"]), &mut notes).unwrap().1;
        assert_eq!(missing, ["START: depends on the node: name one with -name"]);
        assert_eq!(notes.len(), 1, "another NodePolicy may govern the node that is meant");
        read.macros = Some(vec![("DETECTED_CPUS".into(), "32".into())]);
        assert_eq!(
            values(&read, &asked(&["START"]), &mut notes).unwrap().0,
            "TARGET.RequestCpus <= 32 / 2\n"
        );
        assert_eq!(values(&read, &asked(&["DETECTED_CPUS"]), &mut notes).unwrap().0, "32\n");
        assert_eq!(
            written(&serde_json::json!({"nodeSelector": {}}), STARTD, &node_policy::KNOBS_OF_FIELDS),
            None
        );
    }
}
