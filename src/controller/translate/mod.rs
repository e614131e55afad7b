//! From Kubernetes objects to what the pool knows: pure functions, one file a kind. Whatever is wrong with an object becomes
//! a [`Problem`](model::pool::Problem) that its author sees; nothing here fails for the others.

mod drain;
mod governing;
mod job;
mod lease;
mod limit;
mod negotiator;
mod node;
mod pod;
mod policy;
mod quantity;
mod report;
mod slot;
mod submit_policy;
mod submitter;
mod tolerations;
mod zone;

pub use drain::drain;
pub use job::{job, owner, submission, template_of};
pub use lease::{heartbeat, heartbeats_ended, renewal};
pub use limit::limit;
pub use negotiator::{negotiator, negotiator_text};
pub use node::{SlimNode, SlimNodeInfo, SlimNodeStatus, node};
pub use pod::{PodView, SlimPod, amounts, pod, requests_of};
pub use policy::{group, node_policy};
pub use quantity::{BadQuantity, ceil_units, millis};
pub use report::report;
pub use slot::{claim_of, slot};
pub use submit_policy::submit_policy;
pub use submitter::{submitter, submitter_object_name};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as KubeTime;

use model::pool::Time;

/// A Kubernetes time as the pool has it.
pub fn time(time: &KubeTime) -> Time {
    Time::from_millis(time.0.as_millisecond())
}

/// A time of the pool as Kubernetes has it, in whole seconds.
pub fn kube_time(time: Time) -> KubeTime {
    KubeTime(timestamp(time))
}

/// A time of the pool as a timestamp. Times that no calendar holds become its ends.
pub fn timestamp(time: Time) -> Timestamp {
    let limit = if time.millis() < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(time.millis()).unwrap_or(limit)
}
