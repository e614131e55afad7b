//! The programs in pods: how long they run, how they end by themselves, and what they do when they are told to end.

use super::rng::draw;

/// The shortest grace period that a kubelet gives, in milliseconds.
const LEAST_GRACE: u64 = 2000;
/// A time that never comes.
pub const NEVER: u64 = u64::MAX / 2;

/// The behavior of every program that begins from now on, as a story sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fated {
    OutOfMemory,
    OutOfDisk,
    NoCommand,
    InitFails,
    Beside(Beside),
    /// The handler of this number in [`HANDLERS`].
    Handler(usize),
}

/// The container beside the main container of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// An ordinary container, which ends only when the pod is told to end.
    Container,
    /// A native sidecar, which the kubelet ends after the main container.
    Sidecar,
}

/// How a program ends if nobody tells it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The program exits with this code.
    Exits(i64),
    /// The program takes more memory than it may.
    OutOfMemory,
    /// The program takes more disk than it may, and its kubelet evicts it.
    OutOfDisk,
}

/// How a main container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    pub at: u64,
    pub code: i64,
    pub reason: &'static str,
    /// Whether the program ended by itself.
    pub own: bool,
    /// The message in the container's status.
    pub message: Option<String>,
    /// The message in the pod's status, if the kubelet evicted the pod.
    pub evicted: Option<String>,
}

/// The first order of a kubelet to a program to end. Later orders change nothing (kubernetes#83916).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndOrder {
    pub at: u64,
    /// When the program ends because of this, if it has not ended by itself.
    pub dies: u64,
    pub code: i64,
    /// When the grace period is over.
    pub granted: u64,
}

/// Whether an agent holds a process still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    No,
    /// The operator asked the agent at this time, and the agent has not done it yet.
    Asked(u64),
    /// The agent holds the process still. The operator asked it at this time.
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
    /// The memory that the pod requests, in MiB.
    pub memory: i64,
    pub began: u64,
    pub ends: u64,
    pub fate: Fate,
    pub beside: Option<Beside>,
    pub told: Option<EndOrder>,
    /// Whether the node's agent holds the process still.
    pub standing: Standing,
    /// Whether the main container's program runs.
    pub alive: bool,
    /// How the main container ended; `None` if it runs, or its machine lost it.
    pub over: Option<Over>,
    /// Since when the pod's status says that the main container has ended.
    pub reported: Option<u64>,
    /// Whether the kubelet has seen the end of all containers, and counts their resources as free.
    pub settled: bool,
    /// The lease of the claim, in seconds.
    pub lease: Option<u64>,
    /// The number of the handler, if a story has chosen one.
    pub handler: Option<usize>,
    /// Whether somebody took the pod away while the process ran, or said wrongly that its machine is gone.
    pub disowned: bool,
}

impl Process {
    /// Whether the agent holds the process still.
    pub fn stands_still(&self) -> bool {
        matches!(self.standing, Standing::Still(_))
    }

    /// Lets an agent hold the process still if the operator asked it at least `late` milliseconds ago.
    pub fn hold_still(&mut self, at: u64, late: u64) {
        let since = match self.standing {
            Standing::No => at,
            Standing::Asked(since) | Standing::Still(since) => since,
        };
        self.standing = if at >= since + late { Standing::Still(since) } else { Standing::Asked(since) };
    }

    /// Lets the process go on, since the agent that held it still is gone.
    pub fn let_go_on(&mut self) {
        if let Standing::Still(since) = self.standing {
            self.standing = Standing::Asked(since);
        }
    }

    /// Lets the program end by itself now.
    pub fn end_now(&mut self, at: u64) {
        if self.ends < NEVER {
            self.ends = self.ends.min(at);
        }
    }

    /// Delays the program's end by the time for which it was held still.
    pub fn stand_still(&mut self, span: u64) {
        if self.ends < NEVER {
            self.ends += span;
        }
    }

    /// Kills a program that its kubelet has told to end, in place of the kubelet.
    pub fn kill_now(&mut self, at: u64) {
        if let Some(told) = self.told.as_mut().filter(|told| told.dies > at) {
            (told.dies, told.code) = (at, 137);
        }
    }

    /// Tells the pod's program to end, with a grace period in seconds. Only the first call has an effect.
    pub fn tell(&mut self, uid: &str, grace: u64, at: u64, seed: u64) {
        if self.told.is_some() {
            return;
        }
        let (takes, stuck, code) = self.handler.map_or_else(|| handler(uid, seed), |n| HANDLERS[n]);
        let takes = if self.stands_still() { NEVER } else { takes };
        let granted = at + (grace * 1000).max(LEAST_GRACE);
        let (dies, code) = if at + takes <= granted { (at + takes, code) } else { (granted + stuck, 137) };
        self.told = Some(EndOrder { at, dies, code, granted });
    }

    /// Ends the program at once. The kubelet or an agent kills it.
    pub fn killed(&mut self, over: Over) {
        (self.alive, self.beside, self.over) = (false, None, Some(over));
    }

    /// Ends the main container if its time has come.
    pub fn live(&mut self, at: u64) {
        if !self.alive {
            return;
        }
        // A program that is killed does not end by itself any more, however long the node takes to end the program.
        let first = self.told.is_none_or(|told| self.ends <= told.dies.min(told.granted));
        let told = self.told.filter(|told| told.dies <= at);
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

    /// Whether a container of the pod may run: the main one, or one beside it.
    pub fn may_run(&self) -> bool {
        self.alive || self.over.is_some() && self.beside.is_some()
    }

    /// When all containers of the pod have ended; `None` as long as one runs.
    pub fn all_over(&self, uid: &str, seed: u64) -> Option<u64> {
        let main = self.over.as_ref()?.at;
        match self.beside {
            None => Some(main),
            Some(Beside::Sidecar) => Some(main + 500 + draw(&format!("sidecar {uid}"), seed) % 2500),
            Some(Beside::Container) => self.told.map(|told| main.max(told.at + 300)),
        }
    }
}

/// How a program reacts when it is told to end: how long it takes, how long it outlives its grace period, both in
/// milliseconds, and its exit code.
type Handler = (u64, u64, i64);

/// Programs with a handler; programs without one, which run as PID 1 and ignore SIGTERM; and programs that the kubelet
/// cannot end for a while.
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
