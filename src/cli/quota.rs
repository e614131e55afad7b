//! `slotwright quota`: what groups would be given of a pool, without a cluster.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::lint::{Kinds, Object, Report, Severity, Source, check_references, document, parse};
use super::plugin::table::{Align, Table};
use super::simulate::problems::Problems;
use crate::controller::translate;
use crate::negotiator::allocation::{Allocation, Demand, plan};
use crate::negotiator::groups::{GroupSpec, Quota as TreeQuota, ROOT, Tree};
use crate::negotiator::{Config, Cycle};
use crate::pool::Quota;

/// The answer is there.
const DONE: u8 = 0;
/// The input cannot be used.
const UNUSABLE: u8 = 2;

/// Say what accounting groups would be given of a pool.
#[derive(Args, Debug)]
#[command(after_help = "GROUP is a group's name; <none>, or nothing, stands for jobs of no group. \
                        Exit status: 0 done, 2 unusable input.")]
pub struct QuotaArgs {
    /// A file of GroupQuota manifests; - is standard input
    #[arg(short, long = "file", value_name = "GROUPS.yaml", required = true)]
    files: Vec<PathBuf>,
    /// The weight of all slots of the pool, those in use included: its cores, where SLOT_WEIGHT is not set
    #[arg(long, value_name = "WEIGHT", value_parser = weight, allow_negative_numbers = true)]
    pool: f64,
    /// The weight of the jobs of a group that wait
    #[arg(long, value_name = "GROUP=N", value_parser = amount)]
    demand: Vec<(String, f64)>,
    /// The weight of the slots that a group uses
    #[arg(long = "use", value_name = "GROUP=N", value_parser = amount)]
    used: Vec<(String, f64)>,
    /// Static quotas hold though they add up to more than there is: NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = True
    #[arg(long)]
    allow_quota_oversubscription: bool,
    /// How the answer is written
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table.
    #[default]
    Text,
    /// One object.
    Json,
}

fn weight(text: &str) -> Result<f64, String> {
    let weight = text.trim().parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight >= 0.0);
    weight.ok_or_else(|| format!("{text:?} is no weight; give a number of 0 or more"))
}

fn amount(text: &str) -> Result<(String, f64), String> {
    let (group, number) = text.rsplit_once('=').ok_or("expected GROUP=N, such as physics=20")?;
    Ok((group.trim().to_owned(), weight(number)?))
}

/// What is said of the whole.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    /// The weight of the pool.
    pool: f64,
    /// What nobody is given.
    unallocated: f64,
    /// The root first, then the groups, each parent before its children.
    groups: Vec<Row>,
}

/// What is said of a group. In slot weight, but for a dynamic quota as configured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    /// Its name.
    group: String,
    /// The quota as configured: slot weight, or a share; none of the root.
    config_quota: Option<f64>,
    /// Whether that is a share.
    dynamic: bool,
    /// Whether it takes what others leave.
    accept_surplus: bool,
    /// Whether its jobs also compete with those of no group.
    autoregroup: bool,
    /// What its own jobs may use without surplus.
    effective_quota: f64,
    /// What they and those of the groups inside it may use without surplus from outside.
    subtree_quota: f64,
    /// What its own jobs use.
    weighted_resources_used: f64,
    /// What its own jobs use and wait for.
    requested: f64,
    /// What its own jobs are given.
    allocated: f64,
    /// How much of that is beyond the effective quota.
    surplus: f64,
    /// The most that its own jobs may use by the end of the cycle.
    limit: f64,
}

/// Runs the command; the answer is the exit status.
///
/// # Errors
/// When the output cannot be written.
pub fn run(
    args: &QuotaArgs,
    input: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    match args.answer(input) {
        Ok(answer) => {
            match args.output {
                Format::Text => write!(out, "{}", answer.table())?,
                Format::Json => {
                    serde_json::to_writer_pretty(&mut *out, &answer)?;
                    writeln!(out)?;
                }
            }
            Ok(DONE)
        }
        Err(problems) => {
            for problem in problems.to_string().lines() {
                writeln!(err, "slotwright: {problem}")?;
            }
            Ok(UNUSABLE)
        }
    }
}

