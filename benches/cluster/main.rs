//! Measures what a batch of pods costs a real API server: with Slotwright; with `batch/v1` Jobs, the Job controller and
//! kube-scheduler; and with nobody, as pods that are created on their nodes and that only the played kubelets write to. Pods that
//! nobody manages cost the least that any manager can cost. All sides run in turns on the same server, with the same played nodes.
//!
//! `hack/bench-cluster.sh` starts the server and runs this program with `KUBECONFIG`, and with `SLOTWRIGHT_KUBE_STATE`: the
//! directory with the ids of the server's processes.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark")]
#![allow(
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark's own figures"
)]

mod measured;
mod processes;
mod sides;
mod table;
mod trouble;

use std::path::PathBuf;

use hollow::nodes::{HollowNodes, Options, shapes};
use kube::{Client, Config};

use self::measured::Turn;
use self::sides::{Alone, Batch, Ours, Side};
use self::trouble::{CASES, Proxy, SLOW};

/// The workload, as the command line says.
#[derive(Clone, Debug)]
pub struct Workload {
    /// How many procs.
    pub procs: u32,
    /// How many played nodes of eight cores.
    pub nodes: usize,
    /// How long a proc runs. With 0 it runs on, and the turn is over once all run.
    pub seconds: u64,
}

impl Workload {
    /// Reads PROCS,NODES,SECONDS.
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let workload = Self {
            procs: parts.next()?.parse().ok()?,
            nodes: parts.next()?.parse().ok()?,
            seconds: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(workload)
    }

    /// Whether procs end by themselves.
    pub const fn ends(&self) -> bool {
        self.seconds > 0
    }
}

/// A turn of each side.
pub struct Round {
    /// Slotwright's.
    pub ours: Turn,
    /// The Job controller's and kube-scheduler's.
    pub batch: Turn,
    /// The turn in which nobody managed the pods.
    pub alone: Turn,
}

/// A turn of Slotwright's in each of the [`CASES`].
pub type Troubled = Vec<Turn>;

struct Asked {
    trouble: bool,
    workloads: Vec<Workload>,
    turns: usize,
    page: Option<PathBuf>,
}

fn asked() -> Asked {
    let mut asked = Asked { trouble: false, workloads: Vec::new(), turns: 3, page: None };
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--turns" => asked.turns = arguments.next().unwrap().parse().expect("--turns: a number"),
            "--trouble" => asked.trouble = true,
            "--write" => asked.page = Some(arguments.next().expect("--write: a page").into()),
            text => asked.workloads.push(Workload::read(text).expect("a workload is PROCS,NODES,SECONDS")),
        }
    }
    asked
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let asked = asked();
    let mut config = Config::infer().await.expect("KUBECONFIG names the cluster");
    config.read_timeout = None;
    let client = Client::try_from(config).unwrap();
    sides::install(&client).await;
    let mut all: Vec<(Workload, Vec<Round>)> = Vec::new();
    let mut troubled: Vec<(Workload, Vec<Troubled>)> = Vec::new();
    for workload in asked.workloads {
        let shapes = shapes::uniform(workload.nodes, 8000, 64 << 30);
        let options = Options { writers: 32, lifecycle: false, ..Options::default() };
        let nodes = HollowNodes::start(client.clone(), shapes, options).await.unwrap();
        if asked.trouble {
            let mut rounds = Vec::new();
            for number in 0..asked.turns {
                rounds.push(in_trouble(&client, &workload, number).await);
            }
            nodes.shutdown().await;
            sides::remove_nodes(&client).await;
            troubled.push((workload, rounds));
            continue;
        }
        let mut rounds = Vec::new();
        for number in 0..asked.turns {
            let name = format!("turn-{number}");
            let ours = Ours::turn(&client, &workload, &name).await;
            eprintln!("{workload:?}: Slotwright: {ours:?}");
            let batch = Batch::turn(&client, &workload, &name).await;
            eprintln!("{workload:?}: batch/v1: {batch:?}");
            let alone = Alone::turn(&client, &workload, &name).await;
            eprintln!("{workload:?}: pods alone: {alone:?}");
            rounds.push(Round { ours, batch, alone });
        }
        nodes.shutdown().await;
        sides::remove_nodes(&client).await;
        all.push((workload, rounds));
    }
    let (text, place) = if asked.trouble {
        (table::troubled(&troubled), table::TROUBLE)
    } else {
        (table::table(&all), table::CLUSTER)
    };
    println!("{text}");
    if let Some(page) = asked.page {
        table::write(&page, &text, place);
    }
}

/// A turn in each of the [`CASES`].
async fn in_trouble(client: &Client, workload: &Workload, number: usize) -> Troubled {
    let mut turns = Vec::new();
    for case in CASES {
        let proxy = Proxy::start(client, case.trouble).await;
        let mut beside = None;
        if case.beside {
            beside = Some(sides::namespace(client, &format!("{SLOW}{number}")).await);
        }
        let (name, kubeconfig) = (format!("turn-{number}"), proxy.kubeconfig());
        let turn = Ours::turn_through(client, workload, &name, Some(&kubeconfig), beside.as_deref()).await;
        eprintln!("{workload:?}, {}: {turn:?}", case.title);
        turns.push(turn);
    }
    turns
}
