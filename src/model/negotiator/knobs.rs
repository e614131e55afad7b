//! Reads the negotiator's knobs from a configuration text.

use std::collections::BTreeMap;
use std::time::Duration;

use super::config::Config;
use classad::Expr;
use condor_config::ValueError;
use condor_config::knobs::{self, Class};

/// A configuration that is being read, with the faults found so far.
struct Text<'a> {
    config: &'a condor_config::Config,
    faults: Vec<ValueError>,
}

impl Config {
    /// Reads the knobs of the subsystem `NEGOTIATOR`. A knob that the text does not set has its default value. An expression
    /// that the text sets to nothing is unset.
    ///
    /// # Errors
    /// All values that cannot be used, each with its knob and place, in the order of the text.
    pub fn read(config: &condor_config::Config) -> Result<Self, Vec<ValueError>> {
        let mut text = Text { config, faults: Vec::new() };
        let unset = Self::default();
        let read = Self {
            interval: text.span("NEGOTIATOR_INTERVAL", unset.interval),
            min_interval: text.said_span("NEGOTIATOR_MIN_INTERVAL"),
            cycle_delay: text.said_span("NEGOTIATOR_CYCLE_DELAY"),
            max_time_per_cycle: text.span("NEGOTIATOR_MAX_TIME_PER_CYCLE", unset.max_time_per_cycle),
            max_time_per_submitter: text
                .span("NEGOTIATOR_MAX_TIME_PER_SUBMITTER", unset.max_time_per_submitter),
            max_time_per_piespin: text.span("NEGOTIATOR_MAX_TIME_PER_PIESPIN", unset.max_time_per_piespin),
            consider_preemption: text.truth("NEGOTIATOR_CONSIDER_PREEMPTION", unset.consider_preemption),
            consider_early_preemption: text
                .truth("NEGOTIATOR_CONSIDER_EARLY_PREEMPTION", unset.consider_early_preemption),
            preemption_requirements: text.expr("PREEMPTION_REQUIREMENTS", unset.preemption_requirements),
            preemption_requirements_stable: text
                .truth("PREEMPTION_REQUIREMENTS_STABLE", unset.preemption_requirements_stable),
            preemption_rank: text.expr("PREEMPTION_RANK", unset.preemption_rank),
            preemption_rank_stable: text.truth("PREEMPTION_RANK_STABLE", unset.preemption_rank_stable),
            pre_job_rank: text.expr("NEGOTIATOR_PRE_JOB_RANK", unset.pre_job_rank),
            post_job_rank: text.expr("NEGOTIATOR_POST_JOB_RANK", unset.post_job_rank),
            ignore_job_ranks: text.truth("NEGOTIATOR_IGNORE_JOB_RANKS", unset.ignore_job_ranks),
            ignore_user_priorities: text
                .truth("NEGOTIATOR_IGNORE_USER_PRIORITIES", unset.ignore_user_priorities),
            allow_pslot_preemption: text.truth("ALLOW_PSLOT_PREEMPTION", unset.allow_pslot_preemption),
            depth_first: text.truth("NEGOTIATOR_DEPTH_FIRST", unset.depth_first),
            use_slot_weights: text.truth("NEGOTIATOR_USE_SLOT_WEIGHTS", unset.use_slot_weights),
            use_weighted_demand: text.truth("NEGOTIATOR_USE_WEIGHTED_DEMAND", unset.use_weighted_demand),
            slot_constraint: text.expr("NEGOTIATOR_SLOT_CONSTRAINT", unset.slot_constraint),
            submitter_constraint: text.expr("NEGOTIATOR_SUBMITTER_CONSTRAINT", unset.submitter_constraint),
            job_constraint: text.expr("NEGOTIATOR_JOB_CONSTRAINT", unset.job_constraint),
            slot_poolsize_constraint: text.poolsize_constraint(),
            match_list_caching: text.truth("NEGOTIATOR_MATCHLIST_CACHING", unset.match_list_caching),
            discount_suspended_resources: text
                .truth("NEGOTIATOR_DISCOUNT_SUSPENDED_RESOURCES", unset.discount_suspended_resources),
            allow_quota_oversubscription: text
                .truth("NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION", unset.allow_quota_oversubscription),
            strict_enforce_quota: text.truth("NEGOTIATOR_STRICT_ENFORCE_QUOTA", unset.strict_enforce_quota),
            group_accept_surplus: text.truth("GROUP_ACCEPT_SURPLUS", unset.group_accept_surplus),
            group_autoregroup: text.truth("GROUP_AUTOREGROUP", unset.group_autoregroup),
            group_quota_max_allocation_rounds: text
                .count("GROUP_QUOTA_MAX_ALLOCATION_ROUNDS", unset.group_quota_max_allocation_rounds),
            group_quota_round_robin_rate: text
                .number("GROUP_QUOTA_ROUND_ROBIN_RATE", unset.group_quota_round_robin_rate),
            group_sort_expr: text.expr("GROUP_SORT_EXPR", unset.group_sort_expr),
            priority_halflife: text.number("PRIORITY_HALFLIFE", unset.priority_halflife),
            default_priority_factor: text.number("DEFAULT_PRIO_FACTOR", unset.default_priority_factor),
            nice_user_factor: text.number("NICE_USER_PRIO_FACTOR", unset.nice_user_factor),
            nice_user_group: text
                .word("NICE_USER_ACCOUNTING_GROUP_NAME")
                .map_or(unset.nice_user_group, |name| (&*name).into()),
            remote_factor: text.number("REMOTE_PRIO_FACTOR", unset.remote_factor),
            accountant_local_domain: text.word("ACCOUNTANT_LOCAL_DOMAIN"),
            group_factors: text.family("GROUP_PRIO_FACTOR_<group>"),
            concurrency_limits: text.limits(),
            concurrency_limit_sets: text.family("CONCURRENCY_LIMIT_DEFAULT_<set>"),
            concurrency_limit_default: text
                .number("CONCURRENCY_LIMIT_DEFAULT", unset.concurrency_limit_default),
        };
        if text.faults.is_empty() {
            return Ok(read);
        }
        text.faults.sort_by_key(|fault| (fault.position().line, fault.position().column));
        Err(text.faults)
    }
}

