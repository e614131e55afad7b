//! `kubectl slotwright status --long`: prints whole ads of slots, as policy and matchmaking see them, like
//! `condor_status -l`.
//!
//! No object has an ad: the plugin makes the ads from the same objects and with the same code as the operator. An ad
//! lacks what only the operator remembers: a slot's part of the load, and since when an expression is true.

use std::collections::{BTreeSet, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt;
use serde_json::Value;

use super::cluster::{self, Cluster};
use super::if_allowed;
use api::{DrainRequest, HTCJob, NodePolicy, NodeReport, PartitionableSlot, Slot, SlotActivity, SlotState};
use classad::{Ad, Env, Expr};
use controller::kinds;
use controller::kinds::node::SlimNode;
use controller::kinds::pod::{PodView, SlimPod};
use model::pool::{Event, MachineName, Pool, SlotName, Time};
use model::startd;

/// The objects that ads are made from, in the order in which the pool must see them.
#[derive(Default)]
pub struct Objects {
    policies: Vec<NodePolicy>,
    drains: Vec<DrainRequest>,
    nodes: Vec<SlimNode>,
    reports: Vec<NodeReport>,
    jobs: Vec<HTCJob>,
    partitionable: Vec<PartitionableSlot>,
    slots: Vec<Slot>,
    pods: Vec<SlimPod>,
}

/// The policy of a node.
pub struct Governing {
    /// The NodePolicy; `None` if no policy selects the node.
    pub policy: Option<String>,
    /// The macros that describe the node, such as `DETECTED_CPUS`, with their values.
    pub macros: Vec<(String, String)>,
}

impl Objects {
    /// Reads the objects. Without jobs or pods, which the user may not be allowed to list, the ads lack something; a
    /// note says what.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses to list objects without which no ad can be made.
    pub async fn read(cluster: &Cluster, notes: &mut Vec<String>) -> Result<Self, cluster::Error> {
        let jobs = if_allowed(cluster.list_all().await, notes)?;
        let pods = if_allowed(cluster.list_all().await, notes)?;
        if jobs.is_none() {
            notes.push("note: without jobs, ads say nothing of the job that runs in a slot".to_owned());
        }
        if pods.is_none() {
            notes.push(
                "note: without pods, the ads do not know what pods of others take of a node, nor what runs in a slot"
                    .to_owned(),
            );
        }
        Ok(Self {
            policies: cluster.list_all().await?,
            drains: cluster.list_all().await?,
            nodes: cluster.list_all().await?,
            reports: cluster.list_all().await?,
            jobs: jobs.unwrap_or_default(),
            partitionable: cluster.list_all().await?,
            slots: cluster.list_all().await?,
            pods: pods.unwrap_or_default(),
        })
    }

    /// The pool as a new leader would make it from the objects.
    fn pool(&self, now: Time) -> Pool {
        let mut pool = Pool::default();
        let policies = self.policies.iter().map(|object| Event::Policy(kinds::node_policy::facts(object)));
        let drains = self.drains.iter().map(|object| Event::Drain(kinds::drain_request::facts(object)));
        let nodes = self.nodes.iter().filter_map(kinds::node::facts).map(Event::Machine);
        let reports = self.reports.iter().filter_map(kinds::node_report::facts).map(Event::Report);
        let jobs = self.jobs.iter().filter_map(kinds::job::facts).map(Event::Job);
        let slots = self.slots.iter().filter_map(kinds::slot::facts).map(Event::Slot);
        let pods = self.pods.iter().filter_map(kinds::pod::view).map(|pod| match pod {
            PodView::Ours(facts) => Event::Pod(std::sync::Arc::unwrap_or_clone(facts)),
            PodView::Backfill(facts) => Event::Backfill(facts),
            PodView::Foreign(pod, machine, requests) => Event::ForeignPod { pod, machine, requests },
            PodView::Neither(uid) => Event::ForeignPodGone(uid),
        });
        for event in policies.chain(drains).chain(nodes).chain(reports).chain(jobs).chain(slots).chain(pods) {
            pool.apply(event, now);
        }
        for object in &self.slots {
            recall_since_when(&mut pool, object);
        }
        let machines: Vec<MachineName> = pool.machines().keys().cloned().collect();
        for machine in machines {
            // The review brings what the ads say up to date; the effects that it asks for are dropped.
            startd::review_machine(&mut pool, &machine, now, &mut Vec::new());
        }
        pool
    }

    /// The NodePolicy that governs a node, and the macros that describe the node; `None` if there is no such node.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses to list nodes or NodePolicies.
    pub async fn governing(
        cluster: &Cluster,
        node: &str,
        now: Time,
    ) -> Result<Option<Governing>, cluster::Error> {
        let objects =
            Self { policies: cluster.list_all().await?, nodes: cluster.list_all().await?, ..Self::default() };
        let pool = objects.pool(now);
        let machine = pool.machines().values().find(|machine| machine.facts.name.as_str() == node);
        Ok(machine.map(|machine| Governing {
            policy: machine.policy.as_ref().map(ToString::to_string),
            macros: startd::config::of_machine(machine).pairs(),
        }))
    }

    /// The slots of these names, which are slots or nodes, on this node, in order. Without names or node, all slots.
    fn meant(&self, names: &[String], node: Option<&str>) -> BTreeSet<SlotName> {
        let machine_slots = self.partitionable.iter().map(|slot| &slot.spec.name);
        let all = machine_slots.chain(self.slots.iter().map(|slot| &slot.spec.name));
        all.filter_map(|name| SlotName::parse(name).ok())
            .filter(|slot| super::status::is_meant(&slot.to_string(), slot.machine.as_str(), names, node))
            .collect()
    }

    /// The ads of the slots of these names and this node.
    pub fn ads(&self, names: &[String], node: Option<&str>, now: Time) -> Vec<Ad> {
        let pool = self.pool(now);
        let (slots, partitionable) = (by_object_name(&self.slots), by_object_name(&self.partitionable));
        let ads = self.meant(names, node).into_iter().filter_map(|name| {
            let mut ad = startd::published_ad(&pool, &name, now)?;
            let object = name.object_name();
            set_state(&mut ad, slots.get(&*object).copied(), partitionable.get(&*object).copied());
            Some(ad)
        });
        ads.collect()
    }
}

/// The objects by their names.
fn by_object_name<K: ResourceExt>(objects: &[K]) -> HashMap<&str, &K> {
    objects.iter().filter_map(|object| Some((object.meta().name.as_deref()?, object))).collect()
}

/// Sets state and activity, and their start times, to those in the status of the slot's object, because they depend on
/// what happened before. Start times that no status has are removed from the ad, such as those of a slot that nobody claims: the
/// status of a PartitionableSlot has none.
fn set_state(ad: &mut Ad, slot: Option<&Slot>, partitionable: Option<&PartitionableSlot>) {
    ad.remove("EnteredCurrentState");
    ad.remove("EnteredCurrentActivity");
    let claimed = slot.and_then(|slot| slot.status.as_ref());
    if let Some(status) = claimed {
        set(ad, status.state, status.activity);
        for (attribute, time) in [
            ("EnteredCurrentState", &status.entered_current_state),
            ("EnteredCurrentActivity", &status.entered_current_activity),
        ] {
            if let Some(time) = time {
                ad.set(attribute, time.0.as_second());
            }
        }
    }
    let Some(partitionable) = partitionable else { return };
    if let Some(status) = &partitionable.status {
        set(ad, status.state, status.activity);
    }
}

/// Sets the start times of a claimed slot's state and activity to those in its object's status. The ad of its
/// partitionable slot lists them too.
fn recall_since_when(pool: &mut Pool, object: &Slot) {
    let (Ok(name), Some(status)) = (SlotName::parse(&object.spec.name), &object.status) else { return };
    let since = |time: &MicroTime| Time::from_millis(time.0.as_millisecond());
    pool.edit_slot(&name, |slot| {
        let state = status.entered_current_state.as_ref().map_or(slot.phase().entered_state(), since);
        let activity =
            status.entered_current_activity.as_ref().map_or(slot.phase().entered_activity(), since);
        slot.recall(state, activity);
    });
}

/// The ads in the long form, with a blank line between two ads.
pub fn long(ads: &[Ad]) -> String {
    ads.iter().map(Ad::to_long).collect::<Vec<String>>().join("\n")
}

/// The ads as `condor_status -json` prints them: an expression that is no plain value is the text `/Expr(...)/`.
pub fn json(ads: &[Ad]) -> Vec<Value> {
    ads.iter().map(json_of).collect()
}

fn json_of(ad: &Ad) -> Value {
    Value::Object(ad.iter().map(|(name, expr)| (name.as_str().to_owned(), json_of_expr(ad, expr))).collect())
}

fn json_of_expr(ad: &Ad, expr: &Expr) -> Value {
    let text = expr.to_string();
    let is_composed = text.starts_with(['{', '[']);
    let value =
        if is_composed { Some(expr.eval(Some(ad), None, &Env::at(0))) } else { expr.as_literal().cloned() };
    value.and_then(|value| json_of_value(&value)).unwrap_or_else(|| Value::String(format!("/Expr({text})/")))
}

/// The value in JSON; none for values that JSON does not have.
fn json_of_value(value: &classad::Value) -> Option<Value> {
    match value {
        classad::Value::Undefined => Some(Value::Null),
        classad::Value::Bool(value) => Some(Value::from(*value)),
        classad::Value::Int(value) => Some(Value::from(*value)),
        classad::Value::Real(value) => serde_json::Number::from_f64(*value).map(Value::Number),
        classad::Value::Str(value) => Some(Value::from(&**value)),
        classad::Value::List(values) => values.iter().map(json_of_value).collect(),
        classad::Value::Ad(ad) => Some(json_of(ad)),
        classad::Value::Error | classad::Value::AbsTime(_) | classad::Value::RelTime(_) => None,
    }
}

fn set(ad: &mut Ad, state: Option<SlotState>, activity: Option<SlotActivity>) {
    if let Some(state) = state {
        ad.set("State", &*format!("{state:?}"));
    }
    if let Some(activity) = activity {
        ad.set("Activity", &*format!("{activity:?}"));
    }
}
