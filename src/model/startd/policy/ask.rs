//! Evaluates the policy of a claimed slot. The value of a constant expression is known without making the slot's ad.

use std::cell::OnceCell;
use std::sync::LazyLock;

use super::attributes::running_job_ad;
use super::{Answer, Answers, Question};
use crate::pool::{
    ByUniverse, HoldReason, Machine, Policy, Pool, STARTD_HELD_JOB, Slot, SlotName, StartdConfig, Time,
};
use crate::startd::ad::claimed_slot_ad;
use classad::{Ad, Env, Expr, Value};

/// `MachineMaxVacateTime` in seconds, if it is unset or not an integer: ten minutes.
pub(super) const VACATE: i64 = 600;

static TRUE: LazyLock<Expr> = LazyLock::new(|| Expr::literal(true));
static FALSE: LazyLock<Expr> = LazyLock::new(|| Expr::literal(false));

/// The ad that is `TARGET` of an expression.
#[derive(Clone, Copy)]
enum About {
    /// No ad: the expression is about the slot alone.
    Slot,
    /// The ad of the claim's job.
    Job,
    /// The ad of the job whose claim waits for this slot.
    Next,
}

/// The policy of a claimed slot, with what its expressions read.
pub struct Asker<'a> {
    machine: &'a Machine,
    config: &'a StartdConfig,
    policy: &'a Policy,
    slot: &'a Slot,
    queued: Option<&'a Ad>,
    job: OnceCell<Option<Ad>>,
    next: Option<&'a Ad>,
    now: Time,
    ad: OnceCell<Ad>,
}

impl<'a> Asker<'a> {
    /// Asks the policy of a slot. `job` is the ad of the claim's job if the job is known; `next` that of the job whose claim waits
    /// for this slot.
    pub fn new(
        machine: &'a Machine,
        config: &'a StartdConfig,
        slot: &'a Slot,
        job: Option<&'a Ad>,
        next: Option<&'a Ad>,
        now: Time,
    ) -> Self {
        Self {
            machine,
            config,
            policy: &machine.slot_config(config, slot.name().slot).policy,
            slot,
            queued: job,
            job: OnceCell::new(),
            next,
            now,
            ad: OnceCell::new(),
        }
    }

    fn env(&self) -> Env {
        Env::at(self.now.secs())
    }

    fn ad(&self) -> &Ad {
        self.ad.get_or_init(|| {
            let mut ad = claimed_slot_ad(self.machine, self.config, self.slot, self.queued, &self.env());
            refer(&mut ad, self.policy);
            ad
        })
    }

    /// The job's ad with the attributes that HTCondor's schedd and starter set while the job runs.
    fn job(&self) -> Option<&Ad> {
        self.job.get_or_init(|| self.queued.map(|job| running_job_ad(job, self.slot.running()))).as_ref()
    }

    fn value(&self, expr: &Expr, about: About) -> Value {
        if let Some(value) = expr.as_literal() {
            return value.clone();
        }
        let target = match about {
            About::Slot => None,
            About::Job => self.job(),
            About::Next => self.next,
        };
        expr.eval(Some(self.ad()), target, &self.env())
    }

    fn truth(&self, expr: Option<&Expr>, unset: &Expr, about: About) -> Answer {
        Answer::of(&self.value(expr.unwrap_or(unset), about))
    }

    /// The answer of the expression for the job's universe if that gives a boolean, otherwise of the plain expression.
    fn by_universe(&self, exprs: &ByUniverse, unset: &Expr) -> Answer {
        if let Some(own) = universe_form(exprs, self.queued, &self.env()) {
            let answer = Answer::of(&self.value(own, About::Job));
            if matches!(answer, Answer::True | Answer::False) {
                return answer;
            }
        }
        self.truth(exprs.plain.as_ref(), unset, About::Job)
    }

    /// The value of an attribute of the job; none if the job lacks the attribute.
    fn of_job(&self, name: &str) -> Option<Value> {
        let expr = self.queued?.get(name)?;
        Some(match expr.as_literal() {
            Some(value) => value.clone(),
            None => self.job()?.eval_attr(name, Some(self.ad()), &self.env()),
        })
    }
}

