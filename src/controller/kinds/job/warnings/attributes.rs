//! Warns about `spec.attributes`.

use api::HTCJob;
use classad::{Expr, Value};
use model::pool::Problem;
use submit::commands::{COMMANDS, Support};

use super::{commands, warning};

/// Commands of submit files that look like attributes, and of which condor_submit makes `OnExitRemove`. Nothing acts on them here.
const NOT_ACTED_ON: [&str; 3] = ["MaxRetries", "RetryUntil", "SuccessExitCode"];

/// Attributes that are acted on where a submit file is submitted, and nowhere else.
const AT_SUBMISSION: [&str; 5] = ["Err", "Iwd", "Out", "ShouldTransferFiles", "TransferInput"];

pub(super) fn of_attributes(job: &HTCJob) -> Vec<Problem> {
    let why = |name: &String| {
        if NOT_ACTED_ON.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            let message = "condor_submit turns this command of submit files into OnExitRemove; give OnExitRemove instead";
            return Some(message.to_owned());
        }
        if AT_SUBMISSION.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            let message = "only the submission of a submit file acts on it; put files into a ConfigMap or a volume of the template";
            return Some(message.to_owned());
        }
        let mut of_attribute = COMMANDS.iter().filter(|command| command.attribute.eq_ignore_ascii_case(name));
        match of_attribute.next().map(|command| command.support) {
            Some(Support::NoEffect(why) | Support::Refused(why)) => Some(why.to_owned()),
            Some(Support::Honored(_)) | None => None,
        }
    };
    let told = |(name, text): (&String, &String)| {
        let is_off = text.trim().eq_ignore_ascii_case("false");
        let why = why(name).filter(|_| !is_off).or_else(|| commands::why(name))?;
        Some(not_acted_on(name, format!("nothing acts on it: {why}")))
    };
    let attributes = job.spec.attributes.iter();
    attributes.filter_map(|attribute| told(attribute).or_else(|| of_universe(attribute))).collect()
}

fn not_acted_on(name: &str, message: impl Into<String>) -> Problem {
    warning("AttributeNotActedOn", format!("spec.attributes.{name}"), message)
}

/// The warning of a job that says of itself to be of another universe than the vanilla universe, which is 5.
fn of_universe((name, text): (&String, &String)) -> Option<Problem> {
    let is_vanilla = || Expr::parse(text).is_ok_and(|expr| expr.as_literal() == Some(&Value::Int(5)));
    (name.eq_ignore_ascii_case("JobUniverse") && !is_vanilla()).then(|| {
        let why = "changes what policies see, and not how the job runs: each job is of the vanilla universe, 5; leave it out";
        not_acted_on(name, why)
    })
}
