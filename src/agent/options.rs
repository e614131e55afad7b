//! How the agent runs, and why it ended.

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use super::node::Roots;

/// How the agent runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of its node.
    pub node: String,
    /// Where the node's files are.
    pub roots: Roots,
    /// The directory that the agent shares with the node's guard; none if the node has no guard, so that the agent never
    /// promises to end pods.
    pub fence: Option<PathBuf>,
    /// The directory that has the programs of cron jobs; none if the site gives none.
    pub cron: Option<PathBuf>,
    /// Where the node's kubelet tells what its pods use of the disk; none if the agent is not to ask.
    pub kubelet: Option<String>,
    /// The file with the authorities of the kubelet's certificate, as PEM; none if the agent is not to check the certificate.
    pub kubelet_authorities: Option<PathBuf>,
    /// The socket of the kubelet's pod-resources API, which tells which devices a pod has; none if the agent is not to ask.
    pub pod_resources: Option<PathBuf>,
    /// The address of the port that is open while the agent is connected; none if there is to be no port.
    pub ready: Option<SocketAddr>,
}

/// Why the agent ended.
#[derive(Debug, Error)]
pub enum Error {
    /// The client cannot be made.
    #[error("no client: {0}")]
    Client(#[from] kube::Error),
}
