//! The port on which a kubelet sees that the agent is connected.

use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as Unwatched};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout_at};

/// The pause after a connection. Whoever connects without end costs the agent little.
const PAUSE: Duration = Duration::from_millis(50);

/// A port that is open as long as the agent's Lease is fresh. A probe only connects: nothing is read from a connection, and nothing is
/// written to it.
#[derive(Debug)]
pub(crate) struct Door {
    address: Option<SocketAddr>,
    listener: Option<TcpListener>,
    closes_at: Instant,
    /// The last failure to open the port, so that each failure is logged once.
    failed: Option<io::ErrorKind>,
}

impl Door {
    /// A closed port at this address; without an address it stays closed.
    pub(crate) fn new(address: Option<SocketAddr>) -> Self {
        Self { address, listener: None, closes_at: Instant::now(), failed: None }
    }

    /// Opens the port, if it is closed, and keeps it open until this time.
    pub(crate) fn open_until(&mut self, closes_at: Instant) {
        self.closes_at = closes_at;
        let Some(address) = self.address.filter(|_| self.listener.is_none()) else { return };
        match bind(address) {
            Ok(listener) => (self.listener, self.failed) = (Some(listener), None),
            Err(error) if self.failed != Some(error.kind()) => {
                tracing::warn!(%address, %error, "the port for probes cannot be opened");
                self.failed = Some(error.kind());
            }
            Err(_) => {}
        }
    }

    /// Waits until somebody has connected, or until the port is closed; for ever while the port is closed.
    pub(crate) async fn serve(&mut self) {
        let Some(listener) = &self.listener else { return pending().await };
        match timeout_at(self.closes_at, listener.accept()).await {
            Ok(_) => sleep(PAUSE).await,
            Err(_) => self.listener = None,
        }
    }
}

/// Opens a port. Where there is no IPv6, the port of all IPv6 addresses is that of all IPv4 addresses.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
    let bound = Unwatched::bind(address);
    let listener =
        if address.ip().is_unspecified() { bound.or_else(|_| Unwatched::bind(v4)) } else { bound }?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;

    /// An address whose port is free.
    fn free() -> SocketAddr {
        Unwatched::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
    }

    #[tokio::test]
    async fn the_port_is_open_as_long_as_the_lease_is_fresh() {
        let address = free();
        let mut door = Door::new(Some(address));
        assert!(TcpStream::connect(address).await.is_err(), "nothing was renewed yet");
        door.open_until(Instant::now() + Duration::from_hours(1));
        for _ in 0..3 {
            let (connected, ()) = tokio::join!(TcpStream::connect(address), door.serve());
            assert!(connected.is_ok());
        }
        door.open_until(Instant::now());
        door.serve().await;
        assert!(TcpStream::connect(address).await.is_err(), "the Lease is over");
        door.open_until(Instant::now() + Duration::from_hours(1));
        assert!(TcpStream::connect(address).await.is_ok(), "a renewal has succeeded again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_port_that_cannot_be_opened_disturbs_nobody() {
        let taken = Unwatched::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for address in [None, Some(taken.local_addr().unwrap())] {
            let mut door = Door::new(address);
            door.open_until(Instant::now() + Duration::from_hours(1));
            assert!(timeout(Duration::from_mins(1), door.serve()).await.is_err());
        }
    }
}
