//! The last run of each proc that has a pod: when the program started and ended, and how.
//!
//! If the pod of a proc is gone, the proc's last run is not known.

use std::collections::{BTreeMap, HashMap};

use api::HTCJob;
use api::labels::{JOB_UID, SLOT, SUSPEND};
use classad::Ad;
use controller::kinds::pod::{self, PodView, SlimPod};
use model::pool::{End, Exit, History};

use crate::cluster::{self, Cluster};

/// A run of a proc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastRun {
    /// The number of the run among the proc's runs, from 1.
    pub(crate) number: u32,
    /// When the main container started, in seconds since 1970.
    pub(crate) started: Option<i64>,
    /// When the main container ended.
    pub(crate) finished: Option<i64>,
    /// How the run ended; `None` while the run goes on.
    pub(crate) end: Option<End>,
    /// The slot, as HTCondor names it.
    pub(crate) slot: Option<String>,
    /// The node.
    pub(crate) node: Option<String>,
    pub(crate) suspended: bool,
}

/// The last run of each proc, by the uid of its job and its number.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastRuns(HashMap<String, BTreeMap<u32, LastRun>>);

impl LastRuns {
    /// Reads the pods of jobs.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses.
    pub(crate) async fn read<'j>(
        cluster: &Cluster,
        jobs: impl Iterator<Item = &'j HTCJob>,
    ) -> Result<Self, cluster::Error> {
        let mut by_namespace: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for job in jobs {
            if let (Some(namespace), Some(uid)) = (&job.metadata.namespace, &job.metadata.uid) {
                by_namespace.entry(namespace).or_default().push(uid);
            }
        }
        let mut pods = Vec::new();
        for (namespace, uids) in by_namespace {
            // A selector of very many uids would be longer than a request may be.
            let labels = match uids.len() {
                0..=20 => format!("{JOB_UID} in ({})", uids.join(",")),
                _ => JOB_UID.to_owned(),
            };
            pods.extend(cluster.list_some::<SlimPod>(Some(namespace), &labels).await?);
        }
        Ok(Self::of(&pods))
    }

    /// The last runs that these pods show.
    pub(crate) fn of(pods: &[SlimPod]) -> Self {
        let mut all: HashMap<String, BTreeMap<u32, LastRun>> = HashMap::new();
        for object in pods {
            let Some(PodView::Ours(facts)) = pod::view(object) else { continue };
            let note = |name: &str| object.metadata.annotations.as_ref().and_then(|notes| notes.get(name));
            let run = LastRun {
                number: facts.run.unwrap_or(0).saturating_add(1),
                started: facts.started.map(model::pool::Time::secs),
                finished: pod::finished(object).map(model::pool::Time::secs),
                end: facts.end.clone(),
                slot: note(SLOT).cloned(),
                node: facts.machine.as_ref().map(|machine| machine.as_str().to_owned()),
                suspended: note(SUSPEND).is_some_and(|suspend| suspend == "true"),
            };
            let procs = all.entry(facts.job.as_str().to_owned()).or_default();
            let last = procs.entry(facts.proc).or_default();
            if last.number <= run.number {
                *last = run;
            }
        }
        Self(all)
    }

    /// The last run of a proc that has a pod.
    pub(crate) fn get(&self, uid: &str, proc: u32) -> Option<&LastRun> {
        self.0.get(uid)?.get(&proc)
    }
}

impl LastRun {
    /// How the program ended, if it ended by itself.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.end.as_ref()?.code().map(Exit::of_code)
    }

    /// Puts into the ad of a proc that is done the slot, the begin and the end of the last run, how long the run took, and how the
    /// program ended. `history` is that of the runs before.
    pub(crate) fn set_in(&self, history: &History, ad: &mut Ad) {
        ad.set("NumJobStarts", i64::from(self.number));
        ad.set("NumShadowStarts", i64::from(self.number));
        ad.set("JobRunCount", i64::from(self.number));
        if let Some(started) = self.started {
            ad.set("JobCurrentStartDate", started);
            if history.first_start.is_none() {
                ad.set("JobStartDate", started);
            }
        }
        if let Some(slot) = &self.slot {
            ad.set("LastRemoteHost", slot.as_str());
        }
        if let Some((started, finished)) = self.started.zip(self.finished) {
            let ran = u64::try_from(finished.saturating_sub(started)).unwrap_or(0);
            #[allow(clippy::cast_precision_loss, reason = "HTCondor has reals here")]
            for (name, secs) in
                [("LastRemoteWallClockTime", ran), ("RemoteWallClockTime", history.wall.saturating_add(ran))]
            {
                ad.set(name, secs as f64);
            }
        }
        if let Some(finished) = self.finished {
            ad.set("CompletionDate", finished);
            ad.set("EnteredCurrentStatus", finished);
        }
        if let Some(exit) = self.exit() {
            exit.set_in(ad);
        }
    }
}
