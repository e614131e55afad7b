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
use api;
use hollow::nodes::shape::{GIB, NVIDIA_GPU};
use hollow::nodes::{self, HollowNodes, NodeShape, shapes};
use hollow::server::{HollowServer, RunningServer, ServerConfig};

/// The operator's namespace, as the chart has it: its leader election's Lease lies here.
pub const NAMESPACE: &str = "slotwright-system";
/// How long a definition may take until it is served.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(10);
/// Millicores of a uniform node.
const UNIFORM_CPUS: i64 = 8000;
/// Memory of a uniform node in bytes.
const UNIFORM_MEMORY: i64 = 32 * GIB;

/// Why there is no cluster.
#[derive(Debug, Error)]
pub enum Error {
    /// The server does not start.
    #[error("the embedded API server cannot serve at {addr}: {source}; choose another --port")]
    Bind {
        /// Where it should serve.
        addr: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// It cannot be used.
    #[error("the embedded API server cannot be used: {0}")]
    Client(String),
    /// A definition is not served.
    #[error("definition {name}: {why}")]
    Definition {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The nodes do not start.
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
    /// There is a file that somebody else wrote.
    #[error("kubeconfig {}: this file is not the demo's and is not overwritten; name another by --kubeconfig", .0.display())]
    NotOurs(PathBuf),
}

/// The running cluster. Dropping it ends it.
pub struct Cluster {
    /// The API server.
    pub server: RunningServer,
    /// What the nodes have.
    pub capacity: Capacity,
    nodes: HollowNodes,
}

impl Cluster {
    /// Starts the server at a local port (0: any free one), applies the definitions, and starts the demo's dozen nodes or
    /// `uniform` ones of 8 cores and 32 GiB.
    ///
    /// # Errors
    /// When the port is taken, or the server refuses what every Kubernetes takes.
    pub async fn start(port: u16, uniform: Option<usize>) -> Result<Self, Error> {
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
        let shapes = uniform.map_or_else(shapes::demo, |n| shapes::uniform(n, UNIFORM_CPUS, UNIFORM_MEMORY));
        let capacity = capacity(&shapes);
        let nodes =
            HollowNodes::start(client(&server, "hollow-nodes")?, shapes, nodes::Options::default()).await?;
        Ok(Self { server, capacity, nodes })
    }

    /// Lets the nodes finish their writes, then ends them and the server.
    pub async fn shutdown(self) {
        self.nodes.shutdown().await;
        self.server.shutdown().await;
    }
}

/// A configuration under which the server counts requests as those of `name`.
///
/// # Errors
/// When the server's address makes no URL.
pub fn config(server: &RunningServer, name: &'static str) -> Result<Config, Error> {
    let mut config = server.kube_config().map_err(|error| Error::Client(error.to_string()))?;
    config.headers.push((USER_AGENT, HeaderValue::from_static(name)));
    Ok(config)
}

/// A client that the server knows by `name`.
///
/// # Errors
/// When there can be none.
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

/// A kubeconfig on disk; one in a temporary directory goes with it.
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
    /// When the file cannot be written, or exists and is of somebody else: a person's own kubeconfig must not be lost.
    pub fn write(server: &RunningServer, file: Option<&Path>) -> Result<Self, Error> {
        let text = server.kubeconfig();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Kubeconfig { path, source }
        };
        if let Some(path) = file {
            if fs::read_to_string(path).is_ok_and(|found| !found.contains("current-context: hollow")) {
                return Err(Error::NotOurs(path.to_owned()));
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
