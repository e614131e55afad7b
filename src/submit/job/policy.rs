//! Expressions that act on a job: rank, periodic ones, retries, signals, deferral.

use classad::Value;
use crontab::{Crontab, Field};

use super::{GivenValue, Job, Outcome};

/// The periodic expressions, and what belongs to on_exit_hold.
const PERIODIC: &[(&str, &str)] = &[
    ("periodic_hold", "PeriodicHold"),
    ("periodic_hold_reason", "PeriodicHoldReason"),
    ("periodic_hold_subcode", "PeriodicHoldSubCode"),
    ("periodic_release", "PeriodicRelease"),
    ("periodic_remove", "PeriodicRemove"),
    ("periodic_vacate", "PeriodicVacate"),
    ("on_exit_hold_reason", "OnExitHoldReason"),
    ("on_exit_hold_subcode", "OnExitHoldSubCode"),
];

/// Signals by number.
const SIGNALS: &[(i64, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (17, "SIGCHLD"),
    (18, "SIGCONT"),
    (19, "SIGSTOP"),
    (20, "SIGTSTP"),
    (21, "SIGTTIN"),
    (22, "SIGTTOU"),
    (23, "SIGURG"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (26, "SIGVTALRM"),
    (27, "SIGPROF"),
    (28, "SIGWINCH"),
    (29, "SIGIO"),
    (30, "SIGPWR"),
    (31, "SIGSYS"),
];

impl Job<'_, '_> {
    pub(super) fn set_notification(&mut self) -> Outcome {
        let Some(given) = self.given("notification", Some("JobNotification"))? else {
            self.set("JobNotification", 0);
            return Ok(());
        };
        let kinds = [("never", 0), ("always", 1), ("complete", 2), ("error", 3), ("start", 4)];
        let Some((_, number)) = kinds.into_iter().find(|(word, _)| given.is(word)) else {
            return Err(self.fault(&given, "expected never, always, complete, error or start"));
        };
        self.set("JobNotification", number);
        Ok(())
    }

    pub(super) fn set_rank(&mut self) -> Outcome {
        if let Some(given) = self.given("rank", Some("preferences"))? {
            self.assign("Rank", &given)
        } else {
            self.set("Rank", 0.0);
            Ok(())
        }
    }

    pub(super) fn set_periodic_expressions(&mut self) -> Outcome {
        for (command, attribute) in PERIODIC {
            if let Some(given) = self.given(command, Some(attribute))? {
                self.assign(attribute, &given)?;
            }
        }
        if let Some(given) = self.given("leave_in_queue", Some("LeaveJobInQueue"))? {
            self.assign("LeaveJobInQueue", &given)
        } else {
            if !self.has("LeaveJobInQueue") {
                self.set("LeaveJobInQueue", false);
            }
            Ok(())
        }
    }

    /// max_retries, success_exit_code and retry_until make OnExitRemove.
    pub(super) fn set_retries(&mut self) -> Outcome {
        let remove = self.given("on_exit_remove", Some("OnExitRemove"))?;
        let hold = self.given("on_exit_hold", Some("OnExitHold"))?;
        let retries = self.integer("max_retries", Some("JobMaxRetries"))?;
        let success = self.integer("success_exit_code", Some("JobSuccessExitCode"))?;
        let until = self.given("retry_until", None)?;
        if retries.is_none() && success.is_none() && until.is_none() {
            for (attribute, given) in [("OnExitRemove", &remove), ("OnExitHold", &hold)] {
                given.as_ref().map_or(Ok(()), |given| self.assign(attribute, given))?;
            }
            return Ok(());
        }
        let until = until.map(|given| self.until(&given)).transpose()?;
        match retries {
            Some(retries) => self.set("JobMaxRetries", retries),
            None if !self.has("JobMaxRetries") => self.set("JobMaxRetries", 2),
            None => {}
        }
        match &hold {
            Some(given) => self.assign("OnExitHold", given)?,
            None if !self.has("OnExitHold") => self.set("OnExitHold", false),
            None => {}
        }
        if self.has("OnExitRemove") && success.is_none() && until.is_none() {
            return Ok(());
        }
        let mut code = "0".to_owned();
        if let Some(success) = success {
            self.set("JobSuccessExitCode", success);
            "JobSuccessExitCode".clone_into(&mut code);
        }
        let mut text = format!("NumJobCompletions > JobMaxRetries || ExitCode =?= {code}");
        for more in until.into_iter().chain(remove.map(|given| self.operand(&given, "||")).transpose()?) {
            text.push_str(" || ");
            text.push_str(&more);
        }
        self.assign_text("OnExitRemove", &text)
    }

    /// The clause that retry_until stands for: an exit code, or an expression.
    fn until(&self, given: &GivenValue) -> Outcome<String> {
        let expr = self.parse(given)?;
        let references = expr.references();
        let constant = references.my.is_empty() && references.target.is_empty() && references.bare.is_empty();
        match self.scope.integer(given.as_str()) {
            Some(code) if constant && i32::try_from(code).is_ok() => Ok(format!("ExitCode =?= {code}")),
            Some(_) if constant => Err(self.fault(given, "the exit code is too large")),
            _ => self.operand(given, "||"),
        }
    }

    /// An expression as an operand of `&&` or `||`, in parentheses if it needs them.
    pub(super) fn operand(&self, given: &GivenValue, operator: &str) -> Outcome<String> {
        self.parse(given)?;
        Ok(operand(given.as_str(), operator))
    }

    pub(super) fn set_signals(&mut self) -> Outcome {
        for (command, attribute) in
            [("kill_sig", "KillSig"), ("remove_kill_sig", "RemoveKillSig"), ("hold_kill_sig", "HoldKillSig")]
        {
            let Some(given) = self.given(command, Some(attribute))? else { continue };
            let upper = given.as_str().to_ascii_uppercase();
            let number = upper.parse::<i64>().unwrap_or(0);
            let known = SIGNALS.iter().find(|(signal, name)| *signal == number || *name == upper);
            match known {
                Some((_, name)) => self.set(attribute, *name),
                None => return Err(self.fault(&given, format!("'{}' is no signal", given.as_str()))),
            }
        }
        if let Some(given) = self.given("kill_sig_timeout", Some("KillSigTimeout"))? {
            let digits: String = given.as_str().chars().take_while(char::is_ascii_digit).collect();
            self.set("KillSigTimeout", digits.parse::<i64>().unwrap_or(0));
        }
        Ok(())
    }

    /// on_evict_checks names transforms, whose commands are in transform_body_NAME.
    pub(super) fn set_evict_checks(&mut self) -> Outcome {
        let Some(tags) = self.given("on_evict_checks", Some("TransformOnEvict"))? else { return Ok(()) };
        let mut known = Vec::new();
        for tag in crate::queue::words(tags.as_str()) {
            let other = format!("TransformBody_{tag}");
            let Some(body) = self.given(&format!("transform_body_{tag}"), Some(&other))? else { continue };
            let lines = body.as_str().lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            let lines = lines.collect::<Vec<_>>().join("\x1e");
            self.set(&other, lines);
            known.push(tag);
        }
        self.set("TransformOnEvict", known.join(" "));
        Ok(())
    }

    /// The attribute because of which the job waits for a time, if there is one.
    pub(super) fn deferred(&self) -> bool {
        Field::ALL.iter().any(|field| self.has(field.attribute())) || self.has("DeferralTime")
    }

    pub(super) fn set_deferral(&mut self) -> Outcome {
        if let Some(given) = self.given("deferral_time", Some("DeferralTime"))? {
            self.assign_time("DeferralTime", &given)?;
        }
        self.check_crontab()?;
        if !self.deferred() {
            return Ok(());
        }
        for (cron, command, attribute, default) in [
            ("cron_window", "deferral_window", "DeferralWindow", 0),
            ("cron_prep_time", "deferral_prep_time", "DeferralPrepTime", 300),
        ] {
            let cron_attribute = if default == 0 { "CronWindow" } else { "CronPrepTime" };
            let mut given = self.given(cron, Some(cron_attribute))?;
            if given.is_none() {
                given = self.given(command, Some(attribute))?;
            }
            match given {
                Some(given) => self.assign_time(attribute, &given)?,
                None => self.set(attribute, default),
            }
        }
        Ok(())
    }

    /// Checks the crontab that the file gives. condor_submit leaves that to the schedd, which holds the job.
    fn check_crontab(&mut self) -> Outcome {
        let mut all: [Option<GivenValue>; 5] = Default::default();
        for (field, given) in Field::ALL.into_iter().zip(&mut all) {
            *given = self.given(field.command(), Some(field.attribute()))?;
        }
        let [minute, hour, day, month, weekday] = &all;
        let texts = [minute, hour, day, month, weekday].map(|given| given.as_ref().map(GivenValue::as_str));
        let Err(fault) = Crontab::new(texts) else { return Ok(()) };
        let blamed = Field::ALL.iter().zip(&all).find(|(field, _)| **field == fault.field());
        match blamed.and_then(|(_, given)| given.as_ref()) {
            Some(given) => Err(self.fault_at(given, fault.offset(), fault.to_string())),
            None => Err(self.missing(format!("{}: {fault}", fault.field().command()))),
        }
    }

    fn assign_time(&mut self, attribute: &str, given: &GivenValue) -> Outcome {
        let expr = self.parse(given)?;
        if expr.as_literal().is_some_and(|value| !matches!(value, Value::Int(0..))) {
            return Err(self.fault(given, "expected a number of seconds that is not negative"));
        }
        self.insert(attribute, expr);
        Ok(())
    }
}

/// An expression as an operand of `&&` or `||`, in parentheses if its outermost operator binds less.
pub(super) fn operand(text: &str, operator: &str) -> String {
    let weaker: &[&str] = if operator == "&&" { &["?", "||"] } else { &["?"] };
    if outer(text).iter().any(|rest| weaker.iter().any(|weak| rest.starts_with(weak))) {
        format!("({text})")
    } else {
        text.to_owned()
    }
}

/// The ends of an expression that start outside of quotes and brackets.
fn outer(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut ends) = (0_usize, None, Vec::new());
    for (at, c) in text.char_indices() {
        match (quote, c) {
            // The old syntax has no other escape than that of a quote.
            (Some(open), c) if open == c && text.get(..at).is_some_and(|before| before.ends_with('\\')) => {}
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            // The operators =?= and =!= are no question.
            (None, '?') if text.get(..at).is_some_and(|before| before.ends_with('=')) => {}
            (None, _) if depth == 0 => ends.extend(text.get(at..)),
            _ => {}
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::operand;

    #[test]
    fn operands_get_the_parentheses_that_they_need() {
        for (text, operator, expected) in [
            ("a || b", "||", "a || b"),
            ("a || b", "&&", "(a || b)"),
            ("a && b", "&&", "a && b"),
            ("(a || b)", "&&", "(a || b)"),
            ("a ? b : c", "||", "(a ? b : c)"),
            ("a =?= b", "||", "a =?= b"),
            ("f(a || b)", "&&", "f(a || b)"),
            ("x == \"a || b\"", "&&", "x == \"a || b\""),
            (r#"x == "a\\" || b""#, "&&", r#"x == "a\\" || b""#),
        ] {
            assert_eq!(operand(text, operator), expected, "{text}");
        }
    }
}
