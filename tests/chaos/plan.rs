//! What happens in a run, drawn from a seed before it begins: a list of which any part can be left out.

use super::processes::Fated;
use super::rng::Rng;

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

/// Those that faults are drawn for, the ones that matter most more often.
const TARGETS: [Class; 33] = [
    Class::CreateSlot,
    Class::CreateSlot,
    Class::CreateSlot,
    Class::CreateSlot,
    Class::PatchSlot,
    Class::PatchSlot,
    Class::PatchSlot,
    Class::DeleteSlot,
    Class::DeleteSlot,
    Class::DeleteSlot,
    Class::GetSlot,
    Class::CreatePod,
    Class::CreatePod,
    Class::CreatePod,
    Class::CreatePod,
    Class::GetPod,
    Class::DeletePod,
    Class::DeletePod,
    Class::UntrackPod,
    Class::UntrackPod,
    Class::UntrackPod,
    Class::AskAgent,
    Class::GetJob,
    Class::AddJobFinalizer,
    Class::AddJobFinalizer,
    Class::JobStatus,
    Class::JobStatus,
    Class::JobStatus,
    Class::SlotStatus,
    Class::OtherStatus,
    Class::Lease,
    Class::List,
    Class::Watch,
];

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

/// A job as somebody writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub job: u8,
    pub group: Option<u8>,
    pub count: u8,
    pub cpus: u8,
    pub gpus: u8,
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

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let ends = 20 + u32::try_from(rng.below(130)).unwrap();
        let mut plan = Self {
            seed,
            ends,
            bookmarks: !rng.one_in(4),
            ghosts: rng.one_in(4),
            skew: skew(&mut rng),
            layout: rng.pick(&[0, 0, 0, 1, 2, 3, 4]),
            items: Vec::new(),
        };
        for node in 0..=rng.small(3) {
            plan.at(0, What::NodeBack(node, 1 + rng.small(6)));
        }
        for _ in 0..rng.pick(&[0, 0, 1, 1, 2]) {
            let policy = policy(&mut rng);
            plan.at(0, policy);
        }
        if rng.one_in(2) {
            for node in 0..3 {
                plan.at(0, What::Agent(node, Presence::Works));
            }
        }
        for group in 0..rng.small(4) {
            plan.at(0, What::Quota(group, 1 + rng.small(8)));
        }
        if rng.one_in(4) {
            plan.at(0, What::Ceiling(rng.small(2), Some(1 + rng.small(4))));
        }
        for _ in 0..=rng.small(3) {
            let early = u32::try_from(rng.below(3000)).unwrap();
            plan.at(early, What::Submit(order(&mut rng)));
        }
        if rng.one_in(3) {
            plan.at(u32::try_from(rng.below(2000)).unwrap(), What::Second);
        }
        // Some runs have one or two things happen, so that a fault is seen by itself; others many.
        let many = rng.pick(&[0, 1, 2, 3, 5, 8, 13, 20]);
        for _ in 0..many {
            let item = item(&mut rng, ends);
            plan.items.push(item);
        }
        // Last, so that what is drawn before is the same as ever.
        if rng.one_in(6) {
            plan.at(0, What::Policy(rng.small(2), BACKFILL + rng.small(3), rng.pick(&[0, 0, 1, 2, 3, 4])));
        }
        if rng.one_in(20) {
            plan.cut_off(&mut rng);
        }
        plan.share(&mut rng);
        plan.let_go(&mut rng);
        plan
    }

    /// A node with an agent is cut off for longer than most leases last.
    fn cut_off(&mut self, rng: &mut Rng) {
        let node = rng.small(3);
        self.at(0, What::Agent(node, Presence::Works));
        self.at(u32::try_from(rng.below(20_000)).unwrap(), What::NodeCut(node, 90 + rng.small(110)));
    }

    /// Things that jobs share, and a negotiator that preempts: from the start, and edited later.
    fn share(&mut self, rng: &mut Rng) {
        if rng.one_in(3) {
            self.at(0, What::Limit(0, 1 + rng.small(3)));
        }
        if rng.one_in(4) {
            self.at(0, What::Negotiating(rng.small(5)));
            // Two users who want all there is, one after the other.
            for (job, early) in [(rng.pick(&[0, 2, 4]), 1000), (rng.pick(&[1, 3]), 4000)] {
                let order = Order { job, count: 4 + rng.small(5), ..order(rng) };
                self.at(early + u32::try_from(rng.below(15_000)).unwrap(), What::Submit(order));
            }
        }
        for _ in 0..rng.pick(&[0, 0, 0, 1, 2]) {
            let at = u32::try_from(rng.below(u64::from(self.ends) * 1000)).unwrap();
            let what = match rng.below(6) {
                0..=2 => What::Limit(rng.small(2), rng.small(5)),
                3 => What::LimitGone(rng.small(2)),
                _ => What::Negotiating(rng.small(5)),
            };
            self.at(at, what);
        }
    }

    /// Others ask pods to go, and shorten what they were granted; a Node goes whose machine is on.
    fn let_go(&mut self, rng: &mut Rng) {
        for _ in 0..rng.pick(&[0, 0, 0, 1, 1, 2, 4]) {
            let at = u32::try_from(rng.below(u64::from(self.ends) * 1000)).unwrap();
            let (class, nth) = (rng.pick(&TARGETS), rng.pick(&[0, 0, 1, 1, 2, 3, 5, 8]));
            let at = When::At(at);
            let when = rng.pick(&[at, at, at, When::Before(class, nth), When::After(class, nth)]);
            let n = rng.small(16);
            let what = match rng.below(13) {
                0..=3 => What::ApiEvict(n),
                4..=5 => What::TaintEvict(n),
                6..=8 => What::DeleteSooner(n, rng.pick(&[0, 1, 1, 2, 5])),
                9..=10 => What::DeletePod(n, rng.one_in(2)),
                11 => What::Reboot(n),
                _ => What::NodeDeleted(n),
            };
            self.items.push(Item { when, what });
            // A second wish often follows the first.
            if rng.one_in(3)
                && let When::At(at) = when
            {
                let later = at + u32::try_from(rng.below(6000)).unwrap();
                self.at(later, What::DeleteSooner(n, rng.pick(&[0, 1, 2])));
            }
        }
    }

    fn at(&mut self, at: u32, what: What) {
        self.items.push(Item { when: When::At(at), what });
    }
}

