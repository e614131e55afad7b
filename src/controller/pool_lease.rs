//! The pool's Lease, which says who owns the pool. It has the same name in every cluster, whatever namespace the operator is in.
//!
//! All operators of a cluster decide about the same nodes and pods. Operators that share a leader's Lease take turns. Operators that share
//! no leader's Lease (two releases in two namespaces, or two without an election) would evict each other's pods for ever. So a leader also
//! holds the pool's Lease, before its first decision and for as long as it decides. The Lease names the owner, not the process: leaders of
//! one release hand the Lease on. An operator that sees another owner renew the Lease does not wait, as a candidate does, but ends with a
//! message: somebody has to remove one of the two.

use kube::Client;
use tokio_util::sync::CancellationToken;

use super::Clock;
use super::health::Health;
use super::kinds::lease::NAMESPACE;
use super::leader::{Election, Held, HighestClusterId, Waiting};
use api::labels::POOL_LEASE;

/// The name of the pool's owner: namespace and name of the leader's Lease, which all operators of a release share, or
/// else the name by which an operator that runs without an election holds Leases.
pub fn owner(leaders_lease: Option<(&str, &str)>, holder: &str) -> String {
    leaders_lease.map_or_else(|| holder.to_owned(), |(namespace, lease)| format!("{namespace}/{lease}"))
}

/// The election by which `owner` takes and renews the pool's Lease, which keeps the highest ClusterId, as the leader's Lease
/// does.
pub fn election(client: Client, clock: Clock, owner: &str, highest: HighestClusterId) -> Election {
    Election::new(client, clock, (NAMESPACE, POOL_LEASE), owner, highest)
}

/// Another owner is at work.
#[derive(Debug)]
pub struct Taken(pub String);

/// Waits until the pool is this owner's. Returns `None` if `stop` came first. While this operator waits, `health` says why.
/// A Lease that another owner left behind is taken over once it was not renewed for its duration.
///
/// # Errors
/// When another owner is at work.
pub async fn take(
    lease: &Election,
    health: &Health,
    stop: &CancellationToken,
) -> Result<Option<Held>, Taken> {
    let refuse = |waiting| match waiting {
        Waiting::Taken { holder, at_work: true } => Some(Taken(holder)),
        Waiting::Taken { holder, at_work: false } => {
            tracing::warn!(
                owner = holder,
                "another operator owns the pool; if that operator is gone, this operator takes over when the Lease expires"
            );
            health.waits(Some(format!("the pool is {holder}'s (Lease {NAMESPACE}/{POOL_LEASE})")));
            None
        }
        Waiting::Unreachable(why) => {
            health.waits(Some(format!(
                "the owner of the pool is not known, because Lease {NAMESPACE}/{POOL_LEASE} cannot be read or written: {why}"
            )));
            None
        }
    };
    let taken = lease.win_unless(stop, refuse).await;
    if taken.is_ok() {
        health.waits(None);
    }
    taken
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use jiff::Timestamp;
    use kube::client::Body;
    use tokio::time::{Instant, timeout};

    use super::*;

    /// Takes the Lease, and returns the result and after how many seconds it came. At first `holder` has the Lease, and
    /// renews it at so many of the first reads. If `holder` is empty, the API server refuses to show the Lease.
    async fn taken(holder: Option<&'static str>, renewals: u32) -> (Result<bool, String>, u64) {
        let reads = Arc::new(AtomicU32::new(0));
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let reads =
                if request.method() == http::Method::GET { reads.fetch_add(1, Ordering::Relaxed) } else { 0 };
            async move {
                let renewed = format!("2026-01-01T00:00:{:02}.000000Z", reads.min(renewals));
                let lease = serde_json::json!({"metadata": {"name": POOL_LEASE, "resourceVersion": "1"},
                    "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}});
                let forbidden = serde_json::json!({"kind": "Status", "status": "Failure", "code": 403,
                    "message": "no", "reason": "Forbidden"});
                let (code, answer) = if holder == Some("") { (403, forbidden) } else { (200, lease) };
                let body = Body::from(answer.to_string().into_bytes());
                Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
            }
        });
        let clock = Clock::set_to(Timestamp::UNIX_EPOCH);
        let client = Client::new(service, "ns");
        let lease = election(client, clock, "a/slotwright-operator", HighestClusterId::default());
        let (health, stop, began) = (Health::default(), CancellationToken::new(), Instant::now());
        let result = match timeout(Duration::from_mins(1), take(&lease, &health, &stop)).await {
            Ok(result) => result.map(|held| held.is_some()).map_err(|Taken(owner)| owner),
            Err(_) => Err(health.unready(clock.now()).unwrap_or_default()),
        };
        (result, began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn the_pool_is_anothers_if_the_other_is_at_work() {
        assert_eq!(taken(None, 0).await, (Ok(true), 0), "nobody's");
        assert_eq!(
            taken(Some("a/slotwright-operator"), 9).await,
            (Ok(true), 0),
            "the last leader's of this release"
        );
        assert_eq!(
            taken(Some("b/slotwright-operator"), 9).await,
            (Err("b/slotwright-operator".to_owned()), 2)
        );
        let (left_behind, after) = taken(Some("b/slotwright-operator"), 0).await;
        assert!(left_behind == Ok(true) && (15..=18).contains(&after), "by this process's clock: {after}");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_decides_who_cannot_see_the_pools_lease() {
        let (Err(unready), 60) = taken(Some(""), 0).await else { panic!("not told") };
        assert!(
            unready.contains("Lease kube-node-lease/pool.slotwright.dev cannot be read or written"),
            "{unready}"
        );
    }

    #[test]
    fn releases_own_the_pool_and_so_do_operators_without_an_election() {
        assert_eq!(owner(Some(("ns", "lease")), "me"), "ns/lease");
        assert_eq!(owner(None, "me"), "me");
    }
}
