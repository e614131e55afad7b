//! The passes that TRANSFORM asks for: `TRANSFORM [COUNT] [VARIABLES] [in (ITEMS) | from (LINES)]`.

use classad::{Ad, Env};
use condor_config::{Config, Diagnostic, FileError, Scope, Severity, Text, iteration_keyword};

use crate::file::Files;
use crate::transforms::{PREFIX, WORK};

/// The most passes for one ad.
const MAX_PASSES: usize = 10_000;

/// The passes over each ad: each item is there for so many steps.
#[derive(Clone, Debug)]
pub(crate) struct Passes {
    /// The arguments of TRANSFORM, for errors.
    arguments: Text,
    steps: usize,
    variables: Vec<String>,
    /// `None`: there are no items, and all steps are in one row.
    items: Option<Vec<String>>,
}

/// One pass.
pub(crate) struct Pass<'p> {
    passes: &'p Passes,
    row: usize,
    step: usize,
}

impl Passes {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Pass<'_>> {
        let rows = self.items.as_ref().map_or(1, Vec::len);
        // HTCondor finds out only after a pass whether there is another one.
        (0..rows.max(1))
            .flat_map(move |row| (0..self.steps.max(1)).map(move |step| Pass { passes: self, row, step }))
    }

    fn count(&self) -> usize {
        self.items.as_ref().map_or(1, Vec::len).saturating_mul(self.steps)
    }
}

impl Pass<'_> {
    /// Sets the variables of the pass. The variables that the rules set are kept within a row.
    pub(crate) fn enter(&self, scope: &mut Scope<'_>) -> Result<(), Diagnostic> {
        let Self { passes, row, step } = *self;
        scope.pay(0, &passes.arguments)?;
        let process = row * passes.steps.max(1) + step;
        number(scope, row, step, process, true);
        if step > 0 {
            return Ok(());
        }
        scope.forget();
        let Some(item) = passes.items.as_ref().and_then(|items| items.get(row)) else { return Ok(()) };
        for (variable, value) in fields(&passes.variables, item) {
            scope.define_as(variable, value, &passes.arguments)?;
        }
        Ok(())
    }
}

/// Sets the variables that say which pass it is.
fn number(scope: &mut Scope<'_>, row: usize, step: usize, process: usize, iterating: bool) {
    let numbers = [("Row", row), ("ItemIndex", row), ("Step", step), ("XFormId", process)];
    for (name, number) in numbers {
        scope.predefine(name, number.to_string());
    }
    for (name, value) in [("IsLinux", "1"), ("IsWindows", "0"), ("RulesFile", "")] {
        scope.predefine(name, value);
    }
    scope.predefine("Iterating", if iterating { "1" } else { "0" });
}

/// The fields of an item, one for each variable. Commas and blanks separate the fields; the last variable gets the rest.
fn fields<'i>(variables: &'i [String], item: &'i str) -> Vec<(&'i str, &'i str)> {
    let mut fields = Vec::new();
    let mut rest = Some(item);
    for (place, variable) in variables.iter().enumerate() {
        let Some(text) = rest else { break };
        let cut = text.find([',', ' ', '\t']).filter(|_| place + 1 < variables.len());
        let (field, more) = match cut {
            Some(cut) => {
                let more = text.get(cut + 1..).unwrap_or_default().trim_start_matches([' ', '\t']);
                (text.get(..cut).unwrap_or_default(), Some(more))
            }
            None => (text, None),
        };
        fields.push((variable.as_str(), field));
        rest = more;
    }
    fields
}

/// Reads the arguments of TRANSFORM. `lines` are all lines of the rules. `None`: there is an error, which was added to the
/// findings.
pub(crate) fn read(
    config: &Config,
    arguments: &Text,
    lines: &[Text],
    files: Option<Files<'_>>,
    findings: &mut Vec<Diagnostic>,
) -> Option<Passes> {
    let mut scope = Scope::new(config, PREFIX, Ad::new(), Env::at(0), WORK);
    number(&mut scope, 0, 0, 0, false);
    let behind: Vec<&Text> = lines
        .iter()
        .skip_while(|line| {
            config.position_at(line, line.len()) != config.position_at(arguments, arguments.len())
        })
        .skip(1)
        .collect();
    let passes = scope
        .expand(arguments)
        .map_err(|error| error.to_string())
        .and_then(|expanded| passes(&mut scope, arguments, expanded.as_str().trim(), &behind, files));
    let passes = passes.and_then(|passes| match passes.count() {
        0..=MAX_PASSES => Ok(passes),
        count => Err(format!("{count} passes are more than {MAX_PASSES}: use fewer items")),
    });
    match passes {
        Ok(passes) => Some(passes),
        Err(message) => {
            let position = config.position_at(arguments, 0);
            let message = format!("TRANSFORM: {message}");
            findings.push(Diagnostic { severity: Severity::Error, position, message });
            None
        }
    }
}

