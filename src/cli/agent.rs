//! `slotwright agent`: runs the agent of a node.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::daemon::{self, Unable};
use super::logging::LogFormat;
use agent::{InputPaths, Options, Roots};

/// Run the agent of a node: it senses the node's owner, and suspends and kills pods of the pool.
#[derive(Args, Debug)]
// The arguments of a Deployment go before those that people add to it, and the last one counts.
#[command(args_override_self = true)]
pub struct AgentArgs {
    /// The name of the node.
    #[arg(long, env = "NODE_NAME")]
    node: String,
    /// Where the node's cgroups are mounted.
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup")]
    cgroup_root: PathBuf,
    /// Where the node's /proc is: load, memory, pressure.
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    proc_root: PathBuf,
    /// Where the node's /dev is: the terminals, which are looked at and never opened.
    #[arg(long, value_name = "DIR", default_value = "/dev")]
    dev_root: PathBuf,
    /// The session files of systemd-logind, which say which terminals are the console.
    #[arg(long, value_name = "DIR", default_value = "/run/systemd/sessions")]
    sessions: PathBuf,
    /// A directory on the file system whose free space is the node's scratch space.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/kubelet")]
    scratch: PathBuf,
    /// A file by which the site says when somebody used the node in a way that no terminal shows.
    #[arg(long, value_name = "FILE")]
    input_file: Option<PathBuf>,
    /// The directory that the agent shares with the node's guard (`slotwright guard`). With it, the agent promises to end pods
    /// when the node is cut off.
    #[arg(long, value_name = "DIR")]
    fence_directory: Option<PathBuf>,
    /// The directory with the programs that a NodePolicy may name as cron jobs (STARTD_CRON_JOBLIST). They run with the agent's
    /// rights.
    #[arg(long, value_name = "DIR")]
    cron_directory: Option<PathBuf>,
    /// The node's kubelet, which tells what its pods use of the disk: an IP address, or a URL such as https://n1:10250. The agent
    /// needs the right to get nodes/stats.
    #[arg(long, value_name = "ADDRESS")]
    kubelet: Option<String>,
    /// The certificates of the authorities that sign the kubelets' certificates, as PEM. Without this file the agent does not check
    /// the certificate of the kubelet, and shows its token to whoever answers at the kubelet's address.
    #[arg(long, value_name = "FILE", requires = "kubelet")]
    kubelet_ca: Option<PathBuf>,
    /// The socket of the kubelet's pod-resources API, which tells which devices each pod has, such as
    /// /var/lib/kubelet/pod-resources/kubelet.sock.
    #[arg(long, value_name = "SOCKET")]
    pod_resources: Option<PathBuf>,
    /// An address, such as [::]:8083, of a port that is open as long as the agent has renewed its Lease within 40 s: for a probe that
    /// only connects.
    #[arg(long, value_name = "ADDRESS")]
    ready_addr: Option<SocketAddr>,
    /// The form of the log: lines for people, or one JSON object a line.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub log_format: LogFormat,
}

/// Why the agent did not run.
#[derive(Debug, Error)]
pub enum Error {
    /// The agent cannot begin.
    #[error(transparent)]
    Start(#[from] Unable),
    /// The agent ended by itself.
    #[error(transparent)]
    Agent(#[from] agent::Error),
}

/// Runs the agent until SIGTERM or SIGINT.
///
/// # Errors
/// When no cluster can be found.
pub async fn run(args: AgentArgs) -> Result<ExitCode, Error> {
    let config = daemon::cluster().await?;
    let stop = CancellationToken::new();
    daemon::cancel_at_signals(&stop, "the pods that the agent has suspended run again")?;
    let roots = Roots {
        cgroup: args.cgroup_root,
        proc: args.proc_root,
        scratch: args.scratch,
        inputs: InputPaths { dev: args.dev_root, sessions: args.sessions, plug: args.input_file },
    };
    let options = Options {
        node: args.node,
        roots,
        fence: args.fence_directory,
        cron: args.cron_directory,
        kubelet: args.kubelet,
        kubelet_authorities: args.kubelet_ca,
        pod_resources: args.pod_resources,
        ready: args.ready_addr,
    };
    agent::run(config, options, stop).await?;
    Ok(ExitCode::SUCCESS)
}
