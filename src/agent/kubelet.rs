//! The disk usage of each pod, which the kubelet knows and the API server does not.
//!
//! The kubelet counts the containers' writable layers and logs and the pod's emptyDirs, once a minute or by the file system's
//! quotas, and tells in `/stats/summary`. The agent could count by itself only with the right to read every file of every pod.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use http::Request;
use kube::{Client, Config, Error};
use serde::Deserialize;

use super::pods::Uid;

/// The port at which kubelets answer.
const PORT: u16 = 10250;

/// The kubelet of the agent's node.
#[derive(Clone)]
pub(crate) struct Kubelet {
    client: Client,
}

/// The part of the answer that is read.
#[derive(Deserialize)]
struct Summary {
    #[serde(default)]
    pods: Vec<PodStats>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStats {
    pod_ref: PodRef,
    #[serde(rename = "ephemeral-storage")]
    storage: Option<Storage>,
}

#[derive(Deserialize)]
struct PodRef {
    uid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Storage {
    used_bytes: Option<u64>,
}

impl Kubelet {
    /// The kubelet of the agent's own node, at an IP address such as `10.0.0.7` or `fd00::7`, or at a URL. The agent shows the token of
    /// its pod to whoever answers there with a certificate of one of the authorities in the file `authorities` (PEM). The file is read
    /// again when it changes.
    ///
    /// Without the file the agent does not check the certificate, which most kubelets have signed themselves, and shows the token to
    /// whoever answers. The packets do not leave the node, but a pod in the node's network may answer while the kubelet restarts.
    ///
    /// # Errors
    /// When the address is none, or no client can be made, such as when there is no such file.
    pub(crate) fn at(address: &str, authorities: Option<&Path>, cluster: &Config) -> Result<Self, Error> {
        let mut config = cluster.clone();
        config.cluster_url =
            url(address).parse().map_err(|error| Error::HttpError(http::Error::from(error)))?;
        config.accept_invalid_certs = authorities.is_none();
        config.root_cert_file = authorities.map(Path::to_owned);
        (config.tls_server_name, config.proxy_url) = (None, None);
        Ok(Self { client: Client::try_from(config)? })
    }

    /// How much disk each pod uses, in KiB.
    ///
    /// # Errors
    /// When the kubelet refuses the call, or does not answer.
    pub(crate) async fn disk(self) -> Result<BTreeMap<Uid, i64>, Error> {
        let request = Request::get("/stats/summary").body(Vec::new()).map_err(Error::HttpError)?;
        Ok(used(self.client.request(request).await?))
    }
}

/// The URL of a kubelet at this address. A colon separates the port from a host name, but not from an address of IPv6.
fn url(address: &str) -> String {
    match address.parse::<IpAddr>() {
        Ok(ip) => format!("https://{}", SocketAddr::new(ip, PORT)),
        Err(_) => address.to_owned(),
    }
}

/// The KiB that each pod uses, rounded up. A pod of which the kubelet does not know is left out.
fn used(summary: Summary) -> BTreeMap<Uid, i64> {
    let of = |pod: PodStats| {
        let kib = pod.storage?.used_bytes?.div_ceil(1024);
        Some((Uid::from(pod.pod_ref.uid), i64::try_from(kib).ok()?))
    };
    summary.pods.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::crypto::ring::default_provider;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    use super::*;

    /// The certificate of an authority, as PEM, and the TLS of a server at 127.0.0.1 whose certificate the authority has signed.
    fn authority() -> (String, Arc<ServerConfig>) {
        let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec![Ipv4Addr::LOCALHOST.to_string()]).unwrap();
        let leaf = leaf.signed_by(&key, &authority).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .unwrap();
        (authority.pem(), Arc::new(tls))
    }

    /// Returns the request that a server gets from an agent that knows these authorities, and whether the agent gets an answer. The
    /// request is empty if the agent breaks the connection off.
    async fn heard(tls: Arc<ServerConfig>, authorities: Option<&str>) -> (String, bool) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = format!("https://{}", listener.local_addr().unwrap());
        let directory = tempfile::tempdir().unwrap();
        let file = authorities.map(|pem| {
            std::fs::write(directory.path().join("ca.crt"), pem).unwrap();
            directory.path().join("ca.crt")
        });
        let mut cluster = answers::for_a_daemon(Config::new("https://127.0.0.1:1".parse().unwrap()));
        cluster.auth_info = serde_json::from_str(r#"{"token": "hunter2"}"#).unwrap();
        let kubelet = Kubelet::at(&address, file.as_deref(), &cluster).unwrap();
        let server = async {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = TlsAcceptor::from(tls).accept(stream).await else { return String::new() };
            let mut heard = Vec::new();
            while !heard.ends_with(b"\r\n\r\n") && stream.read_buf(&mut heard).await.unwrap_or(0) > 0 {}
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await;
            String::from_utf8(heard).unwrap()
        };
        let (heard, answer) = tokio::join!(server, kubelet.disk());
        (heard, answer.is_ok())
    }

    /// While a kubelet restarts, a tenant's pod in the node's network may answer at the kubelet's port.
    #[tokio::test]
    async fn whoever_is_not_the_kubelet_is_shown_no_token_if_the_kubelets_authority_is_known() {
        let ((own, tls), (other, _)) = (authority(), authority());
        for (authorities, is_shown) in [(Some(&own), true), (Some(&other), false), (None, true)] {
            let (heard, is_answered) = heard(Arc::clone(&tls), authorities.map(String::as_str)).await;
            assert_eq!((heard.contains("hunter2"), is_answered), (is_shown, is_shown), "{heard}");
        }
        let nowhere = Kubelet::at(
            "127.0.0.1",
            Some(Path::new("/nowhere/ca.crt")),
            &Config::new("https://a".parse().unwrap()),
        );
        assert!(nowhere.is_err(), "a file that is not there is no reason to check nothing");
    }

    #[test]
    fn a_kubelet_is_found_by_an_address_of_either_kind() {
        for (address, expected) in [
            ("10.0.0.7", "https://10.0.0.7:10250/"),
            ("fd00::7", "https://[fd00::7]:10250/"),
            ("https://n1.example.org:10255", "https://n1.example.org:10255/"),
        ] {
            assert_eq!(url(address).parse::<http::Uri>().unwrap().to_string(), expected, "{address}");
        }
    }

    #[test]
    fn what_pods_use_of_the_disk_is_read_from_the_kubelets_summary() {
        let text = r#"{"node": {"nodeName": "n1", "fs": {"usedBytes": 9}}, "pods": [
            {"podRef": {"name": "a", "namespace": "s", "uid": "u1"}, "startTime": "2026-01-01T00:00:00Z",
             "ephemeral-storage": {"time": "2026-01-01T00:00:00Z", "availableBytes": 7, "usedBytes": 2049, "inodesUsed": 3}},
            {"podRef": {"name": "b", "namespace": "s", "uid": "u2"}, "ephemeral-storage": {"availableBytes": 7}},
            {"podRef": {"name": "c", "namespace": "s", "uid": "u3"}},
            {"podRef": {"name": "d", "namespace": "s", "uid": "u4"}, "ephemeral-storage": {"usedBytes": 0}}]}"#;
        let expected = [(Uid::from("u1"), 3), (Uid::from("u4"), 0)];
        assert_eq!(used(serde_json::from_str(text).unwrap()), expected.into());
        assert!(used(serde_json::from_str("{}").unwrap()).is_empty());
    }
}
