//! The variables of a script: one that runs on an ad, or a submit file.

use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::allowance::Allowance;
use super::condition;
use super::error::ExpandError;
use super::expand::Expander;
use super::names::Names;
use super::source::{Diagnostic, Position, Severity};
use super::table::Config;
use super::text::{Place, Text};
use super::value;
use classad::{Ad, Env, Evaluation, Expr, Name};

/// The most warnings of one run.
const MAX_WARNINGS: usize = 100;
/// The price of one step of a script besides its bytes, in bytes.
const STEP: u64 = 500;

/// The variables of a script, the ad that the script runs on, and the work that is left for the run.
///
/// A name is looked up among the script's own variables (with the prefix first), among the predefined ones, as an attribute of
/// the ad if it starts with `MY.`, and in the configuration. `$EVAL()` and conditions are evaluated in the ad.
#[derive(Debug)]
pub struct Scope<'c> {
    config: &'c Config,
    prefix: &'static str,
    /// Whether the script runs on an ad, in front of the configuration. A submit file does neither.
    runs_on_ad: bool,
    /// The directory with which `$Ff()` completes a path.
    directory: Option<String>,
    predefined: BTreeMap<String, String>,
    own: BTreeMap<String, Variable>,
    /// The own variables that somebody asked for, in lower case.
    used: RefCell<BTreeSet<String>>,
    ad: Ad,
    env: Env,
    allowance: Allowance,
    warnings: Vec<Diagnostic>,
    written: BTreeSet<Name>,
    draw: u64,
}

/// One of a script's own variables.
#[derive(Clone, Debug)]
pub struct Variable {
    name: String,
    value: Text,
    place: Place,
}

impl Variable {
    /// The name as the first assignment wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value before expansion.
    pub const fn value(&self) -> &Text {
        &self.value
    }
}

impl<'c> Scope<'c> {
    /// A scope without variables, for runs that together may take so much work: bytes looked at or moved. A work of
    /// 50,000,000 is about half a second.
    pub fn new(config: &'c Config, prefix: &'static str, ad: Ad, env: Env, work: u64) -> Self {
        Self {
            config,
            prefix,
            runs_on_ad: true,
            directory: None,
            predefined: BTreeMap::new(),
            own: BTreeMap::new(),
            used: RefCell::default(),
            ad,
            env,
            allowance: Allowance::of(work),
            warnings: Vec::new(),
            draw: 0,
            written: BTreeSet::new(),
        }
    }

    /// A scope for a submit file. Its names are looked up among its own variables, with `SUBMIT.` before the name first, and
    /// among the predefined variables, but not in the configuration. Conditions are single tests, as in a configuration.
    pub fn of_submit_file(config: &'c Config, env: Env, work: u64) -> Self {
        Self { runs_on_ad: false, ..Self::new(config, "SUBMIT", Ad::new(), env, work) }
    }

