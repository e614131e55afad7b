//! Devices on real nodes: which of them a pod has got, as the kubelet tells the agent.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use api::NodeReport;
use bytes::Bytes;
use http::Request;
use kube::api::Api;
use serde_json::json;

use crate::agents::Desk;
use crate::cluster::{Cluster, only_on, state};
use crate::cron::program;
use crate::program::{proof_dir, shell};

const NODE: u32 = 3;
const GPUS: [&str; 2] = ["GPU-a", "GPU-b"];

/// The kubelet's directory of device plugins, where every node has a mount of its own.
fn plugins() -> PathBuf {
    state().join(format!("node{NODE}")).join("device-plugins")
}

/// A field of Protocol Buffers with a length, of up to 127 bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

/// The contents of the fields of this number, in a message of short fields.
fn fields(message: &[u8], number: u8) -> Vec<&[u8]> {
    let (mut rest, mut found) = (message, Vec::new());
    while let [key, length, after @ ..] = rest {
        let (content, others) = after.split_at(usize::from(*length));
        if *key == number << 3 | 2 {
            found.push(content);
        }
        rest = others;
    }
    found
}

/// A message as gRPC sends it.
fn message(content: &[u8]) -> Bytes {
    [&[0], &u32::try_from(content.len()).unwrap().to_be_bytes()[..], content].concat().into()
}

/// Registers the plugin with the node's kubelet.
async fn register(socket: &Path) {
    let stream = tokio::net::UnixStream::connect(plugins().join("kubelet.sock")).await.unwrap();
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post("http://localhost/v1beta1.Registration/Register")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let (answer, mut body) = sender.send_request(request, false).unwrap();
    let name = socket.file_name().unwrap().as_encoded_bytes();
    let content = [field(1, b"v1beta1"), field(2, name), field(3, b"nvidia.com/gpu")].concat();
    body.send_data(message(&content), true).unwrap();
    let mut data = answer.await.unwrap().into_body();
    while data.data().await.is_some() {}
    assert_eq!(data.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    connection.abort();
}

/// A device plugin with two GPUs, which tells each container by `DEVICE` which one it has. Lives as long as the test. Kubelets
/// since 1.25 ask a plugin for its options first.
async fn device_plugin(cluster: &Cluster) {
    let asks_for_options = cluster.minor_version().await >= 25;
    let socket = plugins().join("played.sock");
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || serve(&mut stream, asks_for_options));
        }
    });
    register(&socket).await;
}

/// Answers one connection of a kubelet, until its end. The kubelet of Kubernetes 1.20 names a path as its `:authority`, which h2
/// refuses as no authority, so the frames are read here. A kubelet asks for the options, if it does, and then for the list of
/// devices, both with an empty message; the message of Allocate is not empty.
fn serve(stream: &mut UnixStream, mut asks_for_options: bool) -> Option<()> {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).ok()?;
    write(stream, SETTINGS, 0, 0, &[])?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let [a, b, c, kind, flags, id @ ..] = head;
        let mut payload = vec![0; usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap()];
        stream.read_exact(&mut payload).ok()?;
        let id = u32::from_be_bytes(id);
        match kind {
            SETTINGS | PING if flags & 1 == 0 => {
                let answer: &[u8] = if kind == PING { &payload } else { &[] };
                write(stream, kind, 1, 0, answer)?;
            }
            DATA if payload.len() >= 5 => {
                // The first entry of the header table that says :status 200, and a literal.
                let head = [&[0x88], &literal("content-type", "application/grpc")[..]].concat();
                write(stream, HEADERS, 4, id, &head)?;
                let asked = &payload[5..];
                let asks_for_options = asked.is_empty() && std::mem::take(&mut asks_for_options);
                let (answer, goes_on) = match asked {
                    [] if asks_for_options => (Vec::new(), false),
                    // The list of devices goes on for as long as the plugin lives.
                    [] => (devices(), true),
                    _ => (allocated(asked), false),
                };
                write(stream, DATA, 0, id, &message(&answer))?;
                if !goes_on {
                    write(stream, HEADERS, 4 | 1, id, &literal("grpc-status", "0"))?;
                }
            }
            _ => {}
        }
    }
}

