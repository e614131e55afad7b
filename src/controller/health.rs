//! `/livez`, `/readyz` and `/metrics`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Clock;
use super::metrics::{MEDIA_TYPE, Metrics};
use model::pool::{Pool, Time};

/// A leader whose loop has not turned for this long is stuck: the loop turns at least every half minute.
const STUCK_AFTER_MILLIS: i64 = 120_000;

/// What the operator tells about itself.
#[derive(Debug, Default)]
pub struct Health {
    leading: AtomicBool,
    ready: AtomicBool,
    last_beat: AtomicI64,
    metrics: Metrics,
}

impl Health {
    /// The operator leads.
    pub fn leads(&self, now: Time) {
        self.last_beat.store(now.millis(), Ordering::Relaxed);
        self.leading.store(true, Ordering::Relaxed);
        self.metrics.leads();
    }

    /// Everything is known, and deciding has begun.
    pub fn ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// The loop has turned.
    pub fn beat(&self, pool: &Pool, now: Time) {
        self.last_beat.store(now.millis(), Ordering::Relaxed);
        self.metrics.count(pool);
    }

    /// Counts a pod that a kubelet has not ended within `KILLING_TIMEOUT`.
    pub fn overdue_kill(&self) {
        self.metrics.overdue_kill();
    }

    fn is_alive(&self, now: Time) -> bool {
        !self.leading.load(Ordering::Relaxed)
            || now.millis() - self.last_beat.load(Ordering::Relaxed) < STUCK_AFTER_MILLIS
    }

    /// A candidate is always ready: it can take over. A leader is ready once every object has been told.
    fn is_ready(&self) -> bool {
        !self.leading.load(Ordering::Relaxed) || self.ready.load(Ordering::Relaxed)
    }
}

type Shared = (Arc<Health>, Clock);

/// Binds an address. If that is every address (`[::]`) and this machine has no IPv6, every address of IPv4 is bound.
async fn bind(addr: SocketAddr) -> std::io::Result<TcpListener> {
    match TcpListener::bind(addr).await {
        Err(_) if addr.ip() == Ipv6Addr::UNSPECIFIED => {
            TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, addr.port()))).await
        }
        bound => bound,
    }
}

/// Serves until `stop`.
///
/// # Errors
/// When the address cannot be bound.
pub async fn serve(
    addr: SocketAddr,
    health: Arc<Health>,
    clock: Clock,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let listener = bind(addr).await?;
    let status =
        |fine: bool| if fine { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "no") };
    let router =
        Router::new()
            .route(
                "/livez",
                get(move |State((h, clock)): State<Shared>| async move { status(h.is_alive(clock.now())) }),
            )
            .route("/readyz", get(move |State((h, _)): State<Shared>| async move { status(h.is_ready()) }))
            .route(
                "/metrics",
                get(|State((h, _)): State<Shared>| async move {
                    ([(CONTENT_TYPE, MEDIA_TYPE)], h.metrics.text())
                }),
            )
            .with_state((health, clock));
    axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_ready_once_it_knows_and_alive_while_it_turns() {
        let at = Time::from_secs(1000);
        let health = Health::default();
        assert!(
            health.is_ready() && health.is_alive(Time::from_secs(9999)),
            "a candidate waits in good health"
        );
        health.leads(at);
        assert!(!health.is_ready() && health.is_alive(at));
        health.ready();
        assert!(health.is_ready());
        assert!(!health.is_alive(Time::from_secs(1121)));
        health.beat(&Pool::default(), Time::from_secs(1121));
        assert!(health.is_alive(Time::from_secs(1121)));
    }

    /// Whatever of IPv4 and IPv6 a machine has.
    #[tokio::test]
    async fn every_address_is_ipv4s_too() {
        let listener = bind((Ipv6Addr::UNSPECIFIED, 0).into()).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok());
        let taken = bind((Ipv6Addr::UNSPECIFIED, port).into()).await;
        assert_eq!(taken.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    }
}
