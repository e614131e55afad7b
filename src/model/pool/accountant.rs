//! The usage of a submitter, and the priority that follows from the usage.
//!
//! An [`Account`] is the state at one moment. The amount in use changes only by [`Account::charge`], [`Account::stop_charging`]
//! and [`Account::reconcile`]. Between two such changes, priority and accumulated usage at any later time follow from the
//! account, so that they need not be written when time passes. Advancing an account in many steps gives the same as advancing it
//! in one step: neither a crash nor the length of a negotiation cycle changes a priority.
//!
//! Source: HTCondor manual, "User Priorities and Negotiation"; the accountant's own arithmetic.

use std::sync::Arc;

/// The best real priority, and that of a new submitter.
pub const MIN_REAL_PRIORITY: f64 = 0.5;

/// The smallest priority factor: a smaller one would let a priority fall below its minimum.
pub const MIN_PRIORITY_FACTOR: f64 = 1.0;

/// The values that an admin sets in an account: `condor_userprio -setprio`, `-setaccum`, `-setbegin`, `-setlast`, `-resetusage`.
/// A field that is unset leaves the account's value as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Correction {
    /// The id of the correction. A correction is made only once.
    pub id: Arc<str>,
    /// The negotiator whose account is corrected; if unset, the first negotiator by name.
    pub negotiator: Option<Arc<str>>,
    /// The real priority.
    pub real_priority: Option<f64>,
    /// Slots times seconds.
    pub accumulated_usage: Option<f64>,
    /// Slot weight times seconds.
    pub weighted_accumulated_usage: Option<f64>,
    /// When the submitter first used a slot, in seconds since 1970.
    pub begin_usage_time: Option<i64>,
    /// When the submitter last used a slot, in seconds since 1970.
    pub last_usage_time: Option<i64>,
}

/// The account of one submitter with one negotiator.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Real user priority (RUP): [`Account::weighted_resources_used`] smoothed by the half-life, never below
    /// [`MIN_REAL_PRIORITY`]. Lower is better.
    pub real_priority: f64,
    /// Slots in use.
    pub resources_used: u64,
    /// Slot weight in use.
    pub weighted_resources_used: f64,
    /// Slots times seconds, from the beginning.
    pub accumulated_usage: f64,
    /// Slot weight times seconds, from the beginning.
    pub weighted_accumulated_usage: f64,
    /// When the submitter first used a slot, in seconds since 1970.
    pub begin_usage_time: Option<i64>,
    /// The last known time at which the submitter used a slot, in seconds since 1970.
    pub last_usage_time: Option<i64>,
    /// The time of which the other fields are the state, in milliseconds since 1970.
    pub updated_at: i64,
}

impl Account {
    /// The account of a submitter that has never used a slot, as of `now` (milliseconds since 1970).
    pub fn new(now: i64) -> Self {
        Self {
            real_priority: MIN_REAL_PRIORITY,
            resources_used: 0,
            weighted_resources_used: 0.0,
            accumulated_usage: 0.0,
            weighted_accumulated_usage: 0.0,
            begin_usage_time: None,
            last_usage_time: None,
            updated_at: now,
        }
    }

    /// Advances the account to `now` (milliseconds since 1970). With each half-life (in seconds) the real priority moves half of
    /// the way to the weight in use; usage accumulates.
    ///
    /// If the clock went back, nothing is charged until it has caught up, so that no time is charged twice. If the half-life is
    /// not positive, the real priority is the weight in use, and past usage does not count.
    pub fn advance(&mut self, now: i64, halflife: f64) {
        self.repair();
        let elapsed = now.saturating_sub(self.updated_at);
        if elapsed <= 0 {
            return;
        }
        let seconds = millis_to_seconds(elapsed);
        let kept = if halflife > 0.0 { (-seconds / halflife).exp2() } else { 0.0 };
        let used = self.weighted_resources_used;
        // This form, unlike RUP*kept + used*(1-kept), leaves a settled priority exactly where it is.
        self.real_priority = (used + (self.real_priority - used) * kept).max(MIN_REAL_PRIORITY);
        self.weighted_accumulated_usage += used * seconds;
        self.accumulated_usage += count_to_f64(self.resources_used) * seconds;
        self.updated_at = now;
        self.note_use();
    }

    /// The account as it will be at `now` (milliseconds since 1970) if no slot comes into use or goes out of use.
    #[must_use]
    pub fn at(&self, now: i64, halflife: f64) -> Self {
        let mut later = self.clone();
        later.advance(now, halflife);
        later
    }

    /// Charges a slot of this weight from `now` (milliseconds since 1970) on.
    pub fn charge(&mut self, weight: f64, now: i64, halflife: f64) {
        self.advance(now, halflife);
        self.resources_used = self.resources_used.saturating_add(1);
        self.weighted_resources_used += sane(weight);
        self.note_use();
    }