impl QuotaArgs {
    fn answer(&self, input: &mut dyn Read) -> Result<Answer, Problems> {
        let sources = self.read(input)?;
        let config =
            Config { allow_quota_oversubscription: self.allow_quota_oversubscription, ..Config::default() };
        let specs = specs(&sources, &config)?;
        let tree = Tree::new(&specs);
        let used = self.by_group(&tree, &self.used, "--use")?;
        let waits = self.by_group(&tree, &self.demand, "--demand")?;
        let groups = tree.inputs(self.pool, config.allow_quota_oversubscription, &used.groups);
        let demand = Demand {
            root: used.root + waits.root,
            groups: used.groups.iter().zip(&waits.groups).map(|(used, waits)| used + waits).collect(),
        };
        let cycle =
            Cycle { config, groups, pool_weight: self.pool, ungrouped_used: used.root, ..Cycle::default() };
        let (given, limits) = plan(&cycle, &demand);
        let of_root = Row::new(ROOT, &given.root, used.root, limits.last().copied().unwrap_or_default());
        let root = Row {
            accept_surplus: true,
            autoregroup: tree.groups().iter().any(|group| group.autoregroup),
            ..of_root
        };
        let each = tree.groups().iter().zip(&given.groups).zip(used.groups.iter().zip(&limits));
        let rows = each.map(|((group, given), (used, limit))| {
            let (config_quota, dynamic) = match group.quota {
                TreeQuota::Static(weight) => (weight, false),
                TreeQuota::Dynamic(share) => (share, true),
            };
            Row {
                config_quota: Some(config_quota),
                dynamic,
                accept_surplus: group.accept_surplus,
                autoregroup: group.autoregroup,
                ..Row::new(&group.name, given, *used, *limit)
            }
        });
        let groups: Vec<Row> = std::iter::once(root).chain(rows).collect();
        let allocated: f64 = groups.iter().map(|row| row.allocated).sum();
        Ok(Answer { pool: self.pool, unallocated: rounded((self.pool - allocated).max(0.0)), groups })
    }

    fn read(&self, input: &mut dyn Read) -> Result<Vec<Source>, Problems> {
        let read = |path: &PathBuf, input: &mut dyn Read| {
            if path == Path::new("-") {
                let mut text = String::new();
                return input.read_to_string(&mut text).map(|_| Source::new("<stdin>", text));
            }
            fs::read_to_string(path).map(|text| Source::new(path.display().to_string(), text))
        };
        let sources = self.files.iter().map(|path| {
            read(path, input).map_err(|error| Problems::one(format!("{}: {error}", path.display())))
        });
        sources.collect()
    }

    /// Amounts by group, as one adds to another of the same group.
    fn by_group(&self, tree: &Tree, amounts: &[(String, f64)], option: &str) -> Result<Demand, Problems> {
        let mut demand = Demand { root: 0.0, groups: vec![0.0; tree.groups().len()] };
        for (name, amount) in amounts {
            let of_root = name.is_empty() || name == ROOT;
            match tree.find(name).and_then(|group| demand.groups.get_mut(group)) {
                Some(sum) => *sum += amount,
                None if of_root => demand.root += amount,
                None => {
                    let names: Vec<&str> = tree.groups().iter().map(|group| group.name.as_str()).collect();
                    let files: Vec<String> =
                        self.files.iter().map(|file| file.display().to_string()).collect();
                    return Err(Problems::one(format!(
                        "{option} {name}={amount}: {} declares no group {name}; there are {}, and {ROOT} for jobs of no group",
                        files.join(", "),
                        names.join(", ")
                    )));
                }
            }
        }
        Ok(demand)
    }
}

