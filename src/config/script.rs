//! Scripts: texts whose lines are commands, assignments and conditionals, as in a job transform.
//!
//! The lines that are no commands mean what they mean in a configuration, but they are read again for each ad, from the top to
//! the bottom.

use super::condition::{self, Conditionals, Keyword};
use super::error::ExpandError;
use super::lines::Lines;
use super::names;
use super::scope::Scope;
use super::source::{Diagnostic, Severity, Source};
use super::statement::{self, Assignment, Statement};
use super::table::{Config, Found};
use super::text::{Text, is_name_byte, is_space};

/// The longest script, in lines that are no comments.
const MAX_STEPS: usize = 10_000;
/// The longest script, in bytes.
const MAX_LENGTH: usize = 1 << 20;

/// A script, in which a `C` stands for each command.
///
/// ```
/// use classad::{Ad, Env};
/// use condor_config::{Host, Reader, Scope, Script, Source};
///
/// let mut config = Reader::new(Host::none()).read(&[]).config;
/// let text = "size = 2\nif defined MY.Big\n   size = $(size)0\nendif\nprint $(size)\n";
/// let lines = config.lines_of(&Source::new("script", text));
/// let mut findings = Vec::new();
/// let script = Script::read(&config, &lines, |line| Ok(line.clone()), &mut findings);
/// assert!(findings.is_empty());
///
/// let mut scope = Scope::new(&config, "SCRIPT", Ad::new().with("Big", true), Env::at(0), 1_000_000);
/// let mut printed = Vec::new();
/// let run = script.run(&mut scope, |scope, line, command| {
///     printed.push(scope.expand(command)?.as_str().into_owned());
///     Ok(())
/// });
/// assert_eq!((run, printed), (Ok(()), vec!["print 20".to_owned()]));
/// ```
#[derive(Clone, Debug)]
pub struct Script<C> {
    steps: Vec<(Text, Step<C>)>,
}

/// The meaning of a line.
#[derive(Clone, Debug)]
enum Step<C> {
    /// `if`, `elif`, `else` or `endif`, and the condition.
    Conditional(Keyword, Text),
    /// An assignment to a variable. The name may have references in it.
    Assign {
        name: Text,
        separator: Option<&'static str>,
        value: Text,
    },
    /// `error : message` or `warning : message`.
    Say {
        fatal: bool,
        message: Text,
    },
    Command(C),
}

impl Config {
    /// The lines of a knob's unexpanded value. `None`: the knob is not defined.
    pub fn lines(&self, name: &str) -> Option<Vec<Text>> {
        let Found::Defined(definition) = self.knob(name)? else { return None };
        let (text, mut lines, mut start) = (&definition.text, Vec::new(), 0);
        for (at, byte) in text.bytes().iter().enumerate() {
            if matches!(byte, b'\n' | b'\r') {
                lines.push(text.slice(start, at).trimmed());
                start = at + 1;
            }
        }
        lines.push(text.slice(start, text.len()).trimmed());
        Some(lines)
    }

    /// The lines of a script that is no part of the configuration, such as a file. Continued lines are joined.
    pub fn lines_of(&mut self, script: &Source) -> Vec<Text> {
        let source = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        self.sources.push(script.name.as_str().into());
        Lines::new(&script.text, source).map(|line| line.trimmed()).collect()
    }
}

impl<C> Default for Script<C> {
    fn default() -> Self {
        Self { steps: Vec::new() }
    }
}

impl<C> Script<C> {
    /// Reads the lines of a script that [`Config::lines`] or [`Config::lines_of`] returned. `command` reads a line that is
    /// neither an assignment nor part of a conditional; its error is the offset in the line of what is wrong, and the message.
    /// Errors are added to `findings`, and the lines with errors are left out.
    pub fn read(
        config: &Config,
        lines: &[Text],
        mut command: impl FnMut(&Text) -> Result<C, (usize, String)>,
        findings: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut reading = Reading {
            config,
            findings,
            steps: Vec::new(),
            conditionals: Conditionals::default(),
            block: None,
        };
        let bytes: usize = lines.iter().map(Text::len).sum();
        if lines.len() > MAX_STEPS || bytes > MAX_LENGTH {
            let start = lines.first().cloned().unwrap_or_default();
            let message =
                format!("the script has more than {MAX_STEPS} lines or {MAX_LENGTH} bytes: shorten it");
            reading.error(&start, 0, message);
            return Self { steps: Vec::new() };
        }
        for line in lines {
            reading.line(line, &mut command);
        }
        reading.end();
        Self { steps: reading.steps }
    }

