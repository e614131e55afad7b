//! Places for calls: how many calls are under way at once, and whose.
//!
//! A webhook, a quota or a namespace of one tenant may let each call of its own hang. Such calls must not take the places of
//! others. A call that a tenant's webhook can slow is made in a [`Lane`] of its namespace, and a lane has a share of the
//! places. The share of a lane grows with each quick call, until the lane may have all places but a few. A lane whose calls
//! are slow has a smaller share, down to one place, until its calls are quick again. Some places are for what keeps objects
//! (statuses, finalizers, deletions) and for the cluster's own objects alone.
//!
//! The number of places follows from the calls that the API server bears: more as long as all places are taken and
//! calls are quick, fewer once the server asks for fewer requests, or answers slowly about the cluster's own objects.
//!
//! All calls that were under way at a bad moment of the API server are slow together. They make their lane's share, or the number of
//! places, smaller once: only calls that began later tell whether that was enough. Calls that hang while the server is quick about the
//! cluster's own objects wait for a webhook, and each of them makes the share smaller.
//!
//! A call holds its place while it is under way, and gives the place back before it pauses. The next call of the same task comes
//! before tasks that have not made a call yet, of which a thousand may wait: see [`super::lanes`].
//!
//! A pod that waits to be created has a claim on a machine, which nobody else can use meanwhile. So while the calls of a lane are
//! slow, a creation that has waited for [`PATIENCE`] is turned away, and its claim ends.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How many places there are at first.
const AT_FIRST: usize = 48;
/// The fewest places.
const FEWEST: usize = 12;
/// The most places. With these, a server that answers in 50 ms makes 1,280 calls a second. More calls at a time would only wait
/// inside the server, and make what others ask of the server wait, too.
const MOST: usize = 64;
/// The places that a lane has of which nothing is known yet.
const FIRST_SHARE: usize = 8;
/// The places that the largest lane leaves to others.
const LEFT: usize = 8;
/// A call that takes less than this is quick: the server could bear more calls like this one at a time.
const QUICK: Duration = Duration::from_millis(500);
/// A call that takes this long is slow.
const SLOW: Duration = Duration::from_secs(2);
/// A call of a namespace that takes this long hangs, unless the API server is slow about the cluster's own objects, too.
const HANGS: Duration = Duration::from_secs(8);
/// For how long a slow answer about an object of the cluster tells that the API server is slow, if no quicker one comes.
const STAYS_SLOW: Duration = Duration::from_secs(30);
/// For how long a creation may wait for its place in a lane whose calls are slow: a little longer than a call may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// For how long the number of places stays after it was made smaller. Meanwhile the answers are about the calls that were made before.
const CALM: Duration = Duration::from_secs(1);
/// The most lanes that are remembered. If there are more, idle lanes are forgotten even if slow calls have left them a small share.
const REMEMBERED: usize = 1000;

/// How long a call about an object of the cluster may take at first. No tenant's webhook is asked about such an object.
const LIMIT_OF_CLUSTER: Duration = Duration::from_secs(4);
/// How long the first attempt of a call about an object of the cluster may take while the API server is slow. Most calls end within this
/// time.
const LIMIT_WHILE_SLOW: Duration = Duration::from_secs(8);
/// How long any other call may take, and the second attempt of a call about an object of the cluster: longer than the 10 s that the API
/// server waits for a webhook by default. Otherwise each attempt would be given up just before a webhook that is ignored on failure
/// lets the call pass. An admin's webhook may be asked about every object.
pub const LIMIT: Duration = Duration::from_secs(14);

/// Calls that share places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Calls that write and end claims, for which pods wait. They do not wait behind the statuses of thousands of slots.
    Claims,
    /// All other calls about objects of the cluster: Slots, Submitters, policies, nodes and their Leases.
    Cluster,
    /// Calls that make pods in a namespace.
    Making(Arc<str>),
    /// All other calls about objects in a namespace: statuses, finalizers, deletions, reads, events.
    Keeping(Arc<str>),
}

impl Lane {
    /// How long the first attempt of a call may take, unless the API server is slow: see [`Places::limit`]. An attempt that takes longer
    /// counts as failed; later attempts may take [`LIMIT`] and this time in turn.
    ///
    /// The limit is no part of what keeps two leaders apart: an operator that loses its lease drops its calls with its
    /// writer, however long they may still take. The API server gives up a request whose client has gone.
    pub fn limit(&self) -> Duration {
        match self {
            Self::Claims | Self::Cluster => LIMIT_OF_CLUSTER,
            Self::Making(_) | Self::Keeping(_) => LIMIT,
        }
    }

    /// Whether the calls are about objects in a namespace, so that somebody's webhook can slow them.
    const fn is_namespaced(&self) -> bool {
        matches!(self, Self::Making(_) | Self::Keeping(_))
    }
}

