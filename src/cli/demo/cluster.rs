//! The embedded cluster of the demo: API server, definitions, hollow nodes, kubeconfig.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Config, ResourceExt};
use tempfile::TempDir;
use thiserror::Error;

use super::scene::Capacity;
use hollow::nodes::shape::{GIB, NVIDIA_GPU};
use hollow::nodes::{self, HollowNodes, NodeShape, shapes};
use hollow::server::{HollowServer, RunningServer, ServerConfig};

/// The operator's namespace, where its Lease for leader election is. The chart uses the same name.
pub const NAMESPACE: &str = "slotwright-system";
/// How long the server may take to serve a definition.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(10);
/// Millicores of a uniform node.
const UNIFORM_CPUS: i64 = 8000;
/// Memory of a uniform node in bytes.
const UNIFORM_MEMORY: i64 = 32 * GIB;

/// Why there is no cluster.
#[derive(Debug, Error)]
pub enum Error {
    /// The server cannot listen.
    #[error("the embedded API server cannot serve at {addr}: {source}; choose another --port")]
    Bind {
        /// The address at which it should listen.
        addr: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The server cannot be used.
    #[error("the embedded API server cannot be used: {0}")]
    Client(String),
    /// The server does not serve a definition.
    #[error("definition {name}: {why}")]
    Definition {
        /// The definition's name.
        name: String,
        /// The cause.
        why: String,
    },
    /// The nodes did not start.
    #[error(transparent)]
    Nodes(#[from] nodes::Error),
    /// The kubeconfig cannot be written.
    #[error("kubeconfig {}: {source}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file for the kubeconfig exists, and the demo did not write it.
    #[error("kubeconfig {}: this file is not the demo's and is not overwritten; name another by --kubeconfig", .0.display())]
    NotOurs(PathBuf),
}

/// The running cluster. Dropping the value ends the cluster.
pub struct Cluster {
    /// The API server.
    pub server: RunningServer,
    /// The capacity of the nodes together.
    pub capacity: Capacity,
    nodes: HollowNodes,
}

impl Cluster {
    /// Starts the server at a local port (0: any free one), applies the definitions, and starts the nodes: the demo's
    /// dozen, or `uniform` nodes of 8 cores and 32 GiB each.
    ///
    /// # Errors
    /// When the port is taken, or the server refuses a request.
    pub async fn start(port: u16, uniform: Option<u16>) -> Result<Self, Error> {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let started = HollowServer::start(addr, ServerConfig::default()).await;
        let server = started.map_err(|source| Error::Bind { addr, source })?;
        let admin = client(&server, "slotwright-demo")?;
        define(&admin).await?;
        let namespace = Namespace {
            metadata: ObjectMeta { name: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let created = Api::all(admin).create(&PostParams::default(), &namespace).await;
        created.map_err(|error| Error::Client(error.to_string()))?;
        let shapes = uniform
            .map_or_else(shapes::demo, |n| shapes::uniform(usize::from(n), UNIFORM_CPUS, UNIFORM_MEMORY));
        let capacity = capacity(&shapes);
        let nodes =
            HollowNodes::start(client(&server, "hollow-nodes")?, shapes, nodes::Options::default()).await?;
        Ok(Self { server, capacity, nodes })
    }

    /// Lets the nodes finish their writes, then ends the nodes and the server.
    pub async fn shutdown(self) {
        self.nodes.shutdown().await;
        self.server.shutdown().await;
    }
}

/// A client configuration whose requests the server counts under `name`.
///
/// # Errors
/// When the server's address is not a URL.
pub fn config(server: &RunningServer, name: &'static str) -> Result<Config, Error> {
    let mut config = server.kube_config().map_err(|error| Error::Client(error.to_string()))?;
    config.headers.push((USER_AGENT, HeaderValue::from_static(name)));
    Ok(config)
}

/// A client whose requests the server counts under `name`.
///
/// # Errors
/// When the client cannot be made.
pub fn client(server: &RunningServer, name: &'static str) -> Result<Client, Error> {
    Client::try_from(config(server, name)?).map_err(|error| Error::Client(error.to_string()))
}

fn capacity(shapes: &[NodeShape]) -> Capacity {
    let sum = |resource: &str| shapes.iter().map(|shape| shape.allocatable().get(resource)).sum::<i64>();
    Capacity { nodes: shapes.len(), cores: sum("cpu") / 1000, gpus: sum(NVIDIA_GPU) }
}

async fn define(client: &Client) -> Result<(), Error> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("slotwright-demo").force();
    let failed = |name: &str, why: String| Error::Definition { name: name.to_owned(), why };
    for crd in api::definitions() {
        let name = crd.name_any();
        crds.patch(&name, &params, &Patch::Apply(&crd))
            .await
            .map_err(|error| failed(&name, error.to_string()))?;
    }
    for crd in api::definitions() {
        let name = crd.name_any();
        let established = await_condition(crds.clone(), &name, is_crd_established());
        match tokio::time::timeout(ESTABLISHED_WITHIN, established).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(failed(&name, error.to_string())),
            Err(_) => return Err(failed(&name, "it is not established in time".to_owned())),
        }
    }
    Ok(())
}

/// A kubeconfig on disk. One in a temporary directory is removed when the value is dropped.
#[derive(Debug)]
pub struct Kubeconfig {
    /// The file.
    pub path: PathBuf,
    _directory: Option<TempDir>,
}

impl Kubeconfig {
    /// Writes the server's kubeconfig to `file`, else into a temporary directory.
    ///
    /// # Errors
    /// When the file cannot be written, or exists and is not a kubeconfig of the demo: a person's own kubeconfig must
    /// not be lost.
    pub fn write(server: &RunningServer, file: Option<&Path>) -> Result<Self, Error> {
        let text = server.kubeconfig();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Kubeconfig { path, source }
        };
        if let Some(path) = file {
            match fs::read(path) {
                Ok(found) if !String::from_utf8_lossy(&found).contains("current-context: hollow") => {
                    return Err(Error::NotOurs(path.to_owned()));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(path)(error)),
            }
            fs::write(path, text).map_err(failed(path))?;
            let path = std::path::absolute(path).map_err(failed(path))?;
            return Ok(Self { path, _directory: None });
        }
        let directory = tempfile::Builder::new().prefix("slotwright-demo-").tempdir();
        let directory = directory.map_err(failed(&std::env::temp_dir()))?;
        let path = directory.path().join("kubeconfig");
        fs::write(&path, text).map_err(failed(&path))?;
        Ok(Self { path, _directory: Some(directory) })
    }
}