    /// The configuration in which names are looked up last.
    pub fn config(&self) -> &'c Config {
        self.config
    }

    /// The ad that the script runs on.
    pub fn ad(&self) -> &Ad {
        &self.ad
    }

    /// The same, to be changed.
    pub fn ad_mut(&mut self) -> &mut Ad {
        &mut self.ad
    }

    /// Gives the script another ad, and returns the former one. The variables stay.
    pub fn replace_ad(&mut self, ad: Ad) -> Ad {
        std::mem::replace(&mut self.ad, ad)
    }

    /// Returns the warnings of the runs so far.
    pub fn take_warnings(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.warnings)
    }

    /// Writes an attribute of the ad, and notes that the attribute was written.
    pub fn write(&mut self, name: &str, expr: Expr) {
        self.written.insert(Name::from(name));
        self.ad_mut().insert(name, expr);
    }

    /// Returns the attributes that were written so far, also those that were written as they were before.
    pub fn take_written(&mut self) -> BTreeSet<Name> {
        std::mem::take(&mut self.written)
    }

    /// Adds a warning about a place in a text. After the first hundred warnings, more are dropped.
    pub fn warn(&mut self, text: &Text, offset: usize, message: impl Into<String>) {
        self.keep(self.finding(Severity::Warning, text, offset, message));
    }

    fn keep(&mut self, finding: Diagnostic) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(finding);
        }
    }

    /// An error at a place in a text.
    pub fn error(&self, text: &Text, offset: usize, message: impl Into<String>) -> Diagnostic {
        self.finding(Severity::Error, text, offset, message)
    }

    fn finding(
        &self,
        severity: Severity,
        text: &Text,
        offset: usize,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic { severity, position: self.config.position_at(text, offset), message: message.into() }
    }

    /// Pays for a step that looks at or moves so many bytes. The error: no work is left.
    pub fn pay(&self, bytes: usize, text: &Text) -> Result<(), Diagnostic> {
        self.allowance.spend(STEP + bytes as u64);
        if self.allowance.left() > 0 {
            return Ok(());
        }
        Err(self.error(text, 0, "the script takes too much work: shorten what it makes, or leave steps out"))
    }

    /// Begins the draw of this number: random values are others than in other draws.
    pub const fn begin_draw(&mut self, number: u64) {
        self.draw = number;
    }

    /// Sets the absolute path with which `$Ff()` completes a path.
    pub fn set_directory(&mut self, directory: impl Into<String>) {
        self.directory = Some(directory.into());
    }

    /// Predefines a variable. The script's own variable of the name stands above it.
    pub fn predefine(&mut self, name: &str, value: impl Into<String>) {
        self.predefined.insert(name.to_ascii_lowercase(), value.into());
    }

    /// Sets one of the script's own variables, as `line` says. References of the value to the variable itself are replaced
    /// at once.
    pub fn define(&mut self, name: &str, value: &Text, line: &Text) -> Result<(), ExpandError> {
        let value = Expander::new(self).expand_own(name, value)?;
        self.keep_variable(name, value, line.place(0).unwrap_or_default());
        Ok(())
    }

    fn keep_variable(&mut self, name: &str, value: Text, place: Place) {
        match self.own.entry(name.to_ascii_lowercase()) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                (known.value, known.place) = (value, place);
            }
            Entry::Vacant(vacant) => {
                vacant.insert(Variable { name: name.to_owned(), value, place });
            }
        }
    }

    /// The script's own variables in the order of their names in lower case.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.own.values()
    }

    /// Where a variable was set: the place of its value, or of its line if the value is empty.
    pub fn position_of(&self, variable: &Variable) -> Position {
        self.config.position_of(variable.value.place(0).unwrap_or(variable.place))
    }

    /// The value of a variable before expansion, as `$(NAME)` finds the variable. It then counts as used.
    pub fn variable(&self, name: &str) -> Option<Text> {
        self.find(name, Place::DEFAULT)
    }

    /// Whether one of the script's own variables was asked for, by `$(NAME)` or by [`Scope::variable`].
    pub fn is_used(&self, name: &str) -> bool {
        self.used.borrow().contains(&name.to_ascii_lowercase())
    }

    /// Forgets one of the script's own variables.
    pub fn forget_variable(&mut self, name: &str) {
        self.own.remove(&name.to_ascii_lowercase());
    }

    /// Sets one of the script's own variables to a text that `origin` made.
    pub fn define_as(&mut self, name: &str, value: &str, origin: &Text) -> Result<(), ExpandError> {
        let place = origin.place(0).unwrap_or_default();
        if self.own.contains_key(&name.to_ascii_lowercase()) {
            return self.define(name, &Text::at(value, place), origin);
        }
        self.keep_variable(name, Text::at(value, place), place);
        Ok(())
    }

    /// Forgets the script's own variables.
    pub fn forget(&mut self) {
        self.own.clear();
    }

    /// Replaces all references and functions in a text. A function that cannot use its arguments stands for nothing, and is
    /// warned of.
    pub fn expand(&mut self, text: &Text) -> Result<Text, ExpandError> {
        let mut expander = Expander::new(&*self).forgiving();
        let outcome = expander.expand(text);
        let complaints = expander.complaints();
        drop(expander);
        for ExpandError { position, fault } in complaints {
            let message = format!("{fault}; it stands for nothing");
            self.keep(Diagnostic { severity: Severity::Warning, position, message });
        }
        outcome
    }

    /// Decides a condition: one test as in a configuration, or an expression over the ad.
    pub(super) fn decide(&mut self, condition: &Text) -> Result<bool, String> {
        if !condition.bytes().contains(&b'$') {
            return condition::decide(self, &condition.as_str(), None);
        }
        let expanded = self.expand(condition).map_err(|error| error.to_string())?;
        condition::decide(self, &expanded.as_str(), Some(&condition.as_str()))
    }

    /// The integer in a text: a number, or an expression that evaluates to a number in an ad without attributes.
    pub fn integer(&self, text: &str) -> Option<i64> {
        value::parse_integer(text, &self.env)
    }

    /// The boolean in a text: `true`, `false`, or an expression that evaluates to a boolean or a number in an ad without
    /// attributes.
    pub fn boolean(&self, text: &str) -> Option<bool> {
        value::parse_boolean(text, &self.env)
    }

    /// Evaluates an expression in the ad. The steps are paid for.
    pub fn evaluate(&self, expr: &Expr) -> Evaluation {
        Names::evaluate_in(self, expr, &self.ad, &self.env)
    }
}