/// The places, and who waits for one.
#[derive(Debug, Default)]
pub struct Places(Mutex<State>);

#[derive(Debug)]
struct State {
    /// How many places there are.
    places: usize,
    /// How many quick calls have ended since the last place was added.
    quick: usize,
    /// When the number of places was last made smaller.
    throttled: Option<Instant>,
    /// When the last slow call about an object of the cluster ended.
    slow: Option<Instant>,
    /// When the last call about an object of the cluster began that was not slow.
    quick_again: Option<Instant>,
    lanes: BTreeMap<Lane, Share>,
    held: usize,
    held_in_namespaces: usize,
    held_by_making: usize,
    /// How many calls have asked for a place.
    asked: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            places: AT_FIRST,
            quick: 0,
            throttled: None,
            slow: None,
            quick_again: None,
            lanes: BTreeMap::new(),
            held: 0,
            held_in_namespaces: 0,
            held_by_making: 0,
            asked: 0,
        }
    }
}

/// A lane's part of the places.
#[derive(Debug)]
struct Share {
    held: usize,
    most: usize,
    /// When the share was last made smaller.
    halved: Option<Instant>,
    /// How many calls that were neither quick nor slow have ended since the share last changed.
    fair: usize,
    /// Whether the last call was slow, and the share is one place: then first calls of tasks that have waited for too long are turned away.
    turns_away: bool,
    /// Further calls of tasks that have made a call.
    further: VecDeque<Question>,
    /// First calls of tasks.
    waiting: VecDeque<Question>,
}

/// A call that waits for a place.
#[derive(Debug)]
struct Question {
    /// How many questions there were up to this one.
    number: u64,
    /// When this was asked, if the question may be turned away.
    since: Option<Instant>,
    hand: oneshot::Sender<Place>,
}

/// The call that a place is for.
enum Asks {
    /// The first call of a task. With a time, the question may be turned away once it has waited for too long since then.
    First(Option<Instant>),
    /// A further call of a task that has begun.
    Further,
}

/// A question without a time is never turned away: it stays without an answer only once nobody waits for the place any more.
async fn unanswered<T>() -> T {
    pending().await
}

impl Question {
    fn is_given_up(&self) -> bool {
        self.hand.is_closed()
    }

    fn has_waited_for(&self, time: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= time)
    }
}

/// A question for a place was turned away, because the lane's calls are slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "pods of this namespace take {SLOW:?} or more each to create, one after another, and this pod has waited for {PATIENCE:?}; \
     is an admission webhook slow?"
)]
pub struct TurnedAway;

impl Share {
    fn of(lane: &Lane) -> Self {
        let most = if lane.is_namespaced() { FIRST_SHARE } else { MOST };
        Self {
            held: 0,
            most,
            halved: None,
            fair: 0,
            turns_away: false,
            further: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    fn halve(&mut self) {
        (self.most, self.halved, self.fair) = ((self.most / 2).max(1), Some(Instant::now()), 0);
    }

    /// Learns from a call that was neither quick nor slow. As many such calls as the share has places make a small share larger by one:
    /// who bears these calls has recovered, though all of them may take half a second and more.
    fn bears(&mut self, call: &Call) {
        if call.failed || self.most >= FIRST_SHARE {
            return;
        }
        self.fair += 1;
        if self.fair >= self.most {
            (self.fair, self.most) = (0, self.most + 1);
        }
    }

    fn is_idle(&self) -> bool {
        self.held == 0 && self.further.is_empty() && self.waiting.is_empty()
    }

    /// The question that is to be answered next.
    fn next(&self) -> Option<&Question> {
        self.further.front().or_else(|| self.waiting.front())
    }

    fn pop(&mut self) -> Option<Question> {
        self.further.pop_front().or_else(|| self.waiting.pop_front())
    }
}

/// A place that a call holds; it is given back when this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    lane: Lane,
    /// When the call began; `None` before that. A place in which no call was made teaches nothing.
    began: Option<Instant>,
    failed: bool,
}

impl Place {
    /// Notes that the call begins now.
    pub fn begins(&mut self) {
        self.began = Some(Instant::now());
    }

    /// Notes that the API server did not make the call: it was not reached, or could not at present. Such a call says nothing about how
    /// many calls the server bears, however quickly it failed.
    pub fn failed(&mut self) {
        self.failed = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let call = self.began.map(|began| Call { began, failed: self.failed });
        self.places.give_back(&self.lane, call);
    }
}

/// A call that has ended.
struct Call {
    began: Instant,
    failed: bool,
}

impl Call {
    fn is_quick(&self) -> bool {
        !self.failed && self.began.elapsed() < QUICK
    }

    fn is_slow(&self) -> bool {
        self.began.elapsed() >= SLOW
    }

