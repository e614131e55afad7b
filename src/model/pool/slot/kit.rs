//! Setters for tests, which put a slot directly into a condition that would take many happenings to reach.

use super::activation::{Activation, Running};
use super::record::Record;
use super::{Number, Removal, Slot};
use crate::pool::event::Remains;
use crate::pool::ids::PodRef;
use crate::pool::leaving::{Preemptor, Retirement};

#[allow(missing_docs, clippy::missing_panics_doc, reason = "setters for tests, named for their fields")]
impl Slot {
    pub fn set_activation(&mut self, activation: Activation) {
        self.activation = activation;
    }

    pub fn set_record(&mut self, record: Record) {
        self.record = record;
    }

    pub fn set_removal(&mut self, removal: Option<Removal>) {
        self.removal = removal;
    }

    pub fn retirement(&self) -> Option<&Retirement> {
        self.retirement.as_deref()
    }

    pub fn set_preemptor(&mut self, next: Option<Preemptor>) {
        self.preempting = next.map(Box::new);
    }

    pub fn running_mut(&mut self) -> &mut Running {
        self.activation.running_mut().expect("the slot has a pod")
    }

    /// Sets whether the pod of a proc that has not ended is being deleted.
    pub fn mark_deleting(&mut self, deleting: bool) {
        if let Activation::Active(running) = &mut self.activation {
            running.deleting = deleting;
        }
    }

    /// The remains of a pod whose proc has ended.
    pub fn remains(&self) -> Option<Remains> {
        match self.activation {
            Activation::Ended(_, remains) => Some(remains),
            _ => None,
        }
    }

    /// Ends the proc, and leaves nothing of its pod.
    pub fn end(&mut self, pod: &PodRef) {
        let running = Running { deleting: true, ..*self.activation.take_pod(pod) };
        self.activation = Activation::Ended(Box::new(running), Remains::Nothing);
    }
}

impl Number {
    /// Stands for 12a where a test lists numbers.
    pub const TWELVE_A: u8 = 112;

    /// The number as tests list it.
    pub fn listed(self) -> u8 {
        self.whole().unwrap_or(Self::TWELVE_A)
    }
}

impl Running {
    /// A pod whose containers have started.
    pub fn that_runs(pod: PodRef) -> Self {
        Self { runs: true, ..Self::of(pod) }
    }
}
