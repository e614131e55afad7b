//! The configuration that admins write: node policies, accounting groups, and the configurations of submission and of
//! the negotiator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::absent::Absence;
use super::backfill::Template;
use super::cron::CronPolicy;
use super::governing::Governing;
use super::ids::GroupName;
use super::owner::OwnerRule;
use super::submit_rules::SubmitRules;
use super::time::Time;

use super::job_defaults::JobDefaults;
use super::job_policy::SystemPolicy;
use super::machine::Taint;
use super::negotiation;
use super::slot_policy::Policy;
use super::slot_types::{ConsumptionPolicy, RequestPolicy, SlotTypes};
use super::zone::Zone;
use classad::Expr;

/// A Kubernetes label selector, which selects the nodes of a policy by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The demands; all must hold.
    pub terms: Vec<SelectorTerm>,
}

/// One demand on a node's labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectorTerm {
    /// The label has one of the values.
    In(String, BTreeSet<String>),
    /// The label is absent or has none of the values.
    NotIn(String, BTreeSet<String>),
    /// The label exists.
    Exists(String),
    /// The label does not exist.
    DoesNotExist(String),
}

impl Selector {
    /// Whether the labels meet every demand. A selector without demands selects everything.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.terms.iter().all(|term| match term {
            SelectorTerm::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            SelectorTerm::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
            SelectorTerm::Exists(key) => labels.contains_key(key),
            SelectorTerm::DoesNotExist(key) => !labels.contains_key(key),
        })
    }
}

impl Selector {
    /// Whether this selector selects every node that the other one selects, whatever labels nodes have.
    pub fn covers(&self, other: &Self) -> bool {
        self.terms.iter().all(|term| other.terms.iter().any(|known| known.implies(term)))
    }
}

impl SelectorTerm {
    /// Whether labels that meet this demand meet the other one, too.
    fn implies(&self, other: &Self) -> bool {
        if self.key() != other.key() {
            return false;
        }
        match (self, other) {
            (Self::In(_, have), Self::In(_, want)) => have.is_subset(want),
            (Self::In(_, have), Self::NotIn(_, bad)) => have.is_disjoint(bad),
            (Self::NotIn(_, lacks), Self::NotIn(_, bad)) => bad.is_subset(lacks),
            (Self::In(..) | Self::Exists(_), Self::Exists(_))
            | (Self::DoesNotExist(_), Self::NotIn(..) | Self::DoesNotExist(_)) => true,
            _ => false,
        }
    }

    fn key(&self) -> &str {
        match self {
            Self::In(key, _) | Self::NotIn(key, _) | Self::Exists(key) | Self::DoesNotExist(key) => key,
        }
    }
}

/// A taint that pods of the pool tolerate. A part that is unset matches anything, as in Kubernetes.
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
    /// Whether this toleration covers the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let met = |want: &Option<String>, have: &str| {
            want.as_deref().is_none_or(|want| want.is_empty() || want == have)
        };
        met(&self.key, &taint.key) && met(&self.value, &taint.value) && met(&self.effect, &taint.effect)
    }
}

/// The part of a policy's configuration that concerns a slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotConfig {
    /// The policy expressions.
    pub policy: Policy,
    /// `SLOT_WEIGHT`; if unset, `Cpus`.
    pub slot_weight: Option<Expr>,
    /// `STARTD_ATTRS` with their expressions.
    pub attributes: Vec<(String, Expr)>,
    /// `MODIFY_REQUEST_EXPR_*`.
    pub requests: Arc<RequestPolicy>,
    /// `CONSUMPTION_POLICY`, if it is true.
    pub consumption: Option<ConsumptionPolicy>,
    /// `STARTD_LATCH_EXPRS`, and `CpuBusy` if it is not among them.
    pub latches: Vec<Latch>,
}

