//! The admission webhook: a user hears of the mistakes in an object before the object is stored.
//!
//! | part | does |
//! | --- | --- |
//! | `review` | decides on one request of the API server: pure |
//! | `verdict` | finds what is wrong with an object, by the functions that the operator's conditions are made by: pure |
//! | `sealing` | seals into a new job who created the job: pure |
//! | `known` | the other objects, against which an object is checked |
//! | `watches` | keeps `known` up to date, on each replica |
//! | `certificate` | makes certificates, and says when one has to be renewed |
//! | `keeper` | keeps a certificate in use: makes one and keeps it in a Secret, or takes one from files |
//! | `bodies` | holds the bodies of requests within a bound for all together |
//! | `server` | HTTPS |
//!
//! Every replica serves, whichever leads: a verdict follows from the request and `known` alone, a seal also from the key and the time, and
//! a review writes nothing.

mod bodies;
mod certificate;
mod keeper;
mod known;
mod review;
mod sealing;
mod server;
mod verdict;
mod watches;

use std::net::SocketAddr;
use std::path::PathBuf;

use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;

use controller::Clock;
use controller::seal::Key;

pub use self::certificate::{Certificate, Unusable, make};
pub use self::known::{Objects, OtherObjects};
pub use self::review::{MOST_BYTES, Malformed, Review, read, review};
pub use self::sealing::seal;
pub use self::server::{Serving, serve};
pub use self::verdict::JUDGED;

/// How the webhook runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where reviews are served.
    pub addr: SocketAddr,
    /// The namespace of the Service and of the Secret.
    pub namespace: String,
    /// The Service by which the API server reaches the webhook: the certificate is for its name.
    pub service: String,
    /// The Secret that holds the key of seals, and the certificate if the operator makes one.
    pub secret: String,
    /// Where the certificate comes from.
    pub certificate: CertificateFrom,
}

/// Where the certificate comes from.
#[derive(Clone, Debug)]
pub enum CertificateFrom {
    /// The operator makes the certificate.
    Operator {
        /// The name of the ValidatingWebhookConfiguration and of the MutatingWebhookConfiguration into which the authority of the
        /// certificate is written.
        configuration: String,
    },
    /// Others write the certificate into this directory, as `tls.crt` and `tls.key`, and its authority into the configurations.
    Directory(PathBuf),
}

/// Serves reviews without end. Sends the key of seals once the key is there, and `serves` once there is a certificate and all objects
/// are known that others refer to. If the future is dropped, everything ends. The client should not retry by itself: the watches and the
/// keeper of the certificate try again.
///
/// # Errors
/// When the address cannot be bound.
pub async fn run(
    client: Client,
    clock: Clock,
    options: Options,
    key: watch::Sender<Option<Key>>,
    serves: watch::Sender<bool>,
) -> std::io::Result<()> {
    let listener = controller::serving::bind(options.addr)
        .await
        .map_err(|error| std::io::Error::other(format!("{}: {error}", options.addr)))?;
    let (known, now_known) = watch::channel(OtherObjects::nothing().into());
    let (certificate, in_use) = watch::channel(None);
    let (mut has_certificate, mut complete) = (in_use.clone(), now_known.clone());
    let serving = Serving { known: now_known, certificate: in_use, key: key.subscribe(), clock };
    let mut aside = JoinSet::new();
    aside.spawn(async move {
        // Waiting fails only if the task that sends has ended; `run` then reports that task.
        let _ = has_certificate.wait_for(Option::is_some).await;
        let _ = complete.wait_for(|known| known.is_complete()).await;
        serves.send_replace(true);
        std::future::pending::<()>().await;
    });
    aside.spawn(watches::follow(client.clone(), known));
    match options.certificate.clone() {
        CertificateFrom::Operator { configuration } => {
            aside.spawn(keeper::keep(client, clock, options, configuration, (certificate, key)));
        }
        CertificateFrom::Directory(directory) => {
            let asked_for = certificate::asked_for(&options.service, &options.namespace);
            aside.spawn(keeper::keep_mounted(directory, asked_for, clock, certificate));
            aside.spawn(keeper::keep_key(client, options, key));
        }
    }
    tokio::select! {
        () = serve(listener, serving) => Ok(()),
        Some(ended) = aside.join_next() => Err(std::io::Error::other(match ended {
            Ok(()) => "a task of the webhook ended".to_owned(),
            Err(fault) => fault.to_string(),
        })),
    }
}
