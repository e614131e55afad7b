//! Warns about expressions that can be read, and say something else than they seem to.

use api::HTCJob;
use classad::{Expr, Name};
use model::attributes::{
    absent, is_acting, is_of_procs, is_of_slots, is_of_values, meant, meant_of_proc, not_kept,
};
use model::mistakes;
use model::pool::{LONGEST_DELAY, Problem};

use super::warning;

/// The expressions by which a job is matched, each with its field and its text: those that are evaluated for machines.
fn of_matching(job: &HTCJob) -> impl Iterator<Item = (&'static str, &str, Expr)> {
    let spec = &job.spec;
    let texts = [
        ("requirements", &spec.requirements),
        ("rank", &spec.rank),
        ("concurrencyLimitsExpr", &spec.concurrency_limits_expr),
    ];
    texts.into_iter().filter_map(|(field, text)| {
        let text = text.as_deref()?;
        Some((field, text, Expr::parse(text).ok()?))
    })
}

/// Whether the spec gives the job an attribute of this name.
fn is_own(job: &HTCJob, name: &Name) -> bool {
    job.spec.attributes.keys().any(|own| own.eq_ignore_ascii_case(name.as_str()))
}

/// Attributes in expressions of matching that only procs have.
pub(super) fn of_procs(job: &HTCJob) -> Vec<Problem> {
    let mut found = Vec::new();
    for (field, _, expr) in of_matching(job) {
        let references = expr.references();
        let names = references.my.iter().chain(references.bare.iter()).filter(|name| !is_own(job, name));
        found.extend(names.filter(|name| is_of_procs(name.as_str())).map(|name| {
            let message = format!(
                "{} is undefined here: it differs from proc to proc, and all procs of a job are matched as one",
                name.as_str()
            );
            warning("AttributeOfProcs", format!("spec.{field}"), message)
        }));
    }
    found
}

/// Parts of the job's expressions that are error or undefined whatever the ads say.
pub(super) fn of_mistakes(job: &HTCJob) -> Vec<Problem> {
    let spec = &job.spec;
    let fields = [
        ("spec.requirements", &spec.requirements),
        ("spec.rank", &spec.rank),
        ("spec.concurrencyLimitsExpr", &spec.concurrency_limits_expr),
    ];
    let fields = fields.into_iter().filter_map(|(field, text)| Some((field.to_owned(), text.as_deref()?)));
    let attributes =
        spec.attributes.iter().map(|(name, text)| (format!("spec.attributes[{name}]"), text.as_str()));
    let is_own = |name: &str| job.spec.attributes.keys().any(|own| own.eq_ignore_ascii_case(name));
    mistakes::problems(fields.chain(attributes), is_own)
}

/// Expressions that are nothing but a text, where only a truth value or a number acts.
pub(super) fn texts(job: &HTCJob) -> Vec<Problem> {
    let spec = &job.spec;
    let fields = [("spec.requirements", &spec.requirements), ("spec.rank", &spec.rank)];
    let fields = fields.into_iter().filter_map(|(field, text)| Some((field.to_owned(), text.as_deref()?)));
    let attributes = spec.attributes.iter().filter(|(name, _)| is_of_values(name));
    let attributes = attributes.map(|(name, text)| (format!("spec.attributes[{name}]"), text.as_str()));
    let told = |(field, text): (String, &str)| {
        let message = mistakes::plain(&Expr::parse(text).ok()?)?;
        Some(warning("MistakenExpression", field, message))
    };
    fields.chain(attributes).filter_map(told).collect()
}

/// A NextJobStartDelay that is longer than the longest that counts.
pub(super) fn long_delay(job: &HTCJob) -> Option<Problem> {
    let (name, text) =
        job.spec.attributes.iter().find(|(name, _)| name.eq_ignore_ascii_case("NextJobStartDelay"))?;
    let seconds = Expr::parse(text).ok()?.as_literal()?.as_int()?;
    let message = format!(
        "{seconds} seconds count as {LONGEST_DELAY}, which is the longest delay; write {LONGEST_DELAY}"
    );
    (seconds > LONGEST_DELAY).then(|| warning("DelayShortened", format!("spec.attributes[{name}]"), message))
}

