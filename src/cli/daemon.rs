//! The beginning and the end of commands that run until somebody stops them: they find the cluster, and stop at a
//! signal.

use std::io;

use controller::proxy::{self, BadProxy};
use kube::Config;
use kube::config::{InferConfigError, Kubeconfig};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Why such a command cannot begin.
#[derive(Debug, Error)]
pub enum Unable {
    /// No cluster can be found.
    #[error("no cluster: {0}; set KUBECONFIG, or run in a pod with a service account")]
    NoCluster(#[from] Box<InferConfigError>),
    /// The proxy cannot be used.
    #[error(transparent)]
    Proxy(#[from] BadProxy),
    /// Signals cannot be received.
    #[error("signals cannot be received: {0}")]
    Signals(#[from] io::Error),
}

/// The cluster that the kubeconfig names, or that the pod of this process runs in, behind the proxy that the environment names.
///
/// # Errors
/// When no cluster can be found, or the proxy's address cannot be read.
pub async fn cluster() -> Result<Config, Unable> {
    let (kubeconfig, variable) = (Kubeconfig::read().ok(), |name: &str| std::env::var(name).ok());
    proxy::check(kubeconfig.as_ref(), None, variable)?;
    let mut config = Config::infer().await.map_err(Box::new)?;
    proxy::choose(&mut config, kubeconfig.as_ref(), None, variable)?;
    Ok(config)
}

/// Cancels `stop` at SIGTERM or SIGINT, and logs what the program does then.
///
/// # Errors
/// When signals cannot be received.
pub fn cancel_at_signals(stop: &CancellationToken, what_happens: &'static str) -> Result<(), Unable> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!(target: "slotwright", "stopping: {what_happens}");
        stop.cancel();
    });
    Ok(())
}
