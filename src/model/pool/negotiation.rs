//! The knobs of negotiation cycles, with HTCondor's names and defaults. They are part of the pool, since a Negotiator
//! object holds them. The module `negotiator` re-exports them as its `config`.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use classad::Expr;

use super::ids::GroupName;

/// HTCondor's default for `NEGOTIATOR_PRE_JOB_RANK`.
pub const PRE_JOB_RANK: &str =
    "(10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory";

/// HTCondor's default for `NEGOTIATOR_POST_JOB_RANK`.
pub const POST_JOB_RANK: &str = "(RemoteOwner =?= UNDEFINED) * \
     (ifthenElse(isUndefined(KFlops), 1000, Kflops) - SlotID - 1.0e10*(Offline=?=True))";

/// HTCondor's default for `PREEMPTION_RANK`.
pub const PREEMPTION_RANK: &str =
    "(RemoteUserPrio * 1000000) - ifThenElse(isUndefined(TotalJobRuntime), 0, TotalJobRuntime)";

/// HTCondor's default for `PREEMPTION_REQUIREMENTS`.
pub const PREEMPTION_REQUIREMENTS: &str = "False";

/// HTCondor's default for `GROUP_SORT_EXPR`: the group that uses the smallest part of its quota comes first, the root
/// last.
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

