//! Certificates: made here, judged here, and never written to a disk.
//!
//! Each certificate that is made here has an authority of its own, whose key is dropped once it has signed: nobody can sign with it again,
//! and no such key has to be kept. Replacing a certificate therefore replaces the authority. The authority before stays in
//! the bundle, so that a replica that still serves the certificate before is believed.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ServerConfig;
use rustls::{RootCertStore, SupportedProtocolVersion};
use thiserror::Error;
use time::OffsetDateTime;

/// How long a certificate is valid.
pub const LIFETIME: Duration = Duration::from_hours(90 * 24);
/// How much of its lifetime a certificate has left when it is renewed.
const LEFT: Duration = Duration::from_hours(30 * 24);
/// How long before now a certificate begins: clocks of a cluster differ.
const BEFORE: Duration = Duration::from_mins(5);
/// TLS 1.3 alone: every API server that the operator runs on speaks it.
const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// A certificate with its key, and the authorities that clients are to believe, all as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate that is served. Those between it and an authority may follow.
    pub certificate: String,
    /// The key.
    pub key: String,
    /// The authority of the certificate, and after a renewal also that of the certificate before: a replica that still serves the
    /// earlier certificate is believed.
    pub authorities: String,
}

/// The key is not shown.
impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificate").finish_non_exhaustive()
    }
}

/// Why a certificate cannot be used, or none could be made.
#[derive(Debug, Error)]
pub enum Unusable {
    /// The stored text is not PEM.
    #[error("no PEM: {0}")]
    Pem(#[from] pem::Error),
    /// Clients would not believe the certificate, or the key is not the certificate's.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// No client can be made of the authorities.
    #[error("no authority that can be believed: {0}")]
    Authority(#[from] rustls::client::VerifierBuilderError),
    /// No certificate could be made.
    #[error("no certificate can be made: {0}")]
    Make(#[from] rcgen::Error),
    /// A name or time that no certificate can have.
    #[error("{0} cannot be in a certificate")]
    Value(String),
}

/// The name by which an API server reaches a Service.
pub fn asked_for(service: &str, namespace: &str) -> String {
    format!("{service}.{namespace}.svc")
}

/// The names of a certificate that is made here. The first is the one that API servers ask for.
pub fn names(service: &str, namespace: &str) -> Vec<String> {
    let short = asked_for(service, namespace);
    let long = format!("{short}.cluster.local");
    // By URL, for an operator beside an API server, as in tests.
    vec![short, long, "localhost".to_owned(), Ipv4Addr::LOCALHOST.to_string()]
}

/// Makes a certificate for these names that is valid from now on, with a new authority. If there was a certificate before,
/// its authority stays in the bundle.
///
/// # Errors
/// When a name cannot be in a certificate, or there is no randomness for keys.
pub fn make(names: &[String], now: UnixTime, before: Option<&Certificate>) -> Result<Certificate, Unusable> {
    let mut authority = CertificateParams::new(Vec::<String>::new())?;
    authority.distinguished_name.push(DnType::CommonName, "slotwright-webhook-ca");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    within_lifetime(&mut authority, now)?;
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let mut leaf = CertificateParams::new(names.to_vec())?;
    leaf.distinguished_name.push(DnType::CommonName, "slotwright-webhook");
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    within_lifetime(&mut leaf, now)?;
    let key = KeyPair::generate()?;
    let leaf = leaf.signed_by(&key, &authority)?;
    let former = before.and_then(|before| first_pem(&before.authorities)).unwrap_or_default();
    Ok(Certificate {
        certificate: leaf.pem(),
        key: key.serialize_pem(),
        authorities: format!("{}{former}", authority.pem()),
    })
}

fn within_lifetime(params: &mut CertificateParams, now: UnixTime) -> Result<(), Unusable> {
    let at = |secs: u64| {
        let wrong = || Unusable::Value(format!("the time {secs}"));
        OffsetDateTime::from_unix_timestamp(i64::try_from(secs).map_err(|_| wrong())?).map_err(|_| wrong())
    };
    params.not_before = at(now.as_secs().saturating_sub(BEFORE.as_secs()))?;
    params.not_after = at(now.as_secs().saturating_add(LIFETIME.as_secs()))?;
    Ok(())
}

/// The first certificate of a bundle: the authority of the certificate that was served last. `None` if nobody could
/// believe it.
fn first_pem(bundle: &str) -> Option<&str> {
    const END: &str = "-----END CERTIFICATE-----";
    let end = bundle.find(END)?.checked_add(END.len())?;
    let first = bundle.get(..end)?;
    let readable = CertificateDer::from_pem_slice(first.as_bytes()).ok()?;
    RootCertStore::empty().add(readable).ok().map(|()| first)
}

impl Certificate {
    /// Why a new certificate has to be made: two thirds of the lifetime of this one are over, or it cannot be used at all.
    /// `None` if there is no such need. Depends on nothing but the certificate, the names and the time.
    pub fn due(&self, names: &[String], now: UnixTime) -> Option<Unusable> {
        let later = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()).saturating_add(LEFT));
        self.server().and_then(|_| self.believed(names, now)).and_then(|()| self.believed(names, later)).err()
    }

    /// Checks that a client which knows only the authorities believes this certificate, by each of the names.
    pub(crate) fn believed(&self, names: &[String], now: UnixTime) -> Result<(), Unusable> {
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(self.authorities.as_bytes()) {
            roots.add(authority?)?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build()?;
        let chain = self.chain()?;
        let Some((leaf, between)) = chain.split_first() else {
            return Err(pem::Error::NoItemsFound.into());
        };
        for name in names {
            let name = ServerName::try_from(name.as_str()).map_err(|_| Unusable::Value(name.clone()))?;
            verifier.verify_server_cert(leaf, between, &name, &[], now)?;
        }
        Ok(())
    }

    /// The certificate, and those between it and an authority.
    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, Unusable> {
        Ok(CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect::<Result<_, _>>()?)
    }

    /// The configuration with which a server serves this certificate.
    ///
    /// # Errors
    /// When the certificate or the key cannot be read, or they do not belong together.
    pub fn server(&self) -> Result<Arc<ServerConfig>, Unusable> {
        let chain = self.chain()?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(VERSIONS)?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Arc::new(config))
    }
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
#[path = "tests/certificate.rs"]
mod tests;
