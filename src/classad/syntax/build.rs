//! Builds the array of nodes that an expression is.

use crate::ad::Ad;
use crate::expr::{Expr, Id, Kids, Node, Program};
use crate::value::Value;

/// The deepest tree that is allowed. HTCondor's own parser gives up at 500, too.
pub(crate) const MAX_DEPTH: u16 = 500;

/// A program that is being built. A node is added after its operands.
#[derive(Default)]
pub(crate) struct Builder {
    nodes: Vec<Node>,
    kids: Vec<Id>,
    /// The depth of the tree under each node.
    depth: Vec<u16>,
}

impl Builder {
    /// Adds a node over operands. `None`: the tree would be too deep.
    pub(crate) fn add(&mut self, node: Node, over: &[Id]) -> Option<Id> {
        let deepest = over.iter().filter_map(|id| self.depth.get(*id as usize)).max();
        let depth = deepest.copied().unwrap_or(0) + 1;
        if depth > MAX_DEPTH {
            return None;
        }
        let id = Id::try_from(self.nodes.len()).ok()?;
        self.nodes.push(node);
        self.depth.push(depth);
        Some(id)
    }

    /// Adds a node that has a list of operands. `None`: the tree would be too deep.
    pub(crate) fn add_over(&mut self, over: &[Id], node: impl FnOnce(Kids) -> Node) -> Option<Id> {
        let start = u32::try_from(self.kids.len()).ok()?;
        self.kids.extend_from_slice(over);
        let end = u32::try_from(self.kids.len()).ok()?;
        self.add(node(Kids { start, end }), over)
    }

    pub(crate) fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    /// Removes the node that was added last.
    pub(crate) fn remove_last(&mut self) {
        self.nodes.pop();
        self.depth.pop();
    }

    /// The expression whose root is the node that was added last. The builder is empty afterwards and can be used
    /// again.
    pub(crate) fn finish(&mut self) -> Expr {
        self.depth.clear();
        Expr::from_program(Program {
            nodes: self.nodes.drain(..).collect(),
            kids: self.kids.drain(..).collect(),
        })
    }

    /// An expression that evaluates to the value; to an error if the value nests deeper than any expression may.
    pub(crate) fn literal(value: &Value) -> Expr {
        let mut builder = Self::default();
        if builder.value(value).is_none() {
            // No text could say this value either.
            builder = Self::default();
            builder.add(Node::Literal(Value::Error), &[]);
        }
        builder.finish()
    }

    fn value(&mut self, value: &Value) -> Option<Id> {
        match value {
            Value::List(items) => {
                let ids: Vec<Id> = items.iter().map(|item| self.value(item)).collect::<Option<_>>()?;
                self.add_over(&ids, Node::List)
            }
            Value::Ad(ad) => self.ad(ad.clone()),
            _ => self.add(Node::Literal(value.clone()), &[]),
        }
    }

    /// Adds a nested ad. `None`: the tree would be too deep.
    pub(crate) fn ad(&mut self, ad: Ad) -> Option<Id> {
        self.add(Node::Ad(ad), &[])
    }
}
