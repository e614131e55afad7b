//! Job ads of HTCJob manifests.

use classad::Ad;
use controller::kinds;
use model::pool::Time;
use model::schedd::submit;

use crate::lint::{Kinds, Report, Severity, Source, document, parse};
use crate::problems::Problems;
use crate::stop::Stop;

/// The job ads of the HTCJobs in a text of manifests, as they are when the jobs are submitted at this time: without the attributes
/// of procs. Other objects are passed over.
///
/// # Errors
/// When the text or a job in it has an error, as `slotwright lint` tells it.
pub(super) fn jobs(path: &str, text: String, now: i64) -> Result<Vec<Ad>, Stop> {
    let (source, mut problems) = (Source::new(path.to_owned(), text), Problems::default());
    let parsed = parse(&source.text);
    for fault in &parsed.faults {
        problems.at(&source, fault.at, &fault.message);
    }
    let (mut report, mut objects) = (Report::default(), Vec::new());
    for node in parsed.documents {
        document(&Kinds::new(), &source, node, &mut report, &mut objects);
    }
    report.sort();
    problems.extend(report.findings.into_iter().filter(|finding| finding.severity == Severity::Error));
    let mut ads = Vec::new();
    for object in objects.iter().filter(|object| object.kind == "HTCJob") {
        let Ok(job) = serde_json::from_value::<api::HTCJob>(object.value.clone()) else { continue };
        let (submission, mut wrong) = kinds::job::submission(&job, Time::from_secs(now));
        match submit(&submission) {
            Ok(spec) => ads.push(spec.ad),
            Err(more) => wrong.extend(more),
        }
        for problem in wrong {
            problems.at(&source, object.offset("spec"), &problem.to_string());
        }
    }
    if problems.is_empty() { Ok(ads) } else { Err(Stop::Unusable(problems.to_string())) }
}
