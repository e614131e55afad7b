//! Which devices pods have, asked of a kubelet that a test plays on a socket.

use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, Response};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::net::UnixListener;

use super::wire::tests::pod;
use super::*;
use crate::containers::Containers;

const GPU: &str = "nvidia.com/gpu";

/// Answers one call on a new socket with this message and status, as the kubelet's gRPC server does.
fn kubelet(socket: &Path, message: Vec<u8>, status: &'static str) {
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket).unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            assert_eq!(request.uri().path(), "/v1.PodResourcesLister/List");
            let answer = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
            let mut body = respond.send_response(answer, false).unwrap();
            let length = u32::try_from(message.len()).unwrap().to_be_bytes();
            let prefixed = [&[0], &length[..], &message].concat();
            // In two pieces: a message need not come in one.
            let (first, second) = prefixed.split_at(prefixed.len() / 2);
            for piece in [first, second] {
                body.send_data(Bytes::copy_from_slice(piece), false).unwrap();
            }
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", status.parse().unwrap());
            trailers.insert("grpc-message", "not today".parse().unwrap());
            body.send_trailers(trailers).unwrap();
        }
    });
}

fn pods(names: &[&str]) -> Pods {
    let mut pods = Pods::default();
    for name in names {
        let labels = [("slotwright.dev/job-uid".to_owned(), "j".to_owned())].into();
        pods.there(
            &ObjectMeta {
                uid: Some(format!("uid-of-{name}")),
                name: Some((*name).to_owned()),
                namespace: Some("lab".to_owned()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            Containers::default(),
        );
    }
    pods
}

fn uids(pods: &Pods) -> BTreeSet<Uid> {
    pods.iter().map(|pod| Arc::clone(&pod.uid)).collect()
}

fn shown(found: &FoundDevices) -> Vec<String> {
    found.of_pods().into_iter().map(|of| format!("{} {} {}", of.uid, of.resource, of.ids.join("+"))).collect()
}

async fn ask(found: &mut FoundDevices, pods: &Pods) {
    found.ask_about(&uids(pods));
    let answer = found.answer().await;
    found.heard(answer, pods);
}

#[tokio::test]
async fn the_kubelet_is_asked_when_a_pod_has_started_and_never_again() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("kubelet.sock");
    let mut found = FoundDevices::new(Some(socket.clone()));
    found.ask_about(&BTreeSet::new());
    assert!(found.asking.is_empty(), "without pods there is nothing to ask");
    let one = pods(&["a"]);
    kubelet(&socket, pod("lab", "a", &[&[(GPU, &["GPU-7"])]]), "0");
    ask(&mut found, &one).await;
    assert_eq!(shown(&found), ["uid-of-a nvidia.com/gpu GPU-7"]);
    found.ask_about(&uids(&one));
    assert!(found.asking.is_empty(), "a pod keeps its devices");
    let more = pods(&["a", "b", "c"]);
    let others = [pod("other", "b", &[&[(GPU, &["GPU-1"])]]), pod("lab", "c", &[&[(GPU, &["GPU-3"])]])];
    kubelet(&socket, others.concat(), "0");
    ask(&mut found, &more).await;
    let expected = ["uid-of-a nvidia.com/gpu GPU-7", "uid-of-c nvidia.com/gpu GPU-3"];
    assert_eq!(shown(&found), expected, "b of another namespace is another pod");
    found.ask_about(&uids(&more));
    assert!(found.asking.is_empty(), "the kubelet has said that b has none");
    found.ask_about(&uids(&pods(&["c"])));
    assert_eq!(shown(&found), [expected[1]]);
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_the_kubelet_is_asked_again_a_minute_later() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("kubelet.sock");
    let one = pods(&["a"]);
    let mut found = FoundDevices::new(Some(socket.clone()));
    found.ask_about(&uids(&one));
    let answer = found.answer().await;
    assert!(answer.as_ref().is_err_and(|error| error.contains("No such file")), "{answer:?}");
    found.heard(answer, &one);
    found.ask_about(&uids(&one));
    assert!(found.asking.is_empty(), "not at once");
    tokio::time::advance(RETRY_AFTER).await;
    kubelet(&socket, Vec::new(), "7");
    found.ask_about(&uids(&one));
    let answer = found.answer().await;
    assert_eq!(answer, Err("the kubelet says gRPC status 7: not today".to_owned()));
    found.heard(answer, &one);
    tokio::time::advance(RETRY_AFTER).await;
    kubelet(&socket, vec![0x0a, 9], "0");
    found.ask_about(&uids(&one));
    assert_eq!(found.answer().await, Err("the message is no Protocol Buffers message".to_owned()));
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("kubelet.sock");
    kubelet(&socket, vec![0; 5 << 20], "0");
    let mut found = FoundDevices::new(Some(socket));
    found.ask_about(&uids(&pods(&["a"])));
    let answer = found.answer().await;
    assert!(answer.as_ref().is_err_and(|error| error.contains("more than")), "{answer:?}");
}

#[tokio::test]
async fn an_agent_that_is_not_to_ask_asks_nobody() {
    let mut found = FoundDevices::new(None);
    found.ask_about(&uids(&pods(&["a"])));
    assert!(found.asking.is_empty() && found.of_pods().is_empty());
}
