//! The accounts of submitters, as condor_userprio prints them.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use super::groups::Groups;
use super::notes::Notes;
use crate::ads::{Ads, LocatedAd};
use crate::stop::Stop;
use classad::{Env, Value};
use condor_config::Position;
use model::negotiator::groups::ROOT;

/// An account at HTCondor's accountant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Account {
    /// The accountant's name with its domain.
    pub(super) full: String,
    /// When the accountant last brought the account up to date, in seconds since 1970.
    pub(super) updated: i64,
    /// The priority factor.
    pub(super) factor: Option<f64>,
    /// The most slot weight.
    pub(super) ceiling: Option<f64>,
    /// The slot weight before anybody gets more.
    pub(super) floor: Option<f64>,
    /// The real priority.
    pub(super) real_priority: Option<f64>,
    /// The usage in slot-seconds.
    pub(super) usage: Option<f64>,
    /// The usage in weighted slot-seconds.
    pub(super) weighted_usage: Option<f64>,
    /// When usage began, in seconds since 1970.
    pub(super) begin: Option<i64>,
    /// When the last usage was, in seconds since 1970.
    pub(super) last: Option<i64>,
}

fn local(full: &str) -> &str {
    full.rsplit_once('@').map_or(full, |(local, _)| local)
}

impl Account {
    /// The name without its domain: submitters have none here.
    pub(super) fn name(&self) -> &str {
        local(&self.full)
    }

    /// The group that the submitter charges, if any.
    pub(super) fn group(&self) -> Option<&str> {
        self.name().rsplit_once('.').map(|(group, _)| group)
    }

    /// The owner of the submitter's jobs.
    pub(super) fn owner(&self) -> &str {
        self.name().rsplit_once('.').map_or(self.name(), |(_, owner)| owner)
    }
}

/// Reads the accounts of submitters: an ad for each, or one ad for all, with a number behind each attribute, as
/// condor_userprio -legacy prints it. Accounts that cannot be one of a submitter here are left out, and noted.
///
/// # Errors
/// When the file cannot be read, or something in it is no ad.
pub(super) fn read(
    path: &Path,
    stdin: &mut dyn BufRead,
    groups: &Groups,
    notes: &mut Notes,
) -> Result<Vec<Account>, Stop> {
    let file = path.display().to_string();
    let mut known: BTreeMap<String, Account> = BTreeMap::new();
    let mut input = Ads::open(path, stdin)?;
    while let Some(found) = input.next_ad()? {
        let line = u32::try_from(found.line).unwrap_or(u32::MAX);
        let place = Position { file: file.as_str().into(), line, column: 1 };
        let Some(suffixes) = suffixes(&found) else {
            notes.at(place, "this is no ad of an account: it has no Name; print accounts by condor_userprio -allusers -long");
            continue;
        };
        for suffix in suffixes {
            let view = View { found: &found, suffix };
            let Some(account) = view.account() else { continue };
            if let Some(why) = view.unfit(&account, groups) {
                notes.at(place.clone(), format!("{} is left out: {why}", account.full));
            } else if let Some(other) = known.get(account.name()) {
                let (full, name, other) = (&account.full, account.name(), &other.full);
                notes.at(
                    place.clone(),
                    format!(
                        "{full} is left out: submitters have no domain here, and {other} is {name} already"
                    ),
                );
            } else {
                known.insert(account.name().to_owned(), account);
            }
        }
    }
    Ok(known.into_values().collect())
}

/// The endings of the attributes' names for each account in an ad, such as 1 in Name1; `None` if the ad has no account.
fn suffixes(found: &LocatedAd) -> Option<Vec<String>> {
    if found.ad.contains("Name") {
        return Some(vec![String::new()]);
    }
    let all: Vec<String> = (1..=found.ad.len()).map(|number| number.to_string()).collect();
    let named: Vec<String> =
        all.into_iter().filter(|number| found.ad.contains(&format!("Name{number}"))).collect();
    (!named.is_empty()).then_some(named)
}

/// An account in an ad.
struct View<'a> {
    found: &'a LocatedAd,
    suffix: String,
}

impl View<'_> {
    fn value(&self, attribute: &str) -> Value {
        self.found.ad.eval_attr(&format!("{attribute}{}", self.suffix), None, &Env::at(0))
    }

    fn text(&self, attribute: &str) -> Option<String> {
        self.value(attribute).as_str().map(str::to_owned)
    }

    /// A number of at least this.
    fn number(&self, attribute: &str, least: f64) -> Option<f64> {
        self.value(attribute).as_number().filter(|number| *number >= least && number.is_finite())
    }

    fn time(&self, attribute: &str) -> Option<i64> {
        self.value(attribute).as_int().filter(|secs| *secs > 0)
    }

    /// The account; `None` if it is a group's.
    fn account(&self) -> Option<Account> {
        let full = self.text("Name").filter(|name| !name.is_empty() && name != ROOT)?;
        if self.value("IsAccountingGroup").as_bool_equiv() == Some(true) {
            return None;
        }
        let factor = self.number("PriorityFactor", 1.0);
        let of_all = || self.found.ad.eval_attr("LastUpdate", None, &Env::at(0)).as_int();
        Some(Account {
            updated: self.time("LastUpdate").or_else(of_all).unwrap_or_default(),
            factor,
            // No ceiling is -1, and no floor is 0.
            ceiling: self.number("Ceiling", 0.0),
            floor: self.number("Floor", f64::MIN_POSITIVE),
            // Priority is the effective one.
            real_priority: factor.and_then(|factor| Some(self.number("Priority", 0.0)? / factor)),
            usage: self.number("AccumulatedUsage", f64::MIN_POSITIVE),
            weighted_usage: self.number("WeightedAccumulatedUsage", f64::MIN_POSITIVE),
            begin: self.time("BeginUsageTime"),
            last: self.time("LastUsageTime"),
            full,
        })
    }

    /// Why the account cannot be one of a submitter here.
    fn unfit(&self, account: &Account, groups: &Groups) -> Option<String> {
        let group = account.group()?;
        // The accountant knows its groups even where the configuration was not given.
        let is_group = self.text("AccountingGroup").is_some_and(|known| known.eq_ignore_ascii_case(group));
        let known = is_group || groups.accepts(group) || groups.is_nice(group);
        (!known).then(|| {
            format!("GROUP_NAMES does not name the group {group}, and no owner of jobs has a dot here; declare the group if it is one")
        })
    }
}
