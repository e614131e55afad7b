//! Expands a text: replaces references and functions by what they stand for, within bounds.
//!
//! As in HTCondor, a replacement is searched again together with the text that follows it, until nothing is left to
//! replace. The text before a replacement is final. Unlike in HTCondor, a name that refers back to itself is an error.

use super::error::{ExpandError, ExpandFault};
use super::functions;
use super::names::{Names, STEP};
use super::scan::{self, Bytes, Macro, Wanted};
use super::text::{Place, Text};
use classad::{Ad, Env, Expr, Value};

/// The longest expanded text, in bytes.
pub(super) const MAX_LENGTH: usize = 1 << 20;
/// The most bytes that are looked at or moved for one value.
const MAX_WORK: u64 = 5_000_000;
/// The price of one replacement besides its bytes, in bytes.
const REPLACEMENT: usize = 200;
/// The deepest references within replacements of references.
const MAX_DEPTH: usize = 500;
/// The deepest functions within arguments of functions. Each takes stack.
const MAX_FUNCTIONS: usize = 30;

/// One expansion, and the work that is left for it.
pub(super) struct Expander<'n> {
    pub names: &'n dyn Names,
    /// The work that is left for this value.
    work: u64,
    /// The work that was left at the start.
    given: u64,
    /// The names whose values contain the text that is being expanded, through arguments of functions.
    around: Vec<String>,
    functions: usize,
    random: u64,
    /// The errors of functions that could not use their arguments; such a function stands for nothing. `None`: such a
    /// function ends the expansion with its error.
    complaints: Option<Vec<ExpandError>>,
}

/// A reference whose replacement is being searched.
struct Frame {
    name: String,
    /// The number of bytes that remain of the text where the replacement ends.
    end: usize,
}

/// The part of the text that was not searched yet, in reverse: the next byte is the last.
#[derive(Default)]
struct Rest {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

impl Bytes for Rest {
    fn at(&self, offset: usize) -> Option<u8> {
        let at = self.bytes.len().checked_sub(offset + 1)?;
        self.bytes.get(at).copied()
    }
}

impl Rest {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn prepend(&mut self, text: &Text) {
        for at in (0..text.len()).rev() {
            self.bytes.push(text.byte(at).unwrap_or_default());
            self.places.push(text.place(at).unwrap_or_default());
        }
    }

    /// Removes the next bytes and returns them.
    fn take(&mut self, count: usize) -> Text {
        let mut text = Text::default();
        for _ in 0..count {
            let (Some(byte), Some(place)) = (self.bytes.pop(), self.places.pop()) else { break };
            text.push(byte, place);
        }
        text
    }
}

impl<'n> Expander<'n> {
    pub fn new(names: &'n dyn Names) -> Self {
        let given = names.allowance().left().min(MAX_WORK);
        Self {
            names,
            work: given,
            given,
            around: Vec::new(),
            functions: 0,
            random: seed(names),
            complaints: None,
        }
    }

    /// Lets a function that cannot use its arguments stand for nothing, as HTCondor does; [`Expander::complaints`] has the
    /// reasons.
    pub fn forgiving(mut self) -> Self {
        self.complaints = Some(Vec::new());
        self
    }

    /// The errors that were forgiven so far.
    pub fn complaints(&mut self) -> Vec<ExpandError> {
        self.complaints.take().unwrap_or_default()
    }

    /// Expands the value of a name. A reference to the name itself is then a cycle.
    pub fn expand_named(&mut self, name: &str, text: &Text) -> Result<Text, ExpandError> {
        self.random =
            name.bytes().fold(self.random, |seed, byte| mix(seed ^ u64::from(byte.to_ascii_lowercase())));
        self.around.push(name.to_ascii_uppercase());
        let expanded = self.expand(text);
        self.around.pop();
        expanded
    }

    /// Expands all references and functions, and `$(DOLLAR)` last.
    pub fn expand(&mut self, text: &Text) -> Result<Text, ExpandError> {
        let mut text = self.expand_references(text)?;
        let mut at = 0;
        while let Some(found) = scan::find(text.bytes(), at, Wanted::Dollar, &mut self.work) {
            self.spend(text.len(), found_place(&text, found.dollar))?;
            let place = text.place(found.dollar).unwrap_or_default();
            let rest = text.slice(found.close + 1, text.len());
            text.truncate(found.dollar);
            text.push(b'$', place);
            text.append(&rest);
            at = found.dollar;
        }
        Ok(text)
    }

