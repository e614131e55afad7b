//! The knobs of a negotiation cycle, with HTCondor's names and defaults.

use std::sync::LazyLock;

use crate::classad::Expr;

/// `NEGOTIATOR_PRE_JOB_RANK`, as HTCondor has it.
pub const PRE_JOB_RANK: &str =
    "(10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory";

/// `NEGOTIATOR_POST_JOB_RANK`, as HTCondor has it.
pub const POST_JOB_RANK: &str = "(RemoteOwner =?= UNDEFINED) * \
     (ifthenElse(isUndefined(KFlops), 1000, Kflops) - SlotID - 1.0e10*(Offline=?=True))";

/// `PREEMPTION_RANK`, as HTCondor has it.
pub const PREEMPTION_RANK: &str =
    "(RemoteUserPrio * 1000000) - ifThenElse(isUndefined(TotalJobRuntime), 0, TotalJobRuntime)";

/// `PREEMPTION_REQUIREMENTS`, as HTCondor has it.
pub const PREEMPTION_REQUIREMENTS: &str = "False";

/// All of them, parsed once.
static DEFAULTS: LazyLock<[Option<Expr>; 4]> = LazyLock::new(|| {
    [PRE_JOB_RANK, POST_JOB_RANK, PREEMPTION_REQUIREMENTS, PREEMPTION_RANK].map(|text| Expr::parse(text).ok())
});

/// How a cycle is negotiated. [`Config::default`] is HTCondor's.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a knob of HTCondor's and independent of the others"
)]
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `PRIORITY_HALFLIFE`, in seconds: for [`Record`](super::accountant::Record); a cycle needs it not.
    pub priority_halflife: f64,
    /// `DEFAULT_PRIO_FACTOR`: of submitters that have none of their own; a cycle needs it not.
    pub default_priority_factor: f64,
    /// `NEGOTIATOR_PRE_JOB_RANK`: what counts before the job's own Rank. MY is the slot, TARGET the job.
    /// None ranks all slots the same.
    pub pre_job_rank: Option<Expr>,
    /// `NEGOTIATOR_POST_JOB_RANK`: what counts after the job's own Rank. MY is the slot, TARGET the job.
    pub post_job_rank: Option<Expr>,
    /// `NEGOTIATOR_CONSIDER_PREEMPTION`: if not, slots in use are not looked at, and group quotas limit submitters from the
    /// first spin on.
    pub consider_preemption: bool,
    /// `NEGOTIATOR_CONSIDER_EARLY_PREEMPTION`: slots whose job has retirement time left may be taken, too.
    pub consider_early_preemption: bool,
    /// `PREEMPTION_REQUIREMENTS`: only where it is true may a slot be taken for a job of another user that the slot ranks no
    /// lower. MY is the slot, TARGET the job. None allows it always.
    pub preemption_requirements: Option<Expr>,
    /// `PREEMPTION_RANK`: which of such slots goes first. MY is the slot, TARGET the job.
    pub preemption_rank: Option<Expr>,
    /// `PREEMPTION_REQUIREMENTS_STABLE`: if not, and the same for [`Config::preemption_rank_stable`], both expressions are
    /// evaluated anew for each job, as they look at what matches of this cycle change.
    pub preemption_requirements_stable: bool,
    /// `PREEMPTION_RANK_STABLE`.
    pub preemption_rank_stable: bool,
    /// `NEGOTIATOR_IGNORE_USER_PRIORITIES`: everybody may take all, in order of priority.
    pub ignore_user_priorities: bool,
    /// `NEGOTIATOR_USE_SLOT_WEIGHTS`: if not, every slot costs 1. The weights of the pool, of what is in use
    /// and of quotas are the caller's: they must then count slots, too.
    pub use_slot_weights: bool,
    /// `NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION`: for [`Tree::assign`](super::groups::Tree::assign).
    pub allow_quota_oversubscription: bool,
    /// `NEGOTIATOR_STRICT_ENFORCE_QUOTA`: a group is also limited by what its ancestors have left.
    pub strict_enforce_quota: bool,
    /// `NEGOTIATOR_MATCHLIST_CACHING`: rank the slots once for all jobs of a request. It changes how long a
    /// cycle takes and nothing else.
    pub match_list_caching: bool,
}

impl Default for Config {
    fn default() -> Self {
        let [pre_job_rank, post_job_rank, preemption_requirements, preemption_rank] = DEFAULTS.clone();
        Self {
            priority_halflife: 86_400.0,
            default_priority_factor: 1000.0,
            pre_job_rank,
            post_job_rank,
            consider_preemption: true,
            consider_early_preemption: false,
            preemption_requirements,
            preemption_rank,
            preemption_requirements_stable: true,
            preemption_rank_stable: true,
            ignore_user_priorities: false,
            use_slot_weights: true,
            allow_quota_oversubscription: true,
            strict_enforce_quota: true,
            match_list_caching: true,
        }
    }
}