fn passes(
    scope: &mut Scope<'_>,
    arguments: &Text,
    text: &str,
    behind: &[&Text],
    files: Option<Files<'_>>,
) -> Result<Passes, String> {
    let passes = |steps, variables, items| Passes { arguments: arguments.clone(), steps, variables, items };
    let Some((at, keyword, list)) = iteration_keyword(text) else {
        return Ok(passes(count(scope, text)?, Vec::new(), None));
    };
    let list = list.trim();
    let (number, mut variables) = variables(text.get(..at).unwrap_or_default().trim());
    if variables.is_empty() {
        variables.push("Item".to_owned());
    }
    let items = match keyword {
        "matching" => {
            return Err("matching looks for files, which is not done here: name the items".to_owned());
        }
        "from" => lines_of(list, behind, files)?,
        _ => items_of(list, behind)?,
    };
    Ok(passes(count(scope, number)?, variables, Some(items)))
}

/// Splits what stands before the keyword into the count and the names of variables.
fn variables(before: &str) -> (&str, Vec<String>) {
    let is_part =
        |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || matches!(c, ',' | '_' | '.');
    let tail = before.rfind(|c| !is_part(c)).map_or(0, |at| at + 1);
    let mut start = before.len();
    for (at, c) in before.char_indices().skip_while(|(at, _)| *at < tail) {
        let previous = before.get(..at).and_then(|before| before.chars().last());
        let continues = previous.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        if (c.is_ascii_alphabetic() || c == '_') && !continues {
            start = at;
            break;
        }
    }
    let names = before.get(start..).unwrap_or_default().split(|c: char| c == ',' || c.is_ascii_whitespace());
    let names = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    (before.get(..start).unwrap_or_default().trim(), names)
}

fn count(scope: &Scope<'_>, text: &str) -> Result<usize, String> {
    if text.is_empty() {
        return Ok(1);
    }
    let number = scope.integer(text).ok_or_else(|| format!("'{text}' is no number of passes"))?;
    usize::try_from(number).map_err(|_| format!("{number} is no number of passes"))
}

/// The items of `in (...)` or `in ...`.
fn items_of(list: &str, behind: &[&Text]) -> Result<Vec<String>, String> {
    let split = |text: &str| -> Vec<String> {
        let items = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
        items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
    };
    if list.starts_with('[') {
        return Err(
            "slices of the items are not supported: leave the items out that you do not want".to_owned()
        );
    }
    let Some(open) = list.strip_prefix('(') else { return Ok(split(list)) };
    if let Some(whole) = open.strip_suffix(')') {
        return Ok(split(whole));
    }
    let mut items = split(open);
    for line in until_closed(behind)? {
        items.extend(split(&line));
    }
    Ok(items)
}

/// The items of `from (...)`, a line each, or of `from FILE`.
fn lines_of(list: &str, behind: &[&Text], files: Option<Files<'_>>) -> Result<Vec<String>, String> {
    if let Some(open) = list.strip_prefix('(') {
        if let Some(whole) = open.strip_suffix(')') {
            return Ok(vec![whole.trim_start().to_owned()]);
        }
        let first = Some(open.trim_start().to_owned()).filter(|first| !first.is_empty());
        return Ok(first.into_iter().chain(until_closed(behind)?).collect());
    }
    let read = files.map_or(Err(FileError::Refused("")), |files| files(list));
    let text = read.map_err(|error| format!("the items in '{list}': {error}"))?;
    Ok(text.lines().map(|line| line.trim().to_owned()).collect())
}

/// The lines up to the one that starts with a closing parenthesis.
fn until_closed(behind: &[&Text]) -> Result<Vec<String>, String> {
    let mut items = Vec::new();
    for line in behind {
        let line = line.as_str();
        if line.starts_with(')') {
            return Ok(items);
        }
        if !line.starts_with('#') {
            items.push(line.into_owned());
        }
    }
    Err("the list of items is not closed: expected a line that starts with )".to_owned())
}
