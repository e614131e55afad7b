//! Places for calls: how many calls are under way at once, and whose.
//!
//! A webhook, a quota or a namespace of one tenant may let each call of its own hang. Such calls must not take the places of
//! others. A call that a tenant's webhook can slow is made in a [`Lane`] of its namespace, and a lane has a share of the
//! places. The share of a lane grows with each quick call, until the lane may have all places but a few. A lane whose calls
//! are slow has a smaller share, down to one place, until its calls are quick again. Some places are for what keeps objects
//! (statuses, finalizers, deletions) and for the cluster's own objects alone.
//!
//! The number of places follows from the calls that the API server bears: more as long as all places are taken and
//! calls are quick, fewer once the server asks for fewer requests.
//!
//! A call holds its place while it is under way, and gives the place back before it pauses.
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
/// For how long a creation may wait for its place in a lane whose calls are slow: a little longer than a call may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// For how long the number of places stays after the API server has asked for fewer requests. Meanwhile its answers are
/// about the calls that were made before.
const CALM: Duration = Duration::from_secs(1);
/// For how many lanes the share is remembered that slow calls have left them.
const REMEMBERED: usize = 1000;

/// How long a call about an object of the cluster may take. No tenant's webhook is asked about such an object.
const LIMIT_OF_CLUSTER: Duration = Duration::from_secs(4);
/// How long a call about an object in a namespace may take: longer than the 10 s that the API server waits for a webhook
/// by default. Otherwise each attempt would be given up just before a webhook that is ignored on failure lets it pass.
const LIMIT_IN_NAMESPACE: Duration = Duration::from_secs(14);

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
    /// How long a call may take. A call that takes longer counts as failed.
    ///
    /// The limit is no part of what keeps two leaders apart: an operator that loses its lease drops its calls with its
    /// writer, however long they may still take. The API server gives up a request whose client has gone.
    pub fn limit(&self) -> Duration {
        match self {
            Self::Claims | Self::Cluster => LIMIT_OF_CLUSTER,
            Self::Making(_) | Self::Keeping(_) => LIMIT_IN_NAMESPACE,
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
    /// When the API server last asked for fewer requests.
    throttled: Option<Instant>,
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
        Self { held: 0, most, waiting: VecDeque::new() }
    }

    fn is_idle(&self) -> bool {
        self.held == 0 && self.waiting.is_empty()
    }
}

/// A place that a call holds; it is given back when this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    lane: Lane,
    since: Instant,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.give_back(&self.lane, self.since.elapsed());
    }
}

impl Places {
    /// Waits for a place.
    pub async fn take(self: &Arc<Self>, lane: &Lane) -> Place {
        match self.ask(lane, None).await {
            Ok(place) => place,
            // A question without a time is never turned away: it stays without an answer only once nobody waits for
            // the place any more.
            Err(_) => pending().await,
        }
    }

    /// Waits for a place for a creation.
    ///
    /// # Errors
    /// When the calls of the lane are slow, and this one has waited for [`PATIENCE`].
    pub async fn take_unless_slow(self: &Arc<Self>, lane: &Lane) -> Result<Place, TurnedAway> {
        self.ask(lane, Some(Instant::now())).await.map_err(|_| TurnedAway)
    }

    fn ask(self: &Arc<Self>, lane: &Lane, since: Option<Instant>) -> oneshot::Receiver<Place> {
        let (hand, place) = oneshot::channel();
        let mut state = self.state();
        state.asked += 1;
        let number = state.asked;
        let share = state.lanes.entry(lane.clone()).or_insert_with(|| Share::of(lane));
        share.waiting.push_back(Question { number, since, hand });
        self.hand_out(state);
        place
    }

    /// Notes that a call of this lane was answered by 429, Too Many Requests. In a namespace a tenant's webhook may have
    /// answered so, which makes the share of the lane smaller. About an object of the cluster the API server itself asks for
    /// fewer requests, of whatever lane.
    pub fn throttled(&self, lane: &Lane) {
        let mut state = self.state();
        if lane.is_namespaced() {
            if let Some(share) = state.lanes.get_mut(lane) {
                share.most = (share.most / 2).max(1);
            }
        } else if state.throttled.is_none_or(|at| at.elapsed() >= CALM) {
            state.throttled = Some(Instant::now());
            state.quick = 0;
            state.places = (state.places * 7 / 10).max(FEWEST);
            tracing::debug!(places = state.places, "the API server asks for fewer requests");
        }
    }

