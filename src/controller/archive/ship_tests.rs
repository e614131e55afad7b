//! Each ad that is shipped is in the index once, whatever the server answers.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use ::history::Limits;
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use classad::Ad;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::super::super::metrics::Metrics;
use super::*;

/// The answers of the server to one request after the other; the server takes all documents of later requests.
#[derive(Clone, Debug)]
enum Does {
    /// Fails.
    Fails(u16),
    /// Says this status of the document with this ProcId, and takes the others.
    Says(i64, u16),
    /// Says that the request is too long if it has more documents than this.
    Shortens(usize),
    /// Says that the whole request is bad, now and later, if it has the document with this ProcId.
    Rejects(i64),
}

#[derive(Default)]
struct Index {
    /// The documents by id, and how many times each was sent.
    documents: BTreeMap<String, (Value, u32)>,
    plan: Vec<Does>,
    authorization: Option<String>,
}

type Shared = Arc<Mutex<Index>>;

async fn bulk(
    State(index): State<Shared>,
    headers: axum::http::HeaderMap,
    body: String,
) -> (StatusCode, String) {
    let mut index = index.lock().unwrap();
    index.authorization = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    let lines: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let documents: Vec<(String, Value)> = lines
        .chunks(2)
        .map(|pair| (pair[0]["index"]["_id"].as_str().unwrap().to_owned(), pair[1].clone()))
        .collect();
    let does = if index.plan.is_empty() { None } else { Some(index.plan.remove(0)) };
    match does {
        Some(Does::Fails(status)) => return (StatusCode::from_u16(status).unwrap(), "busy".to_owned()),
        Some(Does::Shortens(most)) if documents.len() > most => {
            index.plan.insert(0, Does::Shortens(most));
            return (StatusCode::PAYLOAD_TOO_LARGE, String::new());
        }
        Some(Does::Rejects(proc)) => {
            index.plan.insert(0, Does::Rejects(proc));
            if documents.iter().any(|(_, document)| document["ProcId"] == proc) {
                return (StatusCode::BAD_REQUEST, "illegal_argument_exception".to_owned());
            }
        }
        _ => {}
    }
    let mut items = Vec::new();
    for (id, document) in documents {
        let status = match does {
            Some(Does::Says(proc, status)) if document["ProcId"] == proc => status,
            _ => 201,
        };
        if status == 201 {
            let entry = index.documents.entry(id.clone()).or_insert((document, 0));
            entry.1 += 1;
        }
        items.push(json!({ "index": { "_id": id, "status": status, "error": { "type": "some" } } }));
    }
    (StatusCode::OK, json!({ "errors": false, "items": items }).to_string())
}

/// A history, and an index that plays Elasticsearch.
struct World {
    directory: TempDir,
    store: Store,
    index: Shared,
    url: http::Uri,
    metrics: Metrics,
    _server: JoinSet<()>,
}

async fn world(plan: Vec<Does>) -> World {
    let directory = TempDir::new().unwrap();
    let store = Store::open(directory.path(), Limits::default()).unwrap();
    let index = Shared::default();
    index.lock().unwrap().plan = plan;
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let router = Router::new().route("/_bulk", post(bulk)).with_state(Arc::clone(&index));
    let mut server = JoinSet::new();
    server.spawn(async move { axum::serve(listener, router).await.unwrap() });
    World { directory, store, index, url, metrics: Metrics::default(), _server: server }
}

impl World {
    fn ends(&mut self, procs: std::ops::Range<i64>) {
        let ads: Vec<Ad> = procs
            .map(|proc| {
                Ad::new()
                    .with("ClusterId", 1)
                    .with("ProcId", proc)
                    .with("JobStatus", 4)
                    .with("CompletionDate", 1000 + proc)
                    .with("GlobalJobId", format!("ns#1.{proc}#u").as_str())
            })
            .collect();
        self.store.append(&ads, 2000, None).unwrap();
    }

    /// Ships until Elasticsearch has everything.
    async fn ship(&self, credentials: Credentials) {
        let elastic =
            Elastic { url: self.url.clone(), index: "jobs".to_owned(), credentials, authority: None };
        let progress = HistoryProgress::new(true);
        progress.written.send_replace(self.store.last());
        let mut shipped = progress.shipped.subscribe();
        let (directory, clock) = (self.directory.path().to_owned(), Clock::start());
        let ships = ship(elastic, directory, clock, Pauses::new(1), self.metrics.history(), progress);
        let last = self.store.last();
        tokio::select! {
            () = ships => panic!("it ships without end"),
            found = shipped.wait_for(|shipped| *shipped == Some(last)) => { found.unwrap(); }
        }
    }

    fn sent(&self) -> Vec<u32> {
        self.index.lock().unwrap().documents.values().map(|(_, times)| *times).collect()
    }
}

