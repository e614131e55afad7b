//! The state of one evaluation.

use std::cell::{Cell, RefCell};

use elsa::FrozenVec;
use smallvec::SmallVec;

use super::scope::{Frame, Side};
use super::val::{Text, Val};
use crate::ad::Ad;
use crate::env::{Bound, Env};
use crate::expr::{Expr, Program};

/// The price of memory for one thing that an evaluation makes, in steps.
const ALLOCATION: usize = 2;

/// How many bytes are copied for a step.
const COPIED: usize = 32;

/// How many bytes are read for a step.
const READ: usize = 16;

/// How many bytes are looked at character by character for a step.
const SCANNED: usize = 4;

/// The price of the ads around a match, which are parsed from texts.
pub(super) const WRAPPING: usize = 400;

/// Owns what an evaluation makes that must live as long as the ads that the evaluation reads.
#[derive(Default)]
pub(crate) struct Arena<'a> {
    frames: FrozenVec<Box<Frame<'a>>>,
    ads: FrozenVec<Box<Ad>>,
    exprs: FrozenVec<Box<Expr>>,
}

/// Where an expression is evaluated: the program its nodes are in, and the ad it stands in.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) program: &'a Program,
    pub(crate) frame: Option<&'a Frame<'a>>,
}

/// An attribute whose expression is being evaluated: the expression, and the ad that the attribute stands in.
type Active<'a> = (&'a Program, &'a Ad);

/// One evaluation: its environment, its scopes and its cost so far.
pub(crate) struct Ctx<'a> {
    pub(crate) env: &'a Env,
    arena: &'a Arena<'a>,
    my: Option<&'a Frame<'a>>,
    target: Option<&'a Frame<'a>>,
    steps: Cell<u32>,
    depth: Cell<u16>,
    bound: Cell<Option<Bound>>,
    failed: Cell<bool>,
    random: Cell<u64>,
    active: RefCell<SmallVec<[Active<'a>; 8]>>,
    /// The ad around the two ads of a match; made when an expression first looks at it.
    pub(crate) wrapper: Cell<Option<&'a Frame<'a>>>,
}

impl<'a> Ctx<'a> {
    pub(crate) fn new(
        env: &'a Env,
        arena: &'a Arena<'a>,
        my: Option<&'a Frame<'a>>,
        target: Option<&'a Frame<'a>>,
    ) -> Self {
        Self {
            env,
            arena,
            my,
            target,
            steps: Cell::new(0),
            depth: Cell::new(0),
            bound: Cell::new(None),
            failed: Cell::new(false),
            random: Cell::new(env.seed),
            active: RefCell::default(),
            wrapper: Cell::new(None),
        }
    }

    /// The steps that were paid for so far.
    pub(crate) fn steps(&self) -> u32 {
        self.steps.get()
    }

    /// The bound that the evaluation hit first.
    pub(crate) fn bound(&self) -> Option<Bound> {
        self.bound.get()
    }

