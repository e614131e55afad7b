//! The disk usage of each pod, which the kubelet knows and the API server does not.
//!
//! The kubelet counts the containers' writable layers and logs and the pod's emptyDirs, once a minute or by the file system's
//! quotas, and tells in `/stats/summary`. The agent could count by itself only with the right to read every file of every pod.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

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
    /// The kubelet of the agent's own node, at an IP address such as `10.0.0.7` or `fd00::7`, or at a URL. The agent shows the token of its pod, and
    /// does not check the kubelet's certificate, which most kubelets have signed themselves: the packets do not leave the node.
    ///
    /// # Errors
    /// When the address is none, or no client can be made.
    pub(crate) fn at(address: &str, cluster: &Config) -> Result<Self, Error> {
        let mut config = cluster.clone();
        config.cluster_url =
            url(address).parse().map_err(|error| Error::HttpError(http::Error::from(error)))?;
        (config.accept_invalid_certs, config.tls_server_name, config.proxy_url) = (true, None, None);
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
    use super::*;

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
