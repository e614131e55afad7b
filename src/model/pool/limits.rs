//! Concurrency limits: what a job wants of the pool's shared things, how much there is of each, and how much is in use.
//!
//! A name is letters, digits and `_`, without a digit first; one of a set is written `SET.NAME`. Letters' case makes no
//! difference: here all names are in lower case. What a job wants is a list, `XSW, DATABASE, FILESERVER:3`.
//!
//! Source: HTCondor manual, "Concurrency Limits"; `matchmaker.cpp` for what the manual leaves out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use classad::{Ad, Env, Value};

/// `CONCURRENCY_LIMIT_DEFAULT`: what there is of a thing that nobody has set a limit for. As good as no limit.
pub const DEFAULT_LIMIT: f64 = 2_308_032.0;

/// The job's attribute: a list, or an expression that gives one for the machine that is its TARGET.
pub const CONCURRENCY_LIMITS: &str = "ConcurrencyLimits";

/// More of one thing than anybody can want, so that sums stay numbers.
const MOST: f64 = 1e15;

/// What rounding may do to sums of fractions, as a part of the limit.
const SLACK: f64 = 1e-9;

/// What a job wants of things that are limited: how much of each, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wants(BTreeMap<Arc<str>, f64>);

/// A part of a list that names no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no limit; write NAME or SET.NAME of letters, digits and _, with an amount as in NAME:3")]
pub struct BadLimit(String);

impl Wants {
    /// Reads a list, parts between commas and white space: `name`, or `name:amount`. An amount that is no number or not
    /// positive counts as 1. What is no name is left out, as HTCondor does. A name that stands twice counts twice.
    pub fn parse(text: &str) -> Self {
        let mut wants = Self::default();
        parts(text).filter_map(|part| read(part).ok()).for_each(|(name, amount)| wants.add(&name, amount));
        wants
    }

    /// Reads a list that a person wrote, as submitting does.
    ///
    /// # Errors
    /// For the first part that is no name.
    pub fn parse_strictly(text: &str) -> Result<Self, BadLimit> {
        let mut wants = Self::default();
        for part in parts(text) {
            let (name, amount) = read(part)?;
            wants.add(&name, amount);
        }
        Ok(wants)
    }

    /// What the job wants on this slot. An expression that gives no text there wants nothing: a machine that is on no
    /// network needs no part of one.
    pub fn on_slot(job: &Ad, slot: &Ad, env: &Env) -> Self {
        match job.eval_attr(CONCURRENCY_LIMITS, Some(slot), env) {
            Value::Str(list) => Self::parse(&list),
            _ => Self::default(),
        }
    }

    /// What the job wants on any slot; none if that depends on the slot.
    pub fn on_any_slot(job: &Ad, env: &Env) -> Option<Self> {
        if !job.contains(CONCURRENCY_LIMITS) {
            return Some(Self::default());
        }
        match job.eval_attr(CONCURRENCY_LIMITS, None, env) {
            Value::Str(list) => Some(Self::parse(&list)),
            _ => None,
        }
    }

    /// Each part of the list, as [`Wants::parse`] reads it.
    pub fn each(&self) -> impl Iterator<Item = String> {
        self.iter().map(|(name, amount)| {
            if amount.total_cmp(&1.0).is_ne() { format!("{name}:{amount}") } else { name.to_owned() }
        })
    }

    /// Whether it wants nothing that is limited.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each thing with the amount, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, amount)| (&**name, *amount))
    }

    /// How much of the thing of this name.
    pub fn amount(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// Of each thing as much as the greater of the two.
    #[must_use]
    pub fn or_more(&self, other: &Self) -> Self {
        let mut most = self.clone();
        for (name, amount) in &other.0 {
            let kept = most.0.entry(Arc::clone(name)).or_default();
            *kept = kept.max(*amount);
        }
        most
    }

    /// Of each thing as much as both together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        other.iter().for_each(|(name, amount)| both.add(name, amount));
        both
    }

    fn add(&mut self, name: &str, amount: f64) {
        let sum = self.0.entry(name.into()).or_default();
        *sum = (*sum + amount).min(MOST);
    }
}

/// As `MatchedConcurrencyLimits` has it; [`Wants::parse`] reads it back as it was.
impl fmt::Display for Wants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.each().collect::<Vec<_>>().join(","))
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\t', '\r', '\n']).filter(|part| !part.is_empty())
}

fn read(part: &str) -> Result<(String, f64), BadLimit> {
    let (name, amount) =
        part.split_once(':').map_or((part, 1.0), |(name, text)| (name, leading_number(text)));
    if !is_limit_name(name) {
        return Err(BadLimit(part.to_owned()));
    }
    Ok((name.to_ascii_lowercase(), if amount > 0.0 { amount.min(MOST) } else { 1.0 }))
}

/// Whether a text names a limit: a name, or two with a dot between.
pub fn is_limit_name(text: &str) -> bool {
    match text.split_once('.') {
        Some((set, name)) => is_plain_name(set) && is_plain_name(name),
        None => is_plain_name(text),
    }
}