fn policy(rng: &mut Rng) -> What {
    What::Policy(rng.small(2), rng.small(14), rng.pick(&[0, 0, 0, 1, 2, 3, 4, 5]))
}

fn skew(rng: &mut Rng) -> i64 {
    let wrong = i64::try_from(rng.below(600)).unwrap();
    match rng.below(4) {
        0 => wrong - 300,
        1 => (wrong - 300) * 1000,
        _ => 0,
    }
}

fn order(rng: &mut Rng) -> Order {
    Order {
        job: rng.small(5),
        group: rng.one_in(3).then(|| rng.small(4)),
        count: 1 + rng.small(6),
        cpus: 1 + rng.pick(&[0, 0, 0, 1, 2, 63]),
        gpus: u8::from(rng.one_in(8)),
        requirements: rng.pick(&[0, 0, 0, 0, 0, 1, 2, 3]),
        retention: rng.small(3),
    }
}

fn item(rng: &mut Rng, ends: u32) -> Item {
    if rng.below(5) < 2 {
        let class = rng.pick(&TARGETS);
        let nth = rng.pick(&[0, 0, 0, 1, 1, 2, 3, 4, 6, 9, 15]);
        let what = What::Call(how(rng, class), more(rng));
        return Item { when: When::Before(class, nth), what };
    }
    let at = When::At(u32::try_from(rng.below(u64::from(ends) * 1000)).unwrap());
    let (class, nth) = (rng.pick(&TARGETS), rng.pick(&[0, 0, 1, 1, 2, 3, 5, 8]));
    let when =
        rng.pick(&[at, at, When::Before(class, nth), When::After(class, nth), When::After(class, nth)]);
    Item { when, what: what(rng) }
}

