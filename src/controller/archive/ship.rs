//! Sends ads to an Elasticsearch bulk endpoint, as condor_adstash does.
//!
//! Nothing is lost across restarts: a file beside the history has the number of the last ad that Elasticsearch has taken. An ad
//! that is sent twice replaces its own document, which has the same id.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::history::{Direction, PageEnd, Query, Records, Search, Store};
use http::{Request, StatusCode};
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Clock;
use super::super::metrics::History as Figures;
use super::{HistoryProgress, aside, document};
use answers::Pauses;

/// The file that has the number of the last ad that was shipped.
const CHECKPOINT: &str = "adstash.checkpoint";
/// The most ads in a request.
const AT_A_TIME: usize = 1000;
/// The most bytes of ads that are read for a request.
const MOST_BYTES: usize = 4 << 20;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// An Elasticsearch, or an OpenSearch.
#[derive(Clone, Debug)]
pub struct Elastic {
    /// The server's address, such as `https://elastic.example.org:9200`.
    pub url: http::Uri,
    /// The index.
    pub index: String,
    /// The operator's credentials there.
    pub credentials: Credentials,
    /// A file with the certificates of the authorities that are trusted; if unset, those of the system are. The file is read for each
    /// request, so that a Secret may change.
    pub authority: Option<PathBuf>,
}

/// The operator's credentials at Elasticsearch. The file is read for each request, so that a Secret may change.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Requests have no header Authorization.
    None,
    /// A file with the value of the header Authorization, such as `ApiKey VnVhQ2Zh...` or `Basic ...`.
    Authorization(PathBuf),
}

/// Ships ads without end.
pub async fn ship(
    elastic: Elastic,
    directory: PathBuf,
    clock: Clock,
    pauses: Pauses,
    figures: Figures,
    progress: HistoryProgress,
) {
    let shipper = Shipper { elastic, directory, clock, figures };
    shipper.run(pauses, progress).await;
}

struct Shipper {
    elastic: Elastic,
    directory: PathBuf,
    clock: Clock,
    figures: Figures,
}

/// A document that is not shipped yet.
#[derive(Clone, Debug)]
struct Pending {
    id: String,
    body: String,
}

/// The outcome of a request.
#[derive(Debug)]
enum Answer {
    /// These documents are to be sent again, for this reason.
    Again(Vec<Pending>, String),
    /// Elasticsearch has all documents, but for those that were refused for ever and left out.
    Taken,
    /// The request was refused as a whole, for this reason: it is too long, or a document in it is wrong.
    Refused(String),
}

/// A client, with the authorities that it trusts.
struct Trusting {
    client: Client,
    /// The content of the file of authorities.
    authorities: Option<Vec<u8>>,
}

#[derive(Deserialize)]
struct BulkAnswer {
    #[serde(default)]
    items: Vec<Value>,
}

impl Shipper {
    async fn run(&self, pauses: Pauses, progress: HistoryProgress) {
        let mut client = None;
        let directory = self.directory.clone();
        let mut at = aside(move || checkpoint(&directory)).await.unwrap_or_default();
        progress.shipped.send_replace(Some(at));
        let mut written = progress.written.subscribe();
        loop {
            let last = *written.borrow_and_update();
            if last > 0 && at > last {
                // The history began anew, as after the loss of its volume.
                at = 0;
            }
            self.figures.waiting(last.saturating_sub(at));
            if last <= at {
                if written.changed().await.is_err() {
                    return;
                }
                continue;
            }
            match self.batch(at).await {
                Ok((pending, end)) => {
                    // There may be nothing to read: the files are damaged, or were removed.
                    at = if pending.is_empty() { end.max(last) } else { end };
                    self.send(&mut client, pending, pauses.clone()).await;
                    let directory = self.directory.clone();
                    if let Err(error) = aside(move || save(&directory, at)).await.flatten() {
                        // The ads are sent again after a restart, which changes nothing.
                        tracing::warn!(
                            error = %answers::chain(&error),
                            "the operator cannot note how far the history was shipped; a restart ships some ads again"
                        );
                    }
                    progress.shipped.send_replace(Some(at));
                }
                Err(error) => {
                    tracing::warn!(error = %answers::chain(&error), "the history cannot be read to be shipped");
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
            }
        }
    }

    /// The client, which is made anew when the file of authorities has changed.
    ///
    /// # Errors
    /// When the file cannot be read, or no client can be made.
    async fn client(&self, last: &mut Option<Trusting>) -> Result<Client, String> {
        let mut authorities = None;
        if let Some(path) = &self.elastic.authority {
            let file = path.clone();
            let read = aside(move || fs::read(file)).await.flatten();
            authorities = Some(read.map_err(|error| format!("{}: {error}", path.display()))?);
        }
        if let Some(last) = last.as_ref().filter(|last| last.authorities == authorities) {
            return Ok(last.client.clone());
        }
        let client = self.new_client()?;
        Ok(last.insert(Trusting { client, authorities }).client.clone())
    }

    fn new_client(&self) -> Result<Client, String> {
        let mut config = Config::new(self.elastic.url.clone());
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(10));
        config.read_timeout = Some(PATIENCE);
        config.write_timeout = Some(PATIENCE);
        config.root_cert_file.clone_from(&self.elastic.authority);
        Client::try_from(config).map_err(|error| format!("no client can be made: {error}"))
    }

