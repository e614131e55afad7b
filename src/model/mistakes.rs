//! Mistakes in expressions: parts that are error or undefined whatever the ads say, though the expression can be read.

mod texts;

use std::collections::BTreeSet;

use classad::{Expr, Mistake, Name, References};

use crate::attributes::{absent, is_known, is_of_jobs, is_of_slots, meant};
use crate::pool::Problem;

pub use texts::{foreign, plain, word};

/// The problems with the expressions of an object's fields: parts that are error or undefined whatever the ads say, and texts that nothing
/// has. `fields` are the names of the fields, each with its text; texts that are no expressions are passed over. Attributes for which
/// `is_own` is true count as meant.
pub fn problems<'a>(
    fields: impl IntoIterator<Item = (String, &'a str)>,
    is_own: impl Fn(&str) -> bool,
) -> Vec<Problem> {
    let mut found = Vec::new();
    for (field, text) in fields {
        let Ok(expr) = Expr::parse(text) else { continue };
        let said =
            of(&expr, text).into_iter().chain(unquoted(&expr, text, &is_own)).chain(foreign(&expr, &is_own));
        let problem = |message| Problem { reason: "MistakenExpression", field: field.clone(), message };
        found.extend(said.map(problem));
    }
    found
}

/// The problems with the expressions of fields that stand for knobs: [`problems`], names that are almost those of well-known attributes,
/// and plain texts, which no knob of a number or a truth value takes.
pub fn of_fields<'a>(
    fields: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    is_own: impl Fn(&str) -> bool,
) -> Vec<Problem> {
    let mut found = Vec::new();
    for (field, text) in fields.into_iter().filter_map(|(field, text)| Some((field, text?))) {
        let Ok(expr) = Expr::parse(text) else { continue };
        let problem = |reason| move |message| Problem { reason, field: field.to_owned(), message };
        found.extend(misspelt(&expr, &is_own).into_iter().map(problem("UnlikelyAttribute")));
        found.extend(plain(&expr).into_iter().map(problem("MistakenExpression")));
        found.extend(problems([(field.to_owned(), text)], &is_own));
    }
    found
}

/// Says which attributes in an expression have names that are almost those of well-known attributes, each time as the rest of a sentence
/// that begins with the expression. Attributes for which `is_own` is true count as meant.
pub fn misspelt(expr: &Expr, is_own: impl Fn(&str) -> bool) -> Vec<String> {
    let references = expr.references();
    let all: BTreeSet<&str> =
        references.my.iter().chain(&references.target).chain(&references.bare).map(Name::as_str).collect();
    let strange = all.into_iter().filter(|name| !is_own(name));
    let of = |(name, meant): (&str, &str)| {
        format!(
            "looks at {name}, an attribute that neither nodes nor jobs have unless somebody adds it; did you mean {meant}?"
        )
    };
    strange.filter_map(|name| Some((name, meant(name)?))).map(of).collect()
}

/// Says what is wrong with an expression, each time as the rest of a sentence that begins with the expression. `text` is what was written;
/// an expression whose text is not known has none.
pub fn of(expr: &Expr, text: &str) -> Vec<String> {
    let calls = expr.mistakes().into_iter().map(|mistake| match &mistake {
        Mistake::Function { name } => match (classad::operator_for(name), likely(name)) {
            (Some(operator), _) => format!("{mistake}; write {operator} for {name}"),
            (None, Some(meant)) => format!("{mistake}; did you mean {meant}()?"),
            (None, None) => mistake.to_string(),
        },
        Mistake::Undefined { instead, .. } => format!("{mistake}; write {instead} undefined"),
        _ => mistake.to_string(),
    });
    let quoted = classad::quoted_names(text).map(|name| {
        format!(
            "has '{name}' in single quotes, which is an attribute; a string has double quotes: \"{name}\""
        )
    });
    calls.chain(quoted).chain(texts::divided_label(text)).collect()
}

/// Says which attributes a slot's policy looks for in the wrong ad, each time as the rest of a sentence that begins with the policy: those
/// of slots in the job's ad, and those of jobs in the slot's. Attributes for which `is_own` is true are given to slots on purpose.
pub fn of_sides(references: &References, is_own: impl Fn(&str) -> bool) -> Vec<String> {
    let of_slots = references.target.iter().map(Name::as_str).filter(|name| is_of_slots(name)).map(|name| {
        format!("looks at TARGET.{name}, which no job has unless its author adds it; did you mean MY.{name}?")
    });
    let of_jobs = references.my.iter().map(Name::as_str).filter(|name| is_of_jobs(name) && !is_own(name));
    let of_jobs = of_jobs.map(|name| {
        format!(
            "looks at MY.{name}, which no slot has unless a policy publishes it; did you mean TARGET.{name}?"
        )
    });
    of_slots.chain(of_jobs).collect()
}

