//! The load: how long another's procs take to start with 500 hostile jobs of one tenant beside them, and the operator's
//! memory. `hack/attack.sh load` runs this by itself, on the embedded server: the clock is a busy computer's.

use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use super::objects::MOST_MIB;
use super::{pool_of, row, running, submit};
use crate::harness::{Cluster, eventually, job};

const NODES: usize = 500;
const HOSTILE: usize = 500;
const PROCS: u32 = 100;
/// How often the time to start is taken, alone and beside. The median counts.
const TIMES: usize = 5;
/// How many times as long as alone the procs may take.
const MOST_TIMES: f64 = 2.0;

/// The expressions of the hostile jobs, with `B` of 11 KB.
const EXPENSIVE: [&str; 5] = [
    r#"regexp("(a{1,110}){1,110}b", B)"#,
    r#"replaceAll("(x?)", B, "\\1") == TARGET.Machine"#,
    r#"stringListSubsetMatch(strcat(B, ",", TARGET.Machine), B)"#,
    r#"regexp(strcat("(", TARGET.Machine, "|a){1,200}c"), B)"#,
    "versioncmp(strcat(B, TARGET.Machine), B) > 0 && member(B, {B, B, B, TARGET.Machine})",
];

/// The hostile job of this number. Four of five kinds wait for ever; the fifth starts 1,000 short procs.
fn hostile(number: usize) -> Value {
    let count = [PROCS, PROCS, 10, 100_000, 10][number % 5];
    job("tenant", &format!("hostile-{number}"), count, "2s", |job| match number % 5 {
        0 => {
            job["spec"]["requirements"] = json!(EXPENSIVE[number / 5 % EXPENSIVE.len()]);
            job["spec"]["rank"] = json!("size(B) + TARGET.Memory");
            job["spec"]["attributes"] = json!({"B": format!("\"{}\"", "a".repeat(11_000))});
        }
        1 => {
            job["spec"]["requests"] =
                json!({"gpus": 1, "resources": {format!("example.com/typo-{number}"): 1}});
        }
        2 => {
            let value = format!("{number} {}", "v".repeat(15_000));
            let env: Vec<Value> = (0..16).map(|n| json!({"name": format!("E{n}"), "value": value})).collect();
            job["spec"]["requirements"] = json!("TARGET.Memory < 0");
            job["spec"]["template"]["spec"]["containers"][0]["env"] = env.into();
        }
        3 => job["spec"]["requests"] = json!({"cpus": 64, "memory": format!("{}Mi", 128 + number)}),
        _ => job["spec"]["rank"] = json!(format!("TARGET.Memory * {number} + TARGET.Cpus")),
    })
}

/// How long it takes until all procs of another's job run. The job is gone afterwards.
async fn started_in(cluster: &Cluster, name: &str) -> Duration {
    let began = Instant::now();
    cluster.apply(job("others", name, PROCS, "1h", |_| {})).await;
    let all = async || running(cluster, "others", name).await == PROCS as usize;
    eventually("all procs run", all).await;
    let took = began.elapsed();
    cluster.jobs("others").delete(name, &DeleteParams::default()).await.unwrap();
    eventually("the job's slots are free", || async {
        let pods = cluster.pods("others").list(&ListParams::default()).await.unwrap();
        pods.iter().all(|pod| !pod.name_any().starts_with(name))
    })
    .await;
    took
}

async fn median(cluster: &Cluster, prefix: &str) -> Duration {
    let mut all = Vec::new();
    for time in 0..TIMES {
        all.push(started_in(cluster, &format!("{prefix}-{time}")).await);
    }
    println!("{prefix}: {all:?}");
    all.sort();
    all[TIMES / 2]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: hack/attack.sh load"]
async fn hostile_jobs_neither_delay_others_nor_take_memory() {
    let (mut cluster, tenant) = pool_of(NODES).await;
    // A job that comes to a quiet pool is matched at once; a job that comes to a busy pool waits first until the least time
    // between two cycles has passed, whoever keeps the pool busy. That wait is not what is measured.
    cluster.cycles_at_least(0).await;
    cluster.start_operator();
    eventually("all nodes are slots", || async {
        cluster.pslots().list(&ListParams::default()).await.unwrap().items.len() == NODES
    })
    .await;
    started_in(&cluster, "first").await;
    let alone = median(&cluster, "alone").await;
    let before = cluster.operator_peak_mib();
    for number in 0..HOSTILE {
        submit(&tenant, hostile(number)).await;
    }
    let beside = median(&cluster, "beside").await;
    let peak = cluster.operator_peak_mib();
    let times = beside.as_secs_f64() / alone.as_secs_f64();
    row(
        "load: time",
        format!("{HOSTILE} hostile jobs on {NODES} nodes"),
        format!(
            "another's {PROCS} procs run after {:.2} s alone, {:.2} s beside them: {times:.2} times (at most {MOST_TIMES})",
            alone.as_secs_f64(),
            beside.as_secs_f64()
        ),
    );
    row(
        "load: memory",
        format!("{HOSTILE} hostile jobs on {NODES} nodes"),
        format!("operator: VmHWM {before} MiB without them, {peak} MiB with them (under {MOST_MIB})"),
    );
    assert!(times <= MOST_TIMES, "{times:.2} times as long: {beside:?} instead of {alone:?}");
    assert!(peak < MOST_MIB, "{peak} MiB");
    cluster.stop().await;
}
