//! The condition `Offered` of partitionable and static slots.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::conditions::{Says, condition};
use api::condition as types;
use model::pool::{DrainedFor, Draining, Machine, MachineSlot, Offer, Pool, Time};
use model::startd::{Broken, broken};

/// The condition `Offered` of a machine slot: whether it takes jobs.
pub(super) fn offered(
    pool: &Pool,
    machine: &Machine,
    slot: &MachineSlot,
    old: &[Condition],
    now: Time,
) -> Condition {
    let (mut reason, mut message) = (machine.offer.reason(), machine.offer.message());
    if let (Some(why), Some(policy), true) =
        (&machine.unfit, &machine.policy, machine.offer == Offer::Offered)
    {
        reason = "PolicyUnfit";
        message = format!(
            "the node offers its resources as before: spec.config of NodePolicy {policy} cannot be used on it, {why}"
        );
    }
    let draining = machine.draining.as_ref().filter(|_| machine.offer == Offer::Offered);
    if let Some(draining) = draining {
        (reason, message) = drained(draining);
    }
    let broken = broken(machine, slot, &pool.startd(machine)).filter(|_| machine.offer == Offer::Offered);
    if let Some(Broken { code, reason: why }) = &broken {
        reason = "Broken";
        message = format!(
            "a cron job of the node's agent says that the slot is broken: {why} (SlotBrokenCode {code}); nothing new starts in it, and \
             what runs there goes on"
        );
    }
    let is_drained = draining.is_some_and(|draining| draining.start.is_none());
    let status = Some(machine.offer == Offer::Offered && !is_drained && broken.is_none());
    condition(old, Says { type_: types::OFFERED, status, reason, message }, None, now)
}

/// The reason and message of the condition `Offered` on a node that is drained. Until the node is empty, START of the
/// drain may let jobs in.
fn drained(draining: &Draining) -> (&'static str, String) {
    let (why, remedy) = match &draining.why {
        DrainedFor::Request(request) => {
            (format!("drained for DrainRequest {request}"), "delete the request to give the node back")
        }
        DrainedFor::Cordon => (
            "drained because it was cordoned".to_owned(),
            "the node is given back at once, as it is uncordoned",
        ),
    };
    match &draining.start {
        Some(start) => {
            ("Offered", format!("{why}; until the node is empty, it takes jobs for which {start} is true"))
        }
        None => ("Drained", format!("{why}; {remedy}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classad::Expr;
    use model::pool::{DrainSchedule, UnclaimedTime};

    #[test]
    fn a_drained_node_says_that_it_offers_nothing_and_how_to_give_it_back() {
        let draining = |start: Option<&str>| Draining {
            why: DrainedFor::Request("d1".into()),
            start: start.map(|start| Expr::parse(start).unwrap()),
            schedule: DrainSchedule::Graceful,
            resume: false,
            reason: "d1".into(),
            since: Time::default(),
            done: None,
            deadline: None,
            badput: 0,
            unclaimed: UnclaimedTime::new(0, 0, Time::default()),
        };
        assert_eq!(
            drained(&draining(None)),
            ("Drained", "drained for DrainRequest d1; delete the request to give the node back".to_owned())
        );
        let (reason, message) = drained(&draining(Some("TARGET.Short")));
        assert_eq!(
            (reason, message.as_str()),
            (
                "Offered",
                "drained for DrainRequest d1; until the node is empty, it takes jobs for which TARGET.Short is true"
            )
        );
    }
}
