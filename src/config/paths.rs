//! `$F` and the letters that say which parts of a path are wanted.

use super::scan::Macro;

/// Which parts of a path are wanted, and how they are written.
#[allow(clippy::struct_excessive_bools, reason = "each is a letter of the function")]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    extension: bool,
    name: bool,
    directory: bool,
    /// How many directories from the last.
    directories: usize,
    bare: bool,
    quote: Option<char>,
    /// What slashes of either kind become.
    slash: Option<char>,
}

impl Parts {
    /// What a function wants: for `$F`, by the letters after it.
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
                        // f: a configuration has no directory of its own to complete a path with.
                        _ => {}
                    }
                }
                parts.quote = quoted.then_some(if single { '\'' } else { '"' });
            }
        }
        parts
    }

    /// The wanted parts of a path, without the quotes around it unless they are wanted.
    pub fn of_path(self, path: &str) -> String {
        let mut text = unquoted(path).to_owned();
        if let Some(slash) = self.slash {
            let other = if slash == '/' { '\\' } else { '/' };
            text = text.replace(other, &slash.to_string());
        }
        let Some(quote) = self.quote else { return self.cut(&text).0.to_owned() };
        let (part, rest) = {
            text = format!("{quote}{text}{quote}");
            self.cut(&text)
        };
        // Cutting may have taken the quotes, or may have left the first alone.
        let part = if part.is_empty() && rest > 1 { String::new() } else { part.to_owned() };
        let inner = part.strip_prefix(quote).unwrap_or(&part);
        if rest <= 1 && inner.is_empty() {
            return quote.to_string();
        }
        let inner = inner.strip_suffix(quote).unwrap_or(inner);
        format!("{quote}{inner}{quote}")
    }

    /// The wanted part, and where it ends.
    fn cut(self, text: &str) -> (&str, usize) {
        let name = text.rfind('/').map_or(0, |slash| slash + 1);
        let dot = text.rfind('.').filter(|dot| *dot > name).unwrap_or(text.len());
        // Of a path without directories, there is nothing else to want.
        let alone = name == 0 && (self.name || self.extension);
        let directory = self.directory && !alone;
        let directories = if alone { 0 } else { self.directories };
        let part = |from: usize, to: usize| (text.get(from..to).unwrap_or_default(), to);
        let bare_end = if self.bare { name.saturating_sub(1) } else { name };
        if directories > 0 {
            if name == 0 {
                return part(1.min(text.len()), 1.min(text.len()));
            }
            let end = if self.extension {
                text.len()
            } else if self.name {
                dot
            } else {
                bare_end
            };
            return part(last_directories(text, directories).min(end), end);
        }
        match (directory, self.name, self.extension) {
            (true, false, false) => part(0, bare_end),
            (true, true, false) => part(0, dot),
            (false, true, false) => part(name, dot),
            (false, true, true) => part(name, text.len()),
            (false, false, true) => part(dot + usize::from(self.bare && dot < text.len()), text.len()),
            (true, _, true) | (false, false, false) => part(0, text.len()),
        }
    }
}

/// Where the last `count` directories and the file name start.
fn last_directories(text: &str, count: usize) -> usize {
    let starts = text.char_indices().filter(|(_, letter)| matches!(letter, '/' | '\\')).map(|(at, _)| at + 1);
    let starts: Vec<usize> = starts.collect();
    starts.len().checked_sub(count + 1).and_then(|at| starts.get(at)).copied().unwrap_or(0)
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    text
}
