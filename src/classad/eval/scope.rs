//! What names stand for.

use super::ctx::Ctx;
use super::val::Val;
use crate::ad::Ad;
use crate::expr::{Program, ScopeWord};
use crate::name::Name;

/// An ad with the ads it is nested in.
pub(crate) struct Frame<'a> {
    pub(crate) ad: &'a Ad,
    pub(crate) parent: Option<&'a Frame<'a>>,
    pub(crate) side: Side,
    /// Whether bare names that are nowhere in here may be those of the other ad of the match.
    pub(crate) sees_other: bool,
}

/// Which ad of a match something belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    My,
    Target,
}

/// What a name was found to be.
pub(crate) enum Found<'a> {
    /// An attribute, and the ad that has it.
    Attribute(&'a Program, &'a Frame<'a>),
    /// A value that needs no further evaluation.
    Value(Val<'a>),
    Nothing,
}

impl<'a> Found<'a> {
    /// An ad, or undefined where there is none.
    pub(crate) fn of(frame: Option<&'a Frame<'a>>) -> Self {
        Self::Value(frame.map_or(Val::Undefined, Val::Ad))
    }
}

impl<'a> Frame<'a> {
    /// What the ad itself, or one it is chained to, has by that name.
    pub(crate) fn attribute(&'a self, name: &Name) -> Option<Found<'a>> {
        self.ad.get_name(name).map(|expr| Found::Attribute(expr.program(), self))
    }

    /// The ad that all the others are nested in.
    pub(crate) fn outermost(&'a self) -> &'a Frame<'a> {
        let mut frame = self;
        while let Some(parent) = frame.parent {
            frame = parent;
        }
        frame
    }
}

impl<'a> Ctx<'a> {
    /// Looks a name up in an ad, then in those it is nested in. The words that name ads stand for them
    /// unless the ad itself has such an attribute.
    pub(crate) fn find(&self, name: &Name, start: &'a Frame<'a>) -> Found<'a> {
        if self.is_outermost(start)
            && let Some(found) = self.find_outermost(name)
        {
            return found;
        }
        if let Some(found) = start.attribute(name) {
            return found;
        }
        let word = ScopeWord::of(name.as_str());
        match word {
            Some(ScopeWord::My) => return Found::Value(Val::Ad(start)),
            Some(ScopeWord::Parent) if self.is_matched(start) => {
                return Found::Value(Val::Ad(self.context(start.side)));
            }
            Some(ScopeWord::Parent) => return Found::of(start.parent),
            Some(ScopeWord::Root) => return self.root(),
            Some(ScopeWord::Target) | None => {}
        }
        if name.is("CurrentTime") {
            return Found::Value(Val::Int(self.env.now));
        }
        let mut last = start;
        while let Some(outer) = last.parent {
            if self.is_outermost(outer) {
                return self.find_outermost(name).unwrap_or(Found::Nothing);
            }
            if let Some(found) = outer.attribute(name) {
                return found;
            }
            last = outer;
        }
        match word {
            _ if !self.is_matched(last) => Found::Nothing,
            Some(ScopeWord::Target) => Found::of(self.other(last.side)),
            _ => self.find_around(name, last.side),
        }
    }

    /// The ad that all the others are nested in: what `root` says, wherever it says it.
    fn root(&self) -> Found<'a> {
        match self.matched(Side::My) {
            _ if self.in_match() => Found::Value(Val::Ad(self.outermost())),
            Some(own) => Found::Value(Val::Ad(own)),
            None => Found::Value(self.fail()),
        }
    }

    /// The outermost of the ads that one stands in.
    pub(crate) fn root_of(&self, frame: &'a Frame<'a>) -> &'a Frame<'a> {
        let last = frame.outermost();
        if self.is_matched(last) { self.outermost() } else { last }
    }

    /// Looks a bare name up: as [`Ctx::find`], then in the other ad of the match. An ad nested in one of
    /// the two does not see the other.
    pub(crate) fn find_bare(&self, name: &Name, start: &'a Frame<'a>) -> Found<'a> {
        match self.find(name, start) {
            Found::Nothing if start.sees_other => {
                let other = self.other(start.side).and_then(|other| other.attribute(name));
                other.unwrap_or(Found::Nothing)
            }
            found => found,
        }
    }
}
