//! Latches: expressions whose last change a slot remembers. These are `STARTD_LATCH_EXPRS`, and `CpuBusy`.
//!
//! Source: the manual, "Default Policy": `CPUBusyTime` is "the value 0 if CPUBusy is False; the time in seconds since CPUBusy
//! became True". The templates of later versions list `CpuBusy` in `STARTD_LATCH_EXPRS`, and read `CpuBusyValue` and, as
//! `CpuBusyTime`, the time of its change.

use std::sync::Arc;

use super::constant;
use crate::pool::{Latch, Latched, Time};
use classad::{Ad, Env, Expr, Value};

/// Evaluates latches in the ad of their slot. A latch whose value is the same as before keeps the time of its last change.
pub(in crate::startd) fn look(
    latches: &[Latch],
    before: &[Latched],
    ad: &Ad,
    env: &Env,
    now: Time,
) -> Vec<Latched> {
    let look = |latch: &Latch| {
        let value = match latch.expr.eval(Some(ad), None, env) {
            Value::Bool(truth) => Value::Int(i64::from(truth)),
            value => value,
        };
        let value = Expr::literal(value);
        let same = before.iter().find(|before| before.name == latch.name && before.value == value);
        same.cloned().unwrap_or_else(|| Latched { name: Arc::clone(&latch.name), value, since: now })
    };
    latches.iter().map(look).collect()
}

/// Puts the values of latches, and the times of their last changes, into the ad of their slot.
pub(super) fn publish(ad: &mut Ad, latches: &[Latch], gave: &[Latched]) {
    let known = |latch: &Latch| gave.iter().find(|gave| gave.name == latch.name);
    for (latch, Latched { value, since, .. }) in
        latches.iter().filter_map(|latch| Some((latch, known(latch)?)))
    {
        if latch.listed {
            ad.insert(&*format!("{}Value", latch.name), value.clone());
            ad.set(&*format!("{}Time", latch.name), since.secs());
        } else {
            let busy = value.as_literal().and_then(Value::as_bool_equiv) == Some(true);
            ad.set("CpuIsBusy", busy);
            let time =
                if busy { constant(&format!("time() - {}", since.secs())) } else { Expr::literal(0_i64) };
            ad.insert("CpuBusyTime", time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, load: f64, listed: bool, before: &[Latched]) -> (Vec<Latched>, Ad) {
        let expr = Expr::parse("LoadAvg >= 0.5").unwrap();
        let latches = [Latch { name: "CpuBusy".into(), expr, listed }];
        let mut ad = Ad::new();
        ad.set("LoadAvg", load);
        let gave = look(&latches, before, &ad, &Env::at(seconds), Time::from_secs(seconds));
        publish(&mut ad, &latches, &gave);
        (gave, ad)
    }

    fn value(ad: &Ad, name: &str, now: i64) -> String {
        ad.eval_attr(name, None, &Env::at(now)).to_string()
    }

    #[test]
    fn cpu_busy_time_is_for_how_long_the_cpu_has_been_busy() {
        let (idle, ad) = at(100, 0.1, false, &[]);
        assert_eq!([value(&ad, "CpuIsBusy", 130), value(&ad, "CpuBusyTime", 130)], ["false", "0"]);
        let (busy, _) = at(130, 0.9, false, &idle);
        let (_, ad) = at(150, 0.8, false, &busy);
        assert_eq!([value(&ad, "CpuIsBusy", 160), value(&ad, "CpuBusyTime", 160)], ["true", "30"]);
    }

    #[test]
    fn a_latch_whose_neighbour_goes_keeps_its_time() {
        let latch = |name: &str| Latch { name: name.into(), expr: Expr::literal(1_i64), listed: true };
        let before = look(&[latch("A"), latch("B")], &[], &Ad::new(), &Env::at(100), Time::from_secs(100));
        let gave = look(&[latch("B"), latch("C")], &before, &Ad::new(), &Env::at(200), Time::from_secs(200));
        assert_eq!([gave[0].since.secs(), gave[1].since.secs()], [100, 200]);
        let mut ad = Ad::new();
        publish(&mut ad, &[latch("C"), latch("A")], &gave);
        assert_eq!(ad.to_long(), "CTime = 200\nCValue = 1\n");
    }

    #[test]
    fn a_latched_expression_is_published_with_the_time_of_its_change() {
        let (idle, _) = at(100, 0.1, true, &[]);
        let (busy, _) = at(130, 0.9, true, &idle);
        let (_, ad) = at(150, 0.8, true, &busy);
        assert_eq!([value(&ad, "CpuBusyValue", 160), value(&ad, "CpuBusyTime", 160)], ["1", "130"]);
    }
}
