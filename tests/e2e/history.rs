//! Procs that have ended are in the history, once, whatever becomes of the operator.

use std::collections::BTreeMap;
use std::path::Path;

use hollow::nodes::shapes;
use kube::api::DeleteParams;
use kube::{Client, Config};
use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Cluster, eventually, job};

/// A port that is free now.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The ads of a history in the long form: attributes by name, with the times that each ad is there.
fn ads(text: &str) -> BTreeMap<String, (u32, BTreeMap<String, String>)> {
    let mut all: BTreeMap<String, (u32, BTreeMap<String, String>)> = BTreeMap::new();
    let mut ad = BTreeMap::new();
    for line in text.lines() {
        if line.starts_with("*** END") {
            break;
        } else if line.starts_with("***") {
            let ad: BTreeMap<String, String> = std::mem::take(&mut ad);
            let id = format!("{}.{}", ad["ClusterId"], ad["ProcId"]);
            let entry = all.entry(id).or_default();
            *entry = (entry.0 + 1, ad);
        } else if let Some((name, value)) = line.split_once(" = ") {
            ad.insert(name.to_owned(), value.to_owned());
        }
    }
    all
}

fn in_file(directory: &Path) -> BTreeMap<String, (u32, BTreeMap<String, String>)> {
    ads(&std::fs::read_to_string(directory.join("history")).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_is_in_the_history_once_though_the_operator_is_killed() {
    let mut cluster = Cluster::without_operator(shapes::uniform(2, 4000, 16 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("past").await;
    let (directory, port) = (TempDir::new().unwrap(), free_port());
    let path = directory.path().to_str().unwrap().to_owned();
    let address = format!("127.0.0.1:{port}");
    cluster.more_arguments = ["--history-dir", &path, "--history-addr", &address].map(str::to_owned).to_vec();
    cluster.start_operator();
    let fails = |job: &mut serde_json::Value| {
        job["spec"]["template"]["metadata"]["annotations"]["hollow.slotwright.dev/exit-code"] = json!("3");
    };
    cluster.apply(job("past", "sweep", 40, "300ms", |_| {})).await;
    cluster.apply(job("past", "fails", 2, "100ms", fails)).await;
    cluster.apply(job("past", "gone", 3, "1h", |job| job["spec"]["priority"] = json!(-9))).await;
    for killed in 0..4_usize {
        let enough = killed * 8;
        eventually("procs end", || async { in_file(directory.path()).len() > enough }).await;
        cluster.kill_operator();
        cluster.start_operator();
    }
    let sweep = cluster.completed("past", "sweep").await;
    let failed = cluster.completed("past", "fails").await;
    let gone = cluster.jobs("past").get("gone").await.unwrap();
    cluster.jobs("past").delete("gone", &DeleteParams::default()).await.unwrap();
    eventually("the job is gone", || async { cluster.jobs("past").get_opt("gone").await.unwrap().is_none() })
        .await;

    let client = Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap();
    let asked = http::Request::get("/history?forwards=true").body(Vec::new()).unwrap();
    let served = ads(&client.request_text(asked).await.unwrap());
    assert_eq!(served, in_file(directory.path()));
    assert_eq!(served.len(), 45);
    let number = |job: &api::HTCJob| job.status.as_ref().and_then(|status| status.cluster_id).unwrap();
    let of = |job: i64, proc: i64, name: &str| {
        let (times, ad) = &served[&format!("{job}.{proc}")];
        assert_eq!(*times, 1, "{job}.{proc}");
        ad.get(name).map_or("-", String::as_str).to_owned()
    };
    for (job, procs, status, code) in
        [(number(&sweep), 40, "4", "0"), (number(&failed), 2, "4", "3"), (number(&gone), 3, "3", "-")]
    {
        for proc in 0..procs {
            assert_eq!((of(job, proc, "JobStatus"), of(job, proc, "ExitCode")), (status.into(), code.into()));
        }
    }
    let first = |name: &str| of(number(&sweep), 0, name);
    assert_eq!((first("Owner").as_str(), first("JobName").as_str()), ("\"past\"", "\"sweep\""));
    assert!(first("LastRemoteHost").starts_with("\"slot1"), "{}", first("LastRemoteHost"));
    assert_ne!(first("CompletionDate"), "0");
    assert_eq!(of(number(&gone), 0, "RemoveReason"), "\"the HTCJob was deleted\"");
    let wrong = http::Request::get("/history?limit=x").body(Vec::new()).unwrap();
    assert!(client.request_text(wrong).await.is_err());
    cluster.stop().await;
}