impl Text<'_> {
    /// Whether the text sets a knob, if only to nothing. If it does not, the default comes from [`Config::default`] and not from
    /// the defaults compiled into `condor_config`.
    fn says(&self, knob: &str) -> bool {
        let own = format!("{}.{knob}", self.config.subsystem());
        [knob, &own].iter().any(|name| self.config.definition(name).is_some())
    }

    /// Returns the value of `found`, if it has one. If `found` is an error, records the error as a fault.
    fn keep<T>(&mut self, found: Result<Option<T>, ValueError>) -> Option<T> {
        found.map_err(|fault| self.faults.push(fault)).ok().flatten()
    }

    fn expr(&mut self, knob: &str, unset: Option<Expr>) -> Option<Expr> {
        if !self.says(knob) {
            return unset;
        }
        let found = self.config.expr(knob);
        self.keep(found)
    }

    /// `NEGOTIATOR_SLOT_POOLSIZE_CONSTRAINT`, or if that is unset its old name `GROUP_DYNAMIC_MACH_CONSTRAINT`.
    fn poolsize_constraint(&mut self) -> Option<Expr> {
        let new = self.expr("NEGOTIATOR_SLOT_POOLSIZE_CONSTRAINT", None);
        new.or_else(|| self.expr("GROUP_DYNAMIC_MACH_CONSTRAINT", None))
    }

    fn truth(&mut self, knob: &str, unset: bool) -> bool {
        if !self.says(knob) {
            return unset;
        }
        let found = self.config.boolean(knob);
        self.keep(found).unwrap_or(unset)
    }

    fn word(&mut self, knob: &str) -> Option<Box<str>> {
        if !self.says(knob) {
            return None;
        }
        let found = self.config.value(knob).map_err(ValueError::from);
        self.keep(found).map(|word| word.trim().into())
    }

    fn number(&mut self, knob: &str, unset: f64) -> f64 {
        if self.says(knob) { self.ranged(knob).unwrap_or(unset) } else { unset }
    }

    fn span(&mut self, knob: &str, unset: Duration) -> Duration {
        self.said_span(knob).unwrap_or(unset)
    }

    fn said_span(&mut self, knob: &str) -> Option<Duration> {
        if !self.says(knob) {
            return None;
        }
        self.whole(knob).and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs)
    }

    fn count(&mut self, knob: &str, unset: u32) -> u32 {
        if !self.says(knob) {
            return unset;
        }
        self.whole(knob).map_or(unset, |count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// A number within the knob's range.
    fn ranged(&mut self, knob: &str) -> Option<f64> {
        let checked = |found: f64| self.config.in_range(knob, found);
        let found = self.config.real(knob).and_then(|found| found.map(checked).transpose());
        self.keep(found)
    }

    /// A whole number within the knob's range.
    fn whole(&mut self, knob: &str) -> Option<i64> {
        #[allow(clippy::cast_precision_loss, reason = "bounds are small, and so is what is near them")]
        let checked = |found: i64| self.config.in_range(knob, found as f64).map(|_| found);
        let found = self.config.integer(knob).and_then(|found| found.map(checked).transpose());
        self.keep(found)
    }

    /// The numbers of all knobs of a pattern, such as `GROUP_PRIO_FACTOR_<group>`, by the text in the variable part in small letters.
    fn family(&mut self, pattern: &str) -> BTreeMap<String, f64> {
        self.members(pattern)
            .into_iter()
            .filter_map(|(member, knob)| Some((member, self.ranged(&knob)?)))
            .collect()
    }

    /// `<name>_LIMIT` of all names. HTCondor looks at such a knob when a job takes the limit: one that is no number, or to which other
    /// values refer and whose number no limit may have, is a macro of the text's own.
    fn limits(&mut self) -> BTreeMap<String, f64> {
        let mut limits = BTreeMap::new();
        for (name, knob) in self.members("<name>_LIMIT") {
            let Ok(Some(number)) = self.config.real(&knob) else { continue };
            let is_limit = self.config.in_range(&knob, number).is_ok();
            if is_limit || self.config.referring(&knob).next().is_none() {
                limits.extend(self.ranged(&knob).map(|number| (name, number)));
            }
        }
        limits
    }

    /// The names that fit a pattern, each with what it has in the variable part, in small letters.
    fn members(&self, pattern: &str) -> Vec<(String, String)> {
        let (before, after) = (pattern.find('<').unwrap_or(0), pattern.find('>').map_or(0, |at| at + 1));
        let after = pattern.len().saturating_sub(after);
        let subsystem = self.config.subsystem().to_owned();
        let bare = |name: &str| match name.split_once('.') {
            Some((first, rest)) if first.eq_ignore_ascii_case(&subsystem) => rest.to_owned(),
            _ => name.to_owned(),
        };
        let mut names: Vec<String> = self.config.definitions().map(|found| bare(&found.name)).collect();
        names.sort_by_key(|name| name.to_ascii_lowercase());
        names.dedup_by(|one, other| one.eq_ignore_ascii_case(other));
        names.retain(|name| matches!(knobs::classify(name), Class::Knob(knob) if knob.name == pattern));
        let member = |name: String| {
            let middle = name.get(before..name.len().saturating_sub(after))?.to_ascii_lowercase();
            Some((middle, name))
        };
        names.into_iter().filter_map(member).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::negotiator::{GROUP_SORT_EXPR, POST_JOB_RANK, PRE_JOB_RANK, PREEMPTION_RANK};
    use condor_config::{Host, Reader, Source};

    fn read(text: &str) -> Result<Config, Vec<String>> {
        let source = Source::block("spec.config", text);
        let reading = Reader::new(Host::none()).subsystem("NEGOTIATOR").read(&[source]);
        Config::read(&reading.into_config().unwrap())
            .map_err(|faults| faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_text_that_says_nothing_changes_nothing() {
        assert_eq!(read(""), Ok(Config::default()));
    }

    /// HTCondor looks at `<name>_LIMIT` when a job takes the limit; a name like this may as well be a macro.
    #[test]
    fn a_limit_that_is_no_number_is_none() {
        for (text, expected) in [
            ("A_LIMIT = 2", Ok(vec![("a", 2.0)])),
            ("A_LIMIT = 2\nB_LIMIT = $(A_LIMIT)", Ok(vec![("a", 2.0), ("b", 2.0)])),
            ("A_LIMIT = (RequestMemory * 2)", Ok(vec![])),
            ("A_LIMIT = -1\nX = Age > $(A_LIMIT)", Ok(vec![])),
            ("A_LIMIT = -1\nX = Age > $$(A_LIMIT)", Err("A_LIMIT must be at least 0 units, and is -1")),
        ] {
            let read = read(text).map(|config| config.concurrency_limits).map_err(|faults| faults.concat());
            let expected = expected.map(|limits: Vec<(&str, f64)>| {
                limits.into_iter().map(|(name, units)| (name.to_owned(), units)).collect::<BTreeMap<_, _>>()
            });
            match (read, expected) {
                (Err(said), Err(expected)) => assert!(said.ends_with(expected), "{said}"),
                (read, expected) => assert_eq!(read, expected.map_err(str::to_owned), "{text}"),
            }
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_knob_table() {
        for (knob, expr) in [
            ("NEGOTIATOR_PRE_JOB_RANK", PRE_JOB_RANK),
            ("NEGOTIATOR_POST_JOB_RANK", POST_JOB_RANK),
            ("PREEMPTION_RANK", PREEMPTION_RANK),
            ("GROUP_SORT_EXPR", GROUP_SORT_EXPR),
        ] {
            let parsed = |text: &str| Expr::parse(text).unwrap();
            assert_eq!(parsed(knobs::default_of(None, knob).unwrap()), parsed(expr), "{knob}");
        }
        // A text that sets these knobs to HTCondor's defaults changes nothing. Knobs that are not in this list differ on purpose
        // (docs/reference/differences.md).
        let all = [
            "NEGOTIATOR_INTERVAL",
            "NEGOTIATOR_MAX_TIME_PER_CYCLE",
            "NEGOTIATOR_MAX_TIME_PER_SUBMITTER",
            "NEGOTIATOR_MAX_TIME_PER_PIESPIN",
            "NEGOTIATOR_CONSIDER_PREEMPTION",
            "NEGOTIATOR_CONSIDER_EARLY_PREEMPTION",
            "PREEMPTION_REQUIREMENTS",
            "NEGOTIATOR_DEPTH_FIRST",
            "NEGOTIATOR_IGNORE_USER_PRIORITIES",
            "NEGOTIATOR_USE_SLOT_WEIGHTS",
            "NEGOTIATOR_USE_WEIGHTED_DEMAND",
            "NEGOTIATOR_MATCHLIST_CACHING",
            "NEGOTIATOR_DISCOUNT_SUSPENDED_RESOURCES",
            "GROUP_ACCEPT_SURPLUS",
            "GROUP_AUTOREGROUP",
            "GROUP_QUOTA_MAX_ALLOCATION_ROUNDS",
            "GROUP_QUOTA_ROUND_ROBIN_RATE",
            "PRIORITY_HALFLIFE",
            "DEFAULT_PRIO_FACTOR",
            "NICE_USER_PRIO_FACTOR",
            "NICE_USER_ACCOUNTING_GROUP_NAME",
            "REMOTE_PRIO_FACTOR",
            "CONCURRENCY_LIMIT_DEFAULT",
        ]
        .map(|knob| format!("{knob} = {}\n", knobs::default_of(None, knob).unwrap()));
        assert_eq!(read(&all.concat()), Ok(Config::default()));
    }

    #[test]
    fn what_a_text_says_holds() {
        let said = read(
            "NEGOTIATOR_INTERVAL = 2 * 60\nNEGOTIATOR.NEGOTIATOR_CYCLE_DELAY = 0\nSTARTD.NEGOTIATOR_MIN_INTERVAL = 1\n\
             PREEMPTION_REQUIREMENTS = RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2\n\
             NEGOTIATOR_SLOT_CONSTRAINT = Arch == \"X86_64\"\nALLOW_PSLOT_PREEMPTION = True\nPRIORITY_HALFLIFE = 0.5e3\n\
             GROUP_DYNAMIC_MACH_CONSTRAINT = PartitionableSlot\nACCOUNTANT_LOCAL_DOMAIN = wisc.edu\n\
             GROUP_PRIO_FACTOR_Group_Physics.HEP = 10\nNEGOTIATOR.XSW_LIMIT = 2\nLARGE.DB_LIMIT = 1.5\n\
             CONCURRENCY_LIMIT_DEFAULT_large = 3\nCONCURRENCY_LIMIT_DEFAULT = 7\n",
        );
        let expr = |text: &str| Some(Expr::parse(text).unwrap());
        let by_name =
            |pairs: &[(&str, f64)]| pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let expected = Config {
            interval: Duration::from_mins(2),
            cycle_delay: Some(Duration::ZERO),
            preemption_requirements: expr("RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2"),
            slot_constraint: expr("Arch == \"X86_64\""),
            allow_pslot_preemption: true,
            priority_halflife: 500.0,
            slot_poolsize_constraint: expr("PartitionableSlot"),
            accountant_local_domain: Some("wisc.edu".into()),
            group_factors: by_name(&[("group_physics.hep", 10.0)]),
            concurrency_limits: by_name(&[("xsw", 2.0), ("large.db", 1.5)]),
            concurrency_limit_sets: by_name(&[("large", 3.0)]),
            concurrency_limit_default: 7.0,
            ..Config::default()
        };
        assert_eq!(said, Ok(expected));
    }

    /// HTCondor's default holds if PREEMPTION_REQUIREMENTS is "unset entirely". An admin who wants preemption by priority without
    /// conditions sets it to nothing.
    #[test]
    fn an_expression_that_is_defined_as_nothing_is_none() {
        let said = read("PREEMPTION_REQUIREMENTS =\nPREEMPTION_RANK =\nNEGOTIATOR_INTERVAL =\n");
        let expected = Config { preemption_requirements: None, preemption_rank: None, ..Config::default() };
        assert_eq!(said, Ok(expected));
    }

    #[test]
    fn all_that_cannot_be_used_is_told_with_its_place() {
        let faults = read(
            "NEGOTIATOR_INTERVAL = often\nDEFAULT_PRIO_FACTOR = 0.5\nPREEMPTION_RANK = 1 +\n\
             NEGOTIATOR_DEPTH_FIRST = perhaps\nGROUP_QUOTA_MAX_ALLOCATION_ROUNDS = 0\nXSW_LIMIT = -1\n",
        );
        let expected = [
            "spec.config, line 1, column 23: NEGOTIATOR_INTERVAL is often, which is no integer",
            "spec.config, line 2, column 23: DEFAULT_PRIO_FACTOR must be at least 1, and is 0.5",
            "spec.config, line 3, column 21: PREEMPTION_RANK is no expression: expected an operand after '+', found end of input",
            "spec.config, line 4, column 26: NEGOTIATOR_DEPTH_FIRST is perhaps, which is no boolean",
            "spec.config, line 5, column 37: GROUP_QUOTA_MAX_ALLOCATION_ROUNDS must be at least 1 rounds, and is 0",
            "spec.config, line 6, column 13: XSW_LIMIT must be at least 0 units, and is -1",
        ];
        let faults = faults.unwrap_err();
        assert_eq!(faults, expected);
    }
}
