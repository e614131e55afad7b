//! Which jobs every slot treats alike: autoclusters.
//!
//! Two jobs differ for a slot only if they differ in an attribute that an expression of the slot's or the negotiator's reads: a
//! significant attribute. Jobs that agree in all significant attributes, and in all attributes that those read in turn, are one
//! autocluster, and are matched as one request.
//!
//! Source: HTCondor manual, "SIGNIFICANT_ATTRIBUTES"; `Matchmaker::compute_significant_attrs` and the schedd's
//! `AutoCluster::getAutoClusterid` for what the manual leaves out.

use std::collections::{BTreeSet, HashMap, HashSet};

use classad::{Ad, Expr, Name};

/// Attributes that are significant whatever the slots read, because the negotiator reads them.
const ALWAYS: [&str; 5] =
    ["Requirements", "Rank", "ConcurrencyLimits", "WantPslotPreemption", "WantAdRevaluate"];

/// Attributes that are never significant (`REMOVE_SIGNIFICANT_ATTRIBUTES`): those that the negotiator adds to ads, those that
/// belong to the slot in any sensible expression, and those that change while a job runs.
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

/// The attributes of jobs that slots and the negotiator read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Significant(BTreeSet<Name>);

impl Significant {
    /// The attributes of a job that these slots read, and these expressions of the negotiator's about a slot.
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

/// The attributes of slots that the jobs, or these expressions of the negotiator, read. [`Autoclusters`] made with these attributes sort
/// slots into classes, and each job treats all slots of a class alike.
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

/// Whether an attribute is never significant: by [`NEVER`], or because it matches `REMOVE_SIGNIFICANT_ATTRIBUTES_REGEX`, which
/// is `^Slot[0-9]*_`.
fn never(name: &Name) -> bool {
    let text = name.as_str();
    let of_a_slot = text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("slot"))
        && text
            .get(4..)
            .is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('_'));
    of_a_slot || NEVER.iter().any(|never| name.is(never))
}

/// Collects the names of attributes that ads read of the other ad in a match.
#[derive(Debug, Default)]
struct Asked {
    /// The attributes that each expression reads, by the expression's address: most ads share most of their expressions.
    known: HashMap<usize, Reads>,
    names: HashSet<Name>,
}

/// The attributes that an expression reads.
#[derive(Debug)]
struct Reads {
    /// The expression. This reference keeps the expression alive, so that no other expression gets the address.
    _expr: Expr,
    /// The names without scope: the other ad's attribute is read only if the expression's own ad lacks the attribute.
    bare: Box<[Name]>,
}

impl Asked {
    /// Adds what all expressions of an ad read, and what other expressions read that are evaluated in the ad.
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
    /// How many of the names are significant. These have the first numbers.
    significant: u32,
    /// The number of each autocluster by its signature: pairs of attribute and expression. The order of the pairs depends on
    /// nothing else.
    known: HashMap<Box<[(u32, u32)]>, usize>,
    work: Work,
}

/// The buffers in which a signature is made. They are reused, so that the next signature allocates no memory.
#[derive(Debug, Default)]
struct Work {
    signature: Vec<(u32, u32)>,
    /// Attributes that belong into the signature.
    queue: Vec<u32>,
    /// For each attribute, the last ad for which the attribute was put into the queue.
    queued: Vec<u64>,
    /// The number of the ad whose signature is being made.
    ad: u64,
}

impl Autoclusters {
    /// Makes a sorter that has no autocluster yet.
    pub fn new(significant: &Significant) -> Self {
        let mut autoclusters = Self::default();
        for name in significant.names() {
            autoclusters.names.number(name);
            autoclusters.significant += 1;
        }
        autoclusters
    }

    /// The number of an ad's autocluster: 0 for that of the first ad, and the next free number for each new autocluster.
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
    /// Puts an attribute into the queue, unless it was put there for the same ad already.
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

/// Numbers for the names of attributes.
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

/// The most expressions that are remembered by address. There must be a bound, because ads may bring new expressions without
/// end.
const ADDRESSES: usize = 1 << 16;

/// Numbers for expressions. Expressions with equal text have equal numbers.
#[derive(Debug, Default)]
struct Exprs {
    by_address: HashMap<usize, (Expr, u32)>,
    by_text: HashMap<Box<str>, u32>,
    /// The attributes of its own ad that each expression reads, by the expression's number.
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
