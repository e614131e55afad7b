//! The agent's calls to the API server about its report, and the list of the node's pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::json;

use super::fence::Listed;
use super::report::Write;
use api::{NodeReport, NodeReportSpec, NodeReportStatus};

/// Lists all pods of a node as they are now: the API server does not answer from what it remembers.
///
/// # Errors
/// When the API server refuses the call, or does not answer.
pub(crate) async fn list_pods(client: Client, node: String) -> Result<BTreeMap<String, Listed>, Error> {
    let pods: Api<Pod> = Api::all(client);
    let list = pods.list_metadata(&ListParams::default().fields(&format!("spec.nodeName={node}"))).await?;
    let listed = list.items.into_iter().filter_map(|pod| {
        Some((pod.metadata.uid?, Listed { deleting: pod.metadata.deletion_timestamp.is_some() }))
    });
    Ok(listed.collect())
}

/// Writes the status of a node's report. If there is no report, creates one, with all of the status: the patch has only what
/// differs from a status that is gone.
///
/// # Errors
/// When the API server refuses a call, or does not answer.
pub(crate) async fn write_status(
    client: Client,
    node: String,
    write: Write,
) -> Result<NodeReportStatus, Error> {
    let reports: Api<NodeReport> = Api::all(client.clone());
    let params = PatchParams::default();
    match reports.patch_status(&node, &params, &Patch::Merge(&write.patch)).await {
        Err(Error::Api(status)) if status.is_not_found() => {}
        answer => return answer.map(|_| write.status),
    }
    create(client, &node).await?;
    let whole = json!({"status": write.status});
    reports.patch_status(&node, &params, &Patch::Merge(&whole)).await.map(|_| write.status)
}

/// Creates the report of a node. The Node owns it, so that the report goes when the node leaves the cluster.
async fn create(client: Client, node: &str) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let uid = nodes.get(node).await?.metadata.uid.unwrap_or_default();
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.to_owned(),
        uid,
        ..OwnerReference::default()
    };
    let mut report = NodeReport::new(node, NodeReportSpec::default());
    report.metadata = ObjectMeta {
        name: Some(node.to_owned()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let reports: Api<NodeReport> = Api::all(client);
    match reports.create(&PostParams::default(), &report).await {
        // Somebody was quicker.
        Err(Error::Api(status)) if status.is_already_exists() => Ok(()),
        answer => answer.map(drop),
    }
}
