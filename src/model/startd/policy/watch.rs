//! Whether a policy must be evaluated again when only time has passed. A policy whose expressions can never be true, such as the
//! default, is not polled.

use crate::pool::{ByUniverse, Claimed, Policy, Preempting, State};
use classad::{Ad, Env, Expr};

use super::Answer;
use super::ask::universe_form;

/// Whether the policy of a slot in this state is evaluated each `POLLING_INTERVAL`. `agent` says whether the machine has an agent,
/// without which its jobs cannot be suspended.
pub fn is_polled(policy: &Policy, state: State, agent: bool, job: Option<&Ad>) -> bool {
    let may = |exprs: &ByUniverse, unset: bool| may_hold(exprs, unset, job);
    match state {
        State::Claimed(Claimed::Busy) => {
            let suspends = agent && may(&policy.want_suspend, false) && may(&policy.suspend, false);
            suspends || may(&policy.preempt, false)
        }
        State::Claimed(Claimed::Suspended) => may(&policy.resume, true) || may(&policy.preempt, false),
        State::Claimed(Claimed::Retiring) => {
            let suspends = agent && may(&policy.want_suspend, false) && may(&policy.suspend, false);
            suspends || may(&policy.preempt, false) || terms_change(policy, job)
        }
        State::Preempting(Preempting::Vacating) => may(&policy.kill, false),
        _ => false,
    }
}

/// Whether the job's retirement or vacate time can change while the job runs, because one of the expressions for them is not a
/// constant.
pub(super) fn terms_change(policy: &Policy, job: Option<&Ad>) -> bool {
    let changes = |expr: &Expr| expr.as_literal().is_none();
    let of_job = |name: &str| job.and_then(|job| job.get(name)).is_some_and(changes);
    policy.max_job_retirement_time.as_ref().is_some_and(changes)
        || of_job("MaxJobRetirementTime")
        || of_job("JobMaxVacateTime")
}

/// Whether an expression may be true for this job at some time.
fn may_hold(exprs: &ByUniverse, unset: bool, job: Option<&Ad>) -> bool {
    let of = |expr: &Expr| match expr.as_literal() {
        Some(value) => Answer::of(value).is_true(),
        None => true,
    };
    let plain = exprs.plain.as_ref().map_or(unset, of);
    match universe_form(exprs, job, &Env::at(0)) {
        // If the expression for the universe gives no boolean, the plain expression counts.
        Some(own) => match own.as_literal() {
            Some(value) if matches!(Answer::of(value), Answer::True | Answer::False) => of(own),
            _ => of(own) || plain,
        },
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expr(text: &str) -> ByUniverse {
        Expr::parse(text).unwrap().into()
    }

    const BUSY: State = State::Claimed(Claimed::Busy);
    const SUSPENDED: State = State::Claimed(Claimed::Suspended);
    const RETIRING: State = State::Claimed(Claimed::Retiring);
    const VACATING: State = State::Preempting(Preempting::Vacating);

    #[test]
    fn the_default_policy_is_never_polled() {
        for state in [State::Owner, State::Matched, BUSY, RETIRING, VACATING] {
            assert!(!is_polled(&Policy::default(), state, true, Some(&Ad::new())), "{state:?}");
        }
    }

    #[test]
    fn what_can_change_is_polled_where_it_is_looked_at() {
        let busy = "KeyboardIdle < 60";
        for (policy, polled) in [
            (Policy { preempt: expr("false"), ..Policy::default() }, vec![]),
            (Policy { preempt: expr("(FALSE)"), suspend: expr(busy), ..Policy::default() }, vec![]),
            (Policy { preempt: expr("undefined"), ..Policy::default() }, vec![]),
            (Policy { preempt: expr("true"), ..Policy::default() }, vec![BUSY, SUSPENDED, RETIRING]),
            (Policy { preempt: expr(busy), ..Policy::default() }, vec![BUSY, SUSPENDED, RETIRING]),
            (
                Policy { suspend: expr(busy), want_suspend: expr("true"), ..Policy::default() },
                vec![BUSY, SUSPENDED, RETIRING],
            ),
            (Policy { kill: expr(busy), ..Policy::default() }, vec![VACATING]),
            (Policy { max_job_retirement_time: expr("TARGET.x").plain, ..Policy::default() }, vec![RETIRING]),
            (Policy { max_job_retirement_time: expr("3600").plain, ..Policy::default() }, vec![]),
            (
                Policy {
                    preempt: ByUniverse { vanilla: expr("false").plain, ..expr(busy) },
                    ..Policy::default()
                },
                vec![],
            ),
        ] {
            let found: Vec<State> = [BUSY, SUSPENDED, RETIRING, VACATING]
                .into_iter()
                .filter(|state| is_polled(&policy, *state, true, Some(&Ad::new())))
                // CONTINUE is true if it is unset.
                .filter(|state| *state != SUSPENDED || polled.contains(state))
                .collect();
            assert_eq!(found, polled, "{policy:?}");
        }
    }

    #[test]
    fn without_an_agent_there_is_nothing_to_suspend() {
        let policy = Policy { suspend: expr("LoadAvg > 1"), want_suspend: expr("true"), ..Policy::default() };
        assert!(is_polled(&policy, BUSY, true, None));
        assert!(!is_polled(&policy, BUSY, false, None));
    }

    #[test]
    fn a_jobs_own_terms_may_change_too() {
        let constant = Ad::parse_new("[MaxJobRetirementTime = 60]").unwrap();
        let changing = Ad::parse_new("[MaxJobRetirementTime = time() % 60]").unwrap();
        assert!(!is_polled(&Policy::default(), RETIRING, false, Some(&constant)));
        assert!(is_polled(&Policy::default(), RETIRING, false, Some(&changing)));
    }
}