/// Attributes that are texts, and that expressions compare with texts.
const TEXTS: [&str; 12] = [
    "Activity",
    "Arch",
    "Machine",
    "Name",
    "OpSys",
    "OpSysAndVer",
    "Owner",
    "RemoteGroup",
    "RemoteUser",
    "State",
    "SubmitterGroup",
    "User",
];

/// Attributes in which a proc remembers earlier machines.
const OF_EARLIER_MACHINES: [&str; 2] = ["MachineAttr", "LastMatchName"];

/// Says which names an expression compares with texts though no ad has attributes of these names, each time as the rest of a sentence
/// that begins with the expression: `Owner == bob`. Attributes for which `is_own` is true count as meant, and [`of`] says those that have
/// single quotes in `text`, which is what was written.
pub fn unquoted(expr: &Expr, text: &str, is_own: impl Fn(&str) -> bool) -> Vec<String> {
    let is_text = |name: &str| TEXTS.iter().any(|text| text.eq_ignore_ascii_case(name));
    let begins =
        |name: &str, with: &str| name.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with));
    let is_meant = |name: &str| {
        is_known(name)
            || is_own(name)
            || classad::quoted_names(text).any(|quoted| quoted == name)
            || absent(name).is_some()
            || meant(name).is_some()
            || OF_EARLIER_MACHINES.iter().any(|with| begins(name, with))
    };
    let strange = expr.compared_names().filter(|(attribute, name)| is_text(attribute) && !is_meant(name));
    let of = |(attribute, name): (&str, &str)| {
        format!(
            "compares {attribute} with {name}, an attribute that neither nodes nor jobs have unless somebody adds it; a text has double \
             quotes: \"{name}\""
        )
    };
    strange.map(of).collect()
}

/// The function whose name is one slip away from this name.
fn likely(name: &str) -> Option<&'static str> {
    let folded = name.to_ascii_lowercase();
    classad::function_names().find(|known| strsim::osa_distance(&folded, known) == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_quotes_is_said() {
        for (text, expected) in [
            ("Owner == bob", Some(("Owner", "bob"))),
            ("TARGET.Machine =!= node7 && Cpus > 3", Some(("Machine", "node7"))),
            ("idle == MY.Activity", Some(("Activity", "idle"))),
            // A slip of another attribute, an attribute that is known, one that is added, and one of earlier machines.
            ("Owner == Machin", None),
            ("Machine =!= LastRemoteHost && Owner == friend", None),
            ("TARGET.Machine =!= MachineAttrMachine1", None),
            ("Site == cern", None),
            ("Owner == 'bob'", None),
        ] {
            let expected: Vec<String> = expected.into_iter().map(|(attribute, name)| {
                format!(
                    "compares {attribute} with {name}, an attribute that neither nodes nor jobs have unless somebody adds it; a text has \
                     double quotes: \"{name}\""
                )
            }).collect();
            let is_own = |name: &str| name == "friend";
            assert_eq!(unquoted(&Expr::parse(text).unwrap(), text, is_own), expected, "{text}");
        }
    }

    #[test]
    fn what_is_always_error_or_likely_a_string_is_said() {
        for (text, expected) in [
            ("Owner == \"alice\" && regexp(\"a.*\", Machine)", vec![]),
            (
                "regexpp(\"a\", Owner)",
                vec!["calls regexpp(), which is no function: the call is error; did you mean regexp()?"],
            ),
            ("isStudent(Owner)", vec!["calls isStudent(), which is no function: the call is error"]),
            (
                "TARGET.RemoteOwner == undefined",
                vec!["compares with undefined by ==, which is never true nor false; write =?= undefined"],
            ),
            (
                "Owner != undefined",
                vec!["compares with undefined by !=, which is never true nor false; write =!= undefined"],
            ),
            ("not (A)", vec!["calls not(), which is no function: the call is error; write ! for not"]),
            (
                "Owner == 'alice'",
                vec![
                    "has 'alice' in single quotes, which is an attribute; a string has double quotes: \"alice\"",
                ],
            ),
        ] {
            assert_eq!(of(&Expr::parse(text).unwrap(), text), expected, "{text}");
        }
    }
}
