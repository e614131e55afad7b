//! Attributes of a job that only policy sets.

use super::job::Problem;
use classad::Ad;
use condor_config::Config;

/// The attributes that nobody sets but the transforms: `SECURE_JOB_ATTRS` and `SYSTEM_SECURE_JOB_ATTRS`.
///
/// `HTCondor`'s schedd takes no such attribute from anybody, not even from a super user. By default it ignores the attempt;
/// with `IGNORE_ATTEMPTS_TO_SET_SECURE_JOB_ATTRS = False` it refuses the job or the edit.
#[derive(Debug)]
pub(super) struct SecureAttributes {
    names: Vec<String>,
    refused: bool,
}

/// Whether the operator itself writes this attribute for each job: who submitted the job, or what the job requests. No list makes
/// such an attribute secure.
fn is_of_every_job(name: &str) -> bool {
    super::submit_rules::is_identity(name)
        || name.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case("Request"))
}

impl SecureAttributes {
    /// The attributes that a configuration names.
    pub(super) fn of(config: &Config) -> Self {
        let lists = ["SECURE_JOB_ATTRS", "SYSTEM_SECURE_JOB_ATTRS"];
        let names = lists.iter().flat_map(|list| config.list(list).unwrap_or_default());
        let ignored = config.boolean("IGNORE_ATTEMPTS_TO_SET_SECURE_JOB_ATTRS");
        Self {
            names: names.filter(|name| !is_of_every_job(name)).collect(),
            refused: matches!(ignored, Ok(Some(false))),
        }
    }

    /// Whether this is one of the attributes.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether a job's author sets one of the attributes.
    pub(super) fn are_in(&self, ad: &Ad) -> bool {
        self.names.iter().any(|name| ad.contains(name))
    }

    /// Takes the attributes out of the ad of a job as its author wrote the job, and warns of each.
    ///
    /// # Errors
    /// The attributes, if the policy refuses jobs that set them.
    pub(super) fn take_from(&self, ad: &mut Ad) -> Result<Vec<Problem>, Vec<Problem>> {
        let found: Vec<&String> = self.names.iter().filter(|name| ad.contains(name)).collect();
        let told = |why: &str| {
            let problem = |name: &&String| Problem {
                reason: "SecureAttribute",
                field: format!("spec.attributes[{name}]"),
                message: format!("only the SubmitPolicy's transforms set this attribute{why}; leave it out"),
            };
            found.iter().map(problem).collect()
        };
        if self.refused && !found.is_empty() {
            return Err(told(""));
        }
        let warnings = told(": the job goes on without it");
        for name in found {
            ad.remove(name);
        }
        Ok(warnings)
    }
}
