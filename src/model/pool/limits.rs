//! Concurrency limits: how many units of the pool's shared resources a job wants, how many there are, and how many are in use.
//!
//! The name of a limit consists of letters, digits and `_`, and does not begin with a digit; a limit of a set is written
//! `SET.NAME`. Case does not count: here all names are in lower case. A job lists the units that it wants:
//! `XSW, DATABASE, FILESERVER:3`.
//!
//! Source: HTCondor manual, "Concurrency Limits"; `matchmaker.cpp` for what the manual leaves out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use classad::{Ad, Env, Evaluation, Expr, Limits, References, Value};

/// `CONCURRENCY_LIMIT_DEFAULT`: the units of a limit that no admin has set, so many that they never run out.
pub const DEFAULT_LIMIT: f64 = 2_308_032.0;

/// The job's attribute: a list, or an expression that evaluates to a list for the machine that is TARGET.
pub const CONCURRENCY_LIMITS: &str = "ConcurrencyLimits";

/// The most units of one limit that a job can want. The bound keeps sums finite.
const MOST: f64 = 1e15;

/// The rounding error that sums of fractions may have, relative to the limit.
const SLACK: f64 = 1e-9;

/// `env` with narrower bounds, for ConcurrencyLimits. The operator evaluates the ConcurrencyLimits expression for each claim and
/// after each cycle, more often than a job's other expressions, and the expression only names limits.
fn narrow(env: &Env) -> Env {
    let limits = Limits { steps: 4000, string: 16 << 10, ..env.limits.clone() };
    Env { limits, ..env.clone() }
}

/// How many units of each limit a job wants, by the limit's name.
///
/// Most jobs want no units. The map exists only if it has entries, and its copies share it: each slot has two of these values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wants(Option<Arc<BTreeMap<Arc<str>, f64>>>);

/// A part of a list that names no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no limit; write NAME or SET.NAME of letters, digits and _, with an amount as in NAME:3")]
pub struct BadLimit(String);

impl Wants {
    /// Reads a list. Commas and white space divide its parts, `name` or `name:amount`. An amount that is not a positive number
    /// counts as 1. Parts that name no limit are ignored, as in HTCondor. The amounts of a name that occurs twice are added.
    pub fn parse(text: &str) -> Self {
        let mut wants = Self::default();
        parts(text).filter_map(|part| read(part).ok()).for_each(|(name, amount)| wants.add(&name, amount));
        wants
    }

    /// Reads a list that a person submits.
    ///
    /// # Errors
    /// The first part that names no limit.
    pub fn parse_strictly(text: &str) -> Result<Self, BadLimit> {
        let mut wants = Self::default();
        for part in parts(text) {
            let (name, amount) = read(part)?;
            wants.add(&name, amount);
        }
        Ok(wants)
    }

    /// The units that the job wants on this slot: nothing if the expression does not evaluate to a string there. An expression
    /// can say so that a job needs no unit of a network on machines without that network.
    pub fn on_slot(job: &Ad, slot: &Ad, env: &Env) -> Self {
        Self::evaluated_on_slot(job, slot, env).0
    }

    /// As [`Wants::on_slot`], with the evaluation.
    pub fn evaluated_on_slot(job: &Ad, slot: &Ad, env: &Env) -> (Self, Evaluation) {
        let done = job.evaluate_attr(CONCURRENCY_LIMITS, Some(slot), &narrow(env));
        let wants = match &done.value {
            Value::Str(list) => Self::parse(list),
            _ => Self::default(),
        };
        (wants, done)
    }

    /// The units that the job wants on every slot; none if they depend on the slot.
    ///
    /// An expression that gives a missing attribute of the machine a value, as in `TARGET.Network ?: ""`, is a string without a
    /// machine, too. HTCondor takes this string for all slots; here each slot is asked.
    pub fn on_any_slot(job: &Ad, env: &Env) -> Option<Self> {
        let Some(expr) = job.get(CONCURRENCY_LIMITS) else { return Some(Self::default()) };
        if reads_machine(job, expr) {
            return None;
        }
        match job.eval_attr(CONCURRENCY_LIMITS, None, &narrow(env)) {
            Value::Str(list) => Some(Self::parse(&list)),
            _ => None,
        }
    }

    /// The parts of the list, in the form that [`Wants::parse`] reads.
    pub fn each(&self) -> impl Iterator<Item = String> {
        self.iter().map(|(name, amount)| {
            if amount.total_cmp(&1.0).is_ne() { format!("{name}:{amount}") } else { name.to_owned() }
        })
    }

    /// Whether no unit of any limit is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Each limit's name with the amount, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.units().map(|(name, amount)| (&**name, *amount))
    }

    /// The amount of the limit of this name; 0 if none is wanted.
    pub fn amount(&self, name: &str) -> f64 {
        self.0.as_ref().and_then(|units| units.get(name)).copied().unwrap_or(0.0)
    }

    /// For each limit, the greater of the two amounts.
    #[must_use]
    pub fn or_more(&self, other: &Self) -> Self {
        let mut most = self.clone();
        for (name, amount) in other.units() {
            let kept = most.unit(Arc::clone(name));
            *kept = kept.max(*amount);
        }
        most
    }

    /// For each limit, the sum of the two amounts.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        other.iter().for_each(|(name, amount)| both.add(name, amount));
        both
    }

    fn add(&mut self, name: &str, amount: f64) {
        let sum = self.unit(name.into());
        *sum = (*sum + amount).min(MOST);
    }

    fn units(&self) -> impl Iterator<Item = (&Arc<str>, &f64)> {
        self.0.iter().flat_map(|units| units.iter())
    }

    /// The amount of a limit, to be changed; 0 if none was wanted.
    fn unit(&mut self, name: Arc<str>) -> &mut f64 {
        Arc::make_mut(self.0.get_or_insert_default()).entry(name).or_default()
    }
}

