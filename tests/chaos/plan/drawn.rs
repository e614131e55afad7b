//! Draws a plan from a seed.

use super::super::rng::{Rng, hash};
use super::{ATTRIBUTES, BACKFILL, Class, How, Item, Lists, Order, Plan, Presence, Server, What, When};

/// The classes of calls for which faults are drawn. Important classes are listed more than once.
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

/// How servers take a watch that is to begin with a list. Most servers do one of two things.
const LISTS: [Lists; 8] = [
    Lists::AsWatches,
    Lists::AsWatches,
    Lists::AsWatches,
    Lists::InPages,
    Lists::InPages,
    Lists::InPages,
    Lists::Broken,
    Lists::CutOff,
];

impl Plan {
    /// The plan of this seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let ends = 20 + u32::try_from(rng.below(130)).unwrap();
        let mut plan = Self {
            seed,
            ends,
            server: Server { bookmarks: !rng.one_in(4), lists: Rng::new(hash(b"lists", seed)).pick(&LISTS) },
            ghosts: rng.one_in(4),
            skew: skew(&mut rng),
            layout: rng.pick(&[0, 0, 0, 1, 2, 3, 4]),
            history: false,
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
        // In some runs only one or two things happen, so that each fault is seen by itself. In others many happen.
        let many = rng.pick(&[0, 1, 2, 3, 5, 8, 13, 20]);
        for _ in 0..many {
            let item = item(&mut rng, ends);
            plan.items.push(item);
        }
        // Drawn last, so that plans of old seeds stay the same up to here.
        if rng.one_in(6) {
            plan.at(0, What::Policy(rng.small(2), BACKFILL + rng.small(3), rng.pick(&[0, 0, 1, 2, 3, 4])));
        }
        if rng.one_in(20) {
            plan.cut_off(&mut rng);
        }
        plan.share(&mut rng);
        plan.let_go(&mut rng);
        plan.attack(&mut rng);
        plan.live(&mut rng);
        // From numbers of its own, so that plans of old seeds stay the same but for this.
        plan.act(&mut Rng::new(hash(b"attributes that act", seed)));
        plan.meet(&mut Rng::new(hash(b"events that need each other", seed)));
        plan
    }

    /// Draws events that need each other, in the order in which they do: single draws put them together too rarely for a
    /// few thousand runs.
    fn meet(&mut self, rng: &mut Rng) {
        let node = rng.small(3);
        let early = 1000 + u32::try_from(rng.below(6000)).unwrap();
        let later = early + 2000 + u32::try_from(rng.below(20_000)).unwrap();
        let job = |rng: &mut Rng, job| Order { job, cpus: 1, device: 0, requirements: 0, ..order(rng) };
        match rng.below(30) {
            // A drain meets a partitionable slot that is Unclaimed while dynamic slots of the slot are Claimed.
            0 => {
                self.at(0, What::NodeBack(node, 4));
                self.at(early, What::Submit(Order { count: 2, ..job(rng, 4) }));
                self.at(later, What::Drain(rng.small(3), node, rng.small(18)));
            }
            // A node with an agent is cut off while it runs pods, for longer than most leases last.
            1 | 2 => {
                self.at(0, What::NodeBack(node, 4));
                self.at(0, What::Agent(node, Presence::Works));
                self.at(early, What::Submit(job(rng, 4)));
                self.at(later, What::NodeCut(node, 90 + rng.small(110)));
            }
            // The owner comes back to a machine that suspends jobs, and leaves again.
            3 => {
                self.at(0, What::NodeBack(node, 4));
                self.at(0, What::Agent(node, Presence::Works));
                self.at(0, What::Policy(rng.small(2), rng.pick(&[5, 10]), 0));
                self.at(early, What::Submit(job(rng, 4)));
                self.at(later, What::Owner(node, 2 + rng.small(20)));
            }
            // An operator dies between the end of a proc in the history and the record of that end.
            4 | 5 => {
                self.history = true;
                self.at(early, What::Submit(job(rng, 0)));
                for _ in 0..3 {
                    let when = When::Before(Class::JobStatus, 2 + u32::from(rng.small(12)));
                    self.items.push(Item { when, what: What::Kill(0) });
                }
            }
            _ => {}
        }
    }

