//! The defrag daemon: which machines to drain, so that large jobs find room.

use super::knob::Support::{MappedTo, Meaningless, Planned};
use super::knob::{Kind, Knob, Reader};

const DEFRAG: &[Reader] = &[Reader::Defrag];

pub(super) const KNOBS: &[Knob] = &[
    Knob::new(
        "DEFRAG_INTERVAL",
        Kind::Integer,
        DEFRAG,
        Planned,
        "How often condor_defrag looks at the pool.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new(
        "DEFRAG_DRAINING_MACHINES_PER_HOUR",
        Kind::Real,
        DEFRAG,
        Planned,
        "How many machines condor_defrag begins to drain in an hour.",
    )
    .unit("machines an hour")
    .at_least(0.0)
    .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new(
        "DEFRAG_MAX_CONCURRENT_DRAINING",
        Kind::Integer,
        DEFRAG,
        Planned,
        "How many machines condor_defrag drains at once at most; -1 for no bound.",
    )
    .unit("machines")
    .at_least(-1.0)
    .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new(
        "DEFRAG_MAX_WHOLE_MACHINES",
        Kind::Integer,
        DEFRAG,
        Planned,
        "With how many whole machines condor_defrag drains no more; -1 for no bound.",
    )
    .unit("machines")
    .at_least(-1.0)
    .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new(
        "DEFRAG_REQUIREMENTS",
        Kind::Expression,
        DEFRAG,
        Planned,
        "Which machines condor_defrag may drain.",
    ),
    Knob::new(
        "DEFRAG_RANK",
        Kind::Expression,
        DEFRAG,
        Planned,
        "Which machines condor_defrag drains first: those of the greatest value.",
    ),
    Knob::new(
        "DEFRAG_WHOLE_MACHINE_EXPR",
        Kind::Expression,
        DEFRAG,
        Planned,
        "Which machines count as whole.",
    ),
    Knob::new(
        "DEFRAG_CANCEL_REQUIREMENTS",
        Kind::Expression,
        DEFRAG,
        Planned,
        "Which draining machines condor_defrag lets go again.",
    ),
    Knob::new(
        "DEFRAG_DRAINING_SCHEDULE",
        Kind::Text,
        DEFRAG,
        Planned,
        "How jobs leave a machine that condor_defrag drains: graceful, quick or fast.",
    ),
    Knob::new(
        "DEFRAG_DRAINING_START_EXPR",
        Kind::Expression,
        DEFRAG,
        Planned,
        "START of a machine while condor_defrag drains it.",
    )
    .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new(
        "DEFRAG_UPDATE_INTERVAL",
        Kind::Integer,
        DEFRAG,
        Meaningless("statistics are written when they change"),
        "How often condor_defrag publishes its statistics.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "DEFRAG_NAME",
        Kind::Text,
        DEFRAG,
        Planned,
        "The name of condor_defrag, which marks the drains that it began.",
    ),
    Knob::new("DEFRAG_LOG", Kind::Text, DEFRAG, MappedTo("the operator's log"), "The log of condor_defrag."),
];
