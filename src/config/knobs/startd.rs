//! The startd's policy: when a slot takes a job, suspends it, and evicts it.

use super::knob::Support::{Honored, MappedTo, Meaningless, Planned};
use super::knob::{Kind, Knob, Reader};

const STARTD: &[Reader] = &[Reader::Startd];

pub(super) const KNOBS: &[Knob] = &[
    Knob::new(
        "START",
        Kind::Expression,
        STARTD,
        Honored,
        "A job runs in the slot only if the job makes this expression true; part of the slot's Requirements.",
    )
    .per_slot_type()
    .section("Policy Configuration: The START Expression"),
    Knob::new(
        "RANK",
        Kind::Expression,
        STARTD,
        Honored,
        "How much the slot prefers a job. A job that the slot prefers to the one that runs may take its place.",
    )
    .per_slot_type()
    .section("Policy Configuration: The RANK Expression"),
    Knob::new(
        "IS_OWNER",
        Kind::Expression,
        STARTD,
        Honored,
        "Whether the machine's owner has the slot for themselves: state Owner. A value that is not true counts as false.",
    )
    .per_slot_type()
    .section("Policy Configuration: The START Expression"),
    Knob::new(
        "IsOwner",
        Kind::Expression,
        STARTD,
        Honored,
        "The old name of IS_OWNER, which comes before it where both are set.",
    )
    .per_slot_type()
    .section("Policy Configuration: machine states and transitions"),
    Knob::new(
        "SUSPEND",
        Kind::Expression,
        STARTD,
        Honored,
        "Whether to suspend the job, where WANT_SUSPEND is true.",
    )
    .per_slot_type()
    .section("Policy Configuration: The START Expression"),
    Knob::new("CONTINUE", Kind::Expression, STARTD, Honored, "Whether a suspended job goes on.")
        .per_slot_type()
        .section("Policy Configuration: Claimed State"),
    Knob::new(
        "PREEMPT",
        Kind::Expression,
        STARTD,
        Honored,
        "Whether the job must leave: it retires, then vacates.",
    )
    .per_slot_type()
    .section("Policy Configuration: The START Expression"),
    Knob::new(
        "KILL",
        Kind::Expression,
        STARTD,
        Honored,
        "Whether to stop waiting for a vacating job and kill it.",
    )
    .per_slot_type()
    .section("Policy Configuration: The START Expression"),
    Knob::new(
        "WANT_SUSPEND",
        Kind::Expression,
        STARTD,
        Honored,
        "Whether SUSPEND is looked at instead of PREEMPT; never on a node without an agent.",
    )
    .per_slot_type()
    .section("Policy Configuration: Claimed State"),
    Knob::new(
        "WANT_VACATE",
        Kind::Expression,
        STARTD,
        Honored,
        "Whether a preempted job may shut down by itself instead of being killed.",
    )
    .per_slot_type()
    .section("Policy Configuration: Machine Activities"),
    Knob::new(
        "SUSPEND_VANILLA",
        Kind::Expression,
        STARTD,
        Honored,
        "SUSPEND for jobs of the vanilla universe, which all jobs here are.",
    )
    .per_slot_type()
    .section("Policy Configuration: Claimed State"),
    Knob::new(
        "CONTINUE_VANILLA",
        Kind::Expression,
        STARTD,
        Honored,
        "CONTINUE for jobs of the vanilla universe.",
    )
    .per_slot_type(),
    Knob::new(
        "PREEMPT_VANILLA",
        Kind::Expression,
        STARTD,
        Honored,
        "PREEMPT for jobs of the vanilla universe.",
    )
    .per_slot_type(),
    Knob::new("KILL_VANILLA", Kind::Expression, STARTD, Honored, "KILL for jobs of the vanilla universe.")
        .per_slot_type(),
    Knob::new(
        "WANT_SUSPEND_VANILLA",
        Kind::Expression,
        STARTD,
        Honored,
        "WANT_SUSPEND for jobs of the vanilla universe.",
    )
    .per_slot_type()
    .section("Policy Configuration: Claimed State"),
    Knob::new(
        "WANT_VACATE_VANILLA",
        Kind::Expression,
        STARTD,
        Honored,
        "WANT_VACATE for jobs of the vanilla universe.",
    )
    .per_slot_type()
    .section("Policy Configuration: Claimed State"),
    Knob::new("SUSPEND_VM", Kind::Expression, STARTD, Honored, "SUSPEND for jobs of the vm universe.")
        .per_slot_type(),
    Knob::new("CONTINUE_VM", Kind::Expression, STARTD, Honored, "CONTINUE for jobs of the vm universe.")
        .per_slot_type(),
    Knob::new("PREEMPT_VM", Kind::Expression, STARTD, Honored, "PREEMPT for jobs of the vm universe.")
        .per_slot_type(),
    Knob::new("KILL_VM", Kind::Expression, STARTD, Honored, "KILL for jobs of the vm universe.")
        .per_slot_type(),
    Knob::new(
        "WANT_SUSPEND_VM",
        Kind::Expression,
        STARTD,
        Honored,
        "WANT_SUSPEND for jobs of the vm universe.",
    )
    .per_slot_type(),
    Knob::new(
        "WANT_VACATE_VM",
        Kind::Expression,
        STARTD,
        Honored,
        "WANT_VACATE for jobs of the vm universe.",
    )
    .per_slot_type(),
    Knob::new(
        "WANT_HOLD",
        Kind::Expression,
        STARTD,
        Honored,
        "Whether a proc that PREEMPT sends away is held, until it is released or its job is edited, instead of queued again.",
    )
    .per_slot_type(),
    Knob::new("WANT_HOLD_REASON", Kind::Expression, STARTD, Honored, "The reason of a hold by WANT_HOLD: a string.")
        .per_slot_type(),
    Knob::new(
        "WANT_HOLD_SUBCODE",
        Kind::Expression,
        STARTD,
        Honored,
        "The subcode of a hold by WANT_HOLD: an integer.",
    )
    .per_slot_type(),
    Knob::new(
        "MAXJOBRETIREMENTTIME",
        Kind::Expression,
        STARTD,
        Honored,
        "How long a job that must leave may run in all before it is told to; -1 for no time at all.",
    )
    .unit("seconds")
    .fallback("0")
    .per_slot_type()
    .section("Policy Configuration: Machine Activities"),
    Knob::new(
        "MachineMaxVacateTime",
        Kind::Expression,
        STARTD,
        Honored,
        "How long a vacating job may take to shut down.",
    )
    .unit("seconds")
    .per_slot_type()
    .section("Policy Configuration: Preempting State"),
    Knob::new(
        "KILLING_TIMEOUT",
        Kind::Integer,
        STARTD,
        Honored,
        "How long a kill may take before the node's agent is asked to kill the pod's processes.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Policy Configuration: Preempting State"),
    Knob::new(
        "MATCH_TIMEOUT",
        Kind::Integer,
        STARTD,
        Honored,
        "How long a matched slot waits for its claim.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Policy Configuration: Machine States"),
    Knob::new(
        "CLAIM_WORKLIFE",
        Kind::Expression,
        STARTD,
        Honored,
        "For how long a claim may start more jobs; negative for ever.",
    )
    .unit("seconds")
    .per_slot_type()
    .section("Policy Configuration: State/Activity Transition Expression Summary"),
    Knob::new(
        "POLLING_INTERVAL",
        Kind::Integer,
        STARTD,
        Honored,
        "How often a claimed slot's policy is evaluated, if it can change by itself.",
    )
    .unit("seconds")
    .at_least(1.0)
    .section("Policy Configuration: Claimed State"),
    Knob::new(
        "UPDATE_INTERVAL",
        Kind::Integer,
        STARTD,
        Honored,
        "How often IS_OWNER of a slot that is not claimed is evaluated. The slot's object is written when it changes, and not by this interval.",
    )
    .unit("seconds")
    .at_least(1.0)
    .section("Policy Configuration: Owner State"),
    Knob::new(
        "RUNBENCHMARKS",
        Kind::Expression,
        STARTD,
        Honored,
        "Whether an unclaimed machine measures Mips and KFlops now.",
    )
    .per_slot_type()
    .section("Policy Configuration: Machine Activities"),
    Knob::new(
        "PERIODIC_CHECKPOINT",
        Kind::Expression,
        STARTD,
        Meaningless("only jobs of the standard universe, which is gone, wrote checkpoints when told"),
        "Whether to write a checkpoint now.",
    )
    .section("Startd Policy Configuration (6.6): State/Activity Transition Expression Summary"),
    Knob::new("ENABLE_BACKFILL", Kind::Boolean, STARTD, Honored, "Whether idle slots may run backfill work."),
    Knob::new(
        "BACKFILL_SYSTEM",
        Kind::Text,
        STARTD,
        Honored,
        "Which system does backfill work: BOINC or unset. In both cases the work is the pod template of spec.backfill.",
    ),
    Knob::new(
        "START_BACKFILL",
        Kind::Expression,
        STARTD,
        Honored,
        "Whether an idle slot begins backfill work.",
    )
    .section("Policy Configuration: Machine States"),
    Knob::new("EVICT_BACKFILL", Kind::Expression, STARTD, Honored, "Whether a slot ends its backfill work.")
        .section("Policy Configuration: Machine States"),
    Knob::new(
        "DEFAULT_DRAINING_START_EXPR",
        Kind::Expression,
        STARTD,
        Honored,
        "START while a machine drains, where the request says nothing.",
    ),
    Knob::new(
        "ALIVE_INTERVAL",
        Kind::Integer,
        STARTD,
        Honored,
        "How often a claim is confirmed: here by the node's Lease.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Policy Configuration: The Claimed State and Leases"),
    Knob::new(
        "MAX_CLAIM_ALIVES_MISSED",
        Kind::Integer,
        STARTD,
        Honored,
        "How many missed confirmations end a claim.",
    )
    .at_least(0.0)
    .section("Policy Configuration: The Claimed State and Leases"),
    Knob::new(
        "JOB_RENICE_INCREMENT",
        Kind::Expression,
        STARTD,
        MappedTo("the CPU request in the job's pod template, by which the kernel shares CPU time"),
        "By how much jobs are nicer than other processes.",
    )
    .section("Policy Configuration: The START Expression"),
    Knob::new(
        "SlotWeight",
        Kind::Expression,
        STARTD,
        Honored,
        "SLOT_WEIGHT under the name that slot types use: SLOT_TYPE_<N>_SlotWeight.",
    )
    .per_slot_type(),
    Knob::new(
        "SLOT_WEIGHT",
        Kind::Expression,
        STARTD,
        Honored,
        "The cost of a slot for its user, in quotas and priorities.",
    )
    .per_slot_type()
    .section("Policy Configuration: condor_negotiator-Side Resource Consumption Policies"),
    Knob::new(
        "STARTD_ATTRS",
        Kind::List,
        STARTD,
        Honored,
        "Names whose values become attributes of the slots' ads.",
    )
    .per_slot_type()
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "SLOT<N>_STARTD_ATTRS",
        Kind::List,
        STARTD,
        Honored,
        "Names whose values become attributes of the ad of the slot with this number.",
    )
    .section("Policy Configuration: Configuring STARTD_ATTRS on a per-slot basis"),
    Knob::new("SYSTEM_STARTD_ATTRS", Kind::List, STARTD, Honored, "Names that HTCondor itself adds to STARTD_ATTRS."),
    Knob::new(
        "STARTD_SLOT_ATTRS",
        Kind::List,
        STARTD,
        Honored,
        "Attributes that every slot publishes into all slots of the machine, as slot1_State.",
    )
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "SYSTEM_STARTD_SLOT_ATTRS",
        Kind::List,
        STARTD,
        Honored,
        "Attributes that HTCondor itself adds to STARTD_SLOT_ATTRS.",
    ),
    Knob::new(
        "STARTD_JOB_ATTRS",
        Kind::List,
        STARTD,
        Honored,
        "Attributes of the job that its slot publishes.",
    ),
    Knob::new(
        "SYSTEM_STARTD_JOB_ATTRS",
        Kind::List,
        STARTD,
        Planned,
        "Attributes of the job that HTCondor itself adds to STARTD_JOB_ATTRS.",
    ),
    Knob::new(
        "STARTD_PARTITIONABLE_SLOT_ATTRS",
        Kind::List,
        STARTD,
        Honored,
        "Attributes of dynamic slots that their partitionable slot lists, as ChildState.",
    ),
    Knob::new(
        "UID_DOMAIN",
        Kind::Text,
        STARTD,
        Honored,
        "The domain of the machine's user names, published as UidDomain; the node's name otherwise.",
    ),
    Knob::new(
        "FILESYSTEM_DOMAIN",
        Kind::Text,
        STARTD,
        Honored,
        "The domain of machines that share file systems, published as FileSystemDomain; the node's name otherwise.",
    ),
    Knob::new(
        "STARTD_LATCH_EXPRS",
        Kind::List,
        STARTD,
        Honored,
        "Names whose value and the time it last changed are published, as CpuBusyValue and CpuBusyTime.",
    ),
    Knob::new(
        "SYSTEM_STARTD_LATCH_EXPRS",
        Kind::List,
        STARTD,
        Planned,
        "Names that HTCondor itself adds to STARTD_LATCH_EXPRS.",
    ),
    Knob::new(
        "CpuBusy",
        Kind::Expression,
        STARTD,
        Honored,
        "Whether the machine's CPUs are busy with other things than jobs: published as CpuIsBusy.",
    )
    .per_slot_type()
    .section("Policy Configuration: Claimed State"),
    Knob::new(
        "SLOTS_CONNECTED_TO_KEYBOARD",
        Kind::Integer,
        STARTD,
        Honored,
        "How many slots see the keyboard being used. If unset, all slots do.",
    )
    .ours("")
    .unit("slots")
    .at_least(0.0)
    .section("Policy Configuration: Configuration Specific to Multi-core Machines"),
    Knob::new(
        "SLOTS_CONNECTED_TO_CONSOLE",
        Kind::Integer,
        STARTD,
        Honored,
        "How many slots see the console being used. If unset, all slots do.",
    )
    .ours("")
    .unit("slots")
    .at_least(0.0)
    .section("Policy Configuration: Configuration Specific to Multi-core Machines"),
    Knob::new(
        "DISCONNECTED_KEYBOARD_IDLE_BOOST",
        Kind::Integer,
        STARTD,
        Honored,
        "How much longer than the startd runs the keyboard counts as idle on the other slots.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Policy Configuration: Configuration Specific to Multi-core Machines"),
];
