//! Scopes: what a name stands for at a place.

use super::ctx::Ctx;
use super::val::Val;
use crate::ad::Ad;
use crate::expr::{Program, ScopeWord};
use crate::name::Name;

/// An ad, and the ads that it is nested in.
pub(crate) struct Frame<'a> {
    pub(crate) ad: &'a Ad,
    pub(crate) parent: Option<&'a Frame<'a>>,
    pub(crate) side: Side,
    /// Whether a bare name that is found nowhere in here may be an attribute of the other ad of the match.
    pub(crate) sees_other: bool,
}

/// One of the two ads of a match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    My,
    Target,
}

/// The meaning of a name.
pub(crate) enum Found<'a> {
    /// An attribute's expression, and the ad that has the attribute.
    Attribute(&'a Program, &'a Frame<'a>),
    /// A value that needs no evaluation.
    Value(Val<'a>),
    Nothing,
}

impl<'a> Found<'a> {
    /// An ad as a value; `undefined` if there is no ad.
    pub(crate) fn of(frame: Option<&'a Frame<'a>>) -> Self {
        Self::Value(frame.map_or(Val::Undefined, Val::Ad))
    }
}

impl<'a> Frame<'a> {
    /// The attribute of that name in the ad itself, or in the ad that it is chained to.
    pub(crate) fn attribute(&'a self, name: &Name) -> Option<Found<'a>> {
        self.ad.get_name(name).map(|expr| Found::Attribute(expr.program(), self))
    }
}

impl<'a> Ctx<'a> {
    /// Looks a name up in an ad, then in the ads that it is nested in. A word that names an ad (`my`, `parent`, ...)
    /// stands for that ad unless the ad that is searched has an attribute of this name.
    pub(crate) fn find(&self, name: &Name, start: &'a Frame<'a>) -> Found<'a> {
        // A name that is found is compared as a whole.
        self.read(name.as_str().len());
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
            if !self.pay(1) {
                return Found::Nothing;
            }
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

    /// The last of the ads around a frame, the frame itself if it stands in none.
    pub(crate) fn last_around(&self, mut frame: &'a Frame<'a>) -> &'a Frame<'a> {
        while let Some(parent) = frame.parent.filter(|_| self.pay(1)) {
            frame = parent;
        }
        frame
    }

    /// The ad that `root` names: the outermost ad, wherever the word stands.
    fn root(&self) -> Found<'a> {
        match self.matched(Side::My) {
            _ if self.in_match() => Found::Value(Val::Ad(self.outermost())),
            Some(own) => Found::Value(Val::Ad(own)),
            None => Found::Value(self.fail()),
        }
    }

    /// The outermost of the ads around a frame.
    pub(crate) fn root_of(&self, frame: &'a Frame<'a>) -> &'a Frame<'a> {
        let last = self.last_around(frame);
        if self.is_matched(last) { self.outermost() } else { last }
    }

    /// Looks a bare name up: as [`Ctx::find`], then in the other ad of the match. From an ad that is nested in one of
    /// the two, the other is not searched.
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
