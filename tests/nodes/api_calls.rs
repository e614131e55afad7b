//! Calls that users and controllers of a cluster make.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::cluster::Cluster;

impl Cluster {
    /// Deletes pods as a user does, with the grace period that their templates give them.
    pub async fn delete_pods(&self, pods: &[Pod]) {
        for pod in pods {
            self.pods().delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
        }
    }

    /// Asks the Eviction API to evict a pod. Returns whether the API agreed: a PodDisruptionBudget may refuse.
    pub async fn evict(&self, pod: &str) -> bool {
        // Servers before 1.22 know only v1beta1, and servers since 1.25 only v1.
        for version in ["policy/v1", "policy/v1beta1"] {
            let body = json!({
                "apiVersion": version, "kind": "Eviction", "metadata": {"name": pod, "namespace": self.namespace},
            });
            let uri = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", self.namespace);
            let request = http::Request::post(uri)
                .header("Content-Type", "application/json")
                .body(serde_json::to_vec(&body).unwrap())
                .unwrap();
            match self.client.request::<serde_json::Value>(request).await {
                Ok(_) => return true,
                Err(kube::Error::Api(status)) if status.code == 429 => return false,
                Err(kube::Error::Api(status)) if status.code == 400 || status.code == 404 => {}
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the server knows no Eviction that we know, or no pod {pod}");
    }

    pub async fn cordon(&self, node: &str, cordoned: bool) {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": cordoned}}));
        self.nodes().patch(node, &PatchParams::default(), &patch).await.unwrap();
    }

    /// The reasons and notes of the events about a job.
    pub async fn story(&self, job: &str) -> Vec<(String, String)> {
        let events: kube::Api<k8s_openapi::api::core::v1::Event> =
            kube::Api::namespaced(self.client.clone(), &self.namespace);
        let about = kube::api::ListParams::default()
            .fields(&format!("involvedObject.kind=HTCJob,involvedObject.name={job}"));
        let found = events.list(&about).await.unwrap();
        found.into_iter().map(|e| (e.reason.unwrap_or_default(), e.message.unwrap_or_default())).collect()
    }

    /// The minor version of the server.
    pub async fn minor_version(&self) -> u32 {
        let version = self.client.apiserver_version().await.unwrap();
        version.minor.trim_end_matches('+').parse().unwrap()
    }
}
