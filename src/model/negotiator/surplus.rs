//! Fair share among groups: how much each group is given of its own quota and of the surplus that other groups leave.
//!
//! Each group first gets what it asks for, up to its own quota. The surplus is then divided from the leaves of the tree to its
//! root. At each node, the node itself and those of its children that accept surplus (each child for its whole subtree) divide
//! the surplus of the node's subtree by their quotas; none of them gets more than it asks for. Then those without a quota divide
//! the rest evenly. Surplus that none of them wants becomes surplus of the node's parent.
//!
//! Source: HTCondor manual, "Accounting Groups with Hierarchical Group Quotas"; its negotiator (25.14.1) where the manual is
//! silent, to which `tests/commands/quota_oracle.rs` compares.

/// A node of the tree of groups, the root among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sharer {
    /// The amount that the group's own submitters may use without any surplus.
    pub(super) quota: f64,
    /// The amount that the group's own submitters and those of all groups below it may use together.
    pub(super) subtree_quota: f64,
    /// The amount that the group's own submitters ask for, including the amount that they use.
    pub(super) requested: f64,
    /// Whether the group takes surplus.
    pub(super) accepts: bool,
    /// The place of the parent, which comes before its children. The root comes first and has no parent.
    pub(super) parent: Option<usize>,
}

/// Returns what each node is given, in the order of `nodes`.
///
/// With `whole`, the amounts are numbers of slots and not weights: the fractions of all allocations are collected and dealt out
/// again as whole slots, in turns.
pub(super) fn share(nodes: &[Sharer], whole: bool) -> Vec<f64> {
    let mut allocated = vec![0.0; nodes.len()];
    if let Some(mut root) = Branch::build(nodes) {
        root.fair_share();
        if whole {
            root.recover_fractions();
        }
        root.collect(&mut allocated);
    }
    allocated
}

/// A node and the nodes below it, while the quotas are divided.
#[derive(Debug)]
struct Branch {
    place: usize,
    quota: f64,
    subtree_quota: f64,
    accepts: bool,
    allocated: f64,
    /// The amount that the node's own submitters ask for and have not been given.
    unmet: f64,
    /// `unmet` of this node, and of all nodes below it that can be reached through children that accept surplus.
    subtree_unmet: f64,
    children: Vec<Branch>,
}

/// A child, or the node itself, when the node's surplus is divided.
#[derive(Clone, Copy, Debug)]
struct Contender {
    weight: f64,
    unmet: f64,
    given: f64,
}

impl Branch {
    /// Builds the tree of the nodes. Returns none if there are no nodes.
    fn build(nodes: &[Sharer]) -> Option<Self> {
        let mut below: Vec<Vec<Self>> = nodes.iter().map(|_| Vec::new()).collect();
        for (place, node) in nodes.iter().enumerate().rev() {
            let mut children = below.pop().unwrap_or_default();
            // The loop added them from the last to the first.
            children.reverse();
            let branch = Self {
                place,
                quota: sane(node.quota),
                subtree_quota: sane(node.subtree_quota),
                accepts: node.accepts,
                allocated: 0.0,
                unmet: sane(node.requested),
                subtree_unmet: 0.0,
                children,
            };
            if place == 0 {
                return Some(branch);
            }
            // A node whose parent does not come before it becomes a child of the root.
            let parent = node.parent.filter(|parent| *parent < place).unwrap_or(0);
            if let Some(siblings) = below.get_mut(parent) {
                siblings.push(branch);
            }
        }
        None
    }

    /// Gives each node of the branch what it asks for from its own quota, then divides the surplus within the branch.
    /// Returns the surplus that no node of the branch wants.
    fn fair_share(&mut self) -> f64 {
        self.allocated = self.unmet.min(self.quota);
        self.unmet -= self.allocated;
        self.subtree_unmet = self.unmet;
        let mut surplus = self.quota - self.allocated;
        for child in &mut self.children {
            surplus += child.fair_share();
            self.subtree_unmet += if child.accepts { child.subtree_unmet } else { 0.0 };
        }
        self.give(surplus)
    }

    /// Divides a surplus among the node and the nodes below it that accept surplus. Returns what none of them wants.
    fn give(&mut self, surplus: f64) -> f64 {
        if surplus <= 0.0 || self.subtree_unmet <= 0.0 {
            return surplus.max(0.0);
        }
        let mut contenders = self.contenders();
        let remains = if surplus >= self.subtree_unmet {
            for contender in &mut contenders {
                contender.given = contender.unmet;
            }
            let remains = surplus - self.subtree_unmet;
            self.subtree_unmet = 0.0;
            remains
        } else {
            let of_quotas = divide(&mut contenders, surplus, |contender| contender.weight);
            let remains = divide(&mut contenders, of_quotas, |_| 1.0);
            self.subtree_unmet -= surplus - remains;
            remains
        };
        for (child, contender) in self.children.iter_mut().zip(&contenders) {
            child.give(contender.given);
        }
        self.take(contenders.last());
        remains
    }

