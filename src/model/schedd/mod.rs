//! The schedd's part: makes jobs of submissions, keeps the order of procs, makes claims of matches, and activates
//! claims.

mod analysis;
mod claims;
mod clauses;
mod demands;
mod devices;
mod group_map;
mod jobs;
mod limits;
mod nearest;
pub mod policy;
mod submit;
pub mod why;

pub use analysis::{Explained, Offers};
pub use claims::{
    Matched, Quotas, assign, claim_match, find_work, group_usage, lacks_pods, may_start, set_aside,
    still_within_caps, waits, within_caps, within_caps_in_place_of,
};
pub use demands::GpuDemands;
pub use jobs::{group_problem, is_like, review_job};
pub use nearest::{Lack, lacks};
pub use submit::{MOST_PROCS, Submission, submit};
pub use submit::{bad_expression, is_attribute_name};
