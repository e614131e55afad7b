//! The negotiator: its cycle, preemption, ranks.

use super::knob::Support::{Honored, MappedTo, Meaningless, Planned};
use super::knob::{Kind, Knob, Reader, Support};

const NEGOTIATOR: &[Reader] = &[Reader::Negotiator];
const WHOLE_QUEUE: Support = Support::Meaningless("the negotiator sees the whole queue");

const FOUND_OUT: Support =
    Support::Meaningless("what tells jobs apart is found out in each cycle from all expressions there are");

pub(super) const KNOBS: &[Knob] = &[
    Knob::new(
        "NEGOTIATOR_INTERVAL",
        Kind::Integer,
        NEGOTIATOR,
        Honored,
        "How often a cycle runs while nothing changes.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "NEGOTIATOR_CYCLE_DELAY",
        Kind::Integer,
        NEGOTIATOR,
        Honored,
        "The least time from the end of a cycle to the next. If neither this nor NEGOTIATOR_MIN_INTERVAL is set, the pause \
         follows what a cycle costs.",
    )
    .unit("seconds")
    .at_least(0.0)
    .fallback("20")
    .section("Central Managers: The Negotiation Cycle"),
    Knob::new(
        "NEGOTIATOR_MIN_INTERVAL",
        Kind::Integer,
        NEGOTIATOR,
        Honored,
        "The least time from the beginning of a cycle to the next.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "NEGOTIATOR_NAME",
        Kind::Text,
        NEGOTIATOR,
        MappedTo("the name of the Negotiator object"),
        "The name of this negotiator, where there are several.",
    ),
    Knob::new(
        "NEGOTIATOR_SLOT_CONSTRAINT",
        Kind::Expression,
        NEGOTIATOR,
        Honored,
        "Which slots this negotiator hands out.",
    )
    .section("Central Managers: The Negotiation Cycle"),
    Knob::new(
        "NEGOTIATOR_PRE_JOB_RANK",
        Kind::Expression,
        NEGOTIATOR,
        Honored,
        "The rank of slots that counts before the job's own Rank.",
    )
    .section("Central Managers: The Negotiation Cycle"),
    Knob::new(
        "NEGOTIATOR_POST_JOB_RANK",
        Kind::Expression,
        NEGOTIATOR,
        Honored,
        "The rank of slots that counts after the job's own Rank.",
    )
    .section("Central Managers: The Negotiation Cycle"),
    Knob::new(
        "NEGOTIATOR_SUBMITTER_CONSTRAINT",
        Kind::Expression,
        NEGOTIATOR,
        Honored,
        "Which submitters this negotiator serves.",
    ),
    Knob::new(
        "NEGOTIATOR_JOB_CONSTRAINT",
        Kind::Expression,
        NEGOTIATOR,
        Honored,
        "Which jobs this negotiator serves.",
    ),
    Knob::new(
        "NEGOTIATOR_SLOT_POOLSIZE_CONSTRAINT",
        Kind::Expression,
        NEGOTIATOR,
        Honored,
        "Which slots count in the size of the pool.",
    ),
    Knob::new(
        "NEGOTIATOR_TIMEOUT",
        Kind::Integer,
        NEGOTIATOR,
        Meaningless("no schedd is asked over a network"),
        "How long a schedd may take to answer.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "NEGOTIATOR_MAX_TIME_PER_CYCLE",
        Kind::Integer,
        NEGOTIATOR,
        Honored,
        "How long a cycle may take.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "NEGOTIATOR_MAX_TIME_PER_SUBMITTER",
        Kind::Integer,
        NEGOTIATOR,
        Honored,
        "How long a submitter may take of a cycle.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "NEGOTIATOR_MAX_TIME_PER_SCHEDD",
        Kind::Integer,
        NEGOTIATOR,
        Meaningless("there is one queue of jobs"),
        "How long a schedd may take of a cycle.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "NEGOTIATOR_MAX_TIME_PER_PIESPIN",
        Kind::Integer,
        NEGOTIATOR,
        Honored,
        "How long a submitter may take of a pie spin.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "NEGOTIATOR_CONSIDER_PREEMPTION",
        Kind::Boolean,
        NEGOTIATOR,
        Honored,
        "Whether claimed slots are candidates, too.",
    )
    .section("Central Managers: The Negotiation Cycle"),
    Knob::new(
        "NEGOTIATOR_CONSIDER_EARLY_PREEMPTION",
        Kind::Boolean,
        NEGOTIATOR,
        Honored,
        "Whether slots whose job has retirement time left are candidates, too.",
    )
    .section("Policy Configuration: State/Activity Transition Expression Summary"),
    Knob::new(
        "PREEMPTION_REQUIREMENTS",
        Kind::Expression,
        NEGOTIATOR,
        Honored,
        "A better priority takes a slot only while this expression is true.",
    )
    .section("Central Managers: The Negotiation Cycle"),
    Knob::new(
        "PREEMPTION_REQUIREMENTS_STABLE",
        Kind::Boolean,
        NEGOTIATOR,
        Honored,
        "Whether PREEMPTION_REQUIREMENTS stays what it is during a cycle.",
    )
    .fallback("True")
    .section("Central Managers: Priorities in Negotiation and Preemption"),
    Knob::new("PREEMPTION_RANK", Kind::Expression, NEGOTIATOR, Honored, "Which of several slots to take.")
        .section("Central Managers: The Negotiation Cycle"),
    Knob::new(
        "PREEMPTION_RANK_STABLE",
        Kind::Boolean,
        NEGOTIATOR,
        Honored,
        "Whether PREEMPTION_RANK stays what it is during a cycle.",
    )
    .fallback("True")
    .section("Central Managers: Priorities in Negotiation and Preemption"),
    Knob::new(
        "ALLOW_PSLOT_PREEMPTION",
        Kind::Boolean,
        NEGOTIATOR,
        Honored,
        "Whether several dynamic slots may be taken at once for a large job.",
    )
    .fallback("False")
    .section("Policy Configuration: Dynamic Provisioning: Partitionable and Dynamic Slots"),
    Knob::new(
        "NEGOTIATOR_IGNORE_JOB_RANKS",
        Kind::Boolean,
        NEGOTIATOR,
        Honored,
        "Whether a job's own Rank is left out.",
    )
    .fallback("False"),
    Knob::new(
        "NEGOTIATOR_DEPTH_FIRST",
        Kind::Boolean,
        NEGOTIATOR,
        Honored,
        "Whether jobs fill one slot after the other.",
    ),
    Knob::new(
        "NEGOTIATOR_MATCH_EXPRS",
        Kind::List,
        NEGOTIATOR,
        Planned,
        "Names whose values are published in the ad of a match.",
    ),
    Knob::new(
        "NEGOTIATOR_MATCHLIST_CACHING",
        Kind::Boolean,
        NEGOTIATOR,
        Meaningless("slots are ranked once for all jobs of a request, which changes no answer"),
        "Whether slots are ranked once for all jobs of a request.",
    ),
    Knob::new(
        "NEGOTIATOR_RESOURCE_REQUEST_LIST_SIZE",
        Kind::Integer,
        NEGOTIATOR,
        WHOLE_QUEUE,
        "How many requests a schedd sends at a time.",
    )
    .unit("requests")
    .at_least(1.0),
    Knob::new(
        "NEGOTIATOR_PREFETCH_REQUESTS",
        Kind::Boolean,
        NEGOTIATOR,
        WHOLE_QUEUE,
        "Whether requests are fetched before they are needed.",
    ),
    Knob::new(
        "NEGOTIATOR_PREFETCH_REQUESTS_MAX_TIME",
        Kind::Integer,
        NEGOTIATOR,
        WHOLE_QUEUE,
        "How long the fetching of requests may take.",
    )
    .unit("seconds")
    .at_least(0.0),
    Knob::new(
        "USE_RESOURCE_REQUEST_COUNTS",
        Kind::Boolean,
        NEGOTIATOR,
        Meaningless("the procs of a job are always one request"),
        "Whether equal jobs are one request.",
    ),
    Knob::new(
        "NEGOTIATOR_INFORM_STARTD",
        Kind::Boolean,
        NEGOTIATOR,
        Meaningless("negotiator and startd are one process"),
        "Whether the startd hears of a match from the negotiator.",
    ),
    Knob::new(
        "NEGOTIATOR_CROSS_SLOT_PRIOS",
        Kind::Boolean,
        NEGOTIATOR,
        Planned,
        "Whether the priorities of all slots' users are in each slot's ad.",
    ),
    Knob::new(
        "NEGOTIATOR_NUM_THREADS",
        Kind::Integer,
        NEGOTIATOR,
        Meaningless("a cycle runs on one thread"),
        "On how many threads a cycle runs.",
    )
    .unit("threads")
    .at_least(1.0),
    Knob::new(
        "NEGOTIATION_CYCLE_STATS_LENGTH",
        Kind::Integer,
        NEGOTIATOR,
        MappedTo("status.lastCycle of the Negotiator, which tells of one cycle"),
        "For how many cycles statistics are published.",
    )
    .unit("cycles")
    .at_least(0.0),
    Knob::new(
        "MATCH_WORKING_CM_SLOTS",
        Kind::Boolean,
        NEGOTIATOR,
        Planned,
        "Whether slots that another negotiator works on are candidates.",
    )
    .fallback("False"),
    Knob::new(
        "NEGOTIATE_ALL_JOBS_IN_CLUSTER",
        Kind::Boolean,
        NEGOTIATOR,
        Meaningless("the procs of a job are alike"),
        "Whether the rest of a cluster is tried when one of its jobs finds no slot.",
    )
    .section("Central Managers: The Negotiation Cycle"),
    Knob::new(
        "SIGNIFICANT_ATTRIBUTES",
        Kind::List,
        NEGOTIATOR,
        FOUND_OUT,
        "Which attributes of jobs tell jobs apart in matching, instead of those that the negotiator finds.",
    )
    .section("Central Managers: The Negotiation Cycle"),
    Knob::new(
        "ADD_SIGNIFICANT_ATTRIBUTES",
        Kind::List,
        NEGOTIATOR,
        FOUND_OUT,
        "Which more attributes of jobs tell jobs apart in matching.",
    ),
    Knob::new(
        "REMOVE_SIGNIFICANT_ATTRIBUTES",
        Kind::List,
        NEGOTIATOR,
        FOUND_OUT,
        "Which attributes of jobs do not tell jobs apart.",
    ),
    Knob::new(
        "REMOVE_SIGNIFICANT_ATTRIBUTES_REGEX",
        Kind::Text,
        NEGOTIATOR,
        FOUND_OUT,
        "Which attributes of jobs do not tell jobs apart, by a regular expression.",
    ),
    Knob::new(
        "USE_GLOBAL_JOB_PRIOS",
        Kind::Boolean,
        NEGOTIATOR,
        Planned,
        "Whether a submitter's jobs of higher JobPrio go before other submitters' on an equal footing.",
    ),
];
