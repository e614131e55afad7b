//! Finds every path that a Rust file names: in `use` trees, in expressions and types, in macros' arguments.
//!
//! Works on tokens, so that comments, docs and strings are no paths. It resolves `crate`, `self` and `super`, also
//! inside inline modules, and knows nothing of what names mean: a local name is a path of its own.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path, as a file names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// 1-based.
    pub line: usize,
    /// Resolved: a path within this crate begins with `crate`; a glob ends with `*`, a macro's name with `!`.
    pub path: Vec<String>,
    /// Whether a `use` or `extern crate` names it, and not an expression or type.
    pub import: bool,
}

/// All paths in `source`, the file of the module `module` (without `crate`).
///
/// # Panics
/// When the source is not Rust: then the crate would not compile either.
pub fn paths(source: &str, module: &[String]) -> Vec<Named> {
    let tokens: TokenStream = source.parse().expect("the file is Rust");
    let mut found = Vec::new();
    scan(tokens, module, &mut found);
    found
}

fn scan(tokens: TokenStream, module: &[String], found: &mut Vec<Named>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += match token {
            TokenTree::Group(group) => {
                scan(group.stream(), module, found);
                1
            }
            TokenTree::Ident(word) if word == "use" => import(&tokens[at..], module, found),
            TokenTree::Ident(word) if word == "mod" => inline_module(&tokens[at..], module, found),
            TokenTree::Ident(_) => path(&tokens[at..], module, found),
            _ => 1,
        };
    }
}

/// `mod name { ... }`: its content, one module deeper. `mod name;` names no path.
fn inline_module(tokens: &[TokenTree], module: &[String], found: &mut Vec<Named>) -> usize {
    if let [_, TokenTree::Ident(name), TokenTree::Group(body), ..] = tokens {
        let inner: Vec<String> = module.iter().cloned().chain([name.to_string()]).collect();
        scan(body.stream(), &inner, found);
        return 3;
    }
    2
}

/// A path in an expression, a type, an attribute or a macro's arguments. Returns how many tokens it has.
fn path(tokens: &[TokenTree], module: &[String], found: &mut Vec<Named>) -> usize {
    let mut segments = vec![text(&tokens[0])];
    let mut length = 1;
    while let [colon, colons, next @ TokenTree::Ident(_), ..] = &tokens[length..] {
        if !(is(colon, ':') && is(colons, ':')) {
            break;
        }
        segments.push(text(next));
        length += 3;
    }
    let is_macro = tokens.get(length).is_some_and(|token| is(token, '!'))
        && matches!(tokens.get(length + 1), Some(TokenTree::Group(_)));
    if is_macro {
        segments.push("!".to_owned());
    }
    let import = segments == ["extern"] && tokens.get(1).is_some_and(|token| text(token) == "crate");
    if import {
        segments = tokens.get(2).map(text).into_iter().collect();
        length = 3;
    }
    found.push(Named { line: line(&tokens[0]), path: resolve(segments, module), import });
    length
}

/// A `use` declaration. Returns how many tokens it has. `use<'a>` in a type is none.
fn import(tokens: &[TokenTree], module: &[String], found: &mut Vec<Named>) -> usize {
    if tokens.get(1).is_some_and(|token| is(token, '<')) {
        return 1;
    }
    let end = tokens.iter().position(|token| is(token, ';')).unwrap_or(tokens.len());
    for branch in tokens[1..end].split(|token| is(token, ',')) {
        use_tree(branch, &[], module, found);
    }
    end + 1
}

/// One branch of a `use` tree: `a::b`, `a::*`, `a as b`, `a::{...}`.
fn use_tree(tokens: &[TokenTree], prefix: &[String], module: &[String], found: &mut Vec<Named>) {
    let mut segments = prefix.to_vec();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                return use_group(group, &segments, module, found);
            }
            TokenTree::Ident(word) if word == "as" => break,
            // `a::{self}` names a.
            TokenTree::Ident(word) if word == "self" && !segments.is_empty() => {}
            TokenTree::Ident(word) => segments.push(word.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == '*' => segments.push("*".to_owned()),
            _ => {}
        }
        at += 1;
    }
    if let Some(first) = tokens.first() {
        found.push(Named { line: line(first), path: resolve(segments, module), import: true });
    }
}

fn use_group(group: &Group, prefix: &[String], module: &[String], found: &mut Vec<Named>) {
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    for branch in inner.split(|token| is(token, ',')) {
        use_tree(branch, prefix, module, found);
    }
}

/// `crate`, `self` and `super` at the beginning, made absolute.
fn resolve(segments: Vec<String>, module: &[String]) -> Vec<String> {
    let relative = segments.iter().take_while(|segment| *segment == "self" || *segment == "super").count();
    if relative == 0 || segments == ["self"] {
        return segments;
    }
    let up = segments[..relative].iter().filter(|segment| *segment == "super").count();
    let base = &module[..module.len().saturating_sub(up)];
    ["crate".to_owned()].iter().chain(base).chain(&segments[relative..]).cloned().collect()
}

fn is(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn text(token: &TokenTree) -> String {
    token.to_string().trim_start_matches("r#").to_owned()
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}
