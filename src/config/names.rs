//! Where an expansion looks names up, and what it may know and cost.

use super::allowance::Allowance;
use super::host::Host;
use super::table::{Config, Found};
use super::text::{Place, Text};
use classad::{Ad, Env, Evaluation, Expr};

/// Something that has values for names: a configuration, or a script's variables in front of a configuration.
pub(super) trait Names {
    /// The configuration, whose sources all places are in.
    fn config(&self) -> &Config;

    /// The value of a name as `$(NAME)` finds it. A value that has no place of its own is at `place`.
    fn find(&self, name: &str, place: Place) -> Option<Text>;

    /// The name without the prefix under which it is looked up first. `None`: the name has no such prefix.
    fn without_prefix(&self, name: &str) -> Option<String>;

    /// The work that is left.
    fn allowance(&self) -> &Allowance {
        &self.config().allowance
    }

    /// The directory with which `$Ff()` completes a path. `None`: paths stay as they are.
    fn directory(&self) -> Option<&str> {
        None
    }

    /// The ad in which `$EVAL()` and the conditions of a script are evaluated, and how.
    fn ad(&self) -> Option<(&Ad, &Env)> {
        None
    }

    /// The facts that may be known of the machine.
    fn host(&self) -> &Host {
        &self.config().host
    }

    /// The number of the draw: `$RANDOM_CHOICE()` and `$RANDOM_INTEGER()` have other values in each draw.
    fn draw(&self) -> u64 {
        0
    }

    /// Evaluates an expression in an ad. The steps are paid for.
    fn evaluate_in(&self, expr: &Expr, ad: &Ad, env: &Env) -> Evaluation {
        let evaluation = expr.evaluate(Some(ad), None, env);
        self.allowance().spend(u64::from(evaluation.steps) * STEP);
        evaluation
    }
}

/// The price of a step of an evaluation, in bytes of expanding.
pub(super) const STEP: u64 = 3;

impl Names for Config {
    fn config(&self) -> &Config {
        self
    }

    fn find(&self, name: &str, place: Place) -> Option<Text> {
        Some(match self.lookup(name)? {
            Found::Defined(definition) => definition.text.clone(),
            Found::Default(text) => Text::at(text, place),
        })
    }

    fn without_prefix(&self, name: &str) -> Option<String> {
        Config::without_prefix(self, name)
    }
}

/// The value that a name has, a separator, and the value that is appended. If the name has no value, there is no separator.
pub(super) fn appended(names: &dyn Names, name: &str, separator: &str, value: &Text, place: Place) -> Text {
    let mut text = names.find(name, place).unwrap_or_default();
    if !text.is_empty() {
        text.append(&Text::at(separator, value.place(0).unwrap_or(place)));
    }
    text.append(value);
    text
}
