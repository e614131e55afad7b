//! The beginning and the end of commands that run until somebody stops them: they find the cluster, and stop at a
//! signal.

use std::io;
use std::task::Poll;

use controller::proxy::{self, BadProxy};
use futures::stream::{self, Stream, StreamExt};
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

/// Cancels `stop` at SIGTERM or SIGINT, and logs what the program does then. Ends the process at the second signal.
///
/// # Errors
/// When signals cannot be received.
pub fn cancel_at_signals(stop: &CancellationToken, what_happens: &'static str) -> Result<(), Unable> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let signals = stream::poll_fn(move |context| {
        let came = term.poll_recv(context).is_ready() || int.poll_recv(context).is_ready();
        if came { Poll::Ready(Some(())) } else { Poll::Pending }
    });
    tokio::spawn(obey(signals, stop.clone(), what_happens, || std::process::exit(1)));
    Ok(())
}

/// Cancels `stop` at the first signal, and leaves at the second: whoever sends two does not want to wait.
async fn obey(
    mut signals: impl Stream<Item = ()> + Unpin,
    stop: CancellationToken,
    what_happens: &'static str,
    leave: impl FnOnce(),
) {
    signals.next().await;
    tracing::info!(target: "slotwright", "stopping: {what_happens}");
    stop.cancel();
    signals.next().await;
    tracing::warn!(target: "slotwright", "a second signal: ending at once");
    leave();
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn the_first_signal_stops_and_the_second_ends_at_once() {
        let (stop, has_left) = (CancellationToken::new(), Cell::new(false));
        let one = stream::iter([()]).chain(stream::pending());
        let obeys = obey(one, stop.clone(), "all is put away", || has_left.set(true));
        tokio::select! {
            biased;
            () = obeys => unreachable!("there is no second signal"),
            () = stop.cancelled() => {}
        }
        assert!(!has_left.get());
        obey(stream::iter([(), ()]), stop, "all is put away", || has_left.set(true)).await;
        assert!(has_left.get());
    }
}