impl Names for Scope<'_> {
    fn config(&self) -> &Config {
        self.config
    }

    fn draw(&self) -> u64 {
        self.draw
    }

    fn directory(&self) -> Option<&str> {
        self.directory.as_deref()
    }

    fn find(&self, name: &str, place: Place) -> Option<Text> {
        let lower = name.to_ascii_lowercase();
        let prefixed = format!("{}.{lower}", self.prefix.to_ascii_lowercase());
        for own in [&prefixed, &lower] {
            if let Some(variable) = self.own.get(own) {
                self.used.borrow_mut().insert(own.clone());
                return Some(variable.value.clone());
            }
        }
        if let Some(predefined) = self.predefined.get(&lower) {
            return Some(Text::at(predefined, place));
        }
        if !self.runs_on_ad {
            return None;
        }
        let attribute = lower.strip_prefix("my.").and_then(|name| self.ad.get(name));
        attribute
            .map(|expr| match expr.as_literal().and_then(classad::Value::as_str) {
                Some(text) => Text::at(text, place),
                None => Text::at(&expr.to_old(), place),
            })
            .or_else(|| self.config.find(name, place))
    }

    fn without_prefix(&self, name: &str) -> Option<String> {
        let (start, rest) = name.split_at_checked(self.prefix.len())?;
        let rest = rest.strip_prefix('.').filter(|rest| !rest.is_empty())?;
        start.eq_ignore_ascii_case(self.prefix).then(|| rest.to_owned())
    }

    fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    fn ad(&self) -> Option<(&Ad, &Env)> {
        self.runs_on_ad.then_some((&self.ad, &self.env))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Reader};

    #[test]
    fn a_submit_file_has_its_own_variables_alone_and_knows_which_are_used() {
        let config = Reader::new(Host::none()).read(&[]).config;
        let mut scope = Scope::of_submit_file(&config, Env::at(0), 1_000_000);
        for (name, value) in
            [("Greeting", "hello $(Name)"), ("NAME", "you"), ("submit.name", "Ada"), ("Spare", "1")]
        {
            let value = Text::at(value, Place::DEFAULT);
            assert!(scope.define(name, &value, &value).is_ok(), "{name}");
        }
        let greeting = scope.variable("greeting").and_then(|text| scope.expand(&text).ok());
        assert_eq!(greeting.map(|text| text.as_str().into_owned()).as_deref(), Some("hello Ada"));
        let used: Vec<&str> =
            scope.variables().map(Variable::name).filter(|name| scope.is_used(name)).collect();
        assert_eq!(used, ["Greeting", "submit.name"]);
        // UID_DOMAIN is a knob of the configuration.
        assert_eq!(scope.variable("UID_DOMAIN"), None);
        scope.forget_variable("SPARE");
        assert_eq!(scope.variables().count(), 3);
    }
}
