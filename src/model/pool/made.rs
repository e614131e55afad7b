//! Keeps the ads of a machine and its slots, each together with the facts that the ad was made of. An ad is made again
//! only if one of these facts has changed. So code that changes a machine need not know of the machine's ads.

use std::sync::Arc;

use super::agent::ReportFacts;
use super::drain::{Draining, History};
use super::machine::{Expected, Load, Machine, MachineFacts, Sensed};
use super::machine_slot::MachineSlot;
use super::policy::StartdConfig;
use super::resources::Resources;
use super::slot::{Latched, State};
use super::time::Time;
use classad::{Ad, Expr};

/// The ads that were made last. The next ads share memory with these: most attributes of a cluster's machines are alike.
#[derive(Clone, Debug, Default)]
pub struct LastAds {
    machine: Ad,
    slot: Ad,
}

impl LastAds {
    /// Takes the ad that a machine's slots share, which has just been made.
    pub fn take_machines(&mut self, ad: &mut Ad) {
        ad.share_with(&self.machine);
        self.machine = ad.clone();
    }

    /// Takes the ad of a machine slot, which has just been made.
    pub fn take_slots(&mut self, ad: &mut Ad) {
        ad.share_with(&self.slot);
        self.slot = ad.clone();
    }
}

/// The part of the ad that all slots of a machine share, with what it was made of.
#[derive(Clone, Debug)]
pub struct MadeMachineAd {
    facts: MachineFacts,
    total: Resources,
    sensed: Option<Sensed>,
    draining: Option<Draining>,
    drains: History,
    report: Option<Arc<ReportFacts>>,
    since: Time,
    utc_offset: i32,
    crossed: Arc<[(String, Expr)]>,
    ad: Ad,
}

/// The ad of a machine slot, with what it was made of.
#[derive(Clone, Debug)]
pub struct MadeSlotAd {
    /// `config` and `machine` are compared by address. Since they are held here, nothing else can have the same
    /// address.
    config: Arc<StartdConfig>,
    machine: Ad,
    total: Resources,
    available: Resources,
    expected: Expected,
    dynamic: usize,
    /// The number of slots of the machine.
    slots: usize,
    state: State,
    entered_state: Time,
    entered_activity: Time,
    load: Load,
    latched: Vec<Latched>,
    ad: Ad,
}

impl Machine {
    /// The ad that the machine's slots share, if it was made and would be the same if it were made now.
    pub fn made_ad(&self) -> Option<Ad> {
        let of = |made: &&MadeMachineAd| {
            self.total == made.total
                && self.sensed == made.sensed
                && self.draining == made.draining
                && self.drains == made.drains
                && self.report == made.report
                && self.since == made.since
                && self.utc_offset == made.utc_offset
                && self.crossed == made.crossed
                && self.facts == made.facts
        };
        self.ad.as_ref().filter(of).map(|made| made.ad.clone())
    }

    /// Forgets the ad of a slot that has nothing left to match, and the ad that the machine's slots share once no slot needs that ad. Ads of
    /// full machines would be the largest part of a busy pool's memory.
    pub fn forget_ad_of(&mut self, id: u32) {
        if let Some(slot) = self.machine_slots.get_mut(&id) {
            slot.ads = None;
        }
        if self.machine_slots.values().all(|slot| slot.ads.is_none()) {
            self.ad = None;
        }
    }

    /// Keeps the ad that was made of the machine in its present state.
    pub fn keep_ad(&mut self, ad: Ad) {
        self.ad = Some(MadeMachineAd {
            facts: self.facts.clone(),
            total: self.total.clone(),
            sensed: self.sensed,
            draining: self.draining.clone(),
            drains: self.drains,
            report: self.report.clone(),
            since: self.since,
            utc_offset: self.utc_offset,
            crossed: Arc::clone(&self.crossed),
            ad,
        });
    }
}

impl MachineSlot {
    /// The slot's ad, if it was made and would be the same if it were made now: of the ad `machine`, with `slots` slots
    /// on the machine and with `available` left to carve.
    pub fn made_ad(
        &self,
        config: &StartdConfig,
        machine: &Ad,
        slots: usize,
        available: &Resources,
        expected: &Expected,
    ) -> Option<Ad> {
        let of = |made: &&MadeSlotAd| {
            std::ptr::eq(Arc::as_ptr(&made.config), config)
                && made.machine.is_same(machine)
                && made.dynamic == self.dynamic.len()
                && made.slots == slots
                && made.state == self.state()
                && made.entered_state == self.phase().entered_state()
                && made.entered_activity == self.phase().entered_activity()
                && made.load == self.load
                && made.latched == self.latched
                && made.total == self.total
                && made.available == *available
                && Arc::ptr_eq(&made.expected, expected)
        };
        self.ads.as_ref().filter(of).map(|made| made.ad.clone())
    }

    /// Keeps the ad that was made of the slot in its present state.
    pub fn keep_ad(
        &mut self,
        config: &Arc<StartdConfig>,
        machine: Ad,
        slots: usize,
        available: Resources,
        expected: Expected,
        ad: Ad,
    ) {
        self.ads = Some(MadeSlotAd {
            config: Arc::clone(config),
            machine,
            total: self.total.clone(),
            available,
            expected,
            dynamic: self.dynamic.len(),
            slots,
            state: self.state(),
            entered_state: self.phase().entered_state(),
            entered_activity: self.phase().entered_activity(),
            load: self.load,
            latched: self.latched.clone(),
            ad,
        });
    }
}
