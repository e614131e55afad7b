//! One slot with its surroundings, and the answers of its policy, as tests set them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::pool::{
    Activation, Assignment, BackfillStage, Claim, ClaimId, Claimed, Fence, HoldReason, JobKey, Phase, PodRef,
    Policy, Preemptor, Record, Remains, Resources, Running, STARTD_HELD_JOB, Slot, SlotName, State, Time,
};
use crate::startd::policy::{Answer, Answers, Question};
use crate::startd::{Chore, Common, Grace, Off, Pace, Step, TRANSITIONS, View, next, take};

/// The answers that a test gives. For all other questions the answers are HTCondor's defaults.
#[derive(Clone, Debug, Default)]
pub struct Says {
    pub answers: BTreeMap<Question, Answer>,
    pub retirement: Option<i64>,
    pub job_retirement: Option<i64>,
    pub job_vacate: Option<i64>,
    pub machine_vacate: i64,
    pub rank: f64,
}

impl Answers for Says {
    fn answer(&self, question: Question) -> Answer {
        let unset = match question {
            Question::Continue | Question::WantVacate | Question::Start | Question::StartNext => Answer::True,
            _ => Answer::False,
        };
        self.answers.get(&question).copied().unwrap_or(unset)
    }

    fn retirement(&self) -> Option<i64> {
        self.retirement
    }

    fn job_retirement(&self) -> Option<i64> {
        self.job_retirement
    }

    fn job_vacate(&self) -> Option<i64> {
        self.job_vacate
    }

    fn machine_vacate(&self) -> i64 {
        self.machine_vacate
    }

    fn rank(&self) -> f64 {
        self.rank
    }

    fn hold(&self) -> HoldReason {
        HoldReason { code: STARTD_HELD_JOB, subcode: 7, reason: "the owner is back".into() }
    }
}

/// The slot, and everything that decides its next step.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Scene {
    pub slot: Slot,
    pub says: Says,
    pub policy: Policy,
    pub offered: bool,
    pub off: Off,
    pub wanted: bool,
    pub settled: bool,
    pub acts_recorded: bool,
    pub not_before: Option<Time>,
    pub agent: bool,
    pub stands_still: bool,
    pub lease_ends: Option<Time>,
    pub fence: Fence,
    pub earlier_pod: bool,
    pub starts_by: Option<Time>,
    pub backfill: BackfillStage,
    pub draining: Option<Pace>,
    pub common: Option<Common>,
    pub next_wanted: bool,
    pub now: Time,
    /// The numbers of the transitions that were taken.
    pub taken: Vec<u8>,
    /// The chores that were performed.
    pub done: Vec<Chore>,
    /// Whether the schedd has another proc for a claim whose job has ended.
    pub more_work: bool,
}

/// When the job started in each scene.
pub const STARTED: i64 = 1_000;

fn pod() -> PodRef {
    PodRef { namespace: "default".into(), name: "job-0".into(), uid: "pod-1".into() }
}

pub fn active() -> Activation {
    let started = Some(Time::from_secs(STARTED));
    Activation::Active(Box::new(Running { started, pledged_vacate: 600, ..Running::that_runs(pod()) }))
}

pub fn claim(submitter: &str) -> Claim {
    let name = name();
    Claim {
        id: ClaimId::new(&name, Time::from_secs(1), submitter.len() as u64),
        submitter: submitter.into(),
        group: None,
        negotiator: crate::pool::NegotiatorId::Unnamed,
        regrouped: false,
        weight: 1.0,
        limits: crate::pool::limits::Wants::default(),
        since: Time::from_secs(900),
        last: Assignment {
            job: JobKey { uid: "uid".into(), namespace: "default".into(), name: "job".into() },
            cluster_id: 1,
            proc: 0,
        },
    }
}

fn name() -> SlotName {
    SlotName { machine: "n1".into(), slot: 1, dynamic: Some(1) }
}

impl Scene {
    /// A slot in a state that was entered ten seconds ago; if the state has a job, its pod runs, or has ended in Cleaning.
    pub fn of(state: State) -> Self {
        let at = Time::from_secs(STARTED);
        let phase = Phase::starting(state, at);
        let mut slot = Slot::new(name(), Resources::default(), claim("alice"), phase);
        slot.set_record(Record::Written);
        slot.set_activation(match state {
            State::Claimed(Claimed::Idle) | State::Owner => Activation::Vacant,
            State::Claimed(Claimed::Cleaning) => match active() {
                Activation::Active(running) => Activation::Ended(running, Remains::Nothing),
                other => other,
            },
            _ => active(),
        });
        Self {
            slot,
            says: Says { machine_vacate: 600, ..Says::default() },
            policy: Policy::default(),
            offered: true,
            off: Off::No,
            wanted: true,
            settled: true,
            acts_recorded: true,
            not_before: None,
            agent: true,
            stands_still: false,
            lease_ends: None,
            fence: Fence::None,
            earlier_pod: false,
            starts_by: None,
            backfill: BackfillStage::None,
            draining: None,
            common: None,
            next_wanted: true,
            now: at + Duration::from_secs(10),
            taken: Vec::new(),
            done: Vec::new(),
            more_work: false,
        }
    }