    /// Draws attributes that act, some of them soon after the job was submitted, and whether there is a history.
    fn act(&mut self, rng: &mut Rng) {
        self.history = rng.one_in(2);
        for _ in 0..rng.pick(&[0, 0, 0, 1, 1, 2, 3]) {
            let (early, late) = (rng.below(5000), rng.below(u64::from(self.ends) * 1000));
            let at = u32::try_from(rng.pick(&[early, late])).unwrap();
            let what = What::Attributes(rng.small(5), rng.small(ATTRIBUTES));
            let (class, nth) = (rng.pick(&TARGETS), rng.pick(&[0, 0, 1, 1, 2, 3, 5, 8]));
            let when = rng.pick(&[When::At(at), When::At(at), When::After(class, nth)]);
            self.items.push(Item { when, what });
            // Operators die when that hurts most: when an end is about to be recorded, or was recorded a moment ago.
            if rng.one_in(3) {
                let (class, nth) =
                    (rng.pick(&[Class::JobStatus, Class::UntrackPod]), rng.pick(&[0, 1, 2, 3, 5, 8]));
                let when = rng.pick(&[When::Before(class, nth), When::After(class, nth)]);
                self.items.push(Item { when, what: What::Kill(rng.small(2)) });
            }
        }
    }

    /// Draws what people ask of procs: hold, release, remove and vacate, and retries.
    fn live(&mut self, rng: &mut Rng) {
        for _ in 0..rng.pick(&[0, 0, 0, 1, 1, 2, 4, 6]) {
            let at = When::At(u32::try_from(rng.below(u64::from(self.ends) * 1000)).unwrap());
            let (class, nth) = (rng.pick(&TARGETS), rng.pick(&[0, 0, 1, 1, 2, 3, 5, 8]));
            let when = rng.pick(&[at, at, When::Before(class, nth), When::After(class, nth)]);
            let n = rng.small(5);
            let what = match rng.below(10) {
                0..=6 => What::Act(n, rng.pick(&[0, 0, 0, 1, 1, 2, 3, 4]), rng.pick(&[0, 1, 2, 3, 5, 6, 12])),
                7 => What::Hold(n, rng.one_in(2)),
                _ => What::Retry(n),
            };
            self.items.push(Item { when, what });
            // Often somebody changes their mind.
            if rng.one_in(3)
                && let When::At(at) = when
            {
                let later = at + u32::try_from(rng.below(8000)).unwrap();
                self.at(later, What::Act(n, 1, 0));
            }
        }
    }

    /// Draws what people do who may edit one namespace.
    fn attack(&mut self, rng: &mut Rng) {
        for _ in 0..rng.pick(&[0, 0, 0, 0, 1, 1, 2, 3]) {
            let at = When::At(u32::try_from(rng.below(u64::from(self.ends) * 1000)).unwrap());
            let (class, nth) = (rng.pick(&TARGETS), rng.pick(&[0, 0, 1, 1, 2, 3, 5, 8]));
            let when = rng.pick(&[at, at, When::Before(class, nth), When::After(class, nth)]);
            let n = rng.small(16);
            let what = match rng.below(6) {
                0..=1 => What::Unmark(n, rng.small(3)),
                2..=3 => What::Webhook(n, 5 + rng.small(50), rng.one_in(2)),
                _ => What::Garble(n),
            };
            self.items.push(Item { when, what });
        }
    }

    /// Cuts off a node with an agent for longer than most leases last.
    fn cut_off(&mut self, rng: &mut Rng) {
        let node = rng.small(3);
        self.at(0, What::Agent(node, Presence::Works));
        self.at(u32::try_from(rng.below(20_000)).unwrap(), What::NodeCut(node, 90 + rng.small(110)));
    }

    /// Draws concurrency limits and a negotiator that preempts, from the start, and later edits of both.
    fn share(&mut self, rng: &mut Rng) {
        if rng.one_in(3) {
            self.at(0, What::Limit(0, 1 + rng.small(3)));
        }
        if rng.one_in(4) {
            self.at(0, What::Negotiating(rng.small(5)));
            // Two users want the whole pool, one after the other.
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

    /// Draws requests that pods go, shorter grace periods, and the deletion of a Node whose machine is on.
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
            // A second request often follows the first.
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
        device: rng.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3]),
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

/// How many calls after the first also go wrong. Most faults hit one call; some last for several attempts, or for more
/// than the operator makes.
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
    // The server answers Conflict only to writes that name a version, and to patches that it tried too often.
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