/// Whether a text names a set of limits, or a limit of none.
pub fn is_plain_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// The number at the beginning of a text, as C's `strtod` reads decimal ones; 0 where there is none.
fn leading_number(text: &str) -> f64 {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = |from: usize| text.get(from..).unwrap_or_default();
    let mut end = usize::from(text.starts_with(['+', '-']));
    end += digits(rest(end));
    if rest(end).starts_with('.') {
        end += 1 + digits(rest(end + 1));
    }
    if rest(end).starts_with(['e', 'E']) {
        let signed = end + 1 + usize::from(rest(end + 1).starts_with(['+', '-']));
        let exponent = digits(rest(signed));
        end = if exponent > 0 { signed + exponent } else { end };
    }
    text.get(..end).and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// What an admin says about how much there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// `<name>_LIMIT`: of the thing of this name.
    Named(f64),
    /// `CONCURRENCY_LIMIT_DEFAULT_<set>`: of each thing of the set of this name.
    EachOf(f64),
}

/// How much there is.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacities {
    named: BTreeMap<String, f64>,
    each_of: BTreeMap<String, f64>,
    default: f64,
}

impl Default for Capacities {
    fn default() -> Self {
        Self { named: BTreeMap::new(), each_of: BTreeMap::new(), default: DEFAULT_LIMIT }
    }
}

impl Capacities {
    /// Of names and sets, and `CONCURRENCY_LIMIT_DEFAULT` for all others. Of two that speak of the same the smaller counts.
    pub fn new(said: impl IntoIterator<Item = (String, Capacity)>, default: f64) -> Self {
        let mut capacities = Self { default, ..Self::default() };
        for (name, capacity) in said {
            let (kept, limit) = match capacity {
                Capacity::Named(limit) => (&mut capacities.named, limit),
                Capacity::EachOf(limit) => (&mut capacities.each_of, limit),
            };
            kept.entry(name.to_ascii_lowercase())
                .and_modify(|least| *least = limit.min(*least))
                .or_insert(limit);
        }
        capacities
    }

    /// How much there is of the thing of this name (in lower case): its own limit, that of each of its set, or that of
    /// all others.
    pub fn of(&self, name: &str) -> f64 {
        let of_set = || self.each_of.get(name.split_once('.')?.0);
        self.named.get(name).or_else(of_set).copied().unwrap_or(self.default)
    }
}

/// What is in use of one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// How much.
    pub amount: f64,
    /// By how many.
    pub holders: u64,
}

/// How much there is of limited things, and how much is in use.
///
/// More may be in use than there is, once an admin has lowered a limit: nobody loses anything by that, but nobody gets
/// any more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitBook {
    capacities: Arc<Capacities>,
    in_use: BTreeMap<Arc<str>, Tally>,
}

impl LimitBook {
    /// A book in which nothing is in use.
    pub fn new(capacities: impl IntoIterator<Item = (String, Capacity)>, default: f64) -> Self {
        Self { capacities: Arc::new(Capacities::new(capacities, default)), in_use: BTreeMap::new() }
    }

    /// The same use under other capacities.
    pub fn set_capacities(&mut self, capacities: Capacities) {
        self.capacities = Arc::new(capacities);
    }

    /// Somebody has this in use already, whatever the limits say.
    pub fn used(&mut self, wants: &Wants) {
        self.take(wants);
    }

    /// The first limit, by name, that bars this; none if all of it can be had.
    pub fn blocked<'w>(&self, wants: &'w Wants) -> Option<&'w str> {
        self.blocked_in_place_of(&Wants::default(), wants)
    }

    /// The first limit, by name, that bars this for one who gives back what he has; none if all of it can be had. Not even
    /// as much as before can be had where more is in use than there is.
    pub fn blocked_in_place_of<'w>(&self, has: &Wants, wants: &'w Wants) -> Option<&'w str> {
        wants.iter().find_map(|(name, amount)| {
            let limit = self.capacities.of(name);
            let slack = SLACK * limit.max(1.0);
            (self.tally(name).amount - has.amount(name) + amount > limit + slack).then_some(name)
        })
    }

    /// Takes what is wanted. Ask [`LimitBook::blocked`] first: what is taken beyond a limit is taken all the same.
    pub fn take(&mut self, wants: &Wants) {
        for (name, amount) in &wants.0 {
            let tally = self.in_use.entry(Arc::clone(name)).or_default();
            tally.amount += amount;
            tally.holders += 1;
        }
    }

    /// Gives back what was taken. The last holder takes with it what rounding has left of the sum.
    pub fn release(&mut self, wants: &Wants) {
        for (name, amount) in &wants.0 {
            let Some(tally) = self.in_use.get_mut(name) else { continue };
            tally.amount = (tally.amount - amount).max(0.0);
            tally.holders = tally.holders.saturating_sub(1);
            if tally.holders == 0 {
                self.in_use.remove(name);
            }
        }
    }

    /// What is in use of the thing of this name, in lower case.
    pub fn tally(&self, name: &str) -> Tally {
        self.in_use.get(name).copied().unwrap_or_default()
    }

    /// Everything that is in use, in the order of names, with how much there is of it.
    pub fn in_use(&self) -> impl Iterator<Item = (&str, Tally, f64)> {
        self.in_use.iter().map(|(name, tally)| (&**name, *tally, self.capacities.of(name)))
    }

    /// How much there is.
    pub fn capacities(&self) -> &Capacities {
        &self.capacities
    }
}

#[cfg(test)]
mod tests;