/// The groups that the files declare, or everything that is wrong with them.
pub(super) fn specs(sources: &[Source], config: &Config) -> Result<Vec<GroupSpec>, Problems> {
    let (mut problems, mut report, mut objects) = (Problems::default(), Report::default(), Vec::new());
    let kinds = Kinds::new();
    for source in sources {
        let parsed = parse(&source.text);
        for fault in &parsed.faults {
            problems.at(source, fault.at, &fault.message);
        }
        for node in parsed.documents {
            document(&kinds, source, node, &mut report, &mut objects);
        }
    }
    check_references(&objects, &mut report);
    report.sort();
    problems.extend(report.findings.into_iter().filter(|finding| finding.severity == Severity::Error));
    if !problems.is_empty() {
        return Err(problems);
    }
    let specs: Vec<GroupSpec> = objects.iter().filter_map(|object| spec(object, config)).collect();
    if specs.is_empty() {
        let files: Vec<&str> = sources.iter().map(|source| source.path.as_str()).collect();
        let say = "there is no GroupQuota in it; give at least one";
        return Err(Problems::one(format!("{}: {say}", files.join(", "))));
    }
    Ok(specs)
}

fn spec(object: &Object<'_>, config: &Config) -> Option<GroupSpec> {
    if object.kind != "GroupQuota" {
        return None;
    }
    let group = translate::group(&serde_json::from_value(object.value.clone()).ok()?);
    Some(GroupSpec {
        name: group.name.to_string(),
        quota: Some(match group.quota {
            Quota::Static(weight) => TreeQuota::Static(weight),
            Quota::Dynamic(share) => TreeQuota::Dynamic(share),
        }),
        accept_surplus: group.accept_surplus.unwrap_or(config.group_accept_surplus),
        autoregroup: group.autoregroup.unwrap_or(config.group_autoregroup),
    })
}

impl Row {
    fn new(name: &str, given: &Allocation, used: f64, limit: f64) -> Self {
        Self {
            group: name.to_owned(),
            config_quota: None,
            dynamic: false,
            accept_surplus: false,
            autoregroup: false,
            effective_quota: rounded(given.quota),
            subtree_quota: rounded(given.subtree_quota),
            weighted_resources_used: rounded(used),
            requested: rounded(given.requested),
            allocated: rounded(given.allocated),
            surplus: rounded(given.surplus()),
            limit: rounded(limit),
        }
    }
}

/// Without what sums and products lose.
fn rounded(amount: f64) -> f64 {
    (amount * 1e9).round() / 1e9
}

impl Answer {
    fn table(&self) -> Table {
        let columns =
            ["CONFIGURED", "EFFECTIVE", "SUBTREE", "USED", "REQUESTED", "SURPLUS", "ALLOCATED", "LIMIT"];
        let titles = [("GROUP", Align::Left), ("ACCEPTS", Align::Left)];
        let titles = titles.into_iter().chain(columns.map(|title| (title, Align::Right)));
        let mut table = Table::new(&titles.collect::<Vec<_>>());
        for row in &self.groups {
            let configured = match row.config_quota {
                Some(quota) if row.dynamic => format!("{}%", number(quota * 100.0)),
                Some(quota) => number(quota),
                None => String::new(),
            };
            let takes = match (row.accept_surplus, row.autoregroup) {
                (_, true) => "regroups",
                (true, false) => "yes",
                (false, false) => "no",
            };
            let numbers = [
                row.effective_quota,
                row.subtree_quota,
                row.weighted_resources_used,
                row.requested,
                row.surplus,
                row.allocated,
                row.limit,
            ];
            let cells = [row.group.clone(), takes.to_owned(), configured];
            table.row(cells.into_iter().chain(numbers.map(number)));
        }
        table
    }
}

/// With four decimals at the most.
fn number(amount: f64) -> String {
    let text = format!("{amount:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::outcome::outcome;
    use super::*;

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
        outcome("quota", args, input, |args: &QuotaArgs, input, out, err| {
            run(args, &mut &mut *input, out, err)
        })
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

    #[test]
    fn json_has_the_names_of_the_status() {
        let args = ["-f", "-", "--pool", "30", "--demand", "physics.hep=60", "-o", "json"];
        let (status, out, _) = quota(&args, GROUPS);
        let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(status, 0);
        let row =
            answer["groups"].as_array().unwrap().iter().find(|row| row["group"] == "physics.hep").unwrap();
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
        let orphan = "apiVersion: slotwright.dev/v1alpha1\nkind: GroupQuota\nmetadata: {name: a.b}\nspec: {quota: -1}\n";
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
}