#[tokio::test]
async fn everything_is_shipped_once_also_by_the_next_process() {
    let mut world = world(Vec::new()).await;
    world.ends(0..2500);
    world.ship(Credentials::None).await;
    assert_eq!(world.sent(), vec![1; 2500]);
    world.ends(2500..2503);
    world.ship(Credentials::None).await;
    assert_eq!(world.sent(), vec![1; 2503]);
    let index = world.index.lock().unwrap();
    let (document, _) = &index.documents["ns#1.7#u#1007"];
    assert_eq!((&document["Status"], &document["RecordTime"]), (&json!("Completed"), &json!(1007)));
}

#[tokio::test]
async fn what_is_not_taken_is_sent_again_and_what_is_wrong_left_out() {
    let plan = vec![Does::Fails(503), Does::Says(3, 429), Does::Says(3, 400)];
    let mut world = world(plan).await;
    world.ends(0..5);
    world.ship(Credentials::None).await;
    let index = world.index.lock().unwrap();
    let ids: Vec<&str> = index.documents.keys().map(String::as_str).collect();
    assert_eq!(ids, ["ns#1.0#u#1000", "ns#1.1#u#1001", "ns#1.2#u#1002", "ns#1.4#u#1004"]);
    assert!(index.documents.values().all(|(_, times)| *times == 1), "only what was not taken is sent again");
}

#[tokio::test]
async fn a_request_that_is_too_long_is_divided() {
    let mut world = world(vec![Does::Shortens(2)]).await;
    world.ends(0..2);
    world.index.lock().unwrap().plan = vec![Does::Shortens(1), Does::Shortens(1)];
    world.ship(Credentials::None).await;
    assert_eq!(world.sent(), [1, 1]);
}

#[tokio::test]
async fn the_document_for_which_a_request_is_refused_is_left_out_and_counted() {
    let mut world = world(vec![Does::Rejects(3)]).await;
    world.ends(0..7);
    world.ship(Credentials::None).await;
    assert_eq!(world.sent(), [1; 6]);
    assert!(!world.index.lock().unwrap().documents.contains_key("ns#1.3#u#1003"));
    let metrics = world.metrics.text();
    assert!(metrics.contains("\nslotwright_adstash_ads_refused_total 1\n"), "{metrics}");
}

/// Nobody has the key of this certificate.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBiDCCAS+gAwIBAgIUM9qSYpoKrPCCjXl8rPmLZ9j0jhMwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOdGVzdCBhdXRob3JpdHkwIBcNMjYxMTI5MTgxODMxWhgPMjEy
NjExMDUxODE4MzFaMBkxFzAVBgNVBAMMDnRlc3QgYXV0aG9yaXR5MFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAE0s49rxzAM5h0ywQDcZFN3AN5ySx/pcI5paGr2rqb
qFp1avPwmq5uFPZXTlN4vqfkuLiMK568vpFdPipFzSVfTKNTMFEwHQYDVR0OBBYE
FC9mKaaV1lit5EvQGXWmoT1305ZAMB8GA1UdIwQYMBaAFC9mKaaV1lit5EvQGXWm
oT1305ZAMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgTIpv65cc
TSkuwpB1d/ETCKXiygMQSnGH1sSB+p0LtpICIBBfvQsbOU6/+chjvKkFr0KYetcF
Amow1I4PBJiLzW8K
-----END CERTIFICATE-----
";

#[tokio::test]
async fn a_client_trusts_the_authorities_that_the_file_has_now() {
    let world = world(Vec::new()).await;
    let file = world.directory.path().join("ca.crt");
    let elastic = Elastic {
        url: world.url.clone(),
        index: "jobs".to_owned(),
        credentials: Credentials::None,
        authority: Some(file.clone()),
    };
    let directory = world.directory.path().to_owned();
    let shipper = Shipper { elastic, directory, clock: Clock::start(), figures: world.metrics.history() };
    let mut client = None;
    assert!(shipper.client(&mut client).await.is_err_and(|why| why.contains("ca.crt")));
    for before in ["", "", "# The authority of next year.\n"] {
        let text = format!("{before}{AUTHORITY}");
        fs::write(&file, &text).unwrap();
        shipper.client(&mut client).await.unwrap();
        assert_eq!(client.as_ref().unwrap().authorities.as_deref(), Some(text.as_bytes()));
    }
}

#[tokio::test]
async fn the_authorization_is_that_of_the_file() {
    let mut world = world(Vec::new()).await;
    let file = world.directory.path().join("authorization");
    fs::write(&file, "ApiKey abc\n").unwrap();
    world.ends(0..1);
    world.ship(Credentials::Authorization(file)).await;
    assert_eq!(world.index.lock().unwrap().authorization.as_deref(), Some("ApiKey abc"));
}

/// The checkpoint of a history that is gone does not keep the new one's ads.
#[tokio::test]
async fn a_history_that_begins_anew_is_shipped_from_its_beginning() {
    let mut world = world(Vec::new()).await;
    save(world.directory.path(), 99).unwrap();
    world.ends(0..2);
    world.ship(Credentials::None).await;
    assert_eq!(world.sent(), [1, 1]);
}
