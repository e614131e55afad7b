//! The lease of a claim: how long its node may be silent.
//!
//! Source: the manual's policy chapter, "Claimed State", on claim leases. In HTCondor the schedd's messages renew a
//! lease; here the Lease that the node's kubelet renews does.

use std::time::Duration;

use super::policy::integer;
use crate::pool::Policy;
use classad::{Ad, Env};

/// The shortest lease, as long as a kubelet's own Lease counts. A shorter silence could be a renewal that is merely
/// late. The operator and the agents take a shorter lease that somebody wrote on a pod for this one.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(40);
/// The longest lease in seconds, ten years: as good as no lease.
const LONGEST: i64 = 315_360_000;

/// The lease of a claim for a job: the job's `JobLeaseDuration`, or the policy's lease if that is 0 or not a number.
pub fn claim_lease(policy: &Policy, job: Option<&Ad>, env: &Env) -> Duration {
    let said = job.and_then(|job| integer(&job.eval_attr("JobLeaseDuration", None, env)));
    let said = said.filter(|seconds| *seconds > 0).map(|seconds| seconds.min(LONGEST));
    said.and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(policy.claim_lease, Duration::from_secs)
        .max(SHORTEST_LEASE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_the_jobs_or_else_so_many_messages_missed() {
        let policy = Policy { claim_lease: Duration::from_mins(30), ..Policy::default() };
        for (job, seconds) in [
            ("[JobLeaseDuration = 2400]", 2400),
            ("[JobLeaseDuration = 20 * 60]", 1200),
            ("[JobLeaseDuration = 90.7]", 90),
            ("[JobLeaseDuration = 1]", 40),
            ("[JobLeaseDuration = 0]", 1800),
            ("[JobLeaseDuration = -5]", 1800),
            ("[JobLeaseDuration = undefined]", 1800),
            ("[JobLeaseDuration = \"long\"]", 1800),
            ("[x = 1]", 1800),
            ("[JobLeaseDuration = 9223372036854775807]", 315_360_000),
        ] {
            let ad = Ad::parse_new(job).unwrap();
            assert_eq!(claim_lease(&policy, Some(&ad), &Env::at(0)).as_secs(), seconds, "{job}");
        }
        assert_eq!(claim_lease(&policy, None, &Env::at(0)).as_secs(), 1800);
    }
}
