//! The agent's calls to the API server about its report, and the list of the node's pods.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::json;
use tokio::time::timeout;

use super::fence::Listed;
use super::report::Write;
use answers::{Decode, Item, Parts, wire};
use api::{NodeReport, NodeReportSpec, NodeReportStatus};

/// The most pods in one answer of the API server. The metadata of a pod may have more than a mebibyte, and a tenant chooses most of
/// it. So a node's pods all at once would be more than the agent's memory.
pub(crate) const PAGE: u32 = 10;

/// A call that takes longer has failed.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// Makes a call, which fails if no answer comes in time.
///
/// # Errors
/// As the call, or when the answer takes longer than [`CALL_LIMIT`].
pub(crate) async fn in_time<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let too_slow = || Error::Service(format!("no answer within {CALL_LIMIT:?}").into());
    timeout(CALL_LIMIT, call).await.unwrap_or_else(|_| Err(too_slow()))
}

/// A pod of which only the metadata are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnlyMetadata;

impl Decode for OnlyMetadata {
    type Of = Pod;

    fn decode(_: &Parts<'_>) -> Result<Self, serde_json::Error> {
        Ok(Self)
    }
}

/// Lists all pods of a node as they are now: the API server does not answer from what it remembers. Each page has its own time
/// limit, so that a list of many pages does not fail for their number.
///
/// # Errors
/// When the API server refuses a call, or does not answer in time.
pub(crate) async fn list_pods(client: Client, node: String) -> Result<BTreeMap<String, Listed>, Error> {
    let pods: Api<Item<OnlyMetadata>> = Api::all(client);
    let mut params = ListParams::default().fields(&format!("spec.nodeName={node}")).limit(PAGE);
    let mut all = BTreeMap::new();
    loop {
        let page = in_time(wire::list_metadata(&pods, &params)).await?;
        all.extend(page.items.into_iter().filter_map(|pod| {
            let (metadata, _) = pod.into_parts();
            Some((metadata.uid?, Listed { deleting: metadata.deletion_timestamp.is_some() }))
        }));
        // All pages show the pods as they were when the first was asked for.
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
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
    let reports: Api<Item<NodeReport>> = Api::all(client.clone());
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
    let nodes: Api<Item<Node>> = Api::all(client.clone());
    let uid = nodes.get(node).await?.metadata().uid.clone().unwrap_or_default();
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
    let reports: Api<Item<NodeReport>> = Api::all(client);
    match wire::make(&reports, &PostParams::default(), &report).await {
        // Somebody was quicker.
        Err(Error::Api(status)) if status.is_already_exists() => Ok(()),
        answer => answer.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    /// An API server with 25 pods on the node that answers in pages, each after a pause; and the queries that it got.
    fn server(pause: Duration) -> (Client, Arc<Mutex<Vec<String>>>) {
        let queries = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&queries);
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let value =
                |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            let limit: usize = value("limit").unwrap().parse().unwrap();
            let from: usize = value("continue").map_or(0, |token| token.parse().unwrap());
            let to = (from + limit).min(25);
            // Whoever may edit a pod may write a time that no calendar has.
            let odd = json!([{"manager": "m", "time": "9999-12-31T23:59:59Z"}]);
            let pod = |n: usize| {
                let deleted = (n == 24).then_some("2026-01-01T00:00:00Z");
                json!({"metadata": {"name": format!("p{n}"), "uid": format!("u{n}"), "deletionTimestamp": deleted,
                    "managedFields": odd}})
            };
            let next = if to < 25 { to.to_string() } else { String::new() };
            let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                "metadata": {"resourceVersion": "7", "continue": next}, "items": (from..to).map(pod).collect::<Vec<_>>()});
            seen.lock().unwrap().push(query.clone());
            async move {
                tokio::time::sleep(pause).await;
                Ok::<_, std::convert::Infallible>(Response::new(Body::from(list.to_string().into_bytes())))
            }
        });
        (Client::new(service, "default"), queries)
    }

    #[tokio::test]
    async fn pods_are_listed_in_pages_that_fit_into_memory() {
        let (client, queries) = server(Duration::ZERO);
        let listed = list_pods(client, "n1".to_owned()).await.unwrap();
        assert_eq!(listed.len(), 25);
        assert!(listed["u24"].deleting && !listed["u0"].deleting);
        let queries = queries.lock().unwrap();
        assert_eq!(queries.len(), 3, "{queries:?}");
        assert!(
            queries
                .iter()
                .all(|query| query.contains("fieldSelector=") && !query.contains("resourceVersion"))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn each_page_of_a_list_has_its_own_time_limit() {
        let (client, _) = server(CALL_LIMIT.mul_f64(0.8));
        assert_eq!(list_pods(client, "n1".to_owned()).await.unwrap().len(), 25);
        let (client, queries) = server(CALL_LIMIT.mul_f64(1.2));
        let error = list_pods(client, "n1".to_owned()).await.unwrap_err();
        assert!(error.to_string().contains("no answer within 5s"), "{error}");
        assert_eq!(queries.lock().unwrap().len(), 1);
    }
}
