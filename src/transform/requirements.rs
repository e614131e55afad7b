//! Submit requirements: conditions that a job must meet to be accepted.

use classad::{Ad, Env, Expr, Value};
use condor_config::{Config, Diagnostic, Severity};

use crate::transforms::{about, names};

/// The submit requirements of a configuration: `SUBMIT_REQUIREMENT_NAMES`, and for each name `SUBMIT_REQUIREMENT_<name>`, with
/// `_REASON` and `_IS_WARNING` behind it.
///
/// In the expressions, MY (or `SCHEDD`) is the ad of the schedd, and TARGET (or `JOB`) is the job. A bare name is looked up in
/// the schedd's ad, then in the job's.
#[derive(Clone, Debug, Default)]
pub struct Requirements {
    list: Vec<Requirement>,
}

#[derive(Clone, Debug)]
struct Requirement {
    name: String,
    condition: Expr,
    reason: Option<Expr>,
    is_warning: bool,
}

/// The answer of [`Requirements::check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The first requirement that the job does not meet, if there is such a requirement. The requirements behind it were not
    /// looked at.
    pub refused: Option<Unmet>,
    /// The requirements before it that the job does not meet, and that only warn.
    pub warnings: Vec<Unmet>,
}

/// A requirement that a job does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The name of the requirement.
    pub name: String,
    /// The text that the user is told.
    pub reason: String,
}

impl Requirements {
    /// Reads the requirements of a configuration. Errors and warnings are added to `findings`.
    ///
    /// A requirement that is no expression is an error, although HTCondor leaves such a requirement out. As in HTCondor, a name
    /// without `SUBMIT_REQUIREMENT_<name>` is skipped; it is warned of.
    pub fn of(config: &Config, findings: &mut Vec<Diagnostic>) -> Self {
        let names = names(config, "SUBMIT_REQUIREMENT_NAMES", findings);
        Self { list: names.iter().filter_map(|name| read(config, name, findings)).collect() }
    }

    /// The names of the requirements, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|requirement| requirement.name.as_str())
    }

    /// Whether there are no requirements.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Checks a job, after its transforms, in the order of the requirements.
    ///
    /// A requirement is met if its value is true or a number other than 0. If the value is neither boolean nor number, such as
    /// undefined, the job is refused, even by a requirement that only warns.
    pub fn check(&self, schedd: &Ad, job: &Ad, env: &Env) -> Verdict {
        let mut verdict = Verdict::default();
        for requirement in &self.list {
            let unmet = |reason: String| Unmet { name: requirement.name.clone(), reason };
            let value = evaluate(&requirement.condition, schedd, job, env);
            match value.as_bool_equiv() {
                Some(true) => {}
                Some(false) => {
                    let unmet = unmet(requirement.reason(schedd, job, env));
                    if requirement.is_warning {
                        verdict.warnings.push(unmet);
                        continue;
                    }
                    verdict.refused = Some(unmet);
                    break;
                }
                None => {
                    let what = match value {
                        Value::List(_) | Value::Ad(_) => "failed to evaluate",
                        _ => "evaluated to non-boolean",
                    };
                    let reason = format!("Submit requirement {} {what}.", requirement.name);
                    verdict.refused = Some(unmet(reason));
                    break;
                }
            }
        }
        verdict
    }
}

impl Requirement {
    /// The value of the reason if it is a string, else a standard sentence.
    fn reason(&self, schedd: &Ad, job: &Ad, env: &Env) -> String {
        let told = self.reason.as_ref().map(|reason| evaluate(reason, schedd, job, env));
        match told {
            Some(Value::Str(reason)) => reason.to_string(),
            _ => format!("Submit requirement {} not met.", self.name),
        }
    }
}

/// The value of an expression with the schedd as MY and the job as TARGET.
fn evaluate(expr: &Expr, schedd: &Ad, job: &Ad, env: &Env) -> Value {
    let names = expr.references().bare;
    let (uses_schedd, uses_job) =
        (names.iter().any(|name| name.is("SCHEDD")), names.iter().any(|name| name.is("JOB")));
    if !uses_schedd && !uses_job {
        return expr.eval(Some(schedd), Some(job), env);
    }
    // The ads are there under HTCondor's other names for them, as attributes.
    let mut my = schedd.clone();
    if uses_schedd {
        my.set("SCHEDD", schedd.clone());
    }
    if uses_job {
        my.set("JOB", job.clone());
    }
    expr.eval(Some(&my), Some(job), env)
}

fn read(config: &Config, name: &str, findings: &mut Vec<Diagnostic>) -> Option<Requirement> {
    let knob = format!("SUBMIT_REQUIREMENT_{name}");
    if config.text(&knob).is_ok_and(|text| text.is_none()) {
        let message =
            format!("SUBMIT_REQUIREMENT_NAMES names {name}, but {knob} is not defined: {name} does nothing");
        findings.push(about(config, "SUBMIT_REQUIREMENT_NAMES", Severity::Warning, message));
        return None;
    }
    let condition = expression(config, &knob, findings)?;
    let reason = expression(config, &format!("{knob}_REASON"), findings);
    let is_warning = match config.boolean(&format!("{knob}_IS_WARNING")) {
        Ok(is_warning) => is_warning.unwrap_or(false),
        Err(error) => {
            let position = error.position().clone();
            let told = error.to_string();
            let message = told.strip_prefix(&format!("{position}: ")).unwrap_or(&told).to_owned();
            findings.push(Diagnostic { severity: Severity::Error, position, message });
            false
        }
    };
    Some(Requirement { name: name.to_owned(), condition, reason, is_warning })
}

/// The expression that is a knob's value, with C escapes in its strings. `None`: the knob is not defined, or its value is no
/// expression, which is added to the findings.
fn expression(config: &Config, knob: &str, findings: &mut Vec<Diagnostic>) -> Option<Expr> {
    let text = match config.text(knob) {
        Ok(text) => text?,
        Err(error) => {
            findings.push(error.into());
            return None;
        }
    };
    Expr::parse(&text.as_str())
        .map_err(|error| {
            let position = config.position_in(&text, error.line(), error.column());
            let message = format!("{knob} is no expression: {}", error.fault());
            findings.push(Diagnostic { severity: Severity::Error, position, message });
        })
        .ok()
}
