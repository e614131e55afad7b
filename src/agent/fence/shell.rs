//! The fence of a running agent: reads the guard's heartbeat, writes the permit, and logs what keeps the agent from promising.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::directory::{Directory, HEARTBEAT, PERMIT};
use super::keeper::{Keeper, Listed};
use super::permit::{Heartbeat, Permit};
use crate::boot;
use crate::pods::{Pod, Pods};

/// The promise of an agent, and how it is kept.
#[derive(Debug)]
pub(crate) struct Fence {
    /// None if the site has installed no guard: then the agent never promises.
    directory: Option<Directory>,
    proc: PathBuf,
    /// None until what an earlier agent left in the directory is known.
    keeper: Option<Keeper>,
    /// Whether a renewal without the promise has succeeded, so that no earlier agent's promise is in force.
    unpromised: bool,
    /// What was wrong last, so that it is logged once.
    wrong: Option<String>,
    /// Whether the last renewal promised, so that a change is logged.
    promised: Option<bool>,
}

impl Fence {
    pub(crate) fn new(directory: Option<PathBuf>, proc: PathBuf) -> Self {
        let directory = directory.map(Directory::new);
        Self { directory, proc, keeper: None, unpromised: false, wrong: None, promised: None }
    }

    /// Reads what the guard says, and writes the permit if it has changed.
    pub(crate) fn pass(&mut self, pods: &Pods, remains: impl Fn(&str) -> bool) {
        let Some(directory) = self.directory.clone() else { return };
        let outcome = self.try_pass(&directory, pods, remains);
        let wrong = outcome.err().map(|error| error.to_string());
        if let Some(error) = wrong.as_ref().filter(|error| self.wrong.as_ref() != Some(error)) {
            tracing::warn!(%error, "the agent cannot tell the guard which pods may run");
        }
        self.wrong = wrong;
    }

    fn try_pass(
        &mut self,
        directory: &Directory,
        pods: &Pods,
        remains: impl Fn(&str) -> bool,
    ) -> io::Result<()> {
        let now = boot::now();
        let heartbeat = heartbeat(directory);
        let keeper = match &mut self.keeper {
            Some(keeper) => keeper,
            none => {
                none.insert(open(directory, &self.proc, heartbeat.as_ref().ok().and_then(Option::as_ref))?)
            }
        };
        keeper.heard(heartbeat.as_ref().ok().and_then(Option::as_ref), now);
        keeper.observe(pods, remains, now);
        if let Some(permit) = keeper.due_write() {
            let written = directory.write(PERMIT, &permit.text(), true);
            written.map_err(|error| named(directory, PERMIT, &error))?;
            keeper.wrote(permit);
        }
        heartbeat.map(drop)
    }

    /// Whether the renewal that is sent now is to promise.
    pub(crate) fn promise(&mut self, pods: &Pods) -> bool {
        let promises = self.keeper.as_mut().is_some_and(|keeper| {
            let promises = keeper.may_promise(pods);
            keeper.renewal_sent(promises);
            promises
        });
        if self.directory.is_some() && self.promised.replace(promises) != Some(promises) {
            let guard = self.keeper.as_ref().is_some_and(Keeper::is_guarded_at_all);
            if promises {
                tracing::info!(
                    "the agent promises to end pods when the node is cut off: the guard knows them"
                );
            } else if guard {
                tracing::info!(
                    "the agent does not promise to end pods yet: the guard does not know all of them"
                );
            } else {
                tracing::warn!(
                    "the agent does not promise to end pods when the node is cut off: no guard works on the node \
                     (systemctl status slotwright-guard)"
                );
            }
        }
        promises
    }

    /// Takes note of a renewal that succeeded.
    pub(crate) fn renewed(&mut self, sent: Duration, promised: bool) {
        self.unpromised |= !promised;
        if let Some(keeper) = &mut self.keeper {
            keeper.renewed(sent, promised, boot::now());
        }
    }

    /// As [`Keeper::wants_list`].
    pub(crate) fn wants_list(&self) -> Option<Duration> {
        self.keeper.as_ref().and_then(Keeper::wants_list)
    }

    /// As [`Keeper::listed`].
    pub(crate) fn listed(&mut self, sent: Duration, list: &BTreeMap<String, Listed>) {
        if let Some(keeper) = &mut self.keeper {
            keeper.listed(sent, list, boot::now());
        }
    }

    /// Whether the report may name the pod, which makes the promise cover the pod.
    pub(crate) fn may_name(&mut self, pod: &Pod) -> bool {
        match &mut self.keeper {
            Some(keeper) => keeper.may_name(pod),
            None => self.unpromised,
        }
    }
}

/// Reads what an earlier agent left. A permit that cannot be read may have had pods that must not run again: the agent does not
/// replace the permit, and does not promise.
fn open(directory: &Directory, proc: &std::path::Path, heartbeat: Option<&Heartbeat>) -> io::Result<Keeper> {
    let boot = boot::id(proc)?;
    let text = directory.read(PERMIT).map_err(|error| named(directory, PERMIT, &error))?;
    let found = text.map(|text| Permit::parse(&text)).transpose().map_err(|error| {
        let what = "; remove the file once nothing runs on the node that ran elsewhere meanwhile";
        io::Error::other(format!("{}: {error}{what}", directory.path(PERMIT).display()))
    })?;
    let read = heartbeat.map_or(0, |heartbeat| heartbeat.sequence);
    Ok(Keeper::new(&boot, found, read))
}

fn heartbeat(directory: &Directory) -> io::Result<Option<Heartbeat>> {
    let text = directory.read(HEARTBEAT).map_err(|error| named(directory, HEARTBEAT, &error))?;
    let parsed = text.map(|text| Heartbeat::parse(&text)).transpose();
    parsed.map_err(|error| io::Error::other(format!("{}: {error}", directory.path(HEARTBEAT).display())))
}

fn named(directory: &Directory, name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", directory.path(name).display()))
}
