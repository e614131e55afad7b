//! Texts, and what the startd makes of them.

use super::*;
use crate::kit;
use crate::pool::{ByMachine, Capacity, MachineFacts, Time};

fn machine(cpus: i64, memory_gib: i64, arch: &str) -> Machine {
    let facts = MachineFacts { arch: arch.into(), ..kit::machine("node7.example.org", cpus, memory_gib) };
    Machine::new(facts, Capacity::default(), Time::from_secs(0))
}

/// A policy with these fields and a text that depends on the machine.
fn by_machine(text: &str, fields: StartdConfig) -> StartdConfig {
    let by_machine = Some(Arc::new(ByMachine { text: text.into(), fields: fields.clone() }));
    StartdConfig { by_machine, ..fields }
}

/// The acted-on knobs of slots.
fn of_slot(of: &str, slot: &SlotConfig) -> Vec<String> {
    let expr = |expr: &Option<Expr>| expr.as_ref().map(ToString::to_string);
    let policy = &slot.policy;
    let known = [
        expr(&policy.start).map(|start| format!("{of}START = {start}")),
        expr(&slot.slot_weight).map(|weight| format!("{of}SLOT_WEIGHT = {weight}")),
        policy.claim_worklife.map(|worklife| format!("{of}CLAIM_WORKLIFE = {worklife:?}")),
    ];
    let attributes = slot.attributes.iter().map(|(name, expr)| format!("{of}+{name} = {expr}"));
    known.into_iter().flatten().chain(attributes).collect()
}

/// The acted-on knobs and the remarks, as lines.
fn shown(text: &str) -> String {
    let understood = understand(text);
    let mut lines: Vec<String> = Vec::new();
    if let Some(config) = &understood.config {
        lines.extend(of_slot("", &config.slots));
        let types = config.types.iter().map(|(number, slot)| (format!("type {number}: "), slot));
        let single = config.single.iter().map(|(number, slot)| (format!("slot{number}: "), slot));
        lines.extend(types.chain(single).flat_map(|(of, slot)| of_slot(&of, slot)));
    }
    if understood.by_machine {
        lines.push("by machine".to_owned());
    }
    lines.extend(
        understood.remarks.iter().map(|remark| format!("{} {} {remark}", remark.severity, remark.reason)),
    );
    lines.join("\n")
}

