//! Finds the next `$(NAME)` or `$FUNCTION(...)` in a text.

use super::text::is_name_byte;

/// A kind of macro, by the word between the dollar and the parenthesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Macro {
    /// `$(NAME)` and `$(NAME:default)`
    Name,
    /// `$ENV(NAME)` and `$ENV(NAME:default)`
    Env,
    RandomChoice,
    RandomInteger,
    Choice,
    Substr,
    Int,
    Real,
    Str,
    Eval,
    Basename,
    Dirname,
    /// `$F` with letters that say which parts of a path are wanted
    Filename,
}

impl Macro {
    /// The macro with this word after the dollar; upper and lower case differ.
    pub fn of(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"" => Self::Name,
            b"ENV" => Self::Env,
            b"RANDOM_CHOICE" => Self::RandomChoice,
            b"RANDOM_INTEGER" => Self::RandomInteger,
            b"CHOICE" => Self::Choice,
            b"SUBSTR" => Self::Substr,
            b"INT" => Self::Int,
            b"REAL" => Self::Real,
            b"STRING" => Self::Str,
            b"EVAL" => Self::Eval,
            b"BASENAME" => Self::Basename,
            b"DIRNAME" => Self::Dirname,
            [b'F', parts @ ..]
                if parts.iter().all(|part| b"pnxdqabfwu".contains(&part.to_ascii_lowercase())) =>
            {
                Self::Filename
            }
            _ => return None,
        })
    }

    /// Whether the macro takes a name and a default. Any other takes everything up to the first closing parenthesis.
    fn takes_name(self) -> bool {
        matches!(self, Self::Name | Self::Env)
    }
}

/// Which macros a search looks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'a> {
    /// All but `$(DOLLAR)`.
    All,
    /// Only `$(DOLLAR)`.
    Dollar,
    /// Only references to this name, or to the second one, and `$F` functions of them.
    Own(&'a str, Option<&'a str>),
    /// Only a template's arguments: `$(1)`, `$(2+)`, `$(1?)`, `$(0#)`, `$(1:default)`.
    Arguments,
}

/// A macro in a text, as offsets in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub kind: Macro,
    /// The dollar.
    pub dollar: usize,
    /// The offset after the opening parenthesis.
    pub body: usize,
    /// The offset after the first colon, if there is a default.
    pub default: Option<usize>,
    /// The closing parenthesis.
    pub close: usize,
}

impl Found {
    /// The offset at which the name ends.
    pub fn name_end(&self) -> usize {
        self.default.map_or(self.close, |default| default - 1)
    }
}

/// A text that can be read byte by byte.
pub(super) trait Bytes {
    /// The byte at an offset; `None` past the end.
    fn at(&self, offset: usize) -> Option<u8>;
}

impl Bytes for [u8] {
    fn at(&self, offset: usize) -> Option<u8> {
        self.get(offset).copied()
    }
}

/// The next macro at or after `from`. The number of bytes that were looked at is subtracted from `work`. `None`: there
/// is no further macro, or `work` is used up.
pub(super) fn find(
    text: &(impl Bytes + ?Sized),
    from: usize,
    wanted: Wanted,
    work: &mut u64,
) -> Option<Found> {
    let mut at = from;
    loop {
        let (kind, dollar, body) = prefix(text, at, wanted, work)?;
        let Some((default, close)) = span(text, body, kind, wanted, work) else {
            at = body;
            continue;
        };
        let found = Found { kind, dollar, body, default, close };
        if is_wanted(text, &found, wanted) {
            return Some(found);
        }
        at = close;
    }
}

/// The next `$word(` with a known word: the macro, the offset of the dollar, and the offset of the body.
fn prefix(
    text: &(impl Bytes + ?Sized),
    mut at: usize,
    wanted: Wanted,
    work: &mut u64,
) -> Option<(Macro, usize, usize)> {
    loop {
        while text.at(at)? != b'$' {
            at += 1;
            *work = work.checked_sub(1)?;
        }
        let dollar = at;
        at += 1;
        let doubled = text.at(at) == Some(b'$');
        at += usize::from(doubled);
        let mut letters = Vec::new();
        while let Some(byte) = text.at(at).filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            letters.push(byte);
            at += 1;
        }
        *work = work.checked_sub((at - dollar) as u64)?;
        if text.at(at) != Some(b'(') || doubled {
            continue;
        }
        let kind = Macro::of(&letters);
        if let Some(kind) = kind.filter(|kind| *kind == Macro::Name || !matches!(wanted, Wanted::Arguments)) {
            return Some((kind, dollar, at + 1));
        }
    }
}

