//! `$F`, `$BASENAME` and `$DIRNAME`: parts of a path.

use super::scan::Macro;

/// Which parts of a path are wanted, and how they are written.
#[allow(clippy::struct_excessive_bools, reason = "each is a letter of the function")]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    extension: bool,
    name: bool,
    directory: bool,
    /// How many directories, counted from the last.
    directories: usize,
    bare: bool,
    full: bool,
    quote: Option<u8>,
    /// The byte that replaces slashes of either kind.
    slash: Option<char>,
}

impl Parts {
    /// The parts that a function wants; for `$F`, the letters after it say which.
    pub fn of(kind: Macro, word: impl Iterator<Item = u8>) -> Self {
        let mut parts = Self::default();
        match kind {
            Macro::Basename => (parts.name, parts.extension) = (true, true),
            Macro::Dirname => parts.directory = true,
            _ => {
                let (mut quoted, mut single) = (false, false);
                for letter in word.skip(1) {
                    match letter.to_ascii_lowercase() {
                        b'x' => parts.extension = true,
                        b'n' => parts.name = true,
                        b'p' => parts.directory = true,
                        b'd' => parts.directories += 1,
                        b'b' => parts.bare = true,
                        b'a' => single = true,
                        b'q' => quoted = true,
                        b'w' => parts.slash = Some('\\'),
                        b'u' => parts.slash = Some('/'),
                        b'f' => parts.full = true,
                        _ => {}
                    }
                }
                parts.quote = quoted.then_some(if single { b'\'' } else { b'"' });
            }
        }
        parts
    }

    /// The wanted parts of a path. Quotes around the path are dropped unless quotes are wanted. `directory` completes the path
    /// if a full path is wanted; a configuration has none.
    pub fn of_path(self, path: &str, directory: Option<&str>) -> String {
        let mut text = unquoted(path).to_owned();
        if let Some(directory) = directory.filter(|_| self.full && !text.starts_with('/')) {
            text = self.completed(&text, directory);
        }
        if let Some(slash) = self.slash {
            let other = if slash == '/' { '\\' } else { '/' };
            text = text.replace(other, &slash.to_string());
        }
        if let Some(quote) = self.quote {
            let quote = char::from(quote);
            text = format!("{quote}{text}{quote}");
        }
        let (start, end) = self.cut(&text);
        match self.quote {
            None => text.get(start..end).unwrap_or_default().to_owned(),
            Some(quote) => requoted(&text, start, end, quote),
        }
    }

    /// The path below the directory. As in HTCondor, `./` alone stays.
    fn completed(self, path: &str, directory: &str) -> String {
        let dot =
            path.strip_prefix("./").or_else(|| path.strip_prefix(".\\").filter(|_| self.slash == Some('\\')));
        let below = dot.filter(|rest| !rest.is_empty()).unwrap_or(path);
        format!("{}/{below}", directory.strip_suffix('/').unwrap_or(directory))
    }

    /// Where the wanted parts start and end.
    fn cut(self, text: &str) -> (usize, usize) {
        let all = text.len();
        let name = text.rfind('/').map_or(0, |slash| slash + 1);
        let dot = text.rfind('.').filter(|dot| *dot > name).unwrap_or(all);
        // A path without directories has no directory part.
        let alone = name == 0 && (self.name || self.extension);
        let directory = self.directory && !alone;
        let directories = if alone { 0 } else { self.directories };
        let directories_end = if self.bare { name.saturating_sub(1) } else { name };
        if directories > 0 {
            let end = match (self.name, self.extension) {
                _ if name == 0 => return (1, 1),
                (_, true) => all,
                (true, false) => dot,
                (false, false) => directories_end,
            };
            return (last_directories(text, directories), end);
        }
        match (directory, self.name, self.extension) {
            (true, false, false) => (0, directories_end),
            (true, true, false) => (0, dot),
            (false, true, false) => (name, dot),
            (false, true, true) => (name, all),
            (false, false, true) => (dot + usize::from(self.bare && dot < all), all),
            (true, _, true) | (false, false, false) => (0, all),
        }
    }
}

/// The wanted part of a quoted text. If a quote is not within the part, it is written over the character beside the
/// part, as HTCondor does.
fn requoted(text: &str, mut start: usize, mut end: usize, quote: u8) -> String {
    let mut bytes = text.as_bytes().to_vec();
    // Room for a quote after the end.
    bytes.push(0);
    let mut put = |at: usize| match bytes.get_mut(at) {
        Some(byte) => std::mem::replace(byte, quote),
        None => 0,
    };
    let is_quote = |at: usize| text.as_bytes().get(at) == Some(&quote);
    if start > 0 && !is_quote(start) {
        start -= 1;
        put(start);
    }
    if end > 1 && (is_quote(end - 1) || end - 1 == start) {
        end -= 1;
    }
    put(end);
    String::from_utf8_lossy(bytes.get(start..=end).unwrap_or_default()).into_owned()
}

