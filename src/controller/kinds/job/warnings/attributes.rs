//! Warns about `spec.attributes`.

use api::HTCJob;
use model::pool::Problem;
use submit::commands::{COMMANDS, Support};

use super::warning;

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
        let mut commands = COMMANDS.iter().filter(|command| command.attribute.eq_ignore_ascii_case(name));
        match commands.next()?.support {
            Support::Honored(_) => None,
            Support::NoEffect(why) | Support::Refused(why) => Some(why.to_owned()),
        }
    };
    let told = |(name, text): (&String, &String)| {
        let is_off = text.trim().eq_ignore_ascii_case("false");
        let why = why(name).filter(|_| !is_off)?;
        let field = format!("spec.attributes.{name}");
        Some(warning("AttributeNotActedOn", field, format!("nothing acts on it: {why}")))
    };
    job.spec.attributes.iter().filter_map(told).collect()
}
