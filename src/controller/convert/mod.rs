//! Conversions between the forms of Kubernetes and of the pool: of quantities, times, names, and the requests of pods.

mod quantity;
mod requests;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as KubeTime;

use model::pool::Time;

pub use self::quantity::{BadQuantity, ceil_units, millis};
pub(crate) use self::requests::SlimContainer;
pub use self::requests::{DEFAULT_GRACE_PERIOD, SlimPodSpec, amounts, requests_of};
pub(crate) use self::requests::{SlimRequirements, applied};

/// A Kubernetes time as a time of the pool.
pub fn time(time: &KubeTime) -> Time {
    Time::from_millis(time.0.as_millisecond())
}

/// A time of the pool as a Kubernetes time, which is written in whole seconds.
pub fn kube_time(time: Time) -> KubeTime {
    KubeTime(timestamp(time))
}

/// A time of the pool as a timestamp. Times beyond the calendar become its first or last moment.
pub fn timestamp(time: Time) -> Timestamp {
    let limit = if time.millis() < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(time.millis()).unwrap_or(limit)
}

/// A node's name as a label's value, which is at most 63 characters long.
pub(crate) fn label_value(name: &str) -> String {
    let short: String = name.chars().take(63).collect();
    short.trim_end_matches(['-', '.', '_']).to_owned()
}
