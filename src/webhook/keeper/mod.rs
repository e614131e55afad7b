//! Keeps the certificate and the key of seals in use.
//!
//! | part | does |
//! | --- | --- |
//! | `secret` | the Secret by which all replicas have the same |
//! | `configurations` | writes the certificate's authority into the webhook's configurations, so that the API server believes the replicas |
//! | `mounted` | takes the certificate from files that cert-manager's Secret is mounted as |
//!
//! The operator makes the certificate itself, or takes a certificate that others make. Each replica does the same, and needs no leader:
//! whoever writes the Secret first wins, and the others take what was written. A certificate that the operator made is served only after
//! its authority is in a configuration.

mod configurations;
mod mounted;
mod secret;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use rustls::pki_types::UnixTime;
use rustls::server::ServerConfig;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use controller::Clock;
use controller::seal::Key;

use self::configurations::Configurations;
pub(crate) use self::mounted::keep as keep_mounted;
use self::secret::{SecretStore, new_key};
use crate::Options;
use crate::certificate::{Certificate, Unusable, make, names};

/// How long until the Secret is looked at again: another replica may have renewed the certificate.
const AGAIN: Duration = Duration::from_mins(1);
/// How long until the Secret is looked at again after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How long a call may take.
const CALL_WITHIN: Duration = Duration::from_secs(10);

/// Why there is no certificate to serve at present, or no key.
#[derive(Debug, Error)]
enum Failed {
    #[error("{0}: {1}")]
    Call(String, #[source] Box<kube::Error>),
    #[error("{0}: no answer within {CALL_WITHIN:?}")]
    Late(String),
    #[error(transparent)]
    Certificate(#[from] Unusable),
    #[error(
        "there is neither a ValidatingWebhookConfiguration nor a MutatingWebhookConfiguration {0}; apply the chart's"
    )]
    NoConfiguration(String),
    #[error("the machine has no randomness for a key")]
    NoRandomness,
}

/// Keeps a certificate and a key in use, without end. A step that fails is logged and tried again; the certificate and the key in
/// use stay in use.
pub(crate) async fn keep(
    client: Client,
    clock: Clock,
    options: Options,
    configuration: String,
    (out, key): (watch::Sender<Option<Arc<ServerConfig>>>, watch::Sender<Option<Key>>),
) {
    let keeper = Keeper {
        secret: SecretStore::new(client.clone(), &options.namespace, &options.secret),
        configurations: Configurations::new(client, &configuration),
        key,
        names: names(&options.service, &options.namespace),
    };
    let mut served = None;
    loop {
        let pause = match keeper.turn(unix(clock), served.as_ref()).await {
            Ok(Some((certificate, config))) => {
                out.send_replace(Some(config));
                served = Some(certificate);
                tracing::info!(service = options.service, "the admission webhook serves a new certificate");
                AGAIN
            }
            Ok(None) => AGAIN,
            Err(error) => {
                tracing::warn!(
                    error = %answers::chain(&error),
                    "the certificate or the key of the admission webhook is not up to date; the operator tries again soon"
                );
                AFTER_FAILURE
            }
        };
        sleep(pause).await;
    }
}

/// Keeps the key of seals in use, without end, where others make the certificate. A step that fails is logged and tried again.
pub(crate) async fn keep_key(client: Client, options: Options, key: watch::Sender<Option<Key>>) {
    let secret = SecretStore::new(client, &options.namespace, &options.secret);
    loop {
        let pause = match key_turn(&secret, &key).await {
            Ok(()) => AGAIN,
            Err(error) => {
                tracing::warn!(
                    error = %answers::chain(&error),
                    "the operator could not read or write the key of the jobs' seals, and tries again soon"
                );
                AFTER_FAILURE
            }
        };
        sleep(pause).await;
    }
}

/// Makes sure that there is a key of seals, and takes the key.
async fn key_turn(secret: &SecretStore, key: &watch::Sender<Option<Key>>) -> Result<(), Failed> {
    let found = secret.read().await?;
    let kept = if let Some(kept) = &found.key {
        kept.clone()
    } else {
        let made = new_key()?;
        tracing::info!(secret = secret.name(), "a key for the seals of jobs is made");
        secret.write(found, None, &made).await?;
        made
    };
    key.send_replace(Key::new(&kept.0));
    Ok(())
}

struct Keeper {
    secret: SecretStore,
    configurations: Configurations,
    key: watch::Sender<Option<Key>>,
    names: Vec<String>,
}

impl Keeper {
    /// Makes sure that there is a certificate and that the API server believes it. Returns the certificate if another is
    /// served.
    async fn turn(
        &self,
        now: UnixTime,
        served: Option<&Certificate>,
    ) -> Result<Option<(Certificate, Arc<ServerConfig>)>, Failed> {
        let mut found = self.secret.read().await?;
        let (stored, kept_key) = (found.certificate.take(), found.key.take());
        let why = match &stored {
            None => Some("there is none".to_owned()),
            Some(stored) => stored.due(&self.names, now).map(|why| why.to_string()),
        };
        let certificate = match (stored, &why) {
            (Some(stored), None) => stored,
            (before, _) => make(&self.names, now, before.as_ref())?,
        };
        let key = match &kept_key {
            Some(key) => key.clone(),
            None => new_key()?,
        };
        let name = self.secret.name();
        if let Some(why) = why {
            tracing::info!(secret = name, why, "a certificate for the admission webhook is made");
            self.secret.write(found, Some(&certificate), &key).await?;
        } else if kept_key.is_none() {
            tracing::info!(secret = name, "a key for the seals of jobs is made");
            self.secret.write(found, Some(&certificate), &key).await?;
        }
        self.key.send_replace(Key::new(&key.0));
        self.configurations.announce(&certificate.authorities).await?;
        if served == Some(&certificate) {
            return Ok(None);
        }
        let config = certificate.server()?;
        Ok(Some((certificate, config)))
    }
}

fn unix(clock: Clock) -> UnixTime {
    let secs = u64::try_from(clock.timestamp().as_second()).unwrap_or_default();
    UnixTime::since_unix_epoch(Duration::from_secs(secs))
}

async fn call<T>(what: String, call: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
    match timeout(CALL_WITHIN, call).await {
        Ok(answer) => answer.map_err(|error| Failed::Call(what, Box::new(error))),
        Err(_) => Err(Failed::Late(what)),
    }
}
