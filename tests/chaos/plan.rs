//! The plan of a run: a list of what happens. The plan is drawn from a seed before the run begins, and any part of it
//! can be left out.

mod drawn;

use super::processes::Fated;

/// The classes of the operator's calls. The failure of a call has other consequences in each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    CreateSlot,
    PatchSlot,
    DeleteSlot,
    GetSlot,
    CreatePod,
    GetPod,
    DeletePod,
    UntrackPod,
    AskAgent,
    GetJob,
    AddJobFinalizer,
    JobStatus,
    SlotStatus,
    OtherStatus,
    CreateOther,
    DeleteOther,
    GetOther,
    Lease,
    Tell,
    List,
    Watch,
}

/// How a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// The server answers 500 or 503, and did nothing.
    Error(u16),
    /// The server answers 500 although it did what the call asks for.
    ErrorAfter,
    /// The server answers 429 with Retry-After.
    Throttled,
    /// The server answers 409: somebody else wrote in between.
    Conflict,
    /// The connection breaks before the server has received the call.
    Reset,
    /// The connection breaks when the server has done what the call asks for.
    ResetAfter,
    /// The server does not answer, and did nothing.
    Silence,
    /// The server does not answer although it did what the call asks for.
    SilenceAfter,
    /// The call takes effect so many milliseconds late.
    Late(u32),
    /// The answer comes so many milliseconds late.
    LateAnswer(u32),
}

/// When an item of the plan happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this time, in milliseconds.
    At(u32),
    /// When the server is about to do the n-th call of this class.
    Before(Class, u32),
    /// When the server has just done the n-th call of this class.
    After(Class, u32),
}

/// The [`Order::device`] of a job that asks for a GPU. Every node has one.
pub const A_GPU: u8 = 1;

/// The resource that a job with this [`Order::device`] asks for and no node has; `None` for other devices.
pub fn phantom(device: u8) -> Option<&'static str> {
    match device {
        2 => Some("example.com/typo"),
        3 => Some("amd.com/gpu"),
        _ => None,
    }
}

/// A job as a user orders it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub job: u8,
    pub group: Option<u8>,
    pub count: u8,
    pub cpus: u8,
    /// [`A_GPU`], the number of a [`phantom`], or 0 for no device.
    pub device: u8,
    pub requirements: u8,
    pub retention: u8,
}

