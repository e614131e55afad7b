//! The ad of one proc, made by the commands in the order in which condor_submit looks at them.
//!
//! | module | holds |
//! | --- | --- |
//! | `base` | what each ad starts with; attributes that are set last |
//! | `simple` | commands whose value is an attribute's value |
//! | `program` | universe, image, executable, arguments, environment |
//! | `streams` | standard input, output and error |
//! | `policy` | rank, periodic expressions, retries, signals, deferral |
//! | `requests`, `retries_of_requests` | request_cpus and the others, and what follows an eviction for them |
//! | `accounting` | groups, nice users, concurrency limits |
//! | `transfer` | the attributes of file transfer |
//! | `requirements` | Requirements with the clauses that condor_submit adds |

mod accounting;
mod base;
mod policy;
mod program;
mod requests;
mod requirements;
mod retries_of_requests;
mod simple;
mod streams;
mod transfer;

pub(crate) use base::is_of_runs;

use std::collections::BTreeSet;

use classad::{Ad, Env, Expr, Value};
use condor_config::{Diagnostic, Scope, Severity, Text};

use crate::world::World;

/// An error has a place and a message.
pub(crate) type Outcome<T = ()> = Result<T, Diagnostic>;

/// The program that a proc's pod runs, as the submit file says it: not as the ad has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The executable. `None`: the image's own.
    pub executable: Option<String>,
    /// Whether condor_submit would transfer the executable from the place of submission.
    pub is_transferred: bool,
    /// The arguments, word by word.
    pub arguments: Vec<String>,
    /// The environment: names and values. An unexpanded `$$()` has no value.
    pub environment: Vec<(String, Option<String>)>,
    /// How many variables of the environment come from the place of submission because `getenv` is true.
    pub inherited: usize,
    /// Whether the job is one of the docker universe.
    pub is_docker: bool,
    /// The image, as `container_image` or `docker_image` names it.
    pub image: Option<String>,
    /// The user's own part of the Requirements, in the old syntax of ClassAds.
    pub requirements: Option<String>,
    /// The user's own part of RequireGPUs.
    pub require_gpus: Option<Expr>,
    /// The variables of the queue statement, and their values for the proc.
    pub items: Vec<(String, String)>,
}

/// The kinds of jobs of the vanilla universe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Universe {
    #[default]
    Vanilla,
    Docker,
    Container,
}

/// The facts about a cluster that its first proc's ad does not have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) universe: Universe,
    /// The `initialdir` that was looked for last.
    pub(crate) directory: String,
    /// Warnings that were given already.
    pub(crate) warned: BTreeSet<String>,
}

/// A command's value.
#[derive(Clone, Debug)]
pub(crate) struct GivenValue {
    /// The name under which the command was found.
    pub(crate) name: String,
    text: Text,
    value: String,
}

impl GivenValue {
    pub(crate) fn as_str(&self) -> &str {
        &self.value
    }

    /// Without blanks at the ends, nor double quotes around it.
    pub(crate) fn without_quotes(&self) -> &str {
        let text = self.value.trim();
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
    }

    pub(crate) fn is(&self, word: &str) -> bool {
        self.value.trim().eq_ignore_ascii_case(word)
    }
}

/// One proc's ad in the making.
pub(crate) struct Job<'j, 'c> {
    pub(crate) scope: &'j mut Scope<'c>,
    pub(crate) world: &'j World<'j>,
    pub(crate) env: &'j Env,
    pub(crate) memory: &'j mut Memory,
    /// The cluster's ad, which the ad of a later proc only adds to.
    pub(crate) cluster: Option<&'j Ad>,
    /// The program that the first proc runs.
    pub(crate) first: Option<&'j Program>,
    pub(crate) own: Ad,
    pub(crate) proc: i64,
    /// `$(Row)`: the index of the item.
    pub(crate) row: usize,
    pub(crate) program: Program,
    /// The queue statement, for errors that have no other place.
    pub(crate) statement: &'j Text,
    pub(crate) warnings: &'j mut Vec<Diagnostic>,
    /// The directory that names of files are relative to.
    pub(crate) directory: String,
}

impl Job<'_, '_> {
    /// Makes the ad. The attributes and the program are in the job afterwards.
    pub(crate) fn make(&mut self) -> Outcome {
        if self.cluster.is_none() {
            self.start();
            self.set_universe()?;
        }
        // condor_submit turns the check of files on or off here; nothing is checked here.
        self.given("skip_filechecks", None)?;
        self.set_directory()?;
        self.set_executable()?;
        self.set_arguments()?;
        self.set_environment()?;
        self.set_status()?;
        self.set_streams()?;
        self.set_notification()?;
        self.set_rank()?;
        self.set_periodic_expressions()?;
        self.set_retries()?;
        self.set_evict_checks()?;
        self.set_signals()?;
        self.set_services()?;
        self.set_requests()?;
        self.set_concurrency_limits()?;
        self.set_accounting_group()?;
        self.set_simple()?;
        self.set_deferral()?;
        self.set_sizes()?;
        self.set_transfer()?;
        self.complete()?;
        self.set_forced()?;
        self.set_device_requirements()?;
        self.set_requirements()
    }