    /// The children and, last, the node itself, as equals. A child that does not accept surplus asks for nothing.
    fn contenders(&self) -> Vec<Contender> {
        let children = self.children.iter().map(|child| Contender {
            weight: child.subtree_quota,
            unmet: if child.accepts { child.subtree_unmet.max(0.0) } else { 0.0 },
            given: 0.0,
        });
        let own = Contender { weight: self.quota, unmet: self.unmet.max(0.0), given: 0.0 };
        children.chain([own]).collect()
    }

    /// Books what was given to the node itself.
    fn take(&mut self, own: Option<&Contender>) {
        let given = own.map_or(0.0, |own| own.given);
        self.allocated += given;
        self.unmet -= given;
    }

    /// Takes the fraction of a slot from each node of the branch, and deals the sum out again as whole slots. Returns what
    /// remains.
    fn recover_fractions(&mut self) -> f64 {
        let asked = self.allocated + self.unmet;
        let whole = floor(self.allocated);
        let mut fractions = self.allocated - whole;
        self.allocated = whole;
        self.unmet = floor(asked) - whole;
        self.subtree_unmet = self.unmet;
        for child in &mut self.children {
            fractions += child.recover_fractions();
            if child.accepts && child.subtree_unmet > 0.0 {
                self.subtree_unmet += child.subtree_unmet;
            }
        }
        self.deal(fractions)
    }

    /// Deals whole slots to the node and the nodes below it that accept surplus. Returns what remains.
    fn deal(&mut self, surplus: f64) -> f64 {
        let slots = floor(surplus);
        if self.subtree_unmet <= 0.0 || slots < 1.0 {
            return surplus;
        }
        let mut contenders = self.contenders();
        let dealt = deal_in_turns(&mut contenders, slots.min(self.subtree_unmet));
        self.subtree_unmet -= dealt;
        for (child, contender) in self.children.iter_mut().zip(&contenders) {
            child.deal(contender.given);
        }
        self.take(contenders.last());
        surplus - dealt
    }

    /// Writes what each node of the branch was given into `allocated`, by the places of the nodes.
    fn collect(&self, allocated: &mut [f64]) {
        if let Some(own) = allocated.get_mut(self.place) {
            *own = self.allocated;
        }
        for child in &self.children {
            child.collect(allocated);
        }
    }
}

/// Divides an amount by weights among the contenders that still ask, until it is gone or no contender with a weight asks.
/// Returns what remains.
fn divide(contenders: &mut [Contender], amount: f64, weight: impl Fn(&Contender) -> f64) -> f64 {
    let mut left = amount;
    while left > 0.0 {
        let asking = |contender: &&Contender| contender.unmet > 0.0;
        let total: f64 = contenders.iter().filter(asking).map(&weight).sum();
        if total <= 0.0 {
            return left;
        }
        let (mut given, mut capped) = (0.0, false);
        for contender in contenders.iter_mut().filter(|contender| contender.unmet > 0.0) {
            let part = left * (weight(contender) / total);
            capped |= part > contender.unmet;
            let part = part.min(contender.unmet);
            contender.given += part;
            contender.unmet -= part;
            given += part;
        }
        // A contender that was capped asks for no more, so that the loop ends.
        left = if capped { left - given } else { 0.0 };
    }
    0.0
}

/// Deals `slots` whole slots in turns and returns how many were dealt. In each turn all contenders that still ask get the same
/// number of slots; the largest quotas come first, then those that ask for most. (In HTCondor, the group that was served longest
/// ago comes first.)
fn deal_in_turns(contenders: &mut [Contender], slots: f64) -> f64 {
    let mut order: Vec<&mut Contender> =
        contenders.iter_mut().filter(|contender| contender.unmet >= 1.0).collect();
    order.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(b.unmet.total_cmp(&a.unmet)));
    let mut left = slots;
    while left >= 1.0 {
        order.retain(|contender| contender.unmet >= 1.0);
        if order.is_empty() {
            break;
        }
        let asking = order.iter().map(|_| 1.0).sum::<f64>();
        let most = floor(left / asking).max(1.0);
        for contender in &mut order {
            let part = contender.unmet.min(most).min(left);
            contender.given += part;
            contender.unmet -= part;
            left -= part;
        }
    }
    slots - left
}

/// The whole part of an amount. Amounts are sums and products of fractions: what rounding errors put just below a whole number
/// counts as that number.
fn floor(amount: f64) -> f64 {
    (amount + 1e-6).floor()
}

fn sane(amount: f64) -> f64 {
    if amount.is_finite() { amount.max(0.0) } else { 0.0 }
}