/// An event of the plan. A `u8` selects one of the objects that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A call goes wrong, and so do as many calls after it.
    Call(How, u8),
    Kill(u8),
    /// The operator dies once it has been polled so many times from now on.
    KillAfterPolls(u8, u16),
    /// Somebody tells the operator to end. Then it starts again.
    Stop(u8),
    /// A second operator takes part in the election.
    Second,
    /// No call of an operator gets through for so many seconds. Then all of them do, late.
    Stall(u8, u8),
    /// No call of an operator gets through for so many seconds.
    Cut(u8, u8),
    /// Watches of a kind are so many milliseconds late, for so many seconds.
    Lag(u8, u16, u8),
    /// Watches of a kind end. The flag says whether with an error.
    DropWatch(u8, bool),
    /// The server answers watches of a kind with 410 Gone.
    Gone(u8),
    /// The server forgets its history. It answers a watch that has to resume with 410 Gone.
    Compact,
    NodeGone(u8),
    /// Somebody deletes the Node of a machine that is on. Its kubelet works on.
    NodeDeleted(u8),
    /// The machine restarts, and loses its containers.
    Reboot(u8),
    /// The clock of a node is wrong by so many seconds. Only stories have this.
    Clock(u8, i8),
    /// Programs that begin from now on behave so. Only stories have this.
    Fated(Option<Fated>),
    /// The node is cut off for so many seconds: its kubelet writes neither Lease nor status.
    NodeCut(u8, u8),
    NodeBack(u8, u8),
    Cordon(u8, bool),
    /// Somebody puts a taint on a node, or takes it off. With a node number of 9 or more, the machine goes off, and the
    /// taint says so.
    Taint(u8, bool),
    /// The kubelet refuses so many pods.
    Refuse(u8, u8),
    /// The kubelet evicts a pod.
    Evict(u8),
    /// Programs on the node end by themselves now, for example while the kubelet kills them.
    EndNow(u8),
    Foreign(u8, u8, u8),
    ForeignGone(u8),
    Submit(Order),
    Edit(Order),
    Remove(u8),
    Unhold(u8),
    /// Somebody writes an act on a job: one of five, on all procs, or on those whose bits are set.
    Act(u8, u8, u8),
    /// Somebody sets `spec.hold` of a job, or takes it off.
    Hold(u8, bool),
    /// Somebody edits a job so that a program that fails runs a second time.
    Retry(u8),
    /// Somebody gives a job attributes that act: that hold, release, remove and vacate procs, run them again, or say when procs
    /// start and how many.
    Attributes(u8, u8),
    DeletePod(u8, bool),
    /// If a pod is being deleted, somebody deletes it again with a grace period of so many seconds.
    DeleteSooner(u8, u8),
    /// Somebody evicts a pod through the eviction API, as `kubectl drain` does.
    ApiEvict(u8),
    /// The taint manager deletes the pods of a node.
    TaintEvict(u8),
    /// Somebody deletes a pod and takes its finalizers off.
    StripPod(u8),
    DeleteSlot(u8),
    /// Somebody edits a Slot: takes the claim off, changes its id, or changes its proc.
    EditSlot(u8, u8),
    /// Somebody makes up a Slot.
    MakeSlot(u8),
    DeletePslot(u8),
    Quota(u8, u8),
    QuotaGone(u8),
    Ceiling(u8, Option<u8>),
    DeleteSubmitter(u8),
    /// Somebody takes the pool's labels, annotations or both off a pod.
    Unmark(u8, u8),
    /// The webhook of an owner's namespace hangs for so many seconds. For each pod that is created, changed or deleted
    /// it takes the 10 s that the server allows it. Then the call fails or continues, by the webhook's failure policy.
    Webhook(u8, u8, bool),
    /// Somebody changes a pod, a Node or a job so that no operator can decode it.
    Garble(u8),
    /// An admin sets a concurrency limit.
    Limit(u8, u8),
    LimitGone(u8),
    /// An admin configures how the negotiator preempts.
    Negotiating(u8),
    /// An admin sets which nodes each of two negotiators has.
    Negotiators(u8),
    /// An admin sets a policy, its way to treat jobs, and its division of nodes.
    Policy(u8, u8, u8),
    PolicyGone(u8),
    /// Somebody asks to drain a node, in one of several ways.
    Drain(u8, u8, u8),
    DrainGone(u8),
    /// The agent of a node starts, falls silent, says that it cannot work, or is taken off.
    Agent(u8, Presence),
    /// The owner of a node works at it for so many seconds.
    Owner(u8, u8),
}

/// The condition of a node's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Works,
    Silent,
    CannotWork,
    TakenOff,
}

/// An item of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub when: When,
    pub what: What,
}

/// How many kinds of attributes that act there are.
pub const ATTRIBUTES: u8 = 10;

/// Policies with this number and higher ask for backfill work.
pub const BACKFILL: u8 = 11;

/// Features of an API server that another may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Whether the server sends bookmarks.
    pub bookmarks: bool,
    /// How the server takes a watch that is to begin with a list.
    pub lists: Lists,
}

/// How a server takes a watch that is to begin with a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// The watch begins with a list.
    AsWatches,
    /// The server knows no such watches.
    InPages,
    /// The server accepts the watch, and ends it with an error.
    Broken,
    /// The server accepts the watch, and ends it within the list.
    CutOff,
}

impl Server {
    /// A server that has everything.
    pub const NEWEST: Self = Self { bookmarks: true, lists: Lists::AsWatches };
}

/// Everything that follows from a seed and determines a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    /// When faults stop, in seconds.
    pub ends: u32,
    /// The features of the server.
    pub server: Server,
    /// Whether a call whose caller hung up long ago takes effect when it arrives at last.
    pub ghosts: bool,
    /// By how many seconds the operators' clocks are wrong, by seat. Each start of an operator has another error.
    pub skew: i64,
    /// The division of nodes once everything is repaired.
    pub layout: u8,
    /// Whether operators keep a history of final ads.
    pub history: bool,
    pub items: Vec<Item>,
}

impl Plan {
    /// The plan of a story: nothing but these items, against the newest server, until faults stop at `ends`, in seconds.
    pub const fn told(ends: u32, items: Vec<Item>) -> Self {
        Self {
            seed: 0,
            ends,
            server: Server::NEWEST,
            ghosts: false,
            skew: 0,
            layout: 0,
            history: false,
            items,
        }
    }
}