    /// The value of a command, under its name or else under another. `None`: the command is not given, or its value is empty.
    pub(crate) fn given(&mut self, name: &str, other: Option<&str>) -> Outcome<Option<GivenValue>> {
        let named = self.scope.variable(name).map(|text| (name, text));
        let other = || other.and_then(|other| Some((other, self.scope.variable(other)?)));
        let Some((name, text)) = named.or_else(other) else { return Ok(None) };
        let expanded = self.scope.expand(&text).map_err(|error| {
            let message = format!("{name}: {}", error.fault);
            Diagnostic { severity: Severity::Error, position: error.position, message }
        })?;
        if expanded.is_empty() {
            return Ok(None);
        }
        let value = expanded.as_str().into_owned();
        Ok(Some(GivenValue { name: name.to_owned(), text: expanded, value }))
    }

    /// The boolean value of a command.
    pub(crate) fn boolean(&mut self, name: &str, other: Option<&str>) -> Outcome<Option<bool>> {
        let Some(given) = self.given(name, other)? else { return Ok(None) };
        match self.scope.boolean(given.as_str()) {
            Some(truth) => Ok(Some(truth)),
            None => Err(self.fault(&given, format!("'{}' is neither true nor false", given.as_str()))),
        }
    }

    /// The integer value of a command.
    pub(crate) fn integer(&mut self, name: &str, other: Option<&str>) -> Outcome<Option<i64>> {
        let Some(given) = self.given(name, other)? else { return Ok(None) };
        match self.scope.integer(given.as_str()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.fault(&given, format!("'{}' is no integer", given.as_str()))),
        }
    }

    /// An attribute, of this ad or of the cluster's.
    pub(crate) fn get(&self, name: &str) -> Option<&Expr> {
        self.own.get(name).or_else(|| self.cluster.and_then(|cluster| cluster.get(name)))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The string that an attribute is.
    pub(crate) fn string(&self, name: &str) -> Option<String> {
        self.get(name)?.as_literal()?.as_str().map(str::to_owned)
    }

    /// Whether an attribute is the boolean `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).and_then(Expr::as_literal).and_then(Value::as_bool_equiv).unwrap_or(false)
    }

    /// Sets an attribute. A value that the cluster's ad has anyway does not become part of a later proc's ad.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.insert(name, Expr::literal(value));
    }

    pub(crate) fn insert(&mut self, name: &str, expr: Expr) {
        if self.cluster.and_then(|cluster| cluster.get(name)) == Some(&expr) {
            self.own.remove(name);
        } else {
            self.own.insert(name, expr);
        }
    }

    /// Sets an attribute to the expression that a command gives.
    pub(crate) fn assign(&mut self, name: &str, given: &GivenValue) -> Outcome {
        let expr = self.parse(given)?;
        self.insert(name, expr);
        Ok(())
    }

    /// Sets an attribute to an expression that this crate writes, with parts that a command gave.
    pub(crate) fn assign_text(&mut self, name: &str, text: &str) -> Outcome {
        let expr = Expr::parse_old(text).map_err(|error| {
            let message = format!("{name} would become {text}, which is no expression: {error}");
            self.scope.error(self.statement, 0, message)
        })?;
        self.insert(name, expr);
        Ok(())
    }

    /// The expression that a command gives.
    pub(crate) fn parse(&self, given: &GivenValue) -> Outcome<Expr> {
        Expr::parse_old(given.as_str()).map_err(|error| {
            let position = self.scope.config().position_in(&given.text, error.line(), error.column());
            let message = format!("{}: {}", given.name, error.fault());
            Diagnostic { severity: Severity::Error, position, message }
        })
    }

    /// An error about a command's value.
    pub(crate) fn fault(&self, given: &GivenValue, message: impl AsRef<str>) -> Diagnostic {
        self.fault_at(given, 0, message)
    }

    /// An error about a place in a command's value.
    pub(crate) fn fault_at(&self, given: &GivenValue, offset: usize, message: impl AsRef<str>) -> Diagnostic {
        self.scope.error(&given.text, offset, format!("{}: {}", given.name, message.as_ref()))
    }

    /// An error about what is missing.
    pub(crate) fn missing(&self, message: impl Into<String>) -> Diagnostic {
        self.scope.error(self.statement, 0, message)
    }

    /// Warns about a command's value, once for a cluster.
    pub(crate) fn warn(&mut self, given: &GivenValue, key: &str, message: impl AsRef<str>) {
        if self.memory.warned.insert(key.to_owned()) {
            let position = self.scope.config().position_at(&given.text, 0);
            let message = format!("{}: {}", given.name, message.as_ref());
            self.warnings.push(Diagnostic { severity: Severity::Warning, position, message });
        }
    }
}