/// Where the last `count` directories before the file name start.
fn last_directories(text: &str, count: usize) -> usize {
    let starts = text.char_indices().filter(|(_, letter)| matches!(letter, '/' | '\\')).map(|(at, _)| at + 1);
    let starts: Vec<usize> = starts.collect();
    starts.len().checked_sub(count + 1).and_then(|at| starts.get(at)).copied().unwrap_or(0)
}

/// The text without quotes around it. As HTCondor does, a double quote at the start of the rest is dropped as well,
/// with the double quote at the end if there is one.
fn unquoted(text: &str) -> &str {
    let within = |quote| text.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    let inner = within('"').or_else(|| within('\'')).unwrap_or(text);
    match inner.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').unwrap_or(rest),
        None => inner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, cases: &[(&str, &str)]) {
        for (letters, expected) in cases {
            let word = format!("F{letters}");
            let parts = Parts::of(Macro::Filename, word.bytes());
            assert_eq!(parts.of_path(path, None), *expected, "$F{letters}({path})");
        }
    }

    #[test]
    fn quotes_around_a_path_are_dropped() {
        check("\"x\"", &[("", "x"), ("q", "\"x\"")]);
        check("'x'", &[("", "x"), ("q", "\"x\"")]);
        check("\"x\" y", &[("", "x\" y"), ("q", "\"x\" y\"")]);
        check("\"x", &[("", "x")]);
        check("'x", &[("", "'x")]);
        check("x\"", &[("", "x\"")]);
        check("'\"x\"'", &[("", "x")]);
        check("\"'x'\"", &[("", "'x'")]);
        check("\"\"\"x\"", &[("", "\"x")]);
    }

    #[test]
    fn parts_of_a_path() {
        check(
            "/a/b/c.tar.gz",
            &[
                ("", "/a/b/c.tar.gz"),
                ("p", "/a/b/"),
                ("n", "c.tar"),
                ("x", ".gz"),
                ("nx", "c.tar.gz"),
                ("d", "b/"),
                ("dd", "a/b/"),
                ("dn", "b/c.tar"),
                ("pn", "/a/b/c.tar"),
                ("px", "/a/b/c.tar.gz"),
                ("bp", "/a/b"),
                ("bx", "gz"),
                ("bd", "b"),
                ("w", "\\a\\b\\c.tar.gz"),
                ("pd", "b/"),
            ],
        );
    }

    #[test]
    fn paths_that_lack_parts() {
        check("c.txt", &[("p", ""), ("d", ""), ("pn", "c"), ("px", ".txt"), ("ddn", "c")]);
        check("/a/b/", &[("n", ""), ("x", ""), ("d", "b/"), ("nx", "")]);
        check("/.bashrc", &[("n", ".bashrc"), ("x", ""), ("d", "/"), ("bp", "")]);
        check("", &[("", ""), ("d", ""), ("n", "")]);
    }

    #[test]
    fn full_paths() {
        for (letters, path, directory, expected) in [
            ("f", "a/b.c", Some("/home/ada"), "/home/ada/a/b.c"),
            ("fq", "a b", Some("/home/ada"), "\"/home/ada/a b\""),
            ("fn", "./b.c", Some("/home/ada/"), "b"),
            ("f", "./b.c", Some("/home/ada/"), "/home/ada/b.c"),
            ("f", "./", Some("/home/ada"), "/home/ada/./"),
            ("f", "/b.c", Some("/home/ada"), "/b.c"),
            ("fp", "b.c", Some("/home/ada"), "/home/ada/"),
            ("fw", "a/b", Some("/home"), "\\home\\a\\b"),
            ("f", "a/b.c", None, "a/b.c"),
            ("", "a/b.c", Some("/home/ada"), "a/b.c"),
        ] {
            let parts = Parts::of(Macro::Filename, format!("F{letters}").bytes());
            assert_eq!(parts.of_path(path, directory), expected, "$F{letters}({path}) in {directory:?}");
        }
    }

    #[test]
    fn quotes_as_htcondor_leaves_them() {
        check(
            "\"/a b/c.d\"",
            &[("", "/a b/c.d"), ("q", "\"/a b/c.d\""), ("qp", "\"/a b/\""), ("qan", "'c'")],
        );
        check("/a/b/", &[("qn", "\""), ("qx", "\""), ("qp", "\"/a/b/\""), ("qan", "'")]);
        check("c.txt", &[("qp", "\""), ("qd", "\"\""), ("qn", "\"c\""), ("qx", "\".txt\"")]);
        check("", &[("q", "\"\""), ("qd", "\""), ("qn", "\"\""), ("qx", "\"")]);
    }
}
