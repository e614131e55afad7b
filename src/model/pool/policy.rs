//! What admins say: node policies, accounting groups, the negotiator's configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::backfill::Template;
use super::group_map::GroupMap;
use super::ids::GroupName;
use super::job::Problem;

use super::job_defaults::JobDefaults;
use super::machine::Taint;
use super::negotiation;
use super::slot_policy::Policy;
use super::slot_types::{ConsumptionPolicy, RequestPolicy, SlotTypes};
use super::zone::Zone;
use classad::Expr;

/// Which nodes a policy is for, by their labels: a Kubernetes label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Every one of these must hold.
    pub terms: Vec<SelectorTerm>,
}

/// One demand on a node's labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectorTerm {
    /// The label has one of the values.
    In(String, BTreeSet<String>),
    /// The label is absent or has none of the values.
    NotIn(String, BTreeSet<String>),
    /// The label is there.
    Exists(String),
    /// The label is not there.
    DoesNotExist(String),
}

impl Selector {
    /// Whether the labels meet every demand. No demands select everything.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.terms.iter().all(|term| match term {
            SelectorTerm::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            SelectorTerm::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
            SelectorTerm::Exists(key) => labels.contains_key(key),
            SelectorTerm::DoesNotExist(key) => !labels.contains_key(key),
        })
    }
}

/// A taint that pods of the pool tolerate. Unset parts match anything, as in Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toleration {
    /// The key.
    pub key: Option<String>,
    /// The value.
    pub value: Option<String>,
    /// The effect.
    pub effect: Option<String>,
}

impl Toleration {
    /// Whether it tolerates the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let met = |want: &Option<String>, have: &str| {
            want.as_deref().is_none_or(|want| want.is_empty() || want == have)
        };
        met(&self.key, &taint.key) && met(&self.value, &taint.value) && met(&self.effect, &taint.effect)
    }
}

/// What a policy says of a slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotConfig {
    /// The policy expressions.
    pub policy: Policy,
    /// `SLOT_WEIGHT`; `Cpus` where unset.
    pub slot_weight: Option<Expr>,
    /// `STARTD_ATTRS` with their expressions.
    pub attributes: Vec<(String, Expr)>,
    /// `MODIFY_REQUEST_EXPR_*`.
    pub requests: RequestPolicy,
    /// `CONSUMPTION_POLICY`, where it is true.
    pub consumption: Option<ConsumptionPolicy>,
    /// `STARTD_LATCH_EXPRS`, and `CpuBusy` where it is not among them.
    pub latches: Vec<Latch>,
}

/// An expression whose last change a slot remembers.
#[derive(Clone, Debug, PartialEq)]
pub struct Latch {
    /// Its name.
    pub name: String,
    /// The expression, of the slot's ad.
    pub expr: Expr,
    /// It stands for itself in `STARTD_LATCH_EXPRS`: `<name>Value` is its value and `<name>Time` when that changed. If not it
    /// is `CpuBusy`, of which `CpuIsBusy` tells whether it is true, and `CpuBusyTime` for how many seconds it has been.
    pub listed: bool,
}

/// The startd's configuration, understood.
#[derive(Clone, Debug, PartialEq)]
pub struct StartdConfig {
    /// What is said of all slots.
    pub slots: Arc<SlotConfig>,
    /// What is said of the slots of a type: `SLOT_TYPE_<N>_START` goes before `START`.
    pub types: BTreeMap<u32, Arc<SlotConfig>>,
    /// What is said of single slots: `SLOT<N>_<attribute>`.
    pub single: BTreeMap<u32, Arc<SlotConfig>>,
    /// `DEFAULT_DRAINING_START_EXPR`.
    pub draining_start: Option<Expr>,
    /// What idle slots do: `spec.backfill`.
    pub backfill: Option<Arc<Template>>,
    /// How machines are divided: slot types.
    pub division: SlotTypes,
    /// `STARTD_SLOT_ATTRS`: what each slot's ad shows of the others.
    pub slot_attrs: Vec<String>,
    /// `STARTD_JOB_ATTRS`: what a claimed slot's ad shows of its job.
    pub job_attrs: Vec<String>,
    /// `STARTD_PARTITIONABLE_SLOT_ATTRS`: what a partitionable slot's ad lists of its dynamic slots.
    pub child_attrs: Vec<String>,
    /// `UID_DOMAIN`; the node's name where unset.
    pub uid_domain: Option<Box<str>>,
    /// `FILESYSTEM_DOMAIN`; the node's name where unset.
    pub filesystem_domain: Option<Box<str>>,
    /// `SLOTS_CONNECTED_TO_KEYBOARD`: how many slots notice it, from the first; all where unset.
    pub keyboard_slots: Option<u32>,
    /// `SLOTS_CONNECTED_TO_CONSOLE`: the same of the console.
    pub console_slots: Option<u32>,
    /// `DISCONNECTED_KEYBOARD_IDLE_BOOST`: for how much longer the others seem idle than the machine is known.
    pub idle_boost: Duration,
    /// The time zone of `ClockMin` and `ClockDay`.
    pub zone: Zone,
    /// Taints that are tolerated.
    pub tolerations: Vec<Toleration>,
    /// Whether a cordoned node is drained.
    pub drain_cordoned: bool,
    /// The policy's text, where it says something else on other machines: it is read again for each.
    pub by_machine: Option<Arc<ByMachine>>,
}