    /// Stops charging a slot of this weight at `now` (milliseconds since 1970). The number of slots and their weight do not fall
    /// below 0.
    pub fn stop_charging(&mut self, weight: f64, now: i64, halflife: f64) {
        self.advance(now, halflife);
        self.note_use();
        self.resources_used = self.resources_used.saturating_sub(1);
        // When the last slot goes out of use, the sum becomes 0, whatever the rounding error was.
        self.weighted_resources_used = match self.resources_used {
            0 => 0.0,
            _ => (self.weighted_resources_used - sane(weight)).max(0.0),
        };
    }

    /// Sets what is in use to the sum over the submitter's claims, as of `now` (milliseconds since 1970): after a restart, or when
    /// events were missed. The time before `now` is charged at the old usage.
    pub fn reconcile(&mut self, slots: u64, weight: f64, now: i64, halflife: f64) {
        self.advance(now, halflife);
        self.resources_used = slots;
        self.weighted_resources_used = if slots == 0 { 0.0 } else { sane(weight) };
        self.note_use();
    }

    /// Sets the values of an admin's correction, as of `now` (milliseconds since 1970). Usage until then is charged first, and
    /// slots in use stay in use.
    pub fn correct(&mut self, correction: &Correction, now: i64, halflife: f64) {
        self.advance(now, halflife);
        self.real_priority = correction.real_priority.unwrap_or(self.real_priority);
        self.accumulated_usage = correction.accumulated_usage.unwrap_or(self.accumulated_usage);
        self.weighted_accumulated_usage =
            correction.weighted_accumulated_usage.unwrap_or(self.weighted_accumulated_usage);
        self.begin_usage_time = correction.begin_usage_time.or(self.begin_usage_time);
        self.last_usage_time = correction.last_usage_time.or(self.last_usage_time);
        self.repair();
    }

    /// Adds another account of the same submitter, as of `now` (milliseconds since 1970). Past usage decays alike in both accounts,
    /// so that the real priorities are added; a real priority at its minimum stands for no usage.
    pub fn join(&mut self, mut other: Self, now: i64, halflife: f64) {
        self.advance(now, halflife);
        other.advance(now, halflife);
        let part = |priority: f64| if priority > MIN_REAL_PRIORITY { priority } else { 0.0 };
        self.real_priority = (part(self.real_priority) + part(other.real_priority)).max(MIN_REAL_PRIORITY);
        self.resources_used = self.resources_used.saturating_add(other.resources_used);
        self.weighted_resources_used += other.weighted_resources_used;
        self.accumulated_usage += other.accumulated_usage;
        self.weighted_accumulated_usage += other.weighted_accumulated_usage;
        self.begin_usage_time = [self.begin_usage_time, other.begin_usage_time].into_iter().flatten().min();
        self.last_usage_time = self.last_usage_time.max(other.last_usage_time);
    }

    /// Whether the account says nothing at `now` (milliseconds since 1970): nothing was ever used, as far as the account knows, and a
    /// priority that an admin set has decayed. As in HTCondor, past usage keeps an account, since totals do not decay.
    pub fn is_empty(&self, now: i64, halflife: f64) -> bool {
        self.resources_used == 0
            && self.accumulated_usage <= 0.0
            && self.weighted_accumulated_usage <= 0.0
            && self.at(now, halflife).real_priority <= MIN_REAL_PRIORITY
    }

    /// The effective priority (EUP): the real priority times the factor. A factor below [`MIN_PRIORITY_FACTOR`] counts as that.
    /// Lower is better; shares of the pie are proportional to the inverse.
    pub fn effective_priority(&self, factor: f64) -> f64 {
        self.real_priority.max(MIN_REAL_PRIORITY) * factor.max(MIN_PRIORITY_FACTOR)
    }

    /// Replaces values that are out of range by those of a new account. A status that was edited by hand, or is not filled in,
    /// can contain such values.
    fn repair(&mut self) {
        if !self.real_priority.is_finite() || self.real_priority < MIN_REAL_PRIORITY {
            self.real_priority = MIN_REAL_PRIORITY;
        }
        self.weighted_resources_used = sane(self.weighted_resources_used);
        self.accumulated_usage = sane(self.accumulated_usage);
        self.weighted_accumulated_usage = sane(self.weighted_accumulated_usage);
    }

    /// Notes the first and the last time of use, if something is in use.
    fn note_use(&mut self) {
        if self.resources_used > 0 {
            let now = self.updated_at.div_euclid(1000);
            self.begin_usage_time.get_or_insert(now);
            self.last_usage_time = Some(now);
        }
    }
}

/// An amount that is NaN, infinite or negative counts as 0.
fn sane(amount: f64) -> f64 {
    if amount.is_finite() { amount.max(0.0) } else { 0.0 }
}

#[allow(clippy::cast_precision_loss, reason = "285,000 years of milliseconds are exact")]
fn millis_to_seconds(millis: i64) -> f64 {
    millis as f64 / 1000.0
}

#[allow(clippy::cast_precision_loss, reason = "nobody uses 2^53 slots")]
fn count_to_f64(count: u64) -> f64 {
    count as f64
}
