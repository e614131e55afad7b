//! What happens in a run, drawn from a seed before it begins: a list of which any part can be left out.

mod drawn;

use super::processes::Fated;

/// The calls of the operator that differ in what their failure does.
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
    /// 500 or 503, and nothing was done.
    Error(u16),
    /// 500, though it was done.
    ErrorAfter,
    /// 429 with Retry-After.
    Throttled,
    /// 409: somebody else wrote in between.
    Conflict,
    /// The connection breaks before the server has it.
    Reset,
    /// The connection breaks when the server has done it.
    ResetAfter,
    /// No answer, and nothing was done.
    Silence,
    /// No answer, though it was done.
    SilenceAfter,
    /// It takes effect late, in milliseconds.
    Late(u32),
    /// It is answered late, in milliseconds.
    LateAnswer(u32),
}

/// When something of the plan happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this time, in milliseconds.
    At(u32),
    /// When the server is about to do the n-th call of this class.
    Before(Class, u32),
    /// When the server has just done it.
    After(Class, u32),
}

/// The [`Order::device`] of a job that asks for a GPU, as every node has one.
pub const A_GPU: u8 = 1;

/// The resource that a job asks for and that no node has.
pub fn phantom(device: u8) -> Option<&'static str> {
    match device {
        2 => Some("example.com/typo"),
        3 => Some("amd.com/gpu"),
        _ => None,
    }
}

/// A job as somebody writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub job: u8,
    pub group: Option<u8>,
    pub count: u8,
    pub cpus: u8,
    /// [`A_GPU`], a [`phantom`], or 0 for none.
    pub device: u8,
    pub requirements: u8,
    pub retention: u8,
}

/// What happens. A `u8` picks one of those that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Calls go wrong: this one and `more` after it.
    Call(How, u8),
    Kill(u8),
    /// The operator dies when it has been polled so often from now.
    KillAfterPolls(u8, u16),
    /// The operator is told to end, and starts again.
    Stop(u8),
    /// Another operator stands for election.
    Second,
    /// Nothing of an operator gets through for so many seconds, and then all of it does, late.
    Stall(u8, u8),
    /// Nothing of an operator gets through for so many seconds.
    Cut(u8, u8),
    /// Watches of a kind are so many milliseconds behind, for so many seconds.
    Lag(u8, u16, u8),
    /// Watches of a kind end, by error or not.
    DropWatch(u8, bool),
    /// Watches of a kind are told 410 Gone.
    Gone(u8),
    /// The server forgets its history: a watch that has to resume is told 410 Gone.
    Compact,
    NodeGone(u8),
    /// Somebody deletes the Node of a machine that is on: its kubelet goes on.
    NodeDeleted(u8),
    /// The machine starts again, and loses its containers.
    Reboot(u8),
    /// The clock of a node is wrong by so many seconds. Of stories.
    Clock(u8, i8),
    /// What programs that begin from now on are like. Of stories.
    Fated(Option<Fated>),
    /// The node is cut off: no lease, no status, for so many seconds.
    NodeCut(u8, u8),
    NodeBack(u8, u8),
    Cordon(u8, bool),
    /// A taint; or an admin says that a node is off, which it is.
    Taint(u8, bool),
    /// The kubelet refuses so many pods.
    Refuse(u8, u8),
    /// The kubelet evicts a pod.
    Evict(u8),
    /// Pods of the node end at once, whatever they do: just now, when they are being killed.
    EndNow(u8),
    Foreign(u8, u8, u8),
    ForeignGone(u8),
    Submit(Order),
    Edit(Order),
    Remove(u8),
    Unhold(u8),
    DeletePod(u8, bool),
    /// A pod that is being deleted, if there is one, is deleted again with a grace of so many seconds.
    DeleteSooner(u8, u8),
    /// Somebody evicts a pod by the eviction API, as `kubectl drain` does.
    ApiEvict(u8),
    /// The taint manager deletes the pods of a node.
    TaintEvict(u8),
    /// Somebody deletes a pod and takes its finalizers off.
    StripPod(u8),
    DeleteSlot(u8),
    /// Somebody edits a Slot: its claim goes, gets another id, or is for another proc.
    EditSlot(u8, u8),
    /// Somebody makes a Slot of their own.
    MakeSlot(u8),
    DeletePslot(u8),
    Quota(u8, u8),
    QuotaGone(u8),
    Ceiling(u8, Option<u8>),
    DeleteSubmitter(u8),
    /// Somebody takes the pool's labels, annotations or both off a pod.
    Unmark(u8, u8),
    /// A webhook of an owner's namespace hangs for so many seconds: it takes the 10 s that the server gives it for each pod
    /// that is made, edited or deleted, and then the call fails or goes on, as the webhook's failure policy says.
    Webhook(u8, u8, bool),
    /// Somebody makes an object so that no operator can decode it: a pod, a Node or a job.
    Garble(u8),
    /// How much there is of something that jobs share.
    Limit(u8, u8),
    LimitGone(u8),
    /// How the negotiator goes about preemption.
    Negotiating(u8),
    /// How two negotiators divide the nodes between them.
    Negotiators(u8),
    /// A policy: how it treats jobs, and how it divides nodes.
    Policy(u8, u8, u8),
    PolicyGone(u8),
    /// Somebody wants a node drained, in one way or another.
    Drain(u8, u8, u8),
    DrainGone(u8),
    /// The agent of a node comes, falls silent, says that it cannot work, or is taken off.
    Agent(u8, Presence),
    /// The owner of a node is at it for so many seconds.
    Owner(u8, u8),
}

/// How it is about an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Works,
    Silent,
    CannotWork,
    TakenOff,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub when: When,
    pub what: What,
}

/// Policies of this number and above say something of backfill work.
pub const BACKFILL: u8 = 11;

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    /// When faults stop, in seconds.
    pub ends: u32,
    /// Bookmarks are sent.
    pub bookmarks: bool,
    /// Calls whose caller hung up long ago take effect all the same, when they arrive at last.
    pub ghosts: bool,
    /// By how many seconds the clocks of operators are wrong, by seat; another for each that starts.
    pub skew: i64,
    /// How nodes are divided when everything is mended.
    pub layout: u8,
    pub items: Vec<Item>,
}
