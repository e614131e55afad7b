//! Keeps the certificate and the key of seals in a Secret, so that all replicas have the same, and the certificate's authority in the
//! webhook's configurations, so that the API server believes the replicas.
//!
//! Each replica does the same, and needs no leader: whoever writes the Secret first wins, and the others take what was
//! written. A certificate is served only after its authority is in the configuration.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::UnixTime;
use rustls::server::ServerConfig;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use controller::Clock;
use controller::seal::{KEY_BYTES, Key};

use crate::Options;
use crate::certificate::{Certificate, Unusable, make, names};

/// How long until the Secret is looked at again: another replica may have renewed the certificate.
const AGAIN: Duration = Duration::from_mins(1);
/// How long until the Secret is looked at again after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How long a call may take.
const CALL_WITHIN: Duration = Duration::from_secs(10);

/// The keys of the Secret: those of a Secret of the type `kubernetes.io/tls`, the authorities, and the key of seals.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITIES: &str = "ca.crt";
const SEAL: &str = "seal.key";

/// Why there is no certificate to serve at present.
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

/// Keeps a certificate and a key in use, without end. Whatever fails is logged and tried again; what is in use stays in use.
pub(crate) async fn keep(
    client: Client,
    clock: Clock,
    options: Options,
    (out, key): (watch::Sender<Option<Arc<ServerConfig>>>, watch::Sender<Option<Key>>),
) {
    let keeper = Keeper {
        secrets: Api::namespaced(client.clone(), &options.namespace),
        validating: Api::all(client.clone()),
        mutating: Api::all(client),
        key,
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
    validating: Api<ValidatingWebhookConfiguration>,
    mutating: Api<MutatingWebhookConfiguration>,
    key: watch::Sender<Option<Key>>,
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
        let data = found.as_ref().and_then(|secret| secret.data.as_ref());
        let (stored, kept_key) = (data.and_then(stored), data.and_then(seal_key));
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
        if let Some(why) = why {
            tracing::info!(secret = name, why, "a certificate for the admission webhook is made");
            self.store(found, &certificate, &key).await?;
        } else if kept_key.is_none() {
            tracing::info!(secret = name, "a key for the seals of jobs is made");
            self.store(found, &certificate, &key).await?;
        }
        self.key.send_replace(Key::new(&key.0));
        self.announce(&certificate.authorities).await?;
        if served == Some(&certificate) {
            return Ok(None);
        }
        let config = certificate.server()?;
        Ok(Some((certificate, config)))
    }

    /// Writes the Secret. Fails if another replica has written it since; the next turn then takes what is there.
    async fn store(&self, found: Option<Secret>, made: &Certificate, key: &ByteString) -> Result<(), Failed> {
        let name = &self.options.secret;
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let data = BTreeMap::from([
            (CERTIFICATE.to_owned(), bytes(&made.certificate)),
            (KEY.to_owned(), bytes(&made.key)),
            (AUTHORITIES.to_owned(), bytes(&made.authorities)),
            (SEAL.to_owned(), key.clone()),
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

    /// Writes the authorities into the configurations, unless they are there. Nothing else in a configuration changes. One of the two
    /// configurations may be missing.
    async fn announce(&self, authorities: &str) -> Result<(), Failed> {
        let validating = |found: &ValidatingWebhookConfiguration| {
            let webhooks = found.webhooks.iter().flatten();
            bundle_patch(webhooks.map(|webhook| (webhook.name.as_str(), &webhook.client_config)), authorities)
        };
        let mutating = |found: &MutatingWebhookConfiguration| {
            let webhooks = found.webhooks.iter().flatten();
            bundle_patch(webhooks.map(|webhook| (webhook.name.as_str(), &webhook.client_config)), authorities)
        };
        let found = [
            self.announce_in(&self.validating, validating).await?,
            self.announce_in(&self.mutating, mutating).await?,
        ];
        if found == [false, false] {
            return Err(Failed::NoConfiguration(self.options.configuration.clone()));
        }
        Ok(())
    }

    /// Writes what `patch` says into one configuration. Returns whether there is such a configuration.
    async fn announce_in<K>(
        &self,
        configurations: &Api<K>,
        patch: impl Fn(&K) -> Option<Value>,
    ) -> Result<bool, Failed>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let name = &self.options.configuration;
        let what = format!("{} {name}", K::kind(&()));
        let Some(found) = call(what.clone(), configurations.get_opt(name)).await? else { return Ok(false) };
        if let Some(patch) = patch(&found) {
            call(what, configurations.patch(name, &PatchParams::default(), &Patch::Strategic(patch))).await?;
        }
        Ok(true)
    }
}

/// A new key of seals.
fn new_key() -> Result<ByteString, Failed> {
    let mut bytes = vec![0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Failed::NoRandomness)?;
    Ok(ByteString(bytes))
}

/// The key of seals in a Secret's data, if it can be used.
fn seal_key(data: &BTreeMap<String, ByteString>) -> Option<ByteString> {
    data.get(SEAL).filter(|bytes| Key::new(&bytes.0).is_some()).cloned()
}

/// A strategic merge patch that writes the authorities into each webhook of a configuration, and nothing else. `None` if
/// they are there.
fn bundle_patch<'a>(
    webhooks: impl Iterator<Item = (&'a str, &'a WebhookClientConfig)>,
    authorities: &str,
) -> Option<Value> {
    let bundle = ByteString(authorities.as_bytes().to_vec());
    let stale = webhooks.filter(|(_, config)| config.ca_bundle.as_ref() != Some(&bundle));
    // The API server merges the list by the webhooks' names.
    let stale: Vec<Value> =
        stale.map(|(name, _)| json!({"name": name, "clientConfig": {"caBundle": bundle}})).collect();
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