/// Attributes in expressions of matching whose names are almost those of well-known attributes. The job's own attributes count as
/// meant.
pub(super) fn misspelt(job: &HTCJob) -> Vec<Problem> {
    let mut found = Vec::new();
    for (field, _, expr) in of_matching(job) {
        let references = expr.references();
        let names = references.target.iter().chain(references.bare.iter().filter(|name| !is_own(job, name)));
        found.extend(names.filter_map(|name| Some((name, meant(name.as_str())?))).map(|(name, meant)| {
            let message = format!(
                "no machine has the attribute {} unless an admin adds it; did you mean {meant}?",
                name.as_str()
            );
            warning("UnlikelyAttribute", format!("spec.{field}"), message)
        }));
    }
    found
}

/// Attributes of slots that expressions of matching look for in the job's own ad.
pub(super) fn of_sides(job: &HTCJob) -> Vec<Problem> {
    let mut found = Vec::new();
    for (field, _, expr) in of_matching(job) {
        let references = expr.references();
        let names = references.my.iter().filter(|name| is_of_slots(name.as_str()) && !is_own(job, name));
        found.extend(names.map(Name::as_str).map(|name| {
            let message = format!(
                "looks at MY.{name}, which no job has unless its author adds it; did you mean TARGET.{name}?"
            );
            warning("MistakenExpression", format!("spec.{field}"), message)
        }));
    }
    found
}

/// Attributes in expressions of matching that slots of HTCondor have, and no slot here.
pub(super) fn of_absent(job: &HTCJob) -> Vec<Problem> {
    let mut found = Vec::new();
    for (field, _, expr) in of_matching(job) {
        let references = expr.references();
        let names = references.target.iter().chain(references.bare.iter().filter(|name| !is_own(job, name)));
        found.extend(names.filter_map(|name| Some((name, absent(name.as_str())?))).map(|(name, instead)| {
            let message = format!("no slot has {} unless an admin adds it; {instead}", name.as_str());
            warning("AbsentAttribute", format!("spec.{field}"), message)
        }));
    }
    found
}

/// Attributes in expressions that act which no ad of a proc has: those of machines, those that are not kept, and misspelt ones.
pub(super) fn of_acting(job: &HTCJob) -> Vec<Problem> {
    let mut found = Vec::new();
    for (attribute, text) in job.spec.attributes.iter().filter(|(name, _)| is_acting(name)) {
        let Ok(expr) = Expr::parse(text) else { continue };
        let references = expr.references();
        let mut tell = |reason, message| {
            found.push(warning(reason, format!("spec.attributes[{attribute}]"), message));
        };
        for name in references.target.iter().map(Name::as_str) {
            let message = format!(
                "TARGET.{name} is undefined here: the expression is evaluated for a proc, without a machine; leave TARGET. out for an \
                 attribute of the job"
            );
            tell("AbsentAttribute", message);
        }
        let own = references.my.iter().chain(references.bare.iter()).filter(|name| !is_own(job, name));
        for name in own.map(Name::as_str) {
            if is_of_slots(name) {
                let message =
                    format!("{name} is undefined here: slots have it, and the expression sees the job alone");
                tell("AbsentAttribute", message);
            } else if let Some(instead) = not_kept(name) {
                tell("AbsentAttribute", format!("{name} is not kept here; {instead}"));
            } else if let Some(meant) = meant_of_proc(name) {
                let message =
                    format!("no job has the attribute {name} unless it is given; did you mean {meant}?");
                tell("UnlikelyAttribute", message);
            }
        }
    }
    found
}

/// Attributes whose whole text is a name that no ad is known to have: their author likely means a string.
pub(super) fn unquoted(job: &HTCJob) -> Vec<Problem> {
    let is_own = |name: &str| job.spec.attributes.keys().any(|own| own.eq_ignore_ascii_case(name));
    let told = |(attribute, text): (&String, &String)| {
        let word = mistakes::word(text, is_own)?;
        let message = format!(
            "reads the attribute {word}, which the job does not have; a string has its own quotes: '\"{word}\"'"
        );
        Some(warning("MistakenExpression", format!("spec.attributes[{attribute}]"), message))
    };
    job.spec.attributes.iter().filter_map(told).collect()
}
