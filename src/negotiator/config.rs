//! The knobs of a negotiation cycle, with HTCondor's names and defaults.

use std::sync::LazyLock;

use crate::classad::Expr;

/// `NEGOTIATOR_PRE_JOB_RANK`, as HTCondor has it.
pub const PRE_JOB_RANK: &str =
    "(10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory";

/// `NEGOTIATOR_POST_JOB_RANK`, as HTCondor has it.
pub const POST_JOB_RANK: &str = "(RemoteOwner =?= UNDEFINED) * \
     (ifthenElse(isUndefined(KFlops), 1000, Kflops) - SlotID - 1.0e10*(Offline=?=True))";

/// `GROUP_SORT_EXPR`, as HTCondor has it: the group with the least part of its quota in use first, the root last.
pub const GROUP_SORT_EXPR: &str = "ifThenElse(AccountingGroup=?=\"<none>\",3.4e+38,\
     ifThenElse(GroupQuota>0,GroupResourcesInUse/GroupQuota,3.3e+38))";

/// The default expressions, parsed once.
struct Defaults {
    pre_job_rank: Option<Expr>,
    post_job_rank: Option<Expr>,
    group_sort_expr: Option<Expr>,
}

static DEFAULTS: LazyLock<Defaults> = LazyLock::new(|| Defaults {
    pre_job_rank: Expr::parse(PRE_JOB_RANK).ok(),
    post_job_rank: Expr::parse(POST_JOB_RANK).ok(),
    group_sort_expr: Expr::parse(GROUP_SORT_EXPR).ok(),
});

/// How a cycle is negotiated. [`Config::default`] is HTCondor's, but for what `docs/differences.md` lists.
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
    /// `NEGOTIATOR_CONSIDER_PREEMPTION`: if not, group quotas limit submitters from the first spin on.
    pub consider_preemption: bool,
    /// `NEGOTIATOR_IGNORE_USER_PRIORITIES`: everybody may take all, in order of priority.
    pub ignore_user_priorities: bool,
    /// `NEGOTIATOR_USE_SLOT_WEIGHTS`: if not, every slot costs 1. The weights of the pool, of what is in use
    /// and of quotas are the caller's: they must then count slots, too.
    pub use_slot_weights: bool,
    /// `NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION`: for [`Tree::assign`](super::groups::Tree::assign). HTCondor's is
    /// true; then groups are given more than there is.
    pub allow_quota_oversubscription: bool,
    /// `NEGOTIATOR_STRICT_ENFORCE_QUOTA`: a group is also limited by what its ancestors have left.
    pub strict_enforce_quota: bool,
    /// `GROUP_ACCEPT_SURPLUS`: of groups that do not say, whether they may use what others leave.
    pub group_accept_surplus: bool,
    /// `GROUP_AUTOREGROUP`: of groups that do not say, whether their jobs compete with those of no group in the end.
    pub group_autoregroup: bool,
    /// `GROUP_QUOTA_MAX_ALLOCATION_ROUNDS`: how often in a cycle surplus is dealt out anew; at least 1.
    pub group_quota_max_allocation_rounds: u32,
    /// `GROUP_QUOTA_ROUND_ROBIN_RATE`: how much slot weight a group takes in a turn.
    pub group_quota_round_robin_rate: f64,
    /// `GROUP_SORT_EXPR`: in which order groups have their turn, the least first. MY is the group.
    pub group_sort_expr: Option<Expr>,
    /// `NEGOTIATOR_MATCHLIST_CACHING`: rank the slots once for all jobs of a request. It changes how long a
    /// cycle takes and nothing else.
    pub match_list_caching: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            priority_halflife: 86_400.0,
            default_priority_factor: 1000.0,
            pre_job_rank: DEFAULTS.pre_job_rank.clone(),
            post_job_rank: DEFAULTS.post_job_rank.clone(),
            consider_preemption: true,
            ignore_user_priorities: false,
            use_slot_weights: true,
            allow_quota_oversubscription: false,
            strict_enforce_quota: true,
            group_accept_surplus: false,
            group_autoregroup: false,
            group_quota_max_allocation_rounds: 3,
            group_quota_round_robin_rate: 1e100,
            group_sort_expr: DEFAULTS.group_sort_expr.clone(),
            match_list_caching: true,
        }
    }
}