/// Puts the policy's expressions into the ad, so that they can refer to each other by name. The manual's desktop policy has such a
/// `PREEMPT`: `SUSPEND && (WANT_SUSPEND == False)`. HTCondor's startd does so in its own copy of the ad; of these expressions it
/// publishes only `START`.
fn refer(ad: &mut Ad, policy: &Policy) {
    for (name, exprs) in [
        ("SUSPEND", &policy.suspend),
        ("CONTINUE", &policy.resume),
        ("PREEMPT", &policy.preempt),
        ("KILL", &policy.kill),
        ("WANT_SUSPEND", &policy.want_suspend),
        ("WANT_VACATE", &policy.want_vacate),
    ] {
        if let Some(expr) = &exprs.plain {
            ad.insert(name, expr.clone());
        }
    }
}

/// The expression for the job's universe: `_VANILLA` or `_VM`. A job that sets no universe is a vanilla job.
pub(super) fn universe_form<'e>(exprs: &'e ByUniverse, job: Option<&Ad>, env: &Env) -> Option<&'e Expr> {
    if exprs.vanilla.is_none() && exprs.vm.is_none() {
        return None;
    }
    match job.map(|job| job.eval_attr("JobUniverse", None, env)) {
        Some(Value::Int(5) | Value::Undefined) => exprs.vanilla.as_ref(),
        Some(Value::Int(13)) => exprs.vm.as_ref(),
        _ => None,
    }
}

/// An integer. `HTCondor` drops the fraction of a real number where it expects an integer.
#[allow(
    clippy::cast_possible_truncation,
    reason = "seconds lose their fraction; what is out of range is clamped"
)]
pub(in crate::startd) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(seconds) => Some(*seconds),
        Value::Bool(truth) => Some(i64::from(*truth)),
        Value::Real(seconds) if seconds.is_finite() => Some(*seconds as i64),
        _ => None,
    }
}

/// `RANK` of a claimed slot for its job; 0 if there is no such slot, or the expression gives no number.
pub fn rank(pool: &Pool, name: &SlotName, now: Time) -> f64 {
    let slot = pool.slots().get(name);
    let Some((slot, machine)) = slot.zip(pool.machines().get(&name.machine)) else { return 0.0 };
    let job = pool.spec_of(&slot.claim().last);
    Asker::new(machine, &pool.startd(machine), slot, job.map(|spec| &spec.ad), None, now).rank()
}