    /// Expands all references and functions but `$(DOLLAR)`.
    fn expand_references(&mut self, text: &Text) -> Result<Text, ExpandError> {
        let mut done = Text::default();
        let mut rest = Rest::default();
        rest.prepend(text);
        let mut frames: Vec<Frame> = Vec::new();
        while let Some(found) = scan::find(&rest, 0, Wanted::All, &mut self.work) {
            done.append(&rest.take(found.dollar));
            let before = rest.len();
            let call = rest.take(found.close + 1 - found.dollar);
            let place = call.place(0).unwrap_or_default();
            self.spend(call.len() + found.dollar + REPLACEMENT, place)?;
            // A call that starts behind a replacement, or that ends behind it, is not within that replacement.
            frames.retain(|frame| frame.end < before && frame.end <= rest.len());
            let call = Call::of(call, &found, place);
            let (value, name) = self.replace(&call, &frames)?;
            let Some(value) = value else { continue };
            if let Some(name) = name {
                self.enter(&mut frames, name, rest.len(), place)?;
            }
            self.spend(value.len() + frames.len(), place)?;
            if done.len() + rest.len() + value.len() > MAX_LENGTH {
                return Err(self.error(place, ExpandFault::TooLong(MAX_LENGTH)));
            }
            rest.prepend(&value);
        }
        self.spend(0, found_place(text, 0))?;
        done.append(&rest.take(rest.len()));
        Ok(done)
    }

    /// The text that replaces a call; and the name, if the text is the value of a name.
    fn replace(
        &mut self,
        call: &Call,
        frames: &[Frame],
    ) -> Result<(Option<Text>, Option<String>), ExpandError> {
        match call.kind {
            Macro::Name => {
                let name = call.name.as_str().to_ascii_uppercase();
                let value = self.value_of(&name, call.place).filter(|value| !value.is_empty());
                if value.is_none() {
                    return Ok((call.default.clone(), None));
                }
                self.refuse_cycle(frames, &name, call.place)?;
                Ok((value, Some(name)))
            }
            Macro::Env => self.environment(call).map(|value| (value, None)),
            _ => {
                if self.functions >= MAX_FUNCTIONS {
                    return Err(self.error(call.place, ExpandFault::TooDeep(MAX_FUNCTIONS)));
                }
                // The arguments of a function stand within the same references as the function.
                let depth = self.around.len();
                self.around.extend(frames.iter().map(|frame| frame.name.clone()));
                self.functions += 1;
                let value = functions::call(self, call);
                self.functions -= 1;
                self.around.truncate(depth);
                self.forgive(value).map(|value| (Some(value), None))
            }
        }
    }

    fn forgive(&mut self, value: Result<Text, ExpandError>) -> Result<Text, ExpandError> {
        match (value, &mut self.complaints) {
            (Err(error @ ExpandError { fault: ExpandFault::Function { .. }, .. }), Some(complaints)) => {
                complaints.push(error);
                Ok(Text::default())
            }
            (value, _) => value,
        }
    }

    fn enter(
        &mut self,
        frames: &mut Vec<Frame>,
        name: String,
        end: usize,
        place: Place,
    ) -> Result<(), ExpandError> {
        if frames.len() + self.around.len() >= MAX_DEPTH {
            return Err(self.error(place, ExpandFault::TooDeep(MAX_DEPTH)));
        }
        frames.push(Frame { name, end });
        Ok(())
    }

    fn refuse_cycle(&self, frames: &[Frame], name: &str, place: Place) -> Result<(), ExpandError> {
        let names = || self.around.iter().chain(frames.iter().map(|frame| &frame.name));
        let Some(start) = names().position(|around| around == name) else { return Ok(()) };
        let mut cycle: Vec<String> = names().skip(start).cloned().collect();
        cycle.push(name.to_owned());
        Err(self.error(place, ExpandFault::Cycle(cycle)))
    }

    fn environment(&self, call: &Call) -> Result<Option<Text>, ExpandError> {
        let name = call.name.as_str();
        let Some(environment) = &self.names.host().environment else {
            let refused =
                ExpandFault::Refused(format!("$ENV({name})"), "the environment is not the text's to read");
            return Err(self.error(call.place, refused));
        };
        let value = environment.get(&*name).map(|value| Text::at(value, call.place));
        Ok(match (value, &call.default) {
            (Some(value), _) if !value.is_empty() => Some(value),
            (_, Some(default)) => Some(default.clone()),
            (Some(_), None) => None,
            (None, None) => Some(Text::at("UNDEFINED", call.place)),
        })
    }

    /// The value of a name as `$(NAME)` finds it. The place of a compiled-in default is the place of the reference.
    pub fn value_of(&self, name: &str, place: Place) -> Option<Text> {
        self.names.find(name, place)
    }

    /// The text of an argument, expanded: the value of the name that it is, else the argument itself.
    pub fn argument(&mut self, argument: &Text, place: Place) -> Result<Text, ExpandError> {
        let name = argument.as_str().to_ascii_uppercase();
        let Some(value) = self.value_of(&name, place) else { return self.expand(argument) };
        self.refuse_cycle(&[], &name, place)?;
        self.around.push(name);
        let expanded = self.expand(&value);
        self.around.pop();
        expanded
    }

