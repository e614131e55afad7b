//! Ads that were made of a machine, kept with all that they were made of: an ad is made again only when something of that
//! is different. Whoever changes a machine need not know of them.

use std::sync::Arc;

use super::machine::{Machine, MachineFacts, Sensed};
use super::policy::StartdConfig;
use super::resources::Resources;
use super::slot::State;
use super::time::Time;
use crate::classad::Ad;

/// The machine's own ad, and that of its partitionable slot.
#[derive(Clone, Debug)]
pub struct MadeAds {
    /// Known by its address: nothing else can have it while it is held here.
    config: Arc<StartdConfig>,
    facts: MachineFacts,
    total: Resources,
    sensed: Option<Sensed>,
    machine: Ad,
    carved: Resources,
    dynamic: usize,
    state: State,
    entered_state: Time,
    slot: Ad,
}

impl MadeAds {
    fn is_of(&self, machine: &Machine, config: &StartdConfig) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.config), config)
            && self.total == machine.total
            && self.sensed == machine.sensed
            && self.facts == machine.facts
    }

    fn is_of_slot(&self, machine: &Machine) -> bool {
        self.dynamic == machine.dynamic.len()
            && self.state == machine.state
            && self.entered_state == machine.entered_state
            && self.carved == machine.carved
    }
}

impl Machine {
    /// The machine's own ad, if it was made and is as it would be made now.
    pub fn made_ad(&self, config: &StartdConfig) -> Option<Ad> {
        self.ads.as_ref().filter(|ads| ads.is_of(self, config)).map(|ads| ads.machine.clone())
    }

    /// The ad of the partitionable slot, if it was made and is as it would be made now.
    pub fn made_slot_ad(&self, config: &StartdConfig) -> Option<Ad> {
        let ads = self.ads.as_ref().filter(|ads| ads.is_of(self, config) && ads.is_of_slot(self))?;
        Some(ads.slot.clone())
    }

    /// Keeps the ads that were made of the machine as it is.
    pub fn keep_ads(&mut self, config: &Arc<StartdConfig>, machine: Ad, slot: Ad) {
        self.ads = Some(MadeAds {
            config: Arc::clone(config),
            facts: self.facts.clone(),
            total: self.total.clone(),
            sensed: self.sensed,
            machine,
            carved: self.carved.clone(),
            dynamic: self.dynamic.len(),
            state: self.state,
            entered_state: self.entered_state,
            slot,
        });
    }
}
