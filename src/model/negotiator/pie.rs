//! Shares, limits and the rounding rule.

use super::config::Config;
use super::cycle::RejectReason;

/// The best effective priority there can be: [`MIN_REAL_PRIORITY`](super::accountant::MIN_REAL_PRIORITY)
/// times the least factor.
const MIN_PRIORITY: f64 = super::accountant::MIN_REAL_PRIORITY;

/// Far above any priority, and small enough that products of two are numbers.
const MAX_PRIORITY: f64 = 1e100;

/// A priority one can divide by.
pub(super) fn sane_priority(priority: f64) -> f64 {
    if priority.is_nan() { MAX_PRIORITY } else { priority.clamp(MIN_PRIORITY, MAX_PRIORITY) }
}

/// How a pie is divided: by the inverse of the priorities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Division {
    worst: f64,
    normal: f64,
}

impl Division {
    /// Divides among the owners of these priorities, one for each name.
    pub(super) fn among(priorities: impl Iterator<Item = f64> + Clone) -> Self {
        let worst = priorities.clone().map(sane_priority).fold(MIN_PRIORITY, f64::max);
        let normal = priorities.map(|priority| worst / sane_priority(priority)).sum();
        Self { worst, normal }
    }

    /// The share, 0 to 1, of one of the owners.
    pub(super) fn share(self, priority: f64) -> f64 {
        self.worst / (sane_priority(priority) * self.normal)
    }
}

/// What a submitter may still take in a spin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// All in all. The turn ends when so much is taken.
    pub(super) limit: f64,
    /// Of slots that nobody uses: less where the group's quota leaves less. Candidates are tested against
    /// this.
    pub(super) unclaimed: f64,
    /// What the group's quota leaves: more is never taken, whoever preempts whom.
    pub(super) quota: f64,
    /// Whether it is the group that leaves no more, rather than the others in it.
    by_group: bool,
}

impl Limits {
    /// The limits of somebody with this share of the pie and this usage, whose group has `group_left` to
    /// its quota (infinite without groups).
    pub(super) fn new(config: &Config, share: f64, pie: f64, used: f64, group_left: f64) -> Self {
        let limit = if config.ignore_user_priorities { f64::MAX } else { (share * pie - used).max(0.0) };
        Self::within_group(config, limit, group_left)
    }

    /// The limits of somebody who is so much below their floor: as long as anything is missing another slot may be taken, and be
    /// it wider than that, lest they stay below.
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

    /// The same, but for what others have left of the pie.
    pub(super) fn within(self, pie_left: f64) -> Self {
        Self { limit: self.limit.min(pie_left), ..self }
    }

    /// What to say to those who run into the limits.
    pub(super) fn reason(&self) -> RejectReason {
        if self.by_group { RejectReason::GroupQuota } else { RejectReason::SubmitterLimit }
    }
}

/// Whether something may be taken by somebody who has taken `used` in this turn: as long as it fits, and
/// the first thing even if it does not, lest everybody's crumbs stay on the table.
pub(super) fn permits(used: f64, cost: f64, limit: f64) -> bool {
    used + cost <= limit || (used <= 0.0 && limit > 0.0)
}

/// Who comes first among equal priorities: who has the smaller part of what they should have.
pub(super) fn starvation(used: f64, limit: f64) -> f64 {
    let entitled = used + limit;
    if entitled > 0.0 { used / entitled } else { f64::MAX }
}

/// What somebody may take before reaching the ceiling. (HTCondor counts usage in whole units here, and lets it pass.)
pub(super) fn ceiling_left(ceiling: Option<f64>, used: f64) -> f64 {
    // As there, a negative ceiling is none.
    let ceiling = ceiling.filter(|ceiling| *ceiling >= 0.0);
    ceiling.map_or(f64::INFINITY, |ceiling| (ceiling - used).max(0.0))
}
