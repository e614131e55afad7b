//! Machines: nodes, and the machine slots into which each is divided.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Document;
use super::agent::ReportFacts;
use super::cron::Crontab;
use super::devices::Inventory;
use super::drain::{DrainedFor, Draining, History};
use super::ids::{MachineName, PodUid, PolicyName, SlotName};
use super::machine_slot::{MachineSlot, Share};
use super::made::MadeMachineAd;
use super::policy::{SlotConfig, StartdConfig};
use super::resources::{Capacity, ResourceName, Resources};
use super::slot_types::{Kind as SlotKind, Quantity};
use super::time::Time;
use crate::BoxMap;
use classad::Expr;

/// The facts of a node, as the shell sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineFacts {
    /// The node's name.
    pub name: MachineName,
    /// `kubernetes.io/arch`, such as `amd64`.
    pub arch: Arc<str>,
    /// `kubernetes.io/os`, such as `linux`.
    pub os: Arc<str>,
    /// The node's labels.
    pub labels: Arc<BTreeMap<String, String>>,
    /// The resources that the kubelet lets pods use.
    pub allocatable: Capacity,
    /// Whether the node reports `Ready`.
    pub ready: bool,
    /// Whether the node is cordoned.
    pub cordoned: bool,
    /// Taints that keep pods away: effect `NoSchedule` or `NoExecute`, without the taints that repeat what `ready` and
    /// `cordoned` say.
    pub taints: Vec<Taint>,
    /// The operating system that the node runs.
    pub system: System,
}

/// A node's operating system, as its kubelet reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// `osImage`, such as `Ubuntu 24.04.1 LTS`.
    pub image: Arc<str>,
    /// `kernelVersion`, such as `6.8.0-45-generic`.
    pub kernel: Arc<str>,
}

impl MachineFacts {
    /// The facts of a node of which only the name is known.
    pub fn of_nothing(name: MachineName) -> Self {
        Self {
            name,
            arch: "".into(),
            os: "".into(),
            labels: Arc::default(),
            allocatable: Capacity::default(),
            ready: false,
            cordoned: false,
            taints: Vec::new(),
            system: System::default(),
        }
    }
}

/// The taint by which an admin says that a node is off and stays off.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// The key.
    pub key: String,
    /// The value; empty if the taint has none.
    pub value: String,
    /// The effect.
    pub effect: String,
}

/// Signs of a machine's owner, which an agent senses. Without an agent, nothing is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensed {
    /// The last input on any terminal.
    pub keyboard: LastInput,
    /// The last input on the console: keyboard and mouse of the machine itself.
    pub console: LastInput,
    /// The load of processes that are not the pool's, in processes.
    pub owner_load: f64,
}

/// A slot's part of the machine's load, in processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// The slot's part of the owner's load.
    pub owner: f64,
    /// The load that the slot's job causes: `CondorLoadAvg`.
    pub condor: f64,
}

/// When somebody last used a keyboard, a mouse or a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastInput {
    /// Somebody is using it now.
    Ongoing,
    /// The last input was at this time.
    At(Time),
}

/// Whether a machine offers its resources to new jobs, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// The machine offers its resources.
    Offered,
    /// The node does not report `Ready`.
    NotReady,
    /// The node's kubelet has not renewed its Lease in time.
    Silent,
    /// The node's agent has not renewed its Lease in time. The agent ends the pods of claims when it is cut off for as
    /// long as their leases, so that a new job would be ended, too.
    AgentSilent,
    /// An admin cordoned the node.
    Cordoned,
    /// The node has a taint that no policy tolerates.
    Tainted(String),
    /// The policy that selects the node was never valid, so that nobody knows what the node's owner wants.
    PolicyNotAccepted(PolicyName),
    /// The text of the policy that selects the node cannot be used on this node; the text says why.
    PolicyUnfit(PolicyName, String),
    /// The node is to be divided into other slots, and claims on the present slots live.
    LayoutWaits,
    /// The node was deleted.
    Gone,
}

