//! Keeps the certificate in a Secret, so that all replicas serve the same, and its authority in the webhook's
//! configuration, so that the API server believes the replicas.
//!
//! Each replica does the same, and needs no leader: whoever writes the Secret first wins, and the others take what was
//! written. A certificate is served only after its authority is in the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use rustls::pki_types::UnixTime;
use rustls::server::ServerConfig;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use controller::Clock;

use crate::Options;
use crate::certificate::{Certificate, Unusable, make, names};

/// How long until the Secret is looked at again: another replica may have renewed the certificate.
const AGAIN: Duration = Duration::from_mins(1);
/// How long until the Secret is looked at again after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How long a call may take.
const CALL_WITHIN: Duration = Duration::from_secs(10);

/// The keys of the Secret: those of a Secret of the type `kubernetes.io/tls`, and the authorities.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITIES: &str = "ca.crt";

/// Why there is no certificate to serve at present.
#[derive(Debug, Error)]
enum Failed {
    #[error("{0}: {1}")]
    Call(String, #[source] Box<kube::Error>),
    #[error("{0}: no answer within {CALL_WITHIN:?}")]
    Late(String),
    #[error(transparent)]
    Certificate(#[from] Unusable),
}

/// Keeps a certificate in use, without end. Whatever fails is logged and tried again; the certificate that is in use stays
/// in use.
pub(crate) async fn keep(
    client: Client,
    clock: Clock,
    options: Options,
    out: watch::Sender<Option<Arc<ServerConfig>>>,
) {
    let keeper = Keeper {
        secrets: Api::namespaced(client.clone(), &options.namespace),
        configurations: Api::all(client),
        names: names(&options.service, &options.namespace),
        options,
    };
    let mut served = None;
    loop {
        let pause = match keeper.turn(clock, served.as_ref()).await {
            Ok(Some((certificate, config))) => {
                out.send_replace(Some(config));
                served = Some(certificate);
                tracing::info!(
                    service = keeper.options.service,
                    "the admission webhook serves a new certificate"
                );
                AGAIN
            }
            Ok(None) => AGAIN,
            Err(error) => {
                let said = &error as &dyn std::error::Error;
                tracing::warn!(
                    error = said,
                    "the admission webhook's certificate is looked after again soon"
                );
                AFTER_FAILURE
            }
        };
        sleep(pause).await;
    }
}

struct Keeper {
    secrets: Api<Secret>,
    configurations: Api<ValidatingWebhookConfiguration>,
    names: Vec<String>,
    options: Options,
}

impl Keeper {
    /// Makes sure that there is a certificate and that the API server believes it. Returns the certificate if another is
    /// served.
    async fn turn(
        &self,
        clock: Clock,
        served: Option<&Certificate>,
    ) -> Result<Option<(Certificate, Arc<ServerConfig>)>, Failed> {
        let now = UnixTime::since_unix_epoch(Duration::from_secs(
            u64::try_from(clock.timestamp().as_second()).unwrap_or_default(),
        ));
        let name = &self.options.secret;
        let found = call(format!("Secret {name}"), self.secrets.get_opt(name)).await?;
        let stored = found.as_ref().and_then(|secret| stored(secret.data.as_ref()?));
        let why = stored.as_ref().map(|stored| stored.due(&self.names, now));
        let certificate = match (stored, why) {
            (Some(stored), Some(None)) => stored,
            (before, why) => {
                let why = why.flatten().map_or_else(|| "there is none".to_owned(), |why| why.to_string());
                tracing::info!(secret = name, why, "a certificate for the admission webhook is made");
                let made = make(&self.names, now, before.as_ref())?;
                self.store(found, &made).await?;
                made
            }
        };
        self.announce(&certificate.authorities).await?;
        if served == Some(&certificate) {
            return Ok(None);
        }
        let config = certificate.server()?;
        Ok(Some((certificate, config)))
    }

    /// Writes the Secret. Fails if another replica has written it since; the next turn then takes what is there.
    async fn store(&self, found: Option<Secret>, made: &Certificate) -> Result<(), Failed> {
        let name = &self.options.secret;
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let data = BTreeMap::from([
            (CERTIFICATE.to_owned(), bytes(&made.certificate)),
            (KEY.to_owned(), bytes(&made.key)),
            (AUTHORITIES.to_owned(), bytes(&made.authorities)),
        ]);
        let what = format!("Secret {name}");
        if let Some(mut secret) = found {
            // With the resourceVersion that was read.
            secret.data = Some(data);
            call(what, self.secrets.replace(name, &PostParams::default(), &secret)).await?;
        } else {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            let secret = Secret { metadata, data: Some(data), ..Secret::default() };
            call(what, self.secrets.create(&PostParams::default(), &secret)).await?;
        }
        Ok(())
    }

    /// Writes the authorities into the configuration, unless they are there. Nothing else in the configuration changes.
    async fn announce(&self, authorities: &str) -> Result<(), Failed> {
        let name = &self.options.configuration;
        let what = format!("ValidatingWebhookConfiguration {name}");
        let found = call(what.clone(), self.configurations.get(name)).await?;
        if let Some(patch) = bundle_patch(&found, authorities) {
            call(what, self.configurations.patch(name, &PatchParams::default(), &Patch::Strategic(patch)))
                .await?;
        }
        Ok(())
    }
}

/// A strategic merge patch that writes the authorities into each webhook of a configuration, and nothing else. `None` if
/// they are there.
fn bundle_patch(found: &ValidatingWebhookConfiguration, authorities: &str) -> Option<Value> {
    let bundle = ByteString(authorities.as_bytes().to_vec());
    let webhooks = found.webhooks.iter().flatten();
    let stale = webhooks.filter(|webhook| webhook.client_config.ca_bundle.as_ref() != Some(&bundle));
    // The API server merges the list by the webhooks' names.
    let stale: Vec<Value> =
        stale.map(|webhook| json!({"name": webhook.name, "clientConfig": {"caBundle": bundle}})).collect();
    (!stale.is_empty()).then(|| json!({"webhooks": stale}))
}

/// The certificate in a Secret's data, if all of it is there.
fn stored(data: &BTreeMap<String, ByteString>) -> Option<Certificate> {
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(Certificate { certificate: text(CERTIFICATE)?, key: text(KEY)?, authorities: text(AUTHORITIES)? })
}

async fn call<T>(what: String, call: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
    match timeout(CALL_WITHIN, call).await {
        Ok(answer) => answer.map_err(|error| Failed::Call(what, Box::new(error))),
        Err(_) => Err(Failed::Late(what)),
    }
}

#[cfg(test)]
#[path = "tests/keeper.rs"]
mod tests;
