//! Runs the demo from beginning to end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::cluster::{self, Cluster, Kubeconfig};
use super::manifests::{self, Applier, Manifest};
use super::scene::{Capacity, Key, Scene};
use super::screen::Screen;
use super::sights::Sights;
use super::summary::{self, Ending, Outcome};
use super::verdict::judge;
use super::{DemoArgs, Error};
use controller::creators::Stamps;
use controller::seal::Seals;
use hollow::server::RunningServer;
use hollow::watchdog::watch::Watch;

/// The name under which the API server counts the operator's requests.
const OPERATOR: &str = "slotwright-operator";
/// How often the table is drawn.
const FRAME: Duration = Duration::from_millis(250);
/// How long the demo waits, after the last job has completed, for the operator to end all claims and write the last
/// figures.
const SETTLED_WITHIN: Duration = Duration::from_secs(15);
/// How long the demo waits for the first job's slot.
const FIRST_WITHIN: Duration = Duration::from_secs(10);
/// How long the operator may take to stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(8);

type Operator = JoinHandle<Result<(), controller::Error>>;

/// Runs the demo until its end or `stop`.
pub(super) async fn play(args: &DemoArgs, stop: &CancellationToken) -> Result<ExitCode, Error> {
    let needed = !args.cluster_only || args.examples.is_some();
    let files = if needed { manifests::find(args.examples.as_deref())? } else { Vec::new() };
    let broken = args.broken.as_deref().map_or_else(|| Ok(Vec::new()), manifests::read_dir)?;
    let mut screen = Screen::new();
    screen.say(&introduction(args))?;
    let starting = Box::pin(stop.run_until_cancelled(Cluster::start(args.port, args.nodes)));
    let Some(cluster) = starting.await.transpose()? else {
        return Ok(ExitCode::from(130));
    };
    let Capacity { nodes, cores, gpus } = cluster.capacity;
    let url = &cluster.server.url;
    screen.say(&format!(
        "An embedded cluster serves at {url}: {nodes} hollow nodes with {cores} cores and {gpus} GPUs."
    ))?;
    let named = args.serve || args.cluster_only || args.kubeconfig.is_some();
    let kubeconfig =
        named.then(|| Kubeconfig::write(&cluster.server, args.kubeconfig.as_deref())).transpose()?;
    if let Some(kubeconfig) = &kubeconfig {
        screen.say(&format!("KUBECONFIG={}", kubeconfig.path.display()))?;
    }
    let code = if args.cluster_only {
        serve_bare(&cluster, &files, &mut screen, stop).await?
    } else {
        let show = Show::start(&cluster, screen).await?;
        let kubeconfig = kubeconfig.as_ref().filter(|_| args.serve);
        show.play(args, [&files, &broken], &cluster.server, kubeconfig, stop).await?
    };
    cluster.shutdown().await;
    Ok(code)
}

/// Serves the cluster without an operator.
async fn serve_bare(
    cluster: &Cluster,
    files: &[Manifest],
    screen: &mut Screen,
    stop: &CancellationToken,
) -> Result<ExitCode, Error> {
    let mut applier = Applier::new(cluster::client(&cluster.server, "kubectl")?);
    apply(&mut applier, files, screen).await?;
    screen.say(
        "There is no operator: start `slotwright operator` with this KUBECONFIG. Ctrl-C ends the cluster.",
    )?;
    stop.cancelled().await;
    Ok(ExitCode::SUCCESS)
}

/// The files up to the first one with a job, and the others.
fn with_jobs(files: &[Manifest]) -> (&[Manifest], &[Manifest]) {
    let has_job = |file: &Manifest| file.text.lines().any(|line| line.trim_end() == "kind: HTCJob");
    let first = files.iter().position(has_job).map_or(files.len(), |place| place + 1);
    files.split_at_checked(first).unwrap_or((files, &[]))
}

/// Applies files, and shows that. Returns the jobs that the server took, and the manifests that it refused.
async fn apply(
    applier: &mut Applier,
    files: &[Manifest],
    screen: &mut Screen,
) -> Result<(BTreeSet<Key>, Vec<String>), Error> {
    let (mut jobs, mut refused) = (BTreeSet::new(), Vec::new());
    for file in files {
        let result = applier.apply(file).await;
        if !result.taken.is_empty() {
            screen.say(&format!("applied {}: {}", file.name, result.taken.join(" ")))?;
        }
        for refusal in &result.refused {
            screen.say(&format!("refused {refusal}"))?;
        }
        jobs.extend(result.jobs);
        refused.extend(result.refused);
    }
    Ok((jobs, refused))
}

