//! `slotwright demo`: runs the embedded cluster and the operator in one process, applies the examples as a user
//! would, and watches the pods with a watchdog that is independent of the operator. The summary at the end takes its
//! numbers from the API server and the watchdog.
//!
//! | file | is |
//! | --- | --- |
//! | `cluster` | the embedded cluster: API server, definitions, nodes, kubeconfig |
//! | `manifests` | finds and applies manifests |
//! | `sights`, `scene` | the watches, and what they saw (`scene` is pure) |
//! | `progress`, `screen` | progress as text (pure), and the terminal that shows it |
//! | `verdict`, `summary` | the watchdog's verdict and the summary at the end (both pure) |
//! | `play` | the demo from beginning to end |

pub mod cluster;
mod manifests;
mod play;
mod progress;
mod scene;
mod screen;
mod sights;
mod summary;
mod verdict;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

pub use manifests::EMBEDDED;

/// Run a pool on an embedded cluster: nodes, jobs, the operator, a summary.
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// Apply the manifests in this directory [default: those in ./examples, or else those built into the program].
    #[arg(long, value_name = "DIR")]
    examples: Option<PathBuf>,
    /// Apply the manifests in this directory too, which are wrong on purpose, and show what becomes of them.
    #[arg(long, value_name = "DIR")]
    broken: Option<PathBuf>,
    /// Use this many nodes of 8 cores and 32 GiB instead of a varied dozen. Not every example fits on these.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    nodes: Option<u16>,
    /// Give up after this many seconds.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
    /// Keep the cluster and the operator up after the summary, until Ctrl-C.
    #[arg(long)]
    serve: bool,
    /// Only serve the cluster with its nodes until Ctrl-C: no operator, and no manifests except those of --examples.
    #[arg(long, conflicts_with_all = ["serve", "timeout"])]
    cluster_only: bool,
    /// Write the kubeconfig of the cluster to this file. Without it, --serve and --cluster-only write a temporary
    /// one.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The port of the API server on 127.0.0.1; 0 means any free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Log to stderr what the operator does. RUST_LOG overrides what is logged.
    #[arg(long, short)]
    verbose: bool,
}

impl DemoArgs {
    /// The default log filter. Without --verbose it lets little through, because the table is on the same terminal.
    pub fn log_filter(&self) -> &'static str {
        if self.verbose { "info,slotwright=debug" } else { "error" }
    }
}

/// Why there is no summary.
#[derive(Debug, Error)]
pub enum Error {
    /// The cluster did not start.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// A manifest cannot be read, or the output is closed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Runs the demo until its end, Ctrl-C or SIGTERM. The exit code is 0 only if every job is complete, no manifest was
/// refused and the watchdog has no objection; it is 130 if the demo was interrupted before its end.
///
/// # Errors
/// When the cluster does not start, manifests cannot be read, or the output is closed.
pub async fn run(args: DemoArgs) -> Result<ExitCode, Error> {
    let stop = CancellationToken::new();
    let signals = tokio::spawn(on_signal(stop.clone()));
    let played = Box::pin(play::play(&args, &stop)).await;
    signals.abort();
    played
}

/// Cancels `stop` at Ctrl-C or SIGTERM. A second signal ends the process at once.
async fn on_signal(stop: CancellationToken) {
    interrupted().await;
    stop.cancel();
    interrupted().await;
    std::process::exit(130);
}

async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
