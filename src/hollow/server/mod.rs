//! An API server in this process that speaks the Kubernetes HTTP API to kube-rs and to real kubectl.
//!
//! It is a test bed, not the product: no authentication, no authorization, no admission plugins, no controllers other
//! than the garbage collector and the emptying of namespaces; everything is in memory and gone at the end. Its
//! timeouts run on tokio's clock, so a paused tokio clock ends every watch at once: do not pause it.
//!
//! ```text
//! http -> path, params -> dispatch -> read | watch | write | delete | scale | pod_actions -> store
//!                                            strategy, names, crd, schema room
//! ```
//!
//! | file | is |
//! | --- | --- |
//! | `store` | objects, versions, history, indexes for the collector |
//! | `registry`, `builtin`, `crd`, `resource` | what is served |
//! | `http`, `path`, `params`, `dispatch`, `encode`, `protobuf`, `error` | HTTP in and out |
//! | `read`, `watch`, `selectors` | get, list, watch |
//! | `create`, `write`, `shape_up`, `strategy`, `names`, `pods`, `pod_rules`, `events` | create, update, patch |
//! | `delete`, `gc` | deletion and what follows from it |
//! | `scale`, `pod_actions` | scale, binding, eviction |
//! | `discovery`, `counts` | what clients ask about the server itself |

mod api;
mod builtin;
mod config;
mod counts;
mod crd;
mod create;
mod delete;
mod discovery;
mod dispatch;
mod encode;
mod error;
mod events;
mod gc;
mod http;
mod ids;
mod json;
mod names;
mod params;
mod path;
mod pod_actions;
mod pod_rules;
mod pods;
mod protobuf;
mod read;
mod registry;
mod resource;
mod scale;
mod selectors;
mod shape_up;
mod store;
mod strategy;
mod time;
mod watch;
mod write;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::serve::ListenerExt;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use config::{Clock, ServerConfig};
pub use counts::RequestKey;

use api::Api;

/// Starts embedded API servers.
#[derive(Debug, Clone, Copy)]
pub struct HollowServer;

impl HollowServer {
    /// Binds `addr` (port 0: any free one) and serves until [`RunningServer::shutdown`] or drop.
    ///
    /// Needs a tokio runtime. Errors are those of binding the address.
    pub async fn start(addr: SocketAddr, config: ServerConfig) -> io::Result<RunningServer> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let api = Arc::new(Api::new(config));
        seed(&api).map_err(io::Error::other)?;
        let mut tasks = Vec::new();
        if api.config.collect_garbage {
            tasks.push(tokio::spawn(gc::run(Arc::clone(&api))));
        }
        tasks.push(tokio::spawn(ring_bookmarks(Arc::clone(&api))));
        let router = Router::new().fallback(http::handle).with_state(Arc::clone(&api));
        let stop = api.stop.clone();
        // Watch events are small and urgent: no waiting for more to send.
        let listener = listener.tap_io(|tcp| {
            if let Err(error) = tcp.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY");
            }
        });
        tasks.push(tokio::spawn(async move {
            let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await;
            if let Err(error) = served {
                tracing::error!(%error, "the embedded API server stopped");
            }
        }));
        Ok(RunningServer { url: format!("http://{addr}"), addr, api, tasks })
    }
}

/// The objects that every cluster has.
fn seed(api: &Api) -> Result<(), error::ApiError> {
    let res = api.registry.resolve("", "v1", "namespaces").ok_or_else(error::ApiError::no_such_resource)?;
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let mut call = api::Call {
            res: Arc::clone(&res),
            params: params::Params::default(),
            manager: "hollow-apiserver".to_owned(),
            now: api.now(),
            warnings: Vec::new(),
        };
        create::create(api, &mut call, "", None, json!({"metadata": {"name": name}}))?;
    }
    Ok(())
}

async fn ring_bookmarks(api: Arc<Api>) {
    let Some(period) = api.config.bookmarks else { return };
    let mut timer = tokio::time::interval(period);
    timer.tick().await;
    loop {
        tokio::select! {
            () = api.stop.cancelled() => return,
            _ = timer.tick() => api.bookmarks.send_modify(|n| *n = n.wrapping_add(1)),
        }
    }
}

/// A server that serves; dropping it stops it.
#[derive(Debug)]
pub struct RunningServer {
    /// `http://127.0.0.1:<port>`
    pub url: String,
    addr: SocketAddr,
    api: Arc<Api>,
    tasks: Vec<JoinHandle<()>>,
}

impl RunningServer {
    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A kubeconfig (YAML) with which real kubectl talks to this server.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: hollow\n  cluster:\n    server: {}\ncontexts:\n\
             - name: hollow\n  context:\n    cluster: hollow\n    user: hollow\n    namespace: default\n\
             current-context: hollow\nusers:\n- name: hollow\n  user: {{}}\n",
            self.url
        )
    }

    /// A client configuration for this server, without hidden retries.
    ///
    /// Errors only if the address makes no URL, which a bound address always does.
    pub fn kube_config(&self) -> Result<kube::Config, ::http::uri::InvalidUri> {
        let mut config = kube::Config::new(self.url.parse()?);
        "default".clone_into(&mut config.default_namespace);
        config.default_retry = false;
        Ok(config)
    }

    /// The same for a client that [`RunningServer::request_counts`] tells from others by `client` (its User-Agent).
    ///
    /// `client` must be visible ASCII; what is not is left out.
    pub fn kube_config_as(&self, client: &str) -> Result<kube::Config, ::http::uri::InvalidUri> {
        let mut config = self.kube_config()?;
        if let Ok(value) = ::http::HeaderValue::from_str(client) {
            config.headers.push((::http::header::USER_AGENT, value));
        }
        Ok(config)
    }

    /// How many requests came in, by client, verb and resource.
    pub fn request_counts(&self) -> BTreeMap<RequestKey, u64> {
        self.api.counts.all()
    }

    /// The version of the newest change.
    pub fn resource_version(&self) -> u64 {
        self.api.store.version()
    }

    /// Sends a bookmark to every watch that takes them, now.
    pub fn send_bookmarks(&self) {
        self.api.bookmarks.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Forgets the history: watches and lists that start from a version before now get 410 Gone.
    pub fn compact(&self) {
        self.api.store.compact();
    }

    /// Ends all watches, stops serving and waits for both.
    pub async fn shutdown(mut self) {
        self.api.stop.cancel();
        for task in std::mem::take(&mut self.tasks) {
            // A task that panicked has nothing more to stop.
            let _ = task.await;
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.api.stop.cancel();
    }
}
