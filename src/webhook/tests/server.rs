//! Reviews over real TLS on the loopback, by a client that knows the authority alone.

use std::io::{Read, Write};
use std::net::Ipv4Addr;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::*;
use crate::bodies::tests::bytes_held;
use crate::certificate::{Certificate, make, names, provider};

fn fresh() -> Certificate {
    let now = Duration::from_secs(controller::Clock::start().now().secs().cast_unsigned());
    make(&names("slotwright-webhook", "slotwright-system"), UnixTime::since_unix_epoch(now), None).unwrap()
}

pub(crate) struct Server {
    port: u16,
    pub(crate) certificate: watch::Sender<Option<Arc<ServerConfig>>>,
    room: Room,
    _known: watch::Sender<Arc<OtherObjects>>,
    _key: watch::Sender<Option<Key>>,
    _serving: JoinSet<()>,
}

pub(crate) async fn start() -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (known, now_known) = watch::channel(Arc::new(OtherObjects::nothing()));
    let (certificate, in_use) = watch::channel(None);
    let mut serving = JoinSet::new();
    let (key, of_seals) = watch::channel(None);
    let (clock, room) = (Clock::start(), Room::default());
    let parts = Serving { known: now_known, certificate: in_use, key: of_seals, clock };
    serving.spawn(serve_in(listener, parts, room.clone()));
    Server { port, certificate, room, _known: known, _key: key, _serving: serving }
}

/// A client that trusts these authorities alone.
fn client(authorities: &str) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authorities.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("slotwright-webhook.slotwright-system.svc").unwrap();
    ClientConnection::new(Arc::new(config), name).unwrap()
}

fn head(path: &str, bytes: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n"
    )
}

/// Posts a body as the API server does. The answer is the status and the body; an error is that of TLS.
pub(crate) async fn post_to(
    server: &Server,
    authorities: &str,
    path: &str,
    body: &[u8],
) -> std::io::Result<(String, String)> {
    let client = client(authorities);
    let head = head(path, body.len());
    let (port, body) = (server.port, body.to_vec());
    tokio::task::spawn_blocking(move || {
        let mut stream = StreamOwned::new(client, std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))?);
        stream.write_all(head.as_bytes())?;
        // A server that refuses a body for its size does not read all of it.
        let _ = stream.write_all(&body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        Ok((head.lines().next().unwrap_or_default().to_owned(), body.to_owned()))
    })
    .await
    .unwrap()
}

fn job(requirements: &str) -> Vec<u8> {
    let spec = json!({"requirements": requirements, "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}});
    let asked = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5", "kind": {"group": "slotwright.dev", "version": "v1alpha1", "kind": "HTCJob"},
        "resource": {"group": "slotwright.dev", "version": "v1alpha1", "resource": "htcjobs"},
        "name": "x", "namespace": "alice", "operation": "CREATE", "userInfo": {"username": "alice"}, "dryRun": true,
        "object": {"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "metadata": {"name": "x"}, "spec": spec}}});
    serde_json::to_vec(&asked).unwrap()
}

#[tokio::test]
async fn a_client_that_trusts_the_authority_alone_is_answered() {
    let (server, certificate) = (start().await, fresh());
    server.certificate.send_replace(Some(certificate.server().unwrap()));
    let ask = |body: Vec<u8>| {
        let (server, authorities) = (&server, &certificate.authorities);
        async move {
            let (status, body) = post_to(server, authorities, "/validate", &body).await.unwrap();
            assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
            serde_json::from_str::<Value>(&body).unwrap()["response"].clone()
        }
    };
    let refused = ask(job("1 +")).await;
    assert_eq!(
        (&refused["uid"], &refused["allowed"], &refused["status"]["code"]),
        (&json!("705ab4f5"), &json!(false), &json!(422))
    );
    assert!(refused["status"]["message"].as_str().unwrap().starts_with("spec.requirements: "), "{refused}");
    let warned = ask(job("Memroy > 1")).await;
    assert_eq!((&warned["allowed"], warned["warnings"].as_array().map(Vec::len)), (&json!(true), Some(1)));
    assert_eq!(ask(job("Memory > 1")).await["warnings"], Value::Null);
}

#[tokio::test]
async fn what_is_no_review_is_an_error_of_http() {
    let (server, certificate) = (start().await, fresh());
    server.certificate.send_replace(Some(certificate.server().unwrap()));
    for (path, body, status) in [
        ("/validate", b"{}".to_vec(), "400"),
        ("/validate", Vec::new(), "400"),
        ("/validate", vec![b' '; MOST_BYTES + 1], "413"),
        ("/other", job("true"), "404"),
    ] {
        let (answer, _) = post_to(&server, &certificate.authorities, path, &body).await.unwrap();
        assert!(answer.contains(status), "{path} with {} bytes: {answer}", body.len());
    }
}

/// The clients block this thread; the server has another.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn strangers_who_send_almost_a_whole_review_fill_no_memory_and_keep_no_review_out() {
    let (server, certificate) = (start().await, fresh());
    server.certificate.send_replace(Some(certificate.server().unwrap()));
    let mut strangers = Vec::new();
    for stranger in 0..24 {
        let stream = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        let mut stream = StreamOwned::new(client(&certificate.authorities), stream);
        stream.write_all(head("/validate", MOST_BYTES).as_bytes()).unwrap();
        // The server lets the stranger go while it still sends, if others need the room.
        let _ = stream.write_all(&vec![b' '; MOST_BYTES - 1]);
        strangers.push(stream);
        let held = bytes_held(&server.room.bodies);
        assert!(held <= 16 << 20, "{stranger}: {held}");
        if stranger % 8 == 7 {
            let (status, body) =
                post_to(&server, &certificate.authorities, "/validate", &job("true")).await.unwrap();
            assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
        }
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_served_at_once_and_none_is_served_before_there_is_one() {
    let (server, first, second) = (start().await, fresh(), fresh());
    assert!(post_to(&server, &first.authorities, "/validate", b"{}").await.is_err());
    server.certificate.send_replace(Some(first.server().unwrap()));
    assert!(post_to(&server, &first.authorities, "/validate", b"{}").await.is_ok());
    assert!(post_to(&server, &second.authorities, "/validate", b"{}").await.is_err(), "another's authority");
    server.certificate.send_replace(Some(second.server().unwrap()));
    assert!(post_to(&server, &second.authorities, "/validate", b"{}").await.is_ok());
}
