//! `use ROLE : ...`: which daemons a host runs. In Slotwright, the operator stands for all of them.

use super::Template;

const fn role(name: &'static str, text: &'static str, advice: &'static str) -> Template {
    Template::of("ROLE", name, text).instead(advice)
}

const EXECUTE: &str =
    "the operator plays the startd of every node; a NodePolicy says which nodes offer what, to whom";
const SUBMIT: &str = "HTCJob objects are the job queue: there is no access point to run";
const CENTRAL_MANAGER: &str =
    "the operator is the negotiator and the API server the collector; a Negotiator object configures them";

pub(super) const TEMPLATES: &[Template] = &[
    role("Execute", "DAEMON_LIST = $(DAEMON_LIST) STARTD\n", EXECUTE),
    role("Submit", "DAEMON_LIST = $(DAEMON_LIST) SCHEDD\n", SUBMIT),
    role("CentralManager", "DAEMON_LIST = $(DAEMON_LIST) COLLECTOR NEGOTIATOR\n", CENTRAL_MANAGER),
    role(
        "Personal",
        "CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = $(CONDOR_HOST):0
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR STARTD SCHEDD
RunBenchmarks = 0
",
        "`slotwright demo` runs a whole pool on one machine",
    ),
    role("get_htcondor_execute", "use SECURITY : get_htcondor_idtokens\nuse ROLE : Execute\n", EXECUTE),
    role("get_htcondor_submit", "use SECURITY : get_htcondor_idtokens\nuse ROLE : Submit\n", SUBMIT),
    role(
        "get_htcondor_central_manager",
        "use SECURITY : get_htcondor_idtokens\nuse ROLE : CentralManager\n",
        CENTRAL_MANAGER,
    ),
];
