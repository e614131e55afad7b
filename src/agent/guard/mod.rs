//! The guard of a node: a small program on the host that keeps the agent's promise even if the agent is dead. It ends the pods
//! whose permit is over.
//!
//! | part | does |
//! | --- | --- |
//! | `pass` | what the guard does once a second |
//! | `message` | leaves the termination message in the containers of a pod |
//! | `notify` | tells systemd that the guard lives |
//!
//! The permit is the agent's ([`crate::fence`]). The guard ends only pods that the permit names. It opens no connection.

mod message;
mod notify;
mod pass;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use self::notify::Supervisor;
use self::pass::Guard;
use crate::boot;

/// The pause between two passes.
const PASS_EVERY: Duration = Duration::from_secs(1);

/// Where the guard finds things on its node.
#[derive(Clone, Debug)]
pub struct GuardOptions {
    /// The directory that the agent and the guard share.
    pub directory: PathBuf,
    /// The kubelet's root directory, which has the files of termination messages.
    pub kubelet: PathBuf,
    /// The node's `/sys/fs/cgroup`.
    pub cgroup: PathBuf,
    /// The node's `/proc`.
    pub proc: PathBuf,
}

/// Why the guard does not run.
#[derive(Debug, Error)]
pub enum GuardError {
    /// The boot cannot be told from another.
    #[error("the boot has no id: {0}")]
    Boot(#[source] io::Error),
    /// The directory is missing, and cannot be made.
    #[error("{}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Runs the guard for ever. A pass that fails is logged, and followed by the next.
///
/// # Errors
/// When the guard cannot begin.
pub fn run(options: GuardOptions) -> Result<std::convert::Infallible, GuardError> {
    let boot = boot::id(&options.proc).map_err(GuardError::Boot)?;
    std::fs::create_dir_all(&options.directory)
        .map_err(|source| GuardError::Directory { path: options.directory.clone(), source })?;
    let supervisor = Supervisor::from_environment();
    let mut guard = Guard::new(options, boot);
    guard.pass(boot::now());
    supervisor.tell("READY=1");
    loop {
        std::thread::sleep(PASS_EVERY);
        guard.pass(boot::now());
        supervisor.tell("WATCHDOG=1");
    }
}
