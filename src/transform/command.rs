//! Commands: the lines of a transform that change the ad.

use classad::{Expr, Pattern};
use condor_config::Text;

use crate::words::{Word, Words};

/// The most patterns that may be compiled for one policy. Each may take a megabyte.
pub(crate) const MAX_PATTERNS: usize = 200;

/// A command, as far as it can be read without an ad.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// `SET`, or `DEFAULT`, which leaves an attribute alone that is there.
    Set { attribute: String, only_new: bool, expr: Rest },
    /// `EVALSET`
    EvalSet { attribute: String, expr: Rest },
    /// `EVALMACRO`
    EvalMacro { variable: String, expr: Rest },
    /// `COPY` and `RENAME`
    Move { which: Which, to: Rest, keep: bool },
    /// `DELETE`
    Delete { which: Which },
    /// A line that says something about the transform as a whole, and does nothing here.
    Nothing,
}

/// The attributes that a command is about.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    /// The attribute of this name.
    Named(String),
    /// The attributes whose names match a pattern; `at_start`: at the beginning of the name.
    Matching { pattern: Pattern, at_start: bool },
    /// None, because the pattern is no pattern.
    Nothing,
}

/// The text after the first argument, and its offset in the line.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub(crate) text: Text,
    pub(crate) offset: usize,
}

/// The mistake in a command: the offset in the line, and the message.
pub(crate) type Fault = (usize, String);

/// Reads commands, and counts the patterns in them.
#[derive(Debug)]
pub(crate) struct Reader {
    patterns: usize,
    /// Doubts about the commands: the line, the offset in the line, and the message.
    pub(crate) warnings: Vec<(Text, usize, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    Copy,
    Default,
    Delete,
    EvalMacro,
    EvalSet,
    Rename,
    Set,
    Heading,
}

impl Keyword {
    fn of(word: &str) -> Option<Self> {
        let all = [
            ("COPY", Self::Copy),
            ("DEFAULT", Self::Default),
            ("DELETE", Self::Delete),
            ("EVALMACRO", Self::EvalMacro),
            ("EVALSET", Self::EvalSet),
            ("RENAME", Self::Rename),
            ("SET", Self::Set),
            ("NAME", Self::Heading),
            ("REQUIREMENTS", Self::Heading),
            ("TRANSFORM", Self::Heading),
            ("UNIVERSE", Self::Heading),
        ];
        all.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, keyword)| keyword)
    }

    fn takes_pattern(self) -> bool {
        matches!(self, Self::Copy | Self::Rename | Self::Delete)
    }
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self { patterns: 0, warnings: Vec::new() }
    }

    /// Reads a line that is neither an assignment nor part of a conditional.
    pub(crate) fn read(&mut self, line: &Text) -> Result<Command, Fault> {
        let shown = line.as_str();
        let mut words = Words::of(&shown);
        let Some(word) = words.next() else { return Ok(Command::Nothing) };
        let Some(keyword) = Keyword::of(word.text) else { return Err((word.start, unknown(word.text))) };
        let name = word.text.to_ascii_uppercase();
        let Some(first) = words.next() else {
            if name == "TRANSFORM" {
                return Ok(Command::Nothing);
            }
            return Err((shown.len(), format!("{name} needs {}", needs(keyword))));
        };
        if keyword == Keyword::Heading {
            return Ok(Command::Nothing);
        }
        if keyword.takes_pattern() && first.text.starts_with('/') {
            return self.with_pattern(line, keyword, first, &mut words);
        }
        let attribute = first.text.strip_suffix([',', '=']).unwrap_or(first.text).to_owned();
        let named =
            if keyword == Keyword::EvalMacro { is_variable(&attribute) } else { is_attribute(&attribute) };
        if !named {
            return Err((first.start, no_attribute(&attribute)));
        }
        if keyword == Keyword::Delete {
            return Ok(Command::Delete { which: Which::Named(attribute) });
        }
        let rest = second(line, &name, keyword, &mut words)?;
        Ok(match keyword {
            Keyword::Set | Keyword::Default => {
                self.check(line, &rest, Expr::parse_old);
                Command::Set { attribute, only_new: keyword == Keyword::Default, expr: rest }
            }
            Keyword::EvalSet => {
                self.check(line, &rest, Expr::parse_prefix);
                Command::EvalSet { attribute, expr: rest }
            }
            Keyword::EvalMacro => {
                self.check(line, &rest, Expr::parse_prefix);
                Command::EvalMacro { variable: attribute, expr: rest }
            }
            Keyword::Copy | Keyword::Rename | Keyword::Delete | Keyword::Heading => {
                Command::Move { which: Which::Named(attribute), to: rest, keep: keyword == Keyword::Copy }
            }
        })
    }

    fn with_pattern<'l>(
        &mut self,
        line: &Text,
        keyword: Keyword,
        first: Word<'l>,
        words: &mut Words<'l>,
    ) -> Result<Command, Fault> {
        let Some((pattern, letters)) = words.pattern(first) else {
            return Err((first.start, "the pattern has no closing /: write /PATTERN/".to_owned()));
        };
        if let Some(letter) = letters.chars().find(|letter| !"gimU".contains(*letter)) {
            let message = format!("'{letter}' is no option of a pattern: the options are i, m, U and g");
            return Err((first.start, message));
        }
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err((first.start, format!("more than {MAX_PATTERNS} patterns: join some of them by |")));
        }
        let which = if let Some(compiled) = Pattern::with_options(pattern, &format!("i{letters}")) {
            // HTCondor hands the letter g to its engine, which understands that the match must be at the start.
            Which::Matching { pattern: compiled, at_start: letters.contains('g') }
        } else {
            let message =
                format!("/{pattern}/ is no pattern that is understood here; it matches no attribute");
            self.warnings.push((line.clone(), first.start, message));
            Which::Nothing
        };
        if keyword == Keyword::Delete {
            return Ok(Command::Delete { which });
        }
        let name = if keyword == Keyword::Copy { "COPY" } else { "RENAME" };
        let to = second(line, name, keyword, words)?;
        Ok(Command::Move { which, to, keep: keyword == Keyword::Copy })
    }

    /// Warns of a text without macros that does not parse.
    fn check<T>(&mut self, line: &Text, rest: &Rest, parse: impl Fn(&str) -> Result<T, classad::ParseError>) {
        let text = rest.text.as_str();
        if text.contains('$') {
            return;
        }
        if let Err(error) = parse(&text) {
            let column =
                text.chars().take(error.column().saturating_sub(1)).map(char::len_utf8).sum::<usize>();
            let message = format!("no expression: {}; the command does nothing", error.fault());
            self.warnings.push((line.clone(), rest.offset + column, message));
        }
    }
}

