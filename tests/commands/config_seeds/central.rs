//! Central Managers: accounting groups, their quotas, and concurrency limits.

use classad::Value;
use condor_config::Config;
use model::negotiator::groups::{GroupSpec, Quota, Tree};

use super::support::{eval, read_as, startd, value};

fn negotiator(text: &str) -> Config {
    read_as("NEGOTIATOR", text)
}

/// The groups that the configuration names, with their quotas.
fn specs(config: &Config) -> Vec<GroupSpec> {
    let quota = |group: &str| {
        let fixed = config.real(&format!("GROUP_QUOTA_{group}")).unwrap();
        let share = config.real(&format!("GROUP_QUOTA_DYNAMIC_{group}")).unwrap();
        fixed.map(Quota::Static).or(share.map(Quota::Dynamic))
    };
    let names = config.list("GROUP_NAMES").unwrap().into_iter();
    names.map(|name| GroupSpec { quota: quota(&name), name, ..GroupSpec::default() }).collect()
}

/// The slot weight that each group, with the groups below it, may use in a pool of this size.
fn quotas<const N: usize>(config: &Config, pool: f64, oversubscription: bool, groups: [&str; N]) -> [f64; N] {
    let tree = Tree::new(&specs(config));
    let allotments = tree.assign(pool, oversubscription);
    groups.map(|group| allotments.groups.get(tree.find(group).unwrap()).unwrap().subtree_quota)
}

#[track_caller]
fn about<const N: usize>(found: [f64; N], wanted: [f64; N]) {
    let near = found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 0.01);
    assert!(near, "{found:?}, not {wanted:?}");
}

const TWO: [&str; 2] = ["group_physics", "group_chemistry"];

#[test]
fn hierarchical_group_quotas_physics_has_twenty_slots_and_chemistry_ten() {
    let config = negotiator(
        "GROUP_NAMES = group_physics, group_chemistry
GROUP_QUOTA_group_physics =   20
GROUP_QUOTA_group_chemistry = 10
",
    );
    about(quotas(&config, 30.0, false, TWO), [20.0, 10.0]);
    // If half of the machines fail, the quotas are scaled down; with twice as many machines they stay.
    about(quotas(&config, 15.0, false, TWO), [10.0, 5.0]);
    about(quotas(&config, 60.0, false, TWO), [20.0, 10.0]);
    about(quotas(&config, 15.0, true, TWO), [20.0, 10.0]);
}

#[test]
fn hierarchical_group_quotas_dynamic_quotas_keep_their_ratio() {
    let config = negotiator(
        "GROUP_NAMES = group_physics, group_chemistry
GROUP_QUOTA_DYNAMIC_group_chemistry = 0.33
GROUP_QUOTA_DYNAMIC_group_physics =   0.66
",
    );
    about(quotas(&config, 30.0, true, TWO), [19.8, 9.9]);
    about(quotas(&config, 15.0, true, TWO), [9.9, 4.95]);
}

const TREE: [&str; 4] = ["group_physics", "group_physics.hep", "group_physics.lep", "group_chemistry"];

#[test]
fn hierarchical_group_quotas_subgroups_divide_their_parents_quota() {
    let config = negotiator(
        "GROUP_NAMES = group_physics, group_physics.hep, group_physics.lep, group_chemistry
GROUP_QUOTA_group_physics     =   20
GROUP_QUOTA_group_physics.hep =   15
GROUP_QUOTA_group_physics.lep =    5
GROUP_QUOTA_group_chemistry   =   10
",
    );
    about(quotas(&config, 30.0, true, TREE), [20.0, 15.0, 5.0, 10.0]);
}

/// The same 15 machines for high-energy physics as in the static example, in a pool of 30.
#[test]
fn hierarchical_group_quotas_a_subgroups_share_is_of_its_parents() {
    let config = negotiator(
        "GROUP_NAMES = group_physics, group_physics.hep, group_physics.lep, group_chemistry
GROUP_QUOTA_DYNAMIC_group_chemistry   =   0.33334
GROUP_QUOTA_DYNAMIC_group_physics     =   0.66667
GROUP_QUOTA_DYNAMIC_group_physics.hep =   0.75
GROUP_QUOTA_DYNAMIC_group_physics.lep =   0.25
",
    );
    about(quotas(&config, 30.0, true, TREE), [20.0, 15.0, 5.0, 10.0]);
}

/// Whether a group takes surplus, by its own knob or else by the knob of all groups.
#[test]
fn hierarchical_group_quotas_surplus_is_shared_within_physics_only() {
    let config = negotiator(
        "GROUP_NAMES = group_physics, group_physics.hep, group_physics.lep, group_chemistry
GROUP_QUOTA_group_physics     =   20
GROUP_QUOTA_group_physics.hep =   15
GROUP_QUOTA_group_physics.lep =    5
GROUP_QUOTA_group_chemistry   =   10
GROUP_ACCEPT_SURPLUS = false
GROUP_ACCEPT_SURPLUS_group_physics = false
GROUP_ACCEPT_SURPLUS_group_physics.lep = true
GROUP_ACCEPT_SURPLUS_group_physics.hep = true
",
    );
    about(quotas(&config, 30.0, true, TREE), [20.0, 15.0, 5.0, 10.0]);
    let accepts = TREE.map(|group| {
        let own = config.boolean(&format!("GROUP_ACCEPT_SURPLUS_{group}")).unwrap();
        own.or(config.boolean("GROUP_ACCEPT_SURPLUS").unwrap()).unwrap()
    });
    assert_eq!(accepts, [false, true, true, false]);
}

