//! Runs the whole command.

use super::*;
use crate::stop::UNUSABLE;

const SLOTS: &str = "Name = \"s1\"\nCpus = 1\nMemory = 1\nRank = 0\nRequirements = TARGET.RequestCpus <= Cpus\n\n\
                     Name = \"s2\"\nCpus = 1\nMemory = 2\nRank = 0\nRequirements = TARGET.RequestCpus <= Cpus\n\n\
                     Name = \"s3\"\nCpus = 1\nState = \"Claimed\"\nRemoteUser = \"bob@x\"\n";

/// The files of a case, and the command line that names them.
struct Case {
    directory: tempfile::TempDir,
    args: Vec<String>,
}

impl Case {
    fn new(slots: &str, jobs: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let args = ["--now", "0", "-o", "json"].map(str::to_owned).to_vec();
        Self { directory, args }.with("--slots", slots).with("--jobs", jobs)
    }

    fn with(mut self, option: &str, text: &str) -> Self {
        let path = self.directory.path().join(option.trim_start_matches('-'));
        std::fs::write(&path, text).unwrap();
        self.args.extend([option.to_owned(), path.display().to_string()]);
        self
    }

    fn run(&self) -> (u8, String, String) {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let (status, out, err) = crate::outcome::outcome("negotiate", &args, "", run);
        (status, out, err.replace(&format!("{}/", self.directory.path().display()), ""))
    }

    /// Runs the command, and returns the figures and the lines of the matches.
    fn figures(self) -> (serde_json::Value, Vec<String>) {
        let case = self.with("--matches", "");
        let (status, out, err) = case.run();
        assert_eq!((status, err.as_str()), (DONE, ""));
        let matches = std::fs::read_to_string(case.directory.path().join("matches")).unwrap();
        (serde_json::from_str(&out).unwrap(), matches.lines().map(str::to_owned).collect())
    }
}

fn jobs(count: u32, attributes: &str) -> String {
    let job = |proc: u32| {
        format!("ClusterId = 7\nProcId = {proc}\nRequestCpus = 1\nRequirements = true\n{attributes}\n\n")
    };
    (0..count).map(job).collect()
}

#[test]
fn each_match_is_a_line_and_jobs_are_matched_in_their_order() {
    let (figures, matches) = Case::new(SLOTS, &jobs(3, "User = \"al@x\"\nRank = TARGET.Memory")).figures();
    let line = |job: &str, slot: &str| {
        format!(
            r#"{{"job":"{job}","slot":"{slot}","submitter":"al@x","reason":"NoPreemption","preempts":[]}}"#
        )
    };
    // By NEGOTIATOR_PRE_JOB_RANK the smaller slot is the better fit.
    assert_eq!(matches, [line("7.0", "s1"), line("7.1", "s2")]);
    let figure = |name: &str| figures[name].as_u64();
    for (name, expected) in
        [("slots", 3), ("jobs", 3), ("autoclusters", 1), ("matches", 2), ("rejects", 1), ("submitters", 2)]
    {
        assert_eq!(figure(name), Some(expected), "{name} of {figures}");
    }
    assert!(figures["cpu_s"].is_number() && figures["wall_s"].is_number() && figure("pies") >= Some(1));
}

#[test]
fn matches_can_be_printed() {
    let mut case = Case::new(SLOTS, &jobs(1, "User = \"al@x\""));
    case.args.extend(["--matches", "-"].map(str::to_owned));
    let (status, out, err) = case.run();
    assert_eq!((status, err.as_str()), (DONE, ""));
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["job"], &lines[1]["matches"]), (2, &"7.0".into(), &1.into()), "{out}");
}

/// With ALLOW_PSLOT_PREEMPTION, the match is with the partitionable slot, and its line names the dynamic slots that
/// it preempts.
#[test]
fn a_wide_job_gets_several_dynamic_slots() {
    let requirements = "Requirements = TARGET.RequestCpus <= Cpus && TARGET.RequestMemory <= Memory";
    let more = format!("Machine = \"a\"\nSlotID = 1\nRank = 0\n{requirements}\n");
    let pslot =
        format!("Name = \"slot1@a\"\nPartitionableSlot = true\nCpus = 0\nMemory = 64\nDisk = 9\n{more}\n");
    let dslot = |id: i32| {
        format!(
            "Name = \"slot1_{id}@a\"\nDynamicSlot = true\nCpus = 1\nMemory = 512\nDisk = 9999\nState = \"Claimed\"\n\
             RemoteUser = \"bob@x\"\nCurrentRank = {}\n{more}\n",
            -id
        )
    };
    let slots: String = std::iter::once(pslot).chain((1..=3).map(dslot)).collect();
    let wide = jobs(1, "User = \"al@x\"\nRequestCpus = 2\nRequestMemory = 1000\nRequestDisk = 1");
    let matches = |allow: &str| Case::new(&slots, &wide).with("-f", allow).figures().1;
    assert_eq!(matches(""), [] as [&str; 0]);
    let expected = r#"{"job":"7.0","slot":"slot1@a","submitter":"al@x","reason":"Rank","preempts":["slot1_3@a","slot1_2@a"]}"#;
    assert_eq!(matches("ALLOW_PSLOT_PREEMPTION = True\n"), [expected]);
}

