//! Says in words which demands of a job a slot does not meet, and which demands of the slot the job does not meet.

use super::devices;
use crate::pool::units::{bytes, counted, readable};
use crate::pool::{DrainedFor, Machine, Side};
use classad::{Ad, Clause, Env, Expr, Mistake, Value, explain_match};

/// The most attributes of a machine that are shown beside a clause.
const SHOWN: usize = 3;

/// The most bytes of a clause, and of a value, that are shown.
const LENGTH: usize = 256;

/// Something that keeps a slot and a job from matching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The side whose expression is not true.
    pub side: Side,
    /// The field of the job that makes the demand; empty if the machine refuses the job.
    pub field: String,
    /// The lack, as a sentence after the slot's name: `has Arch "X86_64", and TARGET.Arch == "PPC64" is asked for`.
    pub text: String,
}

/// Everything that keeps a slot and a job from matching. `machine` is the slot's machine, if known.
pub fn lacks(job: &Ad, slot: &Ad, machine: Option<&Machine>, env: &Env) -> Vec<Lack> {
    let report = explain_match(job, slot, env);
    let mut found: Vec<Lack> = Vec::new();
    if !report.my.accepts {
        let failed: Vec<&Clause> = report.my.failed().collect();
        found.extend(failed.iter().map(|clause| of_job(clause, job, slot, machine, env)));
        if failed.is_empty() {
            found.push(unfinished(Side::Job, "spec.requirements"));
        }
    }
    if !report.target.accepts {
        let failed: Vec<&Clause> = report.target.failed().collect();
        found.extend(failed.iter().flat_map(|clause| of_machine(clause, job, slot, machine, env)));
        if failed.is_empty() {
            found.push(unfinished(Side::Machine, ""));
        }
    }
    found
}

fn unfinished(side: Side, field: &str) -> Lack {
    let text = match side {
        Side::Job => "cannot be judged: the job's Requirements is missing or takes too many steps",
        Side::Machine => "refuses the job: its Requirements is missing or takes too many steps",
    };
    Lack { side, field: field.to_owned(), text: text.to_owned() }
}

fn of_job(clause: &Clause, job: &Ad, slot: &Ad, machine: Option<&Machine>, env: &Env) -> Lack {
    let lack = |field: &str, text: String| Lack { side: Side::Job, field: field.to_owned(), text };
    if clause.text.contains("countMatches(MY.Require")
        && let Some((field, text)) = machine.and_then(|machine| devices::lack(job, machine, env))
    {
        return lack(field, text);
    }
    let field = if clause.text.starts_with("TARGET.NodeLabels.'") && clause.text.contains(" is \"") {
        "spec.template.spec.nodeSelector"
    } else {
        "spec.requirements"
    };
    let text = shown(&clause.text);
    let has = attributes(&clause.text, job, slot, env);
    let hint = hint(&clause.text, job, slot).map(|hint| format!(" ({hint})")).unwrap_or_default();
    let text = format!("{text}{hint}");
    lack(
        field,
        if has.is_empty() {
            format!("does not meet {text}")
        } else {
            format!("has {has}, and does not meet {text}")
        },
    )
}

/// The attributes of the other ad that a clause reads, with their values: `Arch "X86_64", Memory 2048`.
fn attributes(clause: &str, my: &Ad, target: &Ad, env: &Env) -> String {
    let Ok(expr) = Expr::parse(clause) else { return String::new() };
    let names = expr.references();
    let bare = names.bare.iter().filter(|name| !my.contains(name.as_str()));
    let values = names.target.iter().chain(bare).take(SHOWN).map(|name| {
        match target.eval_attr(name.as_str(), None, env) {
            Value::Undefined => format!("no {name}"),
            Value::Ad(ad) => entries(clause, name.as_str(), &ad, env),
            Value::List(_) => format!("another {name}"),
            value => format!("{name} {}", shown(&value.to_string())),
        }
    });
    values.collect::<Vec<_>>().join(", ")
}

/// The entries of an ad that a clause selects: `no NodeLabels.zone` for `TARGET.NodeLabels.zone == "a"`.
fn entries(clause: &str, name: &str, ad: &Ad, env: &Env) -> String {
    let shown = |key: &str| match ad.eval_attr(key, None, env) {
        Value::Undefined => format!("no {name}.{key}"),
        value => format!("{name}.{key} {}", shown(&value.to_string())),
    };
    let shown: Vec<String> = selected(clause, name).map(shown).take(SHOWN).collect();
    if shown.is_empty() { format!("another {name}") } else { shown.join(", ") }
}

/// The keys that a clause selects from the ad of this name.
fn selected<'c>(clause: &'c str, name: &str) -> impl Iterator<Item = &'c str> {
    let dot = format!("{name}.");
    let places: Vec<usize> = clause.match_indices(&dot).map(|(at, found)| at + found.len()).collect();
    places.into_iter().filter_map(|at| {
        let rest = clause.get(at..)?;
        let key = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split('\'').next(),
            None => rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next(),
        };
        key.filter(|key| !key.is_empty())
    })
}

/// Says what the author of a clause may have meant to write.
fn hint(clause: &str, job: &Ad, slot: &Ad) -> Option<String> {
    let expr = Expr::parse(clause).ok()?;
    let undefined = expr.mistakes().into_iter().find_map(|mistake| match mistake {
        Mistake::Undefined { operator, instead } => {
            Some(format!("{operator} undefined is never true: write {instead} undefined"))
        }
        _ => None,
    });
    if undefined.is_some() {
        return undefined;
    }
    let names = expr.references();
    if selected(clause, "NodeLabels").any(|key| clause.contains(&format!("NodeLabels.{key}."))) {
        return Some(
            "write a label's key with . or / in single quotes, as in TARGET.NodeLabels.'kubernetes.io/arch'"
                .to_owned(),
        );
    }
    let known = |name: &&classad::Name| job.contains(name.as_str()) || slot.contains(name.as_str());
    let unknown = names.bare.iter().find(|name| !known(name))?;
    // An attribute that is compared with a literal may be missing on this machine alone.
    let compared = names.target.iter().chain(&names.bare).any(|name| known(&name)) && clause.contains("==");
    compared.then(|| format!("neither side has an attribute {unknown}: write a text in double quotes"))
}

