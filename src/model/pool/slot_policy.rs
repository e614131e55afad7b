//! The policy of a slot: the expressions of the startd's configuration.
//!
//! Source: the manual's policy chapter, "State/Activity Transition Expression Summary". `startd::policy` evaluates the
//! expressions, and says what an undefined or wrong value means.

use std::time::Duration;

use super::policy::ClaimWorklife;
use classad::Expr;

/// The policy expressions of the slots of one type. If an expression is unset, HTCondor's default holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// `START`: which jobs may run; if unset, true.
    pub start: Option<Expr>,
    /// `IS_OWNER`: whether the machine's owner has the slot; if unset, false.
    pub is_owner: Option<Expr>,
    /// `RUNBENCHMARKS`.
    pub run_benchmarks: Option<Expr>,
    /// `RANK`: how much the slot prefers a job; if unset, 0.
    pub rank: Option<Expr>,
    /// `WANT_SUSPEND`; if unset, false.
    pub want_suspend: ByUniverse,
    /// `SUSPEND`; if unset, false.
    pub suspend: ByUniverse,
    /// `CONTINUE`; if unset, true.
    pub resume: ByUniverse,
    /// `PREEMPT`; if unset, false.
    pub preempt: ByUniverse,
    /// `WANT_VACATE`; if unset, true.
    pub want_vacate: ByUniverse,
    /// `KILL`; if unset, false.
    pub kill: ByUniverse,
    /// `WANT_HOLD`; if unset, false.
    pub want_hold: Option<Expr>,
    /// `WANT_HOLD_REASON`.
    pub want_hold_reason: Option<Expr>,
    /// `WANT_HOLD_SUBCODE`.
    pub want_hold_subcode: Option<Expr>,
    /// `MAXJOBRETIREMENTTIME`, in seconds of run time; if unset, 0.
    pub max_job_retirement_time: Option<Expr>,
    /// `MachineMaxVacateTime`, in seconds; if unset, ten minutes.
    pub machine_max_vacate_time: Option<Expr>,
    /// `ENABLE_BACKFILL`.
    pub enable_backfill: bool,
    /// `START_BACKFILL`; if unset, false.
    pub start_backfill: Option<Expr>,
    /// `EVICT_BACKFILL`; if unset, false.
    pub evict_backfill: Option<Expr>,
    /// `CLAIM_WORKLIFE`; if unset, twenty minutes.
    pub claim_worklife: Option<ClaimWorklife>,
    /// `KILLING_TIMEOUT`: how long a kill may take before the operator asks the agent.
    pub killing_timeout: Duration,
    /// `MATCH_TIMEOUT`: how long a match may wait for its claim.
    pub match_timeout: Duration,
    /// `POLLING_INTERVAL`: how often a claimed slot's policy is evaluated.
    pub polling_interval: Duration,
    /// `MAX_CLAIM_ALIVES_MISSED` times `ALIVE_INTERVAL`: the lease of a claim whose job sets none.
    pub claim_lease: Duration,
    /// `UPDATE_INTERVAL`: how often the policy of a slot that is not claimed is evaluated.
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

/// An expression with its forms for single universes, such as `PREEMPT_VANILLA`. If the form for the job's universe
/// evaluates to a boolean, it replaces the plain expression.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByUniverse {
    /// The expression itself.
    pub plain: Option<Expr>,
    /// `_VANILLA`: for `JobUniverse` 5, which is the universe of all jobs that do not say otherwise.
    pub vanilla: Option<Expr>,
    /// `_VM`: for `JobUniverse` 13.
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
