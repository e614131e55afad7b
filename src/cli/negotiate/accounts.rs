//! The accounts of submitters: what they use, and the priorities that a file gives them.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Deserialize;

use crate::stop::{Stop, unusable};
use model::negotiator::accountant::MIN_REAL_PRIORITY;

/// The entry of a submitter in a file of priorities.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Priority {
    /// The real user priority; if unset, the best possible.
    pub(super) rup: Option<f64>,
    /// The priority factor; if unset, that of the configuration and the groups.
    pub(super) factor: Option<f64>,
    /// The slot weight that the submitter gets before all others.
    pub(super) floor: Option<f64>,
    /// The most slot weight that the submitter may use.
    pub(super) ceiling: Option<f64>,
}

impl Priority {
    /// The effective priority. `otherwise` is the priority factor if the file gives none.
    pub(super) fn effective(&self, otherwise: f64) -> f64 {
        let real = self.rup.unwrap_or(MIN_REAL_PRIORITY).max(MIN_REAL_PRIORITY);
        real * self.factor.unwrap_or(otherwise).max(1.0)
    }
}

/// Reads a file of priorities: a JSON object, by the names of submitters.
pub(super) fn read(path: &Path, text: &str) -> Result<BTreeMap<String, Priority>, Stop> {
    let priorities: BTreeMap<String, Priority> = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = error.to_string();
        let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
        unusable(path.display(), format!("line {line}, column {column}: {what}"))
    })?;
    for (name, priority) in &priorities {
        let numbers = [("rup", priority.rup), ("factor", priority.factor), ("floor", priority.floor)];
        let numbers = numbers.into_iter().chain([("ceiling", priority.ceiling)]);
        if let Some((field, number)) =
            numbers.filter_map(|(field, number)| Some((field, number?))).find(|(_, n)| *n < 0.0)
        {
            let what = format!("{name}: {field} is {number}; give a number of 0 or more, or null");
            return Err(unusable(path.display(), what));
        }
    }
    Ok(priorities)
}

/// The accounts of all submitters who use slots or wait for them, in the order in which they were read.
///
/// A name with a domain and the same name without one are one account: `AccountingGroup` in the ads of jobs has no
/// domain, but the names in the ads of slots and in the accountant have one.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    names: Vec<String>,
    /// The slot weight that each account uses.
    used: Vec<f64>,
    /// How many slots each account uses.
    running: Vec<u64>,
    places: HashMap<String, usize>,
    /// The first account of each name without its domain.
    by_local: HashMap<String, usize>,
}

fn local(name: &str) -> &str {
    name.rsplit_once('@').map_or(name, |(local, _)| local)
}

impl Accounts {
    /// The index of an account, which is opened if there is none.
    pub(super) fn open(&mut self, name: &str) -> usize {
        if let Some(place) = self.find(name) {
            return place;
        }
        let place = self.names.len();
        self.names.push(name.to_owned());
        self.used.push(0.0);
        self.running.push(0);
        self.places.insert(name.to_owned(), place);
        self.by_local.entry(local(name).to_owned()).or_insert(place);
        place
    }

    /// The index of an account, if there is one.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let exact = self.places.get(name);
        let other =
            || if name.contains('@') { self.places.get(local(name)) } else { self.by_local.get(name) };
        exact.or_else(other).copied()
    }

    /// Charges a slot of this weight to the account of this name.
    pub(super) fn charge(&mut self, name: &str, weight: f64) {
        let place = self.open(name);
        if let (Some(used), Some(running)) = (self.used.get_mut(place), self.running.get_mut(place)) {
            *used += weight;
            *running += 1;
        }
    }

    /// The names of the accounts, by index.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The slot weight that an account uses.
    pub(super) fn used(&self, place: usize) -> f64 {
        self.used.get(place).copied().unwrap_or_default()
    }

    /// How many slots an account uses.
    pub(super) fn running(&self, place: usize) -> u64 {
        self.running.get(place).copied().unwrap_or_default()
    }

    /// The priority of each account, by index, from a file's priorities by name.
    pub(super) fn priorities(&self, file: &BTreeMap<String, Priority>) -> Vec<Priority> {
        let mut priorities = vec![Priority::default(); self.names.len()];
        for (name, priority) in file {
            if let Some(known) = self.find(name).and_then(|place| priorities.get_mut(place)) {
                *known = *priority;
            }
        }
        priorities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_and_without_a_domain_is_one_account() {
        let mut accounts = Accounts::default();
        accounts.charge("a@x", 1.0);
        accounts.charge("a@y", 2.0);
        accounts.charge("a", 4.0);
        accounts.charge("g.b", 1.0);
        accounts.charge("g.b@x", 1.0);
        let all: Vec<(&str, f64)> = accounts.names().zip((0..).map(|place| accounts.used(place))).collect();
        assert_eq!(all, [("a@x", 5.0), ("a@y", 2.0), ("g.b", 2.0)]);
    }

    #[test]
    fn effective_priorities_have_bounds_and_defaults() {
        let read = |text| read(Path::new("p"), text).map_err(|_| ()).unwrap();
        let file = read(
            r#"{"a": {"rup": 5, "factor": 10}, "b@x": {"rup": 0.1, "factor": 0, "ceiling": null}, "c": {}}"#,
        );
        let mut accounts = Accounts::default();
        for name in ["c", "b", "a"] {
            accounts.open(name);
        }
        let effective: Vec<f64> = accounts.priorities(&file).iter().map(|p| p.effective(1000.0)).collect();
        assert_eq!(effective, [500.0, 0.5, 50.0]);
    }

    #[test]
    fn a_priority_that_is_none_is_told_with_its_place() {
        let fault = |text| match read(Path::new("p"), text) {
            Err(Stop::Unusable(message)) => message,
            _ => panic!("it was read"),
        };
        let unknown =
            "p: line 2, column 6: unknown field `rop`, expected one of `rup`, `factor`, `floor`, `ceiling`";
        assert_eq!(fault("{\"a\":\n{\"rop\": 1}}"), unknown);
        assert_eq!(fault("{\"a\": {\"rup\": -1}}"), "p: a: rup is -1; give a number of 0 or more, or null");
    }
}
