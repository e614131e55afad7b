//! Maps of users, which `userMap()` reads: `CLASSAD_USER_MAPDATA_<name>`.
//!
//! A line is `* USER RESULT`. USER is literal text, or a regular expression between slashes, with an `i` behind the
//! second slash if case does not count. In RESULT, `\1` to `\9` stand for what the groups matched, and `\0` for the
//! whole user. A field ends at white space, unless it is in double quotes. The first line that matches a user counts.
//!
//! ```
//! use condor_config::user_map::UserMap;
//!
//! let (map, idle) = UserMap::read("* anna physics\n* /^student_(.*)/ students.\\1\n", false);
//! assert!(idle.is_empty());
//! assert_eq!(map.of("student_otto").as_deref(), Some("students.otto"));
//! assert_eq!(map.of("nobody"), None);
//! ```
//!
//! Source: the manual, "HTCondor's unified map file". For what the manual leaves out, HTCondor's answers are recorded
//! in `tests/oracle/user_maps.json`.

use std::collections::{BTreeMap, HashMap};

use classad::{Pattern, UserMaps};

use crate::{Config, Diagnostic, Severity};

pub use classad::preferred;

/// A map from users to results, such as accounting groups.
#[derive(Clone, Debug, Default)]
pub struct UserMap {
    /// The text that was read.
    text: String,
    /// The lines with literal users, by user: the line's number and its result.
    literal: HashMap<String, (usize, String)>,
    patterns: Vec<(usize, Pattern, String)>,
    by_prefix: bool,
}

impl PartialEq for UserMap {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.by_prefix) == (&other.text, other.by_prefix)
    }
}

/// The maps of a configuration, by name: `SCHEDD_CLASSAD_USER_MAP_NAMES`, and for each name `CLASSAD_USER_MAPDATA_<name>`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Maps(BTreeMap<String, UserMap>);

impl Maps {
    /// Reads the maps that a configuration names. Errors and warnings are added to `findings`: a map whose lines are in a file
    /// cannot be read, and a line that maps nobody does nothing.
    pub fn read(config: &Config, findings: &mut Vec<Diagnostic>) -> Self {
        let names = config.list("SCHEDD_CLASSAD_USER_MAP_NAMES").unwrap_or_default();
        Self(
            names
                .iter()
                .filter_map(|name| Some((name.to_ascii_lowercase(), map_of(config, name, findings)?)))
                .collect(),
        )
    }

    /// The map of this name, in upper or lower case.
    pub fn get(&self, name: &str) -> Option<&UserMap> {
        self.0.get(&name.to_ascii_lowercase())
    }
}

impl UserMaps for Maps {
    fn look_up(&self, map: &str, user: &str) -> Option<String> {
        self.get(map)?.of(user)
    }

    fn has(&self, map: &str) -> bool {
        self.get(map).is_some()
    }
}

fn map_of(config: &Config, name: &str, findings: &mut Vec<Diagnostic>) -> Option<UserMap> {
    let (data, file) = (format!("CLASSAD_USER_MAPDATA_{name}"), format!("CLASSAD_USER_MAPFILE_{name}"));
    let Ok(Some(text)) = config.text(&data) else {
        let (knob, message) = if config.definition(&file).is_some() {
            (
                file.as_str(),
                format!("the map {name} is in a file, and none can be read here: put its lines into {data}"),
            )
        } else {
            ("SCHEDD_CLASSAD_USER_MAP_NAMES", format!("{data} is not defined: the map {name} maps nobody"))
        };
        let text = config.text(knob).ok().flatten()?;
        let severity = if knob == file { Severity::Error } else { Severity::Warning };
        findings.push(Diagnostic { severity, position: config.position_at(&text, 0), message });
        return None;
    };
    let prefix = config.boolean(&format!("CLASSAD_USER_MAP_PREFIX_{name}")).ok().flatten().unwrap_or(false);
    let (map, idle) = UserMap::read(&text.as_str(), prefix);
    findings.extend(idle.into_iter().map(|idle| Diagnostic {
        severity: Severity::Warning,
        position: config.position_in(&text, idle.line + 1, 1),
        message: format!("{data}: {}", idle.message),
    }));
    Some(map)
}

/// A line of a map that maps nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleLine {
    /// The number of the line, from 0.
    pub line: usize,
    /// Why the line maps nobody, and what to do.
    pub message: String,
}

impl UserMap {
    /// Reads a map, and returns the lines that map nobody with it.
    ///
    /// With `by_prefix` (`CLASSAD_USER_MAP_PREFIX_<name>`), a line maps all users that begin with its USER, the
    /// longest USER that fits counts, and there are no regular expressions.
    pub fn read(text: &str, by_prefix: bool) -> (Self, Vec<IdleLine>) {
        let mut map = Self { text: text.to_owned(), by_prefix, ..Self::default() };
        let mut idle = Vec::new();
        for (line, text) in text.lines().enumerate() {
            if let Err(message) = map.read_line(line, text.trim()) {
                idle.push(IdleLine { line, message });
            }
        }
        (map, idle)
    }

