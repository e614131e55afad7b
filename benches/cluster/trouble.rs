//! An API server in trouble: what the operator still starts when calls are refused, when each write takes long, and when the pods of
//! one namespace take long, as under a slow admission webhook.
//!
//! The operator reaches the server by a proxy of this process, which makes the trouble. The played kubelets and the benchmark reach the
//! server directly. The proxy stands before the server in the turn without trouble, too.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use kube::Client;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How the names of namespaces begin whose pods are slow.
pub const SLOW: &str = "slow-";

/// A line of the table.
pub struct Case {
    /// The line's words for the trouble.
    pub title: &'static str,
    /// The trouble.
    pub trouble: Trouble,
    /// Whether another tenant has a job of as many procs, in a namespace whose name begins with [`SLOW`].
    pub beside: bool,
}

/// The lines of the table.
pub const CASES: [Case; 5] = [
    Case { title: "none", trouble: Trouble::None, beside: false },
    Case { title: "half of the calls are answered with 429", trouble: Trouble::Refuses, beside: false },
    Case {
        title: "each write takes 200 ms longer",
        trouble: Trouble::SlowWrites(Duration::from_millis(200)),
        beside: false,
    },
    Case { title: "none; another tenant has a job of as many procs", trouble: Trouble::None, beside: true },
    Case {
        title: "each pod of the other tenant takes 10 s to create",
        trouble: Trouble::SlowNamespace(Duration::from_secs(10)),
        beside: true,
    },
];

/// The most bytes of a request that the proxy passes on.
const LARGEST: usize = 8 << 20;

/// A fault of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// Every second call is answered with 429, and with `Retry-After: 1` as kube-apiserver says it.
    Refuses,
    /// Each write takes longer by this, as with a slow etcd.
    SlowWrites(Duration),
    /// The creation of a pod in a namespace whose name begins with [`SLOW`] takes longer by this, as with a slow webhook.
    SlowNamespace(Duration),
}

impl Trouble {
    /// How much longer a call takes.
    fn delay(self, request: &Request) -> Duration {
        let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
        let path = request.uri().path();
        let makes_slow_pod = request.method() == Method::POST
            && path.starts_with(&format!("/api/v1/namespaces/{SLOW}"))
            && path.ends_with("/pods");
        match self {
            Self::SlowWrites(by) if writes => by,
            Self::SlowNamespace(by) if makes_slow_pod => by,
            _ => Duration::ZERO,
        }
    }
}

/// A proxy before the API server, until this value goes.
pub struct Proxy {
    directory: tempfile::TempDir,
    serving: JoinHandle<()>,
}

struct Server {
    client: Client,
    trouble: Trouble,
    calls: AtomicU64,
}

impl Proxy {
    /// Begins to serve.
    pub async fn start(client: &Client, trouble: Trouble) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Arc::new(Server { client: client.clone(), trouble, calls: AtomicU64::new(0) });
        let router = Router::new().fallback(pass).with_state(server);
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let directory = tempfile::tempdir().unwrap();
        let proxy = Self { directory, serving };
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
        });
        std::fs::write(proxy.kubeconfig(), config.to_string()).unwrap();
        proxy
    }

    /// The file that leads to the proxy.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("config")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Passes a call on to the API server.
async fn pass(State(server): State<Arc<Server>>, request: Request) -> Response {
    // Half of the calls, in an order without a period (Thue and Morse): a caller that reads and writes in turn, as a leader does
    // with its lease, would otherwise have every write refused.
    let refuses = || !server.calls.fetch_add(1, Ordering::Relaxed).count_ones().is_multiple_of(2);
    if server.trouble == Trouble::Refuses && refuses() {
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 429, "reason": "TooManyRequests",
            "message": "Too many requests, please try again later.",
        });
        return (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")], Json(status)).into_response();
    }
    let delay = server.trouble.delay(&request);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(header::HOST);
    let Ok(bytes) = axum::body::to_bytes(body, LARGEST).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    match server.client.send(Request::from_parts(parts, bytes.to_vec().into())).await {
        Ok(answer) => answer.map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