fn of_machine(clause: &Clause, job: &Ad, slot: &Ad, machine: Option<&Machine>, env: &Env) -> Vec<Lack> {
    let lack = |text: String| Lack { side: Side::Machine, field: String::new(), text };
    if clause.text.eq_ignore_ascii_case("WithinResourceLimits") {
        let short = too_little(job, slot, env);
        if !short.is_empty() {
            return vec![lack(format!("has {}", short.join(", and ")))];
        }
    }
    let start = clause.text.eq_ignore_ascii_case("START").then(|| slot.get("Start")).flatten();
    let expression = start.map_or_else(|| clause.text.clone(), |start| format!("START = {start}"));
    // While a node is drained, START comes from the drain and not from the policy.
    let is_start = start.is_some() || clause.text.eq_ignore_ascii_case("false");
    if let Some(draining) = machine.and_then(|machine| machine.draining.as_ref()).filter(|_| is_start) {
        return vec![lack(match &draining.why {
            DrainedFor::Request(request) => format!("is drained for DrainRequest {request}"),
            DrainedFor::Cordon => "is cordoned, and is drained".to_owned(),
        })];
    }
    let policy = machine.and_then(|machine| machine.policy.as_ref());
    let by = policy.map(|policy| format!(" of NodePolicy {policy}")).unwrap_or_default();
    let text = start.map(ToString::to_string).unwrap_or(clause.text.clone());
    let has = attributes(&text, slot, job, env);
    let has = if has.is_empty() { String::new() } else { format!(" (the job has {has})") };
    let hint = hint(&text, slot, job).map(|hint| format!(" ({hint})")).unwrap_or_default();
    vec![lack(format!("refuses the job by {}{by}{has}{hint}", shown(&expression)))]
}

/// The resources of which the slot has less than the job requests.
fn too_little(job: &Ad, slot: &Ad, env: &Env) -> Vec<String> {
    let number = |ad: &Ad, name: &str| ad.eval_attr(name, None, env).as_int();
    let mut short = Vec::new();
    for name in ["Cpus", "Memory", "Disk", "GPUs"] {
        let request = job.evaluate_attr(&format!("Request{name}"), Some(slot), env).value.as_int();
        let (Some(asked), has) = (request, number(slot, name).unwrap_or(0)) else { continue };
        if asked > has {
            short.push(format!("{} and the job asks for {}", amount(name, has), amount(name, asked)));
        }
    }
    short
}

/// An amount of a resource in the unit that people write.
pub(super) fn amount(name: &str, amount: i64) -> String {
    let plain = |noun: &str| counted(u64::try_from(amount).unwrap_or(0), noun);
    match name {
        "Cpus" => plain("CPU"),
        "GPUs" => plain("GPU"),
        "Memory" => format!("{} of memory", bytes(amount.saturating_mul(1024))),
        "Disk" => format!("{} of disk", bytes(amount)),
        other => format!("{amount} {other}"),
    }
}

/// An expression or a value for people, shortened if it is very long.
pub(super) fn shown(text: &str) -> String {
    let text = readable(text);
    let end = (0..=LENGTH.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_says_what_the_author_may_have_meant() {
        let slot = Ad::parse_new(
            r#"[Arch = "X86_64"; Memory = 2048; NodeLabels = [zone = "b"; 'kubernetes.io/arch' = "amd64"]]"#,
        );
        let slot = slot.unwrap();
        for (requirements, expected) in [
            (
                "TARGET.Arch == PPC64",
                "has Arch \"X86_64\", no PPC64, and does not meet TARGET.Arch == PPC64 (neither side has an attribute PPC64: write a \
                 text in double quotes)",
            ),
            (
                "TARGET.RemoteOwner == undefined",
                "has no RemoteOwner, and does not meet TARGET.RemoteOwner == undefined (== undefined is never true: write =?= \
                 undefined)",
            ),
            (
                "TARGET.Arch != undefined",
                "has Arch \"X86_64\", and does not meet TARGET.Arch != undefined (!= undefined is never true: write =!= undefined)",
            ),
            ("HasDocker == true", "has no HasDocker, and does not meet HasDocker == true"),
            (
                "TARGET.NodeLabels.zone == \"a\"",
                "has NodeLabels.zone \"b\", and does not meet TARGET.NodeLabels.zone == \"a\"",
            ),
            (
                "TARGET.NodeLabels.'disk.io/kind' == \"ssd\"",
                "has no NodeLabels.disk.io/kind, and does not meet TARGET.NodeLabels.'disk.io/kind' == \"ssd\"",
            ),
            (
                "NodeLabels.kubernetes.io == \"amd64\"",
                "has no NodeLabels.kubernetes, and does not meet NodeLabels.kubernetes.io == \"amd64\" (write a label's key with . or / \
                 in single quotes, as in TARGET.NodeLabels.'kubernetes.io/arch')",
            ),
        ] {
            let mut job = Ad::new();
            job.insert("Requirements", Expr::parse(requirements).unwrap());
            let lacks = lacks(&job, &slot.clone().with("Requirements", true), None, &Env::at(0));
            let texts: Vec<&str> = lacks.iter().map(|lack| lack.text.as_str()).collect();
            assert_eq!(texts, [expected]);
        }
    }
}
