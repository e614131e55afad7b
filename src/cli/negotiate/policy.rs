//! Reads the files that say how to negotiate: configuration, groups, priorities.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::NegotiateArgs;
use super::accounts::{self, Priority};
use super::knobs;
use crate::named_groups::named_groups;
use crate::policy_file;
use crate::stop::{Stop, unusable};
use crate::{lint, quota};
use classad::{Env, Expr};
use condor_config::{Host, Reader, Source};
use model::negotiator::Config;
use model::negotiator::groups::{GroupSpec, Tree};
use model::negotiator::limits::{Capacity, LimitBook};

/// The policy of the files: how to negotiate.
#[derive(Debug, Default)]
pub(super) struct Policy {
    pub(super) config: Config,
    /// `SLOT_WEIGHT`, for slots whose ads have no `SlotWeight`.
    pub(super) slot_weight: Option<Expr>,
    pub(super) groups: Tree,
    /// The priority factors that the groups' manifests give to their submitters, by the groups' index in the tree.
    pub(super) group_factors: Vec<Option<f64>>,
    /// The priorities of submitters, by name.
    pub(super) priorities: BTreeMap<String, Priority>,
    /// Warnings about settings without effect, and about groups that are not accepted.
    pub(super) warnings: Vec<String>,
}

impl Policy {
    /// Reads all files that the command line names.
    ///
    /// # Errors
    /// When a file cannot be read, or something in it cannot be used.
    pub(super) fn read(args: &NegotiateArgs, env: &Env) -> Result<Self, Stop> {
        let Configuration { config, slot_weight, named, mut warnings } = configuration(args, env)?;
        let (groups, group_factors) = match args.groups.as_deref() {
            Some(path) if !named.is_empty() => {
                let say = "GROUP_NAMES in the configuration names groups, too; give one of the two";
                return Err(unusable(path.display(), say));
            }
            Some(path) => groups(path, &config)?,
            None => (Tree::new(&named), vec![None; named.len()]),
        };
        warnings.extend(groups.refused().iter().map(|(_, why)| why.to_string()));
        let priorities =
            args.priorities.as_deref().map(|path| accounts::read(path, &text(path)?)).transpose()?;
        let priorities = priorities.unwrap_or_default();
        Ok(Self { config, slot_weight, groups, group_factors, priorities, warnings })
    }

    /// The priority factor of a submitter for whom the file of priorities has none.
    pub(super) fn factor(&self, submitter: &str) -> f64 {
        let group = self.groups.group_of(submitter).and_then(|place| {
            let own = self.group_factors.get(place).copied().flatten();
            Some((self.groups.groups().get(place)?.name.as_str(), own))
        });
        self.config.priority_factor(submitter, group)
    }

    /// The concurrency limits, with nothing in use.
    pub(super) fn limits(&self) -> LimitBook {
        let named = self
            .config
            .concurrency_limits
            .iter()
            .map(|(name, limit)| (name.clone(), Capacity::Named(*limit)));
        let sets = self
            .config
            .concurrency_limit_sets
            .iter()
            .map(|(set, limit)| (set.clone(), Capacity::EachOf(*limit)));
        LimitBook::new(named.chain(sets), self.config.concurrency_limit_default)
    }

    /// The negotiator's expressions that see a slot and a job.
    pub(super) fn exprs(&self) -> Vec<&Expr> {
        let config = &self.config;
        let exprs = [
            &config.pre_job_rank,
            &config.post_job_rank,
            &config.preemption_requirements,
            &config.preemption_rank,
        ];
        exprs.into_iter().flatten().collect()
    }
}

/// The content of the configuration files.
struct Configuration {
    config: Config,
    /// `SLOT_WEIGHT`.
    slot_weight: Option<Expr>,
    /// The groups that `GROUP_NAMES` names.
    named: Vec<GroupSpec>,
    /// Warnings about settings without effect.
    warnings: Vec<String>,
}

/// Reads the configuration files, with the time and the seed of `env`.
fn configuration(args: &NegotiateArgs, env: &Env) -> Result<Configuration, Stop> {
    let sources: Vec<Source> = (args.config.iter())
        .map(|path| policy_file::source(path.display().to_string(), text(path)?, Some("Negotiator")))
        .collect::<Result<_, Stop>>()?;
    let host = Host { seed: Some(env.seed), now: env.now, ..Host::none() };
    let reading = Reader::new(host).subsystem("NEGOTIATOR").read(&sources);
    let read = reading.into_config().map_err(|error| Stop::Unusable(error.to_string()))?;
    let slot_weight = read.expr("SLOT_WEIGHT").map_err(|error| Stop::Unusable(error.to_string()))?;
    let config = Config::read(&read).map_err(|faults| Stop::of_values(&faults))?;
    let named = named_groups(&read).map_err(|faults| Stop::of_values(&faults))?;
    let named: Vec<GroupSpec> = named.iter().map(|group| group.spec(&config)).collect();
    let warnings = knobs::unused(&read, &named);
    Ok(Configuration { config, slot_weight, named, warnings })
}

/// The groups of a file, and the priority factor of each.
fn groups(path: &Path, config: &Config) -> Result<(Tree, Vec<Option<f64>>), Stop> {
    let source = lint::Source::new(path.display().to_string(), text(path)?);
    let declared = quota::declared(&[source], config);
    let declared = declared.map_err(|problems| Stop::Unusable(problems.to_string()))?;
    let (specs, factors): (Vec<_>, Vec<_>) =
        declared.into_iter().map(|group| (group.spec, group.priority_factor)).unzip();
    let tree = Tree::new(&specs);
    let factors = tree.groups().iter().map(|group| factors.get(group.spec).copied().flatten()).collect();
    Ok((tree, factors))
}

fn text(path: &Path) -> Result<String, Stop> {
    fs::read_to_string(path).map_err(|error| unusable(path.display(), error))
}