#[test]
fn what_admins_paste_is_understood() {
    for (name, text) in [
        ("nothing", ""),
        (
            "owner's policy",
            "# our own jobs first\nOURS = (TARGET.AcctGroup =?= \"physics\")\nSTART = $(OURS) || \\\n        TARGET.RequestCpus <= 4\nCLAIM_WORKLIFE = 2 * $(HOUR)\nSLOT_WEIGHT = Memory / 4096.0\n",
        ),
        (
            "attributes",
            "HasGPFS = true\nRack = \"r12\"\nSTARTD_ATTRS = $(STARTD_ATTRS) HasGPFS, Rack\nSLOT1_STARTD_ATTRS = Door\nSLOT1_Door = \"left\"\n",
        ),
        ("weight of a type", "NUM_SLOTS_TYPE_1 = 1\nSLOT_WEIGHT = 1\nSLOT_TYPE_1_SlotWeight = 2\n"),
        ("nothing behind a name", "STARTD_ATTRS = A, B, C\nA = 1\nB =\n"),
        (
            "slot type",
            "NUM_SLOTS_TYPE_1 = 1\nSTART = true\nSLOT_TYPE_1_START = TARGET.RequestMemory > 1\nCLAIM_WORKLIFE = -1\n",
        ),
        ("without a type", "SLOT_TYPE_1_START = false\nSTART = TARGET.x\n"),
        ("self reference", "START = $(START) && TARGET.a\nSTARTD.START = $(STARTD.START) TARGET.b\n"),
        ("machine", "START = TARGET.RequestCpus * 2 <= $(DETECTED_CPUS)\n"),
        (
            "machine by default",
            "use FEATURE : PartitionableSlot\nBIG = $(NUM_CPUS) > 32\nBig = $(BIG)\nSTARTD_ATTRS = Big\n",
        ),
        ("desktop", "use POLICY : Desktop\nSTART = true\n"),
        ("desktop without an agent", "use POLICY : Desktop\n"),
        ("own load", "START = LoadAvg < 1\nLoadAvg = 0.5\nSTARTD_ATTRS = LoadAvg\n"),
        (
            "types and single slots",
            "NUM_SLOTS_TYPE_1 = 1\nNUM_SLOTS_TYPE_3 = 2\nSLOT_TYPE_1_START = false\nSTART = true\nSLOT2_Door = \"left\"\nSTARTD_ATTRS = Door\nDoor = \"right\"\nSLOT_TYPE_3_SlotWeight = 2\nCLAIM_WORKLIFE = 60\n",
        ),
        ("conditionals", "if defined NOTHING\nSTART = 1 +\nelse\nSTART = TARGET.x > 1\nendif\n"),
    ] {
        insta::assert_snapshot!(format!("paste {name}").replace([' ', '\''], "_"), shown(text), text);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (name, text) in [
        ("expression", "A = TARGET.x &&\n\n  START = $(A) && || 3\n"),
        ("types", "CLAIM_WORKLIFE = soon\nRANK = (1\nPOLLING_INTERVAL = -3\n"),
        (
            "unknown",
            "STRAT = true\nMINE = 1\nSTART = $(MINE) > 0\nOTHER = 2\nSLOT1_HasX = true\nSTARTD_ATTRS = HasX\n",
        ),
        (
            "not acted on",
            "SUSPEND = LoadAvg > 2\nWANT_SUSPEND = true\nNUM_SLOTS = 3\nDAEMON_LIST = MASTER STARTD\n",
        ),
        ("language", "START = true\nif true\nX-Y = 1\nlone\nuse POLICY : Nope\n"),
        ("cycle", "START = $(A)\nA = $(B)\nB = $(A)\n"),
        (
            "host",
            "START = $ENV(HOME) =?= \"x\"\ninclude : /etc/condor/more\nX = $(IP_ADDRESS)\nSTARTD_ATTRS = X\n",
        ),
        ("own macro", "IP_ADDRESS = \"10.0.0.1\"\nX = $(IP_ADDRESS)\nSTARTD_ATTRS = X\n"),
    ] {
        insta::assert_snapshot!(format!("wrong {name}").replace(' ', "_"), shown(text), text);
    }
}

/// HTCondor's own template has such a line: `condor_config_val -summary` prints it.
#[test]
fn a_value_that_nothing_acts_on_is_no_error() {
    let dead = [
        "PERIODIC_CHECKPOINT = $(MINE)\nMINE = $(MINE_TOO)\nMINE_TOO = 3 + $RANDOM_INTEGER(-30,30,1)\n",
        "PERIODIC_CHECKPOINT = $(LastCkpt) > 3\n",
        "LOCK = $(LOG)/lock.$(PID) \\\n  $(PPID)\nLOG = $(TILDE)/log\n",
        "PREEMPTION_REQUIREMENTS = $(MINE)\nMINE = (1 $(PID)\n",
        "A = $(B)\nB = $(A)\n",
    ];
    let is_error = |remark: &Remark| remark.severity == Severity::Error;
    for text in dead {
        let found = understand(&format!("START = Owner == \"a\"\n{text}"));
        assert!(!found.remarks.iter().any(is_error) && found.config.is_some(), "{text}: {found:?}");
        assert!(!of_file(text).iter().any(is_error) || text.starts_with("PREEMPTION"), "{text}");
    }
    let live = [
        "START = $(MINE)\nMINE = $(MINE_TOO)\nMINE_TOO = 3 + $RANDOM_INTEGER(-30,30,1)\n",
        "SLOT_TYPE_1_START = $(MINE)\nMINE = $(MINE_TOO)\nMINE_TOO = $(MINE)\n",
        "STARTD_ATTRS = $(ALL)\nALL = X\nSLOT1_X = $(MINE)\nMINE = $RANDOM_CHOICE(1, 2)\n",
        "START = 1 == \\\n $(PID)\n",
        "CpuBusy = $(MINE)\nMINE = $(MINE_TOO)\nMINE_TOO = $(MINE)\n",
        "use POLICY : Preempt_If(MINE)\nMINE = $(PID)\n",
        "if $(MINE)\nendif\nMINE = $(MINE_TOO)\nMINE_TOO = $(MINE)\n",
    ];
    for text in live {
        assert!(understand(text).remarks.iter().any(is_error), "{text}");
    }
}

/// `$(START)` finds START, and never what is said of one slot.
#[test]
fn what_is_said_of_one_slot_is_read_by_lists_alone() {
    let told = |text: &str| understand(text).remarks.iter().map(ToString::to_string).collect::<Vec<_>>();
    let dead = "SLOT1_START = Owner == \"x\"\nSTART = true\nSLOT_TYPE_1_START = $(START) && TARGET.x\n";
    let told_of = told(dead);
    assert!(told_of.iter().any(|it| it.contains("nothing reads SLOT1_START")), "{told_of:?}");
    let live = "STARTD_ATTRS = Door\nDoor = 1\nSLOT1_Door = 2\n";
    assert!(told(live).is_empty(), "{:?}", told(live));
}

#[test]
fn a_mistake_that_people_often_make_has_its_remedy() {
    for (text, expected) in [
        ("START = KeyboardIdle => 300", "write >= to compare"),
        ("RANK = (Owner = \"alice\")", "write == to compare"),
        ("PREEMPT = A and B", "write && for and"),
        ("START = Memory > 5GB", "numbers have no units here: Memory is in MiB, so 5GB is 5120"),
    ] {
        let told: Vec<String> = understand(text).remarks.iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].ends_with(&format!("; {expected}")), "{text}: {told:?}");
    }
}