/// An expression of which a slot remembers the last change.
#[derive(Clone, Debug, PartialEq)]
pub struct Latch {
    /// The expression's name.
    pub name: Arc<str>,
    /// The expression, which is evaluated in the slot's ad.
    pub expr: Expr,
    /// True if `STARTD_LATCH_EXPRS` lists the name: then `<name>Value` is the expression's value, and `<name>Time` when
    /// the value last changed. False for `CpuBusy` if it is not listed: then `CpuIsBusy` says whether it is true, and
    /// `CpuBusyTime` for how many seconds it has been true.
    pub listed: bool,
}

/// The startd's configuration, read from a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct StartdConfig {
    /// The configuration of all slots.
    pub slots: Arc<SlotConfig>,
    /// The configuration of the slots of a type: `SLOT_TYPE_<N>_START` replaces `START`.
    pub types: BTreeMap<u32, Arc<SlotConfig>>,
    /// The configuration of single slots: `SLOT<N>_<attribute>`.
    pub single: BTreeMap<u32, Arc<SlotConfig>>,
    /// `DEFAULT_DRAINING_START_EXPR`.
    pub draining_start: Option<Expr>,
    /// The backfill work of idle slots: `spec.backfill`.
    pub backfill: Option<Arc<Template>>,
    /// The slot types, which divide machines.
    pub division: SlotTypes,
    /// `STARTD_SLOT_ATTRS`: attributes of each slot that the ads of all slots show.
    pub slot_attrs: Vec<String>,
    /// `STARTD_JOB_ATTRS`: attributes of the job that a claimed slot's ad shows.
    pub job_attrs: Vec<String>,
    /// `STARTD_PARTITIONABLE_SLOT_ATTRS`: attributes of the dynamic slots that a partitionable slot's ad lists.
    pub child_attrs: Vec<String>,
    /// `UID_DOMAIN`; if unset, the node's name.
    pub uid_domain: Option<Box<str>>,
    /// `FILESYSTEM_DOMAIN`; if unset, the node's name.
    pub filesystem_domain: Option<Box<str>>,
    /// `SLOTS_CONNECTED_TO_KEYBOARD`: how many slots, from the first on, notice the keyboard; if unset, all.
    pub keyboard_slots: Option<u32>,
    /// `SLOTS_CONNECTED_TO_CONSOLE`: the same for the console.
    pub console_slots: Option<u32>,
    /// `DISCONNECTED_KEYBOARD_IDLE_BOOST`: the other slots seem idle for this much longer than the operator has known
    /// the machine.
    pub idle_boost: Duration,
    /// `STARTD_CRON_JOBLIST` and what belongs to it.
    pub cron: Arc<CronPolicy>,
    /// The time zone of `ClockMin` and `ClockDay`.
    pub zone: Zone,
    /// Taints that pods on the nodes tolerate.
    pub tolerations: Vec<Toleration>,
    /// Whether a cordoned node is drained.
    pub drain_cordoned: bool,
    /// Which machines stay listed when their nodes go; none if unset.
    pub absence: Option<Arc<Absence>>,
    /// The policy's text, if it means something else on other machines: it is then read again for each machine.
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
            cron: Arc::default(),
            zone: Zone::default(),
            tolerations: Vec::new(),
            drain_cordoned: false,
            absence: None,
            by_machine: None,
        }
    }
}

impl From<SlotConfig> for StartdConfig {
    /// The same configuration for all slots.
    fn from(slots: SlotConfig) -> Self {
        Self { slots: Arc::new(slots), ..Self::default() }
    }
}

/// The configuration of machines that no policy selects: one object for all, since ads are kept by the address of their
/// configuration.
static UNSET: LazyLock<Arc<StartdConfig>> = LazyLock::new(Arc::default);

impl StartdConfig {
    /// The configuration of a machine that no policy selects: HTCondor's defaults. All such machines share it.
    pub fn unset() -> Arc<Self> {
        Arc::clone(&UNSET)
    }

    /// The configuration of a slot.
    pub fn slot(&self, id: u32, slot_type: Option<u32>) -> &Arc<SlotConfig> {
        let of_type = || self.types.get(&slot_type?);
        self.single.get(&id).or_else(of_type).unwrap_or(&self.slots)
    }

