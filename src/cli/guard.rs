//! `slotwright guard`: runs the guard of a node.

use std::convert::Infallible;
use std::path::PathBuf;

use clap::Args;

use agent::{GuardError, GuardOptions};

/// Run the guard of a node, on the host: it ends pods of the pool when the node is cut off, even if the agent is dead.
#[derive(Args, Debug)]
pub struct GuardArgs {
    /// The directory that the guard shares with the node's agent.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/slotwright")]
    fence_directory: PathBuf,
    /// The kubelet's root directory.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/kubelet")]
    kubelet_root: PathBuf,
    /// Where the node's cgroups are mounted.
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup")]
    cgroup_root: PathBuf,
    /// Where the node's /proc is.
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    proc_root: PathBuf,
}

/// Runs the guard until a signal ends it.
///
/// # Errors
/// When the guard cannot begin.
pub fn run(args: GuardArgs) -> Result<Infallible, GuardError> {
    agent::run_guard(GuardOptions {
        directory: args.fence_directory,
        kubelet: args.kubelet_root,
        cgroup: args.cgroup_root,
        proc: args.proc_root,
    })
}
