//! Runs the command as from the command line, and compares what the objects say with what the knobs say.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::named_groups::named_groups;
use api::ConcurrencyLimit;
use condor_config::{Config, Host, Reader, Source};
use controller::kinds;
use model::negotiator;
use model::negotiator::groups::{GroupSpec, Tree};
use model::pool::{Group, Quota};
use model::startd::config::understand;

/// A configuration as an admin of a central manager has it.
const POOL: &str = "
CONDOR_HOST = cm.example.org
DAEMON_LIST = MASTER, COLLECTOR, NEGOTIATOR
UID_DOMAIN = example.org
POOL_CORES = 1000
GROUP_NAMES = group_physics, group_physics.higgs, group_physics.neutrino, Biology, group_x.orphan
GROUP_QUOTA_group_physics = $(POOL_CORES) * 0.6
GROUP_QUOTA_DYNAMIC_group_physics.higgs = 0.75
GROUP_QUOTA_DYNAMIC_group_physics.neutrino = 0.25
GROUP_ACCEPT_SURPLUS_group_physics.neutrino = False
GROUP_QUOTA_biology = 100
GROUP_QUOTA_DYNAMIC_Biology = 0.1
GROUP_AUTOREGROUP_Biology = True
GROUP_PRIO_FACTOR_Biology = 5000
GROUP_QUOTA_group_chemistry = 50
GROUP_ACCEPT_SURPLUS = True
GROUP_SORT_EXPR = ifThenElse(AccountingGroup =?= \"<none>\", 3.4e+38, GroupResourcesInUse)
SW.MATLAB_LIMIT = 5
NETWORK_A_LIMIT = 10
XSW_LIMIT = 3
CONCURRENCY_LIMIT_DEFAULT = 1000
CONCURRENCY_LIMIT_DEFAULT_SW = 20
2FAST_LIMIT = 1
ODD_LIMIT = many
HALF_HOUR = 30 * $(MINUTE)
PREEMPTION_REQUIREMENTS = (CurrentTime - EnteredCurrentState) > $(HALF_HOUR) && \\
    RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2
NEGOTIATOR.NEGOTIATOR_INTERVAL = 120
PRIORITY_HALFLIFE = 12 * $(HOUR)
MAX_ACCOUNTANT_DATABASE_SIZE = 1000000
NEGOTIATOR_INTERVALL = 3
START = TARGET.RequestMemory < $(LARGE) || Owner == \"admin\"
LARGE = 64 * 1024
STARTD_ATTRS = Rack Site
Rack = 7
Site = \"cern\"
MASTER.Rack = 8
JOB_DEFAULT_REQUESTMEMORY = 512
";

fn outcome(args: &[&str], input: &str) -> (u8, String, String) {
    let args = [&["manifests", "-f", "-"], args].concat();
    crate::outcome::outcome("config", &args, input, crate::config::run)
}

fn parsed(manifests: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(manifests).unwrap()
}

/// The specs of the objects of a kind, by the names of the objects.
fn specs(manifests: &str, kind: &str) -> BTreeMap<String, Value> {
    let all = parsed(manifests).into_iter().filter(|object| object["kind"] == kind);
    all.map(|object| (object["metadata"]["name"].as_str().unwrap().to_owned(), object["spec"].clone()))
        .collect()
}

/// The configuration and the negotiator's knobs in a text.
fn read(text: &str) -> (Config, negotiator::Config) {
    let reading = Reader::new(Host::none()).subsystem("NEGOTIATOR").read(&[Source::block("text", text)]);
    let config = reading.into_config().unwrap();
    let knobs = negotiator::Config::read(&config).unwrap();
    (config, knobs)
}

/// Each group with all that the negotiator reads of it, and with what it may use of a pool of 100 cores.
fn groups(tree: &Tree, oversubscription: bool) -> Vec<String> {
    let allotments = tree.assign(100.0, oversubscription).groups;
    let each = tree.groups().iter().zip(allotments);
    each.map(|(group, allotment)| {
        let negotiator::groups::Group { spec: _, name, quota, accept_surplus, autoregroup, parent } = group;
        format!("{name} {quota:?} {accept_surplus} {autoregroup} {parent:?} {allotment:?}")
    })
    .collect()
}

/// A group as the operator has the negotiator read it.
fn spec(group: &Group, config: &negotiator::Config) -> GroupSpec {
    GroupSpec {
        name: group.name.to_string(),
        quota: Some(match group.quota {
            Quota::Static(weight) => negotiator::groups::Quota::Static(weight),
            Quota::Dynamic(share) => negotiator::groups::Quota::Dynamic(share),
        }),
        accept_surplus: group.accept_surplus.unwrap_or(config.group_accept_surplus),
        autoregroup: group.autoregroup.unwrap_or(config.group_autoregroup),
    }
}

/// The objects say to the operator what the knobs say to the negotiator.
#[test]
fn the_objects_say_what_the_knobs_say() {
    let usable = POOL.replace("ODD_LIMIT = many\n", "").replace("2FAST_LIMIT = 1\n", "");
    for text in [
        &usable,
        "GROUP_NAMES = a\n",
        "GROUP_NAMES = a, b, a.b.c, a.b, A\nGROUP_QUOTA_a = 30\nGROUP_QUOTA_DYNAMIC_a.b = 0.5\nGROUP_QUOTA_A.B.C = 10\n\
         GROUP_QUOTA_b = 90\nGROUP_AUTOREGROUP = True\nGROUP_AUTOREGROUP_b = False\n",
        "GROUP_NAMES = a b\nGROUP_QUOTA_a = 80\nGROUP_QUOTA_b = 80\nNEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = True\n\
         GROUP_ACCEPT_SURPLUS = True\nGROUP_ACCEPT_SURPLUS_b = False\nGROUP_PRIO_FACTOR_a = 2\nGROUP_PRIO_FACTOR_B = 3.5\n",
        "NEGOTIATOR.GROUP_NAMES = a-b, a_b, A_B.c\nGROUP_NAMES = x\nNEGOTIATOR.GROUP_QUOTA_a_b = 1\nGROUP_QUOTA_a_b = 2\n\
         GROUP_QUOTA_DYNAMIC_a_b.C = 0.1\nNEGOTIATOR.X_LIMIT = 1\nX_LIMIT = 2\nx.y_LIMIT = 0.5\nX.z_LIMIT = 3\nCONCURRENCY_LIMIT_DEFAULT_x = 7\n_X_LIMIT = 9\n",
        "UNIT = 10\nNEGOTIATOR_CYCLE_DELAY = $(UNIT) * 2\nuse POLICY : Preempt_If_Cpus_Exceeded\nDEFAULT_PRIO_FACTOR = $(FACTOR:50)\n\
         NEGOTIATOR_PRE_JOB_RANK = $(RANKED)\nRANKED = $(UNIT) - \\\n  Cpus\n",
    ] {
        let (status, made, said) = outcome(&[], text);
        assert_eq!(status, 0, "{said}{made}");
        let (config, knobs) = read(text);
        let (_, again) = match specs(&made, "Negotiator").get("default") {
            Some(spec) => read(spec["config"].as_str().unwrap()),
            None => read(""),
        };
        let mapped = negotiator::Config {
            group_factors: BTreeMap::new(),
            concurrency_limits: BTreeMap::new(),
            concurrency_limit_sets: BTreeMap::new(),
            ..knobs.clone()
        };
        assert_eq!(again, mapped, "{made}");

        let by_knobs: Vec<_> =
            named_groups(&config).unwrap().iter().map(|group| group.spec(&knobs)).collect();
        let by_knobs = Tree::new(&by_knobs);
        let found: Vec<Group> = parsed(&made)
            .into_iter()
            .filter(|object| object["kind"] == "GroupQuota")
            .map(|object| kinds::group_quota::facts(&serde_json::from_value(object).unwrap()))
            .collect();
        let factors: BTreeMap<String, f64> = found
            .iter()
            .filter_map(|group| Some((group.name.as_str().to_ascii_lowercase(), group.priority_factor?)))
            .collect();
        let by_objects: Vec<GroupSpec> = found.iter().map(|group| spec(group, &again)).collect();
        let by_objects = Tree::new(&by_objects);
        let oversubscription = knobs.allow_quota_oversubscription;
        assert_eq!(groups(&by_objects, oversubscription), groups(&by_knobs, oversubscription), "{made}");
        assert_eq!(by_objects.refused(), []);
        assert_eq!(factors, knobs.group_factors, "{made}");

        let (mut limits, mut sets) = (BTreeMap::new(), BTreeMap::new());
        for object in parsed(&made).into_iter().filter(|object| object["kind"] == "ConcurrencyLimit") {
            let limit: ConcurrencyLimit = serde_json::from_value(object).unwrap();
            let limit = kinds::concurrency_limit::facts(&limit);
            assert_eq!(limit.problems, []);
            limits.extend(limit.limit.map(|units| (limit.name.to_string(), units)));
            sets.extend(limit.limit_of_each.map(|units| (limit.name.to_string(), units)));
        }
        assert_eq!((limits, sets), (knobs.concurrency_limits, knobs.concurrency_limit_sets), "{made}");
    }
}

/// A node does by the NodePolicy what the startd does by the file.
#[test]
fn a_policy_says_what_the_file_says() {
    let text = "
LARGE = 64 * 1024
START = TARGET.RequestMemory < $(LARGE) || Owner == \"admin\"
STARTD.RANK = 5 * ($(VIP))
RANK = 0
VIP = Owner == \"vip\"
use POLICY : Hold_If_Memory_Exceeded
SLOT_TYPE_1 = 50%
SLOT_TYPE_1_PARTITIONABLE = True
NUM_SLOTS_TYPE_1 = 2
SLOT_TYPE_1_START = $(START) && Rack > 3
STARTD_ATTRS = $(STARTD_ATTRS) Rack Site
STARTD.Rack = 7
Site = \"cern\"
UNUSED = 3
GROUP_NAMES = a
";
    let (status, made, said) = outcome(&["--open-groups", "--only", "NodePolicy"], text);
    let keyboard = "slotwright config: warning: -: the NodePolicy goes by defaults that are not HTCondor's; for HTCondor's, add: \
                    SLOTS_CONNECTED_TO_KEYBOARD = 0; SLOTS_CONNECTED_TO_CONSOLE = 0\n";
    assert_eq!((status, said.as_str()), (0, keyboard), "{made}");
    let specs = specs(&made, "NodePolicy");
    let copy = specs["default"]["config"].as_str().unwrap();
    let (by_file, by_object) = (understand(text), understand(copy));
    assert!(by_file.config.is_some());
    assert_eq!(by_object.config, by_file.config, "{copy}");
    assert!(!copy.contains("UNUSED") && !copy.contains("GROUP_NAMES"), "{copy}");
}

/// An execute node's file may hold what HTCondor's policies for desktops set for the negotiator.
#[test]
fn the_kinds_of_objects_can_be_chosen() {
    let text = "use POLICY : UWCS_Desktop\n";
    let kinds = |made: &str| -> Vec<String> {
        parsed(made).iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect()
    };
    let (status, made, said) = outcome(&[], text);
    assert_eq!((status, kinds(&made)), (0, vec!["Negotiator".to_owned(), "NodePolicy".to_owned()]), "{said}");
    assert!(
        said.contains("line 1, column 14: the Negotiator has nothing but what policies of execute nodes set"),
        "{said}"
    );
    let (status, made, said) = outcome(&["--only", "nodepolicy"], text);
    assert_eq!((status, kinds(&made)), (0, vec!["NodePolicy".to_owned()]), "{said}");
    assert!(!said.contains("Negotiator"), "{said}");
    let (_, made, _) = outcome(&["--only", "GroupQuota", "--only", "ConcurrencyLimit"], POOL);
    assert!(kinds(&made).iter().all(|kind| kind == "GroupQuota" || kind == "ConcurrencyLimit"));
    assert!(kinds(&made).len() > 4, "{made}");
    // The Negotiator of a central manager is its own.
    let (_, _, said) = outcome(&[], &format!("{text}NEGOTIATOR_INTERVAL = 60\n"));
    assert!(!said.contains("nothing but"), "{said}");
}

/// The kinds of objects that a configuration becomes.
fn kinds_of(args: &[&str], text: &str) -> (Vec<String>, String) {
    let (status, made, said) = outcome(args, text);
    assert_eq!(status, 0, "{said}{made}");
    let kind = |object: &Value| object["kind"].as_str().unwrap().to_owned();
    (parsed(&made).iter().map(kind).collect(), said)
}

/// A NodePolicy without a selector is for all nodes: it would count beside that of the nodes' own files.
#[test]
fn a_central_managers_file_makes_no_node_policy() {
    let shared = "UID_DOMAIN = example.org\nFILESYSTEM_DOMAIN = example.org\nABSENT_REQUIREMENTS = True\n";
    let only = ["--only", "NodePolicy"];
    for (args, text, expected) in [
        (&[][..], shared.to_owned(), vec![]),
        (&[], format!("{shared}NEGOTIATOR_INTERVAL = 60\n"), vec!["Negotiator"]),
        (&[], format!("{shared}START = True\n"), vec!["NodePolicy"]),
        (&only, shared.to_owned(), vec!["NodePolicy"]),
    ] {
        let (kinds, said) = kinds_of(args, &text);
        assert_eq!(kinds, expected, "{text}");
        let is_told = said.contains("UID_DOMAIN is left out: nothing else here is of execute nodes");
        assert_eq!(is_told, !expected.contains(&"NodePolicy"), "{said}");
    }
}

/// HTCondor looks at NAME_LIMIT when a job takes the limit; admins call macros so, too.
#[test]
fn a_macro_whose_name_ends_in_limit_is_no_limit() {
    for (text, limits, expected) in [
        ("XSW_LIMIT = 3\n", 1, ""),
        ("XSW_LIMIT = 3\nCONCURRENCY_LIMIT_DEFAULT_b = $(XSW_LIMIT)\n", 2, ""),
        (
            "WALLTIME_LIMIT = 3 * $(HOUR)\nSYSTEM_PERIODIC_HOLD = RemoteWallClockTime > $(WALLTIME_LIMIT)\n",
            0,
            "WALLTIME_LIMIT is taken for a macro, since SYSTEM_PERIODIC_HOLD refers to it; if jobs take a concurrency limit of that",
        ),
        ("MEM_LIMIT = (RequestMemory * 2)\nSYSTEM_PERIODIC_HOLD = MemoryUsage > $(MEM_LIMIT:1)\n", 0, ""),
        ("MEM_LIMIT = (RequestMemory * 2)\n", 0, "MEM_LIMIT is (RequestMemory * 2), which is no number"),
    ] {
        let (kinds, said) = kinds_of(&[], text);
        let of_limits = kinds.iter().filter(|kind| *kind == "ConcurrencyLimit").count();
        assert_eq!(of_limits, limits, "{text}{said}");
        assert!(said.contains(expected) && (said.contains("_LIMIT") != expected.is_empty()), "{text}{said}");
    }
}

/// `use FEATURE : AssignAccountingGroup(FILE)` refuses every job if the map is lost.
#[test]
fn the_file_of_a_user_map_is_put_into_the_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("groups").display().to_string();
    fs::write(&path, "* alice physics\n* /^b.*/ \"cms\"\n").unwrap();
    let by_knobs = format!("SCHEDD_CLASSAD_USER_MAP_NAMES = G\nCLASSAD_USER_MAPFILE_G = {path}\n");
    for (map, text) in [
        ("AssignAccountingGroup", format!("use FEATURE : AssignAccountingGroup({path})\n")),
        ("G", format!("use FEATURE : ScheddUserMapFile(G, {path})\n")),
        ("G", by_knobs),
    ] {
        let (status, made, said) = outcome(&["--allow-files"], &text);
        assert_eq!(status, 0, "{said}");
        let config = &specs(&made, "SubmitPolicy")["default"]["config"];
        let lines = format!("CLASSAD_USER_MAPDATA_{map} @=end\n* alice physics\n* /^b.*/ \"cms\"\n");
        assert!(config.as_str().unwrap().contains(&lines), "{made}");
        assert!(!said.contains("MAPFILE"), "{said}");

        let (_, made, said) = outcome(&[], &text);
        assert!(!made.contains("MAPDATA"), "{made}");
        let told = format!(
            "CLASSAD_USER_MAPFILE_{map} is left out: the operator reads no files, and CLASSAD_USER_MAPDATA_{map} is to have the lines of \
             {path}: give --allow-files to read it\n"
        );
        assert!(said.contains(&told), "{said}");
    }
    let (_, _, said) = outcome(&["--allow-files"], "use FEATURE : ScheddUserMapFile(G, /nowhere)\n");
    assert!(said.contains("the lines of /nowhere: there is no such file\n"), "{said}");
}

