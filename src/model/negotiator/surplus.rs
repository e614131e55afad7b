//! Fair share among groups: who is given how much of the quotas, and of what others leave of theirs.
//!
//! Everybody has what they ask for up to their own quota. What is left goes bottom up: at each node of the tree its children
//! that accept surplus, each for all below it, and the node itself divide it by their quotas, nobody more than they ask for;
//! then those without a quota divide the rest evenly; and what nobody there wants goes up.
//!
//! Source: HTCondor manual, "Accounting Groups with Hierarchical Group Quotas"; its negotiator (25.14.1) where the manual is
//! silent, to which `tests/quota_oracle.rs` compares.

/// A node of the tree of groups, the root among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sharer {
    /// What its own submitters may use without any surplus.
    pub(super) quota: f64,
    /// What they and all groups below may.
    pub(super) subtree_quota: f64,
    /// What its own submitters ask for, what they use included.
    pub(super) requested: f64,
    /// Whether it takes what others leave.
    pub(super) accepts: bool,
    /// The place of the parent, before its own; the root, which has none, comes first.
    pub(super) parent: Option<usize>,
}

/// What each node is given, in their order.
///
/// With `whole` slots count and not weights: the fractions of everybody's allocation are collected and dealt out again in
/// whole slots, in turns.
pub(super) fn share(nodes: &[Sharer], whole: bool) -> Vec<f64> {
    let mut allocated = vec![0.0; nodes.len()];
    if let Some(mut root) = Branch::grow(nodes) {
        root.fair_share();
        if whole {
            root.recover_fractions();
        }
        root.tell(&mut allocated);
    }
    allocated
}

/// A node with all below it, while the sharing goes on.
#[derive(Debug)]
struct Branch {
    place: usize,
    quota: f64,
    subtree_quota: f64,
    accepts: bool,
    allocated: f64,
    /// What its own submitters ask for and have not been given.
    open: f64,
    /// The same, with the children that accept surplus and all below them.
    subtree_open: f64,
    children: Vec<Branch>,
}

/// Somebody who asks for part of a surplus.
#[derive(Clone, Copy, Debug)]
struct Claimant {
    weight: f64,
    open: f64,
    given: f64,
}

impl Branch {
    /// The tree of the nodes; none without any.
    fn grow(nodes: &[Sharer]) -> Option<Self> {
        let mut below: Vec<Vec<Self>> = nodes.iter().map(|_| Vec::new()).collect();
        for (place, node) in nodes.iter().enumerate().rev() {
            let mut children = below.pop().unwrap_or_default();
            // They came in from the last to the first.
            children.reverse();
            let branch = Self {
                place,
                quota: sane(node.quota),
                subtree_quota: sane(node.subtree_quota),
                accepts: node.accepts,
                allocated: 0.0,
                open: sane(node.requested),
                subtree_open: 0.0,
                children,
            };
            if place == 0 {
                return Some(branch);
            }
            // A parent that does not come before its child is none: the root has the child then.
            let parent = node.parent.filter(|parent| *parent < place).unwrap_or(0);
            if let Some(siblings) = below.get_mut(parent) {
                siblings.push(branch);
            }
        }
        None
    }

    /// Gives everybody in there what they may have of their own quotas and of each other's. What remains.
    fn fair_share(&mut self) -> f64 {
        self.allocated = self.open.min(self.quota);
        self.open -= self.allocated;
        self.subtree_open = self.open;
        let mut surplus = self.quota - self.allocated;
        for child in &mut self.children {
            surplus += child.fair_share();
            self.subtree_open += if child.accepts { child.subtree_open } else { 0.0 };
        }
        self.give(surplus)
    }

    /// Gives a surplus to the node and those below it that accept it. What nobody wants remains.
    fn give(&mut self, surplus: f64) -> f64 {
        if surplus <= 0.0 || self.subtree_open <= 0.0 {
            return surplus.max(0.0);
        }
        let mut claimants = self.claimants();
        let remains = if surplus >= self.subtree_open {
            for claimant in &mut claimants {
                claimant.given = claimant.open;
            }
            let remains = surplus - self.subtree_open;
            self.subtree_open = 0.0;
            remains
        } else {
            let of_quotas = divide(&mut claimants, surplus, |claimant| claimant.weight);
            let remains = divide(&mut claimants, of_quotas, |_| 1.0);
            self.subtree_open -= surplus - remains;
            remains
        };
        for (child, claimant) in self.children.iter_mut().zip(&claimants) {
            child.give(claimant.given);
        }
        self.take(claimants.last());
        remains
    }