    /// Runs the script. `command` is called for each command that conditionals let through, with its line. The first error
    /// ends the run.
    pub fn run<'c>(
        &self,
        scope: &mut Scope<'c>,
        mut command: impl FnMut(&mut Scope<'c>, &Text, &C) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let mut conditionals = Conditionals::default();
        for (line, step) in &self.steps {
            scope.pay(line.len(), line)?;
            if let Step::Conditional(keyword, condition) = step {
                let taken = conditionals.take(*keyword, || scope.decide(condition));
                let place = if condition.is_empty() { line } else { condition };
                taken.map_err(|message| scope.error(place, 0, message))?;
                continue;
            }
            if !conditionals.enabled() {
                continue;
            }
            match step {
                Step::Conditional(..) => {}
                Step::Command(given) => command(scope, line, given)?,
                Step::Say { fatal, message } => say(scope, line, *fatal, message)?,
                Step::Assign { name, separator, value } => assign(scope, line, name, *separator, value)?,
            }
        }
        Ok(())
    }
}

fn say(scope: &mut Scope, line: &Text, fatal: bool, message: &Text) -> Result<(), Diagnostic> {
    let message = scope.expand(message).map_err(told)?;
    if fatal {
        return Err(scope.error(line, 0, message.as_str()));
    }
    scope.warn(line, 0, message.as_str());
    Ok(())
}

fn assign(
    scope: &mut Scope,
    line: &Text,
    name: &Text,
    separator: Option<&str>,
    value: &Text,
) -> Result<(), Diagnostic> {
    let name = scope.expand(name).map_err(told)?;
    let given = name.as_str();
    let (name, raw) = match given.strip_prefix(['+', '-']) {
        Some(attribute) => (format!("MY.{attribute}"), !given.starts_with('-')),
        None => (given.clone().into_owned(), true),
    };
    if !is_name(&name) {
        return Err(scope.error(line, 0, no_name(&name)));
    }
    let joined = separator
        .map(|separator| names::appended(scope, &name, separator, value, line.place(0).unwrap_or_default()));
    let value = joined.unwrap_or_else(|| if raw { value.clone() } else { Text::default() });
    scope.pay(value.len(), line)?;
    scope.define(&name, &value, line).map_err(told)
}

fn told(ExpandError { position, fault }: ExpandError) -> Diagnostic {
    Diagnostic { severity: Severity::Error, position, message: fault.to_string() }
}

impl From<ExpandError> for Diagnostic {
    fn from(error: ExpandError) -> Self {
        told(error)
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_name_byte)
}

fn no_name(name: &str) -> String {
    format!("'{name}' is no name of a variable: a name has letters, digits, _ and . only")
}

/// The state of [`Script::read`].
struct Reading<'r, C> {
    config: &'r Config,
    findings: &'r mut Vec<Diagnostic>,
    steps: Vec<(Text, Step<C>)>,
    conditionals: Conditionals,
    block: Option<Block>,
}

/// A block that is not closed yet.
struct Block {
    line: Text,
    name: Text,
    tag: Vec<u8>,
    value: Text,
}

