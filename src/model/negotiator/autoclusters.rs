//! Which jobs any slot treats alike: autoclusters.
//!
//! A slot can tell two jobs apart only by what its expressions, or the negotiator's, read of them: the significant
//! attributes. Jobs that agree on these, and on what their own expressions for these read in turn, are one autocluster, and
//! are matched as one request.
//!
//! Source: HTCondor manual, "SIGNIFICANT_ATTRIBUTES"; `Matchmaker::compute_significant_attrs` and the schedd's
//! `AutoCluster::getAutoClusterid` for what the manual leaves out.

use std::collections::{BTreeSet, HashMap, HashSet};

use classad::{Ad, Expr, Name};

/// What is significant of every job, whatever the slots ask: the negotiator reads it.
const ALWAYS: [&str; 5] =
    ["Requirements", "Rank", "ConcurrencyLimits", "WantPslotPreemption", "WantAdRevaluate"];

/// Never significant: what the negotiator adds to ads itself, what is a slot's in any sane expression, and what changes
/// while a job runs (`REMOVE_SIGNIFICANT_ATTRIBUTES`).
const NEVER: [&str; 35] = [
    "CurrentTime",
    "LastHeardFrom",
    "RemoteUser",
    "RemoteUserPrio",
    "RemoteUserResourcesInUse",
    "RemoteUserFloor",
    "RemoteGroup",
    "RemoteGroupResourcesInUse",
    "RemoteGroupQuota",
    "SubmitterUserPrio",
    "SubmittorPrio",
    "SubmitterUserResourcesInUse",
    "SubmitterGroup",
    "SubmitterGroupResourcesInUse",
    "SubmitterGroupQuota",
    "SubmitterNegotiatingGroup",
    "SubmitterAutoregroup",
    "TotalJobRunTime",
    "MachineLastMatchTime",
    "JobCurrentStartDate",
    "JobState",
    "Mips",
    "KFlops",
    "SlotID",
    "DSlotID",
    "PartitionableSlot",
    "DynamicSlot",
    "Offline",
    "RemoteOwner",
    "State",
    "CpusUsage",
    "DiskUsage",
    "GPUsUsage",
    "MemoryUsage",
    "ResidentSetSize",
];

/// Attributes of jobs that slots and the negotiator look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Significant(BTreeSet<Name>);

impl Significant {
    /// What these slots, and these expressions of the negotiator's about any of them, read of a job.
    pub fn of<'a>(slots: impl IntoIterator<Item = &'a Ad>, exprs: &[&Expr]) -> Self {
        let mut asked = Asked::default();
        for slot in slots {
            asked.by(slot, exprs);
        }
        let always = ALWAYS.into_iter().map(Name::from);
        let names = asked.names.into_iter().filter(|name| !never(name)).chain(always);
        Self(names.collect())
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.iter()
    }
}

/// The same from the other side: what a slot is to these jobs and to these expressions of the negotiator's. Slots that agree
/// on these, found by [`Autoclusters`], are one class: no job tells them apart.
pub fn slot_attributes<'a>(jobs: impl IntoIterator<Item = &'a Ad>, exprs: &[&Expr]) -> Significant {
    let mut asked = Asked::default();
    for job in jobs {
        asked.by(job, &[]);
    }
    for expr in exprs {
        let read = expr.references();
        asked.names.extend(read.my.into_iter().chain(read.bare));
    }
    asked.names.extend(["Requirements", "Rank", "CurrentRank", "SlotWeight"].map(Name::from));
    Significant(asked.names.into_iter().collect())
}

/// Whether an attribute is none of those that tell jobs apart. (`REMOVE_SIGNIFICANT_ATTRIBUTES_REGEX` is `^Slot[0-9]*_`.)
fn never(name: &Name) -> bool {
    let text = name.as_str();
    let of_a_slot = text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("slot"))
        && text
            .get(4..)
            .is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('_'));
    of_a_slot || NEVER.iter().any(|never| name.is(never))
}

/// Collects the names that ads ask of the other side.
#[derive(Debug, Default)]
struct Asked {
    /// What each expression reads, by its address: most ads share most of theirs.
    known: HashMap<usize, Reads>,
    names: HashSet<Name>,
}

/// What an expression reads.
#[derive(Debug)]
struct Reads {
    /// Kept, so that no other has its address.
    _expr: Expr,
    /// Of the other ad only where its own lacks it.
    bare: Box<[Name]>,
}

impl Asked {
    /// All expressions of an ad, and others that are evaluated in it.
    fn by(&mut self, ad: &Ad, others: &[&Expr]) {
        let mut next = Some(ad);
        while let Some(part) = next {
            for (_, expr) in part.unsorted() {
                self.expression(ad, expr);
            }
            next = part.chained();
        }
        for expr in others {
            self.expression(ad, expr);
        }
    }

    fn expression(&mut self, ad: &Ad, expr: &Expr) {
        if expr.as_literal().is_some() {
            return;
        }
        let Self { known, names } = self;
        let reads = known.entry(expr.address()).or_insert_with(|| {
            let read = expr.references();
            names.extend(read.target);
            Reads { _expr: expr.clone(), bare: read.bare.into_iter().collect() }
        });
        for name in &reads.bare {
            if !names.contains(name) && ad.get_name(name).is_none() {
                names.insert(name.clone());
            }
        }
    }
}

