//! The schedd's part: makes jobs of submissions, keeps the order of procs, makes claims of matches, and activates
//! claims.

mod analysis;
mod caps;
mod claims;
mod clauses;
mod demands;
mod devices;
mod jobs;
mod limits;
mod names;
mod nearest;
pub mod policy;
mod submit;
mod system_policy;
mod terms;
mod user_maps;
pub mod why;

pub use analysis::{Explained, Offers};
pub use caps::{Place, Quotas};
pub use claims::{
    SLOW_POD, assign, claim_match, find_work, lacks_pods, may_start, set_aside, waits, why_no_work,
};
pub use demands::GpuDemands;
pub use jobs::{group_problem, review_job};
pub use names::{given_twice, is_attribute_name};
pub use nearest::{Lack, lacks};
pub use submit::{MOST_PROCS, Submission, submit};
pub use submit::{bad_expression, is_protected};
pub use terms::{Matched, Refusal, check, check_again};
