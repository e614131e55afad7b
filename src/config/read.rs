//! The reader: from texts to definitions.

use std::sync::Arc;

use super::allowance::Allowance;
use super::arguments::{self, Use};
use super::condition::{self, Conditionals};
use super::error::{ExpandError, ReadError};
use super::expand::Expander;
use super::host::{FileError, Host};
use super::lines::Lines;
use super::names;
use super::source::{Diagnostic, Severity, Source};
use super::statement::{self, Assignment, Statement};
use super::table::{Config, Definition, Origin};
use super::templates::{self, Template};
use super::text::{Place, Text, is_name_byte, is_space};

/// The deepest nesting of included files and templates.
const MAX_NESTING: usize = 20;
/// The most files that are included.
const MAX_INCLUDED: usize = 1000;
/// The most bytes of text that are read, and of values that are kept.
const MAX_TOTAL: usize = 32 << 20;
/// The work that a guarded configuration may take, in bytes looked at or moved: about half a second.
const MAX_WORK: u64 = 50_000_000;
/// The most findings that are reported.
const MAX_DIAGNOSTICS: usize = 1000;

/// Predefined macros that no text can change: they are defined again after reading.
const FIXED: &[&str] = &[
    "HOSTNAME",
    "FULL_HOSTNAME",
    "IP_ADDRESS",
    "IPV4_ADDRESS",
    "IPV6_ADDRESS",
    "IP_ADDRESS_IS_IPV6",
    "TILDE",
    "USERNAME",
    "REAL_UID",
    "REAL_GID",
    "PID",
    "PPID",
    "SUBSYSTEM",
    "LOCALNAME",
];

type Files<'f> = &'f dyn Fn(&str) -> Result<String, FileError>;

/// Reads configuration texts for one daemon.
///
/// ```
/// use condor_config::{FileError, Host, Reader, Source};
///
/// let files = |path: &str| match path {
///     "/etc/slots" => Ok("NUM_SLOTS = 4\n".to_owned()),
///     _ => Err(FileError::Missing),
/// };
/// let reader = Reader::new(Host::none()).subsystem("STARTD").files(&files);
/// let text = "include : /etc/slots\nSTARTD.NUM_SLOTS = $(NUM_SLOTS) * 2\n";
/// let config = reader.read(&[Source::new("main", text)]).into_config()?;
/// assert_eq!(config.integer("NUM_SLOTS")?, Some(8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reader<'f> {
    subsystem: String,
    local_name: Option<String>,
    host: Host,
    files: Option<Files<'f>>,
    first_only: bool,
    allowance: Allowance,
}

/// The result of reading: a configuration, and all findings about the texts.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The definitions. The text after an error is read all the same, unless [`Reader::first_error_only`] was called.
    pub config: Config,
    /// All findings, in the order of the texts.
    pub diagnostics: Vec<Diagnostic>,
}

impl Reading {
    /// The findings that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|finding| finding.severity == Severity::Error)
    }

    /// The configuration, if the texts have no errors.
    pub fn into_config(self) -> Result<Config, ReadError> {
        let errors: Vec<Diagnostic> = self.errors().cloned().collect();
        if errors.is_empty() { Ok(self.config) } else { Err(ReadError { errors }) }
    }
}

impl<'f> Reader<'f> {
    /// A reader for HTCondor's tools (subsystem `TOOL`) that includes no files.
    pub fn new(host: Host) -> Self {
        Self {
            subsystem: "TOOL".to_owned(),
            local_name: None,
            host,
            files: None,
            first_only: false,
            allowance: Allowance::default(),
        }
    }

    /// Sets the daemon, such as `STARTD`: `STARTD.NAME` then stands above `NAME`.
    #[must_use]
    pub fn subsystem(mut self, subsystem: impl Into<String>) -> Self {
        self.subsystem = subsystem.into();
        self
    }

    /// Sets the daemon's local name: `LOCAL.NAME` then stands above `NAME`. An empty name is none.
    #[must_use]
    pub fn local_name(mut self, local_name: Option<String>) -> Self {
        self.local_name = local_name.filter(|name| !name.is_empty());
        self
    }

    /// Provides the files for `include : PATH`. The function gets the path with its macros expanded, and is asked
    /// again each time.
    #[must_use]
    pub fn files(mut self, files: Files<'f>) -> Self {
        self.files = Some(files);
        self
    }

    /// Makes the reader stop at the first error, as HTCondor does.
    #[must_use]
    pub fn first_error_only(mut self) -> Self {
        self.first_only = true;
        self
    }