#[test]
fn a_text_that_depends_on_the_machine_is_read_for_each() {
    let text = "HALVES = $(DETECTED_CPUS) / 2\nHALF = $INT(HALVES)\nSTART = TARGET.RequestCpus <= $(HALF) && \"$(ARCH)\" == \"X86_64\"\nRam = $(DETECTED_MEMORY)\nHost = \"$(HOSTNAME)\"\nSTARTD_ATTRS = Ram Host\n";
    let understood = understand(text);
    assert!(understood.by_machine, "{understood:?}");
    let fields = SlotConfig { slot_weight: Some(Expr::literal(3)), ..SlotConfig::default() }.into();
    let common = by_machine(text, fields);
    for (machine, start, ram) in [
        (machine(64, 256, "amd64"), "TARGET.RequestCpus <= 32 && \"X86_64\" == \"X86_64\"", "262144"),
        (machine(8, 16, "arm64"), "TARGET.RequestCpus <= 4 && \"aarch64\" == \"X86_64\"", "16384"),
    ] {
        let own = for_machine(&common, &of_machine(&machine)).unwrap();
        assert_eq!(own.slots.policy.start.as_ref().unwrap().to_string(), start);
        let attributes: Vec<String> =
            own.slots.attributes.iter().map(|(name, expr)| format!("{name}={expr}")).collect();
        assert_eq!(attributes, [format!("Ram={ram}"), "Host=\"node7\"".to_owned()]);
        assert_eq!(own.slots.slot_weight, Some(Expr::literal(3)), "what the text does not say stays");
    }
}

#[test]
fn what_a_text_says_on_some_machines_only_holds_there_only() {
    let text = "SMALL = $(DETECTED_CPUS) < 16\nTINY = $INT(SMALL)\nif $(TINY)\nSTART = TARGET.tiny\nendif\n";
    let understood = understand(text);
    assert_eq!((understood.by_machine, understood.config.unwrap().slots.policy.start), (true, None));
    let common = by_machine(text, StartdConfig::default());
    let start = |cpus| {
        for_machine(&common, &of_machine(&machine(cpus, 1, "amd64"))).unwrap().slots.policy.start.clone()
    };
    assert_eq!(start(64), None);
    assert_eq!(start(8).unwrap().to_string(), "TARGET.tiny");
}

#[test]
fn a_text_that_fails_on_one_machine_says_where() {
    let text = "L = 1, 2\nSTART = TARGET.x > $CHOICE(I,L)\nJ = $(DETECTED_CPUS) / 16 - 1\nI = $INT(J)\n";
    let common = by_machine(text, StartdConfig::default());
    assert!(for_machine(&common, &of_machine(&machine(16, 16, "amd64"))).is_ok());
    let error = for_machine(&common, &of_machine(&machine(64, 16, "amd64"))).unwrap_err();
    assert!(error.starts_with("line 2, column "), "{error}");
}

