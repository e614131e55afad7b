//! The call of the kubelet's pod-resources API: gRPC over HTTP/2, on a socket of the node.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::pin::pin;

use http::{HeaderMap, Request};
use thiserror::Error;
use tokio::net::UnixStream;

use super::wire::{self, Devices, Malformed};

/// The most bytes of an answer. A pod has some hundred bytes.
const MAX_ANSWER: usize = 4 << 20;
/// The bytes before a message: whether the message is compressed, and its length.
const PREFIX: usize = 5;

/// Why the kubelet has not told.
#[derive(Debug, Error)]
pub(super) enum Error {
    #[error("{0}")]
    Socket(#[from] io::Error),
    #[error("{0}")]
    Http2(#[from] h2::Error),
    #[error("{0}")]
    Request(#[from] http::Error),
    #[error("the kubelet says {0}")]
    Refused(String),
    #[error("the answer has more than {MAX_ANSWER} bytes")]
    TooLong,
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("no answer in time")]
    TooSlow,
}

/// Asks the kubelet that listens on `socket` for the devices of its pods, by `NAMESPACE/NAME`.
pub(super) async fn list(socket: &Path) -> Result<BTreeMap<String, Devices>, Error> {
    let (mut sender, connection) = h2::client::handshake(UnixStream::connect(socket).await?).await?;
    let ask = async {
        let request = Request::post("http://localhost/v1.PodResourcesLister/List")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
        let (answer, mut body) = sender.send_request(request, false)?;
        // An empty message: no compression, no bytes.
        body.send_data(bytes::Bytes::from_static(&[0; PREFIX]), true)?;
        let answer = answer.await?;
        if !answer.status().is_success() {
            return Err(Error::Refused(answer.status().to_string()));
        }
        // A call that is refused at once has its status among the headers.
        check(answer.headers())?;
        let mut data = answer.into_body();
        let mut message = Vec::new();
        while let Some(chunk) = data.data().await {
            let chunk = chunk?;
            data.flow_control().release_capacity(chunk.len())?;
            message.extend_from_slice(&chunk);
            if message.len() > MAX_ANSWER {
                return Err(Error::TooLong);
            }
        }
        check(&data.trailers().await?.unwrap_or_default())?;
        Ok(wire::list(unprefixed(&message)?)?)
    };
    // The connection's future moves the bytes. A kubelet that closes the connection may have answered before.
    let mut ask = pin!(ask);
    tokio::select! {
        biased;
        answer = &mut ask => return answer,
        ended = connection => ended?,
    }
    ask.await
}

/// Checks the status of a call, if these headers have it.
fn check(headers: &HeaderMap) -> Result<(), Error> {
    let text =
        |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match text("grpc-status") {
        Some(status) if status != "0" => {
            Err(Error::Refused(format!("gRPC status {status}: {}", text("grpc-message").unwrap_or_default())))
        }
        _ => Ok(()),
    }
}

/// The message after its prefix. The kubelet compresses only if it is asked to.
fn unprefixed(body: &[u8]) -> Result<&[u8], Malformed> {
    let (prefix, message) = body.split_first_chunk::<PREFIX>().ok_or(Malformed)?;
    let [compressed, length @ ..] = *prefix;
    let whole = usize::try_from(u32::from_be_bytes(length)).is_ok_and(|length| length == message.len());
    if compressed == 0 && whole { Ok(message) } else { Err(Malformed) }
}