    /// Bounds the work that reading, and all later questions to the configuration, may take together: about half a
    /// second.
    ///
    /// Use this for texts from people who are not trusted, where others wait for the answer. Without it, each value
    /// has its own bound, but a text of 1 MiB can hold 100,000 values.
    #[must_use]
    pub fn guarded(mut self) -> Self {
        self.allowance = Allowance::of(MAX_WORK);
        self
    }

    /// Reads the texts one after the other, as if they were one text.
    pub fn read(&self, sources: &[Source]) -> Reading {
        let mut config = Config::empty(&self.subsystem, self.local_name.as_deref(), self.host.clone());
        config.allowance = self.allowance.clone();
        let mut pass =
            Pass { reader: self, config, diagnostics: Vec::new(), total: 0, included: 0, stopped: false };
        pass.predefine(false);
        for source in sources {
            pass.text(&source.name, &source.text, 0);
        }
        pass.predefine(true);
        Reading { config: pass.config, diagnostics: pass.diagnostics }
    }
}

/// The state of one call of [`Reader::read`].
struct Pass<'r> {
    reader: &'r Reader<'r>,
    config: Config,
    diagnostics: Vec<Diagnostic>,
    total: usize,
    included: usize,
    /// Whether the rest of the texts is skipped.
    stopped: bool,
}

/// The state of a text that is being read: a source, an included file or a template.
struct Context {
    origin: Origin,
    conditionals: Conditionals,
    block: Option<Block>,
    /// How deep the text is nested in others.
    depth: usize,
    /// Whether an assignment by `:` is an error: `#opt:strict`.
    strict: bool,
}

/// A block that is not closed yet.
struct Block {
    name: String,
    place: Place,
    tag: Vec<u8>,
    text: Text,
}

impl Context {
    fn new(origin: Origin, depth: usize) -> Self {
        Self { origin, conditionals: Conditionals::default(), block: None, depth, strict: false }
    }

    fn in_template(&self) -> bool {
        matches!(self.origin, Origin::Template(..))
    }
}

