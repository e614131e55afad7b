//! HTTP for probes, Prometheus and the admission webhook, on ports that any pod of the cluster can reach.
//!
//! A client that opens connections and sends nothing must not keep a probe waiting. Each connection has one request, a
//! short time for its head, and a longer time for all of it. If there are too many connections, one of the client with the most
//! connections is closed, the oldest. So a new connection is always accepted; a probe takes milliseconds, so that its connection is not
//! among the oldest; and a client that opens a thousand connections a second closes its own, and not those of the API server.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// How many connections are open at most on a port of [`serve_at`].
const MOST: usize = 256;
/// How long the head of a request may take.
pub const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// How long a connection may be open.
const ALL_WITHIN: Duration = Duration::from_secs(30);
/// How many bytes of a request are kept. hyper takes no less than 8 KiB.
const MOST_BYTES: usize = 16 << 10;
/// The pause after a connection that could not be accepted: the process may have too many files open.
const PAUSE: Duration = Duration::from_millis(200);

/// Binds an address. If that is every address (`[::]`) and this machine has no IPv6, every address of IPv4 is bound.
///
/// # Errors
/// When the address cannot be bound.
pub async fn bind(addr: SocketAddr) -> std::io::Result<TcpListener> {
    match TcpListener::bind(addr).await {
        Err(_) if addr.ip() == Ipv6Addr::UNSPECIFIED => {
            TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, addr.port()))).await
        }
        bound => bound,
    }
}

/// Binds an address, and returns the future that serves there without end. All connections are closed when that future is dropped.
///
/// # Errors
/// When the address cannot be bound.
pub async fn serve_at(
    addr: SocketAddr,
    router: Router,
) -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let listener = bind(addr).await.map_err(|error| std::io::Error::other(format!("{addr}: {error}")))?;
    Ok(serve(listener, MOST, move |stream| answer_one(stream, router.clone())))
}

/// Serves without end, with at most `most` open connections. All connections are closed when the future is dropped. `answer` says all
/// that happens on a connection, for which it has [`ALL_WITHIN`].
pub async fn serve<A: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    most: usize,
    answer: impl Fn(TcpStream) -> A,
) {
    let mut connections = Connections::default();
    loop {
        tokio::select! {
            Some(_) = connections.tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, client)) => connections.take(client.ip(), answer(stream), most),
                Err(error) => {
                    tracing::warn!(error = %answers::chain(&error), "a connection was not accepted");
                    sleep(PAUSE).await;
                }
            },
        }
    }
}

/// The connections that are open.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// Each with its client's address, the oldest first. Some may have ended.
    by_age: VecDeque<(IpAddr, AbortHandle)>,
}

impl Connections {
    /// Answers on a new connection, in a task. Closes another connection if there are `most` already.
    fn take(&mut self, client: IpAddr, answer: impl Future<Output = ()> + Send + 'static, most: usize) {
        self.by_age.retain(|(_, connection)| !connection.is_finished());
        if self.by_age.len() >= most {
            let clients: Vec<IpAddr> = self.by_age.iter().map(|(client, _)| *client).collect();
            if let Some((_, closed)) = to_close(&clients).and_then(|place| self.by_age.remove(place)) {
                closed.abort();
            }
        }
        let task = self.tasks.spawn(async move {
            // A client that takes longer asks again.
            let _ = timeout(ALL_WITHIN, answer).await;
        });
        self.by_age.push_back((client, task));
    }
}

/// The place of the connection to close among those of these clients, the oldest first: the oldest of the client that has the most. If
/// several have as many, the oldest of all theirs.
fn to_close(clients: &[IpAddr]) -> Option<usize> {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for client in clients {
        *counts.entry(*client).or_default() += 1;
    }
    let most = counts.values().max()?;
    clients.iter().position(|client| counts.get(client) == Some(most))
}

/// Answers one request on a connection.
pub async fn answer_one(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(MOST_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A failure of the connection is the client's to deal with.
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream as Client;

    use axum::routing::get;

    use super::*;

    fn ask(addr: SocketAddr) -> String {
        let mut stream = Client::connect(addr).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        // The server closes the connection: there is one request on each.
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The clients block this thread; the server has another.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn those_who_say_nothing_keep_nobody_waiting() {
        let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, MOST, |stream| {
            answer_one(stream, Router::new().route("/", get(|| async { "ok" })))
        }));
        let mut half_open = Vec::new();
        for number in 0..1100 {
            let mut stream = Client::connect(addr).unwrap();
            if number % 2 == 0 {
                // The server may have closed the connection before.
                let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost:");
            }
            half_open.push(stream);
            if number % 50 == 49 {
                let answer = ask(addr);
                assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
            }
        }
        // The oldest are closed: the server has few files open.
        for stream in &mut half_open[..1100 - MOST] {
            assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
        }
    }

    #[test]
    fn the_client_with_the_most_connections_loses_its_oldest() {
        let clients = |numbers: &[u8]| -> Vec<IpAddr> {
            numbers.iter().map(|number| Ipv4Addr::new(10, 0, 0, *number).into()).collect()
        };
        for (open, closed) in [
            (&[] as &[u8], None),
            (&[1], Some(0)),
            (&[1, 2, 2, 2], Some(1)),
            (&[1, 1, 2, 1, 2, 2, 2], Some(2)),
            (&[1, 2, 1, 2], Some(0)),
        ] {
            assert_eq!(to_close(&clients(open)), closed, "{open:?}");
        }
    }

    /// The address of all interfaces is IPv4's, too, whether or not the machine has IPv6.
    #[tokio::test]
    async fn every_address_is_ipv4s_too() {
        let listener = bind((Ipv6Addr::UNSPECIFIED, 0).into()).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok());
        let taken = bind((Ipv6Addr::UNSPECIFIED, port).into()).await;
        assert_eq!(taken.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    }
}
