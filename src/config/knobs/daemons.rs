//! Which daemons run where, and high availability of the central manager.

use super::knob::Support::{MappedTo, Meaningless};
use super::knob::{Kind, Knob, Reader, Support};

const MASTER: &[Reader] = &[Reader::Master];
const NO_DAEMONS: Support = Support::Meaningless("the operator is every daemon");
const LEADER: Support = Support::MappedTo("the operator's leader election");
const RECORDS: Support = Support::Meaningless("the accountant's records are objects in the API server");

pub(super) const KNOBS: &[Knob] = &[
    Knob::new("DAEMON_LIST", Kind::List, MASTER, NO_DAEMONS, "Which daemons a host runs.")
        .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new(
        "DC_DAEMON_LIST",
        Kind::List,
        MASTER,
        NO_DAEMONS,
        "Which daemons of DAEMON_LIST are HTCondor's own.",
    )
    .section("Central Managers: Configuration"),
    Knob::new("<name>_ARGS", Kind::Text, MASTER, NO_DAEMONS, "The arguments of a daemon."),
    Knob::new("<name>_ENVIRONMENT", Kind::Text, MASTER, NO_DAEMONS, "The environment of a daemon."),
    Knob::new("COLLECTOR", Kind::Text, MASTER, NO_DAEMONS, "The collector's program.")
        .section("Central Managers: Configuring a Machine to be a HTCondorView Server"),
    Knob::new("NEGOTIATOR", Kind::Text, MASTER, NO_DAEMONS, "The negotiator's program.")
        .section("Central Managers: Configuration"),
    Knob::new("DEFRAG", Kind::Text, MASTER, NO_DAEMONS, "The defrag daemon's program.")
        .section("Policy Configuration: Defragmenting Dynamic Slots"),
    Knob::new("HAD", Kind::Text, MASTER, LEADER, "The high availability daemon's program.")
        .section("Central Managers: Configuration"),
    Knob::new("REPLICATION", Kind::Text, MASTER, RECORDS, "The replication daemon's program.")
        .section("Central Managers: Configuration"),
    Knob::new("TRANSFERER", Kind::Text, MASTER, RECORDS, "The program with which replication copies files.")
        .section("Central Managers: Introduction to High availability"),
    Knob::new(
        "CONDOR_HOST",
        Kind::Text,
        MASTER,
        Meaningless("the API server is the collector"),
        "The central manager.",
    )
    .section("Central Managers: Sample Configuration"),
    Knob::new(
        "SHARED_PORT_PORT",
        Kind::Integer,
        MASTER,
        Meaningless("no daemon of HTCondor's listens"),
        "The port that all daemons share.",
    )
    .unit("port")
    .between(0.0, 65_535.0)
    .section("Central Managers: Sample Configuration"),
    Knob::new(
        "LOCAL_DIR",
        Kind::Text,
        MASTER,
        Meaningless("the operator keeps no files but the history, whose directory --history-dir names"),
        "HTCondor's directory on the host.",
    )
    .section("Central Managers: Configuring a Pool to Report to the HTCondorView Server"),
    Knob::new("LOG", Kind::Text, MASTER, MappedTo("the operator's log"), "The directory of logs.")
        .section("Central Managers: Configuring a Machine to be a HTCondorView Server"),
    Knob::new(
        "SPOOL",
        Kind::Text,
        MASTER,
        Meaningless("what must outlive the operator is in the API server"),
        "The directory of what outlives a daemon.",
    )
    .section("Central Managers: Sample Configuration"),
    Knob::new("HAD_LIST", Kind::List, MASTER, LEADER, "Where high availability daemons run.")
        .section("Central Managers: Sample Configuration"),
    Knob::new(
        "HAD_USE_PRIMARY",
        Kind::Boolean,
        MASTER,
        LEADER,
        "Whether the first of the high availability daemons is preferred.",
    )
    .section("Central Managers: Sample Configuration"),
    Knob::new(
        "HAD_CONTROLLEE",
        Kind::Text,
        MASTER,
        LEADER,
        "Which daemon the high availability daemons start.",
    )
    .fallback("NEGOTIATOR")
    .section("Central Managers: Sample Configuration"),
    Knob::new(
        "HAD_CONNECTION_TIMEOUT",
        Kind::Integer,
        MASTER,
        LEADER,
        "How long high availability daemons wait for each other.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Central Managers: Configuration"),
    Knob::new(
        "HAD_UPDATE_INTERVAL",
        Kind::Integer,
        MASTER,
        LEADER,
        "How often high availability daemons publish their ads.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Central Managers: Sample Configuration"),
    Knob::new("HAD_ARGS", Kind::Text, MASTER, LEADER, "The arguments of the high availability daemons.")
        .section("Central Managers: Sample Configuration"),
    Knob::new(
        "HAD_USE_SHARED_PORT",
        Kind::Boolean,
        MASTER,
        LEADER,
        "Whether high availability daemons use the shared port.",
    )
    .section("Central Managers: Sample Configuration"),
    Knob::new(
        "HAD_USE_REPLICATION",
        Kind::Boolean,
        MASTER,
        RECORDS,
        "Whether the accountant's records are replicated.",
    )
    .section("Central Managers: Configuration"),
    Knob::new("REPLICATION_LIST", Kind::List, MASTER, RECORDS, "Where replication daemons run.")
        .section("Central Managers: Sample Configuration"),
    Knob::new("REPLICATION_INTERVAL", Kind::Integer, MASTER, RECORDS, "How often records are replicated.")
        .unit("seconds")
        .at_least(0.0)
        .section("Central Managers: Sample Configuration"),
    Knob::new("REPLICATION_ARGS", Kind::Text, MASTER, RECORDS, "The replication daemon's arguments.")
        .section("Central Managers: Sample Configuration"),
    Knob::new(
        "REPLICATION_USE_SHARED_PORT",
        Kind::Boolean,
        MASTER,
        RECORDS,
        "Whether the replication daemon uses the shared port.",
    )
    .section("Central Managers: Sample Configuration"),
    Knob::new(
        "REPLICATION_SOCKET_NAME",
        Kind::Text,
        MASTER,
        RECORDS,
        "The replication daemon's name at the shared port.",
    )
    .section("Central Managers: Configuration"),
    Knob::new(
        "MAX_TRANSFER_LIFETIME",
        Kind::Integer,
        MASTER,
        RECORDS,
        "How long a copy of the accountant's records may take.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Central Managers: Sample Configuration"),
    Knob::new(
        "STATE_FILE",
        Kind::Text,
        MASTER,
        RECORDS,
        "The file of the accountant's records that replication copies.",
    )
    .fallback("$(SPOOL)/Accountantnew.log")
    .section("Central Managers: Sample Configuration"),
    Knob::new(
        "MASTER_NEGOTIATOR_CONTROLLER",
        Kind::Text,
        MASTER,
        LEADER,
        "Which daemon says whether the negotiator runs.",
    )
    .section("Central Managers: Sample Configuration"),
    Knob::new(
        "MASTER_HAD_BACKOFF_CONSTANT",
        Kind::Integer,
        MASTER,
        LEADER,
        "How long the high availability daemon stays down after a failure.",
    )
    .unit("seconds")
    .at_least(0.0)
    .section("Central Managers: Configuration"),
];
