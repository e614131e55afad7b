//! Decides when a slot must be looked at again if nothing happens before.

use super::policy::is_polled;
use super::step::earlier_pod_goes_by;
use super::view::{Off, View, span};
use crate::pool::{Claimed, Fence, Preempting, Slot, State, Time};
use classad::Ad;

/// The next time at which a slot may have something to do: the end of a span of time that runs, or the next evaluation
/// of its policy if the policy can change by itself.
pub fn wake(slot: &Slot, view: &View, job: Option<&Ad>) -> Option<Time> {
    let deadline = match slot.state() {
        State::Backfill(_) => Some(slot.claim().since + view.policy.match_timeout),
        State::Matched => Some(slot.phase().entered_state() + view.policy.match_timeout),
        State::Claimed(Claimed::Retiring) => {
            let (remaining, vacate) = view.terms(slot);
            (remaining > vacate).then(|| view.now + span(remaining - vacate))
        }
        State::Preempting(Preempting::Vacating) => slot.eviction().map(|eviction| eviction.until),
        State::Preempting(Preempting::Killing) => slot
            .eviction()
            .filter(|eviction| !eviction.agent_asked)
            .and_then(|eviction| Some(eviction.killed? + view.policy.killing_timeout)),
        _ => None,
    };
    let fence = match view.fence {
        Fence::At(at) if slot.state() == State::Preempting(Preempting::Killing) => Some(at),
        _ => None,
    };
    let polls = is_polled(view.policy, slot.state(), view.agent, job);
    let poll = polls.then(|| whole_second(view.now + view.policy.polling_interval));
    let gone = slot.running().and_then(|pod| pod.granted?.gone_by()).filter(|_| view.off == Off::NodeGone);
    // Only later times count: work that is due now was done now, or waits for something else.
    let waits = view.earlier_pod && slot.is_assigned();
    let earlier_pod = waits.then(|| earlier_pod_goes_by(slot));
    let start = view.not_before.filter(|_| slot.is_assigned());
    let deadlines = [deadline, fence, view.lease_ends, view.starts_by, gone, earlier_pod, start];
    deadlines.into_iter().flatten().filter(|at| *at > view.now).chain(poll).min()
}

/// The next whole second. Everything that is due within a second is done together.
fn whole_second(at: Time) -> Time {
    let floor = Time::from_secs(at.secs());
    if floor == at { at } else { Time::from_secs(at.secs().saturating_add(1)) }
}