    /// Notes that the evaluation hit a bound. Only the first bound is kept.
    pub(crate) fn hit(&self, bound: Bound) -> Val<'a> {
        if self.bound.get().is_none() {
            self.bound.set(Some(bound));
        }
        Val::Error
    }

    /// Gives up: the whole evaluation is an error, whatever is still to be evaluated.
    pub(crate) fn fail(&self) -> Val<'a> {
        self.failed.set(true);
        Val::Error
    }

    /// Whether the evaluation was given up.
    pub(crate) fn failed(&self) -> bool {
        self.failed.get()
    }

    /// Pays for work, in steps. `false`: no steps are left, and the caller must stop.
    pub(crate) fn pay(&self, steps: usize) -> bool {
        let spent = self.steps.get().saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        self.steps.set(spent);
        if spent > self.env.limits.steps {
            self.hit(Bound::Steps);
        }
        self.bound.get().is_none()
    }

    /// Enters a nested evaluation and pays a step. `false`: the depth or the steps are used up. The caller must call
    /// [`Ctx::leave`] in either case.
    pub(crate) fn enter(&self) -> bool {
        self.depth.set(self.depth.get() + 1);
        if self.depth.get() > self.env.limits.depth {
            self.hit(Bound::Depth);
        }
        self.pay(1)
    }

    /// Leaves what [`Ctx::enter`] entered.
    pub(crate) fn leave(&self) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }

    /// A string that the evaluation made; an error if the string is too long.
    pub(crate) fn string(&self, text: impl Into<String>) -> Val<'a> {
        let text = text.into();
        if self.fits(text.len()) { Val::Str(Text::Own(text.into())) } else { Val::Error }
    }

    /// Pays for a string of so many bytes. `false`: the string must not be made.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.allows(bytes);
        self.pay(ALLOCATION + bytes / COPIED)
    }

    /// Pays for looking at each of so many bytes once. `false`: no steps are left, and the caller must stop.
    pub(crate) fn read(&self, bytes: usize) -> bool {
        self.pay(bytes / READ)
    }

    /// Pays for looking at so many bytes character by character, with a decision on each. `false`: no steps are left,
    /// and the caller must stop.
    pub(crate) fn scan(&self, bytes: usize) -> bool {
        self.pay(bytes / SCANNED)
    }

    /// Whether a string may have so many bytes. The check is free: the string is paid for when it is made.
    pub(crate) fn allows(&self, bytes: usize) -> bool {
        if bytes > self.env.limits.string {
            self.hit(Bound::StringSize);
        }
        self.bound.get().is_none()
    }

    /// A list that the evaluation made; an error if the list is too long.
    pub(crate) fn list(&self, items: Vec<Val<'a>>) -> Val<'a> {
        if items.len() > self.env.limits.list {
            return self.hit(Bound::ListSize);
        }
        if self.pay(items.len()) { Val::List(super::List::Made(items.into())) } else { Val::Error }
    }

    /// The scope of a nested ad that stands in another.
    pub(crate) fn nested(&self, ad: &'a Ad, parent: Option<&'a Frame<'a>>) -> &'a Frame<'a> {
        self.pay(ALLOCATION);
        let side = parent.map_or(Side::My, |frame| frame.side);
        self.arena.frames.push_get(Box::new(Frame { ad, parent, side, sees_other: false }))
    }

    /// The same scope, but bare names that it lacks are also looked up in the other ad of the match.
    pub(crate) fn reaching(&self, frame: &'a Frame<'a>) -> &'a Frame<'a> {
        self.pay(ALLOCATION);
        let Frame { ad, parent, side, .. } = *frame;
        self.arena.frames.push_get(Box::new(Frame { ad, parent, side, sees_other: true }))
    }

    /// Keeps a scope that the evaluation made.
    pub(crate) fn keep_frame(&self, frame: Frame<'a>) -> &'a Frame<'a> {
        self.arena.frames.push_get(Box::new(frame))
    }

    /// Keeps an ad that the evaluation made.
    pub(crate) fn keep_ad(&self, ad: Ad) -> &'a Ad {
        self.arena.ads.push_get(Box::new(ad))
    }

    /// Keeps an expression that the evaluation made.
    pub(crate) fn keep_expr(&self, expr: Expr) -> &'a Expr {
        self.arena.exprs.push_get(Box::new(expr))
    }

    /// The ad of the match that is not on this side.
    pub(crate) fn other(&self, side: Side) -> Option<&'a Frame<'a>> {
        match side {
            Side::My => self.target,
            Side::Target => self.my,
        }
    }

    /// The ad of the match that is on this side.
    pub(crate) fn matched(&self, side: Side) -> Option<&'a Frame<'a>> {
        match side {
            Side::My => self.my,
            Side::Target => self.target,
        }
    }

    /// Whether two ads are being matched.
    pub(crate) fn in_match(&self) -> bool {
        self.target.is_some()
    }

    /// Marks an attribute as being evaluated. `false`: the attribute is being evaluated already, so the reference is
    /// circular.
    pub(crate) fn begin(&self, program: &'a Program, ad: &'a Ad) -> bool {
        let mut active = self.active.borrow_mut();
        self.pay(active.len() / READ);
        let circular = active.iter().any(|(p, a)| std::ptr::eq(*p, program) && std::ptr::eq(*a, ad));
        if !circular {
            active.push((program, ad));
        }
        !circular
    }

    /// Ends what [`Ctx::begin`] began.
    pub(crate) fn end(&self) {
        self.active.borrow_mut().pop();
    }

    /// The next pseudo-random number (`SplitMix64`).
    pub(crate) fn random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