impl Offer {
    /// The reason in one word, for conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Offered => "Offered",
            Self::NotReady => "NotReady",
            Self::Silent => "Silent",
            Self::AgentSilent => "AgentSilent",
            Self::Cordoned => "Cordoned",
            Self::Tainted(_) => "Tainted",
            Self::PolicyNotAccepted(_) => "PolicyNotAccepted",
            Self::PolicyUnfit(..) => "PolicyUnfit",
            Self::LayoutWaits => "LayoutWaits",
            Self::Gone => "NodeGone",
        }
    }

    /// The reason for people.
    pub fn message(&self) -> String {
        match self {
            Self::Offered => "the node offers its resources to jobs".to_owned(),
            Self::NotReady => "the node does not report Ready: nothing new starts on it".to_owned(),
            Self::Silent => {
                "the node's kubelet has not renewed its Lease in time: nothing new starts on it until it does"
                    .to_owned()
            }
            Self::AgentSilent => {
                "the node's agent has not renewed its Lease in time: cut off, it ends what runs there once the leases of the claims are over, so that nothing new starts until it is back"
                    .to_owned()
            }
            Self::Cordoned => {
                "the node is cordoned: nothing new starts on it until it is uncordoned".to_owned()
            }
            Self::Tainted(key) => {
                format!(
                    "the node has the taint {key}; a NodePolicy for it may tolerate it in spec.tolerations"
                )
            }
            Self::PolicyNotAccepted(name) => {
                format!(
                    "NodePolicy {name} selects the node and was not accepted; see the policy's conditions"
                )
            }
            Self::PolicyUnfit(name, why) => {
                format!("spec.config of NodePolicy {name} cannot be used on this node: {why}")
            }
            Self::LayoutWaits => {
                "the policy lays the node out into other slots; nothing new starts until the claims on the present ones have ended"
                    .to_owned()
            }
            Self::Gone => "the node was deleted".to_owned(),
        }
    }
}

impl Machine {
    /// The node and why it offers nothing, as part of a sentence: `n1 is cordoned`.
    pub fn withheld(&self) -> String {
        let name = &self.facts.name;
        match &self.offer {
            Offer::Offered => format!("{name} offers its resources"),
            Offer::NotReady => format!("{name} is not Ready"),
            Offer::Silent => format!("{name} is silent: its kubelet does not renew its Lease"),
            Offer::AgentSilent => format!("{name} is silent: its agent does not renew its Lease"),
            Offer::Cordoned => match self.draining.as_ref().map(|draining| &draining.why) {
                None => format!("{name} is cordoned"),
                Some(DrainedFor::Cordon) => format!("{name} is cordoned, and is drained"),
                Some(DrainedFor::Request(request)) => {
                    format!("{name} is cordoned, and is drained for DrainRequest {request}")
                }
            },
            Offer::Tainted(key) => format!("{name} has the taint {key}"),
            Offer::PolicyNotAccepted(policy) => {
                format!("{name} is governed by NodePolicy {policy}, which is not accepted")
            }
            Offer::PolicyUnfit(policy, _) => {
                format!("{name} is governed by NodePolicy {policy}, which cannot be used there")
            }
            Offer::LayoutWaits => format!("{name} waits for its claims to end, to be divided anew"),
            Offer::Gone => format!("{name} was deleted"),
        }
    }
}

/// The configuration that a policy's text gives on one machine, if the text gives another on other machines.
#[derive(Clone, Debug)]
pub struct OwnConfig {
    /// The policy's configuration that contains the text.
    pub of: Arc<StartdConfig>,
    /// The macros that describe the machine, such as `DETECTED_CPUS`, with their values.
    pub macros: Vec<(String, String)>,
    /// The configuration, or why the text cannot be used on this machine.
    pub config: Result<Arc<StartdConfig>, String>,
}

