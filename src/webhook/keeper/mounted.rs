//! Takes the certificate from files that others write: the Secret of cert-manager's Certificate, mounted into the pod.
//!
//! The kubelet replaces all files of a mounted Secret at once, but they are read one after the other: a key that is not the
//! certificate's is of another Secret, and the files are read again later. The server goes on with the certificate that it has
//! until all files of the new one can be served.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::server::ServerConfig;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use controller::Clock;

use super::unix;
use crate::certificate::{Certificate, Unusable};

/// How long until the files are looked at again. The kubelet itself takes up to two minutes to write a Secret that has changed.
const AGAIN: Duration = Duration::from_secs(10);

/// The fault of the files.
#[derive(Debug, Error)]
enum Wrong {
    #[error("{0}: {1}; the Secret of the Certificate may not be there yet")]
    File(PathBuf, #[source] std::io::Error),
    #[error("{0} cannot be served: {1}")]
    Unusable(PathBuf, #[source] Unusable),
    #[error("no API server will believe the certificate in {0}: {1}; see the conditions of the Certificate")]
    Unbelieved(PathBuf, #[source] Unusable),
}

/// Serves the certificate of a directory, and each that replaces it there, without end. API servers ask for this name. A fault is
/// logged once.
pub(crate) async fn keep(
    directory: PathBuf,
    name: String,
    clock: Clock,
    out: watch::Sender<Option<Arc<ServerConfig>>>,
) {
    let mut mounted = Mounted::new(directory, name, out);
    let mut told = None;
    loop {
        let wrong = mounted.look(unix(clock)).await.err().map(|wrong| wrong.to_string());
        if let Some(error) = wrong.as_ref().filter(|_| wrong != told) {
            tracing::warn!(
                error,
                "the operator cannot use the mounted certificate of the admission webhook, and looks again soon"
            );
        }
        told = wrong;
        sleep(AGAIN).await;
    }
}

struct Mounted {
    directory: PathBuf,
    /// The name that API servers ask for.
    names: [String; 1],
    out: watch::Sender<Option<Arc<ServerConfig>>>,
    served: Option<Certificate>,
}

impl Mounted {
    fn new(directory: PathBuf, name: String, out: watch::Sender<Option<Arc<ServerConfig>>>) -> Self {
        Self { directory, names: [name], out, served: None }
    }

    /// Reads the files, and serves their certificate if it can be served. Fails also if API servers cannot believe a
    /// certificate that is served: the certificate has expired, or is for other names. If the files have no
    /// authority, belief is not checked.
    async fn look(&mut self, now: UnixTime) -> Result<(), Wrong> {
        let directory = self.directory.clone();
        // A volume that hangs must not stop the answers to the API server.
        let found = spawn_blocking(move || read(&directory)).await;
        let fault = |error| Wrong::File(self.directory.clone(), std::io::Error::other(error));
        let found = found.map_err(fault).flatten()?;
        if self.served.as_ref() != Some(&found) {
            let config = found.server().map_err(|error| Wrong::Unusable(self.directory.clone(), error))?;
            self.out.send_replace(Some(config));
            tracing::info!(
                directory = &*self.directory.to_string_lossy(),
                "the admission webhook serves a new certificate"
            );
        }
        let found = self.served.insert(found);
        if found.authorities.is_empty() {
            return Ok(());
        }
        let believed = found.believed(&self.names, now);
        believed.map_err(|error| Wrong::Unbelieved(self.directory.clone(), error))
    }
}

/// The certificate in a directory with the files of a Secret of the type `kubernetes.io/tls`, and cert-manager's `ca.crt`.
fn read(directory: &Path) -> Result<Certificate, Wrong> {
    let text = |name: &str| {
        let path = directory.join(name);
        std::fs::read_to_string(&path).map_err(|error| Wrong::File(path, error))
    };
    Ok(Certificate {
        certificate: text("tls.crt")?,
        key: text("tls.key")?,
        // Some issuers do not say who they are.
        authorities: text("ca.crt").unwrap_or_default(),
    })
}

#[cfg(test)]
#[path = "../tests/mounted.rs"]
mod tests;
