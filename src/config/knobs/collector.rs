//! The collector, and its clients that look back.

use super::knob::Support::{Honored, MappedTo, Meaningless};
use super::knob::{Kind, Knob, Reader, Support};

const COLLECTOR: &[Reader] = &[Reader::Collector];
const METRICS: Support = Support::MappedTo("the operator's Prometheus metrics");

pub(super) const KNOBS: &[Knob] = &[
    Knob::new(
        "CLASSAD_LIFETIME",
        Kind::Integer,
        COLLECTOR,
        MappedTo("the node's Lease and its Ready condition"),
        "How old an ad may be before it is dropped.",
    )
    .unit("seconds")
    .at_least(0.0)
    .fallback("900")
    .section("Central Managers: Absent ClassAds"),
    Knob::new(
        "ABSENT_REQUIREMENTS",
        Kind::Expression,
        COLLECTOR,
        Honored,
        "Which machines whose nodes went stay listed as absent: an expression over the ads of their slots.",
    )
    .section("Central Managers: Absent ClassAds"),
    Knob::new(
        "ABSENT_EXPIRE_ADS_AFTER",
        Kind::Integer,
        COLLECTOR,
        Honored,
        "For how long an absent machine stays listed; 0 for ever.",
    )
    .unit("seconds")
    .at_least(0.0)
    .fallback("2592000")
    .section("Central Managers: Absent ClassAds"),
    Knob::new(
        "EXPIRE_INVALIDATED_ADS",
        Kind::Boolean,
        COLLECTOR,
        Honored,
        "Whether machines may be absent, too, that were ready until their nodes were deleted.",
    )
    .fallback("False")
    .section("Central Managers: Absent ClassAds"),
    Knob::new(
        "COLLECTOR_PERSISTENT_AD_LOG",
        Kind::Text,
        COLLECTOR,
        Meaningless("what must outlive the operator is in the API server"),
        "Where absent and offline ads are kept.",
    )
    .section("Central Managers: Absent ClassAds"),
    Knob::new(
        "CONDOR_VIEW_HOST",
        Kind::List,
        COLLECTOR,
        METRICS,
        "Which HTCondorView servers ads are forwarded to.",
    )
    .section("Central Managers: Configuring a Pool to Report to the HTCondorView Server"),
    Knob::new(
        "KEEP_POOL_HISTORY",
        Kind::Boolean,
        COLLECTOR,
        METRICS,
        "Whether the history of the pool is kept.",
    )
    .fallback("False")
    .section("Central Managers: Configuring a Machine to be a HTCondorView Server"),
    Knob::new("POOL_HISTORY_DIR", Kind::Text, COLLECTOR, METRICS, "Where the history of the pool is kept.")
        .section("Central Managers: Configuring a Machine to be a HTCondorView Server"),
    Knob::new(
        "POOL_HISTORY_MAX_STORAGE",
        Kind::Integer,
        COLLECTOR,
        METRICS,
        "How large the history of the pool may grow.",
    )
    .unit("bytes")
    .at_least(0.0)
    .section("Central Managers: Configuring a Machine to be a HTCondorView Server"),
    Knob::new(
        "POOL_HISTORY_SAMPLING_INTERVAL",
        Kind::Integer,
        COLLECTOR,
        METRICS,
        "How often the pool is sampled.",
    )
    .unit("seconds")
    .at_least(1.0),
    Knob::new(
        "GANGLIA_GSTAT_COMMAND",
        Kind::Text,
        COLLECTOR,
        METRICS,
        "The program that lists the hosts Ganglia knows.",
    )
    .section("Central Managers: Ganglia"),
    Knob::new(
        "GANGLIA_SEND_DATA_FOR_ALL_HOSTS",
        Kind::Boolean,
        COLLECTOR,
        METRICS,
        "Whether hosts that Ganglia does not know are reported.",
    )
    .section("Central Managers: Ganglia"),
    Knob::new("GANGLIAD_DEFAULT_CLUSTER", Kind::Expression, COLLECTOR, METRICS, "The cluster of a metric.")
        .section("Central Managers: Ganglia"),
    Knob::new("GANGLIAD_DEFAULT_IP", Kind::Expression, COLLECTOR, METRICS, "The address of a metric's host.")
        .section("Central Managers: Ganglia"),
    Knob::new("GANGLIAD_DEFAULT_MACHINE", Kind::Expression, COLLECTOR, METRICS, "The host of a metric.")
        .section("Central Managers: Ganglia"),
    Knob::new("GANGLIAD_METRICS_CONFIG_DIR", Kind::Text, COLLECTOR, METRICS, "Where metrics are defined.")
        .section("Central Managers: Ganglia"),
    Knob::new(
        "GANGLIAD_MIN_METRIC_LIFETIME",
        Kind::Integer,
        COLLECTOR,
        METRICS,
        "How long a metric is kept that is not updated.",
    )
    .unit("seconds")
    .at_least(0.0)
    .fallback("86400")
    .section("Central Managers: Ganglia"),
    Knob::new(
        "GANGLIAD_PER_EXECUTE_NODE_METRICS",
        Kind::Boolean,
        COLLECTOR,
        METRICS,
        "Whether there are metrics for each machine.",
    )
    .section("Central Managers: Ganglia"),
    Knob::new("GANGLIAD_REQUIREMENTS", Kind::Expression, COLLECTOR, METRICS, "Which ads are looked at.")
        .section("Central Managers: Ganglia"),
    Knob::new(
        "GANGLIAD_VERBOSITY",
        Kind::Integer,
        COLLECTOR,
        METRICS,
        "Up to which verbosity metrics are published.",
    )
    .at_least(0.0)
    .section("Central Managers: Ganglia"),
];
