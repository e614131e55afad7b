//! The effects of the commands on an ad.

use std::collections::BTreeMap;

use classad::{Ad, Expr, ParseError, Pattern, Value};
use condor_config::{Diagnostic, Scope, Text};

use crate::command::{Command, Rest, Which, is_attribute};

/// The most attributes that an ad may get.
const MAX_ATTRIBUTES: usize = 10_000;
/// The longest name that an attribute may get, in bytes.
const MAX_NAME: usize = 4096;

/// The most parentheses and names that may stand around a list.
const MAX_NAMES: usize = 20;

type Done = Result<(), Diagnostic>;

/// Runs a command on the ad of the scope. `line` is the command's line.
pub(crate) fn command(scope: &mut Scope<'_>, line: &Text, command: &Command) -> Done {
    match command {
        Command::Nothing => Ok(()),
        Command::Set { attribute, only_new, expr } => set(scope, line, attribute, *only_new, expr),
        Command::EvalSet { attribute, expr } => {
            let Some((expr, value)) = evaluated(scope, line, expr)? else { return Ok(()) };
            let kept = written_list(scope.ad(), expr).unwrap_or_else(|| Expr::literal(value));
            insert(scope, line, attribute, kept)
        }
        Command::EvalMacro { variable, expr } => {
            let Some((expr, value)) = evaluated(scope, line, expr)? else { return Ok(()) };
            let text = match &value {
                Value::Str(text) => text.to_string(),
                _ => written_list(scope.ad(), expr).unwrap_or_else(|| Expr::literal(value)).to_old(),
            };
            scope.pay(text.len(), line)?;
            scope.define_as(variable, &text, line).map_err(Into::into)
        }
        Command::Move { which, to, keep } => {
            let target = scope.expand(&to.text)?;
            let target = target.as_str();
            match which {
                Which::Nothing => Ok(()),
                Which::Named(from) => transfer(scope, line, from, &target, *keep),
                Which::Matching { pattern, at_start } => {
                    let found = matching(scope, line, pattern, *at_start, Some(&target))?;
                    found.iter().try_for_each(|(from, to)| transfer(scope, line, from, to, *keep))
                }
            }
        }
        Command::Delete { which } => match which {
            Which::Nothing => Ok(()),
            Which::Named(name) => {
                scope.ad_mut().remove(name);
                Ok(())
            }
            Which::Matching { pattern, at_start } => {
                for name in matching(scope, line, pattern, *at_start, None)?.keys() {
                    scope.ad_mut().remove(name);
                }
                Ok(())
            }
        },
    }
}

fn set(scope: &mut Scope<'_>, line: &Text, attribute: &str, only_new: bool, expr: &Rest) -> Done {
    let text = scope.expand(&expr.text)?;
    if only_new && scope.ad().contains(attribute) {
        return Ok(());
    }
    match Expr::parse_old(&text.as_str()) {
        Ok(expr) => insert(scope, line, attribute, expr),
        Err(error) => {
            no_expression(scope, &text, &error);
            Ok(())
        }
    }
}

/// The expression that an expanded text starts with, and its value in the ad. `None`: the text starts with no expression.
fn evaluated(scope: &mut Scope<'_>, line: &Text, rest: &Rest) -> Result<Option<(Expr, Value)>, Diagnostic> {
    let text = scope.expand(&rest.text)?;
    let expr = match Expr::parse_prefix(&text.as_str()) {
        Ok(expr) => expr,
        Err(error) => {
            no_expression(scope, &text, &error);
            return Ok(None);
        }
    };
    let evaluation = scope.evaluate(&expr);
    if let Some(bound) = evaluation.bound {
        scope.warn(&text, 0, format!("{bound}; the value is error"));
    }
    scope.pay(0, line)?;
    Ok(Some((expr, evaluation.value)))
}

/// The list that an expression stands for, in parentheses or through names of attributes. HTCondor keeps the elements of such a
/// list as they are written. `None`: the expression stands for no list, or makes one.
fn written_list(ad: &Ad, mut expr: Expr) -> Option<Expr> {
    for _ in 0..MAX_NAMES {
        if expr.is_list() {
            return Some(expr);
        }
        let text = expr.to_old();
        expr = match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
            Some(inner) => Expr::parse_old(inner).ok()?,
            None => ad.get(text.strip_prefix("MY.").unwrap_or(&text))?.clone(),
        };
    }
    None
}

fn no_expression(scope: &mut Scope<'_>, text: &Text, error: &ParseError) {
    let shown = text.as_str();
    let before =
        shown.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let within = shown.get(before..).unwrap_or_default().chars().take(error.column().saturating_sub(1));
    let offset = before + within.map(char::len_utf8).sum::<usize>();
    let start: String = shown.chars().take(80).collect();
    let message = format!("'{start}' is no expression: {}; the command does nothing", error.fault());
    scope.warn(text, offset, message);
}

fn insert(scope: &mut Scope<'_>, line: &Text, attribute: &str, expr: Expr) -> Done {
    if scope.ad().len() >= MAX_ATTRIBUTES && !scope.ad().contains(attribute) {
        return Err(scope.error(line, 0, format!("the ad would have more than {MAX_ATTRIBUTES} attributes")));
    }
    scope.write(attribute, expr);
    Ok(())
}

/// Copies or renames an attribute. Nothing happens if there is no such attribute, or if the new name is none.
fn transfer(scope: &mut Scope<'_>, line: &Text, from: &str, to: &str, keep: bool) -> Done {
    scope.pay(to.len(), line)?;
    if !is_attribute(to) || to.len() > MAX_NAME {
        let start: String = to.chars().take(80).collect();
        scope.warn(line, 0, format!("'{start}' is no name of an attribute; {from} stays as it is"));
        return Ok(());
    }
    let expr = if keep { scope.ad().get(from).cloned() } else { scope.ad_mut().remove(from) };
    expr.map_or(Ok(()), |expr| insert(scope, line, to, expr))
}

/// The attributes whose names match a pattern, in the order of their bytes, each with the replacement for its name.
fn matching(
    scope: &Scope<'_>,
    line: &Text,
    pattern: &Pattern,
    at_start: bool,
    replacement: Option<&str>,
) -> Result<BTreeMap<String, String>, Diagnostic> {
    let mut found = BTreeMap::new();
    for (name, _) in scope.ad().unsorted() {
        let name = name.as_str();
        scope.pay(name.len() * pattern.weight() + replacement.map_or(0, str::len), line)?;
        let Some(groups) = pattern.groups(name) else { continue };
        let starts = groups.first().is_some_and(|whole| whole.as_ptr() == name.as_ptr());
        if at_start && !starts {
            continue;
        }
        let new = replacement.map(|replacement| substituted(replacement, &groups)).unwrap_or_default();
        scope.pay(new.len(), line)?;
        found.insert(name.to_owned(), new);
    }
    Ok(found)
}

/// The replacement with `\0` to `\9` replaced by the groups of a match. A number without a group stays as it is.
fn substituted(replacement: &str, groups: &[&str]) -> String {
    let mut out = String::new();
    let mut rest = replacement.chars();
    while let Some(c) = rest.next() {
        let digit = rest.clone().next().and_then(|digit| digit.to_digit(10));
        let group = digit.filter(|_| c == '\\').and_then(|digit| groups.get(digit as usize));
        match group {
            Some(group) if out.len() <= MAX_NAME => {
                out.push_str(group);
                rest.next();
            }
            _ => out.push(c),
        }
    }
    out
}
