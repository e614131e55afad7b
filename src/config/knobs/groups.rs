//! The accountant: priorities, accounting groups, limits.

use super::knob::Support::{Honored, MappedTo, Meaningless};
use super::knob::{Kind, Knob, Reader, Support};

const ACCOUNTANT: &[Reader] = &[Reader::Accountant];
const NO_DOMAIN: Support = Support::Meaningless("submitters have no domain, so that nobody is remote");

pub(super) const KNOBS: &[Knob] = &[
    Knob::new(
        "PRIORITY_HALFLIFE",
        Kind::Real,
        ACCOUNTANT,
        Honored,
        "In what time a priority moves half the way to the present use.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Central Managers: Real User Priority (RUP)"),
    Knob::new(
        "DEFAULT_PRIO_FACTOR",
        Kind::Real,
        ACCOUNTANT,
        Honored,
        "The factor of submitters without one of their own.",
    )
    .at_least(1.0)
    .section("Central Managers: Effective User Priority (EUP)"),
    Knob::new("NICE_USER_PRIO_FACTOR", Kind::Real, ACCOUNTANT, Honored, "The factor of nice users.")
        .at_least(1.0)
        .section("Central Managers: Effective User Priority (EUP)"),
    Knob::new(
        "NICE_USER_ACCOUNTING_GROUP_NAME",
        Kind::Text,
        ACCOUNTANT,
        Honored,
        "The group that nice users' jobs belong to.",
    ),
    Knob::new(
        "REMOTE_PRIO_FACTOR",
        Kind::Real,
        ACCOUNTANT,
        NO_DOMAIN,
        "The factor of submitters of other domains.",
    )
    .at_least(1.0)
    .section("Central Managers: Effective User Priority (EUP)"),
    Knob::new("ACCOUNTANT_LOCAL_DOMAIN", Kind::Text, ACCOUNTANT, NO_DOMAIN, "Which domain is not remote."),
    Knob::new(
        "MAX_ACCOUNTANT_DATABASE_SIZE",
        Kind::Integer,
        ACCOUNTANT,
        Meaningless("the accountant's records are the status of Submitter objects"),
        "How large the accountant's log may grow.",
    )
    .unit("bytes")
    .at_least(0.0),
    Knob::new(
        "NEGOTIATOR_USE_SLOT_WEIGHTS",
        Kind::Boolean,
        ACCOUNTANT,
        Honored,
        "Whether slots cost their weight, and not 1.",
    ),
    Knob::new(
        "NEGOTIATOR_USE_WEIGHTED_DEMAND",
        Kind::Boolean,
        ACCOUNTANT,
        Honored,
        "Whether a group's demand is counted in weight.",
    ),
    Knob::new(
        "NEGOTIATOR_IGNORE_USER_PRIORITIES",
        Kind::Boolean,
        ACCOUNTANT,
        Honored,
        "Whether everybody may take all, in order of priority.",
    ),
    Knob::new(
        "NEGOTIATOR_DISCOUNT_SUSPENDED_RESOURCES",
        Kind::Boolean,
        ACCOUNTANT,
        Honored,
        "Whether suspended jobs cost nothing.",
    ),
    Knob::new(
        "NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION",
        Kind::Boolean,
        ACCOUNTANT,
        Honored,
        "Whether static quotas stay as they are if they add up to more than their parent's, instead of being scaled down.",
    )
    .ours("False")
    .section("Central Managers: Accounting Groups with Hierarchical Group Quotas"),
    Knob::new(
        "NEGOTIATOR_STRICT_ENFORCE_QUOTA",
        Kind::Boolean,
        ACCOUNTANT,
        Honored,
        "Whether a group is also bound by what the groups around it have left.",
    )
    .fallback("True"),
    Knob::new(
        "GROUP_NAMES",
        Kind::List,
        ACCOUNTANT,
        MappedTo("GroupQuota objects, one for each group"),
        "Which accounting groups there are.",
    )
    .section("Central Managers: Accounting Groups with Hierarchical Group Quotas"),
    Knob::new(
        "GROUP_QUOTA_<group>",
        Kind::Real,
        ACCOUNTANT,
        MappedTo("spec.quota of the GroupQuota"),
        "How much a group may use.",
    )
    .unit("slot weight")
    .at_least(0.0)
    .section("Central Managers: Accounting Groups with Hierarchical Group Quotas"),
    Knob::new(
        "GROUP_QUOTA_DYNAMIC_<group>",
        Kind::Real,
        ACCOUNTANT,
        MappedTo("spec.dynamicQuota of the GroupQuota"),
        "How much of its parent's quota a group may use.",
    )
    .unit("share of the parent")
    .between(0.0, 1.0)
    .section("Central Managers: Accounting Groups with Hierarchical Group Quotas"),
    Knob::new(
        "GROUP_PRIO_FACTOR_<group>",
        Kind::Real,
        ACCOUNTANT,
        MappedTo("spec.priorityFactor of the GroupQuota"),
        "The factor of a group's submitters without one of their own.",
    )
    .at_least(1.0),
    Knob::new(
        "GROUP_ACCEPT_SURPLUS",
        Kind::Boolean,
        ACCOUNTANT,
        Honored,
        "Whether groups may use what others leave.",
    )
    .section("Central Managers: Accounting Groups with Hierarchical Group Quotas"),
    Knob::new(
        "GROUP_ACCEPT_SURPLUS_<group>",
        Kind::Boolean,
        ACCOUNTANT,
        MappedTo("spec.acceptSurplus of the GroupQuota"),
        "Whether this group may use what others leave.",
    )
    .section("Central Managers: Accounting Groups with Hierarchical Group Quotas"),
    Knob::new(
        "GROUP_AUTOREGROUP",
        Kind::Boolean,
        ACCOUNTANT,
        Honored,
        "Whether groups' jobs compete for what is left in the end, as those of no group.",
    ),
    Knob::new(
        "GROUP_AUTOREGROUP_<group>",
        Kind::Boolean,
        ACCOUNTANT,
        MappedTo("spec.autoregroup of the GroupQuota"),
        "Whether this group's jobs compete for what is left in the end, as those of no group.",
    ),
    Knob::new(
        "GROUP_SORT_EXPR",
        Kind::Expression,
        ACCOUNTANT,
        Honored,
        "In which order groups have their turn: the least first.",
    )
    .section("Central Managers: Accounting Groups with Hierarchical Group Quotas"),
    Knob::new(
        "GROUP_QUOTA_MAX_ALLOCATION_ROUNDS",
        Kind::Integer,
        ACCOUNTANT,
        Honored,
        "How often in a cycle surplus is dealt out anew.",
    )
    .unit("rounds")
    .at_least(1.0),
    Knob::new(
        "GROUP_QUOTA_ROUND_ROBIN_RATE",
        Kind::Real,
        ACCOUNTANT,
        Honored,
        "How much a group takes in a turn.",
    )
    .unit("slot weight")
    .at_least(0.0),
    Knob::new(
        "GROUP_DYNAMIC_MACH_CONSTRAINT",
        Kind::Expression,
        ACCOUNTANT,
        Honored,
        "The old name of NEGOTIATOR_SLOT_POOLSIZE_CONSTRAINT.",
    ),
    Knob::new(
        "<name>_LIMIT",
        Kind::Real,
        ACCOUNTANT,
        MappedTo("spec.limit of a ConcurrencyLimit"),
        "How many units of a concurrency limit there are.",
    )
    .unit("units")
    .at_least(0.0)
    .section("Central Managers: Concurrency Limits"),
    Knob::new(
        "CONCURRENCY_LIMIT_DEFAULT",
        Kind::Real,
        ACCOUNTANT,
        Honored,
        "How many units there are of a limit that nothing else gives a number.",
    )
    .unit("units")
    .at_least(0.0)
    .section("Central Managers: Concurrency Limits"),
    Knob::new(
        "CONCURRENCY_LIMIT_DEFAULT_<set>",
        Kind::Real,
        ACCOUNTANT,
        MappedTo("spec.limitOfEach of a ConcurrencyLimit"),
        "How many units there are of each limit of a set, SET.NAME, that nothing else gives a number.",
    )
    .unit("units")
    .at_least(0.0)
    .section("Central Managers: Concurrency Limits"),
];
