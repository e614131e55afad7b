//! The answer about groups, for people and programs.

use serde::Serialize;

use model::negotiator::allocation::Allocation;
use table::{Align, Table};

/// The answer about all groups.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    /// The weight of the pool.
    pub(super) pool: f64,
    /// The weight that no group is given.
    pub(super) unallocated: f64,
    /// The root, then the groups, each parent before its children.
    pub(super) groups: Vec<Row>,
}

/// The answer about a group. All amounts are slot weights, except a configured dynamic quota, which is a share.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    /// The group's name.
    pub(super) group: String,
    /// The configured quota: a slot weight or a share; `None` for the root.
    pub(super) config_quota: Option<f64>,
    /// Whether `config_quota` is a share.
    pub(super) dynamic: bool,
    /// Whether the group takes surplus that other groups leave.
    pub(super) accept_surplus: bool,
    /// Whether the group's jobs also compete with the jobs of no group.
    pub(super) autoregroup: bool,
    /// The slot weight that the group's own jobs may use without surplus.
    pub(super) effective_quota: f64,
    /// The slot weight that the group's own jobs and those of the groups inside it may use without surplus from outside.
    pub(super) subtree_quota: f64,
    /// The slot weight that the group's own jobs use.
    pub(super) weighted_resources_used: f64,
    /// The slot weight that the group's own jobs use and wait for.
    pub(super) requested: f64,
    /// The slot weight that the group's own jobs are given.
    pub(super) allocated: f64,
    /// How much of `allocated` is beyond the effective quota.
    pub(super) surplus: f64,
    /// The most that the group's own jobs may use by the end of the cycle.
    pub(super) limit: f64,
}

impl Row {
    /// The row of a group by its allocation, without the group's configuration.
    pub(super) fn new(name: &str, given: &Allocation, used: f64, limit: f64) -> Self {
        Self {
            group: name.to_owned(),
            config_quota: None,
            dynamic: false,
            accept_surplus: false,
            autoregroup: false,
            effective_quota: rounded(given.quota),
            subtree_quota: rounded(given.subtree_quota),
            weighted_resources_used: rounded(used),
            requested: rounded(given.requested),
            allocated: rounded(given.allocated),
            surplus: rounded(given.surplus()),
            limit: rounded(limit),
        }
    }
}

/// Rounds an amount, to remove the errors of floating-point sums.
pub(super) fn rounded(amount: f64) -> f64 {
    (amount * 1e9).round() / 1e9
}

impl Answer {
    /// The answer as a table for people.
    pub(super) fn table(&self) -> Table {
        let columns =
            ["CONFIGURED", "EFFECTIVE", "SUBTREE", "USED", "REQUESTED", "SURPLUS", "ALLOCATED", "LIMIT"];
        let titles = [("GROUP", Align::Left), ("ACCEPTS", Align::Left)];
        let titles = titles.into_iter().chain(columns.map(|title| (title, Align::Right)));
        let mut table = Table::new(&titles.collect::<Vec<_>>());
        for row in &self.groups {
            let configured = match row.config_quota {
                Some(quota) if row.dynamic => format!("{}%", number(quota * 100.0)),
                Some(quota) => number(quota),
                None => String::new(),
            };
            let takes = match (row.accept_surplus, row.autoregroup) {
                (_, true) => "regroups",
                (true, false) => "yes",
                (false, false) => "no",
            };
            let numbers = [
                row.effective_quota,
                row.subtree_quota,
                row.weighted_resources_used,
                row.requested,
                row.surplus,
                row.allocated,
                row.limit,
            ];
            let cells = [row.group.clone(), takes.to_owned(), configured];
            table.row(cells.into_iter().chain(numbers.map(number)));
        }
        table
    }
}

/// An amount with at most four decimals.
fn number(amount: f64) -> String {
    let text = format!("{amount:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
