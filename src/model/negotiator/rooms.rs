//! Searches partitionable slots that have too little left for a job: would there be room if dynamic slots were preempted?
//!
//! Source: the manual, "Dynamic Provisioning: Partitionable and Dynamic Slots": when slots are ranked "the ClassAd of the
//! partitionable slot is used". In HTCondor that ad has no `RemoteOwner`, so that the default ranks would preempt jobs on a full
//! machine while another machine is free. Here the ad that is ranked names a user, as the ads of all slots in use do.

use std::cmp::Reverse;

use super::candidates::{Judge, Search};
use super::dynamic::{self, Parent};
use super::order::Descending;
use classad::{Expr, Ranks, rank};

impl Judge<'_> {
    /// Adds to a search all partitionable slots in which the request fits only if dynamic slots are preempted.
    pub(super) fn look_for_rooms(&self, search: &mut Search) {
        let parents = self.dynamic.parents().filter(|place| self.available.contains(*place));
        for place in parents {
            let Some(slot) = self.consuming.get(&place) else { continue };
            if slot.is_used_up(&self.env) {
                search.matching.remove(place);
            }
            let fits = search.matching.contains(place)
                || slot.has_policy() && slot.matches(search.request(), &self.env);
            if !fits {
                self.look_for_room(search, place);
            }
        }
    }

    /// Adds one partitionable slot to a search, if the request fits there once dynamic slots are preempted.
    pub(super) fn look_for_room(&self, search: &mut Search, place: usize) {
        if !self.dynamic.is_parent(place) || !dynamic::is_wanted(search.request(), &self.env) {
            return;
        }
        let Some(left) = self.consuming.get(&place) else { return };
        let Self { roster, in_use, env, .. } = self;
        let at = Parent { slot: place, left, roster, in_use, env };
        let Some(room) = self.dynamic.room(&at, &search.prepared, search.submitter) else { return };
        let (ad, request) = (dynamic::seen_in_use(&left.ad), search.request());
        let number = |expr: &Option<Expr>| expr.as_ref()?.eval(Some(&ad), Some(request), env).as_number();
        let ranks = Ranks {
            pre_job: number(&self.config.pre_job_rank),
            job: rank(request, &ad, env),
            post_job: number(&self.config.post_job_rank),
        };
        let preference = self.ranked(place, ranks, room.preempt, Descending::of(room.rank, f64::MIN));
        search.others.extend(preference.map(Reverse));
        search.rooms.insert(place, room);
    }
}