/// Everything that runs on the cluster.
struct Show {
    screen: Screen,
    scene: Scene,
    sights: Sights,
    watchdog: Watch,
    applier: Applier,
    operator: Option<Operator>,
    operator_stop: CancellationToken,
}

impl Show {
    async fn start(cluster: &Cluster, screen: Screen) -> Result<Self, Error> {
        let server = &cluster.server;
        let sights = Sights::start(&cluster::client(server, "slotwright-demo")?).await;
        let watchdog = Watch::start(&cluster::client(server, "watchdog")?);
        let operator_stop = CancellationToken::new();
        // The demo's operator takes part in the election, so that another operator on the same cluster waits.
        let options = controller::Options {
            history: None,
            webhook_serves: None,
            health_addr: None,
            metrics_addr: None,
            leader_elect_namespace: Some(cluster::NAMESPACE.to_owned()),
            identity: "slotwright-demo".to_owned(),
            pod_uid: None,
        };
        let operator = tokio::spawn(controller::run(
            cluster::config(server, OPERATOR)?,
            options,
            <(Seals, Stamps)>::default(),
            operator_stop.clone(),
        ));
        Ok(Self {
            screen,
            scene: Scene::new(cluster.capacity),
            sights,
            watchdog,
            applier: Applier::new(cluster::client(server, "kubectl")?),
            operator: Some(operator),
            operator_stop,
        })
    }

    /// Runs to the end and prints the summary; with `kubeconfig`, then serves on until `stop`. At last it ends the
    /// operator, before the server goes.
    async fn play(
        mut self,
        args: &DemoArgs,
        files: [&[Manifest]; 2],
        server: &RunningServer,
        kubeconfig: Option<&Kubeconfig>,
        stop: &CancellationToken,
    ) -> Result<ExitCode, Error> {
        let outcome = self.run(args, files, server, stop).await?;
        self.screen.clear()?;
        self.screen.say(&format!("\n{}", outcome.text().trim_end()))?;
        match kubeconfig {
            Some(kubeconfig) if !stop.is_cancelled() => {
                self.screen.say(&invitation(&kubeconfig.path, &outcome.scene))?;
                self.stay(stop).await;
            }
            None if outcome.ending == Ending::Complete => self.screen.say(NEXT)?,
            _ => {}
        }
        self.stop_operator().await;
        Ok(match outcome.ending {
            Ending::Interrupted => ExitCode::from(130),
            _ if outcome.is_good() => ExitCode::SUCCESS,
            _ => ExitCode::from(1),
        })
    }

    /// Applies the files, and then those that are broken on purpose, and shows progress to the end.
    async fn run(
        &mut self,
        args: &DemoArgs,
        [files, broken]: [&[Manifest]; 2],
        server: &RunningServer,
        stop: &CancellationToken,
    ) -> Result<Outcome, Error> {
        let began = Instant::now();
        let deadline = began + Duration::from_secs(args.timeout);
        let (first, others) = with_jobs(files);
        let (mut expected, mut refused) = apply(&mut self.applier, first, &mut self.screen).await?;
        if !others.is_empty() && !expected.is_empty() {
            self.first_slot(stop).await;
        }
        let (more, more_refused) = apply(&mut self.applier, others, &mut self.screen).await?;
        expected.extend(more);
        refused.extend(more_refused);
        let (broken_jobs, broken_refused) = apply(&mut self.applier, broken, &mut self.screen).await?;
        self.screen.say("")?;
        let ending = self.watch(&expected, began, deadline, stop).await?;
        let elapsed = began.elapsed();
        if ending == Ending::Complete {
            self.settle().await;
        }
        let mut watchdog = self.watchdog.report();
        if ending == Ending::Complete {
            // By the API all pods have ended, but the watchdog's own watch may be a moment behind.
            let seen = timeout(Duration::from_secs(5), self.watchdog.until(|seen| seen.live() == 0)).await;
            watchdog = seen.unwrap_or(watchdog);
        }
        let said = broken_jobs.iter().map(|key| format!("{key}: {}", summary::why(&self.scene, key)));
        Ok(Outcome {
            ending,
            verdict: judge(&self.scene, &watchdog),
            unfinished: self.scene.unfinished(&expected).into_iter().cloned().collect(),
            refused,
            broken: broken_refused.into_iter().chain(said).collect(),
            writes: writes(server),
            scene: self.scene.clone(),
            elapsed,
        })
    }

    /// Waits until the first job has a slot, or [`FIRST_WITHIN`] is over. The jobs that follow then arrive within the delay
    /// between two cycles, and the next cycle shares the pool among all their users. Without that, whoever comes first would
    /// get all that is free.
    async fn first_slot(&mut self, stop: &CancellationToken) {
        let until = Instant::now() + FIRST_WITHIN;
        while self.scene.carved() == 0 {
            tokio::select! {
                Some(sight) = self.sights.next() => self.scene.see(sight),
                () = sleep_until(until) => return,
                () = stop.cancelled() => return,
            }
        }
    }

