//! `slotwright demo`: the embedded cluster, the operator in the same process, the examples as a user applies them, and a
//! watchdog that is not the operator. Ends with a summary whose numbers come from the API and the watchdog.
//!
//! | file | is |
//! | --- | --- |
//! | `cluster` | API server, definitions, nodes, kubeconfig |
//! | `manifests` | what is applied, and how |
//! | `sights`, `scene` | watches, and what they saw (pure) |
//! | `progress`, `screen` | the table or line (pure), and where it is shown |
//! | `verdict`, `summary` | the end (pure) |
//! | `play` | all of it in its order |

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
    /// Apply the manifests in this directory; otherwise those in ./examples, or the ones built into the program.
    #[arg(long, value_name = "DIR")]
    examples: Option<PathBuf>,
    /// Apply those in this directory as well, which are wrong on purpose, and show what becomes of them.
    #[arg(long, value_name = "DIR")]
    broken: Option<PathBuf>,
    /// Use this many nodes of 8 cores and 32 GiB instead of a varied dozen. Not every example fits on these.
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// Give up after this many seconds.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
    /// Keep the cluster and the operator up after the summary, until Ctrl-C.
    #[arg(long)]
    serve: bool,
    /// Only serve the cluster with its nodes until Ctrl-C: no operator, and no manifests but those of --examples.
    #[arg(long, conflicts_with_all = ["serve", "timeout"])]
    cluster_only: bool,
    /// Write the kubeconfig of the cluster to this file. With --serve or --cluster-only it is written in any case.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The port of the API server on 127.0.0.1; 0 means any free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Log to stderr what the operator does. RUST_LOG says it in detail.
    #[arg(long, short)]
    verbose: bool,
}

impl DemoArgs {
    /// What is logged where RUST_LOG says nothing: little, for the table stands on the same terminal.
    pub fn log_filter(&self) -> &'static str {
        if self.verbose { "slotwright=debug,info" } else { "error" }
    }
}

/// Why there is no summary.
#[derive(Debug, Error)]
pub enum Error {
    /// The cluster does not start.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// Manifests cannot be read, or the output is closed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs the command until its end, Ctrl-C or SIGTERM. The exit code is 0 only if every job is complete and the watchdog has
/// nothing to object to; 130 after an interruption before that.
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

/// Cancels at Ctrl-C or SIGTERM. A second one ends the process at once.
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
