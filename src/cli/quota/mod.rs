//! `slotwright quota`: says how much of a pool each accounting group would be given, without a cluster.
//!
//! | part | is |
//! | --- | --- |
//! | `groups` | the groups that manifests declare, and the knobs of the Negotiator |
//! | `answer` | the answer, as a table or as JSON |

mod answer;
mod groups;

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::lint::{Object, Source};
use super::print::{Format, json};
use super::problems::Problems;
use super::stop::{DONE, UNUSABLE};
use answer::{Answer, Row, rounded};
use clap::Args;
pub(super) use groups::declared;
use model::negotiator::allocation::{Demand, plan};
use model::negotiator::groups::{GroupSpec, Quota, ROOT, Tree};
use model::negotiator::{Config, Cycle};

/// Say how much of a pool each accounting group would be given.
#[derive(Args, Debug)]
#[command(after_help = "GROUP is a group's name; <none>, or nothing, stands for jobs of no group. \
                        Exit status: 0 done, 2 unusable input.")]
pub struct QuotaArgs {
    /// A file of GroupQuota manifests, and of the Negotiator if its knobs are not the defaults; - is standard input
    #[arg(short, long = "file", value_name = "GROUPS.yaml", required = true)]
    files: Vec<PathBuf>,
    /// The weight of all slots of the pool, including those in use: its cores, unless SLOT_WEIGHT is set
    #[arg(long, value_name = "WEIGHT", value_parser = weight, allow_negative_numbers = true)]
    pool: f64,
    /// The weight of the waiting jobs of a group
    #[arg(long, value_name = "GROUP=N", value_parser = amount)]
    demand: Vec<(String, f64)>,
    /// The weight of the slots that a group uses
    #[arg(long = "use", value_name = "GROUP=N", value_parser = amount)]
    used: Vec<(String, f64)>,
    /// Keep static quotas even if they add up to more than the pool: NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = True
    #[arg(long)]
    allow_quota_oversubscription: bool,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

fn weight(text: &str) -> Result<f64, String> {
    let weight = text.trim().parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight >= 0.0);
    weight.ok_or_else(|| format!("{text:?} is no weight; give a number of 0 or more"))
}

fn amount(text: &str) -> Result<(String, f64), String> {
    let (group, number) = text.rsplit_once('=').ok_or("expected GROUP=N, such as physics=20")?;
    Ok((group.trim().to_owned(), weight(number)?))
}

/// Runs the command, and returns the exit status.
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
                Format::Json => json(&answer, out)?,
            }
            Ok(DONE)
        }
        Err(problems) => {
            problems.tell(err)?;
            Ok(UNUSABLE)
        }
    }
}

impl QuotaArgs {
    fn answer(&self, input: &mut dyn Read) -> Result<Answer, Problems> {
        let sources = self.read(input)?;
        let objects = groups::objects(&sources)?;
        let config = self.knobs(&objects)?;
        let specs: Vec<GroupSpec> =
            groups::groups(&sources, &objects, &config)?.into_iter().map(|group| group.spec).collect();
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
                Quota::Static(weight) => (weight, false),
                Quota::Dynamic(share) => (share, true),
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

    /// The knobs of the Negotiator among the objects, or HTCondor's defaults if there is none.
    ///
    /// # Errors
    /// When there are several, each of which may deal out quotas in its own way.
    fn knobs(&self, objects: &[Object<'_>]) -> Result<Config, Problems> {
        let negotiators = groups::negotiators(objects);
        if negotiators.len() > 1 {
            let names: Vec<&str> = negotiators.keys().map(String::as_str).collect();
            return Err(Problems::one(format!(
                "there are the Negotiators {}; give a file with the one that you ask about",
                names.join(" and ")
            )));
        }
        let config = negotiators.into_values().next().unwrap_or_default();
        let allow_quota_oversubscription =
            config.allow_quota_oversubscription || self.allow_quota_oversubscription;
        Ok(Config { allow_quota_oversubscription, ..config })
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

    /// The sum of the amounts of each group. `option` is the option that gave them, for messages.
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

#[cfg(test)]
mod tests;
