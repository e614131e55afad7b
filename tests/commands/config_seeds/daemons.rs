//! Central Managers: the daemons and what they do: defragmentation, HTCondorView, high availability, Ganglia. Most of
//! these knobs have no effect in Slotwright, but they are read as in HTCondor.

use condor_config::{Config, Host, Reader, Source, knobs};

use super::support::{read_as, value};

fn list(config: &Config, name: &str) -> Vec<String> {
    config.list(name).unwrap()
}

#[test]
fn defragmenting_dynamic_slots_drains_one_machine_an_hour() {
    let config = read_as(
        "DEFRAG",
        "DAEMON_LIST = $(DAEMON_LIST) DEFRAG
DEFRAG_INTERVAL = 3600
DEFRAG_DRAINING_MACHINES_PER_HOUR = 1.0
DEFRAG_MAX_WHOLE_MACHINES = 20
DEFRAG_MAX_CONCURRENT_DRAINING = 10
",
    );
    assert_eq!(list(&config, "DAEMON_LIST"), ["MASTER", "DEFRAG"]);
    assert_eq!(config.integer("DEFRAG_INTERVAL").unwrap(), Some(3600));
    assert_eq!(config.real("DEFRAG_DRAINING_MACHINES_PER_HOUR").unwrap(), Some(1.0));
    assert_eq!(config.integer("DEFRAG_MAX_WHOLE_MACHINES").unwrap(), Some(20));
    assert_eq!(config.integer("DEFRAG_MAX_CONCURRENT_DRAINING").unwrap(), Some(10));
}

#[test]
fn configuring_a_machine_to_be_a_view_server_runs_a_second_collector() {
    let config = read_as(
        "MASTER",
        r#"      VIEW_SERVER = $(COLLECTOR)
      VIEW_SERVER_ARGS = -f -p 12345
      VIEW_SERVER_ENVIRONMENT = "_CONDOR_COLLECTOR_LOG=$(LOG)/ViewServerLog"
      DAEMON_LIST = MASTER, NEGOTIATOR, COLLECTOR, VIEW_SERVER
"#,
    );
    assert_eq!(value(&config, "VIEW_SERVER"), value(&config, "COLLECTOR"));
    assert_eq!(value(&config, "VIEW_SERVER_ARGS"), "-f -p 12345");
    let log = value(&config, "LOG");
    assert_eq!(
        value(&config, "VIEW_SERVER_ENVIRONMENT"),
        format!("\"_CONDOR_COLLECTOR_LOG={log}/ViewServerLog\"")
    );
    assert_eq!(list(&config, "DAEMON_LIST"), ["MASTER", "NEGOTIATOR", "COLLECTOR", "VIEW_SERVER"]);
}

const MANAGERS: &str = "CENTRAL_MANAGER1 = cm1.domain.name
CENTRAL_MANAGER2 = cm2.domain.name
CONDOR_HOST = $(CENTRAL_MANAGER1), $(CENTRAL_MANAGER2)
";