#[test]
fn setting_accounting_group_automatically_per_user_by_a_template() {
    let config = read_as("SCHEDD", "     USE Feature: AssignAccountingGroup(file_name_of_map)\n");
    assert_eq!(config.list("SCHEDD_CLASSAD_USER_MAP_NAMES").unwrap(), ["AssignAccountingGroup"]);
    assert_eq!(value(&config, "CLASSAD_USER_MAPFILE_AssignAccountingGroup"), "file_name_of_map");
    assert!(config.list("JOB_TRANSFORM_NAMES").unwrap().contains(&"AssignAccountingGroup".to_owned()));
    // Users cannot change the group after it is set, and must be in the map.
    let immutable = config.list("IMMUTABLE_JOB_ATTRS").unwrap();
    assert!(
        ["AcctGroup", "AcctGroupUser", "AccountingGroup"]
            .iter()
            .all(|name| immutable.contains(&(*name).to_owned()))
    );
    let requirements = config.list("SUBMIT_REQUIREMENT_NAMES").unwrap();
    assert_eq!(requirements, ["CheckRequestedGroup", "AssignAccountingGroup"]);
    for (job, checked, assigned) in [
        ("AcctGroup = \"a\"; AccountingGroup = \"a.x\"", true, true),
        ("AcctGroup = \"a\"; AccountingGroup = \"a.x\"; RequestedAcctGroup = \"a\"", true, true),
        ("AcctGroup = \"a\"; AccountingGroup = \"a.x\"; RequestedAcctGroup = \"b\"", false, true),
        ("RequestedAcctGroup = undefined", true, false),
    ] {
        for (name, met) in [("CheckRequestedGroup", checked), ("AssignAccountingGroup", assigned)] {
            let found = eval(&config, &format!("SUBMIT_REQUIREMENT_{name}"), "", job);
            assert_eq!(found, Value::Bool(met), "{name}: {job}");
        }
    }
}

/// The capacity of a limit: its own, that of its set, or that of all other limits.
fn capacity(config: &Config, limit: &str) -> Option<f64> {
    let set = limit.rsplit_once('.').map(|(set, _)| set);
    let named = config.real(&format!("{limit}_LIMIT")).unwrap();
    named
        .or_else(|| config.real(&format!("CONCURRENCY_LIMIT_DEFAULT_{}", set?)).unwrap())
        .or_else(|| config.real("CONCURRENCY_LIMIT_DEFAULT").unwrap())
}

#[test]
fn concurrency_limits_three_licenses() {
    let config = negotiator("XSW_LIMIT = 3\n");
    assert_eq!(capacity(&config, "xsw"), Some(3.0));
}

#[test]
fn concurrency_limits_one_of_everything_that_has_no_limit_of_its_own() {
    let config = negotiator("CONCURRENCY_LIMIT_DEFAULT = 1\n");
    assert_eq!(capacity(&config, "anything"), Some(1.0));
    // Without a knob there is practically no limit.
    assert!(capacity(&negotiator(""), "anything").unwrap() > 1e6);
}

#[test]
fn concurrency_limits_sets_have_defaults_of_their_own() {
    let config = negotiator(
        "CONCURRENCY_LIMIT_DEFAULT = 5
CONCURRENCY_LIMIT_DEFAULT_LARGE = 100
CONCURRENCY_LIMIT_DEFAULT_SMALL = 25
",
    );
    for (limit, wanted) in
        [("LARGE.SWLICENSE", 100.0), ("LARGE.DBSESSION", 100.0), ("SMALL.X", 25.0), ("OTHER.LICENSE", 5.0)]
    {
        assert_eq!(capacity(&config, limit), Some(wanted), "{limit}");
    }
}

#[test]
fn concurrency_limits_machines_say_which_network_they_are_on() {
    for network in ["NETWORK_A", "NETWORK_B"] {
        let config = startd(&format!("NETWORK = \"{network}\"\nSTARTD_ATTRS = $(STARTD_ATTRS) NETWORK\n"));
        assert_eq!(config.list("STARTD_ATTRS").unwrap(), ["NETWORK"]);
        assert_eq!(eval(&config, "NETWORK", "", "").as_str(), Some(network));
    }
}

#[test]
fn concurrency_limits_each_network_has_its_own() {
    let config = negotiator("NETWORK_A_LIMIT = 10\nNETWORK_B_LIMIT = 10\n");
    assert_eq!(["NETWORK_A", "network_b"].map(|limit| capacity(&config, limit)), [Some(10.0), Some(10.0)]);
}

#[test]
fn concurrency_limits_an_application_is_limited_beside_them() {
    let config = negotiator("NETWORK_A_LIMIT = 10\nNETWORK_B_LIMIT = 10\nSWX_LIMIT = 15\n");
    assert_eq!(capacity(&config, "SWX"), Some(15.0));
}