/// The offset of the default and the offset of the closing parenthesis. `None`: what stands between the parentheses
/// may not stand there.
fn span(
    text: &(impl Bytes + ?Sized),
    body: usize,
    kind: Macro,
    wanted: Wanted,
    work: &mut u64,
) -> Option<(Option<usize>, usize)> {
    let arguments = matches!(wanted, Wanted::Arguments);
    let (mut at, mut default) = (body, None);
    loop {
        *work = work.checked_sub(1)?;
        let byte = text.at(at)?;
        if byte == b')' {
            return Some((default, at));
        }
        at += 1;
        if !kind.takes_name() {
            continue;
        }
        match (byte, default) {
            (b':', None) => default = Some(at),
            (b'(', Some(_)) if let Some(close) = closing(text, at, work) => at = close + 1,
            (b'$' | b' ' | b',' | b'\\' | b':', Some(_)) => {}
            (_, Some(_)) if arguments => {}
            _ if arguments && (byte.is_ascii_digit() || matches!(byte, b'?' | b'#' | b'+')) => {}
            _ if !arguments && is_name_byte(byte) => {}
            _ => return None,
        }
    }
}

fn closing(text: &(impl Bytes + ?Sized), mut at: usize, work: &mut u64) -> Option<usize> {
    while text.at(at)? != b')' {
        at += 1;
        *work = work.checked_sub(1)?;
    }
    Some(at)
}

fn is_wanted(text: &(impl Bytes + ?Sized), found: &Found, wanted: Wanted) -> bool {
    let is = |end: usize, name: &str| {
        end - found.body == name.len()
            && name.bytes().enumerate().all(|(at, byte)| {
                text.at(found.body + at).is_some_and(|other| other.eq_ignore_ascii_case(&byte))
            })
    };
    let own = |name: &str| {
        // HTCondor ends the name at a colon here, also for a function that takes no default.
        is(found.close, name)
            || (text.at(found.body + name.len()) == Some(b':')
                && found.body + name.len() < found.close
                && is(found.body + name.len(), name))
    };
    match wanted {
        Wanted::All => found.kind != Macro::Name || !is(found.close, "DOLLAR"),
        Wanted::Dollar => found.kind == Macro::Name && is(found.close, "DOLLAR"),
        Wanted::Own(name, other) => {
            matches!(found.kind, Macro::Name | Macro::Filename) && (own(name) || other.is_some_and(own))
        }
        Wanted::Arguments => text.at(found.body).is_some_and(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wanted: Wanted, expected: Option<&str>) {
        let found = find(text.as_bytes(), 0, wanted, &mut 1000);
        let found = found.map(|found| text.get(found.dollar..=found.close).unwrap());
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn references() {
        check("a$(B.c/d)e", Wanted::All, Some("$(B.c/d)"));
        check("$(B C) $(D)", Wanted::All, Some("$(D)"));
        check("$(B:x y,$z:\\)", Wanted::All, Some("$(B:x y,$z:\\)"));
        check("$(B:$(C:d)e)", Wanted::All, Some("$(B:$(C:d)e)"));
        check("$(B:\"\")", Wanted::All, None);
        check("$(B:(c) $(D)", Wanted::All, Some("$(D)"));
        check("$$(B) $$([C]) $", Wanted::All, None);
        check("$(A", Wanted::All, None);
        check("$()", Wanted::All, Some("$()"));
    }

    #[test]
    fn functions() {
        check("$INT(a b\"c)", Wanted::All, Some("$INT(a b\"c)"));
        check("$int(1) $NOPE(2) $Fpn(3)", Wanted::All, Some("$Fpn(3)"));
        check("$ENV(A-B) $ENV(A)", Wanted::All, Some("$ENV(A)"));
    }

    #[test]
    fn dollars() {
        check("$(dollar) $(DOLLAR:x) $(A)", Wanted::All, Some("$(DOLLAR:x)"));
        check("$(A) $(dollar)", Wanted::Dollar, Some("$(dollar)"));
    }

    #[test]
    fn own_references() {
        check("$(AB) $INT(A) $(a:1)", Wanted::Own("A", None), Some("$(a:1)"));
        check("$Fp(A)", Wanted::Own("A", None), Some("$Fp(A)"));
        check("$(X) $(B)", Wanted::Own("S.B", Some("B")), Some("$(B)"));
    }

    #[test]
    fn arguments_of_templates() {
        check("$(A) $INT(1) $(1)", Wanted::Arguments, Some("$(1)"));
        check("$(2+)", Wanted::Arguments, Some("$(2+)"));
        check("$(1:a\"b)", Wanted::Arguments, Some("$(1:a\"b)"));
        check("$(#) $(1a) $(1?)", Wanted::Arguments, Some("$(1?)"));
    }

    #[test]
    fn work_is_bounded() {
        assert_eq!(find("aaaaaaaa$(B)".as_bytes(), 0, Wanted::All, &mut 5), None);
    }
}