/// Reads the second argument, which is the rest of the line. `=` or a comma may stand before it.
fn second(line: &Text, name: &str, keyword: Keyword, words: &mut Words<'_>) -> Result<Rest, Fault> {
    let missing = || (line.len(), format!("{name} needs {}", needs(keyword)));
    let mut word = words.next().ok_or_else(missing)?;
    if matches!(word.text, "=" | ",") {
        word = words.next().ok_or_else(missing)?;
    }
    Ok(Rest { text: line.slice(word.start, line.len()), offset: word.start })
}

fn needs(keyword: Keyword) -> &'static str {
    match keyword {
        Keyword::Copy | Keyword::Rename => "an attribute or /PATTERN/, and the new name",
        Keyword::Default | Keyword::Set | Keyword::EvalSet => "an attribute and an expression",
        Keyword::Delete => "an attribute or /PATTERN/",
        Keyword::EvalMacro => "a variable and an expression",
        Keyword::Heading => "a value",
    }
}

fn unknown(word: &str) -> String {
    format!(
        "'{word}' is no command: the commands are SET, DEFAULT, EVALSET, EVALMACRO, COPY, RENAME and DELETE; a variable is set \
         by NAME = value"
    )
}

fn no_attribute(name: &str) -> String {
    if name.contains('$') {
        return format!(
            "'{name}' is no name of an attribute: macros are not replaced there; write the name itself"
        );
    }
    format!("'{name}' is no name of an attribute: a name has letters, digits and _, and starts with no digit")
}

/// Whether a text can name an attribute.
pub(crate) fn is_attribute(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/'))
}
