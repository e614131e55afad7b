//! Reads a policy from a configuration text.

use std::time::Duration;

use crate::pool::{ByUniverse, ClaimWorklife, Policy};
use crate::startd::config::setting_name;
use classad::Expr;
use condor_config::{Config, ValueError};

/// The default of `ALIVE_INTERVAL`.
const ALIVE_INTERVAL: Duration = Duration::from_mins(5);
/// The default of `MAX_CLAIM_ALIVES_MISSED`.
const ALIVES_MISSED: u32 = 6;

/// A configuration that is being read for the slots of a type, with the faults found so far.
struct Text<'a> {
    config: &'a Config,
    slot_type: Option<u32>,
    faults: Vec<ValueError>,
}

impl Policy {
    /// Reads the policy of the slots of a type. A knob's value is that of `SLOT_TYPE_<N>_<KNOB>` if that is defined, even as
    /// nothing; otherwise that of the knob's own name, or the default. Also returns all values that cannot be used, each with its
    /// place.
    pub fn read(config: &Config, slot_type: Option<u32>) -> (Self, Vec<ValueError>) {
        let mut text = Text { config, slot_type, faults: Vec::new() };
        let defaults = Self::default();
        let policy = Self {
            start: text.expr("START"),
            is_owner: text.is_owner(),
            run_benchmarks: text.expr("RUNBENCHMARKS"),
            rank: text.expr("RANK"),
            want_suspend: text.by_universe("WANT_SUSPEND"),
            suspend: text.by_universe("SUSPEND"),
            resume: text.by_universe("CONTINUE"),
            preempt: text.by_universe("PREEMPT"),
            want_vacate: text.by_universe("WANT_VACATE"),
            kill: text.by_universe("KILL"),
            want_hold: text.expr("WANT_HOLD"),
            want_hold_reason: text.expr("WANT_HOLD_REASON"),
            want_hold_subcode: text.expr("WANT_HOLD_SUBCODE"),
            max_job_retirement_time: text.expr("MAXJOBRETIREMENTTIME"),
            machine_max_vacate_time: text.expr("MachineMaxVacateTime"),
            enable_backfill: text.truth("ENABLE_BACKFILL").unwrap_or(defaults.enable_backfill),
            start_backfill: text.expr("START_BACKFILL"),
            evict_backfill: text.expr("EVICT_BACKFILL"),
            claim_worklife: text.worklife(),
            killing_timeout: text.span("KILLING_TIMEOUT", 0, defaults.killing_timeout),
            match_timeout: text.span("MATCH_TIMEOUT", 0, defaults.match_timeout),
            // At least 1 second: polling must not be continuous.
            polling_interval: text.span("POLLING_INTERVAL", 1, defaults.polling_interval),
            claim_lease: text.claim_lease(),
            update_interval: text.span("UPDATE_INTERVAL", 1, defaults.update_interval),
        };
        text.backfill_system();
        (policy, text.faults)
    }

    /// Overrides what the fields of a `NodePolicy` say with this policy, which was read from a text. Knobs that also have fields
    /// keep the fields' values if the text does not set them.
    #[must_use]
    pub fn over(self, fields: &Self) -> Self {
        Self {
            start: self.start.or_else(|| fields.start.clone()),
            claim_worklife: self.claim_worklife.or(fields.claim_worklife),
            ..self
        }
    }
}

