//! Who gets a place, and when.

use kube::client::Body;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::calls::once;
use super::super::{Context, Tools};
use super::*;
use crate::Clock;

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
            let mut place = places.begin(&lane).await;
            place.begins();
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
async fn a_further_call_of_a_task_comes_before_first_calls() {
    let places = Arc::new(Places::default());
    let mut under_way = JoinSet::new();
    calls(&mut under_way, &places, &Lane::Claims, AT_FIRST, 1000);
    sleep(Duration::from_millis(1)).await;
    calls(&mut under_way, &places, &making("a"), 100, 1000);
    let began = Instant::now();
    let further = tokio::spawn(async move {
        sleep(Duration::from_millis(1)).await;
        drop(places.take(&making("a")).await);
        began.elapsed().as_millis()
    });
    assert!(further.await.unwrap() <= 1000, "the call gets one of the first places that are free again");
    assert!(last(under_way).await[&making("a")] > 3000);
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
                let mut place = places.begin_unless_slow(&making("a"), Instant::now()).await?;
                place.begins();
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

/// A task that was held elsewhere may have waited for long already when it asks.
#[tokio::test(start_paused = true)]
async fn who_has_waited_long_before_asking_a_slow_lane_is_turned_away_at_once() {
    let places = Arc::new(Places::default());
    let long_ago = Instant::now();
    sleep(PATIENCE).await;
    let ask = async || places.begin_unless_slow(&making("a"), long_ago).await.map(drop);
    assert_eq!(ask().await, Ok(()), "the lane is not known to be slow");
    let mut slow = JoinSet::new();
    calls(&mut slow, &places, &making("a"), 8, 10_000);
    last(slow).await;
    assert_eq!(ask().await, Err(TurnedAway));
    assert_eq!(
        places.begin_unless_slow(&making("a"), Instant::now()).await.map(drop),
        Ok(()),
        "this one has not waited"
    );
    let mut quick = JoinSet::new();
    calls(&mut quick, &places, &making("a"), 1, 10);
    last(quick).await;
    assert_eq!(ask().await, Ok(()));
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
    let share = |places: &Places| {
        let state = places.state();
        (state.places, state.lanes[&making("a")].most)
    };
    let (_, first) = share(&places);
    for _ in 0..5 {
        places.throttled(&making("a"));
    }
    assert_eq!(share(&places), (AT_FIRST, first / 2), "once for all calls that were under way");
    for _ in 0..5 {
        sleep(CALM).await;
        places.throttled(&making("a"));
    }
    assert_eq!(share(&places), (AT_FIRST, 1));
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

/// How many places each of two lanes has, and how many there are: at the end of a stall of the API server, and after further calls that
/// take so many milliseconds each. A lane with its first share, or more, is forgotten.
async fn after_a_stall(stall: u64, then: u64) -> [([Option<usize>; 2], usize); 2] {
    let places = Arc::new(Places::default());
    let mut under_way = JoinSet::new();
    for namespace in ["a", "b"] {
        calls(&mut under_way, &places, &making(namespace), 8, stall);
    }
    // An attempt of such a call is given up after 4 s.
    calls(&mut under_way, &places, &Lane::Cluster, 30, stall.min(4000));
    let shares = || {
        let state = places.state();
        let most = |namespace| state.lanes.get(&making(namespace)).map(|share| share.most);
        ([most("a"), most("b")], state.places)
    };
    last(under_way).await;
    let at_the_end = shares();
    let mut further = JoinSet::new();
    for namespace in ["a", "b"] {
        calls(&mut further, &places, &making(namespace), 40, then);
    }
    last(further).await;
    [at_the_end, shares()]
}

#[tokio::test(start_paused = true)]
async fn a_stall_of_the_server_makes_shares_smaller_once_and_calls_below_two_seconds_mend_that() {
    let halved = ([Some(4), Some(4)], 33);
    for (stall, then) in [(2500, 10), (2500, 1500), (9000, 10), (9000, 1500)] {
        let [at_the_end, (afterwards, _)] = after_a_stall(stall, then).await;
        assert_eq!((at_the_end, afterwards), (halved, [None, None]), "{stall} {then}");
    }
    let [at_the_end, (afterwards, _)] = after_a_stall(2500, 2500).await;
    assert_eq!((at_the_end, afterwards), (halved, [Some(1), Some(1)]), "slow for these namespaces");
}

#[tokio::test(start_paused = true)]
async fn fewer_calls_are_made_at_a_time_while_the_server_is_slow_about_the_clusters_objects() {
    let places = Arc::new(Places::default());
    for (round, expected) in [33, 23, 16, 12, 12].into_iter().enumerate() {
        assert_eq!(places.limit(&Lane::Claims).as_secs(), if round == 0 { 4 } else { 8 });
        let mut slow = JoinSet::new();
        calls(&mut slow, &places, &Lane::Cluster, 10, 3000);
        last(slow).await;
        assert_eq!(places.state().places, expected);
    }
    let mut quick = JoinSet::new();
    calls(&mut quick, &places, &Lane::Cluster, 200, 100);
    last(quick).await;
    assert!(places.state().places > 12);
    assert_eq!(places.limit(&Lane::Claims).as_secs(), 4);
}

/// An API server that is away refuses connections at once.
#[tokio::test(start_paused = true)]
async fn calls_that_fail_at_once_do_not_make_more_places() {
    assert_eq!(after_quick_calls(true).await, AT_FIRST);
    assert_eq!(after_quick_calls(false).await, MOST);
}

/// How many places there are after a thousand calls that end at once.
async fn after_quick_calls(fail: bool) -> usize {
    let places = Arc::new(Places::default());
    let mut others = JoinSet::new();
    for _ in 0..1000 {
        let places = Arc::clone(&places);
        others.spawn(async move {
            let mut place = places.begin(&Lane::Cluster).await;
            place.begins();
            sleep(Duration::from_millis(5)).await;
            if fail {
                place.failed();
            }
        });
    }
    others.join_all().await;
    places.state().places
}

/// An answer of 429 comes quickly, and says nothing about how many calls the server bears.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_throttled_makes_no_share_larger() {
    let answers = Arc::new(Mutex::new(VecDeque::from([429, 429, 429, 200])));
    let service = tower::service_fn(move |_: http::Request<Body>| {
        let code = answers.lock().unwrap().pop_front().unwrap();
        let answer = json!({"kind": "Status", "status": "Failure", "code": code, "metadata": {"name": "p"}});
        let body = Body::from(answer.to_string().into_bytes());
        std::future::ready(Ok::<_, std::convert::Infallible>(
            http::Response::builder().status(code).body(body).unwrap(),
        ))
    });
    let client = kube::Client::new(service, "ns");
    let tools = Tools::new(client.clone(), Clock::set_to(jiff::Timestamp::UNIX_EPOCH), "me");
    let places = Arc::clone(&tools.places);
    let lane = keeping("a");
    let context =
        Context { tools: Arc::new(tools), lane: lane.clone(), identity: None, first: Mutex::default() };
    let pods = super::super::pods::pods(&client, "a");
    let mut shares = Vec::new();
    for _ in 0..4 {
        let _ = once(&context, LIMIT, pods.get("p")).await.unwrap();
        shares.push(places.state().lanes.get(&lane).unwrap().most);
    }
    assert_eq!(shares, [4, 4, 4, 5], "halved once for the three that come at the same time, and then larger");
}