    fn hung(&self) -> bool {
        self.began.elapsed() >= HANGS
    }

    /// Whether the call began after this time.
    fn is_after(&self, time: Option<Instant>) -> bool {
        time.is_none_or(|time| self.began >= time)
    }
}

impl Places {
    /// Waits for a place for a further call of a task that has begun.
    pub async fn take(self: &Arc<Self>, lane: &Lane) -> Place {
        match self.ask(lane, Asks::Further).await {
            Ok(place) => place,
            Err(_) => unanswered().await,
        }
    }

    /// Waits for a place for the first call of a task.
    pub async fn begin(self: &Arc<Self>, lane: &Lane) -> Place {
        match self.ask(lane, Asks::First(None)).await {
            Ok(place) => place,
            Err(_) => unanswered().await,
        }
    }

    /// Waits for a place for the first call of a task that makes a pod, and that has waited since then.
    ///
    /// # Errors
    /// When the calls of the lane are slow, and the task has waited for [`PATIENCE`].
    pub async fn begin_unless_slow(
        self: &Arc<Self>,
        lane: &Lane,
        since: Instant,
    ) -> Result<Place, TurnedAway> {
        self.ask(lane, Asks::First(Some(since))).await.map_err(|_| TurnedAway)
    }

    fn ask(self: &Arc<Self>, lane: &Lane, asks: Asks) -> oneshot::Receiver<Place> {
        let (hand, place) = oneshot::channel();
        let mut state = self.state();
        state.asked += 1;
        let number = state.asked;
        let share = state.lanes.entry(lane.clone()).or_insert_with(|| Share::of(lane));
        match asks {
            Asks::First(since) => {
                let question = Question { number, since, hand };
                // Without its hand, the question is turned away.
                if !(share.turns_away && question.has_waited_for(PATIENCE)) {
                    share.waiting.push_back(question);
                }
            }
            Asks::Further => share.further.push_back(Question { number, since: None, hand }),
        }
        self.hand_out(state);
        place
    }

    /// Notes that a call of this lane was answered by 429, Too Many Requests. In a namespace a tenant's webhook may
    /// have answered so, which makes the share of the lane smaller, once for all calls that were under way. About an
    /// object of the cluster the API server itself asks for fewer requests, of whatever lane.
    pub fn throttled(&self, lane: &Lane) {
        let mut state = self.state();
        if lane.is_namespaced() {
            let halved_before = |share: &Share| share.halved.is_some_and(|at| at.elapsed() < CALM);
            if let Some(share) = state.lanes.get_mut(lane).filter(|share| !halved_before(share)) {
                share.halve();
            }
        } else {
            state.calm_down();
        }
    }

    /// How long the first attempt of a call of this lane may take. While the API server is slow, a short limit would end many attempts
    /// that the server is about to answer, and each would be made again.
    pub fn limit(&self, lane: &Lane) -> Duration {
        let limit = lane.limit();
        if self.state().is_slow() { limit.max(LIMIT_WHILE_SLOW) } else { limit }
    }

    fn give_back(self: &Arc<Self>, lane: &Lane, call: Option<Call>) {
        let mut state = self.state();
        if let Some(call) = call {
            state.learn(lane, &call);
        }
        state.count(lane, |held| held.saturating_sub(1));
        self.hand_out(state);
    }