#[test]
fn a_machine_keeps_what_was_read_for_it_until_it_or_the_policy_changes() {
    let text = "START = TARGET.RequestCpus < $(DETECTED_CPUS)\n";
    let common = Arc::new(by_machine(text, StartdConfig::default()));
    let mut machine = machine(8, 16, "amd64");
    let config = |machine: &Machine| machine.own_config.as_ref().unwrap().config.clone().unwrap();
    review(&common, &mut machine);
    let first = config(&machine);
    review(&common, &mut machine);
    assert!(Arc::ptr_eq(&first, &config(&machine)));
    machine.facts.allocatable.milli_cpu = 4000;
    review(&common, &mut machine);
    assert_eq!(config(&machine).slots.policy.start.as_ref().unwrap().to_string(), "TARGET.RequestCpus < 4");
    review(&Arc::new(StartdConfig::default()), &mut machine);
    assert!(machine.own_config.is_none());
}

/// A slot type above MAX_SLOT_TYPES does not exist, and a remark says so. A type up to MAX_SLOT_TYPES has its policy, whatever
/// its number.
#[test]
fn types_of_high_numbers() {
    let text = "NUM_SLOTS_TYPE_11 = 1\nSLOT_TYPE_11 = 50%\nSLOT_TYPE_11_START = Owner == \"a\"\n";
    let starts = |text: &str| -> Vec<(u32, bool)> {
        let config = understand(text).config.unwrap();
        config.types.iter().map(|(number, slot)| (*number, slot.policy.start.is_some())).collect()
    };
    let remarks =
        |text: &str| -> Vec<String> { understand(text).remarks.iter().map(ToString::to_string).collect() };
    assert_eq!(starts(text), []);
    let in_vain = |knob: &str| {
        format!("{knob} has no effect: the last slot type is 10 (MAX_SLOT_TYPES); say MAX_SLOT_TYPES = 11")
    };
    assert_eq!(
        remarks(text),
        [
            format!("line 1, column 1: {}", in_vain("NUM_SLOTS_TYPE_11")),
            format!("line 2, column 1: {}", in_vain("SLOT_TYPE_11")),
            format!("line 3, column 1: {}", in_vain("SLOT_TYPE_11_START")),
        ]
    );
    let more = format!("MAX_SLOT_TYPES = 20\n{text}");
    assert_eq!(starts(&more), [(11, true)]);
    assert_eq!(remarks(&more), [""; 0]);
    let last =
        "MAX_SLOT_TYPES = 200\nNUM_SLOTS_TYPE_200 = 1\nSLOT_TYPE_200_START = False\nNUM_SLOTS_TYPE_201 = 1\n";
    assert_eq!(starts(last), [(200, true)]);
    assert_eq!(starts("MAX_SLOT_TYPES = 1\nNUM_SLOTS_TYPE_1 = 1\nNUM_SLOTS_TYPE_2 = 1\n"), [(1, false)]);
}

/// The expected slots are the answers of condor_startd, recorded by `hack/oracle/owners.py`.
#[test]
fn owners_have_the_slots_that_condor_startd_leaves_to_them() {
    let recorded = include_str!("../../../../tests/oracle/owners.json");
    let cases: Vec<serde_json::Value> = serde_json::from_str(recorded).unwrap();
    assert_eq!(cases.len(), 10);
    for case in cases {
        let config = case["config"].as_str().unwrap();
        let text = format!("NUM_SLOTS_TYPE_1 = 1\nNUM_SLOTS_TYPE_2 = 1\n{config}");
        let types = understand(&text).config.unwrap().types;
        let is_true =
            |slot: &SlotConfig| slot.policy.is_owner.as_ref().is_some_and(|expr| expr.to_string() == "true");
        let owned: Vec<u32> = types.iter().filter(|(_, slot)| is_true(slot)).map(|(id, _)| *id).collect();
        assert_eq!(serde_json::json!(owned), case["owner"], "{config}");
    }
}