impl Text<'_> {
    fn keep<T>(&mut self, found: Result<Option<T>, ValueError>) -> Option<T> {
        found.map_err(|fault| self.faults.push(fault)).ok().flatten()
    }

    fn said(&self, knob: &str) -> Option<String> {
        setting_name(self.config, self.slot_type, knob)
    }

    fn expr(&mut self, knob: &str) -> Option<Expr> {
        let found = self.config.expr(&self.said(knob)?);
        self.keep(found)
    }

    /// Reads `IS_OWNER`. As in HTCondor, its old name `IsOwner` has precedence, and a name with the prefix of the slot type has
    /// precedence over both. (With the prefix of a slot type, HTCondor reads only the old name.)
    fn is_owner(&mut self) -> Option<Expr> {
        let of_type = |name: &&&str| {
            self.slot_type
                .is_some_and(|kind| self.config.definition(&format!("SLOT_TYPE_{kind}_{name}")).is_some())
        };
        let of_all = |name: &&&str| setting_name(self.config, None, name).is_some();
        let names = ["IsOwner", "IS_OWNER"];
        let name = names.iter().find(of_type).or_else(|| names.iter().find(of_all))?;
        self.expr(name)
    }

    fn by_universe(&mut self, knob: &str) -> ByUniverse {
        ByUniverse {
            plain: self.expr(knob),
            vanilla: self.expr(&format!("{knob}_VANILLA")),
            vm: self.expr(&format!("{knob}_VM")),
        }
    }

    /// Reads a boolean that cannot differ between slot types.
    fn truth(&mut self, knob: &str) -> Option<bool> {
        let found = self.config.boolean(&setting_name(self.config, None, knob)?);
        self.keep(found)
    }

    fn span(&mut self, knob: &str, least: u64, unset: Duration) -> Duration {
        let Some(name) = setting_name(self.config, None, knob) else { return unset };
        let found = self.config.integer(&name);
        let seconds = self.keep(found).and_then(|seconds| u64::try_from(seconds).ok());
        seconds.map_or(unset, |seconds| Duration::from_secs(seconds.max(least)))
    }

    /// How long a claim lives without keep-alive messages: `ALIVE_INTERVAL` times `MAX_CLAIM_ALIVES_MISSED`.
    fn claim_lease(&mut self) -> Duration {
        let interval = self.span("ALIVE_INTERVAL", 1, ALIVE_INTERVAL);
        let name = setting_name(self.config, None, "MAX_CLAIM_ALIVES_MISSED");
        let missed = name.and_then(|name| {
            let found = self.config.integer(&name);
            self.keep(found)
        });
        let missed = missed.map_or(ALIVES_MISSED, |missed| u32::try_from(missed.max(0)).unwrap_or(u32::MAX));
        interval.saturating_mul(missed)
    }

    /// Checks `BACKFILL_SYSTEM`, which can only be BOINC, as in `HTCondor`. Here backfill runs the pods of the policy's template.
    fn backfill_system(&mut self) {
        let Some(name) = setting_name(self.config, None, "BACKFILL_SYSTEM") else { return };
        let wanted = "backfill system: say BOINC, or leave it out";
        let found = self.config.one_of(&name, wanted, &["BOINC"]);
        self.keep(found);
    }

    /// Reads `CLAIM_WORKLIFE`. An empty or negative value means that there is no limit.
    fn worklife(&mut self) -> Option<ClaimWorklife> {
        let name = self.said("CLAIM_WORKLIFE")?;
        match self.config.integer(&name) {
            Ok(seconds) => Some(
                seconds
                    .and_then(|seconds| u64::try_from(seconds).ok())
                    .map_or(ClaimWorklife::Unlimited, |s| ClaimWorklife::Limited(Duration::from_secs(s))),
            ),
            Err(fault) => {
                self.faults.push(fault);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use condor_config::{Host, Reader, Source};

    fn read(text: &str, slot_type: Option<u32>) -> (Policy, Vec<String>) {
        let reader = Reader::new(Host::none()).subsystem("STARTD");
        let reading = reader.read(&[Source::block("spec.config", text)]);
        let (policy, faults) = Policy::read(&reading.config, slot_type);
        (policy, faults.iter().map(ToString::to_string).collect())
    }

    fn shown(expr: Option<&Expr>) -> String {
        expr.map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn nothing_said_is_the_default() {
        assert_eq!(read("", None), (Policy::default(), Vec::new()));
        assert_eq!(read("SUSPEND =\n", None), (Policy::default(), Vec::new()));
    }

    #[test]
    fn each_knob_is_read() {
        let (policy, faults) = read(
            "START = TARGET.a\nIS_OWNER = b\nRUNBENCHMARKS = c\nRANK = TARGET.d\nWANT_SUSPEND = e\nSUSPEND = f\n\
             CONTINUE = g\nPREEMPT = h\nPREEMPT_VANILLA = h5\nPREEMPT_VM = h13\nWANT_VACATE = i\nKILL = j\n\
             WANT_HOLD = k\nWANT_HOLD_REASON = l\nWANT_HOLD_SUBCODE = m\nMAXJOBRETIREMENTTIME = n\n\
             MachineMaxVacateTime = o\nENABLE_BACKFILL = true\nSTART_BACKFILL = p\nEVICT_BACKFILL = q\n\
             CLAIM_WORKLIFE = -1\nALIVE_INTERVAL = 20\nMAX_CLAIM_ALIVES_MISSED = 3\nKILLING_TIMEOUT = 7\nMATCH_TIMEOUT = 2 * 60\nPOLLING_INTERVAL = 0\nUPDATE_INTERVAL = 60\n",
            None,
        );
        assert_eq!(faults, Vec::<String>::new());
        let plain =
            [&policy.want_suspend, &policy.suspend, &policy.resume, &policy.want_vacate, &policy.kill]
                .map(|exprs| shown(exprs.plain.as_ref()));
        assert_eq!(plain, ["e", "f", "g", "i", "j"]);
        let preempt = [&policy.preempt.plain, &policy.preempt.vanilla, &policy.preempt.vm];
        assert_eq!(preempt.map(|expr| shown(expr.as_ref())), ["h", "h5", "h13"]);
        let others = [
            &policy.start,
            &policy.is_owner,
            &policy.run_benchmarks,
            &policy.rank,
            &policy.want_hold,
            &policy.want_hold_reason,
            &policy.want_hold_subcode,
            &policy.max_job_retirement_time,
            &policy.machine_max_vacate_time,
            &policy.start_backfill,
            &policy.evict_backfill,
        ];
        assert_eq!(
            others.map(|expr| shown(expr.as_ref())),
            ["TARGET.a", "b", "c", "TARGET.d", "k", "l", "m", "n", "o", "p", "q"]
        );
        assert!(policy.enable_backfill);
        assert_eq!(policy.claim_lease.as_secs(), 60);
        assert_eq!(policy.claim_worklife, Some(ClaimWorklife::Unlimited));
        let times =
            [policy.killing_timeout, policy.match_timeout, policy.polling_interval, policy.update_interval];
        assert_eq!(times.map(|time| time.as_secs()), [7, 120, 1, 60], "less than a second is no interval");
    }

    #[test]
    fn a_type_of_slots_goes_first_even_where_it_says_nothing() {
        let text = "SUSPEND = a\nPREEMPT = b\nSLOT_TYPE_2_SUSPEND = c\nSLOT_TYPE_2_PREEMPT =\nSLOT_TYPE_2_KILL_VANILLA = d\n";
        let of = |slot_type| {
            let (policy, _) = read(text, slot_type);
            [policy.suspend.plain, policy.preempt.plain, policy.kill.vanilla].map(|e| shown(e.as_ref()))
        };
        assert_eq!(of(None), ["a", "b", ""]);
        assert_eq!(of(Some(1)), ["a", "b", ""]);
        assert_eq!(of(Some(2)), ["c", "", "d"]);
    }

    #[test]
    fn what_cannot_be_used_is_told_and_left_out() {
        let (policy, faults) = read("PREEMPT = (1\nKILL = a\nPOLLING_INTERVAL = soon\n", None);
        assert_eq!(
            (shown(policy.preempt.plain.as_ref()), shown(policy.kill.plain.as_ref())),
            (String::new(), "a".into())
        );
        assert_eq!((faults.len(), policy.polling_interval.as_secs()), (2, 5), "{faults:?}");
    }
}