    /// The children and, last, the node itself, as siblings. Who does not accept surplus asks for nothing.
    fn claimants(&self) -> Vec<Claimant> {
        let children = self.children.iter().map(|child| Claimant {
            weight: child.subtree_quota,
            open: if child.accepts { child.subtree_open.max(0.0) } else { 0.0 },
            given: 0.0,
        });
        let own = Claimant { weight: self.quota, open: self.open.max(0.0), given: 0.0 };
        children.chain([own]).collect()
    }

    /// Takes what the node itself was given.
    fn take(&mut self, own: Option<&Claimant>) {
        let given = own.map_or(0.0, |own| own.given);
        self.allocated += given;
        self.open -= given;
    }

    /// Takes everybody's fractions of a slot and deals them out again as whole slots. What remains.
    fn recover_fractions(&mut self) -> f64 {
        let asked = self.allocated + self.open;
        let whole = floor(self.allocated);
        let mut fractions = self.allocated - whole;
        self.allocated = whole;
        self.open = floor(asked) - whole;
        self.subtree_open = self.open;
        for child in &mut self.children {
            fractions += child.recover_fractions();
            if child.accepts && child.subtree_open > 0.0 {
                self.subtree_open += child.subtree_open;
            }
        }
        self.deal(fractions)
    }

    /// Deals whole slots to the node and those below it that accept surplus. What remains.
    fn deal(&mut self, surplus: f64) -> f64 {
        let slots = floor(surplus);
        if self.subtree_open <= 0.0 || slots < 1.0 {
            return surplus;
        }
        let mut claimants = self.claimants();
        let dealt = deal_in_turns(&mut claimants, slots.min(self.subtree_open));
        self.subtree_open -= dealt;
        for (child, claimant) in self.children.iter_mut().zip(&claimants) {
            child.deal(claimant.given);
        }
        self.take(claimants.last());
        surplus - dealt
    }

    /// Writes down what everybody in there was given.
    fn tell(&self, allocated: &mut [f64]) {
        if let Some(own) = allocated.get_mut(self.place) {
            *own = self.allocated;
        }
        for child in &self.children {
            child.tell(allocated);
        }
    }
}

/// Divides an amount by weights among those who still ask, until it is gone or nobody with a weight asks. What remains.
fn divide(claimants: &mut [Claimant], amount: f64, weight: impl Fn(&Claimant) -> f64) -> f64 {
    let mut left = amount;
    while left > 0.0 {
        let asking = |claimant: &&Claimant| claimant.open > 0.0;
        let total: f64 = claimants.iter().filter(asking).map(&weight).sum();
        if total <= 0.0 {
            return left;
        }
        let (mut given, mut capped) = (0.0, false);
        for claimant in claimants.iter_mut().filter(|claimant| claimant.open > 0.0) {
            let part = left * (weight(claimant) / total);
            capped |= part > claimant.open;
            let part = part.min(claimant.open);
            claimant.given += part;
            claimant.open -= part;
            given += part;
        }
        // Whoever was capped asks for no more, so that this ends.
        left = if capped { left - given } else { 0.0 };
    }
    0.0
}

/// Deals so many slots in turns, each turn the same number to everybody who still asks: the largest quotas first, then who
/// asks for most. How many were dealt. (HTCondor first goes by who was served longest ago.)
fn deal_in_turns(claimants: &mut [Claimant], slots: f64) -> f64 {
    let mut order: Vec<&mut Claimant> =
        claimants.iter_mut().filter(|claimant| claimant.open >= 1.0).collect();
    order.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(b.open.total_cmp(&a.open)));
    let mut left = slots;
    while left >= 1.0 {
        order.retain(|claimant| claimant.open >= 1.0);
        if order.is_empty() {
            break;
        }
        let asking = order.iter().map(|_| 1.0).sum::<f64>();
        let most = floor(left / asking).max(1.0);
        for claimant in &mut order {
            let part = claimant.open.min(most).min(left);
            claimant.given += part;
            claimant.open -= part;
            left -= part;
        }
    }
    slots - left
}

/// The whole part of an amount that sums and products of fractions made.
fn floor(amount: f64) -> f64 {
    (amount + 1e-6).floor()
}

fn sane(amount: f64) -> f64 {
    if amount.is_finite() { amount.max(0.0) } else { 0.0 }
}