    pub fn with(mut self, edit: impl FnOnce(&mut Self)) -> Self {
        edit(&mut self);
        self
    }

    /// Lets the policy answer a question so.
    pub fn says(self, question: Question, answer: Answer) -> Self {
        self.with(|scene| {
            scene.says.answers.insert(question, answer);
        })
    }

    pub fn true_of(self, question: Question) -> Self {
        self.says(question, Answer::True)
    }

    /// Lets a claim wait for the slot.
    pub fn claimed_by(self, submitter: &str, rank: f64) -> Self {
        self.with(|scene| {
            scene.slot.set_preemptor(Some(Preemptor { claim: claim(submitter), rank, part: false }));
        })
    }

    /// An earlier leader suspended the job, and this leader takes the slot over.
    pub fn found_suspended(&mut self) {
        if let Activation::Active(mut running) = self.slot.activation().clone() {
            (running.frozen, running.found_suspended) = (None, true);
            self.slot.set_activation(Activation::Active(running));
        }
    }

    pub fn view(&self) -> View<'_> {
        View {
            offered: self.offered,
            off: self.off,
            wanted: self.wanted,
            settled: self.settled,
            acts_recorded: self.acts_recorded,
            not_before: self.not_before,
            agent: self.agent,
            stands_still: self.stands_still,
            lease_ends: self.lease_ends,
            fence: self.fence,
            earlier_pod: self.earlier_pod,
            starts_by: self.starts_by,
            backfill: self.backfill,
            draining: self.draining,
            common: self.common,
            next_wanted: self.next_wanted,
            policy: &self.policy,
            answers: &self.says,
            now: self.now,
        }
    }

    pub fn step(&self) -> Step {
        next(&self.slot, &self.view())
    }

    /// Performs steps until the slot rests, as the decider does.
    pub fn drive(&mut self) -> &mut Self {
        for _ in 0..32 {
            match self.step() {
                Step::Rest => return self,
                Step::Take(transition, why, change) => {
                    assert!(!why.is_empty() && TRANSITIONS.contains(transition), "{transition:?}");
                    assert!(take(&mut self.slot, transition, why, self.now), "{transition:?}");
                    change.make(&mut self.slot, self.now);
                    self.taken.push(transition.number.listed());
                }
                Step::Do(chore) => {
                    self.perform(&chore);
                    self.done.push(chore);
                    if self.slot.record() == Record::Deleting {
                        return self;
                    }
                }
            }
        }
        panic!("no rest: {:?} {:?}", self.taken, self.done);
    }

    /// The numbers of the transitions that the slot takes now.
    pub fn takes(mut self) -> Vec<u8> {
        self.drive();
        self.taken
    }

    pub fn wait(&mut self, seconds: u64) -> &mut Self {
        self.now = self.now + Duration::from_secs(seconds);
        self.taken.clear();
        self.done.clear();
        self
    }

    /// The pod ends, and its kubelet confirms that.
    pub fn pod_ends(&mut self) -> &mut Self {
        self.slot.end(&pod());
        self
    }

    fn perform(&mut self, chore: &Chore) {
        let slot = &mut self.slot;
        match chore {
            Chore::WriteClaim => slot.claim_is_written(),
            Chore::CreatePod => slot.set_activation(Activation::Active(Box::new(Running::that_runs(pod())))),
            Chore::Withdraw | Chore::UntrackPod => slot.pod_is_over(),
            Chore::DeletePod(Grace::Force) => {
                slot.delete_pod_by_force(self.now);
            }
            Chore::DeletePod(_) | Chore::GiveUp => slot.mark_deleting(true),
            Chore::ReadAgentLease => self.fence = Fence::Asked,
            Chore::KillPod => {
                assert!(slot.eviction().is_some(), "it is being evicted");
                slot.mark_deleting(true);
                slot.kill(self.now);
            }
            Chore::KillByAgent => slot.kill_by_agent(),
            Chore::LosePod => slot.end(&pod()),
            Chore::AskAgentToKill => slot.killing_takes_too_long(),
            Chore::Suspend(still) => {
                slot.ask_to_freeze(*still);
            }
            Chore::Condemn => slot.retire(crate::pool::Cause::Preempt),
            Chore::StopWaiting => slot.set_preemptor(None),
            Chore::FindWork if self.more_work => slot.set_activation(Activation::Assigned),
            Chore::FindWork => {
                take(slot, &crate::startd::CLAIMED_IDLE_TO_PREEMPTING, "no more work", self.now);
                self.taken.push(10);
            }
            Chore::DeleteClaim | Chore::ReturnSlot => slot.deletion_begins(),
        }
    }
}
