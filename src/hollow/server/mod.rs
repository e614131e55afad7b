//! An API server in this process that speaks the Kubernetes HTTP API to kube-rs and to real kubectl.
//!
//! The server is a test bed: it has no authentication, no authorization, no admission plugins but [`Webhooks`], and no controller
//! but the garbage collector. Everything is in memory and lost at the end. The server's timeouts run on tokio's clock: a test
//! that pauses this clock ends every watch at once, so tests must not pause it.
//!
//! ```text
//! http -> path, params -> dispatch -> read | watch | write | delete | scale | pod_actions -> store
//!                                            strategy, names, crd, crate kube_schema
//! ```
//!
//! | file | what is in it |
//! | --- | --- |
//! | `store` | objects, versions, history, indexes for the collector |
//! | `registry`, `builtin`, `crd`, `resource` | the served resources |
//! | `http`, `path`, `params`, `dispatch`, `encode`, `protobuf`, `error` | requests in, answers out |
//! | `read`, `watch`, `selectors` | get, list, watch |
//! | `create`, `write`, `conform`, `strategy`, `names`, `pods`, `pod_rules`, `events` | create, update, patch |
//! | `admission` | webhooks |
//! | `delete`, `gc` | deletion, and the garbage collector |
//! | `scale`, `pod_actions` | the subresources scale, binding and eviction |
//! | `discovery`, `counts` | discovery, OpenAPI and metrics |

mod admission;
mod api;
mod builtin;
mod config;
mod conform;
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

pub use admission::{Review, Webhook, Webhooks};
pub use config::{Clock, ServerConfig};
pub use counts::RequestKey;

use api::Api;

/// Starts embedded API servers.
#[derive(Debug, Clone, Copy)]
pub struct HollowServer;

impl HollowServer {
    /// Binds `addr` (port 0 means any free port) and serves until [`RunningServer::shutdown`], or until the returned
    /// server is dropped.
    ///
    /// Needs a tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn start(addr: SocketAddr, config: ServerConfig) -> io::Result<RunningServer> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let api = Arc::new(Api::new(config));
        seed(&api).map_err(io::Error::other)?;
        let mut tasks = Vec::new();
        if api.config.collect_garbage {
            tasks.push(tokio::spawn(gc::run(Arc::clone(&api))));
        }
        tasks.push(tokio::spawn(send_bookmarks_periodically(Arc::clone(&api))));
        let router = Router::new().fallback(http::handle).with_state(Arc::clone(&api));
        let stop = api.stop.clone();
        // Watch events are small and urgent, so TCP must not wait for more data before it sends them.
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

/// Creates the namespaces that every cluster has.
fn seed(api: &Api) -> Result<(), error::ApiError> {
    let res = api.registry.resolve("", "v1", "namespaces").ok_or_else(error::ApiError::no_such_resource)?;
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let mut call = api::Call {
            res: Arc::clone(&res),
            params: params::Params::default(),
            manager: "hollow-apiserver".to_owned(),
            user: admission::User::default(),
            now: api.now(),
            warnings: Vec::new(),
        };
        create::create(api, &mut call, "", None, json!({"metadata": {"name": name}}))?;
    }
    Ok(())
}

async fn send_bookmarks_periodically(api: Arc<Api>) {
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

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct RunningServer {
    /// The server's URL: `http://<address>:<port>`.
    pub url: String,
    addr: SocketAddr,
    api: Arc<Api>,
    tasks: Vec<JoinHandle<()>>,
}

impl RunningServer {
    /// The address that the server listens on.
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

    /// A client configuration for this server, without automatic retries.
    ///
    /// # Errors
    /// When the address makes no URL, which does not happen with an address that could be bound.
    pub fn kube_config(&self) -> Result<kube::Config, ::http::uri::InvalidUri> {
        let mut config = kube::Config::new(self.url.parse()?);
        "default".clone_into(&mut config.default_namespace);
        config.default_retry = false;
        Ok(config)
    }

    /// A client configuration with the User-Agent `client`, by which [`RunningServer::request_counts`] counts its
    /// requests.
    ///
    /// `client` must be visible ASCII; otherwise the configuration has no User-Agent.
    ///
    /// # Errors
    /// As [`RunningServer::kube_config`].
    pub fn kube_config_as(&self, client: &str) -> Result<kube::Config, ::http::uri::InvalidUri> {
        let mut config = self.kube_config()?;
        if let Ok(value) = ::http::HeaderValue::from_str(client) {
            config.headers.push((::http::header::USER_AGENT, value));
        }
        Ok(config)
    }

    /// How many requests the server has received, by client, verb and resource.
    pub fn request_counts(&self) -> BTreeMap<RequestKey, u64> {
        self.api.counts.all()
    }

    /// The version of the newest change.
    pub fn resource_version(&self) -> u64 {
        self.api.store.version()
    }

    /// Sends a bookmark now to every watch that allows them.
    pub fn send_bookmarks(&self) {
        self.api.bookmarks.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Lets every later creation of a pod in this namespace hang until the server stops, as a webhook that never answers
    /// does.
    pub fn hang_new_pods_in(&self, namespace: &str) {
        self.api.hang(namespace);
    }

    /// Forgets the history: a watch or list that starts from an older version than the newest gets 410 Gone.
    pub fn compact(&self) {
        self.api.store.compact();
    }

    /// Ends all watches and stops serving. Returns when both are done.
    pub async fn shutdown(mut self) {
        self.api.stop.cancel();
        for task in std::mem::take(&mut self.tasks) {
            // An error means that the task panicked, so it has stopped too.
            let _ = task.await;
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.api.stop.cancel();
    }
}