impl<C> Reading<'_, C> {
    fn error(&mut self, line: &Text, offset: usize, message: impl Into<String>) {
        let position = self.config.position_at(line, offset);
        self.findings.push(Diagnostic { severity: Severity::Error, position, message: message.into() });
    }

    fn line(&mut self, line: &Text, command: &mut impl FnMut(&Text) -> Result<C, (usize, String)>) {
        if line.bytes().first().is_none_or(|first| *first == b'#') {
            return;
        }
        if let Some(block) = self.block.take() {
            self.block = self.block_line(block, line);
            return;
        }
        let mut line = line.clone();
        // A colon alone stays: a message about an empty line would have no line number.
        let hidden = line.len() > 1 && line.bytes().first() == Some(&b':');
        if hidden && (self.conditionals.inside() || starts_hidden_if(&line)) {
            line.cut(0, 1);
        }
        if let Some((keyword, length)) = condition::keyword(line.bytes()) {
            // Only the order of the keywords is looked at here.
            if let Err(message) = self.conditionals.take(keyword, || Ok(true)) {
                self.error(&line, 0, message);
            }
            let condition = line.slice(length, line.len()).trimmed();
            self.steps.push((line, Step::Conditional(keyword, condition)));
            return;
        }
        match self.step(&line, command) {
            Ok(Some(step)) => self.steps.push((line, step)),
            Ok(None) => {}
            Err((offset, message)) => self.error(&line, offset, message),
        }
    }

    /// The step that a line is. `None`: the line opens a block.
    fn step(
        &mut self,
        line: &Text,
        command: &mut impl FnMut(&Text) -> Result<C, (usize, String)>,
    ) -> Result<Option<Step<C>>, (usize, String)> {
        let refused = |what: &str| {
            Err((0, format!("{what} is not possible here: put the lines that it stands for into this file")))
        };
        let (name, how, value) = match statement::parse(line) {
            Ok(Statement::Use { .. }) => return refused("use"),
            Ok(Statement::Include { .. }) => return refused("include"),
            Ok(Statement::Message { fatal, text }) => {
                return Ok(Some(Step::Say { fatal, message: text }));
            }
            // In a submit file, `queue` is a command, whatever follows it; so it is no variable here.
            Ok(Statement::Assign { name, how, value })
                if how != Assignment::Colon
                    && !has_words(line)
                    && !name.as_str().eq_ignore_ascii_case("queue") =>
            {
                (name, how, value)
            }
            _ => return command(line).map(|command| Some(Step::Command(command))),
        };
        let written = name.as_str();
        let plain = written.strip_prefix(['+', '-']).filter(|_| how == Assignment::Set);
        let plain = plain.map_or_else(|| written.clone().into_owned(), |attribute| format!("MY.{attribute}"));
        if !plain.contains('$') && !is_name(&plain) {
            return Err((0, no_name(&written)));
        }
        let separator = match how {
            Assignment::Append(separator) => Some(separator),
            _ => None,
        };
        if how == Assignment::Block {
            let tag = value.bytes().to_vec();
            self.block = Some(Block { line: line.clone(), name, tag, value: Text::default() });
            return Ok(None);
        }
        Ok(Some(Step::Assign { name, separator, value }))
    }

    /// Adds a line to a block, or ends the block and returns `None`.
    fn block_line(&mut self, mut block: Block, line: &Text) -> Option<Block> {
        if line.bytes().strip_prefix(b"@") == Some(&block.tag) {
            let Block { line, name, value, .. } = block;
            self.steps.push((line, Step::Assign { name, separator: None, value }));
            return None;
        }
        if let Some(place) = block.value.place(block.value.len()) {
            block.value.push(b'\n', place);
        }
        block.value.append(line);
        Some(block)
    }

    fn end(&mut self) {
        if let Some(block) = self.block.take() {
            let tag = String::from_utf8_lossy(&block.tag).into_owned();
            self.error(&block.line, 0, format!("the block is not closed: expected a line @{tag}"));
        }
        if self.conditionals.inside() {
            let last = self.steps.iter().rev().find(|(_, step)| matches!(step, Step::Conditional(..)));
            let line = last.map(|(line, _)| line.clone()).unwrap_or_default();
            self.error(&line, 0, "an if is not closed: expected endif before the end");
        }
    }
}

/// Whether a line starts with `:if`.
fn starts_hidden_if(line: &Text) -> bool {
    line.bytes().strip_prefix(b":if").is_some_and(|rest| rest.first().is_none_or(|byte| is_space(*byte)))
}

/// Whether words stand between the first word and the operator.
fn has_words(line: &Text) -> bool {
    let operator = |byte: &u8| matches!(byte, b'=' | b':' | b'@' | b'+');
    let name_end = line.bytes().iter().position(|byte| is_space(*byte) || matches!(byte, b'=' | b':'));
    let rest = line.bytes().get(name_end.unwrap_or_default()..).unwrap_or_default();
    rest.iter().find(|byte| !is_space(**byte)).is_some_and(|first| !operator(first))
}