#[test]
fn configuration_counts() {
    let case = Case::new(SLOTS, &jobs(1, "User = \"al@x\"")).with("-f", "NEGOTIATOR_PRE_JOB_RANK = Memory\n");
    assert!(case.figures().1[0].contains("\"s2\""));
    let (status, _, err) = Case::new(SLOTS, "").with("-f", "NEGOTIATOR_PRE_JOB_RANK = 1 +\n").run();
    assert_eq!(status, UNUSABLE);
    assert!(err.contains("line 1") && err.contains("NEGOTIATOR_PRE_JOB_RANK"), "{err}");
}

#[test]
fn configuration_is_of_the_same_time() {
    let config = "AT = time()\nNEGOTIATOR_PRE_JOB_RANK = ifThenElse($INT(AT) == 1234, Memory, -Memory)\n";
    for (now, slot) in [("1234", "\"s2\""), ("1235", "\"s1\"")] {
        let mut case = Case::new(SLOTS, &jobs(1, "User = \"al@x\"")).with("-f", config);
        now.clone_into(&mut case.args[1]);
        let (_, matches) = case.figures();
        assert!(matches[0].contains(slot), "{now}: {matches:?}");
    }
}

#[test]
fn priorities_and_ceilings_count() {
    let both = jobs(2, "User = \"al@x\"") + &jobs(2, "User = \"bea@x\"");
    let submitters = |priorities: &str| -> Vec<String> {
        let (_, matches) = Case::new(SLOTS, &both).with("--priorities", priorities).figures();
        let of =
            |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap()["submitter"].to_string();
        matches.iter().map(of).collect()
    };
    assert_eq!(submitters(r#"{"al@x": {"rup": 500}, "bob@x": {"rup": 500}}"#), ["\"bea@x\"", "\"bea@x\""]);
    let ceiling = r#"{"al@x": {"rup": 500}, "bob@x": {"rup": 500}, "bea@x": {"rup": 0.5, "ceiling": 1}}"#;
    assert_eq!(submitters(ceiling), ["\"bea@x\"", "\"al@x\""]);
}

#[test]
fn floors_count() {
    let both = jobs(2, "User = \"al@x\"") + &jobs(2, "User = \"bea@x\"");
    let priorities = r#"{"al@x": {"rup": 5000, "floor": 1}, "bob@x": {"rup": 500}}"#;
    let (_, matches) = Case::new(SLOTS, &both).with("--priorities", priorities).figures();
    assert!(matches[0].contains("\"al@x\"") && matches[1].contains("\"bea@x\""), "{matches:?}");
}

#[test]
fn groups_count() {
    let group =
        "apiVersion: slotwright.dev/v1alpha1\nkind: GroupQuota\nmetadata: {name: g}\nspec: {quota: 1}\n";
    let (figures, _) =
        Case::new(SLOTS, &jobs(2, "AccountingGroup = \"g.al\"")).with("--groups", group).figures();
    assert_eq!(figures["matches"], 1);
    let fault = Case::new(SLOTS, "").with("--groups", &group.replace("name: g", "name: g.h")).run();
    assert_eq!(fault.0, UNUSABLE);
    assert!(fault.2.contains("groups:3:"), "{}", fault.2);
}

#[test]
fn unusable_input_is_told_with_file_line_and_column() {
    let fault = |case: Case| case.run();
    let expected = |message: &str| (UNUSABLE, String::new(), format!("slotwright negotiate: {message}\n"));
    assert_eq!(
        fault(Case::new("Cpus = 1\n", "")),
        expected("slots: line 1, column 1: the slot's ad has no string as Name")
    );
    let (status, _, err) = fault(Case::new(SLOTS, "ClusterId = \n"));
    assert_eq!(status, UNUSABLE);
    assert!(err.starts_with("slotwright negotiate: jobs: line 1, column "), "{err}");
    let mut missing = Case::new(SLOTS, "");
    missing.args.extend(["--priorities", "/nope/nope"].map(str::to_owned));
    assert!(missing.run().2.contains("/nope/nope"));
}

/// How many jobs of each submitter were matched.
fn matched(case: Case) -> std::collections::BTreeMap<String, usize> {
    let (_, lines) = case.figures();
    let mut matched = std::collections::BTreeMap::new();
    for line in lines {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        *matched.entry(line["submitter"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    matched
}

/// The ads of `count` slots of one core.
fn cores(count: usize) -> String {
    let core = |place| {
        format!(
            "Name = \"s{place}\"\nCpus = 1\nRank = 0\nSite = {place}\nRequirements = true\nSlotWeight = 1\n\n"
        )
    };
    (0..count).map(core).collect()
}

fn two(count: u32) -> String {
    let of = |name: &str, cluster: u32| {
        jobs(count, &format!("User = \"{name}\"")).replace("ClusterId = 7", &format!("ClusterId = {cluster}"))
    };
    of("a@x", 1) + &of("b@y", 2)
}

#[test]
fn submitters_outside_the_constraint_are_not_served() {
    let case = Case::new(&cores(4), &two(4))
        .with("-f", "NEGOTIATOR_SUBMITTER_CONSTRAINT = Name == \"b@y\" && IdleJobs == 4\n");
    assert_eq!(matched(case), [("b@y".to_owned(), 4)].into());
}

/// NEGOTIATOR_SLOT_POOLSIZE_CONSTRAINT shrinks the pie, but the slots outside it may be matched too.
#[test]
fn slots_outside_the_size_of_the_pool_are_matched_all_the_same() {
    let groups = "apiVersion: slotwright.dev/v1alpha1\nkind: GroupQuota\nmetadata: {name: g}\nspec: {dynamicQuota: 0.5}\n";
    let queue = jobs(8, "AccountingGroup = \"g.a\"");
    for (config, expected) in [("", 4), ("NEGOTIATOR_SLOT_POOLSIZE_CONSTRAINT = Site < 4\n", 2)] {
        let case = Case::new(&cores(8), &queue).with("--groups", groups).with("-f", config);
        assert_eq!(matched(case).values().sum::<usize>(), expected, "{config}");
    }
}

/// Half the priority factor gives twice the share. The file of priorities decides first, then the domain or the
/// group.
#[test]
fn factors_are_found_as_the_accountant_finds_them() {
    let shares = |config: &str, priorities: &str| {
        matched(Case::new(&cores(6), &two(6)).with("-f", config).with("--priorities", priorities))
    };
    let even = [("a@x".to_owned(), 3), ("b@y".to_owned(), 3)];
    let uneven = [("a@x".to_owned(), 2), ("b@y".to_owned(), 4)];
    assert_eq!(shares("", "{}"), even.clone().into());
    let local = "ACCOUNTANT_LOCAL_DOMAIN = y\nDEFAULT_PRIO_FACTOR = 10\nREMOTE_PRIO_FACTOR = 20\n";
    assert_eq!(shares(local, "{}"), uneven.into());
    assert_eq!(shares(local, "{\"a@x\": {\"factor\": 10}}"), even.into());
    let groups = "apiVersion: slotwright.dev/v1alpha1\nkind: GroupQuota\nmetadata: {name: g}\n\
                  spec: {quota: 6, priorityFactor: 2000}\n";
    let of = |name: &str, cluster: u32| {
        let user = format!("AccountingGroup = \"{name}\"");
        jobs(6, &user).replace("ClusterId = 7", &format!("ClusterId = {cluster}"))
    };
    let case = Case::new(&cores(6), &(of("g.a", 1) + &of("g.b", 2)))
        .with("--groups", groups)
        .with("--priorities", "{\"g.b\": {\"factor\": 1000}}");
    assert_eq!(matched(case), [("g.a".to_owned(), 2), ("g.b".to_owned(), 4)].into());
}

#[test]
fn suspended_jobs_may_cost_nothing() {
    let slots = cores(4)
        + "Name = \"c\"\nCpus = 1\nState = \"Claimed\"\nActivity = \"Suspended\"\nRemoteUser = \"a@x\"\nSlotWeight = 2\n";
    for (config, expected) in [("", [1, 3]), ("NEGOTIATOR_DISCOUNT_SUSPENDED_RESOURCES = True\n", [3, 1])] {
        let case = Case::new(&slots, &two(4)).with("-f", config);
        assert_eq!(matched(case).into_values().collect::<Vec<_>>(), expected, "{config}");
    }
}

/// GROUP_NAMES and what belongs to it are read from the configuration.
#[test]
fn the_configuration_names_groups() {
    let of = |name: &str, cluster: u32| {
        let user = format!("AccountingGroup = \"{name}\"");
        jobs(8, &user).replace("ClusterId = 7", &format!("ClusterId = {cluster}"))
    };
    let case = |config: &str| Case::new(&cores(8), &(of("g.a", 1) + &of("h.b", 2))).with("-f", config);
    let taken = |config: &str| matched(case(config)).into_iter().collect::<Vec<_>>();
    let pair =
        |a: usize, b: usize| [("g.a", a), ("h.b", b)].map(|(name, count)| (name.to_owned(), count)).to_vec();
    let named = "GROUP_NAMES = g, H\n";
    assert_eq!(taken(&format!("{named}GROUP_QUOTA_g = 3\nGROUP_QUOTA_DYNAMIC_h = 0.4\n")), pair(3, 2));
    let surplus = "GROUP_QUOTA_g = 3\nGROUP_QUOTA_h = 1\nGROUP_ACCEPT_SURPLUS_g = True\n";
    assert_eq!(taken(&format!("{named}{surplus}")), pair(7, 1));
    let (status, _, err) = case("GROUP_NAMES = g\nGROUP_QUOTA_g = many\n").run();
    assert_eq!((status, err.contains("GROUP_QUOTA_g")), (UNUSABLE, true), "{err}");
    let both = case(named).with("--groups", "");
    let (status, _, err) = both.run();
    assert_eq!((status, err.contains("GROUP_NAMES")), (UNUSABLE, true), "{err}");
}

/// A cycle over files says which knobs it does not use.
#[test]
fn knobs_without_effect_are_said() {
    let said = |config: &str| {
        let (status, _, err) = Case::new(SLOTS, &jobs(1, "User = \"al@x\"")).with("-f", config).run();
        assert_eq!(status, DONE, "{err}");
        err
    };
    assert_eq!(
        said("PREEMPTION_REQUIREMENTS = $(BETTER)\nBETTER = True\nXSW_LIMIT = 3\nSLOT_WEIGHT = 1\n"),
        ""
    );
    let prefix = "slotwright negotiate: warning: f";
    for (config, expected) in [
        (
            "NEGOTIATOR_INTERVAL = 5\n",
            ", line 1, column 1: NEGOTIATOR_INTERVAL is not used: this is one cycle, which takes as long as it takes\n",
        ),
        (
            "GROUP_NAMES = g\nGROUP_QUOTA_h = 5\n",
            ", line 2, column 1: GROUP_QUOTA_h is not used: GROUP_NAMES does not name h\n",
        ),
        (
            "GROUP_QUOTA_g = 5\n",
            ", line 1, column 1: GROUP_QUOTA_g is not used: GROUP_NAMES does not name g\n",
        ),
        (
            "START = True\nDAEMON_LIST = MASTER\n",
            ": not used, because the negotiator does not read them: START, DAEMON_LIST\n",
        ),
    ] {
        assert_eq!(said(config), format!("{prefix}{expected}"), "{config}");
    }
}

/// A pipeline that wrote no ads is not a pool without slots.
#[test]
fn a_file_without_ads_of_slots_cannot_be_used() {
    for slots in ["", "\n# nothing\n"] {
        let (status, out, err) = Case::new(slots, &jobs(1, "User = \"al@x\"")).run();
        assert_eq!((status, out.as_str()), (UNUSABLE, ""));
        assert_eq!(err, "slotwright negotiate: slots has no ads of slots\n");
    }
    let (status, ..) = Case::new(SLOTS, "").run();
    assert_eq!(status, DONE, "a queue may be empty");
}

/// If no slot matches a job, the figures name the nearest slot, and say what the slot lacks.
#[test]
fn what_keeps_jobs_from_matching_is_said() {
    let requirements =
        "ClusterId = 9\nProcId = 0\nRequestCpus = 1\nUser = \"al@x\"\nRequirements = TARGET.Memory >= 4\n";
    let (figures, matches) = Case::new(SLOTS, requirements).figures();
    assert!(matches.is_empty());
    let why = &figures["why"][0];
    assert_eq!((why["job"].as_str(), why["jobs"].as_u64()), (Some("9.0"), Some(1)));
    assert_eq!(why["reason"], "RequirementsNotMet");
    assert_eq!(
        why["why"],
        "no slot matches: the nearest, s1, has Memory 1, and does not meet TARGET.Memory >= 4"
    );
    let (status, out, _) = Case::new(SLOTS, requirements).with("--priorities", "{}").run();
    assert_eq!(status, DONE);
    assert!(out.contains("TARGET.Memory >= 4"), "{out}");
}
