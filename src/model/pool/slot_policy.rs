//! The policy of a slot: the startd's expressions, as its configuration says them.
//!
//! Source: the manual's policy chapter, "State/Activity Transition Expression Summary". What an answer means is
//! `startd::policy`'s to say.

use std::time::Duration;

use super::policy::ClaimWorklife;
use classad::Expr;

/// The policy expressions of the slots of one type. What is none was not said: `HTCondor`'s default holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// `START`: which jobs may run; true where unset.
    pub start: Option<Expr>,
    /// `IS_OWNER`: the machine's owner has the slot for themselves; false where unset.
    pub is_owner: Option<Expr>,
    /// `RUNBENCHMARKS`.
    pub run_benchmarks: Option<Expr>,
    /// `RANK`: how much the slot likes a job; 0 where unset.
    pub rank: Option<Expr>,
    /// `WANT_SUSPEND`; false where unset.
    pub want_suspend: ByUniverse,
    /// `SUSPEND`; false where unset.
    pub suspend: ByUniverse,
    /// `CONTINUE`; true where unset.
    pub resume: ByUniverse,
    /// `PREEMPT`; false where unset.
    pub preempt: ByUniverse,
    /// `WANT_VACATE`; true where unset.
    pub want_vacate: ByUniverse,
    /// `KILL`; false where unset.
    pub kill: ByUniverse,
    /// `WANT_HOLD`; false where unset.
    pub want_hold: Option<Expr>,
    /// `WANT_HOLD_REASON`.
    pub want_hold_reason: Option<Expr>,
    /// `WANT_HOLD_SUBCODE`.
    pub want_hold_subcode: Option<Expr>,
    /// `MAXJOBRETIREMENTTIME`, seconds of run time; 0 where unset.
    pub max_job_retirement_time: Option<Expr>,
    /// `MachineMaxVacateTime`, seconds; ten minutes where unset.
    pub machine_max_vacate_time: Option<Expr>,
    /// `ENABLE_BACKFILL`.
    pub enable_backfill: bool,
    /// `START_BACKFILL`; false where unset.
    pub start_backfill: Option<Expr>,
    /// `EVICT_BACKFILL`; false where unset.
    pub evict_backfill: Option<Expr>,
    /// `CLAIM_WORKLIFE`; twenty minutes where unset.
    pub claim_worklife: Option<ClaimWorklife>,
    /// `KILLING_TIMEOUT`: how long a kill may take before the agent is asked.
    pub killing_timeout: Duration,
    /// `MATCH_TIMEOUT`: how long a match waits for its claim.
    pub match_timeout: Duration,
    /// `POLLING_INTERVAL`: how often a claimed slot's policy is looked at.
    pub polling_interval: Duration,
    /// `MAX_CLAIM_ALIVES_MISSED` times `ALIVE_INTERVAL`: the lease of a claim whose job says none.
    pub claim_lease: Duration,
    /// `UPDATE_INTERVAL`: how often that of a slot which is not claimed is.
    pub update_interval: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            start: None,
            is_owner: None,
            run_benchmarks: None,
            rank: None,
            want_suspend: ByUniverse::default(),
            suspend: ByUniverse::default(),
            resume: ByUniverse::default(),
            preempt: ByUniverse::default(),
            want_vacate: ByUniverse::default(),
            kill: ByUniverse::default(),
            want_hold: None,
            want_hold_reason: None,
            want_hold_subcode: None,
            max_job_retirement_time: None,
            machine_max_vacate_time: None,
            enable_backfill: false,
            start_backfill: None,
            evict_backfill: None,
            claim_worklife: None,
            killing_timeout: Duration::from_secs(30),
            match_timeout: Duration::from_mins(2),
            polling_interval: Duration::from_secs(5),
            claim_lease: Duration::from_mins(30),
            update_interval: Duration::from_mins(5),
        }
    }
}

/// An expression with its forms for one universe, such as `PREEMPT_VANILLA`: such a form goes first where it gives a
/// boolean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByUniverse {
    /// The expression itself.
    pub plain: Option<Expr>,
    /// `_VANILLA`: `JobUniverse` 5, which all jobs here have that do not say otherwise.
    pub vanilla: Option<Expr>,
    /// `_VM`: `JobUniverse` 13.
    pub vm: Option<Expr>,
}

impl Policy {
    /// `CLAIM_WORKLIFE` with its default.
    pub fn worklife(&self) -> ClaimWorklife {
        self.claim_worklife.unwrap_or_default()
    }
}

impl From<Expr> for ByUniverse {
    fn from(plain: Expr) -> Self {
        Self { plain: Some(plain), ..Self::default() }
    }
}
