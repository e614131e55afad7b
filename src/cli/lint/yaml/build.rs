//! Builds a tree with positions from the parser's events.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::objects::parts;
use super::resolve::resolve;
use super::{Entry, Kind, Node, Scalar};

/// How deep collections may nest. The deepest known manifest has 20 levels.
const MAX_DEPTH: usize = 100;
/// The most bytes that a file may weigh with its aliases replaced: the length of its texts, and [`NODE`] for each
/// node.
const MAX_WEIGHT: usize = 64 << 20;
const NODE: usize = 64;
/// The most faults that are reported of one file.
const MAX_FAULTS: usize = 100;

/// A fault of a file as YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The byte offset in the file.
    pub at: usize,
    /// The class of fault.
    pub kind: FaultKind,
    /// The text for people: what is wrong.
    pub message: String,
}

/// A class of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The text is not YAML.
    Syntax,
    /// A key stands twice in a map.
    DuplicateKey,
    /// The file is larger or deeper than any sensible manifest.
    Limit,
}

/// The documents of a file, and its faults.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The documents that can be read.
    pub documents: Vec<Node>,
    /// The faults of all documents.
    pub faults: Vec<Fault>,
}

/// Reads all documents of a file: of YAML, or of JSON objects one after another. A document that cannot be read does not stop the
/// others.
pub fn parse(text: &str) -> Parsed {
    let mut all = Parsed::default();
    for (start, part) in parts(text) {
        let Parsed { mut documents, mut faults } = parse_yaml(part);
        for document in &mut documents {
            document.shift(start);
        }
        for fault in &mut faults {
            fault.at += start;
        }
        all.documents.append(&mut documents);
        all.faults.append(&mut faults);
        if all.faults.len() >= MAX_FAULTS {
            break;
        }
    }
    all
}

fn parse_yaml(text: &str) -> Parsed {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
        simple_key_max_lookahead: 65_536,
    };
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder { text, ..Builder::default() };
    while let Some(next) = parser.next_event() {
        let fault = match next {
            Ok((Event::StreamEnd, _)) => break,
            Ok((event, span)) => builder.event(event, span).err(),
            Err(error) => Some(syntax(text, &error)),
        };
        let Some(fault) = fault else { continue };
        let fatal = fault.kind == FaultKind::Limit && builder.weight > MAX_WEIGHT;
        builder.done.faults.push(fault);
        builder.abandon();
        if fatal || builder.done.faults.len() >= MAX_FAULTS || !resume(&mut parser) {
            break;
        }
    }
    builder.done
}

fn resume<'a>(parser: &mut Parser<'a, StrInput<'a>>) -> bool {
    parser.proceed_next_document().unwrap_or(false)
}

fn syntax(text: &str, error: &ScanError) -> Fault {
    let at = error.marker().byte_offset().unwrap_or_else(|| {
        text.char_indices().nth(error.marker().index()).map_or(text.len(), |(offset, _)| offset)
    });
    Fault { at: at.min(text.len()), kind: FaultKind::Syntax, message: error.kind().to_string() }
}

/// A collection that is not yet complete.
struct Frame {
    start: usize,
    anchor: usize,
    weight: usize,
    kind: Open,
}

enum Open {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, key: Option<(String, usize)> },
}

#[derive(Default)]
struct Builder<'a> {
    text: &'a str,
    stack: Vec<Frame>,
    anchors: HashMap<usize, (Node, usize)>,
    weight: usize,
    done: Parsed,
}

