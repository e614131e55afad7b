//! Reads what a SubmitPolicy asks of every job from time to time: `SYSTEM_PERIODIC_HOLD` and related knobs.

use crate::pool::{SystemExpr, SystemPolicy};
use condor_config::{Config, ValueError};

/// Reads the knobs. Returns the policy, and the knobs whose values cannot be used.
pub(super) fn read(config: &Config) -> (SystemPolicy, Vec<ValueError>) {
    let mut text = Text { config, faults: Vec::new() };
    let defaults = SystemPolicy::default();
    let interval = text.integer("PERIODIC_EXPR_INTERVAL");
    let releases = text.integer("SYSTEM_MAX_RELEASES");
    let policy = SystemPolicy {
        hold: text.all("SYSTEM_PERIODIC_HOLD"),
        release: text.all("SYSTEM_PERIODIC_RELEASE"),
        remove: text.all("SYSTEM_PERIODIC_REMOVE"),
        vacate: text.all("SYSTEM_PERIODIC_VACATE"),
        // -1 is HTCondor's word for no bound.
        max_releases: releases.and_then(|most| u32::try_from(most).ok()),
        interval: interval.map_or(defaults.interval, |seconds| u64::try_from(seconds).unwrap_or(0)),
    };
    (policy, text.faults)
}

struct Text<'c> {
    config: &'c Config,
    faults: Vec<ValueError>,
}

impl Text<'_> {
    /// The expression of a knob, and those that `KNOB_NAMES` names, in the order of HTCondor: the named ones come first. An
    /// expression that is literally false is left out.
    fn all(&mut self, knob: &str) -> Vec<SystemExpr> {
        let names = self.config.list(&format!("{knob}_NAMES")).unwrap_or_default();
        let listed = names.into_iter().map(|name| format!("{knob}_{name}"));
        let all: Vec<String> = listed.chain([knob.to_owned()]).collect();
        all.into_iter().filter_map(|name| self.one(&name)).collect()
    }

    fn one(&mut self, name: &str) -> Option<SystemExpr> {
        let expr = self.expr(name)?;
        let never = expr.as_literal().is_some_and(|value| value.as_bool_equiv() != Some(true));
        (!never).then(|| {
            let [reason, subcode] = ["REASON", "SUBCODE"].map(|what| self.expr(&format!("{name}_{what}")));
            SystemExpr::new(name, expr, reason, subcode)
        })
    }

    fn expr(&mut self, name: &str) -> Option<classad::Expr> {
        self.config.expr(name).unwrap_or_else(|fault| {
            self.faults.push(fault);
            None
        })
    }

    fn integer(&mut self, name: &str) -> Option<i64> {
        self.config.integer(name).unwrap_or_else(|fault| {
            self.faults.push(fault);
            None
        })
    }
}
