//! The defrag daemon: which machines to drain, so that large jobs find room.

use super::knob::Support::{MappedTo, Meaningless, Planned};
use super::knob::{Kind, Knob, Reader};

const DEFRAG: &[Reader] = &[Reader::Defrag];

pub(super) const KNOBS: &[Knob] = &[
    Knob::new("DEFRAG_INTERVAL", Kind::Integer, DEFRAG, Planned, "How often it looks at the pool.")
        .unit("seconds")
        .at_least(0.0)
        .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new(
        "DEFRAG_DRAINING_MACHINES_PER_HOUR",
        Kind::Real,
        DEFRAG,
        Planned,
        "How many machines it begins to drain in an hour.",
    )
    .unit("machines an hour")
    .at_least(0.0)
    .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new(
        "DEFRAG_MAX_CONCURRENT_DRAINING",
        Kind::Integer,
        DEFRAG,
        Planned,
        "How many machines drain at once at the most; -1 for no bound.",
    )
    .unit("machines")
    .at_least(-1.0)
    .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new(
        "DEFRAG_MAX_WHOLE_MACHINES",
        Kind::Integer,
        DEFRAG,
        Planned,
        "How many whole machines are enough; -1 for no bound.",
    )
    .unit("machines")
    .at_least(-1.0)
    .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new("DEFRAG_REQUIREMENTS", Kind::Expression, DEFRAG, Planned, "Which machines it may drain."),
    Knob::new("DEFRAG_RANK", Kind::Expression, DEFRAG, Planned, "Which of them first: the greatest."),
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
        "Which draining machines it lets go again.",
    ),
    Knob::new(
        "DEFRAG_DRAINING_SCHEDULE",
        Kind::Text,
        DEFRAG,
        Planned,
        "How jobs leave: graceful, quick or fast.",
    ),
    Knob::new(
        "DEFRAG_DRAINING_START_EXPR",
        Kind::Expression,
        DEFRAG,
        Planned,
        "START of the machine while it drains.",
    )
    .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new(
        "DEFRAG_UPDATE_INTERVAL",
        Kind::Integer,
        DEFRAG,
        Meaningless("statistics are written when they change"),
        "How often it publishes its statistics.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new("DEFRAG_NAME", Kind::Text, DEFRAG, Planned, "Its name, which marks the drains that it began."),
    Knob::new("DEFRAG_LOG", Kind::Text, DEFRAG, MappedTo("the operator's log"), "Its log."),
];
