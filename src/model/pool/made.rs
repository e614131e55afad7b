//! Ads that were made of a machine and its slots, kept with all that they were made of: an ad is made again only when
//! something of that is different. Whoever changes a machine need not know of them.

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

/// The ad of what all slots of a machine share.
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

/// The ad of a slot that nothing is claimed of as a whole.
#[derive(Clone, Debug)]
pub struct MadeSlotAd {
    /// Both are known by their address: nothing else can have it while they are held here.
    config: Arc<StartdConfig>,
    machine: Ad,
    total: Resources,
    available: Resources,
    expected: Expected,
    dynamic: usize,
    /// Of the machine.
    slots: usize,
    state: State,
    entered_state: Time,
    entered_activity: Time,
    load: Load,
    latched: Vec<Latched>,
    ad: Ad,
}

impl Machine {
    /// The ad of what its slots share, if it was made and is as it would be made now.
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

    /// Keeps the ad that was made of the machine as it is.
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
    /// Its ad, if it was made and is as it would be made now, of the machine's ad, with so many slots there and this
    /// much to offer.
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

    /// Keeps the ad that was made of the slot as it is.
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
