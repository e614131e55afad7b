//! The operator around its loop: before the loop begins, and when a task beside the loop fails.

use std::convert::Infallible;

use futures::FutureExt;
use http::{Request, Response};
use jiff::Timestamp;
use kube::client::Body;

use super::*;

/// The options of an operator that serves nothing and stands for no election.
fn options() -> Options {
    Options {
        health_addr: None,
        metrics_addr: None,
        leader_elect_namespace: None,
        history: None,
        webhook_serves: None,
        identity: "me".to_owned(),
        pod_uid: None,
    }
}

/// Whether the operator lives, as `/livez` says.
async fn lives(health: &Arc<Health>, clock: Clock) -> bool {
    let request = Request::get("/livez").body(axum::body::Body::empty()).unwrap();
    let answer = tower::ServiceExt::oneshot(health::probes(Arc::clone(health), clock), request).await;
    answer.unwrap().status().is_success()
}

/// Kubernetes would kill the operator again and again, and never let it begin.
#[tokio::test(start_paused = true)]
async fn an_operator_that_waits_for_the_api_server_lives() {
    let silent =
        tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>());
    let client = Client::new(silent, "ns");
    let clock = Clock::set_to(Timestamp::UNIX_EPOCH);
    let surroundings = Surroundings {
        clock,
        stamps: Stamps::by(Some("slotwright".to_owned())),
        ..Surroundings::of_a_process(client.clone(), client)
    };
    let options = options();
    let (health, stop) = (Arc::new(Health::default()), CancellationToken::new());
    health.leads(clock.now());
    let leader =
        lead(surroundings, &options, (Arc::clone(&health), HighestClusterId::default()), stop.clone());
    let watcher = async {
        for minute in 1..=10 {
            tokio::time::sleep(Duration::from_mins(1)).await;
            assert!(lives(&health, clock).await, "after {minute} min");
        }
        stop.cancel();
    };
    tokio::join!(leader, watcher);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(!lives(&health, clock).await, "nothing says so any more");
}

/// Otherwise the Lease would be held for half a minute by an operator that has ended.
#[tokio::test]
async fn an_operator_that_cannot_serve_takes_no_lease() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let client = Client::new(
        tower::service_fn(|_: Request<Body>| async {
            panic!("nobody is asked") as Result<Response<Body>, Infallible>
        }),
        "ns",
    );
    let surroundings = Surroundings::of_a_process(client.clone(), client);
    let options = Options {
        health_addr: Some("127.0.0.1:0".parse().unwrap()),
        metrics_addr: Some(addr),
        leader_elect_namespace: Some("ns".to_owned()),
        ..options()
    };
    let ended = run_in(surroundings, options, CancellationToken::new()).await;
    let said = ended.unwrap_err().to_string();
    assert!(
        said.starts_with(&format!("health, metrics or the history cannot be served: {addr}: ")),
        "{said}"
    );
}

#[tokio::test]
async fn a_fault_of_a_task_ends_the_operator_after_others_have_ended_well() {
    let (mut tasks, never) = (JoinSet::new(), std::future::pending::<()>());
    tasks.spawn(async {});
    tasks.spawn(async {
        tokio::task::yield_now().await;
        panic!("a fault");
    });
    let ended = std::panic::AssertUnwindSafe(until_a_fault(never, &mut tasks)).catch_unwind().await;
    assert_eq!(ended.unwrap_err().downcast_ref(), Some(&"a fault"));
}

#[tokio::test]
async fn the_operator_ends_with_its_loop() {
    let mut tasks = JoinSet::new();
    tasks.spawn(std::future::pending());
    until_a_fault(async {}, &mut tasks).await;
}

/// People give all replicas one identity, as by `--identity` among the arguments of a Deployment. Each of two operators that held the Lease
/// under one name would think that it leads.
#[test]
fn operators_of_one_identity_hold_leases_under_names_of_their_own() {
    let holder = |pod_uid: Option<&str>, chance| {
        Options { pod_uid: pod_uid.map(str::to_owned), ..options() }.holder(chance)
    };
    assert_eq!(holder(None, 1), "me_0000000000000001");
    assert_ne!(holder(None, 1), holder(None, 2), "two processes");
    assert_ne!(holder(Some("a"), 1), holder(Some("b"), 1), "two pods");
    assert_eq!(holder(Some("a"), 1), holder(Some("a"), 2), "a container that is started again in its pod");
}