/// Writes the list in the form of `MatchedConcurrencyLimits`; [`Wants::parse`] reads the same value back.
impl fmt::Display for Wants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.each().collect::<Vec<_>>().join(","))
    }
}

/// Whether an expression of a job's ad, or an attribute of the job that it reads, refers to the machine.
fn reads_machine(job: &Ad, expr: &Expr) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![expr.references()]);
    while let Some(References { my, target, bare }) = next.pop() {
        if !target.is_empty() || bare.iter().any(|name| !job.contains(name.as_str())) {
            return true;
        }
        for name in my.into_iter().chain(bare) {
            next.extend(job.get(name.as_str()).filter(|_| seen.insert(name)).map(Expr::references));
        }
    }
    false
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

/// Whether a text is the name of a limit: `NAME` or `SET.NAME`.
pub fn is_limit_name(text: &str) -> bool {
    match text.split_once('.') {
        Some((set, name)) => is_plain_name(set) && is_plain_name(name),
        None => is_plain_name(text),
    }
}

/// Whether a text is the name of a set of limits, or of a limit that is in no set.
pub fn is_plain_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// The decimal number at the beginning of a text, as C's `strtod` reads it; 0 if there is none.
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

/// A number of units that an admin sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// `<name>_LIMIT`: the units of the limit of this name.
    Named(f64),
    /// `CONCURRENCY_LIMIT_DEFAULT_<set>`: the units of each limit of the set of this name.
    EachOf(f64),
}

/// The units of all limits.
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
    /// The capacities of these names and sets, and `default` (`CONCURRENCY_LIMIT_DEFAULT`) for all other limits. If a name is
    /// given twice, the smaller capacity counts.
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

    /// The units of the limit of this name (in lower case): the limit's own, or those of each limit of its set, or the default.
    pub fn of(&self, name: &str) -> f64 {
        let of_set = || self.each_of.get(name.split_once('.')?.0);
        self.named.get(name).or_else(of_set).copied().unwrap_or(self.default)
    }

    /// Whether somebody sets the limit of this name (in lower case), or the limits of its set.
    pub fn is_set(&self, name: &str) -> bool {
        let of_set = || name.split_once('.').is_some_and(|(set, _)| self.each_of.contains_key(set));
        self.named.contains_key(name) || of_set()
    }

    /// The names of the limits that somebody sets, and those of the sets as `set.*`.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.named.keys().cloned().chain(self.each_of.keys().map(|set| format!("{set}.*")))
    }

    /// The units of each limit that nobody sets.
    pub const fn unset(&self) -> f64 {
        self.default
    }
}

/// How much of one limit is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// The units in use.
    pub amount: f64,
    /// How many jobs use them.
    pub users: u64,
}

/// The capacities of all limits, and how much of each is in use.
///
/// After an admin has lowered a limit, more may be in use than the limit allows: running jobs keep what they have, but no job
/// gets more.
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

    /// Replaces the capacities. Units in use stay in use.
    pub fn set_capacities(&mut self, capacities: Capacities) {
        self.capacities = Arc::new(capacities);
    }

    /// Adds what a job uses already, whether or not the limits allow it.
    pub fn used(&mut self, wants: &Wants) {
        self.take(wants);
    }

    /// The first limit, by name, that has too little left for this; none if all limits have enough.
    pub fn blocked<'w>(&self, wants: &'w Wants) -> Option<&'w str> {
        self.blocked_in_place_of(&Wants::default(), wants)
    }

    /// The first limit, by name, that has too little left for a job that takes the place of another job, which returns
    /// `has`; `None` if all limits have enough. If more is in use than the limit allows, the job may not even take as much
    /// as the other returns.
    pub fn blocked_in_place_of<'w>(&self, has: &Wants, wants: &'w Wants) -> Option<&'w str> {
        wants.iter().find_map(|(name, amount)| {
            let limit = self.capacities.of(name);
            let slack = SLACK * limit.max(1.0);
            (self.tally(name).amount - has.amount(name) + amount > limit + slack).then_some(name)
        })
    }

    /// Books the units of `wants` for one more user. The caller asks [`LimitBook::blocked`] first: this method does not
    /// check the limits.
    pub fn take(&mut self, wants: &Wants) {
        for (name, amount) in wants.units() {
            let tally = self.in_use.entry(Arc::clone(name)).or_default();
            tally.amount += amount;
            tally.users += 1;
        }
    }

    /// Gives back the units that one user has taken. When the last user of a limit gives its units back, the limit's
    /// sum becomes 0, whatever the rounding error was.
    pub fn return_slot(&mut self, wants: &Wants) {
        for (name, amount) in wants.units() {
            let Some(tally) = self.in_use.get_mut(name) else { continue };
            tally.amount = (tally.amount - amount).max(0.0);
            tally.users = tally.users.saturating_sub(1);
            if tally.users == 0 {
                self.in_use.remove(name);
            }
        }
    }

    /// How much of the limit of this name (in lower case) is in use.
    pub fn tally(&self, name: &str) -> Tally {
        self.in_use.get(name).copied().unwrap_or_default()
    }

    /// All limits in use, in the order of their names: name, use and capacity.
    pub fn in_use(&self) -> impl Iterator<Item = (&str, Tally, f64)> {
        self.in_use.iter().map(|(name, tally)| (&**name, *tally, self.capacities.of(name)))
    }

    /// The capacities of all limits.
    pub fn capacities(&self) -> &Capacities {
        &self.capacities
    }
}

#[cfg(test)]
mod tests;
