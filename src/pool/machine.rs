//! Machines: nodes, and the partitionable slot that each one is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::agent::ReportFacts;
use super::ids::{MachineName, PodUid, PolicyName, SlotName};
use super::made::MadeAds;
use super::policy::StartdConfig;
use super::resources::{Capacity, Resources};
use super::slot::State;
use super::time::Time;

/// What the shell sees of a node.
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
    /// What the kubelet lets pods use.
    pub allocatable: Capacity,
    /// Whether the node reports `Ready`.
    pub ready: bool,
    /// Whether the node is cordoned.
    pub cordoned: bool,
    /// Taints that keep pods away: effect `NoSchedule` or `NoExecute`, without those that say what `ready` and `cordoned`
    /// say.
    pub taints: Vec<Taint>,
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// The key.
    pub key: String,
    /// The value, empty where there is none.
    pub value: String,
    /// The effect.
    pub effect: String,
}

/// What is sensed on a machine of its owner. Nothing is known of a machine on which nobody senses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensed {
    /// The last input on any terminal.
    pub keyboard: LastInput,
    /// The last input on the console: keyboard and mouse of the machine itself.
    pub console: LastInput,
    /// The load that is not the pool's, in processes.
    pub owner_load: f64,
}

/// When somebody last touched something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastInput {
    /// Somebody is at it.
    Ongoing,
    /// Then.
    At(Time),
}

/// Whether a machine offers what it has, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It does.
    Offered,
    /// Its kubelet is not ready.
    NotReady,
    /// Its kubelet has not renewed its Lease in time.
    Silent,
    /// An admin cordoned it.
    Cordoned,
    /// It has a taint that no policy tolerates.
    Tainted(String),
    /// The policy that selects it was never valid: what its owner wants is not known.
    PolicyNotAccepted(PolicyName),
    /// The text of the policy that selects it cannot be used on this machine, and why.
    PolicyUnfit(PolicyName, String),
    /// Its node was deleted.
    Gone,
}

impl Offer {
    /// The reason in one word, for conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Offered => "Offered",
            Self::NotReady => "NotReady",
            Self::Silent => "Silent",
            Self::Cordoned => "Cordoned",
            Self::Tainted(_) => "Tainted",
            Self::PolicyNotAccepted(_) => "PolicyNotAccepted",
            Self::PolicyUnfit(..) => "PolicyUnfit",
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
            Self::Gone => "the node was deleted".to_owned(),
        }
    }
}

/// What a policy's text comes to on one machine, where it says something else on others.
#[derive(Clone, Debug)]
pub struct OwnConfig {
    /// The policy's configuration that it was made of.
    pub of: Arc<StartdConfig>,
    /// The macros that stood for the machine.
    pub macros: Vec<(String, String)>,
    /// The configuration, or why the text cannot be used here.
    pub config: Result<Arc<StartdConfig>, String>,
}

/// A machine with its partitionable slot.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What the shell saw last.
    pub facts: MachineFacts,
    /// What pods outside the pool request on it.
    pub foreign: Capacity,
    /// An agent is at work on it: it senses, suspends pods and runs benchmarks.
    pub agent: bool,
    /// What is sensed of its owner, while an agent is at work.
    pub sensed: Option<Sensed>,
    /// What its agent reported last, at work or not.
    pub report: Option<Arc<ReportFacts>>,
    /// The policy that governs it.
    pub policy: Option<PolicyName>,
    /// What the policy's text comes to here, where it depends on the machine.
    pub own_config: Option<OwnConfig>,
    /// Whether it offers anything.
    pub offer: Offer,
    /// What the pool may carve: allocatable less foreign.
    pub total: Resources,
    /// What is carved, over all dynamic slots.
    pub carved: Resources,
    /// `DSlotID`s in use.
    pub dynamic: BTreeSet<u32>,
    /// State of the partitionable slot: Owner or Unclaimed.
    pub state: State,
    /// When it entered that state.
    pub entered_state: Time,
    /// Ads that were made of it.
    pub(super) ads: Option<MadeAds>,
}

impl Machine {
    /// A machine just seen. It starts in Owner, as a startd does.
    pub fn new(facts: MachineFacts, foreign: Capacity, now: Time) -> Self {
        let mut machine = Self {
            facts,
            foreign,
            agent: false,
            sensed: None,
            report: None,
            policy: None,
            own_config: None,
            offer: Offer::NotReady,
            total: Resources::default(),
            carved: Resources::default(),
            dynamic: BTreeSet::new(),
            state: State::Owner,
            entered_state: now,
            ads: None,
        };
        machine.recount();
        machine
    }

    /// A machine whose node was deleted while claims on it live.
    pub fn gone(name: MachineName, now: Time) -> Self {
        let facts = MachineFacts {
            name,
            arch: "".into(),
            os: "".into(),
            labels: Arc::default(),
            allocatable: Capacity::default(),
            ready: false,
            cordoned: false,
            taints: Vec::new(),
        };
        Self { offer: Offer::Gone, ..Self::new(facts, Capacity::default(), now) }
    }

    /// The name of its partitionable slot.
    pub fn slot_name(&self) -> SlotName {
        SlotName { machine: self.facts.name.clone(), slot: 1, dynamic: None }
    }

    /// Works out the total anew after the node or the pods of others changed.
    pub fn recount(&mut self) {
        let mut left = self.facts.allocatable.clone();
        left.subtract(&self.foreign);
        self.total = left.whole();
    }

    /// Whether the agent says that the processes of a pod are suspended.
    pub fn suspends(&self, pod: &PodUid) -> bool {
        self.report.as_ref().is_some_and(|report| report.suspended.contains(pod))
    }

    /// What is left to carve.
    pub fn available(&self) -> Resources {
        let mut left = self.total.clone();
        left.subtract(&self.carved);
        left.floor_at_zero()
    }

    /// The lowest `DSlotID` not in use: `HTCondor` uses them again.
    pub fn free_dynamic_id(&self) -> u32 {
        (1..).zip(&self.dynamic).find(|(n, used)| n != *used).map_or_else(
            || u32::try_from(self.dynamic.len()).unwrap_or(u32::MAX).saturating_add(1),
            |(n, _)| n,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let facts = MachineFacts {
            name: "node1".into(),
            arch: "amd64".into(),
            os: "linux".into(),
            labels: Arc::default(),
            allocatable: Capacity {
                milli_cpu: 8_000,
                memory: 16 << 30,
                disk: 1 << 40,
                extended: BTreeMap::new(),
            },
            ready: true,
            cordoned: false,
            taints: vec![],
        };
        Machine::new(facts, Capacity { milli_cpu: 250, ..Capacity::default() }, Time::from_secs(0))
    }

    #[test]
    fn pods_of_others_reduce_what_is_offered() {
        assert_eq!(machine().total.cpus, 7);
    }

    #[test]
    fn dynamic_ids_are_used_again() {
        let mut machine = machine();
        for (used, free) in
            [(vec![], 1), (vec![1, 2], 3), (vec![1, 3], 2), (vec![2], 1), (vec![1, 2, 4, 5], 3)]
        {
            machine.dynamic = used.into_iter().collect();
            assert_eq!(machine.free_dynamic_id(), free, "{:?}", machine.dynamic);
        }
    }
}
