//! The world outside the operators: the server, the nodes, the people, and the calls that operators made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::archive::Archive;
use super::checks::Checks;
use super::coverage::Coverage;
use super::kubelets::Kubelets;
use super::people::Garbled;
use super::plan::{Class, How, Item, Plan, Server, What, When};
use super::rng::{draw, hash};
use super::store::{Key, Refusal, Store};
use super::verbs::{Call, Now};

pub type Shared = Arc<Mutex<World>>;

/// An operator from its start to its end.
#[derive(Debug)]
pub struct Life {
    /// Which of the two seats the operator has.
    pub seat: usize,
    pub alive: bool,
    /// When the operator was completely gone.
    pub buried: Option<u64>,
    pub killed: CancellationToken,
    pub stop: CancellationToken,
    /// After how many more polls the operator dies.
    pub polls_left: Option<u16>,
}

/// The faults of the connection of one seat.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hindrance {
    /// Calls that arrive before this time take effect at this time.
    pub stalled_until: u64,
    /// Calls that are sent before this time are lost.
    pub cut_until: u64,
}

pub struct World {
    pub seed: u64,
    started: Instant,
    pub wall: Timestamp,
    pub store: Store,
    /// Notified when watches must look for changes. (tokio's `watch` wakes its receivers in a random order.)
    pub changed: Arc<Notify>,
    /// The features of the server.
    pub server: Server,
    pub ghosts: bool,
    pub items: Vec<Item>,
    /// How nodes are divided once everything is repaired.
    pub layout: u8,
    /// Faults that wait for their call.
    pub faults: BTreeMap<(Class, u32), How>,
    pub counts: BTreeMap<Class, u32>,
    pub hindrances: [Hindrance; 2],
    pub lives: Vec<Life>,
    /// Whether a second operator is to run.
    pub second: bool,
    /// For each kind, by how much its watches are late, and until when; and, below, which of its watches must end.
    pub lags: BTreeMap<&'static str, (u64, u64)>,
    pub drops: BTreeMap<&'static str, (u64, Drop)>,
    /// For each namespace, until when its webhook hangs, and whether calls fail because of that.
    pub webhooks: BTreeMap<String, (u64, bool)>,
    /// Objects that no operator can decode.
    pub garbled: Vec<Garbled>,
    pub kubelets: Kubelets,
    pub checks: Checks,
    /// The history, if operators keep one.
    pub archive: Option<Archive>,
    pub coverage: Coverage,
    pub trace: u64,
    pub log: Option<Vec<String>>,
    pub writes: u64,
}

/// How watches end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    Quietly,
    ByError,
    Gone,
}

impl World {
    pub fn new(plan: &Plan, tell: bool) -> Self {
        let mut items = plan.items.clone();
        items.retain(|item| !matches!(item.what, What::Call(..)));
        Self {
            seed: plan.seed,
            started: Instant::now(),
            wall: "2026-03-01T00:00:00Z".parse().unwrap(),
            store: Store::default(),
            changed: Arc::default(),
            server: plan.server,
            ghosts: plan.ghosts,
            faults: plan.items.iter().flat_map(faults).collect(),
            items,
            layout: plan.layout,
            counts: BTreeMap::new(),
            hindrances: [Hindrance::default(); 2],
            lives: Vec::new(),
            second: false,
            lags: BTreeMap::new(),
            drops: BTreeMap::new(),
            webhooks: BTreeMap::new(),
            garbled: Vec::new(),
            kubelets: Kubelets::default(),
            checks: Checks::new(plan.items.iter().any(late)),
            archive: plan.history.then(Archive::default),
            coverage: Coverage::default(),
            trace: 0,
            log: tell.then(Vec::new),
            writes: 0,
        }
    }

    /// The milliseconds since the run began.
    pub fn at(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap()
    }

    /// The server's wall clock at this time of the run.
    pub fn wall_at(&self, at: u64) -> Timestamp {
        self.wall.saturating_add(SignedDuration::from_millis(i64::try_from(at).unwrap())).unwrap()
    }