impl Default for StartdConfig {
    fn default() -> Self {
        Self {
            slots: Arc::default(),
            types: BTreeMap::new(),
            single: BTreeMap::new(),
            draining_start: None,
            backfill: None,
            division: SlotTypes::default(),
            slot_attrs: Vec::new(),
            job_attrs: Vec::new(),
            child_attrs: Vec::new(),
            uid_domain: None,
            filesystem_domain: None,
            keyboard_slots: None,
            console_slots: None,
            idle_boost: Duration::from_mins(20),
            zone: Zone::default(),
            tolerations: Vec::new(),
            drain_cordoned: false,
            by_machine: None,
        }
    }
}

impl From<SlotConfig> for StartdConfig {
    /// What is the same for all slots.
    fn from(slots: SlotConfig) -> Self {
        Self { slots: Arc::new(slots), ..Self::default() }
    }
}

impl StartdConfig {
    /// What is said of a slot.
    pub fn slot(&self, id: u32, slot_type: Option<u32>) -> &Arc<SlotConfig> {
        let of_type = || self.types.get(&slot_type?);
        self.single.get(&id).or_else(of_type).unwrap_or(&self.slots)
    }

    /// Whether slots prefer some jobs to others: RANK.
    pub fn has_ranks(&self) -> bool {
        let mut all = [&self.slots].into_iter().chain(self.types.values()).chain(self.single.values());
        all.any(|slot| slot.policy.rank.is_some())
    }

    /// Whether slots may weigh anything else than their CPUs.
    pub fn has_weights(&self) -> bool {
        let mut all = [&self.slots].into_iter().chain(self.types.values()).chain(self.single.values());
        all.any(|slot| slot.slot_weight.is_some())
    }
}

/// What a policy says in a way that depends on the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct ByMachine {
    /// The text.
    pub text: Box<str>,
    /// What the policy's fields say, without the text.
    pub fields: StartdConfig,
}

/// `CLAIM_WORKLIFE`: for how long a claim may start procs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimWorklife {
    /// This long.
    Limited(Duration),
    /// For ever.
    Unlimited,
}

impl Default for ClaimWorklife {
    fn default() -> Self {
        Self::Limited(Duration::from_mins(20))
    }
}

/// A `NodePolicy`.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePolicy {
    /// Its uid.
    pub uid: Arc<str>,
    /// The `metadata.generation` last seen.
    pub generation: i64,
    /// Which nodes, by the last spec that was valid.
    pub selector: Selector,
    /// The greatest precedence counts where several policies select a node; that of the last spec that was valid.
    pub precedence: i32,
    /// The last configuration that was valid. It stays in force while a newer one is not.
    pub config: Option<Arc<StartdConfig>>,
    /// The spec that it is of, as text: the object's status records it, so that a new leader knows it.
    pub accepted: Option<Arc<str>>,
    /// What is wrong with the present one.
    pub problems: Vec<Problem>,
    /// What of its text does nothing, or not what it seems to; none where it has no text.
    pub warnings: Option<Vec<Problem>>,
}

impl NodePolicy {
    /// What holds while the present spec is not accepted, as the end of a message.
    pub fn meanwhile(&self) -> &'static str {
        if self.config.is_some() {
            "; until it is corrected the last accepted spec stays in force"
        } else {
            "; until it is corrected the nodes that it selects offer nothing"
        }
    }
}