    /// The value of an expression in the ad, if there is an ad, else as [`Expander::evaluate_alone`].
    pub fn evaluate(&mut self, text: &str) -> Option<Value> {
        let names = self.names;
        match names.ad() {
            Some((ad, env)) => self.value_in(text, ad, env),
            None => self.evaluate_alone(text),
        }
    }

    /// The value of an expression in an ad without attributes. `None`: the text does not parse.
    pub fn evaluate_alone(&mut self, text: &str) -> Option<Value> {
        self.value_in(text, &Ad::new(), &Env::at(self.names.host().now))
    }

    fn value_in(&mut self, text: &str, ad: &Ad, env: &Env) -> Option<Value> {
        let evaluation = Expr::parse_old(text).ok()?.evaluate(Some(ad), None, env);
        self.work = self.work.saturating_sub(u64::from(evaluation.steps) * STEP);
        Some(evaluation.value)
    }

    /// A random number below `below`, which is not 0. The error: the host has no random numbers for this text.
    pub fn random(&mut self, below: u64, what: &str, place: Place) -> Result<u64, ExpandError> {
        if self.names.host().seed.is_none() {
            let refused = ExpandFault::Refused(what.to_owned(), "a policy must mean the same at each look");
            return Err(self.error(place, refused));
        }
        self.random = mix(self.random);
        Ok(self.random.checked_rem(below).unwrap_or(0))
    }

    pub fn error(&self, place: Place, fault: ExpandFault) -> ExpandError {
        ExpandError { position: self.names.config().position_of(place), fault }
    }

    /// Uses work up. With no work left this is an error even for 0 steps, because a search that runs out of work looks
    /// like a search that found nothing.
    fn spend(&mut self, steps: usize, place: Place) -> Result<(), ExpandError> {
        self.work = self.work.saturating_sub(steps as u64);
        if self.work == 0 {
            return Err(self.error(place, ExpandFault::TooMuchWork));
        }
        Ok(())
    }

    /// Replaces references to the name itself in a text that becomes the name's value. They are replaced when the
    /// value is defined, and never again.
    pub fn expand_own(&mut self, name: &str, text: &Text) -> Result<Text, ExpandError> {
        let short = self.names.without_prefix(name);
        let mut text = text.clone();
        while let Some(found) =
            scan::find(text.bytes(), 0, Wanted::Own(name, short.as_deref()), &mut self.work)
        {
            let place = found_place(&text, found.dollar);
            let call = Call::of(text.slice(found.dollar, found.close + 1), &found, place);
            let value = match call.kind {
                Macro::Name => {
                    let value = self.value_of(&call.name.as_str(), place).filter(|value| !value.is_empty());
                    value.or_else(|| call.default.clone()).unwrap_or_default()
                }
                _ => functions::call(self, &call)?,
            };
            self.spend(text.len() + value.len() + REPLACEMENT, place)?;
            if text.len() + value.len() > MAX_LENGTH {
                return Err(self.error(place, ExpandFault::TooLong(MAX_LENGTH)));
            }
            let rest = text.slice(found.close + 1, text.len());
            text.truncate(found.dollar);
            text.append(&value);
            text.append(&rest);
        }
        self.spend(0, found_place(&text, 0))?;
        Ok(text)
    }
}

impl Drop for Expander<'_> {
    fn drop(&mut self) {
        self.names.allowance().spend(self.given - self.work);
    }
}

/// A reference or function, and its parts.
pub(super) struct Call {
    pub kind: Macro,
    /// All of the call.
    text: Text,
    /// The name of a reference, or all arguments of a function.
    pub name: Text,
    pub default: Option<Text>,
    pub place: Place,
}

impl Call {
    fn of(text: Text, found: &scan::Found, place: Place) -> Self {
        let part = |from: usize, to: usize| text.slice(from - found.dollar, to - found.dollar);
        Self {
            kind: found.kind,
            name: part(found.body, found.name_end()),
            default: found.default.map(|default| part(default, found.close)),
            place,
            text,
        }
    }

    /// The word between the dollar and the parenthesis.
    pub fn word(&self) -> impl Iterator<Item = u8> {
        self.text.bytes().iter().skip(1).copied().take_while(|byte| *byte != b'(')
    }
}

fn found_place(text: &Text, at: usize) -> Place {
    text.place(at).unwrap_or_default()
}

/// A step of SplitMix64, a generator that is good enough to choose values by.
/// The seed of the names' present draw.
fn seed(names: &dyn Names) -> u64 {
    let seed = names.host().seed.unwrap_or(0);
    if names.draw() == 0 { seed } else { mix(seed ^ mix(names.draw())) }
}

fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
