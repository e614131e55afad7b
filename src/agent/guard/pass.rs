//! The guard's work once a second.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{GuardOptions, message};
use crate::cgroup::{Cgroups, PodGroup};
use crate::fence::directory::{Directory, HEARTBEAT, PERMIT};
use crate::fence::permit::{Heartbeat, Permit};

/// The pause between two heartbeats that say the same.
const BEAT_EVERY: Duration = Duration::from_secs(3);

/// The state of a guard.
#[derive(Debug)]
pub(super) struct Guard {
    options: GuardOptions,
    directory: Directory,
    boot: String,
    /// None until they are found.
    cgroups: Option<Cgroups>,
    /// The last permit that could be read.
    permit: Option<Permit>,
    beat: Option<Heartbeat>,
    /// The pods that the guard has ended, so that each is logged once.
    ended: BTreeSet<String>,
    /// The faults of the last pass, so that each is logged once.
    wrong: Vec<String>,
}

impl Guard {
    pub(super) fn new(options: GuardOptions, boot: String) -> Self {
        let directory = Directory::new(options.directory.clone());
        let (ended, wrong) = (BTreeSet::new(), Vec::new());
        Self { options, directory, boot, cgroups: None, permit: None, beat: None, ended, wrong }
    }

    /// Reads the permit, ends the pods that may not run, and writes the heartbeat. A guard that could not do its work writes no
    /// heartbeat, so that the agent does not promise.
    pub(super) fn pass(&mut self, now: Duration) {
        let mut wrong = Vec::new();
        let able = self.read_permit(&mut wrong) & self.end_pods(now, &mut wrong);
        if able && let Err(error) = self.write_heartbeat(now) {
            wrong.push(error.to_string());
        }
        for what in wrong.iter().filter(|what| !self.wrong.contains(what)) {
            tracing::warn!("{what}");
        }
        self.wrong = wrong;
    }

    /// Reads the permit. As long as a new one cannot be read, the last one counts, which permits no more than the new one.
    fn read_permit(&mut self, wrong: &mut Vec<String>) -> bool {
        let path = self.directory.path(PERMIT);
        let parse = |text: Vec<u8>| {
            Permit::parse(&text).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
        };
        let read = self.directory.read(PERMIT).and_then(|text| text.map(parse).transpose());
        match read {
            Ok(Some(permit)) => self.permit = Some(permit),
            Ok(None) if self.permit.is_none() => {
                wrong.push(format!("{}: no agent has written it yet", path.display()));
            }
            Ok(None) => wrong.push(format!("{}: the file is gone; the last permit counts", path.display())),
            Err(error) => {
                wrong.push(format!("{error}; the last permit counts, if there was one"));
                return false;
            }
        }
        true
    }

    /// Ends the pods that may not run. Returns whether the guard could look at all of them.
    fn end_pods(&mut self, now: Duration, wrong: &mut Vec<String>) -> bool {
        let cgroups = match self.cgroups.take().map_or_else(|| Cgroups::detect(&self.options.cgroup), Ok) {
            Ok(cgroups) => &*self.cgroups.insert(cgroups),
            Err(error) => {
                wrong.push(error.to_string());
                return false;
            }
        };
        let Some(permit) = &self.permit else { return true };
        let over: BTreeSet<&str> = permit.over(&self.boot, now).collect();
        self.ended.retain(|uid| over.contains(&**uid));
        let groups = match cgroups.find_each(over) {
            Ok(groups) => groups,
            Err(error) => {
                wrong.push(format!("the cgroups of pods cannot be found: {error}"));
                return false;
            }
        };
        let mut able = true;
        for (uid, group) in groups {
            match end(&self.options.kubelet, &group, uid, wrong) {
                Ok(false) => {}
                Ok(true) => {
                    if self.ended.insert(uid.to_owned()) {
                        tracing::warn!(pod = uid, "the pod is ended: its permit is over");
                    }
                }
                Err(error) => {
                    wrong.push(format!("the pod {uid} cannot be ended: {error}"));
                    able = false;
                }
            }
        }
        able
    }

    /// Says that the guard lives and by which permit it acts: at once if the permit is a new one, else every few seconds.
    fn write_heartbeat(&mut self, now: Duration) -> io::Result<()> {
        let sequence = self.permit.as_ref().map_or(0, |permit| permit.sequence);
        let said =
            |beat: &Heartbeat| beat.sequence == sequence && now.saturating_sub(beat.passed) < BEAT_EVERY;
        if self.beat.as_ref().is_some_and(said) {
            return Ok(());
        }
        let beat = Heartbeat::new(&self.boot, now, sequence);
        self.directory.write(HEARTBEAT, &beat.text(), false)?;
        self.beat = Some(beat);
        Ok(())
    }
}

/// Ends what runs of a pod. Returns whether anything did.
fn end(kubelet: &Path, group: &PodGroup, uid: &str, wrong: &mut Vec<String>) -> io::Result<bool> {
    if !group.has_processes()? {
        return Ok(false);
    }
    // A pod whose message cannot be left is ended all the same: its end then seems to be its own, and its proc has failed.
    if let Err(error) = message::leave(kubelet, uid) {
        wrong.push(format!("the pod {uid} gets no termination message: {error}"));
    }
    group.kill().map(|()| true)
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