/// As condor_startd 25.14.1 answers, but for `SLOT_TYPE_<N>_IS_OWNER`, which it does not read.
#[test]
fn the_old_name_of_is_owner_comes_first() {
    let types = "NUM_SLOTS_TYPE_1 = 1\nNUM_SLOTS_TYPE_2 = 1\n";
    for (text, expected) in [
        ("IsOwner = a\n", ["a", "a"]),
        ("IS_OWNER = a\n", ["a", "a"]),
        ("STARTD.IsOwner = a\nIS_OWNER = b\n", ["a", "a"]),
        ("SLOT_TYPE_1_IsOwner = a\n", ["a", ""]),
        ("SLOT_TYPE_1_IsOwner = a\nIS_OWNER = b\n", ["a", "b"]),
        ("SLOT_TYPE_1_IsOwner = a\nSLOT_TYPE_1_IS_OWNER = b\n", ["a", ""]),
        ("SLOT_TYPE_2_IS_OWNER = a\nIsOwner = b\n", ["b", "a"]),
    ] {
        let understood = understand(&format!("{types}{text}"));
        let config = understood.config.unwrap();
        let owners = config.types.values().map(|slot| slot.policy.is_owner.as_ref());
        let owners: Vec<String> =
            owners.map(|owner| owner.map_or_else(String::new, ToString::to_string)).collect();
        assert_eq!(owners, expected, "{text}");
        assert!(understood.remarks.is_empty(), "{text}: {:?}", understood.remarks);
    }
}

#[test]
fn a_part_of_an_expression_that_is_never_anything_but_an_error_is_remarked_on() {
    let told = |text: &str| -> Vec<String> {
        let remarks = understand(text).remarks;
        remarks
            .iter()
            .filter(|remark| remark.reason == "MistakenExpression")
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        told("START = isStudnt(Owner)\nPREEMPT = Owner == 'bob'\nSLOT_TYPE_1_START = regexp(\"*\", Owner)\n"),
        [
            "line 1, column 1: START calls isStudnt(), which is no function: the call is error",
            "line 2, column 1: PREEMPT has 'bob' in single quotes, which is an attribute; a string has double quotes: \"bob\"",
            "line 3, column 1: SLOT_TYPE_1_START calls regexp() with the pattern \"*\", which is no regular expression, or needs \
             look-around or back references: the call is error",
        ]
    );
    assert_eq!(
        told("START = regexp(\"^a\", Owner) && stringListMember(Owner, \"it's, us\")\nSTRIPPED = 'a'\n"),
        [""; 0]
    );
}

#[test]
fn an_attribute_that_is_almost_a_known_one_is_remarked_on() {
    let told = |text: &str| -> Vec<String> {
        let remarks = understand(text).remarks;
        remarks
            .iter()
            .filter(|remark| remark.reason == "UnlikelyAttribute")
            .map(ToString::to_string)
            .collect()
    };
    let nobodys = "an attribute that neither nodes nor jobs have unless somebody adds it; did you mean";
    assert_eq!(
        told("WANT_SUSPEND = tru\n"),
        [format!("line 1, column 1: WANT_SUSPEND looks at tru, {nobodys} true?")]
    );
    assert_eq!(
        told("SLOT_TYPE_1_START = TARGET.RequestMemroy < 5 && flase"),
        [
            format!("line 1, column 1: SLOT_TYPE_1_START looks at RequestMemroy, {nobodys} RequestMemory?"),
            format!("line 1, column 1: SLOT_TYPE_1_START looks at flase, {nobodys} false?"),
        ]
    );
    let sorted = crate::startd::config::of_file("GROUP_SORT_EXPR = GroupResourcesInUse / GroupQouta\n");
    assert!(sorted.iter().any(|remark| remark.message.ends_with("did you mean GroupQuota?")), "{sorted:?}");
    for meant in [
        "Memroy = 5\nSTART = Memroy > 4\n",
        "START = GPUs > 0 && Site == \"a\"\n",
        "PREEMPT = TRUE\n",
        "START = ",
    ] {
        assert_eq!(told(meant), Vec::<String>::new(), "{meant}");
    }
}

