//! The measurements of a turn.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kube::Client;

use super::processes::Processes;

/// The figures of one turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// From the apply until the first pod runs.
    pub first: Duration,
    /// From the apply until all procs have ended, or run.
    pub all: Duration,
    /// Processor time of the API server, in seconds.
    pub server_cpu: f64,
    /// Processor time of the side's own processes, in seconds.
    pub own_cpu: f64,
    /// The most memory of the side's own processes, in MiB.
    pub own_mib: u64,
    /// The writes that the API server counted, by verb and resource, those of the played kubelets included.
    pub writes: BTreeMap<String, u64>,
}

/// The state at the start of a turn.
pub struct Start {
    at: Instant,
    server_cpu: f64,
    own_cpu: f64,
    writes: BTreeMap<String, u64>,
}

impl Start {
    /// Begins to measure.
    pub async fn now(client: &Client, server: &Processes, own: &Processes) -> Self {
        let writes = writes(client).await;
        Self { server_cpu: server.cpu(), own_cpu: own.cpu(), writes, at: Instant::now() }
    }

    /// Ends the turn.
    pub async fn end(self, client: &Client, server: &Processes, own: &Processes, first: Duration) -> Turn {
        let all = self.at.elapsed();
        let (server_cpu, own_cpu) = (server.cpu() - self.server_cpu, own.cpu() - self.own_cpu);
        let mut writes = writes(client).await;
        for (what, before) in &self.writes {
            if let Some(now) = writes.get_mut(what) {
                *now -= before;
            }
        }
        writes.retain(|_, count| *count > 0);
        Turn { first, all, server_cpu, own_cpu, own_mib: own.peak_mib(), writes }
    }
}

/// The writes that the API server has answered, by verb and resource, from its metric `apiserver_request_total`.
async fn writes(client: &Client) -> BTreeMap<String, u64> {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let text = client.request_text(request).await.expect("the API server's metrics");
    let mut counts = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("apiserver_request_total{")) {
        let Some((labels, count)) = line.rsplit_once("} ") else { continue };
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        };
        let verb = label("verb").unwrap_or_default();
        if !matches!(verb, "POST" | "PUT" | "PATCH" | "APPLY" | "DELETE") {
            continue;
        }
        let sub = label(",subresource").filter(|sub| !sub.is_empty()).map(|sub| format!("/{sub}"));
        let what = format!("{verb} {}{}", label("resource").unwrap_or_default(), sub.unwrap_or_default());
        *counts.entry(what).or_default() += count.parse::<f64>().unwrap_or_default() as u64;
    }
    counts
}