impl Pass<'_> {
    fn predefine(&mut self, again: bool) {
        let subsystem = self.config.subsystem.clone();
        let local = self.config.local_name.clone().unwrap_or_else(|| subsystem.clone());
        let mut macros = self.config.host.predefined.clone();
        macros.extend([("SUBSYSTEM".to_owned(), subsystem), ("LOCALNAME".to_owned(), local)]);
        for (name, value) in macros {
            if !again || FIXED.iter().any(|fixed| fixed.eq_ignore_ascii_case(&name)) {
                let (text, place) = (Text::at(&value, Place::DETECTED), Place::DETECTED);
                self.config.define(Definition { name, origin: Origin::Predefined, text, place });
            }
        }
    }

    fn report(&mut self, severity: Severity, place: Place, message: impl Into<String>) {
        if severity == Severity::Error && self.reader.first_only {
            self.stopped = true;
        }
        if self.diagnostics.len() >= MAX_DIAGNOSTICS {
            self.stopped = true;
            return;
        }
        let position = self.config.position_of(place);
        self.diagnostics.push(Diagnostic { severity, position, message: message.into() });
    }

    fn error(&mut self, place: Place, message: impl Into<String>) {
        self.report(Severity::Error, place, message);
    }

    fn expand_error(&mut self, error: ExpandError) {
        let ExpandError { position, fault } = error;
        self.error(Place::DEFAULT, fault.to_string());
        if let Some(last) = self.diagnostics.last_mut() {
            last.position = position;
        }
    }

    /// Adds to the bytes that were read or kept. `false`: reading has stopped.
    fn spend(&mut self, bytes: usize, place: Place) -> bool {
        self.total += bytes;
        if self.total > MAX_TOTAL && !self.stopped {
            self.error(place, format!("the configuration is longer than {MAX_TOTAL} bytes in all"));
            self.stopped = true;
        }
        !self.stopped
    }

    /// Reads a source or an included file.
    fn text(&mut self, name: &str, text: &str, depth: usize) {
        let source = u32::try_from(self.config.sources.len()).unwrap_or(u32::MAX);
        self.config.sources.push(Arc::from(name));
        let start = Place { source, line: 1, column: 1 };
        if text.contains('\0') {
            self.error(start, "there is a NUL character in it: it is no text");
            return;
        }
        if !self.spend(text.len(), start) {
            return;
        }
        let mut context = Context::new(Origin::Source, depth);
        let mut lines = Lines::new(text, source);
        while !self.stopped {
            let Some(line) = lines.next() else { break };
            if line.bytes().first() == Some(&b'#') || line.bytes().iter().all(|byte| is_space(*byte)) {
                option(&line.as_str(), &mut lines, &mut context);
                continue;
            }
            self.line(line, &mut context);
        }
        self.end(&context, Place { source, line: lines.line(), column: 1 });
    }

    /// Reports what is still open at the end of a text.
    fn end(&mut self, context: &Context, place: Place) {
        if self.stopped {
            return;
        }
        if let Some(block) = &context.block {
            let tag = String::from_utf8_lossy(&block.tag).into_owned();
            self.error(block.place, format!("the block of {} is not closed: expected @{tag}", block.name));
        } else if context.conditionals.inside() {
            self.error(place, "an if is not closed: expected endif before the end");
        }
    }

    /// Reads a line that is neither blank nor a comment.
    fn line(&mut self, mut line: Text, context: &mut Context) {
        if let Some(block) = context.block.take() {
            context.block = self.block_line(block, &line, context);
            return;
        }
        // A conditional with a colon in front is hidden from old versions of HTCondor. A colon alone stays: a message about
        // an empty line would have no line number.
        let hidden = line.len() > 1 && line.bytes().first() == Some(&b':') && !context.in_template();
        if hidden && (context.conditionals.inside() || is_hidden_if(line.bytes())) {
            line.cut(0, 1);
        }
        let place = line.place(0).unwrap_or_default();
        if let Some((keyword, length)) = condition::keyword(line.bytes()) {
            let condition = line.slice(length, line.len()).trimmed();
            let outcome = context.conditionals.take(keyword, || self.condition(&condition));
            if let Err(message) = outcome {
                self.error(place, message);
            }
            return;
        }
        if !context.conditionals.enabled() {
            return;
        }
        match statement::parse(&line) {
            Ok(statement) => self.statement(statement, place, context),
            Err(message) => self.error(place, message),
        }
    }

    /// Adds a line to a block, or ends the block and returns `None`.
    fn block_line(&mut self, mut block: Block, line: &Text, context: &Context) -> Option<Block> {
        if line.bytes().strip_prefix(b"@") == Some(&block.tag) {
            self.define(&block.name, &block.text, block.place, context);
            return None;
        }
        if let Some(place) = block.text.place(block.text.len()) {
            block.text.push(b'\n', place);
        }
        block.text.append(line);
        Some(block)
    }

    fn condition(&self, condition: &Text) -> Result<bool, String> {
        if !condition.bytes().contains(&b'$') {
            return condition::decide(&self.config, &condition.as_str(), None);
        }
        let expanded = self.expand(condition).map_err(|error| error.to_string())?;
        condition::decide(&self.config, &expanded.as_str(), Some(&condition.as_str()))
    }

    fn expand(&self, text: &Text) -> Result<Text, ExpandError> {
        Expander::new(&self.config).expand(text)
    }

    fn statement(&mut self, statement: Statement, place: Place, context: &mut Context) {
        match statement {
            Statement::Section => {}
            Statement::Message { fatal, text } => {
                let severity = if fatal { Severity::Error } else { Severity::Warning };
                match self.expand(&text) {
                    Ok(text) => self.report(severity, place, text.as_str()),
                    Err(error) => self.expand_error(error),
                }
            }
            Statement::Use { category, names } => self.use_templates(&category, &names, place, context),
            Statement::Include { options, path } => self.include(&options, &path, place, context.depth),
            Statement::Assign { name, how, value } => self.assign(&name, how, &value, place, context),
        }
    }

    fn assign(&mut self, name: &Text, how: Assignment, value: &Text, place: Place, context: &mut Context) {
        if how == Assignment::Colon && !context.in_template() && !self.colon(name, place, context) {
            return;
        }
        let name = match self.expand(name) {
            Ok(name) => name.as_str().into_owned(),
            Err(error) => return self.expand_error(error),
        };
        if name.is_empty() || !name.bytes().all(is_name_byte) {
            let message = format!(
                "'{name}' is no name: a name has letters, digits, _ and . only, and a blank before +=, @= or words"
            );
            return self.error(place, message);
        }
        match how {
            Assignment::Set | Assignment::Colon => self.define(&name, value, place, context),
            Assignment::Append(separator) => {
                let joined = names::appended(&self.config, &name, separator, value, place);
                self.define(&name, &joined, place, context);
            }
            Assignment::Block => {
                let tag = value.bytes().to_vec();
                context.block = Some(Block { name, place, tag, text: Text::default() });
            }
        }
    }

    /// Reports `NAME : value`. Returns whether the assignment counts.
    fn colon(&mut self, name: &Text, place: Place, context: &mut Context) -> bool {
        let name = name.as_str();
        if name.eq_ignore_ascii_case("RunBenchmarks") {
            context.strict = false;
            return true;
        }
        let message = format!("{name} : value is obsolete: write {name} = value");
        self.report(if context.strict { Severity::Error } else { Severity::Warning }, place, message);
        !context.strict
    }

    fn define(&mut self, name: &str, value: &Text, place: Place, context: &Context) {
        let expanded = Expander::new(&self.config).expand_own(name, value);
        match expanded {
            Err(error) => self.expand_error(error),
            Ok(text) => {
                if self.spend(text.len(), place) {
                    let name = name.to_owned();
                    self.config.define(Definition { name, origin: context.origin, text, place });
                }
            }
        }
    }

    fn use_templates(&mut self, category: &Text, names: &Text, place: Place, context: &Context) {
        let category = match self.expand(category) {
            Ok(category) => category.as_str().trim_ascii().to_owned(),
            Err(error) => return self.expand_error(error),
        };
        if !templates::is_category(&category) {
            let message =
                format!("use '{category}' is unknown: write use POLICY, FEATURE, ROLE or SECURITY : NAME");
            return self.error(place, message);
        }
        let uses = match arguments::uses(names) {
            Ok(uses) => uses,
            Err(message) => return self.error(names.place(0).unwrap_or(place), message),
        };
        for one in uses {
            if self.stopped {
                return;
            }
            let Some(template) = templates::find(&category, &one.name) else {
                let message = format!("use {category} : {} is unknown: there is no such template", one.name);
                self.error(one.place, message);
                continue;
            };
            self.use_template(template, &one, context);
        }
    }

    fn use_template(&mut self, template: &'static Template, one: &Use, context: &Context) {
        let Template { category, name, .. } = template;
        if let Some(advice) = template.advice {
            self.report(Severity::Warning, one.place, format!("use {category} : {name}: {advice}"));
        }
        if context.depth + 1 >= MAX_NESTING {
            return self.error(one.place, format!("use {category} : {name} is nested too deeply"));
        }
        let text = match arguments::replace(template.text, &one.arguments) {
            Ok(text) => text,
            Err(message) => return self.error(one.place, format!("use {category} : {name}: {message}")),
        };
        if !self.spend(text.len(), one.place) {
            return;
        }
        let mut inner = Context::new(Origin::Template(category, name), context.depth + 1);
        for line in
            text.lines().map(str::trim_ascii).filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            if self.stopped {
                return;
            }
            self.line(Text::at(line, one.place), &mut inner);
        }
    }

    fn include(&mut self, options: &Text, path: &Text, place: Place, depth: usize) {
        let options = options.as_str();
        let words: Vec<&str> = options.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        let (if_exists, words) = match words.split_first() {
            Some((&("ifexist" | "ifexists"), rest)) => (true, rest),
            _ => (false, words.as_slice()),
        };
        let command = matches!(words.first(), Some(&("command" | "output")));
        if !command && !words.is_empty() {
            return self.error(place, format!("include does not know '{}'", words.join(" ")));
        }
        let path = match self.expand(path) {
            Ok(path) => path.as_str().into_owned(),
            Err(error) => return self.expand_error(error),
        };
        if command || path.contains('|') {
            let message =
                format!("include of a command is refused: '{path}' is never run; include its output");
            return self.error(place, message);
        }
        let file = match self.reader.files {
            Some(files) => files(&path),
            None => Err(FileError::Refused("")),
        };
        match file {
            Err(FileError::Missing) if if_exists => {}
            Err(error @ FileError::Directory) => {
                self.report(Severity::Warning, place, format!("include of '{path}' reads nothing: {error}"));
            }
            Err(error) => self.error(place, format!("include of '{path}': {error}")),
            Ok(_) if depth + 1 >= MAX_NESTING => {
                self.error(place, format!("include of '{path}' is nested more than {MAX_NESTING} deep"));
            }
            Ok(_) if self.included >= MAX_INCLUDED => {
                self.error(place, format!("more than {MAX_INCLUDED} files are included"));
                self.stopped = true;
            }
            Ok(text) => {
                self.included += 1;
                self.text(&path, &text, depth + 1);
            }
        }
    }
}

/// Whether a line starts with `:if`.
fn is_hidden_if(line: &[u8]) -> bool {
    line.strip_prefix(b":if").is_some_and(|rest| rest.first().is_none_or(|byte| is_space(*byte)))
}

/// Reads a comment that changes how the rest of the text is read.
fn option(comment: &str, lines: &mut Lines, context: &mut Context) {
    let is = |option: &str| comment.eq_ignore_ascii_case(option);
    if is("#opt:oldcomment") {
        lines.old_comments = true;
    } else if is("#opt:newcomment") {
        lines.old_comments = false;
    } else if is("#opt:strict") {
        context.strict = true;
    }
}