#[test]
fn an_attribute_of_the_wrong_ad_is_remarked_on() {
    let told = |text: &str| -> Vec<String> {
        let remarks = understand(text).remarks;
        remarks
            .iter()
            .filter(|remark| remark.reason == "MistakenExpression")
            .map(ToString::to_string)
            .collect()
    };
    let jobs = "which no job has unless its author adds it; did you mean";
    let slots = "which no slot has unless a policy publishes it; did you mean";
    assert_eq!(
        told("START = TARGET.Cpus > 2 && other.memory > 1\nSLOT_TYPE_1_PREEMPT_VM = MY.RequestMemory > 5\n"),
        [
            format!("line 1, column 1: START looks at TARGET.Cpus, {jobs} MY.Cpus?"),
            format!("line 1, column 1: START looks at TARGET.memory, {jobs} MY.memory?"),
            format!(
                "line 2, column 1: SLOT_TYPE_1_PREEMPT_VM looks at MY.RequestMemory, {slots} TARGET.RequestMemory?"
            ),
        ]
    );
    assert_eq!(
        told("RANK = MY.HasSingularity\n"),
        [
            "line 1, column 1: RANK looks at MY.HasSingularity, which HTCondor's slots have, and no slot here unless a policy \
             publishes it"
        ]
    );
    for text in [
        "START = MY.Cpus > 2 && Memory > 1 && TARGET.RequestCpus < 5 && TARGET.MyOwn =?= 1 && MY.Strange",
        "Owner = \"me\"\nSTARTD_ATTRS = Owner\nSTART = MY.Owner == \"me\"",
        "STARTD_JOB_ATTRS = Owner\nPREEMPT = MY.Owner == \"me\"",
        "STARTD_CRON_JOBLIST = P\nSTARTD_CRON_P_EXECUTABLE = /p\nSTART = MY.HasJava",
        // The negotiator's and the jobs' expressions have other ads.
        "SYSTEM_PERIODIC_HOLD = MY.RequestMemory > 5",
        "PREEMPTION_REQUIREMENTS = MY.RequestMemory > TARGET.Memory",
    ] {
        assert_eq!(told(text), [""; 0], "{text}");
    }
    let beside = |attributes: &[&str]| {
        understand_beside(attributes, "START = MY.HasJava && MY.Owner == 1").remarks.len()
    };
    assert_eq!((beside(&[]), beside(&["hasjava"]), beside(&["HasJava", "Owner"])), (2, 1, 0));
}

#[test]
fn a_kill_that_only_an_agent_can_carry_out_is_remarked_on() {
    let told = |text: &str| -> Vec<String> {
        let remarks = understand(text).remarks;
        remarks.iter().filter(|remark| remark.reason == "KillNeedsAgent").map(ToString::to_string).collect()
    };
    for foreseen in
        ["KILL = false\n", "KILL = time() - EnteredCurrentActivity > 60\n", "PREEMPT = TARGET.JobPrio > 1\n"]
    {
        assert_eq!(told(foreseen), Vec::<String>::new(), "{foreseen}");
    }
    assert_eq!(
        told("SLOT_TYPE_1_KILL = ImageSize > Memory && time() > 5\n"),
        [
            "line 1, column 1: SLOT_TYPE_1_KILL looks at ImageSize, Memory: if that changes while a job vacates, only an agent on the \
          node can kill the job; without one, the job has its grace to the end; bound the grace by MachineMaxVacateTime"
        ]
    );
}

#[test]
fn policies_that_read_what_only_agents_report_are_remarked_on_together() {
    let told = |text: &str| -> Vec<String> {
        let remarks = understand(text).remarks;
        remarks
            .iter()
            .filter(|remark| remark.reason == "AttributeNotReported")
            .map(ToString::to_string)
            .collect()
    };
    let then = "which only an agent reports: on a node without an agent, a clause about that attribute is undefined, which does not count as true; \
                run agents, or publish an attribute of this name by STARTD_ATTRS";
    for quiet in [
        "SUSPEND = Memory < 5\n",
        "PREEMPT = LoadAvg > 2\nSTARTD_ATTRS = LoadAvg\nLoadAvg = 0.5\n",
        "PREEMPT = A > 2\nSTARTD_ATTRS = A B\nA = B\nB = A\n",
    ] {
        assert_eq!(told(quiet), Vec::<String>::new(), "{quiet}");
    }
    // An attribute that is published is what it reads.
    for (policy, knobs) in [
        ("use POLICY : Hold_If_Cpus_Exceeded\n", "PREEMPT, WANT_HOLD look"),
        ("use POLICY : Preempt_If_Cpus_Exceeded\n", "WANT_SUSPEND, PREEMPT look"),
        (
            "PREEMPT = Busy > 2\nSTARTD_ATTRS = Busy Load\nBusy = Load\nLoad = TotalLoadAvg + CondorLoadAvg\n",
            "PREEMPT looks",
        ),
    ] {
        let said = told(policy).concat();
        assert!(said.contains(&format!("{knobs} at CondorLoadAvg, TotalLoadAvg, {then}")), "{policy}{said}");
    }
    // The ad of a job has a size only if the author gives one, or an agent reports what a proc uses.
    assert!(
        told("START = $(SmallJob)\n")
            .concat()
            .contains("START looks at ImageSize, which only an agent reports")
    );
    assert_eq!(
        told("PREEMPT = $(Busy) && Cpus > 1\nBusy = LoadAvg > 2\n"),
        [format!("line 1, column 1: PREEMPT looks at LoadAvg, {then}")]
    );
    assert_eq!(
        told("CONTINUE = KeyboardIdle > 60\nSUSPEND = KeyboardIdle < 5 || MY.LoadAvg > 2\n"),
        [format!("line 2, column 1: SUSPEND, CONTINUE look at KeyboardIdle, LoadAvg, {then}")]
    );
    assert_eq!(
        told("SLOT_TYPE_2_WANT_HOLD = ConsoleIdle < 5\nSLOT_TYPE_2 = cpus=1\nNUM_SLOTS_TYPE_2 = 1\n"),
        [format!("line 1, column 1: SLOT_TYPE_2_WANT_HOLD looks at ConsoleIdle, {then}")]
    );
}

