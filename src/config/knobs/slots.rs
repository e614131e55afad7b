//! The startd's slots: how a machine is divided, and what a dynamic slot gets.

use super::knob::Support::{Honored, MappedTo, Meaningless, Planned};
use super::knob::{Kind, Knob, Reader, Support};

const STARTD: &[Reader] = &[Reader::Startd];
const RESERVED: Support =
    Support::MappedTo("the kubelet's kube-reserved and system-reserved: what is reserved is not allocatable");
const OF_KUBELET: Support = Support::Meaningless("a kubelet admits no more than its node has");
const EXTENDED: Support = Support::MappedTo("extended resources, which device plugins announce");
const SCRATCH: Support = Support::MappedTo("ephemeral storage, or a volume in the job's pod template");
const DISK_LIMITS: Support =
    Support::MappedTo("the kubelet, which evicts pods that use more ephemeral storage than they asked for");

const SCRATCH_DISK: &str = "Policy Configuration: Enforcing scratch disk usage with on-the-fly, HTCondor managed, \
     per-job scratch filesystems.";

/// The amount, as an expression, that a job consumes of a custom resource that has no expression of its own.
const CONSUMED: &str = "ifThenElse(target.Request<resource> =?= undefined, 0, target.Request<resource>)";

pub(super) const KNOBS: &[Knob] = &[
    Knob::new("NUM_CPUS", Kind::Integer, STARTD, OF_KUBELET, "How many CPUs the machine pretends to have.")
        .unit("CPUs")
        .at_least(0.0)
        .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new("MEMORY", Kind::Integer, STARTD, OF_KUBELET, "How much memory the machine pretends to have.")
        .unit("MiB")
        .at_least(0.0)
        .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new("RESERVED_MEMORY", Kind::Integer, STARTD, RESERVED, "Memory that is not offered.")
        .unit("MiB")
        .at_least(0.0),
    Knob::new("RESERVED_DISK", Kind::Integer, STARTD, RESERVED, "Disk that is not offered.")
        .unit("MiB")
        .at_least(0.0)
        .section("Policy Configuration: Debug Logging in the Multi-Core condor_startd Daemon"),
    Knob::new(
        "RESERVED_SWAP",
        Kind::Integer,
        STARTD,
        Meaningless("swap is no resource of a pod"),
        "Swap that is not offered.",
    )
    .unit("MiB")
    .at_least(0.0),
    Knob::new(
        "NUM_SLOTS",
        Kind::Integer,
        STARTD,
        Honored,
        "How many equal slots the machine has, where no type is configured.",
    )
    .unit("slots")
    .at_least(0.0)
    .section("Policy Configuration: Dividing System Resources in Multi-core Machines"),
    Knob::new(
        "MAX_SLOT_TYPES",
        Kind::Integer,
        STARTD,
        Honored,
        "The greatest number of a slot type; types above it are ignored.",
    )
    .unit("types")
    .at_least(0.0),
    Knob::new("NUM_SLOTS_TYPE_<N>", Kind::Integer, STARTD, Honored, "How many slots of the type there are.")
        .unit("slots")
        .at_least(0.0)
        .fallback("0")
        .section("Policy Configuration: Dividing System Resources in Multi-core Machines"),
    Knob::new(
        "SLOT_TYPE_<N>",
        Kind::Shares,
        STARTD,
        Honored,
        "The shares of the machine's resources that a slot of the type has.",
    )
    .fallback("auto")
    .section("Policy Configuration: Dividing System Resources in Multi-core Machines"),
    Knob::new(
        "SLOT_TYPE_<N>_PARTITIONABLE",
        Kind::Boolean,
        STARTD,
        Honored,
        "Whether slots of the type are carved into dynamic slots.",
    )
    .fallback("False")
    .section("Policy Configuration: Dynamic Provisioning: Partitionable and Dynamic Slots"),
    Knob::new(
        "SLOT_TYPE_<N>_BACKFILL",
        Kind::Boolean,
        STARTD,
        Planned,
        "Whether slots of the type are for backfill work.",
    )
    .fallback("False"),
    Knob::new(
        "SLOT_TYPE_<N>_HIDDEN",
        Kind::Boolean,
        STARTD,
        Planned,
        "Whether slots of the type are kept from the collector.",
    )
    .fallback("False"),
    Knob::new(
        "SLOT_TYPE_<N>_NAME_PREFIX",
        Kind::Text,
        STARTD,
        Planned,
        "How the names of slots of the type begin.",
    )
    .fallback("slot"),
    Knob::new("STARTD_RESOURCE_PREFIX", Kind::Text, STARTD, Planned, "How the names of slots begin."),
    Knob::new(
        "CONSUMPTION_POLICY",
        Kind::Boolean,
        STARTD,
        Honored,
        "Whether CONSUMPTION_<R> say what a match takes of a partitionable slot, and NUM_CLAIMS bounds the matches of a cycle.",
    )
    .per_slot_type()
    .section("Policy Configuration: condor_negotiator-Side Resource Consumption Policies"),
    Knob::new(
        "CONSUMPTION_CPUS",
        Kind::Expression,
        STARTD,
        Honored,
        "How many CPUs a job takes from a slot with CONSUMPTION_POLICY.",
    )
    .unit("CPUs")
    .per_slot_type()
    .section("Policy Configuration: condor_negotiator-Side Resource Consumption Policies"),
    Knob::new(
        "CONSUMPTION_MEMORY",
        Kind::Expression,
        STARTD,
        Honored,
        "How much memory a job takes from a slot with CONSUMPTION_POLICY.",
    )
    .unit("MiB")
    .per_slot_type()
    .section("Policy Configuration: condor_negotiator-Side Resource Consumption Policies"),
    Knob::new(
        "CONSUMPTION_DISK",
        Kind::Expression,
        STARTD,
        Honored,
        "How much disk a job takes from a slot with CONSUMPTION_POLICY.",
    )
    .unit("KiB")
    .per_slot_type()
    .section("Policy Configuration: condor_negotiator-Side Resource Consumption Policies"),
    Knob::new(
        "CONSUMPTION_<resource>",
        Kind::Expression,
        STARTD,
        Honored,
        "How much of a custom resource a job takes from a slot with CONSUMPTION_POLICY.",
    )
    .fallback(CONSUMED)
    .per_slot_type()
    .section("Policy Configuration: condor_negotiator-Side Resource Consumption Policies"),
    Knob::new(
        "NUM_CLAIMS",
        Kind::Integer,
        STARTD,
        Honored,
        "How many matches a partitionable slot with CONSUMPTION_POLICY gets in one cycle at most; if unset, one for each of its CPUs.",
    )
    .unit("claims")
    .per_slot_type(),
    Knob::new(
        "MODIFY_REQUEST_EXPR_REQUESTCPUS",
        Kind::Expression,
        STARTD,
        Honored,
        "How many CPUs the dynamic slot of a job gets.",
    )
    .unit("CPUs")
    .per_slot_type()
    .section("Policy Configuration: Defaults for Partitionable Slot Sizes"),
    Knob::new(
        "MODIFY_REQUEST_EXPR_REQUESTMEMORY",
        Kind::Expression,
        STARTD,
        Honored,
        "How much memory the dynamic slot of a job gets.",
    )
    .unit("MiB")
    .per_slot_type()
    .section("Policy Configuration: Defaults for Partitionable Slot Sizes"),
    Knob::new(
        "MODIFY_REQUEST_EXPR_REQUESTDISK",
        Kind::Expression,
        STARTD,
        Honored,
        "How much disk the dynamic slot of a job gets.",
    )
    .unit("KiB")
    .per_slot_type()
    .section("Policy Configuration: Defaults for Partitionable Slot Sizes"),
    Knob::new(
        "MODIFY_REQUEST_EXPR_REQUEST<resource>",
        Kind::Expression,
        STARTD,
        Honored,
        "How much of a custom resource the dynamic slot of a job gets.",
    )
    .per_slot_type(),
    Knob::new(
        "MUST_MODIFY_REQUEST_EXPRS",
        Kind::Boolean,
        STARTD,
        Honored,
        "Whether a slot refuses a job if the amounts that MODIFY_REQUEST_EXPR_* make do not fit.",
    )
    .per_slot_type(),
    Knob::new(
        "CLAIM_PARTITIONABLE_LEFTOVERS",
        Kind::Boolean,
        STARTD,
        Meaningless("the negotiator itself fills partitionable slots"),
        "Whether the schedd splits among its jobs what a match leaves of a partitionable slot.",
    ),
    Knob::new(
        "MAX_PARTITIONABLE_SLOT_CLAIM_TIME",
        Kind::Integer,
        STARTD,
        Meaningless("nobody claims a partitionable slot as a whole"),
        "How long a schedd may keep what is left of a partitionable slot.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "MACHINE_RESOURCE_NAMES",
        Kind::List,
        STARTD,
        Honored,
        "Which custom resources the machine has.",
    )
    .section("Policy Configuration: Dividing System Resources in Multi-core Machines"),
    Knob::new(
        "MACHINE_RESOURCE_<name>",
        Kind::Text,
        STARTD,
        Honored,
        "How much of a custom resource the machine has, or the names of its units.",
    )
    .section("Policy Configuration: Dividing System Resources in Multi-core Machines"),
    Knob::new(
        "OFFLINE_MACHINE_RESOURCE_<name>",
        Kind::Text,
        STARTD,
        Honored,
        "How much of a custom resource is not offered, or the names of those units.",
    )
    .section("Policy Configuration: Dividing System Resources in Multi-core Machines"),
    Knob::new(
        "MACHINE_RESOURCE_INVENTORY_<name>",
        Kind::Text,
        STARTD,
        EXTENDED,
        "A program that says how much of a custom resource the machine has.",
    ),
    Knob::new(
        "GPU_DISCOVERY_EXTRA",
        Kind::Text,
        STARTD,
        MappedTo("node labels, which GPU feature discovery sets"),
        "More arguments of the program that finds GPUs.",
    )
    .section("Policy Configuration: Configuring GPUs"),
    Knob::new(
        "SLOT_REQUIREMENTS_CLAUSES",
        Kind::List,
        STARTD,
        Planned,
        "Names of more conditions in a static slot's Requirements.",
    ),
    Knob::new(
        "PSLOT_REQUIREMENTS_CLAUSES",
        Kind::List,
        STARTD,
        Planned,
        "Names of more conditions in a partitionable slot's Requirements.",
    ),
    Knob::new(
        "DSLOT_REQUIREMENTS_CLAUSES",
        Kind::List,
        STARTD,
        Planned,
        "Names of more conditions in a dynamic slot's Requirements.",
    ),
    Knob::new("EXECUTE", Kind::Text, STARTD, SCRATCH, "Where jobs have their scratch directories.")
        .section("Policy Configuration: Dividing System Resources in Multi-core Machines"),
    Knob::new("SLOT<N>_EXECUTE", Kind::Text, STARTD, SCRATCH, "Where the jobs of one slot have their scratch directories.")
        .section("Policy Configuration: Dividing System Resources in Multi-core Machines"),
    Knob::new(
        "STARTD_ENFORCE_DISK_LIMITS",
        Kind::Boolean,
        STARTD,
        DISK_LIMITS,
        "Whether a job gets a file system of its own, as large as its disk.",
    )
    .section(SCRATCH_DISK),
    Knob::new("THINPOOL_NAME", Kind::Text, STARTD, DISK_LIMITS, "The logical volume for the file systems that STARTD_ENFORCE_DISK_LIMITS gives to jobs.")
        .section(SCRATCH_DISK),
    Knob::new(
        "THINPOOL_VOLUME_GROUP_NAME",
        Kind::Text,
        STARTD,
        DISK_LIMITS,
        "The volume group for the file systems that STARTD_ENFORCE_DISK_LIMITS gives to jobs.",
    )
    .section(SCRATCH_DISK),
];