#[test]
fn high_availability_sample_with_the_shared_port() {
    let config = read_as(
        "MASTER",
        &format!(
            "{MANAGERS}
HAD_USE_SHARED_PORT = TRUE
HAD_LIST = \\
$(CENTRAL_MANAGER1):$(SHARED_PORT_PORT), \\
$(CENTRAL_MANAGER2):$(SHARED_PORT_PORT)

REPLICATION_USE_SHARED_PORT = TRUE
REPLICATION_LIST = \\
$(CENTRAL_MANAGER1):$(SHARED_PORT_PORT), \\
$(CENTRAL_MANAGER2):$(SHARED_PORT_PORT)

# The recommended setting.
HAD_USE_PRIMARY = TRUE

# If you change which daemon(s) you're making highly-available, you must
# change both of these values.
HAD_CONTROLLEE = NEGOTIATOR
MASTER_NEGOTIATOR_CONTROLLER = HAD

# The daemon list may contain additional entries.
DAEMON_LIST = MASTER, COLLECTOR, NEGOTIATOR, HAD, REPLICATION

# Using replication is optional.
HAD_USE_REPLICATION = TRUE

# This is the default location for the state file.
STATE_FILE = $(SPOOL)/Accountantnew.log

# See note above the length of the negotiation cycle.
MASTER_HAD_BACKOFF_CONSTANT = 360
"
        ),
    );
    let managers = ["cm1.domain.name:9618", "cm2.domain.name:9618"];
    assert_eq!(list(&config, "HAD_LIST"), managers);
    assert_eq!(list(&config, "REPLICATION_LIST"), managers);
    for name in
        ["HAD_USE_SHARED_PORT", "REPLICATION_USE_SHARED_PORT", "HAD_USE_PRIMARY", "HAD_USE_REPLICATION"]
    {
        assert_eq!(config.boolean(name).unwrap(), Some(true), "{name}");
    }
    assert_eq!(
        ["HAD_CONTROLLEE", "MASTER_NEGOTIATOR_CONTROLLER"].map(|name| value(&config, name)),
        ["NEGOTIATOR", "HAD"]
    );
    assert_eq!(list(&config, "DAEMON_LIST"), ["MASTER", "COLLECTOR", "NEGOTIATOR", "HAD", "REPLICATION"]);
    assert_eq!(value(&config, "STATE_FILE"), value(&config, "ACCOUNTANT_DATABASE_FILE"));
    assert_eq!(config.integer("MASTER_HAD_BACKOFF_CONSTANT").unwrap(), Some(360));
}

#[test]
fn high_availability_sample_for_machines_that_are_no_central_managers() {
    for text in [MANAGERS.to_owned(), MANAGERS.replace(", ", ",")] {
        assert_eq!(list(&read_as("MASTER", &text), "CONDOR_HOST"), ["cm1.domain.name", "cm2.domain.name"]);
    }
}

#[test]
fn high_availability_sample_with_fixed_ports() {
    let config = read_as(
        "MASTER",
        &format!(
            "##########################################################################
# A sample configuration file for central managers, to enable the        #
# the high availability  mechanism.                                      #
##########################################################################
{MANAGERS}
HAD_PORT = 51450
HAD_ARGS = -f -p $(HAD_PORT)

REPLICATION_PORT = 41450
REPLICATION_ARGS = -p $(REPLICATION_PORT)

HAD_LIST = \\
$(CENTRAL_MANAGER1):$(HAD_PORT), \\
$(CENTRAL_MANAGER2):$(HAD_PORT)

REPLICATION_LIST = \\
$(CENTRAL_MANAGER1):$(REPLICATION_PORT), \\
$(CENTRAL_MANAGER2):$(REPLICATION_PORT)

HAD_CONTROLLEE = NEGOTIATOR
HAD_CONNECTION_TIMEOUT = 2

##If true, the first central manager in HAD_LIST is a primary.
HAD_USE_PRIMARY = true

DAEMON_LIST = MASTER, COLLECTOR, NEGOTIATOR, HAD, REPLICATION

HAD_USE_REPLICATION = true
STATE_FILE = $(SPOOL)/Accountantnew.log
REPLICATION_INTERVAL = 300
MAX_TRANSFER_LIFETIME = 300
HAD_UPDATE_INTERVAL = 300
MASTER_NEGOTIATOR_CONTROLLER = HAD
MASTER_HAD_BACKOFF_CONSTANT = 360
"
        ),
    );
    assert_eq!(list(&config, "HAD_LIST"), ["cm1.domain.name:51450", "cm2.domain.name:51450"]);
    assert_eq!(list(&config, "REPLICATION_LIST"), ["cm1.domain.name:41450", "cm2.domain.name:41450"]);
    assert_eq!(
        ["HAD_ARGS", "REPLICATION_ARGS"].map(|name| value(&config, name)),
        ["-f -p 51450", "-p 41450"]
    );
    for (name, seconds) in [
        ("HAD_CONNECTION_TIMEOUT", 2),
        ("REPLICATION_INTERVAL", 300),
        ("MAX_TRANSFER_LIFETIME", 300),
        ("HAD_UPDATE_INTERVAL", 300),
        ("MASTER_HAD_BACKOFF_CONSTANT", 360),
    ] {
        assert_eq!(config.integer(name).unwrap(), Some(seconds), "{name}");
    }
    // The comments above REPLICATION_INTERVAL and the next two say that this is the default.
    let bare = read_as("MASTER", "");
    for name in ["REPLICATION_INTERVAL", "MAX_TRANSFER_LIFETIME", "HAD_UPDATE_INTERVAL"] {
        assert_eq!(bare.integer(name).unwrap(), Some(300), "{name}");
    }
}