/// What a `SubmitPolicy` says: the schedd's and condor_submit's part of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmitConfig {
    /// `JOB_DEFAULT_REQUESTCPUS` and its kin.
    pub job_defaults: Arc<JobDefaults>,
    /// The accounting groups of owners, where they have no free choice.
    pub groups: Option<GroupMap>,
}

/// How much a group may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quota {
    /// Slot weight.
    Static(f64),
    /// A share of the parent's quota.
    Dynamic(f64),
}

/// A `GroupQuota`.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The object's name.
    pub object: Arc<str>,
    /// The `metadata.generation` last seen.
    pub generation: i64,
    /// The group.
    pub name: GroupName,
    /// The owners who may charge jobs to it; unset: those of the group around it.
    pub owners: Option<Vec<String>>,
    /// Its quota.
    pub quota: Quota,
    /// Whether a dynamic quota is given too, beside the static one that counts.
    pub share_unused: bool,
    /// Whether it may use what other groups leave; `GROUP_ACCEPT_SURPLUS` where unset.
    pub accept_surplus: Option<bool>,
    /// Whether its jobs compete with those of no group in the end; `GROUP_AUTOREGROUP` where unset.
    pub autoregroup: Option<bool>,
    /// `GROUP_PRIO_FACTOR_<group>`: the factor of those who submit in it.
    pub priority_factor: Option<f64>,
}

/// The negotiator's configuration: `HTCondor`'s knobs of the same names and their defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct NegotiatorConfig {
    /// `NEGOTIATOR_INTERVAL`.
    pub interval: Duration,
    /// `NEGOTIATOR_CYCLE_DELAY`.
    pub cycle_delay: Duration,
    /// `NEGOTIATOR_MIN_INTERVAL`.
    pub min_interval: Duration,
    /// `PRIORITY_HALFLIFE`.
    pub halflife: Duration,
    /// `DEFAULT_PRIO_FACTOR`.
    pub default_factor: f64,
    /// The knobs of a cycle.
    pub cycle: Arc<negotiation::Config>,
}

impl Default for NegotiatorConfig {
    fn default() -> Self {
        negotiation::Config::default().into()
    }
}

impl From<negotiation::Config> for NegotiatorConfig {
    fn from(cycle: negotiation::Config) -> Self {
        // Half of what was used is forgotten in no time: the accountant needs some.
        let halflife = Duration::try_from_secs_f64(cycle.priority_halflife).unwrap_or(Duration::MAX);
        Self {
            // None would be cycles without end while a job waits that finds nothing.
            interval: cycle.interval.max(Duration::from_secs(1)),
            cycle_delay: cycle.cycle_delay,
            min_interval: cycle.min_interval,
            halflife: halflife.max(Duration::from_secs(1)),
            default_factor: cycle.default_priority_factor,
            cycle: Arc::new(cycle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn selectors_select_as_kubernetes_does() {
        let values = || BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let zone = || "zone".to_owned();
        for (term, on_a, on_c, on_none) in [
            (SelectorTerm::In(zone(), values()), true, false, false),
            (SelectorTerm::NotIn(zone(), values()), false, true, true),
            (SelectorTerm::Exists(zone()), true, true, false),
            (SelectorTerm::DoesNotExist(zone()), false, false, true),
        ] {
            let selector = Selector { terms: vec![term.clone()] };
            let found =
                [&[("zone", "a")][..], &[("zone", "c")], &[]].map(|pairs| selector.selects(&labels(pairs)));
            assert_eq!(found, [on_a, on_c, on_none], "{term:?}");
        }
        assert!(Selector::default().selects(&labels(&[])));
    }

    #[test]
    fn unset_parts_of_a_toleration_match_anything() {
        let taint = Taint { key: "gpu".into(), value: "yes".into(), effect: "NoSchedule".into() };
        let toleration = |key: Option<&str>, value: Option<&str>, effect: Option<&str>| Toleration {
            key: key.map(Into::into),
            value: value.map(Into::into),
            effect: effect.map(Into::into),
        };
        assert!(toleration(None, None, None).tolerates(&taint));
        assert!(toleration(Some("gpu"), None, Some("NoSchedule")).tolerates(&taint));
        assert!(!toleration(Some("gpu"), Some("no"), None).tolerates(&taint));
        assert!(!toleration(Some("gpu"), None, Some("NoExecute")).tolerates(&taint));
    }
}
