//! Rules: the text of one transform.

use classad::Expr;
use condor_config::{Config, Diagnostic, Scope, Script, Severity, Text};

use crate::apply;
use crate::command::{Command, Reader};

/// The rules of one transform.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) name: String,
    requirements: Option<Expr>,
    script: Script<Command>,
    /// The arguments of TRANSFORM, if they ask for more than one pass.
    pub(crate) iteration: Option<Text>,
}

/// Reads rules, and counts what all of them together may have.
pub(crate) struct RulesReader<'r> {
    pub(crate) config: &'r Config,
    pub(crate) commands: Reader,
    pub(crate) findings: &'r mut Vec<Diagnostic>,
}

/// The words that start a line about the transform as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heading {
    Name,
    Requirements,
    Universe,
    Transform,
}

impl RulesReader<'_> {
    fn find(&mut self, severity: Severity, text: &Text, offset: usize, message: impl Into<String>) {
        let position = self.config.position_at(text, offset);
        self.findings.push(Diagnostic { severity, position, message: message.into() });
    }

    /// Reads the lines of one transform. The lines behind TRANSFORM are left alone. `named`: the transform keeps its name,
    /// whatever NAME says.
    pub(crate) fn read(&mut self, name: &str, named: bool, lines: &[Text]) -> Rules {
        let mut rules =
            Rules { name: name.to_owned(), requirements: None, script: Script::default(), iteration: None };
        let (mut commands, mut block) = (Vec::new(), None);
        for line in lines {
            if let Some(tag) = &block {
                let closes = line.as_str() == *tag;
                commands.push(line.clone());
                block = block.filter(|_| !closes);
                continue;
            }
            block = opens_block(&line.as_str());
            let Some((heading, offset)) = heading(&line.as_str()) else {
                commands.push(line.clone());
                continue;
            };
            let rest = line.slice(offset, line.len()).trimmed();
            match heading {
                Heading::Name if named => {}
                Heading::Name => rules.name = rest.as_str().into_owned(),
                Heading::Requirements => rules.requirements = self.requirements(line, offset, &rest),
                Heading::Universe => self.find(
                    Severity::Warning,
                    line,
                    0,
                    "UNIVERSE does nothing here: write REQUIREMENTS JobUniverse == 5 and the like",
                ),
                Heading::Transform => {
                    rules.iteration = Some(rest).filter(|rest| !is_trivial(&rest.as_str()));
                    break;
                }
            }
        }
        let reader = &mut self.commands;
        rules.script = Script::read(self.config, &commands, |line| reader.read(line), self.findings);
        for (line, offset, message) in std::mem::take(&mut self.commands.warnings) {
            self.find(Severity::Warning, &line, offset, message);
        }
        rules
    }

    fn requirements(&mut self, line: &Text, offset: usize, text: &Text) -> Option<Expr> {
        let text = text.as_str();
        match Expr::parse_old(&text) {
            Ok(expr) => return Some(expr),
            Err(error) => {
                let before =
                    text.chars().take(error.column().saturating_sub(1)).map(char::len_utf8).sum::<usize>();
                let hint = if text.contains('$') { "; macros are not replaced in REQUIREMENTS" } else { "" };
                let message = format!("REQUIREMENTS is no expression: {}{hint}", error.fault());
                self.find(Severity::Error, line, offset + before, message);
            }
        }
        None
    }
}

impl Rules {
    /// Whether the transform is for the ad of the scope.
    pub(crate) fn matches(&self, scope: &Scope<'_>) -> bool {
        let Some(expr) = &self.requirements else { return true };
        scope.evaluate(expr).value.as_bool_equiv().unwrap_or(false)
    }

    /// Runs the commands on the ad of the scope, whether or not the transform is for that ad.
    pub(crate) fn run(&self, scope: &mut Scope<'_>) -> Result<(), Diagnostic> {
        self.script.run(scope, apply::command)
    }
}

/// The heading that a line is, and the offset of what follows the word. `None`: the line is no heading.
fn heading(line: &str) -> Option<(Heading, usize)> {
    let all = [
        ("NAME", Heading::Name),
        ("REQUIREMENTS", Heading::Requirements),
        ("UNIVERSE", Heading::Universe),
        ("TRANSFORM", Heading::Transform),
    ];
    all.into_iter().find_map(|(word, heading)| {
        let (start, rest) = line.split_at_checked(word.len())?;
        let argument = rest.trim_ascii_start();
        let is = start.eq_ignore_ascii_case(word)
            && argument.len() < rest.len()
            && !argument.is_empty()
            && !argument.starts_with(['=', ':']);
        is.then_some((heading, line.len() - argument.len()))
    })
}

/// The line that ends the block that a line opens: `NAME @=TAG`.
fn opens_block(line: &str) -> Option<String> {
    let name = line.find(|c: char| c.is_ascii_whitespace() || c == '=')?;
    let tag = line.get(name..)?.trim_ascii_start().strip_prefix("@=")?;
    let tag = tag.trim_ascii();
    (!tag.is_empty()).then(|| format!("@{tag}"))
}

/// Whether the arguments of TRANSFORM ask for one pass only: a number that is 0 or 1, and nothing else.
fn is_trivial(arguments: &str) -> bool {
    arguments.parse::<i64>().is_ok_and(|number| matches!(number, 0 | 1))
}
