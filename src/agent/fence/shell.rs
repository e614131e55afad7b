//! The fence of a running agent: reads the guard's heartbeat, writes the permit, and logs what keeps the agent from promising.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::directory::{Directory, HEARTBEAT, PERMIT};
use super::keeper::{Keeper, Listed};
use super::permit::{Heartbeat, Permit};
use tokio::time::sleep;

use crate::boot;
use crate::pods::{Pod, Pods};

/// The text in the log of an agent that is not alone.
const ANOTHER: &str = "another agent runs on this node";
/// The pause between two attempts to take the lock.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The promise of an agent, and how it is kept.
#[derive(Debug)]
pub(crate) struct Fence {
    /// None if the site has installed no guard: then the agent never promises.
    directory: Option<Directory>,
    proc: PathBuf,
    /// The lock of the directory; none if it could not be taken.
    lock: Option<File>,
    /// Whether another agent has the lock.
    contested: bool,
    /// None until what an earlier agent left in the directory is known.
    keeper: Option<Keeper>,
    /// Whether a renewal without the promise has succeeded, so that no earlier agent's promise is in force.
    unpromised: bool,
    /// The last fault, so that it is logged once.
    wrong: Option<String>,
    /// Whether the last renewal promised, so that a change is logged.
    promised: Option<bool>,
}

impl Fence {
    /// The fence of an agent that has taken the lock of the directory, if there is a directory and the lock could be taken
    /// ([`Fence::alone`]).
    pub(crate) fn new(directory: Option<PathBuf>, proc: PathBuf, lock: Option<File>) -> Self {
        let directory = directory.map(Directory::new);
        Self {
            directory,
            proc,
            lock,
            contested: false,
            keeper: None,
            unpromised: false,
            wrong: None,
            promised: None,
        }
    }

