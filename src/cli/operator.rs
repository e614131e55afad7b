//! `slotwright operator`: runs the operator on the cluster that the kubeconfig names, or that its pod runs in.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;
use kube::Config;
use kube::config::Kubeconfig;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Run the operator on the cluster that the kubeconfig names, or that its pod runs in.
#[derive(Args, Debug)]
pub struct OperatorArgs {
    /// The address that serves /livez and /readyz. [::] means all addresses, IPv4 and IPv6.
    #[arg(long, default_value = "[::]:8081")]
    health_addr: SocketAddr,
    /// The address that serves /metrics.
    #[arg(long, default_value = "[::]:8080")]
    metrics_addr: SocketAddr,
    /// The namespace of the leader election's Lease.
    #[arg(long, env = "POD_NAMESPACE", default_value = "slotwright-system")]
    leader_elect_namespace: String,
    /// Lead at once, without an election. Use this only where no other operator can run.
    #[arg(long)]
    no_leader_elect: bool,
    /// This operator's name in the Lease and in events [default: made of host, process and time].
    #[arg(long, env = "POD_NAME")]
    identity: Option<String>,
}

/// Why the operator did not run, or ended by itself.
#[derive(Debug, Error)]
pub enum Error {
    /// No cluster can be found.
    #[error("no cluster: {0}; set KUBECONFIG, or run in a pod with a service account")]
    NoCluster(#[from] Box<kube::config::InferConfigError>),
    /// Signals cannot be received.
    #[error("signals cannot be received: {0}")]
    Signals(#[from] std::io::Error),
    /// The operator ended by itself.
    #[error(transparent)]
    Operator(#[from] controller::Error),
}

/// A name that no other operator has. Processes in containers often have the same id, so the name contains the host
/// and the time too.
fn own_name() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "slotwright".to_owned());
    format!("{host}-{}-{:x}", std::process::id(), jiff::Timestamp::now().as_microsecond())
}

/// Runs the operator until SIGTERM or SIGINT.
///
/// # Errors
/// When no cluster can be found, or the operator ends by itself.
pub async fn run(args: OperatorArgs) -> Result<ExitCode, Error> {
    let mut config = Config::infer().await.map_err(Box::new)?;
    let variable = |name: &str| std::env::var(name).ok();
    controller::proxy::choose(&mut config, Kubeconfig::read().ok().as_ref(), None, variable);
    let identity = args.identity.unwrap_or_else(own_name);
    let options = controller::Options {
        health_addr: Some(args.health_addr),
        metrics_addr: Some(args.metrics_addr),
        leader_elect_namespace: (!args.no_leader_elect).then_some(args.leader_elect_namespace),
        identity,
    };
    let stop = CancellationToken::new();
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let asked = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!(target: "slotwright", "stopping: writes under way are finished and the lease is released");
        asked.cancel();
    });
    controller::run(config, options, stop).await?;
    Ok(ExitCode::SUCCESS)
}