/// Most faults pass; some last for a few attempts, or longer than any attempt.
fn more(rng: &mut Rng) -> u8 {
    rng.pick(&[0, 0, 0, 0, 1, 2, 5, 9, 20])
}

fn how(rng: &mut Rng, class: Class) -> How {
    let how = rng.pick(&[
        How::Error(500),
        How::Error(503),
        How::ErrorAfter,
        How::Throttled,
        How::Conflict,
        How::Reset,
        How::ResetAfter,
        How::ResetAfter,
        How::Silence,
        How::SilenceAfter,
        How::SilenceAfter,
        How::Late(300),
        How::Late(3000),
        How::Late(6000),
        How::LateAnswer(300),
        How::LateAnswer(3000),
    ]);
    let conflicts = matches!(
        class,
        Class::PatchSlot
            | Class::UntrackPod
            | Class::AskAgent
            | Class::AddJobFinalizer
            | Class::JobStatus
            | Class::SlotStatus
            | Class::OtherStatus
            | Class::Lease
    );
    // The server says Conflict of writes over a version, and of patches that it tried too often; not of others.
    if how == How::Conflict && !conflicts { How::Error(500) } else { how }
}

fn what(rng: &mut Rng) -> What {
    let n = rng.small(16);
    match rng.below(76) {
        0..=6 => What::Kill(rng.small(2)),
        7..=10 => What::KillAfterPolls(rng.small(2), u16::try_from(rng.below(60)).unwrap()),
        11..=12 => What::Stop(rng.small(2)),
        13 => What::Second,
        14..=16 => What::Stall(rng.small(2), 2 + rng.small(30)),
        17..=18 => What::Cut(rng.small(2), 2 + rng.small(30)),
        19..=22 => What::Lag(n, rng.pick(&[200, 1000, 5000, 20_000]), 5 + rng.small(40)),
        23..=24 => What::DropWatch(n, rng.one_in(2)),
        25..=26 => What::Gone(n),
        27 => What::Compact,
        28..=29 => What::NodeGone(n),
        30..=31 => What::NodeCut(n, 10 + rng.small(110)),
        32..=33 => What::NodeBack(n, 1 + rng.small(6)),
        34 => What::Cordon(n, rng.one_in(2)),
        35 => What::Taint(n, rng.one_in(2)),
        36 => What::Refuse(n, 1 + rng.small(3)),
        37 => What::Evict(n),
        38 => What::EndNow(n),
        39 => What::Foreign(rng.small(3), n, 1 + rng.small(8)),
        40 => What::ForeignGone(rng.small(3)),
        41..=43 => What::Submit(order(rng)),
        44..=45 => What::Edit(order(rng)),
        46..=47 => What::Remove(n),
        48 => What::Unhold(n),
        49..=51 => What::DeletePod(n, rng.one_in(3)),
        52 => What::StripPod(n),
        53..=54 => What::DeleteSlot(n),
        55 => What::EditSlot(n, rng.small(3)),
        56 => What::MakeSlot(n),
        57 => What::DeletePslot(n),
        58 => What::Quota(rng.small(4), rng.small(9)),
        59 => What::QuotaGone(rng.small(4)),
        60 => What::Ceiling(rng.small(2), rng.one_in(2).then(|| rng.small(6))),
        61 => What::DeleteSubmitter(n),
        62..=65 => policy(rng),
        66 => What::PolicyGone(rng.small(2)),
        67..=68 => What::Drain(rng.small(3), n, rng.small(18)),
        69 => What::DrainGone(rng.small(3)),
        70..=71 => {
            let presence = [Presence::Works, Presence::Silent, Presence::CannotWork, Presence::TakenOff];
            What::Agent(n, rng.pick(&presence))
        }
        _ => What::Owner(n, 2 + rng.small(40)),
    }
}