/// A machine with its slots.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The facts of the node, as the shell saw them last.
    pub facts: MachineFacts,
    /// The requests of pods outside the pool on the machine.
    pub foreign: Capacity,
    /// The part of the requests of the pool's own pods that is beyond their slots, because admission added to their requests. The
    /// layout does not depend on this amount, and no slot is smaller because of it; but less can be carved.
    beyond: Capacity,
    /// The part of `total` that cannot be carved because of `beyond`.
    lost: Resources,
    /// Whether an agent works on the machine: it senses the owner, suspends pods and runs benchmarks.
    pub agent: bool,
    /// Signs of the machine's owner, while an agent works.
    pub sensed: Option<Sensed>,
    /// The last report of the machine's agent, whether or not the agent works now.
    pub report: Option<Arc<ReportFacts>>,
    /// The policy that governs the machine.
    pub policy: Option<PolicyName>,
    /// The policies that select the machine with the same, greatest precedence, if there are several: the first by name governs. Empty
    /// otherwise.
    pub tied: Vec<PolicyName>,
    /// The configuration that the policy's text gives on this machine, if the text depends on the machine.
    pub own_config: Option<OwnConfig>,
    /// The configuration in force: the last one that could be used on this machine.
    pub in_force: Option<Arc<StartdConfig>>,
    /// Why the policy's present text cannot be used on this machine.
    pub unfit: Option<String>,
    /// Custom resources that the configuration declares, in addition to those of the node: `MACHINE_RESOURCE_<name>`.
    pub declared: BTreeMap<ResourceName, Quantity>,
    /// The machine's devices, with their properties.
    pub devices: Inventory,
    /// Whether the machine offers its resources to new jobs, and if not, why.
    pub offer: Offer,
    /// Since when the operator has known the machine; stands for the time since which a startd would have run.
    pub since: Time,
    /// The machine's local time, in seconds east of Greenwich.
    pub utc_offset: i32,
    /// `STARTD_SLOT_ATTRS`: attributes of each slot that the ads of all slots show, such as `slot2_State`.
    pub crossed: Arc<[(String, Expr)]>,
    /// The slot that runs benchmarks, and since when.
    pub benchmarking: Option<(u32, Time)>,
    /// The cron jobs that the machine's agent was last asked to run, and when it was asked.
    pub cron_asked: Option<(Arc<Crontab>, Time)>,
    /// The drain that is under way, or that has emptied the machine.
    pub draining: Option<Draining>,
    /// The cost of past drains.
    pub drains: History,
    /// The attributes that say what a drain would cost now, and how long it would take:
    /// `ExpectedMachineGracefulDrainingBadput` and the like.
    pub expected: Expected,
    /// When the deadline of the machine's drain was last computed.
    pub looked_at: Option<Time>,
    /// The resources that the pool may carve: the allocatable resources less the requests of pods outside the pool.
    pub total: Resources,
    /// The resources that the claims on all slots of the machine hold.
    pub carved: Resources,
    /// The machine slots, by `SlotID`.
    pub machine_slots: BoxMap<u32, MachineSlot>,
    /// The part of the ad that all slots of the machine share.
    pub(super) ad: Option<MadeMachineAd>,
}

