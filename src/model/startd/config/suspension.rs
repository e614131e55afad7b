//! Remarks about suspension that never takes place.

use classad::Expr;
use condor_config::Config;

use super::remarks::{Remark, Severity};
use super::unsensed::forms;

/// A remark about SUSPEND and CONTINUE of slots that have no WANT_SUSPEND, which is False by default: the startd looks at the two only
/// where WANT_SUSPEND is true. `name_of` says how the text calls a knob of the slots; none if the text does not set it. Literals are pasted
/// along with whole policies, and mean nothing.
pub(super) fn unwanted(config: &Config, name_of: impl Fn(&str) -> Option<String>) -> Option<Remark> {
    let set = |policy| {
        forms(policy).filter_map(|form| name_of(&form)).filter(|name| config.definition(name).is_some())
    };
    if set("WANT_SUSPEND").next().is_some() {
        return None;
    }
    let says = |name: &String| config.expr(name).ok().flatten().is_some_and(|expr| !is_literal(&expr));
    let knobs: Vec<String> = set("SUSPEND").chain(set("CONTINUE")).filter(says).collect();
    let first = config.definition(knobs.first()?)?;
    let have = if knobs.len() == 1 { "has" } else { "have" };
    let message = format!(
        "{} {have} no effect: WANT_SUSPEND is False unless it is set, and no job is suspended; add WANT_SUSPEND = True",
        knobs.join(", ")
    );
    Some(
        Remark::new(Severity::Warning, "KnobNotActedOn", &config.position(first), message).about(&first.name),
    )
}

/// Whether an expression reads nothing: `True`, `(False)`.
fn is_literal(expr: &Expr) -> bool {
    let references = expr.references();
    references.my.is_empty() && references.target.is_empty() && references.bare.is_empty()
}
