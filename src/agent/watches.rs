//! The agent's watches on the API server.

use std::pin::Pin;

use futures::{Stream, StreamExt as _};
use kube::runtime::watcher::{self, Config, Event, watcher as watch};
use kube::{Api, Client, Resource};

use super::containers::Containers;
use super::objects;
use answers::{Decode, Item, Pauses, patient, watching};
use api::NodeReport;

/// A pod of which only the metadata and the containers are read.
pub(crate) type Pod = Item<Containers>;
/// The events of a watch. The stream has no end: a watch that fails begins anew.
pub(crate) type Events<T> = Pin<Box<dyn Stream<Item = watcher::Result<Event<T>>> + Send>>;

/// Watches the pods of a node.
pub(crate) fn pods(client: &Client, node: &str, pauses: &Pauses) -> Events<Pod> {
    let config = Config::default().fields(&format!("spec.nodeName={node}")).page_size(objects::PAGE);
    events(client, config, pauses.of("pods"))
}

/// Watches the report of a node's agent.
pub(crate) fn report(client: &Client, node: &str, pauses: &Pauses) -> Events<Item<NodeReport>> {
    events(client, Config::default().fields(&format!("metadata.name={node}")), pauses.of("report"))
}

fn events<T>(client: &Client, config: Config, pauses: Pauses) -> Events<Item<T>>
where
    T: Decode<Of: Resource<DynamicType = ()>> + Clone + Send + 'static,
{
    let api: Api<Item<T>> = Api::all(watching(client.clone(), || {}));
    patient(watch(api, config), pauses).boxed()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use tokio::time::timeout;

    use super::*;

    /// An API server that refuses each call, and counts them.
    fn overloaded() -> (Client, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let service = tower::service_fn(move |_: Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            let refusal =
                r#"{"kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError"}"#;
            let answer =
                Response::builder().status(500).body(Body::from(refusal.as_bytes().to_vec())).unwrap();
            async { Ok::<_, Infallible>(answer) }
        });
        (Client::new(service, "default"), calls)
    }

    #[tokio::test(start_paused = true)]
    async fn lists_that_fail_are_repeated_ever_more_seldom() {
        for watched in ["pods", "report"] {
            let ((client, calls), pauses) = (overloaded(), Pauses::new(7));
            let follow = async {
                match watched {
                    "pods" => pods(&client, "n1", &pauses).map(drop).for_each(async |()| {}).await,
                    _ => report(&client, "n1", &pauses).map(drop).for_each(async |()| {}).await,
                }
            };
            assert!(timeout(Duration::from_mins(10), follow).await.is_err(), "a watch has no end");
            let calls = calls.load(Ordering::Relaxed);
            assert!((10..=30).contains(&calls), "{watched}: {calls} calls in ten minutes");
        }
    }
}
