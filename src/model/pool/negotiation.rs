//! The knobs of negotiation cycles, with HTCondor's names and defaults: the pool's, since a Negotiator object holds them; the
//! negotiator knows them as its `config`.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use classad::Expr;

use super::ids::GroupName;

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

/// `GROUP_SORT_EXPR`, as HTCondor has it: the group with the least part of its quota in use first, the root last.
pub const GROUP_SORT_EXPR: &str = "ifThenElse(AccountingGroup=?=\"<none>\",3.4e+38,\
     ifThenElse(GroupQuota>0,GroupResourcesInUse/GroupQuota,3.3e+38))";

/// The default expressions, parsed once.
struct Defaults {
    pre_job_rank: Option<Expr>,
    post_job_rank: Option<Expr>,
    preemption_requirements: Option<Expr>,
    preemption_rank: Option<Expr>,
    group_sort_expr: Option<Expr>,
}

static DEFAULTS: LazyLock<Defaults> = LazyLock::new(|| Defaults {
    pre_job_rank: Expr::parse(PRE_JOB_RANK).ok(),
    post_job_rank: Expr::parse(POST_JOB_RANK).ok(),
    preemption_requirements: Expr::parse(PREEMPTION_REQUIREMENTS).ok(),
    preemption_rank: Expr::parse(PREEMPTION_RANK).ok(),
    group_sort_expr: Expr::parse(GROUP_SORT_EXPR).ok(),
});

/// How cycles are negotiated. [`Config::default`] is HTCondor's. A field says which knob it is; its unit is that of the knob.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a knob of HTCondor's and independent of the others"
)]
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `NEGOTIATOR_INTERVAL`: the period of cycles while jobs wait.
    pub interval: Duration,
    /// `NEGOTIATOR_MIN_INTERVAL`: the least time between the starts of two cycles.
    pub min_interval: Duration,
    /// `NEGOTIATOR_CYCLE_DELAY`: the least time from the end of a cycle to the start of the next.
    pub cycle_delay: Duration,
    /// `NEGOTIATOR_MAX_TIME_PER_CYCLE`: no submitter's turn starts after it.
    pub max_time_per_cycle: Duration,
    /// `NEGOTIATOR_MAX_TIME_PER_SUBMITTER`: how long a submitter may take of a cycle.
    pub max_time_per_submitter: Duration,
    /// `NEGOTIATOR_MAX_TIME_PER_PIESPIN`: how long a submitter may take of a spin.
    pub max_time_per_piespin: Duration,
    /// `NEGOTIATOR_CONSIDER_PREEMPTION`: if not, group quotas limit submitters from the first spin on.
    pub consider_preemption: bool,
    /// `NEGOTIATOR_CONSIDER_EARLY_PREEMPTION`: slots whose job has retirement time left are candidates, too.
    pub consider_early_preemption: bool,
    /// `PREEMPTION_REQUIREMENTS`: what must be true for a submitter to take another's slot. MY is the slot, TARGET the
    /// job. None allows it always.
    pub preemption_requirements: Option<Expr>,
    /// `PREEMPTION_REQUIREMENTS_STABLE`: it says the same during a whole cycle. If not it is asked before each match.
    pub preemption_requirements_stable: bool,
    /// `PREEMPTION_RANK`: which of several claimed slots to take. MY is the slot, TARGET the job. None ranks all the same.
    pub preemption_rank: Option<Expr>,
    /// `PREEMPTION_RANK_STABLE`: as that of the requirements.
    pub preemption_rank_stable: bool,
    /// `NEGOTIATOR_PRE_JOB_RANK`: what counts before the job's own Rank. MY is the slot, TARGET the job.
    /// None ranks all slots the same.
    pub pre_job_rank: Option<Expr>,
    /// `NEGOTIATOR_POST_JOB_RANK`: what counts after the job's own Rank. MY is the slot, TARGET the job.
    pub post_job_rank: Option<Expr>,
    /// `NEGOTIATOR_IGNORE_JOB_RANKS`: the job's own Rank does not count.
    pub ignore_job_ranks: bool,
    /// `NEGOTIATOR_IGNORE_USER_PRIORITIES`: everybody may take all, in order of priority.
    pub ignore_user_priorities: bool,
    /// `ALLOW_PSLOT_PREEMPTION`: several dynamic slots may make room for one job, unless that says `WantPslotPreemption = false`.
    pub allow_pslot_preemption: bool,
    /// `NEGOTIATOR_DEPTH_FIRST`: jobs fill one slot after the other.
    pub depth_first: bool,
    /// `NEGOTIATOR_USE_SLOT_WEIGHTS`: if not, every slot costs 1. The weights of the pool, of what is in use
    /// and of quotas are the caller's: they must then count slots, too.
    pub use_slot_weights: bool,
    /// `NEGOTIATOR_USE_WEIGHTED_DEMAND`: what a group asks for is the weight of its jobs. If not it is their number.
    pub use_weighted_demand: bool,
    /// `NEGOTIATOR_SLOT_CONSTRAINT`: only slots that make it true are matched. MY is the slot.
    pub slot_constraint: Option<Expr>,
    /// `NEGOTIATOR_SUBMITTER_CONSTRAINT`: only submitters that make it true are served. MY is the submitter.
    pub submitter_constraint: Option<Expr>,
    /// `NEGOTIATOR_JOB_CONSTRAINT`: only jobs that make it true are served. MY is the job.
    pub job_constraint: Option<Expr>,
    /// `NEGOTIATOR_SLOT_POOLSIZE_CONSTRAINT`, `GROUP_DYNAMIC_MACH_CONSTRAINT` where that is unset: only slots that make it
    /// true count in the size of the pool. MY is the slot.
    pub slot_poolsize_constraint: Option<Expr>,
    /// `NEGOTIATOR_MATCHLIST_CACHING`: rank the slots once for all jobs of a request. It changes how long a
    /// cycle takes and nothing else.
    pub match_list_caching: bool,
    /// `NEGOTIATOR_DISCOUNT_SUSPENDED_RESOURCES`: suspended claims cost nothing.
    pub discount_suspended_resources: bool,
    /// `NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION`: for [`Tree::assign`](super::groups::Tree::assign). HTCondor's is true; then
    /// groups are given more than there is.
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
    /// `PRIORITY_HALFLIFE`, in seconds: for [`Account`](super::accountant::Account). A cycle does not read it.
    pub priority_halflife: f64,
    /// `DEFAULT_PRIO_FACTOR`: of submitters that have none of their own; a cycle needs it not.
    pub default_priority_factor: f64,
    /// `NICE_USER_PRIO_FACTOR`: of the submitters of nice users.
    pub nice_user_factor: f64,
    /// `NICE_USER_ACCOUNTING_GROUP_NAME`: the group that nice users' jobs belong to.
    pub nice_user_group: GroupName,
    /// `REMOTE_PRIO_FACTOR`: of submitters of other domains, where there is a local one.
    pub remote_factor: f64,
    /// `ACCOUNTANT_LOCAL_DOMAIN`: which domain is not remote. None: nobody is.
    pub accountant_local_domain: Option<Box<str>>,
    /// `GROUP_PRIO_FACTOR_<group>`, by the group's name in small letters.
    pub group_factors: BTreeMap<String, f64>,
    /// `<name>_LIMIT`: the units of a concurrency limit, by its name in small letters.
    pub concurrency_limits: BTreeMap<String, f64>,
    /// `CONCURRENCY_LIMIT_DEFAULT_<set>`: the units of a set's limits that have none of their own, by its name in small
    /// letters.
    pub concurrency_limit_sets: BTreeMap<String, f64>,
    /// `CONCURRENCY_LIMIT_DEFAULT`: the units of other limits.
    pub concurrency_limit_default: f64,
}