    /// The documents of the ads after the ad of number `after`, and the number of the last ad that was passed.
    async fn batch(&self, after: u64) -> io::Result<(Vec<Pending>, u64)> {
        let (current, now) = (Store::file_in(&self.directory), self.clock.now().secs());
        let index = self.elastic.index.clone();
        let read = aside(move || {
            let search =
                Search { direction: Direction::Forwards, limit: Some(AT_A_TIME), ..Search::default() };
            let query = Query { search, attributes: None, from: Some(after), most_bytes: MOST_BYTES };
            let page = query.page(&current, now, &|| false)?;
            let (ads, _) = PageEnd::split(&page.text).unwrap_or_default();
            let mut records = Records::of(io::Cursor::new(ads), Direction::Forwards)?;
            let (mut pending, mut last) = (Vec::new(), after);
            while let Some(record) = records.next_record()? {
                last = record.banner.sequence.unwrap_or(last);
                if let Ok(ad) = record.ad() {
                    let (id, document) = document::of(&ad, now);
                    let action = json!({ "index": { "_index": index, "_id": id } });
                    pending.push(Pending { id, body: format!("{action}\n{document}\n") });
                }
            }
            // Damaged ads at the end are passed.
            Ok((pending, page.end.next.unwrap_or(last)))
        });
        read.await?
    }

    /// Sends documents until Elasticsearch has each, or refuses it for ever.
    async fn send(&self, client: &mut Option<Trusting>, documents: Vec<Pending>, mut pauses: Pauses) {
        let mut waiting = vec![documents];
        while let Some(next) = waiting.pop() {
            if next.is_empty() {
                continue;
            }
            match self.send_once(client, &next).await {
                Answer::Taken => kube::runtime::utils::Backoff::reset(&mut pauses),
                Answer::Refused(_) if next.len() > 1 => {
                    let (first, second) = next.split_at(next.len() / 2);
                    waiting.extend([second.to_vec(), first.to_vec()]);
                }
                Answer::Refused(why) => self.refuse(&next, &why),
                Answer::Again(left, why) => {
                    tracing::warn!(
                        documents = left.len(),
                        why,
                        "Elasticsearch has not taken documents; they are sent again"
                    );
                    waiting.push(left);
                    tokio::time::sleep(pauses.next().unwrap_or(PATIENCE)).await;
                }
            }
        }
    }

    async fn send_once(&self, client: &mut Option<Trusting>, documents: &[Pending]) -> Answer {
        let again = |why: String| Answer::Again(documents.to_vec(), why);
        let client = match self.client(client).await {
            Ok(client) => client,
            Err(why) => return again(why),
        };
        let body: String = documents.iter().map(|document| document.body.as_str()).collect();
        let mut request = Request::post("/_bulk").header("content-type", "application/x-ndjson");
        if let Credentials::Authorization(path) = &self.elastic.credentials {
            let file = path.clone();
            match aside(move || fs::read_to_string(file)).await.flatten() {
                Ok(text) => request = request.header("authorization", text.trim()),
                Err(error) => return again(format!("{}: {error}", path.display())),
            }
        }
        let request = match request.body(body.into_bytes().into()) {
            Ok(request) => request,
            Err(error) => return again(error.to_string()),
        };
        let answer = match client.send(request).await {
            Ok(answer) => answer,
            Err(error) => return again(error.to_string()),
        };
        let status = answer.status();
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            return Answer::Refused("the request is too long".to_owned());
        }
        let body = match answer.into_body().collect_bytes().await {
            Ok(body) => body,
            Err(error) => return again(error.to_string()),
        };
        if !status.is_success() {
            let text: String = String::from_utf8_lossy(&body).chars().take(300).collect();
            let why = format!("{status}: {text}");
            // The same request would be refused again. Another one, without the document that is wrong, is not.
            return if status == StatusCode::BAD_REQUEST { Answer::Refused(why) } else { again(why) };
        }
        match serde_json::from_slice::<BulkAnswer>(&body) {
            Ok(said) if said.items.len() == documents.len() => self.judge(documents, &said.items),
            Ok(_) => again("the answer is not about each document".to_owned()),
            Err(error) => again(format!("the answer cannot be read: {error}")),
        }
    }

    /// Sorts the documents by the answer about each: taken, to be sent again, or refused for ever.
    fn judge(&self, documents: &[Pending], items: &[Value]) -> Answer {
        let (mut left, mut why) = (Vec::new(), String::new());
        for (document, item) in documents.iter().zip(items) {
            let item = item.get("index").or_else(|| item.get("create")).unwrap_or(item);
            let status = item.get("status").and_then(Value::as_u64).unwrap_or(500);
            let said = || item.get("error").map(Value::to_string).unwrap_or_default();
            match status {
                200..300 => self.figures.shipped(1),
                // Elasticsearch lets the operator write again once somebody has mended rights, an index or a block.
                401 | 403 | 404 | 429 | 500.. => {
                    why = format!("{status}: {}", said());
                    left.push(document.clone());
                }
                _ => self.refuse(std::slice::from_ref(document), &format!("{status}: {}", said())),
            }
        }
        if left.is_empty() { Answer::Taken } else { Answer::Again(left, why) }
    }

    fn refuse(&self, documents: &[Pending], why: &str) {
        for document in documents {
            tracing::error!(
                id = document.id,
                why,
                "Elasticsearch does not take a document, which is left out"
            );
            self.figures.refused(1);
        }
    }
}

/// The number of the last ad that was shipped; 0 if none was, or the file cannot be read.
fn checkpoint(directory: &Path) -> u64 {
    let text = fs::read_to_string(directory.join(CHECKPOINT)).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

fn save(directory: &Path, number: u64) -> io::Result<()> {
    let (new, path) = (directory.join(format!("{CHECKPOINT}.new")), directory.join(CHECKPOINT));
    let mut file = File::create(&new)?;
    writeln!(file, "{number}")?;
    file.sync_all()?;
    fs::rename(new, path)
}

#[cfg(test)]
#[path = "ship_tests.rs"]
mod tests;