/// "WANT_SUSPEND: A boolean expression that, when True, tells HTCondor to evaluate the SUSPEND expression". It is False by default.
#[test]
fn a_suspension_that_nobody_wants_is_remarked_on() {
    let told = |text: &str| -> Vec<String> {
        let remarks = understand(text).remarks.into_iter().map(|remark| remark.to_string());
        remarks.filter(|remark| remark.contains("WANT_SUSPEND is False")).collect()
    };
    let then =
        "no effect: WANT_SUSPEND is False unless it is set, and no job is suspended; add WANT_SUSPEND = True";
    for (text, expected) in [
        ("SUSPEND = Memory < 5\n", Some(format!("line 1, column 1: SUSPEND has {then}"))),
        (
            "CONTINUE = Memory > 5\nSUSPEND = Memory < 5\n",
            Some(format!("line 2, column 1: SUSPEND, CONTINUE have {then}")),
        ),
        (
            "SLOT_TYPE_1 = 100%\nSLOT_TYPE_1_SUSPEND = Memory < 5\nNUM_SLOTS_TYPE_1 = 1\n",
            Some(format!("line 2, column 1: SLOT_TYPE_1_SUSPEND has {then}")),
        ),
        ("SUSPEND = Memory < 5\nWANT_SUSPEND = True\n", None),
        ("SUSPEND = Memory < 5\nWANT_SUSPEND_VANILLA = Cpus > 1\n", None),
        ("SUSPEND = False\nCONTINUE = True\n", None),
        ("use POLICY : UWCS_Desktop\n", None),
    ] {
        assert_eq!(told(text), expected.into_iter().collect::<Vec<_>>(), "{text}");
    }
}

#[test]
fn what_an_admin_pastes_without_its_other_half_is_told() {
    let told = |text: &str| -> Vec<String> {
        understand(text).remarks.iter().map(|remark| format!("{} {}", remark.line, remark.message)).collect()
    };
    let has = |text: &str, wanted: &str| {
        let all = told(text);
        assert!(all.iter().any(|remark| remark.contains(wanted)), "{text}: {all:?}");
    };
    has(
        "PREEMPT = $(CPUBusy) && Cpus > 1\n",
        "a line 'use FEATURE : Policy_Expr_Fragments' before this one defines $(CPUBusy)",
    );
    has(
        "PREEMPT = TARGET.MemoryUsage > Memory\n",
        "PREEMPT looks at MemoryUsage, which only an agent reports",
    );
    has(
        "SLOT_TYPE_2 = cpus=1\n",
        "SLOT_TYPE_2 makes no slots, since nothing says how many; set NUM_SLOTS_TYPE_2",
    );
    for harmless in [
        "UPDATE_OFFSET = $RANDOM_INTEGER(0,300)\n",
        "DOCKER_VOLUME_DIR_X = /a\n",
        "X_HOOK_PREPARE_JOB = /a\n",
    ] {
        let understood = understand(harmless);
        assert!(understood.config.is_some(), "{harmless}: {:?}", understood.remarks);
        assert!(!understood.remarks.iter().any(|remark| remark.reason == "UnknownKnob"), "{harmless}");
    }
    assert!(
        understand("START = $RANDOM_INTEGER(0,300) > 5\n").config.is_none(),
        "a knob that is acted on must have a value"
    );
}
