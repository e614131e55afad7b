//! The signals that stop a program which runs until it is stopped.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels `stop` at SIGTERM or SIGINT, and logs what the program does then.
///
/// # Errors
/// When signals cannot be received.
pub fn cancel(stop: &CancellationToken, what_happens: &'static str) -> io::Result<()> {
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
