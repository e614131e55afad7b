//! Shares, limits and the rounding rule.

use super::config::Config;
use super::cycle::RejectReason;

/// The best possible effective priority: [`MIN_REAL_PRIORITY`](super::accountant::MIN_REAL_PRIORITY) times the least factor, 1.
const MIN_PRIORITY: f64 = super::accountant::MIN_REAL_PRIORITY;

/// The worst priority: NaN and greater values count as this. The product of two such priorities is finite.
const MAX_PRIORITY: f64 = 1e100;

/// A priority that can be divided by: NaN counts as the worst.
pub(super) fn sane_priority(priority: f64) -> f64 {
    if priority.is_nan() { MAX_PRIORITY } else { priority.clamp(MIN_PRIORITY, MAX_PRIORITY) }
}

/// How a pie is divided: by the inverse of the priorities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Division {
    /// The worst of the priorities.
    worst: f64,
    /// The sum of `worst / priority` over all priorities.
    normal: f64,
}

impl Division {
    /// Divides among submitters with these priorities, one priority for each name.
    pub(super) fn among(priorities: impl Iterator<Item = f64> + Clone) -> Self {
        let worst = priorities.clone().map(sane_priority).fold(MIN_PRIORITY, f64::max);
        let normal = priorities.map(|priority| worst / sane_priority(priority)).sum();
        Self { worst, normal }
    }

    /// The share, 0 to 1, of a submitter with this priority.
    pub(super) fn share(self, priority: f64) -> f64 {
        self.worst / (sane_priority(priority) * self.normal)
    }
}

/// The slot weight that a submitter may still take in a spin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// The slot weight that the submitter may take in all. The turn ends when the submitter has taken this much.
    pub(super) limit: f64,
    /// The slot weight that the submitter may take from slots that are not in use: `limit`, or less if the group's
    /// quota leaves less.
    pub(super) unclaimed: f64,
    /// The slot weight that the group's quota leaves. No match exceeds this by what it adds to the group's use, not even one that
    /// preempts.
    pub(super) quota: f64,
    /// Whether the group's quota limits the submitter, rather than its share.
    by_group: bool,
}

impl Limits {
    /// The limits of a submitter with this share of the pie and this usage. `group_left` is what its group may use beyond what
    /// the group uses (infinite without groups).
    pub(super) fn new(config: &Config, share: f64, pie: f64, used: f64, group_left: f64) -> Self {
        let limit = if config.ignore_user_priorities { f64::MAX } else { (share * pie - used).max(0.0) };
        Self::within_group(config, limit, group_left)
    }

    /// The limits of a submitter that is `below` its floor: as long as it is below the floor it may take another slot, even one
    /// that weighs more than what is missing, so that the floor is reached.
    pub(super) fn to_floor(config: &Config, below: f64, group_left: f64) -> Self {
        let limits = Self::within_group(config, below, group_left);
        Self { unclaimed: limits.quota, ..limits }
    }

    fn within_group(config: &Config, limit: f64, group_left: f64) -> Self {
        let unclaimed = limit.min(group_left.max(0.0));
        let by_group = group_left <= limit;
        Self {
            limit: if config.consider_preemption { limit } else { unclaimed },
            unclaimed,
            quota: group_left.max(0.0),
            by_group,
        }
    }

    /// The same limits, but no more than other submitters have left of the pie.
    pub(super) fn within(self, pie_left: f64) -> Self {
        Self { limit: self.limit.min(pie_left), ..self }
    }

    /// The reason to report for jobs that the limits refuse.
    pub(super) fn reason(&self) -> RejectReason {
        if self.by_group { RejectReason::GroupQuota } else { RejectReason::SubmitterLimit }
    }
}

/// Whether a submitter that has taken `used` in this turn may take a slot of this cost: if the slot fits into the limit, or if it
/// is the first slot of the turn and the limit is not 0. Without the second rule, slots would stay idle if all submitters' limits
/// were a little less than one slot.
pub(super) fn permits(used: f64, cost: f64, limit: f64) -> bool {
    used + cost <= limit || (used <= 0.0 && limit > 0.0)
}

/// The measure by which turns are ordered among equal priorities: the part that a submitter uses of its use and its limit
/// together. The submitter with the least part comes first.
pub(super) fn starvation(used: f64, limit: f64) -> f64 {
    let entitled = used + limit;
    if entitled > 0.0 { used / entitled } else { f64::MAX }
}

/// The slot weight that a submitter may take before it reaches its ceiling. (HTCondor counts usage in whole units here, so that
/// a submitter may exceed its ceiling.)
pub(super) fn ceiling_left(ceiling: Option<f64>, used: f64) -> f64 {
    // As in HTCondor, a negative ceiling means that there is none.
    let ceiling = ceiling.filter(|ceiling| *ceiling >= 0.0);
    ceiling.map_or(f64::INFINITY, |ceiling| (ceiling - used).max(0.0))
}