    /// Waits until no other agent of the node runs that shares the directory with the guard, and takes the lock. Two
    /// agents would replace each other's permits: one agent's report would then name pods that the other agent's permit
    /// lacks.
    /// Returns `None` if the lock cannot be taken: the directory may not be there yet.
    pub(crate) async fn alone(directory: PathBuf) -> Option<File> {
        let directory = Directory::new(directory);
        let mut told = false;
        loop {
            match directory.lock() {
                Ok(Some(lock)) => return Some(lock),
                Ok(None) if told => {}
                Ok(None) => {
                    tracing::warn!("{ANOTHER}; this agent waits until the other agent has ended");
                    told = true;
                }
                Err(error) => {
                    tracing::warn!(%error, "the agent cannot know whether it is alone on its node, and does not promise");
                    return None;
                }
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// As [`Keeper::uids`].
    pub(crate) fn uids(&self) -> impl Iterator<Item = &str> {
        self.keeper.iter().flat_map(Keeper::uids)
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
        if self.lock.is_none() {
            self.lock = directory.lock()?;
            self.contested = self.lock.is_none();
            if self.contested {
                return Err(io::Error::other(ANOTHER));
            }
        }
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
            directory.write(PERMIT, &permit.text(), true)?;
            keeper.wrote(permit);
        }
        heartbeat.map(drop)
    }

    /// Whether the renewal that is sent now, at `sent`, is to promise.
    pub(crate) fn promise(&mut self, pods: &Pods, sent: Duration) -> bool {
        let promises = self.keeper.as_mut().is_some_and(|keeper| {
            let promises = keeper.may_promise(pods);
            keeper.renewal_sent(sent, promises);
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

    /// As [`Keeper::has_decided`].
    pub(crate) fn has_decided(&self) -> bool {
        self.keeper.as_ref().is_none_or(Keeper::has_decided)
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
            None => self.unpromised && !self.contested,
        }
    }
}

/// Reads what an earlier agent left. A permit that cannot be read may have had pods that must not run again: the agent does not
/// replace the permit, and does not promise.
fn open(directory: &Directory, proc: &std::path::Path, heartbeat: Option<&Heartbeat>) -> io::Result<Keeper> {
    let boot = boot::id(proc)?;
    let found = directory.read(PERMIT)?.map(|text| Permit::parse(&text)).transpose().map_err(|error| {
        let what = "; remove the file once nothing runs on the node that ran elsewhere meanwhile";
        io::Error::other(format!("{}: {error}{what}", directory.path(PERMIT).display()))
    })?;
    let read = heartbeat.map_or(0, |heartbeat| heartbeat.sequence);
    Ok(Keeper::new(&boot, found, read))
}

fn heartbeat(directory: &Directory) -> io::Result<Option<Heartbeat>> {
    let parsed = directory.read(HEARTBEAT)?.map(|text| Heartbeat::parse(&text)).transpose();
    parsed.map_err(|error| io::Error::other(format!("{}: {error}", directory.path(HEARTBEAT).display())))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::json;

    use super::*;
    use crate::containers::Containers;

    const BOOT: &str = "0f2c5d1e-5a0b-4c3d-9e8f-112233445566";

    /// A directory with a `/proc` in it, and the pods of a node: one proc, `a`.
    fn place() -> (tempfile::TempDir, Pods, Pod) {
        let place = tempfile::tempdir().unwrap();
        let random = place.path().join("proc/sys/kernel/random");
        fs::create_dir_all(&random).unwrap();
        fs::create_dir(place.path().join("shared")).unwrap();
        fs::write(random.join("boot_id"), format!("{BOOT}\n")).unwrap();
        let meta: ObjectMeta = serde_json::from_value(json!({"namespace": "space", "name": "a", "uid": "a",
            "labels": {"slotwright.dev/job-uid": "j"}, "annotations": {"slotwright.dev/lease-seconds": "600"}}))
        .unwrap();
        let mut pods = Pods::default();
        pods.list_begins();
        pods.listed(&meta, Containers::default());
        pods.list_ends();
        (place, pods, Pod::read(&meta).unwrap())
    }

    fn fence(place: &Path) -> Fence {
        let lock = Directory::new(place.join("shared")).lock().unwrap();
        Fence::new(Some(place.join("shared")), place.join("proc"), lock)
    }

    /// Renews, and lists the pod.
    fn renew(fence: &mut Fence, pods: &Pods) -> bool {
        let sent = boot::now();
        let promises = fence.promise(pods, sent);
        fence.renewed(sent, promises);
        if let Some(sent) = fence.wants_list() {
            fence.listed(sent, &[("a".to_owned(), Listed { deleting: false })].into());
        }
        promises
    }

    /// The guard reads the permit that there is.
    fn guard(directory: &Directory) -> Permit {
        let permit = Permit::parse(&directory.read(PERMIT).unwrap().unwrap()).unwrap();
        let beat = Heartbeat::new(BOOT, boot::now(), permit.sequence);
        directory.write(HEARTBEAT, &beat.text(), false).unwrap();
        permit
    }

    #[test]
    fn an_agent_promises_once_the_guard_has_read_the_permit_that_it_wrote() {
        let (place, pods, pod) = place();
        let directory = Directory::new(place.path().join("shared"));
        let mut fence = fence(place.path());
        fence.pass(&pods, |_| true);
        assert!(!fence.may_name(&pod), "an earlier agent's promise may be in force");
        assert!(!renew(&mut fence, &pods));
        fence.pass(&pods, |_| true);
        assert!(!renew(&mut fence, &pods), "there is no guard");
        assert_eq!(guard(&directory).pods, [("a".to_owned(), 600)].into());
        fence.pass(&pods, |_| true);
        assert!(renew(&mut fence, &pods) && fence.may_name(&pod));
        // A second agent on the node, and the first goes on as if there were none.
        let mut second = self::fence(place.path());
        second.pass(&pods, |_| true);
        assert!(
            !renew(&mut second, &pods) && !second.may_name(&pod),
            "a second agent names no pod and promises nothing"
        );
        assert_eq!(second.wrong.as_deref(), Some(ANOTHER));
        fence.pass(&pods, |_| true);
        assert!(renew(&mut fence, &pods));
        drop(fence);
        // The agent that follows goes on from the permit.
        let mut next = self::fence(place.path());
        next.pass(&pods, |_| true);
        assert!(!next.may_name(&pod), "the guard has not read the last permit yet");
        guard(&directory);
        next.pass(&pods, |_| true);
        assert!(next.may_name(&pod));
        directory.write(HEARTBEAT, b"{}", false).unwrap();
        next.pass(&pods, |_| true);
        assert!(!renew(&mut next, &pods), "the guard's file cannot be read");
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_agent_waits_until_the_first_has_ended() {
        let (place, ..) = place();
        let shared = place.path().join("shared");
        let first = Fence::alone(shared.clone()).await;
        let mut second = tokio::spawn(Fence::alone(shared.clone()));
        let hour = Duration::from_hours(1);
        assert!(tokio::time::timeout(hour, &mut second).await.is_err(), "an hour long");
        drop(first);
        assert!(second.await.unwrap().is_some());
        assert!(Fence::alone(place.path().join("not there")).await.is_none());
    }

    #[test]
    fn a_permit_that_cannot_be_read_is_not_replaced_and_nothing_is_promised() {
        let (place, pods, pod) = place();
        let path = place.path().join("shared/permit.json");
        fs::write(&path, "half a per").unwrap();
        let mut fence = fence(place.path());
        for _ in 0..3 {
            fence.pass(&pods, |_| true);
            assert!(!renew(&mut fence, &pods));
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "half a per");
        assert!(fence.wrong.as_ref().unwrap().contains("permit.json: line 1"), "{:?}", fence.wrong);
        assert!(fence.may_name(&pod), "a renewal without a promise has succeeded");
        fs::remove_file(&path).unwrap();
        fence.pass(&pods, |_| true);
        renew(&mut fence, &pods);
        fence.pass(&pods, |_| true);
        assert!(path.exists() && fence.wrong.is_none());
    }

    #[test]
    fn without_a_directory_nothing_is_promised_and_pods_are_named_once_the_lease_says_so() {
        let (place, pods, pod) = place();
        let mut fence = Fence::new(None, place.path().join("proc"), None);
        fence.pass(&pods, |_| true);
        assert!(!fence.may_name(&pod));
        assert!(!renew(&mut fence, &pods));
        assert!(fence.may_name(&pod));
    }
}