fn write(stream: &mut UnixStream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> Option<()> {
    let length = &u32::try_from(payload.len()).unwrap().to_be_bytes()[1..];
    stream.write_all(&[length, &[kind, flags], &id.to_be_bytes(), payload].concat()).ok()
}

/// A header in HPACK, in full.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// ListAndWatchResponse.
fn devices() -> Vec<u8> {
    let device = |id: &&str| field(1, &[field(1, id.as_bytes()), field(2, b"Healthy")].concat());
    GPUS.iter().flat_map(device).collect()
}

/// AllocateResponse, with a variable for each container of an AllocateRequest: its devicesIDs.
fn allocated(asked: &[u8]) -> Vec<u8> {
    let ids = |container: &&[u8]| fields(container, 1).concat();
    let env = |id: Vec<u8>| field(1, &field(1, &[field(1, b"DEVICE"), field(2, &id)].concat()));
    fields(asked, 1).iter().map(ids).flat_map(env).collect()
}

/// The policy holds whoever has the second GPU and leaves it idle. Which proc has it, only the kubelet knows: the operator knows no
/// ids. How busy it is, only the monitor knows.
const POLICY: &str = "
PREEMPT = stringListMember(\"GPU-b\", AssignedGPUs) && GPUsAverageUsage < 0.3
WANT_HOLD = $(PREEMPT)
MachineMaxVacateTime = 2
STARTD_CRON_JOBLIST = gpus
STARTD_CRON_gpus_EXECUTABLE = gpus
STARTD_CRON_gpus_PERIOD = 1
STARTD_CRON_gpus_METRICS = SUM:GPUs, PEAK:GPUsMemory
";

/// Says that the first GPU is busy nearly all the time, and the second a tenth of it.
const MONITOR: &str = r#"#!/bin/sh
of() { printf 'SlotMergeConstraint = StringListMember("%s", AssignedGPUs)\nUptimeGPUsSeconds = %s\nUptimeGPUsMemoryPeakUsage = %s\n- %s\n' "$@" "$1"; }
of GPU-a 0.9 700
of GPU-b 0.1 70
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_policy_sees_the_device_that_the_kubelet_has_given_to_the_pod() {
    let cluster = Cluster::start("devices", POLICY).await;
    device_plugin(&cluster).await;
    let node = format!("node{NODE}");
    cluster
        .until("the kubelet tells of the GPUs", 30, || async {
            let capacity = cluster.nodes().get(&node).await.unwrap().status.unwrap().allocatable;
            capacity.is_some_and(|all| all.get("nvidia.com/gpu").is_some_and(|amount| amount.0 == "2"))
        })
        .await;
    let desk = Desk::with_programs(&cluster, NODE, |directory| program(directory, "gpus", MONITOR));
    desk.reports(&cluster).await;
    let script = "mkdir -p /proof/train; echo \"$DEVICE\" >/proof/train/$_CONDOR_PROC.device; sleep 600";
    let mut job = shell("devices", "train", 2, script);
    job["spec"]["requests"]["gpus"] = json!(1);
    only_on(&node)(&mut job);
    cluster.apply(job).await;
    let device = |proc: u32| {
        let path = proof_dir("devices").join("train").join(format!("{proc}.device"));
        std::fs::read_to_string(path).map(|text| text.trim().to_owned()).ok()
    };
    cluster.until("both know their GPUs", 60, || async { device(0).is_some() && device(1).is_some() }).await;
    let mut both = [device(0).unwrap(), device(1).unwrap()];
    let second = u32::from(both[1] == GPUS[1]);
    both.sort();
    assert_eq!(both, GPUS);
    let held = || async {
        let held = cluster.jobs().get("train").await.unwrap().status.unwrap_or_default().held_procs;
        held.iter().map(|one| one.procs.clone()).collect::<Vec<_>>()
    };
    cluster.until("a proc is held", 240, || async { !held().await.is_empty() }).await;
    assert_eq!(held().await, [second.to_string()], "the one whose program says {}", GPUS[1]);
    cluster.throughout("the other runs on", 5, || async { held().await.len() == 1 }).await;
    let report = Api::<NodeReport>::all(cluster.client.clone()).get(&node).await.unwrap();
    let reported = report.status.unwrap().pod_devices;
    assert!(
        reported.iter().all(|one| one.resource == "nvidia.com/gpu" && one.ids.len() == 1),
        "{reported:?}"
    );
    cluster
        .until("what the first GPU does is told", 120, || async {
            let report = Api::<NodeReport>::all(cluster.client.clone()).get(&node).await.unwrap();
            let usage = report.status.unwrap_or_default().usage;
            let busy = |metrics: &std::collections::BTreeMap<String, f64>| {
                let average =
                    metrics.get("GPUsAverageUsage").is_some_and(|average| (0.4..2.0).contains(average));
                average && metrics.get("GPUsMemoryUsage") == Some(&700.0)
            };
            usage.iter().any(|usage| busy(&usage.metrics))
        })
        .await;
}