    /// Whether any slot may prefer some jobs to others (RANK is set).
    pub fn has_ranks(&self) -> bool {
        let mut all = [&self.slots].into_iter().chain(self.types.values()).chain(self.single.values());
        all.any(|slot| slot.policy.rank.is_some())
    }

    /// Whether a slot may have another weight than its CPUs.
    pub fn has_weights(&self) -> bool {
        let mut all = [&self.slots].into_iter().chain(self.types.values()).chain(self.single.values());
        all.any(|slot| slot.slot_weight.is_some())
    }
}

/// A policy whose text gives another configuration on each machine.
#[derive(Clone, Debug, PartialEq)]
pub struct ByMachine {
    /// The text.
    pub text: Box<str>,
    /// The configuration from the other fields of the policy, without the text.
    pub fields: StartdConfig,
}

/// `CLAIM_WORKLIFE`: how long a claim may start procs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimWorklife {
    /// For this long after the claim was made.
    Limited(Duration),
    /// For ever.
    Unlimited,
}

impl Default for ClaimWorklife {
    fn default() -> Self {
        Self::Limited(Duration::from_mins(20))
    }
}

/// The nodes that a `NodePolicy` selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The demands on the nodes' labels.
    pub selector: Selector,
    /// If several policies select a node, the greatest precedence counts.
    pub precedence: i32,
}

/// A `NodePolicy`.
pub type NodePolicy = Governing<StartdConfig, Selection>;

/// The configuration of a `SubmitPolicy`: the part of HTCondor's configuration that the schedd and condor_submit read.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmitConfig {
    /// `JOB_DEFAULT_REQUESTCPUS` and related knobs.
    pub job_defaults: Arc<JobDefaults>,
    /// Job transforms, submit requirements and user maps.
    pub rules: Arc<SubmitRules>,
    /// Whose a job is.
    pub owner: OwnerRule,
    /// The expressions that are evaluated for every job from time to time: `SYSTEM_PERIODIC_HOLD` and related knobs.
    pub system: Arc<SystemPolicy>,
}

/// The configuration without any text: HTCondor's own defaults.
impl Default for SubmitConfig {
    fn default() -> Self {
        Self {
            job_defaults: JobDefaults::own(),
            rules: Arc::default(),
            owner: OwnerRule::default(),
            system: Arc::default(),
        }
    }
}

/// The quota of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quota {
    /// An amount of slot weight.
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
    /// When the object was created; `None` for an object that is being created.
    pub created: Option<Time>,
    /// The group's name.
    pub name: GroupName,
    /// The owners who may charge jobs to the group; if unset, those who may charge jobs to the group around it.
    pub owners: Option<Vec<String>>,
    /// The group's quota.
    pub quota: Quota,
    /// Whether the object also has a dynamic quota, which is unused because the static quota counts.
    pub share_unused: bool,
    /// Whether the group may use what other groups leave; if unset, `GROUP_ACCEPT_SURPLUS`.
    pub accept_surplus: Option<bool>,
    /// Whether the group's jobs compete with those of no group at the end; if unset, `GROUP_AUTOREGROUP`.
    pub autoregroup: Option<bool>,
    /// `GROUP_PRIO_FACTOR_<group>`: the factor of the group's submitters.
    pub priority_factor: Option<f64>,
}

/// The negotiator's configuration: HTCondor's knobs, with their names and defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct NegotiatorConfig {
    /// `NEGOTIATOR_INTERVAL`.
    pub interval: Duration,
    /// `NEGOTIATOR_CYCLE_DELAY`, if it is set.
    pub cycle_delay: Option<Duration>,
    /// `NEGOTIATOR_MIN_INTERVAL`, if it is set.
    pub min_interval: Option<Duration>,
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
        // A half-life of 0 would mean that half of all usage is forgotten in no time. The accountant needs a positive
        // one.
        let halflife = Duration::try_from_secs_f64(cycle.priority_halflife).unwrap_or(Duration::MAX);
        Self {
            // An interval of 0 would mean cycles without end while a job waits that matches nothing.
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
