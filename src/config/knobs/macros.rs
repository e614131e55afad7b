//! Names that only other values refer to, for writing policies.

use super::knob::Support::{Honored, Meaningless};
use super::knob::{Kind, Knob, Reader};

const MACROS: &[Reader] = &[Reader::Macros];

pub(super) const KNOBS: &[Knob] = &[
    Knob::new("MINUTE", Kind::Real, MACROS, Honored, "A minute.")
        .unit("seconds")
        .section("Policy Configuration: Owner State"),
    Knob::new("HOUR", Kind::Real, MACROS, Honored, "An hour.")
        .unit("seconds")
        .section("Policy Configuration: Unclaimed State"),
    Knob::new("StateTimer", Kind::Expression, MACROS, Honored, "How long the slot has been in its state.")
        .unit("seconds")
        .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "ActivityTimer",
        Kind::Expression,
        MACROS,
        Honored,
        "How long the slot has been in its activity.",
    )
    .unit("seconds")
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "ActivationTimer",
        Kind::Expression,
        MACROS,
        Honored,
        "How long the job runs; defined by use FEATURE : Policy_Expr_Fragments.",
    )
    .unit("seconds")
    .section("Policy Configuration: Claimed State"),
    Knob::new("BenchmarkTimer", Kind::Expression, MACROS, Honored, "How long ago the machine was measured.")
        .unit("seconds")
        .section("Startd Policy Configuration (6.6): State and Activity Transitions"),
    Knob::new(
        "LastCkpt",
        Kind::Expression,
        MACROS,
        Honored,
        "How long ago the job wrote a checkpoint; defined by use FEATURE : Policy_Expr_Fragments.",
    )
    .unit("seconds")
    .section("Startd Policy Configuration (6.6): Policy Settings"),
    Knob::new(
        "BackgroundLoad",
        Kind::Real,
        MACROS,
        Honored,
        "The load by others that counts as an idle CPU.",
    )
    .unit("load")
    .at_least(0.0)
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new("HighLoad", Kind::Real, MACROS, Honored, "The load by others that counts as a busy CPU.")
        .unit("load")
        .at_least(0.0)
        .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "StartIdleTime",
        Kind::Real,
        MACROS,
        Honored,
        "How long the keyboard must be idle before a job starts.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "ContinueIdleTime",
        Kind::Real,
        MACROS,
        Honored,
        "How long the keyboard must be idle before a job goes on.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new("MaxSuspendTime", Kind::Real, MACROS, Honored, "How long a job may be suspended.")
        .unit("seconds")
        .at_least(0.0)
        .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new("MaxVacateTime", Kind::Real, MACROS, Honored, "How long a job may vacate.")
        .unit("seconds")
        .at_least(0.0)
        .section("Startd Policy Configuration (6.6): Policy Settings"),
    Knob::new(
        "NonCondorLoadAvg",
        Kind::Expression,
        MACROS,
        Honored,
        "The load by others; defined by use FEATURE : Policy_Expr_Fragments.",
    )
    .unit("load")
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "CPUIdle",
        Kind::Expression,
        MACROS,
        Honored,
        "Whether the CPU is idle but for jobs; defined by use FEATURE : Policy_Expr_Fragments.",
    )
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "KeyboardBusy",
        Kind::Expression,
        MACROS,
        Honored,
        "Whether the keyboard is used; defined by use FEATURE : Policy_Expr_Fragments.",
    )
    .section("Policy Configuration: Claimed State"),
    Knob::new(
        "KeyboardNotBusy",
        Kind::Expression,
        MACROS,
        Honored,
        "Whether the keyboard is not used; defined by use FEATURE : Policy_Expr_Fragments.",
    )
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "ConsoleBusy",
        Kind::Expression,
        MACROS,
        Honored,
        "Whether the console is used; defined by use FEATURE : Policy_Expr_Fragments.",
    )
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "MachineBusy",
        Kind::Expression,
        MACROS,
        Honored,
        "Whether the CPU is busy or the keyboard is used; defined by use FEATURE : Policy_Expr_Fragments.",
    )
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "JustCpu",
        Kind::Expression,
        MACROS,
        Honored,
        "Whether only the CPU is busy; defined by use FEATURE : Policy_Expr_Fragments.",
    )
    .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new("IsVanilla", Kind::Expression, MACROS, Honored, "Whether the job is of the vanilla universe.")
        .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new("IsMPI", Kind::Expression, MACROS, Honored, "Whether the job is of the MPI universe."),
    Knob::new("IsVM", Kind::Expression, MACROS, Honored, "Whether the job is of the vm universe."),
    Knob::new(
        "IsStandard",
        Kind::Expression,
        MACROS,
        Honored,
        "Whether the job is of the standard universe.",
    ),
    Knob::new(
        "IsPVM",
        Kind::Expression,
        MACROS,
        Meaningless("HTCondor does not define it any more, nor is it defined here"),
        "Whether the job is of the PVM universe.",
    )
    .section("Startd Policy Configuration (6.6): Policy Settings"),
    Knob::new("SmallJob", Kind::Expression, MACROS, Honored, "Whether the job is small: ImageSize below 15 MiB. Waiting jobs have no ImageSize unless they give one.")
        .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new("MediumJob", Kind::Expression, MACROS, Honored, "Whether the job is of middle size, by its ImageSize."),
    Knob::new("BigJob", Kind::Expression, MACROS, Honored, "Whether the job is big: ImageSize of 50 MiB or more."),
    Knob::new("DETECTED_CORES", Kind::Integer, MACROS, Honored, "How many cores the machine has.")
        .unit("cores")
        .at_least(0.0)
        .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new("DETECTED_CPUS", Kind::Integer, MACROS, Honored, "How many CPUs the machine has.")
        .unit("CPUs")
        .at_least(0.0),
    Knob::new(
        "DETECTED_PHYSICAL_CPUS",
        Kind::Integer,
        MACROS,
        Honored,
        "How many CPUs the machine has, hyperthreads apart; Kubernetes does not tell them apart.",
    )
    .unit("CPUs")
    .at_least(0.0),
    Knob::new("DETECTED_MEMORY", Kind::Integer, MACROS, Honored, "How much memory the machine has.")
        .unit("MiB")
        .at_least(0.0)
        .section("Policy Configuration: Examples of Policy Configuration"),
    Knob::new(
        "DETECTED_CPUS_LIMIT",
        Kind::Integer,
        MACROS,
        Honored,
        "How many CPUs the machine has, and HTCondor may use.",
    )
    .unit("CPUs")
    .at_least(0.0),
    Knob::new(
        "ARCH",
        Kind::Text,
        MACROS,
        Honored,
        "The machine's architecture, as HTCondor calls it: X86_64.",
    ),
    Knob::new(
        "OPSYS",
        Kind::Text,
        MACROS,
        Honored,
        "The machine's operating system, as HTCondor calls it: LINUX.",
    ),
    Knob::new("UNAME_ARCH", Kind::Text, MACROS, Honored, "The machine's architecture, as `uname` calls it."),
    Knob::new(
        "UNAME_OPSYS",
        Kind::Text,
        MACROS,
        Honored,
        "The machine's operating system, as `uname` calls it.",
    ),
    Knob::new("HOSTNAME", Kind::Text, MACROS, Honored, "The node's name, up to the first dot."),
    Knob::new("FULL_HOSTNAME", Kind::Text, MACROS, Honored, "The node's name."),
];