impl Builder<'_> {
    /// Forgets the document that is being read.
    fn abandon(&mut self) {
        self.stack.clear();
        self.anchors.clear();
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        let (start, end) = (self.offset(&span.start), self.offset(&span.end));
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = resolve(&text, style, tag.as_deref().and_then(Tag::core_suffix));
                let weight = NODE + text.len();
                let end = if style == ScalarStyle::Plain { start + self.trimmed(start, end) } else { end };
                let kind = Kind::Scalar(Scalar { text: text.into_owned(), style, value });
                self.weigh(weight, start)?;
                self.node(Node { start, end, kind }, weight, anchor)
            }
            Event::SequenceStart(_, anchor, _) => self.open(start, anchor, Open::List(Vec::new())),
            Event::MappingStart(_, anchor, _) => {
                self.open(start, anchor, Open::Map { entries: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(start),
            Event::Alias(id) => {
                let Some((node, weight)) = self.anchors.get(&id).cloned() else {
                    let message = "the alias refers to a node that contains the alias".to_owned();
                    return Err(Fault { at: start, kind: FaultKind::Syntax, message });
                };
                self.weigh(weight, start)?;
                self.node(node, weight, 0)
            }
            Event::DocumentEnd => {
                self.anchors.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn offset(&self, marker: &granit_parser::Marker) -> usize {
        marker.byte_offset().unwrap_or(0).min(self.text.len())
    }

    /// The length of a plain scalar without trailing white space.
    fn trimmed(&self, start: usize, end: usize) -> usize {
        self.text.get(start..end).map_or(0, |written| written.trim_end().len())
    }

    fn weigh(&mut self, weight: usize, at: usize) -> Result<(), Fault> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight <= MAX_WEIGHT {
            return Ok(());
        }
        let message = "the file is too large with its aliases replaced; nothing behind this is looked at";
        Err(Fault { at, kind: FaultKind::Limit, message: message.to_owned() })
    }

    fn open(&mut self, start: usize, anchor: usize, kind: Open) -> Result<(), Fault> {
        if self.stack.len() >= MAX_DEPTH {
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            return Err(Fault { at: start, kind: FaultKind::Limit, message });
        }
        self.weigh(NODE, start)?;
        self.stack.push(Frame { start, anchor, weight: NODE, kind });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), Fault> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let kind = match frame.kind {
            Open::List(items) => Kind::List(items),
            Open::Map { entries, .. } => Kind::Map(self.merged(entries)),
        };
        self.node(Node { start: frame.start, end, kind }, frame.weight, frame.anchor)
    }

    /// Adds a complete node to the innermost open collection, or to the documents.
    fn node(&mut self, node: Node, weight: usize, anchor: usize) -> Result<(), Fault> {
        if anchor > 0 {
            // The anchor keeps a copy of the node, which weighs as much as an alias: otherwise anchors within anchors
            // would multiply the innermost node for free.
            self.weigh(weight, node.start)?;
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        let Some(frame) = self.stack.last_mut() else {
            if !matches!(&node.kind, Kind::Scalar(scalar) if scalar.value.is_null()) {
                self.done.documents.push(node);
            }
            return Ok(());
        };
        frame.weight = frame.weight.saturating_add(weight);
        match &mut frame.kind {
            Open::List(items) => items.push(node),
            Open::Map { entries, key } => match (key.take(), node) {
                (Some((key, start)), value) => entries.push(Entry { key, start, value }),
                (None, Node { start, kind: Kind::Scalar(scalar), .. }) => *key = Some((scalar.text, start)),
                (None, Node { start, .. }) => {
                    let message = "a key must be a scalar: JSON has no others".to_owned();
                    return Err(Fault { at: start, kind: FaultKind::Syntax, message });
                }
            },
        }
        Ok(())
    }

    /// A map's entries, with those of `<<` merged in. A key that stands twice is a fault, and its last entry counts,
    /// as in JSON.
    fn merged(&mut self, written: Vec<Entry>) -> Vec<Entry> {
        let mut seen: HashSet<String> = HashSet::new();
        let (mut entries, mut merges) = (Vec::with_capacity(written.len()), Vec::new());
        for entry in written {
            if entry.key == "<<" {
                merges.push(entry.value);
                continue;
            }
            if !seen.insert(entry.key.clone()) && self.done.faults.len() < MAX_FAULTS {
                let message = format!("the key {:?} stands twice in one map", entry.key);
                self.done.faults.push(Fault { at: entry.start, kind: FaultKind::DuplicateKey, message });
                entries.retain(|other: &Entry| other.key != entry.key);
            }
            entries.push(entry);
        }
        for merge in merges {
            let maps = match merge.kind {
                Kind::List(maps) => maps,
                _ => vec![merge],
            };
            for map in maps {
                let Kind::Map(more) = map.kind else { continue };
                entries.extend(more.into_iter().filter(|entry| seen.insert(entry.key.clone())));
            }
        }
        entries
    }
}