/// The template adds a cron job; the line behind it lists other jobs instead, and HTCondor runs these alone.
#[test]
fn a_templates_cron_job_that_is_not_listed_is_dropped() {
    let health = "STARTD_CRON_JOBLIST = HEALTH\nSTARTD_CRON_HEALTH_EXECUTABLE = /usr/bin/h\nSTARTD_CRON_HEALTH_PERIOD = 60\n";
    for (text, is_there) in
        [(format!("use FEATURE : GPUs\n{health}"), false), (format!("{health}use FEATURE : GPUs\n"), true)]
    {
        let (_, made, said) = outcome(&[], &text);
        assert_eq!(made.contains("STARTD_CRON_GPUs_MONITOR_"), is_there, "{made}");
        assert!(!said.contains("STARTD_CRON_GPUs_MONITOR_"), "{said}");
    }
}

/// `condor_config_val -summary` leaves out what is set to HTCondor's default.
#[test]
fn a_default_that_is_not_htcondors_is_told_where_nothing_is_set() {
    let said = |text: &str| outcome(&["--open-groups"], text).2;
    let quota = "GROUP_NAMES = a\nGROUP_QUOTA_a = 1\n";
    let expected = "-: the Negotiator goes by defaults that are not HTCondor's; for HTCondor's, add: \
                    NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = true\n";
    assert!(said(quota).contains(expected), "{}", said(quota));
    for set in ["", "NEGOTIATOR."] {
        let text = format!("{quota}{set}NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = True\n");
        assert_eq!(said(&text), "");
    }
    assert!(said("JOB_DEFAULT_REQUESTMEMORY = 1\n").contains("add: QUEUE_SUPER_USERS = root, condor\n"));
    assert_eq!(said("SW_LIMIT = 1\n"), "");
}

