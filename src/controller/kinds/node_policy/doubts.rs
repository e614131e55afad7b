//! Warnings about the expressions in the fields of a NodePolicy.

use api::NodePolicySpec;
use classad::Expr;
use model::mistakes;
use model::pool::{Problem, StartdConfig};
use model::startd::config as startd;

/// The warnings about the expressions of the fields: mistakes, names that are misspelt or looked for in the wrong ad, and attributes that
/// only agents report. `config` is what the fields and the text say together: an attribute that the policy itself gives to slots counts as
/// meant.
pub(super) fn of_fields(spec: &NodePolicySpec, config: &StartdConfig) -> Vec<Problem> {
    // The programs of cron jobs may publish any attribute.
    let programs = !config.cron.tab.jobs.is_empty();
    let is_own = |name: &str| is_published(spec, config, name);
    let is_meant = |name: &str| programs || is_own(name);
    let fields = [("spec.start", spec.start.as_deref()), ("spec.slotWeight", spec.slot_weight.as_deref())];
    let mut found = mistakes::of_fields(fields, is_own);
    for (field, text) in fields {
        let Some(expr) = text.and_then(|text| Expr::parse(text).ok()) else { continue };
        let problem = |reason, message| Problem { reason, field: field.to_owned(), message };
        let of_sides = startd::of_policy(&expr, is_meant).into_iter();
        found.extend(of_sides.map(|message| problem("MistakenExpression", message)));
        if field == "spec.start" {
            let unreported = startd::start_not_reported(&expr, &config.slots.attributes);
            found.extend(unreported.map(|message| problem("AttributeNotReported", message)));
        }
    }
    let attributes =
        || spec.attributes.iter().map(|(name, text)| (format!("spec.attributes[{name}]"), text.as_str()));
    found.extend(mistakes::problems(attributes(), is_own));
    found.extend(attributes().filter_map(|(field, text)| {
        let word = mistakes::word(text, is_meant)?;
        let message = format!(
            "reads the attribute {word}, which neither nodes nor jobs have unless somebody adds it; a string has its own quotes: '\"{word}\"'"
        );
        Some(Problem { reason: "MistakenExpression", field, message })
    }));
    found
}

/// Whether the policy publishes an attribute of this name in its slots' ads.
fn is_published(spec: &NodePolicySpec, config: &StartdConfig, name: &str) -> bool {
    let is = |own: &str| own.eq_ignore_ascii_case(name);
    let slots = [&config.slots].into_iter().chain(config.types.values()).chain(config.single.values());
    spec.attributes.keys().any(|own| is(own))
        || slots.flat_map(|slot| &slot.attributes).any(|(own, _)| is(own))
        || config.job_attrs.iter().any(|own| is(own))
}