#[test]
fn ganglia_is_switched_on_by_a_template() {
    let config = read_as("MASTER", "      use FEATURE: ganglia\n");
    assert_eq!(list(&config, "DAEMON_LIST"), ["MASTER", "GANGLIAD"]);
}

#[test]
fn configuring_a_pool_to_report_to_a_view_server_names_its_host() {
    let config = read_as("COLLECTOR", "      CONDOR_VIEW_HOST = full.hostname[:portnumber]\n");
    assert_eq!(list(&config, "CONDOR_VIEW_HOST"), ["full.hostname[:portnumber]"]);
}

#[test]
fn configuring_a_pool_to_report_to_two_view_servers_that_do_not_report_to_themselves() {
    let text = r#"VIEWSERV01 = $(COLLECTOR)
VIEWSERV01_ARGS = -f -p 12345 -local-name VIEWSERV01
VIEWSERV01_ENVIRONMENT = "_CONDOR_COLLECTOR_LOG=$(LOG)/ViewServerLog01"
VIEWSERV01.POOL_HISTORY_DIR = $(LOCAL_DIR)/poolhist01
VIEWSERV01.KEEP_POOL_HISTORY = TRUE
VIEWSERV01.CONDOR_VIEW_HOST =

VIEWSERV02 = $(COLLECTOR)
VIEWSERV02_ARGS = -f -p 24680 -local-name VIEWSERV02
VIEWSERV02_ENVIRONMENT = "_CONDOR_COLLECTOR_LOG=$(LOG)/ViewServerLog02"
VIEWSERV02.POOL_HISTORY_DIR = $(LOCAL_DIR)/poolhist02
VIEWSERV02.KEEP_POOL_HISTORY = TRUE
VIEWSERV02.CONDOR_VIEW_HOST =

CONDOR_VIEW_HOST = localhost.localdomain:12345 localhost.localdomain:24680
DAEMON_LIST = $(DAEMON_LIST) VIEWSERV01 VIEWSERV02
"#;
    let as_local = |name: Option<&str>| {
        let reader = Reader::new(Host::none()).subsystem("COLLECTOR").local_name(name.map(str::to_owned));
        reader.read(&[Source::new("example", text)]).into_config().unwrap()
    };
    let main = as_local(None);
    assert_eq!(
        list(&main, "CONDOR_VIEW_HOST"),
        ["localhost.localdomain:12345", "localhost.localdomain:24680"]
    );
    assert_eq!(main.value("KEEP_POOL_HISTORY").unwrap(), None);
    assert_eq!(knobs::find("KEEP_POOL_HISTORY").unwrap().default(), Some("False"));
    assert_eq!(list(&main, "DAEMON_LIST"), ["MASTER", "VIEWSERV01", "VIEWSERV02"]);
    for (name, number) in [("VIEWSERV01", "01"), ("VIEWSERV02", "02")] {
        let server = as_local(Some(name));
        assert_eq!(server.value("CONDOR_VIEW_HOST").unwrap(), None, "{name}");
        assert_eq!(server.boolean("KEEP_POOL_HISTORY").unwrap(), Some(true), "{name}");
        let history = value(&server, "POOL_HISTORY_DIR");
        assert_eq!(history, format!("{}/poolhist{number}", value(&server, "LOCAL_DIR")), "{name}");
        assert_eq!(value(&server, name), value(&server, "COLLECTOR"), "{name}");
    }
}
