//! Reads YAML and JSON with positions: the values that kubectl would send, and the place of each in the file.
//!
//! The tree is built from the events of `granit-parser`, the parser inside `serde-saphyr`, because serde gives no
//! positions. Scalars are resolved as kubectl's library does (YAML 1.1: a plain `yes` is a boolean). The depth of a
//! file, and its size with all aliases replaced, are bounded, so that a hostile file costs little.

mod build;
mod locate;
mod objects;
mod resolve;

use serde_json::Value;

pub use build::{FaultKind, parse};
use locate::offsets;

/// The style in which a scalar is written.
pub use granit_parser::ScalarStyle as Style;

/// A node of the tree, with its place in the file.
#[derive(Clone, Debug)]
pub struct Node {
    /// The byte offset of the node's first character. A node that replaces an alias has the place of the anchored
    /// node.
    pub start: usize,
    /// The byte offset after the node's last character; for a collection, the offset at which its end begins.
    pub end: usize,
    /// The content of the node.
    pub kind: Kind,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A scalar.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the file.
    Map(Vec<Entry>),
}

/// A scalar, as text and as a value.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The scalar's text, after escapes and folding are resolved.
    pub text: String,
    /// The style in which the scalar is written.
    pub style: Style,
    /// The scalar as JSON.
    pub value: Value,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// The byte offset of the key.
    pub start: usize,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Moves the node by so many bytes: the text that the node was read from begins there in the file.
    fn shift(&mut self, by: usize) {
        self.start += by;
        self.end += by;
        match &mut self.kind {
            Kind::Scalar(_) => {}
            Kind::List(nodes) => nodes.iter_mut().for_each(|node| node.shift(by)),
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| {
                entry.start += by;
                entry.value.shift(by);
            }),
        }
    }

    /// The value of a key; `None` if the node is not a map or lacks the key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The text of the node, if the node is a string in JSON.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(scalar) => scalar.value.as_str(),
            _ => None,
        }
    }

    /// The node as JSON, without positions.
    pub fn json(&self) -> Value {
        match &self.kind {
            Kind::Scalar(scalar) => scalar.value.clone(),
            Kind::List(items) => items.iter().map(Self::json).collect(),
            Kind::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.json())).collect())
            }
        }
    }

    /// The byte offset in the file of a place within a scalar's text, given by line and column from 1; columns count
    /// characters. The start of the node if the place cannot be found.
    pub fn inside(&self, file: &str, line: usize, column: usize) -> usize {
        let Kind::Scalar(scalar) = &self.kind else { return self.start };
        let Some(offsets) = offsets(file, self.start..self.end, scalar) else { return self.start };
        let before: usize = scalar
            .text
            .split_inclusive('\n')
            .take(line.saturating_sub(1))
            .map(|line| line.chars().count())
            .sum();
        let at = before + column.saturating_sub(1);
        // A place at or after the end of the text is where the last visible character ends.
        let last = scalar.text.trim_end().chars().count();
        let after_last = || match last.checked_sub(1).and_then(|last| offsets.get(last)) {
            Some(offset) => {
                offset + file.get(*offset..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
            }
            None => self.start,
        };
        if at >= last { after_last() } else { offsets.get(at).copied().unwrap_or(self.start) }
    }
}

/// The byte offsets at which the lines of a text start.
#[derive(Clone, Debug)]
pub struct Lines(Vec<usize>);

impl Lines {
    /// The lines of a text.
    pub fn of(text: &str) -> Self {
        Self([0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The byte offset of a line and column, which count from 1; columns count characters. The end of the text if
    /// there is no such line.
    pub fn offset(&self, text: &str, line: usize, column: usize) -> usize {
        let Some(start) = self.0.get(line.max(1) - 1) else { return text.len() };
        let rest = text.get(*start..).unwrap_or_default();
        start + rest.char_indices().nth(column.max(1) - 1).map_or(rest.len(), |(offset, _)| offset)
    }

    /// The line and the column, from 1, of a byte offset; columns count characters.
    pub fn place(&self, text: &str, offset: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= offset).max(1);
        let start = self.0.get(line - 1).copied().unwrap_or(0);
        let column = text.get(start..offset.min(text.len())).map_or(1, |before| before.chars().count() + 1);
        (line, column)
    }
}

#[cfg(test)]
mod tests;
