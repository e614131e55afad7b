//! Warns about parts of a job's spec that have no effect, or another effect than they seem to have. The job is accepted
//! all the same.
//!
//! | part | warns about |
//! | --- | --- |
//! | `template` | the pod template |
//! | `attributes`, `commands` | `spec.attributes` |
//! | `expressions` | expressions that can be read, and say something else than they seem to |
//! | `refused` | pods that the API server would refuse |
//! | `requests` | amounts and concurrency limits |
//! | `resources` | resources of the main container, which get other amounts |

mod attributes;
mod commands;
mod expressions;
mod refused;
mod requests;
mod resources;
mod template;
#[cfg(test)]
mod tests;

use api::{HTCJob, labels};
use model::pool::Problem;

use super::submission::template_of;
use crate::render;

/// The most warnings that a job gets: the first few show the author what is wrong. One more says how many there are besides.
const TOLD: usize = 8;

/// Returns the first of the job's [`warnings`], and how many there are besides.
pub(super) fn first_warnings(job: &HTCJob) -> Vec<Problem> {
    let mut all = warnings(job).into_iter();
    let mut told: Vec<Problem> = all.by_ref().take(TOLD).collect();
    if let Some(next) = all.next() {
        let more = 1 + all.count();
        let s = if more == 1 { "" } else { "s" };
        let message = format!("{more} more warning{s}; slotwright lint lists all");
        told.push(warning(next.reason, "spec".to_owned(), message));
    }
    told
}

/// Returns what the job says in vain.
pub fn warnings(job: &HTCJob) -> Vec<Problem> {
    let template = template_of(job).unwrap_or_default();
    let reserved = render::dropped(&template).into_iter().map(|(field, name)| {
        let message =
            format!("{name} is dropped: names that begin with {} are the operator's", labels::PREFIX);
        warning("ReservedName", format!("spec.template.metadata.{field}"), message)
    });
    let all = reserved
        .chain(template::of_template(job, &template))
        .chain(
            render::doubts(job, &template)
                .into_iter()
                .map(|doubt| warning("UnknownVariable", format!("spec.{}", doubt.field), doubt.message)),
        )
        .chain(refused::by_api_server(&template, job.spec.items.is_some()))
        .chain(template::to_scheduler(&template))
        .chain(template::tolerations(&template))
        .chain(template::host_ports(&template))
        .chain(template::probes(&template))
        .chain(attributes::of_attributes(job))
        .chain(requests::of_amounts(job))
        .chain(expressions::misspelt(job))
        .chain(expressions::of_absent(job))
        .chain(expressions::of_sides(job))
        .chain(expressions::of_acting(job))
        .chain(expressions::of_mistakes(job))
        .chain(expressions::texts(job))
        .chain(expressions::long_delay(job))
        .chain(expressions::unquoted(job))
        .chain(expressions::of_procs(job))
        .chain(requests::of_limits(job));
    all.collect()
}

fn warning(reason: &'static str, field: String, message: impl Into<String>) -> Problem {
    Problem { reason, field, message: message.into() }
}
