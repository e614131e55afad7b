//! Finds out who created a job: by the seal of the admission webhook, or else by the stamp of the API server's admission policies.
//!
//! Only the API server can say whether the policies are in force, and only a question that was asked after the operator saw a job
//! counts for that job. So a new job that has no seal waits for the answer before the pool is told the job. There is one question
//! at a time: jobs that come meanwhile wait for the next one.

mod reading;
mod stamp;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use tokio::task::JoinSet;

use self::reading::Question;
pub use self::stamp::{MARGIN, Stamp, Standing};
use crate::kinds::Stage;
use crate::seal::{Seal, Seals};
use answers::Pauses;
use api::HTCJob;
use model::pool::{JobFacts, JobUid, RecordedOwner, UnknownCreator};

/// The annotations of a job that say who created the job.
#[derive(Clone, Debug, Default)]
pub struct CreatorAnnotations {
    seal: Option<Seal>,
    stamp: Option<Stamp>,
}

impl CreatorAnnotations {
    /// The annotations of a job.
    pub fn of(job: &HTCJob) -> Self {
        Self { seal: Seal::of(job), stamp: Stamp::of(job) }
    }
}

/// The name of the admission policies whose stamps are believed. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct Stamps(Option<Arc<str>>);

impl Stamps {
    /// Stamps of the policies of this name, if there is one.
    pub fn by(name: Option<String>) -> Self {
        Self(name.map(Into::into))
    }
}

/// A new job whose creator is to be found out.
struct Waiting {
    stage: Stage,
    job: Box<JobFacts>,
    stamp: Option<Stamp>,
}

/// Finds out who created a job.
pub struct Creators {
    seals: Seals,
    /// How to ask whether the policies are in force. `None`: no stamp is believed.
    question: Option<Question>,
    /// The last answer.
    standing: Standing,
    /// The jobs for which the question under way was asked.
    asked: BTreeMap<JobUid, Waiting>,
    /// The jobs that came while a question was under way.
    waiting: BTreeMap<JobUid, Waiting>,
    /// The question under way: it ends with this value.
    answer: JoinSet<Standing>,
}

impl Creators {
    /// Makes a `Creators` that has asked nothing yet; its questions go through `client`.
    pub fn new(seals: Seals, stamps: Stamps, client: Client, pauses: &Pauses) -> Self {
        let question = stamps.0.map(|name| Question::new(name, client, pauses.of("admission policies")));
        Self {
            seals,
            question,
            standing: Standing::Not("the API server was not asked yet".to_owned()),
            asked: BTreeMap::new(),
            waiting: BTreeMap::new(),
            answer: JoinSet::new(),
        }
    }

    /// Waits until the key of seals is there, for 30 s at most, and then until the API server has said whether the policies are in
    /// force.
    pub(crate) async fn wait(&mut self) {
        self.seals.wait().await;
        if let Some(question) = &self.question {
            self.standing = question.clone().ask().await;
        }
    }

    /// Takes a job that was seen, and returns the job with its creator. `None` if the API server has to be asked first:
    /// then [`found`](Self::found) returns the job once the API server has answered.
    pub(crate) fn look_at(
        &mut self,
        stage: Stage,
        mut job: Box<JobFacts>,
        annotations: CreatorAnnotations,
    ) -> Option<JobFacts> {
        // This version of the job is newer than the version that waits.
        self.forget(&job.key.uid);
        let sealed = annotations.seal.and_then(|seal| self.seals.opened(&seal, &job));
        job.requester = match (sealed, &self.question) {
            (Some(requester), _) => Ok(requester),
            (None, None) => Err(UnknownCreator::default()),
            (None, Some(_)) if job.owner == RecordedOwner::New => {
                let uid = job.key.uid.clone();
                self.waiting.insert(uid, Waiting { stage, job, stamp: annotations.stamp });
                self.ask();
                return None;
            }
            // The owner is recorded: only the reason is asked for why nobody knew the creator.
            (None, Some(question)) => {
                self.standing.judge(question.name(), annotations.stamp.as_ref(), job.submitted)
            }
        };
        Some(*job)
    }

    /// Forgets a job that is gone.
    pub(crate) fn forget(&mut self, job: &JobUid) {
        self.asked.remove(job);
        self.waiting.remove(job);
    }

    /// The jobs about whose creators the API server has answered, in the order of their uids. `None` if no question is under way. If the
    /// future is dropped, nothing is lost.
    pub(crate) async fn found(&mut self) -> Option<Vec<(Stage, JobFacts)>> {
        let standing = self.answer.join_next().await?;
        // A question that panicked is asked again for the jobs that wait for its answer.
        let Ok(standing) = standing else {
            self.waiting.append(&mut self.asked);
            self.ask();
            return Some(Vec::new());
        };
        self.standing = standing;
        let asked = std::mem::take(&mut self.asked);
        let name = self.question.as_ref().map(Question::name).unwrap_or_default();
        let judged = asked.into_values().map(|Waiting { stage, mut job, stamp }| {
            job.requester = self.standing.judge(name, stamp.as_ref(), job.submitted);
            (stage, *job)
        });
        let judged = judged.collect();
        self.ask();
        Some(judged)
    }

    /// Asks for the jobs that wait, unless a question is under way.
    fn ask(&mut self) {
        let Some(question) = self.question.as_ref().filter(|_| self.answer.is_empty()) else { return };
        if !self.waiting.is_empty() {
            self.asked = std::mem::take(&mut self.waiting);
            self.answer.spawn(question.clone().ask());
        }
    }
}

#[cfg(test)]
mod tests;