/// Attributes that say what a drain would cost, with their expressions.
pub type Expected = Arc<[(&'static str, Expr)]>;

/// The result of dividing a machine into slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relaid {
    /// Slots that are new, gone, or of another size.
    pub changed: Vec<SlotName>,
    /// Claims keep the machine from being divided: it stays as it was.
    pub waits: bool,
}

impl Machine {
    /// A machine that was just seen: one partitionable slot with all resources, until a policy divides the machine in
    /// another way.
    pub fn new(facts: MachineFacts, foreign: Capacity, now: Time) -> Self {
        let mut machine = Self {
            facts,
            foreign,
            beyond: Capacity::default(),
            lost: Resources::default(),
            agent: false,
            sensed: None,
            report: None,
            policy: None,
            tied: Vec::new(),
            own_config: None,
            in_force: None,
            unfit: None,
            declared: BTreeMap::new(),
            devices: Inventory::new(),
            offer: Offer::NotReady,
            since: now,
            utc_offset: 0,
            crossed: Arc::default(),
            benchmarking: None,
            cron_asked: None,
            draining: None,
            drains: History::default(),
            expected: Arc::default(),
            looked_at: None,
            total: Resources::default(),
            carved: Resources::default(),
            machine_slots: BoxMap::default(),
            ad: None,
        };
        machine.recount();
        machine.lay_out(machine.undivided(), now);
        machine
    }

    /// A machine whose node was deleted while claims on it live.
    pub fn gone(name: MachineName, foreign: Capacity, now: Time) -> Self {
        Self { offer: Offer::Gone, ..Self::new(MachineFacts::of_nothing(name), foreign, now) }
    }

    /// The layout of a machine without slot types: one partitionable slot.
    pub fn undivided(&self) -> Vec<Share> {
        vec![Share { slot_type: 0, kind: SlotKind::Partitionable, resources: self.total.clone() }]
    }

    /// Whether disk is managed on the machine: the node reports how much the node has. Pods outside the pool may hold all of it.
    pub const fn manages_disk(&self) -> bool {
        self.facts.allocatable.disk > 0
    }

    /// Computes the total anew, after the node, its agent's report, or the pods outside the pool changed.
    pub fn recount(&mut self) {
        let mut left = self.facts.allocatable.clone();
        left.subtract(&self.foreign);
        for (name, quantity) in &self.declared {
            if !left.extended.contains_key(name) {
                left.extended.insert(name.clone(), quantity.count());
            }
        }
        self.devices = self.find_devices();
        self.total = left.whole().with_devices(&self.devices);
        self.count_lost();
    }

    /// Changes what the pool's pods request beyond their slots. Returns whether another amount can be carved now.
    pub(super) fn change_beyond(&mut self, change: impl FnOnce(&mut Capacity)) -> bool {
        change(&mut self.beyond);
        let before = std::mem::take(&mut self.lost);
        self.count_lost();
        before != self.lost
    }

    /// Rounds once, after everything was subtracted. A tenth of a CPU that is requested may belong to a CPU of which
    /// the rest is in use anyway.
    fn count_lost(&mut self) {
        let mut left = self.facts.allocatable.clone();
        left.subtract(&self.foreign);
        let mut lost = left.whole();
        left.subtract(&self.beyond);
        lost.subtract(&left.whole());
        self.lost = lost;
    }

    /// Notes how many CPUs no claim has, while the machine is drained.
    pub fn count_unclaimed(&mut self, now: Time) {
        let cpus = self.available().cpus;
        if let Some(draining) = &mut self.draining {
            draining.unclaimed.advance(cpus, now);
        }
    }

    /// Whether the agent's report says that the processes of a pod are suspended.
    pub fn suspends(&self, pod: &PodUid) -> bool {
        self.report.as_ref().is_some_and(|report| report.suspended.contains(pod))
    }

    /// Divides the machine into slots. If the new layout has the same slots with other sizes, slots keep their states
    /// and claims keep what they hold. If the slots are others, the machine stays as it is while it has claims.
    pub fn lay_out(&mut self, shares: Vec<Share>, now: Time) -> Relaid {
        // As long as only claims of some slots are known (after a change of leader), the machine's other slots are
        // missing here.
        let adopted = self.machine_slots.values().any(|slot| slot.slot_type.is_none());
        let of = |(slot, share): (&MachineSlot, &Share)| slot.is_of(share);
        let same = if adopted {
            let share = |id: u32| usize::try_from(id).ok().and_then(|id| shares.get(id.checked_sub(1)?));
            self.slots()
                .filter(|slot| slot.is_held())
                .all(|slot| share(slot.id).is_some_and(|s| of((slot, s))))
        } else {
            self.machine_slots.len() == shares.len() && self.slots().zip(&shares).all(of)
        };
        let mut relaid = Relaid::default();
        if !same && self.is_held() {
            relaid.waits = true;
            return relaid;
        }
        if adopted {
            let free = self.machine_slots.values().filter(|slot| !slot.is_held());
            relaid.changed.extend(free.map(|slot| slot.name(&self.facts.name)));
            self.machine_slots.retain(|_, slot| slot.is_held());
        }
        if !same {
            relaid.changed.extend(self.machine_slots.values().map(|slot| slot.name(&self.facts.name)));
            self.machine_slots = BoxMap::default();
        }
        for (id, share) in (1..).zip(shares) {
            let name = SlotName { machine: self.facts.name.clone(), slot: id, dynamic: None };
            if let Some(slot) = self.machine_slots.get_mut(&id) {
                relaid.changed.extend(slot.resize(&share).then_some(name));
            } else {
                self.machine_slots.insert(id, MachineSlot::new(id, share, now));
                relaid.changed.push(name);
            }
        }
        relaid
    }

    /// Adds or keeps the machine slot of a claim that is known while the layout is not.
    pub fn stand(&mut self, claimed: &SlotName, now: Time) {
        let kind = if claimed.dynamic.is_some() { SlotKind::Partitionable } else { SlotKind::Static };
        match self.machine_slots.get_mut(&claimed.slot) {
            // This slot was made before any policy was read: nobody knows its type.
            Some(slot) if slot.kind == kind => slot.slot_type = None,
            Some(slot) if slot.is_held() => {}
            _ => {
                let adopted = MachineSlot::adopted(claimed.slot, kind, now);
                self.machine_slots.insert(claimed.slot, adopted);
            }
        }
    }

    /// The objects of the machine slots.
    pub fn documents(&self) -> impl Iterator<Item = Document> {
        self.machine_slots.values().map(|slot| slot.document(&self.facts.name))
    }

    /// The machine slots, in the order of their ids.
    pub fn slots(&self) -> impl Iterator<Item = &MachineSlot> {
        self.machine_slots.values()
    }

    /// Whether the machine has claims.
    pub fn is_held(&self) -> bool {
        self.machine_slots.values().any(MachineSlot::is_held)
    }

    /// The claimed slots on the machine.
    pub fn claimed_slots(&self) -> impl Iterator<Item = SlotName> {
        self.machine_slots.values().flat_map(|slot| slot.claimed_slots(&self.facts.name))
    }

    /// The part of a configuration that holds for one of the machine's slots.
    pub fn slot_config<'a>(&self, config: &'a StartdConfig, id: u32) -> &'a Arc<SlotConfig> {
        config.slot(id, self.machine_slots.get(&id).and_then(|slot| slot.slot_type))
    }

    /// How many slots the machine has, including dynamic slots: `TotalSlots`.
    pub fn slot_count(&self) -> usize {
        self.machine_slots.values().map(|slot| 1 + slot.dynamic.len()).sum()
    }

    /// The resources that are left to carve, over all slots of the machine.
    pub fn available(&self) -> Resources {
        self.balance().floor_at_zero()
    }

    /// The total less what claims hold and wait for; negative if claims hold more than the machine has.
    fn balance(&self) -> Resources {
        let mut left = self.total.clone();
        left.subtract(&self.carved);
        left.subtract(&self.lost);
        self.machine_slots
            .values()
            .filter_map(|slot| slot.kept.as_ref())
            .for_each(|kept| left.subtract(kept));
        left
    }

    /// The resources that are left to carve from one of the machine's slots. Pods outside the pool may have taken part
    /// of the slot's share, so that no more is left than the whole machine has left.
    pub fn available_in(&self, slot: &MachineSlot) -> Resources {
        slot.uncarved().at_most(&self.available())
    }

    /// How much more the claims on one of the machine's slots hold than the slot has, after the node or its offer
    /// shrank.
    ///
    /// When these claims return resources, this amount of them goes to nobody.
    pub fn overdrawn_in(&self, slot: &MachineSlot) -> Resources {
        let mut missing = Resources::default();
        missing.subtract(&slot.balance().at_most(&self.balance()));
        missing.floor_at_zero()
    }

    /// The resources of one of the machine's slots that no claim holds, including those that are kept for a claim that waits.
    pub fn unheld_in(&self, slot: &MachineSlot) -> Resources {
        let mut left = self.available_in(slot);
        if let Some(kept) = &slot.kept {
            left.add(kept);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit;

    fn machine() -> Machine {
        Machine::new(
            kit::machine("node1", 8, 16),
            Capacity { milli_cpu: 250, ..Capacity::default() },
            Time::from_secs(0),
        )
    }

    #[test]
    fn pods_of_others_reduce_what_is_offered() {
        assert_eq!(machine().total.cpus, 7);
    }

    fn share(slot_type: u32, kind: SlotKind, cpus: i64) -> Share {
        Share { slot_type, kind, resources: Resources { cpus, ..Resources::default() } }
    }

    /// A new leader knows claims before it knows the layout. Each claim is on the slot where the layout has it,
    /// whatever the claim calls the slot.
    #[test]
    fn a_layout_is_found_again_under_the_claims_that_live() {
        let (mut machine, name) =
            (machine(), |slot| SlotName { machine: "node1".into(), slot, dynamic: Some(1) });
        for id in [1, 2, 4] {
            machine.stand(&name(id), Time::from_secs(1));
            machine.machine_slots.get_mut(&id).unwrap().dynamic.insert(1);
        }
        machine.machine_slots.get_mut(&4).unwrap().dynamic.clear();
        let halves = vec![share(1, SlotKind::Partitionable, 3), share(2, SlotKind::Partitionable, 4)];
        let relaid = machine.lay_out(halves, Time::from_secs(2));
        assert!(!relaid.waits);
        assert_eq!(machine.machine_slots.values().map(|slot| slot.total.cpus).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(
            machine.machine_slots.values().map(|slot| slot.slot_type).collect::<Vec<_>>(),
            [Some(1), Some(2)]
        );
        let changed: Vec<String> = relaid.changed.iter().map(ToString::to_string).collect();
        assert!(changed.contains(&"slot4@node1".to_owned()), "its object goes: {changed:?}");
    }

    #[test]
    fn another_layout_waits_for_claims_and_another_size_does_not() {
        let mut machine = machine();
        assert_eq!(machine.machine_slots.len(), 1);
        let halves = || vec![share(1, SlotKind::Static, 3), share(1, SlotKind::Static, 4)];
        assert!(!machine.lay_out(halves(), Time::from_secs(1)).waits);
        assert_eq!(machine.machine_slots.values().map(|slot| slot.total.cpus).collect::<Vec<_>>(), [3, 4]);
        machine.machine_slots.get_mut(&2).unwrap().claimed = true;
        let smaller = vec![share(1, SlotKind::Static, 2), share(1, SlotKind::Static, 3)];
        let relaid = machine.lay_out(smaller.clone(), Time::from_secs(2));
        assert_eq!(relaid.changed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["slot1@node1"]);
        assert_eq!(machine.machine_slots.values().map(|slot| slot.total.cpus).collect::<Vec<_>>(), [2, 4]);
        let whole = vec![share(0, SlotKind::Partitionable, 7)];
        assert!(machine.lay_out(whole.clone(), Time::from_secs(3)).waits);
        assert_eq!(machine.machine_slots.len(), 2);
        machine.machine_slots.get_mut(&2).unwrap().claimed = false;
        assert_eq!(machine.lay_out(smaller, Time::from_secs(4)).changed.len(), 1, "what the claim held");
        assert!(!machine.lay_out(whole, Time::from_secs(5)).waits);
        assert_eq!(machine.machine_slots.len(), 1);
    }
}