#[test]
fn what_no_group_is_named_is_left_out() {
    let (status, made, said) = outcome(&["--open-groups"], "GROUP_NAMES = \"a\", b\nGROUP_QUOTA_b = 1\n");
    assert_eq!(
        (status, specs(&made, "GroupQuota").into_keys().collect::<Vec<_>>()),
        (0, vec!["b".to_owned()])
    );
    assert!(
        said.contains("the group \"a\" is left out: ") && said.contains("; write the name without quotes"),
        "{said}"
    );
}

#[test]
fn a_pool_becomes_objects() {
    let (status, made, _) = outcome(&["--open-groups"], POOL);
    assert_eq!(status, 0);
    let expected = json!({
        "biology": {"group": "Biology", "owners": ["*"], "quota": 100, "autoregroup": true, "priorityFactor": 5000},
        "group-physics": {"group": "group_physics", "owners": ["*"], "quota": 600},
        "group-physics.higgs": {"group": "group_physics.higgs", "dynamicQuota": 0.75},
        "group-physics.neutrino": {"group": "group_physics.neutrino", "dynamicQuota": 0.25, "acceptSurplus": false},
    });
    assert_eq!(json!(specs(&made, "GroupQuota")), expected);
    let expected = json!({
        "network-a": {"name": "NETWORK_A", "limit": 10},
        "sw": {"limitOfEach": 20},
        "sw.matlab": {"limit": 5},
        "xsw": {"limit": 3},
    });
    assert_eq!(json!(specs(&made, "ConcurrencyLimit")), expected);
    let texts = ["Negotiator", "NodePolicy", "SubmitPolicy"].map(|kind| {
        let spec = &specs(&made, kind)["default"];
        format!("{kind}\n{}", spec["config"].as_str().unwrap())
    });
    insta::assert_snapshot!(texts.concat(), @r#"
    Negotiator
    GROUP_ACCEPT_SURPLUS = True
    GROUP_SORT_EXPR = ifThenElse(AccountingGroup =?= "<none>", 3.4e+38, GroupResourcesInUse)
    CONCURRENCY_LIMIT_DEFAULT = 1000
    HALF_HOUR = 30 * $(MINUTE)
    PREEMPTION_REQUIREMENTS = (CurrentTime - EnteredCurrentState) > $(HALF_HOUR) && RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2
    NEGOTIATOR.NEGOTIATOR_INTERVAL = 120
    PRIORITY_HALFLIFE = 12 * $(HOUR)
    NodePolicy
    UID_DOMAIN = example.org
    START = TARGET.RequestMemory < $(LARGE) || Owner == "admin"
    LARGE = 64 * 1024
    STARTD_ATTRS = Rack Site
    Rack = 7
    Site = "cern"
    SubmitPolicy
    JOB_DEFAULT_REQUESTMEMORY = 512
    "#);
}

#[test]
fn what_is_in_no_object_is_told_with_its_place() {
    let (_, _, said) = outcome(&[], POOL);
    insta::assert_snapshot!(said, @r#"
    slotwright config: warning: -: the Negotiator goes by defaults that are not HTCondor's; for HTCondor's, add: NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = true
    slotwright config: warning: -: the NodePolicy goes by defaults that are not HTCondor's; for HTCondor's, add: SLOTS_CONNECTED_TO_KEYBOARD = 0; SLOTS_CONNECTED_TO_CONSOLE = 0
    slotwright config: warning: -: the SubmitPolicy goes by defaults that are not HTCondor's; for HTCondor's, add: QUEUE_SUPER_USERS = root, condor
    slotwright config: warning: -, line 2, column 1: CONDOR_HOST is left out: the API server is the collector
    slotwright config: warning: -, line 3, column 1: DAEMON_LIST is left out: the operator is every daemon
    slotwright config: warning: -, line 6, column 1: group "group_x.orphan": its parent "group_x" is not an accepted group; define or correct it; until then the group is left out, as HTCondor ignores it
    slotwright config: warning: -, line 6, column 1: nobody may charge Biology, group_physics, group_physics.higgs, group_physics.neutrino: HTCondor lets everybody charge every group, and here spec.owners of the GroupQuota says who may; give spec.owners, or --userprio, or --open-groups
    slotwright config: warning: -, line 12, column 1: GROUP_QUOTA_DYNAMIC_Biology is left out: GROUP_QUOTA_Biology is set, and counts instead
    slotwright config: warning: -, line 15, column 1: GROUP_QUOTA_group_chemistry is left out: GROUP_NAMES does not name group_chemistry
    slotwright config: warning: -, line 23, column 1: 2FAST_LIMIT is left out: a limit is NAME or SET.NAME of letters, digits and _, no digit first
    slotwright config: warning: -, line 24, column 13: ODD_LIMIT is many, which is no number; the limit is left out
    slotwright config: warning: -, line 30, column 1: MAX_ACCOUNTANT_DATABASE_SIZE is left out: the accountant's records are the status of Submitter objects
    slotwright config: warning: -, line 31, column 1: NEGOTIATOR_INTERVALL is left out: nothing reads it; did you mean NEGOTIATOR_INTERVAL?
    slotwright config: warning: -, line 37, column 1: MASTER.Rack is left out: nothing reads it; did you mean RANK?
    "#);
}

/// As condor_userprio -allusers -long prints the accountant's records.
const USERS: &str = r#"AccountingGroup = "<none>"
Ceiling = -1
Floor = 0
IsAccountingGroup = true
LastUpdate = 1700000000
Name = "<none>"
Priority = 500.0
PriorityFactor = 1000.0

AccountingGroup = "group_physics"
AccumulatedUsage = 7200.0
BeginUsageTime = 1600000000
Ceiling = -1
Floor = 0
IsAccountingGroup = false
LastUpdate = 1700000000
LastUsageTime = 1699999999
Name = "group_physics.Alice@example.org"
Priority = 150000.0
PriorityFactor = 100.0
ResourcesUsed = 1
WeightedAccumulatedUsage = 28800.0
WeightedResourcesUsed = 4.0

AccountingGroup = "<none>"
Ceiling = 50
Floor = 2
IsAccountingGroup = false
LastUpdate = 1700000000
Name = "bob@example.org"
Priority = 500.0
PriorityFactor = 1000.0

AccountingGroup = "Biology"
Ceiling = -1
Floor = 0
IsAccountingGroup = false
LastUpdate = 1700000000
Name = "biology.carol@example.org"
Priority = 2500.0
PriorityFactor = 5000.0

AccountingGroup = "<none>"
Ceiling = -1
IsAccountingGroup = false
LastUpdate = 1700000000
Name = "bob@elsewhere.org"
Priority = 5.0
PriorityFactor = 10.0

AccountingGroup = "<none>"
IsAccountingGroup = false
LastUpdate = 1700000000
Name = "first.last@example.org"
Priority = 5.0
PriorityFactor = 10.0

OtherSlots = 7
"#;

/// The same as `condor_userprio -legacy -long` prints it: one ad, with numbers behind the attributes.
const LEGACY: &str = r#"LastUpdate = 1700000000
Name1 = "<none>"
IsAccountingGroup1 = true
AccountingGroup1 = "<none>"
Priority1 = 500.0
PriorityFactor1 = 1000.0
Name3 = "group_physics.Alice@example.org"
IsAccountingGroup3 = false
AccountingGroup3 = "group_physics"
Priority3 = 150000.0
Ceiling3 = -1
Floor3 = 0
PriorityFactor3 = 100.0
AccumulatedUsage3 = 7200.0
WeightedAccumulatedUsage3 = 28800.0
BeginUsageTime3 = 1600000000
LastUsageTime3 = 1699999999
Name4 = "bob@example.org"
IsAccountingGroup4 = false
AccountingGroup4 = "<none>"
Priority4 = 500.0
Ceiling4 = 50
Floor4 = 2
PriorityFactor4 = 1000.0
NumSubmittors = 4
"#;

#[test]
fn accounts_become_submitters() {
    let directory = tempfile::tempdir().unwrap();
    let alice = api::names::submitter_object_name("group_physics.Alice");
    let expected = json!({
        (alice): {
            "name": "group_physics.Alice", "priorityFactor": 100,
            "correction": {"id": "condor_userprio-1700000000", "realPriority": 1500, "accumulatedUsage": 7200,
                           "weightedAccumulatedUsage": 28800, "beginUsageTime": "2020-09-13T12:26:40Z",
                           "lastUsageTime": "2023-11-14T22:13:19Z"},
        },
        "bob": {"ceiling": 50, "floor": 2},
    });
    for (text, owners) in [(USERS, json!(["carol"])), (LEGACY, Value::Null)] {
        let path = directory.path().join("users").display().to_string();
        fs::write(&path, text).unwrap();
        let (status, made, said) = outcome(&["--userprio", &path], POOL);
        assert_eq!(status, 0, "{said}");
        assert_eq!(json!(specs(&made, "Submitter")), expected, "{made}");
        let groups = specs(&made, "GroupQuota");
        assert_eq!(
            (&groups["group-physics"]["owners"], &groups["biology"]["owners"]),
            (&json!(["Alice"]), &owners)
        );
        let of_file: Vec<&str> =
            said.lines().filter_map(|line| line.split_once(&*path)).map(|(_, rest)| rest).collect();
        let told: &[&str] = if text == LEGACY {
            &[]
        } else {
            &[
                ", line 43, column 1: bob@elsewhere.org is left out: submitters have no domain here, and bob@example.org is bob already",
                ", line 51, column 1: first.last@example.org is left out: GROUP_NAMES does not name the group first, and no owner of jobs \
                 has a dot here; declare the group if it is one",
                ", line 58, column 1: this is no ad of an account: it has no Name; print accounts by condor_userprio -allusers -long",
            ]
        };
        assert_eq!(of_file, told);
    }
}

#[test]
fn unusable_input_is_told() {
    for (text, expected) in [
        (
            "GROUP_NAMES = a\nGROUP_QUOTA_a = much\n",
            "-, line 2, column 17: GROUP_QUOTA_a is much, which is no",
        ),
        ("GROUP_NAMES = a\nGROUP_PRIO_FACTOR_a = 0.5\n", "-, line 2, column 23: "),
        (
            "GROUP_NAMES = a b\nGROUP_QUOTA_a = much\nGROUP_PRIO_FACTOR_b = 0.5\nGROUP_AUTOREGROUP_b = 3 +\n",
            "GROUP_QUOTA_a is much, which is no",
        ),
        (
            "GROUP_NAMES = a b\nGROUP_QUOTA_a = much\nGROUP_PRIO_FACTOR_b = 0.5\nGROUP_AUTOREGROUP_b = 3 +\n",
            "GROUP_AUTOREGROUP_b",
        ),
        ("GROUP_NAMES\n", "-, line 1, column 1: expected NAME = value"),
    ] {
        let (status, made, said) = outcome(&[], text);
        assert_eq!((status, made.as_str()), (2, ""));
        assert!(said.contains(expected), "{said}");
    }
    // The knob has an error where the Negotiator has it.
    let (status, made, said) = outcome(&[], "PREEMPTION_RANK = 1 +\n");
    assert_eq!(status, 1, "{said}");
    assert!(made.contains("PREEMPTION_RANK = 1 +"), "{made}");
    assert!(said.contains("-, line 1, column") && said.contains("the objects:"), "{said}");
}