    /// Shows progress until there is a reason to end.
    async fn watch(
        &mut self,
        expected: &BTreeSet<Key>,
        began: Instant,
        deadline: Instant,
        stop: &CancellationToken,
    ) -> Result<Ending, Error> {
        let mut frames = tokio::time::interval(FRAME);
        loop {
            tokio::select! {
                Some(sight) = self.sights.next() => {
                    self.scene.see(sight);
                    while let Some(more) = self.sights.pending() {
                        self.scene.see(more);
                    }
                    if self.scene.unfinished(expected).is_empty() {
                        self.screen.show(&self.scene, began.elapsed())?;
                        return Ok(Ending::Complete);
                    }
                }
                _ = frames.tick() => self.screen.show(&self.scene, began.elapsed())?,
                () = stop.cancelled() => return Ok(Ending::Interrupted),
                () = sleep_until(deadline) => return Ok(Ending::TimedOut),
                why = ended(&mut self.operator) => return Ok(Ending::OperatorEnded(why)),
            }
        }
    }

    /// Waits for `stop`, and drops what the watches see.
    async fn stay(&mut self, stop: &CancellationToken) {
        let forget = async { while self.sights.next().await.is_some() {} };
        stop.run_until_cancelled(forget).await;
        stop.cancelled().await;
    }

    /// Waits until the operator has ended all claims and written the last figures, or [`SETTLED_WITHIN`] is over.
    async fn settle(&mut self) {
        let until = Instant::now() + SETTLED_WITHIN;
        while !self.scene.is_settled() {
            tokio::select! {
                Some(sight) = self.sights.next() => self.scene.see(sight),
                () = sleep_until(until) => return,
            }
        }
    }

    async fn stop_operator(&mut self) {
        self.operator_stop.cancel();
        if let Some(operator) = self.operator.take() {
            let abort = operator.abort_handle();
            if timeout(STOPPED_WITHIN, operator).await.is_err() {
                abort.abort();
            }
        }
    }
}

/// The text with which the demo without --serve ends.
const NEXT: &str = "\nNext: `slotwright demo --serve` (from a checkout: `make demo ARGS=--serve`) keeps the pool up, with a kubeconfig \
                    for kubectl.\n      docs/tutorials/first-job.md submits a job of your own; docs/how-to/install.md is for a \
                    real cluster.";

/// Says at once what the demo is, and what its nodes are not.
fn introduction(args: &DemoArgs) -> String {
    let operator = if args.cluster_only { "" } else { ", and the operator" };
    let time =
        if args.examples.is_some() || args.cluster_only { "" } else { " The jobs take about half a minute." };
    format!(
        "This process serves a Kubernetes API, with hollow nodes{operator}. Hollow nodes pretend to run pods: no program runs, \
         and no image is pulled.{time}"
    )
}

/// Waits until the operator ends, and returns why.
async fn ended(operator: &mut Option<Operator>) -> String {
    let Some(running) = operator.as_mut() else { return std::future::pending().await };
    let result = running.await;
    *operator = None;
    match result {
        Ok(Ok(())) => "it stopped without being asked to".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    }
}

/// How many writes the operator made, by resource and subresource.
fn writes(server: &RunningServer) -> BTreeMap<String, u64> {
    let mut writes = BTreeMap::new();
    for (key, count) in server.request_counts() {
        if key.client == OPERATOR && key.is_write() {
            let dot = if key.subresource.is_empty() { "" } else { "/" };
            *writes.entry(format!("{}{dot}{}", key.resource, key.subresource)).or_default() += count;
        }
    }
    writes
}

/// Tells the user what to do with a cluster that stays up.
fn invitation(kubeconfig: &Path, scene: &Scene) -> String {
    let job = scene.jobs.keys().next();
    let describe = job.map_or_else(String::new, |key| {
        format!("  kubectl describe htcjob -n {} {}\n", key.namespace, key.name)
    });
    format!(
        "\nThe cluster and the operator stay up until Ctrl-C. In another terminal:\n\
         \x20 export KUBECONFIG={}\n\
         \x20 kubectl get htcjobs -A -o wide\n{describe}\
         \x20 kubectl get pslots,submitters,groupquotas\n\
         \x20 kubectl apply -f examples/broken/requirements.yaml    # a job with a mistake; docs/tutorials/first-job.md has one without\n\
         Pods run nothing here, so that `kubectl logs` has nothing to show.",
        kubeconfig.display()
    )
}
