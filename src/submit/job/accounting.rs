//! Who is charged, and concurrency limits.

use super::{Job, Outcome};
use crate::queue;

/// HTCondor's NICE_USER_ACCOUNTING_GROUP_NAME.
const NICE: &str = "nice-user";

impl Job<'_, '_> {
    pub(super) fn set_concurrency_limits(&mut self) -> Outcome {
        let list = self.given("concurrency_limits", None)?;
        let expression = self.given("concurrency_limits_expr", None)?;
        match (list, expression) {
            (Some(_), Some(expression)) => {
                Err(self.fault(&expression, "there are concurrency_limits, too: leave one of them out"))
            }
            (Some(list), None) => {
                let mut limits: Vec<String> = queue::words(&list.as_str().to_ascii_lowercase()).collect();
                for limit in &limits {
                    if !is_limit(limit) {
                        return Err(self
                            .fault(&list, format!("'{limit}' is no limit: expected NAME[.NAME][:AMOUNT]")));
                    }
                }
                limits.sort();
                if !limits.is_empty() {
                    self.set("ConcurrencyLimits", limits.join(","));
                }
                Ok(())
            }
            (None, Some(expression)) => self.assign("ConcurrencyLimits", &expression),
            (None, None) => Ok(()),
        }
    }

    pub(super) fn set_accounting_group(&mut self) -> Outcome {
        if let Some(project) = self.given("project_name", Some("ProjectName"))? {
            self.set("ProjectName", project.as_str());
        }
        let group = self.given("accounting_group", Some("AccountingGroup"))?;
        let mut name = group.as_ref().map(|group| group.as_str().to_owned());
        if self.boolean("nice_user", Some("NiceUser"))? == Some(true) {
            match &group {
                Some(given) if given.as_str() != NICE => {
                    self.warn(
                        given,
                        "nice_user",
                        "nice_user is another group, and has no effect: leave one of them out",
                    );
                }
                _ => name = Some(NICE.to_owned()),
            }
            self.set("MaxJobRetirementTime", 0);
        }
        let user = self.given("accounting_group_user", Some("AcctGroupUser"))?;
        if name.is_none() && user.is_none() {
            return Ok(());
        }
        for given in group.iter().chain(&user) {
            if given.as_str().contains(|c: char| c.is_ascii_whitespace()) {
                return Err(self.fault(given, format!("'{}' has a blank in it", given.as_str())));
            }
            let inside = given.as_str().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            if let Some(inside) = inside {
                let message = format!(
                    "has double quotes, which count as a part of the name: write {} = {inside}",
                    given.name
                );
                self.warn(given, &given.name, message);
            }
        }
        let user = user.map_or_else(|| self.world.user.clone(), |user| user.as_str().to_owned());
        self.set("AcctGroupUser", user.as_str());
        match name {
            Some(group) => {
                self.set("AcctGroup", group.as_str());
                self.set("AccountingGroup", format!("{group}.{user}"));
            }
            None => self.set("AccountingGroup", user),
        }
        Ok(())
    }
}

/// Whether a text names a limit, perhaps with a part behind a point, and an amount.
fn is_limit(text: &str) -> bool {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match name.split_once('.') {
        Some((set, name)) => is_name(set) && is_name(name),
        None => is_name(name),
    }
}