/// Sorts ads into those that agree on the significant attributes.
///
/// ```
/// use classad::Ad;
/// use model::negotiator::autoclusters::{Autoclusters, Significant};
///
/// let slot = Ad::parse_new("[Memory = 1024; Requirements = TARGET.RequestMemory <= MY.Memory]")?;
/// let mut autoclusters = Autoclusters::new(&Significant::of([&slot], &[]));
/// let job = |text| Ad::parse_new(text).map(|ad| autoclusters.number(&ad));
/// let numbers: Result<Vec<usize>, _> =
///     ["[RequestMemory = 1; ProcId = 0]", "[RequestMemory = 2]", "[RequestMemory = 1; ProcId = 7]"].into_iter().map(job).collect();
/// assert_eq!(numbers?, [0, 1, 0]);
/// # Ok::<(), classad::ParseError>(())
/// ```
#[derive(Debug, Default)]
pub struct Autoclusters {
    names: Names,
    exprs: Exprs,
    /// How many of the names are significant: they have the first numbers.
    significant: u32,
    /// By signature: attribute and expression, in an order that follows from them alone.
    known: HashMap<Box<[(u32, u32)]>, usize>,
    work: Work,
}

/// What one signature is made with: kept so that the next needs no memory.
#[derive(Debug, Default)]
struct Work {
    signature: Vec<(u32, u32)>,
    /// Attributes to look at.
    queue: Vec<u32>,
    /// For each attribute, the last ad that it was put into the queue for.
    queued: Vec<u64>,
    ad: u64,
}

impl Autoclusters {
    /// None yet.
    pub fn new(significant: &Significant) -> Self {
        let mut autoclusters = Self::default();
        for name in significant.names() {
            autoclusters.names.number(name);
            autoclusters.significant += 1;
        }
        autoclusters
    }

    /// The number of an ad's autocluster: from 0, in the order in which they come.
    pub fn number(&mut self, ad: &Ad) -> usize {
        self.sign(ad);
        if let Some(number) = self.known.get(self.work.signature.as_slice()) {
            return *number;
        }
        let number = self.known.len();
        self.known.insert(self.work.signature.as_slice().into(), number);
        number
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Makes the signature of an ad.
    fn sign(&mut self, ad: &Ad) {
        let Self { names, exprs, work, .. } = self;
        work.ad += 1;
        work.signature.clear();
        work.queue.clear();
        for name in 0..self.significant {
            work.add(name);
        }
        let mut at = 0;
        while let Some(name) = work.queue.get(at).copied() {
            at += 1;
            let Some(expr) = names.name(name).and_then(|name| ad.get_name(name)) else { continue };
            let (number, reads) = exprs.look_up(expr, names);
            work.signature.push((name, number));
            for read in reads {
                work.add(*read);
            }
        }
    }
}

impl Work {
    /// Puts an attribute into the queue, once an ad.
    fn add(&mut self, name: u32) {
        let place = name as usize;
        if place >= self.queued.len() {
            self.queued.resize(place + 1, 0);
        }
        if let Some(queued) = self.queued.get_mut(place).filter(|queued| **queued != self.ad) {
            *queued = self.ad;
            self.queue.push(name);
        }
    }
}

/// Attributes by number.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Name, u32>,
    names: Vec<Name>,
}

impl Names {
    fn number(&mut self, name: &Name) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.numbers.insert(name.clone(), number);
        self.names.push(name.clone());
        number
    }

    fn name(&self, number: u32) -> Option<&Name> {
        self.names.get(number as usize)
    }
}

/// How many expressions are known by address: ads may bring new ones without end.
const ADDRESSES: usize = 1 << 16;

/// Expressions by number: equal text, equal number.
#[derive(Debug, Default)]
struct Exprs {
    by_address: HashMap<usize, (Expr, u32)>,
    by_text: HashMap<Box<str>, u32>,
    /// What each reads of its own ad.
    reads: Vec<Box<[u32]>>,
}

impl Exprs {
    /// The number of an expression, and the attributes of its own ad that it may read.
    fn look_up(&mut self, expr: &Expr, names: &mut Names) -> (u32, &[u32]) {
        let number = match self.by_address.get(&expr.address()) {
            Some((_, number)) => *number,
            None => self.add(expr, names),
        };
        (number, self.reads.get(number as usize).map_or(&[], |reads| reads))
    }

    fn add(&mut self, expr: &Expr, names: &mut Names) -> u32 {
        let text = expr.to_string().into_boxed_str();
        let known = self.by_text.get(&text).copied();
        let number = known.unwrap_or_else(|| {
            let number = u32::try_from(self.reads.len()).unwrap_or(u32::MAX);
            let read = expr.references();
            self.reads.push(read.my.iter().chain(&read.bare).map(|name| names.number(name)).collect());
            self.by_text.insert(text, number);
            number
        });
        if self.by_address.len() >= ADDRESSES {
            self.by_address.clear();
        }
        self.by_address.insert(expr.address(), (expr.clone(), number));
        number
    }
}
