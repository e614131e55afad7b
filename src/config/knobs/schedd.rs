//! The access point: how jobs are transformed, which are refused, and what happens to jobs that wait or run.

use super::knob::Support::{Honored, MappedTo, Planned};
use super::knob::{Kind, Knob, Reader, Support};

const SCHEDD: &[Reader] = &[Reader::Schedd];
const SUBMIT: &[Reader] = &[Reader::Submit];
const COUNT_QUOTA: Support =
    Support::MappedTo("a ResourceQuota of the namespace on count/htcjobs.slotwright.dev");

pub(super) const KNOBS: &[Knob] = &[
    Knob::new(
        "JOB_TRANSFORM_NAMES",
        Kind::List,
        SCHEDD,
        Honored,
        "Which transforms jobs go through, in this order.",
    )
    .section("Policy Configuration: Job Transforms"),
    Knob::new(
        "JOB_TRANSFORM_<name>",
        Kind::Transform,
        SCHEDD,
        Honored,
        "The rules of the transform of this name.",
    )
    .section("Policy Configuration: Job Transforms"),
    Knob::new(
        "SUBMIT_REQUIREMENT_NAMES",
        Kind::List,
        SCHEDD,
        Honored,
        "The names of the requirements that jobs must meet to be accepted, in this order.",
    )
    .section("Policy Configuration: Submit Requirements"),
    Knob::new(
        "SUBMIT_REQUIREMENT_<name>",
        Kind::Expression,
        SCHEDD,
        Honored,
        "A condition that jobs must make true. MY is the schedd, TARGET the job.",
    )
    .section("Policy Configuration: Submit Requirements"),
    Knob::new(
        "SUBMIT_REQUIREMENT_<name>_REASON",
        Kind::Expression,
        SCHEDD,
        Honored,
        "The reason that the user is told if the job does not meet the requirement: a string.",
    )
    .section("Policy Configuration: Submit Requirements"),
    Knob::new(
        "SUBMIT_REQUIREMENT_<name>_IS_WARNING",
        Kind::Expression,
        SCHEDD,
        Honored,
        "Whether a job that does not meet the requirement is accepted with a warning.",
    )
    .fallback("False")
    .section("Policy Configuration: Submit Warnings"),
    Knob::new(
        "IMMUTABLE_JOB_ATTRS",
        Kind::List,
        SCHEDD,
        Honored,
        "Attributes that cannot be changed once they are set.",
    ),
    Knob::new(
        "PROTECTED_JOB_ATTRS",
        Kind::List,
        SCHEDD,
        Honored,
        "Attributes that nobody changes once they are set, as IMMUTABLE_JOB_ATTRS.",
    ),
    Knob::new(
        "QUEUE_SUPER_USERS",
        Kind::List,
        SCHEDD,
        Honored,
        "Owners who may edit the spec of everybody's jobs, where spec.owner asks who created a job and the admission webhook \
         serves. Groups (%name) do not count.",
    )
    .ours(""),
    Knob::new(
        "SECURE_JOB_ATTRS",
        Kind::List,
        SCHEDD,
        Honored,
        "Attributes that only transforms set: not users, and not QUEUE_SUPER_USERS. Those of SYSTEM_SECURE_JOB_ATTRS are secure, too.",
    ),
    Knob::new(
        "IGNORE_ATTEMPTS_TO_SET_SECURE_JOB_ATTRS",
        Kind::Boolean,
        SCHEDD,
        Honored,
        "Whether a job that sets a secure attribute goes on without it, with a warning. If not, the job or the edit is refused.",
    ),
    Knob::new("SCHEDD_CLASSAD_USER_MAP_NAMES", Kind::List, SCHEDD, Honored, "Which maps userMap() knows.")
        .section("Policy Configuration: Job Transforms"),
    Knob::new(
        "CLASSAD_USER_MAPFILE_<name>",
        Kind::Text,
        SCHEDD,
        MappedTo("the lines of the file in CLASSAD_USER_MAPDATA_<name>"),
        "The file that has the lines of the user map of this name.",
    ),
    Knob::new(
        "CLASSAD_USER_MAPDATA_<name>",
        Kind::Text,
        SCHEDD,
        Honored,
        "The lines of the user map of this name.",
    ),
    Knob::new(
        "CLASSAD_USER_MAP_PREFIX_<name>",
        Kind::Boolean,
        SCHEDD,
        Honored,
        "Whether the user map of this name compares the beginnings of names.",
    ),
    Knob::new(
        "JOB_DEFAULT_REQUESTCPUS",
        Kind::Expression,
        SUBMIT,
        Honored,
        "How many CPUs a job asks for that does not say.",
    )
    .unit("CPUs")
    .section("Policy Configuration: Defaults for Partitionable Slot Sizes"),
    Knob::new(
        "JOB_DEFAULT_REQUESTMEMORY",
        Kind::Amount(1 << 20),
        SUBMIT,
        Honored,
        "How much memory a job asks for that does not say.",
    )
    .unit("MiB")
    .section("Policy Configuration: Defaults for Partitionable Slot Sizes"),
    Knob::new(
        "JOB_DEFAULT_REQUESTDISK",
        Kind::Amount(1 << 10),
        SUBMIT,
        Honored,
        "How much disk a job asks for that does not say.",
    )
    .unit("KiB")
    .section("Policy Configuration: Defaults for Partitionable Slot Sizes"),
    Knob::new(
        "JOB_DEFAULT_LEASE_DURATION",
        Kind::Integer,
        SUBMIT,
        Honored,
        "For how long a claim is kept whose node is silent.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "APPEND_REQUIREMENTS",
        Kind::Expression,
        SUBMIT,
        Planned,
        "The expression that is added to every job's Requirements.",
    ),
    Knob::new("DEFAULT_RANK", Kind::Expression, SUBMIT, Planned, "The Rank of jobs without one."),
    Knob::new(
        "SUBMIT_ATTRS",
        Kind::List,
        SUBMIT,
        Planned,
        "Names whose values become attributes of every job.",
    ),
    Knob::new("SYSTEM_PERIODIC_HOLD", Kind::Expression, SCHEDD, Honored, "Which jobs are held."),
    Knob::new(
        "SYSTEM_PERIODIC_HOLD_NAMES",
        Kind::List,
        SCHEDD,
        Honored,
        "Names of more expressions with the meaning of SYSTEM_PERIODIC_HOLD.",
    ),
    Knob::new(
        "SYSTEM_PERIODIC_HOLD_<name>",
        Kind::Expression,
        SCHEDD,
        Honored,
        "An expression that SYSTEM_PERIODIC_HOLD_NAMES names, with the meaning of SYSTEM_PERIODIC_HOLD.",
    ),
    Knob::new(
        "SYSTEM_PERIODIC_HOLD_REASON",
        Kind::Expression,
        SCHEDD,
        Honored,
        "The reason of a hold by SYSTEM_PERIODIC_HOLD: a string.",
    ),
    Knob::new(
        "SYSTEM_PERIODIC_HOLD_SUBCODE",
        Kind::Expression,
        SCHEDD,
        Honored,
        "The subcode of a hold by SYSTEM_PERIODIC_HOLD: an integer.",
    ),
    Knob::new("SYSTEM_PERIODIC_RELEASE", Kind::Expression, SCHEDD, Honored, "Which held jobs are released."),
    Knob::new(
        "SYSTEM_PERIODIC_RELEASE_NAMES",
        Kind::List,
        SCHEDD,
        Honored,
        "Names of more expressions with the meaning of SYSTEM_PERIODIC_RELEASE.",
    ),
    Knob::new(
        "SYSTEM_PERIODIC_RELEASE_<name>",
        Kind::Expression,
        SCHEDD,
        Honored,
        "An expression that SYSTEM_PERIODIC_RELEASE_NAMES names, with the meaning of SYSTEM_PERIODIC_RELEASE.",
    ),
    Knob::new("SYSTEM_PERIODIC_REMOVE", Kind::Expression, SCHEDD, Honored, "Which jobs are removed."),
    Knob::new(
        "SYSTEM_PERIODIC_REMOVE_NAMES",
        Kind::List,
        SCHEDD,
        Honored,
        "Names of more expressions with the meaning of SYSTEM_PERIODIC_REMOVE.",
    ),
    Knob::new(
        "SYSTEM_PERIODIC_REMOVE_<name>",
        Kind::Expression,
        SCHEDD,
        Honored,
        "An expression that SYSTEM_PERIODIC_REMOVE_NAMES names, with the meaning of SYSTEM_PERIODIC_REMOVE.",
    ),
    Knob::new("SYSTEM_PERIODIC_VACATE", Kind::Expression, SCHEDD, Honored, "Which jobs are vacated."),
    Knob::new(
        "SYSTEM_PERIODIC_VACATE_NAMES",
        Kind::List,
        SCHEDD,
        Honored,
        "Names of more expressions with the meaning of SYSTEM_PERIODIC_VACATE.",
    ),
    Knob::new(
        "SYSTEM_PERIODIC_VACATE_<name>",
        Kind::Expression,
        SCHEDD,
        Honored,
        "An expression that SYSTEM_PERIODIC_VACATE_NAMES names, with the meaning of SYSTEM_PERIODIC_VACATE.",
    ),
    Knob::new(
        "SYSTEM_ON_VACATE_COOL_DOWN",
        Kind::Expression,
        SCHEDD,
        Planned,
        "How long a vacated job waits before it is matched again.",
    )
    .unit("seconds"),
    Knob::new(
        "SYSTEM_MAX_RELEASES",
        Kind::Integer,
        SCHEDD,
        Honored,
        "How often the policy may release a job.",
    )
    .unit("releases"),
    Knob::new(
        "PERIODIC_EXPR_INTERVAL",
        Kind::Integer,
        SCHEDD,
        Honored,
        "How often periodic expressions, such as SYSTEM_PERIODIC_HOLD, are evaluated.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "MAX_PERIODIC_EXPR_INTERVAL",
        Kind::Integer,
        SCHEDD,
        Support::Meaningless(
            "the operator bounds what evaluations cost in each second, so that they are rarer where they take long",
        ),
        "The longest time between two evaluations of periodic expressions that take long.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "PERIODIC_EXPR_TIMESLICE",
        Kind::Real,
        SCHEDD,
        Support::Meaningless(
            "the operator bounds what evaluations cost in each second",
        ),
        "How much of the schedd's time periodic expressions may take.",
    )
    .unit("share of the time")
    .between(0.0, 1.0),
    Knob::new(
        "MAX_JOBS_PER_OWNER",
        Kind::Integer,
        SCHEDD,
        COUNT_QUOTA,
        "How many jobs an owner may have in the queue.",
    )
    .unit("jobs")
    .at_least(0.0),
    Knob::new(
        "MAX_JOBS_PER_SUBMISSION",
        Kind::Integer,
        SCHEDD,
        Planned,
        "How many jobs one submission may have.",
    )
    .unit("jobs")
    .at_least(0.0),
    Knob::new("MAX_JOBS_SUBMITTED", Kind::Integer, SCHEDD, COUNT_QUOTA, "How many jobs the queue may have.")
        .unit("jobs")
        .at_least(0.0),
    Knob::new(
        "MAX_JOBS_RUNNING",
        Kind::Integer,
        SCHEDD,
        MappedTo("spec.ceiling of a Submitter, or a GroupQuota"),
        "How many jobs of the queue may run at once.",
    )
    .unit("jobs")
    .at_least(0.0),
];
