//! Maps of users, as `userMap()` asks them: `CLASSAD_USER_MAPDATA_<name>`.
//!
//! A line is `* USER RESULT`. The user is taken literally, or is a regular expression between slashes, with an `i` behind it
//! where case is not to count; the result may refer to what its groups matched by `\1` to `\9`, and to all of it by `\0`. Fields
//! end at white space unless they are in double quotes. The first line that matches counts.
//!
//! Source: the manual, "HTCondor's unified map file"; tests/oracle/user_maps.json for what it leaves out.

use std::collections::HashMap;

use classad::Pattern;

/// A map of users.
#[derive(Clone, Debug, Default)]
pub struct UserMap {
    /// What it was read from.
    text: String,
    /// Users as they are, each with its line.
    literal: HashMap<String, (usize, String)>,
    patterns: Vec<(usize, Pattern, String)>,
    by_prefix: bool,
}

impl PartialEq for UserMap {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.by_prefix) == (&other.text, other.by_prefix)
    }
}

/// A line of a map that maps nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleLine {
    /// The line, from 0.
    pub line: usize,
    /// Why it maps nobody, and what to do.
    pub message: String,
}

impl UserMap {
    /// Reads a map, and names the lines that map nobody. With `by_prefix`, as `CLASSAD_USER_MAP_PREFIX_<name>` has it, a user
    /// stands for all that begin with it, the longest counts, and there are no regular expressions.
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

    /// What a user is mapped to; none for one that no line matches.
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

/// What `userMap(map, user, preferred)` makes of a result: the one of its comma separated items that is preferred, whatever its
/// case, else the first.
pub fn preferred<'a>(result: &'a str, wanted: Option<&str>) -> &'a str {
    let items = || result.split(',').map(str::trim).filter(|item| !item.is_empty());
    let chosen = wanted.and_then(|wanted| items().find(|item| item.eq_ignore_ascii_case(wanted)));
    chosen.or_else(|| items().next()).unwrap_or_default()
}

/// A result with `\N` replaced by what a group matched. A group that there is not stays as it is written.
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

/// The result at the beginning of what is left of a line.
fn result_of(rest: &str) -> Result<String, String> {
    let (result, _) = field(rest.trim_start());
    if result.is_empty() {
        Err("nothing is said after the user: what it is mapped to".to_owned())
    } else {
        Ok(result)
    }
}

/// A field at the beginning of a text, and what comes after it.
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

/// A pattern up to its slash, and what comes after that. A slash with a backslash before it is one of the pattern's.
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