impl Config {
    /// The priority factor of a submitter that has none of its own: that of nice users; its group's; that of those of another
    /// domain than `ACCOUNTANT_LOCAL_DOMAIN`; the default. The first of these that there is. The group is the one that it is
    /// counted in, with what its object says.
    pub fn priority_factor(&self, submitter: &str, group: Option<(&str, Option<f64>)>) -> f64 {
        let nice = || self.nice_user_group.is_charged_by(submitter).then_some(self.nice_user_factor);
        let of_group = || {
            let (name, own) = group?;
            own.or_else(|| self.group_factors.get(&name.to_ascii_lowercase()).copied())
        };
        let remote = || {
            let local = self.accountant_local_domain.as_deref()?;
            let (_, domain) = submitter.rsplit_once('@')?;
            (!domain.eq_ignore_ascii_case(local)).then_some(self.remote_factor)
        };
        nice().or_else(of_group).or_else(remote).unwrap_or(self.default_priority_factor)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interval: Duration::from_mins(1),
            min_interval: Duration::from_secs(5),
            cycle_delay: Duration::from_secs(20),
            max_time_per_cycle: Duration::from_mins(20),
            max_time_per_submitter: Duration::from_mins(1),
            max_time_per_piespin: Duration::from_mins(2),
            consider_preemption: true,
            consider_early_preemption: false,
            preemption_requirements: DEFAULTS.preemption_requirements.clone(),
            preemption_requirements_stable: true,
            preemption_rank: DEFAULTS.preemption_rank.clone(),
            preemption_rank_stable: true,
            pre_job_rank: DEFAULTS.pre_job_rank.clone(),
            post_job_rank: DEFAULTS.post_job_rank.clone(),
            ignore_job_ranks: false,
            ignore_user_priorities: false,
            allow_pslot_preemption: false,
            depth_first: false,
            use_slot_weights: true,
            use_weighted_demand: true,
            slot_constraint: None,
            submitter_constraint: None,
            job_constraint: None,
            slot_poolsize_constraint: None,
            match_list_caching: true,
            discount_suspended_resources: false,
            allow_quota_oversubscription: false,
            strict_enforce_quota: true,
            group_accept_surplus: false,
            group_autoregroup: false,
            group_quota_max_allocation_rounds: 3,
            group_quota_round_robin_rate: 1e100,
            group_sort_expr: DEFAULTS.group_sort_expr.clone(),
            priority_halflife: 86_400.0,
            default_priority_factor: 1000.0,
            nice_user_factor: 1e10,
            nice_user_group: "nice-user".into(),
            remote_factor: 1e7,
            accountant_local_domain: None,
            group_factors: BTreeMap::new(),
            concurrency_limits: BTreeMap::new(),
            concurrency_limit_sets: BTreeMap::new(),
            concurrency_limit_default: 2_308_032.0,
        }
    }
}