    pub fn text(&self, at: u64) -> String {
        self.wall_at(at).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    pub fn note(&mut self, text: impl FnOnce() -> String) {
        let at = self.at();
        if let Some(log) = &mut self.log {
            log.push(format!("{:>8.3}  {}", at as f64 / 1000.0, text()));
        }
    }

    pub fn hash(&mut self, bytes: &[u8]) {
        self.trace = hash(bytes, self.trace);
    }

    pub fn violated(&mut self, what: String) {
        self.note(|| format!("VIOLATED: {what}"));
        let at = self.at();
        self.checks.violation.get_or_insert_with(|| format!("at {:.3} s: {what}", at as f64 / 1000.0));
    }

    /// Lets watches look for changes.
    pub fn ring(&mut self) {
        super::ends::read(self);
        self.changed.notify_waiters();
    }

    /// Changes an object in place of somebody who is no operator.
    pub fn edit(&mut self, key: &Key, edit: impl FnOnce(&mut Value)) {
        let Some(before) = self.store.get(key) else { return };
        let mut object = (*before).clone();
        edit(&mut object);
        let at = self.at();
        self.store.replace(key, object, at);
        self.ring();
    }

    pub fn put(&mut self, key: Key, mut object: Value) {
        object["metadata"]["name"] = key.name.clone().into();
        let (at, time) = (self.at(), self.text(self.at()));
        if self.store.get(&key).is_none() {
            let _ = self.store.create(key, object, at, &time);
        } else {
            self.edit(&key, |old| {
                old["spec"] = object["spec"].clone();
                old["metadata"]["labels"] = object["metadata"]["labels"].clone();
            });
        }
        self.ring();
    }

    pub fn delete(&mut self, key: &Key, grace: Option<u64>) {
        let (wall, at) = (self.wall, self.at());
        let text = |at: u64| clock(wall, at);
        self.store.delete(key, grace, &Now { at, text: &text });
        self.ring();
    }

    /// Does a call of an operator, and checks what it did. `ghost` tells whether the caller hung up long ago.
    pub fn perform(&mut self, class: Class, call: &Call, ghost: bool) -> Result<Arc<Value>, Refusal> {
        let before = self.store.get(&call.key);
        if ghost {
            super::checks::excuse(self, call);
        }
        super::checks::before(self, class, call);
        let (wall, at) = (self.wall, self.at());
        let text = |at: u64| clock(wall, at);
        let injected =
            if class == Class::CreatePod { super::containers::inject(self, &call.body) } else { None };
        let injected = injected.map(|body| Call { body, ..call.clone() });
        let done = self.store.perform(injected.as_ref().unwrap_or(call), &Now { at, text: &text });
        if done.is_ok() {
            // As long as a job waits, even in vain, the negotiator writes about each cycle.
            if class != Class::Lease && call.key.kind != "negotiators" {
                self.writes += u64::from(class_writes(class));
            }
            super::checks::after(self, class, call, before);
        }
        self.ring();
        done
    }

    pub fn draw(&self, text: &str, below: u64) -> u64 {
        draw(text, self.seed) % below
    }

    /// Removes and returns the items of the plan that are due at this moment.
    pub fn due(&mut self, moment: When) -> Vec<What> {
        let items = std::mem::take(&mut self.items);
        let (due, rest) = items.into_iter().partition(|item| item.when == moment);
        self.items = rest;
        let due: Vec<Item> = due;
        due.into_iter().map(|item| item.what).collect()
    }

    pub fn due_by_time(&mut self) -> Vec<What> {
        let at = self.at();
        let items = std::mem::take(&mut self.items);
        let (due, rest) =
            items.into_iter().partition(|item| matches!(item.when, When::At(time) if u64::from(time) <= at));
        self.items = rest;
        let mut due: Vec<Item> = due;
        due.sort_by_key(|item| match item.when {
            When::At(time) => time,
            _ => 0,
        });
        due.into_iter().map(|item| item.what).collect()
    }

    pub fn alive(&self, who: usize) -> bool {
        self.lives.get(who).is_some_and(|life| life.alive)
    }

    /// The operator that runs in a seat now.
    pub fn living(&self, seat: usize) -> Option<usize> {
        self.lives.iter().rposition(|life| life.seat == seat && life.alive)
    }

    pub fn kill(&mut self, who: usize) {
        if let Some(life) = self.lives.get_mut(who).filter(|life| life.alive) {
            life.alive = false;
            life.killed.cancel();
            self.note(|| format!("operator {who} is killed"));
        }
    }

    /// Selects, by number, an object of a kind.
    pub fn pick(&self, kind: &'static str, n: u8, which: impl Fn(&Value) -> bool) -> Option<Key> {
        let keys: Vec<&Key> =
            self.store.of(kind).filter(|(_, object)| which(object)).map(|(key, _)| key).collect();
        keys.get(usize::from(n) % keys.len().max(1)).map(|key| (*key).clone())
    }

    /// Notes that somebody edited a Slot, so that the operator alone no longer decides how the slot and its pod end.
    pub fn tamper(&mut self, slot: &Key) {
        let id = self.store.get(slot).map(|slot| slot["spec"]["claim"]["id"].clone());
        self.checks.tampered_slots.insert(slot.name.clone());
        if let Some(id) = id.as_ref().and_then(Value::as_str) {
            self.checks.tampered_claims.insert(id.to_owned());
        }
    }
}

pub fn clock(wall: Timestamp, at: u64) -> String {
    let wall = wall.saturating_add(SignedDuration::from_millis(i64::try_from(at).unwrap())).unwrap();
    wall.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub fn class_writes(class: Class) -> bool {
    !matches!(
        class,
        Class::GetSlot
            | Class::GetPod
            | Class::GetJob
            | Class::GetOther
            | Class::List
            | Class::Watch
            | Class::Tell
    )
}

/// Whether operators may be long behind because of this item.
fn late(item: &Item) -> bool {
    match item.what {
        What::Lag(..) | What::Stall(..) | What::Cut(..) => true,
        What::Call(..) => matches!(item.when, When::Before(Class::List | Class::Watch, _)),
        _ => false,
    }
}

fn faults(item: &Item) -> Vec<((Class, u32), How)> {
    match (&item.what, item.when) {
        (What::Call(how, more), When::Before(class, nth)) => {
            (0..=u32::from(*more)).map(|n| ((class, nth + n), *how)).collect()
        }
        _ => Vec::new(),
    }
}
