//! The ads that HTCondor wraps around the two ads of a match.
//!
//! Expressions can see them: each of the two ads stands in a context ad that names both, and both contexts stand in an
//! outermost ad that has the two as `LEFT` and `RIGHT`.

use super::ctx::{Ctx, WRAPPING};
use super::scope::{Found, Frame, Side};
use super::val::Val;
use crate::ad::Ad;
use crate::expr::Expr;
use crate::name::Name;
use crate::value::Value;

/// Attributes of the outermost ad, apart from the two ads and their contexts.
const OUTERMOST: [(&str, &str); 5] = [
    ("leftRankValue", "LEFT.rank"),
    ("rightRankValue", "RIGHT.rank"),
    ("symmetricMatch", "RIGHT.requirements && LEFT.requirements"),
    ("leftMatchesRight", "RIGHT.requirements"),
    ("rightMatchesLeft", "LEFT.requirements"),
];

/// Whether one of the wrapping ads has an attribute of this name.
pub(crate) fn is_around_a_match(name: &str) -> bool {
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    match name.len() {
        2 => is("ad"),
        4 => is("LEFT") || is("lCtx") || is("rCtx"),
        5 => is("RIGHT"),
        13 | 14 | 16 => OUTERMOST.iter().any(|(known, _)| is(known)),
        _ => false,
    }
}

fn context_ad(side: Side) -> Ad {
    let (own, other) = match side {
        Side::My => (".LEFT", ".RIGHT"),
        Side::Target => (".RIGHT", ".LEFT"),
    };
    parsed([("ad", own), ("my", own), ("other", other), ("target", other)])
}

fn parsed<const N: usize>(entries: [(&str, &str); N]) -> Ad {
    let expr = |text| Expr::parse(text).unwrap_or_else(|_| Expr::literal(Value::Error));
    entries.into_iter().map(|(name, text)| (name, expr(text))).collect()
}

impl<'a> Ctx<'a> {
    /// Whether a frame is one of the two ads of the match itself, not an ad nested in them.
    pub(crate) fn is_matched(&self, frame: &Frame<'a>) -> bool {
        let own = self.matched(frame.side);
        self.in_match() && frame.parent.is_none() && own.is_some_and(|own| std::ptr::eq(own.ad, frame.ad))
    }

    /// The meaning of a name if the matched ad lacks it: an attribute of one of the wrapping ads, or nothing.
    pub(crate) fn find_around(&self, name: &Name, side: Side) -> Found<'a> {
        match () {
            () if !is_around_a_match(name.as_str()) => Found::Nothing,
            () if name.is("ad") => Found::of(self.matched(side)),
            () => self.find_outermost(name).unwrap_or(Found::Nothing),
        }
    }

    /// The meaning of a name in the outermost ad of a match.
    pub(crate) fn find_outermost(&self, name: &Name) -> Option<Found<'a>> {
        Some(match () {
            () if name.is("LEFT") => Found::of(self.matched(Side::My)),
            () if name.is("RIGHT") => Found::of(self.matched(Side::Target)),
            () if name.is("lCtx") => Found::Value(Val::Ad(self.context(Side::My))),
            () if name.is("rCtx") => Found::Value(Val::Ad(self.context(Side::Target))),
            () => return self.outermost().attribute(name),
        })
    }

    /// The context ad around the matched ad on this side.
    pub(crate) fn context(&self, side: Side) -> &'a Frame<'a> {
        self.pay(WRAPPING);
        self.keep_frame(Frame {
            ad: self.keep_ad(context_ad(side)),
            parent: Some(self.outermost()),
            side,
            sees_other: false,
        })
    }

    /// The outermost ad of a match.
    pub(crate) fn outermost(&self) -> &'a Frame<'a> {
        if let Some(known) = self.wrapper.get() {
            return known;
        }
        self.pay(3 * WRAPPING);
        let mut ad = parsed(OUTERMOST);
        for (name, side) in [("lCtx", Side::My), ("rCtx", Side::Target)] {
            ad.set(name, context_ad(side));
        }
        for (name, side) in [("LEFT", Side::My), ("RIGHT", Side::Target)] {
            ad.set(name, self.matched(side).map_or_else(Ad::new, |frame| frame.ad.clone()));
        }
        let frame = Frame { ad: self.keep_ad(ad), parent: None, side: Side::My, sees_other: false };
        let frame = self.keep_frame(frame);
        self.wrapper.set(Some(frame));
        frame
    }

    /// Whether a frame is the outermost ad of a match.
    pub(crate) fn is_outermost(&self, frame: &Frame<'a>) -> bool {
        self.wrapper.get().is_some_and(|known| std::ptr::eq(known, frame))
    }
}