/// The knobs of a cycle. [`Config::default`] has HTCondor's defaults. Each field says which knob it is, and has that
/// knob's unit.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a knob of HTCondor's and independent of the others"
)]
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `NEGOTIATOR_INTERVAL`: the period of cycles while jobs wait.
    pub interval: Duration,
    /// `NEGOTIATOR_MIN_INTERVAL`: the least time between the starts of two cycles, if it is set.
    pub min_interval: Option<Duration>,
    /// `NEGOTIATOR_CYCLE_DELAY`: the least time from the end of a cycle to the start of the next, if it is set.
    pub cycle_delay: Option<Duration>,
    /// `NEGOTIATOR_MAX_TIME_PER_CYCLE`: after this time, no submitter's turn begins.
    pub max_time_per_cycle: Duration,
    /// `NEGOTIATOR_MAX_TIME_PER_SUBMITTER`: the most time of a cycle that one submitter may take.
    pub max_time_per_submitter: Duration,
    /// `NEGOTIATOR_MAX_TIME_PER_PIESPIN`: the most time of a spin that one submitter may take.
    pub max_time_per_piespin: Duration,
    /// `NEGOTIATOR_CONSIDER_PREEMPTION`: if false, group quotas limit submitters from the first spin on.
    pub consider_preemption: bool,
    /// `NEGOTIATOR_CONSIDER_EARLY_PREEMPTION`: if true, slots whose job has retirement time left are candidates, too.
    pub consider_early_preemption: bool,
    /// `PREEMPTION_REQUIREMENTS`: must be true if a submitter is to take another submitter's slot. MY is the slot,
    /// TARGET the job. If unset, a submitter may always take the slot.
    pub preemption_requirements: Option<Expr>,
    /// `PREEMPTION_REQUIREMENTS_STABLE`: if true, the value counts as constant during a cycle; if false, the expression
    /// is evaluated before each match.
    pub preemption_requirements_stable: bool,
    /// `PREEMPTION_RANK`: prefers some claimed slots to others. MY is the slot, TARGET the job. If unset, all rank the
    /// same.
    pub preemption_rank: Option<Expr>,
    /// `PREEMPTION_RANK_STABLE`: the same for `PREEMPTION_RANK`.
    pub preemption_rank_stable: bool,
    /// `NEGOTIATOR_PRE_JOB_RANK`: compared before the job's own Rank. MY is the slot, TARGET the job. If unset, all
    /// slots rank the same.
    pub pre_job_rank: Option<Expr>,
    /// `NEGOTIATOR_POST_JOB_RANK`: compared after the job's own Rank. MY is the slot, TARGET the job.
    pub post_job_rank: Option<Expr>,
    /// `NEGOTIATOR_IGNORE_JOB_RANKS`: if true, the job's own Rank does not count.
    pub ignore_job_ranks: bool,
    /// `NEGOTIATOR_IGNORE_USER_PRIORITIES`: if true, each submitter may take all slots, in the order of priority.
    pub ignore_user_priorities: bool,
    /// `ALLOW_PSLOT_PREEMPTION`: if true, several dynamic slots may make room for one job, unless the job has
    /// `WantPslotPreemption = false`.
    pub allow_pslot_preemption: bool,
    /// `NEGOTIATOR_DEPTH_FIRST`: if true, jobs fill one slot before they go to the next.
    pub depth_first: bool,
    /// `NEGOTIATOR_USE_SLOT_WEIGHTS`: if false, every slot costs 1. The caller supplies the weights of the pool, of
    /// what is in use and of quotas; they must then count slots, too.
    pub use_slot_weights: bool,
    /// `NEGOTIATOR_USE_WEIGHTED_DEMAND`: if true, a group asks for the weight of its jobs; if false, for their number.
    pub use_weighted_demand: bool,
    /// `NEGOTIATOR_SLOT_CONSTRAINT`: only slots for which it is true are matched. MY is the slot.
    pub slot_constraint: Option<Expr>,
    /// `NEGOTIATOR_SUBMITTER_CONSTRAINT`: only submitters for which it is true are served. MY is the submitter.
    pub submitter_constraint: Option<Expr>,
    /// `NEGOTIATOR_JOB_CONSTRAINT`: only jobs for which it is true are served. MY is the job.
    pub job_constraint: Option<Expr>,
    /// `NEGOTIATOR_SLOT_POOLSIZE_CONSTRAINT`, or if that is unset `GROUP_DYNAMIC_MACH_CONSTRAINT`: only slots for which
    /// it is true count in the size of the pool. MY is the slot.
    pub slot_poolsize_constraint: Option<Expr>,
    /// `NEGOTIATOR_MATCHLIST_CACHING`: if true, the slots are ranked once for all jobs of a request. The knob changes
    /// how long a cycle takes, and nothing else.
    pub match_list_caching: bool,
    /// `NEGOTIATOR_DISCOUNT_SUSPENDED_RESOURCES`: if true, suspended claims cost nothing.
    pub discount_suspended_resources: bool,
    /// `NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION`: whether static quotas are granted even if they exceed the pool. HTCondor's default is
    /// true; then groups are given more than there is.
    pub allow_quota_oversubscription: bool,
    /// `NEGOTIATOR_STRICT_ENFORCE_QUOTA`: if true, a group is also limited by what the groups around it have left.
    pub strict_enforce_quota: bool,
    /// `GROUP_ACCEPT_SURPLUS`: whether groups that do not say otherwise may use what others leave.
    pub group_accept_surplus: bool,
    /// `GROUP_AUTOREGROUP`: whether the jobs of groups that do not say otherwise compete with those of no group at the
    /// end.
    pub group_autoregroup: bool,
    /// `GROUP_QUOTA_MAX_ALLOCATION_ROUNDS`: how many times a cycle allocates the pool to groups; at least 1.
    pub group_quota_max_allocation_rounds: u32,
    /// `GROUP_QUOTA_ROUND_ROBIN_RATE`: how much slot weight a group may take in one turn.
    pub group_quota_round_robin_rate: f64,
    /// `GROUP_SORT_EXPR`: the order in which groups have their turns, the least value first. MY is the group.
    pub group_sort_expr: Option<Expr>,
    /// `PRIORITY_HALFLIFE`, in seconds: for [`Account`](super::accountant::Account). A cycle does not read it.
    pub priority_halflife: f64,
    /// `DEFAULT_PRIO_FACTOR`: the factor of submitters that have no other. A cycle does not read it.
    pub default_priority_factor: f64,
    /// `NICE_USER_PRIO_FACTOR`: the factor of nice users' submitters.
    pub nice_user_factor: f64,
    /// `NICE_USER_ACCOUNTING_GROUP_NAME`: the group to which nice users' jobs belong.
    pub nice_user_group: GroupName,
    /// `REMOTE_PRIO_FACTOR`: the factor of submitters of other domains, if there is a local domain.
    pub remote_factor: f64,
    /// `ACCOUNTANT_LOCAL_DOMAIN`: the domain that is not remote. If unset, nobody is remote.
    pub accountant_local_domain: Option<Box<str>>,
    /// `GROUP_PRIO_FACTOR_<group>`, by the group's name in lower case.
    pub group_factors: BTreeMap<String, f64>,
    /// `<name>_LIMIT`: the units of a concurrency limit, by its name in lower case.
    pub concurrency_limits: BTreeMap<String, f64>,
    /// `CONCURRENCY_LIMIT_DEFAULT_<set>`: the units of each limit in the set that has no number of its own, by the
    /// set's name in lower case.
    pub concurrency_limit_sets: BTreeMap<String, f64>,
    /// `CONCURRENCY_LIMIT_DEFAULT`: the units of all other limits.
    pub concurrency_limit_default: f64,
}

impl Config {
    /// The priority factor of a submitter without a factor of its own. The first of these that exists: the factor of
    /// nice users; the group's; the factor of submitters of another domain than `ACCOUNTANT_LOCAL_DOMAIN`; the default.
    /// `group` is the group in which the submitter is counted, with the factor that its object sets.
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
            min_interval: None,
            cycle_delay: None,
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
