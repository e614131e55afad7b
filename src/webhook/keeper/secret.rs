//! The Secret, by which all replicas have the same: the key of seals and, if the operator makes the certificate, the certificate.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client};
use ring::rand::{SecureRandom, SystemRandom};

use controller::seal::{KEY_BYTES, Key};

use super::{Failed, call};
use crate::certificate::Certificate;

/// The keys of the Secret: those of a Secret of the type `kubernetes.io/tls`, the authorities, and the key of seals.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITIES: &str = "ca.crt";
const SEAL: &str = "seal.key";

/// Reads and writes the Secret.
pub(super) struct SecretStore {
    api: Api<Secret>,
    name: String,
}

/// The content of the Secret when it was read.
pub(super) struct Found {
    object: Option<Secret>,
    /// The certificate, if all of it was there.
    pub(super) certificate: Option<Certificate>,
    /// The key of seals, if it can be used.
    pub(super) key: Option<ByteString>,
}

impl SecretStore {
    /// The Secret of this name.
    pub(super) fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), name: name.to_owned() }
    }

    /// The name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Reads the Secret. A Secret that is missing is as good as an empty one.
    pub(super) async fn read(&self) -> Result<Found, Failed> {
        let object = call(self.what(), self.api.get_opt(&self.name)).await?;
        let data = object.as_ref().and_then(|secret| secret.data.as_ref());
        let (certificate, key) = (data.and_then(certificate), data.and_then(seal_key));
        Ok(Found { object, certificate, key })
    }

    /// Writes the Secret. Fails if another replica has written the Secret since it was read; the next turn then takes what is there.
    pub(super) async fn write(
        &self,
        found: Found,
        made: Option<&Certificate>,
        key: &ByteString,
    ) -> Result<(), Failed> {
        let params = PostParams::default();
        let is_there = found.object.is_some();
        let mut secret = found.object.unwrap_or_default();
        put(&mut secret, made, key);
        if is_there {
            // The Secret has the resourceVersion that was read, so that a write of somebody else in between is not undone.
            call(self.what(), self.api.replace(&self.name, &params, &secret)).await?;
        } else {
            secret.metadata.name = Some(self.name.clone());
            call(self.what(), self.api.create(&params, &secret)).await?;
        }
        Ok(())
    }

    fn what(&self) -> String {
        format!("Secret {}", self.name)
    }
}

/// A new key of seals.
pub(super) fn new_key() -> Result<ByteString, Failed> {
    let mut bytes = vec![0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Failed::NoRandomness)?;
    Ok(ByteString(bytes))
}

/// Puts a certificate, if one was made, and the key of seals into a Secret. Other keys of the Secret are others'.
fn put(secret: &mut Secret, made: Option<&Certificate>, key: &ByteString) {
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let parts = made.into_iter().flat_map(|made| {
        [(CERTIFICATE, &made.certificate), (KEY, &made.key), (AUTHORITIES, &made.authorities)]
    });
    let parts = parts.map(|(name, text)| (name.to_owned(), bytes(text)));
    secret.data.get_or_insert_default().extend(parts.chain([(SEAL.to_owned(), key.clone())]));
}

/// The key of seals in a Secret's data, if it can be used.
fn seal_key(data: &BTreeMap<String, ByteString>) -> Option<ByteString> {
    data.get(SEAL).filter(|bytes| Key::new(&bytes.0).is_some()).cloned()
}

/// The certificate in a Secret's data, if all of it is there.
fn certificate(data: &BTreeMap<String, ByteString>) -> Option<Certificate> {
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(Certificate { certificate: text(CERTIFICATE)?, key: text(KEY)?, authorities: text(AUTHORITIES)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_without_all_parts_holds_no_certificate() {
        let part = |key: &str| (key.to_owned(), ByteString(b"x".to_vec()));
        let all = [part(CERTIFICATE), part(KEY), part(AUTHORITIES)];
        assert!(certificate(&all.clone().into()).is_some());
        for missing in 0..3 {
            let mut some = all.to_vec();
            some.remove(missing);
            assert!(certificate(&some.into_iter().collect()).is_none());
        }
        let [mut text, key, authorities] = all;
        text.1 = ByteString(vec![0xff]);
        assert!(certificate(&[text, key, authorities].into()).is_none(), "not text");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let key = new_key().unwrap();
        let [text, own_key, authorities] = ["c", "k", "a"].map(str::to_owned);
        let made = Certificate { certificate: text, key: own_key, authorities };
        for made in [None, Some(made)] {
            let others = [("theirs".to_owned(), ByteString(b"x".to_vec()))];
            let mut secret = Secret { data: Some(others.clone().into()), ..Secret::default() };
            put(&mut secret, made.as_ref(), &key);
            let data = secret.data.unwrap();
            assert_eq!((certificate(&data), seal_key(&data)), (made, Some(key.clone())));
            assert_eq!(data.get("theirs"), Some(&others[0].1), "what others keep there stays");
        }
        assert_eq!(seal_key(&[(SEAL.to_owned(), ByteString(b"short".to_vec()))].into()), None);
    }
}
