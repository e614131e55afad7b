//! Runs the command as from the command line.

use super::*;
use crate::outcome::outcome;

const GROUPS: &str = "
{apiVersion: slotwright.dev/v1alpha1, kind: GroupQuota, metadata: {name: physics}, spec: {quota: 20}}
---
{apiVersion: slotwright.dev/v1alpha1, kind: GroupQuota, metadata: {name: physics.hep}, spec: {quota: 15, acceptSurplus: true}}
---
{apiVersion: slotwright.dev/v1alpha1, kind: GroupQuota, metadata: {name: physics.lep}, spec: {dynamicQuota: 1, acceptSurplus: true}}
---
{apiVersion: slotwright.dev/v1alpha1, kind: GroupQuota, metadata: {name: chemistry}, spec: {quota: 10}}
";

fn quota(args: &[&str], input: &str) -> (u8, String, String) {
    outcome("quota", args, input, |args: &QuotaArgs, input, out, err| run(args, &mut &mut *input, out, err))
}

/// "group_physics.lep and group_physics.hep are allowed to exceed their quota of 15 and 5, but their sum cannot exceed 20".
#[test]
fn the_table() {
    let args = ["-f", "-", "--pool", "40", "--demand", "physics.hep=60", "--demand", "chemistry=3"];
    let used = ["--use", "physics.lep=2", "--demand", "=1"];
    let (status, out, err) = quota(&[&args[..], &used].concat(), GROUPS);
    assert_eq!((status, err.as_str()), (0, ""));
    insta::assert_snapshot!(out, @r"
    GROUP        ACCEPTS  CONFIGURED  EFFECTIVE  SUBTREE  USED  REQUESTED  SURPLUS  ALLOCATED  LIMIT
    <none>       yes               -         10       40     0          1        0          1     10
    chemistry    no               10         10       10     0          3        0          3     10
    physics      no               20          0       20     0          0        0          0      0
    physics.hep  yes              15         15       15     0         60        3         18     18
    physics.lep  yes            100%          5        5     2          2        0          2      5
    ");
}

/// The Negotiator in the file deals out the quotas, and not HTCondor's defaults.
#[test]
fn the_negotiator_of_the_file_counts() {
    let negotiator = |name: &str, knobs: &str| {
        format!(
            "---\napiVersion: slotwright.dev/v1alpha1\nkind: Negotiator\nmetadata: {{name: {name}}}\nspec:\n  config: |\n    {knobs}\n"
        )
    };
    let row = |knobs: &str, group: &str| {
        let args = ["-f", "-", "--pool", "20", "--demand", "chemistry=60", "-o", "json"];
        let (status, out, err) = quota(&args, &format!("{GROUPS}{}", negotiator("one", knobs)));
        assert_eq!((status, err.as_str()), (0, ""), "{knobs}");
        let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
        answer["groups"].as_array().unwrap().iter().find(|row| row["group"] == group).unwrap().clone()
    };
    for (knobs, field, expected) in [
        ("NEGOTIATOR_INTERVAL = 60", "acceptSurplus", serde_json::json!(false)),
        ("GROUP_ACCEPT_SURPLUS = True", "acceptSurplus", serde_json::json!(true)),
        ("NEGOTIATOR_INTERVAL = 60", "autoregroup", serde_json::json!(false)),
        ("GROUP_AUTOREGROUP = True", "autoregroup", serde_json::json!(true)),
        // 30 do not fit into 20: static quotas are scaled down, unless this is allowed.
        ("NEGOTIATOR_INTERVAL = 60", "effectiveQuota", serde_json::json!(6.666_666_667)),
        ("NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = True", "effectiveQuota", serde_json::json!(10.0)),
    ] {
        assert_eq!(row(knobs, "chemistry")[field], expected, "{knobs}");
    }
    let several = format!("{GROUPS}{}{}", negotiator("a", "A = 1"), negotiator("b", "A = 1"));
    let (status, _, err) = quota(&["-f", "-", "--pool", "20"], &several);
    let said = "slotwright: there are the Negotiators a and b; give a file with the one that you ask about\n";
    assert_eq!((status, err.as_str()), (2, said));
}

#[test]
fn json_has_the_names_of_the_status() {
    let args = ["-f", "-", "--pool", "30", "--demand", "physics.hep=60", "-o", "json"];
    let (status, out, _) = quota(&args, GROUPS);
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(status, 0);
    let row = answer["groups"].as_array().unwrap().iter().find(|row| row["group"] == "physics.hep").unwrap();
    let expected = serde_json::json!({
        "group": "physics.hep", "configQuota": 15.0, "dynamic": false, "acceptSurplus": true, "autoregroup": false,
        "effectiveQuota": 15.0, "subtreeQuota": 15.0, "weightedResourcesUsed": 0.0, "requested": 60.0,
        "allocated": 20.0, "surplus": 5.0, "limit": 20.0,
    });
    assert_eq!(*row, expected);
    assert_eq!(answer["unallocated"], 10.0);
}

#[test]
fn what_is_wrong_has_its_place() {
    let orphan =
        "apiVersion: slotwright.dev/v1alpha1\nkind: GroupQuota\nmetadata: {name: a.b}\nspec: {quota: -1}\n";
    let (status, out, err) = quota(&["-f", "-", "--pool", "1"], orphan);
    assert_eq!((status, out.as_str()), (2, ""));
    insta::assert_snapshot!(err, @r#"
    slotwright: <stdin>:3:18: GroupQuota a.b: group "a.b": its parent "a" is not an accepted group; add a GroupQuota for a
    slotwright: <stdin>:4:15: GroupQuota a.b: spec.quota: Invalid value: -1: should be greater than or equal to 0
    "#);
    for (args, input, says) in [
        (
            &["--demand", "botany=1"][..],
            GROUPS,
            "slotwright: --demand botany=1: - declares no group botany; there are chemistry, physics, physics.hep, physics.lep, and <none> for jobs of no group\n",
        ),
        (&[], "a: [", "slotwright: <stdin>:1:"),
        (&[], "a: 1", "slotwright: <stdin>: there is no GroupQuota in it; give at least one\n"),
        (&["-f", "/nowhere.yaml"], GROUPS, "slotwright: /nowhere.yaml: No such file"),
    ] {
        let (status, out, err) = quota(&[&["-f", "-", "--pool", "1"][..], args].concat(), input);
        assert_eq!((status, out.as_str()), (2, ""));
        assert!(err.starts_with(says), "{err}");
    }
    for bad in ["physics", "physics=many", "physics=-1"] {
        assert!(amount(bad).is_err(), "{bad}");
    }
}