    fn give_back(self: &Arc<Self>, lane: &Lane, took: Duration) {
        let mut state = self.state();
        state.learn(lane, took);
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
            let place = Place { places: Arc::clone(self), lane, since: Instant::now() };
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
            while share.waiting.front().is_some_and(Question::is_given_up) {
                share.waiting.pop_front();
            }
        }
        let waiting =
            self.lanes.iter().filter(|(lane, share)| share.held < share.most && self.has_room(lane));
        let first =
            waiting.filter_map(|(lane, share)| Some((share.held, share.waiting.front()?.number, lane)));
        let (_, _, lane) = first.min_by_key(|(held, number, _)| (*held, *number))?;
        let lane = lane.clone();
        let question = self.lanes.get_mut(&lane)?.waiting.pop_front()?;
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

    /// Learns from a call that ended. A quick call makes its lane's share larger, if the lane had used up its share; if the
    /// lane could have no larger one, the number of places grows in time. A slow call makes the share smaller; where the share
    /// is one place already, who has waited for too long is turned away.
    fn learn(&mut self, lane: &Lane, took: Duration) {
        let calm = self.throttled.is_none_or(|at| at.elapsed() >= CALM);
        let most = self.most_of(lane);
        let full = !self.has_room(lane) || self.lanes.get(lane).is_some_and(|share| share.held >= most);
        if took < QUICK && calm && full {
            self.quick += 1;
            // As many quick calls have ended as there are places: the server bears so many.
            if self.quick >= self.places {
                (self.quick, self.places) = (0, (self.places + FEWEST).min(MOST));
            }
        }
        let Some(share) = self.lanes.get_mut(lane).filter(|_| lane.is_namespaced()) else { return };
        if took < QUICK {
            if share.held >= share.most || share.most < FIRST_SHARE {
                share.most = (share.most + 1).min(most).max(1);
            }
        } else if took >= SLOW && share.most > 1 {
            share.most /= 2;
            if share.most == 1 {
                tracing::warn!(
                    ?lane,
                    "calls are slow, and are made one at a time; is a webhook slow or gone?"
                );
            }
        }
        if took >= SLOW && share.most == 1 {
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
mod tests {
    use tokio::task::JoinSet;
    use tokio::time::sleep;

    use super::*;

    fn making(namespace: &str) -> Lane {
        Lane::Making(namespace.into())
    }

    fn keeping(namespace: &str) -> Lane {
        Lane::Keeping(namespace.into())
    }

    /// Makes calls that take so many seconds each; returns when each of them ended, in milliseconds.
    fn calls(to: &mut JoinSet<(Lane, u128)>, places: &Arc<Places>, lane: &Lane, count: usize, millis: u64) {
        let began = Instant::now();
        for _ in 0..count {
            let (places, lane) = (Arc::clone(places), lane.clone());
            to.spawn(async move {
                let place = places.take(&lane).await;
                sleep(Duration::from_millis(millis)).await;
                drop(place);
                (lane, began.elapsed().as_millis())
            });
        }
    }

    /// When the last call of each lane ended, in milliseconds.
    async fn last(calls: JoinSet<(Lane, u128)>) -> BTreeMap<Lane, u128> {
        let mut last = BTreeMap::new();
        for (lane, at) in calls.join_all().await {
            let latest = last.entry(lane).or_insert(0);
            *latest = at.max(*latest);
        }
        last
    }

    #[tokio::test(start_paused = true)]
    async fn no_namespace_takes_the_places_of_another() {
        let places = Arc::new(Places::default());
        let mut under_way = JoinSet::new();
        for namespace in ["a", "b", "c", "d", "e", "f"] {
            calls(&mut under_way, &places, &making(namespace), 100, 14_000);
        }
        sleep(Duration::from_mins(1)).await;
        // Each of the six makes one call at a time by now.
        assert_eq!(places.state().held, 6);
        let mut others = JoinSet::new();
        calls(&mut others, &places, &making("quick"), 80, 10);
        calls(&mut others, &places, &keeping("a"), 8, 10);
        calls(&mut others, &places, &Lane::Cluster, 10, 10);
        let last = last(others).await;
        assert!(last[&making("quick")] <= 100, "{last:?}");
        assert_eq!((last[&keeping("a")], last[&Lane::Cluster]), (10, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn some_places_are_not_for_making_pods_and_some_are_the_clusters() {
        let places = Arc::new(Places::default());
        let mut under_way = JoinSet::new();
        for number in 0..6 {
            calls(&mut under_way, &places, &making(&format!("m{number}")), 8, 60_000);
            calls(&mut under_way, &places, &keeping(&format!("k{number}")), 8, 60_000);
        }
        calls(&mut under_way, &places, &Lane::Cluster, 20, 60_000);
        sleep(Duration::from_secs(1)).await;
        let state = places.state();
        assert_eq!((state.held, state.held_in_namespaces), (AT_FIRST, state.in_namespaces()));
        assert!(state.held_by_making <= state.making());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_that_is_quick_again_has_its_share_again_and_is_forgotten() {
        let places = Arc::new(Places::default());
        let mut slow = JoinSet::new();
        calls(&mut slow, &places, &making("a"), 8, 14_000);
        last(slow).await;
        assert_eq!(places.state().lanes.get(&making("a")).map(|share| share.most), Some(1));
        let mut quick = JoinSet::new();
        calls(&mut quick, &places, &making("a"), 20, 10);
        assert!(last(quick).await[&making("a")] < 100);
        assert!(places.state().lanes.is_empty());
    }

    /// Eight of thirty creations of 10 s each are made at once, and one after them. The others have then waited for 20 s.
    #[tokio::test(start_paused = true)]
    async fn who_waits_long_for_a_slow_lane_is_turned_away() {
        let places = Arc::new(Places::default());
        for (takes, made) in [(10_000, 9), (1900, 30)] {
            let mut creations = JoinSet::new();
            for _ in 0..30 {
                let places = Arc::clone(&places);
                creations.spawn(async move {
                    let place = places.take_unless_slow(&making("a")).await?;
                    sleep(Duration::from_millis(takes)).await;
                    drop(place);
                    Ok::<_, TurnedAway>(())
                });
            }
            let began = Instant::now();
            let results = creations.join_all().await;
            assert_eq!(results.iter().filter(|result| result.is_ok()).count(), made, "{takes}");
            assert!(began.elapsed() <= Duration::from_mins(1), "{:?}", began.elapsed());
            // A call that is no creation waits for as long as it takes.
            let mut others = JoinSet::new();
            calls(&mut others, &places, &making("a"), 4, takes);
            last(others).await;
            let mut quick = JoinSet::new();
            calls(&mut quick, &places, &making("a"), 20, 10);
            last(quick).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_no_longer_gets_no_place() {
        let places = Arc::new(Places::default());
        let mut under_way = JoinSet::new();
        calls(&mut under_way, &places, &making("a"), 8, 1000);
        sleep(Duration::from_millis(1)).await;
        let mut given_up = JoinSet::new();
        calls(&mut given_up, &places, &making("a"), 8, 1000);
        sleep(Duration::from_millis(1)).await;
        drop(given_up);
        calls(&mut under_way, &places, &making("a"), 8, 1000);
        assert_eq!(last(under_way).await[&making("a")], 2000 - 2, "the last were asked for after 2 ms");
        let state = places.state();
        assert_eq!((state.held, state.held_in_namespaces, state.held_by_making), (0, 0, 0));
        assert!(state.lanes.is_empty());
    }

    /// One namespace alone gets nearly all places, and leaves some to the next.
    #[tokio::test(start_paused = true)]
    async fn a_lane_whose_calls_are_quick_comes_to_have_nearly_all_places() {
        let places = Arc::new(Places::default());
        let mut under_way = JoinSet::new();
        calls(&mut under_way, &places, &making("a"), 300, 10);
        // The namespace's webhook hangs from then on. Pods of another namespace are made all the same.
        calls(&mut under_way, &places, &making("a"), 100, 14_000);
        sleep(Duration::from_secs(1)).await;
        let held = places.state().held;
        let most = places.state().making();
        assert_eq!(held, most - LEFT);
        assert!(most > AT_FIRST * 2 / 3, "all calls were quick: {most}");
        let mut others = JoinSet::new();
        calls(&mut others, &places, &making("b"), 80, 10);
        let last = last(others).await[&making("b")];
        assert!(last <= 100, "{last} ms");
    }

    /// The number of places grows while the API server answers quickly, and shrinks when the server asks for fewer
    /// requests.
    #[tokio::test(start_paused = true)]
    async fn the_number_of_places_follows_the_server() {
        let places = Arc::new(Places::default());
        let mut quick = JoinSet::new();
        calls(&mut quick, &places, &Lane::Cluster, 60_000, 10);
        sleep(Duration::from_millis(305)).await;
        assert_eq!(places.state().places, MOST, "all are quick");
        assert_eq!(places.state().held, MOST);
        places.throttled(&Lane::Cluster);
        places.throttled(&Lane::Cluster);
        assert_eq!(places.state().places, MOST * 7 / 10, "once for all calls that were under way");
        sleep(Duration::from_millis(900)).await;
        assert_eq!(places.state().places, MOST * 7 / 10, "the answers are about calls that were made before");
        sleep(Duration::from_millis(200)).await;
        assert!(places.state().places > MOST * 7 / 10, "the server bears more again");
        drop(quick);
        for _ in 0..20 {
            sleep(CALM).await;
            places.throttled(&Lane::Cluster);
        }
        assert_eq!(places.state().places, FEWEST);
        let mut slow = JoinSet::new();
        calls(&mut slow, &places, &Lane::Cluster, 100, 600);
        last(slow).await;
        assert_eq!(places.state().places, FEWEST, "no call was quick");
    }

    /// A tenant's webhook may ask for fewer requests. Only the share of the tenant's namespace becomes smaller: the
    /// number of places stays.
    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_asks_for_fewer_requests_speaks_for_itself_alone() {
        let places = Arc::new(Places::default());
        let mut under_way = JoinSet::new();
        calls(&mut under_way, &places, &making("a"), 100, 1000);
        sleep(Duration::from_millis(1)).await;
        for _ in 0..5 {
            places.throttled(&making("a"));
        }
        let state = places.state();
        assert_eq!((state.places, state.lanes[&making("a")].most), (AT_FIRST, 1));
    }

    /// An operator that starts writes the statuses of all slots. The claim of the first match does not wait for them.
    #[tokio::test(start_paused = true)]
    async fn claims_do_not_wait_behind_statuses() {
        let places = Arc::new(Places::default());
        let mut statuses = JoinSet::new();
        calls(&mut statuses, &places, &Lane::Cluster, 20_000, 600);
        sleep(Duration::from_secs(2)).await;
        let mut claims = JoinSet::new();
        calls(&mut claims, &places, &Lane::Claims, 10, 10);
        assert!(last(claims).await[&Lane::Claims] <= 610);
    }

    /// Forty namespaces wait for places: calls of many of them are among the first to end, and no place is idle while
    /// a call waits.
    #[tokio::test(start_paused = true)]
    async fn places_go_to_who_has_fewest_and_then_to_who_has_waited_longest() {
        let places = Arc::new(Places::default());
        let mut calls_of = JoinSet::new();
        for number in 0..40 {
            calls(&mut calls_of, &places, &making(&format!("n{number:02}")), 8, 100);
        }
        let mut ended: Vec<(Lane, u128)> = calls_of.join_all().await;
        ended.sort_by_key(|(_, at)| *at);
        let first: std::collections::BTreeSet<_> =
            ended.iter().take(32 * 2).map(|(lane, _)| lane.clone()).collect();
        assert!(first.len() >= 20, "{}", first.len());
        let (_, last) = ended.last().unwrap();
        assert!(*last <= 1000, "no place is idle while somebody waits: {last} ms");
    }
}