impl Answers for Asker<'_> {
    fn answer(&self, question: Question) -> Answer {
        let policy = self.policy;
        match question {
            Question::IsOwner => self.truth(policy.is_owner.as_ref(), &FALSE, About::Slot),
            Question::WantSuspend => self.by_universe(&policy.want_suspend, &FALSE),
            Question::Suspend => self.by_universe(&policy.suspend, &FALSE),
            Question::Continue => self.by_universe(&policy.resume, &TRUE),
            Question::Preempt => self.by_universe(&policy.preempt, &FALSE),
            Question::WantVacate => self.by_universe(&policy.want_vacate, &TRUE),
            Question::Kill => self.by_universe(&policy.kill, &FALSE),
            Question::WantHold => self.truth(policy.want_hold.as_ref(), &FALSE, About::Job),
            Question::Start => {
                let meanwhile = self.machine.draining.as_ref().and_then(|draining| draining.start.as_ref());
                self.truth(meanwhile.or(policy.start.as_ref()), &TRUE, About::Job)
            }
            Question::StartNext => self.truth(policy.start.as_ref(), &TRUE, About::Next),
            Question::RunBenchmarks => self.truth(policy.run_benchmarks.as_ref(), &FALSE, About::Slot),
            Question::StartBackfill => self.truth(policy.start_backfill.as_ref(), &FALSE, About::Slot),
            Question::EvictBackfill => self.truth(policy.evict_backfill.as_ref(), &FALSE, About::Slot),
        }
    }

    fn retirement(&self) -> Option<i64> {
        let expr = self.policy.max_job_retirement_time.as_ref()?;
        integer(&self.value(expr, About::Job))
    }

    fn job_retirement(&self) -> Option<i64> {
        integer(&self.of_job("MaxJobRetirementTime")?)
    }

    fn job_vacate(&self) -> Option<i64> {
        let value = self.of_job("JobMaxVacateTime").or_else(|| self.of_job("KillSigTimeout"))?;
        Some(integer(&value).unwrap_or(0).max(0))
    }

    fn machine_vacate(&self) -> i64 {
        let said = self.policy.machine_max_vacate_time.as_ref();
        said.and_then(|expr| integer(&self.value(expr, About::Job))).unwrap_or(VACATE).max(0)
    }

    fn rank(&self) -> f64 {
        let said = self.policy.rank.as_ref();
        said.and_then(|expr| self.value(expr, About::Job).as_number())
            .filter(|rank| rank.is_finite())
            .unwrap_or(0.0)
    }

    fn hold(&self) -> HoldReason {
        let value = |expr: &Option<Expr>| expr.as_ref().map(|expr| self.value(expr, About::Job));
        let reason = value(&self.policy.want_hold_reason);
        let reason = reason.as_ref().and_then(Value::as_str).filter(|reason| !reason.is_empty());
        HoldReason {
            code: STARTD_HELD_JOB,
            subcode: value(&self.policy.want_hold_subcode).as_ref().and_then(integer).unwrap_or(0),
            reason: reason.map_or_else(|| "the slot's PREEMPT and WANT_HOLD are true".into(), Into::into),
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::kit;
    use crate::pool::{Capacity, Claimed, Phase, Resources, SlotConfig, State};
    use crate::startd::tests::scene::{active, claim};

    fn machine() -> Machine {
        Machine::new(kit::machine("n1", 4, 8), Capacity::default(), Time::from_secs(0))
    }

    /// Asks a policy about a slot in which a job has run for 100 s.
    fn asked<T>(policy: Policy, job: &str, ask: impl FnOnce(&Asker) -> T) -> T {
        let config: StartdConfig = SlotConfig { policy, ..SlotConfig::default() }.into();
        let name = crate::pool::SlotName { machine: "n1".into(), slot: 1, dynamic: Some(1) };
        let state = State::Claimed(Claimed::Busy);
        let phase = Phase::starting(state, Time::from_secs(900));
        let mut slot = Slot::new(name, Resources::default(), claim("alice"), phase);
        slot.set_activation(active());
        slot.running_mut().started = Some(Time::from_secs(900));
        slot.running_mut().own_retirement = Some(250);
        let (machine, job) = (machine(), Ad::parse_new(job).unwrap());
        ask(&Asker::new(&machine, &config, &slot, Some(&job), None, Time::from_secs(1000)))
    }

    fn expr(text: &str) -> Expr {
        Expr::parse(text).unwrap()
    }

    #[test]
    fn what_is_not_said_is_htcondors_default() {
        asked(Policy::default(), "[JobUniverse = 5]", |asker| {
            for question in [Question::Continue, Question::WantVacate, Question::Start, Question::StartNext] {
                assert_eq!(asker.answer(question), Answer::True, "{question:?}");
            }
            for question in [
                Question::IsOwner,
                Question::WantSuspend,
                Question::Suspend,
                Question::Preempt,
                Question::Kill,
                Question::WantHold,
                Question::StartBackfill,
                Question::EvictBackfill,
            ] {
                assert_eq!(asker.answer(question), Answer::False, "{question:?}");
            }
            assert_eq!((asker.retirement(), asker.job_retirement(), asker.job_vacate()), (None, None, None));
            assert_eq!((asker.machine_vacate(), asker.rank().to_bits()), (600, 0.0_f64.to_bits()));
            assert!(asker.ad.get().is_none(), "constants need no ad");
        });
    }

    #[test]
    fn an_answer_is_true_false_undefined_or_an_error() {
        for (text, answer) in [
            ("TARGET.ImageSize > 5", Answer::True),
            ("Activity == \"Busy\"", Answer::True),
            ("time() - JobStart >= 100 && TotalJobRunTime == 100", Answer::True),
            ("7", Answer::True),
            ("0.0", Answer::False),
            ("State == \"Owner\"", Answer::False),
            ("NoSuchThing > 5", Answer::Undefined),
            ("TARGET.NoSuchThing", Answer::Undefined),
            ("\"yes\"", Answer::Error),
            ("1 / 0", Answer::Error),
        ] {
            let policy = Policy { preempt: expr(text).into(), ..Policy::default() };
            assert_eq!(asked(policy, "[ImageSize = 9]", |a| a.answer(Question::Preempt)), answer, "{text}");
        }
    }

    #[test]
    fn the_form_for_the_jobs_universe_goes_first_where_it_gives_a_boolean() {
        let forms = |vanilla: &str, vm: &str| Policy {
            suspend: ByUniverse {
                plain: Some(expr("true")),
                vanilla: Some(expr(vanilla)),
                vm: Some(expr(vm)),
            },
            ..Policy::default()
        };
        for (policy, job, answer) in [
            (forms("false", "false"), "[JobUniverse = 5]", Answer::False),
            (forms("false", "true"), "[x = 1]", Answer::False),
            (forms("true", "false"), "[JobUniverse = 13]", Answer::False),
            (forms("false", "false"), "[JobUniverse = 10]", Answer::True),
            (forms("undefined", "false"), "[JobUniverse = 5]", Answer::True),
            (forms("\"no\"", "false"), "[JobUniverse = 5]", Answer::True),
        ] {
            let shown = format!("{:?} for {job}", policy.suspend);
            assert_eq!(asked(policy, job, |asker| asker.answer(Question::Suspend)), answer, "{shown}");
        }
    }

    #[test]
    fn times_are_whole_seconds_of_the_machine_and_of_the_job() {
        let policy = Policy {
            max_job_retirement_time: Some(expr("TARGET.Hours * 3600")),
            machine_max_vacate_time: Some(expr("TARGET.NoSuchThing")),
            rank: Some(expr("TARGET.Hours * 2")),
            ..Policy::default()
        };
        let job = "[Hours = 1.5; MaxJobRetirementTime = 60; KillSigTimeout = 30]";
        asked(policy.clone(), job, |asker| {
            assert_eq!((asker.retirement(), asker.job_retirement()), (Some(5400), Some(60)));
            assert_eq!((asker.job_vacate(), asker.machine_vacate()), (Some(30), 600));
            assert_eq!(asker.rank().to_bits(), 3.0_f64.to_bits());
        });
        let job = "[JobMaxVacateTime = NoSuchThing; KillSigTimeout = 30]";
        asked(policy, job, |asker| {
            assert_eq!((asker.retirement(), asker.job_vacate()), (None, Some(0)), "what cannot be evaluated");
        });
    }

    #[test]
    fn what_is_left_of_retirement_is_in_the_slots_ad() {
        for (granted, left) in [
            (None, 0),
            (Some(expr("200")), 100),
            (Some(expr("3600")), 150),
            (Some(expr("50")), 0),
            (Some(expr("0.05 * 3600")), 80),
            (Some(expr("true")), 0),
            (Some(expr("Nope")), 0),
        ] {
            let policy = Policy { max_job_retirement_time: granted.clone(), ..Policy::default() };
            let found = asked(policy, "[x = 1]", |asker| {
                asker.ad().eval_attr("RetirementTimeRemaining", None, &asker.env())
            });
            assert_eq!(found, Value::from(left), "{granted:?}");
        }
    }

    #[test]
    fn a_hold_says_its_reason() {
        let policy = Policy {
            want_hold_reason: Some(expr("strcat(\"too large: \", TARGET.ImageSize)")),
            want_hold_subcode: Some(expr("TARGET.ImageSize")),
            ..Policy::default()
        };
        let hold = asked(policy, "[ImageSize = 9]", |asker| asker.hold());
        assert_eq!((hold.code, hold.subcode, &*hold.reason), (21, 9, "too large: 9"));
        let hold = asked(Policy::default(), "[x = 1]", |asker| asker.hold());
        assert_eq!((hold.subcode, &*hold.reason), (0, "the slot's PREEMPT and WANT_HOLD are true"));
    }
}
