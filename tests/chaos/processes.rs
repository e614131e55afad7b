//! The programs in pods: how long they run, how they end by themselves, and what they do when they are told to end.

use super::rng::draw;

/// The least grace that a kubelet gives, in milliseconds.
const LEAST_GRACE: u64 = 2000;
/// A time that never comes.
pub const NEVER: u64 = u64::MAX / 2;

/// What every program from now on has, as stories want it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fated {
    OutOfMemory,
    OutOfDisk,
    NoCommand,
    InitFails,
    Beside(Beside),
    /// The handler of that number, see [`HANDLERS`].
    Handler(usize),
}

/// What runs beside the main container of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// An ordinary container, which ends only when the pod is told to end.
    Container,
    /// A native sidecar, which the kubelet ends after the main container.
    Sidecar,
}

/// How a program ends when nobody tells it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It exits with that code.
    Exits(i64),
    /// It takes more memory than it may.
    OutOfMemory,
    /// It takes more disk than it may, and its kubelet evicts it.
    OutOfDisk,
}

/// How a main container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    pub at: u64,
    pub code: i64,
    pub reason: &'static str,
    /// The program ended by itself.
    pub own: bool,
    /// What the container's status says.
    pub message: Option<String>,
    /// The reason and message of the pod, where the kubelet evicted it.
    pub evicted: Option<String>,
}

/// What a kubelet told a program first. Nothing that it is told later changes that (kubernetes#83916).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub at: u64,
    /// When the program ends of it, and how.
    pub dies: u64,
    pub code: i64,
    /// When its grace is over.
    pub granted: u64,
}

/// Whether the agent of its node holds a process still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    No,
    /// It was asked to at that time, and has not got round to it.
    Asked(u64),
    /// It does, and was asked to at that time.
    Still(u64),
}

/// A process in a pod.
#[derive(Clone, Debug)]
pub struct Process {
    pub node: String,
    pub pod: String,
    pub job: String,
    pub proc: u32,
    pub cpus: i64,
    pub ends: u64,
    pub fate: Fate,
    pub beside: Option<Beside>,
    pub told: Option<Told>,
    /// Whether its node's agent holds it still.
    pub standing: Standing,
    /// The main container's program runs.
    pub alive: bool,
    /// How the main container ended; none too where its machine lost it.
    pub over: Option<Over>,
    /// Since when the pod's status says that the main container has ended.
    pub reported: Option<u64>,
    /// The kubelet has seen the end of all containers, and counts what they took as free.
    pub settled: bool,
    /// The lease of its claim, in seconds.
    pub lease: Option<u64>,
    /// Its handler, where a story has chosen one.
    pub handler: Option<usize>,
    /// Somebody took its pod away under it, or said that its machine is gone, which it is not.
    pub disowned: bool,
}

impl Process {
    /// Its agent holds it still.
    pub fn stands_still(&self) -> bool {
        matches!(self.standing, Standing::Still(_))
    }

    /// An agent that was asked to hold it still, and takes so long, holds it by now or not.
    pub fn hold_still(&mut self, at: u64, late: u64) {
        let since = match self.standing {
            Standing::No => at,
            Standing::Asked(since) | Standing::Still(since) => since,
        };
        self.standing = if at >= since + late { Standing::Still(since) } else { Standing::Asked(since) };
    }

    /// The agent that holds it still is gone.
    pub fn let_go_on(&mut self) {
        if let Standing::Still(since) = self.standing {
            self.standing = Standing::Asked(since);
        }
    }

    /// It ends by itself now.
    pub fn end_now(&mut self, at: u64) {
        if self.ends < NEVER {
            self.ends = self.ends.min(at);
        }
    }

    /// Its time does not pass for so long.
    pub fn stand_still(&mut self, span: u64) {
        if self.ends < NEVER {
            self.ends += span;
        }
    }

    /// Somebody other than its kubelet kills it, which was told to end.
    pub fn kill_now(&mut self, at: u64) {
        if let Some(told) = self.told.as_mut().filter(|told| told.dies > at) {
            (told.dies, told.code) = (at, 137);
        }
    }

    /// The kubelet tells the pod to end, with that grace. It does so once.
    pub fn tell(&mut self, uid: &str, grace: u64, at: u64, seed: u64) {
        if self.told.is_some() {
            return;
        }
        let (takes, stuck, code) = self.handler.map_or_else(|| handler(uid, seed), |n| HANDLERS[n]);
        let takes = if self.stands_still() { NEVER } else { takes };
        let granted = at + (grace * 1000).max(LEAST_GRACE);
        let (dies, code) = if at + takes <= granted { (at + takes, code) } else { (granted + stuck, 137) };
        self.told = Some(Told { at, dies, code, granted });
    }

    /// The kubelet or an agent kills it at once.
    pub fn killed(&mut self, over: Over) {
        (self.alive, self.beside, self.over) = (false, None, Some(over));
    }

    /// What has happened to the main container by now, if it runs.
    pub fn live(&mut self, at: u64) {
        if !self.alive {
            return;
        }
        let told = self.told.filter(|told| told.dies <= at);
        let first = told.is_none_or(|told| self.ends <= told.dies);
        if self.ends <= at && first {
            let (code, reason, own) = match self.fate {
                Fate::Exits(0) => (0, "Completed", true),
                Fate::Exits(code) => (code, "Error", true),
                Fate::OutOfMemory => (137, "OOMKilled", false),
                Fate::OutOfDisk => (137, "Error", false),
            };
            let evicted = (self.fate == Fate::OutOfDisk).then(|| {
                "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ".to_owned()
            });
            self.alive = false;
            self.over = Some(Over { at: self.ends, code, reason, own, message: None, evicted });
        } else if let Some(told) = told {
            let reason = if told.code == 0 { "Completed" } else { "Error" };
            self.alive = false;
            let (at, code) = (told.dies, told.code);
            self.over = Some(Over { at, code, reason, own: false, message: None, evicted: None });
        }
    }

    /// When all containers of the pod have ended; none as long as one runs.
    pub fn all_over(&self, uid: &str, seed: u64) -> Option<u64> {
        let main = self.over.as_ref()?.at;
        match self.beside {
            None => Some(main),
            Some(Beside::Sidecar) => Some(main + 500 + draw(&format!("sidecar {uid}"), seed) % 2500),
            Some(Beside::Container) => self.told.map(|told| main.max(told.at + 300)),
        }
    }
}

/// How long a program takes to end when it is told to, how long it outlives its grace, and its exit code.
type Handler = (u64, u64, i64);

/// Some have a handler, some have none and are PID 1, to which TERM does nothing, and of some the kubelet does not get rid for a
/// while.
pub const HANDLERS: [Handler; 11] = [
    (100, 0, 0),
    (100, 0, 7),
    (1000, 0, 0),
    (1000, 0, 7),
    (3000, 0, 0),
    (3000, 0, 7),
    (300, 0, 143),
    (5000, 0, 0),
    (NEVER, 0, 137),
    (NEVER, 0, 137),
    (NEVER, 45_000, 137),
];

fn handler(uid: &str, seed: u64) -> Handler {
    HANDLERS[draw(&format!("obeys {uid}"), seed) as usize % HANDLERS.len()]
}