    fn read_line(&mut self, line: usize, text: &str) -> Result<(), String> {
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let (method, rest) = field(text);
        if method != "*" {
            return Err(format!("{method} is no * : a line of a map of users reads * USER RESULT"));
        }
        let rest = rest.trim_start();
        if let Some(pattern) = rest.strip_prefix('/') {
            let (pattern, rest) = until_slash(pattern)
                .ok_or_else(|| format!("the regular expression {rest} has no slash at its end"))?;
            let (caseless, rest) = rest.strip_prefix('i').map_or((false, rest), |rest| (true, rest));
            let result = result_of(rest)?;
            if self.by_prefix {
                return Err("there are no regular expressions in a map of prefixes".to_owned());
            }
            let compiled = Pattern::new(&pattern, caseless)
                .ok_or_else(|| format!("/{pattern}/ is no regular expression that can be used here"))?;
            self.patterns.push((line, compiled, result));
        } else {
            let (user, rest) = field(rest);
            let result = result_of(rest)?;
            self.literal.entry(user).or_insert((line, result));
        }
        Ok(())
    }

    /// The result for a user. `None`: no line matches the user.
    pub fn of(&self, user: &str) -> Option<String> {
        let literal = self.literal_of(user);
        if let Some((_, result)) = literal.filter(|_| self.by_prefix) {
            return Some(fill(result, |group| (group == 0).then_some(user)));
        }
        let first = literal.map_or(usize::MAX, |(line, _)| *line);
        let mut before = self.patterns.iter().take_while(|(line, ..)| *line < first);
        match before.find_map(|(_, pattern, result)| Some((pattern.groups(user)?, result))) {
            Some((groups, result)) => Some(fill(result, |group| groups.get(group).copied())),
            None => literal.map(|(_, result)| fill(result, |group| (group == 0).then_some(user))),
        }
    }

    fn literal_of(&self, user: &str) -> Option<&(usize, String)> {
        if !self.by_prefix {
            return self.literal.get(user);
        }
        (1..=user.len()).rev().find_map(|end| self.literal.get(user.get(..end)?))
    }
}

/// A result with `\N` replaced by what the group matched. A `\N` without a group stays as it is.
fn fill<'a>(result: &str, group: impl Fn(usize) -> Option<&'a str>) -> String {
    let mut filled = String::with_capacity(result.len());
    let mut rest = result;
    while let Some((before, after)) = rest.split_once('\\') {
        filled.push_str(before);
        let digit = after.chars().next().and_then(|digit| digit.to_digit(10));
        if let Some(text) = digit.and_then(|digit| group(usize::try_from(digit).ok()?)) {
            filled.push_str(text);
            rest = after.get(1..).unwrap_or_default();
        } else {
            filled.push('\\');
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}

/// The result, which is the next field of a line.
fn result_of(rest: &str) -> Result<String, String> {
    let (result, _) = field(rest.trim_start());
    if result.is_empty() {
        Err("nothing is said after the user: what it is mapped to".to_owned())
    } else {
        Ok(result)
    }
}

/// The field at the beginning of a text, and the text after it.
fn field(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (field, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        return (field.to_owned(), rest);
    };
    let mut field = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, next)) = chars.next() {
        match next {
            '"' => return (field, quoted.get(at + 1..).unwrap_or_default()),
            '\\' if quoted.get(at + 1..).is_some_and(|after| after.starts_with('"')) => {
                field.push('"');
                chars.next();
            }
            other => field.push(other),
        }
    }
    (field, "")
}

/// A pattern up to the slash that ends it, and the text after the slash. `\/` is a slash within the pattern.
fn until_slash(text: &str) -> Option<(String, &str)> {
    let mut escaped = false;
    for (at, next) in text.char_indices() {
        if next == '/' && !escaped {
            return Some((text.get(..at)?.replace("\\/", "/"), text.get(at + 1..)?));
        }
        escaped = next == '\\' && !escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_that_map_nobody_are_named_with_the_remedy() {
        let text = "* alice g\nX bob g\n* carol\n* /x g\n* /(?=y)/ g\n\n# all of these but the first\n";
        let (map, idle) = UserMap::read(text, false);
        assert_eq!(map.of("alice").as_deref(), Some("g"));
        let told: Vec<(usize, &str)> = idle.iter().map(|idle| (idle.line, idle.message.as_str())).collect();
        assert_eq!(
            told,
            [
                (1, "X is no * : a line of a map of users reads * USER RESULT"),
                (2, "nothing is said after the user: what it is mapped to"),
                (3, "the regular expression /x g has no slash at its end"),
                (4, "/(?=y)/ is no regular expression that can be used here"),
            ]
        );
        let (_, idle) = UserMap::read("* /x/ g\n", true);
        assert_eq!(idle[0].message, "there are no regular expressions in a map of prefixes");
    }

    proptest! {
        #[test]
        fn any_text_is_a_map_and_maps_any_user(
            lines in prop::collection::vec(r#"[*X# ]{0,2}( |\t)?[/"a-z\\.é()\[ ]{0,8}( [\\0-9"a,]{0,6})?"#, 0..8),
            user in r#"[/"a-zé\\]{0,6}"#,
            by_prefix: bool,
        ) {
            let (map, idle) = UserMap::read(&lines.join("\n"), by_prefix);
            prop_assert!(idle.iter().all(|idle| idle.line < lines.len()));
            if let Some(result) = map.of(&user) {
                preferred(&result, Some(&user));
            }
        }
    }
}