    /// Gives free places to those who wait.
    fn hand_out(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let mut given = Vec::new();
        while let Some((lane, hand)) = state.next() {
            state.count(&lane, |held| held + 1);
            given.push((lane, hand));
        }
        state.forget();
        drop(state);
        for (lane, hand) in given {
            let place = Place { places: Arc::clone(self), lane, began: None, failed: false };
            // If nobody waits any more, the place comes back, and is given back as it is dropped here.
            drop(hand.send(place));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Who gets the next place: of the lanes that may have one, the lane that holds the fewest; among equals, who has
    /// waited longest.
    fn next(&mut self) -> Option<(Lane, oneshot::Sender<Place>)> {
        for share in self.lanes.values_mut() {
            for questions in [&mut share.further, &mut share.waiting] {
                while questions.front().is_some_and(Question::is_given_up) {
                    questions.pop_front();
                }
            }
        }
        let waiting =
            self.lanes.iter().filter(|(lane, share)| share.held < share.most && self.has_room(lane));
        let first = waiting.filter_map(|(lane, share)| Some((share.held, share.next()?.number, lane)));
        let (_, _, lane) = first.min_by_key(|(held, number, _)| (*held, *number))?;
        let lane = lane.clone();
        let question = self.lanes.get_mut(&lane)?.pop()?;
        Some((lane, question.hand))
    }

    fn has_room(&self, lane: &Lane) -> bool {
        let namespaces = self.held_in_namespaces < self.in_namespaces();
        self.held < self.places
            && match lane {
                Lane::Claims | Lane::Cluster => true,
                Lane::Keeping(_) => namespaces,
                Lane::Making(_) => namespaces && self.held_by_making < self.making(),
            }
    }

    /// How many of the places are for calls about objects in namespaces. The rest is for Slots and other objects of the
    /// cluster.
    const fn in_namespaces(&self) -> usize {
        self.places * 5 / 6
    }

    /// How many of the places are for calls that make pods. The rest is for what is there: statuses, finalizers and
    /// deletions.
    const fn making(&self) -> usize {
        self.places * 2 / 3
    }

    /// The most places that a lane may come to have.
    const fn most_of(&self, lane: &Lane) -> usize {
        match lane {
            Lane::Claims | Lane::Cluster => MOST,
            Lane::Making(_) => self.making().saturating_sub(LEFT),
            Lane::Keeping(_) => self.in_namespaces().saturating_sub(LEFT),
        }
    }

    /// Counts a place that a lane gets or gives back.
    fn count(&mut self, lane: &Lane, change: impl Fn(usize) -> usize) {
        self.held = change(self.held);
        if lane.is_namespaced() {
            self.held_in_namespaces = change(self.held_in_namespaces);
        }
        if matches!(lane, Lane::Making(_)) {
            self.held_by_making = change(self.held_by_making);
        }
        if let Some(share) = self.lanes.get_mut(lane) {
            share.held = change(share.held);
        }
    }

    /// Whether the API server is slow about the cluster's own objects: no call that began after the last slow one ended was quicker.
    fn is_slow(&self) -> bool {
        self.slow
            .is_some_and(|at| at.elapsed() < STAYS_SLOW && self.quick_again.is_none_or(|began| began < at))
    }

    /// Whether the API server was slow about the cluster's own objects at some time of this call.
    fn was_slow_during(&self, call: &Call) -> bool {
        self.slow.is_some_and(|at| at >= call.began)
    }

    /// Whether the number of places has not just been made smaller.
    fn is_calm(&self) -> bool {
        self.throttled.is_none_or(|at| at.elapsed() >= CALM)
    }

    /// Makes the number of places smaller, unless that has just happened.
    fn calm_down(&mut self) {
        if self.is_calm() {
            self.throttled = Some(Instant::now());
            self.quick = 0;
            self.places = (self.places * 7 / 10).max(FEWEST);
            tracing::debug!(places = self.places, "fewer calls are made at a time");
        }
    }

    /// Learns from a call that ended. A quick call makes its lane's share larger, if the lane had used up its share; if the
    /// lane could have no larger one, the number of places grows in time. A slow call makes the share smaller, or the number of places
    /// if no tenant's webhook can have slowed the call; where the share is one place already, who has waited for too long is turned away.
    fn learn(&mut self, lane: &Lane, call: &Call) {
        let is_calm = self.is_calm();
        let most = self.most_of(lane);
        let full = !self.has_room(lane) || self.lanes.get(lane).is_some_and(|share| share.held >= most);
        if call.is_quick() && is_calm && full {
            self.quick += 1;
            // As many quick calls have ended as there are places: the server bears so many.
            if self.quick >= self.places {
                (self.quick, self.places) = (0, (self.places + FEWEST).min(MOST));
            }
        }
        if !lane.is_namespaced() {
            if call.is_slow() {
                self.slow = Some(Instant::now());
            } else if !call.failed {
                self.quick_again = Some(call.began);
            }
            if call.is_slow() && call.is_after(self.throttled) {
                self.calm_down();
            }
            return;
        }
        let server_was_slow = self.was_slow_during(call);
        let Some(share) = self.lanes.get_mut(lane) else { return };
        share.turns_away = false;
        if call.is_quick() {
            if share.held >= share.most || share.most < FIRST_SHARE {
                share.most = (share.most + 1).min(most.max(FIRST_SHARE));
            }
        } else if !call.is_slow() {
            share.bears(call);
        } else if share.most > 1 && (call.is_after(share.halved) || call.hung() && !server_was_slow) {
            share.halve();
            if share.most == 1 {
                tracing::warn!(
                    ?lane,
                    "calls are slow, and are made one at a time; is a webhook slow or gone?"
                );
            }
        }
        if call.is_slow() && share.most == 1 {
            share.turns_away = true;
            share.waiting.retain(|question| !question.has_waited_for(PATIENCE));
        }
    }

    /// Forgets lanes that nobody uses: those that have at least their first share, and all of them where they are too many.
    fn forget(&mut self) {
        let too_many = self.lanes.len() > REMEMBERED;
        self.lanes.retain(|_, share| !share.is_idle() || !too_many && share.most < FIRST_SHARE);
    }
}

#[cfg(test)]
mod tests;
